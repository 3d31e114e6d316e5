//! The operator: watches, a queue, workers, and the control loop that decides which module is in force for which kind.
//!
//! Everything that the operator knows is in [`State`], plain maps behind one lock that is never held across an await. Watches and
//! workers change it; the control loop and the workers are woken when it did.

mod access;
mod admin;
mod bind;
mod budget;
pub mod compile;
mod configs;
mod control;
mod events;
pub mod flags;
mod in_flight;
mod lease;
pub mod limits;
mod load;
mod memory_limit;
mod metrics;
mod needs;
mod own_status;
mod policy;
mod server;
mod store;
mod watch;
mod worker;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::Context;
use pintle_core::{Finished, Priority, Queue, SealingKey, StatusSchema, Uid, object};
use pintle_engine::{Answer, CallError, CallLimits, Compiler, Engine, EngineConfig, Meter, Module};
use pintle_wit::{Kind, ObjectRef};
use serde_json::Value;
use tokio::sync::{Notify, Semaphore};
use tracing::{error, info, warn};

pub use budget::Budget;
pub use flags::Flags;
pub use metrics::Metrics;
pub(crate) use needs::{FIELDS_KEPT_MAX, RELIST_EVERY};
pub use server::Readiness;

use compile::{Compilers, child};
use in_flight::InFlight;
use metrics::Metric;
use needs::{Asker, Needed};
use pintle_api as api;
use pintle_kubernetes::{Cluster, Hold, Resource, observed::Observer};
use pintle_runtime::Spawner;
use pintle_runtime::clock::{self, Random};
use policy::Active;
use store::{Children, ListMark, NameHash, Root, RootKey, Roots};
use watch::{News, Watch, WatchKey, WatchState, What};

/// What calls guests in place of their modules.
pub type CallGuest = Arc<dyn Fn(&Module, &str, &CallLimits) -> Result<Answer, CallError> + Send + Sync>;

/// What all parts of the operator share.
pub(crate) struct Shared {
    cluster: Cluster,
    engine: Engine,
    /// Where modules are compiled, if not in this process.
    compilers: Option<Arc<Compilers>>,
    /// Who may have the bytes of a module in memory.
    fetches: Semaphore,
    key: SealingKey,
    metrics: Arc<Metrics>,
    /// How much memory calls, answers and the compiler may take.
    budget: Budget,
    /// How many passes may run at once.
    workers: usize,
    recorder: events::Recorder,
    spawner: Spawner,
    guests: Option<CallGuest>,
    /// What the chance in the back-off of each watch comes from.
    chance: Mutex<Random>,
    access: access::Access,
    /// Who leads, where hosts stand for election.
    leader: Option<tokio::sync::watch::Receiver<String>>,
    state: Mutex<State>,
    lock: pintle_runtime::heartbeat::LockWatch,
    /// There is work for a worker.
    work: Notify,
    /// There is something for the control loop to decide.
    control: Notify,
    /// The objects of a kind that guests ask to see have been listed.
    needs_listed: Notify,
    stopping: AtomicBool,
}

/// What the operator knows.
pub(crate) struct State {
    /// The term of leadership that everything is prepared for: the control loop has seen to it that a pass may begin.
    term: Option<u64>,
    roots: Roots,
    children: Children,
    needed: Needed,
    /// What watches bring of objects that are being written.
    in_flight: InFlight<News>,
    /// Since when a key waits for a worker.
    waiting: BTreeMap<(String, RootKey), Duration>,
    metrics: Arc<Metrics>,
    queue: Queue<String, RootKey>,
    /// What is in force, by the Reconciler's name.
    active: BTreeMap<String, Active>,
    /// How the API server serves the kinds that are in use.
    resources: BTreeMap<Kind, Resource>,
    watches: BTreeMap<WatchKey, Watch>,
    /// The host's own objects, and CRDs, by name.
    modules: BTreeMap<String, api::Module>,
    reconcilers: BTreeMap<String, api::Reconciler>,
    crds: BTreeMap<String, CrdInfo>,
    own: OwnWatches,
    /// How children are read, by their Reconciler: the field manager, and the kinds that its guest observes.
    readings: BTreeMap<String, (String, BTreeSet<Kind>)>,
    /// Loaded modules and failed loads, by the Module's name.
    loads: BTreeMap<String, load::Load>,
    /// Kinds that only a root's status names and that the API server does not serve, with the time to ask again.
    unserved: BTreeMap<Kind, Duration>,
    /// Kinds that the API server was asked about and does not serve, with the time to ask again.
    missing: BTreeMap<Kind, std::time::Duration>,
    /// Those of them of which the API server did not say whether it serves them, and since when.
    unclear: BTreeMap<Kind, Duration>,
    /// Reconcilers whose root counts changed since they were last written.
    counts_changed: BTreeSet<String>,
}

/// Where a list began, in the view of the roots and in that of the children.
#[derive(Clone, Copy, Debug)]
struct Marks {
    roots: ListMark,
    children: ListMark,
    needed: u32,
}

/// Whether the host's own watches have shown everything once.
#[derive(Clone, Debug, Default)]
struct OwnWatches {
    modules: bool,
    reconcilers: bool,
    crds: bool,
    error: Option<String>,
}

/// What the operator keeps of a CRD.
#[derive(Clone, Debug, PartialEq)]
struct CrdInfo {
    group: String,
    kind: String,
    plural: String,
    namespaced: bool,
    established: bool,
    /// The status part of each served version.
    versions: BTreeMap<String, StatusSchema>,
}

impl State {
    fn new(seed: u64, workers: usize, metrics: Arc<Metrics>) -> Self {
        Self {
            metrics,
            waiting: BTreeMap::new(),
            term: None,
            roots: Roots::default(),
            children: Children::default(),
            needed: Needed::default(),
            in_flight: InFlight::default(),
            queue: Queue::new(seed, workers),
            active: BTreeMap::new(),
            resources: BTreeMap::new(),
            watches: BTreeMap::new(),
            modules: BTreeMap::new(),
            reconcilers: BTreeMap::new(),
            crds: BTreeMap::new(),
            own: OwnWatches::default(),
            readings: BTreeMap::new(),
            loads: BTreeMap::new(),
            unserved: BTreeMap::new(),
            missing: BTreeMap::new(),
            unclear: BTreeMap::new(),
            counts_changed: BTreeSet::new(),
        }
    }

    /// The Reconciler that works on a kind.
    fn reconciler_of(&self, kind: &Kind) -> Option<(&String, &Active)> {
        self.active.iter().find(|(_, active)| active.binding.manifest.reconciles == *kind)
    }

    /// Queues a root for the Reconciler that works on its kind, if there is one and it may.
    fn enqueue(&mut self, kind: &Kind, key: &RootKey, priority: Priority) -> bool {
        let lane = match self.reconciler_of(kind) {
            Some((lane, active)) if active.namespaces.includes(key.namespace.as_deref()) => lane.clone(),
            _ => return false,
        };
        self.queue.add(&lane, key.clone(), priority);
        self.metrics.count(Metric::QueueAdds, &[&lane, &lane]);
        if self.queue.waits(&lane, key) {
            self.waiting.entry((lane, key.clone())).or_insert_with(clock::monotonic);
        }
        true
    }

    fn enqueue_by_uid(&mut self, uids: BTreeSet<Uid>, priority: Priority) -> bool {
        let mut any = false;
        for uid in uids {
            if let Some((kind, key)) = self.roots.by_uid(&uid).map(|root| (root.kind(), root.key())) {
                any |= self.enqueue(&kind, &key, priority);
            }
        }
        any
    }

    fn enqueue_askers(&mut self, askers: BTreeSet<Asker>, priority: Priority) -> bool {
        let mut any = false;
        for (kind, key) in askers {
            any |= self.enqueue(&kind, &key, priority);
        }
        any
    }

    /// What a child's Reconciler writes as, and whether its guest observes the kind.
    fn reading_of(&self, live: &Value, kind: &Kind) -> (String, bool) {
        let name = object::text(live, &["metadata", "labels", pintle_wit::names::LABEL_RECONCILER])
            .unwrap_or_default();
        let reading = self.readings.get(name);
        let manager = reading.map_or_else(String::new, |(manager, _)| manager.clone());
        (manager, reading.is_some_and(|(_, observed)| observed.contains(kind)))
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in State is left half-changed by a panic: every change is one insertion or removal.
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.lock.taken();
        state
    }

    /// Whether somebody holds the lock now.
    fn is_locked(&self) -> bool {
        matches!(self.state.try_lock(), Err(TryLockError::WouldBlock))
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Whether a pass may begin, and in which term: this host leads, and the control loop has prepared for it.
    fn term_of_work(&self, state: &State) -> Option<u64> {
        self.cluster.hold().term().filter(|term| state.term == Some(*term))
    }

    /// Begins the work of a term of leadership. Whoever led before may have left everything at any point, and have changed what this
    /// host remembers of earlier passes: nothing is remembered, and there is a pass for every root. What is in force for those that
    /// wait came into force while this host stood by, without what must be written first.
    fn begin_term(&self, term: u64, waiting: &BTreeSet<String>) {
        let mut state = self.state();
        if state.term == Some(term) {
            return;
        }
        state.term = Some(term);
        state.active.retain(|name, _| !waiting.contains(name));
        state.roots.forget_memories();
        state.needed.forget_askers();
        let lanes: Vec<(String, Kind)> =
            state.active.iter().map(|(lane, active)| (lane.clone(), active.binding.root_kind())).collect();
        for (lane, kind) in lanes {
            let keys: Vec<RootKey> = state.roots.of_kind(&kind).map(Root::key).collect();
            for key in keys {
                state.enqueue(&kind, &key, Priority::Background);
            }
            state.queue.hurry(&lane);
        }
        drop(state);
        self.work.notify_one();
    }

    /// The back-off of another watch.
    fn backoff(&self) -> watch::Backoff {
        watch::Backoff::new(self.chance.lock().unwrap_or_else(PoisonError::into_inner).next_u64())
    }

    fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.work.notify_waiters();
        self.work.notify_one();
        self.control.notify_one();
    }

    /// What /metrics shows.
    fn metrics_text(&self) -> String {
        // It looks at what the process takes: outside the lock.
        let standing = self.budget.standing();
        let state = self.state();
        let leads = self.cluster.hold().term().is_some();
        for (lane, active) in &state.active {
            let set =
                |metric, labels: &[&str], number: usize| self.metrics.set(metric, labels, number as f64);
            // Of a standby nothing waits: whoever leads works on it.
            let waiting = |priority| if leads { state.queue.waiting(lane, priority) } else { 0 };
            // controller-runtime's priorities: 0 for what somebody changed, -100 for lists and resyncs.
            set(Metric::QueueDepth, &[lane, lane, "0"], waiting(Priority::Edit));
            set(Metric::QueueDepth, &[lane, lane, "-100"], waiting(Priority::Background));
            set(Metric::BackingOff, &[lane], state.queue.backing_off(lane));
            set(Metric::MaxConcurrent, &[lane], self.workers);
            let kind = active.binding.root_kind();
            let slowed = state.roots.of_kind(&kind).filter(|root| root.memory.is_throttled());
            set(Metric::Throttled, &[lane], slowed.count());
        }
        // The sizes of the caches are looked at when somebody asks, not with each event.
        let sizes = [
            ("roots", state.roots.size()),
            ("children", state.children.size()),
            ("needs", state.needed.size()),
        ];
        for (of, (objects, bytes)) in sizes {
            self.metrics.set(Metric::CacheObjects, &[of], objects as f64);
            self.metrics.set(Metric::CacheBytes, &[of], bytes as f64);
        }
        let budget = [("process", standing.process), ("kept", standing.kept), ("budget", standing.capacity)];
        for (of, bytes) in budget {
            self.metrics.set(Metric::MemoryBudget, &[of], bytes as f64);
        }
        for (purpose, bytes) in standing.reserved {
            self.metrics.set(Metric::MemoryReserved, &[purpose.name()], bytes as f64);
        }
        self.metrics.set(Metric::MemoryWaiting, &[], standing.waiting as f64);
        self.metrics.set(Metric::Leader, &[lease::NAME], u8::from(leads).into());
        let controllers: Vec<String> = state.active.keys().cloned().collect();
        drop(state);
        self.metrics.text(controllers.iter())
    }

    // === What watches bring ===

    /// Takes in what a watch brings, unless the object is being written: then the reply comes first.
    fn news(&self, news: News) {
        let object = news.head.name_hash(&news.key.kind);
        let news = self.state().in_flight.set_aside(&object, news);
        if let Some(news) = news {
            self.take_in(&news);
        }
    }

    fn take_in(&self, news: &News) {
        if news.what == What::Seen && self.knows(news) {
            return;
        }
        let Some(live) = news.read() else { return };
        match news.what {
            What::Seen => self.saw(&news.key, live, None),
            What::Gone => self.gone(&news.key, &live),
        }
    }

    /// Whether an object is known in this version or a later one: from the operator's own write, nearly always.
    fn knows(&self, News { key, head, .. }: &News) -> bool {
        if key.needs.is_some() {
            return false;
        }
        let state = self.state();
        if key.brings_children() {
            state.children.knows(&key.kind, head)
        } else {
            state.roots.knows(&key.kind, head)
        }
    }

    /// Says that an object is being written, until the value is dropped: after its reply was taken in.
    fn writing(self: &Arc<Self>, object: &ObjectRef) -> Writing {
        let object = store::name_of(object);
        self.state().in_flight.begin(object);
        Writing { shared: Arc::clone(self), object }
    }

    fn saw(&self, key: &WatchKey, live: Value, list: Option<Marks>) {
        // What a first list brings nobody is waiting for; what comes later somebody changed.
        let priority = if list.is_some() { Priority::Background } else { Priority::Edit };
        let any = if let Some(round) = key.needs {
            // An object may be large: nobody waits for the lock while it is reduced.
            let shape = self.state().needed.shape(&key.kind, round);
            let Some(shape) = shape else { return };
            let (place, now) = (needs::place(&live), shape.reduce(&live, list.map(|list| list.needed)));
            let mut state = self.state();
            let concerned = state.needed.saw(&shape, place, now);
            state.enqueue_askers(concerned, priority)
        } else if key.brings_children() {
            let mut state = self.state();
            let (manager, observe) = state.reading_of(&live, &key.kind);
            let child = pintle_core::Observed::of(&live, &manager, observe);
            let concerned = state.children.saw(child, list.map(|list| list.children));
            state.enqueue_by_uid(concerned, priority)
        } else {
            let mut state = self.state();
            let root = RootKey::of(&live);
            let news = state.roots.saw(&key.kind, live, list.map(|list| list.roots));
            self.count_anew(&mut state, &key.kind);
            news && state.enqueue(&key.kind, &root, priority)
        };
        if any {
            self.work.notify_one();
        }
    }

    fn gone(&self, key: &WatchKey, live: &Value) {
        let mut state = self.state();
        let any = if key.needs.is_some() {
            let concerned = state.needed.gone(&key.kind, live);
            state.enqueue_askers(concerned, Priority::Edit)
        } else if key.brings_children() {
            let (manager, observe) = state.reading_of(live, &key.kind);
            let last = pintle_core::Observed::of(live, &manager, observe);
            let concerned = state.children.gone(&last.reference, Some(&last));
            state.enqueue_by_uid(concerned, Priority::Edit)
        } else {
            state.roots.remove(&key.kind, live);
            state.needed.forget(&(key.kind.clone(), RootKey::of(live)));
            state.children.root_gone(&Uid::new(object::uid(live)));
            self.count_anew(&mut state, &key.kind);
            false
        };
        drop(state);
        if any {
            self.work.notify_one();
        }
    }

    fn list_begins(&self) -> Marks {
        let mut state = self.state();
        Marks {
            roots: state.roots.list_begins(),
            children: state.children.list_begins(),
            needed: state.needed.list_begins(),
        }
    }

    fn list_ended(&self, key: &WatchKey, marks: Marks) {
        let mut state = self.state();
        if let Some(round) = key.needs {
            let namespace = key.namespace.as_deref();
            let concerned = state.needed.list_ended(&key.kind, namespace, round, marks.needed);
            state.enqueue_askers(concerned, Priority::Edit);
            drop(state);
            self.needs_listed.notify_waiters();
            self.work.notify_one();
            return;
        }
        if key.brings_children() {
            let concerned = state.children.list_ended(&key.kind, key.namespace.as_deref(), marks.children);
            state.enqueue_by_uid(concerned, Priority::Edit);
        } else {
            for uid in state.roots.list_ended(&key.kind, marks.roots) {
                state.children.root_gone(&uid);
            }
            let State { roots, needed, .. } = &mut *state;
            needed.keep_roots(&key.kind, |root| roots.has(&key.kind, root));
            self.count_anew(&mut state, &key.kind);
        }
        drop(state);
        self.work.notify_one();
    }

    fn watch_is(&self, key: &WatchKey, now: WatchState) {
        let mut state = self.state();
        let Some(watch) = state.watches.get_mut(key) else { return };
        if watch.state != now {
            match &now {
                WatchState::Failing(message) => {
                    warn!(watch = %key, projection = ?key.projection, error = message, "A watch fails")
                }
                state => info!(watch = %key, projection = ?key.projection, ?state, "A watch is up"),
            }
            watch.listed |= now == WatchState::Synced;
            watch.state = now;
            drop(state);
            self.control.notify_one();
        }
    }

    // === What workers bring ===

    fn enqueue_root(&self, kind: &Kind, key: &RootKey, priority: Priority) {
        if self.state().enqueue(kind, key, priority) {
            self.work.notify_one();
        }
    }

    fn finish(&self, lane: &str, key: &RootKey, finished: Finished) {
        self.state().queue.finish(&lane.to_owned(), key, finished, clock::monotonic());
        self.work.notify_one();
    }

    /// The control loop is told that the root counts of a kind changed, where they did, how many have finalizers of ours among them: once for all that come before it has looked.
    fn count_anew(&self, state: &mut State, kind: &Kind) {
        if !state.roots.take_counts_changed(kind) {
            return;
        }
        if let Some((lane, _)) = state.reconciler_of(kind) {
            let lane = lane.clone();
            if state.counts_changed.insert(lane) {
                self.control.notify_one();
            }
        }
    }

    async fn emit(&self, about: &Value, events: &[pintle_wit::Event]) {
        self.recorder.emit(&object::reference(about), object::uid(about), None, events).await;
    }
}

/// An object is being written.
struct Writing {
    shared: Arc<Shared>,
    object: NameHash,
}

impl Drop for Writing {
    fn drop(&mut self) {
        let news = self.shared.state().in_flight.end(&self.object);
        for news in &news {
            self.shared.take_in(news);
        }
    }
}

/// Runs the operator until it is told to stop.
///
/// # Errors
/// When it cannot start: no API server, no engine, no address to listen on.
pub async fn run(flags: Flags) -> anyhow::Result<()> {
    let level = flags.start_logging();
    let admin = match flags.admin_bind {
        Some(address) => Some(admin::serve(address, level).await?),
        None => None,
    };
    let identity = flags.identity()?;
    let metrics = Arc::new(Metrics::new());
    let client = flags.connect.client_of(&identity, Arc::clone(&metrics) as Arc<dyn Observer>).await?;
    let config = EngineConfig::new(Meter::Deadline, clock::monotonic);
    let engine = Engine::new(config).context("the WebAssembly engine does not start")?;
    let run: compile::Run =
        Box::new(|job, limits, stop| child::compile(Path::new(child::THIS_PROGRAM), job, limits, stop));
    let compilers = Compilers::new(flags.compile_limits(), run, Arc::clone(&metrics));
    let (check, compile) = (engine.clone(), Arc::clone(&compilers));
    // An engine whose deadline does not fire would let one guest hold a worker for ever.
    tokio::task::spawn_blocking(move || {
        check.self_test(Compiler::Elsewhere(&|job| compile.compile_at_once(&job)))
    })
    .await?
    .context("the engine's deadline does not fire")?;
    let spawner = Spawner::default();
    let server = server::Server::bind(flags.bind, spawner.heartbeats().clone())?;
    let budget = Budget::new(flags.memory_budget.unwrap_or_else(memory_limit::process_bytes));
    let standing = budget.standing();
    info!(
        memory_mebibytes = standing.process >> 20, for_calls_mebibytes = standing.capacity >> 20,
        version = env!("CARGO_PKG_VERSION"), identity, address = %server.address(), allocation = ?engine.allocation(),
        "Pintle starts"
    );
    let readiness = server.readiness();
    let stop = stop_signal()?;
    let serving = server.start()?;
    let host = Host {
        client,
        engine,
        compilers: Some(compilers),
        metrics,
        identity,
        namespace: flags.namespace,
        leader_elect: flags.leader_elect,
        workers: flags.workers,
        budget,
        seed: u64::from_le_bytes(clock::random()?),
        spawner,
        guests: None,
        readiness,
    };
    let stopped = async {
        tokio::select! {
            () = stop => {}
            ended = serving => error!(?ended, "The server ended"),
        }
    };
    host.work_until(stopped).await?;
    if let Some(admin) = admin {
        admin.abort();
    }
    info!("Stopped");
    Ok(())
}

/// The operator without what ties it to a process: what it works with enters here, so that a simulator can be given instead.
pub struct Host {
    /// The way to the API server. Its own retry must be off.
    pub client: kube::Client,
    /// What calls guests.
    pub engine: Engine,
    /// Where modules are compiled; nothing means in this process, at once.
    pub compilers: Option<Arc<Compilers>>,
    /// What it counts.
    pub metrics: Arc<Metrics>,
    /// Its name in Leases and Events.
    pub identity: String,
    /// The namespace of its key, its Lease and the ConfigMaps of modules.
    pub namespace: String,
    /// Whether it writes only while it holds the Lease.
    pub leader_elect: bool,
    /// How many roots are worked on at once.
    pub workers: usize,
    /// How much memory calls, answers and the compiler may take.
    pub budget: Budget,
    /// What its chance comes from.
    pub seed: u64,
    /// Where its tasks run.
    pub spawner: Spawner,
    /// What calls guests, where not their modules alone do.
    pub guests: Option<CallGuest>,
    /// What tells others how far it is.
    pub readiness: server::Readiness,
}

impl Host {
    /// Works until this ends; then what is under way is finished and the Lease given up.
    ///
    /// # Errors
    /// When its tasks end otherwise than by themselves.
    pub async fn work_until(self, stop: impl Future<Output = ()>) -> anyhow::Result<()> {
        tokio::pin!(stop);
        let cluster = Cluster::new(self.client.clone());
        let mut candidate = self.leader_elect.then(|| {
            lease::Candidate::stand(&self.spawner, cluster.clone(), &self.namespace, &self.identity)
        });
        let cluster = match &candidate {
            Some(candidate) => cluster.with_hold(Hold::elected(candidate.held.clone())),
            None => cluster,
        };
        // In order, here and below: chance would be one more thing that a simulator cannot repeat.
        let key = tokio::select! {
            biased;
            () = &mut stop => {
                release(candidate).await;
                return Ok(());
            }
            key = load::sealing_key(&cluster, &self.namespace) => key,
        };
        let spawner = self.spawner.clone();
        let leader = candidate.as_ref().map(|candidate| candidate.holder.clone());
        let shared = self.share(cluster, key, leader);
        let mut control =
            spawner.spawn_as(pintle_runtime::heartbeat::CONTROL, control::run(Arc::clone(&shared)));
        let workers = spawner.spawn(worker::dispatch(Arc::clone(&shared), shared.workers));
        tokio::select! {
            biased;
            () = &mut stop => info!("Stopping"),
            ended = &mut control => error!(?ended, "The control loop ended"),
            () = follow_election(&shared, candidate.as_mut()) => error!("The election ended"),
        }
        shared.stop();
        workers.await?;
        if !control.is_finished() && tokio::time::timeout(CONTROL_STOP_TIMEOUT, &mut control).await.is_err() {
            control.abort();
        }
        // Last, since the next host begins to write then.
        release(candidate).await;
        Ok(())
    }
}

impl Host {
    /// What its parts share, once it has its key.
    fn share(
        self,
        cluster: Cluster,
        key: SealingKey,
        leader: Option<tokio::sync::watch::Receiver<String>>,
    ) -> Arc<Shared> {
        let shared = Arc::new(Shared {
            recorder: events::Recorder::new(&cluster, &self.identity),
            cluster,
            engine: self.engine,
            budget: self.budget,
            compilers: self.compilers,
            fetches: Semaphore::new(load::FETCHES_AT_ONCE),
            key,
            metrics: Arc::clone(&self.metrics),
            workers: self.workers,
            spawner: self.spawner,
            guests: self.guests,
            chance: Mutex::new(Random::new(self.seed)),
            access: access::Access::default(),
            leader,
            state: Mutex::new(State::new(self.seed, self.workers, self.metrics)),
            lock: pintle_runtime::heartbeat::LockWatch::default(),
            work: Notify::new(),
            control: Notify::new(),
            needs_listed: Notify::new(),
            stopping: AtomicBool::new(false),
        });
        self.readiness.follow(&shared);
        shared
    }
}

/// How long the control loop may take to end its round when the operator stops: a write or two.
const CONTROL_STOP_TIMEOUT: Duration = Duration::from_secs(2);

async fn release(candidate: Option<lease::Candidate>) {
    if let Some(candidate) = candidate {
        candidate.release().await;
    }
}

/// Wakes the control loop whenever this host comes to lead, or no longer does. Ends when nobody stands for election any more.
async fn follow_election(shared: &Shared, candidate: Option<&mut lease::Candidate>) {
    let Some(candidate) = candidate else { return std::future::pending().await };
    let mut held = candidate.held.clone();
    let mut term = None;
    let wake = async {
        while held.changed().await.is_ok() {
            let now = shared.cluster.hold().term();
            if now != term {
                term = now;
                shared.control.notify_one();
            }
        }
    };
    tokio::select! {
        biased;
        () = candidate.ended() => {}
        () = wake => {}
    }
}

/// Ends when the process is told to stop.
fn stop_signal() -> anyhow::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// How an object of the host's own is named.
fn own(kind: &str, name: &str) -> ObjectRef {
    ObjectRef {
        api_version: "pintle.dev/v1alpha1".into(),
        kind: kind.into(),
        namespace: None,
        name: name.into(),
    }
}
