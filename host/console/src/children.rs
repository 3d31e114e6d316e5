//! What a root is made of: its children of every kind that its Reconcilers may make.

use std::collections::BTreeSet;

use axum::response::Response;
use futures::{StreamExt, stream};
use http::StatusCode;
use pintle_core::{
    object,
    readiness::{self, Ready as Rule},
};
use pintle_wit::{ConditionStatus, Kind, ObjectRef, names};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    caller::{AT_ONCE, Ask, Caller, METADATA, METADATA_OF_ALL},
    discovery,
    endpoint::{self, Call, Endpoint},
    kinds,
    objects::{self, of_object},
    place::{Place, Resource},
    problem::Problem,
    reading::{self, Listed},
    rows,
};

/// How many children of one kind are shown, and of how many kinds.
const CHILDREN_MAX: usize = 1000;
const KINDS_MAX: usize = 64;

/// The children of a root.
#[derive(Debug, Serialize, JsonSchema)]
struct Children {
    /// Sorted by kind and name.
    items: Vec<Child>,
    /// The kinds that could not be read.
    unread: Vec<UnreadKind>,
    /// The kinds that were listed: a stream that watches these tells of every change.
    watched: Vec<WatchedKind>,
}

/// A kind whose objects with the root's label are its children.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct WatchedKind {
    /// The resource.
    #[serde(flatten)]
    resource: Resource,
    /// Where they are; everywhere without one.
    namespace: Option<String>,
    /// The version of the list, for a watch that goes on from it.
    resource_version: String,
}

/// An object that exists because of a root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Child {
    /// Group and version.
    api_version: String,
    /// The kind.
    kind: String,
    /// Its namespace, if it is in one.
    namespace: Option<String>,
    /// Its name.
    name: String,
    /// Its uid.
    uid: String,
    /// When it was created (RFC 3339).
    created: String,
    /// Whether it is being deleted.
    deleting: bool,
    /// Whether it is ready, by the rule of its kind.
    ready: ChildReady,
    /// Whether it is a Secret, of which only the metadata were read.
    secret: bool,
}

/// Whether a child is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
struct ChildReady {
    /// Whether it is.
    status: ConditionStatus,
    /// Why, in one word.
    reason: String,
    /// Why, for a person.
    message: String,
}

/// A kind that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct UnreadKind {
    /// Group and version.
    api_version: String,
    /// The kind.
    kind: String,
    /// Why, for a person.
    why: String,
}

impl UnreadKind {
    fn new(Kind { api_version, kind }: Kind, why: String) -> Self {
        Self { api_version, kind, why }
    }
}

/// The endpoints of this file.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    of_object("/{name}/children", ["listChildren", "listChildrenOfClusterObject"], |path, id| {
        Endpoint::get(path, id, "What a root is made of", list).gives::<Children>()
    })
    .into()
}

async fn list(call: Call) -> Result<Response, Problem> {
    let place = objects::place(&call)?;
    let caller = call.caller()?;
    let root = caller.ask(Ask::get(place.path())).await?.json()?;
    let uid = object::uid(&root);
    let mut unread = Vec::new();
    let (mut kinds, unwatched) = (BTreeSet::new(), unwatched(&root));
    match kinds::reconcilers(caller).await {
        Ok(reconcilers) => kinds.extend(child_kinds(&reconcilers, &root)),
        Err(problem) if problem.status == StatusCode::UNAUTHORIZED => return Err(problem),
        Err(problem) => {
            let reconciler = Kind::new("pintle.dev/v1alpha1", "Reconciler");
            let is_forbidden = problem.status == StatusCode::FORBIDDEN;
            let role = if is_forbidden { "; the ClusterRole pintle-reader gives the right" } else { "" };
            let why = format!("{}{role}", problem.detail);
            unread.push(UnreadKind::new(reconciler, why));
        }
    }
    let scope = place.namespace.as_deref();
    let kinds = kinds.into_iter().take(KINDS_MAX);
    let by_kind = stream::iter(kinds).map(|kind| async move {
        let found = of_kind(caller, &kind, scope, uid).await;
        (kind, found)
    });
    let (mut items, mut watched) = (Vec::new(), Vec::new());
    for (kind, found) in by_kind.buffered(AT_ONCE).collect::<Vec<_>>().await {
        match found {
            Ok(None) => {}
            Ok(Some((place, Listed { version, items: found, .. }))) => {
                let Place { resource, namespace, .. } = place;
                watched.push(WatchedKind { resource, namespace, resource_version: version });
                if found.len() >= CHILDREN_MAX {
                    let why = format!("there may be more than {CHILDREN_MAX}");
                    unread.push(UnreadKind::new(kind, why));
                }
                items.extend(found);
            }
            Err(problem) => unread.push(UnreadKind::new(kind, problem.detail)),
        }
    }
    let known: BTreeSet<(String, String)> =
        items.iter().map(|child: &Child| (child.kind.clone(), child.name.clone())).collect();
    let missing =
        unwatched.into_iter().filter(|child| !known.contains(&(child.kind.clone(), child.name.clone())));
    for child in missing.take(CHILDREN_MAX) {
        let (kind, namespace) = (child.kind(), scope.or(child.namespace.as_deref()));
        match by_name(caller, &kind, namespace, &child.name, uid).await {
            Ok(found) => items.extend(found),
            Err(problem) => unread.push(UnreadKind::new(kind, format!("{}: {}", child.name, problem.detail))),
        }
    }
    let order = |Child { kind, api_version, namespace, name, .. }: &Child| {
        (kind.clone(), api_version.clone(), namespace.clone(), name.clone())
    };
    items.sort_by_cached_key(order);
    endpoint::json(StatusCode::OK, &Children { items, unread, watched })
}

/// The kinds of children that the Reconcilers of a root may make.
fn child_kinds(reconcilers: &[Value], root: &Value) -> BTreeSet<Kind> {
    let of_root = object::kind(root);
    let is_for = |reconciler: &&Value| {
        let text = |key: &str| object::text(reconciler, &["spec", "for", key]).unwrap_or_default();
        text("apiVersion") == of_root.api_version && text("kind") == of_root.kind
    };
    let kinds = reconcilers.iter().filter(is_for).flat_map(|reconciler| {
        let kinds = reconciler.pointer("/status/childKinds").and_then(Value::as_array);
        kinds.into_iter().flatten().filter_map(|kind| serde_json::from_value(kind.clone()).ok())
    });
    kinds.filter(object::is_kind).collect()
}

/// The children that a root names itself, since they are not watched.
fn unwatched(root: &Value) -> Vec<ObjectRef> {
    let named = root.pointer("/status/pintle/unwatched").and_then(Value::as_array);
    let named = named.into_iter().flatten().filter_map(|child| ObjectRef::deserialize(child).ok());
    named.filter(object::is_reference).collect()
}

fn is_secret(resource: &Resource) -> bool {
    resource.group.is_empty() && resource.plural == "secrets"
}

async fn resource_of(caller: &Caller, kind: &Kind, scope: Option<&str>) -> Result<Option<Place>, Problem> {
    let Some((resource, served)) = discovery::of_kind(caller, &kind.api_version, &kind.kind).await? else {
        return Ok(None);
    };
    let namespace = scope.filter(|_| served.namespaced);
    Place::within(&resource, namespace).map(Some)
}

async fn of_kind(
    caller: &Caller,
    kind: &Kind,
    scope: Option<&str>,
    uid: &str,
) -> Result<Option<(Place, Listed<Child>)>, Problem> {
    let Some(place) = resource_of(caller, kind, scope).await? else { return Ok(None) };
    let is_secret = is_secret(&place.resource);
    let mut ask = Ask::get(place.path()).with("labelSelector", format!("{}={uid}", names::LABEL_ROOT));
    // What a Secret holds does not leave the API server.
    if is_secret || !readiness::needs_status(kind) {
        ask = ask.accepting(METADATA_OF_ALL);
    }
    let listed = reading::page(caller, &ask, CHILDREN_MAX as u64, |mut live| {
        object::set_kind(&mut live, kind.clone());
        Some((child(&live, is_secret), 0))
    });
    let listed = listed.await?;
    Ok(Some((place, listed)))
}

/// A child by its name, if it is this root's.
async fn by_name(
    caller: &Caller,
    kind: &Kind,
    scope: Option<&str>,
    name: &str,
    uid: &str,
) -> Result<Option<Child>, Problem> {
    let Some(place) = resource_of(caller, kind, scope).await? else { return Ok(None) };
    let place = place.named(name)?;
    match caller.ask(Ask::get(place.path()).accepting(METADATA)).await {
        Ok(answer) => {
            let mut live = answer.json()?;
            object::set_kind(&mut live, kind.clone());
            let owners = live.pointer("/metadata/ownerReferences").and_then(Value::as_array);
            let is_owned = owners.into_iter().flatten().any(|owner| owner["uid"] == uid);
            Ok(is_owned.then(|| child(&live, is_secret(&place.resource))))
        }
        Err(problem) if problem.status == StatusCode::NOT_FOUND => Ok(None),
        Err(problem) => Err(problem),
    }
}

fn child(live: &Value, is_secret: bool) -> Child {
    let kind = object::kind(live);
    Child {
        namespace: object::namespace(live).map(str::to_owned),
        name: object::name(live).to_owned(),
        uid: object::uid(live).to_owned(),
        created: object::text(live, &["metadata", "creationTimestamp"]).unwrap_or_default().to_owned(),
        deleting: object::is_deleting(live),
        ready: ready(live),
        secret: is_secret,
        api_version: kind.api_version,
        kind: kind.kind,
    }
}

/// Whether a child is ready: by the rule of its kind, in the words of its condition where it has one.
fn ready(live: &Value) -> ChildReady {
    let said = rows::ready(live);
    let (status, reason, message) = match readiness::of(live) {
        Rule::Yes => (ConditionStatus::True, "Ready", String::new()),
        Rule::Waiting(why) => (ConditionStatus::False, "Waiting", why),
        Rule::Failed(why) => (ConditionStatus::False, "Failed", why),
    };
    let reason = if said.reason.is_empty() { reason.to_owned() } else { said.reason };
    ChildReady { status, reason, message: if message.is_empty() { said.message } else { message } }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fake::{self, Asked, ask, refused, request, upstream};

    fn served(asked: &Asked) -> (u16, Value) {
        let path = asked.path.split('?').next().unwrap();
        match path {
            "/apis/a.example/v1/namespaces/n/rooms/a" => (
                200,
                json!({"apiVersion": "a.example/v1", "kind": "Room", "metadata": {"name": "a", "namespace": "n", "uid": "u"},
                    "status": {"pintle": {"unwatched": [
                        {"apiVersion": "v1", "kind": "Secret", "name": "key"}, {"apiVersion": "v1", "kind": "Secret", "name": "foreign"}]}}}),
            ),
            "/apis/pintle.dev/v1alpha1/reconcilers" => {
                let reconciler = |kind: &str, kinds: Value| {
                    json!({"metadata": {"name": "r"}, "spec": {"for": {"apiVersion": "a.example/v1", "kind": kind}},
                        "status": {"childKinds": kinds}})
                };
                let kinds = json!([{"apiVersion": "apps/v1", "kind": "Deployment"}, {"apiVersion": "v1", "kind": "Service"},
                    {"apiVersion": "v1", "kind": "ConfigMap"}]);
                let other = json!([{"apiVersion": "batch/v1", "kind": "Job"}]);
                (
                    200,
                    json!({"metadata": {}, "items": [reconciler("Room", kinds), reconciler("Wall", other)]}),
                )
            }
            "/apis/apps/v1" => (
                200,
                json!({"resources": [{"name": "deployments", "kind": "Deployment", "namespaced": true}]}),
            ),
            "/api/v1" => (
                200,
                json!({"resources": [{"name": "services", "kind": "Service", "namespaced": true},
                {"name": "secrets", "kind": "Secret", "namespaced": true}, {"name": "configmaps", "kind": "ConfigMap", "namespaced": true}]}),
            ),
            "/apis/apps/v1/namespaces/n/deployments" => (
                200,
                json!({"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"name": "web", "namespace": "n", "uid": "d", "generation": 2},
                    "status": {"observedGeneration": 1}}]}),
            ),
            // As the API server writes a list of metadata that has none.
            "/api/v1/namespaces/n/configmaps" => {
                (200, json!({"metadata": {"resourceVersion": "8"}, "items": null}))
            }
            "/api/v1/namespaces/n/services" => refused(403, "Forbidden", "no services for ann"),
            "/api/v1/namespaces/n/secrets/key" => (
                200,
                json!({"metadata": {"name": "key", "namespace": "n", "uid": "s", "ownerReferences": [{"uid": "u"}]}}),
            ),
            "/api/v1/namespaces/n/secrets/foreign" => {
                (200, json!({"metadata": {"name": "foreign", "ownerReferences": [{"uid": "v"}]}}))
            }
            _ => refused(404, "NotFound", path),
        }
    }

    #[tokio::test]
    async fn children_are_those_of_the_kinds_of_its_reconcilers_and_what_may_not_be_read_is_named() {
        let (client, log) = upstream(served);
        let app = fake::app(fake::cluster(), client);
        let path = "/api/v1/objects/a.example/v1/rooms/namespaces/n/a/children";
        let (code, children) = ask(&app, request("GET", path, None)).await;
        assert_eq!(code, 200);
        let items = children["items"].as_array().unwrap();
        let [deployment, secret] = &items[..] else { panic!("{children}") };
        assert_eq!((&deployment["name"], &deployment["ready"]["status"]), (&json!("web"), &json!("False")));
        assert_eq!(
            (&secret["name"], &secret["secret"], &secret["ready"]["status"]),
            (&json!("key"), &json!(true), &json!("True"))
        );
        assert_eq!(
            children["unread"],
            json!([{"apiVersion": "v1", "kind": "Service", "why": "no services for ann"}])
        );
        let deployments = json!({"group": "apps", "version": "v1", "plural": "deployments", "namespace": "n", "resourceVersion": "7"});
        let configmaps = json!({"group": "", "version": "v1", "plural": "configmaps", "namespace": "n", "resourceVersion": "8"});
        assert_eq!(children["watched"], json!([deployments, configmaps]));
        let log = log.lock().unwrap();
        assert!(log.iter().any(|asked| asked.path.contains("labelSelector=pintle.dev%2Froot%3Du")));
        let whole = log.iter().filter(|asked| asked.path.contains("/secrets/"));
        assert!(
            whole.clone().count() == 2 && whole.clone().all(|asked| asked.header("accept") == Some(METADATA))
        );
        assert!(
            !log.iter().any(|asked| asked.path.contains("/jobs")),
            "the other Reconciler is for another kind"
        );
    }

    #[tokio::test]
    async fn who_may_not_read_reconcilers_is_told_the_role_that_gives_the_right() {
        let (client, _) = upstream(|asked| match asked.path.starts_with("/apis/pintle.dev/") {
            true => refused(403, "Forbidden", "no reconcilers for ann"),
            false => served(asked),
        });
        let app = fake::app(fake::cluster(), client);
        let path = "/api/v1/objects/a.example/v1/rooms/namespaces/n/a/children";
        let (code, children) = ask(&app, request("GET", path, None)).await;
        let unread = &children["unread"][0];
        assert_eq!((code, &unread["kind"]), (200, &json!("Reconciler")), "{children}");
        assert!(unread["why"].as_str().is_some_and(|why| why.contains("ClusterRole pintle-reader")));
    }
}
