//! Detects drift from the managed fields of an object.
//!
//! Whenever somebody else changes a field that we own, the field leaves our entry in `metadata.managedFields`. So our entry covers every
//! leaf that we sent exactly as long as nothing has drifted. This needs no schema and no stored state. Fields that others set besides
//! ours do not count.
//!
//! One entry says less: a map without parts. It is owned as a whole, or its schema does not declare its fields, and all that we sent below
//! it was changed or deleted. So of such a map in a custom resource the live values are compared with what was sent.

mod displaced;

use serde_json::{Map, Value, json};

use crate::object;
pub use displaced::{giving_up_replicas, lacks_an_item, with_displaced_items, without_replicas};

/// The part of `metadata.managedFields` that is ours: the `fieldsV1` of the Apply entry of `manager`, on the object itself
/// (`subresource` `None`) or on a subresource.
pub fn entry<'a>(object: &'a Value, manager: &str, subresource: Option<&str>) -> Option<&'a Value> {
    let entries = object.get("metadata")?.get("managedFields")?.as_array()?;
    entries
        .iter()
        .find(|entry| {
            let field = |key: &str| entry.get(key).and_then(Value::as_str);
            field("manager") == Some(manager)
                && field("operation") == Some("Apply")
                && field("subresource").filter(|name| !name.is_empty()) == subresource
        })?
        .get("fieldsV1")
}

/// The step to a value in an entry of [`with_values`]. No path in managed fields has such a step.
const VALUE: &str = "=";

/// Our entry of a live object, with the live values of every map that it has without parts, for [`covers`]. Only of a custom resource: in
/// other objects the API server writes values in its own way, and leaves out what is empty.
pub fn with_values(entry: &Value, live: &Value) -> Value {
    let mut entry = entry.clone();
    if is_custom(object::kind(live).group()) {
        add_values(&mut entry, live);
    }
    entry
}

/// Whether a group has custom resources. The groups of Kubernetes have no dot, or end in `.k8s.io`, where few CRDs are.
fn is_custom(group: &str) -> bool {
    group.contains('.') && !group.ends_with(".k8s.io")
}

fn add_values(entry: &mut Value, live: &Value) {
    for (step, below) in entry.as_object_mut().into_iter().flatten() {
        let live = match step.strip_prefix("k:") {
            Some(keys) => items(live).iter().find(|item| is_item(keys, item)),
            None => step.strip_prefix("f:").and_then(|name| live.get(name)),
        };
        match live {
            Some(live) if live.is_object() && is_leaf(below) => *below = values(live),
            Some(live) => add_values(below, live),
            None => {}
        }
    }
}

fn values(live: &Value) -> Value {
    let Some(fields) = live.as_object() else { return json!({VALUE: live}) };
    let mut parts: Map<String, Value> =
        fields.iter().map(|(name, value)| (format!("f:{name}"), values(value))).collect();
    // An empty map has none of the fields that were sent.
    parts.insert(".".into(), json!({}));
    Value::Object(parts)
}

/// The parts of metadata that identify the object.
pub(crate) const NAMING: [&str; 4] = ["name", "namespace", "uid", "resourceVersion"];

/// Whether `entry` (a fieldsV1 document, or one [`with_values`]) covers every leaf of `object` as it was sent. `apiVersion`, `kind`, and
/// the parts of metadata that name an object are never in managed fields.
pub fn covers(entry: &Value, object: &Value) -> bool {
    let Some(fields) = object.as_object() else { return false };
    fields.iter().all(|(key, value)| match key.as_str() {
        "apiVersion" | "kind" => true,
        "metadata" => {
            let Some(metadata) = value.as_object() else { return true };
            let named: Map<String, Value> = metadata
                .iter()
                .filter(|(key, _)| !NAMING.contains(&key.as_str()))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            named.is_empty() || covers_field(entry, key, &Value::Object(named))
        }
        _ => covers_field(entry, key, value),
    })
}

/// The field manager that last wrote an object, apart from ours and from writers of subresources.
pub fn last_writer<'a>(object: &'a Value, ours: &str) -> Option<&'a str> {
    let entries = object.get("metadata")?.get("managedFields")?.as_array()?;
    let text = |entry: &'a Value, key: &str| entry.get(key).and_then(Value::as_str);
    entries
        .iter()
        .filter(|entry| text(entry, "subresource").is_none_or(str::is_empty))
        .filter(|entry| text(entry, "manager") != Some(ours) || text(entry, "operation") != Some("Apply"))
        .max_by_key(|entry| text(entry, "time"))
        .and_then(|entry| text(entry, "manager"))
}

/// Whether an entry owns the number of replicas.
pub fn owns_replicas(entry: &Value) -> bool {
    entry.get("f:spec").is_some_and(|spec| spec.get("f:replicas").is_some())
}

/// Whether an apply of `sent` would give up the number of replicas if we own it. The API server then sets its default, 1, unless
/// somebody else owns it too.
pub fn gives_up_replicas(sent: &Value) -> bool {
    object::kind(sent).group() == "apps" && object::at(sent, &["spec", "replicas"]).is_none_or(Value::is_null)
}

/// The field manager that has set the number of replicas through the subresource `scale`: an autoscaler, or `kubectl scale`.
pub fn scaler(object: &Value) -> Option<&str> {
    let entries = object.get("metadata")?.get("managedFields")?.as_array()?;
    let is_scale = |entry: &&Value| entry.get("subresource").and_then(Value::as_str) == Some("scale");
    entries.iter().find(is_scale)?.get("manager")?.as_str()
}

/// The first field of `object` that `entry` does not cover, as a dotted path. If it is in a list, the path of the list.
pub fn lost(entry: &Value, object: &Value) -> Option<String> {
    let mut sent = object.as_object()?.clone();
    sent.retain(|key, _| !matches!(key.as_str(), "apiVersion" | "kind"));
    if let Some(metadata) = sent.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| !NAMING.contains(&key.as_str()));
    }
    lost_below(entry, &sent)
}

fn lost_below(entry: &Value, sent: &Map<String, Value>) -> Option<String> {
    let (key, value) = sent.iter().find(|(key, value)| !covers_field(entry, key, value))?;
    let entry = field(entry, key).unwrap_or(&Value::Null);
    let below = value.as_object().and_then(|value| lost_below(entry, value));
    Some(below.map_or_else(|| key.clone(), |below| format!("{key}.{below}")))
}

/// Whether `sent` still contains everything that `entry` owns: false if the last apply set something that this one leaves out. A null
/// counts as sent, because an API server that keeps it keeps it as a field of ours.
pub fn owns_nothing_beyond(entry: &Value, sent: &Value) -> bool {
    let Some(owned) = entry.as_object() else { return true };
    owned.iter().all(|(key, below)| {
        if let Some(name) = key.strip_prefix("f:") {
            sent.get(name).is_some_and(|value| owns_nothing_beyond(below, value))
        } else if let Some(keys) = key.strip_prefix("k:") {
            items(sent).iter().any(|item| is_item(keys, item) && owns_nothing_beyond(below, item))
        } else if let Some(value) = key.strip_prefix("v:") {
            let value: Option<Value> = serde_json::from_str(value).ok();
            value.is_some_and(|value| items(sent).contains(&value))
        } else {
            // "." means that the map or list itself is owned.
            true
        }
    })
}

fn covers_value(entry: &Value, value: &Value) -> bool {
    if let Some(live) = entry.get(VALUE) {
        return value.is_null() || displaced::shows(live, value);
    }
    if is_leaf(entry) {
        return true;
    }
    match value {
        Value::Object(fields) => fields.iter().all(|(key, value)| covers_field(entry, key, value)),
        Value::Array(list) => list.iter().all(|item| covers_item(entry, item)),
        _ => true,
    }
}

fn covers_field(entry: &Value, key: &str, value: &Value) -> bool {
    field(entry, key).map_or_else(|| is_traceless(value), |entry| covers_value(entry, value))
}

/// Whether a value leaves nothing in managed fields. This is so for a null, for an empty list (a keyed list is owned only by its items),
/// and for a map that has only such values. An empty map is a leaf.
fn is_traceless(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => !fields.is_empty() && fields.values().all(is_traceless),
        _ => false,
    }
}

fn covers_item(entry: &Value, item: &Value) -> bool {
    let Some(entries) = entry.as_object() else { return false };
    entries.iter().any(|(key, below)| {
        if let Some(keys) = key.strip_prefix("k:") {
            is_item(keys, item) && covers_value(below, item)
        } else if let Some(value) = key.strip_prefix("v:") {
            serde_json::from_str::<Value>(value).is_ok_and(|value| &value == item)
        } else {
            false
        }
    })
}

/// Whether the keys of a list entry name this item. A key that the item leaves out was set by a default (for instance a port's protocol).
pub(crate) fn is_item(keys: &str, item: &Value) -> bool {
    let Ok(Value::Object(keys)) = serde_json::from_str(keys) else { return false };
    keys.iter().all(|(key, value)| item.get(key).is_none_or(|found| found == value))
}

/// An entry without parts: the field is owned as a whole (a scalar, or an atomic map or list). An entry of only "." owns the
/// existence of a map or of a list's item, and none of its fields.
fn is_leaf(entry: &Value) -> bool {
    entry.as_object().is_none_or(serde_json::Map::is_empty)
}

fn field<'a>(entry: &'a Value, name: &str) -> Option<&'a Value> {
    entry.get(format!("f:{name}"))
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// What an API server 1.36 recorded for an apply of the object below.
    fn fixture() -> (Value, Value) {
        let object = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "a", "labels": {"pintle.dev/root": "u"},
                "ownerReferences": [{"uid": "u", "name": "r", "kind": "R", "apiVersion": "x/v1", "controller": true}]},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "i", "args": ["x"],
                    "ports": [{"containerPort": 80, "name": "http"}]}]}}},
        });
        let entry = json!({
            "f:metadata": {"f:labels": {"f:pintle.dev/root": {}}, "f:ownerReferences": {"k:{\"uid\":\"u\"}": {}}},
            "f:spec": {"f:replicas": {}, "f:selector": {}, "f:template": {
                "f:metadata": {"f:labels": {"f:app": {}}},
                "f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:name": {}, "f:image": {}, "f:args": {},
                    "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}, "f:name": {}}}}}}}},
        });
        (object, entry)
    }

    /// The entry without one field, and without the parents that this leaves empty: an API server keeps none.
    fn without(mut entry: Value, pointer: &str, key: &str) -> Value {
        let parent = entry.pointer_mut(pointer).unwrap().as_object_mut().unwrap();
        parent.remove(key).unwrap();
        match pointer.rsplit_once('/') {
            Some((above, name)) if parent.is_empty() => without(entry, above, name),
            _ => entry,
        }
    }

    #[test]
    fn an_untouched_object_is_covered() {
        let (object, entry) = fixture();
        assert!(covers(&entry, &object));
    }

    #[test]
    fn every_leaf_that_somebody_took_over_is_drift() {
        let (object, entry) = fixture();
        for (pointer, key) in [
            ("/f:spec", "f:replicas"),
            ("/f:spec", "f:selector"),
            ("/f:metadata", "f:labels"),
            ("/f:metadata/f:ownerReferences", "k:{\"uid\":\"u\"}"),
            ("/f:spec/f:template/f:spec/f:containers/k:{\"name\":\"c\"}", "f:image"),
            ("/f:spec/f:template/f:spec/f:containers/k:{\"name\":\"c\"}", "f:args"),
            ("/f:spec/f:template/f:spec/f:containers", "k:{\"name\":\"c\"}"),
            ("", "f:metadata"),
        ] {
            assert!(!covers(&without(entry.clone(), pointer, key), &object), "{pointer} {key}");
        }
    }

    #[test]
    fn the_first_field_that_was_lost_is_named() {
        let (object, entry) = fixture();
        assert_eq!(lost(&entry, &object), None);
        let cut = |pointer, key| lost(&without(entry.clone(), pointer, key), &object);
        assert_eq!(cut("/f:spec", "f:replicas").as_deref(), Some("spec.replicas"));
        assert_eq!(
            cut("/f:metadata/f:labels", "f:pintle.dev/root").as_deref(),
            Some("metadata.labels.pintle.dev/root")
        );
        let container = "/f:spec/f:template/f:spec/f:containers/k:{\"name\":\"c\"}";
        assert_eq!(cut(container, "f:image").as_deref(), Some("spec.template.spec.containers"));
    }

    #[test]
    fn the_last_writer_is_neither_we_nor_a_status_controller() {
        let entry = |manager: &str, operation: &str, subresource: &str, time: &str| json!({"manager": manager, "operation": operation, "subresource": subresource, "time": time});
        let object = json!({"metadata": {"managedFields": [
            entry("m", "Apply", "", "2026-01-04T00:00:00Z"), entry("kubectl", "Update", "", "2026-01-02T00:00:00Z"),
            entry("hpa", "Update", "", "2026-01-01T00:00:00Z"), entry("deployment", "Update", "status", "2026-01-03T00:00:00Z"),
        ]}});
        assert_eq!(last_writer(&object, "m"), Some("kubectl"));
        assert_eq!(last_writer(&json!({"metadata": {}}), "m"), None);
    }

    #[test]
    fn owning_that_an_item_exists_is_not_owning_its_fields() {
        let object = json!({"kind": "X", "spec": {"ports": [{"port": 80, "name": "a"}]}});
        assert!(!covers(&json!({"f:spec": {"f:ports": {"k:{\"port\":80}": {".": {}}}}}), &object));
        assert!(covers(
            &json!({"f:spec": {"f:ports": {"k:{\"port\":80}": {".": {}, "f:port": {}, "f:name": {}}}}}),
            &object
        ));
    }

    #[test]
    fn a_null_and_an_empty_map_are_no_leaves_of_their_own() {
        let object = json!({"kind": "X", "metadata": {"name": "a"}, "spec": {"a": null, "emptyDir": {}}});
        assert!(covers(&json!({"f:spec": {"f:emptyDir": {}}}), &object));
        assert!(!covers(&json!({"f:spec": {"f:other": {}}}), &object));
    }

    #[test]
    fn a_list_of_nothing_leaves_no_trace_and_is_no_drift() {
        let object = json!({"kind": "X", "spec": {"a": 1, "ports": [], "below": {"items": [], "b": null}}});
        assert!(covers(&json!({"f:spec": {"f:a": {}}}), &object));
        assert!(!covers(&json!({"f:spec": {}, "f:other": {}}), &json!({"spec": {}, "more": {}})));
        assert!(!covers(&json!({"f:spec": {"f:b": {}}}), &object));
    }

    #[test]
    fn a_null_that_is_sent_again_is_nothing_left_over() {
        assert!(owns_nothing_beyond(&json!({"f:a": {}}), &json!({"a": null})));
        assert!(!owns_nothing_beyond(&json!({"f:a": {"f:b": {}}}), &json!({"a": null})));
    }

    /// What an API server 1.36 records if everything below a map of which it does not know the fields is changed by somebody else: the map
    /// itself, as of a map that is one value.
    #[test]
    fn of_a_map_whose_fields_nobody_declares_the_values_are_compared() {
        let sent = json!({"b": 1.0, "c": {"d": "x"}, "l": [{"n": 1}], "none": null, "empty": []});
        let is_covered = |api_version: &str, sent: &Value, live: Value| {
            let object = json!({"apiVersion": api_version, "kind": "X", "spec": {"a": sent}});
            let live = json!({"apiVersion": api_version, "kind": "X", "spec": {"a": live}});
            let entry = with_values(&json!({"f:spec": {"f:a": {}}}), &live);
            assert_eq!(lost(&entry, &object).is_none(), covers(&entry, &object));
            covers(&entry, &object)
        };
        let custom = "charts.example.com/v1";
        for live in [
            json!({"b": 1, "c": {"d": "x"}, "l": [{"n": 1}], "empty": []}),
            json!({"b": 1, "c": {"d": "x", "default": true}, "l": [{"n": 1, "default": true}], "theirs": 1}),
        ] {
            assert!(is_covered(custom, &sent, live.clone()), "{live}");
        }
        for live in [
            json!({}),
            json!({"b": 1}),
            json!({"b": 2, "c": {"d": "x"}, "l": [{"n": 1}]}),
            json!({"b": 1, "c": {"d": "y"}, "l": [{"n": 1}]}),
            json!({"b": 1, "c": {}, "l": [{"n": 1}]}),
            json!({"b": 1, "c": "x", "l": [{"n": 1}]}),
            json!({"b": 1, "c": {"d": "x"}, "l": [{"n": 2}]}),
            json!({"b": 1, "c": {"d": "x"}, "l": [{"n": 1}, {"n": 2}]}),
        ] {
            assert!(!is_covered(custom, &sent, live.clone()), "{live}");
        }
        assert!(is_covered(custom, &json!({}), json!({"theirs": 1})));
        assert!(is_covered("networking.k8s.io/v1", &json!({"matchLabels": {}}), json!({})));
        assert!(is_covered("v1", &json!({"size": "1024Mi"}), json!({"size": "1Gi"})));

        let object = json!({"apiVersion": custom, "kind": "X", "spec": {"items": [{"name": "n", "a": {"b": {"c": 1}}}]}});
        let entry = json!({"f:spec": {"f:items": {"k:{\"name\":\"n\"}": {".": {}, "f:name": {}, "f:a": {".": {}, "f:b": {}}}}}});
        assert!(covers(&with_values(&entry, &object), &object));
        let mut live = object.clone();
        live["spec"]["items"][0]["a"]["b"]["c"] = json!(2);
        assert!(!covers(&with_values(&entry, &live), &object), "in an item of a list, too");
    }

    #[test]
    fn what_a_next_apply_would_remove_is_seen() {
        let entry = json!({"f:status": {"f:a": {}, "f:conditions": {".": {}, "k:{\"type\":\"Ready\"}": {".": {}, "f:type": {}}}}});
        let full = json!({"status": {"a": 1, "conditions": [{"type": "Ready"}]}});
        assert!(owns_nothing_beyond(&entry, &full));
        assert!(!owns_nothing_beyond(&entry, &json!({"status": {"conditions": [{"type": "Ready"}]}})));
        assert!(!owns_nothing_beyond(
            &entry,
            &json!({"status": {"a": 1, "conditions": [{"type": "Stalled"}]}})
        ));
    }

    #[test]
    fn only_our_apply_entry_counts() {
        let object = json!({"metadata": {"managedFields": [
            {"manager": "m", "operation": "Update", "fieldsV1": {"f:a": {}}},
            {"manager": "m", "operation": "Apply", "subresource": "status", "fieldsV1": {"f:b": {}}},
            {"manager": "m", "operation": "Apply", "fieldsV1": {"f:c": {}}},
        ]}});
        assert_eq!(entry(&object, "m", None), Some(&json!({"f:c": {}})));
        assert_eq!(entry(&object, "m", Some("status")), Some(&json!({"f:b": {}})));
        assert_eq!(entry(&object, "n", None), None);
    }
}
