//! A cluster in memory with hosts, in which a plan is carried out.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use pintle_core::object::at;
use pintle_engine::Engine;
use pintle_simulator::{Act, ApiServer, Failure, Record};
use pintle_wit::ObjectRef;
use serde_json::{Value, json};
use tokio::{sync::Notify, time::Instant};

use super::{
    Broken, Property,
    fault::{Fault, Plan},
    hosts::{Running, Start},
    run::NamedModule,
    script::{Asked, Deed, Script, is_about_hosts, is_host},
};
use crate::{
    run::STARTS,
    script::{self, Hook},
    seam::{Impure, Seams},
};

/// How long after a crash the next host starts, as a Pod would.
const RESTART_AFTER: Duration = Duration::from_secs(1);
/// How often the controllers of the cluster reconcile.
const CONTROLLERS_EVERY: Duration = Duration::from_millis(100);
/// How long a host is cut off.
const CUT_OFF_FOR: Duration = Duration::from_secs(15);

/// A cluster with hosts in it.
pub(super) struct World {
    pub(super) server: ApiServer,
    engine: Engine,
    script: Arc<Mutex<Script>>,
    deeds: Arc<Notify>,
    pub(super) origin: Instant,
    epoch: Timestamp,
    seed: u64,
    elect: bool,
    skew: Duration,
    starts: AtomicU32,
    hosts: Mutex<Vec<Running>>,
    /// Whether a host should run. If so, a crashed one is started again.
    pub(super) wanted: AtomicBool,
    records: Mutex<Vec<Record>>,
    pub(super) impure: Arc<Impure>,
    seams: Option<Seams>,
    pub(super) spares: Arc<[NamedModule]>,
}

impl World {
    /// A copy of a cluster at this time. Its plan has effects only after it is armed. Must be called in a runtime whose time stands still.
    pub(super) fn new(
        base: &ApiServer,
        engine: &Engine,
        epoch: Timestamp,
        seed: u64,
        plan: &Plan,
        seams: Option<Seams>,
        spares: &Arc<[NamedModule]>,
    ) -> Arc<Self> {
        let origin = Instant::now();
        let clock = move || {
            let passed = SignedDuration::try_from(origin.elapsed()).unwrap_or(SignedDuration::MAX);
            epoch.saturating_add(passed).unwrap_or(epoch)
        };
        let server = base.fork(pintle_simulator::Options { seed, clock: Arc::new(clock) });
        let version = server.version();
        let script = Script::new(plan, origin, version);
        let (script, deeds) = (Arc::new(Mutex::new(script)), Arc::new(Notify::new()));
        server.set_faults(Box::new(Hook(Arc::clone(&script), Arc::clone(&deeds))));
        let skew = plan.0.iter().find_map(|fault| match fault {
            Fault::Skew(by) => Some(*by),
            _ => None,
        });
        let world = Arc::new(Self {
            server,
            engine: engine.clone(),
            script,
            deeds,
            origin,
            epoch,
            seed,
            elect: plan.any(|fault| *fault == Fault::Rival),
            skew: skew.unwrap_or_default(),
            starts: AtomicU32::new(0),
            hosts: Mutex::default(),
            wanted: AtomicBool::new(false),
            records: Mutex::default(),
            impure: Arc::default(),
            seams,
            spares: Arc::clone(spares),
        });
        tokio::spawn(Arc::clone(&world).run_controllers());
        tokio::spawn(Arc::clone(&world).do_deeds());
        world
    }

    pub(super) fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn hosts(&self) -> MutexGuard<'_, Vec<Running>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The wall clock of the cluster.
    pub(super) fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.origin.elapsed()).unwrap_or(SignedDuration::MAX);
        self.epoch.saturating_add(passed).unwrap_or(self.epoch)
    }

    /// Arms or disarms the plan.
    pub(super) fn arm(&self, armed: bool) {
        let version = self.server.version();
        let mut script = self.script();
        script.armed = armed;
        if armed {
            script.first_version = version;
        }
    }

    /// Adds an action of the driver to the trace.
    pub(super) fn say(&self, who: &str, what: String) {
        self.script().say(who, what);
    }

    /// Calls `look` with all requests so far.
    pub(super) fn with_records<T>(&self, look: impl FnOnce(&[Record]) -> T) -> T {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        records.extend(self.server.take_requests());
        look(&records)
    }

    // === Hosts ===

    fn start_one(&self) {
        let number = self.starts.fetch_add(1, Ordering::Relaxed) + 1;
        let running = Running::start(&Start {
            server: &self.server,
            engine: &self.engine,
            number,
            seed: self.seed,
            now: self.now(),
            elect: self.elect,
            impure: &self.impure,
            seams: self.seams.as_ref(),
        });
        let behind = SignedDuration::try_from(self.skew * number).unwrap_or_default();
        running.life.clock.set_skew(-behind);
        let mut script = self.script();
        script.lives.insert(running.client.clone(), Arc::clone(&running.life));
        if let Some(version) = script.memory.travel.take() {
            script.memory.travellers.insert(running.client.clone(), (version, BTreeSet::new()));
        }
        script.say(&running.client, STARTS.into());
        drop(script);
        self.hosts().push(running);
    }

    /// Starts the hosts, and waits until one works.
    pub(super) async fn start_hosts(&self) -> anyhow::Result<()> {
        self.wanted.store(true, Ordering::Relaxed);
        for _ in 0..self.hosts_wanted() {
            self.start_one();
        }
        let until = self.origin.elapsed() + Duration::from_secs(120);
        while !self.hosts().iter().any(Running::works) {
            anyhow::ensure!(self.origin.elapsed() < until, "no host works within 120 s");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// How many hosts run at the same time.
    fn hosts_wanted(&self) -> usize {
        if self.elect { 2 } else { 1 }
    }

    /// Ends all hosts where they are. None is started again.
    pub(super) fn kill_hosts(&self) {
        self.wanted.store(false, Ordering::Relaxed);
        for host in self.hosts().drain(..) {
            host.kill();
        }
    }

    async fn crash(&self, client: &str) {
        let ended = {
            let mut hosts = self.hosts();
            let at = hosts.iter().position(|host| host.client == client);
            at.map(|at| hosts.remove(at))
        };
        let Some(host) = ended else { return };
        host.kill();
        tokio::time::sleep(RESTART_AFTER).await;
        // A scenario may have started one in the meantime.
        let is_missing = self.hosts().len() < self.hosts_wanted();
        if self.wanted.load(Ordering::Relaxed) && is_missing {
            self.start_one();
        }
    }

    /// Waits until no host has changed anything for as long as the longest back-off. Returns false if that never happens.
    pub(super) async fn rest(&self) -> bool {
        const QUIET: Duration = Duration::from_secs(70);
        const AT_MOST: Duration = Duration::from_secs(900);
        let begun = self.origin.elapsed();
        loop {
            let last = self.last_change().max(begun);
            let now = self.origin.elapsed();
            if now >= last + QUIET {
                return true;
            }
            if now >= begun + AT_MOST {
                return false;
            }
            tokio::time::sleep(last + QUIET - now).await;
        }
    }

    /// The time of the last write of a host, or of its last attempt.
    fn last_change(&self) -> Duration {
        let number = self.with_records(|records| {
            let is_write = |record: &&Record| {
                is_host(&record.seen.client)
                    && record.seen.verb.is_mutating()
                    && !is_about_hosts(&record.seen)
            };
            records.iter().rev().find(is_write).map(|record| record.seen.number)
        });
        number.and_then(|number| self.time_of(number)).unwrap_or_default()
    }

    /// Makes every watch list again, so that nothing stays hidden.
    pub(super) fn relist(&self) {
        // A watch that has sent the last version would continue from there. So there must be a later version, of an object that no host
        // watches.
        let tick = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {
                "name": "relist", "namespace": "default",
                "annotations": {"at": self.origin.elapsed().as_millis().to_string()},
            },
        });
        let _ = self
            .server
            .act("somebody", &Act::Apply { object: tick, manager: "somebody".into(), force: true });
        self.server.compact();
        self.server.close_watches(None);
    }

    // === Beside the hosts ===

    async fn run_controllers(self: Arc<Self>) {
        let mut looked_at = 0;
        loop {
            tokio::time::sleep(CONTROLLERS_EVERY).await;
            let version = self.server.version();
            if version == looked_at {
                continue;
            }
            self.script().versions.push((version, self.origin.elapsed()));
            if !self.server.controllers_step() {
                looked_at = self.server.version();
            }
        }
    }

    async fn do_deeds(self: Arc<Self>) {
        loop {
            self.deeds.notified().await;
            let deeds = std::mem::take(&mut self.script().deeds);
            for deed in deeds {
                let world = Arc::clone(&self);
                tokio::spawn(async move { world.do_one(deed).await });
            }
        }
    }

    async fn do_one(&self, deed: script::Deed<Deed>) {
        let deed = match deed {
            script::Deed::Crash(client) => return self.crash(&client).await,
            script::Deed::Other(deed) => deed,
        };
        match deed {
            Deed::CutOff(client) => {
                let life = self.script().lives.get(&client).cloned();
                let Some(life) = life else { return };
                life.cut_off(true);
                self.server.close_watches(Some(&client));
                tokio::time::sleep(CUT_OFF_FOR).await;
                life.cut_off(false);
            }
            Deed::Relist(after) => {
                tokio::time::sleep(after).await;
                self.relist();
            }
            Deed::Meddle(fault, what, seen) => {
                if let Some(troubled) = self.meddle(what, &seen).await {
                    let mut script = self.script();
                    script.hit.insert(fault);
                    script.memory.troubled.push(troubled);
                }
            }
        }
    }

    /// Acts as a user. A cluster-scoped object may be named with a namespace.
    pub(super) fn act(&self, who: &str, act: &Act) -> Result<Value, Failure> {
        let without = |mut target: ObjectRef| {
            target.namespace = None;
            target
        };
        let done = match self.server.act(who, act) {
            Err(failure) if failure.code == 404 => {
                let act = match act.clone() {
                    Act::Apply { mut object, manager, force } => {
                        if let Some(metadata) = object["metadata"].as_object_mut() {
                            metadata.remove("namespace");
                        }
                        Act::Apply { object, manager, force }
                    }
                    Act::Merge { target, subresource, patch } => {
                        Act::Merge { target: without(target), subresource, patch }
                    }
                    Act::Delete { target, cascade } => Act::Delete { target: without(target), cascade },
                    _ => return Err(failure),
                };
                // The second error says more than that the object is in no namespace.
                self.server.act(who, &act).map_err(|second| if second.code == 404 { failure } else { second })
            }
            other => other,
        };
        if let (Ok(object), Act::Apply { .. } | Act::Merge { subresource: None, .. }) = (&done, act) {
            let generation = at(object, &["metadata", "generation"]).and_then(Value::as_i64);
            let (at, object, uid) = (
                self.origin.elapsed(),
                pintle_core::object::reference(object),
                pintle_core::object::uid(object),
            );
            let uid = uid.to_owned();
            self.script().memory.asked.extend(generation.map(|generation| Asked {
                at,
                object,
                uid,
                generation,
            }));
        }
        done
    }

    /// Whether a host runs.
    pub(super) fn has_hosts(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    /// When a request was made.
    pub(super) fn time_of(&self, number: u64) -> Option<Duration> {
        self.script().times.get(&number).copied()
    }

    /// A property does not hold now.
    pub(super) fn broken(&self, property: Property, what: String) -> Broken {
        Broken::at(property, self.origin.elapsed(), what)
    }
}
