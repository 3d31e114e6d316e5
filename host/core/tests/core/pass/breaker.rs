//! A root that keeps changing without getting anywhere is slowed, and said to be; nobody else is.

use std::time::Duration;

use pintle_wit::{Event, Response};
use serde_json::json;

use crate::pass::world::{Run, World, absent, answer, config_map, deployment, no, reference, yes};

fn page() -> Response {
    answer(vec![config_map("page", "a")])
}

fn edit(world: &mut World) {
    edit_as(world, "their-controller", "key");
}

/// Somebody sets a key of the ConfigMap, and is the last who wrote it.
fn edit_as(world: &mut World, manager: &str, key: &str) {
    let page = reference("ConfigMap", "page");
    world.api.edit(&page, &format!("data.{key}"), json!("theirs"));
    let live = world.api.objects.get_mut(&page).unwrap();
    let entries = live["metadata"]["managedFields"].as_array_mut().unwrap();
    entries.retain(|entry| entry["operation"] == "Apply");
    entries.push(
        json!({"manager": manager, "operation": "Update", "time": "2026-01-01T00:00:00Z", "fieldsV1": {}}),
    );
}

/// Somebody undoes what the host does, at once, until the host is slowed.
fn fight(world: &mut World) -> (usize, Run) {
    for round in 1..200 {
        edit(world);
        let run = world.pass_after(5, &page());
        if run.done.throttled {
            return (round, run);
        }
        assert!(run.done.ready && run.done.wake.again.is_none(), "{:?}", run.steps);
    }
    panic!("it is never slowed");
}

#[test]
fn a_root_over_which_two_controllers_fight_is_slowed_and_said_to_be() {
    let mut world = World::new();
    world.settle(&page());
    let (rounds, run) = fight(&mut world);
    assert_eq!(rounds, 5);
    assert_eq!(run.steps, ["call", "update ConfigMap page", "status", "emit"]);
    assert_eq!((world.says("Ready"), world.says("Reconciling")), (no("Throttled"), yes("Throttled")));
    assert_eq!(world.says("Stalled"), absent());
    world.tells(
        "Ready",
        &["ConfigMap shops/page", "\"their-controller\" keeps changing data.key", "every 60 s"],
    );
    let slowed: Vec<&Event> = run.events.iter().filter(|event| event.reason == "Throttled").collect();
    assert_eq!(slowed.len(), 1);
}

#[test]
fn a_status_that_changes_amid_a_fight_is_not_blamed_for_it() {
    let mut world = World::new();
    world.settle(&page());
    for _ in 0..4 {
        edit(&mut world);
        assert!(!world.pass_after(5, &page()).done.throttled);
    }
    let status = json!({"turn": 1}).as_object().unwrap().clone();
    // No edit of what is wanted: the guest is called, and nothing else.
    world.edit_root("metadata.labels.a", json!("b"));
    let run = world.pass_after(5, &Response { status, ..page() });
    assert!(!run.done.throttled && !run.statuses.is_empty(), "{:?}", run.steps);
    edit(&mut world);
    assert!(world.pass_after(5, &page()).done.throttled);
    world.tells("Ready", &["\"their-controller\" keeps changing data.key"]);
}

#[test]
fn a_slowed_root_is_tried_every_minute_and_never_dropped() {
    let mut world = World::new();
    world.settle(&page());
    fight(&mut world);
    for _ in 0..5 {
        edit(&mut world);
        let run = world.pass_after(5, &page());
        assert_eq!(run.steps, Vec::<String>::new(), "neither a call nor a request");
        let wait = run.done.wake.again.expect("it comes back");
        assert!(wait > Duration::from_secs(59) && wait <= Duration::from_secs(60), "{wait:?}");
        let run = world.pass_after(i64::try_from(wait.as_millis()).unwrap(), &page());
        assert_eq!(run.steps, ["call", "update ConfigMap page", "emit"], "no status");
        let said: Vec<&str> = run.events.iter().map(|event| event.reason.as_str()).collect();
        assert_eq!(said, ["Opened"], "no second warning");
        assert!(run.done.throttled);
    }
}

#[test]
fn a_root_that_was_slowed_is_ready_again_after_two_and_a_half_minutes_of_calm() {
    let mut world = World::new();
    world.settle(&page());
    let (_, run) = fight(&mut world);
    let mut again = run.done.wake.again.unwrap();
    let mut waited = 0;
    for _ in 0..5 {
        let wait = i64::try_from(again.as_millis()).unwrap();
        waited += wait;
        let run = world.pass_after(wait, &page());
        match run.done.wake.again {
            Some(next) => again = next,
            None => break,
        }
    }
    assert!((149_000..=150_000).contains(&waited), "{waited}");
    assert_eq!(world.says("Ready"), yes("Succeeded"));
}

#[test]
fn an_edit_of_a_slowed_root_is_made_true_at_once() {
    let mut world = World::new();
    world.settle(&page());
    fight(&mut world);
    world.edit_root("metadata.generation", json!(2));
    let run = world.pass_after(5, &answer(vec![config_map("page", "b")]));
    assert!(run.steps.contains(&"update ConfigMap page".to_owned()) && run.done.ready, "{:?}", run.steps);
    assert_eq!(world.status()["observedGeneration"], 2);
    edit(&mut world);
    let run = world.pass_after(5, &answer(vec![config_map("page", "b")]));
    assert!(run.done.throttled, "what was spent is not forgiven");
}

#[test]
fn a_guest_that_cannot_make_up_its_mind_about_a_child_is_slowed() {
    let mut world = World::new();
    let flip = |n: usize| {
        let mut answer = answer(vec![config_map("page", ["a", "b"][n % 2])]);
        answer.status = json!({"turn": n % 2}).as_object().unwrap().clone();
        answer
    };
    let slowed = (0..100).find(|n| world.pass_after(5, &flip(*n)).done.throttled);
    assert_eq!(slowed, Some(20), "after one pass for the edit and twenty more");
    world.tells("Ready", &["the guest keeps answering with other forms of ConfigMap shops/page"]);
}

#[test]
fn a_guest_that_cannot_make_up_its_mind_about_its_status_is_slowed_to_one_write_a_second() {
    let mut world = World::new();
    let mut calls = 0;
    let mut pass = |world: &mut World, milliseconds: i64| {
        world.now += milliseconds;
        world.pass_now(|_| {
            calls += 1;
            let status = json!({"turn": calls % 2}).as_object().unwrap().clone();
            Ok(Response { status, events: vec![], ..page() })
        })
    };
    let mut writes = 0;
    let slowed = (0..10_000).find(|_| {
        let run = pass(&mut world, 300);
        writes += run.statuses.len();
        run.done.throttled
    });
    assert!(slowed.is_some() && writes > 100, "{slowed:?} {writes}");
    let mut writes = 0;
    for _ in 0..100 {
        let run = pass(&mut world, 100);
        writes += run.statuses.len();
        assert!(run.done.wake.again.is_some());
    }
    assert!((5..=11).contains(&writes), "{writes} in ten seconds");
}

#[test]
fn a_child_that_is_edited_by_hand_now_and_then_is_repaired_for_ever() {
    let mut world = World::new();
    world.settle(&page());
    for _ in 0..100 {
        edit(&mut world);
        assert!(world.pass_after(151_000, &page()).done.ready);
    }
}

type Meddle = fn(&mut World, usize);

fn one_of_three(round: usize) -> &'static str {
    ["key", "k1", "k2"][round % 3]
}

/// The pass, of ten, after which the root is slowed, and what it says then.
fn slowed_at(
    every: i64,
    answer: &Response,
    mut meddle: impl FnMut(&mut World, usize),
) -> (Option<usize>, String) {
    let mut world = World::new();
    world.settle(answer);
    let slowed = (1..=10).find(|round| {
        meddle(&mut world, *round);
        world.pass_after(every, answer).done.throttled
    });
    (slowed, world.message("Ready"))
}

#[test]
fn the_fifth_repair_of_one_sort_within_ten_minutes_is_a_fight_and_other_repairs_are_none() {
    let mut keys = config_map("page", "a");
    keys["data"] = json!({"key": "a", "k1": "a", "k2": "a"});
    let page = answer(vec![keys]);
    let theirs = "field manager \"their-controller\" keeps changing data.key";
    let same: Meddle = |world, _| edit(world);
    let fields: Meddle = |world, round| edit_as(world, "kubectl", one_of_three(round));
    let people: Meddle = |world, round| edit_as(world, one_of_three(round), "key");
    let delete: Meddle = |world, _| drop(world.api.objects.remove(&reference("ConfigMap", "page")));
    let rows = [
        ("an autoscaler's pace", 15_000, same, Some(5), theirs),
        ("as slow as a fight can be", 149_000, same, Some(5), theirs),
        ("too slow for one", 151_000, same, None, ""),
        ("three fields", 60_000, fields, None, ""),
        ("three people", 60_000, people, None, ""),
        ("it is deleted", 100_000, delete, Some(5), "ConfigMap shops/page keeps vanishing"),
    ];
    for (what, every, meddle, expected, says) in rows {
        let (slowed, message) = slowed_at(every, &page, meddle);
        assert_eq!(slowed, expected, "{what}: {message}");
        assert!(message.contains(says), "{what}: {message}");
    }
}

#[test]
fn an_autoscaler_is_named_by_what_it_writes_through_scale() {
    let web = answer(vec![deployment("web", &[])]);
    let (slowed, message) = slowed_at(15_000, &web, |world, _| {
        let web = reference("Deployment", "web");
        world.api.edit(&web, "spec.replicas", json!(5));
        let live = world.api.objects.get_mut(&web).unwrap();
        let entries = live["metadata"]["managedFields"].as_array_mut().unwrap();
        entries.retain(|entry| entry["operation"] == "Apply");
        let update = |manager: &str| json!({"manager": manager, "operation": "Update", "fieldsV1": {}});
        // As the API server has it: without a time.
        let mut scale = update("kube-controller-manager");
        scale["subresource"] = json!("scale");
        let mut other = update("kubectl-edit");
        other["time"] = json!("2026-01-01T00:00:00Z");
        entries.extend([scale, other]);
    });
    assert_eq!(slowed, Some(5));
    let who = "Deployment shops/web: field manager \"kube-controller-manager\" keeps changing spec.replicas";
    assert!(message.contains(who) && message.contains("leave the field out of the answer"), "{message}");
}

#[test]
fn a_job_that_its_ttl_deletes_is_a_fight_that_names_the_field_although_it_goes_in_the_foreground() {
    let mut job = config_map("page", "a");
    job["spec"] = json!({"ttlSecondsAfterFinished": 2});
    let job = answer(vec![job]);
    let (slowed, message) = slowed_at(5_000, &job, |world, _| {
        let page = reference("ConfigMap", "page");
        world.api.edit(&page, "metadata.deletionTimestamp", json!("2026-01-01T00:00:00Z"));
        assert!(!world.pass_after(1_000, &job).done.ready, "it goes");
        world.api.objects.remove(&page);
    });
    assert_eq!(slowed, Some(5), "{message}");
    assert!(message.contains("spec.ttlSecondsAfterFinished"), "{message}");
}

#[test]
fn a_root_whose_message_quotes_itself_is_slowed_before_the_message_is_cut() {
    let mut world = World::new();
    world.settle(&page());
    let mut writes = 0;
    let slowed = (1..100).find(|_| {
        let said = world.message("Ready");
        let ready = json!([{"type": "Ready", "status": "False", "reason": "Shown", "message": said}]);
        world.api.edit(&reference("ConfigMap", "page"), "status", json!({"conditions": ready}));
        let run = world.pass_after(300, &page());
        writes += run.statuses.len();
        run.done.throttled
    });
    assert!(slowed.is_some() && writes <= 22, "{slowed:?} {writes}");
    world.tells("Ready", &["condition Ready quotes itself and grows"]);
    assert_eq!(world.says("Ready"), no("Throttled"));
}

#[test]
fn a_list_of_children_that_gets_longer_is_no_message_that_quotes_itself() {
    let mut world = World::new();
    let names: Vec<String> = (0..60).map(|n| format!("c{n:02}")).collect();
    let all = answer(names.iter().map(|name| config_map(name, "a")).collect());
    world.settle(&all);
    for name in &names {
        let ready = json!([{"type": "Ready", "status": "False", "reason": "No", "message": "not yet"}]);
        world.api.edit(&reference("ConfigMap", name), "status", json!({"conditions": ready}));
        assert!(!world.pass_after(300, &all).done.throttled, "{name}");
    }
}

#[test]
fn many_stages_one_after_the_other_are_no_fight() {
    let mut world = World::new();
    let mut long = answer((0..60).map(|n| config_map(&format!("c{n}"), "a")).collect());
    for (child, stage) in long.children.iter_mut().zip(0..) {
        child.stage = stage;
    }
    for n in 0..60 {
        let mut until = long.clone();
        until.children.truncate(n + 1);
        let run = world.pass_after(5, &until);
        assert!(!run.done.throttled, "{n}");
    }
}

#[test]
fn a_clock_that_is_set_back_slows_nobody_for_long() {
    let mut world = World::new();
    world.settle(&page());
    fight(&mut world);
    edit(&mut world);
    let run = world.pass_after(-86_400_000, &page());
    assert!(run.done.wake.again.unwrap() <= Duration::from_secs(60), "{:?}", run.done.wake.again);
    world.pass_after(60_000, &page());
    assert_eq!(world.live("ConfigMap", "page").unwrap()["data"]["key"], "a");
}

#[test]
fn a_guest_that_says_something_new_each_time_has_twenty_events_and_then_one_in_five_minutes() {
    let mut world = World::new();
    let (mut published, mut dropped) = (0, 0);
    for turn in 0..600 {
        let mut answer = page();
        answer.status = json!({"turn": turn}).as_object().unwrap().clone();
        answer.events =
            vec![Event::normal(format!("Turn{turn}"), "it turned"), Event::normal("Twice", "and again")];
        let run = world.pass_after(1000, &answer);
        published += run.events.len();
        dropped += run.done.hits.events as usize;
    }
    assert_eq!(published, 21, "twenty, and one more after five minutes");
    assert_eq!(published + dropped, 1200);
}

#[test]
fn a_guest_that_says_much_does_not_keep_the_host_from_saying_that_it_failed() {
    let mut world = World::new();
    for turn in 0..30 {
        let mut answer = page();
        answer.status = json!({"turn": turn}).as_object().unwrap().clone();
        world.pass_after(1000, &answer);
    }
    let run = world.pass_with(|_| Err(pintle_wit::Failure::terminal("Broken", "it is broken")));
    assert_eq!(run.events.iter().map(|event| event.reason.as_str()).collect::<Vec<_>>(), ["Broken"]);
    // Another failure each time is no way around it.
    let mut published = 0;
    for turn in 0..30 {
        let failure = |turn| pintle_wit::Failure::terminal("Broken", format!("in another way: {turn}"));
        world.now += 1000;
        published += world.pass_now(|_| Err(failure(turn))).events.len();
    }
    assert_eq!(published, 4);
}

#[test]
fn neither_a_new_root_nor_another_look_brings_events_back() {
    let mut world = World::new();
    let mut published = 0;
    for turn in 0..60 {
        let root = world.root.clone();
        if turn % 10 == 9 {
            world.api.objects.remove(&root);
            world.root = world.add_root("shop");
        }
        let metadata = &mut world.api.objects.get_mut(&root).unwrap()["metadata"];
        metadata["annotations"]["pintle.dev/reconcile-at"] = json!(turn.to_string());
        if turn % 10 == 9 {
            metadata["uid"] = json!(format!("uid-{turn}"));
        }
        let mut answer = page();
        answer.status = json!({"turn": turn}).as_object().unwrap().clone();
        published += world.pass_after(100, &answer).events.len();
    }
    assert!(published <= 25, "{published}");
}
