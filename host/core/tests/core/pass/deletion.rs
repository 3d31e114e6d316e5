//! The end of a root.

use pintle_core::Duty;
use pintle_wit::{ConditionStatus, GuestCondition, Response};
use serde_json::{Value, json};

use crate::pass::{
    api::{Api, Fault, error, no_reply},
    world::{World, answer, config_map, no, reference},
};

const GUEST: &str = "pintle.dev/guest";

/// A root whose guest has a finalizer, at rest.
fn finalizing() -> World {
    let mut world = World::new();
    world.binding.manifest.finalizer = true;
    world.settle(&page());
    world
}

fn page() -> Response {
    answer(vec![config_map("page", "a")])
}

fn finalized() -> Response {
    Response { finalized: true, ..answer(vec![]) }
}

fn delete(world: &mut World) {
    world.edit_root("metadata.deletionTimestamp", json!("2000-01-01T00:00:00Z"));
}

fn annotate(world: &mut World, annotation: &str, value: &str) {
    let root = world.api.objects.get_mut(&world.root).unwrap();
    root["metadata"]["annotations"][annotation] = value.into();
}

fn is_gone(world: &World) -> bool {
    !world.api.objects.contains_key(&world.root)
}

#[test]
fn a_root_without_a_finalizer_costs_nothing_when_it_goes() {
    let mut world = World::new();
    world.settle(&page());
    // Somebody else's finalizer is nothing to us.
    world.edit_root("metadata.finalizers", json!(["example.com/theirs"]));
    delete(&mut world);
    world.api.objects.remove(&reference("ConfigMap", "page"));
    let run = world.pass_with(|_| panic!("nobody is asked"));
    assert!(run.steps.is_empty(), "{:?}", run.steps);
    assert_eq!(run.done.wake.retry, None);
}

/// What the API server is asked to read and make after the garbage collector took a child of a root whose own end no watch has shown.
fn steps_after_the_end(prepare: impl Fn(&mut World), end: fn(&mut Api)) -> Vec<String> {
    let mut world = World::new();
    world.settle(&page());
    prepare(&mut world);
    world.api.objects.remove(&reference("ConfigMap", "page"));
    let run = world.pass_between(&page(), move |api, step| {
        if step == "read Shop shop" {
            end(api);
        }
    });
    run.steps
}

fn root_is(api: &mut Api, change: impl FnOnce(&mut Value)) {
    let root = api.objects.values_mut().find(|object| object["kind"] == "Shop").unwrap();
    change(root);
}

#[test]
fn what_the_garbage_collector_takes_from_a_root_whose_end_was_not_seen_is_not_made_again() {
    let ends: [fn(&mut Api); 4] = [
        |api| api.objects.retain(|_, object| object["kind"] != "Shop"),
        |api| root_is(api, |root| root["metadata"]["uid"] = "another".into()),
        |api| root_is(api, |root| root["metadata"]["deletionTimestamp"] = "2000-01-01T00:00:00Z".into()),
        // An edit may no longer want the child.
        |api| root_is(api, |root| root["metadata"]["generation"] = 2.into()),
    ];
    for end in ends {
        assert_eq!(steps_after_the_end(|_| {}, end), ["call", "read Shop shop"]);
        assert_eq!(steps_after_the_end(World::restart, end), ["call", "read Shop shop"]);
    }
}

#[test]
fn a_deleted_child_of_a_root_that_is_there_comes_back_after_one_look_at_the_root() {
    let made = ["call", "read Shop shop", "create ConfigMap page"];
    assert!(steps_after_the_end(|_| {}, |_| {}).starts_with(&made.map(String::from)));
}

#[test]
fn the_first_create_of_a_child_costs_no_look_at_the_root() {
    let mut world = World::new();
    let first = world.pass(&page());
    assert!(!first.steps.contains(&"read Shop shop".into()), "{:?}", first.steps);
    world.settle(&page());
    world.binding.digest = "sha256:two".into();
    let more = world.pass(&answer(vec![config_map("page", "a"), config_map("more", "b")]));
    assert_eq!(more.steps[..2], ["call", "create ConfigMap more"]);
}

#[test]
fn a_root_that_was_listed_is_read_once_before_anything_is_written_for_it() {
    let mut world = World::new();
    world.root_was_listed = true;
    let first = world.pass(&page());
    assert_eq!(first.steps[..3], ["call", "read Shop shop", "create ConfigMap page"], "a list may be old");
    world.settle(&page());
    world.restart();
    assert_eq!(world.pass(&page()).steps, ["call"], "nothing is to be written");
    world.restart();
    let changed = world.pass(&answer(vec![config_map("page", "b")]));
    assert_eq!(changed.steps[..3], ["call", "read Shop shop", "update ConfigMap page"]);
}

#[test]
fn nothing_is_pruned_on_the_word_of_an_old_list() {
    let mut world = World::new();
    world.settle(&answer(vec![config_map("page", "a"), config_map("more", "b")]));
    world.root_was_listed = true;
    world.restart();
    let root = world.root.clone();
    let run = world.pass_between(&page(), move |api, step| {
        if step == "read Shop shop" {
            // The spec that the answer is to is one of before.
            api.edit(&root, "spec.more", json!(true));
        }
    });
    assert_eq!(run.steps, ["call", "read Shop shop"]);
    assert!(world.live("ConfigMap", "more").is_some());
}

#[test]
fn a_pass_that_had_nothing_to_write_does_not_make_an_old_list_new() {
    let mut world = World::new();
    world.settle(&page());
    world.root_was_listed = true;
    world.restart();
    assert_eq!(world.pass(&page()).steps, ["call"]);
    let reference = reference("ConfigMap", "page");
    world.api.edit(&reference, "data", json!({"v": "newer"}));
    let run = world.pass(&page());
    assert_eq!(run.steps[..3], ["call", "read Shop shop", "update ConfigMap page"], "it may be newer");
    world.api.edit(&reference, "data", json!({"v": "again"}));
    assert_eq!(world.pass(&page()).steps[..2], ["call", "update ConfigMap page"], "once");
}

#[test]
fn what_a_guest_remembers_is_not_set_back_by_an_answer_to_an_older_status() {
    let mut world = World::new();
    let remembers = |count: u32| Response {
        status: json!({"count": count}).as_object().cloned().unwrap_or_default().into_iter().collect(),
        ..page()
    };
    world.settle(&remembers(1));
    world.root_was_listed = true;
    world.restart();
    let root = world.root.clone();
    let run = world.pass_between(&remembers(0), move |api, step| {
        if step == "read Shop shop" {
            // What the host before had written, and the list did not show yet.
            api.edit(&root, "status.count", json!(2));
        }
    });
    assert_eq!(run.steps, ["call", "read Shop shop"]);
    assert!(run.done.wake.retry.is_some(), "it comes again when the watch has shown the root, or by itself");
}

#[test]
fn a_root_that_cannot_be_read_keeps_its_child_waiting() {
    let mut world = World::new();
    world.settle(&page());
    world.api.objects.remove(&reference("ConfigMap", "page"));
    world.api.fail("get Shop shop", Fault::Refuse(error(503, "ServiceUnavailable", "later")));
    let run = world.pass(&page());
    assert!(run.done.wake.retry.is_some() && world.live("ConfigMap", "page").is_none(), "{:?}", run.steps);
    world.settle(&page());
    assert!(world.live("ConfigMap", "page").is_some());
}

#[test]
fn a_deleted_root_waits_until_its_guest_is_done_and_the_answers_are_carried_out() {
    let mut world = finalizing();
    delete(&mut world);
    let run = world.pass_with(|request| {
        assert!(request.deleting);
        Ok(answer(vec![config_map("farewell", "a")]))
    });
    assert!(run.steps.contains(&"create ConfigMap farewell".into()), "{:?}", run.steps);
    assert!(!is_gone(&world));
    assert_eq!(world.says("Ready"), no("Deleting"));
    let again = world.pass(&answer(vec![config_map("farewell", "a")]));
    assert!(again.steps.len() <= 1, "nothing changed: {:?}", again.steps);
    world.restart();
    world.pass(&finalized());
    assert!(is_gone(&world));
    assert!(world.live("ConfigMap", "farewell").is_none(), "it is pruned before the root goes");
}

#[test]
fn a_guest_that_is_done_is_believed_although_its_namespace_takes_nothing_new() {
    let mut world = finalizing();
    delete(&mut world);
    world.api.fail("apply ConfigMap more", Fault::Refuse(error(403, "Forbidden", "being terminated")));
    let done = Response { finalized: true, ..answer(vec![config_map("page", "a"), config_map("more", "a")]) };
    world.pass(&done);
    assert!(is_gone(&world));
}

#[test]
fn a_root_that_its_finalizer_holds_in_a_terminating_namespace_says_how_it_is_let_go() {
    let mut world = finalizing();
    delete(&mut world);
    let why = "configmaps \"farewell\" is forbidden: unable to create new content in namespace shops because it is being terminated";
    world.api.fail("apply ConfigMap farewell", Fault::Refuse(error(403, "Forbidden", why)));
    world.pass(&answer(vec![config_map("farewell", "a")]));
    assert_eq!(world.says("Ready"), no("NamespaceTerminating"));
    world.tells("Ready", &["kubectl annotate -n shops shop.example.com shop pintle.dev/release=true"]);
}

#[test]
fn a_lost_reply_does_not_let_a_root_go() {
    let mut world = finalizing();
    delete(&mut world);
    world.api.fail("get ConfigMap page", Fault::Refuse(no_reply()));
    let run = world.pass(&finalized());
    assert!(!is_gone(&world) && run.done.wake.retry.is_some());
    world.pass(&finalized());
    assert!(is_gone(&world));
}

#[test]
fn a_release_is_for_roots_that_are_being_deleted() {
    let mut world = finalizing();
    annotate(&mut world, "pintle.dev/release", "true");
    assert!(world.pass(&page()).steps.is_empty());
}

#[test]
fn somebody_elses_finalizer_stays_and_holds_the_root() {
    let mut world = finalizing();
    let root = world.root.clone();
    world.api.edit(&root, "metadata.finalizers", json!(["example.com/theirs", GUEST]));
    delete(&mut world);
    world.pass(&finalized());
    assert_eq!(world.api.objects[&root]["metadata"]["finalizers"], json!(["example.com/theirs"]));
}

#[test]
fn a_finalizer_that_changed_meanwhile_is_not_overwritten() {
    let mut world = World::new();
    world.binding.manifest.finalizer = true;
    let root = world.root.clone();
    world.api.fail("finalizers Shop shop", Fault::Refuse(error(422, "Invalid", "a test failed")));
    let run = world.pass(&page());
    assert!(run.done.wake.retry.is_some());
    assert!(world.live("ConfigMap", "page").is_none(), "no child before the finalizer");
    world.pass(&page());
    assert_eq!(world.api.objects[&root]["metadata"]["finalizers"], json!([GUEST]));
}

#[test]
fn a_module_without_a_finalizer_takes_the_one_of_its_predecessor_off() {
    let mut world = finalizing();
    world.binding.manifest.finalizer = false;
    world.binding.digest = "sha256:two".into();
    world.settle(&page());
    assert!(world.api.objects[&world.root]["metadata"].get("finalizers").is_none());
    // Also from a root that was deleted before.
    let mut world = finalizing();
    delete(&mut world);
    world.binding.manifest.finalizer = false;
    world.binding.digest = "sha256:two".into();
    world.pass_with(|_| panic!("nobody is asked"));
    assert!(is_gone(&world));
}

#[test]
fn without_a_module_the_guests_finalizer_holds_and_nothing_else_happens() {
    let mut world = finalizing();
    world.binding.duty = Duty::CleanUp;
    world.restart();
    assert!(world.pass_with(|_| panic!("there is no guest")).steps.is_empty());
    delete(&mut world);
    assert!(world.pass_with(|_| panic!("there is no guest")).steps.is_empty());
    assert!(!is_gone(&world));
    annotate(&mut world, "pintle.dev/release", "true");
    world.pass_with(|_| panic!("there is no guest"));
    assert!(is_gone(&world));
}

#[test]
fn a_root_whose_reconciler_goes_says_that_nobody_reconciles_it_until_somebody_does() {
    let mut world = World::new();
    world.binding.manifest.finalizer = true;
    let mut page = page();
    page.status = json!({"url": "x"}).as_object().unwrap().clone();
    page.conditions.push(GuestCondition::new("Degraded", ConditionStatus::False, "Fine", ""));
    world.settle(&page);
    let (before, degraded) = (world.status().clone(), world.condition("Degraded"));
    // The root is edited, and nobody looks at it any more.
    world.edit_root("metadata.generation", json!(2));
    world.binding.duty = Duty::Release;
    let run = world.pass_with(|_| panic!("there is no guest"));
    assert_eq!(run.steps, ["finalizers", "status"]);
    let ready = world.condition("Ready").unwrap();
    assert_eq!((&ready["status"], &ready["reason"]), (&json!("Unknown"), &json!("NotReconciled")));
    assert_eq!(ready["observedGeneration"], json!(1), "what was observed last");
    for field in ["url", "observedGeneration", "pintle"] {
        assert_eq!(world.status()[field], before[field], "{field}");
    }
    assert_eq!(world.condition("Degraded"), degraded);
    assert!(world.live("ConfigMap", "page").is_some());
    assert!(world.pass_with(|_| panic!("there is no guest")).steps.is_empty());
    world.binding.duty = Duty::Full;
    world.settle(&page);
    assert_eq!(world.condition("Ready").unwrap()["status"], json!("True"));
    // While it is in trouble, it is no longer Stalled either.
    world.binding.generation += 1;
    world.pass_with(|_| Err(pintle_wit::Failure::terminal("InvalidSpec", "bad")));
    assert!(world.condition("Stalled").is_some());
    world.binding.duty = Duty::Release;
    world.pass_with(|_| panic!("there is no guest"));
    assert!(world.condition("Stalled").is_none());
}

#[test]
fn a_root_that_went_meanwhile_is_no_error() {
    let mut world = finalizing();
    delete(&mut world);
    world.api.fail("finalizers Shop shop", Fault::Refuse(error(404, "NotFound", "not found")));
    let run = world.pass(&finalized());
    assert_eq!((run.done.wake.retry, run.done.error), (None, None));
}
