//! Finalizers on roots, and the deletion of a root that has one.
//!
//! Each finalizer stands for work that is left. `pintle.dev/guest` is set while the guest has something to clean up; it is removed when
//! the guest answers `finalized`, or by an administrator. `pintle.dev/inventory` is set while the root has children that no garbage
//! collector deletes; the host deletes those without the guest.

use std::collections::BTreeSet;

use pintle_wit::{Event, EventType, ObjectRef, names};

use super::{
    ApiError, Duty, FinalizerWrite, Pass, Step,
    flow::{Awaited, Flow, Phase},
};
use crate::{object, reasons};

impl Pass {
    fn has(&self, finalizer: &str) -> bool {
        self.finalizers.contains(finalizer)
    }

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
        set(&mut wanted, names::FINALIZER_GUEST, self.binding.manifest.finalizer);
        set(&mut wanted, names::FINALIZER_INVENTORY, self.has_children_elsewhere());
        (wanted != self.finalizers).then_some(wanted)
    }

    /// Whether a child is, may be, or is about to be in a place where an owner reference is not possible.
    fn has_children_elsewhere(&self) -> bool {
        let wanted = self.answer.as_ref().map_or(&[][..], |answer| answer.allowed.children());
        let recorded = self.inventory();
        wanted.iter().map(|child| child.reference()).chain(&recorded).any(|child| self.is_elsewhere(child))
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
                    Phase::Leave => Flow::Done,
                    _ => Flow::Again,
                }
            }
        }
    }

    // === The end of a root ===

    /// A root without a finalizer of ours is left to the garbage collector: an apply now would re-create what that deletes.
    pub(super) fn begin_deletion(&mut self) -> Flow {
        if !self.has_any() {
            return Flow::To(Phase::Over);
        }
        let guest = self.has(names::FINALIZER_GUEST);
        let is_asked = guest && !self.is_released() && self.binding.manifest.finalizer;
        match self.binding.duty {
            Duty::Full if is_asked => self.begin_unless_slowed(),
            // Without a module the guest cannot be asked.
            Duty::CleanUp if guest && !self.is_released() => Flow::To(Phase::Over),
            _ => Flow::To(Phase::CleanUp),
        }
    }

    /// Begins to remove our finalizers from a root whose Reconciler is being deleted. Its children stay.
    pub(super) fn release(&mut self) -> Flow {
        Flow::To(if self.has_any() { Phase::Leave } else { Phase::Over })
    }

    fn has_any(&self) -> bool {
        [names::FINALIZER_GUEST, names::FINALIZER_INVENTORY].iter().any(|name| self.has(name))
    }

    /// Removes all our finalizers.
    pub(super) fn leave(&mut self) -> Flow {
        let mut kept = self.finalizers.clone();
        kept.remove(names::FINALIZER_GUEST);
        kept.remove(names::FINALIZER_INVENTORY);
        self.set_finalizers(kept)
    }

    /// Looks for all children that no garbage collector deletes.
    pub(super) fn clean_up(&mut self) -> Flow {
        let mut left: Vec<ObjectRef> = self.inventory();
        let seen = self.live.values().map(|child| &child.reference);
        left.extend(seen.filter(|child| self.is_elsewhere(child)).cloned());
        left.sort();
        left.dedup();
        if left.is_empty() { Flow::Done } else { self.read_doomed(left) }
    }

    /// An Event that names what stays, for the administrator who releases a root.
    pub(super) fn left_behind(&mut self, reference: &ObjectRef, error: &ApiError) {
        let message = format!("the root was released, and {reference} is left behind: {error}");
        let message = crate::text::note(&message);
        self.events.push(Event { r#type: EventType::Warning, reason: reasons::LEFT_BEHIND.into(), message });
    }
}

fn set(finalizers: &mut BTreeSet<String>, name: &str, wanted: bool) {
    if wanted {
        finalizers.insert(name.into());
    } else {
        finalizers.remove(name);
    }
}

/// Whether an annotation is set, to a value other than the empty one and `false`.
pub(super) fn is_annotated(root: &serde_json::Value, annotation: &str) -> bool {
    object::text(root, &["metadata", "annotations", annotation])
        .is_some_and(|value| !matches!(value, "" | "false"))
}
