//! What a guest states about its custom resource beyond its types: names, printer columns, subresources and validation rules.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::Object;

/// The part of a custom resource's definition that the types of its spec and status cannot express. It is implemented for the spec. Group,
/// version and kind come from the manifest.
pub trait CustomResource: JsonSchema {
    /// The guest's own status fields; [`NoStatus`](crate::NoStatus) when there are none. The host's are merged in.
    type Status: JsonSchema;

    /// Names, columns, subresources and rules.
    const CRD: Crd;
}

/// A root whose definition can be generated: an [`Object`] whose spec is a [`CustomResource`].
pub trait Root {
    /// The spec.
    type Spec: CustomResource;
}

impl<Spec: CustomResource, Status: Default + DeserializeOwned> Root for Object<Spec, Status> {
    type Spec = Spec;
}

/// Names, columns, subresources and rules of a custom resource.
#[derive(Clone, Copy, Debug)]
pub struct Crd {
    /// The name in URLs: `webservers`.
    pub plural: &'static str,
    /// The singular name that kubectl accepts: `webserver`.
    pub singular: &'static str,
    /// Short names for kubectl: `ws`.
    pub short_names: &'static [&'static str],
    /// Categories for kubectl: `all`.
    pub categories: &'static [&'static str],
    /// Whether the roots are cluster-scoped.
    pub cluster_scope: bool,
    /// What `kubectl get` prints after the name.
    pub columns: &'static [Column],
    /// The scale subresource, for `kubectl scale` and autoscalers. The status subresource always exists.
    pub scale: Option<Scale>,
    /// CEL rules, for what the types cannot express.
    pub rules: &'static [Rule],
}

impl Crd {
    /// An empty definition, for the rest of a `const`: `Crd { plural: "webservers", ..Crd::EMPTY }`.
    pub const EMPTY: Self = Self {
        plural: "",
        singular: "",
        short_names: &[],
        categories: &[],
        cluster_scope: false,
        columns: &[],
        scale: None,
        rules: &[],
    };
}

/// A column of `kubectl get`.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub(super) name: &'static str,
    pub(super) r#type: &'static str,
    pub(super) json_path: &'static str,
    pub(super) wide: bool,
}

impl Column {
    /// A column of text.
    pub const fn string(name: &'static str, json_path: &'static str) -> Self {
        Self { name, r#type: "string", json_path, wide: false }
    }

    /// A column of whole numbers.
    pub const fn integer(name: &'static str, json_path: &'static str) -> Self {
        Self { r#type: "integer", ..Self::string(name, json_path) }
    }

    /// A column of times, printed as the age.
    pub const fn date(name: &'static str, json_path: &'static str) -> Self {
        Self { r#type: "date", ..Self::string(name, json_path) }
    }

    /// The same column, printed only by `kubectl get -o wide`.
    #[must_use]
    pub const fn wide(mut self) -> Self {
        self.wide = true;
        self
    }
}

/// The scale subresource: where the counts are, as JSON paths from the root.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Where the desired number is: `.spec.replicas`.
    pub spec_replicas: &'static str,
    /// Where the current number is: `.status.replicas`.
    pub status_replicas: &'static str,
    /// Where the selector of the Pods is, as text. Autoscalers need it.
    pub label_selector: Option<&'static str>,
}

/// A CEL rule of the API server.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    pub(super) path: &'static str,
    pub(super) rule: &'static str,
    pub(super) message: &'static str,
    pub(super) field: Option<&'static str>,
}

impl Rule {
    /// A rule on the field at a path, which is `self` in the rule: `spec.source`, or `spec.subDomains[]` for every item. An empty path
    /// means the root; the rule then sees `spec`, `status`, and only the name of the metadata.
    pub const fn new(path: &'static str, rule: &'static str, message: &'static str) -> Self {
        Self { path, rule, message, field: None }
    }

    /// The same rule, reported for a field below its path: `.baseUrl`. The schema must have the field, so it cannot be one of the metadata.
    #[must_use]
    pub const fn field(mut self, field: &'static str) -> Self {
        self.field = Some(field);
        self
    }
}
