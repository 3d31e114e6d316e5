//! The custom resource: the spec and status of a WebServer, and what its CRD says besides.

use pintle_guest::Object;
#[cfg(feature = "schema")]
use pintle_guest::schema::{Column, Crd, CustomResource, Rule, Scale};
use serde::{Deserialize, Serialize};

/// The default node port: the one that the operator before this guest used.
pub const DEFAULT_NODE_PORT: i32 = 30010;

/// The longest name: `<name>-service` must be a DNS label of at most 63 characters.
pub const MAX_NAME: usize = 55;

/// A WebServer, as it is applied.
pub type Root = Object<WebServerSpec>;

/// A web server that is reachable at one port of every node.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WebServerSpec {
    /// How many Pods serve.
    #[serde(default = "one")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub replicas: i32,
    /// The container image; it must serve HTTP on port 80, and answer `GET /`.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub image: String,
    /// The port on every node: 30000 to 32767. 0 leaves the choice to Kubernetes; a port once chosen is kept.
    #[serde(default = "default_node_port")]
    pub node_port: i32,
    /// Deprecated and without effect: it is accepted because objects with it exist.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("deprecated" = true)))]
    pub foo: Option<String>,
}

/// What became of a WebServer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WebServerStatus {
    /// How many Pods there are.
    pub replicas: i64,
    /// How many Pods are ready.
    pub ready_replicas: i64,
    /// How many Pods are of the newest form.
    pub updated_replicas: i64,
    /// Selects the Pods, in the form that `kubectl get -l` and the scale subresource take.
    pub selector: String,
    /// The port on every node, once Kubernetes has assigned it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_port: Option<i64>,
}

fn one() -> i32 {
    1
}

fn default_node_port() -> i32 {
    DEFAULT_NODE_PORT
}

#[cfg(feature = "schema")]
impl CustomResource for WebServerSpec {
    type Status = WebServerStatus;

    const CRD: Crd = Crd {
        plural: "webservers",
        singular: "webserver",
        short_names: &["ws"],
        columns: &[
            Column::integer("Replicas", ".spec.replicas"),
            Column::integer("Ready", ".status.readyReplicas"),
            Column::string("Image", ".spec.image"),
            Column::date("Age", ".metadata.creationTimestamp"),
            Column::integer("NodePort", ".status.nodePort").wide(),
            Column::string("Status", r#".status.conditions[?(@.type=="Ready")].reason"#).wide(),
        ],
        scale: Some(Scale {
            spec_replicas: ".spec.replicas",
            status_replicas: ".status.replicas",
            label_selector: Some(".status.selector"),
        }),
        rules: &[
            Rule::new(
                "",
                "self.metadata.name.size() <= 55",
                "the name may have at most 55 characters, because the Service is called <name>-service",
            ),
            Rule::new(
                "",
                "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
                "the name must begin with a letter, and have only lower-case letters, digits and '-', because a Service is named after it",
            ),
            Rule::new(
                "spec.nodePort",
                "self == 0 || (self >= 30000 && self <= 32767)",
                "a node port lies between 30000 and 32767; 0 leaves the choice to Kubernetes",
            ),
        ],
        ..Crd::EMPTY
    };
}
