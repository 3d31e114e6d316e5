//! Tests of the whole guest against a namespace in memory, which carries out its answers as the host does.

mod world;

use pintle_guest::{EvictionMode, Guest, Need, Value, json, serde_json};

use crate::ConfigMonitor;
use world::{World, condition, config_map, deployment, evicted, patched, pod, workload};

const FRONTEND: &[&str] = &["Deployment/frontend"];

#[test]
fn the_first_look_is_remembered_and_restarts_nothing() {
    let world = World::sample();
    let status = &world.root["status"];
    assert_eq!((&status["configMap"], &status["matchedPods"]), (&json!("flaskapp-config"), &json!(2)));
    assert_eq!(status["observedConfigHash"].as_str().unwrap().len(), 64);
    assert_eq!(
        status["workloads"],
        json!([{"kind": "Deployment", "name": "frontend", "uid": "uid-frontend"}])
    );
    // A stamp follows it: it must not appear before the first restart.
    assert_eq!(status.get("restartCount"), None);
}

#[test]
fn another_content_annotates_the_pod_template_once_and_says_so() {
    let mut world = World::sample();
    world.edit("Hello");
    let response = world.pass();
    assert_eq!(patched(&response), FRONTEND);
    let stamp = format!("{}.1", response.status["observedConfigHash"].as_str().unwrap());
    assert_eq!(
        response.patches[0].object["spec"],
        json!({"template": {"metadata": {"annotations": {"magalix.com/config-hash-flakapp-config-monitor": stamp}}}})
    );
    assert_eq!(response.status["restartCount"], 1);
    assert_eq!(response.stamps["lastRestartTime"], "restartCount");
    assert_eq!(response.events[0].reason, "ConfigChanged");
    assert!(response.events[0].message.contains("restarting Deployment frontend"), "{:?}", response.events);
    // The same answer follows for as long as nothing changes, but for the Event.
    let next = world.pass();
    assert_eq!((patched(&next), &next.status["restartCount"]), (patched(&response), &json!(1)));
    assert!(next.events.is_empty());
    assert_eq!(next.patches, response.patches);
}

#[test]
fn a_host_that_dies_before_it_wrote_the_status_patches_nothing_else_the_next_time() {
    let mut world = World::sample();
    world.edit("Hello");
    let before = world.root.clone();
    let died = world.pass();
    world.root = before;
    let next = world.pass();
    assert_eq!((&next.patches, &next.status), (&died.patches, &died.status));
    assert_eq!(next.status["restartCount"], 1);
}

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
fn metadata_of_the_config_map_does_not_count_and_binary_data_does() {
    let mut world = World::sample();
    world.object("ConfigMap", "flaskapp-config")["metadata"]["annotations"] = json!({"note": "x"});
    world.object("ConfigMap", "flaskapp-config")["binaryData"] = json!({});
    assert!(world.pass().patches.is_empty());
    world.object("ConfigMap", "flaskapp-config")["binaryData"] = json!({"logo": "AAAA"});
    assert_eq!(patched(&world.pass()), FRONTEND);
}

#[test]
fn a_change_back_is_a_change() {
    let mut world = World::sample();
    for (count, message) in [(1, "Hello"), (2, "Welcome to Kubernetes!")] {
        world.edit(message);
        assert_eq!(world.pass().status["restartCount"], count);
    }
}

#[test]
fn a_config_map_that_goes_restarts_nothing_until_it_comes_back_with_other_content() {
    let mut world = World::sample();
    let all = world.objects.clone();
    world.objects.retain(|object| object["kind"] != "ConfigMap");
    let response = world.pass();
    let missing = condition(&response, "ConfigMapNotFound").unwrap();
    assert!(missing.blocks_ready && missing.message.contains("flaskapp-config"), "{missing:?}");
    assert!(response.patches.is_empty() && response.events.is_empty());
    world.objects = all;
    let response = world.pass();
    assert!(response.patches.is_empty() && condition(&response, "ConfigMapNotFound").is_none());
    world.objects.retain(|object| object["kind"] != "ConfigMap");
    world.pass();
    world.edit("Hello");
    assert_eq!(patched(&world.pass()), FRONTEND);
}

#[test]
fn another_config_map_than_before_is_looked_at_for_the_first_time() {
    let mut world = World::sample();
    world.edit("Hello");
    world.pass();
    world.objects.push(config_map("other", "other"));
    world.root["spec"]["configmap"] = json!("other");
    let response = world.pass();
    assert_eq!(
        (&response.status["configMap"], &response.status["restartCount"]),
        (&json!("other"), &json!(1))
    );
    // The annotation stays as it is: taking it off, or changing it, would be a restart.
    let hash = response.status["observedConfigHash"].as_str().unwrap();
    assert_eq!(patched(&response), FRONTEND);
    assert!(!response.patches[0].object.to_string().contains(hash));
}

#[test]
fn all_labels_must_match_in_either_form_and_the_alias_names_the_config_map() {
    let mut spec = json!({"configMap": "flaskapp-config", "podSelector": {"app": "frontend", "tier": "web"}});
    let mut world = World::observing(spec.clone());
    assert_eq!(world.root["status"]["matchedPods"], 2);
    spec["podSelector"] = json!({"matchLabels": {"app": "frontend", "tier": "batch"}});
    world.root["spec"] = spec;
    assert_eq!(world.pass().status["matchedPods"], 0);
}

#[test]
fn a_selector_in_its_long_form_is_asked_for_whole() {
    let world = World::new(
        json!({"configmap": "a", "podSelector": {"tier": "web", "matchExpressions": [{"key": "app", "operator": "In", "values": ["x"]}]}}),
        Vec::new(),
    );
    let needs = serde_json::to_value(&world.call(&[]).unwrap().needs).unwrap();
    assert_eq!(
        needs[1]["objects"]["select"]["labels"],
        json!({"matchLabels": {"tier": "web"}, "matchExpressions": [{"key": "app", "operator": "In", "values": ["x"]}]})
    );
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

#[test]
fn stateful_sets_and_daemon_sets_are_restarted_jobs_never_and_the_rest_is_named() {
    let spec = json!({"configmap": "flaskapp-config", "podSelector": {"tier": "web"}});
    let mut world = World::observing(spec);
    world.objects.extend([workload("StatefulSet", "db", 1), workload("DaemonSet", "agent", 1)]);
    world.objects.extend([
        pod("db-0", "db", Some(("apps/v1", "StatefulSet", "db"))),
        pod("agent-x", "agent", Some(("apps/v1", "DaemonSet", "agent"))),
        pod("once", "job", Some(("batch/v1", "Job", "once"))),
        pod("alone", "alone", None),
        pod("rolled", "rolled", Some(("argoproj.io/v1alpha1", "Rollout", "rolled"))),
    ]);
    world.edit("Hello");
    let response = world.pass();
    assert_eq!(patched(&response), ["DaemonSet/agent", "Deployment/frontend", "StatefulSet/db"]);
    assert_eq!(
        condition(&response, "PodsSkipped").unwrap().message,
        "no Deployment, StatefulSet or DaemonSet owns alone, rolled: not restarted"
    );
}

#[test]
fn a_change_with_nothing_to_restart_is_no_restart() {
    let mut world = World::sample();
    world.objects.retain(|object| object["kind"] == "ConfigMap");
    world.edit("Hello");
    let response = world.pass();
    assert_eq!(
        response.events[0].message,
        "ConfigMap flaskapp-config has changed; there is nothing to restart"
    );
    assert_eq!(response.status.get("restartCount"), None);
    world.objects.extend(deployment("frontend", 2));
    assert!(world.pass().patches.is_empty(), "Pods that came later have the new content");
}

fn replacing(strategy: &str) -> World {
    World::observing(
        json!({"configmap": "flaskapp-config", "podSelector": {"app": "frontend"}, "strategy": strategy}),
    )
}

#[test]
fn evict_names_the_pods_of_the_change_until_they_are_gone() {
    let mut world = replacing("Evict");
    world.edit("Hello");
    let response = world.pass();
    assert_eq!(evicted(&response), ["frontend-0", "frontend-1"]);
    let evictions = response.evictions.as_ref().unwrap();
    assert!(evictions.one_at_a_time && evictions.mode == EvictionMode::Evict, "{evictions:?}");
    assert_eq!(evictions.pods[0].uid, "uid-frontend-0");
    assert!(response.patches.is_empty());
    assert_eq!(response.status["restartCount"], 1);
    world.object("Pod", "frontend-0")["metadata"]["deletionTimestamp"] = json!("2000-01-01T00:00:00Z");
    let owner = ("apps/v1", "ReplicaSet", "frontend-5d9");
    world.objects.push(pod("frontend-2", "frontend", Some(owner)));
    let response = world.pass();
    assert_eq!((evicted(&response), &response.status["restartCount"]), (vec!["frontend-1"], &json!(1)));
    assert_eq!(condition(&response, "Restarting").unwrap().message, "the Pod frontend-1 is to be replaced");
    world.objects.retain(|object| object["metadata"]["name"] != "frontend-1");
    let response = world.pass();
    assert_eq!((response.evictions.clone(), response.status.get("podsToReplace")), (None, None));
    assert_eq!(condition(&response, "Restarting").unwrap().status, false.into());
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
fn delete_takes_all_at_once() {
    let mut world = replacing("Delete");
    world.edit("Hello");
    let evictions = world.pass().evictions.unwrap();
    assert!(!evictions.one_at_a_time && evictions.mode == EvictionMode::Delete && evictions.pods.len() == 2);
}

#[test]
fn pods_that_nothing_makes_again_go_only_where_that_is_said_and_those_of_jobs_never() {
    for (unowned, expected) in
        [(false, &["frontend-0", "frontend-1"][..]), (true, &["frontend-0", "frontend-1", "alone"])]
    {
        let mut world = replacing("Evict");
        world.root["spec"]["evictUnowned"] = json!(unowned);
        world.objects.push(pod("alone", "frontend", None));
        world.objects.push(pod("once", "frontend", Some(("batch/v1", "Job", "once"))));
        world.edit("Hello");
        assert_eq!(evicted(&world.pass()), expected);
    }
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

#[test]
fn the_manifest_declares_what_the_answers_ask_for_and_patch() {
    let manifest = ConfigMonitor::manifest();
    let mut world = World::sample();
    world.edit("Hello");
    let response = world.pass();
    for need in &response.needs {
        let Need::Objects(need) = need else { unreachable!("the guest asks for no time") };
        let declared =
            |kind: &pintle_guest::NeedKind| kind.kind == need.kind && kind.api_version == need.api_version;
        assert!(manifest.needs.iter().any(declared), "{need:?}");
    }
    assert_eq!(response.needs.len(), 4);
    assert!(manifest.patches.iter().all(|kind| kind.fields == ["spec.template.metadata.annotations"]));
    assert!(manifest.evictions);
}
