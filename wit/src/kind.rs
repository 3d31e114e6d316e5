//! Names of kinds and objects, as the documents of the contract write them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A kind of Kubernetes object, named as in its objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Kind {
    /// Group and version, for instance `apps/v1`, or `v1` for the core group.
    pub api_version: String,
    /// The kind, for instance `Deployment`.
    pub kind: String,
}

impl Kind {
    /// A kind from its two names.
    pub fn new(api_version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { api_version: api_version.into(), kind: kind.into() }
    }

    /// The group. It is empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The version without the group.
    pub fn version(&self) -> &str {
        self.api_version.split_once('/').map_or(self.api_version.as_str(), |(_, version)| version)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.api_version, self.kind)
    }
}

/// Names one object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObjectRef {
    /// Group and version of the object's kind.
    pub api_version: String,
    /// The object's kind.
    pub kind: String,
    /// The object's namespace; absent for a cluster-scoped object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The object's name.
    pub name: String,
}

impl ObjectRef {
    /// The kind of the object.
    pub fn kind(&self) -> Kind {
        Kind::new(&self.api_version, &self.kind)
    }
}

impl fmt::Display for ObjectRef {
    /// `Deployment blog/web`, as people and kubectl name objects.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}
