//! A host on the simulator, with something in its way.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU32, Ordering},
};

use kit::modules;
use pintle_engine::CallLimits;
use pintle_simulation::{Plan, Seam, Sent, Setting, Simulation, run::Simulate, scenario::ModuleFile};
use serde_json::Value;

use crate::{objects, repository};

fn simulation<'a>(setting: &'a Setting, text: &str) -> Simulation<'a> {
    Simulation::new(setting, "scenarios/in-the-way.yaml", text, &modules::resolve).unwrap()
}

/// Runs a scenario with this between the host and the API server. Returns what did not hold.
fn run(text: &str, seam: fn() -> Arc<dyn Seam>) -> Option<String> {
    let setting = Setting::new(&[], &[], &[], &[]).unwrap();
    let outcome = simulation(&setting, text).with_seams(Arc::new(seam)).reference(0).unwrap();
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

/// A cluster with the guest of WebServers.
fn web_servers() -> Setting {
    let read = |path: &str| objects(&repository().join(path));
    let module = modules::resolve(&ModuleFile::of_guest("webserver")).unwrap();
    let modules = [("webserver-0.1.0".to_owned(), module)];
    let reconciler = read("deploy/samples/reconciler-webserver.yaml");
    Setting::new(&read("guest-webserver/crd.yaml"), &modules, &[], &reconciler).unwrap()
}

/// A scenario in which these WebServers are made and are ready in the end.
fn ready(names: &[&str]) -> String {
    let root = |name: &&str| {
        format!(
            "  - {{apiVersion: my.domain/v1, kind: WebServer, metadata: {{name: {name}}}, spec: {{image: \"nginx:1.23.1\", replicas: 1, nodePort: 0}}}}\n"
        )
    };
    let end =
        |name: &&str| format!("      - {{object: my.domain/v1/WebServer/{name}, condition: Ready=True}}\n");
    let (roots, ends): (String, String) = (names.iter().map(root).collect(), names.iter().map(end).collect());
    format!("about: WebServers.\nobjects:\n{roots}steps:\n  - name: they are ready\n    expect:\n{ends}")
}

/// How many passes over the unlucky root panic.
const PANICS: u32 = 3;

/// Panics in the midst of passes over the unlucky root, where a guest has just answered.
struct Unlucky(Arc<AtomicU32>);

impl Seam for Unlucky {
    fn answer(&self, request: &Value, _: &mut Value) {
        let is_it = request["object"]["metadata"]["name"] == "unlucky";
        if is_it && self.0.fetch_add(1, Ordering::Relaxed) < PANICS {
            panic!("a mistake of the host's own, for the test");
        }
    }
}

#[test]
fn a_panic_in_a_pass_is_that_roots_failure_and_nothing_elses() {
    let setting = web_servers();
    // The unlucky one is made first, so that its neighbour waits behind it if anybody does.
    let text = ready(&["unlucky", "neighbour"]);
    let healthy = simulation(&setting, &text).reference(0).unwrap();
    assert!(healthy.broken.is_none(), "{:?}", healthy.broken);
    let calls = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&calls);
    let unlucky = simulation(&setting, &text);
    let unlucky = unlucky.with_seams(Arc::new(move || Arc::new(Unlucky(Arc::clone(&count)))));
    let outcome = unlucky.outcome(0, &Plan::default(), Some(&healthy)).unwrap();
    // Its end, and how often each object was made, are those of the run without a panic.
    assert!(outcome.broken.is_none(), "{}", outcome.broken.unwrap());
    assert!(calls.load(Ordering::Relaxed) > PANICS, "nobody panicked");
}

/// Adds so many annotations to the first child, and counts the calls that were granted too little for them.
struct Large(Arc<AtomicU32>);

/// Of so many annotations values are made that take more than half a MiB, and less than an object may have.
const ANNOTATIONS: usize = 4000;

impl Seam for Large {
    fn limits(&self, limits: &mut CallLimits) {
        let needed = ANNOTATIONS * 192;
        self.0.fetch_add(u32::from(limits.response.parsed_bytes < needed), Ordering::Relaxed);
    }

    fn answer(&self, _: &Value, answer: &mut Value) {
        if let Some(child) = answer["children"].get_mut(0) {
            let many = (0..ANNOTATIONS).map(|number| (format!("example.com/k{number}"), "".into()));
            child["object"]["metadata"]["annotations"] = many.collect::<serde_json::Map<_, _>>().into();
        }
    }
}

#[test]
fn an_answer_that_needs_more_than_its_call_was_granted_is_asked_for_once_more_and_carried_out() {
    let short = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&short);
    let setting = web_servers();
    let simulation = simulation(&setting, &ready(&["large"]));
    let simulation = simulation.with_seams(Arc::new(move || Arc::new(Large(Arc::clone(&count)))));
    let reference = simulation.reference(0).unwrap();
    assert!(reference.broken.is_none(), "{}", reference.broken.unwrap());
    // A host asks its guests three times of each question here; it learns with the first, and is told the same in each run of it.
    let short = short.load(Ordering::Relaxed);
    assert!((1..=6).contains(&short), "{short} calls");
    let outcome = simulation.outcome(1, &Plan::default(), Some(&reference)).unwrap();
    assert!(outcome.broken.is_none(), "{}", outcome.broken.unwrap());
}
