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
    /// What a stage waits for: the children of earlier stages that are not applied or not ready.
    pub(super) fn waits_for(&self, answer: &Answer, stage: u32) -> Vec<String> {
        answer
            .children()
            .filter(|(child, _)| child.stage() < stage)
            .filter_map(|(child, state)| {
                let reference = child.reference();
                match (state, self.live.get(&Key::from(reference))) {
                    (ChildState::Accepted, Some(live)) => unready(reference, live, child.readiness()),
                    (ChildState::Refused(_), _) => Some(format!("{reference}: is refused")),
                    _ => Some(format!("{reference}: is not applied yet")),
                }
            })
            .collect()
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
                (stage, self.waits_for(answer, stage))
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
