//! Creates, updates and patches.

use http::{Method, header::CONTENT_TYPE};
use serde_json::json;

use super::case;
use crate::beside::{
    Case,
    side::{create, get, json_patch, list, llama, llama_with, merge, patch_of, put, raw},
};

const AREA: &str = "Creates, updates and patches";

pub(super) const CASES: &[Case] = &[
    case!(AREA, "what is created is answered, read and not created twice", |side| {
        side.asks([create(llama("dolly")), get("dolly"), create(llama("dolly")), list()]).await?;
    }),
    case!(AREA, "an object without kind or version, or of others than its path, is refused", |side| {
        for remove in ["kind", "apiVersion"] {
            let mut object = llama("dolly");
            object.as_object_mut().map(|fields| fields.remove(remove));
            side.ask(create(object)).await?;
        }
        for (field, value) in [("kind", "Sheep"), ("apiVersion", "v1"), ("kind", "llama")] {
            let mut object = llama("dolly");
            object[field] = value.into();
            side.ask(create(object)).await?;
        }
    }),
    case!(
        AREA,
        "an object without a name is refused, and one with the beginning of a name gets one",
        |side| {
            let mut object = llama("x");
            object["metadata"] = json!({});
            side.ask(create(object.clone())).await?;
            object["metadata"] = json!({"name": ""});
            side.ask(create(object.clone())).await?;
            object["metadata"] = json!({"generateName": "random-"});
            side.ask(create(object)).await?;
        }
    ),
    case!(AREA, "an object of another namespace is refused", |side| {
        side.ask(create(llama_with("dolly", &json!({"namespace": "default"})))).await?;
        side.ask(create(llama_with("dolly", &json!({"namespace": "NAMESPACE"})))).await?;
        side.must(create(llama("molly"))).await?;
        let mut object = side.must(get("molly")).await?;
        object["metadata"]["namespace"] = "default".into();
        side.ask(put("molly", object)).await?;
    }),
    case!(AREA, "nothing is created in a namespace that is not there", |side| {
        let path = "/apis/GROUP/v1alpha/namespaces/nowhere/llamas";
        side.ask(raw(Method::POST, path).body("application/json", llama("dolly").to_string())).await?;
    }),
    case!(AREA, "what the API server sets is not taken from who creates", |side| {
        side.ask(create(llama_with("a", &json!({"resourceVersion": "5"})))).await?;
        side.ask(create(llama_with("b", &json!({"uid": "6f9619ff-8b86-4011-b42d-00c04fc964ff"})))).await?;
        side.ask(create(llama_with("c", &json!({"generation": 7, "selfLink": "/x"})))).await?;
        side.ask(create(llama_with("d", &json!({"creationTimestamp": "2020-01-01T00:00:00Z"})))).await?;
        side.ask(create(llama_with("e", &json!({"deletionTimestamp": "2020-01-01T00:00:00Z"})))).await?;
        side.ask(create(llama_with("f", &json!({"deletionGracePeriodSeconds": 5})))).await?;
        side.ask(create(llama_with("g", &json!({"creationTimestamp": null, "generation": -1})))).await?;
    }),
    case!(AREA, "what is no object is refused with 400", |side| {
        for body in ["", "[]", "1", "null", "{", "{} {}", "\"x\""] {
            side.ask(list().with(Method::POST).body("application/json", body.to_owned())).await?;
        }
    }),
    case!(AREA, "a body in another form is refused with 415", |side| {
        for form in ["text/plain", "application/xml", "application/json-patch+json"] {
            side.ask(list().with(Method::POST).body(form, llama("dolly").to_string())).await?;
        }
        side.must(create(llama("dolly"))).await?;
        for form in ["application/json", "text/plain", "application/strategic-merge-patch+json"] {
            side.ask(patch_of("dolly", form, "{}".to_owned())).await?;
        }
    }),
    case!(AREA, "a body is read as YAML where it is said to be", |side| {
        let yaml = "apiVersion: GROUP/v1alpha\nkind: Llama\nmetadata: {name: dolly}\nspec: {height: 1.5, weight: 2}\n";
        side.ask(list().with(Method::POST).body("application/yaml", yaml.to_owned())).await?;
        side.ask(list().with(Method::POST).body("application/yaml", "a: [".to_owned())).await?;
        let charset = list().with(Method::POST).header(CONTENT_TYPE, "application/json; charset=utf-8");
        side.ask(charset).await?;
    }),
    case!(AREA, "fields that nobody knows are dropped, told or refused", |side| {
        let mut object = llama("dolly");
        object["spec"]["colour"] = "red".into();
        object["lables"] = json!({});
        for validation in ["Strict", "Warn", "Ignore", "", "Sometimes"] {
            side.ask(create(object.clone()).query(&format!("fieldValidation={validation}&dryRun=All")))
                .await?;
        }
        side.must(create(llama("dolly"))).await?;
        for validation in ["Strict", "Warn", "Ignore"] {
            let query = format!("fieldValidation={validation}");
            side.ask(merge("dolly", json!({"spec": {"colour": "red"}})).query(&query)).await?;
            let add = json!([{"op": "add", "path": "/spec/colour", "value": 1}]);
            side.ask(json_patch("dolly", add).query(&query)).await?;
        }
        let mut whole = side.must(get("dolly")).await?;
        whole["spec"]["colour"] = "red".into();
        for validation in ["Strict", "Warn"] {
            side.ask(put("dolly", whole.clone()).query(&format!("fieldValidation={validation}&dryRun=All")))
                .await?;
        }
    }),
    case!(AREA, "fields that stand there twice are told or refused", |side| {
        let text = r#"{"apiVersion": "GROUP/v1alpha", "kind": "Llama", "metadata": {"name": "dolly"}, "spec": {"height": 1, "height": 2, "weight": 3}}"#;
        for validation in ["Strict", "Warn", "Ignore"] {
            let query = format!("fieldValidation={validation}&dryRun=All");
            side.ask(list().with(Method::POST).body("application/json", text.to_owned()).query(&query))
                .await?;
        }
        side.must(create(llama("dolly"))).await?;
        let form = "application/merge-patch+json";
        for validation in ["Strict", "Warn"] {
            let patch = patch_of("dolly", form, r#"{"spec": {"height": 2, "height": 3}}"#.to_owned());
            side.ask(patch.query(&format!("fieldValidation={validation}"))).await?;
        }
    }),
    case!(AREA, "values that the schema forbids are refused with their causes", |side| {
        for spec in [
            json!({"height": 1, "weight": 0}),
            json!({"height": -1, "weight": 0}),
            json!({"height": 1}),
            json!({}),
            json!(null),
            json!("heavy"),
            json!({"height": "tall", "weight": 1}),
            json!({"height": null, "weight": 1}),
        ] {
            let mut object = llama("dolly");
            object["spec"] = spec;
            side.ask(create(object)).await?;
        }
        let mut object = llama("dolly");
        object.as_object_mut().map(|fields| fields.remove("spec"));
        side.ask(create(object)).await?;
    }),
    case!(AREA, "an update needs the version that it knows, and the present one", |side| {
        let first = side.must(create(llama("dolly"))).await?;
        let mut next = first.clone();
        next["metadata"].as_object_mut().map(|fields| fields.remove("resourceVersion"));
        side.ask(put("dolly", next.clone())).await?;
        next["metadata"]["resourceVersion"] = "".into();
        side.ask(put("dolly", next.clone())).await?;
        next = first.clone();
        next["spec"]["weight"] = 2.into();
        side.ask(put("dolly", next.clone())).await?;
        side.ask(put("dolly", next.clone())).await?;
        next["metadata"]["resourceVersion"] = "abc".into();
        side.ask(put("dolly", next)).await?;
    }),
    case!(AREA, "an update that changes nothing stores nothing", |side| {
        let first = side.must(create(llama("dolly"))).await?;
        let second = side.must(put("dolly", first.clone())).await?;
        let third = side.must(merge("dolly", json!({"spec": {"weight": 31.25}}))).await?;
        let versions = [&first, &second, &third].map(|object| object["metadata"]["resourceVersion"].clone());
        side.note("versions", json!(versions[0] == versions[1] && versions[1] == versions[2]));
    }),
    case!(AREA, "an update names what its path names", |side| {
        let first = side.must(create(llama("dolly"))).await?;
        let changed = |field: &str, value: &str| {
            let mut object = first.clone();
            object["metadata"][field] = value.into();
            object
        };
        side.ask(put("dolly", changed("name", "molly"))).await?;
        side.ask(put("dolly", changed("name", ""))).await?;
        side.ask(put("dolly", changed("uid", "6f9619ff-8b86-4011-b42d-00c04fc964ff"))).await?;
        side.ask(put("nobody", llama("nobody"))).await?;
        let mut nobody = first.clone();
        nobody["metadata"]["name"] = "nobody".into();
        side.ask(put("nobody", nobody)).await?;
        let mut other = first.clone();
        other["kind"] = "Sheep".into();
        side.ask(put("dolly", other)).await?;
    }),
    case!(AREA, "times and generation are not what who updates says", |side| {
        let first = side.must(create(llama("dolly"))).await?;
        for (field, value) in [
            ("creationTimestamp", json!("2020-01-01T00:00:00Z")),
            ("creationTimestamp", json!(null)),
            ("generation", json!(0)),
            ("generation", json!(9)),
            ("deletionTimestamp", json!("2020-01-01T00:00:00Z")),
            ("deletionGracePeriodSeconds", json!(3)),
        ] {
            let mut object = first.clone();
            object["metadata"][field] = value;
            side.ask(put("dolly", object).query("dryRun=All")).await?;
        }
    }),
    case!(AREA, "a merge patch changes what it names", |side| {
        side.must(create(llama("dolly"))).await?;
        side.asks([
            merge("dolly", json!({"spec": {"weight": 40}})),
            merge("dolly", json!({"metadata": {"labels": {"a": "1", "b": "2"}}})),
            merge("dolly", json!({"metadata": {"labels": {"a": null}}})),
            merge("dolly", json!({"metadata": {"labels": null}})),
            merge("dolly", json!({})),
            merge("dolly", json!({"spec": {"weight": 0}})),
            merge("dolly", json!({"spec": null})),
            merge("dolly", json!({"spec": {"weight": "x"}})),
            merge("nobody", json!({})),
            get("dolly"),
        ])
        .await?;
    }),
    case!(AREA, "a JSON patch does what it says, or nothing", |side| {
        side.must(create(llama("dolly"))).await?;
        side.asks([
            json_patch("dolly", json!([{"op": "replace", "path": "/spec/weight", "value": 40}])),
            json_patch("dolly", json!([{"op": "test", "path": "/spec/weight", "value": 40}])),
            json_patch("dolly", json!([{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}])),
            json_patch("dolly", json!([{"op": "remove", "path": "/metadata/labels"}])),
            json_patch("dolly", json!([])),
            get("dolly"),
        ])
        .await?;
    }),
    case!(AREA, "a JSON patch that cannot be carried out is refused", |side| {
        side.must(create(llama("dolly"))).await?;
        side.asks([
            json_patch("dolly", json!([{"op": "test", "path": "/spec/weight", "value": 41}])),
            json_patch("dolly", json!([{"op": "remove", "path": "/spec/colour"}])),
            json_patch("dolly", json!([{"op": "replace", "path": "/spec/a/b", "value": 1}])),
            json_patch("dolly", json!([{"op": "jump", "path": "/spec/weight"}])),
            json_patch("dolly", json!({"spec": 1})),
            patch_of("dolly", "application/json-patch+json", "[".to_owned()),
            patch_of("dolly", "application/merge-patch+json", "[1".to_owned()),
            patch_of("dolly", "application/merge-patch+json", "[]".to_owned()),
            json_patch("dolly", json!([{"op": "replace", "path": "/metadata/name", "value": "molly"}])),
            json_patch("dolly", json!([{"op": "replace", "path": "/kind", "value": "Sheep"}])),
        ])
        .await?;
    }),
    case!(AREA, "a JSON patch of too many operations is refused", |side| {
        side.must(create(llama("dolly"))).await?;
        let one = json!({"op": "test", "path": "/spec/weight", "value": 31.25});
        side.ask(json_patch("dolly", vec![one.clone(); 10_000].into())).await?;
        side.ask(json_patch("dolly", vec![one; 10_001].into())).await?;
    }),
    case!(AREA, "a patch that names a version is for that version", |side| {
        let first = side.must(create(llama("dolly"))).await?;
        let version = first["metadata"]["resourceVersion"].clone();
        side.ask(merge("dolly", json!({"metadata": {"resourceVersion": version}, "spec": {"weight": 2}})))
            .await?;
        side.ask(merge("dolly", json!({"metadata": {"resourceVersion": version}, "spec": {"weight": 3}})))
            .await?;
        side.ask(merge("dolly", json!({"metadata": {"resourceVersion": version, "labels": {"a": "b"}}})))
            .await?;
        side.ask(merge("dolly", json!({"metadata": {"uid": "6f9619ff-8b86-4011-b42d-00c04fc964ff"}})))
            .await?;
        side.ask(merge("dolly", json!({"metadata": {"name": "molly"}}))).await?;
        side.ask(merge("dolly", json!({"metadata": {"namespace": "default"}}))).await?;
        side.ask(get("dolly")).await?;
    }),
    case!(AREA, "server-side apply is refused", |side| {
        let body = llama("dolly").to_string();
        side.ask(patch_of("dolly", "application/apply-patch+yaml", body).query("fieldManager=test")).await?;
    }),
    case!(AREA, "a dry run of any write stores nothing", |side| {
        side.ask(create(llama("dolly")).query("dryRun=All")).await?;
        side.ask(get("dolly")).await?;
        let mut object = side.must(create(llama("dolly"))).await?;
        object["spec"]["weight"] = 99.into();
        side.ask(put("dolly", object).query("dryRun=All")).await?;
        side.ask(merge("dolly", json!({"spec": {"weight": 98}})).query("dryRun=All")).await?;
        side.ask(get("dolly")).await?;
        for value in ["Some", "All&dryRun=Some", ""] {
            side.ask(create(llama("molly")).query(&format!("dryRun={value}"))).await?;
        }
    }),
    case!(AREA, "options of a write that there are not are refused", |side| {
        let long = "m".repeat(129);
        for query in
            [format!("fieldManager={long}"), "fieldManager=a%0Ab".to_owned(), "fieldValidation=x".to_owned()]
        {
            side.ask(create(llama("dolly")).query(&query)).await?;
        }
        side.must(create(llama("dolly"))).await?;
        side.ask(merge("dolly", json!({})).query("force=true")).await?;
        side.ask(merge("dolly", json!({})).query("dryRun=x&fieldValidation=y")).await?;
    }),
    case!(AREA, "a body of more than three mebibytes is refused", |side| {
        let long = "x".repeat((3 << 20) + 1);
        let body = llama_with("dolly", &json!({"annotations": {"long": long}})).to_string();
        let said = side.answer(&list().with(Method::POST).body("application/json", body)).await?;
        side.note("a long body", json!([said.code, said.body["reason"]]));
    }),
];
