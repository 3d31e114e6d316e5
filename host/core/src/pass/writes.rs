//! The requests that change something. Their fields are private, and only this file makes them, from what the gate has allowed. So no
//! write can bypass the gate.

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
    /// The child's first apply. It carries `resourceVersion: "1"`, which the API server treats as "only if absent": it answers 201, or
    /// 409 if the object exists, even if the apply would have merged into somebody else's object without a conflict.
    pub(super) fn create(child: &AllowedChild, manager: &str) -> Self {
        Self::of(child, manager, false, ("resourceVersion", "1"))
    }

    /// A later apply. It carries the observed uid, so that it can neither re-create the object nor change a successor of the same name.
    pub(super) fn update(child: &AllowedChild, manager: &str, uid: &str) -> Self {
        Self::of(child, manager, true, ("uid", uid))
    }

    fn of(child: &AllowedChild, manager: &str, force: bool, (key, value): (&str, &str)) -> Self {
        let mut object = child.object().clone();
        object["metadata"][key] = value.into();
        Self { reference: child.reference().clone(), object, manager: manager.into(), force }
    }

    /// Applies a patch under the root's own field manager. It carries the uid of the object that was read, so that it can neither create
    /// the object nor change a successor. It overrides fields of others only if the grant allows it.
    pub(super) fn patch(patch: &AllowedPatch, live: &Value, manager: &str) -> Self {
        let mut object = patch.object().clone();
        object["metadata"]["uid"] = object::uid(live).into();
        let (reference, manager) = (patch.reference().clone(), manager.into());
        Self { reference, object, manager, force: patch.force() }
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
    /// Whether conflicts are overridden (`force`). That is so for every apply of a child but the first, since its fields are ours.
    pub fn force(&self) -> bool {
        self.force
    }
}

impl fmt::Debug for Apply {
    /// Leaves out the object, because it may be a Secret, and steps are logged.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Apply({}, force: {})", self.reference, self.force)
    }
}

/// A patch that takes over list items which have replaced ours in a child, so that the apply after it removes them; or one that gives up
/// the number of replicas, so that the apply after it leaves the number as it is. It changes only managed fields, and only if the child
/// is still as it was read.
#[derive(Clone, Debug)]
pub struct Claim {
    reference: ObjectRef,
    patch: Value,
    manager: String,
}

impl Claim {
    /// The claim on the items of a child as it was read, if there are any. `refused` are the paths that the API server did not accept.
    pub(super) fn of(child: &AllowedChild, live: &Value, manager: &str, refused: &[String]) -> Option<Self> {
        let fields = managed::with_displaced_items(live, manager, child.object(), refused)?;
        Self::fields(child, live, manager, &fields)
    }

    /// Gives up the number of replicas of a child as it was read, if it is ours.
    pub(super) fn without_replicas(child: &AllowedChild, live: &Value, manager: &str) -> Option<Self> {
        Self::fields(child, live, manager, &managed::giving_up_replicas(live, manager)?)
    }

    fn fields(child: &AllowedChild, live: &Value, manager: &str, fields: &[Value]) -> Option<Self> {
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

/// An eviction or a deletion of a Pod by its uid.
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
    /// Whether the Pod is evicted through the Eviction API, or deleted.
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

    /// The object to delete.
    pub fn reference(&self) -> &ObjectRef {
        &self.reference
    }
    /// The uid that the object must have.
    pub fn uid(&self) -> &str {
        &self.uid
    }
    /// The version that was read. It is a precondition too, because it was read with the owner reference that proves ownership.
    pub fn resource_version(&self) -> &str {
        &self.resource_version
    }
}

/// A change of a root's finalizers, on the condition that they are still those that were read.
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

    /// The JSON patch. It tests the uid and the finalizers, but not the version, since a status that is written meanwhile does not
    /// matter.
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

    /// The same, which the API server refuses with 409 if the root has another version by now.
    pub(super) fn onto_this_version(mut self, root: &Value) -> Self {
        if let Some(version) = object::at(root, &["metadata", "resourceVersion"]) {
            self.object["metadata"]["resourceVersion"] = version.clone();
        }
        self
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
