//! What a user may not read makes a root unknown, what the API server would refuse is said, and nothing is written.

use kube::Client;
use pintle_core::plan::{Change, PlannedRoot, Summary, Verdict};
use pintle_engine::{Digest, Engine, EngineConfig, Meter, fixtures};
use pintle_modules::Budget;
use pintle_preview::{Caller, InspectRequest, ModuleChoice, PlanRequest, Preview, PreviewError, Told};
use pintle_runtime::{Spawner, clock};
use pintle_simulator::{Access, Act, Action, ApiServer, User, Verdict as May};
use pintle_wit::Kind;
use serde_json::{Value, json};

use super::cluster;

const KIND: &str = "Thing";
const GROUP: &str = "rights.example.com";

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

struct Place {
    server: ApiServer,
    preview: Preview,
    caller: Caller,
}

fn child(api_version: &str, kind: &str, name: &str) -> Value {
    let value = if kind == "Secret" { "Y29ycmVjdCBob3JzZQ==" } else { "v" };
    json!({"id": name, "object": {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "data": {"k": value}}})
}

fn module(children: &[Value]) -> Vec<u8> {
    let manifest = fixtures::manifest("thing", &format!("{GROUP}/v1"), KIND, &["v1/ConfigMap", "v1/Secret"]);
    let answer = json!({"apiVersion": "guest.pintle.dev/v1", "children": children});
    fixtures::answers(&manifest, &answer.to_string())
}

/// A cluster with one root and a Reconciler whose module answers with these children. No host works there.
fn place(children: &[Value]) -> Place {
    let server = cluster();
    let create = |object: Value| drop(server.act("test", &Act::Create(object)).unwrap());
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    create(json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{GROUP}")},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": {"kind": KIND, "plural": "things", "singular": "thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": any}}}}]}}));
    create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "blog"}}));
    let bytes = module(children);
    pintle_api::module_objects("thing", &bytes, &Digest::of(&bytes).to_string()).into_iter().for_each(create);
    create(json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "Reconciler", "metadata": {"name": "things"},
        "spec": {"for": {"apiVersion": format!("{GROUP}/v1"), "kind": KIND}, "module": "thing",
            "grants": {"children": [{"apiVersion": "v1", "kinds": ["ConfigMap", "Secret"]}]}}}));
    create(
        json!({"apiVersion": format!("{GROUP}/v1"), "kind": KIND, "metadata": {"name": "a", "namespace": "blog"}, "spec": {}}),
    );
    let client = Client::new(server.service("user"), "default");
    let engine = Engine::new(EngineConfig::new(Meter::Fuel, clock::monotonic)).unwrap();
    server.take_requests();
    Place {
        preview: Preview::new(engine, None, Budget::fixed(1 << 30), Spawner::default()),
        caller: Caller { user: client.clone(), modules: client },
        server,
    }
}

impl Place {
    async fn plan(&self, server: bool) -> Result<(Vec<PlannedRoot>, Summary), PreviewError> {
        let request = PlanRequest { reconciler: "things".into(), server, ..PlanRequest::default() };
        let mut roots = Vec::new();
        let mut tell = |told: Told| {
            if let Told::Root(root) = told {
                roots.push(*root);
            }
        };
        let summary = self.preview.plan(&self.caller, &request, &mut tell).await?;
        Ok((roots, summary))
    }

    fn forbid(&self, what: &[&'static str]) {
        self.server.set_access(Box::new(Without(what.to_vec())));
    }
}

#[tokio::test]
async fn a_plan_writes_nothing_not_even_with_dry_runs() {
    let place = place(&[child("v1", "ConfigMap", "a"), child("v1", "Secret", "s")]);
    let before = place.server.version();
    let (roots, summary) = place.plan(true).await.unwrap();
    assert_eq!(summary.roots.changed, 1, "{roots:?}");
    assert!(roots[0].children.iter().all(|child| child.change == Change::Create));
    assert_eq!(place.server.version(), before, "nothing was stored");
    assert!(!format!("{roots:?}").contains("Y29ycmVjdCBob3JzZQ=="), "the Secret's value is not shown");
}

#[tokio::test]
async fn what_may_not_be_read_is_unknown_and_named() {
    let place = place(&[child("v1", "ConfigMap", "a")]);
    place.forbid(&["list configmaps", "get configmaps"]);
    // The module's own bytes are read by somebody else.
    let error = place.plan(false).await.unwrap_err();
    assert!(
        matches!(&error, PreviewError::Forbidden(why) if why.contains("pintle-module-reader")),
        "{error}"
    );
    place.forbid(&[]);
    place.plan(false).await.unwrap();
    place.forbid(&["list configmaps", "get configmaps"]);
    // Its machine code is still there.
    let (roots, summary) = place.plan(false).await.unwrap();
    assert_eq!((summary.roots.unknown, summary.would_change()), (1, None), "{roots:?}");
    assert_eq!(roots[0].verdict, Verdict::Unknown);
    let whats: Vec<&str> = roots[0].unknown.iter().map(|unknown| unknown.what.as_str()).collect();
    assert_eq!(whats, ["the children of kind v1 ConfigMap", "ConfigMap blog/a"]);
    assert!(roots[0].unknown.iter().all(|unknown| unknown.why.contains("not granted")), "{roots:?}");
}

#[tokio::test]
async fn a_secret_that_may_not_be_read_is_unknown_and_the_rest_is_not() {
    let place = place(&[child("v1", "Secret", "s")]);
    place.forbid(&["list secrets", "get secrets"]);
    let (roots, _) = place.plan(false).await.unwrap();
    assert_eq!(roots[0].verdict, Verdict::Unknown, "{roots:?}");
    assert_eq!(roots[0].children[0].change, Change::Unknown);
    // Who may get it need not list it.
    place.forbid(&["list secrets"]);
    let (roots, _) = place.plan(false).await.unwrap();
    assert_eq!(roots[0].children[0].change, Change::Create);
}

#[tokio::test]
async fn roots_or_a_reconciler_that_may_not_be_read_are_no_plan() {
    let place = place(&[]);
    for (right, what) in
        [("list things", "the roots of kind Thing"), ("get reconcilers", "Reconciler things")]
    {
        place.forbid(&[right]);
        let error = place.plan(false).await.unwrap_err();
        assert!(matches!(&error, PreviewError::Forbidden(why) if why.starts_with(what)), "{error}");
    }
}

#[tokio::test]
async fn without_the_crd_and_its_published_schema_it_is_said_what_is_not_known() {
    let place = place(&[]);
    place.forbid(&["get customresourcedefinitions"]);
    let (roots, _) = place.plan(false).await.unwrap();
    assert_eq!(roots[0].verdict, Verdict::Unknown);
    assert_eq!(roots[0].unknown[0].what, "the status fields that the CRD of Thing declares");
}

#[tokio::test]
async fn what_the_api_server_would_refuse_is_said_by_a_dry_run_alone() {
    let place = place(&[child("v1", "ConfigMap", "a")]);
    place.forbid(&["create configmaps", "patch configmaps"]);
    let (roots, _) = place.plan(false).await.unwrap();
    assert_eq!(roots[0].verdict, Verdict::Changed);
    let (roots, summary) = place.plan(true).await.unwrap();
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
    let request = |proposed: Value| InspectRequest {
        kind: Kind::new(format!("{GROUP}/v1"), KIND),
        namespace: Some("blog".into()),
        name: "new".into(),
        module: None,
        proposed: Some(proposed),
    };
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

#[tokio::test]
async fn an_inspected_root_shows_no_value_of_a_secret() {
    let place = place(&[child("v1", "Secret", "s"), child("v1", "ConfigMap", "c")]);
    let request = InspectRequest {
        kind: Kind::new(format!("{GROUP}/v1"), KIND),
        namespace: Some("blog".into()),
        name: "a".into(),
        module: None,
        proposed: None,
    };
    let found = place.preview.inspect(&place.caller, &request).await.unwrap();
    let text = serde_json::to_string(&found).unwrap();
    assert!(found.secrets_replaced && !text.contains("Y29ycmVjdCBob3JzZQ=="), "{text}");
    let answer = found.answer.unwrap();
    assert_eq!(answer["children"].as_array().map(Vec::len), Some(2));
    assert_eq!(found.request.unwrap()["object"]["metadata"]["name"], "a");
    assert_eq!(found.children[0].wanted.as_ref().unwrap()["kind"], "Secret");
}
