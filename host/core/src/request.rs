//! Reduces objects to the form in which guests see them.

use pintle_wit::names;
use serde_json::{Map, Value};

use crate::object;

/// The parts of metadata that cross to a guest.
const METADATA: [&str; 6] =
    ["name", "namespace", "uid", "generation", "creationTimestamp", "deletionTimestamp"];

/// The parts of metadata that can be of any length.
pub(crate) const ENTRIES: [&str; 2] = ["labels", "annotations"];

/// The annotation with kubectl's copy of an object. A guest that saw it would see every edit twice.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The status fields that the host owns on a root.
pub const HOST_STATUS: [&str; 3] = ["observedGeneration", "conditions", "pintle"];

/// An object as a guest sees it: without resourceVersion, managedFields, owner references, and the host's labels and annotations.
pub fn project(live: &Value) -> Value {
    let mut object = Map::new();
    let Some(fields) = live.as_object() else { return Value::Null };
    for (key, value) in fields {
        let value = if key == "metadata" { metadata_of(value) } else { value.clone() };
        object.insert(key.clone(), value);
    }
    Value::Object(object)
}

/// A root as its guest sees it. Of the status it has only the guest's own fields, and only if the guest asks to see them.
pub fn project_root(live: &Value, with_status: bool) -> Value {
    let mut root = Map::new();
    let Some(fields) = live.as_object() else { return Value::Null };
    for (key, value) in fields {
        let value = match key.as_str() {
            "metadata" => metadata_of(value),
            "status" => match own_status(value) {
                Some(status) if with_status => status,
                _ => continue,
            },
            _ => value.clone(),
        };
        root.insert(key.clone(), value);
    }
    Value::Object(root)
}

/// The guest's own fields of a root's status, if there are any.
pub fn own_status(status: &Value) -> Option<Value> {
    let fields = status.as_object()?.iter().filter(|(field, _)| !HOST_STATUS.contains(&field.as_str()));
    let own: Map<String, Value> = fields.map(|(field, value)| (field.clone(), value.clone())).collect();
    (!own.is_empty()).then_some(Value::Object(own))
}

fn metadata_of(live: &Value) -> Value {
    live.as_object().map_or(Value::Null, |live| metadata(live, &ENTRIES))
}

/// Metadata as a guest sees them, with these of the [`ENTRIES`].
pub(crate) fn metadata(live: &Map<String, Value>, entries: &[&str]) -> Value {
    let mut metadata = Map::new();
    for key in METADATA {
        if let Some(value) = live.get(key) {
            metadata.insert(key.into(), value.clone());
        }
    }
    for key in entries.iter().copied() {
        let Some(entries) = live.get(key).and_then(Value::as_object) else { continue };
        let kept: Map<String, Value> = entries
            .iter()
            .filter(|(key, _)| !names::is_ours(key) && *key != LAST_APPLIED)
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        if !kept.is_empty() {
            metadata.insert(key.into(), Value::Object(kept));
        }
    }
    Value::Object(metadata)
}

/// Sorts objects by apiVersion, kind, namespace and name, as requests have them.
pub fn sort(objects: &mut [Value]) {
    objects.sort_by_cached_key(object::reference);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_guest_sees_neither_versions_nor_what_is_the_hosts() {
        let live = json!({
            "apiVersion": "x/v1", "kind": "X",
            "metadata": {"name": "a", "namespace": "n", "uid": "u", "generation": 3, "resourceVersion": "7", "managedFields": [{}],
                "ownerReferences": [{}], "labels": {"app": "a", "pintle.dev/root": "u"},
                "annotations": {"pintle.dev/desired": "v1:", "kubectl.kubernetes.io/last-applied-configuration": "{}"}},
            "spec": {"a": 1},
            "status": {"observedGeneration": 3, "conditions": [], "pintle": {}, "domains": ["d"]},
        });
        let mut seen = json!({"apiVersion": "x/v1", "kind": "X", "spec": {"a": 1}, "status": {"domains": ["d"]},
            "metadata": {"name": "a", "namespace": "n", "uid": "u", "generation": 3, "labels": {"app": "a"}}});
        assert_eq!(project_root(&live, true), seen);
        seen.as_object_mut().unwrap().remove("status");
        assert_eq!(project_root(&live, false), seen);
    }

    #[test]
    fn a_status_that_is_the_hosts_alone_is_none_to_a_guest() {
        let live = json!({"kind": "X", "status": {"observedGeneration": 3, "conditions": [], "pintle": {}}});
        assert_eq!(project_root(&live, true), json!({"kind": "X"}));
    }
}
