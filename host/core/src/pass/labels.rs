//! Children from which a mutating admission policy removes our labels when they are written. Our watch selects by label, so it never
//! shows such a child. The root still owns it, by its owner reference. So the host remembers the child, reports it in the status, and
//! writes it again now and then, in case the policy was corrected.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::{
    Pass,
    answer::{Answer, ChildState},
    key::Key,
};
use crate::{conditions::Blocker, gate::AllowedChild, object, observed::Observed, reasons};

/// How often such a child is written again: as often as the longest back-off.
const AGAIN: SignedDuration = SignedDuration::from_secs(60);

/// A child without our labels, as our last write left it.
#[derive(Clone, Debug)]
pub(super) struct Unlabelled {
    resource_version: String,
    at: Timestamp,
}

impl Unlabelled {
    fn is_due(&self, now: Timestamp) -> bool {
        self.left(now).is_zero()
    }

    fn left(&self, now: Timestamp) -> Duration {
        // A clock that was set back does not make the wait longer.
        let left = (self.at.duration_since(now) + AGAIN).clamp(SignedDuration::ZERO, AGAIN);
        Duration::try_from(left).unwrap_or_default()
    }
}

impl Pass {
    /// Whether an object carries our labels. Its managed fields may say so although an admission policy took them away.
    pub(super) fn is_labelled(&self, observed: &Observed) -> bool {
        observed.reconciler_label.as_deref() == Some(&self.binding.reconciler)
            && observed.root_label.as_deref() == Some(object::uid(&self.root))
    }

    /// Notes whether the reply to an apply shows our labels.
    pub(super) fn check_labels(&mut self, observed: &Observed) {
        let key = Key::from(&observed.reference);
        if self.is_labelled(observed) {
            self.memory.unlabelled.remove(&key);
        } else {
            let left = Unlabelled { resource_version: observed.resource_version.clone(), at: self.now };
            self.memory.unlabelled.insert(key, left);
        }
    }

    /// Whether a child lacks only the labels that were removed a moment ago.
    pub(super) fn lacks_only_labels(&self, child: &AllowedChild, live: &Observed) -> bool {
        let known = self.memory.unlabelled.get(&Key::from(child.reference()));
        known.is_some_and(|known| known.resource_version == live.resource_version && !known.is_due(self.now))
            && live.desired.as_deref() == Some(child.desired().as_str())
    }

    /// Marks the children without our labels that the cache does not have, because a list that selects by label did not show them. They
    /// are read instead of created.
    pub(super) fn hidden(&self, answer: &mut Answer) -> Vec<usize> {
        let mut hidden = Vec::new();
        for (index, (child, state)) in answer.allowed.children().iter().zip(&mut answer.states).enumerate() {
            let key = Key::from(child.reference());
            let is_known = self.live.contains_key(&key) || !self.memory.unlabelled.contains_key(&key);
            if matches!(state, ChildState::Pending) && !is_known {
                *state = ChildState::InTheWay(0);
                hidden.push(index);
            }
        }
        hidden
    }

    /// Whether a child without our labels is due to be written again.
    pub(super) fn is_label_due(&self) -> bool {
        self.memory.unlabelled.values().any(|child| child.is_due(self.now))
    }

    /// Forgets children that are no longer wanted.
    pub(super) fn forget_unlabelled(&mut self, answer: &Answer) {
        let wanted =
            |key: &Key| answer.allowed.children().iter().any(|child| Key::from(child.reference()) == *key);
        self.memory.unlabelled.retain(|key, _| wanted(key));
    }

    /// When the next of these children is due to be written again.
    pub(super) fn labels_again(&self) -> Option<Duration> {
        // A child that is due now could not be written in this pass, so it is not tried again at once.
        let left = self.memory.unlabelled.values().map(|child| child.left(self.now));
        left.map(|left| if left.is_zero() { AGAIN.unsigned_abs() } else { left }).min()
    }

    /// The blocker that reports these children in a condition.
    pub(super) fn label_blocker(&self) -> Option<Blocker> {
        let named = |key: &Key| self.live.get(key).map(|live| live.reference.to_string());
        let names: Vec<String> = self.memory.unlabelled.keys().filter_map(named).collect();
        let message = format!(
            "{}: something takes the labels pintle.dev/reconciler and pintle.dev/root away, a mutating admission policy or webhook \
             perhaps, so that changes of it cannot be seen; make it leave labels of pintle.dev alone",
            names.join(", ")
        );
        (!names.is_empty()).then(|| Blocker {
            reason: reasons::LABEL_REMOVED.into(),
            message,
            terminal: false,
        })
    }
}
