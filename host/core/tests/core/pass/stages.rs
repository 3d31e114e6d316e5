//! Stages: what waits for what, what is kept meanwhile, and that waiting costs nothing.

use pintle_wit::{ConditionStatus, Readiness, Response};
use serde_json::{Value, json};

use crate::pass::{
    api::{Fault, error, no_reply, port_taken},
    world::{World, absent, answer, config_map, deployment, no, reference, service, yes},
};

/// A database, then what uses it, then a door.
fn shop(page: &str) -> Response {
    let mut answer = answer(vec![
        service("door", 30010),
        config_map("page", page),
        deployment("web", &[]),
        deployment("db", &[]),
    ]);
    for (child, stage) in answer.children.iter_mut().zip([7, 1, 1, 0]) {
        child.stage = stage;
    }
    answer
}

/// A world whose guest does not see its children: only what the host does itself leads to a call.
fn world() -> World {
    let mut world = World::new();
    world.binding.manifest.children.iter_mut().for_each(|child| child.observe = false);
    world
}

fn make_ready(world: &mut World, name: &str) {
    let status =
        json!({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1});
    world.api.edit(&reference("Deployment", name), "status", status);
}

/// Everything applied and ready.
fn settled(answer: &Response) -> World {
    let mut world = world();
    for name in ["db", "web"] {
        world.pass(answer);
        make_ready(&mut world, name);
    }
    world.settle(answer);
    assert_eq!(world.says("Ready"), yes("Succeeded"));
    world
}

#[test]
fn stages_whose_children_are_ready_at_once_are_one_pass() {
    let mut world = world();
    let mut maps =
        answer(vec![config_map("third", "a"), config_map("second", "a"), config_map("first", "a")]);
    for (child, stage) in maps.children.iter_mut().zip([2, 1, 0]) {
        child.stage = stage;
    }
    let run = world.pass(&maps);
    let creates = ["create ConfigMap first", "create ConfigMap second", "create ConfigMap third"];
    assert_eq!(run.steps[1..4], creates);
    assert!(run.done.ready);
}

#[test]
fn a_waiting_stage_costs_no_call_until_it_is_due() {
    let mut world = world();
    world.pass(&shop("a"));
    world.pass(&shop("a"));
    let db = reference("Deployment", "db");
    let mut quiet = |status: Value| {
        world.api.edit(&db, "status", status);
        let run = world.pass_with(|_| panic!("the stage is not due"));
        assert!(run.steps.iter().all(|step| step == "status"), "{:?}", run.steps);
        assert_eq!(world.says("Reconciling"), yes("StageWaiting"));
    };
    quiet(json!({"observedGeneration": 1, "replicas": 1}));
    quiet(json!({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1}));
    make_ready(&mut world, "db");
    assert!(world.pass(&shop("a")).steps.contains(&"create Deployment web".to_owned()));
}

#[test]
fn a_restarted_host_goes_on_where_the_stages_were() {
    let mut world = world();
    world.pass(&shop("a"));
    world.restart();
    assert_eq!(world.pass(&shop("a")).steps, ["call"]);
    make_ready(&mut world, "db");
    world.restart();
    let run = world.pass(&shop("a"));
    let expected = ["call", "read Shop shop", "create ConfigMap page", "create Deployment web"];
    assert_eq!(run.steps[..4], expected);
}

#[test]
fn another_form_and_a_missing_child_wait_for_the_stages_before() {
    let mut world = settled(&shop("a"));
    world.api.edit(&reference("Deployment", "db"), "status.availableReplicas", json!(0));
    world.api.objects.remove(&reference("Service", "door"));
    world.binding.generation += 1;
    let run = world.pass(&shop("b"));
    assert_eq!(run.steps, ["call", "status"]);
    assert_eq!(world.live("ConfigMap", "page").unwrap()["data"]["key"], "a");
    assert_eq!(world.live("Service", "door"), None);
    make_ready(&mut world, "db");
    let run = world.pass(&shop("b"));
    assert_eq!(run.steps[..3], ["call", "update ConfigMap page", "create Service door"]);
    assert!(run.done.ready);
}

#[test]
fn a_refused_child_does_not_stop_the_others_of_its_stage_and_stops_the_next() {
    let mut world = world();
    let mut early = shop("a");
    early.children[0].stage = 0;
    world.api.fail("apply Service door", Fault::Refuse(port_taken()));
    let run = world.pass(&early);
    assert!(run.steps.contains(&"create Deployment db".to_owned()));
    make_ready(&mut world, "db");
    world.api.fail("apply Service door", Fault::Refuse(port_taken()));
    let run = world.pass(&early);
    assert_eq!(run.steps, ["call", "create Service door"]);
    assert!(run.done.wake.retry.is_some());
    assert_eq!(world.says("Ready"), no("Invalid"), "what is refused is what is wrong");
    let run = world.pass(&early);
    assert!(run.steps.contains(&"create Deployment web".to_owned()), "{:?}", run.steps);
}

#[test]
fn a_reply_that_never_came_stops_the_next_stage() {
    let mut world = world();
    world.api.fail("apply Deployment db", Fault::Refuse(no_reply()));
    let run = world.pass(&shop("a"));
    assert_eq!(run.steps[..3], ["call", "create Deployment db", "status"]);
    assert_eq!(world.says("Reconciling"), yes("NoReply"));
    assert!(run.done.wake.retry.is_some());
}

#[test]
fn a_guests_own_rule_opens_the_next_stage() {
    for (rule, opens) in [
        (Readiness::Accepted, true),
        (Readiness::Decided { ready: false, message: "warming up".into() }, false),
        (Readiness::Condition { r#type: "Available".into(), status: ConditionStatus::True }, false),
    ] {
        let mut world = world();
        let mut shop = shop("a");
        shop.children[3].readiness = Some(rule.clone());
        let run = world.pass(&shop);
        assert_eq!(run.steps.contains(&"create Deployment web".to_owned()), opens, "{rule:?}");
    }
}

#[test]
fn a_standing_refusal_in_a_stage_that_waits_again_is_neither_sent_nor_forgotten() {
    let mut world = settled(&shop("a"));
    world.binding.generation += 1;
    world.api.fail("apply ConfigMap page", Fault::Refuse(error(403, "Forbidden", "exceeded quota")));
    let run = world.pass(&shop("b"));
    assert_eq!(run.requests.len(), 2);
    world.api.edit(&reference("Deployment", "db"), "status.availableReplicas", json!(0));
    let run = world.pass(&shop("b"));
    assert_eq!((run.steps.len(), run.requests[0].refusals.len()), (1, 1), "{:?}", run.steps);
    make_ready(&mut world, "db");
    let run = world.pass(&shop("b"));
    assert!(run.done.ready, "{:?}", run.steps);
    assert_eq!(world.says("Stalled"), absent());
}

/// Where each stage looks at all before it, once for each that is applied, this takes minutes.
#[test]
fn five_hundred_stages_of_one_child_each_are_one_pass() {
    let mut world = world();
    world.binding.limits.children = 500;
    world.steps_max = 1200;
    let mut maps = answer((0..500).map(|number| config_map(&format!("map-{number}"), "a")).collect());
    for (child, stage) in maps.children.iter_mut().zip(0..) {
        child.stage = stage;
    }
    let run = world.pass(&maps);
    assert_eq!(run.done.counts.created, 500);
    assert!(run.done.ready, "{:?}", run.steps.last());
}
