//! What the gateway counts, for Prometheus. Requests are counted under the names that the API server has for its own.

use std::{
    sync::atomic::{AtomicI64, AtomicU64, Ordering},
    time::Duration,
};

use pintle_kubernetes::observer::Observer;
use pintle_modules::{Limit, Report};
use prometheus_client::{
    encoding::text,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use crate::admission::Figures;

/// The bounds of durations, in seconds: from a request that is answered from what is known to one that times out.
const SECONDS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

/// The bounds of the durations of calls of guests, in seconds.
const GUEST_SECONDS: [f64; 8] = [0.000_05, 0.000_1, 0.000_25, 0.001, 0.005, 0.025, 0.1, 1.0];

type Labels<const N: usize> = [(&'static str, String); N];
type Counters<const N: usize> = Family<Labels<N>, Counter<u64, AtomicU64>>;
type Gauges = Family<Labels<1>, Gauge<i64, AtomicI64>>;
type Histograms<const N: usize> = Family<Labels<N>, Histogram, fn() -> Histogram>;

/// What the gateway counts.
pub struct Metrics {
    registry: Registry,
    requests: Counters<4>,
    request_seconds: Histograms<3>,
    in_flight: Gauges,
    waiting: Gauges,
    refused: Counters<1>,
    connections_refused: Counter<u64, AtomicU64>,
    upstream: Counters<2>,
    guest_seconds: Histograms<1>,
    unshowable: Family<Labels<1>, Gauge<i64, AtomicI64>>,
    admission_cut: Counters<1>,
    compiles: Counters<1>,
    limits: Counters<1>,
}

fn guest_histogram() -> Histogram {
    Histogram::new(GUEST_SECONDS)
}

fn histogram() -> Histogram {
    Histogram::new(SECONDS)
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::default();
        let requests = Counters::default();
        let request_seconds = Histograms::new_with_constructor(histogram as fn() -> Histogram);
        let (in_flight, waiting) = (Gauges::default(), Gauges::default());
        let refused = Counters::default();
        let connections_refused = Counter::default();
        let upstream = Counters::default();
        let guest_seconds = Histograms::new_with_constructor(guest_histogram as fn() -> Histogram);
        let unshowable = Family::default();
        let admission_cut = Counters::default();
        let compiles = Counters::default();
        let limits = Counters::default();
        registry.register(
            "apiserver_request",
            "Requests about objects of views, by how they ended",
            requests.clone(),
        );
        registry.register(
            "apiserver_request_duration_seconds",
            "How long requests about objects of views took; watches are not counted",
            request_seconds.clone(),
        );
        registry.register(
            "apiserver_current_inflight_requests",
            "Requests that are being answered: watches, and the others (requests)",
            in_flight.clone(),
        );
        registry.register(
            "pintle_admission_waiting",
            "Requests that wait for a place, by pool; docs/views.md has the pools",
            waiting.clone(),
        );
        registry.register(
            "pintle_admission_refused",
            "Requests that found no place in time and were answered with 429, by pool",
            refused.clone(),
        );
        registry.register(
            "pintle_connections_refused",
            "Connections of others than the front proxy that were closed because there were too many, of their address or of all",
            connections_refused.clone(),
        );
        registry.register(
            "rest_client_requests",
            "Requests to the API server, watches included, by status code (`<error>`: no reply)",
            upstream.clone(),
        );
        registry.register(
            "pintle_guest_call_seconds",
            "How long calls of guests took, by View",
            guest_seconds.clone(),
        );
        registry.register(
            "pintle_unshowable_objects",
            "Objects that the guest of a View could not show, in the last list of all of them",
            unshowable.clone(),
        );
        registry.register(
            "pintle_admission_cut",
            "Times that a gateway did not look at all policies, webhooks or quotas for the condition AdmissionBypassed, because there are too many or one is too large",
            admission_cut.clone(),
        );
        registry.register("pintle_compiles", "Compilers that ended: made, invalid, too-expensive, failed (tried again), or stopped for others to come first", compiles.clone());
        registry.register(
            "pintle_limits_hit",
            "Times that a module hit a limit; docs/operators.md has their names",
            limits.clone(),
        );
        Self {
            registry,
            requests,
            request_seconds,
            in_flight,
            waiting,
            refused,
            connections_refused,
            upstream,
            guest_seconds,
            unshowable,
            admission_cut,
            compiles,
            limits,
        }
    }
}

impl Metrics {
    /// A request about objects was answered.
    pub(crate) fn answered(
        &self,
        verb: &str,
        group: &str,
        resource: &str,
        code: u16,
        took: Option<Duration>,
    ) {
        let labels = || {
            [("verb", verb.to_uppercase()), ("group", group.to_owned()), ("resource", resource.to_owned())]
        };
        let [verb, group, resource] = labels();
        self.requests.get_or_create(&[verb, group, resource, ("code", code.to_string())]).inc();
        if let Some(took) = took {
            self.request_seconds.get_or_create(&labels()).observe(took.as_secs_f64());
        }
    }

    /// A guest was called for a View.
    pub(crate) fn guest_called(&self, view: &str, took: Duration) {
        self.guest_seconds.get_or_create(&[("view", view.to_owned())]).observe(took.as_secs_f64());
    }

    /// A list of all objects of a View found so many that cannot be shown.
    pub(crate) fn unshowable(&self, view: &str, count: usize) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.unshowable.get_or_create(&[("view", view.to_owned())]).set(count);
    }

    /// A View is gone.
    pub(crate) fn forget_unshowable(&self, view: &str) {
        self.unshowable.remove(&[("view", view.to_owned())]);
    }

    /// Not all objects of a resource were looked at for what Views say of admission.
    pub(crate) fn admission_cut(&self, resource: &str) {
        self.admission_cut.get_or_create(&[("resource", resource.to_owned())]).inc();
    }

    /// A connection was closed because there were too many.
    pub(crate) fn connection_refused(&self) {
        self.connections_refused.inc();
    }

    /// What `/metrics` shows, with the pools as they are.
    pub(crate) fn text(&self, pools: &[Figures]) -> String {
        let gauge = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        for Figures { pool, taken, waiting, refused } in pools {
            if ["requests", "watches"].contains(pool) {
                self.in_flight.get_or_create(&[("request_kind", (*pool).to_owned())]).set(gauge(*taken));
            }
            let labels = [("pool", (*pool).to_owned())];
            self.waiting.get_or_create(&labels).set(gauge(*waiting));
            self.refused.get_or_create(&labels).inner().store(*refused, Ordering::Relaxed);
        }
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = text::encode(&mut text, &self.registry);
        text
    }
}

impl Observer for Metrics {
    fn requested(&self, method: &str, _host: &str, code: Option<u16>, _took: Duration) {
        let code = code.map_or_else(|| "<error>".to_owned(), |code| code.to_string());
        self.upstream.get_or_create(&[("method", method.to_owned()), ("code", code)]).inc();
    }
}

impl Report for Metrics {
    fn compiles(&self, _running: usize, _waiting: usize) {}

    fn compiled(&self, outcome: &'static str, _took: Duration) {
        self.compiles.get_or_create(&[("outcome", outcome.to_owned())]).inc();
    }

    fn limit_hit(&self, _counted_for: &str, limit: Limit) {
        self.limits.get_or_create(&[("limit", limit.name().to_owned())]).inc();
    }
}

#[cfg(test)]
mod tests;
