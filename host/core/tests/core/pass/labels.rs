//! A policy that takes our labels away: the child is refused, and nothing is lost.

use pintle_wit::Response;
use serde_json::json;

use crate::pass::world::{World, answer, config_map, no, reference, service, yes};

fn shop() -> Response {
    answer(vec![config_map("page", "a"), service("web", 30010)])
}

fn stripped() -> World {
    let mut world = World::new();
    world.api.strips_labels = true;
    world
}

#[test]
fn a_child_without_our_labels_is_refused_with_what_to_do() {
    let mut world = stripped();
    let run = world.pass(&shop());
    let expected = ["call", "create ConfigMap page", "create Service web", "call", "status", "emit"];
    assert_eq!(run.steps, expected);
    let refusal = run.requests[1].refusal("ConfigMap", "page").expect("told");
    assert_eq!((refusal.code, refusal.reason.as_str()), (422, "LabelRemoved"));
    assert_eq!((world.says("Ready"), world.says("Reconciling")), (no("LabelRemoved"), yes("LabelRemoved")));
    world.tells("Ready", &["ConfigMap shops/page", "admission policy"]);
    assert!(run.events.iter().any(|event| event.reason == "LabelRemoved"));
    assert_eq!(run.done.error.as_deref(), Some("LabelRemoved"));
    assert!(run.done.wake.retry.is_some(), "nothing reports that the policy was mended");
}

#[test]
fn it_is_tried_again_and_accepted_when_the_policy_is_mended() {
    let mut world = stripped();
    world.pass(&shop());
    assert_eq!(world.pass(&shop()).steps, ["call", "update ConfigMap page"]);
    world.api.strips_labels = false;
    let run = world.pass(&shop());
    assert_eq!(run.steps[..2], ["call", "update ConfigMap page"]);
    assert!(run.done.ready && run.done.wake.retry.is_none() && run.done.error.is_none());
    assert_eq!(world.says("Ready"), yes("Succeeded"));
    let labels = &world.live("ConfigMap", "page").unwrap()["metadata"]["labels"];
    assert_eq!(labels["pintle.dev/root"], json!("shop-uid"));
}

#[test]
fn a_child_that_no_watch_shows_is_found_by_name_and_not_lost() {
    let mut world = stripped();
    world.pass(&shop());
    world.restart();
    // As after a start: the watch by label does not bring it.
    let page = reference("ConfigMap", "page");
    let hidden = world.api.objects.remove(&page).unwrap();
    let run = world.pass_between(&shop(), move |api, step| {
        if step == "create ConfigMap page" {
            api.objects.insert(page.clone(), hidden.clone());
        }
    });
    let expected =
        ["call", "read Shop shop", "create ConfigMap page", "get ConfigMap page", "update ConfigMap page"];
    assert_eq!(run.steps[..5], expected);
    assert_eq!(world.says("Ready"), no("LabelRemoved"));
}

#[test]
fn such_a_child_is_pruned_when_it_is_no_longer_wanted_and_nothing_is_said_of_it() {
    let mut world = stripped();
    world.pass(&shop());
    world.binding.generation += 1;
    let run = world.pass(&answer(vec![service("web", 30010)]));
    assert_eq!(run.steps[..3], ["call", "get ConfigMap page", "delete ConfigMap page"]);
    assert!(run.done.ready && run.done.wake.again.is_none(), "{:?}", world.says("Ready"));
}
