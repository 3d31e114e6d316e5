//! How many Events there may be about a root: a bucket of tokens, as client-go's spam filter has it. A guest may have something new to
//! say with each pass for ever, and every Event is a write that is kept for an hour.

use jiff::{SignedDuration, Timestamp};
use pintle_wit::Event;

use super::Pass;

/// How many Events of one root there may be at once, as in client-go.
pub const EVENTS_AT_ONCE: i32 = 25;
/// How soon there may be one more after that, as in client-go.
pub const EVENTS_EVERY: SignedDuration = SignedDuration::from_mins(5);
/// How many of them are left to the host: what a guest says must not keep it from saying why the root is refused or slowed.
const HOST_ALONE: i32 = 5;

/// The Events that a root has had.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tokens {
    /// When all of them will have come back.
    full: Option<Timestamp>,
}

impl Tokens {
    fn most() -> SignedDuration {
        EVENTS_EVERY * EVENTS_AT_ONCE
    }

    /// What was taken and has not come back. A clock that was set back makes it no more than there is.
    fn taken(self, now: Timestamp) -> SignedDuration {
        let taken = self.full.map_or(SignedDuration::ZERO, |full| full.duration_since(now));
        taken.clamp(SignedDuration::ZERO, Self::most())
    }

    /// How many there are.
    fn left(self, now: Timestamp) -> usize {
        let left = (Self::most() - self.taken(now)).as_secs() / EVENTS_EVERY.as_secs();
        usize::try_from(left).unwrap_or(0)
    }

    /// Takes this many, or as many as there are; returns how many those are.
    fn take(&mut self, now: Timestamp, wanted: usize) -> usize {
        let took = wanted.min(self.left(now));
        let cost = EVENTS_EVERY * i32::try_from(took).unwrap_or(EVENTS_AT_ONCE);
        self.full = now.checked_add(self.taken(now) + cost).ok();
        took
    }
}

impl Pass {
    /// Of the guest's events those that it may publish now. What is dropped is counted.
    pub(super) fn few_enough(&mut self, mut events: Vec<Event>) -> Vec<Event> {
        let left = self.memory.events.left(self.now).saturating_sub(HOST_ALONE as usize);
        self.drop_beyond(left, &mut events);
        events
    }

    /// Takes the tokens of these events, and drops those for which there are none.
    pub(super) fn pay_for(&mut self, events: &mut Vec<Event>) {
        let took = self.memory.events.take(self.now, events.len());
        self.drop_beyond(took, events);
    }

    fn drop_beyond(&mut self, left: usize, events: &mut Vec<Event>) {
        let dropped = events.len().saturating_sub(left);
        self.hits.events += u32::try_from(dropped).unwrap_or(u32::MAX);
        events.truncate(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + seconds).unwrap()
    }

    #[test]
    fn there_are_twenty_five_at_once_and_one_more_in_five_minutes() {
        let mut tokens = Tokens::default();
        assert_eq!(tokens.take(at(0), 20), 20);
        assert_eq!(tokens.take(at(0), 16), 5);
        assert_eq!(tokens.take(at(299), 1), 0);
        assert_eq!((tokens.take(at(300), 2), tokens.take(at(300), 1)), (1, 0));
        assert_eq!(tokens.take(at(600), 1), 1);
        assert_eq!(tokens.take(at(600 + 300 * 100), 100), 25, "no more than there were at first");
    }

    #[test]
    fn a_clock_that_is_set_back_takes_no_more_than_there_is() {
        let mut tokens = Tokens::default();
        assert_eq!(tokens.take(at(0), 25), 25);
        assert_eq!(tokens.take(at(-86_400), 1), 0);
        assert_eq!(tokens.take(at(-86_400 + 300), 1), 1);
    }
}
