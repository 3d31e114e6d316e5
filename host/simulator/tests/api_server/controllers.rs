//! What the controllers of every cluster do, step by step.

use std::sync::Arc;

use pintle_simulator::{Act, ApiServer, Cascade, Options, Snapshot};
use pintle_wit::ObjectRef;
use serde_json::{Value, json};

fn server() -> ApiServer {
    ApiServer::new(Options::default())
}

fn settle(server: &ApiServer) {
    for _ in 0..1_000 {
        if !server.controllers_step() {
            return;
        }
    }
    panic!("the controllers do not come to rest");
}

fn reference(kind: &str, name: &str) -> ObjectRef {
    let (api_version, is_namespaced) = match kind {
        "Deployment" => ("apps/v1", true),
        "PodDisruptionBudget" => ("policy/v1", true),
        "CustomResourceDefinition" => ("apiextensions.k8s.io/v1", false),
        kind => ("v1", kind != "Namespace"),
    };
    let namespace = is_namespaced.then(|| "default".into());
    ObjectRef { api_version: api_version.into(), kind: kind.into(), namespace, name: name.into() }
}

/// A ConfigMap of these owners.
fn owned(name: &str, owners: &[Arc<Value>]) -> Value {
    let reference = |owner: &Arc<Value>| {
        let metadata = &owner["metadata"];
        json!({
            "apiVersion": owner["apiVersion"], "kind": owner["kind"],
            "name": metadata["name"], "uid": metadata["uid"],
        })
    };
    let owners: Vec<Value> = owners.iter().map(reference).collect();
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default", "ownerReferences": owners}})
}

fn delete(server: &ApiServer, kind: &str, name: &str, cascade: Cascade) {
    server.act("user", &Act::Delete { target: reference(kind, name), cascade }).unwrap();
}

fn names(snapshot: &Snapshot, kind: &str) -> Vec<String> {
    snapshot
        .objects
        .keys()
        .filter(|reference| reference.kind == kind)
        .map(|reference| reference.name.clone())
        .collect()
}

fn deployment(replicas: u64, image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": image}]}}},
    })
}

fn apply(server: &ApiServer, object: Value) -> Value {
    server.act("user", &Act::Apply { object, manager: "user".into(), force: true }).unwrap()
}

/// The action of a step.
fn act(server: &ApiServer, step: &str) -> Act {
    let (verb, rest) = step.split_once(' ').unwrap();
    let mut words = rest.splitn(3, ' ');
    let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    match verb {
        "create" => Act::Create(serde_json::from_str(rest).unwrap()),
        "own" => {
            let owner = |name| server.object(&reference("ConfigMap", name)).unwrap();
            let owners: Vec<Arc<Value>> = rest.split(' ').skip(1).map(owner).collect();
            Act::Create(owned(first, &owners))
        }
        "deploy" => {
            let object = deployment(first.parse().unwrap(), second);
            Act::Apply { object, manager: "user".into(), force: true }
        }
        "delete" => {
            let cascade = match words.next() {
                Some("Foreground") => Cascade::Foreground,
                Some("Orphan") => Cascade::Orphan,
                _ => Cascade::Background,
            };
            Act::Delete { target: reference(first, second), cascade }
        }
        "patch" => {
            let patch = serde_json::from_str(words.next().unwrap()).unwrap();
            Act::JsonPatch { target: reference(first, second), subresource: None, patch }
        }
        _ => panic!("{step}"),
    }
}

/// Takes a step, or looks whether it is as the step says.
fn take(server: &ApiServer, claim: &str, step: &str) {
    let (verb, rest) = step.split_once(' ').unwrap_or((step, ""));
    match verb {
        "settle" => settle(server),
        "refused" => {
            let mut words = rest.splitn(3, ' ');
            let (code, word) = (words.next().unwrap(), words.next().unwrap());
            let refused = server.act("user", &act(server, words.next().unwrap())).unwrap_err();
            let says = refused.reason == word || refused.message.contains(word);
            assert!(refused.code.to_string() == code && says, "{claim}: {step}: {refused:?}");
        }
        "names" => {
            let mut words = rest.split(' ');
            let found = names(&server.snapshot(), words.next().unwrap());
            assert_eq!(found, words.collect::<Vec<_>>(), "{claim}: {step}");
        }
        "is" => {
            let words: Vec<&str> = rest.splitn(4, ' ').collect();
            let object = server.object(&reference(words[0], words[1]));
            let found = object.and_then(|object| object.pointer(words[2]).cloned()).unwrap_or_default();
            assert_eq!(found, serde_json::from_str::<Value>(words[3]).unwrap(), "{claim}: {step}");
        }
        _ => {
            server.act("user", &act(server, step)).unwrap_or_else(|why| panic!("{claim}: {step}: {why:?}"));
        }
    }
}

#[test]
fn controllers_do_what_each_case_says() {
    let cases = include_str!("controllers.txt").split("\n## ").skip(1);
    for case in cases {
        let server = server();
        let (claim, steps) = case.split_once('\n').unwrap();
        for step in steps.lines().filter(|step| !step.is_empty()) {
            take(&server, claim, step);
        }
    }
}

#[test]
fn a_deployment_rolls_out_in_steps_and_never_has_too_few_pods() {
    let server = server();
    apply(&server, deployment(4, "web:1"));
    settle(&server);
    let ready = |server: &ApiServer| {
        let pods = server.snapshot().objects.into_iter().filter(|(reference, _)| reference.kind == "Pod");
        pods.filter(|(_, pod)| {
            pod["status"]["phase"] == "Running" && pod["metadata"].get("deletionTimestamp").is_none()
        })
        .count()
    };
    assert_eq!(ready(&server), 4);
    apply(&server, deployment(4, "web:2"));
    let mut steps = 0;
    while server.controllers_step() {
        steps += 1;
        assert!(ready(&server) >= 4, "the new ones are there before the old ones go, at step {steps}");
        assert!(steps < 1_000, "the rollout ends");
    }
    assert!(steps > 10);
    let pods = server.snapshot().objects.into_iter().filter(|(reference, _)| reference.kind == "Pod");
    let images: Vec<Value> = pods.map(|(_, pod)| pod["spec"]["containers"][0]["image"].clone()).collect();
    assert_eq!(images, vec![json!("web:2"); 4]);
}

#[test]
fn what_is_deleted_in_the_foreground_goes_after_its_pods() {
    let server = server();
    apply(&server, deployment(2, "web:1"));
    settle(&server);
    delete(&server, "Deployment", "web", Cascade::Foreground);
    let target = reference("Deployment", "web");
    let mut steps = 0;
    while server.controllers_step() {
        steps += 1;
        let pods = names(&server.snapshot(), "Pod");
        assert!(pods.is_empty() || server.object(&target).is_some(), "at step {steps}");
        assert!(steps < 100, "it ends");
    }
    assert!(server.snapshot().objects.keys().all(|reference| reference.kind == "Namespace"));
}

#[test]
fn a_fork_gives_no_uid_out_again() {
    let server = server();
    let made = |server: &ApiServer, name| server.act("user", &Act::Create(owned(name, &[]))).unwrap();
    let first = made(&server, "a");
    for seed in [0, 1] {
        let second = made(&server.fork(Options { seed, ..Options::default() }), "b");
        assert_ne!(first["metadata"]["uid"], second["metadata"]["uid"], "seed {seed}");
    }
}
