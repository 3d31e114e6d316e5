//! Metrics: controller-runtime's names where it has one, so that existing dashboards work, and our own. Never labelled by object.
//!
//! [`Metric`] is the whole list; registering, `docs/metrics.md` and forgetting a Reconciler that is gone follow from it.

mod report;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use pintle_core::{ApiError, Hits};
use pintle_kubernetes::observer::Observer;
use pintle_runtime::clock;
use prometheus_client::{
    encoding::text,
    metrics::{
        counter::Counter,
        family::{Family, MetricConstructor},
        gauge::Gauge,
        histogram::Histogram,
    },
    registry::Registry,
};

use crate::limits::Limit;

/// A metric of the host. What it is called and what it means: [`Metric::spec`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Metric {
    Reconciles,
    ReconcileErrors,
    TerminalErrors,
    Panics,
    ReconcileSeconds,
    MaxConcurrent,
    ActiveWorkers,
    QueueDepth,
    QueueAdds,
    QueueSeconds,
    WorkSeconds,
    UnfinishedSeconds,
    LongestRunningSeconds,
    QueueRetries,
    Requests,
    RequestSeconds,
    Leader,
    ErrorsByReason,
    GuestSeconds,
    GuestMemory,
    Writes,
    Roots,
    BackingOff,
    Throttled,
    LimitsHit,
    Swaps,
    Compiles,
    CompileSeconds,
    CacheObjects,
    CacheBytes,
    MemoryBudget,
    MemoryReserved,
    MemoryWaiting,
    Build,
}

/// What a metric is.
pub(crate) struct Spec {
    /// Its name; that of a counter without the `_total` that its samples end with.
    name: &'static str,
    sort: Sort,
    labels: &'static [&'static str],
    help: &'static str,
}

#[derive(Clone, Copy)]
enum Sort {
    Counter,
    Gauge,
    Histogram(&'static [f64]),
}

/// From a pass that found nothing to do to one that waited out a slow API server, in seconds.
const PASS_BUCKETS: &[f64] = &[0.0005, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.0, 10.0];
/// From an idle queue to one behind a thousand roots, in seconds.
const WAIT_BUCKETS: &[f64] = &[0.0001, 0.001, 0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 30.0];
/// From a small guest's call to the longest deadline that can be set, in seconds.
const GUEST_BUCKETS: &[f64] = &[0.000_02, 0.000_05, 0.000_1, 0.000_2, 0.000_5, 0.001, 0.005, 0.02, 0.1, 1.0];

/// From a small guest to a compiler's limit on the wall, in seconds.
const COMPILE_BUCKETS: &[f64] = &[0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 30.0, 120.0];

/// The reasons that one Reconciler may have. A guest makes up reasons of its own; those beyond are counted as `Other`.
const REASONS_MAX: usize = 64;

impl Metric {
    /// All of them, in the order of the page about them.
    pub(crate) const ALL: [Self; 34] = [
        Self::Reconciles,
        Self::ReconcileErrors,
        Self::TerminalErrors,
        Self::Panics,
        Self::ReconcileSeconds,
        Self::MaxConcurrent,
        Self::ActiveWorkers,
        Self::QueueDepth,
        Self::QueueAdds,
        Self::QueueSeconds,
        Self::WorkSeconds,
        Self::UnfinishedSeconds,
        Self::LongestRunningSeconds,
        Self::QueueRetries,
        Self::Requests,
        Self::RequestSeconds,
        Self::Leader,
        Self::ErrorsByReason,
        Self::GuestSeconds,
        Self::GuestMemory,
        Self::Writes,
        Self::Roots,
        Self::BackingOff,
        Self::Throttled,
        Self::LimitsHit,
        Self::Swaps,
        Self::Compiles,
        Self::CompileSeconds,
        Self::CacheObjects,
        Self::CacheBytes,
        Self::MemoryBudget,
        Self::MemoryReserved,
        Self::MemoryWaiting,
        Self::Build,
    ];

    #[expect(clippy::too_many_lines, reason = "a table with a row for each metric")]
    fn spec(self) -> Spec {
        use Sort::{Counter, Gauge, Histogram};
        const BY: &[&str] = &["controller"];
        const QUEUE: &[&str] = &["name", "controller"];
        let spec = |name, sort, labels, help| Spec { name, sort, labels, help };
        match self {
            Self::Reconciles => spec(
                "controller_runtime_reconcile",
                Counter,
                &["controller", "result"],
                "Passes, by how they ended: success, error, or requeue_after when the root comes back by itself",
            ),
            Self::ReconcileErrors => {
                spec("controller_runtime_reconcile_errors", Counter, BY, "Passes that ended with an error")
            }
            Self::TerminalErrors => spec(
                "controller_runtime_terminal_reconcile_errors",
                Counter,
                BY,
                "Those of them that only a change can end",
            ),
            Self::Panics => spec("controller_runtime_reconcile_panics", Counter, BY, "Passes that panicked"),
            Self::ReconcileSeconds => spec(
                "controller_runtime_reconcile_time_seconds",
                Histogram(PASS_BUCKETS),
                BY,
                "How long passes took",
            ),
            Self::MaxConcurrent => spec(
                "controller_runtime_max_concurrent_reconciles",
                Gauge,
                BY,
                "How many passes may run at once; all Reconcilers share them",
            ),
            Self::ActiveWorkers => {
                spec("controller_runtime_active_workers", Gauge, BY, "Passes that are running")
            }
            Self::QueueDepth => spec(
                "workqueue_depth",
                Gauge,
                &["name", "controller", "priority"],
                "Roots that wait for a worker: priority 0 somebody changed, -100 nobody waits for",
            ),
            Self::QueueAdds => {
                spec("workqueue_adds", Counter, QUEUE, "Times that something asked for a pass over a root")
            }
            Self::QueueSeconds => spec(
                "workqueue_queue_duration_seconds",
                Histogram(WAIT_BUCKETS),
                QUEUE,
                "How long a root waited for a worker; without back-offs",
            ),
            Self::WorkSeconds => spec(
                "workqueue_work_duration_seconds",
                Histogram(PASS_BUCKETS),
                QUEUE,
                "How long a worker was busy with a root",
            ),
            Self::UnfinishedSeconds => spec(
                "workqueue_unfinished_work_seconds",
                Gauge,
                QUEUE,
                "For how long the running passes have been running, added up: it grows where one is stuck",
            ),
            Self::LongestRunningSeconds => spec(
                "workqueue_longest_running_processor_seconds",
                Gauge,
                QUEUE,
                "For how long the oldest running pass has been running",
            ),
            Self::QueueRetries => {
                spec("workqueue_retries", Counter, QUEUE, "Passes that are to be repeated after a back-off")
            }
            Self::Requests => spec(
                "rest_client_requests",
                Counter,
                &["code", "method", "host"],
                "Requests to the API server, watches and leases included, by status code (`<error>`: no reply)",
            ),
            Self::RequestSeconds => spec(
                "rest_client_request_duration_seconds",
                Histogram(PASS_BUCKETS),
                &["verb", "host"],
                "How long the API server took to begin its reply",
            ),
            Self::Leader => spec(
                "leader_election_master_status",
                Gauge,
                &["name"],
                "1 on the host that leads, 0 on one that stands by",
            ),
            Self::ErrorsByReason => spec(
                "pintle_reconcile_errors",
                Counter,
                &["controller", "reason"],
                "Passes that ended with an error, by the reason that the root's Ready has: what the gate refused, what the API \
                 server refused, and how guests failed. After 64 reasons of one Reconciler: Other",
            ),
            Self::GuestSeconds => spec(
                "pintle_guest_call_seconds",
                Histogram(GUEST_BUCKETS),
                BY,
                "How long calls of guests took",
            ),
            Self::GuestMemory => {
                spec("pintle_guest_memory_bytes", Gauge, BY, "The memory that the last call of a guest used")
            }
            Self::Writes => spec(
                "pintle_api_requests",
                Counter,
                &["controller", "verb", "code"],
                "Writes of passes: apply, claim, delete, evict, finalizers, patch and status, by status code (0: no reply, or not sent)",
            ),
            Self::Roots => {
                spec("pintle_roots", Gauge, &["controller", "state"], "Roots: ready, failing, or other")
            }
            Self::BackingOff => {
                spec("pintle_roots_backing_off", Gauge, BY, "Roots that wait for the end of a back-off")
            }
            Self::Throttled => spec(
                "pintle_roots_throttled",
                Gauge,
                BY,
                "Roots that are slowed, because they kept changing without getting anywhere",
            ),
            Self::LimitsHit => spec(
                "pintle_limits_hit",
                Counter,
                &["controller", "limit"],
                "Times that something of a Reconciler's, its guest's or its module's hit a limit; docs/operators.md has the limits. \
                 The controller is empty for what no Reconciler has named",
            ),
            Self::Swaps => spec("pintle_swaps", Counter, BY, "Times that another module came into force"),
            Self::Compiles => spec(
                "pintle_compiles",
                Gauge,
                &["state"],
                "Modules that are being compiled (running), and those that wait for it (waiting)",
            ),
            Self::CompileSeconds => spec(
                "pintle_compile_seconds",
                Histogram(COMPILE_BUCKETS),
                &["outcome"],
                "How long compilers ran, by how they ended: made, invalid, too-expensive, failed (tried again), or stopped for others \
                 to come first",
            ),
            Self::CacheObjects => spec(
                "pintle_cache_objects",
                Gauge,
                &["of"],
                "Objects that the host keeps in memory: roots, children, needs",
            ),
            Self::CacheBytes => spec(
                "pintle_cache_bytes",
                Gauge,
                &["of"],
                "The memory that they take, with what passes left of them",
            ),
            Self::MemoryBudget => spec(
                "pintle_memory_budget_bytes",
                Gauge,
                &["of"],
                "How much memory the process may take (process), what it keeps of it (kept), and what that leaves for calls, answers and \
                 the compiler together (budget)",
            ),
            Self::MemoryReserved => spec(
                "pintle_memory_reserved_bytes",
                Gauge,
                &["purpose"],
                "How much of the budget is reserved: for calls of guests (call), for answers that are being carried out (answer), for the compiler \
                 (compile), and for requests of clients, which an operator has none of (request)",
            ),
            Self::MemoryWaiting => spec(
                "pintle_memory_waiting",
                Gauge,
                &[],
                "How many calls and compilations wait for memory of the budget; pintle_limits_hit_total counts them",
            ),
            Self::Build => spec("pintle_build_info", Gauge, &["version"], "1, with the version of the host"),
        }
    }

    /// The page about all metrics, as Markdown.
    #[cfg(test)]
    pub(crate) fn page() -> String {
        let mut page = "# Metrics\n\nServed on `/metrics` in OpenMetrics text. Generated from the code; `controller` is the name of a \
                        Reconciler, and its series go when it does. Nothing is labelled by object.\n\n\
                        | metric | type | labels | what it says |\n| --- | --- | --- | --- |\n"
            .to_owned();
        for spec in Self::ALL.map(Self::spec) {
            let (sort, suffix) = match spec.sort {
                Sort::Counter => ("counter", "_total"),
                Sort::Gauge => ("gauge", ""),
                Sort::Histogram(_) => ("histogram", ""),
            };
            let labels: Vec<String> = spec.labels.iter().map(|label| format!("`{label}`")).collect();
            page.push_str(&format!(
                "| `{}{suffix}` | {sort} | {} | {} |\n",
                spec.name,
                labels.join(", "),
                spec.help
            ));
        }
        page
    }
}

/// The values of a metric's labels, with their names.
type Labels = Vec<(&'static str, String)>;

#[derive(Clone)]
struct Buckets(&'static [f64]);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

enum Values {
    Counter(Family<Labels, Counter>),
    Gauge(Family<Labels, Gauge<f64, AtomicU64>>),
    Histogram(Family<Labels, Histogram, Buckets>),
}

struct Series {
    labels: &'static [&'static str],
    values: Values,
    /// The label sets that there are: the family does not tell.
    known: Mutex<BTreeSet<Labels>>,
}

/// Everything that the operator counts.
pub struct Metrics {
    registry: Registry,
    series: BTreeMap<Metric, Series>,
    running: Mutex<BTreeMap<u64, (String, Duration)>>,
    next: AtomicU64,
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

impl Series {
    fn new(spec: &Spec, registry: &mut Registry) -> Self {
        let values = match spec.sort {
            Sort::Counter => {
                let family = Family::default();
                registry.register(spec.name, spec.help, family.clone());
                Values::Counter(family)
            }
            Sort::Gauge => {
                let family = Family::default();
                registry.register(spec.name, spec.help, family.clone());
                Values::Gauge(family)
            }
            Sort::Histogram(buckets) => {
                let family = Family::new_with_constructor(Buckets(buckets));
                registry.register(spec.name, spec.help, family.clone());
                Values::Histogram(family)
            }
        };
        Self { labels: spec.labels, values, known: Mutex::default() }
    }

    fn labelled(&self, values: &[&str]) -> Labels {
        let labels: Labels =
            self.labels.iter().zip(values).map(|(name, value)| (*name, (*value).to_owned())).collect();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.contains(&labels) {
            known.insert(labels.clone());
        }
        labels
    }

    /// Removes the label sets of a controller, or what else the label `name` says.
    fn forget(&self, name: &str, value: &str) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_gone = |labels: &Labels| labels.iter().any(|(label, found)| *label == name && found == value);
        for labels in known.extract_if(.., is_gone) {
            match &self.values {
                Values::Counter(family) => family.remove(&labels),
                Values::Gauge(family) => family.remove(&labels),
                Values::Histogram(family) => family.remove(&labels),
            };
        }
    }
}

impl Observer for Metrics {
    fn requested(&self, method: &str, host: &str, code: Option<u16>, took: Duration) {
        let code = code.map_or_else(|| "<error>".into(), |code| code.to_string());
        self.count(Metric::Requests, &[&code, method, host]);
        self.observe(Metric::RequestSeconds, &[method, host], took);
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::default();
        let series = Metric::ALL.map(|metric| (metric, Series::new(&metric.spec(), &mut registry)));
        let metrics =
            Self { registry, series: series.into(), running: Mutex::default(), next: AtomicU64::new(0) };
        metrics.set(Metric::Build, &[env!("CARGO_PKG_VERSION")], 1.0);
        metrics
    }
}

impl Metrics {
    /// Counts. The values are those of the metric's labels, in their order; so below.
    pub(crate) fn count(&self, metric: Metric, values: &[&str]) {
        if let Some(Series { values: Values::Counter(family), .. }) = self.series.get(&metric) {
            family.get_or_create(&self.labelled(metric, values)).inc();
        }
    }

    /// Sets a gauge.
    pub(crate) fn set(&self, metric: Metric, values: &[&str], value: f64) {
        if let Some(Series { values: Values::Gauge(family), .. }) = self.series.get(&metric) {
            family.get_or_create(&self.labelled(metric, values)).set(value);
        }
    }

    /// Observes a duration.
    pub(crate) fn observe(&self, metric: Metric, values: &[&str], took: Duration) {
        if let Some(Series { values: Values::Histogram(family), .. }) = self.series.get(&metric) {
            family.get_or_create(&self.labelled(metric, values)).observe(took.as_secs_f64());
        }
    }

    fn labelled(&self, metric: Metric, values: &[&str]) -> Labels {
        self.series.get(&metric).map(|series| series.labelled(values)).unwrap_or_default()
    }

    /// A worker begins to work on a root. Ends with [`Metrics::ended`].
    pub(crate) fn began(&self, controller: &str, waited: Option<Duration>) -> u64 {
        if let Some(waited) = waited {
            self.observe(Metric::QueueSeconds, &[controller, controller], waited);
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.insert(id, (controller.to_owned(), clock::monotonic()));
        id
    }

    pub(crate) fn ended(&self, id: u64, retried: bool) {
        let ended = self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        let Some((controller, began)) = ended else { return };
        let queue = [controller.as_str(), controller.as_str()];
        self.observe(Metric::WorkSeconds, &queue, clock::monotonic().saturating_sub(began));
        if retried {
            self.count(Metric::QueueRetries, &queue);
        }
    }

    pub(crate) fn reconciled(&self, controller: &str, ended: Ended<'_>, took: Duration) {
        let result = match ended {
            Ended::Success => "success",
            Ended::RequeueAfter => "requeue_after",
            Ended::Failed(_) | Ended::Terminal(_) => "error",
        };
        self.count(Metric::Reconciles, &[controller, result]);
        self.observe(Metric::ReconcileSeconds, &[controller], took);
        if let Ended::Failed(reason) | Ended::Terminal(reason) = ended {
            self.count(Metric::ReconcileErrors, &[controller]);
            self.count(Metric::ErrorsByReason, &[controller, self.reason(controller, reason)]);
        }
        if let Ended::Terminal(_) = ended {
            self.count(Metric::TerminalErrors, &[controller]);
        }
        if let Ended::Failed(reason) | Ended::Terminal(reason) = ended
            && let Some(limit) = Limit::of_reason(reason)
        {
            self.limit_hit(controller, limit);
        }
    }

    /// Something that this Reconciler is responsible for hit a limit. A pass that fails for it is counted by [`Self::reconciled`].
    pub(crate) fn limit_hit(&self, controller: &str, limit: Limit) {
        self.count(Metric::LimitsHit, &[controller, limit.spec().name]);
    }

    /// The limits that a pass hit without failing for it.
    pub(crate) fn hits(&self, controller: &str, hits: Hits) {
        let Hits { events, records, asking } = hits;
        let hits = [(Limit::Events, events), (Limit::Records, records), (Limit::Asking, asking.into())];
        for (limit, times) in hits.into_iter().filter(|(_, times)| *times > 0) {
            if let Some(Series { values: Values::Counter(family), .. }) = self.series.get(&Metric::LimitsHit)
            {
                let labels = self.labelled(Metric::LimitsHit, &[controller, limit.spec().name]);
                family.get_or_create(&labels).inc_by(times.into());
            }
        }
    }

    /// A reason as a label: itself, while this controller has not too many.
    fn reason<'a>(&self, controller: &str, reason: &'a str) -> &'a str {
        let Some(series) = self.series.get(&Metric::ErrorsByReason) else { return reason };
        let known = series.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mine = known.iter().filter(|labels| labels.iter().any(|(_, value)| value == controller));
        let reasons: Vec<&str> =
            mine.filter_map(|labels| labels.last()).map(|(_, value)| value.as_str()).collect();
        if reasons.len() < REASONS_MAX || reasons.contains(&reason) { reason } else { "Other" }
    }

    pub(crate) fn guest_called(&self, controller: &str, took: Duration, memory_bytes: usize) {
        self.observe(Metric::GuestSeconds, &[controller], took);
        self.set(Metric::GuestMemory, &[controller], memory_bytes as f64);
    }

    pub(crate) fn wrote(&self, controller: &str, verb: &str, error: Option<&ApiError>) {
        let code = error.map_or(200, |error| error.code).to_string();
        self.count(Metric::Writes, &[controller, verb, &code]);
    }

    /// Forgets a Reconciler that is gone: its series end.
    pub(crate) fn forget(&self, controller: &str) {
        for series in self.series.values() {
            series.forget("controller", controller);
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
            let queue = [controller.as_str(), controller.as_str()];
            self.set(Metric::ActiveWorkers, &[controller], ages.len() as f64);
            self.set(Metric::UnfinishedSeconds, &queue, ages.iter().sum());
            self.set(Metric::LongestRunningSeconds, &queue, ages.iter().copied().fold(0.0, f64::max));
        }
        let mut text = String::new();
        // Writing to a String fails only when a metric cannot be encoded, which is a mistake that the test would show.
        let _ = text::encode(&mut text, &self.registry);
        text
    }
}

#[cfg(test)]
mod tests;
