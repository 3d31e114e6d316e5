//! What a user may not read makes a root unknown, what the API server would refuse is said, and nothing is written.

use pintle_core::plan::{Change, PlannedRoot, Summary, Verdict};
use pintle_engine::fixtures;
use pintle_preview::{InspectRequest, ModuleChoice, PlanRequest, PreviewError};
use pintle_simulator::{Access, Action, User, Verdict as May};
use serde_json::{Value, json};

use super::{NAMESPACE, Place, inspect};

const KIND: (&str, &str) = ("rights.example.com/v1", "Thing");

/// Everybody may do everything but what this says, as `verb resource`.
struct Without(Vec<&'static str>);

impl Access for Without {
    fn owner(&mut self, _: &str) -> Option<User> {
        None
    }

    fn may(&mut self, _: &User, action: &Action) -> May {
        let asked = format!("{} {}", action.verb, action.resource);
        match self.0.iter().any(|refused| *refused == asked) {
            true => May::NotAllowed("it is not granted".into()),
            false => May::Allowed,
        }
    }
}

fn child(api_version: &str, kind: &str, name: &str) -> Value {
    let value = if kind == "Secret" { "Y29ycmVjdCBob3JzZQ==" } else { "v" };
    json!({"id": name, "object": {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "data": {"k": value}}})
}

fn module(children: &[Value]) -> Vec<u8> {
    let manifest = fixtures::manifest("thing", KIND.0, KIND.1, &["v1/ConfigMap", "v1/Secret"]);
    let answer = json!({"apiVersion": "guest.pintle.dev/v1", "children": children});
    fixtures::answers(&manifest, &answer.to_string())
}

/// A cluster with one root and a Reconciler whose module answers with these children.
fn place(children: &[Value]) -> Place {
    let place = Place::new();
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    place.create(json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.rights.example.com"},
        "spec": {"group": "rights.example.com", "scope": "Namespaced",
            "names": {"kind": KIND.1, "plural": "things", "singular": "thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": any}}}}]}}));
    place.push("thing", &module(children));
    place.create(
        json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "Reconciler", "metadata": {"name": "things"},
        "spec": {"for": {"apiVersion": KIND.0, "kind": KIND.1}, "module": "thing",
            "grants": {"children": [{"apiVersion": "v1", "kinds": ["ConfigMap", "Secret"]}]}}}),
    );
    let metadata = json!({"name": "a", "namespace": NAMESPACE});
    place.create(json!({"apiVersion": KIND.0, "kind": KIND.1, "metadata": metadata, "spec": {}}));
    place.server.take_requests();
    place
}

async fn plan(place: &Place, server: bool) -> Result<(Vec<PlannedRoot>, Summary), PreviewError> {
    place.plan(&PlanRequest { reconciler: "things".into(), server, ..PlanRequest::default() }).await
}

fn forbid(place: &Place, what: &[&'static str]) {
    place.server.set_access(Box::new(Without(what.to_vec())));
}

#[tokio::test]
async fn a_plan_writes_nothing_not_even_with_dry_runs() {
    let place = place(&[child("v1", "ConfigMap", "a"), child("v1", "Secret", "s")]);
    let before = place.server.version();
    let (roots, summary) = plan(&place, true).await.unwrap();
    assert_eq!(summary.roots.changed, 1, "{roots:?}");
    assert!(roots[0].children.iter().all(|child| child.change == Change::Create));
    assert_eq!(place.server.version(), before, "nothing was stored");
    assert!(!format!("{roots:?}").contains("Y29ycmVjdCBob3JzZQ=="), "the Secret's value is not shown");
}

#[tokio::test]
async fn what_may_not_be_read_is_unknown_and_named() {
    let place = place(&[child("v1", "ConfigMap", "a")]);
    forbid(&place, &["list configmaps", "get configmaps"]);
    // The module's own bytes are read by somebody else.
    let error = plan(&place, false).await.unwrap_err();
    assert!(
        matches!(&error, PreviewError::Forbidden(why) if why.contains("pintle-module-reader")),
        "{error}"
    );
    forbid(&place, &[]);
    plan(&place, false).await.unwrap();
    forbid(&place, &["list configmaps", "get configmaps"]);
    // Its machine code is still there.
    let (roots, summary) = plan(&place, false).await.unwrap();
    assert_eq!((summary.roots.unknown, summary.would_change()), (1, None), "{roots:?}");
    assert_eq!(roots[0].verdict, Verdict::Unknown);
    let whats: Vec<&str> = roots[0].unknown.iter().map(|unknown| unknown.what.as_str()).collect();
    assert_eq!(whats, ["the children of kind v1 ConfigMap", "ConfigMap blog/a"]);
    assert!(roots[0].unknown.iter().all(|unknown| unknown.why.contains("not granted")), "{roots:?}");
}

#[tokio::test]
async fn a_secret_that_may_not_be_read_is_unknown_and_the_rest_is_not() {
    let place = place(&[child("v1", "Secret", "s")]);
    forbid(&place, &["list secrets", "get secrets"]);
    let (roots, _) = plan(&place, false).await.unwrap();
    assert_eq!(roots[0].verdict, Verdict::Unknown, "{roots:?}");
    assert_eq!(roots[0].children[0].change, Change::Unknown);
    // Who may get it need not list it.
    forbid(&place, &["list secrets"]);
    let (roots, _) = plan(&place, false).await.unwrap();
    assert_eq!(roots[0].children[0].change, Change::Create);
}

#[tokio::test]
async fn roots_or_a_reconciler_that_may_not_be_read_are_no_plan() {
    let place = place(&[]);
    for (right, what) in
        [("list things", "the roots of kind Thing"), ("get reconcilers", "Reconciler things")]
    {
        forbid(&place, &[right]);
        let error = plan(&place, false).await.unwrap_err();
        assert!(matches!(&error, PreviewError::Forbidden(why) if why.starts_with(what)), "{error}");
    }
}

#[tokio::test]
async fn without_the_crd_and_its_published_schema_it_is_said_what_is_not_known() {
    let place = place(&[]);
    forbid(&place, &["get customresourcedefinitions"]);
    let (roots, _) = plan(&place, false).await.unwrap();
    assert_eq!(roots[0].verdict, Verdict::Unknown);
    assert_eq!(roots[0].unknown[0].what, "the status fields that the CRD of Thing declares");
}

#[tokio::test]
async fn what_the_api_server_would_refuse_is_said_by_a_dry_run_alone() {
    let place = place(&[child("v1", "ConfigMap", "a")]);
    forbid(&place, &["create configmaps", "patch configmaps"]);
    let (roots, _) = plan(&place, false).await.unwrap();
    assert_eq!(roots[0].verdict, Verdict::Changed);
    let (roots, summary) = plan(&place, true).await.unwrap();
    assert_eq!((roots[0].verdict, summary.roots.fails), (Verdict::Fails, 1), "{roots:?}");
    assert_eq!(roots[0].failure.as_ref().map(|failure| failure.reason.as_str()), Some("Forbidden"));
}

#[tokio::test]
async fn a_module_that_cannot_come_into_force_is_no_plan() {
    let place = place(&[]);
    let request = |module: ModuleChoice, config: Value| PlanRequest {
        reconciler: "things".into(),
        module: Some(module),
        config: Some(config),
        ..PlanRequest::default()
    };
    let plan = async |request: PlanRequest| place.preview.plan(&place.caller, &request, &mut |_| {}).await;
    let other = fixtures::answers(&fixtures::manifest("other", "x.io/v1", "Other", &[]), "{}");
    let error = plan(request(ModuleChoice::Bytes { name: "other".into(), bytes: other }, Value::Null)).await;
    assert!(matches!(error, Err(PreviewError::Refused(failure)) if failure.reason == "KindMismatch"));
    let text = ModuleChoice::Bytes { name: "text".into(), bytes: b"no module".to_vec() };
    let error = plan(request(text, Value::Null)).await;
    assert!(matches!(error, Err(PreviewError::Refused(failure)) if failure.reason == "NotWasm"));
    let error = plan(request(ModuleChoice::Named("none".into()), Value::Null)).await;
    assert!(matches!(error, Err(PreviewError::NotFound(_))), "{error:?}");
}

#[tokio::test]
async fn a_root_that_is_not_stored_is_judged_as_it_would_be_and_nothing_is_written() {
    let place = place(&[child("v1", "ConfigMap", "c")]);
    let request = |proposed: Value| InspectRequest { proposed: Some(proposed), ..inspect(KIND, "new") };
    // Of another name and namespace, it is taken for the one that was asked for.
    let proposed =
        json!({"metadata": {"name": "x", "namespace": "y", "labels": {"a": "b"}}, "spec": {"size": 7}});
    let found = place.preview.inspect(&place.caller, &request(proposed)).await.unwrap();
    let asked = &found.request.unwrap()["object"];
    assert_eq!(
        (&asked["metadata"]["name"], &asked["metadata"]["namespace"]),
        (&json!("new"), &json!("blog"))
    );
    assert_eq!((&asked["metadata"]["labels"]["a"], &asked["spec"]["size"]), (&json!("b"), &json!(7)));
    assert_eq!(found.children.iter().map(|child| child.change.change).collect::<Vec<_>>(), [Change::Create]);
    let written = place.server.take_requests().into_iter().filter(|request| request.seen.verb.is_mutating());
    assert_eq!(written.count(), 0);
    for (wrong, at) in [(json!([]), None), (json!({"metadata": 1}), Some("metadata"))] {
        let refused = place.preview.inspect(&place.caller, &request(wrong)).await;
        let Err(PreviewError::Refused(failure)) = refused else { panic!("{refused:?}") };
        assert_eq!(failure.path.as_deref(), at);
    }
}
