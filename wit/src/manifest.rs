//! [`Manifest`]: what a guest declares about itself, and how much it may declare.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ApiVersion, Failure, Kind, reasons, syntax};

/// How much a manifest may declare. Each limit is about ten times what the largest sample guest has, and a few times what large operators
/// have. Every kind costs the host a watch, and every index costs a look at each object.
pub mod limits {
    /// The largest manifest, in bytes. The status of its Module shows it, and an object in etcd is at most 1.5 MiB.
    pub const BYTES: usize = 256 << 10;
    /// The most kinds of children, and likewise of needs and of patches.
    pub const KINDS: usize = 64;
    /// The most indexes of a kind.
    pub const INDEXES: usize = 8;
    /// The most fields of a kind that is patched.
    pub const FIELDS: usize = 64;
    /// The longest version of a guest, in bytes.
    pub const VERSION_BYTES: usize = 64;
}

/// What a guest declares about itself, in answer to `describe`.
///
/// A manifest declares; it grants nothing. The Reconciler's grants say what the guest may do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Manifest {
    /// `guest.pintle.dev/v1`.
    pub api_version: ApiVersion,
    /// The guest's name: a DNS label, for instance `webserver`.
    pub name: String,
    /// The guest's own version, for instance `0.1.0`.
    pub version: String,
    /// The kind of custom resource that the guest reconciles: the kind of its roots.
    pub reconciles: Kind,
    /// Whether the guest wants to see its own fields of the root's status, which are its only memory. If not, a write of its status does
    /// not cause another call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub observe_status: bool,
    /// Every kind of child that the guest may return.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<ChildKind>,
    /// Every kind of object that the guest may ask to see, besides its root and its children.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<NeedKind>,
    /// Every kind of object that the guest may patch without owning it, with the fields that it may set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patches: Vec<PatchKind>,
    /// Whether the guest may ask for Pods to be evicted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub evictions: bool,
    /// Structural schema of the `config` that a Reconciler may have. Without it, no config is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::strict::some")]
    pub config_schema: Option<Value>,
    /// Whether a deleted root must wait until the guest has answered `finalized`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub finalizer: bool,
}

impl Manifest {
    /// A manifest that declares only the guest's name and version and the kind of its roots.
    pub fn new(name: impl Into<String>, version: impl Into<String>, reconciles: Kind) -> Self {
        Self { name: name.into(), version: version.into(), reconciles, ..Self::default() }
    }

    /// Checks that the manifest declares no more than a host accepts, and that its names are valid.
    ///
    /// # Errors
    /// `ManifestTooLarge` or `InvalidDocument`, with the path of the field.
    pub fn check(&self) -> Result<(), Failure> {
        check_guest(&self.name, &self.version)?;
        check_kind(&self.reconciles.api_version, &self.reconciles.kind, "reconciles")?;
        at_most(limits::KINDS, self.children.len(), "kinds", "children")?;
        at_most(limits::KINDS, self.needs.len(), "kinds", "needs")?;
        at_most(limits::KINDS, self.patches.len(), "kinds", "patches")?;
        for (index, child) in self.children.iter().enumerate() {
            check_kind(&child.api_version, &child.kind, &format!("children[{index}]"))?;
        }
        for (index, need) in self.needs.iter().enumerate() {
            let at = format!("needs[{index}]");
            check_kind(&need.api_version, &need.kind, &at)?;
            at_most(limits::INDEXES, need.indexes.len(), "indexes", &format!("{at}.indexes"))?;
            paths(&need.indexes, true, &format!("{at}.indexes"))?;
        }
        for (index, patch) in self.patches.iter().enumerate() {
            let at = format!("patches[{index}]");
            check_kind(&patch.api_version, &patch.kind, &at)?;
            at_most(limits::FIELDS, patch.fields.len(), "fields", &format!("{at}.fields"))?;
            paths(&patch.fields, false, &format!("{at}.fields"))?;
        }
        Ok(())
    }
}

/// Checks the name and the version of a guest.
pub(crate) fn check_guest(name: &str, version: &str) -> Result<(), Failure> {
    let invalid =
        |message: String, at: &str| Err(Failure::terminal(reasons::INVALID_DOCUMENT, message).at(at));
    if !syntax::is_label(name) {
        let message = format!("the name of a guest is a DNS label, at most 63 characters: {}", cut(name));
        return invalid(message, "name");
    }
    let is_sign = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '.' | '-' | '+' | '_');
    if version.is_empty() || version.len() > limits::VERSION_BYTES || !version.chars().all(is_sign) {
        let most = limits::VERSION_BYTES;
        let message = format!("a version is at most {most} letters, digits, '.', '-', '+' and '_'");
        return invalid(message, "version");
    }
    Ok(())
}

/// Checks the names of a kind.
pub(crate) fn check_kind(api_version: &str, kind: &str, at: &str) -> Result<(), Failure> {
    let invalid =
        |message: String, at: String| Err(Failure::terminal(reasons::INVALID_DOCUMENT, message).at(at));
    if !syntax::is_api_version(api_version) {
        let message = format!("{} is no group and version, as apps/v1 or v1", cut(api_version));
        return invalid(message, format!("{at}.apiVersion"));
    }
    if !syntax::is_kind(kind) {
        return invalid(format!("{} is no kind", cut(kind)), format!("{at}.kind"));
    }
    Ok(())
}

pub(crate) fn at_most(limit: usize, found: usize, what: &str, at: &str) -> Result<(), Failure> {
    if found <= limit {
        return Ok(());
    }
    let message = format!("the manifest declares {found} {what}, the limit is {limit}");
    Err(Failure::terminal(reasons::MANIFEST_TOO_LARGE, message).at(at))
}

/// Checks that these are paths of fields. With `through_lists`, a step may stand for each element of a list.
pub(crate) fn paths(paths: &[String], through_lists: bool, at: &str) -> Result<(), Failure> {
    for (index, path) in paths.iter().enumerate() {
        let at = format!("{at}[{index}]");
        if let Some(message) = syntax::path_excess(path) {
            return Err(Failure::terminal(reasons::MANIFEST_TOO_LARGE, message).at(at));
        }
        let is_step = |step: &str| {
            let step = step.strip_suffix("[]").filter(|_| through_lists).unwrap_or(step);
            !step.is_empty() && !step.contains(['[', ']'])
        };
        if !path.split('.').all(is_step) {
            let message = format!("{path:?} is no path of a field");
            return Err(Failure::terminal(reasons::INVALID_DOCUMENT, message).at(at));
        }
    }
    Ok(())
}

/// The beginning of a text, quoted, because a guest may have written a very long one.
pub(crate) fn cut(text: &str) -> String {
    let begin: String = text.chars().take(80).collect();
    let more = if begin.len() < text.len() { "..." } else { "" };
    format!("{begin:?}{more}")
}

/// A kind of child.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChildKind {
    /// Group and version of the kind.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// Whether the guest wants to see the children of this kind as they are in the cluster. A kind that is not observed costs less memory,
    /// and its changes do not cause a call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub observe: bool,
}

impl ChildKind {
    /// A kind of child that the guest does not observe.
    pub fn new(api_version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { api_version: api_version.into(), kind: kind.into(), observe: false }
    }

    /// The same kind, observed.
    #[must_use]
    pub fn observed(mut self) -> Self {
        self.observe = true;
        self
    }

    /// The kind alone, without `observe`.
    pub fn kind(&self) -> Kind {
        Kind::new(&self.api_version, &self.kind)
    }
}

/// A kind of object that a guest may ask to see.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NeedKind {
    /// Group and version of the kind.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// Field paths that the host must index, so that the guest can ask for objects by the value: `spec.rules[].host`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub indexes: Vec<String>,
}

impl NeedKind {
    /// A kind that the guest asks for by name or by labels.
    pub fn new(api_version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { api_version: api_version.into(), kind: kind.into(), indexes: Vec::new() }
    }

    /// The same kind, which the guest also asks for by the value of this field.
    #[must_use]
    pub fn indexed_by(mut self, path: impl Into<String>) -> Self {
        self.indexes.push(path.into());
        self
    }
}

/// A kind of object that a guest may patch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PatchKind {
    /// Group and version of the kind.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The field paths that the guest may set: `spec.template.metadata.annotations`.
    pub fields: Vec<String>,
}

impl PatchKind {
    /// A kind with the fields that the guest may set.
    pub fn new(api_version: impl Into<String>, kind: impl Into<String>, fields: &[&str]) -> Self {
        Self {
            api_version: api_version.into(),
            kind: kind.into(),
            fields: fields.iter().map(|&field| field.to_owned()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl Fn(&mut Manifest)) -> (String, String) {
        let mut manifest = Manifest::new("shop", "0.1.0", Kind::new("example.com/v1", "Shop"));
        assert_eq!(manifest.check(), Ok(()));
        change(&mut manifest);
        let failure = manifest.check().expect_err("refused");
        assert!(!failure.retry && failure.message.len() < 500, "{failure}");
        (failure.reason, failure.path.unwrap_or_default())
    }

    fn too_large(at: &str) -> (String, String) {
        (reasons::MANIFEST_TOO_LARGE.into(), at.into())
    }

    fn invalid(at: &str) -> (String, String) {
        (reasons::INVALID_DOCUMENT.into(), at.into())
    }

    #[test]
    fn a_manifest_that_declares_more_than_a_host_takes_is_refused_by_name() {
        let child = || ChildKind::new("v1", "ConfigMap");
        assert_eq!(refused(|m| m.children = vec![child(); 65]), too_large("children"));
        assert_eq!(refused(|m| m.needs = vec![NeedKind::new("v1", "Pod"); 65]), too_large("needs"));
        assert_eq!(refused(|m| m.patches = vec![PatchKind::new("v1", "Pod", &[]); 65]), too_large("patches"));
        let indexed = |paths: Vec<String>| {
            move |m: &mut Manifest| {
                let mut need = NeedKind::new("v1", "Pod");
                need.indexes = paths.clone();
                m.needs = vec![NeedKind::new("v1", "Service"), need];
            }
        };
        let many: Vec<String> = (0..9).map(|n| format!("spec.a{n}")).collect();
        assert_eq!(refused(indexed(many)), too_large("needs[1].indexes"));
        assert_eq!(refused(indexed(vec!["a".repeat(257)])), too_large("needs[1].indexes[0]"));
        assert_eq!(refused(indexed(vec!["a".into(), "a.".repeat(20)])), too_large("needs[1].indexes[1]"));
        let patched = |fields: Vec<String>| {
            move |m: &mut Manifest| {
                m.patches = vec![PatchKind { fields: fields.clone(), ..PatchKind::new("v1", "Pod", &[]) }];
            }
        };
        assert_eq!(refused(patched(vec!["spec".into(); 65])), too_large("patches[0].fields"));
        assert_eq!(refused(patched(vec!["a".repeat(1 << 20)])), too_large("patches[0].fields[0]"));
    }

    #[test]
    fn a_manifest_whose_names_are_none_is_refused() {
        let long = "a".repeat(10 << 10);
        for bad in ["", "../x", "a?b", "a#b", "a%2fb", "a\nb", "a/b/c", &long] {
            assert_eq!(refused(|m| m.name = bad.into()), invalid("name"), "{bad:.20}");
            assert_eq!(refused(|m| m.reconciles.kind = bad.into()), invalid("reconciles.kind"));
            assert_eq!(refused(|m| m.reconciles.api_version = bad.into()), invalid("reconciles.apiVersion"));
            let child = || ChildKind::new(bad, "ConfigMap");
            assert_eq!(refused(|m| m.children.push(child())), invalid("children[0].apiVersion"));
            assert_eq!(refused(|m| m.needs.push(NeedKind::new("v1", bad))), invalid("needs[0].kind"));
            let patch = || PatchKind::new("v1", bad, &["spec"]);
            assert_eq!(refused(|m| m.patches.push(patch())), invalid("patches[0].kind"));
        }
        assert_eq!(refused(|m| m.version = "1.0\n".into()), invalid("version"));
        assert_eq!(refused(|m| m.version = "1".repeat(65)), invalid("version"));
        let indexed = |path: &str| NeedKind::new("v1", "Pod").indexed_by(path);
        assert_eq!(refused(|m| m.needs.push(indexed("spec.[]"))), invalid("needs[0].indexes[0]"));
        assert_eq!(refused(|m| m.needs.push(indexed("spec..a"))), invalid("needs[0].indexes[0]"));
        let patch = || PatchKind::new("v1", "Pod", &["spec.a[]"]);
        assert_eq!(refused(|m| m.patches.push(patch())), invalid("patches[0].fields[0]"));
    }
}
