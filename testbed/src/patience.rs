//! Waiting on the real clock: how long to wait for something, and how often to do something.

#![allow(
    clippy::disallowed_methods,
    reason = "a real control plane runs on the real clock, and nothing here is simulated"
)]

use std::thread;
use std::time::{Duration, Instant};

/// How long something may still take.
pub(crate) struct Patience {
    until: Instant,
}

impl Patience {
    pub(crate) fn of(duration: Duration) -> Self {
        Self { until: Instant::now() + duration }
    }

    /// Sleeps for a moment, and returns whether there is time to look again.
    pub(crate) fn pause(&self, moment: Duration) -> bool {
        let left = self.until.saturating_duration_since(Instant::now());
        thread::sleep(moment.min(left));
        !left.is_zero()
    }
}

/// Something that may be done at this interval, but not more often.
pub(crate) struct Rhythm {
    every: Duration,
    last: Instant,
}

impl Rhythm {
    pub(crate) fn every(every: Duration) -> Self {
        Self { every, last: Instant::now() }
    }

    pub(crate) fn due(&mut self) -> bool {
        let due = self.last.elapsed() >= self.every;
        if due {
            self.last = Instant::now();
        }
        due
    }
}
