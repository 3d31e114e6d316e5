//! The breaker: it slows a root that keeps changing without getting anywhere, because somebody else sets the fields that we set, or
//! because its guest keeps changing its answer. It never drops the root.
//!
//! It is a token bucket whose tokens are seconds: the clock fills it, and passes that write take from it. An edit of the root, or
//! another module or config, costs nothing and is never slowed. A stage that is reached for the first time costs nothing either. New
//! needs of a guest cost too, because with them a guest can bring its root back by itself, without a write.
//!
//! An autoscaler takes its field back every 15 seconds, which never empties the bucket. So repairs are remembered for ten minutes: the
//! fifth of one field against one field manager, and the fifth of one child that vanished, empties the bucket at once. A host that starts
//! remembers none of this, and needs five repairs again.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use pintle_wit::{Condition, Event, EventType};
use serde_json::Value;

use super::{
    Pass,
    answer::{Answer, ChildState},
    key::Key,
    memory::{Short, key_hash, short},
    needs::NewNeed,
};
use crate::{gate::AllowedChild, managed, object, observed::status_conditions, reasons};

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
/// So many repairs of one sort within this time are a fight, however slow it is.
const REPAIRS: usize = 5;
const REPAIRS_TIME: SignedDuration = SignedDuration::from_mins(10);
/// The most repairs that are remembered, one of each pass: in that time the bucket has no more to give.
const REPAIRS_KEPT: usize = 80;
/// The pace of a root over which there is a slow fight. It keeps to what is a fight (ten repairs in ten minutes), and is a quarter of what
/// an autoscaler does.
const SLOW_COST: SignedDuration = SignedDuration::from_mins(1);
/// How much must be back in the bucket before such a root counts as calm: the time between two of five repairs within ten minutes.
const SLOW_CALM: SignedDuration = SignedDuration::from_secs(150);

/// What a root has spent, and whether it is slowed.
#[derive(Clone, Debug, Default)]
pub(super) struct Breaker {
    /// When the bucket will be full again.
    paid: Option<Timestamp>,
    /// Why the root is slowed; none while it is not.
    open: Option<Slowed>,
    /// The last stage that was reached since the last edit.
    stage: Option<u32>,
    /// What was repaired in the last ten minutes, and when: a hash of the child, and of the field and its field manager.
    repairs: Vec<(Short, Timestamp)>,
}

/// Why a root is slowed, and how much.
#[derive(Clone, Debug)]
struct Slowed {
    /// For people: what keeps changing, and to which pace it is slowed.
    message: String,
    /// What a pass of this sort costs. So much must be in the bucket for the next one.
    cost: SignedDuration,
    /// So much must be in it for the root to be calm.
    calm: SignedDuration,
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
        let until = self.debt(now) + self.open.as_ref()?.calm - BURST;
        Some(Duration::try_from(until).unwrap_or_default())
    }

    fn calm_down(&mut self, now: Timestamp) {
        let debt = self.debt(now);
        if self.open.as_ref().is_some_and(|slowed| debt + slowed.calm <= BURST) {
            self.open = None;
        }
    }

    /// Takes note of a repair. Returns whether repairs of this sort are a fight by now.
    fn repaired(&mut self, now: Timestamp, sort: Short) -> bool {
        // A later instant is one of before the clock was set back.
        self.repairs.retain(|(_, at)| *at <= now && now.duration_since(*at) <= REPAIRS_TIME);
        if self.repairs.len() >= REPAIRS_KEPT {
            self.repairs.remove(0);
        }
        self.repairs.push((sort, now));
        self.repairs.iter().filter(|(other, _)| *other == sort).count() >= REPAIRS
    }

    /// Empties the bucket because of a slow fight. Returns whether the root is slowed from now on.
    fn empty(&mut self, now: Timestamp, message: String) -> bool {
        let slowed = Slowed { message, cost: SLOW_COST, calm: SLOW_CALM };
        self.paid = now.checked_add(BURST).ok();
        self.open.replace(slowed).is_none()
    }

    /// How much memory it takes beside itself, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let message = self.open.as_ref().map_or(0, |slowed| slowed.message.len());
        message + self.repairs.capacity() * size_of::<(Short, Timestamp)>()
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
            self.open = Some(Slowed { message: why(), cost, calm: CALM });
        }
        self.paid = now.checked_add((self.debt(now) + cost).min(BURST)).ok();
        opens && !was_open
    }
}

/// What a pass is charged.
#[derive(Debug, Default)]
pub(super) struct Charge {
    /// Why the first child was written, unless somebody edited the root.
    fight: Option<Fight>,
    /// The breaker was charged for this pass already.
    taken: bool,
}

/// Why a child is written although nobody edited the root.
#[derive(Debug)]
struct Fight {
    message: String,
    /// A hash of the child, and of the field and its field manager; none where the guest has changed its answer.
    sort: Option<Short>,
}

impl Pass {
    /// How long the root has to wait because it is slowed; none if it may be reconciled now.
    pub(super) fn slowed_for(&mut self) -> Option<Duration> {
        self.memory.breaker.keep_to_the_clock(self.now);
        if self.edited {
            self.memory.breaker.open = None;
            self.memory.breaker.stage = None;
        }
        self.memory.breaker.wait(self.now)
    }

    /// Notes why children are about to be written.
    pub(super) fn note_fight(&mut self, answer: &Answer, due: &[(usize, Option<String>)]) {
        if self.edited || self.charge.fight.is_some() {
            return;
        }
        let first = due.first().and_then(|(index, _)| answer.allowed.children().get(*index));
        self.charge.fight = first.map(|child| self.fight_over(child));
    }

    fn fight_over(&self, child: &AllowedChild) -> Fight {
        let reference = child.reference();
        let key = Key::from(reference);
        let Some(live) = self.live.get(&key) else {
            let vanished = self.had_been_there(reference);
            let ttl = object::at(child.object(), &["spec", "ttlSecondsAfterFinished"]);
            let why = if ttl.is_some() { ": its spec.ttlSecondsAfterFinished has it deleted" } else { "" };
            let message = format!("{reference} keeps vanishing{why}");
            return Fight { message, sort: vanished.then(|| key_hash(&key)) };
        };
        if live.desired.as_deref() != Some(child.desired().as_str()) {
            let message = format!("the guest keeps answering with other forms of {reference}");
            return Fight { message, sort: None };
        }
        let lost = live.entry.as_ref().and_then(|entry| managed::lost(entry, child.object()));
        let path = lost.unwrap_or_default();
        let is_scaled = path == "spec.replicas" && live.scaler.is_some();
        let writer = if is_scaled { &live.scaler } else { &live.last_writer };
        let by = writer.as_deref().unwrap_or_default();
        let who = if by.is_empty() { "somebody".to_owned() } else { format!("field manager {by:?}") };
        let what = if path.is_empty() { "it" } else { &path };
        let advice = if is_scaled { " through scale: leave the field out of the answer" } else { "" };
        let message = format!("{reference}: {who} keeps changing {what}{advice}");
        let sort = short(&[&key_hash(&key), path.as_bytes(), by.as_bytes()]);
        Fight { message, sort: Some(sort) }
    }

    /// Takes the cost of the children that this pass changed. Returns whether the root is slowed from now on.
    pub(super) fn charge_children(&mut self) -> bool {
        self.memory.breaker.calm_down(self.now);
        let comes_first = self.reaches_a_stage();
        if self.charge.taken || self.edited || comes_first || !self.counts.changed_children() {
            return false;
        }
        self.charge.taken = true;
        let (message, sort) = match self.charge.fight.take() {
            Some(Fight { message, sort }) => (message, sort),
            None => ("its children keep changing".into(), None),
        };
        if sort.is_some_and(|sort| self.memory.breaker.repaired(self.now, sort)) {
            let (minutes, pace) = (REPAIRS_TIME.as_mins(), SLOW_COST.as_secs());
            let often = format!("{REPAIRS} times within {minutes} minutes");
            let message = format!("{message}; this was put right {often}, and is now tried every {pace} s");
            return self.memory.breaker.empty(self.now, message);
        }
        self.memory.breaker.spend(self.now, CHILD_COST, || put_right(&message))
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

    /// Takes the cost of the status that this pass is about to write. A message that grows costs as much as a repair: it is cut at 4 KiB,
    /// long before so many statuses have emptied the bucket, and says less and less until then.
    pub(super) fn charge_status(&mut self, status: &Value) -> bool {
        if self.charge.taken || self.edited || self.counts.changed_children() {
            return false;
        }
        self.charge.taken = true;
        let before = self.root.get("status").map(status_conditions).unwrap_or_default();
        let grown = status_conditions(status).into_iter().find(|condition| {
            let is_it = |old: &&Condition| old.r#type == condition.r#type;
            before.iter().find(is_it).is_some_and(|old| quotes(&condition.message, &old.message))
        });
        let (cost, why) = match grown {
            None => (STATUS_COST, "its status keeps changing".to_owned()),
            Some(Condition { r#type: name, .. }) => {
                let cause = "a child may show the state of this root";
                let why = format!(
                    "the message of its condition {name} quotes itself and grows with each pass: {cause}"
                );
                (CHILD_COST, why)
            }
        };
        self.memory.breaker.spend(self.now, cost, || put_right(&why))
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

/// Whether a message has all of the one before it, and more around it. A list of items, as of children that are not ready, may have more
/// items.
fn quotes(message: &str, before: &str) -> bool {
    let listed = |text: &str| format!("; {text}; ");
    !before.is_empty()
        && message.len() > before.len()
        && message.contains(before)
        && !listed(message).contains(&listed(before))
}

fn put_right(why: &str) -> String {
    format!(
        "{why}; this was put right {} times in short order, and is now tried every {} s",
        BURST.as_secs() / CHILD_COST.as_secs(),
        CHILD_COST.as_secs()
    )
}
