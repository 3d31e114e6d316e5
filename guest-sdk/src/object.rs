//! [`Object`]: a custom resource with the guest's own types for spec and status.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;

use crate::read::read;

/// A custom resource over a guest's own spec and status.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Object<Spec, Status = NoStatus>
where
    Status: Default + DeserializeOwned,
{
    /// Group and version of the resource's kind.
    #[serde(default)]
    pub api_version: String,
    /// The resource's kind.
    #[serde(default)]
    pub kind: String,
    /// Name, namespace, labels and the like.
    pub metadata: Metadata,
    /// What the user wants.
    pub spec: Spec,
    /// The guest's own status fields, as its last answer left them. If the status does not fit the type, because another version of the
    /// guest wrote it, this is the default: a status must never prevent the answer that would replace it.
    #[serde(
        default,
        deserialize_with = "what_fits",
        bound(deserialize = "Status: Default + DeserializeOwned")
    )]
    pub status: Status,
}

/// The part of an object's metadata that crosses to a guest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// The object's name.
    pub name: String,
    /// The object's namespace; absent for a kind of cluster scope.
    #[serde(default)]
    pub namespace: Option<String>,
    /// The object's uid.
    #[serde(default)]
    pub uid: String,
    /// Counts the changes of the spec.
    #[serde(default)]
    pub generation: i64,
    /// When the object was created (RFC 3339, UTC).
    #[serde(default)]
    pub creation_timestamp: Option<String>,
    /// When the deletion of the object was requested (RFC 3339, UTC).
    #[serde(default)]
    pub deletion_timestamp: Option<String>,
    /// The object's labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The object's annotations, without the host's and kubectl's.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
}

/// The status of a guest that reports nothing, or does not look at what it last reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(description = "What became of it."))]
pub struct NoStatus {}

/// The config of a guest that has nothing to set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(description = "There is nothing to set.")
)]
#[serde(deny_unknown_fields)]
pub struct NoConfig {}

fn what_fits<'de, D, Status>(deserializer: D) -> Result<Status, D::Error>
where
    D: Deserializer<'de>,
    Status: Default + DeserializeOwned,
{
    let value = Value::deserialize(deserializer)?;
    Ok(read(value).unwrap_or_default())
}
