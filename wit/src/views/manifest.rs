//! [`ViewsManifest`]: what a guest declares about its views, and how much it may declare.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    ApiVersion, Failure, Kind,
    manifest::{at_most, check_guest, check_kind, cut, paths},
    reasons, strict, syntax,
};

/// How much a manifest of views may declare, besides the limits that all manifests have.
pub mod limits {
    /// The most views of a guest.
    pub const VIEWS: usize = 16;
    /// The most columns of a view. A terminal shows some ten.
    pub const COLUMNS: usize = 32;
    /// The most fields that a view reads, and likewise that it writes.
    pub const FIELDS: usize = 64;
    /// The most labels of a view's selector, and likewise its short names and categories.
    pub const NAMES: usize = 16;
    /// The longest prefix of names, in bytes. A name of a Kubernetes object has at most 253.
    pub const PREFIX_BYTES: usize = 63;
}

/// The parts of the metadata that a view sees only if its `reads` name them.
pub const METADATA_READ: [&str; 2] = ["metadata.labels", "metadata.annotations"];

/// What a guest declares about its views, in answer to `describe-views`.
///
/// A manifest declares; it serves nothing. A View says what is served, and to whom.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ViewsManifest {
    /// `guest.pintle.dev/v1`.
    pub api_version: ApiVersion,
    /// The guest's name: a DNS label, for instance `farm`.
    pub name: String,
    /// The guest's own version, for instance `0.1.0`.
    pub version: String,
    /// Structural schema of the `config` that a View may have. Without it, no config is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "strict::some")]
    pub config_schema: Option<Value>,
    /// The views. Each has another name.
    pub views: Vec<ViewManifest>,
}

/// One view of a guest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ViewManifest {
    /// The view's name: a DNS label, unique within the guest.
    pub name: String,
    /// The kind of the objects that are shown, as the API server stores them.
    pub backing: Kind,
    /// Labels that an object of the backing kind must have to be shown. They are set when an object of the view is created, and cannot be
    /// taken away through the view.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "strict::texts")]
    pub selector: BTreeMap<String, String>,
    /// The paths of the fields that `show` reads: `spec.containers`. Objects are cut to them, besides `apiVersion`, `kind` and the short
    /// fields of `metadata`. Of the metadata, `metadata.labels` and `metadata.annotations` may be named, and are left out otherwise: there
    /// can be more than a mebibyte of them.
    pub reads: Vec<String>,
    /// The paths of the fields that `store` may set: `spec`. None is within another. Without any, the view is read-only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<String>,
    /// What stands before the backing object's name in the name that is shown: `farm-`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    /// What is shown as an object of Kubernetes. Either this or `document`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Shown>,
    /// What is shown as a document in plain JSON. Either this or `shown`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<Document>,
}

/// A document that a view shows: fields of the guest, beside which the host puts the object's name, namespace, version and times
/// ([`Document::OF_THE_HOST`]).
///
/// A field that the schema marks `readOnly` is shown and never written: what somebody writes there is left out before `store` is asked. One
/// that it marks `writeOnly` is written and never shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Document {
    /// The structural schema of the guest's fields.
    #[serde(deserialize_with = "strict::value")]
    pub schema: Value,
    /// Where the fields of the document stand in the object of the backing kind, so that what is wrong with one is told with the same path
    /// as through Kubernetes: `{"": "spec", "cacheTTL": "spec.cache.ttlSeconds"}`. The longest path counts; the empty one is all others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "strict::texts")]
    pub paths: BTreeMap<String, String>,
}

/// The kind of the objects that a view shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Shown {
    /// Group and version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The resource: the kind's plural in lower case.
    pub plural: String,
    /// The kind in lower case, for the command line.
    pub singular: String,
    /// The kind of a list; `<kind>List` when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_kind: Option<String>,
    /// Short names for the command line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub short_names: Vec<String>,
    /// Groups of resources that it belongs to: `all`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
    /// The structural schema of the shown object, as a CRD has it, without `apiVersion`, `kind` and `metadata`.
    #[serde(deserialize_with = "strict::value")]
    pub schema: Value,
    /// The columns that `kubectl get` shows between name and age.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<Column>,
}

/// A column that `kubectl get` shows, as `additionalPrinterColumns` of a CRD.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Column {
    /// The head of the column.
    pub name: String,
    /// The type of its cells.
    pub r#type: ColumnType,
    /// The path of the field that it shows, of names, indexes and filters: `.spec.weights[0]`, `.status.conditions[?(@.type=="Ready")].status`.
    pub json_path: String,
    /// For people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Above 0, the column is shown by `-o wide` alone.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: u32,
}

fn is_zero(priority: &u32) -> bool {
    *priority == 0
}

/// The type of a column's cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ColumnType {
    /// Text.
    #[default]
    String,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// A time in RFC 3339, shown as an age.
    Date,
}

impl Shown {
    /// A kind with this plural. Its singular is the kind in lower case, and its schema is left out.
    pub fn new(api_version: impl Into<String>, kind: impl Into<String>, plural: impl Into<String>) -> Self {
        let kind = kind.into();
        let (singular, plural) = (kind.to_ascii_lowercase(), plural.into());
        Self { api_version: api_version.into(), kind, plural, singular, ..Self::default() }
    }

    /// The kind.
    pub fn kind(&self) -> Kind {
        Kind::new(&self.api_version, &self.kind)
    }

    /// The kind of a list.
    pub fn list_kind(&self) -> String {
        self.list_kind.clone().unwrap_or_else(|| format!("{}List", self.kind))
    }
}

impl Column {
    /// A column of this type that shows the field at this path: `.spec.weight`.
    pub fn new(name: impl Into<String>, r#type: ColumnType, json_path: impl Into<String>) -> Self {
        Self { name: name.into(), r#type, json_path: json_path.into(), ..Self::default() }
    }
}

impl ViewManifest {
    /// A read-only view of this backing kind, which reads these fields.
    pub fn new(backing: Kind, reads: &[&str], shown: Shown) -> Self {
        let reads = reads.iter().map(|path| (*path).to_owned()).collect();
        Self { backing, reads, shown: Some(shown), ..Self::default() }
    }

    /// A read-only view that shows objects of this backing kind as documents, and reads these fields. `paths` says where the fields of a
    /// document stand in the object: `[("", "spec")]`.
    pub fn of_documents(backing: Kind, reads: &[&str], paths: &[(&str, &str)]) -> Self {
        let reads = reads.iter().map(|path| (*path).to_owned()).collect();
        let paths = paths.iter().map(|(own, backing)| ((*own).to_owned(), (*backing).to_owned())).collect();
        let document = Document { paths, ..Document::default() };
        Self { backing, reads, document: Some(document), ..Self::default() }
    }

    /// The schema of what is shown: of the object, or of the document.
    pub fn schema(&self) -> Option<&Value> {
        match (&self.shown, &self.document) {
            (Some(shown), _) => Some(&shown.schema),
            (None, document) => document.as_ref().map(|document| &document.schema),
        }
    }

    /// The same, to be set.
    pub fn schema_mut(&mut self) -> Option<&mut Value> {
        match (&mut self.shown, &mut self.document) {
            (Some(shown), _) => Some(&mut shown.schema),
            (None, document) => document.as_mut().map(|document| &mut document.schema),
        }
    }

    /// The same view, writable: `store` may set these fields of the backing kind.
    #[must_use]
    pub fn writing(mut self, writes: &[&str]) -> Self {
        self.writes = writes.iter().map(|path| (*path).to_owned()).collect();
        self
    }

    /// The fields of what is shown that are the host's: `show` answers without them.
    pub fn of_the_host(&self) -> &'static [&'static str] {
        match self.document {
            Some(_) => &Document::OF_THE_HOST,
            None => &["apiVersion", "kind", "metadata"],
        }
    }

    /// Whether objects of the view can be written.
    pub fn is_writable(&self) -> bool {
        !self.writes.is_empty()
    }
}

impl ViewsManifest {
    /// The view of this name.
    pub fn view(&self, name: &str) -> Option<&ViewManifest> {
        self.views.iter().find(|view| view.name == name)
    }

    /// Checks that the manifest declares no more than a host accepts, and that its names are valid.
    ///
    /// # Errors
    /// `ManifestTooLarge` or `InvalidDocument`, with the path of the field.
    pub fn check(&self) -> Result<(), Failure> {
        check_guest(&self.name, &self.version)?;
        at_most(limits::VIEWS, self.views.len(), "views", "views")?;
        if self.views.is_empty() {
            return Err(invalid("a guest of views has at least one".into(), "views"));
        }
        for (index, view) in self.views.iter().enumerate() {
            if self.views.iter().take(index).any(|other| other.name == view.name) {
                let message = format!("two views have the name {}", cut(&view.name));
                return Err(invalid(message, &format!("views[{index}].name")));
            }
            view.check(&format!("views[{index}]"))?;
        }
        Ok(())
    }
}

fn invalid(message: String, at: &str) -> Failure {
    Failure::terminal(reasons::INVALID_DOCUMENT, message).at(at)
}

impl ViewManifest {
    fn check(&self, at: &str) -> Result<(), Failure> {
        if !syntax::is_label(&self.name) {
            return Err(invalid(format!("{} is no DNS label", cut(&self.name)), &format!("{at}.name")));
        }
        check_kind(&self.backing.api_version, &self.backing.kind, &format!("{at}.backing"))?;
        at_most(limits::NAMES, self.selector.len(), "labels", &format!("{at}.selector"))?;
        at_most(limits::FIELDS, self.reads.len(), "fields", &format!("{at}.reads"))?;
        at_most(limits::FIELDS, self.writes.len(), "fields", &format!("{at}.writes"))?;
        paths(&self.reads, false, &format!("{at}.reads"))?;
        paths(&self.writes, false, &format!("{at}.writes"))?;
        for (list, name) in [(&self.reads, "reads"), (&self.writes, "writes")] {
            let reserved = |path: &String| {
                let is_the_hosts = path
                    .split('.')
                    .next()
                    .is_some_and(|first| ["apiVersion", "kind", "metadata"].contains(&first));
                is_the_hosts && !(name == "reads" && METADATA_READ.contains(&path.as_str()))
            };
            if let Some(index) = list.iter().position(reserved) {
                let [labels, annotations] = METADATA_READ;
                let message = format!(
                    "apiVersion, kind and metadata are the host's; {labels} and {annotations} can be read"
                );
                return Err(invalid(message, &format!("{at}.{name}[{index}]")));
            }
        }
        distinct(&self.writes, &format!("{at}.writes"))?;
        // What follows the prefix is a name of its own, so that the prefix begins as a name does.
        let is_prefix = self.prefix.is_empty() || syntax::is_subdomain(&format!("{}a", self.prefix));
        if !is_prefix || self.prefix.len() > limits::PREFIX_BYTES {
            let most = limits::PREFIX_BYTES;
            let message = format!("{} is no beginning of a name, of at most {most} bytes", cut(&self.prefix));
            return Err(invalid(message, &format!("{at}.prefix")));
        }
        match (&self.shown, &self.document) {
            (Some(shown), None) => shown.check(&format!("{at}.shown")),
            (None, Some(document)) => document.check(&format!("{at}.document")),
            (Some(_), Some(_)) => {
                let message = "a view shows objects (shown) or documents (document), not both".to_owned();
                Err(invalid(message, &format!("{at}.document")))
            }
            (None, None) => Err(invalid(
                "a view shows objects (shown) or documents (document)".to_owned(),
                &format!("{at}.shown"),
            )),
        }
    }
}

/// Checks that no path leads to or into the field of another: what is taken at both would have two meanings.
fn distinct(paths: &[String], at: &str) -> Result<(), Failure> {
    let is_within = |path: &str, other: &str| {
        path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    for (index, path) in paths.iter().enumerate() {
        let others = paths.iter().take(index);
        if let Some(other) = others.clone().find(|other| is_within(path, other) || is_within(other, path)) {
            let message = format!("{} and {} overlap", cut(path), cut(other));
            return Err(invalid(message, &format!("{at}[{index}]")));
        }
    }
    Ok(())
}

impl Document {
    /// The fields of a document that are the host's.
    pub const OF_THE_HOST: [&str; 5] =
        ["name", "namespace", "resourceVersion", "creationTimestamp", "deletionTimestamp"];

    /// Where a field of the document stands in the object of the backing kind. Items of lists and keys of maps go on as they are.
    pub fn backing_path(&self, path: &str) -> String {
        let rest_of = |own: &str| match path.strip_prefix(own)? {
            rest if own.is_empty() || rest.is_empty() || rest.starts_with(['.', '[']) => Some(rest),
            _ => None,
        };
        let longest = self.paths.iter().filter_map(|(own, backing)| Some((own, backing, rest_of(own)?)));
        match longest.max_by_key(|(own, ..)| own.len()) {
            Some((_, backing, "")) => backing.clone(),
            Some((_, backing, rest)) if rest.starts_with(['.', '[']) => format!("{backing}{rest}"),
            Some((_, backing, rest)) => format!("{backing}.{rest}"),
            None => path.to_owned(),
        }
    }

    fn check(&self, at: &str) -> Result<(), Failure> {
        if self.schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err(invalid("the schema is that of an object".into(), &format!("{at}.schema")));
        }
        for name in Self::OF_THE_HOST {
            if self.schema.pointer(&format!("/properties/{name}")).is_some() {
                let message = format!("{name} is the host's");
                return Err(invalid(message, &format!("{at}.schema.properties.{name}")));
            }
        }
        at_most(limits::FIELDS, self.paths.len(), "paths", &format!("{at}.paths"))?;
        let is_path = |path: &str| !path.is_empty() && path.split('.').all(|step| !step.is_empty());
        for (own, backing) in &self.paths {
            if !(own.is_empty() || is_path(own)) || !is_path(backing) {
                let message = "a path is made of names with dots between them".to_owned();
                let own: String = own.chars().take(80).collect();
                return Err(invalid(message, &format!("{at}.paths.{own}")));
            }
        }
        Ok(())
    }
}

impl Shown {
    fn check(&self, at: &str) -> Result<(), Failure> {
        check_kind(&self.api_version, &self.kind, at)?;
        if self.kind().group().is_empty() {
            let message = "a view has a group of its own: the core group is the API server's".to_owned();
            return Err(invalid(message, &format!("{at}.apiVersion")));
        }
        let name = |name: &str, at: String| match syntax::is_rfc_1035_label(name) {
            true => Ok(()),
            false => Err(invalid(format!("{} is no lower-case DNS label", cut(name)), &at)),
        };
        name(&self.plural, format!("{at}.plural"))?;
        name(&self.singular, format!("{at}.singular"))?;
        for (names, field) in [(&self.short_names, "shortNames"), (&self.categories, "categories")] {
            at_most(limits::NAMES, names.len(), "names", &format!("{at}.{field}"))?;
            for (index, one) in names.iter().enumerate() {
                name(one, format!("{at}.{field}[{index}]"))?;
            }
        }
        if self.schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err(invalid("the schema is that of an object".into(), &format!("{at}.schema")));
        }
        at_most(limits::COLUMNS, self.columns.len(), "columns", &format!("{at}.columns"))?;
        for (index, column) in self.columns.iter().enumerate() {
            if column.name.is_empty() || !column.json_path.starts_with('.') {
                let message = "a column has a name, and a path that begins with '.'".to_owned();
                return Err(invalid(message, &format!("{at}.columns[{index}]")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn farm() -> ViewsManifest {
        ViewsManifest {
            name: "farm".into(),
            version: "0.1.0".into(),
            views: vec![ViewManifest {
                name: "farmpods".into(),
                backing: Kind::new("v1", "Pod"),
                reads: vec!["spec.containers".into()],
                prefix: "farm-".into(),
                shown: Some(Shown {
                    api_version: "farm.example.com/v1alpha".into(),
                    kind: "FarmPod".into(),
                    plural: "farmpods".into(),
                    singular: "farmpod".into(),
                    schema: json!({"type": "object"}),
                    ..Shown::default()
                }),
                ..ViewManifest::default()
            }],
            ..ViewsManifest::default()
        }
    }

    #[test]
    fn what_is_no_name_no_path_or_too_much_is_refused_with_its_place() {
        assert_eq!(farm().check(), Ok(()));
        let refused = |change: &dyn Fn(&mut ViewManifest)| {
            let mut manifest = farm();
            change(&mut manifest.views[0]);
            let failure = manifest.check().expect_err("refused");
            (failure.reason, failure.path.unwrap_or_default())
        };
        let invalid = |at: &str| (reasons::INVALID_DOCUMENT.to_owned(), at.to_owned());
        assert_eq!(refused(&|view| view.name = "Farm Pods".into()), invalid("views[0].name"));
        assert_eq!(refused(&|view| view.prefix = "Farm".into()), invalid("views[0].prefix"));
        assert_eq!(refused(&|view| view.reads = vec!["metadata.uid".into()]), invalid("views[0].reads[0]"));
        assert_eq!(refused(&|view| view.reads = vec!["metadata".into()]), invalid("views[0].reads[0]"));
        assert_eq!(
            refused(&|view| view.writes = vec!["metadata.labels".into()]),
            invalid("views[0].writes[0]")
        );
        assert_eq!(refused(&|view| view.writes = vec!["kind".into()]), invalid("views[0].writes[0]"));
        let writes = |paths: &'static [&str]| {
            move |view: &mut ViewManifest| view.writes = paths.iter().map(|&path| path.to_owned()).collect()
        };
        assert_eq!(refused(&writes(&["spec", "spec.a"])), invalid("views[0].writes[1]"));
        assert_eq!(refused(&writes(&["data", "spec.a.b", "spec.a"])), invalid("views[0].writes[2]"));
        assert_eq!(refused(&writes(&["data", "data"])), invalid("views[0].writes[1]"));
        let mut neighbours = farm();
        writes(&["spec.a", "spec.ab", "data"])(&mut neighbours.views[0]);
        assert_eq!(neighbours.check(), Ok(()));
        let shown = |change: &dyn Fn(&mut Shown)| refused(&|view| change(view.shown.as_mut().unwrap()));
        assert_eq!(shown(&|shown| shown.api_version = "v1".into()), invalid("views[0].shown.apiVersion"));
        assert_eq!(shown(&|shown| shown.plural = "FarmPods".into()), invalid("views[0].shown.plural"));
        assert_eq!(shown(&|shown| shown.schema = json!({})), invalid("views[0].shown.schema"));
        assert_eq!(
            shown(&|shown| shown.columns = vec![Column::default()]),
            invalid("views[0].shown.columns[0]")
        );
        let too_large = (reasons::MANIFEST_TOO_LARGE.to_owned(), "views[0].reads".to_owned());
        assert_eq!(refused(&|view| view.reads = vec!["spec".into(); 65]), too_large);
    }

    #[test]
    fn a_view_shows_objects_or_documents_and_a_document_leaves_the_hosts_fields_alone() {
        let check = |change: &dyn Fn(&mut ViewManifest)| {
            let mut manifest = farm();
            manifest.views[0].shown = None;
            change(&mut manifest.views[0]);
            manifest.check().map_err(|failure| failure.path.unwrap_or_default())
        };
        let document = |schema: Value| Some(Document { schema, ..Document::default() });
        let plain = document(json!({"type": "object"}));
        assert_eq!(check(&|view| view.document = plain.clone()), Ok(()));
        assert_eq!(check(&|_| {}), Err("views[0].shown".to_owned()));
        let both = |view: &mut ViewManifest| {
            view.document = plain.clone();
            view.shown = farm().views.remove(0).shown;
        };
        assert_eq!(check(&both), Err("views[0].document".to_owned()));
        assert_eq!(
            check(&|view| view.document = document(json!({}))),
            Err("views[0].document.schema".to_owned())
        );
        let named = json!({"type": "object", "properties": {"namespace": {"type": "string"}}});
        assert_eq!(
            check(&|view| view.document = document(named.clone())),
            Err("views[0].document.schema.properties.namespace".to_owned())
        );
        let pathless = |view: &mut ViewManifest| {
            view.document = plain.clone();
            view.document.as_mut().unwrap().paths = [("a".to_owned(), "spec..a".to_owned())].into();
        };
        assert_eq!(check(&pathless), Err("views[0].document.paths.a".to_owned()));
    }

    #[test]
    fn a_field_of_a_document_is_told_with_the_path_that_kubernetes_has_for_it() {
        let paths = [("", "spec"), ("cacheTTL", "spec.cache.ttlSeconds"), ("status", "status")];
        let view = ViewManifest::of_documents(Kind::new("v1", "ConfigMap"), &["spec"], &paths);
        let document = view.document.unwrap();
        for (own, backing) in [
            ("source.baseUrl", "spec.source.baseUrl"),
            ("subDomains[1]", "spec.subDomains[1]"),
            ("cacheTTL", "spec.cache.ttlSeconds"),
            ("cacheTTLs", "spec.cacheTTLs"),
            ("status.domains[0]", "status.domains[0]"),
            ("", "spec"),
        ] {
            assert_eq!(document.backing_path(own), backing);
        }
        assert_eq!(Document::default().backing_path("spec.a"), "spec.a");
    }

    #[test]
    fn of_the_metadata_a_view_may_read_labels_and_annotations() {
        let mut manifest = farm();
        manifest.views[0].reads.extend(METADATA_READ.map(str::to_owned));
        assert_eq!(manifest.check(), Ok(()));
    }

    #[test]
    fn two_views_have_two_names_and_there_is_at_least_one() {
        let mut manifest = farm();
        manifest.views.push(manifest.views[0].clone());
        assert_eq!(manifest.check().expect_err("refused").path.as_deref(), Some("views[1].name"));
        manifest.views.clear();
        assert_eq!(manifest.check().expect_err("refused").path.as_deref(), Some("views"));
    }

    #[test]
    fn a_list_is_called_after_its_kind_unless_the_view_says_otherwise() {
        let mut shown = farm().views.remove(0).shown.unwrap();
        assert_eq!(shown.list_kind(), "FarmPodList");
        shown.list_kind = Some("FarmPods".into());
        assert_eq!(shown.list_kind(), "FarmPods");
    }
}
