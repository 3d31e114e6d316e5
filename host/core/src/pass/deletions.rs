//! Deletions: children that the answer no longer has, and children that the host must delete when the root is deleted. Each is read
//! live first, and the deletion has the version that was read as its precondition.

use std::time::Duration;

use pintle_wit::ObjectRef;

use super::{
    ApiError, Deletion, Observed, Pass, Step, doubt,
    flow::{Awaited, Flow, Phase},
    key::Key,
};

impl Pass {
    /// Deletes the children that the answer no longer has. Everything else is as the answer wants it.
    pub(super) fn prune(&mut self) -> Flow {
        match self.prunable() {
            prunable if prunable.is_empty() => Flow::Done,
            _ if self.is_root_unconfirmed() => self.read_root(),
            prunable => self.read_doomed(prunable),
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

    /// Reads the objects that are about to be deleted.
    pub(super) fn read_doomed(&mut self, doomed: Vec<ObjectRef>) -> Flow {
        self.ask_for(Awaited::Doomed(doomed.clone()), Step::Get(doomed))
    }

    pub(super) fn doomed_read(
        &mut self,
        asked: Vec<ObjectRef>,
        found: Vec<Result<Option<Observed>, ApiError>>,
    ) -> Flow {
        let mut deletions = Vec::new();
        for (reference, found) in asked.into_iter().zip(found) {
            match found {
                // If the API server no longer serves the kind, the object is gone too.
                Err(error) if error.is_kind_missing() => self.saw(&reference, None),
                Err(error) if self.is_let_go() => self.left_behind(&reference, &error),
                Err(error) => return self.stop(error.about(&reference)),
                Ok(found) => {
                    // The live object decides. An object that the root does not own, or owns no longer, is left alone.
                    match found.as_ref().filter(|child| self.owns(child)) {
                        Some(child) if child.deleting => self.wait_with_root(),
                        Some(child) => deletions.push(Deletion::of(child)),
                        None => {}
                    }
                    self.saw(&reference, found);
                }
            }
        }
        if deletions.is_empty() {
            return self.nothing_left();
        }
        let references = deletions.iter().map(|deletion| deletion.reference().clone()).collect();
        self.ask_for(Awaited::Deletions(references), Step::Delete(deletions))
    }

    pub(super) fn deleted(&mut self, asked: &[ObjectRef], results: Vec<Result<(), ApiError>>) -> Flow {
        for (reference, result) in asked.iter().zip(results) {
            match result {
                Ok(()) => {
                    self.counts.deleted += 1;
                    self.live.remove(&Key::from(reference));
                    // It may have a finalizer of its own. A root that is being deleted waits until the object is seen to be gone.
                    self.wait_with_root();
                }
                Err(error) if self.is_let_go() => self.left_behind(reference, &error),
                Err(error) => {
                    self.memory.unreported = true;
                    doubt(&mut self.unsure, error.about(reference));
                }
            }
        }
        if self.unsure.is_some() {
            self.memory.memo = None;
            return Flow::To(Phase::Status);
        }
        self.nothing_left()
    }

    /// Whether the objects are deleted because the root is, and not because the answer no longer has them.
    fn goes_with_root(&self) -> bool {
        self.phase == Phase::CleanUp
    }

    /// Whether an administrator allows that the root is released although some of its children cannot be deleted.
    fn is_let_go(&self) -> bool {
        self.goes_with_root() && self.is_released()
    }

    /// A root that is being deleted waits until this object is gone. There may be no watch that reports that.
    fn wait_with_root(&mut self) {
        if self.goes_with_root() {
            self.wake.retry(Duration::ZERO);
        }
    }

    fn nothing_left(&self) -> Flow {
        if self.goes_with_root() && self.wake.is_retry() { Flow::To(Phase::Over) } else { Flow::Done }
    }
}
