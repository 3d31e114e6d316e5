//! Tests of loading modules, with a whole host on an API server in memory and compilers that are counted.

use std::{collections::BTreeMap, sync::Mutex};

use pintle_api as api;
use pintle_engine::{
    Engine, EngineConfig, Job, Meter, Precompiler,
    fixtures::{self, views::Outcome},
};
use pintle_modules::{
    Budget, Compilers, Report,
    child::{Ended, Limits},
};
use pintle_runtime::Spawner;
use pintle_simulator::{Act, ApiServer, Cascade, Options};
use serde_json::{Value, json};
use tokio::{sync::Notify, task::JoinHandle};

use super::*;
use crate::{Host, RootLimits, metrics::Metrics, server::Readiness};

fn engine() -> Engine {
    Engine::new(EngineConfig::new(Meter::Fuel, || Duration::ZERO)).expect("an engine")
}

/// The bytes of a module of this name.
fn bytes(name: &str) -> Vec<u8> {
    let manifest = fixtures::manifest(name, "x/v1", "Toy", &[]);
    fixtures::answers(&manifest, r#"{"apiVersion":"guest.pintle.dev/v1"}"#)
}

fn module(name: &str) -> Module {
    engine().load(&bytes(name), None).expect("a module")
}

/// A module that is loaded.
fn progress() -> Progress {
    let module = module("toy");
    let guest = supported((module.guest(), module.views())).expect("this host can run it");
    Progress::Loaded(module, guest)
}

fn loaded(at: u64) -> Load {
    let progress = progress();
    Load { used_at: Duration::from_secs(at), ..Load::at("u", progress) }
}

/// How far each load is, in a letter.
fn letters(loads: &[Load]) -> String {
    loads
        .iter()
        .map(|load| match load.progress {
            Progress::Loaded(..) => 'L',
            Progress::Checked(Some(_)) => 'C',
            Progress::Checked(None) => 'c',
            _ => '?',
        })
        .collect()
}

/// What a host writes about a module is what its guest reconciles, or else which views it serves.
#[test]
fn the_manifest_of_a_module_is_its_guests_or_else_that_of_its_views() {
    let engine = engine();
    let facts = |bytes: &[u8]| Facts::of(&engine.load(bytes, None).expect("a module"));
    let (guest, views) = (fixtures::manifest("toy", "x/v1", "Toy", &[]), fixtures::views::manifest("toy"));
    let both = facts(&fixtures::views::does_both(&guest, "{}", &views, "{}", "{}"));
    assert_eq!(both.manifest.expect("a manifest")["reconciles"]["kind"], "Toy");
    assert_eq!(both.interfaces, ["pintle:guest/guest@0.1.0", "pintle:guest/views@0.1.0"]);
    let views = facts(&fixtures::views::serves(&views, Outcome::Trap, Outcome::Trap));
    assert_eq!(views.manifest.expect("a manifest")["views"][0]["name"], "things");
    assert_eq!(views.interfaces, ["pintle:guest/views@0.1.0"]);
}

#[test]
fn a_module_whose_views_have_a_config_that_this_host_cannot_check_is_refused() {
    let schema = r#"{"configSchema":{"$ref":"https://example.com/schema"},"#;
    let manifest = fixtures::views::manifest("toy").replacen('{', schema, 1);
    let bytes = fixtures::views::serves(&manifest, Outcome::Trap, Outcome::Trap);
    let module = engine().load(&bytes, None).expect("a module");
    let failure = supported((module.guest(), module.views())).err().expect("it is refused");
    assert_eq!(failure.reason, reasons::CONFIG_SCHEMA_INVALID);
}

#[test]
fn only_what_is_used_and_the_last_that_was_stay_compiled() {
    let needs = [Need::Loaded, Need::Checked, Need::Verified, Need::Checked, Need::Verified, Need::Loaded];
    let mut loads: Vec<Load> = [9, 1, 2, 7, 8, 3].map(loaded).into();
    let gone = let_go(loads.iter_mut().zip(needs), Duration::from_secs(10));
    assert_eq!((letters(&loads).as_str(), gone.len()), ("LCcLLL", 2));
    assert_eq!(loads[5].used_at, Duration::from_secs(10), "what is used now was used last");
    // What its status says by now need not be remembered.
    let gone = let_go(loads.iter_mut().map(|load| (load, Need::Verified)), Duration::from_secs(11));
    assert_eq!((letters(&loads).as_str(), gone.len()), ("LccccL", 2));
}

#[test]
fn a_module_is_loaded_again_where_more_is_needed_than_was_kept() {
    let facts = || Some(Arc::new(Facts::of(&module("toy"))));
    let due = |progress: Progress, need| {
        Load::is_due(Some(&Load::at("u", progress)), "u", need, Duration::from_secs(5))
    };
    for (facts, need, expected) in [
        (facts(), Need::Loaded, true),
        (facts(), Need::Checked, false),
        (facts(), Need::Verified, false),
        (None, Need::Loaded, true),
        (None, Need::Checked, true),
        (None, Need::Verified, false),
    ] {
        assert_eq!(due(Progress::Checked(facts), need), expected, "{need:?}");
    }
    assert!(!due(progress(), Need::Loaded));
    assert!(!due(Progress::Refused(Failure::default()), Need::Loaded));
    let failed = |at| Progress::NotYet(Failure::default(), Duration::from_secs(at));
    assert!(due(failed(5), Need::Checked) && !due(failed(6), Need::Checked));
    assert!(Load::is_due(Some(&loaded(0)), "another", Need::Verified, Duration::ZERO));
}

/// A cluster in memory with a host whose compilers are asked in this process, and counted.
struct Cluster {
    server: ApiServer,
    engine: Engine,
    /// How often each module was compiled.
    compiled: Arc<Mutex<BTreeMap<Digest, u32>>>,
    /// How compilers end of modules that are not just compiled.
    ends: Arc<Mutex<BTreeMap<Digest, Vec<Ended>>>>,
    root_limits: RootLimits,
}

/// A host that runs.
struct Running {
    task: JoinHandle<anyhow::Result<()>>,
    stop: Arc<Notify>,
    metrics: Arc<Metrics>,
}

impl Cluster {
    fn new() -> Self {
        let server = ApiServer::new(Options::default());
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": api::NAMESPACE}});
        for object in api::crds().into_iter().chain([namespace]) {
            server.act("test", &Act::Create(object)).expect("it is created");
        }
        let engine = Engine::new(EngineConfig::new(Meter::Deadline, clock::monotonic)).expect("an engine");
        let root_limits = RootLimits::default();
        Self { server, engine, compiled: Arc::default(), ends: Arc::default(), root_limits }
    }

    fn create(&self, object: Value) {
        self.server.act("test", &Act::Create(object)).expect("it is created");
    }

    /// Pushes a module, whose first compilers end like this.
    fn push(&self, name: &str, ends: Vec<Ended>) -> Digest {
        let bytes = bytes(name);
        let digest = Digest::of(&bytes);
        self.ends.lock().unwrap().insert(digest, ends);
        self.push_bytes(name, &bytes);
        digest
    }

    fn push_bytes(&self, name: &str, bytes: &[u8]) {
        for object in pintle_api::module_objects(name, bytes, &Digest::of(bytes).to_string()) {
            self.create(object);
        }
    }

    fn start(&self) -> Running {
        let metrics = Arc::new(Metrics::default());
        let elsewhere = Precompiler::new(&self.engine.target()).expect("a compiler");
        let (compiled, ends) = (Arc::clone(&self.compiled), Arc::clone(&self.ends));
        let run = move |job: &Job<'_>, _: &Limits| {
            *compiled.lock().unwrap().entry(job.digest).or_default() += 1;
            let end = ends.lock().unwrap().get_mut(&job.digest).and_then(Vec::pop);
            end.unwrap_or_else(|| Ended::Made(elsewhere.precompile(job.bytes).expect("it compiles")))
        };
        let host = Host {
            client: kube::Client::new(self.server.service("host"), "default"),
            engine: self.engine.clone(),
            budget: Budget::fixed(512 << 20),
            root_limits: self.root_limits,
            compilers: Some(Compilers::run_by(
                Box::new(run),
                Limits::default(),
                Arc::clone(&metrics) as Arc<dyn Report>,
            )),
            metrics: Arc::clone(&metrics),
            identity: "host".into(),
            namespace: api::NAMESPACE.into(),
            leader_elect: false,
            workers: 2,
            spawner: Spawner::default(),
            guests: None,
            readiness: Readiness::default(),
        };
        let stop = Arc::new(Notify::new());
        let stopped = Arc::clone(&stop);
        let task = tokio::spawn(host.work_until(async move {
            stopped.notified().await;
            Ok(())
        }));
        Running { task, stop, metrics }
    }

    fn compiled(&self, digest: &Digest) -> u32 {
        self.compiled.lock().unwrap().get(digest).copied().unwrap_or_default()
    }

    fn module(&self, name: &str) -> Option<Arc<Value>> {
        self.server.object(&crate::state::own("Module", name))
    }

    /// The reason of a condition of a Module.
    fn reason(&self, name: &str, condition: &str) -> Option<String> {
        let module = self.module(name)?;
        let conditions = module.pointer("/status/conditions")?.as_array()?.clone();
        let found = conditions.into_iter().find(|found| found["type"] == condition)?;
        Some(found["reason"].as_str()?.to_owned())
    }

    /// Waits until a Module's Ready says this.
    async fn says(&self, name: &str, reason: &str) {
        self.until(name, |cluster| cluster.reason(name, "Ready").as_deref() == Some(reason)).await;
    }

    /// Waits until something is so of a Module.
    async fn until(&self, name: &str, is_met: impl Fn(&Self) -> bool) {
        let met = async {
            while !is_met(self) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let within = tokio::time::timeout(Duration::from_secs(30), met).await;
        assert!(within.is_ok(), "{name}: {:?}", self.module(name));
    }

    /// Who uses a Module, as its status says.
    fn used_by(&self, name: &str) -> Value {
        self.module(name).map(|module| module["status"]["usedBy"].clone()).unwrap_or_default()
    }

    fn delete(&self, kind: &str, name: &str) {
        let act = Act::Delete { target: crate::state::own(kind, name), cascade: Cascade::Background };
        self.server.act("test", &act).expect("it is deleted");
    }
}

impl Running {
    async fn stop(self) {
        self.stop.notify_one();
        self.task.await.unwrap().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_whose_configmap_has_other_bytes_is_loaded_once_it_has_the_right_ones() {
    let cluster = Cluster::new();
    let host = cluster.start();
    let digest = Digest::of(&bytes("a")).to_string();
    for object in api::module_objects("a", &bytes("b"), &digest) {
        cluster.create(object);
    }
    cluster.says("a", "DigestMismatch").await;
    for object in api::module_objects("a", &bytes("a"), &digest) {
        if object["kind"] == "ConfigMap" {
            let target = pintle_core::object::reference(&object);
            let act = Act::Delete { target, cascade: Cascade::Background };
            cluster.server.act("test", &act).expect("it is deleted");
            cluster.create(object);
        }
    }
    cluster.says("a", "Succeeded").await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_that_nobody_uses_is_compiled_once_and_again_when_somebody_does() {
    let cluster = Cluster::new();
    let host = cluster.start();
    let digests: Vec<Digest> =
        ["a", "b", "c", "d"].map(|name| cluster.push(name, Vec::new())).into_iter().collect();
    for name in ["a", "b", "c", "d"] {
        cluster.says(name, "Succeeded").await;
        assert_eq!(cluster.module(name).unwrap()["status"]["manifest"]["name"], name);
    }
    assert!(digests.iter().all(|digest| cluster.compiled(digest) == 1), "{:?}", cluster.compiled);
    host.stop().await;
    // Tasks that were ended may hold the last of it for a moment.
    let are_gone = |cluster: &Cluster| digests.iter().all(|digest| cluster.engine.loaded(digest).is_none());
    cluster.until("a", are_gone).await;

    let before: Vec<_> = ["a", "b", "c", "d"].map(|name| cluster.module(name)).into();
    let reconciler = json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "Reconciler", "metadata": {"name": "r"},
        "spec": {"for": {"apiVersion": "x/v1", "kind": "Toy"}, "module": "b"}});
    cluster.create(reconciler);
    let host = cluster.start();
    cluster.until("b", |cluster| cluster.engine.loaded(&digests[1]).is_some()).await;
    // A host that stops gives its control loop only a moment to write this.
    cluster.until("b", |cluster| cluster.used_by("b") == json!(["r"])).await;
    host.stop().await;
    assert_eq!(digests.iter().map(|digest| cluster.compiled(digest)).collect::<Vec<_>>(), [1, 2, 1, 1]);
    let after: Vec<_> = ["a", "b", "c", "d"].map(|name| cluster.module(name)).into();
    let statuses = |modules: &[Option<Arc<Value>>]| -> Vec<Value> {
        modules.iter().flatten().map(|module| module["status"].clone()).collect()
    };
    let mut expected = statuses(&before);
    expected[1]["usedBy"] = json!(["r"]);
    assert_eq!(expected, statuses(&after), "a restart is no news");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_expensive_is_told_beside_what_is_not_and_what_failed_is_tried_again() {
    let cluster = Cluster::new();
    // With a few seconds, and with all there are.
    let bomb = cluster.push("bomb", vec![Ended::TooExpensive, Ended::TooExpensive]);
    let hungry = cluster.push("hungry", vec![Ended::Killed("signal: 6".into())]);
    let cheap = cluster.push("cheap", Vec::new());
    let host = cluster.start();
    cluster.says("bomb", reasons::COMPILE_TOO_EXPENSIVE).await;
    cluster.says("cheap", "Succeeded").await;
    cluster.says("hungry", "Succeeded").await;
    // The same bytes under another name.
    cluster.push_bytes("again", &bytes("bomb"));
    cluster.says("again", reasons::COMPILE_TOO_EXPENSIVE).await;
    assert_eq!([bomb, hungry, cheap].map(|digest| cluster.compiled(&digest)), [2, 2, 1]);
    let metrics = host.metrics.text(std::iter::empty());
    for line in [
        r#"pintle_limits_hit_total{controller="",limit="compile-cpu"} 1"#,
        r#"pintle_limits_hit_total{controller="",limit="compile-memory"} 1"#,
        r#"pintle_compile_seconds_count{outcome="made"} 2"#,
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
    host.stop().await;
}

/// What serves views alone is no worse a module than what reconciles; the operator keeps it, and calls nothing of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_module_that_a_view_uses_is_checked_and_stays_until_the_view_is_gone() {
    let cluster = Cluster::new();
    let manifest = fixtures::views::manifest("toy");
    let bytes = fixtures::views::serves(&manifest, Outcome::Trap, Outcome::Trap);
    cluster.push_bytes("toy", &bytes);
    let host = cluster.start();
    cluster.says("toy", "Succeeded").await;
    let before = cluster.module("toy").unwrap();
    assert_eq!(before["status"]["contract"], "pintle:guest/views@0.1.0");
    assert!(before["metadata"]["finalizers"].is_null() && before["status"]["usedBy"].is_null(), "{before}");

    for name in ["toy", "other"] {
        cluster
            .create(json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "View", "metadata": {"name": name},
            "spec": {"module": "toy", "view": "things", "serve": {"aggregated": {}}}}));
    }
    cluster
        .until("toy", |cluster| {
            let module = cluster.module("toy").unwrap();
            module["metadata"]["finalizers"] == json!(["pintle.dev/in-use"])
                && module["status"]["usedBy"] == json!(["view/other", "view/toy"])
        })
        .await;
    cluster.delete("Module", "toy");
    cluster.until("toy", |cluster| cluster.reason("toy", "InUse").as_deref() == Some("UsedByView")).await;
    cluster.delete("View", "other");
    cluster.until("toy", |cluster| cluster.used_by("toy") == json!(["view/toy"])).await;
    host.stop().await;

    // Whatever a host that starts lists first, the View still uses the Module.
    let host = cluster.start();
    cluster.push("later", Vec::new());
    cluster.says("later", "Succeeded").await;
    assert_eq!(cluster.used_by("toy"), json!(["view/toy"]));
    assert_eq!(cluster.reason("toy", "Ready").as_deref(), Some("Succeeded"));
    cluster.delete("View", "toy");
    cluster.until("toy", |cluster| cluster.module("toy").is_none()).await;
    assert_eq!(cluster.compiled(&Digest::of(&bytes)), 1, "nothing of it is called here");
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_root_that_is_too_large_says_so_and_is_reconciled_when_there_is_room() {
    let cluster = Cluster { root_limits: RootLimits { each: 20_000, all: 25_000 }, ..Cluster::new() };
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    cluster.create(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "toys.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Toy", "listKind": "ToyList", "plural": "toys", "singular": "toy"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": open}}}}]},
    }));
    cluster.create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}));
    let manifest = fixtures::manifest("toy", "example.com/v1", "Toy", &[]);
    cluster.push_bytes("toy", &fixtures::answers(&manifest, r#"{"apiVersion":"guest.pintle.dev/v1"}"#));
    cluster
        .create(json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "Reconciler", "metadata": {"name": "r"},
        "spec": {"for": {"apiVersion": "example.com/v1", "kind": "Toy"}, "module": "toy"}}));
    let toy = |name: &str| pintle_wit::ObjectRef {
        api_version: "example.com/v1".into(),
        kind: "Toy".into(),
        namespace: Some("n".into()),
        name: name.into(),
    };
    let create = |name: &str, bytes: usize| {
        cluster.create(json!({"apiVersion": "example.com/v1", "kind": "Toy", "metadata": {"name": name, "namespace": "n"},
            "spec": {"text": "x".repeat(bytes)}}));
    };
    // The reason and the status of a condition.
    let says = async |name: &str, of: &str, reason: &str| {
        let said = |cluster: &Cluster| {
            let live = cluster.server.object(&toy(name))?;
            let conditions = live["status"]["conditions"].as_array()?.clone();
            let found = conditions.into_iter().find(|found| found["type"] == of)?;
            (found["reason"] == reason).then_some(())
        };
        cluster.until("toy", |cluster| said(cluster).is_some()).await;
    };
    let host = cluster.start();
    create("a", 15_000);
    says("a", "Ready", "Succeeded").await;
    create("b", 15_000);
    says("b", "Reconciling", reasons::ROOT_TOO_LARGE).await;
    create("c", 21_000);
    says("c", "Stalled", reasons::ROOT_TOO_LARGE).await;
    let act = Act::Delete { target: toy("a"), cascade: Cascade::Background };
    cluster.server.act("test", &act).expect("it is deleted");
    says("b", "Ready", "Succeeded").await;
    let patch = json!({"spec": {"text": "x"}});
    let act = Act::Merge { target: toy("c"), subresource: None, patch };
    cluster.server.act("test", &act).expect("it is patched");
    says("c", "Ready", "Succeeded").await;
    let metrics = host.metrics.text(std::iter::empty());
    for limit in ["root-size", "roots-size"] {
        let line = format!(r#"pintle_limits_hit_total{{controller="r",limit="{limit}"}}"#);
        assert!(metrics.contains(&line), "{line}\n{metrics}");
    }
    host.stop().await;
}
