//! Paths, methods, discovery and rights.

use http::Method;
use serde_json::{Value, json};

use super::case;
use crate::beside::{
    Case,
    side::{Said, Side, create, delete, delete_all, everywhere, get, list, llama, merge, put, raw},
};

const AREA: &str = "Paths, discovery and rights";

/// Whether clients may keep an answer for ever.
fn is_kept(said: &Said) -> bool {
    said.headers.get("cache-control").is_some_and(|control| control.contains("immutable"))
}

pub(super) const CASES: &[Case] = &[
    case!(AREA, "a method that a path does not have is refused", |side| {
        side.must(create(llama("dolly"))).await?;
        let with = |ask: crate::beside::side::Ask| ask.body("application/json", llama("dolly").to_string());
        side.asks([
            with(get("dolly").with(Method::POST)),
            with(list().with(Method::PUT)),
            with(list().with(Method::PATCH)),
            with(everywhere().with(Method::POST)),
            everywhere().with(Method::DELETE),
            get("dolly").with(Method::OPTIONS),
            raw(Method::GET, "/apis/GROUP/v1alpha/llamas/dolly"),
            raw(Method::DELETE, "/apis/GROUP/v1alpha/llamas/dolly"),
        ])
        .await?;
    }),
    case!(AREA, "subresources that there are not are 404 at once", |side| {
        side.must(create(llama("dolly"))).await?;
        for rest in ["status", "scale", "log", "proxy", "exec", "status/x", "eviction"] {
            side.ask(get(&format!("dolly/{rest}"))).await?;
        }
        let object = side.must(get("dolly")).await?;
        side.ask(put("dolly/status", object)).await?;
        side.ask(merge("dolly/status", json!({"status": {"a": 1}}))).await?;
        side.ask(merge("dolly/scale", json!({"spec": {"replicas": 1}}))).await?;
        side.ask(get("dolly/status").with(Method::POST)).await?;
        side.ask(get("dolly/status").with(Method::DELETE)).await?;
        side.ask(get("nobody/status")).await?;
    }),
    case!(AREA, "the old paths of watches are answered at once", |side| {
        for path in ["", "/namespaces/NAMESPACE"] {
            let path = format!("/apis/GROUP/v1alpha/watch{path}/llamas");
            side.ask(raw(Method::GET, &path).query("timeoutSeconds=1&labelSelector=of%3Dnobody")).await?;
        }
    }),
    case!(AREA, "a resource that nobody serves is not found", |side| {
        side.asks([
            raw(Method::GET, "/apis/GROUP/v1alpha/sheep"),
            raw(Method::GET, "/apis/GROUP/v1alpha/namespaces/NAMESPACE/sheep/dolly"),
        ])
        .await?;
    }),
    case!(AREA, "discovery names the resource as it does that of a CRD", |side| {
        for path in ["/apis/GROUP", "/apis/GROUP/v1alpha"] {
            let found = side.must(raw(Method::GET, path)).await?;
            let resources = found["resources"].as_array().into_iter().flatten();
            let llamas: Vec<&Value> = resources.filter(|resource| resource["name"] == "llamas").collect();
            let group =
                json!([found["kind"], found["name"], found["groupVersion"], found["versions"], llamas]);
            side.note(path, group);
        }
        let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        let found = side.must(raw(Method::GET, "/apis").accept(aggregated)).await?;
        let ours = of_group(side, &found);
        side.note("aggregated", ours);
        let plain = side.must(raw(Method::GET, "/apis")).await?;
        let groups = plain["groups"].as_array().cloned().unwrap_or_default();
        let ours = groups.into_iter().find(|group| group["name"] == side.group).unwrap_or_default();
        side.note("plain", ours);
    }),
    case!(AREA, "OpenAPI describes an object as it does that of a CRD", |side| {
        let document = side.must(raw(Method::GET, "/openapi/v3/apis/GROUP/v1alpha")).await?;
        let paths: Vec<&String> =
            document["paths"].as_object().into_iter().flatten().map(|(path, _)| path).collect();
        let ours: Vec<&&String> = paths.iter().filter(|path| path.contains("/llamas")).collect();
        side.note("paths", json!(ours));
        let schemas = document["components"]["schemas"].as_object().cloned().unwrap_or_default();
        let llama = schemas.into_iter().find(|(name, _)| name.ends_with(".Llama"));
        side.note("schema", json!(llama.map(|(_, schema)| schema["properties"]["spec"].clone())));
    }),
    case!(AREA, "OpenAPI by its hash may be kept", |side| {
        let index = side.must(raw(Method::GET, "/openapi/v3")).await?;
        let url = index["paths"][format!("apis/{}/v1alpha", side.group)]["serverRelativeURL"]
            .as_str()
            .unwrap_or_default();
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let said = side.answer(&raw(Method::GET, path).query(query)).await?;
        let has = |name: &str| said.headers.get(name).is_some_and(|value| !value.is_empty());
        side.note("by hash", json!([said.code, is_kept(&said), has("expires"), has("etag")]));
        let said = side.answer(&raw(Method::GET, path)).await?;
        side.note("without", json!([said.code, is_kept(&said), said.headers.contains_key("expires")]));
        let said = side.answer(&raw(Method::GET, path).query("hash=ABC")).await?;
        side.note("of another hash", json!([said.code, is_kept(&said)]));
    }),
    case!(AREA, "who may nothing is told what", |side| {
        side.must(create(llama("dolly"))).await?;
        let whole = side.must(get("dolly")).await?;
        side.asks([
            get("dolly").of("jane"),
            list().of("jane"),
            everywhere().of("jane"),
            list().query("watch=1").of("jane"),
            create(llama("molly")).of("jane"),
            put("dolly", whole).of("jane"),
            merge("dolly", json!({})).of("jane"),
            delete("dolly", json!(null)).of("jane"),
            delete_all(json!(null)).of("jane"),
            get("nobody").of("jane"),
            get("dolly/status").of("jane"),
        ])
        .await?;
    }),
    case!(AREA, "who may one verb may that one", |side| {
        side.must(create(llama("dolly"))).await?;
        let user = format!("{}-reader", side.namespace);
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "reader"},
            "rules": [{"apiGroups": ["GROUP"], "resources": ["llamas"], "verbs": ["get"], "resourceNames": ["dolly"]}],
        });
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "reader"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
            "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
        });
        let path = "/apis/rbac.authorization.k8s.io/v1/namespaces/NAMESPACE";
        for (kind, object) in [("roles", role), ("rolebindings", binding)] {
            side.must(
                raw(Method::POST, &format!("{path}/{kind}")).body("application/json", object.to_string()),
            )
            .await?;
        }
        side.until(&get("dolly").of(&user), 200).await?;
        side.asks([
            get("dolly").of(&user),
            get("molly").of(&user),
            list().of(&user),
            list().query("fieldSelector=metadata.name%3Ddolly").of(&user),
            merge("dolly", json!({})).of(&user),
        ])
        .await?;
    }),
];

/// What aggregated discovery says of the group.
fn of_group(side: &Side, found: &Value) -> Value {
    let mut items = found["items"].as_array().into_iter().flatten();
    let mut ours = items.find(|item| item["metadata"]["name"] == side.group).cloned().unwrap_or_default();
    for version in ours["versions"].as_array_mut().into_iter().flatten() {
        if let Some(resources) = version["resources"].as_array_mut() {
            resources.retain(|resource| resource["resource"] == "llamas");
        }
    }
    ours
}
