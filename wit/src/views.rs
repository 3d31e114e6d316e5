//! The documents of views: kinds whose objects a guest computes from objects of a *backing* kind, which the API server stores.
//!
//! [`ViewsManifest`] is the result of `describe-views`. `show` takes a [`ShowRequest`] and answers with a [`ShowResponse`]; `store` takes a
//! [`StoreRequest`] and answers with a [`StoreResponse`].

mod manifest;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{ApiVersion, Failure, request::null_is_default};

pub use manifest::{Column, ColumnType, Document, METADATA_READ, Shown, ViewManifest, ViewsManifest, limits};

/// The most objects of a [`ShowRequest`].
pub const SHOW_OBJECTS_MAX: usize = 64;

/// The size at which a [`ShowRequest`] of more than one object ends, in bytes.
pub const SHOW_BYTES: usize = 256 << 10;

/// The document that `show` is called with.
///
/// An object has `apiVersion`, `kind`, `metadata` and the rest, cut to the fields that the view declares. Its metadata have labels and
/// annotations only if the view's `reads` name them. A host may add fields: ignore those that you do not know.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ShowRequest<Backing = Value, Config: Default = Value> {
    /// `guest.pintle.dev/v1`.
    pub api_version: ApiVersion,
    /// The view, by its name in the manifest.
    pub view: String,
    /// The View's config, or the default of the guest's type if it has none.
    #[serde(default, deserialize_with = "null_is_default", bound(deserialize = "Config: Deserialize<'de>"))]
    pub config: Config,
    /// Objects of the backing kind: at most [`SHOW_OBJECTS_MAX`].
    pub objects: Vec<Backing>,
}

/// What `show` answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ShowResponse {
    /// `guest.pintle.dev/v1`.
    pub api_version: ApiVersion,
    /// One item for each object of the request, in order.
    pub items: Vec<ShowItem>,
}

/// What a view shows of one object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ShowItem {
    /// The fields of the shown object besides `apiVersion`, `kind` and `metadata`, which are the host's; or of the document, besides those
    /// of [`Document::OF_THE_HOST`].
    #[serde(deserialize_with = "crate::strict::map")]
    Object(Map<String, Value>),
    /// The object cannot be shown. Whoever asks for it gets an error; the other objects are shown.
    Failure(Failure),
}

/// The document that `store` is called with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StoreRequest<Shown = Value, Backing = Value, Config: Default = Value> {
    /// `guest.pintle.dev/v1`.
    pub api_version: ApiVersion,
    /// The view, by its name in the manifest.
    pub view: String,
    /// The View's config, or the default of the guest's type if it has none.
    #[serde(default, deserialize_with = "null_is_default", bound(deserialize = "Config: Deserialize<'de>"))]
    pub config: Config,
    /// The object as somebody wrote it, whole and with its defaults; of a document the guest's own fields. At a field that the schema marks
    /// `writeOnly`, null takes the value away, and absent keeps it.
    pub object: Shown,
    /// The object of the backing kind as it is now; absent when it is to be created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<Backing>,
}

/// What `store` answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StoreResponse {
    /// `guest.pintle.dev/v1`.
    pub api_version: ApiVersion,
    /// The fields of the object of the backing kind, besides `apiVersion`, `kind` and `metadata`. Only the fields that the manifest
    /// declares in `writes` are taken; such a field that is absent here is taken away.
    #[serde(deserialize_with = "crate::strict::map")]
    pub object: Map<String, Value>,
}
