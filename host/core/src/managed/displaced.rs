//! Items of keyed lists whose key somebody else changed.
//!
//! When somebody changes the port number of a Service's port, our item is gone, and their item has replaced it. An apply then only adds our
//! item beside theirs. The API server refuses that if the two cannot coexist (a port's name is unique), and otherwise keeps both. The
//! remedy is to own their item: the next apply does not send it, and so removes it in the same write that puts ours back. Ownership is in
//! managed fields, which a patch may set without changing anything else.

use serde_json::{Map, Value, json};

use super::{VALUE, covers_value, is_item, is_leaf, items};
use crate::number;

/// How many fields besides its key an item must have in common with ours to count as ours with another key. An unrelated item could have
/// one field in common by chance (for instance an environment variable that is also "true").
const COMMON_MIN: usize = 2;

/// Whether an entry lacks a whole item of a list that was sent. If an item was only changed, the entry lacks fields of it.
pub fn lacks_an_item(entry: Option<&Value>, sent: &Value) -> bool {
    match sent {
        Value::Object(fields) => fields.iter().any(|(key, value)| {
            let below = entry.and_then(|entry| entry.get(format!("f:{key}")));
            match below {
                // The list is owned as a whole.
                Some(below) if is_leaf(below) || below.get(VALUE).is_some() => false,
                below => lacks_an_item(below, value),
            }
        }),
        Value::Array(list) => list.iter().filter(|item| item.is_object()).any(|item| {
            match entry.and_then(|entry| keyed(entry).find(|(keys, _)| is_item(keys, item))) {
                Some((_, below)) => !covers_value(below, item) && lacks_an_item(Some(below), item),
                None => true,
            }
        }),
        _ => false,
    }
}

/// The managed fields of `live` after we have taken over the items that replaced ours, or none if there are no such items. If an item of
/// ours was lost, an item of somebody else counts if it is the same in everything but its key, or if its list is one of `refused`, which
/// are the paths that the API server did not accept, like `spec.ports[1].name`.
pub fn with_displaced_items(
    live: &Value,
    manager: &str,
    sent: &Value,
    refused: &[String],
) -> Option<Vec<Value>> {
    let entries = live.get("metadata")?.get("managedFields")?.as_array()?;
    let is_main = |entry: &&Value| text(entry, "subresource").is_empty();
    let is_ours = |entry: &Value| text(entry, "manager") == manager && text(entry, "operation") == "Apply";
    let ours =
        entries.iter().filter(is_main).find(|entry| is_ours(entry)).and_then(|entry| entry.get("fieldsV1"));
    let theirs = entries
        .iter()
        .filter(is_main)
        .filter(|entry| !is_ours(entry))
        .filter_map(|entry| entry.get("fieldsV1"));
    let mut walk = Walk { refused: refused.iter().map(|path| plain(path)).collect(), found: Vec::new() };
    walk.value(&mut Vec::new(), sent, live, ours, &theirs.collect::<Vec<_>>());
    if walk.found.is_empty() {
        return None;
    }
    let mut entries = entries.clone();
    let mut claimed = ours.cloned().unwrap_or_else(|| json!({}));
    for path in &walk.found {
        for entry in
            entries.iter_mut().filter(|entry| text(entry, "subresource").is_empty() && !is_ours(entry))
        {
            if let Some(taken) = entry.get_mut("fieldsV1").and_then(|fields| take(fields, path)) {
                put(&mut claimed, path, taken);
            }
        }
    }
    entries.retain(|entry| {
        entry.get("fieldsV1").and_then(Value::as_object).is_none_or(|fields| !fields.is_empty())
    });
    match entries.iter_mut().find(|entry| text(entry, "subresource").is_empty() && is_ours(entry)) {
        Some(entry) => entry["fieldsV1"] = claimed,
        None => entries.push(json!({
            "manager": manager, "operation": "Apply", "apiVersion": sent.get("apiVersion"),
            "fieldsType": "FieldsV1", "fieldsV1": claimed,
        })),
    }
    Some(entries)
}

/// An entry without the number of replicas, or none if it does not own that. An apply that leaves the number out then leaves it as it is.
pub fn without_replicas(entry: &Value) -> Option<Value> {
    let mut entry = entry.clone();
    take(&mut entry, &["f:spec".into(), "f:replicas".into()])?;
    Some(entry)
}

/// The managed fields of `live` with our entry [`without_replicas`], or none if we do not own the number of replicas.
pub fn giving_up_replicas(live: &Value, manager: &str) -> Option<Vec<Value>> {
    let mut entries = live.get("metadata")?.get("managedFields")?.as_array()?.clone();
    let ours = entries.iter_mut().find(|entry| {
        text(entry, "manager") == manager
            && text(entry, "operation") == "Apply"
            && text(entry, "subresource").is_empty()
    })?;
    let entry = ours.get_mut("fieldsV1")?;
    *entry = without_replicas(entry)?;
    Some(entries)
}

struct Walk {
    /// Paths without indexes.
    refused: Vec<String>,
    /// Paths in fieldsV1 of the items to take over.
    found: Vec<Vec<String>>,
}

impl Walk {
    fn value(
        &mut self,
        path: &mut Vec<String>,
        sent: &Value,
        live: &Value,
        ours: Option<&Value>,
        theirs: &[&Value],
    ) {
        match sent {
            Value::Object(fields) => {
                for (key, value) in fields {
                    let (Some(live), field) = (live.get(key), format!("f:{key}")) else { continue };
                    let below: Vec<&Value> = theirs.iter().filter_map(|entry| entry.get(&field)).collect();
                    let ours = ours.and_then(|entry| entry.get(&field));
                    path.push(field);
                    self.value(path, value, live, ours, &below);
                    path.pop();
                }
            }
            Value::Array(list) => self.list(path, list, live, ours, theirs),
            _ => {}
        }
    }

    fn list(
        &mut self,
        path: &mut Vec<String>,
        sent: &[Value],
        live: &Value,
        ours: Option<&Value>,
        theirs: &[&Value],
    ) {
        let all = || ours.into_iter().chain(theirs.iter().copied()).flat_map(keyed);
        let mut lost = Vec::new();
        for item in sent {
            let Some((keys, _)) = all().find(|(keys, _)| is_item(keys, item)) else {
                lost.push(item);
                continue;
            };
            let Some(live) = items(live).iter().find(|other| is_item(keys, other)) else { continue };
            let step = format!("k:{keys}");
            let ours = ours.and_then(|entry| entry.get(&step));
            let below: Vec<&Value> = theirs.iter().filter_map(|entry| entry.get(&step)).collect();
            path.push(step);
            self.value(path, item, live, ours, &below);
            path.pop();
        }
        if lost.is_empty() {
            return;
        }
        let here =
            plain(&path.iter().filter_map(|step| step.strip_prefix("f:")).collect::<Vec<_>>().join("."));
        let is_refused =
            self.refused.iter().any(|path| path == &here || path.starts_with(&format!("{here}.")));
        let owned = |step: &str| ours.is_some_and(|entry| entry.get(step).is_some());
        for (keys, _) in theirs.iter().copied().flat_map(keyed) {
            let step = format!("k:{keys}");
            let Some(found) = items(live).iter().find(|item| is_item(keys, item)) else { continue };
            let stands_in = is_refused || lost.iter().any(|item| is_same_but_for(keys, item, found));
            if stands_in && !owned(&step) && !sent.iter().any(|item| is_item(keys, item)) {
                let at: Vec<String> = path.iter().cloned().chain([step]).collect();
                if !self.found.contains(&at) {
                    self.found.push(at);
                }
            }
        }
    }
}

/// Whether an item shows everything that was sent of another one except its key, and that is too much for a coincidence.
fn is_same_but_for(keys: &str, sent: &Value, found: &Value) -> bool {
    let Ok(Value::Object(keys)) = serde_json::from_str(keys) else { return false };
    let Some(fields) = sent.as_object() else { return false };
    let mut rest = fields.iter().filter(|(key, _)| !keys.contains_key(*key));
    let common = rest.try_fold(0, |sum, (key, value)| Some(sum + common_leaves(value, found.get(key)?)?));
    common.is_some_and(|common| common >= COMMON_MIN)
}

/// Whether a live value has all that was sent: fields that were added to it, also in the items of a list, do not count.
pub(super) fn shows(live: &Value, sent: &Value) -> bool {
    common_leaves(sent, live).is_some()
}

/// How many leaves were sent, when all of them are found. A null sets nothing.
fn common_leaves(sent: &Value, found: &Value) -> Option<usize> {
    match (sent, found) {
        (Value::Object(sent), Value::Object(found)) => sent
            .iter()
            .filter(|(_, value)| !value.is_null())
            .try_fold(0, |sum, (key, value)| Some(sum + common_leaves(value, found.get(key)?)?)),
        (Value::Array(sent), Value::Array(found)) if sent.len() == found.len() => {
            sent.iter().zip(found).try_fold(0, |sum, (sent, found)| Some(sum + common_leaves(sent, found)?))
        }
        (Value::Number(sent), Value::Number(found)) => number::is_same(sent, found).then_some(1),
        (sent, found) => (sent == found).then_some(1),
    }
}

/// A path without indexes: `spec.ports[1].name` is `spec.ports.name`.
fn plain(path: &str) -> String {
    let mut depth = 0;
    path.chars()
        .filter(|letter| {
            depth += i32::from(*letter == '[');
            let inside = depth > 0;
            depth -= i32::from(*letter == ']');
            !inside
        })
        .collect()
}

/// The items of a keyed list in an entry: their keys, and what is owned of them.
fn keyed(entry: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let parts = entry.as_object().into_iter().flatten();
    parts.filter_map(|(key, below)| Some((key.strip_prefix("k:")?, below)))
}

fn text<'a>(entry: &'a Value, key: &str) -> &'a str {
    entry.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Removes a path from an entry, with the parents that become empty, since an empty parent would own everything below it.
fn take(entry: &mut Value, path: &[String]) -> Option<Value> {
    let (first, rest) = path.split_first()?;
    let fields = entry.as_object_mut()?;
    if rest.is_empty() {
        return fields.remove(first);
    }
    let below = fields.get_mut(first)?;
    let taken = take(below, rest)?;
    if below.as_object().is_some_and(Map::is_empty) {
        fields.remove(first);
    }
    Some(taken)
}

fn put(entry: &mut Value, path: &[String], value: Value) {
    let Some((first, rest)) = path.split_first() else {
        merge(entry, value);
        return;
    };
    if !entry.is_object() {
        *entry = json!({});
    }
    put(&mut entry[first.as_str()], rest, value);
}

fn merge(entry: &mut Value, value: Value) {
    match (entry, value) {
        (Value::Object(fields), Value::Object(more)) => {
            for (key, value) in more {
                merge(fields.entry(key).or_insert(Value::Null), value);
            }
        }
        (entry, value) => *entry = value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn web() -> Value {
        json!({"apiVersion": "v1", "kind": "Service", "spec": {"type": "NodePort", "ports": [
            {"name": "http", "port": 80, "targetPort": "http"}, {"name": "tls", "port": 443}]}})
    }

    fn port(number: u32) -> String {
        format!("k:{{\"port\":{number},\"protocol\":\"TCP\"}}")
    }

    /// The Service after somebody edited it: ports of theirs, ours that are left, and what each owns.
    fn edited(ports: Value, ours: &[u32], theirs: &[u32]) -> Value {
        let owned = |numbers: &[u32]| -> Value {
            numbers
                .iter()
                .map(|number| (port(*number), json!({".": {}, "f:port": {}, "f:name": {}})))
                .collect::<Map<_, _>>()
                .into()
        };
        let mut live = web();
        live["spec"]["ports"] = ports;
        live["metadata"]["managedFields"] = json!([
            {"manager": "m", "operation": "Apply", "fieldsV1": {"f:spec": {"f:type": {}, "f:ports": owned(ours)}}},
            {"manager": "kubectl-edit", "operation": "Update", "fieldsV1": {"f:spec": {"f:ports": owned(theirs)}}},
        ]);
        live
    }

    fn item(number: u32, name: &str, target: &str) -> Value {
        json!({"name": name, "port": number, "protocol": "TCP", "targetPort": target})
    }

    fn ours(entries: &[Value]) -> Vec<String> {
        let entry = entries.iter().find(|entry| entry["manager"] == "m").unwrap();
        keyed(&entry["fieldsV1"]["f:spec"]["f:ports"]).map(|(keys, _)| format!("k:{keys}")).collect()
    }

    #[test]
    fn an_item_whose_key_was_changed_becomes_ours_and_nothing_else_does() {
        let ports =
            json!([item(81, "http", "http"), {"name": "tls", "port": 443}, item(9090, "metrics", "metrics")]);
        let live = edited(ports, &[443], &[81, 9090]);
        let found = with_displaced_items(&live, "m", &web(), &[]).expect("one is displaced");
        assert_eq!(ours(&found), [port(443), port(81)]);
        assert_eq!(
            found[1]["fieldsV1"]["f:spec"]["f:ports"],
            json!({port(9090): {".": {}, "f:port": {}, "f:name": {}}})
        );
    }

    #[test]
    fn an_editor_who_owned_nothing_else_owns_nothing_any_more() {
        let live = edited(json!([item(81, "http", "http"), {"name": "tls", "port": 443}]), &[443], &[81]);
        let found = with_displaced_items(&live, "m", &web(), &[]).expect("one is displaced");
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn what_only_looks_like_ours_by_chance_is_left_unless_the_api_server_refuses_to_have_both() {
        let live = edited(json!([item(81, "http", "other"), {"name": "tls", "port": 443}]), &[443], &[81]);
        assert_eq!(with_displaced_items(&live, "m", &web(), &[]), None);
        assert_eq!(with_displaced_items(&live, "m", &web(), &["spec.selector".into()]), None);
        let found = with_displaced_items(&live, "m", &web(), &["spec.ports[2].name".into()]);
        assert_eq!(ours(&found.expect("refused")), [port(443), port(81)]);
    }

    #[test]
    fn where_nothing_was_lost_nothing_is_taken() {
        let ports = json!([item(80, "http", "http"), {"name": "tls", "port": 443}, item(81, "http", "http")]);
        let live = edited(ports, &[80, 443], &[81]);
        assert_eq!(with_displaced_items(&live, "m", &web(), &["spec.ports[0].name".into()]), None);
        let entry = &live["metadata"]["managedFields"][0]["fieldsV1"];
        assert!(!lacks_an_item(Some(entry), &web()));
    }

    #[test]
    fn an_item_of_an_item_is_found_too() {
        let sent = json!({"spec": {"containers": [{"name": "c", "ports": [{"containerPort": 80, "name": "http", "hostIP": "::1"}]}]}});
        let mut live = sent.clone();
        live["spec"]["containers"][0]["ports"][0]["containerPort"] = json!(81);
        let container = |ports: Value| json!({"f:spec": {"f:containers": {"k:{\"name\":\"c\"}": ports}}});
        let theirs = container(json!({"f:ports": {"k:{\"containerPort\":81}": {".": {}}}}));
        let mine = container(json!({".": {}, "f:name": {}}));
        live["metadata"]["managedFields"] = json!([
            {"manager": "m", "operation": "Apply", "fieldsV1": mine},
            {"manager": "e", "operation": "Update", "fieldsV1": theirs},
        ]);
        assert!(lacks_an_item(Some(&live["metadata"]["managedFields"][0]["fieldsV1"]), &sent));
        let found = with_displaced_items(&live, "m", &sent, &[]).expect("found");
        let expected = json!({".": {}, "f:name": {}, "f:ports": {"k:{\"containerPort\":81}": {".": {}}}});
        assert_eq!(found, [json!({"manager": "m", "operation": "Apply", "fieldsV1": container(expected)})]);
    }

    #[test]
    fn an_atomic_list_that_somebody_took_over_has_no_items() {
        let sent = json!({"spec": {"args": [{"a": 1, "b": 2, "c": 3}]}});
        let mut live = json!({"spec": {"args": [{"a": 2, "b": 2, "c": 3}]}});
        live["metadata"]["managedFields"] =
            json!([{"manager": "e", "operation": "Update", "fieldsV1": {"f:spec": {"f:args": {}}}}]);
        assert_eq!(with_displaced_items(&live, "m", &sent, &["spec.args".into()]), None);
    }
}
