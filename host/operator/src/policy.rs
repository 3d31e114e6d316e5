//! What is in force for a Reconciler, and what of it follows the live Reconciler at once.
//!
//! Which module and config work is decided by the control loop, and what they need is seen to before they do: that may take its turn.
//! What an administrator allows may not. So grants, limits, account, namespaces and `suspend` are compared with the live Reconciler
//! whenever a pass begins, and taken over when they changed. A Reconciler of the same name that is another one has nothing in force.

use std::sync::Arc;

use pintle_api as api;
use pintle_core::{Binding, account::AccountRule, reconciler::Grants};
use pintle_engine::Module;
use pintle_kubernetes::Resource;
use pintle_wit::Failure;

use super::{bind, state::State};

/// What is in force for a Reconciler.
#[derive(Clone)]
pub(crate) struct Active {
    pub(crate) binding: Arc<Binding>,
    /// None for a Reconciler that rests and has roots to let go.
    pub(crate) module: Option<Module>,
    pub(crate) resource: Resource,
    pub(crate) namespaces: api::Namespaces,
    /// As whom children are read and written; nothing means as the host. Nobody, where the Reconciler does not say it as it must.
    pub(crate) account: Result<Option<AccountRule>, Failure>,
    /// The form of the Reconciler for which all its roots were queued.
    pub(crate) queued_for: Form,
    /// The form that the policy is of.
    policy_of: Form,
    /// The live Reconciler lets no pass begin; what becomes of it the control loop decides.
    paused: bool,
}

/// What of a Reconciler's metadata its policy hangs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    generation: i64,
    deleting: bool,
    /// It has our finalizer, so that its roots may have one.
    held: bool,
}

impl Form {
    pub(crate) fn of(object: &api::Reconciler) -> Self {
        Self {
            generation: object.metadata.generation.unwrap_or(0),
            deleting: object.metadata.deletion_timestamp.is_some(),
            held: bind::may_hold_roots(object),
        }
    }

    /// The Reconciler's generation.
    pub(crate) fn generation(self) -> i64 {
        self.generation
    }
}

/// What a Reconciler grants now. Children in other namespaces put a finalizer on their root: until it is written down on the Reconciler
/// that they may, they are not granted yet.
pub(crate) fn grants(object: &api::Reconciler) -> Grants {
    let mut grants = object.spec.grants.clone();
    if grants.reaches_elsewhere() && !bind::may_hold_roots(object) {
        grants.children.iter_mut().for_each(|grant| grant.namespaces.clear());
    }
    grants
}

impl Active {
    /// This module, or none, for this Reconciler.
    pub(crate) fn new(
        object: &api::Reconciler,
        binding: Binding,
        module: Option<Module>,
        resource: Resource,
    ) -> Self {
        let mut active = Self {
            binding: Arc::new(binding),
            module,
            resource,
            namespaces: object.spec.namespaces.clone(),
            account: object.spec.account_rule(),
            queued_for: Form::of(object),
            policy_of: Form::of(object),
            paused: false,
        };
        active.paused = active.is_paused_by(object);
        active
    }

    /// Whether it is this Reconciler's, and not that of one that had its name before.
    pub(crate) fn is_of(&self, object: &api::Reconciler) -> bool {
        object.metadata.uid.as_deref().unwrap_or_default() == self.binding.uid
    }

    /// What rests goes on with what there is to do while it rests.
    fn is_paused_by(&self, object: &api::Reconciler) -> bool {
        let spec = &object.spec;
        let is_going = object.metadata.deletion_timestamp.is_some();
        self.module.is_some() && (is_going || spec.suspend || spec.supported().is_err())
    }

    /// Takes over what the live Reconciler allows. Nearly always it is what it was, and that costs nothing.
    pub(crate) fn renew(&mut self, object: &api::Reconciler) {
        let form = Form::of(object);
        if self.policy_of == form {
            return;
        }
        self.policy_of = form;
        self.paused = self.is_paused_by(object);
        self.namespaces = object.spec.namespaces.clone();
        self.account = object.spec.account_rule();
        self.binding = Arc::new(Binding {
            generation: form.generation,
            grants: grants(object),
            limits: object.spec.limits,
            ..(*self.binding).clone()
        });
    }
}

impl State {
    /// What is in force for a Reconciler by what it allows now; nothing while no pass over a root in this namespace may begin. Whoever
    /// changes that has every root queued.
    pub(crate) fn in_force(&mut self, name: &str, namespace: Option<&str>) -> Option<&Active> {
        let object = self.reconcilers.get(name)?;
        let active = self.active.get_mut(name)?;
        if !active.is_of(object) {
            return None;
        }
        active.renew(object);
        (!active.paused && active.namespaces.includes(namespace)).then_some(active)
    }
}

#[cfg(test)]
mod tests;
