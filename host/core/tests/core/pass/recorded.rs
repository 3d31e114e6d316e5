//! What somebody writes into a status to have the host look somewhere else.

use pintle_wit::Response;
use serde_json::{Value, json};

use crate::pass::world::{World, answer, config_map, yes};

const HOSTILE: [&str; 8] = [
    "../../namespaces/kube-system/secrets",
    "a?watch=true",
    "a#b",
    "a%2f..%2fb",
    "a\r\nImpersonate-Group: system:masters",
    "..",
    "",
    "A B",
];

fn page() -> Response {
    answer(vec![config_map("page", "a")])
}

/// The world of a root in whose status somebody has written this.
fn forged(list: &str, entries: Value) -> World {
    let mut world = World::new();
    crate::pass::powers::grant_powers(&mut world.binding);
    world.settle(&page());
    world.edit_root(&format!("status.pintle.{list}"), entries);
    world.restart();
    world
}

fn entry(api_version: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "name": name})
}

#[test]
fn what_cannot_name_an_object_is_passed_over_and_said_once() {
    let long = "a".repeat(10 << 10);
    for hostile in HOSTILE.into_iter().chain([long.as_str()]) {
        let entries = [
            entry("v1", "Secret", hostile),
            entry("v1", hostile, "keys"),
            entry(&format!("{hostile}/v1"), "Secret", "keys"),
        ];
        let mut world = forged("unwatched", json!(entries));
        let run = world.pass(&page());
        assert!(!run.steps.iter().any(|step| step.starts_with("get")), "{hostile:.20?}: {:?}", run.steps);
        assert_eq!(run.done.hits.records, 3, "{hostile:.20?}");
        let said = run.events.iter().filter(|event| event.reason == "StatusEntriesIgnored").count();
        assert_eq!(said, 1, "{hostile:.20?}");
        let run = world.pass(&page());
        assert_eq!((run.done.hits.records, run.events.len()), (0, 0), "{hostile:.20?}");
        assert_eq!(world.says("Ready"), yes("Succeeded"));
    }
}

#[test]
fn entries_and_kinds_beyond_what_there_can_be_are_passed_over() {
    let many: Vec<Value> = (0..5000).map(|n| entry("v1", "Secret", &format!("s{n}"))).collect();
    let run = forged("unwatched", json!(many)).pass(&page());
    let read =
        |run: &crate::pass::world::Run| run.steps.iter().filter(|step| step.starts_with("get")).count();
    assert_eq!((read(&run), run.done.hits.records), (2048, 5000 - 2048));
    let kinds: Vec<Value> = (1..=500).map(|n| entry(&format!("v{n}"), "Secret", "a")).collect();
    let run = forged("unwatched", json!(kinds)).pass(&page());
    assert_eq!((read(&run), run.done.hits.records), (128, 500 - 128));
}
