//! Patches, evictions and stamps.

use std::time::Duration;

use pintle_core::Binding;
use pintle_wit::{Kind, Manifest, NeedKind, ObjectRef, PatchKind, Response};
use serde_json::{Value, json};

use crate::pass::{
    api::{Fault, error},
    world::{World, no},
};

/// Lets a guest see Pods, patch the replicas of Deployments, and have Pods evicted and deleted.
pub(crate) fn grant_powers(binding: &mut Binding) {
    let declared = Manifest {
        needs: ["Pod", "ConfigMap"]
            .map(|kind| NeedKind {
                api_version: "v1".into(),
                kind: kind.into(),
                indexes: vec!["data.host".into()],
            })
            .into(),
        patches: vec![PatchKind {
            api_version: "apps/v1".into(),
            kind: "Deployment".into(),
            fields: vec!["spec.replicas".into(), "metadata.annotations".into()],
        }],
        evictions: true,
        ..Manifest::default()
    };
    let granted = pintle_core::reconciler::Grants::as_declared(&declared);
    binding.grants.needs = granted.needs;
    binding.grants.patches = granted.patches;
    binding.grants.evictions = true;
    binding.grants.pod_deletions = true;
    binding.manifest.needs = declared.needs;
    binding.manifest.patches = declared.patches;
    binding.manifest.evictions = true;
    for kind in ["Pod", "ConfigMap"] {
        binding.kinds.insert(Kind::new("v1", kind), pintle_core::KindInfo { namespaced: true });
    }
}

fn world() -> World {
    let mut world = World::new();
    grant_powers(&mut world.binding);
    world
}

fn response(rest: Value) -> Response {
    let mut answer = json!({"apiVersion": "guest.pintle.dev/v1"});
    answer.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    serde_json::from_value(answer).unwrap()
}

// === Patches ===

fn patch(value: &str) -> Response {
    response(json!({"patches": [{"object": {"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "theirs", "annotations": {"a/b": value}}}}]}))
}

fn add_target(world: &mut World) -> ObjectRef {
    world.api.create(json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "theirs", "namespace": "shops", "annotations": {"other": "1"}}, "spec": {"replicas": 3}}))
}

fn annotations(world: &World, target: &ObjectRef) -> Value {
    world.api.objects[target]["metadata"]["annotations"].clone()
}

#[test]
fn a_field_that_somebody_else_has_set_is_a_conflict_and_stays_theirs() {
    let mut world = world();
    add_target(&mut world);
    let conflict = error(
        409,
        "Conflict",
        "Apply failed with 1 conflict: conflict with \"kubectl\": .metadata.annotations.a/b",
    );
    world.api.fail("patch Deployment theirs", Fault::Refuse(conflict));
    world.pass(&patch("1"));
    assert_eq!(world.says("Ready"), no("PatchConflict"));
    world.tells("Ready", &["kubectl"]);
}

#[test]
fn what_somebody_else_has_set_is_set_over_only_where_the_grant_says_so() {
    let mut world = world();
    add_target(&mut world);
    let force = |world: &mut World, value: &str| {
        world.binding.digest = value.into();
        world.pass(&patch(value));
        world.api.last_patch_forced
    };
    assert_eq!(force(&mut world, "1"), Some(false), "the first time");
    assert_eq!(force(&mut world, "2"), Some(false), "another field of the object may be theirs by now");
    world.binding.grants.patches[0].force = true;
    assert_eq!(force(&mut world, "3"), Some(true));
}

#[test]
fn a_refused_patch_does_not_stop_the_others() {
    let mut world = world();
    let target = add_target(&mut world);
    let mut answer = patch("1");
    let mut gone = answer.patches[0].clone();
    gone.object["metadata"]["name"] = "gone".into();
    answer.patches.insert(0, gone);
    world.pass(&answer);
    assert_eq!(annotations(&world, &target)["a/b"], "1");
    assert_eq!(world.says("Ready"), no("PatchTargetMissing"));
}

// === Evictions ===

fn evict(names: &[&str], one_at_a_time: bool) -> Response {
    let pods: Vec<Value> =
        names.iter().map(|name| json!({"name": name, "uid": format!("{name}-uid")})).collect();
    response(
        json!({"status": {"count": 1}, "stamps": {"at": "count"}, "evictions": {"pods": pods, "oneAtATime": one_at_a_time},
        "needs": [{"objects": {"apiVersion": "v1", "kind": "Pod", "select": {"labels": {}}, "fields": ["status"]}}]}),
    )
}

fn add_pod(world: &mut World, name: &str, ready: bool) -> ObjectRef {
    let status = if ready { "True" } else { "False" };
    world.api.create(json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "shops", "uid": format!("{name}-uid")},
        "status": {"conditions": [{"type": "Ready", "status": status}]}}))
}

fn evictions(steps: &[String]) -> Vec<&str> {
    steps.iter().filter_map(|step| step.strip_prefix("evict Pod ")).collect()
}

#[test]
fn the_status_names_the_pods_and_the_guests_word_before_the_first_goes() {
    let mut world = world();
    for name in ["a", "b"] {
        add_pod(&mut world, name, true);
    }
    let run = world.pass(&evict(&["a", "b"], false));
    let expected = ["call", "look", "call", "status", "evict Pod a", "evict Pod b"];
    assert_eq!(run.steps, expected);
    assert_eq!(run.statuses[0]["pintle"]["evicting"], json!(["a-uid", "b-uid"]));
    assert_eq!(run.statuses[0]["count"], 1);
    assert_eq!(run.done.counts.evicted, 2);
    // The guest still names them: they are not evicted twice.
    let run = world.pass(&evict(&["a", "b"], false));
    assert!(evictions(&run.steps).is_empty(), "{:?}", run.steps);
    world.restart();
    let run = world.pass(&evict(&["a", "b"], false));
    assert_eq!(run.done.counts.evicted, 0, "what is gone cannot go again");
    let run = world.pass(&response(json!({"status": {"count": 1}})));
    assert!(run.statuses.last().unwrap()["pintle"].get("evicting").is_none());
}

#[test]
fn pods_that_nobody_names_any_more_leave_the_status_also_where_its_write_had_to_wait() {
    let mut world = world();
    for name in ["a", "b"] {
        add_pod(&mut world, name, true);
    }
    world.pass(&evict(&["a", "b"], true));
    add_pod(&mut world, "c", true);
    let mut last = evict(&["b"], true);
    last.status.insert("left".into(), 1.into());
    let run = world.pass_after(1000, &last);
    assert_eq!(evictions(&run.steps), ["b"]);
    assert_eq!(run.statuses[0]["pintle"]["evicting"], json!(["a-uid", "b-uid"]));
    add_pod(&mut world, "d", true);
    let mut done = evict(&[], true);
    done.status.insert("left".into(), 1.into());
    let run = world.pass_after(100, &done);
    assert_eq!((run.statuses.len(), run.done.wake.again), (0, Some(Duration::from_millis(150))), "it waits");
    let run = world.pass_after(150, &done);
    assert_eq!(run.done.counts.guest_calls, 0, "nothing is new to the guest");
    assert!(world.status()["pintle"].get("evicting").is_none(), "{}", world.status());
    assert!(world.pass_after(1000, &done).statuses.is_empty(), "and stay away");
}

#[test]
fn nothing_is_evicted_when_the_status_could_not_be_written() {
    let mut world = world();
    add_pod(&mut world, "a", true);
    world.api.fail("status Shop shop", Fault::Refuse(error(500, "InternalError", "etcd")));
    let run = world.pass(&evict(&["a"], false));
    assert!(evictions(&run.steps).is_empty(), "{:?}", run.steps);
    assert!(run.done.wake.retry.is_some());
    assert_eq!(evictions(&world.pass(&evict(&["a"], false)).steps), ["a"], "nor is it forgotten");
}

#[test]
fn a_successor_of_the_same_name_is_left_alone() {
    let mut world = world();
    let pod = add_pod(&mut world, "a", true);
    world.api.edit(&pod, "metadata.uid", "another".into());
    let run = world.pass(&evict(&["a"], false));
    assert_eq!((run.done.counts.evicted, run.done.error), (0, None));
    assert!(world.api.objects.contains_key(&pod));
}

#[test]
fn one_at_a_time_the_next_waits_until_the_replacement_is_ready() {
    let mut world = world();
    for name in ["a", "b"] {
        add_pod(&mut world, name, true);
    }
    let over = add_pod(&mut world, "over", false);
    world.api.edit(&over, "status.phase", "Succeeded".into());
    assert_eq!(evictions(&world.pass(&evict(&["a", "b"], true)).steps), ["a"]);
    assert!(
        evictions(&world.pass_after(1000, &evict(&["b"], true)).steps).is_empty(),
        "nothing replaces it yet"
    );
    assert_eq!(world.says("Ready"), no("EvictionWaiting"));
    world.restart();
    let run = world.pass_after(1000, &evict(&["b"], true));
    assert!(evictions(&run.steps).is_empty(), "also for a host that remembers nothing");
    let new = add_pod(&mut world, "c", false);
    assert!(evictions(&world.pass_after(1000, &evict(&["b"], true)).steps).is_empty(), "it is not ready");
    world.api.edit(&new, "status", json!({"conditions": [{"type": "Ready", "status": "True"}]}));
    assert_eq!(evictions(&world.pass_after(1000, &evict(&["b"], true)).steps), ["b"]);
}

#[test]
fn one_at_a_time_does_not_wait_for_ever_for_a_replacement_that_nobody_makes() {
    let mut world = world();
    for name in ["a", "b"] {
        add_pod(&mut world, name, true);
    }
    world.pass(&evict(&["a", "b"], true));
    let mut waited = 0;
    while evictions(&world.pass_after(10_000, &evict(&["b"], true)).steps).is_empty() {
        waited += 10;
        assert!(waited <= 70, "it waits for ever");
    }
    assert_eq!(waited, 60);
}

// === Stamps ===

#[test]
fn a_stamp_moves_in_the_write_in_which_the_field_that_it_follows_changes() {
    let mut world = world();
    let say = |count: Value| {
        response(json!({"status": {"count": count, "phase": "Up"}, "stamps": {"at": "count"}}))
    };
    let none = response(json!({"status": {"phase": "Up"}, "stamps": {"at": "count"}}));
    world.pass(&none);
    assert!(world.status().get("at").is_none(), "nothing has changed yet");
    world.binding.digest = "sha256:two".into();
    let run = world.pass(&say(json!(1)));
    assert_eq!(run.statuses.len(), 1, "in the same write");
    let first = world.status()["at"].clone();
    assert_eq!(first, "1970-01-01T00:02:00Z");
    assert!(world.pass(&say(json!(1))).statuses.is_empty());
    world.restart();
    assert!(world.pass(&say(json!(1))).statuses.is_empty(), "also for a host that remembers nothing");
    world.binding.digest = "sha256:three".into();
    world.pass(&say(json!(2)));
    assert_ne!(world.status()["at"], first);
}
