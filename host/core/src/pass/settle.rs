//! What comes of the children once they are applied: what refusals lead to, and what is remembered for the next pass.

use pintle_wit::{Failure, ObjectRef};

use super::{
    Judged, Pass,
    answer::{Answer, ChildState, is_as_wanted},
    flow::{Flow, Phase},
    key::Key,
    memory::{Memo, Wanted},
};
use crate::{desired::DesiredHash, reasons};

/// How many times a guest is called in one pass while it and the API server disagree: the first call, one with the refusals that the
/// first answer led to, and one more for a guest that works around them.
const GUEST_CALLS_MAX: u32 = 3;

impl Pass {
    /// Every child that can be applied is applied. If the refusals are no longer those that the guest was told, it is called again.
    pub(super) fn settle(&mut self) -> Flow {
        let states: Vec<(ObjectRef, DesiredHash, ChildState)> =
            self.answer.as_ref().map_or_else(Vec::new, |answer| {
                answer
                    .children()
                    .map(|(child, state)| (child.reference().clone(), child.desired().clone(), state.clone()))
                    .collect()
            });
        for (reference, desired, state) in &states {
            match state {
                ChildState::Accepted => self.memory.refusals.remove(reference, desired),
                ChildState::Refused(standing) => self.memory.refusals.insert((**standing).clone()),
                _ => {}
            }
        }
        if self.memory.refusals.list() != self.asked.refusals {
            if self.asked.rounds >= GUEST_CALLS_MAX {
                let message = format!(
                    "the guest's answer and what the API server refuses did not settle in {GUEST_CALLS_MAX} calls"
                );
                return self.fail(Failure::terminal(reasons::REFUSALS_UNSTABLE, message));
            }
            self.asked.rounds += 1;
            return Flow::To(Phase::Guest);
        }
        if !self.answer.as_ref().is_none_or(Answer::is_complete) {
            let waiting = self.answer.as_ref().and_then(Answer::waiting_stage);
            let only_waits =
                states.iter().all(|(_, _, state)| matches!(state, ChildState::Accepted | ChildState::Staged));
            self.memory.memo = if only_waits { self.memo(waiting) } else { None };
            // A namespace that is being deleted accepts no new children. That must not hold up a guest that has finished.
            let is_done = self.is_finalized() && self.unsure.is_none();
            return Flow::To(if is_done { Phase::Leave } else { Phase::Status });
        }
        Flow::Done
    }

    pub(super) fn wanted(&self) -> Vec<Key> {
        let children = self.answer.as_ref().map_or(&[][..], |answer| answer.allowed.children());
        children.iter().map(|child| Key::from(child.reference())).collect()
    }

    /// Every child is as the answer wants it. Remembers what the next pass needs to know.
    pub(super) fn remember(&mut self) -> Flow {
        self.memory.memo = self.memo(None);
        if self.is_finalized() { Flow::To(Phase::Leave) } else { Flow::Done }
    }

    /// Whether the guest of a root that is being deleted has nothing left to clean up.
    fn is_finalized(&self) -> bool {
        self.answer.as_ref().is_some_and(|answer| answer.allowed.finalized())
    }

    /// The memo for the next pass. Every child was applied, except for those of stages that wait.
    fn memo(&mut self, waiting: Option<u32>) -> Option<Memo> {
        let answer = self.answer.as_ref()?;
        for child in answer.allowed.children() {
            let live = self.live.get_mut(&Key::from(child.reference()));
            if let Some(live) = live.filter(|live| !live.covered) {
                live.judge(is_as_wanted(child, live));
                self.judged.extend(live.covered.then(|| Judged::of(live)));
            }
        }
        let answer = self.answer.as_ref()?;
        let wanted = self.wanted();
        let children = answer.allowed.children().iter().zip(&wanted).filter_map(|(child, key)| {
            let (stage, readiness) = (child.stage(), child.readiness());
            Some(Wanted { key, live: self.live.get(key)?, stage, readiness })
        });
        let unwanted = self.live.keys().filter(|key| waiting.is_some() && !wanted.contains(key));
        Some(Memo::of(self.asked.hash, children, waiting, unwanted, &answer.allowed))
    }
}
