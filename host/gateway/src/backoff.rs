//! [`Backoff`]: how long a watch of the gateway's own objects waits after an error.

use std::time::Duration;

use kube::runtime::utils;
use pintle_runtime::clock::{self, Random};

/// The first and the longest delay. Each is made longer by up to itself, so that gateways do not ask together.
const FIRST: Duration = Duration::from_millis(800);
const MAX: Duration = Duration::from_secs(30);

/// Delays that double from error to error. The chance in them is the clock's, so that a simulated gateway is repeatable.
pub(crate) struct Backoff {
    random: Random,
    failures: u32,
}

impl Backoff {
    /// The delays of one watch.
    pub(crate) fn new() -> Self {
        // Without random bytes, the delays are those of every gateway, and no more is lost.
        let seed = clock::random().map_or(0, u64::from_le_bytes);
        Self { random: Random::new(seed), failures: 0 }
    }
}

impl Iterator for Backoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let delay = FIRST.saturating_mul(1 << self.failures.min(10)).min(MAX);
        self.failures = self.failures.saturating_add(1);
        let milliseconds = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        Some(delay + Duration::from_millis(self.random.below(milliseconds)))
    }
}

impl utils::Backoff for Backoff {
    fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use kube::runtime::utils::Backoff as _;

    use super::*;

    #[test]
    fn delays_double_up_to_the_longest_and_begin_again_after_a_success() {
        let mut backoff = Backoff { random: Random::new(1), failures: 0 };
        for base in [800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000] {
            let delay = backoff.next().unwrap();
            let base = Duration::from_millis(base);
            assert!((base..2 * base).contains(&delay), "{delay:?}");
        }
        backoff.reset();
        assert!(backoff.next().unwrap() < 2 * FIRST);
    }
}
