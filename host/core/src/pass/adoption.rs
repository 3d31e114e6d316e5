//! Objects that get the root's owner reference although they have none: somebody allowed it by an annotation, or somebody took it away.
//!
//! A child without its owner reference is the root's still if nothing else controls it and it carries the root's uid in a label that
//! our own apply set: it was made by us for this very root, and who wants it let go takes the label away too. Kubernetes' own
//! controllers adopt by a selector alone. It is not proof enough to delete anything by.
//!
//! The garbage collector takes owner references away, too, when somebody deletes a root and wants its children to stay. An owner
//! reference that is put back at that moment would have them deleted. So the root is read live before one is set.

use pintle_wit::Refusal;
use serde_json::Value;

use super::{
    ApiError, Observed, Pass, Phase, Step,
    children::is_as_wanted,
    memory::{Met, Standing},
};
use crate::{gate::AllowedChild, object};

/// The reason of a refusal by the host: the object exists and is somebody else's.
pub(super) const ADOPTION_CONFLICT: &str = "AdoptionConflict";

/// What a pass is about to do when it reads the root.
#[derive(Clone, Copy, Debug)]
pub(super) enum Before {
    /// Writing children.
    Children,
    /// Writing patches.
    Patches,
    /// Deleting what the answer no longer has: it may be an answer to a spec of before.
    Prune,
    /// Writing the status: the guest's memory, which an answer to an older one would set back.
    Status,
}

impl Pass {
    /// Whether nothing is to be written before the root was read live: a list showed it, when the host started, and nothing since, so
    /// that it may be older than what the host before has done.
    pub(super) fn is_to_look_first(&self) -> bool {
        self.may_be_newer_than.is_some() && !self.root_stays
    }

    /// Whether an object is a child of the root that somebody took the owner reference from. It then left our managed fields; where
    /// it did not, something takes it away within our own write, and another one would not help.
    pub(super) fn lost_its_owner(&self, child: &AllowedChild, live: &Observed) -> bool {
        live.is_labelled_by(self.uid()) && !is_as_wanted(child, live) && !object::is_deleting(&self.root)
    }

    /// Whether somebody with rights on an object allowed the root to take it over.
    pub(super) fn may_adopt(&self, live: &Observed) -> bool {
        live.may_be_adopted_by(self.uid()) && !object::is_deleting(&self.root)
    }

    pub(super) fn read_root(&mut self, before: Before) -> Step {
        self.phase = Phase::ReadingRoot(before);
        Step::ReadRoot
    }

    /// The root was read live. Of one that is gone, going, edited or another by now, its watch will tell; of what only a list showed,
    /// of any change.
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
            // A status would be written over one that nobody has seen.
            Err(error) if self.is_to_look_first() => self.give_up(error),
            Err(error) => self.stop(error),
            // What is to be done then another pass decides, as soon as the watch shows it.
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
            reason: ADOPTION_CONFLICT.into(),
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
