//! Waiting on the real clock: one patience for everything that tests, the demo and the benchmarks wait for.

use std::fmt::Display;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// How long something may take on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(180);

/// How long it may take once [`FAILURES_MAX`] waits of this process have failed. Something is broken then, and each further wait would only
/// make the run longer.
const PATIENCE_LOST: Duration = Duration::from_secs(20);

const FAILURES_MAX: u32 = 3;

/// How many waits of this process have failed.
static FAILURES: AtomicU32 = AtomicU32::new(0);

/// What a look at something shows.
pub enum Look<T> {
    /// What was waited for.
    Reached(T),
    /// It is not so yet. The text says what is so instead.
    NotYet(String),
}

impl<T> Look<T> {
    /// Of what is tried again until it succeeds: an error is what is so instead.
    pub fn of(attempt: Result<T>) -> Self {
        attempt.map_or_else(|error| Self::NotYet(format!("{error:#}")), Self::Reached)
    }
}

impl Look<()> {
    /// Whether something is so; `state` says what is so instead.
    pub fn reached_if(is_so: bool, state: impl FnOnce() -> String) -> Self {
        if is_so { Self::Reached(()) } else { Self::NotYet(state()) }
    }
}

/// How long something may still take: 180 seconds from its beginning, multiplied by the variable `PINTLE_PATIENCE`; a ninth of that once
/// three waits of this process have failed.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    began: Instant,
    whole: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        let is_lost = FAILURES.load(Ordering::Relaxed) >= FAILURES_MAX;
        let whole = if is_lost { PATIENCE_LOST } else { PATIENCE };
        Self { began: Instant::now(), whole: whole.mul_f64(scale()) }
    }
}

impl Patience {
    /// How long it may take in all.
    #[must_use]
    pub fn whole(&self) -> Duration {
        self.whole
    }

    /// Whether the time is over.
    pub(crate) fn is_over(&self) -> bool {
        self.began.elapsed() >= self.whole
    }

    /// The error when the time is over. Counts as a failed wait.
    #[must_use]
    pub fn lost(&self, what: &dyn Display, state: &str) -> anyhow::Error {
        count_failed_wait();
        anyhow::anyhow!("not within {} s: {what}; at last: {state}", self.whole.as_secs())
    }
}

/// Notes that something that this process waited for did not come.
pub fn count_failed_wait() {
    FAILURES.fetch_add(1, Ordering::Relaxed);
}

/// Waits until something is so, and looks ten times a second. The last look begins after the time is over.
///
/// # Errors
/// When it is not so in time; the error ends with what the last look showed. Also when a look fails: that ends the wait at once.
pub fn eventually<T>(what: impl Display, mut look: impl FnMut() -> Result<Look<T>>) -> Result<T> {
    let patience = Patience::default();
    loop {
        let is_over = patience.is_over();
        match look()? {
            Look::Reached(reached) => return Ok(reached),
            Look::NotYet(state) if is_over => bail!(patience.lost(&what, &state)),
            Look::NotYet(_) => thread::sleep(Duration::from_millis(100)),
        }
    }
}

fn scale() -> f64 {
    let read = || std::env::var("PINTLE_PATIENCE").ok()?.parse::<f64>().ok();
    read().filter(|scale| scale.is_finite() && *scale > 0.0).unwrap_or(1.0)
}
