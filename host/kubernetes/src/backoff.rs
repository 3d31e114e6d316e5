//! [`Backoff`]: how long to wait before something is tried again.

use std::time::Duration;

use kube::runtime::utils;
use pintle_runtime::clock::{self, Random};

/// How long to wait before something is tried again: twice as long each time, and less by up to a half, so that those who failed together
/// do not come back together. The chance in it is the clock's, so that a simulated process is repeatable.
#[derive(Clone, Debug)]
pub struct Backoff {
    random: Random,
    first: Duration,
    max: Duration,
    /// The longest that the next delay can be.
    longest: Duration,
}

impl Backoff {
    /// Delays between these two.
    pub fn between(first: Duration, max: Duration) -> Self {
        // Without random bytes, those who failed together come back together, and no more is lost.
        let seed = clock::random().map_or(0, u64::from_le_bytes);
        Self { random: Random::new(seed), first, max, longest: first }
    }

    /// The delays of a watch, as client-go has them.
    pub fn of_watch() -> Self {
        Self::between(Duration::from_millis(800), Duration::from_secs(30))
    }

    /// The delays of a write that is tried again because somebody else was faster.
    pub fn of_write() -> Self {
        Self::between(Duration::from_millis(2), Duration::from_millis(100))
    }

    /// Waits for the next delay.
    pub async fn pause(&mut self) {
        tokio::time::sleep(self.delay()).await;
    }

    fn delay(&mut self) -> Duration {
        let longest = self.longest;
        self.longest = (longest * 2).min(self.max);
        let milliseconds = u64::try_from(longest.as_millis()).unwrap_or(u64::MAX);
        longest - Duration::from_millis(self.random.below(milliseconds / 2 + 1))
    }
}

impl Iterator for Backoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(self.delay())
    }
}

impl utils::Backoff for Backoff {
    fn reset(&mut self) {
        self.longest = self.first;
    }
}

#[cfg(test)]
mod tests {
    use kube::runtime::utils::Backoff as _;

    use super::*;

    #[test]
    fn a_watch_waits_longer_with_each_failure_and_at_most_half_a_minute_until_one_succeeds() {
        let mut backoff = Backoff::of_watch();
        for longest in [800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000] {
            let delay = backoff.delay();
            let longest = Duration::from_millis(longest);
            assert!((longest / 2..=longest).contains(&delay), "{delay:?}");
        }
        backoff.reset();
        assert!(backoff.delay() <= Duration::from_millis(800));
    }
}
