//! The config of this guest: what an administrator may set for all Darkrooms.

use std::collections::BTreeMap;

use pintle_guest::{Failure, dns_1123_label, reasons};
use serde::{Deserialize, Serialize};

/// The longest domain suffix: with a label of 63 characters and a dot before it a host name has at most 253.
const MAX_SUFFIX: usize = 253 - 64;

/// A domain, for the schema, so that a wrong one is refused on the Reconciler, before it is in force.
#[cfg(feature = "schema")]
const DOMAIN: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";

/// What an administrator may set for all Darkrooms.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, Serialize))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// The domain below which every Darkroom has its names.
    #[cfg_attr(feature = "schema", schemars(length(max = 189), regex(pattern = DOMAIN)))]
    pub domain_suffix: String,
    /// The class of the Ingresses; absent: the cluster's default.
    #[cfg_attr(feature = "schema", serde(skip_serializing_if = "Option::is_none"))]
    pub ingress_class_name: Option<String>,
    /// The Secret with the certificate for the names, in the namespace of each Darkroom; absent: no TLS.
    #[cfg_attr(feature = "schema", serde(skip_serializing_if = "Option::is_none"))]
    pub tls_secret_name: Option<String>,
    /// Makes every Darkroom also answer for names that no other Ingress of its class knows.
    pub default_backend: bool,
    /// The image without its tag.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub image_repository: String,
    /// Whether the image proxy shows its profiles at `/debug/pprof`, to everybody who can reach it.
    pub debug: bool,
    /// How much the image proxy logs.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["debug", "info", "warn", "error"])))]
    pub log_level: String,
    /// For how long browsers and caches may keep an image, in seconds.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub cache_time_seconds: i64,
    /// The resources of the image proxy's container.
    pub resources: Resources,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            domain_suffix: "darkroom.example.com".to_owned(),
            ingress_class_name: None,
            tls_secret_name: None,
            default_backend: false,
            image_repository: "gojektech/darkroom".to_owned(),
            debug: false,
            log_level: "info".to_owned(),
            cache_time_seconds: 31_536_000,
            resources: Resources::default(),
        }
    }
}

impl Config {
    /// What the schema says too, where a host has no schema, and what it cannot say: the length of each label.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let suffix = &self.domain_suffix;
        if suffix.len() > MAX_SUFFIX || !suffix.split('.').all(dns_1123_label) {
            let message = "must be a domain in lower-case letters of at most 189 characters, so that a label fits before it";
            return Err(Failure::terminal(reasons::CONFIG_INVALID, message).at("domainSuffix"));
        }
        Ok(())
    }
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
    /// An image of 20 megapixels takes 80 MiB while it is worked on, and a few are worked on at once.
    fn default() -> Self {
        let mut resources = Self { requests: BTreeMap::new(), limits: BTreeMap::new() };
        resources.requests.insert("cpu".to_owned(), "100m".to_owned());
        resources.requests.insert("memory".to_owned(), "128Mi".to_owned());
        resources.limits.insert("memory".to_owned(), "512Mi".to_owned());
        resources
    }
}
