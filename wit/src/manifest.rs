use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ApiVersion, Kind};

/// What a guest says of itself, in answer to `describe`.
///
/// A manifest declares; it grants nothing. What the guest may really do is the Reconciler's grant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Manifest {
    /// `guest.pintle.dev/v1`.
    pub api_version: ApiVersion,
    /// The guest's name: a DNS label, for instance `webserver`.
    pub name: String,
    /// The guest's own version, for instance `0.1.0`.
    pub version: String,
    /// The kind of custom resource that the guest reconciles: the kind of its roots.
    pub reconciles: Kind,
    /// Whether the guest wants to see its own fields of the root's status: they are the only memory that it has. A guest that does
    /// not is not called again because its status was written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub observe_status: bool,
    /// Every kind of child that the guest may answer with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<ChildKind>,
    /// Every kind of object that the guest may ask to see, besides its root and its children.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<NeedKind>,
    /// Every kind of object that the guest may patch without owning it, with the fields that it may set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patches: Vec<PatchKind>,
    /// Whether the guest may ask for Pods to be evicted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub evictions: bool,
    /// JSON Schema of the `config` that a Reconciler may carry; absent: no config is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_schema: Option<Value>,
    /// Whether a root must wait, when it is deleted, until the guest has answered `finalized`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub finalizer: bool,
}

impl Manifest {
    /// A manifest that declares nothing but whom it is about.
    pub fn new(name: impl Into<String>, version: impl Into<String>, reconciles: Kind) -> Self {
        Self { name: name.into(), version: version.into(), reconciles, ..Self::default() }
    }
}

/// A kind of child.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChildKind {
    /// Group and version of the kind.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// Whether the guest wants to see the children of this kind as they are in the cluster. A kind that is not observed costs
    /// less memory, and its changes do not cause a call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub observe: bool,
}

impl ChildKind {
    /// A kind of child that the guest creates and does not look at.
    pub fn new(api_version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { api_version: api_version.into(), kind: kind.into(), observe: false }
    }

    /// The same kind, observed.
    #[must_use]
    pub fn observed(mut self) -> Self {
        self.observe = true;
        self
    }

    /// The kind without the wish to observe it.
    pub fn kind(&self) -> Kind {
        Kind::new(&self.api_version, &self.kind)
    }
}

/// A kind of object that a guest may ask to see.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NeedKind {
    /// Group and version of the kind.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// Field paths that the host must index, so that objects can be asked for by their value: `spec.rules[].host`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub indexes: Vec<String>,
}

impl NeedKind {
    /// A kind that the guest asks for by name or by labels.
    pub fn new(api_version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { api_version: api_version.into(), kind: kind.into(), indexes: Vec::new() }
    }

    /// The same kind, which the guest also asks for by the value of this field.
    #[must_use]
    pub fn indexed_by(mut self, path: impl Into<String>) -> Self {
        self.indexes.push(path.into());
        self
    }
}

/// A kind of object that a guest may patch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PatchKind {
    /// Group and version of the kind.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The field paths that the guest may set: `spec.template.metadata.annotations`.
    pub fields: Vec<String>,
}

impl PatchKind {
    /// A kind of which the guest sets these fields.
    pub fn new(api_version: impl Into<String>, kind: impl Into<String>, fields: &[&str]) -> Self {
        Self {
            api_version: api_version.into(),
            kind: kind.into(),
            fields: fields.iter().map(|&field| field.to_owned()).collect(),
        }
    }
}
