//! Actions of users and controllers, without a client. They go through the same code as requests.

use std::collections::BTreeMap;

use pintle_wit::ObjectRef;
use serde_json::{Value, json};

use crate::{
    faults::Verb,
    request::{PatchForm, Path, Request},
};

/// What happens to the objects that a deleted object owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cascade {
    /// They are deleted after their owner.
    Background,
    /// They are deleted before their owner, which waits for those that block it.
    Foreground,
    /// They stay, and no longer have an owner reference to it.
    Orphan,
}

/// An action of a user or controller.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// Creates an object.
    Create(Value),
    /// Server-side apply.
    Apply {
        /// The object to apply.
        object: Value,
        /// The field manager.
        manager: String,
        /// Whether the apply takes fields over from other managers.
        force: bool,
    },
    /// Replaces an object. It has the resourceVersion that it replaces, or none.
    Update(Value),
    /// Merges a patch into an object (RFC 7386).
    Merge {
        /// Which object.
        target: ObjectRef,
        /// `status`, if any.
        subresource: Option<String>,
        /// The patch.
        patch: Value,
    },
    /// Applies a JSON patch (RFC 6902).
    JsonPatch {
        /// Which object.
        target: ObjectRef,
        /// `status`, if any.
        subresource: Option<String>,
        /// The operations.
        patch: Value,
    },
    /// Evicts a Pod, if its PodDisruptionBudget allows it.
    Evict {
        /// Which Pod.
        target: ObjectRef,
    },
    /// Deletes an object.
    Delete {
        /// Which object.
        target: ObjectRef,
        /// What happens to the objects that it owns.
        cascade: Cascade,
    },
}

impl Act {
    /// The object of the action.
    pub(crate) fn reference(&self) -> ObjectRef {
        let named = |object: &Value| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            ObjectRef {
                api_version: text(&object["apiVersion"]),
                kind: text(&object["kind"]),
                namespace: object["metadata"]["namespace"].as_str().map(Into::into),
                name: text(&object["metadata"]["name"]),
            }
        };
        match self {
            Self::Create(object) | Self::Update(object) | Self::Apply { object, .. } => named(object),
            Self::Merge { target, .. }
            | Self::JsonPatch { target, .. }
            | Self::Evict { target }
            | Self::Delete { target, .. } => target.clone(),
        }
    }

    /// The same action as a request.
    pub(crate) fn request(&self, reference: &ObjectRef, plural: &str, actor: &str) -> Request {
        let (group, version) = reference.api_version.split_once('/').unwrap_or(("", &reference.api_version));
        let mut path = Path {
            group: group.into(),
            version: version.into(),
            resource: plural.into(),
            namespace: reference.namespace.clone(),
            name: Some(reference.name.clone()),
            subresource: None,
        };
        let mut query = BTreeMap::from([("fieldManager".to_owned(), actor.to_owned())]);
        let mut form = None;
        let (verb, body) = match self {
            Self::Create(object) => {
                path.name = None;
                (Verb::Create, object.clone())
            }
            Self::Apply { object, manager, force } => {
                query.insert("fieldManager".into(), manager.clone());
                query.insert("force".into(), force.to_string());
                (Verb::Apply, object.clone())
            }
            Self::Update(object) => (Verb::Update, object.clone()),
            Self::Merge { subresource, patch, .. } => {
                path.subresource.clone_from(subresource);
                form = Some(PatchForm::Merge);
                (Verb::Patch, patch.clone())
            }
            Self::JsonPatch { subresource, patch, .. } => {
                path.subresource.clone_from(subresource);
                form = Some(PatchForm::Json);
                (Verb::Patch, patch.clone())
            }
            Self::Evict { target } => {
                path.subresource = Some("eviction".into());
                (
                    Verb::Create,
                    json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": target.name}}),
                )
            }
            Self::Delete { cascade, .. } => {
                let policy = match cascade {
                    Cascade::Background => "Background",
                    Cascade::Foreground => "Foreground",
                    Cascade::Orphan => "Orphan",
                };
                (Verb::Delete, json!({"propagationPolicy": policy}))
            }
        };
        Request {
            verb,
            path,
            query,
            patch: form,
            metadata_only: false,
            user: None,
            user_agent: Some(actor.into()),
            body,
            duplicates: Vec::new(),
        }
    }
}
