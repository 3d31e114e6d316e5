//! The kinds of roots: what the Reconcilers are for, or what CRDs serve where Reconcilers may not be listed.

use std::collections::{BTreeMap, BTreeSet};

use axum::response::Response;
use futures::{StreamExt, TryStreamExt, stream};
use http::StatusCode;
use pintle_core::object;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    caller::{AT_ONCE, Ask, Caller},
    discovery::{self, Served},
    endpoint::{self, Call, Endpoint},
    place::{self, Place, Resource},
    problem::Problem,
    query::Form,
    reading,
    users::Check,
};

/// How many groups or kinds are looked at.
const KINDS_MAX: usize = 200;

/// The kinds of roots.
#[derive(Debug, Serialize, JsonSchema)]
struct Kinds {
    /// Sorted by group and kind.
    items: Vec<Kind>,
    /// Why Reconcilers were not read, if they were not.
    unread: Option<Unread>,
}

/// Why something is not here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Unread {
    /// For a person.
    pub(crate) why: String,
}

/// A kind of root.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Kind {
    /// The group.
    group: String,
    /// The kind.
    kind: String,
    /// The version.
    version: String,
    /// Its name in paths.
    plural: String,
    /// Whether its objects live in namespaces.
    namespaced: bool,
    /// Its short names.
    short_names: Vec<String>,
    /// The Reconcilers that are for it.
    reconcilers: Vec<String>,
    /// Whether the caller may list its objects: in the namespace that was asked about, or else in all of them.
    may_list: bool,
}

/// The endpoints of this file.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    let list = Endpoint::get("/api/v1/kinds", "listKinds", "The kinds of roots", list);
    let namespace = ("namespace", Form::Text, "Whether the caller may list them in this namespace");
    vec![list.query(&[namespace]).gives::<Kinds>()]
}

/// All Reconcilers, as the caller may read them.
///
/// # Errors
/// Why they cannot be listed.
pub(crate) async fn reconcilers(caller: &Caller) -> Result<Vec<Value>, Problem> {
    let place = Resource::new("pintle.dev", "v1alpha1", "reconcilers").everywhere();
    reading::all(caller, &Ask::get(place.path()), Some).await
}

async fn list(call: Call) -> Result<Response, Problem> {
    let (caller, namespace) = (call.caller()?, call.query.text("namespace"));
    Place::within(&place::events(), namespace)?;
    let (items, unread) = match reconcilers(caller).await {
        Ok(reconcilers) => (of_reconcilers(caller, &reconcilers).await?, None),
        Err(problem)
            if problem.status == StatusCode::FORBIDDEN || problem.status == StatusCode::NOT_FOUND =>
        {
            (of_crds(caller).await?, Some(Unread { why: problem.detail }))
        }
        Err(problem) => return Err(problem),
    };
    let users = &call.app.users;
    let asked = stream::iter(items).map(|kind| async move {
        let check = Check {
            verb: "list".into(),
            group: kind.group.clone(),
            resource: kind.plural.clone(),
            subresource: None,
            namespace: namespace.filter(|_| kind.namespaced).map(Into::into),
            name: None,
        };
        Ok::<_, Problem>(Kind { may_list: users.may(caller, &check).await?, ..kind })
    });
    let mut items: Vec<Kind> = asked.buffer_unordered(AT_ONCE).try_collect().await?;
    items.sort();
    endpoint::json(StatusCode::OK, &Kinds { items, unread })
}

async fn of_reconcilers(caller: &Caller, reconcilers: &[Value]) -> Result<Vec<Kind>, Problem> {
    let mut wanted: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for reconciler in reconcilers {
        let text = |path: &[&str]| object::text(reconciler, path).unwrap_or_default().to_owned();
        let kind = (text(&["spec", "for", "apiVersion"]), text(&["spec", "for", "kind"]));
        wanted.entry(kind).or_default().insert(object::name(reconciler).to_owned());
    }
    let versions: BTreeSet<String> =
        wanted.keys().take(KINDS_MAX).map(|(api_version, _)| api_version.clone()).collect();
    let served = all_served(caller, versions).await?;
    let kinds = wanted.into_iter().filter_map(|((api_version, kind), reconcilers)| {
        let found = served.get(&api_version)?.iter().find(|served| served.kind == kind)?;
        kind_of(&api_version, found, reconcilers.into_iter().collect())
    });
    Ok(kinds.collect())
}

/// The kinds of CRDs, which everybody may know of.
async fn of_crds(caller: &Caller) -> Result<Vec<Kind>, Problem> {
    #[derive(Deserialize)]
    struct Groups {
        #[serde(default)]
        groups: Vec<Group>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Group {
        name: String,
        preferred_version: Preferred,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Preferred {
        group_version: String,
    }
    let answer = caller.ask(Ask::get("/apis".into())).await?;
    let Groups { groups } = answer.parse()?;
    let custom =
        groups.into_iter().filter(|group| place::is_custom(&group.name) && group.name != "pintle.dev");
    let versions = custom.map(|group| group.preferred_version.group_version).take(KINDS_MAX).collect();
    let served = all_served(caller, versions).await?;
    let kinds = served.iter().flat_map(|(api_version, kinds)| {
        let listed = kinds.iter().filter(|served| served.verbs.iter().any(|verb| verb == "list"));
        listed.filter_map(|served| kind_of(api_version, served, Vec::new()))
    });
    Ok(kinds.take(KINDS_MAX).collect())
}

async fn all_served(
    caller: &Caller,
    versions: BTreeSet<String>,
) -> Result<BTreeMap<String, Vec<Served>>, Problem> {
    let asked = stream::iter(versions).map(|version| async move {
        // An API server behind the aggregator that does not answer hides its own kinds alone.
        let served = match discovery::served(caller, &version).await {
            Err(problem) if problem.status.is_server_error() => None,
            served => served?,
        };
        Ok::<_, Problem>((version, served.unwrap_or_default()))
    });
    asked.buffer_unordered(AT_ONCE).try_collect().await
}

fn kind_of(api_version: &str, served: &Served, reconcilers: Vec<String>) -> Option<Kind> {
    let (group, version) = api_version.split_once('/')?;
    Some(Kind {
        group: group.into(),
        version: version.into(),
        plural: served.name.clone(),
        kind: served.kind.clone(),
        namespaced: served.namespaced,
        short_names: served.short_names.clone(),
        reconcilers,
        may_list: false,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::fake::{self, Asked, ask, refused, request, upstream};

    fn served(asked: &Asked, may_list: bool) -> (u16, serde_json::Value) {
        let reconciler = |name: &str, api_version: &str, kind: &str| json!({"metadata": {"name": name}, "spec": {"for": {"apiVersion": api_version, "kind": kind}}});
        match asked.path.split('?').next().unwrap() {
            "/apis/pintle.dev/v1alpha1/reconcilers" if may_list => {
                let items = [
                    reconciler("two", "a.example/v1", "Room"),
                    reconciler("one", "a.example/v1", "Room"),
                    reconciler("gone", "b.example/v1", "Gone"),
                ];
                (200, json!({"metadata": {}, "items": items}))
            }
            "/apis/pintle.dev/v1alpha1/reconcilers" => refused(403, "Forbidden", "no"),
            "/apis" => {
                let groups = ["apps", "a.example", "rbac.authorization.k8s.io", "pintle.dev", "down.example"];
                let group = |name: &str| json!({"name": name, "preferredVersion": {"groupVersion": format!("{name}/v1")}});
                (200, json!({"groups": groups.map(group)}))
            }
            "/apis/a.example/v1" => (
                200,
                json!({"resources": [
                    {"name": "rooms", "kind": "Room", "namespaced": true, "shortNames": ["rm"], "verbs": ["list"]},
                    {"name": "rooms/status", "kind": "Room", "namespaced": true, "verbs": ["get"]},
                    {"name": "reviews", "kind": "Review", "namespaced": false, "verbs": ["create"]}]}),
            ),
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" => {
                let about = &asked.json()["spec"]["resourceAttributes"];
                let allowed = about["verb"] == "list" && about["namespace"] == "blog";
                (201, json!({"status": {"allowed": allowed}}))
            }
            "/apis/down.example/v1" => refused(503, "ServiceUnavailable", "down"),
            _ => refused(404, "NotFound", "not here"),
        }
    }

    #[tokio::test]
    async fn kinds_are_what_reconcilers_are_for() {
        let (client, _) = upstream(|asked| served(asked, true));
        let app = fake::app(fake::cluster(), client);
        let (code, kinds) = ask(&app, request("GET", "/api/v1/kinds", None)).await;
        assert_eq!(
            (code, kinds),
            (
                200,
                json!({"unread": null, "items": [{"group": "a.example", "version": "v1", "plural": "rooms", "kind": "Room",
                "namespaced": true, "shortNames": ["rm"], "reconcilers": ["one", "two"], "mayList": false}]})
            )
        );
    }

    #[tokio::test]
    async fn who_may_list_a_kind_in_one_namespace_may_list_it_there() {
        for (namespace, may_list) in [("?namespace=blog", true), ("?namespace=shop", false), ("", false)] {
            let (client, _) = upstream(|asked| served(asked, true));
            let app = fake::app(fake::cluster(), client);
            let path = format!("/api/v1/kinds{namespace}");
            let (code, kinds) = ask(&app, request("GET", &path, None)).await;
            assert_eq!((code, &kinds["items"][0]["mayList"]), (200, &json!(may_list)), "{namespace}");
        }
    }

    #[tokio::test]
    async fn who_may_not_list_reconcilers_sees_the_kinds_of_crds_and_is_told_why() {
        let (client, log) = upstream(|asked| served(asked, false));
        let app = fake::app(fake::cluster(), client);
        let (code, kinds) = ask(&app, request("GET", "/api/v1/kinds", None)).await;
        assert_eq!((code, &kinds["unread"]), (200, &json!({"why": "no"})));
        assert_eq!(kinds["items"].as_array().unwrap().len(), 1);
        assert_eq!(
            (&kinds["items"][0]["plural"], &kinds["items"][0]["reconcilers"]),
            (&json!("rooms"), &json!([]))
        );
        assert!(
            !log.lock()
                .unwrap()
                .iter()
                .any(|asked| asked.path.contains("rbac") || asked.path.contains("/apps"))
        );
    }
}
