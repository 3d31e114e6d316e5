//! The custom resource of the benchmark: the spec and status of a Bench, and what its CRD says besides.

use pintle_guest::Object;
#[cfg(feature = "schema")]
use pintle_guest::schema::{Column, Crd, CustomResource};
use serde::{Deserialize, Serialize};

/// A Bench, as it is applied.
pub type Root = Object<BenchSpec>;

/// What the benchmark's operators make objects of.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BenchSpec {
    /// How many Pods there are to be.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub replicas: i32,
    /// Goes into the ConfigMap and into the status.
    #[serde(default)]
    pub message: String,
}

/// What became of a Bench.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BenchStatus {
    /// The message of the spec that was last reconciled.
    pub message: String,
    /// Where the Ingress leads.
    pub url: String,
    /// How many Pods are ready.
    pub ready_replicas: i64,
}

#[cfg(feature = "schema")]
impl CustomResource for BenchSpec {
    type Status = BenchStatus;

    const CRD: Crd = Crd {
        plural: "benches",
        singular: "bench",
        columns: &[
            Column::integer("Replicas", ".spec.replicas"),
            Column::integer("Ready", ".status.readyReplicas"),
            Column::date("Age", ".metadata.creationTimestamp"),
        ],
        ..Crd::EMPTY
    };
}
