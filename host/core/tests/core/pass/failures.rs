//! A guest that fails.

use pintle_wit::{ConditionStatus, Failure, GuestCondition, Response};
use serde_json::json;

use crate::pass::{
    api::{Fault, error},
    world::{World, absent, answer, config_map, deployment, no, yes},
};

fn shop() -> Response {
    let mut shop = answer(vec![config_map("page", "a"), deployment("web", &[])]);
    shop.conditions.push(GuestCondition::new("Progressing", ConditionStatus::False, "Done", "all there"));
    shop
}

#[test]
fn a_failing_guest_keeps_the_last_children_fields_and_conditions() {
    for (failure, stalled, reconciling) in [
        (Failure::terminal("InvalidSpec", "bad").at("spec.replicas"), yes("InvalidSpec"), absent()),
        (Failure::transient("DeadlineExceeded", "slow"), absent(), yes("DeadlineExceeded")),
    ] {
        let mut world = World::new();
        world.settle(&shop());
        let before = world.status().clone();
        world.binding.generation += 1;
        let run = world.pass_with(|_| Err(failure.clone()));
        assert_eq!(run.steps, ["call", "status", "emit"], "no apply and no delete");
        assert_eq!(run.done.wake.retry.is_some(), failure.retry);
        assert_eq!(run.done.error, Some(failure.reason.clone()));
        assert_eq!(world.says("Ready"), no(&failure.reason));
        assert_eq!((world.says("Stalled"), world.says("Reconciling")), (stalled, reconciling));
        assert_eq!(world.status()["phase"], "Up");
        assert_eq!(world.status()["pintle"], before["pintle"], "the last answer was the old one's");
        assert_eq!(world.says("Progressing"), no("Done"));
        assert!(world.live("ConfigMap", "page").is_some() && world.live("Deployment", "web").is_some());
        assert_eq!(
            (run.events.len(), &run.events[0].reason),
            (1, &failure.reason),
            "the guest's events are not told"
        );
        let again = world.pass_with(|_| Err(failure.clone()));
        assert_eq!(again.steps, ["call"], "said once");
        world.settle(&shop());
        assert_eq!(world.says("Ready"), yes("Succeeded"));
        assert_eq!(world.says("Stalled"), absent());
    }
}

#[test]
fn a_failing_guest_does_not_take_over_what_others_say_in_the_status() {
    let mut world = World::new();
    world.settle(&shop());
    let root = world.root.clone();
    world.api.edit(&root, "status.theirs", json!("x"));
    world.binding.generation += 1;
    world.pass_with(|_| Err(Failure::terminal("InvalidSpec", "bad")));
    let entry =
        pintle_core::managed::entry(&world.api.objects[&root], crate::pass::world::MANAGER, Some("status"))
            .unwrap();
    assert!(entry["f:status"].get("f:phase").is_some());
    assert_eq!(entry["f:status"].get("f:theirs"), None, "{entry}");
    assert_eq!(world.status()["theirs"], "x");
}

#[test]
fn a_transient_failure_says_nothing_about_the_generation_and_a_terminal_one_does() {
    for (failure, observed) in
        [(Failure::terminal("InvalidSpec", "bad"), 2), (Failure::transient("DeadlineExceeded", "slow"), 1)]
    {
        let mut world = World::new();
        world.settle(&shop());
        world.edit_root("metadata.generation", json!(2));
        world.pass_with(|_| Err(failure.clone()));
        assert_eq!(world.status()["observedGeneration"], observed, "{failure}");
    }
}

#[test]
fn a_trap_comes_with_the_command_that_makes_a_golden_case_of_its_root() {
    let mut world = World::new();
    world.pass_with(|_| Err(Failure::terminal("GuestTrapped", "it trapped")));
    world.tells("Ready", &["pintle record -n shops shop.example.com/shop > cases/shop.yaml"]);
}

#[test]
fn a_guest_that_fails_when_it_is_told_of_a_refusal_leaves_what_was_applied() {
    let mut world = World::new();
    world.api.fail("apply ConfigMap page", Fault::Refuse(error(422, "Invalid", "no")));
    let run = world.pass_with(|request| match request.refusals.len() {
        0 => Ok(shop()),
        _ => Err(Failure::terminal("InvalidSpec", "I cannot")),
    });
    assert_eq!(run.done.counts.guest_calls, 2);
    assert!(world.live("Deployment", "web").is_some());
    assert_eq!(world.says("Stalled"), yes("InvalidSpec"));
}

#[test]
fn a_kind_that_appears_ends_the_failure() {
    let mut world = World::new();
    let kinds = std::mem::take(&mut world.binding.kinds);
    let run = world.pass(&shop());
    assert_eq!(run.steps, ["call", "status", "emit"]);
    assert_eq!(world.says("Reconciling"), yes("KindMissing"));
    assert!(run.done.wake.retry.is_some());
    world.binding.kinds = kinds;
    world.settle(&shop());
    assert_eq!(world.says("Ready"), yes("Succeeded"));
}

#[test]
fn a_root_that_is_gone_when_its_status_is_written_is_nobodys_error() {
    for refusal in [error(404, "NotFound", "gone"), error(409, "Conflict", "uid mismatch")] {
        let mut world = World::new();
        world.api.fail("status Shop shop", Fault::Refuse(refusal));
        let run = world.pass(&shop());
        assert_eq!((run.done.wake.retry, run.done.error, run.events.len()), (None, None, 0));
    }
}

#[test]
fn a_guest_that_runs_into_a_limit_is_told_apart_from_one_that_fails() {
    for (reason, overran) in
        [("DeadlineExceeded", true), ("MemoryLimitExceeded", true), ("InvalidSpec", false)]
    {
        let mut world = World::new();
        let run = world.pass_with(|_| Err(Failure::transient(reason, "m")));
        assert_eq!((run.done.overran, run.done.wake.retry.is_some()), (overran, true), "{reason}");
    }
}
