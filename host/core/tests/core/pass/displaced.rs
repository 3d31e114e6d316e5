//! Somebody changes the key of an item that we own.

use pintle_core::ApiError;
use pintle_wit::{Cause, Child, Response};
use serde_json::{Value, json};

use crate::pass::{
    api::{Fault, error, no_reply},
    world::{World, answer, config_map, deployment, no, reference, service, yes},
};

/// A Service with a list that is keyed by port.
fn shop() -> Response {
    let mut web = service("web", 30010);
    web["spec"]["listeners"] = json!([{"port": 80, "name": "http", "target": "http"}]);
    answer(vec![web, config_map("page", "a")])
}

/// Somebody puts these items in the place of ours, and owns them.
fn replace(world: &mut World, items: &[Value]) {
    let web = reference("Service", "web");
    let live = world.api.objects.get_mut(&web).unwrap();
    live["spec"]["listeners"] = items.iter().cloned().collect();
    let owned: serde_json::Map<String, Value> = items
        .iter()
        .map(|item| {
            (
                format!("k:{{\"port\":{}}}", item["port"]),
                json!({".": {}, "f:port": {}, "f:name": {}, "f:target": {}}),
            )
        })
        .collect();
    let entries = live["metadata"]["managedFields"].as_array_mut().unwrap();
    entries[0]["fieldsV1"]["f:spec"].as_object_mut().unwrap().remove("f:listeners");
    let fields = json!({"f:spec": {"f:listeners": owned}});
    entries.push(json!({"manager": "kubectl-edit", "operation": "Update", "fieldsV1": fields}));
    world.api.edit(&web, "metadata.annotations.note", json!("edited"));
}

fn listeners(world: &World) -> Value {
    world.live("Service", "web").unwrap()["spec"]["listeners"].clone()
}

fn item(port: u32, name: &str, target: &str) -> Value {
    json!({"port": port, "name": name, "target": target})
}

fn duplicate() -> ApiError {
    let cause = Cause {
        field: "spec.listeners[1].name".into(),
        reason: "FieldValueDuplicate".into(),
        message: "Duplicate value".into(),
    };
    ApiError { causes: vec![cause], ..error(422, "Invalid", "Duplicate value") }
}

#[test]
fn what_cannot_be_beside_ours_goes_when_the_api_server_says_so() {
    let mut world = World::new();
    world.settle(&shop());
    replace(&mut world, &[item(81, "http", "another")]);
    world.api.fail("apply Service web", Fault::Refuse(duplicate()));
    let run = world.pass(&shop());
    let expected =
        ["call", "inspect Service web", "update Service web", "inspect Service web", "claim Service web"];
    assert_eq!(run.steps[..5], expected);
    assert_eq!(
        (listeners(&world), world.says("Ready")),
        (json!([item(80, "http", "http")]), yes("Succeeded"))
    );
}

#[test]
fn a_node_port_that_would_be_there_twice_is_the_same() {
    let mut world = World::new();
    world.settle(&shop());
    replace(&mut world, &[item(81, "http", "another")]);
    // As it comes from a Service; the list of these tests has another name, so that nothing can be claimed.
    world.api.fail("apply Service web", Fault::Refuse(error(500, "", "duplicate nodePort: {TCP 30010}")));
    let run = world.pass(&shop());
    assert_eq!(run.steps[3], "inspect Service web");
    assert!(run.done.ready, "it is tried once more: {:?}", run.steps);
}

#[test]
fn what_somebody_set_beside_ours_stays_where_the_api_server_takes_both() {
    let mut world = World::new();
    world.settle(&shop());
    replace(&mut world, &[item(9090, "metrics", "metrics")]);
    let run = world.pass(&shop());
    assert_eq!(run.steps[..3], ["call", "inspect Service web", "update Service web"]);
    assert_eq!(listeners(&world), json!([item(9090, "metrics", "metrics"), item(80, "http", "http")]));
}

#[test]
fn a_refusal_that_no_claim_ends_is_told_after_one_more_try() {
    let mut world = World::new();
    world.settle(&shop());
    replace(&mut world, &[item(81, "http", "another")]);
    for _ in 0..3 {
        world.api.fail("apply Service web", Fault::Refuse(duplicate()));
    }
    let run = world.pass(&shop());
    assert_eq!(run.steps.iter().filter(|step| *step == "update Service web").count(), 2, "{:?}", run.steps);
    assert_eq!(world.says("Ready"), no("Invalid"));
}

#[test]
fn where_the_claim_is_forbidden_ours_is_not_put_beside_theirs() {
    let mut world = World::new();
    world.settle(&shop());
    replace(&mut world, &[item(81, "http", "http")]);
    world.api.fail("claim Service web", Fault::Refuse(error(403, "Forbidden", "may not patch")));
    let run = world.pass(&shop());
    assert!(!run.steps.iter().any(|step| step == "update Service web"), "{:?}", run.steps);
    assert_eq!(world.says("Ready"), no("Forbidden"));
    world.pass(&shop());
    assert_eq!(
        (listeners(&world), world.says("Ready")),
        (json!([item(80, "http", "http")]), yes("Succeeded"))
    );
}

#[test]
fn a_new_form_of_the_guest_that_is_refused_takes_nothing_from_anybody() {
    let mut world = World::new();
    world.settle(&shop());
    replace(&mut world, &[item(81, "http", "another")]);
    let mut next = shop();
    next.children[0].object["spec"]["listeners"] = json!([item(82, "http", "http")]);
    world.binding.generation += 1;
    world.api.fail("apply Service web", Fault::Refuse(duplicate()));
    let run = world.pass(&next);
    assert!(!run.steps.iter().any(|step| step.starts_with("claim")), "{:?}", run.steps);
    assert_eq!(listeners(&world), json!([item(81, "http", "another")]));
}

#[test]
fn a_child_that_changes_between_the_look_and_the_claim_is_put_right_all_the_same() {
    let mut world = World::new();
    world.settle(&shop());
    replace(&mut world, &[item(81, "http", "http")]);
    let mut edits = 0;
    let run = world.pass_between(&shop(), move |api, step| {
        if step == "claim Service web" && edits < 2 {
            edits += 1;
            api.edit(&reference("Service", "web"), "metadata.annotations.more", json!("edited"));
        }
    });
    assert_eq!(run.steps.iter().filter(|step| *step == "claim Service web").count(), 3, "{:?}", run.steps);
    assert!(run.done.ready && run.done.wake.retry.is_none());
    assert_eq!(listeners(&world), json!([item(80, "http", "http")]));
}

#[test]
fn a_webhook_that_answers_409_is_asked_a_few_times_and_not_for_ever() {
    let mut world = World::new();
    world.settle(&shop());
    replace(&mut world, &[item(81, "http", "http")]);
    for _ in 0..20 {
        world.api.fail("apply Service web", Fault::Refuse(error(409, "Conflict", "not now")));
    }
    let run = world.pass(&shop());
    let tried = run.steps.iter().filter(|step| *step == "update Service web").count();
    assert!(tried == 4 && !run.done.ready, "{tried}: {:?}", run.steps);
}

#[test]
fn a_child_is_inspected_although_the_name_of_another_is_looked_at_first() {
    let mut world = World::new();
    let mut both = shop();
    both.children.push(Child::new("side", service("side", 30011)));
    world.settle(&both);
    replace(&mut world, &[item(81, "http", "another")]);
    world.api.objects.remove(&reference("Service", "side"));
    world.api.fail("apply Service web", Fault::Refuse(duplicate()));
    world.api.fail("apply Service side", Fault::Refuse(error(409, "Conflict", "it was modified")));
    let run = world.pass(&both);
    assert!(run.steps.iter().any(|step| step == "claim Service web"), "{:?}", run.steps);
    assert!(run.done.ready, "{}", world.status());
}

/// A Deployment with this number of replicas, or with whatever number somebody else gives it.
fn web(replicas: Option<u32>) -> Response {
    let mut web = deployment("web", &[]);
    web["spec"].as_object_mut().unwrap().remove("replicas");
    if let Some(replicas) = replicas {
        web["spec"]["replicas"] = json!(replicas);
    }
    answer(vec![web])
}

#[test]
fn replicas_that_an_answer_leaves_to_an_autoscaler_stay_on_the_way_and_are_not_fought_over() {
    let live = |world: &World| world.live("Deployment", "web").unwrap()["spec"]["replicas"].clone();
    // The host may die between the two writes.
    for dies in [false, true] {
        let mut world = World::new();
        world.settle(&web(Some(3)));
        world.edit_root("metadata.generation", json!(2));
        if dies {
            world.api.fail("apply Deployment web", Fault::Refuse(no_reply()));
        }
        let run = world.pass(&web(None));
        let expected = ["call", "inspect Deployment web", "claim Deployment web", "update Deployment web"];
        assert_eq!(run.steps[..if dies { 3 } else { 4 }], expected[..if dies { 3 } else { 4 }]);
        if dies {
            world.restart();
        }
        world.settle(&web(None));
        assert_eq!(live(&world), 3, "dies: {dies}");
        world.api.edit(&reference("Deployment", "web"), "spec.replicas", json!(5));
        let run = world.pass(&web(None));
        assert!(!run.steps.iter().any(|step| step.starts_with("update")), "{:?}", run.steps);
        assert_eq!(live(&world), 5);
    }
}
