//! Finalizers on roots, and the end of a root that has one.
//!
//! A finalizer says whose work is left. `pintle.dev/guest` is there while the guest has something to clean up: only its own
//! `finalized` ends it, or an administrator. `pintle.dev/inventory` is there while the root has children that no garbage collector
//! takes away: the host needs no guest to delete those.

use std::collections::BTreeSet;

use pintle_wit::{Event, EventType, ObjectRef, names};

use super::{ApiError, FinalizerWrite, Pass, Phase, Step, deletions::Goes};
use crate::object;

/// How much of a reconciler there is to work with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Duty {
    /// A module is in force.
    #[default]
    Full,
    /// None is, or the Reconciler is suspended: what needs no guest is done for roots that are being deleted, and nothing else.
    CleanUp,
    /// The Reconciler is being deleted: our finalizers are taken off the roots, and their children are left.
    Release,
}

/// What comes after the finalizers were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// The children of the answer.
    ApplyChildren,
    /// The status: there was nothing else to do.
    WriteStatus,
    /// The end, for a root that may go.
    Leave,
}

impl Pass {
    fn has(&self, finalizer: &str) -> bool {
        self.finalizers.contains(finalizer)
    }

    /// Whether an administrator lets the root go.
    pub(super) fn is_released(&self) -> bool {
        is_annotated(&self.root, names::ANNOTATION_RELEASE)
    }

    /// The finalizers that the root should have, where they are others than it has.
    pub(super) fn due_finalizers(&self) -> Option<BTreeSet<String>> {
        if object::is_deleting(&self.root) {
            // None can be added any more, and the last ones go when the work is done.
            return None;
        }
        let mut wanted = self.finalizers.clone();
        set(&mut wanted, names::FINALIZER_GUEST, self.binding.manifest.finalizer);
        set(&mut wanted, names::FINALIZER_INVENTORY, self.has_children_elsewhere());
        set(&mut wanted, names::FINALIZER_PATCHES, self.has_patches());
        (wanted != self.finalizers).then_some(wanted)
    }

    /// Whether a child may be, or is about to be, where no owner reference reaches.
    fn has_children_elsewhere(&self) -> bool {
        let wanted = self.answer.as_ref().map_or(&[][..], |answer| answer.allowed.children());
        let recorded = self.inventory();
        wanted.iter().map(|child| child.reference()).chain(&recorded).any(|child| self.is_elsewhere(child))
    }

    pub(super) fn set_finalizers(&mut self, wanted: BTreeSet<String>, then: Then) -> Step {
        let write = FinalizerWrite::of(&self.root, wanted.iter().cloned().collect());
        self.phase = Phase::SettingFinalizers(wanted, then);
        Step::SetFinalizers(write)
    }

    pub(super) fn finalizers_set(
        &mut self,
        set: BTreeSet<String>,
        then: Then,
        result: Result<(), ApiError>,
    ) -> Step {
        match (result, then) {
            (Err(error), _) if error.code == 404 => self.over(),
            // The root has changed since; its next pass, which is on its way, begins with what it is now.
            (Err(error), Then::Leave) => self.give_up(error),
            (Err(error), _) => self.stop(error),
            (Ok(()), then) => {
                self.finalizers = set;
                match then {
                    Then::ApplyChildren => self.ready_to_apply(),
                    Then::WriteStatus => self.write_status(),
                    Then::Leave => {
                        let events = std::mem::take(&mut self.leaving);
                        self.emit(events)
                    }
                }
            }
        }
    }

    // === The end of a root ===

    /// A root without a finalizer of ours is the garbage collector's: an apply now would re-create what it takes away.
    pub(super) fn begin_deletion(&mut self) -> Step {
        if !self.has_any() {
            return self.over();
        }
        let guest = self.has(names::FINALIZER_GUEST);
        let is_asked = guest && !self.is_released() && self.binding.manifest.finalizer;
        match self.binding.duty {
            Duty::Full if is_asked => self.ask_guest(),
            // Without a module nobody knows what the guest would say.
            Duty::CleanUp if guest && !self.is_released() => self.over(),
            _ => self.clean_up(),
        }
    }

    /// Takes every finalizer of ours off a root whose Reconciler goes. Its children stay.
    pub(super) fn release(&mut self) -> Step {
        if self.has_any() { self.leave() } else { self.over() }
    }

    fn has_any(&self) -> bool {
        [names::FINALIZER_GUEST, names::FINALIZER_INVENTORY, names::FINALIZER_PATCHES]
            .iter()
            .any(|name| self.has(name))
    }

    pub(super) fn leave(&mut self) -> Step {
        let mut kept = self.finalizers.clone();
        kept.remove(names::FINALIZER_GUEST);
        kept.remove(names::FINALIZER_INVENTORY);
        kept.remove(names::FINALIZER_PATCHES);
        self.set_finalizers(kept, Then::Leave)
    }

    /// Looks for everything that no garbage collector takes away.
    pub(super) fn clean_up(&mut self) -> Step {
        let mut left: Vec<ObjectRef> = self.inventory().into_iter().collect();
        let seen = self.live.values().map(|child| &child.reference);
        left.extend(seen.filter(|child| self.is_elsewhere(child)).cloned());
        left.sort();
        left.dedup();
        if left.is_empty() {
            return self.take_patches_away();
        }
        self.read_doomed(Goes::WithRoot, left)
    }

    pub(super) fn leave_unless_waiting(&mut self) -> Step {
        if self.waits { self.over() } else { self.take_patches_away() }
    }

    /// Whoever releases a root is told what stays.
    pub(super) fn left_behind(&mut self, reference: &ObjectRef, error: &ApiError) {
        let message = format!("the root was released, and {reference} is left behind: {error}");
        let message = crate::gate::clean(&message, 1024);
        self.leaving.push(Event { r#type: EventType::Warning, reason: "LeftBehind".into(), message });
    }
}

fn set(finalizers: &mut BTreeSet<String>, name: &str, wanted: bool) {
    if wanted {
        finalizers.insert(name.into());
    } else {
        finalizers.remove(name);
    }
}

/// Whether an annotation is set to anything but nothing or `false`.
pub(super) fn is_annotated(root: &serde_json::Value, annotation: &str) -> bool {
    object::text(root, &["metadata", "annotations", annotation])
        .is_some_and(|value| !matches!(value, "" | "false"))
}
