//! [`Response`]: the document that a guest answers with.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{ApiVersion, ConditionStatus, strict};

/// The answer of a guest: everything that should exist and be reported because of the root. Whatever a response leaves out is removed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Response {
    /// `guest.pintle.dev/v1`.
    pub api_version: ApiVersion,
    /// The children that should exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Child>,
    /// Partial objects to apply to objects that the root does not own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patches: Vec<Patch>,
    /// Pods to evict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evictions: Option<Evictions>,
    /// The guest's own status fields. `observedGeneration`, `conditions` and `pintle` belong to the host.
    #[serde(default, skip_serializing_if = "Map::is_empty", deserialize_with = "strict::map")]
    pub status: Map<String, Value>,
    /// Status fields that the host sets to its own time, in the same write in which another field changes. Each time field maps to the
    /// field that it follows: `{"lastRestartTime": "restartCount"}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "strict::texts")]
    pub stamps: BTreeMap<String, String>,
    /// The guest's own conditions. `Ready`, `Reconciling` and `Stalled` belong to the host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<GuestCondition>,
    /// Events about the root. They are published only when the answer changed something.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Event>,
    /// Everything that the guest asks to see. Repeat all needs in every response. If they differ from those that the request answered, the
    /// host discards the rest of the response and calls the guest again with the new needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Need>,
    /// For a request with `deleting`: nothing is left to clean up, and the root may go.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub finalized: bool,
}

/// One object that should exist because of the root.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Child {
    /// The guest's own short name for the child, unique in the response: `deployment`. Messages use it if the object has no name.
    pub id: String,
    /// The stage in which the child is applied. Any number is allowed; only the order counts. A child is created or changed only when every
    /// child of the lower stages is ready. A child that already exists is kept and repaired, even if a child of a lower stage is no longer
    /// ready.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stage: u32,
    /// When the child counts as ready. Without it, the usual rule of Kubernetes tools for its kind applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readiness: Option<Readiness>,
    /// The object: apiVersion, kind, metadata with name, and every field that the guest manages. A field that an earlier answer set and
    /// this one leaves out is removed.
    #[serde(deserialize_with = "strict::value")]
    pub object: Value,
}

impl Child {
    /// A child with this id, in the first stage, ready by the rule of its kind.
    pub fn new(id: impl Into<String>, object: Value) -> Self {
        Self { id: id.into(), object, ..Self::default() }
    }

    /// The same child in a later stage: it is first applied when every child of the lower stages is ready.
    #[must_use]
    pub fn in_stage(mut self, stage: u32) -> Self {
        self.stage = stage;
        self
    }

    /// The same child with another rule for its readiness.
    #[must_use]
    pub fn ready_when(mut self, readiness: Readiness) -> Self {
        self.readiness = Some(readiness);
        self
    }
}

/// When a child counts as ready.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Readiness {
    /// As soon as the API server has accepted it.
    Accepted,
    /// When it has a condition with this status.
    #[serde(rename_all = "camelCase")]
    Condition {
        /// The condition's type.
        r#type: String,
        /// The required status.
        status: ConditionStatus,
    },
    /// When the guest, which observes the child, says so.
    #[serde(rename_all = "camelCase")]
    Decided {
        /// Whether it is ready.
        ready: bool,
        /// What the child waits for, if it is not ready.
        #[serde(default)]
        message: String,
    },
}

/// A condition that a guest reports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GuestCondition {
    /// What the condition is about, in CamelCase.
    pub r#type: String,
    /// True, False or Unknown.
    pub status: ConditionStatus,
    /// Why, in one CamelCase word.
    pub reason: String,
    /// Why, for a person.
    #[serde(default)]
    pub message: String,
    /// While this condition is reported, the root is not Ready.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub blocks_ready: bool,
}

impl GuestCondition {
    /// A condition that does not affect readiness.
    pub fn new(
        r#type: impl Into<String>,
        status: impl Into<ConditionStatus>,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            r#type: r#type.into(),
            status: status.into(),
            reason: reason.into(),
            message: message.into(),
            blocks_ready: false,
        }
    }

    /// The same condition; while it is reported, the root is not Ready.
    #[must_use]
    pub fn blocking(mut self) -> Self {
        self.blocks_ready = true;
        self
    }
}

/// An Event about the root.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Event {
    /// Normal or Warning.
    pub r#type: EventType,
    /// Why, in one CamelCase word, at most 128 characters.
    pub reason: String,
    /// What happened, for a person, at most 1 kB.
    pub message: String,
}

impl Event {
    /// Something happened as it should.
    pub fn normal(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { r#type: EventType::Normal, reason: reason.into(), message: message.into() }
    }

    /// Something happened that somebody should look at.
    pub fn warning(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { r#type: EventType::Warning, ..Self::normal(reason, message) }
    }
}

/// The type of an Event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum EventType {
    /// Something happened as it should.
    #[default]
    Normal,
    /// Something happened that somebody should look at.
    Warning,
}

/// Something that a guest asks to see: objects, or a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Need {
    /// Objects of one kind.
    Objects(ObjectsNeed),
    /// The time, rounded down. The root is reconciled again at the next step.
    #[serde(rename_all = "camelCase")]
    Clock {
        /// The step, in seconds; at least 1.
        step_seconds: u32,
    },
    /// Whether this moment (RFC 3339) was reached. The root is reconciled again when it is.
    Deadline(String),
}

impl Default for Need {
    fn default() -> Self {
        Self::Objects(ObjectsNeed::default())
    }
}

/// Objects of one kind that a guest asks to see.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObjectsNeed {
    /// Group and version of the kind.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The namespace to look in; absent: the root's. `*` stands for all namespaces. A namespace other than the root's, and cluster scope,
    /// need a grant with scope All.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Which objects.
    pub select: Select,
    /// The fields to show besides metadata, as dotted paths of maps (`data`, `spec.replicas`). Empty: only metadata. Of the metadata, the
    /// only field to ask for is `metadata.ownerReferences`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    /// A change is shown when the objects have been quiet for this long, and after five times as long at the latest.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub settle_milliseconds: u32,
}

impl ObjectsNeed {
    /// The value of `namespace` that stands for all namespaces.
    pub const ALL_NAMESPACES: &str = "*";

    /// The object with this name in the root's namespace. Only its metadata is shown.
    pub fn named(api_version: impl Into<String>, kind: impl Into<String>, name: impl Into<String>) -> Self {
        Self::of(api_version.into(), kind.into(), Select::Name(name.into()))
    }

    /// The objects with matching labels in the root's namespace. Only their metadata is shown.
    pub fn labelled(
        api_version: impl Into<String>,
        kind: impl Into<String>,
        selector: LabelSelector,
    ) -> Self {
        Self::of(api_version.into(), kind.into(), Select::Labels(selector))
    }

    /// The objects in the root's namespace that have this value in a field that the manifest declares as an index. Only their metadata is
    /// shown.
    pub fn indexed(
        api_version: impl Into<String>,
        kind: impl Into<String>,
        path: impl Into<String>,
        equals: impl Into<String>,
    ) -> Self {
        let select = Select::Field(FieldEquals { path: path.into(), equals: equals.into() });
        Self::of(api_version.into(), kind.into(), select)
    }

    fn of(api_version: String, kind: String, select: Select) -> Self {
        Self { api_version, kind, select, ..Self::default() }
    }

    /// The same in all namespaces, which the grant must allow.
    #[must_use]
    pub fn in_all_namespaces(mut self) -> Self {
        self.namespace = Some(Self::ALL_NAMESPACES.to_owned());
        self
    }

    /// The same with these fields besides metadata.
    #[must_use]
    pub fn with_fields(mut self, fields: &[&str]) -> Self {
        self.fields = fields.iter().map(|&field| field.to_owned()).collect();
        self
    }

    /// The same, but a change is shown only when the objects have been quiet for this long.
    #[must_use]
    pub fn settled_for(mut self, milliseconds: u32) -> Self {
        self.settle_milliseconds = milliseconds;
        self
    }
}

/// Which objects of a kind a guest asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Select {
    /// The one with this name.
    Name(String),
    /// Those whose labels match.
    Labels(LabelSelector),
    /// Those that have this value in an indexed field.
    Field(FieldEquals),
}

impl Default for Select {
    fn default() -> Self {
        Self::Name(String::new())
    }
}

/// Selects objects by their labels. All parts must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LabelSelector {
    /// Labels that the object must have, with these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "strict::texts")]
    pub match_labels: BTreeMap<String, String>,
    /// Further requirements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<SelectorRequirement>,
}

/// One requirement on a label.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SelectorRequirement {
    /// The label.
    pub key: String,
    /// How its value is compared.
    pub operator: SelectorOperator,
    /// The values, for `In` and `NotIn`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// How a label's value is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum SelectorOperator {
    /// The value is one of these values.
    In,
    /// The value is none of these values, or the label is absent.
    NotIn,
    /// The label is present.
    Exists,
    /// The label is absent.
    DoesNotExist,
}

/// Selects objects by the value of an indexed field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FieldEquals {
    /// The field's path, as the manifest's index names it: `spec.rules[].host`.
    pub path: String,
    /// The value.
    pub equals: String,
}

/// A partial object to apply to an object that the root does not own. That object must exist. The fields stay as they are when the guest
/// stops sending the patch, and when the root is deleted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Patch {
    /// The fields to set, with the apiVersion, kind and metadata.name of the object.
    #[serde(deserialize_with = "strict::value")]
    pub object: Value,
}

/// Pods to evict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Evictions {
    /// The Pods, in the order in which to evict them.
    pub pods: Vec<Eviction>,
    /// How they are evicted.
    #[serde(default)]
    pub mode: EvictionMode,
    /// Each Pod waits until the replacement of the Pod before it is ready. The host reads this from the guest's needs for Pods, which must
    /// ask for `status`.
    #[serde(default)]
    pub one_at_a_time: bool,
}

/// One Pod to evict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Eviction {
    /// The Pod's name.
    pub name: String,
    /// The Pod's uid: a later Pod of the same name is left alone.
    pub uid: String,
}

/// How a Pod is evicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum EvictionMode {
    /// Through the Eviction API, which respects PodDisruptionBudgets.
    #[default]
    Evict,
    /// By deletion.
    Delete,
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}
