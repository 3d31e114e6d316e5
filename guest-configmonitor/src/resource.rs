//! The custom resource: the spec and status of a ConfigMonitor, and what its CRD says besides.

use pintle_guest::{Object, Value};
#[cfg(feature = "schema")]
use pintle_guest::{
    SelectorRequirement,
    schema::{Column, Crd, CustomResource, Rule},
};
use serde::{Deserialize, Serialize};

/// A ConfigMonitor, as it is applied and as it last reported.
pub type Root = Object<ConfigMonitorSpec, ConfigMonitorStatus>;

/// Restarts the Pods that use a ConfigMap when its content changes.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConfigMonitorSpec {
    /// The ConfigMap, in the same namespace.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 253)))]
    pub configmap: Option<String>,
    /// Another name for `configmap`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 253)))]
    pub config_map: Option<String>,
    /// Which Pods use it, in the same namespace: labels that a Pod must have, or matchLabels and matchExpressions.
    #[cfg_attr(feature = "schema", schemars(with = "PodSelector"))]
    pub pod_selector: Value,
    /// How the Pods are restarted.
    #[serde(default)]
    pub strategy: Strategy,
    /// Evict and Delete also take Pods that nothing owns, so that nothing makes them again.
    #[serde(default)]
    pub evict_unowned: bool,
}

/// How Pods are restarted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, Serialize))]
pub enum Strategy {
    /// The Deployments, StatefulSets and DaemonSets that own them roll out anew.
    #[default]
    RollingRestart,
    /// The Pods are evicted, one at a time, as PodDisruptionBudgets allow.
    Evict,
    /// The Pods are deleted, all at once.
    Delete,
}

/// The schema of `podSelector`. Labels beside these two fields are fields as well, whose names nobody knows beforehand.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1, "x-kubernetes-preserve-unknown-fields" = true))]
#[allow(dead_code, reason = "only its schema matters")]
struct PodSelector {
    /// Labels that a Pod must have, with these values.
    #[schemars(extend("minProperties" = 1))]
    match_labels: Option<std::collections::BTreeMap<String, String>>,
    /// Further requirements.
    #[schemars(length(min = 1))]
    match_expressions: Option<Vec<SelectorRequirement>>,
}

/// What became of a ConfigMonitor: also its memory of what it has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ConfigMonitorStatus {
    /// The ConfigMap that was observed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub config_map: String,
    /// The SHA-256 of its content, as it was when it was last acted on.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub observed_config_hash: String,
    /// How often Pods were restarted because of a change; absent: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_count: Option<i64>,
    /// When they were last restarted.
    #[serde(skip_serializing)]
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub last_restart_time: Option<String>,
    /// How many Pods match the selector.
    pub matched_pods: i64,
    /// What owns them and can be restarted, for the strategy RollingRestart.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workloads: Vec<Workload>,
    /// The Pods that are still to be replaced, for the strategies Evict and Delete.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pods_to_replace: Vec<PodRef>,
}

/// A Deployment, StatefulSet or DaemonSet.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Workload {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its uid: a successor of the same name is another one.
    pub uid: String,
    /// What the ConfigMonitor's annotation on its pod template says: the content for which it was last restarted, and a count;
    /// absent: it has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub annotation: String,
    /// The highest count that was given to it.
    #[serde(skip_serializing_if = "is_zero")]
    pub restarts: i64,
    /// Whether its last restart is still under way.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub restarting: bool,
    /// The generation that this restart gave it; absent while none is under way.
    #[serde(skip_serializing_if = "is_zero")]
    pub generation: i64,
}

fn is_zero(count: &i64) -> bool {
    *count == 0
}

/// A Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct PodRef {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

#[cfg(feature = "schema")]
impl CustomResource for ConfigMonitorSpec {
    type Status = ConfigMonitorStatus;

    const CRD: Crd = Crd {
        plural: "configmonitors",
        singular: "configmonitor",
        short_names: &["cfgmon"],
        columns: &[
            Column::string("ConfigMap", ".status.configMap"),
            Column::integer("Matched", ".status.matchedPods"),
            Column::date("LastRestart", ".status.lastRestartTime"),
            Column::date("Age", ".metadata.creationTimestamp"),
            Column::integer("Restarts", ".status.restartCount").wide(),
            Column::string("Strategy", ".spec.strategy").wide(),
            Column::string("Status", r#".status.conditions[?(@.type=="Ready")].reason"#).wide(),
        ],
        rules: &[
            Rule::new("spec", "has(self.configmap) || has(self.configMap)", "configmap is required"),
            Rule::new(
                "spec",
                "!has(self.configmap) || !has(self.configMap) || self.configmap == self.configMap",
                "configmap and configMap are two names for one field; give one of them",
            ),
            Rule::new(
                "spec.podSelector.matchExpressions[]",
                "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
                "In and NotIn need values, Exists and DoesNotExist take none",
            ),
        ],
        ..Crd::EMPTY
    };
}
