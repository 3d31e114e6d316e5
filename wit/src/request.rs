//! [`Request`]: the document that a guest is called with.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::{ApiVersion, Need, ObjectRef};

/// The document that a guest is called with: everything that its answer may depend on.
///
/// An object has `apiVersion`, `kind`, `metadata` (name, namespace, uid, generation, creationTimestamp, deletionTimestamp, labels, and
/// annotations without the host's and kubectl's) and the rest. It never has resourceVersion, managedFields, or what the host itself stores
/// in a root's status. A host may add fields: ignore those that you do not know.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Request<Root = Value, Config: Default = Value> {
    /// `guest.pintle.dev/v1`.
    pub api_version: ApiVersion,
    /// The root: the custom resource that the answer is for. It has the guest's own status fields, which are its only memory, if the
    /// manifest asks for them (`observeStatus`).
    pub object: Root,
    /// The Reconciler's config, or the default of the guest's type if it has none.
    #[serde(default, deserialize_with = "null_is_default", bound(deserialize = "Config: Deserialize<'de>"))]
    pub config: Config,
    /// The root's children as they are in the cluster, of the kinds that the manifest asks to observe, sorted by apiVersion, kind,
    /// namespace and name.
    #[serde(default)]
    pub children: Vec<Value>,
    /// An answer to each need, in the order in which the guest asked for them.
    #[serde(default)]
    pub needs: Vec<NeedAnswer>,
    /// The children of this root that the API server refused. A refusal stays until that child in that form is accepted, or the root's
    /// generation, the Reconciler or the module changes.
    #[serde(default)]
    pub refusals: Vec<Refusal>,
    /// The root is being deleted: the guest must clean up and answer `finalized`. Only for a manifest with `finalizer`.
    #[serde(default)]
    pub deleting: bool,
    /// What this host supports.
    #[serde(default)]
    pub host: Host,
}

impl<Root, Config: Default> Request<Root, Config> {
    /// A request with nothing but this root: the first one in a root's life, with the default config.
    pub fn about(object: Root) -> Self {
        Self {
            api_version: ApiVersion,
            object,
            config: Config::default(),
            children: Vec::new(),
            needs: Vec::new(),
            refusals: Vec::new(),
            deleting: false,
            host: Host::default(),
        }
    }

    /// The observed child of this kind and name, in any version of its API.
    pub fn child(&self, kind: &str, name: &str) -> Option<&Value> {
        self.children.iter().find(|child| {
            child["kind"].as_str() == Some(kind) && child["metadata"]["name"].as_str() == Some(name)
        })
    }

    /// The API server's refusal of the child of this kind and name.
    pub fn refusal(&self, kind: &str, name: &str) -> Option<&Refusal> {
        self.refusals.iter().find(|refusal| refusal.child.kind == kind && refusal.child.name == name)
    }
}

/// What a host supports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Host {
    /// The parts of a response that the host supports, by the names in [`capabilities`]. The host refuses an answer with any other part
    /// (`UnknownField`); it never drops one.
    #[serde(default)]
    pub capabilities: Vec<String>,
}

/// The names of the parts of a response that a host may support.
pub mod capabilities {
    /// Children, with readiness.
    pub const CHILDREN: &str = "children";
    /// Children in more than one stage.
    pub const STAGES: &str = "stages";
    /// Status fields.
    pub const STATUS: &str = "status";
    /// Conditions.
    pub const CONDITIONS: &str = "conditions";
    /// Events.
    pub const EVENTS: &str = "events";
    /// Refusals in the request.
    pub const REFUSALS: &str = "refusals";
    /// Needs, with indexes, time and settling.
    pub const NEEDS: &str = "needs";
    /// Patches of objects that the root does not own.
    pub const PATCHES: &str = "patches";
    /// Evictions of Pods.
    pub const EVICTIONS: &str = "evictions";
    /// Stamps.
    pub const STAMPS: &str = "stamps";
    /// A finalizer, and calls with `deleting`.
    pub const FINALIZER: &str = "finalizer";
}

/// What was found for a need.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NeedAnswer {
    /// The need, as the guest stated it.
    pub need: Need,
    /// The objects found, in the same order as `children`. Empty if nothing was found.
    #[serde(default)]
    pub objects: Vec<Value>,
    /// For a time: the time (RFC 3339, UTC), rounded down to its step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// For a deadline: whether it was reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reached: Option<bool>,
}

/// One child that the API server did not accept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Refusal {
    /// The child.
    pub child: ObjectRef,
    /// The HTTP status code: 403, 409, 422, ...
    pub code: u16,
    /// The reason in the API server's words (`Invalid`, `Forbidden`), or `AdoptionConflict` if the object exists and belongs to somebody
    /// else.
    #[serde(default)]
    pub reason: String,
    /// The message in the API server's words.
    #[serde(default)]
    pub message: String,
    /// The causes, field by field, if the API server named them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
}

impl Refusal {
    /// The reason if the host refuses to take over an object that belongs to somebody else.
    pub const ADOPTION_CONFLICT: &str = "AdoptionConflict";

    /// The cause for this field, if the API server named one.
    pub fn cause(&self, field: &str) -> Option<&Cause> {
        self.causes.iter().find(|cause| cause.field == field)
    }
}

/// One cause of a refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Cause {
    /// The field, as the API server names it: `spec.ports[0].nodePort`.
    #[serde(default)]
    pub field: String,
    /// A CamelCase word for the cause: `FieldValueInvalid`.
    #[serde(default)]
    pub reason: String,
    /// What is wrong with the field.
    #[serde(default)]
    pub message: String,
}

pub(crate) fn null_is_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}
