//! Children: created, left alone, put right, pruned.

use serde_json::json;

use crate::pass::{
    api::{Fault, error},
    world::{World, answer, config_map, deployment, reference, secret, service, yes},
};

fn two() -> pintle_wit::Response {
    answer(vec![config_map("page", "a"), deployment("web", &[])])
}

#[test]
fn a_pass_that_wrote_is_followed_by_at_most_one_more_call_that_plans_nothing_and_then_by_silence() {
    let mut world = World::new();
    world.pass(&answer(vec![config_map("page", "a")]));
    assert_eq!(world.says("Ready"), yes("Succeeded"));
    let second = world.pass(&answer(vec![config_map("page", "a")]));
    assert_eq!(second.steps, ["call"], "the root's own status is new to the guest");
    for _ in 0..3 {
        let run = world.pass_with(|_| panic!("nothing changed"));
        assert!(run.steps.is_empty() && run.done.ready && run.done.wake.retry.is_none(), "{:?}", run.steps);
    }
}

#[test]
fn a_guest_that_does_not_observe_its_status_is_not_called_because_it_was_written() {
    let mut world = World::new();
    world.binding.manifest.observe_status = false;
    let run = world.pass(&answer(vec![config_map("page", "a")]));
    assert_eq!(run.steps, ["call", "create ConfigMap page", "status", "emit"]);
    for _ in 0..3 {
        let run = world.pass_with(|_| panic!("nothing changed that it sees"));
        assert!(run.steps.is_empty() && run.done.ready && run.done.wake.retry.is_none(), "{:?}", run.steps);
    }
    world.restart();
    let run = world.pass(&answer(vec![config_map("page", "a")]));
    assert_eq!(run.steps, ["call"]);
    assert!(run.requests[0].object.get("status").is_none(), "{}", run.requests[0].object);
}

#[test]
fn empty_lists_and_maps_and_nulls_in_a_child_are_no_drift() {
    let mut world = World::new();
    let mut map = config_map("page", "a");
    map["immutable"] = json!(null);
    map["binaryData"] = json!({});
    map["spec"] = json!({"rules": [], "tls": [], "nested": {"list": []}});
    world.settle(&answer(vec![map.clone()]));
    world.restart();
    assert_eq!(world.pass(&answer(vec![map])).steps, ["call"]);
}

#[test]
fn a_child_that_was_replaced_meanwhile_is_met_by_no_stale_uid() {
    let mut world = World::new();
    world.settle(&two());
    // The cache still shows the old object: what the apply meets is a successor of its name.
    world.api.edit(&reference("ConfigMap", "page"), "data.key", json!("foreign"));
    let gone = error(409, "Conflict", "uid mismatch: the object is absent");
    world.api.fail("apply ConfigMap page", Fault::Refuse(gone));
    let run = world.pass(&two());
    assert_eq!(
        run.steps[..4],
        ["call", "update ConfigMap page", "get ConfigMap page", "update ConfigMap page"]
    );
    assert_eq!(world.live("ConfigMap", "page").unwrap()["data"]["key"], "a");
}

#[test]
fn a_child_that_is_being_deleted_is_waited_for() {
    let mut world = World::new();
    world.settle(&two());
    world.api.edit(
        &reference("ConfigMap", "page"),
        "metadata.deletionTimestamp",
        json!("2000-01-01T00:00:00Z"),
    );
    let run = world.pass(&two());
    assert_eq!(run.steps, ["call", "status"]);
    assert_eq!(world.says("Reconciling"), yes("ChildHeld"));
    world.api.objects.remove(&reference("ConfigMap", "page"));
    world.settle(&two());
    assert_eq!(world.says("Ready"), yes("Succeeded"));
}

#[test]
fn an_object_that_is_no_longer_ours_is_not_pruned() {
    let mut world = World::new();
    world.settle(&two());
    world.binding.generation += 1;
    // The cache says that it is ours; the live object is an orphan.
    let orphan = {
        let mut live = world.live("ConfigMap", "page").unwrap().clone();
        live["metadata"]["ownerReferences"] = json!([]);
        live
    };
    let one = answer(vec![deployment("web", &[])]);
    let (page, there) = (reference("ConfigMap", "page"), orphan.clone());
    let run = world.pass_between(&one, move |api, step| {
        if step == "get ConfigMap page" {
            api.objects.insert(page.clone(), there.clone());
        }
    });
    assert_eq!(run.steps[..2], ["call", "get ConfigMap page"]);
    assert!(!run.steps.iter().any(|step| step.starts_with("delete")), "{:?}", run.steps);
    assert_eq!(world.live("ConfigMap", "page"), Some(&orphan));
}

#[test]
fn an_object_that_changed_between_read_and_delete_is_not_deleted() {
    let mut world = World::new();
    world.settle(&two());
    world.binding.generation += 1;
    let one = answer(vec![deployment("web", &[])]);
    let page = reference("ConfigMap", "page");
    let run = world.pass_between(&one, move |api, step| {
        if step.starts_with("delete ConfigMap page") {
            api.edit(&page, "metadata.ownerReferences", json!([]));
        }
    });
    assert!(run.steps.contains(&"delete ConfigMap page".into()));
    assert!(world.live("ConfigMap", "page").is_some(), "the version is a precondition");
    assert!(run.done.wake.retry.is_some() && !run.done.ready);
}

#[test]
fn config_maps_and_secrets_are_applied_before_what_may_refer_to_them() {
    let mut world = World::new();
    let all = answer(vec![deployment("web", &["keys"]), config_map("page", "a"), secret("keys", "s")]);
    let run = world.pass(&all);
    let position = |step: &str| run.steps.iter().position(|other| other == step).unwrap();
    assert!(position("create Secret keys") < position("create Deployment web"));
    assert!(position("create ConfigMap page") < position("create Deployment web"));
}

/// A ConfigMap and a Service, which is not observed.
fn front() -> pintle_wit::Response {
    answer(vec![config_map("page", "a"), service("front", 80)])
}

#[test]
fn a_status_that_a_childs_controller_writes_and_no_guest_sees_costs_no_guest_call() {
    let mut world = World::new();
    world.settle(&front());
    world.api.edit(&reference("Service", "front"), "status.loadBalancer", json!({"ingress": []}));
    let run = world.pass_with(|_| panic!("the guest does not observe Services"));
    assert!(run.steps.is_empty(), "{:?}", run.steps);
}

#[test]
fn a_pass_that_judged_a_childs_managed_fields_says_so_once() {
    let mut world = World::new();
    let mut judged = Vec::new();
    for _ in 0..3 {
        let run = world.pass(&front());
        judged.push(run.done.judged.iter().map(|verdict| verdict.reference.name.clone()).collect::<Vec<_>>());
    }
    assert_eq!(judged[0], ["page", "front"]);
    assert!(judged[2].is_empty(), "a pass that calls no guest judges nothing: {judged:?}");
}
