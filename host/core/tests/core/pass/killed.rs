//! A host that is killed before any of its writes, or right after one whose reply it never sees, and the one that comes after it.

use pintle_wit::{Need, ObjectRef, ObjectsNeed, Request, Response, Select};
use serde_json::{Value, json};

use crate::pass::{
    powers::grant_powers,
    world::{World, yes},
};

/// More writes than any of these roots takes.
const WRITES_MAX: usize = 12;

/// What a guest that restarts Pods for a ConfigMap does with a change.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Restarts {
    ByPatch,
    ByEviction,
    OneByOne,
}

fn answer(how: Restarts, request: &Request) -> Response {
    let config = Need::Objects(ObjectsNeed {
        fields: vec!["data".into()],
        ..ObjectsNeed::named("v1", "ConfigMap", "config")
    });
    let pods = Need::Objects(ObjectsNeed {
        fields: vec!["status".into()],
        select: Select::Labels(Default::default()),
        ..ObjectsNeed::named("v1", "Pod", "any")
    });
    let shown = |need: &Need| {
        let answers = request.needs.iter().find(|answer| answer.need == *need);
        answers.map(|answer| answer.objects.clone()).unwrap_or_default()
    };
    let content = shown(&config).first().map(|config| config["data"]["k"].clone()).unwrap_or_default();
    let before = &request.object["status"];
    let is_change = before["seen"].is_string() && before["seen"] != content;
    let count = before["count"].as_i64().unwrap_or(0) + i64::from(is_change);
    let mut status = json!({"seen": content, "count": count});
    let mut rest = json!({});
    match how {
        Restarts::ByPatch if count > 0 => {
            rest["patches"] = json!([{"object": {"apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "theirs", "annotations": {"a/b": content}}}}]);
        }
        Restarts::ByPatch => {}
        Restarts::ByEviction | Restarts::OneByOne => {
            let uid = |pod: &Value| pod["metadata"]["uid"].clone();
            let left = before["left"].as_array().cloned().unwrap_or_default();
            let goes = |pod: &&Value| is_change || left.contains(&uid(pod));
            let pods = shown(&pods);
            let left: Vec<&Value> = pods.iter().filter(goes).collect();
            status["left"] = left.iter().map(|pod| uid(pod)).collect();
            let named: Vec<Value> =
                left.iter().map(|pod| json!({"name": pod["metadata"]["name"], "uid": uid(pod)})).collect();
            rest["evictions"] = json!({"pods": named, "oneAtATime": how == Restarts::OneByOne});
        }
    }
    rest["apiVersion"] = "guest.pintle.dev/v1".into();
    rest["status"] = status;
    let mut response: Response = serde_json::from_value(rest).unwrap();
    response.needs = vec![config, pods];
    response
}

fn add_pod(world: &mut World, name: &str) {
    world.api.create(json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "shops", "uid": format!("{name}-uid")},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]}}));
}

fn config() -> ObjectRef {
    crate::pass::world::reference("ConfigMap", "config")
}

/// A root that has looked, over a Deployment, a ConfigMap and two Pods.
fn world(how: Restarts) -> World {
    let mut world = World::new();
    grant_powers(&mut world.binding);
    for (kind, name) in [("Deployment", "theirs"), ("ConfigMap", "config")] {
        let api_version = if kind == "Deployment" { "apps/v1" } else { "v1" };
        world.api.create(json!({"apiVersion": api_version, "kind": kind,
            "metadata": {"name": name, "namespace": "shops"}, "data": {"k": "1"}}));
    }
    add_pod(&mut world, "a");
    add_pod(&mut world, "b");
    rest(&mut world, how);
    assert_eq!(world.status()["seen"], "1");
    world
}

/// A pass, and what others do after it: a Pod that goes is replaced. Whether anything was done.
fn pass(world: &mut World, how: Restarts) -> bool {
    let went = world.api.evicted.len();
    let run = world.pass_with(|request| Ok(answer(how, request)));
    for index in went..world.api.evicted.len() {
        add_pod(world, &format!("new-{index}"));
    }
    let writes = |step: &&String| {
        !step.starts_with("call") && !step.starts_with("look") && !step.starts_with("inspect")
    };
    run.steps.iter().any(|step| writes(&step)) || went < world.api.evicted.len()
}

fn rest(world: &mut World, how: Restarts) {
    let rests = (0..20).any(|_| !pass(world, how) && !pass(world, how));
    assert!(rests, "it does not come to rest: {}", world.status());
}

fn annotation(world: &World) -> Value {
    world.live("Deployment", "theirs").unwrap()["metadata"]["annotations"]["a/b"].clone()
}

#[test]
fn a_host_that_is_killed_at_any_write_leaves_one_that_neither_repeats_nor_forgets() {
    for how in [Restarts::ByPatch, Restarts::ByEviction, Restarts::OneByOne] {
        let mut killed = 0;
        for (writes, is_last_carried_out) in
            (0..WRITES_MAX).flat_map(|writes| [(writes, false), (writes, true)])
        {
            let at =
                format!("{how:?}, killed after {writes} writes, the next carried out: {is_last_carried_out}");
            let mut world = world(how);
            world.api.edit(&config(), "data.k", "2".into());
            let before = world.api.requests.len();
            world.api.killed_after = Some((writes, is_last_carried_out));
            for _ in 0..8 {
                pass(&mut world, how);
                if world.api.killed_after == Some((0, false)) {
                    killed += 1;
                    break;
                }
            }
            world.api.killed_after = None;
            world.restart();
            rest(&mut world, how);

            assert_eq!((&world.status()["seen"], &world.status()["count"]), (&"2".into(), &1.into()), "{at}");
            assert_eq!(world.says("Ready"), yes("Succeeded"), "{at}");
            let by_patch = how == Restarts::ByPatch;
            assert_eq!(annotation(&world), if by_patch { json!("2") } else { Value::Null }, "{at}");
            let gone: &[&str] = if by_patch { &[] } else { &["a-uid", "b-uid"] };
            assert_eq!(world.api.evicted, gone, "{at}: {:?}", &world.api.requests[before..]);
            assert!(world.status()["pintle"].get("evicting").is_none(), "{at}: {}", world.status());
        }
        assert!(killed >= 4, "{how:?}: {killed} are too few to have met every write");
    }
}
