//! [`Binding`]: what a Reconciler asks for, with the module that is in force.

use std::collections::{BTreeMap, BTreeSet};

use pintle_wit::{Kind, Manifest, ObjectRef};
use serde_json::Value;

use crate::{
    Config,
    desired::SealingKey,
    gate::{GateContext, KindInfo},
    reconciler::{Grants, Limits, is_watchable},
    status::StatusSchema,
};

/// Everything about a Reconciler that holds for a whole pass. A pass runs on one module from start to end.
#[derive(Clone, Debug)]
pub struct Binding {
    /// The Reconciler's name.
    pub reconciler: String,
    /// The Reconciler's uid. Another Reconciler may take its name later, and start with the same generation.
    pub uid: String,
    /// The Reconciler's generation that grants and limits come from. Module and config may come from an earlier one.
    pub generation: i64,
    /// The field manager of every write.
    pub field_manager: String,
    /// What the guest may do.
    pub grants: Grants,
    /// The limits of its calls and answers.
    pub limits: Limits,
    /// Its config.
    pub config: Config,
    /// The digest of the module in force.
    pub digest: String,
    /// The manifest of the module in force.
    pub manifest: Manifest,
    /// The kinds of children, needs and patches that the API server serves.
    pub kinds: BTreeMap<Kind, KindInfo>,
    /// What the root's CRD lets a status say.
    pub status: StatusSchema,
    /// The key that hashes of Secrets are sealed with.
    pub key: SealingKey,
    /// What passes do for the roots at present.
    pub duty: Duty,
    /// Namespaces in which the host also watches the kinds that it does not watch elsewhere.
    pub watched_namespaces: BTreeSet<String>,
}

/// What passes do for the roots of a Reconciler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Duty {
    /// Everything: a module is in force.
    #[default]
    Full,
    /// Only what needs no guest, and only for roots that are being deleted. No module is in force, or the Reconciler is suspended.
    CleanUp,
    /// The Reconciler is being deleted: our finalizers are removed from the roots, whose statuses say that nobody reconciles them any
    /// more. Their children stay.
    Release,
}

impl Binding {
    /// Whether passes on this binding run on the same module and config as those on the other one.
    pub fn runs_as(&self, other: &Self) -> bool {
        self.duty == other.duty && self.digest == other.digest && self.config == other.config
    }

    /// The context in which the gate judges an answer about this root.
    pub fn context<'a>(&'a self, root: &'a Value) -> GateContext<'a> {
        GateContext {
            root,
            manifest: &self.manifest,
            reconciler: &self.reconciler,
            grants: &self.grants,
            limits: &self.limits,
            kinds: &self.kinds,
            status: &self.status,
            key: &self.key,
        }
    }

    /// Whether a watch reports changes of this child.
    pub fn watches(&self, child: &ObjectRef) -> bool {
        is_watchable(&child.kind())
            || child.namespace.as_ref().is_some_and(|namespace| self.watched_namespaces.contains(namespace))
    }

    /// The kind of the roots.
    pub fn root_kind(&self) -> Kind {
        self.manifest.reconciles.clone()
    }
}
