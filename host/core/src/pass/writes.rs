//! The requests that change something. Their fields are private and made here alone, of what the gate let through: there is no other
//! way to a write.

use std::fmt;

use pintle_wit::{Eviction, EvictionMode, ObjectRef};
use serde_json::{Value, json};

use crate::{
    gate::{AllowedChild, AllowedPatch},
    managed, object,
    observed::Observed,
};

/// A server-side apply: of a child, or of a patch onto an object that the root does not own.
#[derive(Clone)]
pub struct Apply {
    reference: ObjectRef,
    object: Value,
    manager: String,
    force: bool,
}

impl Apply {
    /// The child's first apply. It carries `resourceVersion: "1"`, which the API server takes as "only if absent": 201, or 409 where
    /// the object exists, also where it would have joined somebody else's object without a conflict.
    pub(super) fn create(child: &AllowedChild, manager: &str) -> Self {
        Self::of(child, manager, false, ("resourceVersion", "1"))
    }

    /// A later apply. It carries the observed uid, so that it can neither re-create the object nor hit a successor of its name.
    pub(super) fn update(child: &AllowedChild, manager: &str, uid: &str) -> Self {
        Self::of(child, manager, true, ("uid", uid))
    }

    fn of(child: &AllowedChild, manager: &str, force: bool, (key, value): (&str, &str)) -> Self {
        let mut object = child.object().clone();
        object["metadata"][key] = value.into();
        Self { reference: child.reference().clone(), object, manager: manager.into(), force }
    }

    /// Sets what a patch has, under a field manager of the root's own. It carries the uid of the object that was read, so that it
    /// neither creates one nor hits a successor. What others have set is set over only where the manager has an entry already, or
    /// the grant says so.
    pub(super) fn patch(patch: &AllowedPatch, live: &Value, manager: &str) -> Self {
        let mut object = patch.object().clone();
        object["metadata"]["uid"] = object::uid(live).into();
        let force = patch.force() || managed::entry(live, manager, None).is_some();
        Self { reference: patch.reference().clone(), object, manager: manager.into(), force }
    }

    /// Sets nothing, which takes away what a patch had set; nothing to do where it has set nothing.
    pub(super) fn release(reference: &ObjectRef, live: &Value, manager: &str) -> Option<Self> {
        managed::entry(live, manager, None)?;
        let mut object = json!({
            "apiVersion": reference.api_version, "kind": reference.kind,
            "metadata": {"name": reference.name, "uid": object::uid(live)},
        });
        if let Some(namespace) = &reference.namespace {
            object["metadata"]["namespace"] = namespace.as_str().into();
        }
        Some(Self { reference: reference.clone(), object, manager: manager.into(), force: true })
    }

    /// What is applied.
    pub fn reference(&self) -> &ObjectRef {
        &self.reference
    }
    /// The body of the request.
    pub fn object(&self) -> &Value {
        &self.object
    }
    /// The field manager.
    pub fn manager(&self) -> &str {
        &self.manager
    }
    /// Whether conflicts are overridden: on every apply of a child but the first, since the fields are ours to set.
    pub fn force(&self) -> bool {
        self.force
    }
}

impl fmt::Debug for Apply {
    /// Without the object: it may be a Secret, and steps are logged.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Apply({}, force: {})", self.reference, self.force)
    }
}

/// A patch that makes items of a child's lists ours, which stand in the place of ours. It changes managed fields alone, provided that
/// the child is still as it was read; the apply after it takes the items away.
#[derive(Clone, Debug)]
pub struct Claim {
    reference: ObjectRef,
    patch: Value,
    manager: String,
}

impl Claim {
    /// What is to be claimed of a child as it was read, or nothing. `refused` are the paths of what the API server did not accept.
    pub(super) fn of(child: &AllowedChild, live: &Value, manager: &str, refused: &[String]) -> Option<Self> {
        let fields = managed::with_displaced_items(live, manager, child.object(), refused)?;
        let metadata = live.get("metadata")?;
        let patch = json!([
            {"op": "test", "path": "/metadata/uid", "value": metadata.get("uid")?},
            {"op": "replace", "path": "/metadata/managedFields", "value": fields},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": metadata.get("resourceVersion")?},
        ]);
        Some(Self { reference: child.reference().clone(), patch, manager: manager.into() })
    }

    /// The child.
    pub fn reference(&self) -> &ObjectRef {
        &self.reference
    }
    /// The body of the request, a JSON patch.
    pub fn patch(&self) -> &Value {
        &self.patch
    }
    /// The field manager.
    pub fn manager(&self) -> &str {
        &self.manager
    }
}

/// An eviction, or the deletion, of a Pod by its uid.
#[derive(Clone, Debug)]
pub struct EvictionWrite {
    reference: ObjectRef,
    uid: String,
    mode: EvictionMode,
}

impl EvictionWrite {
    pub(super) fn of(pod: &Eviction, namespace: Option<&str>, mode: EvictionMode) -> Self {
        let reference = ObjectRef {
            api_version: "v1".into(),
            kind: "Pod".into(),
            namespace: namespace.map(Into::into),
            name: pod.name.clone(),
        };
        Self { reference, uid: pod.uid.clone(), mode }
    }

    /// The Pod.
    pub fn reference(&self) -> &ObjectRef {
        &self.reference
    }
    /// The uid that the Pod must have.
    pub fn uid(&self) -> &str {
        &self.uid
    }
    /// Through the Eviction API, or by deletion.
    pub fn mode(&self) -> EvictionMode {
        self.mode
    }
}

/// A deletion of a child, by the uid that was read a moment ago.
#[derive(Clone, Debug)]
pub struct Deletion {
    reference: ObjectRef,
    uid: String,
    resource_version: String,
}

impl Deletion {
    pub(super) fn of(live: &Observed) -> Self {
        Self {
            reference: live.reference.clone(),
            uid: live.uid.clone(),
            resource_version: live.resource_version.clone(),
        }
    }

    /// What is deleted.
    pub fn reference(&self) -> &ObjectRef {
        &self.reference
    }
    /// The uid that the object must have.
    pub fn uid(&self) -> &str {
        &self.uid
    }
    /// The version that was read. The owner reference that proves the object ours was read with it, so it is a precondition too.
    pub fn resource_version(&self) -> &str {
        &self.resource_version
    }
}

/// A change of a root's finalizers, carried out only on the finalizers that were seen.
#[derive(Clone, Debug)]
pub struct FinalizerWrite {
    reference: ObjectRef,
    uid: String,
    before: Vec<String>,
    after: Vec<String>,
}

impl FinalizerWrite {
    pub(super) fn of(root: &Value, after: Vec<String>) -> Self {
        let before = object::at(root, &["metadata", "finalizers"]).and_then(Value::as_array);
        let before = before.into_iter().flatten().filter_map(|name| name.as_str().map(Into::into));
        Self {
            reference: object::reference(root),
            uid: object::uid(root).into(),
            before: before.collect(),
            after,
        }
    }

    /// The root.
    pub fn reference(&self) -> &ObjectRef {
        &self.reference
    }

    /// The JSON patch: with the uid and the finalizers that must be there still. Not with the version, since a status that is
    /// written meanwhile does not matter.
    pub fn patch(&self) -> Value {
        let before = if self.before.is_empty() { Value::Null } else { json!(self.before) };
        let change = match (self.before.is_empty(), self.after.is_empty()) {
            (_, true) => json!({"op": "remove", "path": "/metadata/finalizers"}),
            (true, false) => json!({"op": "add", "path": "/metadata/finalizers", "value": self.after}),
            (false, false) => json!({"op": "replace", "path": "/metadata/finalizers", "value": self.after}),
        };
        json!([
            {"op": "test", "path": "/metadata/uid", "value": self.uid},
            {"op": "test", "path": "/metadata/finalizers", "value": before},
            change,
        ])
    }
}

/// An apply of a root's status.
#[derive(Clone, Debug)]
pub struct StatusWrite {
    object: Value,
    manager: String,
}

impl StatusWrite {
    pub(super) fn of(root: &Value, status: Value, manager: &str) -> Self {
        let reference = object::reference(root);
        let mut object = json!({
            "apiVersion": reference.api_version, "kind": reference.kind,
            "metadata": {"name": reference.name, "uid": object::uid(root)},
            "status": status,
        });
        if let Some(namespace) = reference.namespace {
            object["metadata"]["namespace"] = namespace.into();
        }
        Self { object, manager: manager.into() }
    }

    /// The body of the request.
    pub fn object(&self) -> &Value {
        &self.object
    }
    /// The field manager.
    pub fn manager(&self) -> &str {
        &self.manager
    }
}
