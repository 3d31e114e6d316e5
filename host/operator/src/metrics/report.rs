//! What is counted while Modules are made ready to be called.

use std::time::Duration;

use pintle_modules::{Limit, Report};

use super::{Metric, Metrics};

impl Report for Metrics {
    fn compiles(&self, running: usize, waiting: usize) {
        self.set(Metric::Compiles, &["running"], running as f64);
        self.set(Metric::Compiles, &["waiting"], waiting as f64);
    }

    fn compiled(&self, outcome: &'static str, took: Duration) {
        self.observe(Metric::CompileSeconds, &[outcome], took);
    }

    fn limit_hit(&self, counted_for: &str, limit: Limit) {
        Self::limit_hit(self, counted_for, limit.into());
    }
}
