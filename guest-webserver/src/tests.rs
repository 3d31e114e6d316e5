//! What no case of `cases/` shows of the guest's answers to WebServers: how it refuses.

use pintle_guest::{Failure, Value, call, json, serde_json};

use crate::{MAX_NAME, WebServer};

fn sample() -> Value {
    json!({
        "apiVersion": "my.domain/v1",
        "kind": "WebServer",
        "metadata": {"name": "webserver-sample", "namespace": "blog", "uid": "u", "generation": 1},
        "spec": {"image": "nginx:1.23.1", "replicas": 3},
    })
}

fn named(name: &str) -> Value {
    let mut root = sample();
    root["metadata"]["name"] = json!(name);
    root
}

fn with(field: &str, value: Value) -> Value {
    let mut root = sample();
    root["spec"][field] = value;
    root
}

/// How the component fails: text in, text out.
fn failure(root: &Value, config: &Value) -> Failure {
    let request = json!({"apiVersion": "guest.pintle.dev/v1", "object": root, "config": config});
    let failure = call::reconcile::<WebServer>(&request.to_string()).unwrap_err();
    serde_json::from_str(&failure).unwrap()
}

#[test]
fn what_slipped_past_the_crd_is_refused_with_its_path() {
    let path = |root: Value| failure(&root, &json!({})).path.unwrap();
    assert_eq!(path(with("replicas", json!(-1))), "spec.replicas");
    assert_eq!(path(with("replicas", json!("three"))), "spec.replicas");
    assert_eq!(path(with("image", json!(""))), "spec.image");
    assert_eq!(path(with("nodePort", json!(80))), "spec.nodePort");
    assert_eq!(path(json!({"metadata": {"name": "a"}, "spec": {}})), "spec.image");
    assert_eq!(path(named(&"a".repeat(MAX_NAME + 1))), "metadata.name");
    assert_eq!(path(named("1a")), "metadata.name");
    assert_eq!(path(named("a.b")), "metadata.name");
}

#[test]
fn a_config_with_a_field_that_there_is_not_is_blamed_on_the_config() {
    let failure = failure(&sample(), &json!({"resorces": {}}));
    assert_eq!((failure.reason.as_str(), failure.path.as_deref()), ("ConfigInvalid", Some("resorces")));
}
