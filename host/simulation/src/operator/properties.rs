//! The properties that must hold in every run, whatever the faults are. Their codes are those of docs/simulator.md.

mod counts;
mod delays;
mod end;
mod grants;
mod steps;

use std::{collections::BTreeSet, fmt};

use pintle_core::{
    conditions::{READY, STALLED},
    object::{at, uid},
    observed::status_conditions,
};
use pintle_simulator::{Record, Snapshot};
use pintle_wit::{ConditionStatus, ObjectRef, names};
use serde_json::Value;

use super::{Broken, script::is_host};

pub(super) use self::{
    counts::{Counts, counted, evidence},
    delays::isolated,
    end::{masked, same_end},
    steps::at_every_step,
};

/// A property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Property {
    /// O1: each step of the scenario reaches what it expects.
    Converges,
    /// O2: the end state is that of the run without faults.
    SameEnd,
    /// O3: no object is created or deleted more often than in the run without faults.
    Counted,
    /// O4, O6: when everything is as it should be, another reconcile changes nothing.
    Steady,
    /// O5: a guest's answer depends only on its request, and not on the order of objects in it.
    Pure,
    /// O7: nothing is left of a root that is gone.
    NoOrphans,
    /// O8: the hosts do not change objects that they did not create.
    NoForeignHarm,
    /// O9: a status never has an observedGeneration that does not exist yet, or that is older than before.
    Monotone,
    /// O10: the hosts come to rest within a bounded number of requests, and a parsed answer takes no more memory than its call was granted.
    Bounded,
    /// O11: no object of the end state is deleted on the way, unless somebody changes something.
    SafeOnTheWay,
    /// O12: one root's trouble does not delay another.
    Isolated,
    /// O13: an object that was changed and put back is as it was before.
    Returns,
    /// Without faults, every root ends Ready unless the scenario expects otherwise.
    Ready,
    /// Without faults, the guest answers only with fields that the kinds of its objects have.
    Fits,
    /// The same seed and plan lead to the same run, which does not use the operating system's time or random numbers.
    Repeatable,
}

impl Property {
    /// Its code in docs/simulator.md.
    pub fn letter(self) -> &'static str {
        match self {
            Self::Converges => "O1",
            Self::SameEnd => "O2",
            Self::Counted => "O3",
            Self::Steady => "O4",
            Self::Pure => "O5",
            Self::NoOrphans => "O7",
            Self::NoForeignHarm => "O8",
            Self::Monotone => "O9",
            Self::Bounded => "O10",
            Self::SafeOnTheWay => "O11",
            Self::Isolated => "O12",
            Self::Returns => "O13",
            Self::Ready => "ready",
            Self::Fits => "fields",
            Self::Repeatable => "repeatable",
        }
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.letter(), self.in_words())
    }
}

/// Whether an object belongs to the host itself, or is not part of what is judged.
fn is_own(reference: &ObjectRef) -> bool {
    reference.api_version.starts_with("pintle.dev/")
        || matches!(reference.kind.as_str(), "Lease" | "Event" | "CustomResourceDefinition" | "Namespace")
        || reference.namespace.as_deref() == Some(super::hosts::NAMESPACE)
}

/// The changes of hosts: the request with the object before and after it, and the name of the object.
fn changes(records: &[Record]) -> impl Iterator<Item = (&Record, ObjectRef)> {
    records.iter().filter(|record| is_host(&record.seen.client) && record.changed()).filter_map(|record| {
        let object = record.after.as_ref().or(record.before.as_ref())?;
        let reference = pintle_core::object::reference(object);
        (!is_own(&reference)).then_some((record, reference))
    })
}

/// The kinds of the roots of all Reconcilers, as apiVersion and kind.
fn root_kinds(snapshot: &Snapshot) -> BTreeSet<(String, String)> {
    snapshot
        .objects
        .iter()
        .filter(|(reference, _)| reference.kind == "Reconciler")
        .filter_map(|(_, object)| {
            let of = &object["spec"]["for"];
            Some((of["apiVersion"].as_str()?.to_owned(), of["kind"].as_str()?.to_owned()))
        })
        .collect()
}

/// The existing roots.
pub(super) fn roots(snapshot: &Snapshot) -> Vec<ObjectRef> {
    let kinds = root_kinds(snapshot);
    let is_root =
        |reference: &&ObjectRef| kinds.contains(&(reference.api_version.clone(), reference.kind.clone()));
    snapshot.objects.keys().filter(is_root).cloned().collect()
}

/// Why a root is not Ready, from its own condition. None if it is Ready, is being deleted, or its CRD has no conditions. With
/// `only_stalled`, a root that may still become Ready by itself is skipped.
pub(super) fn unready(root: &ObjectRef, object: &Value, only_stalled: bool) -> Option<String> {
    let conditions = status_conditions(object.get("status")?);
    let of = |name: &str| conditions.iter().find(|condition| condition.r#type == name);
    let ready = of(READY).filter(|ready| ready.status != ConditionStatus::True)?;
    let passes = only_stalled && of(STALLED).is_none_or(|stalled| stalled.status != ConditionStatus::True);
    let is_going = object.pointer("/metadata/deletionTimestamp").is_some();
    (!passes && !is_going).then(|| format!("{root} is not Ready: {}: {}", ready.reason, ready.message))
}

/// The objects that still exist although their root is gone.
pub(super) fn orphans(snapshot: &Snapshot) -> Vec<ObjectRef> {
    let there: BTreeSet<&str> = snapshot.objects.values().map(|object| uid(object)).collect();
    let is_orphan = |object: &Value| {
        let root = at(object, &["metadata", "labels", names::LABEL_ROOT]).and_then(Value::as_str);
        root.is_some_and(|root| !there.contains(root))
    };
    snapshot
        .objects
        .iter()
        .filter(|(_, object)| is_orphan(object))
        .map(|(reference, _)| reference.clone())
        .collect()
}
