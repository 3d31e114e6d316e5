//! A mistake of the host's own in a pass over one root: what becomes of it, and of everybody else.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use kit::modules;
use pintle_offline::documents;
use pintle_simulation::{Plan, Seam, Setting, Simulation, run::Simulate, scenario::ModuleFile};
use serde_json::Value;

/// How many passes over the unlucky root panic.
const PANICS: u32 = 3;

/// The unlucky one is made first, so that its neighbour waits behind it if anybody does.
const SCENARIO: &str = r#"
about: One root is unlucky, and its neighbour is not concerned.
objects:
  - {apiVersion: my.domain/v1, kind: WebServer, metadata: {name: unlucky}, spec: {image: "nginx:1.23.1", replicas: 1, nodePort: 0}}
  - {apiVersion: my.domain/v1, kind: WebServer, metadata: {name: neighbour}, spec: {image: "nginx:1.23.1", replicas: 1, nodePort: 0}}
steps:
  - name: both are ready in the end
    expect:
      - object: {apiVersion: my.domain/v1, kind: WebServer, name: neighbour}
        condition: {type: Ready, status: "True"}
      - object: {apiVersion: my.domain/v1, kind: WebServer, name: unlucky}
        condition: {type: Ready, status: "True"}
"#;

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

fn objects(path: &str) -> Vec<Value> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)).unwrap();
    documents::parse(path, &text).unwrap().into_iter().map(|document| document.value).collect()
}

#[test]
fn a_panic_in_a_pass_is_that_roots_failure_and_nothing_elses() {
    let module = ModuleFile::of_guest("webserver");
    let module = ("webserver-0.1.0".to_owned(), modules::resolve(&module).unwrap());
    let reconciler = objects("deploy/samples/reconciler-webserver.yaml");
    let setting = Setting::new(&objects("guest-webserver/crd.yaml"), &[module], &[], &reconciler).unwrap();
    let healthy = Simulation::new(&setting, "panic.yaml", SCENARIO, &modules::resolve).unwrap();
    let healthy = healthy.reference(0).unwrap();
    assert!(healthy.broken.is_none(), "{:?}", healthy.broken);

    let calls = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&calls);
    let unlucky = Simulation::new(&setting, "panic.yaml", SCENARIO, &modules::resolve).unwrap();
    let unlucky = unlucky.with_seams(Arc::new(move || Arc::new(Unlucky(Arc::clone(&count)))));
    let outcome = unlucky.outcome(0, &Plan::default(), Some(&healthy)).unwrap();
    // Its end, and how often each object was made, are those of the run without a panic.
    assert!(outcome.broken.is_none(), "{}", outcome.broken.unwrap());
    assert!(calls.load(Ordering::Relaxed) > PANICS, "nobody panicked");
}
