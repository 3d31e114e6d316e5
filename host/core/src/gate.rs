//! The gate: the one pure function through which every guest answer passes before anything is written.
//!
//! All or nothing: a single violation refuses the whole answer, with a stable reason and the JSON path. The result is [`Allowed`], and
//! every write is made from one. Its fields are private: outside of this module only [`gate`] makes one, apart from
//! [`Allowed::default`], which holds no child, patch or eviction.

mod children;
mod evictions;
mod needs;
mod patches;
mod pods;
mod services;
mod words;

use std::collections::BTreeMap;

use pintle_wit::{Event, Evictions, GuestCondition, Kind, Manifest, ObjectRef, Readiness, Response};
use serde_json::{Map, Value};

use crate::{
    desired::{DesiredHash, SealingKey},
    object, reasons,
    reconciler::{Grants, Limits},
    request::HOST_STATUS,
    status::StatusSchema,
    violations::Violations,
};

pub use needs::needs;
pub(crate) use words::is_word;

/// The context in which the gate judges an answer.
#[derive(Clone, Copy, Debug)]
pub struct GateContext<'a> {
    /// The root, live.
    pub root: &'a Value,
    /// What the guest declared.
    pub manifest: &'a Manifest,
    /// The Reconciler's name, which every child is labelled with.
    pub reconciler: &'a str,
    /// What the administrator granted.
    pub grants: &'a Grants,
    /// The limits of the answer.
    pub limits: &'a Limits,
    /// The kinds of children, needs and patches that the API server serves.
    pub kinds: &'a BTreeMap<Kind, KindInfo>,
    /// What the root's CRD declares in its status.
    pub status: &'a StatusSchema,
    /// The key that hashes of Secrets are sealed with.
    pub key: &'a SealingKey,
}

impl GateContext<'_> {
    /// The namespace that a child is in: its root's, or the one that it names where the root has none. A child that names another than
    /// its root's is refused for that, and a sibling that refers to it is not.
    fn namespace_of<'b>(&'b self, child: &'b Value) -> Option<&'b str> {
        object::namespace(self.root).or_else(|| object::namespace(child))
    }
}

/// What the API server says of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindInfo {
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

/// An answer that may be carried out.
#[derive(Clone, Debug, Default)]
pub struct Allowed {
    children: Vec<AllowedChild>,
    status: Map<String, Value>,
    conditions: Vec<GuestCondition>,
    events: Vec<Event>,
    finalized: bool,
    patches: Vec<AllowedPatch>,
    evictions: Option<Evictions>,
    stamps: BTreeMap<String, String>,
}

impl Allowed {
    /// The children, in the order of the answer.
    pub fn children(&self) -> &[AllowedChild] {
        &self.children
    }
    /// The guest's status fields.
    pub fn status(&self) -> &Map<String, Value> {
        &self.status
    }
    /// The guest's conditions.
    pub fn conditions(&self) -> &[GuestCondition] {
        &self.conditions
    }
    /// The guest's events.
    pub fn events(&self) -> &[Event] {
        &self.events
    }
    /// The root is being deleted, and the guest has nothing left to clean up.
    pub fn finalized(&self) -> bool {
        self.finalized
    }
    /// The patches of objects that the root does not own.
    pub fn patches(&self) -> &[AllowedPatch] {
        &self.patches
    }
    /// The Pods to evict or delete.
    pub fn evictions(&self) -> Option<&Evictions> {
        self.evictions.as_ref()
    }

    /// Sets the stamps in the guest's status. A stamp becomes `time` if the field that it follows differs from the root's, and otherwise
    /// keeps the value that the root shows.
    pub fn stamp(&mut self, root: &Value, time: &str) {
        let nothing = Map::new();
        let before = root.get("status").and_then(Value::as_object).unwrap_or(&nothing);
        for (stamp, follows) in &self.stamps {
            let is_same = self.status.get(follows).filter(|value| !value.is_null()) == before.get(follows);
            let value = if is_same { before.get(stamp).cloned() } else { Some(time.into()) };
            self.status.extend(value.map(|value| (stamp.clone(), value)));
        }
    }

    /// Puts a word in the place of the stamps that were set to this time: they would get the time of the write.
    pub(crate) fn hide_stamps(&mut self, time: &str, shown: &str) {
        for stamp in self.stamps.keys() {
            if let Some(value) = self.status.get_mut(stamp).filter(|value| value.as_str() == Some(time)) {
                *value = shown.into();
            }
        }
    }
}

/// A child that may be applied: complete, with owner reference, labels and hash.
#[derive(Clone, Debug)]
pub struct AllowedChild {
    reference: ObjectRef,
    object: Value,
    desired: DesiredHash,
    stage: u32,
    readiness: Option<Readiness>,
    references: Vec<(String, String)>,
}

impl AllowedChild {
    /// How the object is named.
    pub fn reference(&self) -> &ObjectRef {
        &self.reference
    }
    /// The object as it is sent, except for uid or resourceVersion.
    pub fn object(&self) -> &Value {
        &self.object
    }
    /// The hash of the object.
    pub fn desired(&self) -> &DesiredHash {
        &self.desired
    }
    /// The stage in which it is applied.
    pub fn stage(&self) -> u32 {
        self.stage
    }
    /// The guest's own readiness rule.
    pub fn readiness(&self) -> Option<&Readiness> {
        self.readiness.as_ref()
    }
    /// The children that its pod template refers to, as (kind, name). Until the root owns them, the child must not be applied, or a Pod
    /// could read somebody else's Secret of that name.
    pub fn references(&self) -> &[(String, String)] {
        &self.references
    }
}

/// A patch that may be applied: it has its namespace, and only granted fields.
#[derive(Clone, Debug)]
pub struct AllowedPatch {
    reference: ObjectRef,
    object: Value,
    force: bool,
}

impl AllowedPatch {
    /// The object that is patched.
    pub fn reference(&self) -> &ObjectRef {
        &self.reference
    }
    /// The partial object as it is sent, except for uid.
    pub fn object(&self) -> &Value {
        &self.object
    }
    /// Whether the fields are also set if somebody else has set them.
    pub fn force(&self) -> bool {
        self.force
    }
}

/// Checks an answer, and returns what may be carried out.
///
/// # Errors
/// The violations, in the order of the answer. Never empty.
pub fn gate(context: &GateContext<'_>, response: Response) -> Result<Allowed, Violations> {
    let mut found = Violations::default();
    needs::check(context, &response.needs, &mut found);
    if response.finalized && !context.manifest.finalizer {
        let message = "the manifest declares no finalizer, so that nobody waits for this";
        found.add(reasons::FINALIZER_NOT_DECLARED, "finalized", message);
    }
    let children = children::check(context, response.children, &mut found);
    let patches = patches::check(context, response.patches, &mut found);
    let evictions = evictions::check(context, response.evictions, &mut found);
    status(context, &response.status, &mut found);
    stamps(context, &response.stamps, &response.status, &mut found);
    words::conditions(&response.conditions, &mut found);
    words::events(&response.events, &mut found);
    if !found.is_empty() {
        return Err(found);
    }
    Ok(Allowed {
        children,
        status: response.status,
        conditions: response.conditions.into_iter().map(words::cleaned_condition).collect(),
        events: response.events.into_iter().map(words::cleaned_event).collect(),
        finalized: response.finalized && crate::object::is_deleting(context.root),
        patches,
        evictions: evictions.filter(|evictions| !evictions.pods.is_empty()),
        stamps: response.stamps,
    })
}

/// A stamp is a field of the guest's status that only the host sets.
fn stamps(
    context: &GateContext<'_>,
    stamps: &BTreeMap<String, String>,
    status: &Map<String, Value>,
    found: &mut Violations,
) {
    let is_taken = |stamp: &str| {
        status.contains_key(stamp)
            || stamps.contains_key(stamp) && stamps.values().any(|other| other == stamp)
    };
    for (stamp, follows) in stamps {
        let at = format_args!("stamps.{stamp}");
        if HOST_STATUS.contains(&stamp.as_str()) || HOST_STATUS.contains(&follows.as_str()) {
            let message = format_args!("{stamp} and {follows} must both be the guest's own");
            found.add(reasons::STAMP_INVALID, at, message);
        } else if stamp.is_empty() || follows.is_empty() || is_taken(stamp) {
            let message = format_args!(
                "{stamp:?} is set by the host alone: neither the status nor another stamp may name it"
            );
            found.add(reasons::STAMP_INVALID, at, message);
        } else {
            let set = Map::from_iter([(stamp.clone(), Value::from("2000-01-01T00:00:00Z"))]);
            context.status.undeclared(&set, &mut |path| {
                let message = format_args!("the root's CRD does not declare {path}; add it to the schema");
                found.add(reasons::STATUS_FIELD_UNDECLARED, path, message);
            });
        }
    }
}

/// The largest status of a guest, in bytes. People and every watcher of the root read the status.
const STATUS_BYTES_MAX: usize = 64 * 1024;

fn status(context: &GateContext<'_>, status: &Map<String, Value>, found: &mut Violations) {
    for field in HOST_STATUS {
        if status.contains_key(field) {
            found.add(
                reasons::STATUS_FIELD_RESERVED,
                format_args!("status.{field}"),
                format_args!("leave status.{field} out: it is the host's to write"),
            );
        }
    }
    context.status.undeclared(status, &mut |path| {
        let message =
            format_args!("the root's CRD does not declare {path}; add it to the schema, or leave it out");
        found.add(reasons::STATUS_FIELD_UNDECLARED, path, message);
    });
    let size = crate::object::json_bytes(status);
    if size > STATUS_BYTES_MAX {
        found.add(
            reasons::STATUS_TOO_LARGE,
            "status",
            format_args!("the status has {size} bytes, the limit is {STATUS_BYTES_MAX}"),
        );
    }
}
