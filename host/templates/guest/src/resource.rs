use pintle_guest::Object;
#[cfg(feature = "schema")]
use pintle_guest::schema::{Column, Crd, CustomResource};
use serde::{Deserialize, Serialize};

/// The object, as it is applied.
pub type Root = Object<Spec>;

/// A web page.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// What the page says.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub text: String,
    /// How many Pods serve it.
    #[serde(default = "one")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 100)))]
    pub replicas: u32,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// How many Pods are ready.
    pub ready_replicas: i64,
}

/// What an administrator may set, in the Reconciler.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, Serialize))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// The image of the web server.
    pub image: String,
}

impl Default for Config {
    fn default() -> Self {
        Self { image: "nginx:1.29-alpine".to_owned() }
    }
}

fn one() -> u32 {
    1
}

#[cfg(feature = "schema")]
impl CustomResource for Spec {
    type Status = Status;

    const CRD: Crd = Crd {
        plural: "__PLURAL__",
        singular: "__SINGULAR__",
        columns: &[
            Column::integer("Replicas", ".spec.replicas"),
            Column::integer("Ready", ".status.readyReplicas"),
            Column::string("Status", r#".status.conditions[?(@.type=="Ready")].reason"#),
            Column::date("Age", ".metadata.creationTimestamp"),
        ],
        ..Crd::EMPTY
    };
}
