//! What the controllers of every cluster do, step by step.

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

fn reference(api_version: &str, kind: &str, name: &str) -> ObjectRef {
    let namespace = (kind != "Namespace").then(|| "default".into());
    ObjectRef { api_version: api_version.into(), kind: kind.into(), namespace, name: name.into() }
}

fn create(server: &ApiServer, object: Value) -> Value {
    server.act("user", &Act::Create(object)).unwrap()
}

fn config_map(name: &str, owners: &[&Value]) -> Value {
    let reference = |owner: &&Value| {
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
    let api_version = if kind == "Deployment" { "apps/v1" } else { "v1" };
    let target = reference(api_version, kind, name);
    server.act("user", &Act::Delete { target, cascade }).unwrap();
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

#[test]
fn what_is_owned_goes_with_its_last_owner() {
    let server = server();
    let one = create(&server, config_map("one", &[]));
    let two = create(&server, config_map("two", &[]));
    create(&server, config_map("of-one", &[&one]));
    create(&server, config_map("of-both", &[&one, &two]));
    settle(&server);
    delete(&server, "ConfigMap", "one", Cascade::Background);
    settle(&server);
    assert_eq!(names(&server.snapshot(), "ConfigMap"), ["of-both", "two"]);
    let left = server.object(&reference("v1", "ConfigMap", "of-both")).unwrap();
    assert_eq!(left["metadata"]["ownerReferences"].as_array().unwrap().len(), 1);
    delete(&server, "ConfigMap", "two", Cascade::Background);
    settle(&server);
    assert!(names(&server.snapshot(), "ConfigMap").is_empty());
}

#[test]
fn a_successor_of_the_same_name_is_no_owner() {
    let server = server();
    let owner = create(&server, config_map("owner", &[]));
    create(&server, config_map("owned", &[&owner]));
    delete(&server, "ConfigMap", "owner", Cascade::Background);
    create(&server, config_map("owner", &[]));
    settle(&server);
    assert_eq!(names(&server.snapshot(), "ConfigMap"), ["owner"]);
}

#[test]
fn orphans_stay_and_forget_their_owner() {
    let server = server();
    let owner = create(&server, config_map("owner", &[]));
    create(&server, config_map("owned", &[&owner]));
    delete(&server, "ConfigMap", "owner", Cascade::Orphan);
    settle(&server);
    assert_eq!(names(&server.snapshot(), "ConfigMap"), ["owned"]);
    let owned = server.object(&reference("v1", "ConfigMap", "owned")).unwrap();
    assert!(owned["metadata"].get("ownerReferences").is_none());
}

#[test]
fn nobody_takes_an_owner_of_a_kind_that_is_not_served_for_gone() {
    let server = server();
    let llama = json!({"apiVersion": "farm.example.com/v1", "kind": "Llama", "metadata": {"name": "dolly", "uid": "u"}});
    create(&server, config_map("owned", &[&llama]));
    settle(&server);
    assert_eq!(names(&server.snapshot(), "ConfigMap"), ["owned"]);
}

#[test]
fn an_explicit_policy_replaces_the_finalizer_of_another_and_none_leaves_it() {
    let server = server();
    let mut held = config_map("held", &[]);
    held["metadata"]["finalizers"] = json!(["a.b/c", "orphan"]);
    create(&server, held);
    let finalizers = || {
        let held = server.object(&reference("v1", "ConfigMap", "held"));
        held.map(|held| held["metadata"]["finalizers"].clone())
    };
    delete(&server, "ConfigMap", "held", Cascade::Foreground);
    assert_eq!(finalizers(), Some(json!(["a.b/c", "foregroundDeletion"])));
    delete(&server, "ConfigMap", "held", Cascade::Background);
    assert_eq!(finalizers(), Some(json!(["a.b/c"])));
}

#[test]
fn a_namespace_goes_with_all_that_is_in_it_and_takes_nothing_new_meanwhile() {
    let server = server();
    create(&server, config_map("a", &[]));
    delete(&server, "Namespace", "default", Cascade::Background);
    let refused = server.act("user", &Act::Create(config_map("b", &[]))).unwrap_err();
    assert_eq!((refused.code, refused.reason.as_str()), (403, "Forbidden"));
    settle(&server);
    let snapshot = server.snapshot();
    assert!(names(&snapshot, "ConfigMap").is_empty());
    assert!(!names(&snapshot, "Namespace").contains(&"default".to_owned()));
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
    let target = reference("apps/v1", "Deployment", "web");
    let rolled_out = server.object(&target).unwrap();
    assert_eq!(rolled_out["status"]["availableReplicas"], 4);
    assert_eq!(rolled_out["status"]["observedGeneration"], rolled_out["metadata"]["generation"]);
    apply(&server, deployment(4, "web:2"));
    let mut steps = 0;
    while server.controllers_step() {
        steps += 1;
        assert!(ready(&server) >= 3, "25% of four may be unavailable, at step {steps}");
        assert!(steps < 1_000, "the rollout ends");
    }
    assert!(steps > 10);
    let pods: Vec<Value> = server
        .snapshot()
        .objects
        .into_iter()
        .filter(|(reference, _)| reference.kind == "Pod")
        .map(|(_, pod)| pod["spec"]["containers"][0]["image"].clone())
        .collect();
    assert_eq!(pods, vec![json!("web:2"); 4]);
}

#[test]
fn a_deleted_deployment_takes_its_pods_along() {
    let server = server();
    apply(&server, deployment(2, "web:1"));
    settle(&server);
    delete(&server, "Deployment", "web", Cascade::Background);
    settle(&server);
    let snapshot = server.snapshot();
    assert!(names(&snapshot, "Pod").is_empty() && names(&snapshot, "ReplicaSet").is_empty());
}

#[test]
fn a_deleted_pod_is_replaced() {
    let server = server();
    apply(&server, deployment(1, "web:1"));
    settle(&server);
    let before = names(&server.snapshot(), "Pod");
    delete(&server, "Pod", &before[0], Cascade::Background);
    settle(&server);
    let after = names(&server.snapshot(), "Pod");
    assert_eq!(after.len(), 1);
    assert_ne!(before, after);
}

#[test]
fn the_same_seed_gives_the_same_cluster() {
    let run = || {
        let server = server();
        apply(&server, deployment(2, "web:1"));
        settle(&server);
        apply(&server, deployment(3, "web:2"));
        settle(&server);
        server.snapshot()
    };
    assert_eq!(run(), run());
}

#[test]
fn a_kind_goes_with_its_objects() {
    let server = server();
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    create(&server, crd.clone());
    create(
        &server,
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "namespace": "default"}}),
    );
    let target = ObjectRef {
        api_version: "apiextensions.k8s.io/v1".into(),
        kind: "CustomResourceDefinition".into(),
        namespace: None,
        name: "widgets.example.com".into(),
    };
    server.act("user", &Act::Delete { target: target.clone(), cascade: Cascade::Background }).unwrap();
    assert!(server.object(&target).is_some(), "it waits for its objects");
    settle(&server);
    let snapshot = server.snapshot();
    assert!(names(&snapshot, "Widget").is_empty() && server.object(&target).is_none());
    create(&server, crd);
    assert!(names(&server.snapshot(), "Widget").is_empty());
}

#[test]
fn what_is_deleted_in_the_foreground_goes_after_its_pods() {
    let server = server();
    apply(&server, deployment(2, "web:1"));
    settle(&server);
    delete(&server, "Deployment", "web", Cascade::Foreground);
    let target = reference("apps/v1", "Deployment", "web");
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
    let first = create(&server, config_map("a", &[]));
    for seed in [0, 1] {
        let fork = server.fork(Options { seed, ..Options::default() });
        let second = create(&fork, config_map("b", &[]));
        assert_ne!(first["metadata"]["uid"], second["metadata"]["uid"], "seed {seed}");
    }
}

#[test]
fn a_rollout_is_no_new_generation() {
    let server = server();
    apply(&server, deployment(1, "web:1"));
    settle(&server);
    let deployment = server.object(&reference("apps/v1", "Deployment", "web")).unwrap();
    assert_eq!(deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "1");
    assert_eq!(deployment["metadata"]["generation"], 1);
}

#[test]
fn what_one_controller_may_not_do_keeps_no_other_from_its_work() {
    let server = server();
    // Templates are not looked at for this, Pods are: none can be made of it.
    let mut broken = deployment(1, "web:1");
    broken["spec"]["template"]["metadata"]["annotations"] = json!({"bad key!": "x"});
    broken["metadata"]["name"] = "a-broken".into();
    apply(&server, broken);
    apply(&server, deployment(1, "web:1"));
    settle(&server);
    assert!(names(&server.snapshot(), "Pod").iter().any(|pod| pod.starts_with("web-")));
}

#[test]
fn a_budget_counts_what_is_ready_and_an_eviction_takes_of_what_it_allows() {
    let server = server();
    apply(&server, deployment(3, "web:1"));
    let spec = json!({"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}});
    create(
        &server,
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web", "namespace": "default"}, "spec": spec}),
    );
    settle(&server);
    let budget = || server.object(&reference("policy/v1", "PodDisruptionBudget", "web")).unwrap();
    let status = |field: &str| budget()["status"][field].as_i64().unwrap();
    assert_eq!((status("expectedPods"), status("currentHealthy"), status("disruptionsAllowed")), (3, 3, 1));
    let pods = names(&server.snapshot(), "Pod");
    let evict = |name: &str| {
        let target = reference("v1", "Pod", name);
        server.act("somebody", &Act::Evict { target })
    };
    evict(&pods[0]).unwrap();
    let refused = evict(&pods[1]).unwrap_err();
    assert_eq!((refused.code, refused.reason.as_str()), (429, "TooManyRequests"));
    assert!(refused.causes[0].message.contains("needs 2 healthy pods"), "{refused:?}");
    // The next one may go when what went is replaced.
    settle(&server);
    assert_eq!((status("currentHealthy"), status("disruptionsAllowed")), (3, 1));
    evict(&pods[1]).unwrap();
    settle(&server);
    assert_eq!(names(&server.snapshot(), "Pod").len(), 3);
}

#[test]
fn a_share_of_pods_is_one_of_those_that_are_wanted() {
    let server = server();
    apply(&server, deployment(4, "web:1"));
    let spec = json!({"maxUnavailable": "30%", "selector": {}});
    create(
        &server,
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web", "namespace": "default"}, "spec": spec}),
    );
    settle(&server);
    let budget = server.object(&reference("policy/v1", "PodDisruptionBudget", "web")).unwrap();
    // A part of a Pod counts as one that may go.
    assert_eq!(
        (&budget["status"]["desiredHealthy"], &budget["status"]["disruptionsAllowed"]),
        (&json!(2), &json!(2))
    );
}

#[test]
fn what_a_patch_tests_for_null_need_not_be_there() {
    let server = server();
    create(&server, config_map("a", &[]));
    let target = reference("v1", "ConfigMap", "a");
    let patch = |patch: Value| {
        server.act("somebody", &Act::JsonPatch { target: target.clone(), subresource: None, patch })
    };
    patch(json!([
        {"op": "test", "path": "/metadata/finalizers", "value": null},
        {"op": "add", "path": "/metadata/finalizers", "value": ["example.com/hold"]},
    ]))
    .unwrap();
    let again = patch(json!([{"op": "test", "path": "/metadata/finalizers", "value": null}]));
    assert_eq!(again.unwrap_err().code, 422);
}

#[test]
fn what_an_api_server_has_and_this_one_does_not_is_said_by_its_name() {
    let server = server();
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default"}});
    let webhook = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "w"}});
    let unknown = json!({"apiVersion": "example.com/v1", "kind": "Nothing", "metadata": {"name": "n"}});
    for (object, code, name) in
        [(quota, 501, "ResourceQuota"), (webhook, 501, "ValidatingWebhookConfiguration"), (unknown, 404, "")]
    {
        let refused = server.act("somebody", &Act::Create(object)).unwrap_err();
        assert_eq!(refused.code, code);
        assert!(refused.message.contains(name), "{}", refused.message);
    }
    let strict = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "labels": {"pod-security.kubernetes.io/enforce": "baseline"}}});
    assert_eq!(server.act("somebody", &Act::Create(strict)).unwrap_err().code, 501);
}
