//! The custom resource: the spec and status of a Darkroom, and what its CRD says besides.

use pintle_guest::Object;
#[cfg(feature = "schema")]
use pintle_guest::schema::{Column, Crd, CustomResource, Rule};
use serde::{Deserialize, Serialize};

/// The newest version of the image proxy that was seen to start.
pub const DEFAULT_VERSION: &str = "0.4.0";

/// A Darkroom, as it is applied.
pub type Root = Object<DarkroomSpec>;

/// An image proxy that serves the images of one source under names of its own.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DarkroomSpec {
    /// The version of the image proxy: `0.4.0` runs the image tag `v0.4.0`; `latest` and other tags are taken as they are.
    #[serde(default = "default_version")]
    #[cfg_attr(feature = "schema", schemars(length(max = 127)))]
    pub version: String,
    /// The whole container image, instead of the one that belongs to the version.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub image: Option<String>,
    /// Where the images come from.
    pub source: Source,
    /// The names to serve under, each one label below the domain that the administrator has set.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 64), inner(length(min = 1, max = 63)), extend("x-kubernetes-list-type" = "set")))]
    pub sub_domains: Vec<String>,
    /// For how long browsers and caches may keep the images.
    #[serde(default)]
    pub cache: Option<Cache>,
}

/// For how long browsers and caches may keep images. The image proxy says the same of every image: it neither passes on what the source
/// says nor compares with it.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Cache {
    /// The seconds, which stand in the header Cache-Control of every image; absent: what the administrator has set. 0: ask again each time.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 365 * 24 * 3600)))]
    pub ttl_seconds: Option<i64>,
}

/// Where the images come from.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Source {
    /// The kind of source.
    pub r#type: SourceType,
    /// WebFolder: the address below which the images lie, with http or https.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(length(max = 2048)))]
    pub base_url: Option<String>,
    /// S3: the bucket's name.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(length(max = 255)))]
    pub bucket: Option<String>,
    /// S3: the bucket's region.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(length(max = 255)))]
    pub region: Option<String>,
    /// S3: the address of a service that is not Amazon's; from version 0.3.1 on.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(length(max = 2048)))]
    pub endpoint: Option<String>,
    /// S3: only paths that begin with this are served.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(length(max = 1024)))]
    pub path_prefix: Option<String>,
    /// S3: a Secret in the same namespace with the keys SOURCE_BUCKET_ACCESSKEY and SOURCE_BUCKET_SECRETKEY.
    #[serde(default)]
    pub credentials_secret_ref: Option<SecretRef>,
    /// S3: deprecated, because everybody who can read the Darkroom can read it; use credentialsSecretRef.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(length(max = 1024), extend("format" = "password")))]
    pub access_key: Option<String>,
    /// S3: deprecated, because everybody who can read the Darkroom can read it; use credentialsSecretRef.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(length(max = 1024), extend("format" = "password")))]
    pub secret_key: Option<String>,
}

/// The kind of source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum SourceType {
    /// Files below an address.
    WebFolder,
    /// A bucket of Amazon S3, or of a service that speaks like it.
    S3,
    /// What the CRD does not allow. An object may be older than the CRD.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Other,
}

impl SourceType {
    /// The name in the custom resource, which the image proxy understands too.
    pub fn name(self) -> &'static str {
        match self {
            Self::WebFolder => "WebFolder",
            Self::S3 => "S3",
            Self::Other => "",
        }
    }

    /// The type of this name.
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "WebFolder" => Self::WebFolder,
            "S3" => Self::S3,
            _ => Self::Other,
        }
    }
}

/// Names a Secret in the same namespace.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SecretRef {
    /// The Secret's name.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 253)))]
    pub name: String,
}

/// What became of a Darkroom.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DarkroomStatus {
    /// The host names that it is served under, in the order of `subDomains`; without those that something older claims.
    pub domains: Vec<String>,
    /// How many Pods there are.
    pub replicas: i64,
    /// How many Pods are ready.
    pub ready_replicas: i64,
    /// How many Pods are of the newest form.
    pub updated_replicas: i64,
}

pub(crate) fn default_version() -> String {
    DEFAULT_VERSION.to_owned()
}

#[cfg(feature = "schema")]
impl CustomResource for DarkroomSpec {
    type Status = DarkroomStatus;

    const CRD: Crd = Crd {
        plural: "darkrooms",
        singular: "darkroom",
        short_names: &["dr"],
        columns: &[
            Column::string("VERSION", ".spec.version"),
            Column::string("TYPE", ".spec.source.type"),
            Column::string("READY", r#".status.conditions[?(@.type=="Ready")].status"#).wide(),
            Column::string("STATUS", r#".status.conditions[?(@.type=="Ready")].reason"#).wide(),
            Column::date("AGE", ".metadata.creationTimestamp").wide(),
        ],
        rules: &[
            Rule::new(
                "",
                "self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
                "the name must be at most 63 lower-case letters, digits and '-', beginning with a letter, because a Service has the same name",
            ),
            Rule::new(
                "spec.version",
                "self.matches('^([A-Za-z0-9_][A-Za-z0-9_.-]*)?$')",
                "must be a version such as 0.4.0, or an image tag such as latest",
            ),
            Rule::new(
                "spec.subDomains[]",
                "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
                "must be one DNS label: lower-case letters, digits and inner '-', without dots",
            ),
            // What belongs together in a source is the guest's to say (check.rs): it says the same whether a Darkroom comes from kubectl or
            // through the REST view, which a rule here would say in other words, and at one of the two alone.
        ],
        ..Crd::EMPTY
    };
}
