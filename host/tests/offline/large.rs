//! A guest whose answer takes more memory than its first call is granted: it is called again, and nobody notices.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use kit::modules;
use pintle_engine::CallLimits;
use pintle_offline::documents;
use pintle_simulation::{Plan, Seam, Setting, Simulation, run::Simulate, scenario::ModuleFile};
use serde_json::Value;

const SCENARIO: &str = r#"
about: A root has a child of which many values are made.
objects:
  - {apiVersion: my.domain/v1, kind: WebServer, metadata: {name: large}, spec: {image: "nginx:1.23.1", replicas: 1, nodePort: 0}}
steps:
  - name: it is ready, and its children are there
    expect:
      - object: {apiVersion: my.domain/v1, kind: WebServer, name: large}
        condition: {type: Ready, status: "True"}
"#;

/// Adds so many annotations to the first child, and counts the calls that were granted too little for them.
struct Large {
    calls: Arc<AtomicU32>,
    short: Arc<AtomicU32>,
}

/// Of so many annotations values are made that take more than half a MiB, and less than an object may have.
const ANNOTATIONS: usize = 4000;

impl Seam for Large {
    fn limits(&self, limits: &mut CallLimits) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let needed = ANNOTATIONS * 192;
        self.short.fetch_add(u32::from(limits.response.parsed_bytes < needed), Ordering::Relaxed);
    }

    fn answer(&self, _: &Value, answer: &mut Value) {
        if let Some(child) = answer["children"].get_mut(0) {
            let many = (0..ANNOTATIONS).map(|number| (format!("example.com/k{number}"), "".into()));
            child["object"]["metadata"]["annotations"] = many.collect::<serde_json::Map<_, _>>().into();
        }
    }
}

fn objects(path: &str) -> Vec<Value> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)).unwrap();
    documents::parse(path, &text).unwrap().into_iter().map(|document| document.value).collect()
}

#[test]
fn an_answer_that_needs_more_than_its_call_was_granted_is_asked_for_once_more_and_carried_out() {
    let module = ModuleFile::of_guest("webserver");
    let module = ("webserver-0.1.0".to_owned(), modules::resolve(&module).unwrap());
    let reconciler = objects("deploy/samples/reconciler-webserver.yaml");
    let setting = Setting::new(&objects("guest-webserver/crd.yaml"), &[module], &[], &reconciler).unwrap();
    let (calls, short) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (counted, counted_short) = (Arc::clone(&calls), Arc::clone(&short));
    let simulation = Simulation::new(&setting, "large.yaml", SCENARIO, &modules::resolve).unwrap();
    let simulation = simulation.with_seams(Arc::new(move || {
        Arc::new(Large { calls: Arc::clone(&counted), short: Arc::clone(&counted_short) })
    }));
    let reference = simulation.reference(0).unwrap();
    assert!(reference.broken.is_none(), "{}", reference.broken.unwrap());
    let (calls, short) = (calls.load(Ordering::Relaxed), short.load(Ordering::Relaxed));
    // A host asks its guests three times of each question here; it learns with the first, and is told the same in each run of it.
    assert!((1..=6).contains(&short) && calls > 100, "{short} of {calls} calls");
    let outcome = simulation.outcome(1, &Plan::default(), Some(&reference)).unwrap();
    assert!(outcome.broken.is_none(), "{}", outcome.broken.unwrap());
}
