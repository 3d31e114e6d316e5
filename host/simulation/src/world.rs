//! A cluster in memory with processes, in which a plan is carried out.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use pintle_simulator::{Act, ApiServer, Options};
use serde_json::json;
use tokio::{sync::Notify, time::Instant};

use crate::{
    life::Life,
    plan::{AnyFault, Plan},
    run::{Broken, RunOutcome, STARTS},
    script::{Deed, Hook, Inject, Script},
};

/// How long after a crash the next process starts, as a Pod would.
const RESTART_AFTER: Duration = Duration::from_secs(1);
/// How long the first may take until it works.
const READY_WITHIN: Duration = Duration::from_secs(120);
/// How often the controllers of the cluster reconcile.
const CONTROLLERS_EVERY: Duration = Duration::from_millis(100);

/// How processes run in a world.
pub(crate) trait Operate: Inject + Send + Sync {
    /// What a running process has beside its life.
    type Process: Send;

    /// Starts a process.
    fn start(world: &World<Self>, life: &Arc<Life>) -> Self::Process;

    /// What is missing until a process works.
    fn waits_for(life: &Life, process: &Self::Process) -> Option<&'static str>;

    /// Does what must be done outside of the server's lock.
    fn perform(world: &World<Self>, deed: Self::Deed) -> impl Future<Output = ()> + Send;
}

/// A cluster with processes in it.
pub(crate) struct World<R: Operate> {
    pub(crate) server: ApiServer,
    pub(crate) origin: Instant,
    /// What only these processes have.
    pub(crate) own: R,
    /// How many processes run at the same time.
    pub(crate) size: usize,
    script: Arc<Mutex<Script<R>>>,
    deeds: Arc<Notify>,
    epoch: Timestamp,
    pub(crate) seed: u64,
    starts: AtomicU32,
    processes: Mutex<Vec<(Arc<Life>, R::Process)>>,
    /// Whether processes should run. If so, another one is started for one that crashed.
    wanted: AtomicBool,
}

/// The time on the wall, so long after the beginning of a world.
fn time_at(epoch: Timestamp, origin: Instant) -> Timestamp {
    let passed = SignedDuration::try_from(origin.elapsed()).unwrap_or(SignedDuration::MAX);
    epoch.saturating_add(passed).unwrap_or(epoch)
}

impl<R: Operate> World<R> {
    /// A copy of a cluster at this time. Its plan has effects only after it is armed. Must be called in a runtime whose time stands still.
    pub(crate) fn new(
        base: &ApiServer,
        epoch: Timestamp,
        seed: u64,
        plan: &Plan<R::Fault>,
        own: R,
    ) -> Arc<Self> {
        let origin = Instant::now();
        let server = base.fork(Options { seed, clock: Arc::new(move || time_at(epoch, origin)) });
        let script = Arc::new(Mutex::new(Script::<R>::new(plan, origin, server.version())));
        let deeds = Arc::new(Notify::new());
        server.set_faults(Box::new(Hook(Arc::clone(&script), Arc::clone(&deeds))));
        let world = Arc::new(Self {
            server,
            origin,
            own,
            size: if plan.any(AnyFault::doubles) { 2 } else { 1 },
            script,
            deeds,
            epoch,
            seed,
            starts: AtomicU32::new(0),
            processes: Mutex::default(),
            wanted: AtomicBool::new(false),
        });
        tokio::spawn(Arc::clone(&world).run_controllers());
        tokio::spawn(Arc::clone(&world).do_deeds());
        world
    }

    pub(crate) fn script(&self) -> MutexGuard<'_, Script<R>> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn processes(&self) -> MutexGuard<'_, Vec<(Arc<Life>, R::Process)>> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The wall clock of the cluster.
    pub(crate) fn now(&self) -> Timestamp {
        time_at(self.epoch, self.origin)
    }

    /// Arms or disarms the plan.
    pub(crate) fn arm(&self, armed: bool) {
        let version = self.server.version();
        let mut script = self.script();
        script.armed = armed;
        if armed {
            script.first_version = version;
        }
    }

    /// Adds an action to the trace.
    pub(crate) fn say(&self, who: &str, what: String) {
        self.script().say(who, what);
    }

    /// A property does not hold now.
    pub(crate) fn broken(&self, property: R::Property, what: String) -> Broken<R::Property> {
        Broken::at(property, self.origin.elapsed(), what)
    }

    /// Ends the run.
    pub(crate) fn end(&self, broken: Option<Broken<R::Property>>, evidence: R::Evidence) -> RunOutcome<R> {
        self.arm(false);
        self.kill();
        let left = self.server.snapshot();
        let script = self.script();
        RunOutcome {
            requests: script.requests,
            writes: script.writes.clone(),
            events: script.events,
            hit: script.hit.clone(),
            broken,
            steps: script.steps.clone(),
            evidence,
            left,
        }
    }

    // === Processes ===

    fn start_one(&self) {
        let number = self.starts.fetch_add(1, Ordering::Relaxed) + 1;
        let life = Arc::new(Life::new(R::PREFIX, number, self.now(), self.seed));
        let process = R::start(self, &life);
        let mut script = self.script();
        script.lives.insert(life.client.clone(), Arc::clone(&life));
        script.say(&life.client, STARTS.into());
        drop(script);
        self.processes().push((life, process));
    }

    /// Starts the processes, and waits until one works.
    pub(crate) async fn start(&self) -> anyhow::Result<()> {
        self.wanted.store(true, Ordering::Relaxed);
        for _ in 0..self.size {
            self.start_one();
        }
        let until = self.origin.elapsed() + READY_WITHIN;
        while let Some(missing) = self.waits_for() {
            anyhow::ensure!(self.origin.elapsed() < until, "none works within {READY_WITHIN:?}: {missing}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// What is missing until one works.
    fn waits_for(&self) -> Option<&'static str> {
        let processes = self.processes();
        let missing = processes.iter().map(|(life, process)| R::waits_for(life, process));
        missing.min().unwrap_or(Some("none runs"))
    }

    /// Whether processes should run.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    /// Takes all processes away. None is started again.
    pub(crate) fn take(&self) -> Vec<(Arc<Life>, R::Process)> {
        self.wanted.store(false, Ordering::Relaxed);
        std::mem::take(&mut *self.processes())
    }

    /// Ends all processes where they are. None is started again.
    pub(crate) fn kill(&self) {
        self.take().iter().for_each(|(life, _)| life.kill());
    }

    async fn crash(&self, client: &str) {
        let ended: Vec<_> = self.processes().extract_if(.., |(life, _)| life.client == client).collect();
        if ended.is_empty() {
            return;
        }
        ended.iter().for_each(|(life, _)| life.kill());
        tokio::time::sleep(RESTART_AFTER).await;
        // A scenario may have started one in the meantime.
        let is_missing = self.processes().len() < self.size;
        if self.is_wanted() && is_missing {
            self.start_one();
        }
    }

    // === Beside them ===

    /// Makes every watch list again, so that nothing stays hidden.
    pub(crate) fn relist(&self) {
        // A watch that has sent the last version would continue from there. So there must be a later version, of an object that nobody
        // watches.
        let tick = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {
                "name": "relist", "namespace": "default",
                "annotations": {"at": self.origin.elapsed().as_millis().to_string()},
            },
        });
        let apply = Act::Apply { object: tick, manager: "somebody".into(), force: true };
        let _ = self.server.act("somebody", &apply);
        self.server.compact();
        self.server.close_watches(None);
    }

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
                tokio::spawn(async move {
                    match deed {
                        Deed::Crash(client) => world.crash(&client).await,
                        Deed::Other(deed) => R::perform(&world, deed).await,
                    }
                });
            }
        }
    }
}
