//! What a root costs that did not change: nothing.

use pintle_wit::Response;
use serde_json::json;

use crate::pass::world::{World, answer, config_map, reference, service};

fn shop() -> Response {
    answer(vec![config_map("page", "a"), service("front", 80)])
}

fn settled() -> World {
    let mut world = World::new();
    world.settle(&shop());
    world
}

#[test]
fn a_resync_costs_neither_a_guest_call_nor_an_api_call() {
    let mut world = settled();
    for _ in 0..3 {
        let run = world.pass_with(|_| panic!("nothing changed"));
        assert!(run.steps.is_empty(), "{:?}", run.steps);
    }
}

#[test]
fn a_status_that_a_childs_controller_writes_and_no_guest_sees_costs_no_guest_call() {
    let mut world = settled();
    world.api.edit(&reference("Service", "front"), "status.loadBalancer", json!({"ingress": []}));
    let run = world.pass_with(|_| panic!("the guest does not observe Services"));
    assert!(run.steps.is_empty(), "{:?}", run.steps);
}

#[test]
fn a_host_field_of_the_roots_status_that_somebody_changes_costs_no_guest_call() {
    let mut world = settled();
    let root = world.root.clone();
    world.api.edit(&root, "status.observedGeneration", json!(0));
    let run = world.pass_with(|_| panic!("no guest sees it"));
    assert_eq!(run.steps, ["status"], "it is put right");
}

#[test]
fn a_pass_that_judged_a_childs_managed_fields_says_so_once() {
    let mut world = World::new();
    let mut judged = Vec::new();
    for _ in 0..3 {
        let run = world.pass(&shop());
        judged.push(run.done.judged.iter().map(|verdict| verdict.reference.name.clone()).collect::<Vec<_>>());
    }
    assert_eq!(judged[0], ["page", "front"]);
    assert!(judged[2].is_empty(), "a pass that calls no guest judges nothing: {judged:?}");
}
