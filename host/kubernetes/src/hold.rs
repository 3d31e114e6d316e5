//! [`Hold`]: whether this host may write, and until when. Every write passes here.

use std::time::Duration;

use pintle_runtime::clock;
use tokio::sync::watch;

/// The result of an election for this host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Counts how often this host was elected.
    pub term: u64,
    /// Until when it may write. Each renewal extends this time.
    pub until: Duration,
}

/// The right to write: always, or while this host holds a lease.
#[derive(Clone, Debug)]
pub struct Hold {
    elected: Option<watch::Receiver<Held>>,
    /// If set, only this term gives the right, so that work that began in one term does not go on in a later one.
    term: Option<u64>,
}

/// The write was not allowed, or is not allowed any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lapsed {
    /// The write did not begin.
    Before,
    /// The write began, and it is unknown whether it was carried out.
    During,
}

impl Hold {
    /// The right of a process that has no competitor.
    pub fn always() -> Self {
        Self { elected: None, term: None }
    }

    /// The right that an election gives and takes.
    pub fn elected(held: watch::Receiver<Held>) -> Self {
        Self { elected: Some(held), term: None }
    }

    /// The same right, for one term alone.
    pub fn during(&self, term: u64) -> Self {
        Self { elected: self.elected.clone(), term: Some(term) }
    }

    /// The term in which this host may write now, if it may.
    pub fn term(&self) -> Option<u64> {
        let Some(elected) = &self.elected else { return Some(0) };
        let held = *elected.borrow();
        let wanted = self.term.is_none_or(|term| term == held.term);
        (wanted && held.until > clock::monotonic()).then_some(held.term)
    }

    /// How much longer this host may write; none if it may not.
    fn left(&self) -> Duration {
        match (&self.elected, self.term()) {
            (None, _) => Duration::MAX,
            (Some(_), None) => Duration::ZERO,
            (Some(elected), Some(_)) => elected.borrow().until.saturating_sub(clock::monotonic()),
        }
    }

    /// Carries out a write, as long as this host may write. A renewal meanwhile extends the time. When the time is over, the write is
    /// dropped.
    ///
    /// # Errors
    /// When this host may not write, or may no longer.
    pub async fn guard<T>(&self, write: impl Future<Output = T>) -> Result<T, Lapsed> {
        if self.left().is_zero() {
            return Err(Lapsed::Before);
        }
        let mut write = std::pin::pin!(write);
        loop {
            let left = self.left();
            if left.is_zero() {
                return Err(Lapsed::During);
            }
            if let Ok(done) = tokio::time::timeout(left, &mut write).await {
                return Ok(done);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn held(term: u64, seconds_left: u64) -> Held {
        Held { term, until: clock::monotonic() + seconds(seconds_left) }
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_begun_without_the_lease() {
        let (_sender, receiver) = watch::channel(Held::default());
        let mut begun = false;
        let write = async { begun = true };
        assert_eq!(Hold::elected(receiver).guard(write).await, Err(Lapsed::Before));
        assert!(!begun);
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_is_dropped_when_the_lease_lapses() {
        let (_sender, receiver) = watch::channel(held(1, 4));
        let began = clock::monotonic();
        let write = std::future::pending::<()>();
        assert_eq!(Hold::elected(receiver).guard(write).await, Err(Lapsed::During));
        assert_eq!(clock::monotonic() - began, seconds(4));
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_gives_a_write_that_is_under_way_more_time() {
        let (sender, receiver) = watch::channel(held(1, 4));
        let renewal = async {
            tokio::time::sleep(seconds(2)).await;
            sender.send_replace(held(1, 7));
        };
        let hold = Hold::elected(receiver);
        let (done, ()) = tokio::join!(hold.guard(tokio::time::sleep(seconds(6))), renewal);
        assert_eq!(done, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn what_began_in_one_term_does_not_go_on_in_a_later_one() {
        let (sender, receiver) = watch::channel(held(1, 4));
        let hold = Hold::elected(receiver).during(1);
        assert_eq!(hold.term(), Some(1));
        tokio::time::sleep(seconds(20)).await;
        sender.send_replace(held(2, 7));
        assert_eq!((hold.term(), hold.guard(async {}).await), (None, Err(Lapsed::Before)));
    }

    #[tokio::test]
    async fn who_has_no_rival_always_may() {
        assert_eq!(Hold::always().guard(async { 1 }).await, Ok(1));
    }
}
