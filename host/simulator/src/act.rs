//! Actions of users and controllers, without a client. They go through the same code as requests.

use std::collections::BTreeMap;

use pintle_core::object;
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
        match self {
            Self::Create(object) | Self::Apply { object, .. } => object::reference(object),
            Self::Merge { target, .. } | Self::JsonPatch { target, .. } | Self::Delete { target, .. } => {
                target.clone()
            }
        }
    }

    /// The same action as a request.
    pub(crate) fn request(&self, plural: &str, actor: &str) -> Request {
        let ObjectRef { api_version, namespace, name, .. } = self.reference();
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let mut query = BTreeMap::from([("fieldManager".to_owned(), actor.to_owned())]);
        let (verb, patch, subresource, body) = match self {
            Self::Create(object) => (Verb::Create, None, None, object.clone()),
            Self::Apply { object, manager, force } => {
                query.insert("fieldManager".into(), manager.clone());
                query.insert("force".into(), force.to_string());
                (Verb::Apply, None, None, object.clone())
            }
            Self::Merge { subresource, patch, .. } => {
                (Verb::Patch, Some(PatchForm::Merge), subresource.clone(), patch.clone())
            }
            Self::JsonPatch { subresource, patch, .. } => {
                (Verb::Patch, Some(PatchForm::Json), subresource.clone(), patch.clone())
            }
            Self::Delete { cascade, .. } => {
                let policy = match cascade {
                    Cascade::Background => "Background",
                    Cascade::Foreground => "Foreground",
                    Cascade::Orphan => "Orphan",
                };
                (Verb::Delete, None, None, json!({"propagationPolicy": policy}))
            }
        };
        let path = Path {
            group: group.into(),
            version: version.into(),
            resource: plural.into(),
            namespace,
            name: (verb != Verb::Create).then_some(name),
            subresource,
        };
        Request {
            verb,
            path,
            query,
            patch,
            metadata_only: false,
            user: None,
            user_agent: None,
            body,
            duplicates: Vec::new(),
        }
    }
}
