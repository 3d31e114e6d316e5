//! The gate: the one pure function through which every guest answer passes before anything is written.
//!
//! All or nothing: one violation and the whole answer is refused, with a stable reason and the JSON path. What comes out,
//! [`Allowed`], has private fields and no other constructor, and writes are made of nothing else.

mod children;
mod pods;
pub mod reasons;
mod services;
mod words;

use std::collections::BTreeMap;

use pintle_wit::{
    Event, Failure, GuestCondition, Kind, Manifest, ObjectRef, Readiness, Response, reasons as contract,
};
use serde_json::{Map, Value};

use crate::{
    desired::{DesiredHash, SealingKey},
    reconciler::{Grants, Limits},
    request::HOST_STATUS,
    status::StatusSchema,
};

pub(crate) use words::clean;

/// What the gate judges an answer by.
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
    /// The child kinds that the API server serves.
    pub kinds: &'a BTreeMap<Kind, KindInfo>,
    /// What the root's CRD declares in its status.
    pub status: &'a StatusSchema,
    /// The key that hashes of Secrets are sealed with.
    pub key: &'a SealingKey,
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
    /// The children that its pod template refers to, as (kind, name). Until they are the root's, the child must not be applied:
    /// a Pod would read somebody else's Secret of that name.
    pub fn references(&self) -> &[(String, String)] {
        &self.references
    }
}

/// One reason why an answer is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// A stable CamelCase word, from [`reasons`].
    pub reason: &'static str,
    /// Where in the answer: `children[1].object.spec.template.spec.hostNetwork`.
    pub path: String,
    /// What is wrong, naming the object, and what could be done.
    pub message: String,
    /// Whether trying again can help: only for a kind that the API server does not serve yet.
    pub retry: bool,
}

/// How many violations a condition's message lists; the guest's author sees the rest when these are mended.
const LISTED_VIOLATIONS: usize = 4;

/// Passes an answer, or says what is wrong with it.
///
/// # Errors
/// Every violation found, in the order of the answer. Never empty.
pub fn gate(context: &GateContext<'_>, response: Response) -> Result<Allowed, Vec<Violation>> {
    let mut found = Violations::default();
    capabilities(&response, &mut found);
    if response.finalized && !context.manifest.finalizer {
        let message = "the manifest declares no finalizer, so that nobody waits for this";
        found.add(reasons::FINALIZER_NOT_DECLARED, "finalized", message);
    }
    let children = children::check(context, response.children, &mut found);
    status(context, &response.status, &mut found);
    words::conditions(&response.conditions, &mut found);
    words::events(&response.events, &mut found);
    if !found.0.is_empty() {
        return Err(found.0);
    }
    Ok(Allowed {
        children,
        status: response.status,
        conditions: response.conditions.into_iter().map(words::cleaned_condition).collect(),
        events: response.events.into_iter().map(words::cleaned_event).collect(),
        finalized: response.finalized && crate::object::is_deleting(context.root),
    })
}

/// The violations as one failure: reason and path of the first, and the first few in the message.
pub fn failure(violations: &[Violation]) -> Failure {
    let Some(first) = violations.first() else { return Failure::default() };
    let mut message = first.message.clone();
    for other in violations.iter().take(LISTED_VIOLATIONS).skip(1) {
        message.push_str(&format!("; {}: {} ({})", other.path, other.message, other.reason));
    }
    if violations.len() > LISTED_VIOLATIONS {
        message.push_str(&format!("; and {} more", violations.len() - LISTED_VIOLATIONS));
    }
    Failure {
        reason: first.reason.into(),
        message,
        path: Some(first.path.clone()),
        retry: violations.iter().all(|violation| violation.retry),
        ..Failure::default()
    }
}

#[derive(Default)]
struct Violations(Vec<Violation>);

impl Violations {
    fn add(&mut self, reason: &'static str, path: impl Into<String>, message: impl Into<String>) {
        self.0.push(Violation { reason, path: path.into(), message: message.into(), retry: false });
    }
}

/// What the contract has and this host does not honour is refused by name, never dropped.
fn capabilities(response: &Response, found: &mut Violations) {
    let mut missing = |used: bool, path: &str, what: &str| {
        if used {
            found.add(contract::CAPABILITY_MISSING, path, format!("this host does not honour {what}"));
        }
    };
    missing(!response.needs.is_empty(), "needs", "needs");
    missing(!response.patches.is_empty(), "patches", "patches");
    missing(response.evictions.is_some(), "evictions", "evictions");
    missing(!response.stamps.is_empty(), "stamps", "stamps");
}

/// The largest status of a guest, in bytes: a status is read by people and by every watcher of the root.
const STATUS_BYTES_MAX: usize = 64 * 1024;

fn status(context: &GateContext<'_>, status: &Map<String, Value>, found: &mut Violations) {
    for field in HOST_STATUS {
        if status.contains_key(field) {
            found.add(
                reasons::STATUS_FIELD_RESERVED,
                format!("status.{field}"),
                format!("status.{field} is the host's to write"),
            );
        }
    }
    for path in context.status.undeclared(status) {
        let message =
            format!("the root's CRD does not declare {path}; add it to the schema, or leave it out");
        found.add(reasons::STATUS_FIELD_UNDECLARED, path, message);
    }
    let size = crate::object::json_bytes(&Value::Object(status.clone()));
    if size > STATUS_BYTES_MAX {
        found.add(
            reasons::STATUS_TOO_LARGE,
            "status",
            format!("the status has {size} bytes, the limit is {STATUS_BYTES_MAX}"),
        );
    }
}
