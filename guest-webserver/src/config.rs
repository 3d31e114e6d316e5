//! The config of this guest: what an administrator may set for all WebServers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What an administrator may set for all WebServers.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, Serialize))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// The resources of the web server's container.
    pub resources: Resources,
}

/// The resources of a container, as quantities by name: `{"cpu": "50m"}`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Resources {
    /// What is set aside for the container.
    pub requests: BTreeMap<String, String>,
    /// What the container may not exceed.
    pub limits: BTreeMap<String, String>,
}

impl Default for Resources {
    /// A stock nginx idles at 10 MiB with a few workers; it starts one for each core of its node. There is no CPU limit, because it
    /// would only slow down what nobody else asks for.
    fn default() -> Self {
        let mut resources = Self { requests: BTreeMap::new(), limits: BTreeMap::new() };
        resources.requests.insert("cpu".to_owned(), "50m".to_owned());
        resources.requests.insert("memory".to_owned(), "64Mi".to_owned());
        resources.limits.insert("memory".to_owned(), "256Mi".to_owned());
        resources
    }
}
