//! The breaker: it slows a root that keeps changing without getting anywhere, because somebody else sets the fields that we set, or
//! because its guest keeps changing its answer. It never drops the root.
//!
//! It is a token bucket whose tokens are seconds: the clock fills it, and passes that write take from it. An edit of the root, or
//! another module or config, costs nothing and is never slowed. A stage that is reached for the first time costs nothing either. New
//! needs of a guest cost too, because with them a guest can bring its root back by itself, without a write.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use pintle_wit::{Event, EventType};

use super::{
    Pass,
    answer::{Answer, ChildState},
    key::Key,
    needs::NewNeed,
};
use crate::{gate::AllowedChild, managed, reasons};

/// What a pass that changed children costs: a root is slowed down to one such pass in this time. It is long enough that two fighting
/// controllers are no load, and short enough that the root recovers soon after the fight has ended.
const CHILD_COST: SignedDuration = SignedDuration::from_secs(10);
/// What a pass that changed only the status costs. A guest may change its status once a second for ever.
const STATUS_COST: SignedDuration = SignedDuration::from_secs(1);
/// The size of the bucket: twenty repairs of a child in a row. A person who edits a child by hand comes nowhere near that; two
/// controllers that fight reach it within a second.
const BURST: SignedDuration = SignedDuration::from_secs(200);
/// What it costs when a guest asks to be called again at another time although nobody edited the root. A clock may step as often.
const DEADLINE_COST: SignedDuration = SignedDuration::from_secs(1);
/// What it costs when a guest asks to see other fields although nobody edited the root. Listing a kind costs at least as much as a
/// repair.
const FIELDS_COST: SignedDuration = CHILD_COST;
/// How much must be back in the bucket before a slowed root counts as calm: half a minute without a repair.
const CALM: SignedDuration = SignedDuration::from_secs(30);

/// What a root has spent, and whether it is slowed.
#[derive(Clone, Debug, Default)]
pub(super) struct Breaker {
    /// When the bucket will be full again.
    paid: Option<Timestamp>,
    /// Why the root is slowed; none while it is not.
    open: Option<Slowed>,
    /// The last stage that was reached since the last edit.
    stage: Option<u32>,
}

/// Why a root is slowed, and how much.
#[derive(Clone, Debug)]
struct Slowed {
    /// For people: what keeps changing, and to which pace it is slowed.
    message: String,
    /// What a pass of this sort costs. So much must be in the bucket for the next one.
    cost: SignedDuration,
}

impl Breaker {
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Bounds the debt by the size of the bucket, in case the clock was set back.
    fn keep_to_the_clock(&mut self, now: Timestamp) {
        self.paid = self.paid.map(|paid| now.checked_add(BURST).map_or(paid, |most| paid.min(most)));
    }

    /// How much is missing in the bucket.
    fn debt(&self, now: Timestamp) -> SignedDuration {
        let owed = self.paid.map_or(SignedDuration::ZERO, |paid| paid.duration_since(now));
        owed.clamp(SignedDuration::ZERO, BURST)
    }

    /// How long a root that is slowed waits for its next pass.
    fn wait(&self, now: Timestamp) -> Option<Duration> {
        let until = self.debt(now) + self.open.as_ref()?.cost - BURST;
        Duration::try_from(until).ok().filter(|wait| !wait.is_zero())
    }

    /// How long until a slowed root counts as calm, if it needs no repair until then.
    fn until_calm(&self, now: Timestamp) -> Option<Duration> {
        let until = self.debt(now) + CALM - BURST;
        self.is_open().then(|| Duration::try_from(until).unwrap_or_default())
    }

    fn calm_down(&mut self, now: Timestamp) {
        if self.debt(now) + CALM <= BURST {
            self.open = None;
        }
    }

    /// Whether, after spending this much, too little is left for another pass that costs as much. A cheap pass does not open it for the
    /// costly ones before it: the message would blame what is no trouble.
    fn would_open(&self, now: Timestamp, cost: SignedDuration) -> bool {
        self.debt(now) + cost + cost > BURST
    }

    /// Takes the cost of a pass. Returns whether the root is slowed from now on.
    fn spend(&mut self, now: Timestamp, cost: SignedDuration, why: impl FnOnce() -> String) -> bool {
        let opens = self.would_open(now, cost);
        let was_open = self.is_open();
        if opens {
            self.open = Some(Slowed { message: why(), cost });
        }
        self.paid = now.checked_add((self.debt(now) + cost).min(BURST)).ok();
        opens && !was_open
    }
}

/// What a pass is charged.
#[derive(Debug, Default)]
pub(super) struct Charge {
    /// Why children were written, where it matters: the root is about to be slowed.
    fight: Option<String>,
    /// The breaker was charged for this pass already.
    taken: bool,
}

impl Pass {
    /// How long the root has to wait because it is slowed; none if it may be reconciled now.
    pub(super) fn slowed_for(&mut self) -> Option<Duration> {
        self.memory.breaker.keep_to_the_clock(self.now);
        if self.edited {
            self.memory.breaker = Breaker { paid: self.memory.breaker.paid, ..Breaker::default() };
        }
        self.memory.breaker.wait(self.now)
    }

    /// Notes why children are about to be written, if this write may open the breaker.
    pub(super) fn note_fight(&mut self, answer: &Answer, due: &[(usize, Option<String>)]) {
        if self.edited || self.charge.fight.is_some() || !self.memory.breaker.would_open(self.now, CHILD_COST)
        {
            return;
        }
        let first = due.first().and_then(|(index, _)| answer.allowed.children().get(*index));
        self.charge.fight = first.map(|child| self.fight_over(child));
    }

    fn fight_over(&self, child: &AllowedChild) -> String {
        let reference = child.reference();
        let Some(live) = self.live.get(&Key::from(reference)) else {
            return format!("{reference} keeps vanishing");
        };
        if live.desired.as_deref() != Some(child.desired().as_str()) {
            return format!("the guest keeps answering with other forms of {reference}");
        }
        let lost = live.entry.as_ref().and_then(|entry| managed::lost(entry, child.object()));
        let path = lost.map_or_else(String::new, |path| format!(" {path}"));
        match &live.last_writer {
            Some(writer) => format!("{reference}: field manager {writer:?} keeps changing{path}"),
            None => format!("{reference}: somebody keeps changing{path}"),
        }
    }

    /// Takes the cost of the children that this pass changed. Returns whether the root is slowed from now on.
    pub(super) fn charge_children(&mut self) -> bool {
        self.memory.breaker.calm_down(self.now);
        let comes_first = self.reaches_a_stage();
        if self.charge.taken || self.edited || comes_first || !self.counts.changed_children() {
            return false;
        }
        self.charge.taken = true;
        let fight = self.charge.fight.take();
        let why = || put_right(&fight.unwrap_or_else(|| "its children keep changing".into()));
        self.memory.breaker.spend(self.now, CHILD_COST, why)
    }

    /// Takes the cost of new needs of the guest, unless somebody edited the root. A guest may have new needs in every pass, and each of
    /// them may lead to the next pass. A clock costs nothing, since it steps once a second at most.
    pub(super) fn charge_asking(&mut self) -> bool {
        if self.charge.taken || self.edited {
            return false;
        }
        let (cost, why) = match self.new_need() {
            None => return false,
            Some(NewNeed::Deadline) => (DEADLINE_COST, "its guest asks for one deadline after the other"),
            Some(NewNeed::Fields) => (FIELDS_COST, "its guest keeps asking to see other fields"),
        };
        self.charge.taken = true;
        let message = || format!("{why}; it is now asked every {} s", cost.as_secs());
        let slowed = self.memory.breaker.spend(self.now, cost, message);
        self.hits.asking |= slowed;
        slowed
    }

    /// Takes the cost of the status that this pass is about to write.
    pub(super) fn charge_status(&mut self) -> bool {
        if self.charge.taken || self.edited || self.counts.changed_children() {
            return false;
        }
        self.charge.taken = true;
        self.memory.breaker.spend(self.now, STATUS_COST, || put_right("its status keeps changing"))
    }

    /// Whether this pass got further in the stages than any other pass since the last edit.
    fn reaches_a_stage(&mut self) -> bool {
        let Some(answer) = &self.answer else { return false };
        let applied = answer.children().filter(|(_, state)| matches!(state, ChildState::Accepted));
        let stage = applied.map(|(child, _)| child.stage()).max();
        let further = stage > self.memory.breaker.stage;
        self.memory.breaker.stage = stage.max(self.memory.breaker.stage);
        further
    }

    /// The message of the condition of a slowed root.
    pub(super) fn slowed(&self) -> Option<String> {
        self.memory.breaker.open.as_ref().map(|slowed| slowed.message.clone())
    }

    /// The event that a root is slowed from now on.
    pub(super) fn slowed_event(&self) -> Option<Event> {
        let message = crate::text::note(&self.slowed()?);
        Some(Event { r#type: EventType::Warning, reason: reasons::THROTTLED.into(), message })
    }

    /// When a slowed root is reconciled again although nothing changes.
    pub(super) fn calm_at(&self) -> Option<Duration> {
        self.memory.breaker.until_calm(self.now)
    }
}

fn put_right(why: &str) -> String {
    format!(
        "{why}; this was put right {} times in short order, and is now tried every {} s",
        BURST.as_secs() / CHILD_COST.as_secs(),
        CHILD_COST.as_secs()
    )
}
