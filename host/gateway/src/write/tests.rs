//! Tests of what the API server is asked for a write.

use std::{sync::Arc, time::Duration};

use pintle_api::View;
use pintle_engine::{
    CallError, CallLimits, CallStats, Engine, EngineConfig, Meter, Origin, ShowAnswer, Views,
    fixtures::views::{self, Outcome},
};
use pintle_wit::{Failure, reasons};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::MERGE_PATCH;
use crate::{
    answer::tests::{LLAMAS, Setting, llamas, with},
    control::bind::Serving,
    reviews::tests::with_clock,
    show::{CallViews, InForce, InModules},
};

const RECORD: &str = "/api/v1/namespaces/n/configmaps/dolly";

/// The backing object at a version.
fn at(version: &str) -> (u16, Value) {
    let metadata = json!({"namespace": "n", "name": "dolly", "uid": "u", "resourceVersion": version});
    (200, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}))
}

fn conflict() -> (u16, Value) {
    let details = json!({"kind": "configmaps", "name": "dolly"});
    (
        409,
        json!({"kind": "Status", "code": 409, "reason": "Conflict", "message": "it is newer", "details": details}),
    )
}

/// What was asked, without bodies.
fn lines(asked: &[(String, Value)]) -> Vec<&str> {
    asked.iter().map(|(line, _)| line.as_str()).collect()
}

fn dolly(method: &'static str) -> [String; 3] {
    let form = if method == "PATCH" { MERGE_PATCH } else { "application/json" };
    [method.to_owned(), format!("{LLAMAS}/dolly"), form.to_owned()]
}

async fn ask(
    setting: &Setting,
    method: &'static str,
    body: Value,
    answers: impl IntoIterator<Item = (u16, Value)>,
) -> ((u16, Value), Vec<(String, Value)>) {
    let request = dolly(method);
    setting.ann(request.each_ref().map(String::as_str), &body, answers).await
}

fn labelled(version: &str) -> Value {
    json!({"metadata": {"resourceVersion": version, "labels": {"a": "b"}}})
}

/// The backing object at a version, with the label of the selector.
fn selected(version: &str) -> (u16, Value) {
    let (code, mut object) = at(version);
    object["metadata"]["labels"] = json!({"a": "b"});
    (code, object)
}

/// A gateway whose view selects by a label.
async fn with_selector(test: impl AsyncFnOnce(&Setting)) {
    let (view, mut serving) = llamas();
    serving.served.selector = [("a".to_owned(), "b".to_owned())].into();
    let setting = Setting::serving((view, serving), Arc::new(InModules));
    with_clock(async { test(&setting).await }).await;
}

fn background() -> Value {
    json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"})
}

#[tokio::test(start_paused = true)]
async fn a_patch_is_of_the_version_that_was_read_and_of_a_newer_one_if_it_names_none() {
    with(async |setting| {
        let (patch, get) = (format!("PATCH {RECORD}"), format!("GET {RECORD}"));
        let once = vec![get.as_str(), patch.as_str()];
        let ((code, _), asked) = ask(setting, "PATCH", labelled("5000007"), [at("5"), at("6")]).await;
        assert_eq!((code, lines(&asked)), (200, once.clone()));
        assert_eq!(asked[1].1["metadata"], json!({"labels": {"a": "b"}, "resourceVersion": "5", "uid": "u"}));
        let any = json!({"metadata": {"labels": {"a": "c"}}});
        let answers = [at("8"), conflict(), at("9"), at("10")];
        let ((code, _), asked) = ask(setting, "PATCH", any, answers).await;
        assert_eq!((code, lines(&asked)), (200, [once.clone(), once].concat()));
        assert_eq!(asked[3].1["metadata"]["resourceVersion"], "9");
        let ((code, _), asked) = ask(setting, "PATCH", labelled("7000007"), [at("10")]).await;
        assert_eq!((code, lines(&asked)), (409, vec![get.as_str()]));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_object_is_deleted_at_the_version_that_was_looked_at_and_again_when_it_is_newer() {
    with_selector(async |setting| {
        let (delete, get) = (format!("DELETE {RECORD}"), format!("GET {RECORD}"));
        let gone = (200, json!({"kind": "Status", "status": "Success", "details": {"uid": "u"}}));
        let pinned = |version: &str| json!({"uid": "u", "resourceVersion": version});
        let answers = [selected("5"), conflict(), selected("6"), gone];
        let ((code, _), asked) = ask(setting, "DELETE", background(), answers).await;
        let expected = [&get, &delete, &get, &delete].map(String::as_str);
        assert_eq!((code, lines(&asked)), (200, expected.to_vec()));
        assert_eq!(asked[1].1["preconditions"], pinned("5"));
        assert_eq!(asked[3].1["preconditions"], pinned("6"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_delete_of_an_object_that_others_keep_writing_pauses_between_its_tries() {
    with_selector(async |setting| {
        let gone = (200, json!({"kind": "Status", "status": "Success", "details": {"uid": "u"}}));
        let mut answers: Vec<_> = (0..8).flat_map(|_| [selected("5"), conflict()]).collect();
        answers.extend([selected("6"), gone]);
        let began = Instant::now();
        let ((code, _), asked) = ask(setting, "DELETE", background(), answers).await;
        assert_eq!((code, asked.len()), (200, 18));
        assert!(!began.elapsed().is_zero());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn of_many_only_those_that_the_view_selects_are_listed_and_deleted() {
    with_selector(async |setting| {
        let named = |mut object: Value, name: &str| {
            object["metadata"]["name"] = name.into();
            object
        };
        let items = || json!([named(selected("5").1, "dolly"), named(at("5").1, "strange")]);
        let list = || (200, json!({"metadata": {"resourceVersion": "7"}, "items": items()}));
        let metadata = "application/json";
        let ((code, shown), _) = setting.ann(["GET", LLAMAS, metadata], &Value::Null, [list()]).await;
        assert_eq!((code, shown["items"].as_array().map(Vec::len)), (200, Some(1)), "{shown}");
        let gone = (200, json!({"kind": "Status", "status": "Success", "details": {"uid": "u"}}));
        let answers = [list(), selected("5"), gone];
        let ((code, _), asked) = setting.ann(["DELETE", LLAMAS, metadata], &background(), answers).await;
        let (get, delete) = (format!("GET {RECORD}"), format!("DELETE {RECORD}"));
        let all = "GET /api/v1/namespaces/n/configmaps";
        assert_eq!((code, lines(&asked)), (200, vec![all, get.as_str(), delete.as_str()]));
    })
    .await;
}

/// Shows nothing, for this reason, and stores what the module stores.
struct ShowsNothing(Failure);

impl CallViews for ShowsNothing {
    fn show(&self, _: &Views, _: &str, _: &str, _: usize, _: &CallLimits) -> Result<ShowAnswer, CallError> {
        let failure = Box::new(self.0.clone());
        Err(CallError { failure, origin: Origin::Engine, stats: CallStats::default() })
    }
}

/// Llamas with this rule about their size, whose guest stores the size 2.
fn sized(rule: &str) -> (View, Serving) {
    let stores = r#"{"apiVersion":"guest.pintle.dev/v1","object":{"data":{"size":"2"}}}"#;
    let bytes = views::serves(&views::manifest("fixture"), Outcome::Trap, Outcome::Answer(stores));
    let engine = Engine::new(EngineConfig::new(Meter::Fuel, || Duration::ZERO)).unwrap();
    let views = engine.load(&bytes, None).unwrap().views().unwrap();
    let (view, mut serving) = llamas();
    serving.in_force = Ok(InForce { views, view: "things".into(), config: Value::Null });
    let size = json!({"type": "string", "x-kubernetes-validations": [{"rule": rule}]});
    let data = json!({"type": "object", "properties": {"size": size}});
    serving.served.schema = json!({"type": "object", "properties": {"data": data}});
    (view, serving)
}

#[tokio::test(start_paused = true)]
async fn who_replaces_an_object_whose_rules_compare_it_is_refused_while_it_cannot_be_shown() {
    let late = Failure::transient(reasons::DEADLINE, "it ran longer than it may");
    let trapped = Failure::terminal(reasons::TRAP, "it trapped");
    let (compares, does_not) = ("self == oldSelf", "self != ''");
    for (failure, rule, code) in [
        (&late, compares, 503),
        (&late, does_not, 503),
        (&trapped, compares, 500),
        // What cannot be shown as it is can be repaired.
        (&trapped, does_not, 200),
    ] {
        with_clock(async {
            let guests = Arc::new(ShowsNothing(failure.clone()));
            let setting = Setting::serving(sized(rule), guests);
            let put = json!({"apiVersion": "farm.example.com/v1alpha", "kind": "Llama",
                "metadata": {"name": "dolly", "resourceVersion": "5000007"}, "data": {"size": "2"}});
            let answers = if code == 200 { vec![at("5"), at("6")] } else { vec![at("5")] };
            let count = answers.len();
            let ((answered, status), asked) = ask(&setting, "PUT", put, answers).await;
            assert_eq!((answered, asked.len()), (code, count), "{rule}: {status}");
        })
        .await;
    }
}
