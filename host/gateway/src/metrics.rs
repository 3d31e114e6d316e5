//! What the gateway counts, for Prometheus. Requests are counted under the names that the API server has for its own.

use std::{sync::atomic::Ordering, time::Duration};

use pintle_kubernetes::observer::Observer;
use pintle_modules::{Limit, Report};
use pintle_runtime::{
    labels,
    metrics::{self, Histograms, add, time},
};
use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use crate::admission::Figures;

/// The bounds of durations, in seconds: from a request that is answered from what is known to one that times out.
const SECONDS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

/// The bounds of the durations of calls of guests, in seconds.
const GUEST_SECONDS: [f64; 8] = [0.000_05, 0.000_1, 0.000_25, 0.001, 0.005, 0.025, 0.1, 1.0];

labels! {
    Answer { verb: String, group: String, resource: String, code: u16 }
    Served { verb: String, group: String, resource: String }
    InFlight { request_kind: &'static str }
    Pool { pool: &'static str }
    Reply { method: String, code: String }
    View { view: String }
    Compiled { outcome: &'static str }
    Hit { limit: &'static str }
}

/// What the gateway counts.
pub struct Metrics {
    registry: Registry,
    requests: Family<Answer, Counter>,
    request_seconds: Histograms<Served>,
    in_flight: Family<InFlight, Gauge>,
    waiting: Family<Pool, Gauge>,
    refused: Family<Pool, Counter>,
    connections_refused: Counter,
    upstream: Family<Reply, Counter>,
    guest_seconds: Histograms<View>,
    compiles: Family<Compiled, Counter>,
    limits: Family<Hit, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        let requests = || Histogram::new(SECONDS);
        let calls = || Histogram::new(GUEST_SECONDS);
        let mut all = Registry::default();
        let to = &mut all;
        Self {
            requests: add(to, "apiserver_request", "Requests about objects of views, by how they ended"),
            request_seconds: time(
                to,
                "apiserver_request_duration_seconds",
                "How long they took; without watches",
                requests,
            ),
            in_flight: add(to, "apiserver_current_inflight_requests", "Requests that are being answered"),
            waiting: add(to, "pintle_admission_waiting", "Requests that wait for a place, by pool"),
            refused: add(to, "pintle_admission_refused", "Requests that found no place in time, by pool"),
            connections_refused: add(
                to,
                "pintle_connections_refused",
                "Connections that were closed because there were too many",
            ),
            upstream: add(to, "rest_client_requests", "Requests to the API server, by status code"),
            guest_seconds: time(
                to,
                "pintle_guest_call_seconds",
                "How long calls of guests took, by View",
                calls,
            ),
            compiles: add(to, "pintle_compiles", "Compilers, by how they ended"),
            limits: add(to, "pintle_limits_hit", "Times that a module hit a limit"),
            registry: all,
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
        let (verb, group, resource) = (verb.to_uppercase(), group.to_owned(), resource.to_owned());
        if let Some(took) = took {
            let served = Served { verb: verb.clone(), group: group.clone(), resource: resource.clone() };
            self.request_seconds.get_or_create(&served).observe(took.as_secs_f64());
        }
        self.requests.get_or_create(&Answer { verb, group, resource, code }).inc();
    }

    /// A guest was called for a View.
    pub(crate) fn guest_called(&self, view: &str, took: Duration) {
        self.guest_seconds.get_or_create(&View { view: view.to_owned() }).observe(took.as_secs_f64());
    }

    /// A connection was closed because there were too many.
    pub(crate) fn connection_refused(&self) {
        self.connections_refused.inc();
    }

    /// What `/metrics` shows, with the pools as they are.
    pub(crate) fn text(&self, pools: &[Figures]) -> String {
        let gauge = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        for &Figures { pool, taken, waiting, refused } in pools {
            if ["requests", "watches"].contains(&pool) {
                self.in_flight.get_or_create(&InFlight { request_kind: pool }).set(gauge(taken));
            }
            self.waiting.get_or_create(&Pool { pool }).set(gauge(waiting));
            self.refused.get_or_create(&Pool { pool }).inner().store(refused, Ordering::Relaxed);
        }
        metrics::text(&self.registry)
    }
}

impl Observer for Metrics {
    fn requested(&self, method: &str, _host: &str, code: Option<u16>, _took: Duration) {
        let code = code.map_or_else(|| "<error>".to_owned(), |code| code.to_string());
        self.upstream.get_or_create(&Reply { method: method.to_owned(), code }).inc();
    }
}

impl Report for Metrics {
    fn compiled(&self, outcome: &'static str, _took: Duration) {
        self.compiles.get_or_create(&Compiled { outcome }).inc();
    }

    fn limit_hit(&self, _counted_for: &str, limit: Limit) {
        self.limits.get_or_create(&Hit { limit: limit.name() }).inc();
    }
}

#[cfg(test)]
mod tests;
