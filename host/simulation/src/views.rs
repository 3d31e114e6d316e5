//! The gateway on an API server in memory: users write through a view and on what is stored, informers follow the view, modules are
//! swapped, and a [`Plan`] says what goes wrong between the gateways and the API server.
//!
//! A [`Setting`] is a cluster with the Views of guest-farm. A [`Simulation`] runs a copy of it, on one thread whose time stands still until
//! nothing is left to do. What users do follows from the seed. A garbage collector asks for the owners of what
//! Llamas own, through the view.
//! [`choice`] makes plans.

pub mod choice;
mod collector;
mod fault;
mod gateways;
mod guests;
mod informer;
mod ledger;
mod objects;
mod properties;
mod rights;
mod script;
mod users;
mod world;

use std::{sync::Arc, time::Duration};

use anyhow::{Context, ensure};
use jiff::Timestamp;
use pintle_api::module_objects;
use pintle_engine::{Digest, Engine, Module};
use pintle_offline as offline;
use pintle_simulator::{Act, ApiServer, Options};
use pintle_wit::names::ANNOTATION_SUSPEND;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    run::{EPOCH, Replicas, SETTING, Simulate, in_stopped_time, repeatable},
    seam::Seams,
    search,
};
use collector::Collector;
use gateways::Request;
use informer::{Begin, Informer};
use ledger::Ledger;
use rights::Rights;
use world::{World, view};

pub use fault::{Fault, OnEvent, OnRequest, Plan, Replay, VIEWS};
pub use gateways::Gateways;
pub use properties::Property;

/// The outcome of a run of the gateway.
pub type RunOutcome = crate::run::RunOutcome<Gateways>;

/// A property that did not hold.
type Broken = crate::run::Broken<Property>;

/// The gateway, and the run that says how many places there are.
pub type Subject<'a> = search::Subject<Simulation<'a>>;

impl Replicas for Gateways {
    type Fault = Fault;
    type Class = String;
    type Property = Property;
    type Evidence = ();

    const PREFIX: &'static str = "gateway-";
    const REPEATABLE: Property = Property::Repeatable;

    fn classes() -> Vec<String> {
        let of_requests = OnRequest::ALL.iter().map(|what| format!("r={}", what.word()));
        let of_events = OnEvent::ALL.iter().map(|what| format!("e={}", what.word()));
        of_requests.chain(of_events).chain(["lag", "stale", "two"].map(String::from)).collect()
    }

    fn classes_of(faults: &[Fault]) -> Vec<String> {
        let mut classes: Vec<String> = faults.iter().filter_map(Fault::class).collect();
        classes.sort_unstable();
        classes.dedup();
        classes
    }
}

/// The namespace in which everything happens.
const NAMESPACE: &str = "farm";

/// The kind that Llamas are stored as.
const RECORD: (&str, &str) = ("store.farm.example.com/v1", "LlamaRecord");

/// The names of the two modules. The second has other bytes, and shows the same objects differently.
const MODULES: [&str; 2] = ["farm-0.1.0", "farm-0.2.0"];

/// A custom section of a component, called `note` and empty, which gives it another digest.
const NOTE: [u8; 7] = [0, 5, 4, b'n', b'o', b't', b'e'];

/// The schemas of the views, as they stand in a module of the farm.
const SCHEMAS: &str = include_str!("../../../guest-farm/views.json");

/// How long nothing goes wrong at the end: more than the longest back-off, and the longest time-out of a request.
const QUIET: Duration = Duration::from_secs(200);

/// The path of the objects of a view.
fn collection(plural: &str) -> String {
    format!("/apis/farm.example.com/v1alpha/namespaces/{NAMESPACE}/{plural}")
}

/// A cluster with the Views of the farm, which are Ready.
pub struct Setting {
    engine: Engine,
    base: ApiServer,
    epoch: Timestamp,
    /// The digest of the second module.
    other: Digest,
    /// Kept so that no gateway compiles them again.
    _modules: Vec<Module>,
}

impl Setting {
    /// Installs the farm: its module, and the CRDs, APIServices and Views of its sample.
    ///
    /// # Errors
    /// When the module does not load, the API server refuses an object, or a View does not become Ready.
    pub fn new(module: &[u8], sample: &[Value]) -> anyhow::Result<Self> {
        let engine = offline::engine()?;
        let module = with_rule(module)?;
        let bytes = [module.clone(), [&module[..], &NOTE].concat()];
        let load = |bytes: &Vec<u8>| engine.load(bytes, None).map_err(|failure| anyhow::anyhow!("{failure}"));
        let modules = bytes.iter().map(load).collect::<Result<Vec<_>, _>>()?;
        let other = Digest::of(&bytes[1]);
        let mut objects = pintle_api::crds();
        objects.push(api_services());
        let namespaces = [pintle_api::NAMESPACE, NAMESPACE].into_iter();
        objects.extend(
            namespaces
                .map(|name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})),
        );
        objects.push(json!({"apiVersion": "v1", "kind": "ConfigMap",
            "data": {"requestheader-username-headers": "[\"X-Remote-User\"]"},
            "metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system"}}));
        for (name, bytes) in MODULES.iter().zip(&bytes) {
            objects.extend(module_objects(name, bytes, &Digest::of(bytes).to_string()));
        }
        objects.extend(sample.iter().cloned().map(adapted));
        objects.extend(["a", "b"].map(|name| objects::new_record(name, 10)));
        let empty = ApiServer::new(Options::default());
        let (base, epoch) = in_stopped_time(async {
            let gateways = Gateways::new(&engine, other, SETTING, (None, None));
            let world = World::new(&empty, EPOCH, SETTING, &Plan::default(), gateways);
            world.server.set_access(Box::new(Rights));
            for object in objects {
                let name = format!("{} {}", object["kind"], object["metadata"]["name"]);
                let done = world.server.act("keeper", &Act::Create(object));
                done.map_err(|failure| anyhow::anyhow!("{name}: {failure:?}"))?;
            }
            world.start().await?;
            tokio::time::sleep(QUIET).await;
            for name in ["llamas", "farmpods"] {
                let status = world.server.object(&view(name)).map(|view| view["status"].clone());
                let status = status.with_context(|| format!("there is no View {name}"))?;
                ensure!(status["active"]["epoch"].is_u64(), "View {name} is not served: {status}");
            }
            world.kill();
            anyhow::Ok((world.server.clone(), world.now()))
        })??;
        base.compact();
        base.take_requests();
        Ok(Self { engine, base, epoch, other, _modules: modules })
    }
}

/// The module with a rule about Llamas: the measures of a grown one stay as they are. Without white space, the schemas have room for it.
fn with_rule(module: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut schemas: Value = serde_json::from_str(SCHEMAS)?;
    let rule = format!("oldSelf.weight <= {}.0 || self == oldSelf", objects::GROWN);
    schemas["views"]["llamas"]["properties"]["spec"]["x-kubernetes-validations"] = json!([{"rule": rule}]);
    let (text, bytes) = (schemas.to_string(), SCHEMAS.len());
    let text = format!("{text:bytes$}");
    ensure!(text.len() == bytes, "the schemas of the farm have no room for a rule");
    let at = module.windows(bytes).position(|part| part == SCHEMAS.as_bytes());
    let at = at.context("the module of the farm has other schemas than guest-farm/views.json")?;
    let mut module = module.to_vec();
    module[at..at + bytes].copy_from_slice(text.as_bytes());
    Ok(module)
}

/// The kind APIService, which the simulator does not have by itself.
fn api_services() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "apiservices.apiregistration.k8s.io"},
    "spec": {
        "group": "apiregistration.k8s.io", "scope": "Cluster",
        "names": {"kind": "APIService", "listKind": "APIServiceList", "plural": "apiservices", "singular": "apiservice"},
        "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
    }})
}

/// An object of the sample, for a run. A CRD has a field of the spec that no view reads or writes, so that it shows when one is lost. The
/// View of Llamas shows an annotation of the host's, which nobody can write through it, and leaves out what cannot be shown.
fn adapted(mut object: Value) -> Value {
    if object["kind"] == "View" && object["metadata"]["name"] == "llamas" {
        object["spec"]["annotations"] = json!([ANNOTATION_SUSPEND]);
        object["spec"]["unshowable"] = "Omit".into();
    }
    for version in object["spec"]["versions"].as_array_mut().into_iter().flatten() {
        if let Some(fields) = version.pointer_mut("/schema/openAPIV3Schema/properties/spec/properties") {
            fields["colour"] = json!({"type": "string"});
        }
    }
    object
}

/// What is run in a setting.
pub struct Simulation<'a> {
    setting: &'a Setting,
    upstream: Option<Seams>,
    front: Option<Seams>,
}

impl<'a> Simulation<'a> {
    /// A simulation of sound gateways.
    pub fn new(setting: &'a Setting) -> Self {
        Self { setting, upstream: None, front: None }
    }

    /// The same with seams: between gateways and the API server, and between gateways and their clients. Tests use them to make gateways
    /// that are broken in a known way.
    #[must_use]
    pub fn with_seams(self, upstream: Option<Seams>, front: Option<Seams>) -> Self {
        Self { upstream, front, ..self }
    }

    async fn simulate(&self, seed: u64, plan: &Plan) -> RunOutcome {
        let Setting { engine, base, epoch, other, .. } = self.setting;
        let seams = (self.upstream.clone(), self.front.clone());
        let gateways = Gateways::new(engine, *other, seed + 1, seams);
        let world = World::new(base, *epoch, seed + 1, plan, gateways);
        world.server.set_access(Box::new(Rights));
        let broken = live(&world, seed, plan).await.err();
        world.end(broken, ())
    }
}

impl Simulate for Simulation<'_> {
    type Replicas = Gateways;

    fn name(&self) -> &str {
        VIEWS
    }

    fn outcome(&self, seed: u64, plan: &Plan, _: Option<&RunOutcome>) -> anyhow::Result<RunOutcome> {
        repeatable(self.simulate(seed, plan))
    }
}

/// The informer whose knowledge the garbage collector uses.
const GRAPH: &str = "collector";

/// The informers of a run: each way to begin, all of it and a part, whole objects and metadata alone.
fn informers() -> Vec<Arc<Informer>> {
    let all = [
        Informer::new("lister", "llamas", Begin::List),
        Informer::new("watcher", "llamas", Begin::Watch),
        Informer::new("selector", "llamas", Begin::Pages).selecting(objects::LABEL),
        Informer::new(GRAPH, "llamas", Begin::List).of_metadata(),
        Informer::new("podder", "farmpods", Begin::List),
    ];
    all.map(Arc::new).into()
}

async fn live(world: &Arc<World>, seed: u64, plan: &Plan) -> Result<(), Broken> {
    let serves = |what: String| Broken::new(Property::Serves, what);
    world.start().await.map_err(|error| serves(format!("{error:#}")))?;
    let informers = informers();
    let mut clients = JoinSet::new();
    for informer in &informers {
        clients.spawn(Arc::clone(informer).run(Arc::clone(world)));
    }
    let graph = informers.iter().find(|informer| informer.name == GRAPH).cloned();
    let graph = graph.ok_or_else(|| serves("nobody follows the metadata".into()))?;
    clients.spawn(Collector::new(Arc::clone(world), graph).run());
    let reader = tokio::spawn(users::read(Arc::clone(world), seed));
    world.arm(true);
    users::act(Arc::clone(world), seed, plan.steps()).await;
    reader.abort();
    world.arm(false);
    users::change_grown(world).await;
    users::write_across_swap(world).await;
    world.settle().await;
    tokio::time::sleep(QUIET).await;
    for plural in ["llamas", "farmpods", "llamas", "farmpods"] {
        let answer = world.ask(Request::get(collection(plural))).await;
        if answer.as_ref().is_none_or(|(code, _)| *code != 200) {
            return Err(serves(format!("in the end a list of {plural} is answered with {answer:?}")));
        }
    }
    properties::is_told_what_is_left_out(world).await?;
    let ledger = Ledger::of(&world.server);
    let evidence = std::mem::take(&mut *world.evidence());
    properties::on_the_way(&ledger, &evidence, &world.server.requests())?;
    informers.iter().try_for_each(|informer| properties::in_the_end(world, informer))
}
