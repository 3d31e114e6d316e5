//! Stages: a child is created, or changed to another form, only when all children of earlier stages are ready. No worker waits for
//! that: the pass ends, and a child that becomes ready requeues the root.

use pintle_wit::{ObjectRef, Readiness};

use super::{
    Pass,
    answer::{Answer, ChildState},
    key::Key,
    memory::Memo,
};
use crate::{gate::AllowedChild, observed::Observed, readiness::Ready};

impl Pass {
    /// Whether later stages wait for any of these children of a stage.
    pub(super) fn is_waited_for(&self, answer: &Answer, stage: &[usize]) -> bool {
        let (children, states) = (answer.allowed.children(), &answer.states);
        let mut found = stage.iter().filter_map(|index| Some((children.get(*index)?, states.get(*index)?)));
        found.any(|(child, state)| self.why_waited_for(child, state).is_some())
    }

    /// Why later stages wait for a child: it is not applied or not ready.
    fn why_waited_for(&self, child: &AllowedChild, state: &ChildState) -> Option<String> {
        let reference = child.reference();
        match (state, self.live.get(&Key::from(reference))) {
            (ChildState::Accepted, Some(live)) => unready(reference, live, child.readiness()),
            (ChildState::Refused(_), _) => Some(format!("{reference}: is refused")),
            _ => Some(format!("{reference}: is not applied yet")),
        }
    }

    /// Whether a child is reconciled although its stage waits: it exists in the wanted form, so drift is corrected.
    pub(super) fn is_kept_meanwhile(&self, child: &AllowedChild) -> bool {
        self.live.get(&Key::from(child.reference())).is_some_and(|live| {
            self.owns(live) && !live.deleting && live.desired.as_deref() == Some(child.desired().as_str())
        })
    }

    /// Whether the stage that waited in the last pass may go on.
    pub(super) fn is_stage_due(&self, memo: &Memo) -> bool {
        memo.waiting.is_some_and(|stage| self.unready_before(memo, stage).is_empty())
    }

    fn unready_before(&self, memo: &Memo, stage: u32) -> Vec<String> {
        let before = memo.wanted(Some(stage), self.live.iter()).into_iter();
        before.filter_map(|(live, rule)| unready(&live.reference, live, rule)).collect()
    }

    /// Which stage waits, and for what; the message of a condition.
    pub(super) fn stage_waiting(&self) -> Option<String> {
        let (stage, what) = match (&self.answer, &self.memory.memo) {
            (Some(answer), _) => {
                let stage = answer.waiting_stage()?;
                let before = answer.children().filter(|(child, _)| child.stage() < stage);
                let what: Vec<String> =
                    before.filter_map(|(child, state)| self.why_waited_for(child, state)).collect();
                (stage, what)
            }
            (None, memo) => {
                let memo = memo.as_ref()?;
                (memo.waiting?, self.unready_before(memo, memo.waiting?))
            }
        };
        Some(format!("stage {stage} waits for {}", what.join("; ")))
    }
}

fn unready(reference: &ObjectRef, live: &Observed, rule: Option<&Readiness>) -> Option<String> {
    match live.readiness(rule) {
        Ready::Yes => None,
        Ready::Waiting(message) | Ready::Failed(message) => Some(format!("{reference}: {message}")),
    }
}
