//! [`Request`]: the document that a guest is called with.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::{ApiVersion, Need, ObjectRef};

/// What a guest is asked: everything that its answer may depend on.
///
/// Objects cross as `apiVersion`, `kind`, `metadata` (name, namespace, uid, generation, creationTimestamp, deletionTimestamp,
/// labels, and annotations without the host's and kubectl's) and the rest; never with resourceVersion, managedFields, or what
/// the host itself keeps in a root's status. A host may add fields: ignore those that you do not know.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Request<Root = Value, Config: Default = Value> {
    /// `guest.pintle.dev/v1`.
    pub api_version: ApiVersion,
    /// The root: the custom resource that the answer is about. If the manifest asks for it (`observeStatus`), with the guest's own status
    /// fields, which are its only memory.
    pub object: Root,
    /// The Reconciler's config; the default of the guest's type when it has none.
    #[serde(default, deserialize_with = "null_is_default", bound(deserialize = "Config: Deserialize<'de>"))]
    pub config: Config,
    /// The root's children as they are in the cluster, of the kinds that the manifest asks to observe, sorted by apiVersion,
    /// kind, namespace and name.
    #[serde(default)]
    pub children: Vec<Value>,
    /// An answer to each need that the guest asked for, in the order of its asking.
    #[serde(default)]
    pub needs: Vec<NeedAnswer>,
    /// What the API server refused of this root's children. A refusal stays until that child in that form is accepted, or the
    /// root's generation, the Reconciler or the module changes.
    #[serde(default)]
    pub refusals: Vec<Refusal>,
    /// The root is being deleted: the guest is asked to clean up and to answer `finalized`. Only for a manifest with `finalizer`.
    #[serde(default)]
    pub deleting: bool,
    /// What this host can do.
    #[serde(default)]
    pub host: Host,
}

impl<Root, Config: Default> Request<Root, Config> {
    /// A request about this root and nothing else: the first of a root's life, with the default config.
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

    /// The observed child of this kind and name, in whatever version of its API the guest knows it.
    pub fn child(&self, kind: &str, name: &str) -> Option<&Value> {
        self.children.iter().find(|child| {
            child["kind"].as_str() == Some(kind) && child["metadata"]["name"].as_str() == Some(name)
        })
    }

    /// What the API server refused of the child of this kind and name.
    pub fn refusal(&self, kind: &str, name: &str) -> Option<&Refusal> {
        self.refusals.iter().find(|refusal| refusal.child.kind == kind && refusal.child.name == name)
    }
}

/// What a host can do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Host {
    /// The parts of a response that the host honours, by the names in [`capabilities`]. What it does not honour it refuses with
    /// `CapabilityMissing`; it never drops it.
    #[serde(default)]
    pub capabilities: Vec<String>,
}

/// The names of what a host may honour in a response.
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
    /// Refusals are told in the request.
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
    /// The objects found, sorted as `children` are; none when nothing was found.
    #[serde(default)]
    pub objects: Vec<Value>,
    /// For a clock: the time (RFC 3339, UTC), rounded down to its step.
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
    /// The reason in the API server's words (`Invalid`, `Forbidden`), or `AdoptionConflict` when the object exists and is somebody
    /// else's.
    #[serde(default)]
    pub reason: String,
    /// The message in the API server's words.
    #[serde(default)]
    pub message: String,
    /// What was wrong, field by field, where the API server said it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
}

impl Refusal {
    /// The reason for which the host refuses to take over an object that is somebody else's.
    pub const ADOPTION_CONFLICT: &str = "AdoptionConflict";

    /// The cause that is about this field, where the API server named one.
    pub fn cause(&self, field: &str) -> Option<&Cause> {
        self.causes.iter().find(|cause| cause.field == field)
    }
}

/// One reason of a refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Cause {
    /// The field, as the API server names it: `spec.ports[0].nodePort`.
    #[serde(default)]
    pub field: String,
    /// A word for it: `FieldValueInvalid`.
    #[serde(default)]
    pub reason: String,
    /// What is wrong with the field.
    #[serde(default)]
    pub message: String,
}

fn null_is_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}
