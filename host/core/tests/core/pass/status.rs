//! What the status and the events say, and that they are silent when there is nothing to say.

use std::time::Duration;

use pintle_core::StatusSchema;
use pintle_wit::{ConditionStatus, Event, GuestCondition, Readiness, Response};
use serde_json::{Map, Value, json};

use crate::pass::{
    api::{Api, Fault, error},
    world::{World, absent, answer, condition, config_map, deployment, no, reference, yes},
};

fn one() -> Response {
    answer(vec![config_map("page", "a")])
}

fn saying(status: Value) -> Response {
    Response { status: status.as_object().unwrap().clone(), ..one() }
}

fn transition(world: &World, name: &str) -> String {
    world.condition(name).unwrap()["lastTransitionTime"].as_str().unwrap().to_owned()
}

#[test]
fn the_first_status_of_a_host_is_not_written_over_what_it_has_not_seen() {
    let mut world = World::new();
    let root = world.root.clone();
    let edit = move |api: &mut Api, step: &str| {
        if step == "create ConfigMap page" {
            api.edit(&root, "metadata.generation", json!(2));
        }
    };
    let run = world.pass_between(&one(), edit);
    assert_eq!(run.statuses, [Value::Null]);
    assert_eq!(run.done.wake.retry, Some(Duration::ZERO));
    world.pass(&one());
    assert_eq!(world.status()["observedGeneration"], 2);
    assert!(world.status()["pintle"]["moduleDigest"].is_string(), "the pass before changed a child");
}

#[test]
fn a_later_status_is_written_whatever_others_write_meanwhile() {
    let mut world = World::new();
    world.settle(&one());
    let root = world.root.clone();
    let edit = move |api: &mut Api, step: &str| {
        if step == "update ConfigMap page" {
            api.edit(&root, "metadata.labels", json!({"theirs": "1"}));
        }
    };
    world.edit_root("metadata.generation", json!(2));
    let run = world.pass_between(&answer(vec![config_map("page", "b")]), edit);
    assert_eq!(run.statuses.len(), 1);
    assert_eq!(run.done.wake.retry, None);
}

#[test]
fn what_others_write_into_the_hosts_fields_is_put_right_without_a_call() {
    let mut world = World::new();
    world.settle(&one());
    world.edit_root("status.observedGeneration", json!(77));
    let run = world.pass_with(|_| panic!("the host's fields never cause a call"));
    assert_eq!(run.steps, ["status"]);
    assert_eq!(world.status()["observedGeneration"], 1);
}

#[test]
fn transition_times_move_with_the_status_of_a_condition_and_not_otherwise() {
    let mut world = World::new();
    let two = answer(vec![deployment("web", &[]), config_map("page", "a")]);
    world.pass(&two);
    let first = transition(&world, "Ready");
    world.binding.generation += 1;
    world.edit_root("metadata.generation", json!(2));
    world.pass(&two);
    assert_eq!(world.condition("Ready").unwrap()["observedGeneration"], 2);
    assert_eq!(transition(&world, "Ready"), first);
    world.settle(&two);
    assert_ne!(transition(&world, "Ready"), first);
}

#[test]
fn a_condition_that_the_guest_no_longer_reports_vanishes_and_others_keep_theirs() {
    for atomic in [false, true] {
        let mut world = World::new();
        world.api.atomic_conditions = atomic;
        let mut degraded = one();
        degraded.conditions.push(GuestCondition::new("Degraded", ConditionStatus::False, "Fine", ""));
        world.settle(&degraded);
        assert_eq!(world.says("Degraded"), no("Fine"));
        world.binding.generation += 1;
        world.pass(&one());
        assert_eq!(world.says("Degraded"), absent(), "atomic: {atomic}");
        assert_eq!(world.says("Ready"), yes("Succeeded"));
        world.settle(&one());
    }
}

#[test]
fn a_condition_of_somebody_else_in_the_same_list_is_left_and_fights_nobody() {
    let mut world = World::new();
    world.settle(&one());
    let theirs = json!({"type": "Theirs", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2000-01-01T00:00:00Z"});
    let root = world.root.clone();
    world.api.objects.get_mut(&root).unwrap()["status"]["conditions"]
        .as_array_mut()
        .unwrap()
        .push(theirs.clone());
    assert!(world.pass(&one()).steps.is_empty());
    world.binding.generation += 1;
    world.pass(&saying(json!({"phase": "Down"})));
    assert_eq!(condition(world.status(), "Theirs"), Some(theirs));
}

#[test]
fn numbers_and_nulls_that_the_api_server_writes_otherwise_cost_no_second_write() {
    let mut world = World::new();
    let sent = saying(json!({"phase": "Up", "share": 1.0, "list": [{"share": 2.0}], "nothing": null}));
    world.pass(&sent);
    let root = world.root.clone();
    let status = &mut world.api.objects.get_mut(&root).unwrap()["status"];
    // Go writes 1.0 as 1.
    status["share"] = json!(1);
    status["list"] = json!([{"share": 2}]);
    world.pass(&sent);
    let run = world.pass(&sent);
    assert!(run.steps.is_empty(), "{:?}", run.steps);
    assert!(run.events.is_empty());
}

#[test]
fn a_crd_that_declares_only_conditions_gets_only_conditions() {
    let mut world = World::new();
    let items = json!({"properties": {"type": {}, "status": {}, "reason": {}, "message": {}}});
    world.binding.status = StatusSchema::Declared(json!({"properties": {"conditions": {"items": items}}}));
    world.api.status_fields = Some(vec!["conditions"]);
    let silent = saying(json!({}));
    world.pass(&silent);
    assert_eq!(world.status().as_object().unwrap().keys().collect::<Vec<_>>(), ["conditions"]);
    let ready = world.condition("Ready").unwrap();
    assert_eq!((&ready["status"], ready.get("observedGeneration")), (&json!("True"), None));
    world.settle(&silent);
}

#[test]
fn a_condition_without_a_time_is_read_all_the_same() {
    let mut world = World::new();
    let items = json!({"properties": {"type": {}, "status": {}, "reason": {}, "message": {}}});
    world.binding.status = StatusSchema::Declared(json!({"properties": {"conditions": {"items": items}}}));
    let mut silent = saying(json!({}));
    silent.conditions.push(GuestCondition::new("Degraded", ConditionStatus::False, "Fine", ""));
    world.settle(&silent);
    world.binding.generation += 1;
    let failure = pintle_wit::Failure::terminal("InvalidSpec", "bad");
    assert_eq!(world.pass_with(|_| Err(failure.clone())).events.len(), 1);
    assert_eq!(world.says("Degraded"), no("Fine"), "the last words stay");
    assert!(world.pass_with(|_| Err(failure.clone())).events.is_empty(), "said once");
}

#[test]
fn a_crd_that_declares_nothing_or_has_no_subresource_gets_no_write_and_no_endless_events() {
    for schema in [StatusSchema::Declared(json!({})), StatusSchema::Nothing] {
        let mut world = World::new();
        world.binding.status = schema;
        world.api.status_fields = Some(vec![]);
        let silent = saying(json!({}));
        let run = world.pass(&silent);
        assert_eq!(run.steps, ["call", "create ConfigMap page", "emit"]);
        assert!(run.done.ready);
        world.settle(&silent);
        world.binding.generation += 1;
        let failure = pintle_wit::Failure::terminal("InvalidSpec", "bad");
        assert_eq!(world.pass_with(|_| Err(failure.clone())).steps, ["call", "emit"]);
        assert_eq!(
            world.pass_with(|_| Err(failure.clone())).steps,
            ["call"],
            "an event is the only word, and said once"
        );
        world.settle(&silent);
        world.binding.generation += 1;
        assert_eq!(
            world.pass_with(|_| Err(failure.clone())).steps,
            ["call", "emit"],
            "a new failure is news"
        );
    }
}

#[test]
fn the_module_digest_moves_only_when_an_answer_changed_something() {
    let mut world = World::new();
    world.settle(&one());
    assert_eq!(world.status()["pintle"]["moduleDigest"], "sha256:one");
    world.binding.digest = "sha256:two".into();
    world.settle(&one());
    assert_eq!(world.status()["pintle"]["moduleDigest"], "sha256:one");
    world.binding.digest = "sha256:three".into();
    world.settle(&answer(vec![config_map("page", "b")]));
    assert_eq!(world.status()["pintle"]["moduleDigest"], "sha256:three");
    world.binding.digest = "sha256:four".into();
    let mut down = answer(vec![config_map("page", "b")]);
    down.status.insert("phase".into(), "Down".into());
    world.settle(&down);
    assert_eq!(world.status()["pintle"]["moduleDigest"], "sha256:four");
}

#[test]
fn after_a_crash_between_a_child_and_the_status_the_status_says_which_module_made_it() {
    let mut world = World::new();
    // The host ends before it hears of the create, so that the status was never written.
    let silent = Response { status: Map::new(), ..one() };
    world.pass(&silent);
    let root = world.api.objects.get_mut(&world.root).unwrap();
    root.as_object_mut().unwrap().remove("status");
    root["metadata"].as_object_mut().unwrap().remove("managedFields");
    world.restart();
    assert_eq!(world.pass(&silent).steps, ["call", "status"]);
    assert_eq!(world.status()["pintle"]["moduleDigest"], "sha256:one");
    assert!(world.pass(&silent).steps.is_empty());
}

#[test]
fn a_lost_reply_does_not_keep_the_module_that_changed_something_from_the_status() {
    let mut world = World::new();
    let silent = |value: &str| Response { status: Map::new(), ..answer(vec![config_map("page", value)]) };
    world.settle(&silent("a"));
    world.binding.digest = "sha256:two".into();
    world.api.fail("apply ConfigMap page", Fault::LoseReply);
    world.pass(&silent("b"));
    assert_eq!(world.status()["pintle"]["moduleDigest"], "sha256:one", "it is not known yet");
    world.pass(&silent("b"));
    assert_eq!(world.status()["pintle"]["moduleDigest"], "sha256:two");
    assert!(world.pass(&silent("b")).steps.is_empty());

    world.binding.digest = "sha256:three".into();
    world.api.fail("status Shop shop", Fault::Refuse(error(503, "ServiceUnavailable", "later")));
    world.pass(&silent("c"));
    world.settle(&silent("c"));
    assert_eq!(world.status()["pintle"]["moduleDigest"], "sha256:three", "when the status was lost");
}

#[test]
fn a_foreign_status_field_is_no_change_of_ours() {
    let mut world = World::new();
    world.settle(&one());
    world.edit_root("status.theirs", json!("x"));
    world.binding.digest = "sha256:two".into();
    let run = world.pass(&one());
    assert_eq!(run.steps, ["call"], "no write and no event");
    assert_eq!(world.status()["pintle"]["moduleDigest"], "sha256:one");
    assert_eq!(world.status()["theirs"], "x");
}

#[test]
fn events_are_told_only_by_a_pass_that_changed_something() {
    let mut world = World::new();
    let run = world.pass(&one());
    assert_eq!(run.events, [Event::normal("Opened", "the shop is open")]);
    world.restart();
    assert!(world.pass(&one()).events.is_empty());
    world.api.objects.remove(&reference("ConfigMap", "page"));
    assert_eq!(world.pass(&one()).events.len(), 1);
}

#[test]
fn a_root_that_recovers_says_so_once() {
    let mut world = World::new();
    world.settle(&one());
    world.binding.generation += 1;
    world.pass_with(|_| Err(pintle_wit::Failure::terminal("InvalidSpec", "bad")));
    let run = world.pass(&one());
    assert_eq!(run.events.iter().map(|event| event.reason.as_str()).collect::<Vec<_>>(), ["Recovered"]);
    assert!(world.pass(&one()).events.is_empty());
}

#[test]
fn a_blocking_condition_of_the_guest_keeps_the_root_from_ready() {
    let mut world = World::new();
    let mut blocked = one();
    let condition =
        GuestCondition::new("DomainConflict", ConditionStatus::True, "Taken", "a.example is taken");
    blocked.conditions.push(condition.blocking());
    world.pass(&blocked);
    assert_eq!((world.says("Ready"), world.says("DomainConflict")), (no("Taken"), yes("Taken")));
    world.settle(&blocked);
    assert_eq!(world.says("Ready"), no("Taken"), "also in a pass without a call");
}

#[test]
fn a_root_that_is_suspended_does_not_fail() {
    let mut world = World::new();
    world.edit_root("metadata.annotations", json!({"pintle.dev/suspend": "true"}));
    let run = world.pass(&one());
    assert_eq!((world.says("Stalled"), run.done.error), (yes("Suspended"), None));
}

#[test]
fn a_childs_own_rule_decides_whether_it_is_ready() {
    let mut world = World::new();
    let mut web = answer(vec![deployment("web", &[])]);
    web.children[0].readiness = Some(Readiness::Accepted);
    assert!(world.pass(&web).done.ready);
    web.children[0].readiness =
        Some(Readiness::Condition { r#type: "Available".into(), status: ConditionStatus::True });
    world.binding.generation += 1;
    assert!(!world.pass(&web).done.ready);
    let available = json!({"observedGeneration": 1, "conditions": [{"type": "Available", "status": "True"}]});
    world.api.edit(&reference("Deployment", "web"), "status", available);
    assert!(world.pass(&web).done.ready);
}

#[test]
fn a_child_that_failed_stalls_its_root_until_it_is_ready() {
    let mut world = World::new();
    let web = answer(vec![deployment("web", &[])]);
    world.pass(&web);
    assert_eq!((world.says("Reconciling"), world.says("Stalled")), (yes("ChildNotReady"), absent()));
    let exceeded = json!({"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "out of time"});
    let status = json!({"observedGeneration": 1, "conditions": [exceeded]});
    world.api.edit(&reference("Deployment", "web"), "status", status);
    world.pass(&web);
    assert_eq!((world.says("Reconciling"), world.says("Stalled")), (absent(), yes("ChildNotReady")));
    world.tells("Ready", &["Deployment shops/web: out of time"]);
    world.settle(&web);
    assert_eq!((world.says("Ready"), world.says("Stalled")), (yes("Succeeded"), absent()));
}

#[test]
fn an_observed_child_reaches_the_guest_and_an_unobserved_one_does_not() {
    let mut world = World::new();
    let two = answer(vec![deployment("web", &[]), config_map("page", "a")]);
    world.settle(&two);
    world.restart();
    let run = world.pass(&two);
    let request = &run.requests[0];
    assert_eq!(request.children.len(), 1);
    let web = request.child("Deployment", "web").expect("observed");
    assert_eq!(web["status"]["availableReplicas"], 1);
    assert!(
        web["metadata"].get("managedFields").is_none() && web["metadata"].get("resourceVersion").is_none()
    );
    assert_eq!(request.object["status"], json!({"phase": "Up"}), "its own fields are its only memory");
}

#[test]
fn a_guest_without_status_fields_changes_nothing_by_being_asked_again() {
    let mut world = World::new();
    let said = Response { status: Map::new(), events: vec![Event::normal("Said", "m")], ..one() };
    world.settle(&said);
    world.restart();
    assert_eq!(world.pass(&said).steps, ["call"]);
    let mut world = World::new();
    world.pass(&Response::default());
    assert_eq!(world.pass(&Response::default()).steps, Vec::<String>::new());
}

/// A Deployment whose status goes through these counts of available Pods, 60 ms apart, from a converged start.
fn rollout(world: &mut World, web: &Response, available: &[i64]) -> usize {
    let mut writes = 0;
    for count in available {
        let status =
            json!({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": count});
        world.api.edit(&reference("Deployment", "web"), "status", status);
        let run = world.pass_after(60, web);
        writes += run.statuses.len();
        assert_eq!(run.done.wake.retry, None, "nothing fails");
    }
    writes
}

#[test]
fn statuses_that_only_roll_up_are_merged_and_the_last_one_comes() {
    let mut world = World::new();
    let web = answer(vec![deployment("web", &[])]);
    world.settle(&web);
    // Ready becomes False at once: nothing was written for long. The rest of the second waits.
    assert_eq!(rollout(&mut world, &web, &[0]), 1);
    let mut merged = |status| {
        world.api.edit(&reference("Deployment", "web"), "status", status);
        let run = world.pass_after(60, &web);
        assert_eq!(run.statuses.len(), 0, "{:?}", run.steps);
        run.done.wake.again.expect("it comes back")
    };
    let first = merged(json!({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 1}));
    let second = merged(json!({"observedGeneration": 1, "replicas": 1}));
    let third = merged(json!({"observedGeneration": 1, "replicas": 2}));
    assert!(first > second && second > third && first.as_millis() <= 250, "{first:?} {second:?} {third:?}");
    let run = world.pass_after(i64::try_from(third.as_millis()).unwrap(), &web);
    assert_eq!((run.statuses.len(), run.done.wake.again), (1, None));
    world.tells("Ready", &["updated"]);
}

#[test]
fn that_a_root_is_ready_waits_for_nothing() {
    let mut world = World::new();
    let web = answer(vec![deployment("web", &[])]);
    world.settle(&web);
    assert_eq!(rollout(&mut world, &web, &[0, 1]), 2);
    assert_eq!(world.says("Ready"), yes("Succeeded"));
    assert_eq!(rollout(&mut world, &web, &[0]), 0, "that it is not any more may wait");
}

#[test]
fn what_came_of_an_edit_or_of_a_write_waits_for_nothing() {
    let mut world = World::new();
    let web = answer(vec![deployment("web", &[]), config_map("page", "a")]);
    world.settle(&web);
    rollout(&mut world, &web, &[0]);
    world.edit_root("metadata.generation", json!(2));
    let run = world.pass_after(10, &web);
    assert_eq!((run.statuses.len(), run.done.wake.again), (1, None));
    assert_eq!(world.status()["observedGeneration"], 2);
    world.api.objects.remove(&reference("ConfigMap", "page"));
    world.api.edit(&reference("Deployment", "web"), "status.updatedReplicas", json!(0));
    let run = world.pass_after(10, &web);
    assert_eq!(run.steps, ["call", "read Shop shop", "create ConfigMap page", "status", "emit"]);
}

#[test]
fn a_rollout_of_many_pods_is_few_writes_whatever_their_pace() {
    let mut world = World::new();
    world.binding.manifest.children.iter_mut().for_each(|child| child.observe = false);
    let mut web = answer(vec![deployment("web", &[])]);
    web.children[0].object["spec"]["replicas"] = json!(3);
    world.pass(&web);
    let mut writes = 1;
    let deployment = reference("Deployment", "web");
    for (replicas, updated, available) in
        [(0, 0, 0), (1, 1, 0), (2, 2, 0), (3, 3, 0), (3, 3, 1), (3, 3, 2), (3, 3, 3)]
    {
        let status = json!({"observedGeneration": 1, "replicas": replicas, "updatedReplicas": updated,
            "availableReplicas": available});
        world.api.edit(&deployment, "status", status);
        writes += world.pass(&web).statuses.len();
    }
    assert_eq!((writes, world.says("Ready")), (4, yes("Succeeded")));
}
