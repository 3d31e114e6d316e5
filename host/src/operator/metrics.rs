//! Metrics, with controller-runtime's names where it has one, so that existing dashboards work. Never labelled by object.

use std::time::Duration;

use pintle_core::ApiError;
use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue, text},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

/// Everything that the operator counts.
pub(crate) struct Metrics {
    registry: Registry,
    reconciles: Family<ReconcileLabels, Counter>,
    reconcile_seconds: Family<ControllerLabels, Histogram>,
    errors: Family<ReasonLabels, Counter>,
    guest_seconds: Family<ControllerLabels, Histogram>,
    guest_memory: Family<ControllerLabels, Gauge>,
    api_requests: Family<ApiLabels, Counter>,
    pub(crate) panics: Counter,
    pub(crate) queue_depth: Family<ControllerLabels, Gauge>,
    pub(crate) backing_off: Family<ControllerLabels, Gauge>,
    pub(crate) roots: Family<RootLabels, Gauge>,
    pub(crate) swaps: Family<ControllerLabels, Counter>,
    cache_objects: Family<CacheLabels, Gauge>,
    cache_bytes: Family<CacheLabels, Gauge>,
}

/// How a reconcile ended, in controller-runtime's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
pub(crate) enum Ended {
    Success,
    Error,
    Requeue,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ControllerLabels {
    pub(crate) controller: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct RootLabels {
    pub(crate) controller: String,
    pub(crate) state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CacheLabels {
    of: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReconcileLabels {
    controller: String,
    result: Ended,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    controller: String,
    reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ApiLabels {
    controller: String,
    verb: &'static str,
    code: u16,
}

/// From a call that found nothing to do to one that waited out a slow API server, in seconds.
const RECONCILE_BUCKETS: [f64; 10] = [0.0005, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.0, 10.0];
/// From a small guest's call to the longest deadline that can be set, in seconds.
const GUEST_BUCKETS: [f64; 10] =
    [0.000_02, 0.000_05, 0.000_1, 0.000_2, 0.000_5, 0.001, 0.005, 0.02, 0.1, 1.0];

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::default();
        let metrics = Self {
            reconciles: Family::default(),
            reconcile_seconds: Family::new_with_constructor(|| Histogram::new(RECONCILE_BUCKETS)),
            errors: Family::default(),
            guest_seconds: Family::new_with_constructor(|| Histogram::new(GUEST_BUCKETS)),
            guest_memory: Family::default(),
            api_requests: Family::default(),
            panics: Counter::default(),
            queue_depth: Family::default(),
            backing_off: Family::default(),
            roots: Family::default(),
            swaps: Family::default(),
            cache_objects: Family::default(),
            cache_bytes: Family::default(),
            registry: Registry::default(),
        };
        registry.register(
            "controller_runtime_reconcile",
            "Reconciles, by how they ended",
            metrics.reconciles.clone(),
        );
        registry.register(
            "controller_runtime_reconcile_time_seconds",
            "How long reconciles took",
            metrics.reconcile_seconds.clone(),
        );
        registry.register(
            "controller_runtime_reconcile_panics",
            "Reconciles that panicked",
            metrics.panics.clone(),
        );
        registry.register("workqueue_depth", "Roots that wait for a worker", metrics.queue_depth.clone());
        registry.register(
            "pintle_roots_backing_off",
            "Roots that wait for the end of a back-off",
            metrics.backing_off.clone(),
        );
        registry.register(
            "pintle_reconcile_errors",
            "Failed reconciles, by the reason that the root's Ready condition has",
            metrics.errors.clone(),
        );
        registry.register(
            "pintle_guest_call_seconds",
            "How long calls of guests took",
            metrics.guest_seconds.clone(),
        );
        registry.register(
            "pintle_guest_memory_bytes",
            "The memory that the last call of a guest used",
            metrics.guest_memory.clone(),
        );
        registry.register(
            "pintle_api_requests",
            "Writes of passes, by verb and HTTP status code (0: no reply)",
            metrics.api_requests.clone(),
        );
        registry.register("pintle_roots", "Roots, by state", metrics.roots.clone());
        registry.register(
            "pintle_swaps",
            "How often another module or config came into force",
            metrics.swaps.clone(),
        );
        registry.register(
            "pintle_cache_objects",
            "Objects that the host keeps in memory",
            metrics.cache_objects.clone(),
        );
        registry.register(
            "pintle_cache_bytes",
            "The memory that they take, with what passes left of them",
            metrics.cache_bytes.clone(),
        );
        Self { registry, ..metrics }
    }

    pub(crate) fn reconciled(&self, controller: &str, result: Ended, took: Duration, error: Option<&str>) {
        let controller = controller.to_owned();
        self.reconciles.get_or_create(&ReconcileLabels { controller: controller.clone(), result }).inc();
        self.reconcile_seconds
            .get_or_create(&ControllerLabels { controller: controller.clone() })
            .observe(took.as_secs_f64());
        if let Some(reason) = error {
            self.errors.get_or_create(&ReasonLabels { controller, reason: reason.to_owned() }).inc();
        }
    }

    pub(crate) fn guest_called(&self, controller: &str, took: Duration, memory_bytes: usize) {
        let labels = ControllerLabels { controller: controller.to_owned() };
        self.guest_seconds.get_or_create(&labels).observe(took.as_secs_f64());
        self.guest_memory.get_or_create(&labels).set(i64::try_from(memory_bytes).unwrap_or(i64::MAX));
    }

    pub(crate) fn api_called(&self, controller: &str, verb: &'static str, error: Option<&ApiError>) {
        let code = error.map_or(200, |error| error.code);
        self.api_requests.get_or_create(&ApiLabels { controller: controller.to_owned(), verb, code }).inc();
    }

    /// Takes note of how many objects of a sort are kept, and in how many bytes.
    pub(crate) fn kept(&self, of: &'static str, (objects, bytes): (usize, usize)) {
        let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        self.cache_objects.get_or_create(&CacheLabels { of }).set(number(objects));
        self.cache_bytes.get_or_create(&CacheLabels { of }).set(number(bytes));
    }

    /// Forgets a Reconciler that is gone.
    pub(crate) fn forget(&self, controller: &str) {
        let labels = ControllerLabels { controller: controller.to_owned() };
        for gauge in [&self.queue_depth, &self.backing_off, &self.guest_memory] {
            gauge.remove(&labels);
        }
        for state in ["ready", "failing", "other"] {
            self.roots.remove(&RootLabels { controller: controller.to_owned(), state });
        }
    }

    /// The exposition text.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String fails only when a metric cannot be encoded, which is a mistake that the test would show.
        let _ = text::encode(&mut text, &self.registry);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_controller_runtimes_names() {
        let metrics = Metrics::new();
        metrics.reconciled("darkroom", Ended::Success, Duration::from_millis(3), None);
        metrics.reconciled("darkroom", Ended::Requeue, Duration::from_millis(3), Some("DeadlineExceeded"));
        metrics.queue_depth.get_or_create(&ControllerLabels { controller: "darkroom".into() }).set(2);
        let text = metrics.text();
        for line in [
            r#"controller_runtime_reconcile_total{controller="darkroom",result="Success"} 1"#,
            r#"pintle_reconcile_errors_total{controller="darkroom",reason="DeadlineExceeded"} 1"#,
            r#"workqueue_depth{controller="darkroom"} 2"#,
        ] {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
    }
}
