//! The rate limit for writes of a Reconciler's root counts: a token bucket.

use std::time::Duration;

/// The size of the bucket, in writes. It is enough for a person who applies a few roots and looks at the counts.
const BURST: u32 = 8;
/// How long one more token takes. A thousand roots that become ready one by one cost a write every two seconds.
const EVERY: Duration = Duration::from_secs(2);

/// The token bucket of a Reconciler.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// When the bucket will be full again.
    full_at: Duration,
}

impl Pace {
    /// A full bucket.
    pub(super) fn new(now: Duration) -> Self {
        Self { full_at: now }
    }

    /// How long the next write has to wait.
    pub(super) fn wait(&self, now: Duration) -> Duration {
        (self.full_at + EVERY).saturating_sub(now + EVERY * BURST)
    }

    /// Counts a write.
    pub(super) fn wrote(&mut self, now: Duration) {
        self.full_at = self.full_at.max(now) + EVERY;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_few_changes_are_told_at_once_and_many_every_two_seconds() {
        let start = SECOND * 100;
        let mut pace = Pace::new(start);
        for _ in 0..BURST {
            assert!(pace.wait(start).is_zero());
            pace.wrote(start);
        }
        assert_eq!(pace.wait(start), EVERY);
        assert_eq!(pace.wait(start + SECOND), SECOND);
        let mut writes = 0;
        for tenth in 0..1000 {
            let now = start + SECOND / 10 * tenth;
            if pace.wait(now).is_zero() {
                pace.wrote(now);
                writes += 1;
            }
        }
        assert_eq!(writes, 49, "one every two seconds of a hundred");
    }

    #[test]
    fn after_a_rest_a_few_are_told_at_once_again() {
        let mut pace = Pace::new(SECOND);
        for _ in 0..BURST {
            pace.wrote(SECOND);
        }
        let later = SECOND * 60;
        for _ in 0..BURST {
            assert!(pace.wait(later).is_zero());
            pace.wrote(later);
        }
        assert!(!pace.wait(later).is_zero());
    }
}
