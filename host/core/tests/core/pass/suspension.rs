//! Roots that are to be left alone, or looked at again.

use serde_json::{Value, json};

use crate::pass::world::{World, absent, answer, config_map, no, reference, yes};

fn annotate(world: &mut World, annotation: &str, value: Value) {
    let root = world.api.objects.get_mut(&world.root).unwrap();
    root["metadata"]["annotations"][annotation] = value;
}

#[test]
fn a_suspended_root_is_left_as_it_is_says_so_and_goes_on_afterwards() {
    let mut world = World::new();
    world.settle(&answer(vec![config_map("page", "a")]));
    annotate(&mut world, "pintle.dev/suspend", json!("true"));
    let page = reference("ConfigMap", "page");
    world.api.edit(&page, "data.key", json!("theirs"));
    let run = world.pass_with(|_| panic!("the guest is not asked"));
    assert_eq!(run.steps, ["status", "emit"]);
    assert_eq!(run.events[0].r#type, pintle_wit::EventType::Normal);
    assert_eq!((run.done.wake.retry, run.done.error), (None, None), "it is no failure");
    assert_eq!((world.says("Ready"), world.says("Stalled")), (no("Suspended"), yes("Suspended")));
    assert_eq!(world.status()["phase"], "Up", "what the guest said last stays");
    assert!(world.pass_with(|_| panic!("the guest is not asked")).steps.is_empty());
    assert_eq!(world.live("ConfigMap", "page").unwrap()["data"]["key"], "theirs");

    annotate(&mut world, "pintle.dev/suspend", json!("false"));
    world.settle(&answer(vec![config_map("page", "a")]));
    assert_eq!((world.says("Ready"), world.says("Stalled")), (yes("Succeeded"), absent()));
    assert_eq!(world.live("ConfigMap", "page").unwrap()["data"]["key"], "a");
}

#[test]
fn a_suspended_root_can_be_deleted() {
    let mut world = World::new();
    world.binding.manifest.finalizer = true;
    world.settle(&answer(vec![]));
    annotate(&mut world, "pintle.dev/suspend", json!("true"));
    crate::pass::deletion::delete(&mut world);
    world.pass(&pintle_wit::Response { finalized: true, ..answer(vec![]) });
    assert!(!world.api.objects.contains_key(&world.root));
}

#[test]
fn who_asks_for_a_pass_gets_one_and_only_one() {
    let mut world = World::new();
    world.settle(&answer(vec![config_map("page", "a")]));
    annotate(&mut world, "pintle.dev/reconcile-at", json!("2026-11-21T09:00:00Z"));
    let run = world.pass(&answer(vec![config_map("page", "a")]));
    assert_eq!(run.steps, ["call"], "the guest is asked, and nothing is to be written");
    assert!(world.pass(&answer(vec![])).steps.is_empty());
}
