//! One run: a scenario on a copy of a cluster, with a plan, and the outcome.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use anyhow::ensure;
use jiff::Timestamp;
use pintle_api::module_objects;
use pintle_core::conditions::READY;
use pintle_engine::{Digest, Engine, Module};
use pintle_offline as offline;
use pintle_schema::fit::Kinds;
use pintle_simulator::{ApiServer, Options};
use pintle_wit::{ObjectRef, names};
use serde_json::{Value, json};

use super::{
    Broken, Hosts, OnEvent, OnWrite, Plan, Property, RunOutcome,
    differing::{self, Differing},
    fault::RIVAL,
    hosts::NAMESPACE,
    properties,
    readiness::{self, is_true},
    script::is_host,
    world::World,
};
use crate::{
    run::{EPOCH, SETTING, Simulate, in_stopped_time, repeatable},
    scenario::{Backend, Cascade, ModuleFile, Names, Runner, Scenario},
    script::described,
    seam::{Caught, Seams},
};

/// How long a step of a scenario may take with faults: twice the sum of the longest back-off, the expiry of a lease, and the repeated
/// discovery of a kind.
const PATIENCE: Duration = Duration::from_secs(300);
/// How many times a converged scenario is reconciled again in the run without faults.
const FORCED_RECONCILES: u32 = 100;

/// A cluster with modules and Reconcilers, in which a host has nothing left to do.
pub struct Setting {
    engine: Engine,
    base: ApiServer,
    epoch: Timestamp,
    /// Modules for plans with swaps. They are pushed when such a fault happens.
    pub(super) spares: Arc<[NamedModule]>,
    /// The schemas of the existing kinds.
    served: Arc<Kinds>,
    /// The modules, kept so that no host compiles them again.
    _modules: Vec<Module>,
}

/// A module of a setting: its name and its bytes.
pub type NamedModule = (String, Vec<u8>);

impl Setting {
    /// Installs CRDs, modules and further objects, and lets a host work until every Reconciler is ready. `spares` are modules for plans
    /// with swaps, named after the fault and the Reconciler (`swap-traps-shop`). They are pushed when the fault happens.
    ///
    /// # Errors
    /// When the API server refuses an object, or a Reconciler does not become ready; [`UnknownKinds`](super::UnknownKinds) is one reason.
    pub fn new(
        crds: &[Value],
        modules: &[NamedModule],
        spares: &[NamedModule],
        objects: &[Value],
    ) -> anyhow::Result<Self> {
        let engine = offline::engine()?;
        let loaded: Vec<Module> =
            modules.iter().chain(spares).filter_map(|(_, bytes)| engine.load(bytes, None).ok()).collect();
        let empty = ApiServer::new(Options::default());
        let served = Arc::new(Kinds::with_crds(crds));
        let (base, epoch) = in_stopped_time(async {
            let hosts = Hosts::new(&engine, None, &Arc::default(), None);
            let world = World::new(&empty, EPOCH, SETTING, &Plan::default(), hosts);
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
            let of_module =
                |(name, bytes): &NamedModule| module_objects(name, bytes, &Digest::of(bytes).to_string());
            let modules: Vec<Value> = modules.iter().flat_map(of_module).collect();
            let kinds = pintle_api::crds();
            for object in kinds.iter().chain(crds).chain([&namespace]).chain(&modules).chain(objects) {
                world.apply(object).await?;
            }
            world.start().await?;
            ensure!(world.rest().await, "the host does not come to rest");
            for (reference, object) in &world.server.snapshot().objects {
                if reference.kind == "Reconciler" {
                    readiness::bound(reference, object, &served)?;
                }
            }
            world.kill();
            Ok((world.server.clone(), world.now()))
        })??;
        base.compact();
        base.take_requests();
        Ok(Self { engine, base, epoch, spares: spares.into(), served, _modules: loaded })
    }
}

/// The function that makes the bytes of a module that a scenario names.
pub type Resolve = dyn Fn(&ModuleFile) -> anyhow::Result<Vec<u8>> + Send + Sync;

/// A scenario that can be run in a setting.
pub struct Simulation<'a> {
    /// The setting in which it runs.
    pub setting: &'a Setting,
    /// The scenario's file, as in lines to replay.
    pub file: String,
    scenario: Scenario,
    names: Names,
    resolve: &'a Resolve,
    seams: Option<Seams>,
    must_be_ready: bool,
    /// The total size of its modules.
    pub(super) module_bytes: usize,
    _modules: Vec<Module>,
}

/// What is known of a run beside what happened.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The two values that show the broken property, if there are two.
    pub differing: Option<Differing>,
    /// The first request at which a guest trapped: the text of its JSON.
    pub trapped: Option<String>,
    /// The objects at the end, without what differs from run to run.
    pub(super) end: BTreeMap<ObjectRef, Value>,
    /// How many times the hosts created and deleted each object.
    pub(super) counts: BTreeMap<ObjectRef, properties::Counts>,
    /// For each root, and each time that somebody changed it, how long it took until its status had observed the change.
    pub(super) delays: BTreeMap<ObjectRef, Vec<Option<Duration>>>,
}

impl<'a> Simulation<'a> {
    /// Reads a scenario. `resolve` makes the bytes of its modules.
    ///
    /// # Errors
    /// When the text is not a scenario.
    pub fn new(setting: &'a Setting, file: &str, text: &str, resolve: &'a Resolve) -> anyhow::Result<Self> {
        let stem = PathBuf::from(file);
        let stem = stem.file_stem().and_then(|stem| stem.to_str()).unwrap_or("scenario").to_owned();
        let names = Names { namespace: stem.chars().take(50).collect(), run: "sim".into() };
        let scenario = Scenario::read(file, &names.fill(text))?;
        for word in scenario.without.iter().flat_map(|without| &without.faults) {
            let is_known = word == RIVAL || OnWrite::of(word).is_some() || OnEvent::of(word).is_some();
            ensure!(is_known, "{file}: without: {word:?} is no fault of writes or events, and not {RIVAL}");
        }
        let files: Vec<Vec<u8>> =
            scenario.modules.values().filter_map(|module| resolve(module).ok()).collect();
        let modules = files.iter().filter_map(|bytes| setting.engine.load(bytes, None).ok()).collect();
        let module_bytes = files.iter().map(Vec::len).sum();
        let file = file.to_owned();
        Ok(Self {
            setting,
            file,
            scenario,
            names,
            resolve,
            seams: None,
            must_be_ready: false,
            module_bytes,
            _modules: modules,
        })
    }

    /// The same scenario with a seam between its hosts and everything else.
    #[must_use]
    pub fn with_seams(self, seams: Seams) -> Self {
        Self { seams: Some(seams), ..self }
    }

    /// The same scenario with a stricter run without faults: every answer must fit the kinds of its objects, and every root must end Ready
    /// unless a step expects otherwise.
    #[must_use]
    pub fn must_be_ready(self) -> Self {
        Self { must_be_ready: true, ..self }
    }

    /// The scenario.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Runs it as its file says, without faults.
    ///
    /// # Errors
    /// When the machine lacks the resources for a run.
    pub fn reference(&self, seed: u64) -> anyhow::Result<RunOutcome> {
        self.outcome(seed, &Plan::default(), None)
    }

    async fn simulate(&self, seed: u64, plan: &Plan, reference: Option<&RunOutcome>) -> RunOutcome {
        let setting = self.setting;
        let served = (self.must_be_ready && reference.is_none()).then(|| Arc::clone(&setting.served));
        let hosts = Hosts::new(&setting.engine, self.seams.clone(), &setting.spares, served);
        let world = World::new(&setting.base, setting.epoch, seed, plan, hosts);
        let mut evidence = Evidence::default();
        let lived = self.live(&world, plan, reference, &mut evidence).await.err();
        // A guest that does not work may satisfy other properties by chance, so this error comes first.
        let impure = &world.own.impure;
        let unfit = impure.unfit.get().map(|what| Broken::new(Property::Fits, what));
        let unready = lived.clone().filter(|broken| broken.property == Property::Ready);
        let otherwise = |caught: &Caught| format!("{} the guest answered otherwise", caught.how);
        let changing = impure.caught.get().map(|caught| Broken::new(Property::Pure, otherwise(caught)));
        let beyond = impure.beyond.get().map(|what| Broken::new(Property::Bounded, what));
        // An error at one step says more than its effect at the end.
        let of_guest = unfit.or(unready).or(changing).or(beyond);
        let broken = of_guest.or_else(|| properties::at_every_step(&world, plan, reference)).or(lived);
        evidence.differing =
            broken.as_ref().and_then(|broken| differing::of(&world, broken, &evidence, reference));
        evidence.trapped = impure.trapped.get().cloned();
        world.end(broken, evidence)
    }

    async fn live(
        &self,
        world: &Arc<World>,
        plan: &Plan,
        reference: Option<&RunOutcome>,
        evidence: &mut Evidence,
    ) -> Result<(), Broken> {
        let converges = |what: String| world.broken(Property::Converges, what);
        world.start().await.map_err(|error| converges(format!("{error:#}")))?;
        let mut runner = Runner::new(world.as_ref(), &self.scenario, self.names.clone(), self.resolve);
        if reference.is_some() {
            runner = runner.with_patience(PATIENCE);
        }
        world.arm(true);
        let ran = runner.run_steps().await;
        // If the steps fail or the hosts do not come to rest, only a stalled root is worth reporting.
        let never_ready = |only_stalled: bool| match self.unready(world, only_stalled) {
            Some(what) if self.must_be_ready && reference.is_none() => {
                Err(world.broken(Property::Ready, what))
            }
            _ => Ok(()),
        };
        if let Err(failed) = ran {
            never_ready(true)?;
            return Err(converges(format!("{failed}{}", said(world))));
        }
        let rests = world.rest().await;
        world.arm(false);
        *evidence = properties::evidence(world, properties::masked(world));
        never_ready(!rests)?;
        if !rests {
            return Err(world.broken(Property::Bounded, "the hosts do not come to rest".into()));
        }
        if let Some(reference) = reference {
            properties::counted(world, evidence, plan, reference)?;
            properties::same_end(world, plan, &evidence.end, &reference.evidence.end)?;
            properties::isolated(world, evidence, plan, reference)?;
        }
        if !world.is_wanted() {
            return Ok(());
        }
        self.is_steady(world, reference.is_none()).await?;
        self.ends(world).await
    }

    /// The first root that is not Ready although no step expects that, and why.
    fn unready(&self, world: &World, only_stalled: bool) -> Option<String> {
        let snapshot = world.server.snapshot();
        let mut roots = properties::roots(&snapshot).into_iter();
        roots.find_map(|root| {
            let why = properties::unready(&root, snapshot.objects.get(&root)?, only_stalled)?;
            (!self.scenario.expects_unready(&root)).then_some(why)
        })
    }

    /// Checks that nothing is left of its roots when they are deleted.
    async fn ends(&self, world: &Arc<World>) -> Result<(), Broken> {
        // The objects that a scenario orphaned on purpose have no owner.
        let before = properties::orphans(&world.server.snapshot());
        for root in properties::roots(&world.server.snapshot()) {
            let _ = world.delete(&root, Cascade::Background).await;
        }
        world.rest().await;
        let snapshot = world.server.snapshot();
        let mut left = properties::roots(&snapshot).into_iter().chain(properties::orphans(&snapshot));
        match left.find(|left| !before.contains(left)) {
            Some(left) => {
                let what = format!("the roots were deleted, and {left} is still there");
                Err(world.broken(Property::NoOrphans, what))
            }
            None => Ok(()),
        }
    }

    /// Checks that a converged scenario no longer changes, neither after another reconcile of its roots nor after a restart of the host.
    async fn is_steady(&self, world: &Arc<World>, often: bool) -> Result<(), Broken> {
        let before = world.with_records(<[_]>::len);
        let asked = world.own.impure.asked();
        let snapshot = world.server.snapshot();
        let is_ready = |root: &ObjectRef| snapshot.objects.get(root).is_some_and(|root| is_true(root, READY));
        let ready = properties::roots(&snapshot).iter().filter(|root| is_ready(root)).count();
        for round in 0..if often { FORCED_RECONCILES } else { 1 } {
            let patch =
                json!({"metadata": {"annotations": {names::ANNOTATION_RECONCILE_AT: round.to_string()}}});
            for root in properties::roots(&world.server.snapshot()) {
                // A root that is being deleted may be gone by now.
                let _ = world.patch(&root, &patch).await;
            }
            world.advance(Duration::from_millis(500)).await;
        }
        world.advance(Duration::from_secs(20)).await;
        if often {
            let forced = world.own.impure.asked() - asked;
            if forced < u64::from(FORCED_RECONCILES) * ready as u64 {
                let what = format!(
                    "{ready} roots were to be looked at {FORCED_RECONCILES} times, and guests were asked {forced} times"
                );
                return Err(world.broken(Property::Steady, what));
            }
        } else {
            world.kill();
            world.start().await.map_err(|error| world.broken(Property::Steady, format!("{error:#}")))?;
            world.advance(Duration::from_secs(20)).await;
        }
        let changing = world.with_records(|records| {
            let seen = records.iter().skip(before).map(|record| &record.seen);
            let mut changes = seen.filter(|seen| is_host(&seen.client) && seen.verb.is_mutating());
            let of_root = changes.find(|seen| !matches!(seen.resource.as_str(), "leases" | "events"))?;
            Some((of_root.number, described(of_root)))
        });
        changing.map_or(Ok(()), |(number, what)| {
            let what = format!("nothing is left to do, and yet: {what}");
            Err(Broken { property: Property::Steady, at: world.time_of(number), what })
        })
    }
}

impl Simulate for Simulation<'_> {
    type Replicas = Hosts;

    fn name(&self) -> &str {
        &self.file
    }

    fn outcome(&self, seed: u64, plan: &Plan, reference: Option<&RunOutcome>) -> anyhow::Result<RunOutcome> {
        repeatable(self.simulate(seed, plan, reference))
    }
}

/// Why roots are not ready, from their own statuses. This is often the reason why a step does not reach what it expects.
fn said(world: &World) -> String {
    let snapshot = world.server.snapshot();
    let roots = properties::roots(&snapshot).into_iter();
    let said = roots.filter_map(|root| {
        let why = readiness::unready(snapshot.objects.get(&root)?)?;
        Some(format!("  {root} says: {why}\n"))
    });
    said.collect()
}
