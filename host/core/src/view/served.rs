//! [`Served`]: what a View serves; and [`Lens`], which is all that mapping a request or an answer needs to know.

use std::{collections::BTreeMap, fmt};

use pintle_wit::{
    Failure, Kind,
    views::{Column, Shown, ViewManifest},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    cut::BackingObject,
    metadata::last_applied_key,
    names::{Names, Prefix},
    uid::UidMask,
    unshowable::Unshowable,
    version::Epoch,
};
use crate::reasons;

/// What a View serves: all that discovery, OpenAPI, names, columns and metadata need. The View's status keeps it, so that those are
/// answered without a guest and without its module.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Served {
    /// Group and version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The resource.
    pub plural: String,
    /// The kind in lower case, for the command line.
    pub singular: String,
    /// The kind of a list.
    pub list_kind: String,
    /// Short names for the command line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub short_names: Vec<String>,
    /// Groups of resources that it belongs to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
    /// What may be done with it, besides what RBAC says.
    pub verbs: Vec<Verb>,
    /// The columns between name and age.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "any_list")]
    pub columns: Vec<Column>,
    /// The structural schema of an object, without `apiVersion`, `kind` and `metadata`.
    #[schemars(schema_with = "any_object")]
    pub schema: Value,
    /// What stands before the backing object's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    /// Labels that an object of the backing kind must have to be shown.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub selector: BTreeMap<String, String>,
    /// The kind of the objects that are shown, as the API server stores them.
    pub backing: Backing,
    /// The fields of the backing kind that the guest reads.
    pub reads: Vec<String>,
    /// The fields of the backing kind that a write may set. None: the view is read-only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<String>,
    /// The path of documents in plain JSON: `darkrooms`. Then there is no kind, and the plural is the path. Empty: objects are served.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rest: String,
    /// Where the fields of a document stand in the backing object.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub paths: BTreeMap<String, String>,
}

/// A backing kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Backing {
    /// Group and version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The resource.
    pub plural: String,
    /// Whether its objects live in namespaces; and with them, the objects that are shown.
    pub namespaced: bool,
}

/// What may be done with the objects of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// Create an object.
    Create,
    /// Delete an object.
    Delete,
    /// Delete the objects that selectors choose.
    DeleteCollection,
    /// Read an object.
    Get,
    /// Read the objects that selectors choose.
    List,
    /// Change some fields of an object.
    Patch,
    /// Replace an object.
    Update,
    /// Follow the changes of objects.
    Watch,
}

/// Who may use a view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Access {
    /// Whoever may use both the view and the backing kind. The backing kind is asked in the caller's name.
    #[default]
    ViewAndBacking,
    /// Whoever may use the view. The backing kind is private: the gateway's own account asks.
    View,
}

/// All that mapping a request or an answer needs to know of a View.
#[derive(Clone, Debug)]
pub struct Lens {
    /// The name of the View.
    pub view: String,
    /// What it serves.
    pub served: Served,
    /// Who may use it.
    pub access: Access,
    /// The annotations that pass under [`Access::View`].
    pub annotations: Vec<String>,
    /// What lists and watches do about objects that cannot be shown.
    pub unshowable: Unshowable,
    /// What distinguishes what it shows now from what another module, config or selector made of the same objects.
    pub epoch: Epoch,
    /// How names are mapped.
    pub names: Names,
    /// How uids are mapped.
    pub mask: UidMask,
    /// The annotation in which the backing object has the view's copy of itself for kubectl.
    pub last_applied: String,
}

impl Served {
    /// What a guest declares, for a backing kind that the API server serves as `backing`. Documents have the name of their view, until
    /// [`Self::at_path`] says where they are.
    pub fn of(manifest: &ViewManifest, backing: Backing, verbs: Vec<Verb>) -> Self {
        let of_documents = || Shown { plural: manifest.name.clone(), ..Shown::default() };
        let shown = manifest.shown.clone().unwrap_or_else(of_documents);
        let is_object = manifest.shown.is_some();
        Self {
            list_kind: if is_object { shown.list_kind() } else { String::new() },
            api_version: shown.api_version,
            kind: shown.kind,
            plural: shown.plural,
            singular: shown.singular,
            short_names: shown.short_names,
            categories: shown.categories,
            verbs,
            columns: shown.columns,
            schema: manifest.schema().cloned().unwrap_or_default(),
            rest: if is_object { String::new() } else { manifest.name.clone() },
            paths: manifest.document.as_ref().map(|document| document.paths.clone()).unwrap_or_default(),
            prefix: manifest.prefix.clone(),
            selector: manifest.selector.clone(),
            backing,
            reads: manifest.reads.clone(),
            writes: manifest.writes.clone(),
        }
    }

    /// The same documents, at this path.
    #[must_use]
    pub fn at_path(mut self, path: &str) -> Self {
        self.plural = path.to_owned();
        self.rest = path.to_owned();
        self
    }

    /// Whether documents are served, and not objects.
    pub fn is_of_documents(&self) -> bool {
        !self.rest.is_empty()
    }

    /// The kind.
    pub fn kind(&self) -> Kind {
        Kind::new(&self.api_version, &self.kind)
    }

    /// The group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The version.
    pub fn version(&self) -> &str {
        self.api_version.rsplit('/').next().unwrap_or_default()
    }

    /// The resource with its group, as error messages name it: `llamas.farm.example.com`.
    pub fn qualified(&self) -> String {
        format!("{}.{}", self.plural, self.group())
    }

    /// The name of the APIService of its group and version.
    pub fn api_service(&self) -> String {
        format!("{}.{}", self.version(), self.group())
    }

    /// Whether objects can be created and changed.
    pub fn is_writable(&self) -> bool {
        !self.writes.is_empty()
    }

    /// Whether this may be done with its objects.
    pub fn allows(&self, verb: Verb) -> bool {
        self.verbs.contains(&verb)
    }
}

impl Backing {
    /// The kind.
    pub fn kind(&self) -> Kind {
        Kind::new(&self.api_version, &self.kind)
    }

    /// The path of its objects: of all, of a namespace, or of one object.
    pub fn path(&self, namespace: Option<&str>, name: Option<&str>) -> String {
        let root = if self.api_version.contains('/') { "apis" } else { "api" };
        let mut path = format!("/{root}/{}", self.api_version);
        if let Some(namespace) = namespace {
            path.push_str(&format!("/namespaces/{namespace}"));
        }
        path.push_str(&format!("/{}", self.plural));
        if let Some(name) = name {
            path.push_str(&format!("/{name}"));
        }
        path
    }
}

impl Verb {
    /// Every verb, in the order in which discovery lists them.
    pub const ALL: [Self; 8] = [
        Self::Create,
        Self::Delete,
        Self::DeleteCollection,
        Self::Get,
        Self::List,
        Self::Patch,
        Self::Update,
        Self::Watch,
    ];

    /// The verb as RBAC writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Get => "get",
            Self::List => "list",
            Self::Patch => "patch",
            Self::Update => "update",
            Self::Watch => "watch",
        }
    }

    /// Whether the fields that the guest stores change by it. A read-only view has no such verb.
    pub fn needs_store(self) -> bool {
        matches!(self, Self::Create | Self::Patch | Self::Update)
    }

    /// Whether nothing changes by it.
    pub fn is_read(self) -> bool {
        matches!(self, Self::Get | Self::List | Self::Watch)
    }

    /// What may be done with the objects of a view: what the View names (`wanted`), or else all that the view can do. Sorted, each once.
    ///
    /// # Errors
    /// `VerbUnsupported` if the view is read-only and the View names a verb that writes.
    pub fn of_view(wanted: &[Self], manifest: &ViewManifest) -> Result<Vec<Self>, Failure> {
        // What is not written by a view is not deleted through it either, unless the View says so.
        let default = |verb: &Self| manifest.is_writable() || verb.is_read();
        let mut verbs: Vec<Self> = match wanted.is_empty() {
            true => Self::ALL.into_iter().filter(default).collect(),
            false => wanted.to_vec(),
        };
        verbs.sort_unstable();
        verbs.dedup();
        match verbs.iter().find(|verb| verb.needs_store() && !manifest.is_writable()) {
            None => Ok(verbs),
            Some(verb) => {
                let message = format!("view {} is read-only, so that it has no {verb}", manifest.name);
                Err(Failure::terminal(reasons::VERB_UNSUPPORTED, message).at("spec.verbs"))
            }
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Lens {
    /// Whether the view shows an object of the backing kind: whether it has the labels of the selector.
    pub fn selects(&self, object: &BackingObject) -> bool {
        let label = |key: &String| object.metadata.get("labels")?.get(key)?.as_str();
        self.served.selector.iter().all(|(key, value)| label(key) == Some(value))
    }

    /// A lens of the View of this name.
    pub fn new(view: &str, served: Served, access: Access, annotations: Vec<String>, epoch: Epoch) -> Self {
        let names = Names { prefix: Prefix::new(&served.prefix) };
        let mask = UidMask::of(served.group(), &served.plural);
        let last_applied = last_applied_key(served.group(), &served.plural);
        let unshowable = Unshowable::default();
        Self {
            view: view.to_owned(),
            served,
            access,
            annotations,
            unshowable,
            epoch,
            names,
            mask,
            last_applied,
        }
    }

    /// The same of a View that says this about objects that cannot be shown.
    #[must_use]
    pub fn with_unshowable(self, unshowable: Unshowable) -> Self {
        Self { unshowable, ..self }
    }
}

fn any_object(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

fn any_list(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}})
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_backing_kind_is_asked_at_the_path_that_the_api_server_serves_it_at() {
        let pods = Backing { api_version: "v1".into(), plural: "pods".into(), ..Backing::default() };
        assert_eq!(pods.path(None, None), "/api/v1/pods");
        assert_eq!(pods.path(Some("a"), Some("b")), "/api/v1/namespaces/a/pods/b");
        let records = Backing {
            api_version: "store.farm.example.com/v1".into(),
            plural: "llamarecords".into(),
            ..Backing::default()
        };
        assert_eq!(
            records.path(Some("a"), None),
            "/apis/store.farm.example.com/v1/namespaces/a/llamarecords"
        );
    }

    #[test]
    fn a_view_shows_what_has_every_label_of_its_selector_with_its_value() {
        let selector = [("a".to_owned(), "x".to_owned()), ("b".to_owned(), String::new())].into();
        let served = Served { selector, ..Served::default() };
        let lens = Lens::new("a", served, Access::View, Vec::new(), Epoch::default());
        let selects = |labels: Value| {
            let mut object = BackingObject::default();
            object.metadata.insert("labels".into(), labels);
            lens.selects(&object)
        };
        assert!(selects(json!({"a": "x", "b": "", "c": "z"})));
        for labels in [
            json!(null),
            json!({}),
            json!({"a": "x"}),
            json!({"a": "x", "b": "y"}),
            json!({"a": "y", "b": ""}),
        ] {
            assert!(!selects(labels.clone()), "{labels}");
        }
    }

    #[test]
    fn a_resource_is_named_with_its_group() {
        let served = Served {
            api_version: "farm.example.com/v1alpha".into(),
            plural: "llamas".into(),
            ..Served::default()
        };
        assert_eq!((served.group(), served.version()), ("farm.example.com", "v1alpha"));
        assert_eq!(served.qualified(), "llamas.farm.example.com");
        assert_eq!(served.api_service(), "v1alpha.farm.example.com");
    }

    #[test]
    fn a_read_only_view_has_no_verb_that_writes() {
        let shown = Shown::new("farm.example.com/v1alpha", "Llama", "llamas");
        let read_only = ViewManifest::new(Kind::new("a/v1", "A"), &["spec"], shown);
        let writable = read_only.clone().writing(&["spec"]);
        assert_eq!(Verb::of_view(&[], &read_only), Ok(vec![Verb::Get, Verb::List, Verb::Watch]));
        assert_eq!(Verb::of_view(&[], &writable), Ok(Verb::ALL.to_vec()));
        let named = [Verb::Watch, Verb::Get, Verb::Get];
        assert_eq!(Verb::of_view(&named, &read_only), Ok(vec![Verb::Get, Verb::Watch]));
        let refused = Verb::of_view(&[Verb::Get, Verb::Patch], &read_only).unwrap_err();
        assert_eq!(
            (refused.reason.as_str(), refused.path.as_deref()),
            (reasons::VERB_UNSUPPORTED, Some("spec.verbs"))
        );
    }

    #[test]
    fn documents_are_named_by_their_path_and_have_no_kind() {
        let manifest =
            ViewManifest::of_documents(Kind::new("a/v1", "A"), &["spec"], &[("", "spec")]).writing(&["spec"]);
        let served = Served::of(&manifest, Backing::default(), Verb::ALL.to_vec()).at_path("things");
        assert!(served.is_of_documents() && served.is_writable());
        assert_eq!(
            (served.plural.as_str(), served.kind.as_str(), served.list_kind.as_str()),
            ("things", "", "")
        );
        assert_eq!(served.paths[""], "spec");
    }

    #[test]
    fn verbs_are_written_as_rbac_writes_them() {
        for verb in Verb::ALL {
            assert_eq!(serde_json::to_value(verb).unwrap(), verb.name());
        }
        assert!(Verb::ALL.is_sorted_by_key(|verb| verb.name()));
    }
}
