//! The properties that must hold in every run, whatever the faults are. Their codes are those of docs/simulator.md.

mod counts;
mod delays;
mod end;
mod grants;
mod steps;

use std::{collections::BTreeSet, fmt};

use pintle_core::{
    conditions::STALLED,
    object::{at, is_deleting, uid},
};
use pintle_simulator::{Record, Snapshot};
use pintle_wit::{Kind, ObjectRef, names};
use serde_json::Value;

use super::{Broken, readiness, script::is_host};

pub(super) use self::{
    counts::{Counts, counted, evidence},
    delays::isolated,
    end::{masked, same_end},
    steps::at_every_step,
};

macro_rules! properties {
    ($($(#[$doc:meta])* $property:ident = $letter:literal, $holds:literal, $advice:expr;)*) => {
        /// A property.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Property { $(#[doc = $holds] $(#[$doc])* $property,)* }

        impl Property {
            /// Its code in docs/simulator.md.
            pub fn letter(self) -> &'static str {
                match self { $(Self::$property => $letter,)* }
            }

            /// What should hold, as a sentence without a full stop.
            pub fn in_words(self) -> &'static str {
                match self { $(Self::$property => $holds,)* }
            }

            /// What the author of a guest should look for if it does not hold.
            pub fn advice(self) -> &'static str {
                match self { $(Self::$property => $advice,)* }
            }
        }
    };
}

const REMEMBERS: &str = "the answer depends on how it came about: look for what the guest reads from its own status or \
    from children that remembers the way (counters, a first value that is kept, a generation), and compute it from the spec \
    and the needs";
const FEEDS_ITSELF: &str = "the guest's own writes change its answer: look for what it copies from children or status into \
    a child or the status and changes on the way; the answer to what it sees after its own answer must be the same answer";
const NOT_THE_GUESTS: &str =
    "this is not the guest's to keep: please report it, with the line that repeats it";

properties! {
    Converges = "O1", "each step of the scenario comes to what it expects",
        "compare what the step expects with what the guest answers to that root: pintle render shows the answer to any objects";
    SameEnd = "O2", "the end is that of the run in which nothing goes wrong", REMEMBERS;
    Counted = "O3", "no object is created or deleted more often than where nothing goes wrong",
        "a child changes its name or its identity with something that passes: name children after the root alone";
    /// This is O6 too.
    Steady = "O4", "when all is as it should be, another look changes nothing", FEEDS_ITSELF;
    Pure = "O5", "a guest asked the same answers the same, in whatever order its children are shown",
        "look for what the guest takes by position from request.children, and for maps whose order it shows; find children by \
         kind and name (request.child), and sort what becomes a list";
    NoOrphans = "O7", "nothing is left of a root that is gone", NOT_THE_GUESTS;
    NoForeignHarm = "O8", "what the host did not make, it does not change",
        "look at grants.patches and evictions, and at children whose name somebody else uses";
    Monotone = "O9",
        "a status never speaks of a generation that is not there yet, nor of an older one than before", NOT_THE_GUESTS;
    /// A parsed answer also takes no more memory than its call was granted.
    Bounded = "O10", "the host comes to rest", FEEDS_ITSELF;
    /// Unless somebody changes something.
    SafeOnTheWay = "O11", "nothing is deleted on the way that belongs to the end",
        "for a moment the guest wanted a child no more that it wants in the end: it must not leave children out because \
         something that it depends on is not there yet; use stages for order";
    Isolated = "O12", "one root's trouble does not delay another", NOT_THE_GUESTS;
    Returns = "O13", "what was changed and put back is as it was", REMEMBERS;
    /// Without faults, and unless the scenario expects otherwise.
    Ready = "ready", "every root ends Ready",
        "mend what the reason names; or, where that is what should come of it, say so in the scenario: \
         expect: [{object: ..., condition: {type: Ready, status: \"False\", reason: ...}}]";
    /// Without faults.
    Fits = "fields", "the guest sets only fields that there are",
        "mend the field in the guest; pintle render shows the same in a moment";
    /// The run does not use the operating system's time or random numbers.
    Repeatable = "repeatable", "the same line leads to the same run", NOT_THE_GUESTS;
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

/// The kind of the roots of a Reconciler.
pub(super) fn root_kind(reconciler: &Value) -> Option<Kind> {
    let of = &reconciler["spec"]["for"];
    Some(Kind::new(of["apiVersion"].as_str()?, of["kind"].as_str()?))
}

/// The kinds of the roots of all Reconcilers.
fn root_kinds(snapshot: &Snapshot) -> BTreeSet<Kind> {
    let there = snapshot.objects.iter().filter(|(reference, _)| reference.kind == "Reconciler");
    there.filter_map(|(_, reconciler)| root_kind(reconciler)).collect()
}

/// The existing roots.
pub(super) fn roots(snapshot: &Snapshot) -> Vec<ObjectRef> {
    let kinds = root_kinds(snapshot);
    snapshot.objects.keys().filter(|reference| kinds.contains(&reference.kind())).cloned().collect()
}

/// Why a root is not Ready, from its own condition. None if it is Ready, is being deleted, or its CRD has no conditions. With
/// `only_stalled`, a root that may still become Ready by itself is skipped.
pub(super) fn unready(root: &ObjectRef, object: &Value, only_stalled: bool) -> Option<String> {
    let why = readiness::unready(object)?;
    let is_judged = !only_stalled || readiness::is_true(object, STALLED);
    (is_judged && !is_deleting(object)).then(|| format!("{root} is not Ready: {why}"))
}

/// The objects that still exist although their root is gone.
pub(super) fn orphans(snapshot: &Snapshot) -> Vec<ObjectRef> {
    let there: BTreeSet<&str> = snapshot.objects.values().map(|object| uid(object)).collect();
    let is_orphan = |object: &Value| {
        let root = at(object, &["metadata", "labels", names::LABEL_ROOT]).and_then(Value::as_str);
        root.is_some_and(|root| !there.contains(root))
    };
    snapshot.objects.iter().filter(|(_, object)| is_orphan(object)).map(|(name, _)| name.clone()).collect()
}
