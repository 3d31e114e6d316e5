//! What follows from what: the whole guest against a namespace in memory, which carries out its answers as the host does.

mod world;

use pintle_guest::{Value, json};

use world::{World, condition, deployment, evicted, patched, pod};

const FRONTEND: &[&str] = &["Deployment/frontend"];

#[test]
fn restarting_ends_when_the_rollout_that_the_patch_began_is_complete() {
    let mut world = World::sample();
    let behind = world.object("Deployment", "frontend").clone();
    world.edit("Hello");
    let began = world.pass();
    assert_eq!(
        condition(&began, "Restarting").unwrap().message,
        "waiting for Deployment frontend to roll out"
    );
    // What is seen is older than the patch: an old rollout that is complete.
    let now = std::mem::replace(world.object("Deployment", "frontend"), behind);
    assert_eq!(condition(&world.pass(), "Restarting").unwrap().status, true.into());
    *world.object("Deployment", "frontend") = now;
    assert_eq!(condition(&world.pass(), "Restarting").unwrap().status, true.into());
    world.object("Deployment", "frontend")["status"]["observedGeneration"] = json!(2);
    assert_eq!(condition(&world.pass(), "Restarting").unwrap().status, false.into());
    // A later rollout is somebody else's.
    world.object("Deployment", "frontend")["metadata"]["generation"] = json!(3);
    let later = world.pass();
    assert_eq!(condition(&later, "Restarting").unwrap().status, false.into());
    assert_eq!(patched(&later), FRONTEND);
}

/// The pod template's annotation, as it is in the world.
fn annotation(world: &mut World) -> String {
    let template = &world.object("Deployment", "frontend")["spec"]["template"];
    let annotations = &template["metadata"]["annotations"];
    annotations["magalix.com/config-hash-flakapp-config-monitor"].as_str().unwrap_or_default().to_owned()
}

/// Another template for the Deployment, as an update makes it.
fn set_template(world: &mut World, template: Value) {
    let deployment = world.object("Deployment", "frontend");
    let generation = deployment["metadata"]["generation"].as_i64().unwrap() + 1;
    deployment["spec"]["template"] = template;
    deployment["metadata"]["generation"] = generation.into();
    deployment["status"]["observedGeneration"] = generation.into();
}

/// A restart for other content that is complete, and the template that it led to.
fn restarted(world: &mut World, content: &str) -> Value {
    world.edit(content);
    world.pass();
    let deployment = world.object("Deployment", "frontend");
    deployment["status"]["observedGeneration"] = deployment["metadata"]["generation"].clone();
    let template = deployment["spec"]["template"].clone();
    let response = world.pass();
    assert_eq!(condition(&response, "Restarting").unwrap().status, false.into());
    template
}

#[test]
fn what_somebody_rolled_back_is_not_rolled_forward_until_the_next_change() {
    let mut world = World::sample();
    let first = restarted(&mut world, "Hello");
    restarted(&mut world, "Hello again");
    for back_to in [first, json!({})] {
        set_template(&mut world, back_to);
        let there = annotation(&mut world);
        for _ in 0..2 {
            let response = world.pass();
            assert_eq!(annotation(&mut world), there, "what is there stays");
            let made_ours = if there.is_empty() { &[][..] } else { FRONTEND };
            assert_eq!(patched(&response), made_ours, "and is ours where it is ours to have");
            assert_eq!(response.status["restartCount"], 2);
            assert_eq!(condition(&response, "Restarting").unwrap().status, false.into());
        }
    }
    world.edit("Hello once more");
    assert_eq!(patched(&world.pass()), FRONTEND);
    assert!(annotation(&mut world).ends_with(".3"), "counted on");
}

#[test]
fn a_restart_that_somebody_rolls_back_while_it_is_under_way_is_over() {
    let mut world = World::sample();
    let good = restarted(&mut world, "Hello");
    let behind = world.object("Deployment", "frontend").clone();
    world.edit("a content that no Pod starts with");
    for _ in 0..2 {
        let response = world.pass();
        assert_eq!(condition(&response, "Restarting").unwrap().status, true.into());
    }
    // What is seen may be as it was before the patch.
    let now = std::mem::replace(world.object("Deployment", "frontend"), behind);
    assert_eq!(condition(&world.pass(), "Restarting").unwrap().status, true.into());
    *world.object("Deployment", "frontend") = now;
    set_template(&mut world, good);
    let there = annotation(&mut world);
    let response = world.pass();
    assert_eq!(condition(&response, "Restarting").unwrap().status, false.into());
    assert_eq!(annotation(&mut world), there);
}

#[test]
fn content_that_changed_back_while_no_host_ran_restarts_what_a_dying_host_had_restarted() {
    let mut world = World::sample();
    let good = restarted(&mut world, "Hello");
    world.edit("Hello again");
    let before = world.root.clone();
    world.pass();
    // The host died before it wrote the status. Pods were restarted with the second content, and the first is back.
    world.root = before;
    world.edit("Hello");
    let response = world.pass();
    assert_eq!((&response.status["restartCount"], response.events.len()), (&json!(2), 1));
    assert!(annotation(&mut world).ends_with(".2"));
    assert_ne!(
        world.object("Deployment", "frontend")["spec"]["template"],
        good,
        "another template, so new Pods"
    );
    let next = world.pass();
    assert_eq!((&next.status["restartCount"], &next.patches), (&json!(2), &response.patches), "once");
}

#[test]
fn a_host_that_dies_whenever_it_has_patched_restarts_for_each_content_once() {
    let mut world = World::sample();
    restarted(&mut world, "Hello");
    world.edit("Hello again");
    let before = world.root.clone();
    world.pass();
    for _ in 0..3 {
        let there = annotation(&mut world);
        world.root = before.clone();
        world.pass();
        assert_eq!(annotation(&mut world), there, "a patch that changes nothing");
    }
    // The same where the content has changed back meanwhile.
    world.root = before.clone();
    world.edit("Hello");
    world.pass();
    let there = annotation(&mut world);
    world.root = before;
    world.pass();
    assert_eq!(annotation(&mut world), there);
}

#[test]
fn a_successor_of_the_same_name_restarts_nothing_for_what_its_predecessor_left() {
    let mut world = World::sample();
    restarted(&mut world, "Hello");
    let there = annotation(&mut world);
    world.root["status"] = Value::Null;
    for _ in 0..2 {
        let response = world.pass();
        assert_eq!((annotation(&mut world), response.status.get("restartCount")), (there.clone(), None));
    }
    world.edit("Hello again");
    world.pass();
    assert!(annotation(&mut world).ends_with(".2"));
}

#[test]
fn what_came_after_the_change_is_left_alone() {
    let mut world = World::sample();
    world.edit("Hello");
    world.pass();
    let mut late = deployment("late", 1);
    late[2]["metadata"]["labels"]["app"] = json!("frontend");
    world.objects.extend(late);
    assert_eq!(patched(&world.pass()), FRONTEND);
    // A Deployment that was made anew has Pods with the new content.
    world.object("Deployment", "frontend")["metadata"]["uid"] = json!("another");
    world.object("Deployment", "frontend")["spec"]["template"] = json!({});
    world.object("ReplicaSet", "frontend-5d9")["metadata"]["ownerReferences"][0]["uid"] = json!("another");
    assert!(world.pass().patches.is_empty());
}

fn replacing(strategy: &str) -> World {
    World::observing(
        json!({"configmap": "flaskapp-config", "podSelector": {"app": "frontend"}, "strategy": strategy}),
    )
}

#[test]
fn a_change_in_the_midst_of_it_replaces_the_replacements_too() {
    let mut world = replacing("Evict");
    world.edit("Hello");
    world.pass();
    world.objects.retain(|object| object["metadata"]["name"] != "frontend-0");
    world.objects.push(pod("frontend-2", "frontend", Some(("apps/v1", "ReplicaSet", "frontend-5d9"))));
    world.edit("Hello again");
    assert_eq!(evicted(&world.pass()), ["frontend-1", "frontend-2"]);
}

#[test]
fn two_monitors_have_an_annotation_each_however_long_their_names() {
    let annotation = |name: &str| {
        let mut world = World::sample();
        world.root["metadata"]["name"] = json!(name);
        world.edit("Hello");
        let patch = world.pass().patches.remove(0).object;
        patch["spec"]["template"]["metadata"]["annotations"]
            .as_object()
            .unwrap()
            .keys()
            .next()
            .unwrap()
            .clone()
    };
    let (a, b) = (format!("{}-a", "long".repeat(40)), format!("{}-b", "long".repeat(40)));
    let all = [annotation("a"), annotation("b"), annotation(&a), annotation(&b)];
    for (index, one) in all.iter().enumerate() {
        assert!(!all[..index].contains(one), "{all:?}");
        assert!(one.split_once('/').unwrap().1.len() <= 63, "{one}");
    }
}

#[test]
fn what_slipped_past_the_crd_is_refused_with_its_path() {
    let path = |spec: Value| World::failure(spec).path.unwrap_or_default();
    let selecting = |selector: Value| path(json!({"configmap": "a", "podSelector": selector}));
    assert_eq!(path(json!({"podSelector": {"app": "a"}})), "spec.configmap");
    assert_eq!(path(json!({"configmap": "", "podSelector": {"app": "a"}})), "spec.configmap");
    assert_eq!(
        path(json!({"configmap": "a", "configMap": "b", "podSelector": {"app": "a"}})),
        "spec.configmap"
    );
    assert_eq!(path(json!({"configmap": "a"})), "spec.podSelector");
    assert_eq!(selecting(json!({})), "spec.podSelector");
    assert_eq!(selecting(json!({"matchLabels": {}})), "spec.podSelector");
    assert_eq!(selecting(json!({"app": 1})), "spec.podSelector[\"app\"]");
    assert_eq!(selecting(json!({"matchlabels": {"app": "a"}})), "spec.podSelector[\"matchlabels\"]");
    assert_eq!(
        selecting(json!({"app": "a", "matchLabels": {"app": "b"}})),
        "spec.podSelector.matchLabels[\"app\"]"
    );
    let expression = |expression: Value| selecting(json!({"matchExpressions": [expression]}));
    assert_eq!(
        expression(json!({"key": "a", "operator": "is"})),
        "spec.podSelector.matchExpressions[0].operator"
    );
    assert_eq!(
        expression(json!({"key": "a", "operator": "In"})),
        "spec.podSelector.matchExpressions[0].values"
    );
    assert_eq!(expression(json!({"operator": "Exists"})), "spec.podSelector.matchExpressions[0].key");
}
