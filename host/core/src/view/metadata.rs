//! Metadata, which are the host's, never the guest's: what is shown of a backing object's, and what is stored of what somebody wrote.

use pintle_wit::names as host_names;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::{Access, Lens};

/// kubectl's copy of an object. That of the backing object is never shown; a view's is stored under a key of its own.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What a view's copy is stored under, besides the view.
const LAST_APPLIED_OF_VIEWS: &str = "pintle.dev/last-applied.";

/// The finalizers with which the garbage collector follows a deletion. They are about the backing object: they are never shown and always
/// kept.
const OF_THE_COLLECTOR: [&str; 2] = ["orphan", "foregroundDeletion"];

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
    let hash = Sha256::digest(format!("{group}/{resource}"));
    let hash: String = hash.iter().take(5).map(|byte| format!("{byte:02x}")).collect();
    format!("{LAST_APPLIED_OF_VIEWS}{hash}")
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
            let finalizers = list(backing, "finalizers").filter(|finalizer| !is_collectors(finalizer));
            let finalizers: Vec<Value> = finalizers.cloned().collect();
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

    /// The annotations of a backing object after somebody wrote these through the view: what is not shown stays as it is. Beside them, the
    /// keys that do not pass and are not stored.
    pub(super) fn stored_annotations(
        &self,
        current: &Map<String, Value>,
        written: &Map<String, Value>,
    ) -> (Map<String, Value>, Vec<String>) {
        let current = current.get("annotations").and_then(Value::as_object);
        let hidden = current.into_iter().flatten().filter(|(key, _)| self.shown_annotation(key).is_none());
        let mut stored: Map<String, Value> =
            hidden.map(|(key, value)| (key.clone(), value.clone())).collect();
        let mut dropped = Vec::new();
        let written = written.get("annotations").and_then(Value::as_object);
        for (key, value) in written.into_iter().flatten().filter(|(_, value)| !value.is_null()) {
            if key == LAST_APPLIED {
                stored.insert(self.last_applied.clone(), value.clone());
            } else if self.passes(key) && !host_names::is_ours(key) {
                stored.insert(key.clone(), value.clone());
            } else if !stored.contains_key(key) {
                dropped.push(key.clone());
            }
        }
        (stored, dropped)
    }
}

/// The finalizers of a backing object after somebody wrote these through the view.
pub(super) fn stored_finalizers(current: &Map<String, Value>, written: &Map<String, Value>) -> Vec<Value> {
    let kept = list(current, "finalizers").filter(|finalizer| is_collectors(finalizer));
    let asked = list(written, "finalizers").filter(|finalizer| !is_collectors(finalizer));
    kept.chain(asked).cloned().collect()
}

fn is_collectors(finalizer: &Value) -> bool {
    finalizer.as_str().is_some_and(|finalizer| OF_THE_COLLECTOR.contains(&finalizer))
}

fn list<'a>(metadata: &'a Map<String, Value>, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    metadata.get(key).and_then(Value::as_array).into_iter().flatten()
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
            "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"app": "web"}, "managedFields": [{}], "selfLink": "/x",
            "finalizers": ["orphan", "a.b/c", "foregroundDeletion"], "ownerReferences": [{"name": "o"}],
            "annotations": {
                LAST_APPLIED: "the backing object's", lens.last_applied.clone(): "the view's",
                "pintle.dev/last-applied.0000000000": "another view's", "note": "n", "other": "o",
            },
        }))
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
                "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"app": "web"}, "finalizers": ["a.b/c"],
                "ownerReferences": [{"name": "o"}], "annotations": {LAST_APPLIED: "the view's", "note": "n", "other": "o"},
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
        let written =
            map(json!({"annotations": {LAST_APPLIED: "new", "more": "m", "pintle.dev/desired": "x"}}));
        let (stored, dropped) = lens.stored_annotations(&current, &written);
        assert_eq!(
            Value::Object(stored),
            json!({
                LAST_APPLIED: "the backing object's", lens.last_applied.clone(): "new",
                "pintle.dev/last-applied.0000000000": "another view's", "other": "o",
            })
        );
        assert_eq!(dropped, ["more", "pintle.dev/desired"]);
        let finalizers = stored_finalizers(&current, &map(json!({"finalizers": ["x/y", "orphan"]})));
        assert_eq!(finalizers, ["orphan", "foregroundDeletion", "x/y"]);
    }

    #[test]
    fn what_a_view_shows_and_somebody_writes_back_is_stored_unchanged() {
        for access in [Access::View, Access::ViewAndBacking] {
            let lens = lens(access, &["spec"]);
            let current = backing(&lens);
            let (stored, dropped) = lens.stored_annotations(&current, &lens.shown_metadata(&current));
            assert_eq!((Value::Object(stored), dropped.len()), (current["annotations"].clone(), 0));
        }
    }
}
