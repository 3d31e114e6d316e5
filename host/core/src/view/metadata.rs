//! Metadata, which are the host's, never the guest's: what is shown of a backing object's, and what is stored of what somebody wrote.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use pintle_wit::names as host_names;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::{Access, Lens};

/// kubectl's copy of an object. That of the backing object is never shown; a view's is stored under a key of its own.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What a view's copy is stored under, besides the view.
const LAST_APPLIED_OF_VIEWS: &str = "pintle.dev/last-applied.";

/// The finalizers with which the garbage collector follows a deletion. One of the backing object is about what names that as its owner: it is
/// never shown, and always kept. A view has none.
const COLLECTORS: [&str; 2] = ["foregroundDeletion", "orphan"];

/// What is shown as the backing object has it.
const AS_IT_IS: [&str; 6] = [
    "namespace",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
];

/// The key under which the backing object has the view's copy for kubectl. It is one for all versions of a resource, as the annotation is.
pub fn last_applied_key(group: &str, resource: &str) -> String {
    format!("{LAST_APPLIED_OF_VIEWS}{}", mark(group, resource))
}

/// What tells what is stored for one resource from what is stored for another.
fn mark(group: &str, resource: &str) -> String {
    let hash = Sha256::digest(format!("{group}/{resource}"));
    hash.iter().take(5).map(|byte| format!("{byte:02x}")).collect()
}

impl Lens {
    /// The metadata that are shown of a backing object with these.
    pub fn shown_metadata(&self, backing: &Map<String, Value>) -> Map<String, Value> {
        let text = |key: &str| backing.get(key).and_then(Value::as_str);
        let mut shown = Map::new();
        if let Some(name) = text("name") {
            shown.insert("name".into(), self.names.shown(name).into());
        }
        if let Some(beginning) = text("generateName") {
            shown.insert("generateName".into(), self.names.shown(beginning).into());
        }
        if let Some(uid) = text("uid") {
            shown.insert("uid".into(), self.mask.map(uid).into());
        }
        if let Some(version) = text("resourceVersion") {
            shown.insert("resourceVersion".into(), self.epoch.shown(version).into());
        }
        for key in AS_IT_IS {
            if let Some(value) = backing.get(key) {
                shown.insert(key.into(), value.clone());
            }
        }
        let annotations = self.shown_annotations(backing);
        if !annotations.is_empty() {
            shown.insert("annotations".into(), annotations.into());
        }
        if self.served.is_writable() {
            let finalizers = texts(backing, "finalizers").filter(|one| !COLLECTORS.contains(one));
            let finalizers: Vec<Value> = finalizers.map(Value::from).collect();
            if !finalizers.is_empty() {
                shown.insert("finalizers".into(), finalizers.into());
            }
            if let Some(owners) = backing.get("ownerReferences") {
                shown.insert("ownerReferences".into(), owners.clone());
            }
        }
        shown
    }

    fn shown_annotations(&self, backing: &Map<String, Value>) -> Map<String, Value> {
        let Some(Value::Object(annotations)) = backing.get("annotations") else { return Map::new() };
        let shown = |(key, value): (&String, &Value)| Some((self.shown_annotation(key)?, value.clone()));
        annotations.iter().filter_map(shown).collect()
    }

    /// The key under which an annotation of the backing object is shown, if it is.
    fn shown_annotation(&self, key: &str) -> Option<String> {
        if *key == self.last_applied {
            return Some(LAST_APPLIED.to_owned());
        }
        let is_hidden = key == LAST_APPLIED || key.starts_with(LAST_APPLIED_OF_VIEWS);
        (!is_hidden && self.passes(key)).then(|| key.to_owned())
    }

    /// Whether an annotation passes in both directions, besides kubectl's copy.
    fn passes(&self, key: &str) -> bool {
        match self.access {
            Access::ViewAndBacking => true,
            Access::View => self.annotations.iter().any(|listed| listed == key),
        }
    }

    /// The annotations of a backing object after somebody wrote these through the view. What the view does not let through stays as it is.
    pub(super) fn stored_annotations(
        &self,
        current: &Map<String, Value>,
        written: &Map<String, Value>,
        ignored: &mut Vec<Ignored>,
    ) -> Map<String, Value> {
        let stored_as = |key: &str| match key {
            LAST_APPLIED => Some(self.last_applied.clone()),
            key => (self.passes(key) && !host_names::is_ours(key)).then(|| key.to_owned()),
        };
        let is_replaced =
            |key: &String| self.shown_annotation(key).is_some_and(|key| stored_as(&key).is_some());
        let mut stored: Map<String, Value> = entries(current, "annotations")
            .filter(|(key, _)| !is_replaced(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let is_let_through = |key: &str| stored_as(key).is_some();
        ignored.extend(refused(Part::Annotation, &self.shown_annotations(current), written, is_let_through));
        let written = entries(written, "annotations").filter(|(_, value)| !value.is_null());
        stored.extend(written.filter_map(|(key, value)| Some((stored_as(key)?, value.clone()))));
        stored
    }
}

/// What somebody wrote of the metadata, and the view does not let through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    /// Where it stands.
    pub part: Part,
    /// Its key, or the finalizer.
    pub key: String,
    /// Whether the object has one, which stays as it is. Otherwise it is not stored.
    pub is_kept: bool,
}

/// A part of the metadata of which a view does not let everything through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Labels.
    Label,
    /// Annotations.
    Annotation,
    /// Finalizers.
    Finalizer,
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = match self.part {
            Part::Label => "label",
            Part::Annotation => "annotation",
            Part::Finalizer => "finalizer",
        };
        let becomes = if self.is_kept { "stays as it is" } else { "is not stored" };
        write!(f, "the View does not let the {part} {} through: it {becomes}", self.key)
    }
}

impl Part {
    fn field(self) -> &'static str {
        match self {
            Self::Label => "labels",
            Self::Annotation => "annotations",
            Self::Finalizer => "finalizers",
        }
    }
}

/// The entries that somebody set, changed or left out although they are not let through. What is repeated as it is shown is none of them.
fn refused(
    part: Part,
    shown: &Map<String, Value>,
    written: &Map<String, Value>,
    is_let_through: impl Fn(&str) -> bool,
) -> Vec<Ignored> {
    let written: BTreeMap<&String, &Value> =
        entries(written, part.field()).filter(|(_, value)| !value.is_null()).collect();
    let keys: BTreeSet<&String> = written.keys().copied().chain(shown.keys()).collect();
    let is_refused = |key: &&String| !is_let_through(key) && written.get(key).copied() != shown.get(*key);
    let ignored = |key: &String| Ignored { part, key: key.clone(), is_kept: shown.contains_key(key) };
    keys.into_iter().filter(is_refused).map(ignored).collect()
}

/// The finalizers of a backing object after somebody wrote these through the view. Those that are not shown, and the host's own, stay as they
/// are.
pub(super) fn stored_finalizers(
    current: &Map<String, Value>,
    written: &Map<String, Value>,
    ignored: &mut Vec<Ignored>,
) -> Vec<Value> {
    let is_let_through = |one: &&str| !COLLECTORS.contains(one) && !host_names::is_ours(one);
    let is_written = |one: &&str| texts(written, "finalizers").any(|other| other == *one);
    let shown: Vec<&str> = texts(current, "finalizers").filter(|one| !COLLECTORS.contains(one)).collect();
    let ignore = |key: &str, is_kept| Ignored { part: Part::Finalizer, key: key.to_owned(), is_kept };
    let added: Vec<&str> = texts(written, "finalizers").filter(|one| !shown.contains(one)).collect();
    let refused = added.iter().copied().filter(|one| !is_let_through(one));
    ignored.extend(refused.map(|one| ignore(one, false)));
    let removed = shown.iter().copied().filter(|one| !is_written(one) && !is_let_through(one));
    ignored.extend(removed.map(|one| ignore(one, true)));
    let kept = texts(current, "finalizers").filter(|one| !is_let_through(one) || is_written(one));
    kept.chain(added.into_iter().filter(is_let_through)).map(Value::from).collect()
}

/// The labels of a backing object after somebody wrote these through the view. The host's own stay as they are.
pub(super) fn stored_labels(
    current: &Map<String, Value>,
    written: &Map<String, Value>,
    ignored: &mut Vec<Ignored>,
) -> Map<String, Value> {
    let is_let_through = |key: &str| !host_names::is_ours(key);
    let shown: Map<String, Value> =
        entries(current, "labels").map(|(key, value)| (key.clone(), value.clone())).collect();
    ignored.extend(refused(Part::Label, &shown, written, is_let_through));
    let written = entries(written, "labels").filter(|(key, value)| is_let_through(key) && !value.is_null());
    let written = written.map(|(key, value)| (key.clone(), value.clone()));
    shown.into_iter().filter(|(key, _)| !is_let_through(key)).chain(written).collect()
}

fn entries<'a>(
    metadata: &'a Map<String, Value>,
    key: &str,
) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
    metadata.get(key).and_then(Value::as_object).into_iter().flatten()
}

fn texts<'a>(metadata: &'a Map<String, Value>, key: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    metadata.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Epoch, Served};
    use super::*;

    const UID: &str = "6f9619ff-8b86-4011-b42d-00c04fc964ff";

    fn lens(access: Access, writes: &[&str]) -> Lens {
        let served = Served {
            api_version: "farm.example.com/v1alpha".into(),
            plural: "farmpods".into(),
            prefix: "farm-".into(),
            writes: writes.iter().map(|path| (*path).to_owned()).collect(),
            ..Served::default()
        };
        Lens::new("farmpods", served, access, vec!["note".into()], Epoch::default())
    }

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    fn backing(lens: &Lens) -> Map<String, Value> {
        map(json!({
            "name": "web", "generateName": "we", "namespace": "a", "uid": UID, "resourceVersion": "7", "generation": 2,
            "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"app": "web", host_names::LABEL_ROOT: "r"},
            "managedFields": [{}], "selfLink": "/x", "ownerReferences": [{"name": "o"}],
            "finalizers": ["orphan", "a.b/c", "foregroundDeletion", host_names::FINALIZER_GUEST],
            "annotations": {
                LAST_APPLIED: "the backing object's", lens.last_applied.clone(): "the view's",
                "pintle.dev/last-applied.0000000000": "another view's", "note": "n", "other": "o",
                host_names::ANNOTATION_SUSPEND: "true",
            },
        }))
    }

    /// Labels, annotations and finalizers of the backing object after somebody wrote these, with the words in which they are warned.
    fn stored(
        lens: &Lens,
        current: &Map<String, Value>,
        written: &Map<String, Value>,
    ) -> (Value, Vec<String>) {
        let mut ignored = Vec::new();
        let stored = json!({
            "labels": stored_labels(current, written, &mut ignored),
            "annotations": lens.stored_annotations(current, written, &mut ignored),
            "finalizers": stored_finalizers(current, written, &mut ignored),
        });
        (stored, ignored.iter().map(ToString::to_string).collect())
    }

    fn parts(metadata: &Map<String, Value>) -> Value {
        json!({"labels": metadata["labels"], "annotations": metadata["annotations"], "finalizers": metadata["finalizers"]})
    }

    #[test]
    fn a_writable_view_shows_whose_an_object_is_and_who_holds_it_but_not_the_collectors_finalizers() {
        let lens = lens(Access::ViewAndBacking, &["spec"]);
        let mut shown = lens.shown_metadata(&backing(&lens));
        assert_eq!(lens.mask.map(shown.remove("uid").unwrap().as_str().unwrap()), UID);
        assert_eq!(
            Value::Object(shown),
            json!({
                "name": "farm-web", "generateName": "farm-we", "namespace": "a", "resourceVersion": "7000000", "generation": 2,
                "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"app": "web", "pintle.dev/root": "r"},
                "finalizers": ["a.b/c", "pintle.dev/guest"], "ownerReferences": [{"name": "o"}],
                "annotations": {LAST_APPLIED: "the view's", "note": "n", "other": "o", "pintle.dev/suspend": "true"},
            })
        );
    }

    #[test]
    fn a_read_only_view_shows_neither_finalizers_nor_owners() {
        let lens = lens(Access::ViewAndBacking, &[]);
        let shown = lens.shown_metadata(&backing(&lens));
        assert!(!shown.contains_key("finalizers") && !shown.contains_key("ownerReferences"));
    }

    #[test]
    fn of_a_private_backing_kind_only_the_listed_annotations_pass() {
        let lens = lens(Access::View, &["spec"]);
        let shown = lens.shown_metadata(&backing(&lens));
        assert_eq!(shown["annotations"], json!({LAST_APPLIED: "the view's", "note": "n"}));
    }

    #[test]
    fn what_is_written_replaces_what_is_shown_and_leaves_the_rest() {
        let lens = lens(Access::View, &["spec"]);
        let current = backing(&lens);
        let written = map(json!({
            "labels": {"new": "l", host_names::LABEL_ROOT: "r"},
            "annotations": {LAST_APPLIED: "new", "more": "m", "other": "o", "pintle.dev/desired": "x"},
            "finalizers": [host_names::FINALIZER_GUEST, "x/y"],
        }));
        let (stored, warnings) = stored(&lens, &current, &written);
        assert_eq!(
            stored,
            json!({
                "labels": {"new": "l", "pintle.dev/root": "r"},
                "annotations": {
                    LAST_APPLIED: "the backing object's", lens.last_applied.clone(): "new",
                    "pintle.dev/last-applied.0000000000": "another view's", "other": "o", "pintle.dev/suspend": "true",
                },
                "finalizers": ["orphan", "foregroundDeletion", "pintle.dev/guest", "x/y"],
            })
        );
        // That there is an annotation which is not shown, or what it says, is nothing that a warning may tell.
        let dropped =
            |key: &str| format!("the View does not let the annotation {key} through: it is not stored");
        assert_eq!(warnings, ["more", "other", "pintle.dev/desired"].map(dropped));
    }

    #[test]
    fn what_a_view_shows_and_somebody_writes_back_is_stored_unchanged() {
        for access in [Access::View, Access::ViewAndBacking] {
            let lens = lens(access, &["spec"]);
            let current = backing(&lens);
            let (stored, warnings) = stored(&lens, &current, &lens.shown_metadata(&current));
            assert_eq!((stored, warnings.len()), (parts(&current), 0));
        }
    }

    #[test]
    fn what_is_the_hosts_stays_as_it_is_and_who_leaves_it_out_or_changes_it_is_told() {
        let lens = lens(Access::ViewAndBacking, &["spec"]);
        let mut current = backing(&lens);
        let kept = [
            "the View does not let the label pintle.dev/root through: it stays as it is",
            "the View does not let the annotation pintle.dev/suspend through: it stays as it is",
            "the View does not let the finalizer pintle.dev/guest through: it stays as it is",
        ];
        let host = json!({
            "labels": {"pintle.dev/root": "r"},
            "annotations": {
                LAST_APPLIED: "the backing object's", "pintle.dev/last-applied.0000000000": "another view's",
                "pintle.dev/suspend": "true",
            },
            "finalizers": ["orphan", "foregroundDeletion", "pintle.dev/guest"],
        });
        for written in [
            json!({}),
            json!({"labels": null, "annotations": {}, "finalizers": []}),
            json!({"labels": {"pintle.dev/root": null}, "annotations": {"pintle.dev/suspend": null}}),
            json!({"labels": {"pintle.dev/root": "s"}, "annotations": {"pintle.dev/suspend": "false"}}),
        ] {
            let (stored, warnings) = stored(&lens, &current, &map(written.clone()));
            assert_eq!((&stored, warnings), (&host, kept.map(ToOwned::to_owned).to_vec()), "{written}");
        }
        for key in ["labels", "annotations", "finalizers"] {
            current.remove(key);
        }
        let written = map(json!({
            "labels": {"pintle.dev/root": "r"}, "annotations": {"pintle.dev/suspend": "true"},
            "finalizers": ["pintle.dev/guest", "orphan"],
        }));
        let (stored, warnings) = stored(&lens, &current, &written);
        assert_eq!(stored, json!({"labels": {}, "annotations": {}, "finalizers": []}));
        let not_stored = |key: &str| format!("the View does not let the {key} through: it is not stored");
        let keys = [
            "label pintle.dev/root",
            "annotation pintle.dev/suspend",
            "finalizer pintle.dev/guest",
            "finalizer orphan",
        ];
        assert_eq!(warnings, keys.map(not_stored));
    }
}
