//! Metrics: controller-runtime's names where it has one, so that existing dashboards work, and our own. Never labelled by object.
//!
//! `docs/metrics.md` explains each of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use pintle_core::{ApiError, Hits, Priority};
use pintle_kubernetes::observer::Observer;
use pintle_modules::{Limit, Report};
use pintle_runtime::{
    clock, labels,
    metrics::{self, Histograms, add, time},
};
use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge, histogram::Histogram},
    registry::Registry,
};

use crate::limits::{self, LIMITS};

/// From a pass that found nothing to do to one that waited out a slow API server, in seconds.
const PASS_BUCKETS: [f64; 10] = [0.0005, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.0, 10.0];
/// From an idle queue to one behind a thousand roots, in seconds.
const WAIT_BUCKETS: [f64; 9] = [0.0001, 0.001, 0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 30.0];
/// From a small guest's call to the longest deadline that can be set, in seconds.
const GUEST_BUCKETS: [f64; 10] =
    [0.000_02, 0.000_05, 0.000_1, 0.000_2, 0.000_5, 0.001, 0.005, 0.02, 0.1, 1.0];
/// From a small guest to a compiler's limit on the wall, in seconds.
const COMPILE_BUCKETS: [f64; 10] = [0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 30.0, 120.0];

/// The reasons that one Reconciler may have. A guest makes up reasons of its own; those beyond are counted as [`OTHER`].
const REASONS_MAX: usize = 64;
const OTHER: &str = "Other";

/// How a pass ended.
const RESULTS: [&str; 3] = ["success", "requeue_after", "error"];
/// How a root is.
const STATES: [&str; 3] = ["ready", "failing", "other"];
/// controller-runtime's priorities: 0 for what somebody changed, -100 for lists and resyncs.
pub(crate) const PRIORITIES: [(Priority, &str); 2] = [(Priority::Edit, "0"), (Priority::Background, "-100")];

labels! {
    Controller { controller: String }
    Queue { name: String, controller: String }
    Depth { name: String, controller: String, priority: &'static str }
    Pass { controller: String, result: &'static str }
    Error { controller: String, reason: String }
    Roots { controller: String, state: &'static str }
    Hit { controller: String, limit: &'static str }
    Readiness { controller: String, reason: String }
    Write { controller: String, verb: &'static str, code: u16 }
    Call { verb: String, host: String }
    Reply { code: String, method: String, host: String }
    Election { name: &'static str }
    Compiled { outcome: &'static str }
    Size { of: &'static str }
    Reserved { purpose: &'static str }
    Build { version: &'static str }
}

impl Controller {
    pub(crate) fn of(controller: &str) -> Self {
        Self { controller: controller.to_owned() }
    }
}

impl Queue {
    fn of(controller: &str) -> Self {
        Self { name: controller.to_owned(), controller: controller.to_owned() }
    }
}

impl Depth {
    pub(crate) fn of(controller: &str, priority: &'static str) -> Self {
        Self { name: controller.to_owned(), controller: controller.to_owned(), priority }
    }
}

type Counters<L> = Family<L, Counter>;
type Gauge = gauge::Gauge<f64, AtomicU64>;
type Gauges<L> = Family<L, Gauge>;

/// Everything that the operator counts.
pub struct Metrics {
    registry: Registry,
    reconciles: Counters<Pass>,
    reconcile_errors: Counters<Controller>,
    terminal_errors: Counters<Controller>,
    panics: Counters<Controller>,
    reconcile_seconds: Histograms<Controller>,
    pub(crate) max_concurrent: Gauges<Controller>,
    active_workers: Gauges<Controller>,
    pub(crate) queue_depth: Gauges<Depth>,
    queue_adds: Counters<Queue>,
    queue_seconds: Histograms<Queue>,
    work_seconds: Histograms<Queue>,
    unfinished_seconds: Gauges<Queue>,
    longest_running_seconds: Gauges<Queue>,
    queue_retries: Counters<Queue>,
    requests: Counters<Reply>,
    request_seconds: Histograms<Call>,
    pub(crate) leader: Gauges<Election>,
    errors_by_reason: Counters<Error>,
    guest_seconds: Histograms<Controller>,
    guest_memory: Gauges<Controller>,
    writes: Counters<Write>,
    roots: Gauges<Roots>,
    pub(crate) backing_off: Gauges<Controller>,
    pub(crate) throttled: Gauges<Controller>,
    pub(crate) reconciler_ready: Gauges<Readiness>,
    limits_hit: Counters<Hit>,
    swaps: Counters<Controller>,
    compile_seconds: Histograms<Compiled>,
    pub(crate) cache_objects: Gauges<Size>,
    pub(crate) cache_bytes: Gauges<Size>,
    pub(crate) memory_budget: Gauges<Size>,
    pub(crate) memory_reserved: Gauges<Reserved>,
    pub(crate) memory_waiting: Gauge,
    open: Mutex<BTreeMap<String, Open>>,
    running: Mutex<BTreeMap<u64, (String, Duration)>>,
    next: AtomicU64,
}

/// The values of a controller's labels that guests and the API server choose. A family does not tell which series it has, and they go with
/// their controller.
#[derive(Default)]
struct Open {
    reasons: BTreeSet<String>,
    writes: BTreeSet<(&'static str, u16)>,
}

/// How a reconcile ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended<'a> {
    /// Nothing is left to do.
    Success,
    /// Nothing is wrong, and the root comes back by itself.
    RequeueAfter,
    /// For this reason not all work was done; a retry may help.
    Failed(&'a str),
    /// For this reason not all work was done, and only a change helps.
    Terminal(&'a str),
}

impl Default for Metrics {
    fn default() -> Self {
        let passes = || Histogram::new(PASS_BUCKETS);
        let waits = || Histogram::new(WAIT_BUCKETS);
        let calls = || Histogram::new(GUEST_BUCKETS);
        let compilers = || Histogram::new(COMPILE_BUCKETS);
        let mut all = Registry::default();
        let build: Gauges<Build> = add(&mut all, "pintle_build_info", "1, with the version of the host");
        build.get_or_create(&Build { version: env!("CARGO_PKG_VERSION") }).set(1.0);
        let to = &mut all;
        Self {
            reconciles: add(to, "controller_runtime_reconcile", "Passes, by how they ended"),
            reconcile_errors: add(to, "controller_runtime_reconcile_errors", "Passes that failed"),
            terminal_errors: add(
                to,
                "controller_runtime_terminal_reconcile_errors",
                "Those that only a change can end",
            ),
            panics: add(to, "controller_runtime_reconcile_panics", "Passes that panicked"),
            reconcile_seconds: time(
                to,
                "controller_runtime_reconcile_time_seconds",
                "How long passes took",
                passes,
            ),
            max_concurrent: add(
                to,
                "controller_runtime_max_concurrent_reconciles",
                "How many passes may run at once",
            ),
            active_workers: add(to, "controller_runtime_active_workers", "Passes that are running"),
            queue_depth: add(to, "workqueue_depth", "Roots that wait for a worker"),
            queue_adds: add(to, "workqueue_adds", "Times that something asked for a pass over a root"),
            queue_seconds: time(
                to,
                "workqueue_queue_duration_seconds",
                "How long a root waited for a worker",
                waits,
            ),
            work_seconds: time(
                to,
                "workqueue_work_duration_seconds",
                "How long a worker was busy with a root",
                passes,
            ),
            unfinished_seconds: add(
                to,
                "workqueue_unfinished_work_seconds",
                "Age of the running passes, added up",
            ),
            longest_running_seconds: add(
                to,
                "workqueue_longest_running_processor_seconds",
                "Age of the oldest running pass",
            ),
            queue_retries: add(to, "workqueue_retries", "Passes that are to be repeated after a back-off"),
            requests: add(to, "rest_client_requests", "Requests to the API server, by status code"),
            request_seconds: time(
                to,
                "rest_client_request_duration_seconds",
                "How long the API server took to begin its reply",
                passes,
            ),
            leader: add(
                to,
                "leader_election_master_status",
                "1 on the host that leads, 0 on one that stands by",
            ),
            errors_by_reason: add(to, "pintle_reconcile_errors", "Passes that failed, by reason"),
            guest_seconds: time(to, "pintle_guest_call_seconds", "How long calls of guests took", calls),
            guest_memory: add(to, "pintle_guest_memory_bytes", "Memory of the last call of a guest"),
            writes: add(to, "pintle_api_requests", "Writes of passes, by status code"),
            roots: add(to, "pintle_roots", "Roots: ready, failing, or other"),
            backing_off: add(to, "pintle_roots_backing_off", "Roots that wait for the end of a back-off"),
            throttled: add(to, "pintle_roots_throttled", "Roots that are slowed"),
            reconciler_ready: add(to, "pintle_reconciler_ready", "1 where a Reconciler is Ready, else 0"),
            limits_hit: add(to, "pintle_limits_hit", "Times that a limit was hit"),
            swaps: add(to, "pintle_swaps", "Times that another module came into force"),
            compile_seconds: time(
                to,
                "pintle_compile_seconds",
                "How long compilers ran, by how they ended",
                compilers,
            ),
            cache_objects: add(to, "pintle_cache_objects", "Objects that the host keeps in memory"),
            cache_bytes: add(to, "pintle_cache_bytes", "The memory that they take"),
            memory_budget: add(to, "pintle_memory_budget_bytes", "Memory of the process, by use"),
            memory_reserved: add(to, "pintle_memory_reserved_bytes", "How much of the budget is reserved"),
            memory_waiting: add(to, "pintle_memory_waiting", "How many wait for memory of the budget"),
            registry: all,
            open: Mutex::default(),
            running: Mutex::default(),
            next: AtomicU64::new(0),
        }
    }
}

impl Observer for Metrics {
    fn requested(&self, method: &str, host: &str, code: Option<u16>, took: Duration) {
        let code = code.map_or_else(|| "<error>".to_owned(), |code| code.to_string());
        let reply = Reply { code, method: method.to_owned(), host: host.to_owned() };
        self.requests.get_or_create(&reply).inc();
        let call = Call { verb: method.to_owned(), host: host.to_owned() };
        self.request_seconds.get_or_create(&call).observe(took.as_secs_f64());
    }
}

impl Report for Metrics {
    fn compiled(&self, outcome: &'static str, took: Duration) {
        self.compile_seconds.get_or_create(&Compiled { outcome }).observe(took.as_secs_f64());
    }

    fn limit_hit(&self, counted_for: &str, limit: Limit) {
        Self::limit_hit(self, counted_for, limit.name());
    }
}

impl Metrics {
    /// Something asked for a pass over a root.
    pub(crate) fn queued(&self, controller: &str) {
        self.queue_adds.get_or_create(&Queue::of(controller)).inc();
    }

    /// A worker begins to work on a root. Ends with [`Metrics::ended`].
    pub(crate) fn began(&self, controller: &str, waited: Option<Duration>) -> u64 {
        if let Some(waited) = waited {
            self.queue_seconds.get_or_create(&Queue::of(controller)).observe(waited.as_secs_f64());
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.insert(id, (controller.to_owned(), clock::monotonic()));
        id
    }

    pub(crate) fn ended(&self, id: u64, retried: bool) {
        let ended = self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        let Some((controller, began)) = ended else { return };
        let queue = Queue::of(&controller);
        let took = clock::monotonic().saturating_sub(began);
        self.work_seconds.get_or_create(&queue).observe(took.as_secs_f64());
        if retried {
            self.queue_retries.get_or_create(&queue).inc();
        }
    }

    pub(crate) fn panicked(&self, controller: &str) {
        self.panics.get_or_create(&Controller::of(controller)).inc();
    }

    pub(crate) fn reconciled(&self, controller: &str, ended: Ended<'_>, took: Duration) {
        let of = Controller::of(controller);
        let [success, requeue_after, error] = RESULTS;
        let result = match ended {
            Ended::Success => success,
            Ended::RequeueAfter => requeue_after,
            Ended::Failed(_) | Ended::Terminal(_) => error,
        };
        self.reconciles.get_or_create(&Pass { controller: controller.to_owned(), result }).inc();
        self.reconcile_seconds.get_or_create(&of).observe(took.as_secs_f64());
        if let Ended::Terminal(_) = ended {
            self.terminal_errors.get_or_create(&of).inc();
        }
        if let Ended::Failed(reason) | Ended::Terminal(reason) = ended {
            self.reconcile_errors.get_or_create(&of).inc();
            let error = Error { controller: controller.to_owned(), reason: self.reason(controller, reason) };
            self.errors_by_reason.get_or_create(&error).inc();
            if let Some(limit) = limits::of_reason(reason) {
                self.limit_hit(controller, limit);
            }
        }
    }

    /// A reason as a label: itself, while this controller has not too many.
    fn reason(&self, controller: &str, reason: &str) -> String {
        let mut open = self.open();
        let reasons = &mut open.entry(controller.to_owned()).or_default().reasons;
        if reasons.len() < REASONS_MAX {
            reasons.insert(reason.to_owned());
        }
        if reasons.contains(reason) { reason.to_owned() } else { OTHER.to_owned() }
    }

    /// Something that this Reconciler is responsible for hit a limit. A pass that fails for it is counted by [`Self::reconciled`].
    pub(crate) fn limit_hit(&self, controller: &str, limit: &'static str) {
        self.limits_hit(controller, limit, 1);
    }

    /// The limits that a pass hit without failing for it.
    pub(crate) fn hits(&self, controller: &str, hits: Hits) {
        let Hits { events, records, asking } = hits;
        let hits = [(limits::EVENTS, events), (limits::RECORDS, records), (limits::ASKING, asking.into())];
        for (limit, times) in hits.into_iter().filter(|(_, times)| *times > 0) {
            self.limits_hit(controller, limit, times);
        }
    }

    fn limits_hit(&self, controller: &str, limit: &'static str, times: u32) {
        let hit = Hit { controller: controller.to_owned(), limit };
        self.limits_hit.get_or_create(&hit).inc_by(times.into());
    }

    pub(crate) fn guest_called(&self, controller: &str, took: Duration, memory_bytes: usize) {
        let of = Controller::of(controller);
        self.guest_seconds.get_or_create(&of).observe(took.as_secs_f64());
        self.guest_memory.get_or_create(&of).set(memory_bytes as f64);
    }

    pub(crate) fn wrote(&self, controller: &str, verb: &'static str, error: Option<&ApiError>) {
        let code = error.map_or(200, |error| error.code);
        self.open().entry(controller.to_owned()).or_default().writes.insert((verb, code));
        self.writes.get_or_create(&Write { controller: controller.to_owned(), verb, code }).inc();
    }

    /// How many roots are in each of the [`STATES`].
    pub(crate) fn count_roots(&self, controller: &str, counts: [u32; 3]) {
        for (state, count) in STATES.into_iter().zip(counts) {
            self.roots.get_or_create(&Roots { controller: controller.to_owned(), state }).set(count.into());
        }
    }

    /// Another module came into force.
    pub(crate) fn swapped(&self, controller: &str) {
        self.swaps.get_or_create(&Controller::of(controller)).inc();
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<String, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets a Reconciler that is gone: its series end.
    pub(crate) fn forget(&self, controller: &str) {
        let of = Controller::of(controller);
        for family in [&self.reconcile_errors, &self.terminal_errors, &self.panics, &self.swaps] {
            family.remove(&of);
        }
        for family in [&self.reconcile_seconds, &self.guest_seconds] {
            family.remove(&of);
        }
        let gauges = [&self.max_concurrent, &self.active_workers, &self.guest_memory];
        for family in gauges.into_iter().chain([&self.backing_off, &self.throttled]) {
            family.remove(&of);
        }
        let queue = Queue::of(controller);
        for family in [&self.queue_adds, &self.queue_retries] {
            family.remove(&queue);
        }
        for family in [&self.queue_seconds, &self.work_seconds] {
            family.remove(&queue);
        }
        for family in [&self.unfinished_seconds, &self.longest_running_seconds] {
            family.remove(&queue);
        }
        for (_, priority) in PRIORITIES {
            self.queue_depth.remove(&Depth::of(controller, priority));
        }
        for result in RESULTS {
            self.reconciles.remove(&Pass { controller: controller.to_owned(), result });
        }
        for state in STATES {
            self.roots.remove(&Roots { controller: controller.to_owned(), state });
        }
        for &limit in LIMITS {
            self.limits_hit.remove(&Hit { controller: controller.to_owned(), limit });
        }
        let Open { reasons, writes } = self.open().remove(controller).unwrap_or_default();
        for reason in reasons.into_iter().chain([OTHER.to_owned()]) {
            self.errors_by_reason.remove(&Error { controller: controller.to_owned(), reason });
        }
        for (verb, code) in writes {
            self.writes.remove(&Write { controller: controller.to_owned(), verb, code });
        }
    }

    /// The exposition text. Sets the gauges about the workers of these controllers first. `Shared::metrics_text`, which calls this, has
    /// set the other gauges.
    pub(crate) fn text<'a>(&self, controllers: impl Iterator<Item = &'a String>) -> String {
        let now = clock::monotonic();
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for controller in controllers {
            let mine = running.values().filter(|(whose, _)| whose == controller);
            let ages: Vec<f64> = mine.map(|(_, began)| now.saturating_sub(*began).as_secs_f64()).collect();
            let queue = Queue::of(controller);
            self.active_workers.get_or_create(&Controller::of(controller)).set(ages.len() as f64);
            self.unfinished_seconds.get_or_create(&queue).set(ages.iter().sum());
            self.longest_running_seconds.get_or_create(&queue).set(ages.iter().copied().fold(0.0, f64::max));
        }
        metrics::text(&self.registry)
    }
}

#[cfg(test)]
mod tests;
