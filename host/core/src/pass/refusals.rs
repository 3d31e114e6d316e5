//! Refusals: what the API server, an admission policy, or the rule against adoption, did not take. The guest is told of them, and may
//! answer with something else.

use pintle_wit::{Cause, ObjectRef, Refusal};

use super::ApiError;
use crate::{
    conditions::message,
    desired::DesiredHash,
    gate::{Allowed, AllowedChild},
    observed::Observed,
    reasons,
};

/// A refusal that stands until this child is accepted in this very form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StandingRefusal {
    pub(super) refusal: Refusal,
    pub(super) form: DesiredHash,
    /// The refusal may end by itself, so a later pass sends the form again.
    pub(super) retry: bool,
    /// The existing object cannot be changed to this form.
    pub(super) immutable: bool,
    /// Another object may hold what the child needs.
    pub(super) contention: bool,
    /// The existing object at the time of the refusal.
    pub(super) occupant: Occupant,
}

/// What existed under a child's name: an object in one version, or nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Occupant(Option<(String, String)>);

impl Occupant {
    pub(super) fn of(live: Option<&Observed>) -> Self {
        Self(live.map(|live| (live.uid.clone(), live.resource_version.clone())))
    }
}

impl StandingRefusal {
    /// The refusal of a child by the API server.
    pub(super) fn of(child: &AllowedChild, error: ApiError, live: Option<&Observed>) -> Self {
        let retry = error.depends_on_others();
        let (immutable, contention) = (error.is_immutable(), error.is_contention());
        let reason = error.reason_word();
        let causes = error.causes.into_iter();
        let causes = causes.map(|cause| Cause { message: message(&cause.message), ..cause });
        let refusal = Refusal {
            child: child.reference().clone(),
            code: error.code,
            reason,
            message: message(&error.message),
            causes: causes.collect(),
        };
        let form = child.desired().clone();
        Self { refusal, form, retry, immutable, contention, occupant: Occupant::of(live) }
    }

    /// The refusal of a child that the API server answered without our labels. Our watch selects by label, so it would never show it.
    pub(super) fn without_labels(child: &AllowedChild, live: &Observed) -> Self {
        let message = "something takes the labels pintle.dev/reconciler and pintle.dev/root away, a mutating admission policy or webhook \
                       perhaps, so that changes of it cannot be seen; make it leave labels of pintle.dev alone";
        Self::by_host(child, live, 422, reasons::LABEL_REMOVED, message.into())
    }

    /// The host's own refusal of a child over what is there. It is tried again, since nothing reports that its cause is gone.
    pub(super) fn by_host(
        child: &AllowedChild,
        live: &Observed,
        code: u16,
        reason: &str,
        message: String,
    ) -> Self {
        let (child, form) = (child.reference().clone(), child.desired().clone());
        let refusal = Refusal { child, code, reason: reason.into(), message, causes: Vec::new() };
        let occupant = Occupant::of(Some(live));
        Self { refusal, form, retry: true, immutable: false, contention: false, occupant }
    }
}

/// The refusals that stand, sorted by child.
#[derive(Clone, Debug, Default)]
pub(super) struct Refusals(Vec<StandingRefusal>);

impl Refusals {
    /// How much memory they take, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let bytes = |standing: &StandingRefusal| {
            let refusal = &standing.refusal;
            size_of::<StandingRefusal>()
                + refusal.message.len()
                + refusal.reason.len()
                + refusal.child.name.len()
        };
        self.0.iter().map(bytes).sum()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// As the request to the guest lists them.
    pub(super) fn list(&self) -> Vec<Refusal> {
        self.0.iter().map(|standing| standing.refusal.clone()).collect()
    }

    /// The standing refusal of a child in this form.
    pub(super) fn against(&self, child: &ObjectRef, form: &DesiredHash) -> Option<&StandingRefusal> {
        self.0.iter().find(|standing| standing.refusal.child == *child && standing.form == *form)
    }

    /// A child was accepted in this form.
    pub(super) fn remove(&mut self, child: &ObjectRef, form: &DesiredHash) {
        self.0.retain(|standing| standing.refusal.child != *child || standing.form != *form);
    }

    pub(super) fn insert(&mut self, standing: StandingRefusal) {
        self.remove(&standing.refusal.child, &standing.form);
        self.0.push(standing);
        self.0.sort_by(|a, b| (&a.refusal.child, &a.form).cmp(&(&b.refusal.child, &b.form)));
    }

    /// The refusals of forms that the answer still contains. A refusal that the guest has worked around blocks nothing.
    pub(super) fn blocking(&self, answer: Option<&Allowed>) -> Vec<&StandingRefusal> {
        let wanted = answer.map_or(&[][..], Allowed::children);
        let is_wanted = |standing: &&StandingRefusal| {
            wanted.iter().any(|child| {
                *child.reference() == standing.refusal.child && *child.desired() == standing.form
            })
        };
        self.0.iter().filter(is_wanted).collect()
    }
}
