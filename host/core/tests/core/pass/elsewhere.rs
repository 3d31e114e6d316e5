//! Children in other namespaces than their root, and children of roots of cluster scope.

use pintle_core::{Duty, KindInfo, object};
use pintle_wit::{ChildKind, Kind, Response};
use serde_json::{Value, json};

use crate::pass::{
    api::{Fault, error},
    world::{World, answer, config_map, elsewhere, no, secret, yes},
};

const INVENTORY: &str = "pintle.dev/inventory";

/// A root that may have children in the namespace `stock`.
fn reaching() -> World {
    let mut world = World::new();
    for grant in &mut world.binding.grants.children {
        grant.namespaces = vec!["stock".into()];
    }
    world
}

fn there(mut child: Value) -> Value {
    child["metadata"]["namespace"] = "stock".into();
    child
}

fn shelf() -> Response {
    answer(vec![there(config_map("shelf", "a"))])
}

fn delete(world: &mut World) {
    crate::pass::deletion::delete(world);
}

fn finalizers(world: &World) -> Value {
    world.api.objects[&world.root]["metadata"].get("finalizers").cloned().unwrap_or_default()
}

#[test]
fn finalizer_and_inventory_stand_before_the_first_child_elsewhere() {
    let mut world = reaching();
    let run = world.pass(&shelf());
    let steps = ["call", "read Shop shop", "finalizers", "status", "create ConfigMap shelf"];
    assert_eq!(run.steps[..5], steps, "{:?}", run.steps);
    let entry = json!([{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "stock", "name": "shelf"}]);
    assert_eq!(run.statuses[0]["pintle"]["inventory"], entry);
    assert_eq!(finalizers(&world), json!([INVENTORY]));
    let live = &world.api.objects[&elsewhere("ConfigMap", "shelf")];
    assert!(live["metadata"].get("ownerReferences").is_none(), "the garbage collector would delete it");
    assert_eq!(live["metadata"]["labels"]["pintle.dev/root"], "shop-uid");
    let rest = world.settle(&shelf());
    assert!(rest.steps.is_empty() && world.says("Ready") == yes("Succeeded"));
    world.restart();
    let run = world.pass(&shelf());
    assert_eq!(run.steps, ["call"], "a host that starts has nothing to do");
}

#[test]
fn a_namespace_that_no_grant_names_is_refused_with_its_path() {
    let mut world = World::new();
    world.pass(&shelf());
    assert_eq!(world.says("Ready"), no("NamespaceForbidden"));
    world.tells("Ready", &["children[0].object.metadata.namespace", "grants.children[].namespaces"]);
}

#[test]
fn a_child_elsewhere_is_repaired_and_pruned() {
    let mut world = reaching();
    world.settle(&shelf());
    let shelf_there = elsewhere("ConfigMap", "shelf");
    world.api.edit(&shelf_there, "data.key", json!("theirs"));
    world.settle(&shelf());
    assert_eq!(world.api.objects[&shelf_there]["data"]["key"], "a");
    world.binding.digest = "sha256:two".into();
    world.settle(&answer(vec![]));
    assert!(!world.api.objects.contains_key(&shelf_there));
    assert_eq!(world.status()["pintle"].get("inventory"), None);
    assert_eq!(finalizers(&world), Value::Null, "nothing is left to wait for");
}

#[test]
fn what_carries_no_label_of_ours_is_neither_adopted_nor_deleted() {
    for strip in ["label", "entry"] {
        let mut world = reaching();
        world.settle(&shelf());
        let shelf_there = elsewhere("ConfigMap", "shelf");
        match strip {
            "label" => world.api.edit(&shelf_there, "metadata.labels", json!({})),
            // Somebody set the same label: the field is no longer ours alone to point at.
            _ => world.api.edit(&shelf_there, "metadata.labels", json!({"pintle.dev/root": "shop-uid"})),
        }
        world.pass(&shelf());
        assert_eq!(world.says("Ready"), no("AdoptionConflict"), "{strip}");
        world.pass(&answer(vec![]));
        delete(&mut world);
        world.pass(&answer(vec![]));
        assert!(world.api.objects.contains_key(&shelf_there), "{strip}");
        assert!(!world.api.objects.contains_key(&world.root), "{strip}");
    }
}

#[test]
fn a_forged_inventory_deletes_nothing() {
    let mut world = reaching();
    world.settle(&shelf());
    let precious = world.api.create(json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "precious", "namespace": "stock", "labels": {"pintle.dev/root": "shop-uid"}}}));
    let root = world.root.clone();
    let forged = json!([
        {"apiVersion": "v1", "kind": "Secret", "namespace": "stock", "name": "precious"},
        {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "stock", "name": "shelf"},
    ]);
    world.api.edit(&root, "status.pintle.inventory", forged);
    world.restart();
    world.settle(&shelf());
    assert_eq!(world.status()["pintle"]["inventory"].as_array().map(Vec::len), Some(1), "it is mended");
    delete(&mut world);
    while world.api.objects.contains_key(&root) {
        world.pass_with(|_| panic!("no guest is needed"));
    }
    assert!(world.api.objects.contains_key(&precious));
    assert!(!world.api.objects.contains_key(&elsewhere("ConfigMap", "shelf")));
}

#[test]
fn a_deleted_root_takes_its_children_elsewhere_along_without_a_module() {
    let mut world = reaching();
    world.settle(&answer(vec![
        there(config_map("shelf", "a")),
        there(secret("keys", "a")),
        config_map("page", "a"),
    ]));
    world.binding.duty = Duty::CleanUp;
    world.restart();
    delete(&mut world);
    let run = world.pass_with(|_| panic!("there is no guest"));
    assert!(run.done.wake.retry.is_some(), "until they are seen to be gone");
    assert!(world.api.objects.contains_key(&world.root));
    world.pass_with(|_| panic!("there is no guest"));
    assert!(!world.api.objects.contains_key(&world.root));
    for gone in [elsewhere("ConfigMap", "shelf"), elsewhere("Secret", "keys")] {
        assert!(!world.api.objects.contains_key(&gone), "{gone}");
    }
    assert!(world.live("ConfigMap", "page").is_some(), "that one is the garbage collector's");
}

#[test]
fn a_child_that_may_not_be_deleted_holds_the_root_and_says_so_until_it_is_released() {
    let mut world = reaching();
    world.settle(&shelf());
    delete(&mut world);
    let forbidden = || Fault::Refuse(error(403, "Forbidden", "cannot delete configmaps in stock"));
    world.api.fail("delete ConfigMap shelf", forbidden());
    let run = world.pass(&shelf());
    assert!(run.done.wake.retry.is_some());
    assert_eq!(world.says("Ready"), no("Forbidden"));
    let root = world.api.objects.get_mut(&world.root).unwrap();
    root["metadata"]["annotations"]["pintle.dev/release"] = json!("true");
    world.api.fail("delete ConfigMap shelf", forbidden());
    let run = world.pass(&shelf());
    assert!(!world.api.objects.contains_key(&world.root), "{:?}", run.steps);
    assert_eq!(run.events.len(), 1);
    assert!(run.events[0].message.contains("shelf"), "who releases is told what stays: {:?}", run.events);
}

#[test]
fn two_roots_that_name_one_child_elsewhere_do_not_share_it() {
    let mut world = reaching();
    world.settle(&shelf());
    world.root = world.add_root("second");
    world.restart();
    world.pass(&shelf());
    assert_eq!(world.says("Ready"), no("AdoptionConflict"));
    delete(&mut world);
    world.pass(&shelf());
    assert!(!world.api.objects.contains_key(&world.root), "nothing of its own is there");
    assert!(world.api.objects.contains_key(&elsewhere("ConfigMap", "shelf")));
}

#[test]
fn a_pod_refers_to_its_own_namespace_and_a_field_of_the_root_reaches_no_further() {
    use pintle_core::reconciler::ReferenceGrant;
    let mut world = reaching();
    // A sibling of that name at home is no sibling there.
    let pods = |secret: &str| there(crate::pass::world::deployment("web", &[secret]));
    world.pass(&answer(vec![secret("keys", "a"), pods("keys")]));
    assert_eq!(world.says("Ready"), no("ReferenceNotGranted"));
    world.edit_root("spec.secret", json!("precious"));
    let from_root = Some("spec.secret".into());
    let grant = ReferenceGrant { kind: "Secret".into(), from_root, ..ReferenceGrant::default() };
    world.binding.grants.pod_templates.references.push(grant);
    world.pass(&answer(vec![pods("precious")]));
    assert_eq!(world.says("Ready"), no("ReferenceNotGranted"));
    world.pass(&answer(vec![there(secret("keys", "a")), pods("keys")]));
    assert!(world.api.objects.contains_key(&elsewhere("Deployment", "web")), "{}", world.status());
}

#[test]
fn a_root_of_cluster_scope_owns_its_children_everywhere() {
    let mut world = reaching();
    let planet = Kind::new("example.com/v1", "Planet");
    world.binding.manifest.children.push(ChildKind::new("example.com/v1", "Planet"));
    world.binding.grants = pintle_core::reconciler::Grants::as_declared(&world.binding.manifest);
    for grant in &mut world.binding.grants.children {
        grant.namespaces = vec!["stock".into()];
    }
    world.binding.kinds.insert(planet, KindInfo { namespaced: false });
    world.root = world.api.create(json!({
        "apiVersion": "example.com/v1", "kind": "Shop",
        "metadata": {"name": "chain", "uid": "chain-uid", "generation": 1}, "spec": {},
    }));
    let globe = json!({"apiVersion": "example.com/v1", "kind": "Planet", "metadata": {"name": "globe"}});
    let children = answer(vec![there(config_map("shelf", "a")), there(secret("keys", "a")), globe]);
    let run = world.settle(&children);
    assert!(run.steps.is_empty(), "{:?}", world.status());
    assert_eq!(world.says("Ready"), yes("Succeeded"));
    assert_eq!(finalizers(&world), Value::Null, "the garbage collector knows the owner");
    let owner =
        |live: &Value| object::text(&live["metadata"]["ownerReferences"][0], &["uid"]).map(ToOwned::to_owned);
    assert_eq!(owner(&world.api.objects[&elsewhere("ConfigMap", "shelf")]).as_deref(), Some("chain-uid"));
    // Of a kind that is not watched, so that a host that starts must know where to look.
    assert_eq!(world.status()["pintle"]["inventory"].as_array().map(Vec::len), Some(1));
    world.restart();
    assert_eq!(world.pass(&children).steps, ["call", "get Secret keys"]);
    // Its namespace cannot be guessed.
    world.binding.digest = "sha256:two".into();
    world.pass(&answer(vec![config_map("shelf", "a")]));
    assert_eq!(world.says("Ready"), no("NamespaceForbidden"));
}
