//! `View`: a resource whose objects a guest computes from objects of a backing kind.

#![allow(clippy::duplicated_attributes, reason = "columns have the same type")]

use kube::{CustomResource, KubeSchema};
use pintle_core::view::{Access, Epoch, Served, Unshowable, Verb};
use pintle_wit::Condition;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{CandidateModule, any_object};

/// A resource whose objects a guest computes from objects of another kind, and who may use it.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "pintle.dev",
    version = "v1alpha1",
    kind = "View",
    status = "ViewStatus",
    shortname = "pview",
    category = "pintle",
    doc = "A resource whose objects a guest computes from objects of another kind, and who may use it.",
    printcolumn(name = "Resource", type_ = "string", json_path = ".status.served.plural"),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.served.apiVersion"),
    printcolumn(name = "Backing", type_ = "string", json_path = ".status.served.backing.kind"),
    printcolumn(name = "Module", type_ = "string", json_path = ".status.active.module"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].reason"
    ),
    printcolumn(
        name = "Registered",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Registered')].status"
    ),
    printcolumn(name = "Wanted", type_ = "string", json_path = ".spec.module", priority = 1),
    printcolumn(name = "Access", type_ = "string", json_path = ".spec.access", priority = 1),
    printcolumn(name = "Epoch", type_ = "integer", json_path = ".status.active.epoch", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.access == 'ViewAndBacking' || !has(self.serve.rest)")
    .message("access View is for an aggregated API: REST sends the caller's own token to the API server"))]
#[x_kube(validation = Rule::new("self.unshowable == 'Fail' || !has(self.serve.rest)")
    .message("unshowable Omit is for an aggregated API: a page of documents has no place for what it leaves out"))]
pub struct ViewSpec {
    /// The Module that is wanted. It comes into force when it is ready; until then the one before stays.
    #[schemars(length(min = 1))]
    pub module: String,
    /// The view, by its name in the module.
    #[schemars(length(min = 1))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("view is immutable: make another View"))]
    pub view: String,
    /// How it is served.
    #[x_kube(validation = Rule::new("self == oldSelf").message("serve is immutable: make another View"))]
    pub serve: Serve,
    /// What may be done with its objects. Without any: everything that the view can do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub verbs: Vec<Verb>,
    /// Who may use it.
    #[serde(default)]
    pub access: Access,
    /// What lists and watches do about objects that the guest cannot show, and never will as they are.
    #[serde(default)]
    pub unshowable: Unshowable,
    /// The annotations of the backing objects that pass under access View, in both directions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub annotations: Vec<String>,
    /// The guest's config, as its module's manifest has the schema of.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    #[schemars(schema_with = "any_object")]
    pub config: Value,
    /// Answer every request with 503, and leave everything as it is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,
}

/// How a view is served. Exactly one of its fields is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.aggregated) != has(self.rest)").message("one of aggregated and rest is needed"))]
pub struct Serve {
    /// As a Kubernetes API, behind an APIService.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregated: Option<Aggregated>,
    /// As documents in plain JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<Rest>,
}

/// A Kubernetes API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Aggregated {}

/// Documents in plain JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rest {
    /// The path: `darkrooms`.
    #[schemars(regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"), length(max = 63))]
    pub path: String,
}

/// What the gateway made of a View.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ViewStatus {
    /// The generation that the status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What is in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<ActiveView>,
    /// What is wanted and not in force yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<CandidateModule>,
    /// What is served with it: all that needs no module.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<Served>,
    /// Ready, and what else is to be said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

/// The module and config in force for a View.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActiveView {
    /// The Module's name.
    pub module: String,
    /// Its digest.
    pub digest: String,
    /// The config in force with it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    #[schemars(schema_with = "any_object")]
    pub config: Value,
    /// What resource versions end with. It rises with every swap.
    pub epoch: Epoch,
    /// Since when (RFC 3339).
    #[schemars(extend("format" = "date-time"))]
    pub since: String,
}
