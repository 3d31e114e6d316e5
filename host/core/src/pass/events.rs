//! Events about a root, and the limit on them: a token bucket, as in client-go's spam filter. A guest may have new Events in every pass for
//! ever, and every Event is a write that etcd keeps for an hour.

use jiff::{SignedDuration, Timestamp};
use pintle_wit::{ConditionStatus, Event, EventType};

use super::{
    Pass, Step,
    flow::{Awaited, Flow},
};
use crate::{
    conditions::{self, Blocker},
    observed::status_conditions,
    reasons,
};

/// The size of a root's token bucket, in Events, as in client-go.
const EVENTS_AT_ONCE: i32 = 25;
/// How long it takes until there is one token more, as in client-go.
const EVENTS_EVERY: SignedDuration = SignedDuration::from_mins(5);
/// How many tokens are reserved for the host's own Events. Events of a guest must not keep the host from reporting why the root is
/// refused or slowed.
const HOST_ALONE: i32 = 5;

/// The token bucket of a root.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tokens {
    /// When the bucket will be full again.
    full: Option<Timestamp>,
}

impl Tokens {
    fn most() -> SignedDuration {
        EVENTS_EVERY * EVENTS_AT_ONCE
    }

    /// How much is missing in the bucket: never more than its size, even if the clock was set back.
    fn taken(self, now: Timestamp) -> SignedDuration {
        let taken = self.full.map_or(SignedDuration::ZERO, |full| full.duration_since(now));
        taken.clamp(SignedDuration::ZERO, Self::most())
    }

    /// How many tokens there are.
    fn left(self, now: Timestamp) -> usize {
        let left = (Self::most() - self.taken(now)).as_secs() / EVENTS_EVERY.as_secs();
        usize::try_from(left).unwrap_or(0)
    }

    /// Takes this many tokens, or as many as there are. Returns how many it took.
    fn take(&mut self, now: Timestamp, wanted: usize) -> usize {
        let took = wanted.min(self.left(now));
        let cost = EVENTS_EVERY * i32::try_from(took).unwrap_or(EVENTS_AT_ONCE);
        self.full = now.checked_add(self.taken(now) + cost).ok();
        took
    }
}

impl Pass {
    /// The guest's events that may be published now. Those that are dropped are counted.
    fn few_enough(&mut self, mut events: Vec<Event>) -> Vec<Event> {
        let left = self.memory.events.left(self.now).saturating_sub(HOST_ALONE as usize);
        self.drop_beyond(left, &mut events);
        events
    }

    /// Publishes the events that are left to publish.
    pub(super) fn publish(&mut self) -> Flow {
        let mut events = std::mem::take(&mut self.events);
        self.pay_for(&mut events);
        if events.is_empty() { Flow::Done } else { self.ask_for(Awaited::Events, Step::Emit(events)) }
    }

    /// The guest's events, if the pass changed something, and the host's own events if the root began or ceased to fail.
    pub(super) fn events_about(&mut self, blockers: &[Blocker], did_change: bool) -> Vec<Event> {
        let events = match &self.answer {
            Some(answer) if did_change && self.failure.is_none() => answer.allowed.events().to_vec(),
            _ => Vec::new(),
        };
        let mut events = self.few_enough(events);
        let before = self.root.get("status").map(status_conditions).unwrap_or_default();
        let worth = |blocker: &&Blocker| {
            blocker.terminal
                || blocker.reason != reasons::CHILD_NOT_READY && blocker.reason != reasons::PRUNING
        };
        let refused = self.failure.is_some()
            || !self.refused_patches.is_empty()
            || !self.memory.refusals.blocking(self.answer.as_ref().map(|answer| &answer.allowed)).is_empty();
        if !refused {
            self.memory.warned = None;
        }
        let first = blockers.iter().find(|blocker| blocker.reason != reasons::THROTTLED);
        if let Some(blocker) = first.filter(|_| refused).filter(worth) {
            let told = conditions::find(&before, conditions::READY).is_some_and(|ready| {
                ready.status == ConditionStatus::False
                    && ready.reason == blocker.reason
                    && ready.message == blocker.message
            });
            let warning = Some(Box::new((blocker.reason.clone(), blocker.message.clone())));
            let warned = std::mem::replace(&mut self.memory.warned, warning.clone());
            if !told && warned != warning {
                let message = crate::text::note(&blocker.message);
                // A user asked for this.
                let is_wanted = blocker.reason == reasons::SUSPENDED;
                let r#type = if is_wanted { EventType::Normal } else { EventType::Warning };
                events.push(Event { r#type, reason: blocker.reason.clone(), message });
            }
        } else if blockers.is_empty()
            && conditions::find(&before, conditions::STALLED)
                .is_some_and(|stalled| stalled.status == ConditionStatus::True)
        {
            let message = "the root is ready again".into();
            events.push(Event { r#type: EventType::Normal, reason: reasons::RECOVERED.into(), message });
        }
        events
    }

    /// Takes a token for each of these events, and drops the events for which there is none.
    fn pay_for(&mut self, events: &mut Vec<Event>) {
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
