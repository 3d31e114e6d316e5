//! [`HostStatus`]: the fields of a root's status that belong to the host.

use serde::{Deserialize, Serialize};

use crate::ObjectRef;

/// The part of a root's status that belongs to the host. It is merged into the schema of every CRD that Pintle generates; the
/// guest's own fields stand beside it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HostStatus {
    /// The generation of the root that the status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Ready`, `Reconciling` and `Stalled` as kstatus reads them, and the guest's own conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// What the host keeps for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pintle: Option<PintleStatus>,
}

/// What the host keeps for itself in a root's status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PintleStatus {
    /// The digest of the module whose answer last changed something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module_digest: Option<String>,
    /// Children of kinds that the host may not watch, so that it knows where to look. Proof is the owner reference on the object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unwatched: Vec<UnwatchedChild>,
    /// Children that cannot have an owner reference to the root: in other namespaces, or of cluster scope.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inventory: Vec<ObjectRef>,
    /// Objects with a patch of the root's that is to be taken away in the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patched: Vec<ObjectRef>,
    /// The uids of Pods that are to be evicted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evicting: Vec<String>,
}

/// A child in the root's namespace, of a kind that the host may not watch.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UnwatchedChild {
    /// Group and version of the child's kind.
    pub api_version: String,
    /// The child's kind.
    pub kind: String,
    /// The child's name.
    pub name: String,
}

/// A condition, as every Kubernetes tool reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What the condition is about, in CamelCase.
    pub r#type: String,
    /// True, False or Unknown.
    pub status: ConditionStatus,
    /// The generation of the object that the condition is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When the status last changed (RFC 3339, UTC).
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub last_transition_time: String,
    /// Why, in one CamelCase word.
    pub reason: String,
    /// Why, for a person.
    #[serde(default)]
    pub message: String,
}

/// The status of a condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ConditionStatus {
    /// It is so.
    True,
    /// It is not so.
    False,
    /// Nobody knows.
    #[default]
    Unknown,
}

impl ConditionStatus {
    /// The word that Kubernetes uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for ConditionStatus {
    fn from(value: bool) -> Self {
        if value { Self::True } else { Self::False }
    }
}
