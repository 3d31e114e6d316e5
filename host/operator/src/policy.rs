//! What is in force for a Reconciler, and which parts of it follow the live Reconciler at once.
//!
//! The control loop decides which module and config are in force, and prepares everything that they need before. That may take some time.
//! Changes of what an administrator allows must not take time. So grants, limits, account, namespaces and `suspend` are compared with the
//! live Reconciler whenever a pass begins, and taken over if they have changed. Nothing is in force for a new Reconciler with the name of
//! a deleted one.

use std::{collections::BTreeMap, sync::Arc};

use pintle_api as api;
use pintle_core::{Binding, account::AccountRule};
use pintle_engine::Guest;
use pintle_kubernetes::Resource;
use pintle_wit::{Failure, Kind};

use super::{state::State, store::RootKey};

/// What is in force for a Reconciler.
#[derive(Clone)]
pub(crate) struct Active {
    pub(crate) binding: Arc<Binding>,
    /// None for a Reconciler that rests and has roots to release.
    pub(crate) guest: Option<Guest>,
    pub(crate) resource: Resource,
    pub(crate) namespaces: api::Namespaces,
    /// The account as which children are read and written; none means as the host. An error if the Reconciler names it wrongly.
    pub(crate) account: Result<Option<AccountRule>, Failure>,
    /// The form of the Reconciler for which all its roots were queued last.
    pub(crate) queued_for: Form,
    /// The form of the Reconciler from which the policy was taken.
    policy_of: Form,
    /// The live Reconciler allows no pass. The control loop decides what happens to it.
    paused: bool,
}

/// The parts of a Reconciler's metadata on which its policy depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    generation: i64,
    deleting: bool,
}

impl Form {
    pub(crate) fn of(object: &api::Reconciler) -> Self {
        Self {
            generation: object.metadata.generation.unwrap_or(0),
            deleting: object.metadata.deletion_timestamp.is_some(),
        }
    }

    /// The Reconciler's generation.
    pub(crate) fn generation(self) -> i64 {
        self.generation
    }
}

impl Active {
    /// What is in force for this Reconciler, with this guest or none.
    pub(crate) fn new(
        object: &api::Reconciler,
        binding: Binding,
        guest: Option<Guest>,
        resource: Resource,
    ) -> Self {
        let mut active = Self {
            binding: Arc::new(binding),
            guest,
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

    /// Whether this belongs to this Reconciler, and not to one that had the name before.
    pub(crate) fn is_of(&self, object: &api::Reconciler) -> bool {
        object.metadata.uid.as_deref().unwrap_or_default() == self.binding.uid
    }

    /// A Reconciler that rests goes on with the work that is left while it rests.
    fn is_paused_by(&self, object: &api::Reconciler) -> bool {
        let spec = &object.spec;
        let is_going = object.metadata.deletion_timestamp.is_some();
        self.guest.is_some() && (is_going || spec.suspend || spec.supported().is_err())
    }

    /// Takes over what the live Reconciler allows. Nearly always nothing has changed, and then this costs nothing.
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
            grants: object.spec.grants.clone(),
            limits: object.spec.limits,
            ..(*self.binding).clone()
        });
    }
}

/// What is in force, by Reconciler: nobody else reaches into it, so that one day it may differ from root to root. A pass asks with
/// [`State::in_force`].
#[derive(Default)]
pub(crate) struct Bindings(BTreeMap<String, Active>);

impl Bindings {
    /// The Reconcilers for which something is in force, and the kinds of their roots.
    pub(crate) fn lanes(&self) -> impl Iterator<Item = (&String, &Kind)> {
        self.0.iter().map(|(lane, active)| (lane, &active.binding.manifest.reconciles))
    }

    /// The kind of a Reconciler's roots.
    pub(crate) fn kind_of(&self, lane: &str) -> Option<&Kind> {
        self.0.get(lane).map(|active| &active.binding.manifest.reconciles)
    }

    /// The Reconciler that works on a kind.
    pub(crate) fn lane_of(&self, kind: &Kind) -> Option<&String> {
        self.of_kind(kind).map(|(lane, _)| lane)
    }

    /// The Reconciler that works on a root, if it may.
    pub(crate) fn lane_of_root(&self, kind: &Kind, key: &RootKey) -> Option<&String> {
        let (lane, active) = self.of_kind(kind)?;
        active.namespaces.includes(key.namespace.as_deref()).then_some(lane)
    }

    fn of_kind(&self, kind: &Kind) -> Option<(&String, &Active)> {
        self.0.iter().find(|(_, active)| active.binding.manifest.reconciles == *kind)
    }

    /// What the control loop has put in force for the Reconciler with this name and uid.
    pub(crate) fn decided(&self, lane: &str, uid: &str) -> Option<&Active> {
        self.0.get(lane).filter(|active| active.binding.uid == uid)
    }

    /// Puts something in force.
    pub(crate) fn put(&mut self, lane: &str, active: Active) {
        self.0.insert(lane.into(), active);
    }

    /// Takes over what the live Reconciler allows. Returns whether its roots must be queued, because they were not queued for that yet.
    pub(crate) fn renew(&mut self, lane: &str, object: &api::Reconciler) -> bool {
        let Some(active) = self.0.get_mut(lane).filter(|active| active.is_of(object)) else { return false };
        active.renew(object);
        let form = Form::of(object);
        std::mem::replace(&mut active.queued_for, form) != form
    }

    pub(crate) fn remove(&mut self, lane: &str) {
        self.0.remove(lane);
    }

    /// Keeps only what is in force for these Reconcilers.
    pub(crate) fn retain(&mut self, keep: impl Fn(&String) -> bool) {
        self.0.retain(|lane, _| keep(lane));
    }
}

impl State {
    /// What is in force for a root of a Reconciler, with what the Reconciler allows now; none while no pass over the root may begin. A
    /// change that ends this state queues every root.
    pub(crate) fn in_force(&mut self, lane: &str, root: &RootKey) -> Option<&Active> {
        let object = self.own.reconcilers.get(lane)?;
        let active = self.bindings.0.get_mut(lane)?;
        if !active.is_of(object) {
            return None;
        }
        active.renew(object);
        (!active.paused && active.namespaces.includes(root.namespace.as_deref())).then_some(active)
    }
}

#[cfg(test)]
mod tests;
