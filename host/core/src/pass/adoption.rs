//! Adoption: objects without an owner reference that get the root's, because an annotation allows it, or because somebody removed it.
//!
//! A child without its owner reference still belongs to the root if nothing else controls it and it carries the root's uid in a label
//! that our own apply set. We made it for this very root, and a user who wants to release it removes the label too. Kubernetes' own
//! controllers adopt by a selector alone. This proof is not good enough to delete an object.
//!
//! The garbage collector also removes owner references, when somebody deletes a root and wants its children to stay. An owner reference
//! that is put back at that moment would get the children deleted. So the root is read live before an owner reference is set.

use pintle_wit::Refusal;
use serde_json::Value;

use super::{
    ApiError, Observed, Pass, Phase, Step,
    children::is_as_wanted,
    memory::{Met, Standing},
};
use crate::{gate::AllowedChild, object, reasons};

/// What a pass does after it has read the root.
#[derive(Clone, Copy, Debug)]
pub(super) enum Before {
    /// Writing children.
    Children,
    /// Writing patches.
    Patches,
    /// Deleting children that the answer no longer has. The answer may be about an outdated spec.
    Prune,
    /// Writing the status. It is the guest's memory, and an answer to an older status would set it back.
    Status,
}

impl Pass {
    /// Whether the root must be read live before anything is written. That is so if only the list at the start of this host has shown
    /// it: the list may be older than the last writes of the host before.
    pub(super) fn is_to_look_first(&self) -> bool {
        self.may_be_newer_than.is_some() && !self.root_stays
    }

    /// Whether an object is a child of the root whose owner reference somebody removed. In that case our managed fields lack it. If they
    /// still have it, something removes it during our own write, and another write would not help.
    pub(super) fn lost_its_owner(&self, child: &AllowedChild, live: &Observed) -> bool {
        live.is_labelled_by(self.uid()) && !is_as_wanted(child, live) && !object::is_deleting(&self.root)
    }

    /// Whether somebody who may write the object has allowed the root to adopt it.
    pub(super) fn may_adopt(&self, live: &Observed) -> bool {
        live.may_be_adopted_by(self.uid()) && !object::is_deleting(&self.root)
    }

    pub(super) fn read_root(&mut self, before: Before) -> Step {
        self.phase = Phase::ReadingRoot(before);
        Step::ReadRoot
    }

    /// The root was read live. If it is gone, is being deleted, was edited or is another root by now, the pass ends and the watch
    /// brings the root back. If only a list had shown the root, any change of it ends the pass.
    pub(super) fn root_read(&mut self, before: Before, found: Result<Option<Value>, ApiError>) -> Step {
        let version = |live: &Value| object::text(live, &["metadata", "resourceVersion"]).map(str::to_owned);
        match found {
            Ok(Some(live))
                if object::uid(&live) == self.uid()
                    && object::generation(&live) == object::generation(&self.root)
                    && object::is_deleting(&live) == object::is_deleting(&self.root)
                    && (self.may_be_newer_than.is_none() || self.may_be_newer_than == version(&live)) =>
            {
                self.root_stays = true;
                self.memory.is_as_listed = self.may_be_newer_than.clone();
                match before {
                    Before::Children => self.apply_children(),
                    Before::Patches => self.apply_patches(),
                    Before::Prune => self.prune(),
                    Before::Status => self.write_status(),
                }
            }
            // The write would overwrite a status that this host has not seen.
            Err(error) if self.is_to_look_first() => self.give_up(error),
            Err(error) => self.stop(error),
            // Another pass decides what to do then, as soon as the watch shows the change.
            Ok(_) => {
                self.waits = true;
                self.memory.memo = None;
                self.over()
            }
        }
    }

    pub(super) fn adoption_conflict(&self, child: &AllowedChild, live: &Observed) -> Standing {
        let reference = child.reference();
        let holder = match &live.controller {
            Some(uid) => format!("it is controlled by the object with uid {uid}"),
            None => format!(
                "nothing controls it; to let this root take it over: kubectl annotate {} {} pintle.dev/adopt={}",
                reference.kind.to_lowercase(),
                reference
                    .namespace
                    .as_ref()
                    .map_or_else(|| reference.name.clone(), |ns| format!("-n {ns} {}", reference.name)),
                self.uid()
            ),
        };
        let message = format!("{reference} exists and is not this root's: {holder}");
        let refusal = Refusal {
            child: reference.clone(),
            code: 409,
            reason: reasons::ADOPTION_CONFLICT.into(),
            message,
            causes: Vec::new(),
        };
        Standing {
            refusal,
            form: child.desired().clone(),
            retry: true,
            immutable: false,
            met: Met::of(Some(live)),
        }
    }
}
