//! Deletions: children that the answer no longer has, and children that the host must delete when the root is deleted. Each is read
//! live first, and the deletion has the version that was read as its precondition.

use pintle_wit::ObjectRef;

use super::{ApiError, Deletion, Key, Observed, Pass, Phase, Step, doubt};

/// Why objects are to be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goes {
    /// The answer no longer has them.
    Unwanted,
    /// The root is being deleted, and no garbage collector deletes them.
    WithRoot,
}

impl Pass {
    /// Reads the objects that are about to be deleted.
    pub(super) fn read_doomed(&mut self, goes: Goes, doomed: Vec<ObjectRef>) -> Step {
        self.phase = Phase::ReadingDoomed(goes, doomed.clone());
        Step::Get(doomed)
    }

    pub(super) fn doomed_read(
        &mut self,
        goes: Goes,
        asked: Vec<ObjectRef>,
        found: Vec<Result<Option<Observed>, ApiError>>,
    ) -> Step {
        let mut deletions = Vec::new();
        for (reference, found) in asked.into_iter().zip(found) {
            match found {
                // If the API server no longer serves the kind, the object is gone too.
                Err(error) if error.is_kind_missing() => self.saw(&reference, None),
                Err(error) if self.is_let_go(goes) => self.left_behind(&reference, &error),
                Err(error) => return self.stop(error.about(&reference)),
                Ok(found) => {
                    // The live object decides. An object that the root does not own, or owns no longer, is left alone.
                    match found.as_ref().filter(|child| self.owns(child)) {
                        Some(child) if child.deleting => self.waits |= goes == Goes::WithRoot,
                        Some(child) => deletions.push(Deletion::of(child)),
                        None => {}
                    }
                    self.saw(&reference, found);
                }
            }
        }
        if deletions.is_empty() {
            return self.nothing_left(goes);
        }
        let references = deletions.iter().map(|deletion| deletion.reference().clone()).collect();
        self.phase = Phase::Deleting(goes, references);
        Step::Delete(deletions)
    }

    pub(super) fn deleted(
        &mut self,
        goes: Goes,
        asked: &[ObjectRef],
        results: Vec<Result<(), ApiError>>,
    ) -> Step {
        for (reference, result) in asked.iter().zip(results) {
            match result {
                Ok(()) => {
                    self.counts.deleted += 1;
                    self.live.remove(&Key::from(reference));
                    // It may have a finalizer of its own. A root that is being deleted waits until the object is seen to be gone.
                    self.waits |= goes == Goes::WithRoot;
                }
                Err(error) if self.is_let_go(goes) => self.left_behind(reference, &error),
                Err(error) => {
                    self.memory.untold = true;
                    doubt(&mut self.unsure, error.about(reference));
                }
            }
        }
        if self.unsure.is_some() {
            self.memory.memo = None;
            return self.write_status();
        }
        self.nothing_left(goes)
    }

    /// Whether an administrator allows that the root is released although some of its children cannot be deleted.
    fn is_let_go(&self, goes: Goes) -> bool {
        goes == Goes::WithRoot && self.is_released()
    }

    fn nothing_left(&mut self, goes: Goes) -> Step {
        match goes {
            Goes::Unwanted => self.converged(),
            Goes::WithRoot => self.leave_unless_waiting(),
        }
    }
}
