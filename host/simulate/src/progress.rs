//! How far a search is.

use std::{
    io::{self, IsTerminal, Write},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use pintle_runtime::clock;

/// Tells how far a search is, on the standard error: on a terminal in one line that is written over, otherwise a line now and then, so
/// that a log shows that something goes on.
pub(crate) struct Progress {
    plans: usize,
    is_terminal: bool,
    begun: Duration,
    told: Mutex<Duration>,
}

impl Progress {
    pub(crate) fn new(plans: usize) -> Self {
        let now = clock::monotonic();
        Self { plans, is_terminal: io::stderr().is_terminal(), begun: now, told: Mutex::new(now) }
    }

    pub(crate) fn tell(&self, done: usize, failed: usize) {
        let every = if self.is_terminal { Duration::from_millis(250) } else { Duration::from_secs(10) };
        let now = clock::monotonic();
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_sub(*told) < every {
            return;
        }
        *told = now;
        let seconds = now.saturating_sub(self.begun).as_secs_f64();
        let left = seconds / done.max(1) as f64 * self.plans.saturating_sub(done) as f64;
        let line = format!("{done} of {} plans, {failed} failed, {left:.0} s left", self.plans);
        // Who cannot be told loses nothing of the result.
        let _ = match self.is_terminal {
            true => write!(io::stderr(), "\r\x1b[K{line}"),
            false => writeln!(io::stderr(), "{line}"),
        };
    }

    pub(crate) fn end(&self) {
        if self.is_terminal {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
