//! The steps after the children are applied: what refusals lead to, what is pruned, and what is remembered for the next pass.

use pintle_wit::{Failure, ObjectRef};

use super::{
    Answer, ChildState, GUEST_CALLS_MAX, Judged, Key, Memo, Pass, Step, adoption::Before, deletions::Goes,
    memory,
};
use crate::{desired, reasons};

impl Pass {
    /// Every child that can be applied is applied. If the refusals are no longer those that the guest was told, it is called again.
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
            if self.rounds >= GUEST_CALLS_MAX {
                let message = format!(
                    "the guest's answer and what the API server refuses did not settle in {GUEST_CALLS_MAX} calls"
                );
                return self.fail(Failure::terminal(reasons::REFUSALS_UNSTABLE, message));
            }
            self.rounds += 1;
            let request = self.request();
            self.request_hash = self.hash(&request);
            return self.call_guest(request);
        }
        let complete = states.iter().all(|(_, _, state)| matches!(state, ChildState::Accepted));
        if !complete {
            let waiting = self.answer.as_ref().and_then(Answer::waiting_stage);
            let only_waits =
                states.iter().all(|(_, _, state)| matches!(state, ChildState::Accepted | ChildState::Staged));
            self.memory.memo = if only_waits { self.memo(waiting) } else { None };
            // A namespace that is being deleted accepts no new children. That must not hold up a guest that has finished.
            let is_done = self.is_finalized() && self.unsure.is_none();
            return if is_done { self.clean_up() } else { self.write_status() };
        }
        self.apply_patches()
    }

    /// Deletes the children that the answer no longer has. Everything else is as the answer wants it.
    pub(super) fn prune(&mut self) -> Step {
        match self.prunable() {
            prunable if prunable.is_empty() => self.converged(),
            _ if self.is_to_look_first() => self.read_root(Before::Prune),
            prunable => self.read_doomed(Goes::Unwanted, prunable),
        }
    }

    /// Children of the root that the answer no longer has.
    pub(super) fn prunable(&self) -> Vec<ObjectRef> {
        let wanted: Vec<Key> = self.wanted();
        self.live
            .iter()
            .filter(|(key, child)| self.owns(child) && !child.deleting && !wanted.contains(key))
            .map(|(_, child)| child.reference.clone())
            .collect()
    }

    pub(super) fn wanted(&self) -> Vec<Key> {
        let children = self.answer.as_ref().map_or(&[][..], |answer| answer.allowed.children());
        children.iter().map(|child| Key::from(child.reference())).collect()
    }

    /// Every child is as the answer wants it. Remembers what the next pass needs to know.
    pub(super) fn converged(&mut self) -> Step {
        if let Some(answer) = self.answer.take() {
            self.forget_unlabelled(&answer);
            self.answer = Some(answer);
        }
        self.memory.memo = self.memo(None);
        if self.is_finalized() {
            return self.clean_up();
        }
        self.write_status()
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
                live.judge(super::children::is_as_wanted(child, live));
                self.judged.extend(live.covered.then(|| Judged::of(live)));
            }
        }
        let answer = self.answer.as_ref()?;
        let wanted = self.wanted();
        let children = answer.allowed.children().iter().zip(&wanted).filter_map(|(child, key)| {
            let (stage, readiness) = (child.stage(), child.readiness());
            Some(memory::Wanted { key, live: self.live.get(key)?, stage, readiness })
        });
        let unwanted = self.live.keys().filter(|key| waiting.is_some() && !wanted.contains(key));
        Some(Memo::of(self.request_hash, children, waiting, unwanted, &answer.allowed, self.patched()))
    }
}
