//! The finalizer of roots, and the deletion of a root that has it.
//!
//! `pintle.dev/guest` is set while the guest has something to clean up. It is removed when the guest answers `finalized`, or by an
//! administrator. The garbage collector deletes the children.

use std::collections::BTreeSet;

use pintle_wit::names;

use super::{
    ApiError, Duty, FinalizerWrite, Pass, Step,
    flow::{Awaited, Flow, Phase},
};
use crate::object;

impl Pass {
    /// Whether an administrator allows that the root is released.
    pub(super) fn is_released(&self) -> bool {
        is_annotated(&self.root, names::ANNOTATION_RELEASE)
    }

    /// The finalizers that the root should have, if they differ from those that it has.
    pub(super) fn due_finalizers(&self) -> Option<BTreeSet<String>> {
        if object::is_deleting(&self.root) {
            // Kubernetes accepts no new finalizer here, and the last ones are removed when the work is done.
            return None;
        }
        let mut wanted = self.finalizers.clone();
        if self.binding.manifest.finalizer {
            wanted.insert(names::FINALIZER_GUEST.into());
        } else {
            wanted.remove(names::FINALIZER_GUEST);
        }
        (wanted != self.finalizers).then_some(wanted)
    }

    /// Sets the finalizers that the root should have. A pass without an answer has only these to set.
    pub(super) fn set_due_finalizers(&mut self) -> Flow {
        match self.due_finalizers() {
            // The patch leaves the version open, so the status after it could not name the version that this host knows.
            Some(_) if self.is_root_unproven() => self.read_root(),
            Some(wanted) => self.set_finalizers(wanted),
            None if self.answer.is_none() => Flow::To(Phase::Status),
            None => Flow::Done,
        }
    }

    fn set_finalizers(&mut self, wanted: BTreeSet<String>) -> Flow {
        let write = FinalizerWrite::of(&self.root, wanted.iter().cloned().collect());
        self.ask_for(Awaited::Finalizers(wanted), Step::SetFinalizers(write))
    }

    pub(super) fn finalizers_set(&mut self, set: BTreeSet<String>, result: Result<(), ApiError>) -> Flow {
        match result {
            Err(error) if error.code == 404 => Flow::To(Phase::Over),
            // The root has changed since. Its next pass is queued already, and begins with the changed root.
            Err(error) if self.phase == Phase::Leave => self.give_up(error),
            Err(error) => self.stop(error),
            Ok(()) => {
                self.finalizers = set;
                match self.phase {
                    Phase::Leave if self.binding.duty == Duty::Release => Flow::To(Phase::Status),
                    Phase::Leave => Flow::Done,
                    _ => Flow::Again,
                }
            }
        }
    }

    // === The end of a root ===

    /// A root without our finalizer is left to the garbage collector: an apply now would re-create what that deletes.
    pub(super) fn begin_deletion(&mut self) -> Flow {
        let is_asked = !self.is_released() && self.binding.manifest.finalizer;
        match self.binding.duty {
            _ if !self.is_held() => Flow::To(Phase::Over),
            Duty::Full if is_asked => self.begin_unless_slowed(),
            // Without a module the guest cannot be asked.
            Duty::CleanUp if !self.is_released() => Flow::To(Phase::Over),
            _ => Flow::To(Phase::Leave),
        }
    }

    /// Begins to remove our finalizer from a root whose Reconciler is being deleted, and to say in its status that nobody reconciles it
    /// any more. Its children stay.
    pub(super) fn release(&mut self) -> Flow {
        Flow::To(if self.is_held() { Phase::Leave } else { Phase::Status })
    }

    /// Whether the root has our finalizer.
    pub(super) fn is_held(&self) -> bool {
        self.finalizers.contains(names::FINALIZER_GUEST)
    }

    /// Removes our finalizer.
    pub(super) fn leave(&mut self) -> Flow {
        let mut kept = self.finalizers.clone();
        kept.remove(names::FINALIZER_GUEST);
        self.set_finalizers(kept)
    }
}

/// Whether an annotation is set, to a value other than the empty one and `false`.
pub(super) fn is_annotated(root: &serde_json::Value, annotation: &str) -> bool {
    object::text(root, &["metadata", "annotations", annotation])
        .is_some_and(|value| !matches!(value, "" | "false"))
}
