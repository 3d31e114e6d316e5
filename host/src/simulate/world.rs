//! A cluster in memory with hosts in it, to which a plan happens.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use anyhow::Context;
use jiff::{SignedDuration, Timestamp};
use pintle_core::reconciler;
use pintle_engine::{Digest, Engine};
use pintle_simulator::{
    Act, ApiServer, EventFate, EventSeen, Failure, Fate, Faults, Record, Seen as Request, StreamSeen, Verb,
};
use pintle_wit::{ObjectRef, names};
use serde_json::{Map, Value, json};
use tokio::{sync::Notify, time::Instant};

use super::{
    hosts::{Life, Running, Start},
    plan::{Fault, OnEvent, OnRequest, OnWrite, Plan, Reach, at},
    run::NamedModule,
    seam::{Impure, Seams},
};
use crate::scenario::{Backend, Call, Cascade, Mark, Seen, Stop, push_objects};

/// How long after a crash the next host starts, as a Pod would.
const RESTART_AFTER: Duration = Duration::from_secs(1);
/// How often the controllers of the cluster look.
const CONTROLLERS_EVERY: Duration = Duration::from_millis(100);
/// How long what somebody does wrong lasts.
const MEDDLED_FOR: Duration = Duration::from_secs(5);
/// How long a host is cut off.
const CUT_OFF_FOR: Duration = Duration::from_secs(15);
/// How long an event may be missing before the watch begins anew. Nothing that a cluster does hides one for ever.
const HIDDEN_FOR: Duration = Duration::from_secs(20);
/// How late what is late comes.
const LATE: Duration = Duration::from_secs(2);
/// How many versions back a host is shown the past.
const TRAVEL_VERSIONS: u64 = 6;
/// How long a user takes between two things, so that what is later has a later time.
const USER_TAKES: Duration = Duration::from_millis(1100);
/// How many requests of the hosts there may be in a run before none is answered any more.
pub(super) const REQUESTS_MAX: u32 = 20_000;

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// When, since the run began.
    pub at: Duration,
    /// Who did it: a host, somebody, the plan.
    pub who: String,
    /// What.
    pub what: String,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>9.3} s  {:<8} {}", self.at.as_secs_f64(), self.who, self.what)
    }
}

/// Whom a fault concerns that does not concern everybody.
#[derive(Clone, Debug)]
pub(super) enum Troubled {
    /// Whoever the request with this number is about.
    Request(u64),
    /// A root.
    Root(ObjectRef),
    /// The roots of a Reconciler.
    Of(ObjectRef),
}

/// Something that somebody wants of an object: its spec in a generation.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// When, since the run began.
    pub(super) at: Duration,
    pub(super) object: ObjectRef,
    pub(super) uid: String,
    pub(super) generation: i64,
}

/// What has to be done outside of the server's lock.
#[derive(Clone, Debug)]
enum Deed {
    Crash(String),
    CutOff(String),
    Meddle(Fault, OnWrite, Box<Request>),
    Relist(Duration),
}

/// The plan, and how far it is.
pub(super) struct Script {
    plan: Plan,
    armed: bool,
    origin: Instant,
    pub(super) writes: u32,
    pub(super) requests: u32,
    pub(super) events: u32,
    /// The faults of the plan that came to pass.
    pub(super) hit: BTreeSet<Fault>,
    /// Whom those concern that do not concern everybody.
    pub(super) troubled: Vec<Troubled>,
    /// What somebody wants of objects.
    pub(super) asked: Vec<Asked>,
    lives: BTreeMap<String, Arc<Life>>,
    burst: u32,
    /// The version that the next host first sees.
    travel: Option<u64>,
    /// What hosts that are shown the past have listed already.
    travellers: BTreeMap<String, (u64, BTreeSet<(String, String)>)>,
    hidden: Option<(String, String)>,
    first_version: u64,
    version: u64,
    deeds: Vec<Deed>,
    pub(super) steps: Vec<Step>,
    /// When there was which version, now and then.
    versions: Vec<(u64, Duration)>,
    /// When each request was made, by its number.
    pub(super) times: BTreeMap<u64, Duration>,
}

impl Script {
    fn say(&mut self, who: &str, what: String) {
        let at = self.origin.elapsed();
        self.steps.push(Step { at, who: who.into(), what });
    }

    /// When a version came to be, to the tenth of a second. In a watch that lags an event is looked at only after those before it.
    fn came_at(&self, version: u64) -> Duration {
        let at = self.versions.partition_point(|(known, _)| *known < version);
        self.versions.get(at).map_or_else(|| self.origin.elapsed(), |(_, time)| *time)
    }

    /// A fault has its turn. Of what somebody does only the doing itself says whether it comes to anything.
    fn hit(&mut self, fault: Fault) {
        self.say("plan", fault.to_string());
        if !fault.meddles() {
            self.hit.insert(fault);
        }
    }

    fn on_write(&mut self, fault: Fault, what: OnWrite, seen: &Request) -> Fate {
        let crash = |script: &mut Self| {
            if let Some(life) = script.lives.get(&seen.client) {
                life.end();
            }
            script.deeds.push(Deed::Crash(seen.client.clone()));
        };
        match what {
            OnWrite::CrashBefore => {
                crash(self);
                Fate::SilenceBefore
            }
            OnWrite::CrashAfter => {
                crash(self);
                Fate::SilenceAfter
            }
            OnWrite::TimeTravel => {
                crash(self);
                self.travel = Some(self.version.saturating_sub(TRAVEL_VERSIONS).max(self.first_version));
                Fate::SilenceAfter
            }
            OnWrite::FarTimeTravel => {
                crash(self);
                self.travel = Some(self.first_version);
                Fate::SilenceAfter
            }
            OnWrite::LostBefore => Fate::LoseBefore,
            OnWrite::LostReply => Fate::LoseAfter,
            OnWrite::Silence => Fate::SilenceAfter,
            OnWrite::Partition => {
                self.deeds.push(Deed::CutOff(seen.client.clone()));
                Fate::Pass
            }
            OnWrite::ClockBack | OnWrite::ClockAhead => {
                let hours = if what == OnWrite::ClockBack { -1 } else { 1 };
                if let Some(life) = self.lives.get(&seen.client) {
                    life.clock.set_skew(SignedDuration::from_hours(hours));
                }
                Fate::Pass
            }
            _ => {
                self.deeds.push(Deed::Meddle(fault, what, Box::new(seen.clone())));
                Fate::Pass
            }
        }
    }

    fn on_request(&mut self, what: OnRequest) -> Fate {
        let code = match what {
            OnRequest::Unauthorized => 401,
            OnRequest::Forbidden => 403,
            OnRequest::Conflict => 409,
            OnRequest::TooMany => 429,
            OnRequest::Internal => 500,
            OnRequest::Unavailable => 503,
            OnRequest::Timeout => 504,
            OnRequest::Burst => {
                self.burst = 9;
                503
            }
            OnRequest::Lost => return Fate::LoseBefore,
            OnRequest::Late => return Fate::Delay(LATE),
        };
        Fate::Fail(Failure::of(code))
    }

    fn request(&mut self, seen: &Request) -> Fate {
        self.times.insert(seen.number, self.origin.elapsed());
        if !is_host(&seen.client) {
            return Fate::Pass;
        }
        if let Some((version, listed)) = self.travellers.get_mut(&seen.client)
            && seen.verb == Verb::List
            && !is_own(seen)
            && listed.insert((seen.resource.clone(), seen.namespace.clone().unwrap_or_default()))
        {
            let version = *version;
            self.say(&seen.client, format!("list {} as of version {version}", seen.resource));
            return Fate::AsOf(version);
        }
        if !self.armed || is_about_hosts(seen) {
            return Fate::Pass;
        }
        self.requests += 1;
        if self.requests > REQUESTS_MAX {
            return Fate::SilenceBefore;
        }
        let is_write = seen.verb.is_mutating() && seen.resource != "events";
        if is_write {
            self.writes += 1;
        }
        self.say(&seen.client, described(seen));
        for fault in self.plan.0.clone() {
            let fate = match fault {
                Fault::Write(number, what) if is_write && number == self.writes => {
                    self.on_write(fault, what, seen)
                }
                Fault::Request(number, what) if number == self.requests => self.on_request(what),
                _ => continue,
            };
            self.hit(fault);
            if fault.reach() == Reach::Request {
                self.troubled.push(Troubled::Request(seen.number));
            }
            return fate;
        }
        if self.burst > 0 {
            self.burst -= 1;
            return Fate::Fail(Failure::of(503));
        }
        Fate::Pass
    }

    fn event(&mut self, stream: &StreamSeen, event: &EventSeen) -> EventFate {
        self.version = event.version;
        if !is_host(&stream.client) {
            return EventFate::Deliver;
        }
        if self.travellers.contains_key(&stream.client) && event.number == 1 {
            return EventFate::Delay(LATE);
        }
        if !self.armed {
            return EventFate::Deliver;
        }
        self.events += 1;
        let name = at(&event.object, &["metadata", "name"]).and_then(Value::as_str).unwrap_or_default();
        self.say(
            &stream.client,
            format!("sees {} {} {name} at {}", event.change.name(), stream.resource, event.version),
        );
        let object = (stream.resource.clone(), name.to_owned());
        if self.hidden.as_ref() == Some(&object) {
            self.hidden = None;
            return EventFate::Gone;
        }
        let mut fate = EventFate::Deliver;
        for fault in self.plan.0.clone() {
            match fault {
                Fault::Lag(by) => {
                    self.hit.insert(fault);
                    fate = EventFate::Delay(
                        (self.came_at(event.version) + by).saturating_sub(self.origin.elapsed()),
                    );
                }
                Fault::Event(number, what) if number == self.events => {
                    self.hit(fault);
                    return match what {
                        OnEvent::Hide => {
                            self.deeds.push(Deed::Relist(HIDDEN_FOR));
                            EventFate::Hide
                        }
                        OnEvent::HidePair => {
                            self.hidden = Some(object);
                            self.deeds.push(Deed::Relist(HIDDEN_FOR));
                            EventFate::Hide
                        }
                        OnEvent::Late => EventFate::Delay(LATE),
                        OnEvent::Duplicate => EventFate::Duplicate,
                        OnEvent::Close => EventFate::Close,
                        OnEvent::Gone => EventFate::Gone,
                        OnEvent::Compact => {
                            self.deeds.push(Deed::Relist(Duration::ZERO));
                            EventFate::Deliver
                        }
                    };
                }
                _ => {}
            }
        }
        fate
    }
}

/// Whether a connection is a host's.
pub(super) fn is_host(client: &str) -> bool {
    client.starts_with("host-")
}

/// Whether a request is about the host's own objects: an older Reconciler is an older wish, and nothing tells it from a newer one.
fn is_own(seen: &Request) -> bool {
    matches!(seen.resource.as_str(), "modules" | "reconcilers" | "customresourcedefinitions")
}

/// Whether a request is one of the election.
fn is_about_hosts(seen: &Request) -> bool {
    seen.resource == "leases"
        || seen.resource == "events" && seen.namespace.as_deref() == Some(super::hosts::NAMESPACE)
}

fn described(seen: &Request) -> String {
    let mut text = format!("{:?} {}", seen.verb, seen.resource).to_lowercase();
    if let Some(subresource) = &seen.subresource {
        text.push_str(&format!("/{subresource}"));
    }
    for part in [&seen.namespace, &seen.name].into_iter().flatten() {
        text.push_str(&format!(" {part}"));
    }
    text
}

/// What the server shows requests and events to.
struct Hook(Arc<Mutex<Script>>, Arc<Notify>);

impl Hook {
    fn with<T>(&self, decide: impl FnOnce(&mut Script) -> T) -> T {
        let mut script = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let decided = decide(&mut script);
        if !script.deeds.is_empty() {
            self.1.notify_one();
        }
        decided
    }
}

impl Faults for Hook {
    fn request(&mut self, seen: &Request) -> Fate {
        self.with(|script| script.request(seen))
    }

    fn event(&mut self, stream: &StreamSeen, event: &EventSeen) -> EventFate {
        self.with(|script| script.event(stream, event))
    }
}

/// A cluster with hosts in it.
pub(super) struct World {
    pub(super) server: ApiServer,
    engine: Engine,
    script: Arc<Mutex<Script>>,
    deeds: Arc<Notify>,
    origin: Instant,
    epoch: Timestamp,
    seed: u64,
    elect: bool,
    skew: Duration,
    starts: AtomicU32,
    hosts: Mutex<Vec<Running>>,
    /// Whether a host is to run: one that crashed is started again.
    wanted: AtomicBool,
    records: Mutex<Vec<Record>>,
    pub(super) impure: Arc<Impure>,
    seams: Option<Seams>,
    spares: Arc<[NamedModule]>,
}

impl World {
    /// A copy of a cluster at this time, to which a plan happens once it is armed. In a runtime whose time stands still.
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
        let script = Script {
            armed: false,
            origin,
            writes: 0,
            requests: 0,
            events: 0,
            hit: plan
                .0
                .iter()
                .filter(|fault| matches!(fault, Fault::Rival | Fault::Skew(_)))
                .copied()
                .collect(),
            troubled: Vec::new(),
            asked: Vec::new(),
            lives: BTreeMap::new(),
            burst: 0,
            travel: None,
            travellers: BTreeMap::new(),
            hidden: None,
            first_version: version,
            version,
            deeds: Vec::new(),
            steps: Vec::new(),
            times: BTreeMap::new(),
            versions: Vec::new(),
            plan: plan.clone(),
        };
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

    fn hosts(&self) -> MutexGuard<'_, Vec<Running>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time on the wall of the cluster.
    pub(super) fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.origin.elapsed()).unwrap_or(SignedDuration::MAX);
        self.epoch.saturating_add(passed).unwrap_or(self.epoch)
    }

    /// From now on the plan happens, or no longer.
    pub(super) fn arm(&self, armed: bool) {
        let version = self.server.version();
        let mut script = self.script();
        script.armed = armed;
        if armed {
            script.first_version = version;
        }
    }

    /// Writes down what the driver does.
    pub(super) fn say(&self, who: &str, what: String) {
        self.script().say(who, what);
    }

    /// Every request so far.
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
        if let Some(version) = script.travel.take() {
            script.travellers.insert(running.client.clone(), (version, BTreeSet::new()));
        }
        script.say(&running.client, "starts".into());
        drop(script);
        self.hosts().push(running);
    }

    /// Starts the hosts, and waits until one works.
    pub(super) async fn start_hosts(&self) -> anyhow::Result<()> {
        self.wanted.store(true, Ordering::Relaxed);
        for _ in 0..if self.elect { 2 } else { 1 } {
            self.start_one();
        }
        let until = self.origin.elapsed() + Duration::from_secs(120);
        while !self.hosts().iter().any(Running::works) {
            anyhow::ensure!(self.origin.elapsed() < until, "no host works within 120 s");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Ends all hosts where they are; none is started again.
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
        if self.wanted.load(Ordering::Relaxed) {
            self.start_one();
        }
    }

    /// Waits until no host has changed anything for as long as the longest back-off; false when that does not come to be.
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

    /// When a host last changed anything, or tried to.
    fn last_change(&self) -> Duration {
        let number = self.with_records(|records| {
            let is_write = |record: &&Record| {
                is_host(&record.seen.client)
                    && record.seen.verb.is_mutating()
                    && !is_about_hosts(&record.seen)
            };
            records.iter().rev().find(is_write).map(|record| record.seen.number)
        });
        number.and_then(|number| self.script().times.get(&number).copied()).unwrap_or_default()
    }

    /// Makes every watch list anew, so that nothing stays hidden.
    pub(super) fn relist(&self) {
        // A watch that has brought the last version would go on from there: there must be a later one, of something that nobody sees.
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

    // === What goes on beside the hosts ===

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

    async fn do_one(&self, deed: Deed) {
        match deed {
            Deed::Crash(client) => self.crash(&client).await,
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
                    script.troubled.push(troubled);
                }
            }
        }
    }

    /// Does what somebody should not, after a request; whom it concerns, if it comes to anything.
    async fn meddle(&self, what: OnWrite, seen: &Request) -> Option<Troubled> {
        let written = pintle_core::object::reference(&seen.body);
        // A patch does not say what it is about in full; applies are most of what hosts do.
        if seen.verb != Verb::Apply || written.kind.is_empty() {
            return None;
        }
        // The request that it follows has been carried out by then.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let merge = |target: &ObjectRef, subresource: Option<&str>, patch: Value| {
            let subresource = subresource.map(Into::into);
            self.somebody(&Act::Merge { target: target.clone(), subresource, patch })
        };
        let Some(root) = self.root_of(&written) else {
            // What hosts patch without owning it is edited back; whoever deletes it means it.
            let is_patched = what == OnWrite::Edit && !written.api_version.starts_with("pintle.dev/");
            let mut changes = changes(&seen.body).into_iter().filter(|_| is_patched);
            let is_done = changes.any(|patch| merge(&written, None, patch).is_ok());
            return is_done.then_some(Troubled::Request(seen.number));
        };
        let is_root = root == written;
        // What was written by way of its root alone is the root's own trouble.
        let troubled = Troubled::Root(root.clone());
        let is_done = match what {
            OnWrite::Recreate => self.recreate(&root).await,
            OnWrite::EditStatus => {
                merge(&root, Some("status"), json!({"status": {"conditions": []}})).is_ok()
            }
            OnWrite::Churn => self.churn(&root).await,
            OnWrite::SwapTraps
            | OnWrite::SwapBroken
            | OnWrite::SwapLoops
            | OnWrite::SwapAllocates
            | OnWrite::SwapMissing => return self.swap(what, &root).await,
            // What happens to what no watch may show is put right with the next edit of its root, as the Reconciler says.
            _ if is_root || !reconciler::is_watchable(&written.kind()) => false,
            OnWrite::Edit => {
                let changes = changes(&seen.body);
                changes.into_iter().any(|patch| merge(&written, None, patch).is_ok())
            }
            OnWrite::Delete => {
                let cascade = pintle_simulator::Cascade::Background;
                self.somebody(&Act::Delete { target: written, cascade }).is_ok()
            }
            OnWrite::StripLabels => {
                let labels = json!({names::LABEL_RECONCILER: null, names::LABEL_ROOT: null});
                merge(&written, None, json!({"metadata": {"labels": labels}})).is_ok()
            }
            OnWrite::StripOwner => {
                let owners = self.server.object(&written)?["metadata"]["ownerReferences"].clone();
                let is_stripped =
                    merge(&written, None, json!({"metadata": {"ownerReferences": null}})).is_ok();
                if is_stripped {
                    // It is no longer provably the root's, as the root says, until somebody gives it back.
                    tokio::time::sleep(MEDDLED_FOR).await;
                    let _ = merge(&written, None, json!({"metadata": {"ownerReferences": owners}}));
                }
                is_stripped
            }
            OnWrite::StripManaged => {
                merge(&written, None, json!({"metadata": {"managedFields": [{}]}})).is_ok()
            }
            _ => false,
        };
        is_done.then_some(troubled)
    }

    /// Has the Reconciler of a root name another module for a while.
    async fn swap(&self, what: OnWrite, root: &ObjectRef) -> Option<Troubled> {
        let reconciler = self.reconciler_of(root)?;
        let other = format!("{}-{}", what.word(), reconciler.name);
        let spare = self.spares.iter().find(|(name, _)| *name == other);
        if what != OnWrite::SwapMissing && spare.is_none() {
            return None;
        }
        let pushed: Vec<Value> = spare
            .into_iter()
            .flat_map(|(name, bytes)| push_objects(name, bytes, &Digest::of(bytes).to_string()))
            .collect();
        for object in &pushed {
            let object = object.clone();
            self.somebody(&Act::Apply { object, manager: "kubectl".into(), force: true }).ok()?;
        }
        let before = self.server.object(&reconciler).map(|object| object["spec"]["module"].clone());
        let patch = |module: Value| Act::Merge {
            target: reconciler.clone(),
            subresource: None,
            patch: json!({"spec": {"module": module}}),
        };
        self.somebody(&patch(other.as_str().into())).ok()?;
        tokio::time::sleep(MEDDLED_FOR).await;
        // What somebody else put in its place meanwhile stays.
        if self.server.object(&reconciler).is_some_and(|now| now["spec"]["module"] == other.as_str()) {
            let _ = self.somebody(&patch(before.unwrap_or_default()));
        }
        for object in &pushed {
            let cascade = pintle_simulator::Cascade::Background;
            let _ = self.somebody(&Act::Delete { target: pintle_core::object::reference(object), cascade });
        }
        Some(Troubled::Of(reconciler))
    }

    fn somebody(&self, act: &Act) -> Result<Value, Failure> {
        let done = self.act("somebody", act);
        let outcome =
            done.as_ref().err().map_or_else(String::new, |failure| format!(": {}", failure.message));
        self.say("somebody", format!("{}{outcome}", named(act)));
        done
    }

    /// Does something as a user. What is of cluster scope may be named with a namespace.
    fn act(&self, who: &str, act: &Act) -> Result<Value, Failure> {
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
                // What is wrong with it says more than that it is in no namespace.
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
            self.script().asked.extend(generation.map(|generation| Asked { at, object, uid, generation }));
        }
        done
    }

    /// The root of what a host wrote: itself, or the owner that it names.
    fn root_of(&self, written: &ObjectRef) -> Option<ObjectRef> {
        if written.api_version.starts_with("pintle.dev/") {
            return None;
        }
        let live = self.server.object(written)?;
        let owner = live.pointer("/metadata/ownerReferences/0").cloned();
        let Some(owner) = owner else {
            return self.reconciler_of(written).map(|_| written.clone());
        };
        let text = |key: &str| owner[key].as_str().unwrap_or_default().to_owned();
        Some(ObjectRef {
            api_version: text("apiVersion"),
            kind: text("kind"),
            namespace: written.namespace.clone(),
            name: text("name"),
        })
    }

    fn reconciler_of(&self, root: &ObjectRef) -> Option<ObjectRef> {
        let snapshot = self.server.snapshot();
        let found = snapshot.objects.iter().find(|(reference, object)| {
            reference.kind == "Reconciler"
                && object["spec"]["for"]["kind"] == root.kind.as_str()
                && object["spec"]["for"]["apiVersion"] == root.api_version.as_str()
        });
        found.map(|(reference, _)| reference.clone())
    }

    /// Changes the spec of a root for a while, as far as the API server lets it; whether it came to that.
    async fn churn(&self, root: &ObjectRef) -> bool {
        let Some(before) = self.server.object(root) else { return false };
        let before = before["spec"].as_object().cloned().unwrap_or_default();
        let merge = |spec: Value| {
            let patch = json!({"spec": spec});
            self.somebody(&Act::Merge { target: root.clone(), subresource: None, patch })
        };
        let nulls: Map<String, Value> = before.keys().map(|key| (key.clone(), Value::Null)).collect();
        let one = |key: &String| json!({key.as_str(): null});
        let changed = changes(&json!({"spec": before})).into_iter().map(|patch| patch["spec"].clone());
        let mut tries = std::iter::once(Value::Object(nulls)).chain(before.keys().map(one)).chain(changed);
        let Some(meddled) = tries.find_map(|spec| merge(spec).ok()) else { return false };
        tokio::time::sleep(MEDDLED_FOR).await;
        // What somebody else wanted meanwhile stays.
        if self.server.object(root).is_some_and(|now| now["spec"] == meddled["spec"]) {
            let _ = merge(Value::Object(before));
        }
        true
    }

    /// Deletes a root and makes it again; whether it came to that.
    async fn recreate(&self, root: &ObjectRef) -> bool {
        let Some(before) = self.server.object(root) else { return false };
        let cascade = pintle_simulator::Cascade::Background;
        if self.somebody(&Act::Delete { target: root.clone(), cascade }).is_err() {
            return false;
        }
        let (until, since) = (self.origin.elapsed() + Duration::from_secs(60), self.script().steps.len());
        while self.server.object(root).is_some() {
            if self.origin.elapsed() >= until {
                self.say("somebody", format!("waits in vain for the end of {root}"));
                return true;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        let deleted = format!("deletes {root}");
        if self.script().steps.iter().skip(since).any(|step| step.who == "user" && step.what == deleted) {
            return true;
        }
        let metadata = json!({
            "name": root.name, "namespace": root.namespace,
            "labels": before["metadata"]["labels"], "annotations": before["metadata"]["annotations"],
        });
        let mut object = json!({
            "apiVersion": root.api_version, "kind": root.kind, "metadata": metadata, "spec": before["spec"],
        });
        without_nulls(&mut object);
        let _ = self.somebody(&Act::Apply { object, manager: "kubectl".into(), force: true });
        true
    }
}

fn without_nulls(value: &mut Value) {
    if let Some(map) = value.as_object_mut() {
        map.retain(|_, value| !value.is_null());
        map.values_mut().for_each(without_nulls);
    }
}

fn named(act: &Act) -> String {
    match act {
        Act::Apply { object, .. } => format!("applies {}", pintle_core::object::reference(object)),
        Act::Merge { target, patch, .. } => format!("patches {target} with {patch}"),
        Act::Delete { target, .. } => format!("deletes {target}"),
        _ => "acts".into(),
    }
}

/// Merge patches that change one value each of what was written, the most telling first.
fn changes(written: &Value) -> Vec<Value> {
    fn leaves(value: &Value, path: &mut Vec<String>, found: &mut Vec<Value>) {
        let changed = match value {
            Value::Object(map) => {
                for (key, value) in map {
                    path.push(key.clone());
                    leaves(value, path, found);
                    path.pop();
                }
                return;
            }
            Value::String(text) => json!(format!("{text}-meddled")),
            Value::Number(number) => json!(number.as_i64().unwrap_or(0) + 1),
            Value::Bool(is) => json!(!is),
            _ => return,
        };
        found.push(path.iter().rev().fold(changed, |inner, key| json!({key.as_str(): inner})));
    }
    let mut found = Vec::new();
    for (key, value) in written.as_object().into_iter().flatten() {
        if !matches!(key.as_str(), "apiVersion" | "kind" | "metadata" | "status") {
            leaves(value, &mut vec![key.clone()], &mut found);
        }
    }
    let labels = at(written, &["metadata", "labels"]).and_then(Value::as_object);
    for (key, _) in labels.into_iter().flatten().filter(|(key, _)| !key.starts_with("pintle.dev/")) {
        found.push(json!({"metadata": {"labels": {key.as_str(): "meddled"}}}));
    }
    found
}

impl Backend for World {
    async fn apply(&self, object: &Value) -> anyhow::Result<()> {
        let act = Act::Apply { object: object.clone(), manager: "kubectl".into(), force: true };
        self.as_user(&act).await
    }

    async fn patch(&self, object: &ObjectRef, patch: &Value) -> anyhow::Result<()> {
        let act = Act::Merge { target: object.clone(), subresource: None, patch: patch.clone() };
        self.as_user(&act).await
    }

    async fn delete(&self, object: &ObjectRef, cascade: Cascade) -> anyhow::Result<()> {
        let cascade = match cascade {
            Cascade::Background => pintle_simulator::Cascade::Background,
            Cascade::Orphan => pintle_simulator::Cascade::Orphan,
            Cascade::Foreground => pintle_simulator::Cascade::Foreground,
        };
        let act = Act::Delete { target: object.clone(), cascade };
        self.as_user(&act).await
    }

    async fn get(&self, object: &ObjectRef) -> anyhow::Result<Option<Value>> {
        Ok(self.server.object(object).map(|object| Value::clone(&object)))
    }

    async fn events(&self, object: &ObjectRef) -> anyhow::Result<Vec<String>> {
        let is_about = |event: &Value| {
            event["regarding"]["kind"] == object.kind.as_str()
                && event["regarding"]["name"] == object.name.as_str()
        };
        let snapshot = self.server.snapshot();
        let events = snapshot
            .objects
            .iter()
            .filter(|(reference, event)| reference.api_version == "events.k8s.io/v1" && is_about(event));
        Ok(events.filter_map(|(_, event)| Some(event["reason"].as_str()?.to_owned())).collect())
    }

    async fn stop_host(&self, how: Stop) -> anyhow::Result<()> {
        self.say("user", format!("stops the host: {how:?}").to_lowercase());
        self.wanted.store(false, Ordering::Relaxed);
        let hosts: Vec<Running> = self.hosts().drain(..).collect();
        for host in hosts {
            match how {
                Stop::Killed => host.kill(),
                Stop::Gracefully => host.stop().await,
            }
        }
        Ok(())
    }

    async fn start_host(&self) -> anyhow::Result<()> {
        self.start_hosts().await.context("starting the host")
    }

    async fn advance(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    fn mark(&self) -> Mark {
        Mark(self.origin.elapsed())
    }

    async fn calls_since(&self, mark: Mark, seen: Seen<'_>) -> anyhow::Result<Option<Vec<Call>>> {
        let calls = self.with_records(|records| {
            let script = self.script();
            let counts = |record: &&Record| {
                let request = &record.seen;
                is_host(&request.client)
                    && request.verb.is_mutating()
                    && !is_about_hosts(request)
                    && script.times.get(&request.number).is_some_and(|time| *time >= mark.0)
                    && match seen {
                        Seen::Everywhere => true,
                        Seen::In(namespace) => request.namespace.as_deref() == Some(namespace),
                    }
            };
            records.iter().filter(counts).map(call).collect()
        });
        Ok(Some(calls))
    }

    fn host_log(&self, _: &[&str], lines: usize) -> Vec<String> {
        let script = self.script();
        let from = script.steps.len().saturating_sub(lines);
        script.steps.iter().skip(from).map(ToString::to_string).collect()
    }
}

/// A request as scenarios count it.
fn call(record: &Record) -> Call {
    let request = &record.seen;
    let subresource = request.subresource.as_ref().map_or_else(String::new, |name| format!("/{name}"));
    Call {
        verb: match request.verb {
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Delete => "delete",
            _ => "patch",
        }
        .into(),
        resource: format!("{}{subresource}", request.resource),
        namespace: request.namespace.clone(),
        name: request.name.clone(),
        acting_as: (request.actor != request.client).then(|| request.actor.clone()),
        code: record.code,
        forbidden: record.code == 403,
    }
}

fn refused(failure: Failure) -> anyhow::Error {
    anyhow::anyhow!("{} ({}): {}", failure.reason, failure.code, failure.message)
}

impl World {
    /// Whether a host runs.
    pub(super) fn has_hosts(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    async fn as_user(&self, act: &Act) -> anyhow::Result<()> {
        tokio::time::sleep(USER_TAKES).await;
        self.say("user", named(act));
        self.act("user", act).map(drop).map_err(refused)
    }

    /// What happened when a request was made.
    pub(super) fn step_of(&self, number: u64) -> Option<Step> {
        let script = self.script();
        let at = script.times.get(&number)?;
        script.steps.iter().rev().find(|step| step.at <= *at).cloned()
    }
}
