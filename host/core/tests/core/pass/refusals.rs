//! What the API server refuses, and how the guest is told.

use std::time::Duration;

use pintle_core::ApiError;
use pintle_wit::Response;
use serde_json::json;

use crate::pass::{
    api::{Fault, error, port_taken},
    world::{World, absent, answer, config_map, no, reference, service, yes},
};

fn shop(port: u32) -> Response {
    answer(vec![config_map("page", "a"), service("web", port)])
}

fn invalid() -> ApiError {
    error(422, "Invalid", "spec.selector: field is immutable")
}

fn count(steps: &[String], step: &str) -> usize {
    steps.iter().filter(|other| *other == step).count()
}

#[test]
fn a_refusal_leads_to_a_second_call_in_the_same_pass_and_the_form_is_not_sent_twice() {
    let mut world = World::new();
    world.api.fail("apply Service web", Fault::Refuse(port_taken()));
    let run = world.pass(&shop(30010));
    assert_eq!(
        run.steps,
        ["call", "create ConfigMap page", "create Service web", "call", "status", "emit"],
        "the second call stands before the status"
    );
    assert!(run.requests[0].refusals.is_empty());
    let refusal = run.requests[1].refusal("Service", "web").expect("told");
    assert_eq!((refusal.code, refusal.reason.as_str()), (422, "Invalid"));
    assert_eq!(refusal.causes[0].field, "spec.ports[0].nodePort");
    assert!(refusal.causes[0].message.contains("already allocated"));
    assert!(run.done.wake.retry.is_some() && !run.done.ready, "nothing wakes anyone when the port is freed");
    assert_eq!((world.says("Ready"), world.says("Stalled")), (no("Invalid"), absent()));
    assert!(world.live("ConfigMap", "page").is_some(), "the others of the answer are applied");
}

#[test]
fn a_standing_refusal_is_tried_again_in_the_next_pass_and_cleared_when_accepted() {
    let mut world = World::new();
    world.api.fail("apply Service web", Fault::Refuse(port_taken()));
    world.api.fail("apply Service web", Fault::Refuse(port_taken()));
    world.pass(&shop(30010));
    let second = world.pass(&shop(30010));
    assert_eq!(
        second.steps,
        ["call", "create Service web"],
        "the same refusal: no second call, no write, no event"
    );
    assert_eq!(second.requests[0].refusals.len(), 1);
    assert!(second.done.wake.retry.is_some());
    let third = world.pass(&shop(30010));
    assert_eq!(third.steps[..3], ["call", "create Service web", "call"]);
    assert_eq!(third.requests[0].refusals.len(), 1);
    assert!(third.requests[1].refusals.is_empty(), "called again with none");
    assert!(third.done.ready && third.done.wake.retry.is_none());
    assert_eq!(world.says("Ready"), yes("Succeeded"));
    world.settle(&shop(30010));
}

#[test]
fn a_guest_that_works_around_a_refusal_gets_its_way_in_the_same_pass() {
    let mut world = World::new();
    world.api.fail("apply Service web", Fault::Refuse(port_taken()));
    let run = world.pass_with(|request| Ok(shop(if request.refusals.is_empty() { 30010 } else { 30011 })));
    assert!(run.done.ready && run.done.wake.retry.is_none(), "{:?}", run.steps);
    assert_eq!(run.done.counts.guest_calls, 2);
    assert_eq!(world.live("Service", "web").unwrap()["spec"]["ports"][0]["nodePort"], 30011);
    let next = world.pass_with(|request| {
        assert_eq!(request.refusals.len(), 1, "it stays until that very form is accepted");
        Ok(shop(30011))
    });
    assert_eq!(next.steps, ["call"]);
    assert!(world.pass_with(|_| panic!("settled")).steps.is_empty());
}

#[test]
fn refusals_that_never_settle_are_a_failure_after_three_calls_and_are_not_retried() {
    let mut world = World::new();
    let mut port = 30000;
    for _ in 0..3 {
        world.api.fail("apply Service web", Fault::Refuse(port_taken()));
    }
    let run = world.pass_with(|_| {
        port += 1;
        Ok(shop(port))
    });
    assert_eq!(run.done.counts.guest_calls, 3);
    assert_eq!(
        (world.says("Ready"), world.says("Stalled")),
        (no("RefusalsUnstable"), yes("RefusalsUnstable"))
    );
    assert_eq!(run.done.error.as_deref(), Some("RefusalsUnstable"));
    assert_eq!(run.done.wake.retry, None, "only a change can help");
}

#[test]
fn the_condition_names_the_unwanted_child_that_may_hold_what_a_new_one_needs() {
    let quota =
        error(403, "Forbidden", "services \"new\" is forbidden: exceeded quota: q, requested: services=1");
    let right = error(403, "Forbidden", "User \"u\" cannot create resource \"services\"");
    for (refusal, is_named) in [(port_taken(), true), (quota, true), (right, false)] {
        let mut world = World::new();
        world.settle(&answer(vec![config_map("page", "a"), service("old", 30010)]));
        world.binding.generation += 1;
        world.api.fail("apply Service new", Fault::Refuse(refusal));
        let run = world.pass(&answer(vec![service("new", 30010)]));
        assert!(world.live("Service", "old").is_some(), "prune waits: {:?}", run.steps);
        let message = world.message("Ready");
        assert_eq!(
            message.contains("to delete it now: kubectl delete -n shops service old"),
            is_named,
            "{message}"
        );
        assert!(!message.contains("page"), "a ConfigMap holds no port: {message}");
    }
}

#[test]
fn a_terminal_refusal_stalls_and_the_form_is_not_sent_again() {
    let mut world = World::new();
    world.api.fail("apply Service web", Fault::Refuse(invalid()));
    let run = world.pass(&shop(30010));
    assert_eq!((world.says("Ready"), world.says("Stalled")), (no("Invalid"), yes("Invalid")));
    assert_eq!(run.done.wake.retry, None);
    world.tells("Stalled", &["Service shops/web", "immutable"]);
    for _ in 0..2 {
        let run = world.pass(&shop(30010));
        assert_eq!(run.steps, ["call"]);
        assert_eq!(run.requests[0].refusals.len(), 1);
    }
    let other = world.pass(&shop(30011));
    assert_eq!(count(&other.steps, "create Service web"), 1, "another form is another question");
    assert!(other.done.ready);
}

#[test]
fn what_was_refused_for_good_is_sent_again_when_the_object_that_it_met_is_gone_or_changed() {
    for remedy in ["delete", "edit"] {
        let mut world = World::new();
        world.settle(&shop(30010));
        let service = reference("Service", "web");
        world.api.edit(&service, "spec.ports", json!([{"name": "foreign"}]));
        world.api.fail("apply Service web", Fault::Refuse(invalid()));
        assert!(!world.pass(&shop(30010)).done.ready);
        assert_eq!(world.pass(&shop(30010)).steps, ["call"], "nothing changed, so it is not sent again");
        if remedy == "delete" {
            world.api.objects.remove(&service);
        } else {
            world.api.edit(&service, "metadata.annotations.mended", json!("yes"));
        }
        assert!(world.pass(&shop(30010)).done.ready, "{remedy}");
        assert_eq!(world.says("Stalled"), absent(), "{remedy}");
    }
}

#[test]
fn the_longest_time_that_the_api_server_asked_for_reaches_the_caller() {
    let mut world = World::new();
    let wait = |seconds| ApiError {
        retry_after: Some(Duration::from_secs(seconds)),
        ..error(429, "TooManyRequests", "m")
    };
    world.api.fail("apply ConfigMap page", Fault::Refuse(error(500, "InternalError", "later")));
    world.api.fail("apply Service web", Fault::Refuse(wait(7)));
    world.api.fail("status Shop shop", Fault::Refuse(wait(3)));
    let run = world.pass(&shop(30010));
    assert_eq!(run.done.wake.retry, Some(Duration::from_secs(7)));
    assert_eq!(run.done.error.as_deref(), Some("InternalError"), "the first error is the one that is told");
}

#[test]
fn nothing_that_was_met_under_one_reconciler_or_config_holds_for_the_next() {
    type Change = fn(&mut World);
    let changes: [Change; 5] = [
        |world| world.edit_root("metadata.generation", 2.into()),
        |world| world.binding.uid = "made again in the same generation".into(),
        |world| world.binding.generation += 1,
        |world| world.binding.config = json!({"size": 2}).into(),
        |world| world.binding.digest = "sha256:other".into(),
    ];
    for change in changes {
        let mut world = World::new();
        world.api.fail("apply Service web", Fault::Refuse(invalid()));
        world.pass(&shop(30010));
        assert_eq!(world.says("Stalled"), yes("Invalid"));
        let same = world.pass(&shop(30010));
        assert_eq!(count(&same.steps, "create Service web"), 0, "it stands: {:?}", same.steps);
        change(&mut world);
        let run = world.pass(&shop(30010));
        assert!(run.requests[0].refusals.is_empty());
        assert_eq!(count(&run.steps, "create Service web"), 1, "{:?}", run.steps);
        assert!(run.done.ready);
    }
    let mut world = World::new();
    world.settle(&shop(30010));
    world.binding.uid = "made again in the same generation".into();
    let run = world.pass(&shop(30010));
    assert_eq!(
        count(&run.steps, "call"),
        1,
        "the guest is asked, and its answer judged, anew: {:?}",
        run.steps
    );
}
