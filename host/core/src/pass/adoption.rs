//! Adoption: objects without an owner reference that get the root's, because an annotation allows it, or because somebody removed it.
//!
//! A child without its owner reference still belongs to the root if nothing else controls it and it carries the root's uid in a label
//! that our own apply set. We made it for this very root, and a user who wants to release it removes the label too. Kubernetes' own
//! controllers adopt by a selector alone. This proof is not good enough to delete an object.
//!
//! The garbage collector also removes owner references, when somebody deletes a root and wants its children to stay. An owner reference
//! that is put back at that moment would get the children deleted. So the root is read live before an owner reference is set.

use super::{Pass, answer::is_as_wanted, blockers::kubectl, refusals::StandingRefusal};
use crate::{gate::AllowedChild, object, observed::Observed, reasons};

impl Pass {
    /// Whether an object is a child of the root whose owner reference somebody removed. In that case our managed fields lack it. If they
    /// still have it, something removes it during our own write, and another write would not help.
    pub(super) fn lost_its_owner(&self, child: &AllowedChild, live: &Observed) -> bool {
        live.is_labelled_by(self.uid()) && !is_as_wanted(child, live) && !object::is_deleting(&self.root)
    }

    /// Whether somebody who may write the object has allowed the root to adopt it.
    pub(super) fn may_adopt(&self, live: &Observed) -> bool {
        live.may_be_adopted_by(self.uid()) && !object::is_deleting(&self.root)
    }

    pub(super) fn adoption_conflict(&self, child: &AllowedChild, live: &Observed) -> StandingRefusal {
        let reference = child.reference();
        let holder = match (&live.controller_name, &live.controller) {
            (Some(name), _) => format!("it is controlled by {name}"),
            (None, Some(uid)) => format!("it is controlled by the object with uid {uid}"),
            (None, None) => format!(
                "nothing controls it; to let this root take it over within a minute: {} pintle.dev/adopt={}",
                kubectl("annotate", reference),
                self.uid()
            ),
        };
        let message = format!("{reference} exists and is not this root's: {holder}");
        StandingRefusal::by_host(child, live, 409, reasons::ADOPTION_CONFLICT, message)
    }
}
