//! A policy that takes our labels away: it is said, nothing spins, and nothing is lost.

use std::time::Duration;

use pintle_wit::Response;
use serde_json::json;

use crate::pass::api::{Fault, error};
use crate::pass::world::{World, answer, config_map, deployment, no, reference, service, yes};

fn shop() -> Response {
    answer(vec![config_map("page", "a"), service("web", 30010)])
}

fn stripped() -> World {
    let mut world = World::new();
    world.api.strips_labels = true;
    world
}

#[test]
fn a_label_that_is_taken_away_is_said_with_what_to_do() {
    let mut world = stripped();
    let run = world.pass(&shop());
    assert_eq!(run.steps, ["call", "create ConfigMap page", "create Service web", "status", "emit"]);
    assert_eq!((world.says("Ready"), world.says("Reconciling")), (no("LabelRemoved"), yes("LabelRemoved")));
    world.tells("Ready", &["ConfigMap shops/page", "admission policy"]);
    assert!(!world.message("Ready").contains("Service"));
    assert!(run.events.iter().any(|event| event.reason == "LabelRemoved"));
    assert_eq!(run.done.error.as_deref(), Some("LabelRemoved"));
    assert_eq!((run.done.wake.retry, run.done.wake.again), (None, Some(Duration::from_secs(60))));
}

#[test]
fn it_is_written_again_once_a_minute_and_no_other_pass_costs_anything() {
    let mut world = stripped();
    world.pass(&shop());
    world.pass_after(10, &shop());
    let run = world.pass_after(10, &shop());
    assert_eq!(run.steps, Vec::<String>::new());
    let left = run.done.wake.again.expect("it comes back");
    assert_eq!(left, Duration::from_millis(59_980));
    let run = world.pass_after(59_980, &shop());
    assert_eq!(run.steps, ["call", "update ConfigMap page"]);
    // The guest has another reason to be asked: still no write.
    world.binding.digest = "sha256:two".into();
    assert_eq!(world.pass_after(10, &shop()).steps, ["call"]);
}

#[test]
fn when_the_policy_is_mended_the_root_is_ready_within_a_minute() {
    let mut world = stripped();
    world.pass(&shop());
    world.api.strips_labels = false;
    let run = world.pass_after(60_000, &shop());
    assert_eq!(run.steps[..2], ["call", "update ConfigMap page"]);
    assert!(run.done.ready && run.done.wake.again.is_none() && run.done.error.is_none());
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
    assert_eq!(world.pass_after(10, &shop()).steps, Vec::<String>::new());
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

#[test]
fn a_foreign_edit_of_such_a_child_that_is_seen_is_put_right() {
    let mut world = stripped();
    world.pass(&shop());
    world.api.edit(&reference("ConfigMap", "page"), "data.key", json!("theirs"));
    let run = world.pass_after(10, &shop());
    assert_eq!(run.steps[..2], ["call", "update ConfigMap page"]);
    assert_eq!(world.live("ConfigMap", "page").unwrap()["data"]["key"], "a");
    let with_web = answer(vec![config_map("page", "a"), service("web", 30010), deployment("web", &[])]);
    world.binding.generation += 1;
    let run = world.pass_after(10, &with_web);
    assert_eq!(run.steps[..2], ["call", "create Deployment web"]);
}

#[test]
fn a_list_that_does_not_show_such_a_child_costs_a_look_and_no_write() {
    let mut world = stripped();
    world.pass(&shop());
    let page = reference("ConfigMap", "page");
    let hidden = world.api.objects.remove(&page).unwrap();
    let run = world.pass_after_between(10, &shop(), move |api, step| {
        if step == "get ConfigMap page" {
            api.objects.insert(page.clone(), hidden.clone());
        }
    });
    assert_eq!(run.steps, ["call", "get ConfigMap page"]);
    assert_eq!(world.says("Ready"), no("LabelRemoved"));
    // One that is really gone is made anew.
    world.api.objects.remove(&reference("ConfigMap", "page"));
    let run = world.pass_after(10, &shop());
    assert_eq!(run.steps[..4], ["call", "get ConfigMap page", "read Shop shop", "create ConfigMap page"]);
}

#[test]
fn one_that_cannot_be_written_again_is_not_tried_at_once() {
    let mut world = stripped();
    world.pass(&shop());
    world.api.fail("apply ConfigMap page", Fault::Refuse(error(422, "Invalid", "no")));
    let run = world.pass_after(60_000, &shop());
    assert!(run.steps.contains(&"update ConfigMap page".to_owned()));
    assert!(
        run.done.wake.again.is_none_or(|again| again >= Duration::from_secs(60)),
        "{:?}",
        run.done.wake.again
    );
    let run = world.pass_after(10, &shop());
    assert!(
        run.done.wake.again.is_none_or(|again| again >= Duration::from_secs(50)),
        "{:?}",
        run.done.wake.again
    );
}
