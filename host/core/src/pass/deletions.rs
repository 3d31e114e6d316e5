//! Deletions of children that the answer no longer has. Each is read live first, and the deletion has the version that was read as its
//! precondition.

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
            prunable => self.ask_for(Awaited::Doomed(prunable.clone()), Step::Get(prunable)),
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
                Err(error) => return self.stop(error.about(&reference)),
                Ok(found) => {
                    // The live object decides. An object that the root does not own, or owns no longer, is left alone.
                    let doomed = found.as_ref().filter(|child| self.owns(child) && !child.deleting);
                    deletions.extend(doomed.map(Deletion::of));
                    self.saw(&reference, found);
                }
            }
        }
        if deletions.is_empty() {
            return Flow::Done;
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
                }
                Err(error) => {
                    self.memory.unreported = true;
                    doubt(&mut self.unsure, error.about(reference));
                }
            }
        }
        if self.unsure.is_none() {
            return Flow::Done;
        }
        self.memory.memo = None;
        Flow::To(Phase::Status)
    }
}
