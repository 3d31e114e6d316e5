//! Roots of cluster scope, whose children are in the namespaces that the grants name.

use pintle_core::KindInfo;
use pintle_wit::{ChildKind, Kind};
use serde_json::{Value, json};

use crate::pass::world::{World, answer, config_map, deployment, elsewhere, no, secret};

/// Grants children in the namespaces `stock` and `shops`.
fn grant_namespaces(world: &mut World) {
    for grant in &mut world.binding.grants.children {
        grant.namespaces = vec!["stock".into(), "shops".into()];
    }
}

/// A root of cluster scope.
fn chain() -> World {
    let mut world = World::new();
    world.binding.manifest.children.push(ChildKind::new("example.com/v1", "Planet"));
    world.binding.grants = pintle_core::reconciler::Grants::as_declared(&world.binding.manifest);
    grant_namespaces(&mut world);
    world.binding.kinds.insert(Kind::new("example.com/v1", "Planet"), KindInfo { namespaced: false });
    world.root = world.api.create(json!({
        "apiVersion": "example.com/v1", "kind": "Shop",
        "metadata": {"name": "chain", "uid": "chain-uid", "generation": 1}, "spec": {},
    }));
    world
}

fn placed(mut child: Value, namespace: &str) -> Value {
    child["metadata"]["namespace"] = namespace.into();
    child
}

#[test]
fn a_grant_of_a_namespace_is_for_roots_of_cluster_scope_alone() {
    let mut world = World::new();
    grant_namespaces(&mut world);
    world.pass(&answer(vec![placed(config_map("shelf", "a"), "stock")]));
    assert_eq!(world.says("Ready"), no("NamespaceForbidden"));
    world.tells("Ready", &["children[0].object.metadata.namespace", "stock"]);
    let mut world = chain();
    world.pass(&answer(vec![placed(config_map("shelf", "a"), "kube-system")]));
    assert_eq!(world.says("Ready"), no("NamespaceForbidden"));
    world.tells("Ready", &["kube-system", "grants.children[].namespaces"]);
}

#[test]
fn a_pod_refers_to_its_own_namespace() {
    let mut world = chain();
    let pods = placed(deployment("web", &["keys"]), "stock");
    world.pass(&answer(vec![placed(secret("keys", "a"), "shops"), pods.clone()]));
    assert_eq!(world.says("Ready"), no("ReferenceNotGranted"));
    world.pass(&answer(vec![placed(secret("keys", "a"), "stock"), pods]));
    assert!(world.api.objects.contains_key(&elsewhere("Deployment", "web")), "{}", world.status());
}

#[test]
fn an_entry_whose_namespace_can_be_no_name_is_passed_over() {
    let mut world = chain();
    world.settle(&answer(vec![]));
    let forged =
        json!([{"apiVersion": "v1", "kind": "Secret", "namespace": "../kube-system", "name": "keys"}]);
    world.edit_root("status.pintle.unwatched", forged);
    world.restart();
    let run = world.pass(&answer(vec![]));
    assert!(!run.steps.iter().any(|step| step.starts_with("get")), "{:?}", run.steps);
    assert_eq!(run.done.hits.records, 1);
}
