//! [`Pauses`]: how long to wait before a write is tried again because somebody else was faster.

use std::time::Duration;

use crate::clock::{self, Random};

/// The longest pause. The first is a fiftieth of it at most.
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// The pauses between the tries of one write. Chance is in them, so that those who write one object together do not meet again each time.
#[derive(Debug)]
pub struct Pauses {
    random: Random,
    longest: Duration,
}

impl Default for Pauses {
    fn default() -> Self {
        // Without random bytes, those who write together pause together, and no more is lost.
        let seed = clock::random().map_or(0, u64::from_le_bytes);
        Self { random: Random::new(seed), longest: PAUSE_MAX / 50 }
    }
}

impl Pauses {
    /// Pauses for up to twice as long as before.
    pub async fn pause(&mut self) {
        let milliseconds = u64::try_from(self.longest.as_millis()).unwrap_or(u64::MAX);
        self.longest = (self.longest * 2).min(PAUSE_MAX);
        let pause = Duration::from_millis(self.random.below(milliseconds.saturating_add(1)));
        tokio::time::sleep(pause).await;
    }
}
