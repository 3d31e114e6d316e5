//! The control loop in a host on the simulator, with something in its way.

use std::sync::{Arc, Mutex};

use kit::modules;
use pintle_simulation::{Seam, Sent, Setting, Simulation};
use serde_json::Value;

/// Runs a scenario with this between the host and the API server. Returns what did not hold.
fn run(text: &str, seam: fn() -> Arc<dyn Seam>) -> Option<String> {
    let setting = Setting::new(&[], &[], &[], &[]).unwrap();
    let simulation = Simulation::new(&setting, "scenarios/in-the-way.yaml", text, &modules::resolve).unwrap();
    let outcome = simulation.with_seams(Arc::new(seam)).reference(0).unwrap();
    let broken = outcome.broken.as_ref()?;
    Some(format!("{broken}\n{}", outcome.last_steps(20)))
}

const BEGIN: &str = r#"
about: A Reconciler beside something that is broken.
kinds: {Toy$RUN: hostStatus}
modules:
  toy-$RUN:
    reconciles: Toy$RUN
    children: [v1/ConfigMap]
    manifest: {needs: [{apiVersion: broken.example.com/v1, kind: Thing}]}
    answers: &answers {children: [{id: config, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: made}, data: {by: guest}}}]}
  wider-$RUN:
    reconciles: Toy$RUN
    children: [v1/ConfigMap, v1/Service]
    answers: *answers
objects:
  - &reconciler
    apiVersion: pintle.dev/v1alpha1
    kind: Reconciler
    metadata: {name: toy-$RUN}
    spec: &spec
      for: {apiVersion: acceptance.pintle.dev/v1, kind: Toy$RUN}
      module: toy-$RUN
      grants: {children: [{apiVersion: v1, kinds: [ConfigMap]}]}
  - {apiVersion: acceptance.pintle.dev/v1, kind: Toy$RUN, metadata: {name: root}, spec: {}}
steps:
  - name: it works
    expect:
      - object: &root {apiVersion: acceptance.pintle.dev/v1, kind: Toy$RUN, name: root}
        condition: {type: Ready, status: "True"}
"#;

const HEALS: &str = r#"
  - name: what others change is put right
    edit-child:
      object: {apiVersion: v1, kind: ConfigMap, name: made}
      patch: {data: {by: somebody}}
    expect:
      - object: {apiVersion: v1, kind: ConfigMap, name: made}
        matches: {data: {by: guest}}
"#;

const TAKEN_AWAY: &str = r#"
  - name: what is granted no longer is refused, and the module waits
    patch:
      object: {apiVersion: pintle.dev/v1alpha1, kind: Reconciler, name: toy-$RUN}
      patch: {spec: {module: wider-$RUN, grants: {children: []}}}
    expect:
      - object: *root
        condition: {type: Ready, status: "False", reason: KindNotGranted}
      - object: {apiVersion: v1, kind: ConfigMap, name: made}
        matches: {data: {by: guest}}
  - name: and is accepted when it is granted again
    patch:
      object: {apiVersion: pintle.dev/v1alpha1, kind: Reconciler, name: toy-$RUN}
      patch: {spec: {grants: {children: [{apiVersion: v1, kinds: [ConfigMap]}]}}}
    expect:
      - object: *root
        condition: {type: Ready, status: "True"}
"#;

/// An API group that does not say what it serves.
struct BrokenGroup;

impl Seam for BrokenGroup {
    fn reply(&self, request: &Sent, code: &mut u16, body: &mut Value) {
        if request.path.starts_with("/apis/broken.example.com") {
            *code = 503;
            *body = serde_json::json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 503,
                "reason": "ServiceUnavailable", "message": "the group is broken"});
        }
    }
}

#[test]
fn a_broken_api_group_stops_neither_a_repair_nor_a_grant_that_is_taken_away() {
    let text = format!("{BEGIN}{HEALS}{TAKEN_AWAY}");
    assert_eq!(run(&text, || Arc::new(BrokenGroup)), None);
}

/// The kinds of children of another module cannot be written down.
struct Unwritten;

impl Seam for Unwritten {
    fn request(&self, request: &mut Sent) -> Option<Value> {
        let kinds = request.body.pointer("/status/childKinds").and_then(Value::as_array);
        if kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"] == "Service")) {
            request.path = "/apis/nowhere.example.com/v1/things/a".into();
        }
        None
    }
}

#[test]
fn a_grant_that_is_taken_away_is_gone_although_the_new_modules_kinds_cannot_be_written_down() {
    // It is tried again each second until somebody takes the wish back.
    let back = r#"
  - name: the module that works is wanted again
    swap: {reconciler: toy-$RUN, module: toy-$RUN}
    expect: [{object: *root, condition: {type: Ready, status: "True"}}]
"#;
    let text = format!("{BEGIN}{TAKEN_AWAY}{HEALS}{back}");
    assert_eq!(run(&text, || Arc::new(Unwritten)), None);
}

/// What the control loop is told of Reconcilers comes only together with their next event: it looks once for both.
#[derive(Default)]
struct InOneLook(Mutex<bool>);

impl Seam for InOneLook {
    fn event(&self, path: &str, event: &mut Value) -> bool {
        // Of the one that goes it is told nothing: its place is taken when it hears of it.
        let mut hidden = self.0.lock().unwrap();
        let is_hidden = path.contains("/reconcilers") && event["type"] == "DELETED" && !*hidden;
        *hidden |= is_hidden;
        if path.contains("/reconcilers") && event["type"] == "ADDED" && *hidden {
            event["type"] = "MODIFIED".into();
        }
        !is_hidden
    }
}

#[test]
fn a_reconciler_that_was_made_again_between_two_looks_has_the_grants_of_the_new_one() {
    let again = r#"
  - name: it is deleted
    delete: {object: {apiVersion: pintle.dev/v1alpha1, kind: Reconciler, name: toy-$RUN}}
  - name: and made again with fewer grants
    apply: [{<<: *reconciler, spec: {<<: *spec, grants: {children: []}}}]
    expect:
      - object: *root
        condition: {type: Ready, status: "False", reason: KindNotGranted}
"#;
    let text = format!("{BEGIN}{again}");
    assert_eq!(run(&text, || Arc::new(InOneLook::default())), None);
}
