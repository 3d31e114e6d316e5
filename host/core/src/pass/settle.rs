//! After the children: what the refusals lead to, what is pruned, and what is remembered.

use pintle_wit::{Failure, ObjectRef, Readiness, reasons};

use super::{
    ApiError, ChildState, Deletion, GUEST_CALLS_MAX, Judged, Key, Memo, Observed, Pass, Phase, Step, doubt,
};
use crate::desired;

impl Pass {
    /// Everything that can be applied is. When the API server refused other things than the guest was told, it is asked again.
    pub(super) fn settle(&mut self) -> Step {
        let states: Vec<(ObjectRef, desired::DesiredHash, ChildState)> =
            self.answer.as_ref().map_or_else(Vec::new, |answer| {
                let children = answer.allowed.children().iter();
                children
                    .zip(&answer.states)
                    .map(|(child, state)| (child.reference().clone(), child.desired().clone(), state.clone()))
                    .collect()
            });
        for (reference, desired, state) in &states {
            match state {
                ChildState::Accepted => self.memory.accept(reference, desired),
                ChildState::Refused(standing) => self.memory.refuse((**standing).clone()),
                _ => {}
            }
        }
        if self.memory.refusals() != self.told {
            if self.counts.guest_calls >= GUEST_CALLS_MAX {
                let message = format!(
                    "the guest's answer and what the API server refuses did not settle in {GUEST_CALLS_MAX} calls"
                );
                return self.fail(Failure::terminal(reasons::REFUSALS_UNSTABLE, message));
            }
            let request = self.request();
            self.request_hash = self.hash(&request);
            return self.call_guest(request);
        }
        let complete = states.iter().all(|(_, _, state)| matches!(state, ChildState::Accepted));
        if !complete {
            self.memory.memo = None;
            return self.write_status();
        }
        match self.prunable() {
            prunable if prunable.is_empty() => self.converged(),
            prunable => {
                self.phase = Phase::ReadingPrunable(prunable.clone());
                Step::Get(prunable)
            }
        }
    }

    /// Children of the root that the answer no longer has.
    pub(super) fn prunable(&self) -> Vec<ObjectRef> {
        let wanted: Vec<Key> = self.wanted();
        self.live
            .iter()
            .filter(|(key, child)| child.is_owned_by(self.uid()) && !child.deleting && !wanted.contains(key))
            .map(|(_, child)| child.reference.clone())
            .collect()
    }

    pub(super) fn wanted(&self) -> Vec<Key> {
        let children = self.answer.as_ref().map_or(&[][..], |answer| answer.allowed.children());
        children.iter().map(|child| Key::from(child.reference())).collect()
    }

    pub(super) fn read_prunable(
        &mut self,
        asked: Vec<ObjectRef>,
        found: Vec<Result<Option<Observed>, ApiError>>,
    ) -> Step {
        let mut deletions = Vec::new();
        for (reference, found) in asked.into_iter().zip(found) {
            match found {
                Err(error) => return self.stop(error),
                Ok(found) => {
                    // The live owner reference decides. What is not, or no longer, the root's is left alone.
                    let ours =
                        found.as_ref().filter(|child| child.is_owned_by(self.uid()) && !child.deleting);
                    deletions.extend(ours.map(Deletion::of));
                    self.saw(&reference, found);
                }
            }
        }
        if deletions.is_empty() {
            return self.converged();
        }
        self.phase = Phase::Pruning(deletions.iter().map(|deletion| deletion.reference().clone()).collect());
        Step::Delete(deletions)
    }

    pub(super) fn pruned(&mut self, asked: &[ObjectRef], results: Vec<Result<(), ApiError>>) -> Step {
        for (reference, result) in asked.iter().zip(results) {
            match result {
                Ok(()) => {
                    self.counts.deleted += 1;
                    self.live.remove(&Key::from(reference));
                }
                Err(error) => doubt(&mut self.unsure, error),
            }
        }
        if self.unsure.is_some() {
            self.memory.memo = None;
            return self.write_status();
        }
        self.converged()
    }

    /// Every child is as the answer wants it: what the next pass needs to know of this one is remembered.
    pub(super) fn converged(&mut self) -> Step {
        if let Some(answer) = &self.answer {
            for child in answer.allowed.children() {
                let key = Key::from(child.reference());
                if let Some(live) = self.live.get_mut(&key).filter(|live| !live.covered) {
                    live.judge(super::children::is_as_wanted(child, live));
                    self.judged.extend(live.covered.then(|| Judged::of(live)));
                }
            }
            let children: Vec<(Key, Option<&Readiness>)> = answer
                .allowed
                .children()
                .iter()
                .map(|child| (Key::from(child.reference()), child.readiness()))
                .collect();
            let children = children.iter().filter_map(|(key, rule)| Some((key, self.live.get(key)?, *rule)));
            self.memory.memo = Some(Memo::of(self.request_hash, children, &answer.allowed));
        }
        self.write_status()
    }
}
