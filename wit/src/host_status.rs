//! [`HostStatus`]: the fields of a root's status that belong to the host.

use serde::{Deserialize, Serialize};

use crate::ObjectRef;

/// The part of a root's status that belongs to the host. Every CRD that Pintle generates has it in its schema, beside the guest's own
/// fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HostStatus {
    /// The generation of the root that the status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Ready`, `Reconciling` and `Stalled` as kstatus reads them, and the guest's own conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// What the host stores for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pintle: Option<PintleStatus>,
}

/// What the host stores for itself in a root's status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PintleStatus {
    /// The digest of the module whose answer last changed something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module_digest: Option<String>,
    /// Children of kinds that the host may not watch, so that it knows where to look. Only the owner reference on the object proves that it
    /// is a child. Without a namespace, it is in the root's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unwatched: Vec<ObjectRef>,
    /// The uids of Pods that the host must evict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evicting: Vec<String>,
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
    /// The generation of the object that the condition describes.
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
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// It is not known.
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
