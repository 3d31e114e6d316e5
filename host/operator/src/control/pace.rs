//! The rate limit for writes of a Reconciler's root counts: a token bucket.

use std::time::Duration;

/// The size of the bucket, in writes. It is enough for a person who applies a few roots and looks at the counts.
const BURST: u32 = 8;
/// How long one more token takes. A thousand roots that become ready one by one cost a write every two seconds.
const EVERY: Duration = Duration::from_secs(2);

/// The least time between two writes while roots are reconciled with another module: whoever follows that needs no more.
const EVERY_WHILE_MOVING: Duration = Duration::from_secs(1);

/// The token bucket of a Reconciler.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// When the bucket will be full again.
    full_at: Duration,
    /// When something was written last.
    written_at: Option<Duration>,
}

impl Pace {
    /// A full bucket.
    pub(super) fn new(now: Duration) -> Self {
        Self { full_at: now, written_at: None }
    }

    /// How long the next write has to wait. `moving` says that roots are being reconciled with another module.
    pub(super) fn wait(&self, now: Duration, moving: bool) -> Duration {
        let for_token = (self.full_at + EVERY).saturating_sub(now + EVERY * BURST);
        let since = self.written_at.filter(|_| moving);
        let for_distance = since.map(|at| (at + EVERY_WHILE_MOVING).saturating_sub(now)).unwrap_or_default();
        for_token.max(for_distance)
    }

    /// Counts a write.
    pub(super) fn wrote(&mut self, now: Duration) {
        self.full_at = self.full_at.max(now) + EVERY;
        self.written_at = Some(now);
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
            assert!(pace.wait(start, false).is_zero());
            pace.wrote(start);
        }
        assert_eq!(pace.wait(start, false), EVERY);
        assert_eq!(pace.wait(start + SECOND, false), SECOND);
        let mut writes = 0;
        for tenth in 0..1000 {
            let now = start + SECOND / 10 * tenth;
            if pace.wait(now, false).is_zero() {
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
            assert!(pace.wait(later, false).is_zero());
            pace.wrote(later);
        }
        assert!(!pace.wait(later, false).is_zero());
    }

    #[test]
    fn while_roots_move_to_another_module_a_second_lies_between_two_writes_and_the_end_does_not_wait() {
        let mut pace = Pace::new(SECOND);
        assert!(pace.wait(SECOND, true).is_zero());
        pace.wrote(SECOND);
        assert_eq!(pace.wait(SECOND, true), SECOND);
        assert!(pace.wait(SECOND * 2, true).is_zero());
        assert!(pace.wait(SECOND, false).is_zero());
    }
}
