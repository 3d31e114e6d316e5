//! Operations on values that follow their shape: listing the fields, comparing, merging, and removing fields.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pintle_schema::shape::{List, Shape};
use serde_json::{Map, Value};

use super::fields::{FieldSet, Path, shown};

/// The differences between two values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Comparison {
    pub(crate) added: FieldSet,
    pub(crate) modified: FieldSet,
    pub(crate) removed: FieldSet,
}

impl Comparison {
    pub(crate) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }
}

/// The fields that a value sets.
pub(crate) fn field_set(shape: Shape<'_>, value: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    collect(shape, value, &mut Vec::new(), &mut set);
    set
}

fn collect(shape: Shape<'_>, value: &Value, path: &mut Path, set: &mut FieldSet) {
    match value {
        Value::Object(fields) if !shape.is_atomic_map() => {
            for (name, within) in fields {
                path.push(format!("f:{name}"));
                let is_empty = within.is_null() || within.as_object().is_some_and(Map::is_empty);
                if is_empty || shape.field(name).is_none() {
                    set.insert(path);
                }
                if let Some(shape) = shape.member(name) {
                    collect(shape, within, path, set);
                }
                path.pop();
            }
        }
        Value::Array(items) if shape.list() != List::Atomic => {
            for item in items {
                let Some(step) = shape.item_step(item) else { continue };
                path.push(step);
                collect(shape.items(), item, path, set);
                set.insert(path);
                path.pop();
            }
        }
        // Null is not a field if the type is a map or a list with keys.
        Value::Null if shape.list() != List::Atomic || is_granular_map(shape) => {}
        _ => set.insert(path),
    }
}

fn is_granular_map(shape: Shape<'_>) -> bool {
    !shape.is_atomic_map()
        && (shape.get("properties").is_some() || shape.get("additionalProperties").is_some())
}

/// What changed from one value to another.
pub(crate) fn compare(shape: Shape<'_>, before: &Value, after: &Value) -> Comparison {
    let mut comparison = Comparison::default();
    differ(shape, Some(before), Some(after), &mut Vec::new(), &mut comparison);
    comparison
}

fn differ(
    shape: Shape<'_>,
    before: Option<&Value>,
    after: Option<&Value>,
    path: &mut Path,
    found: &mut Comparison,
) {
    if before == after {
        return;
    }
    let (no_fields, no_items) = (Map::new(), Vec::new());
    let is_map = [before, after].iter().any(|value| value.is_some_and(Value::is_object));
    let is_list = [before, after].iter().any(|value| value.is_some_and(Value::is_array));
    // An empty map or list is a leaf: absent and empty are different.
    if is_map
        && !shape.is_atomic_map()
        && let (Some(one), Some(other)) = (fields_of(before, &no_fields), fields_of(after, &no_fields))
        && !(one.is_empty() && other.is_empty())
    {
        let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
        for name in names {
            path.push(format!("f:{name}"));
            let shape = shape.member(name).unwrap_or(shape);
            differ(shape, one.get(name), other.get(name), path, found);
            path.pop();
        }
    } else if is_list
        && shape.list() != List::Atomic
        && let (Some(one), Some(other)) = (items_of(before, &no_items), items_of(after, &no_items))
        && !(one.is_empty() && other.is_empty())
    {
        let (one, other) = (by_step(shape, one), by_step(shape, other));
        let steps: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
        for step in steps {
            path.push(step.clone());
            differ(shape.items(), one.get(step).copied(), other.get(step).copied(), path, found);
            path.pop();
        }
    } else if before.is_some() && after.is_some() && before != after {
        found.modified.insert(path);
    }
    if path.is_empty() {
        return;
    }
    match (before, after) {
        (None, Some(_)) => found.added.insert(path),
        (Some(_), None) => found.removed.insert(path),
        _ => {}
    }
}

/// The fields of a map. Null is an empty map.
fn fields_of<'a>(value: Option<&'a Value>, none: &'a Map<String, Value>) -> Option<&'a Map<String, Value>> {
    value.map_or(Some(none), |value| if value.is_null() { Some(none) } else { value.as_object() })
}

/// The items of a list. Null is an empty list.
fn items_of<'a>(value: Option<&'a Value>, none: &'a Vec<Value>) -> Option<&'a Vec<Value>> {
    value.map_or(Some(none), |value| if value.is_null() { Some(none) } else { value.as_array() })
}

/// The items of a list, each by the step of a path that leads to it.
fn by_step<'a>(shape: Shape<'_>, items: &'a [Value]) -> BTreeMap<String, &'a Value> {
    items.iter().filter_map(|item| Some((shape.item_step(item)?, item))).collect()
}

/// The sent value, merged into the live one.
pub(crate) fn merge(shape: Shape<'_>, live: Option<&Value>, sent: &Value) -> Value {
    match (live, sent) {
        (live, Value::Object(fields)) if !shape.is_atomic_map() => {
            let mut merged = live.and_then(Value::as_object).cloned().unwrap_or_default();
            for (name, value) in fields {
                let within = shape.member(name).unwrap_or(shape);
                let value = merge(within, merged.get(name), value);
                merged.insert(name.clone(), value);
            }
            Value::Object(merged)
        }
        (live, Value::Array(items)) if shape.list() != List::Atomic => {
            let before = live.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            Value::Array(merge_list(shape, before, items))
        }
        _ => sent.clone(),
    }
}

/// Items keep their live order, unless the sent list has another order.
fn merge_list(shape: Shape<'_>, live: &[Value], sent: &[Value]) -> Vec<Value> {
    fn index<'a>(shape: Shape<'_>, items: &'a [Value]) -> Vec<(String, &'a Value)> {
        items.iter().filter_map(|item| Some((shape.item_step(item)?, item))).collect()
    }
    let (live, sent) = (index(shape, live), index(shape, sent));
    let of_live: BTreeMap<&String, &Value> = live.iter().map(|(step, item)| (step, *item)).collect();
    let of_sent: BTreeSet<&String> = sent.iter().map(|(step, _)| step).collect();
    let mut shared: VecDeque<&String> =
        sent.iter().map(|(step, _)| step).filter(|step| of_live.contains_key(step)).collect();
    let mut next = shared.pop_front();
    let mut placed = BTreeSet::new();
    let mut merged = Vec::new();
    let (mut left, mut right) = (live.iter().peekable(), sent.iter().peekable());
    loop {
        match (left.peek().copied(), right.peek().copied()) {
            (None, None) => return merged,
            (Some((step, item)), Some((other, value))) if step == other => {
                merged.push(merge(shape.items(), Some(item), value));
                placed.insert(step);
                left.next();
                right.next();
                next = shared.pop_front();
            }
            // The item is in both lists, but comes later in the sent order.
            (Some((step, _)), Some(_)) if of_sent.contains(step) && next.is_some_and(|next| next != step) => {
                left.next();
            }
            (Some((step, item)), _) if !of_sent.contains(step) => {
                merged.push(Value::clone(item));
                left.next();
            }
            (at, other) => {
                if at.is_some_and(|(step, _)| placed.contains(step)) {
                    left.next();
                }
                if let Some((step, value)) = other {
                    merged.push(merge(shape.items(), of_live.get(step).copied(), value));
                    placed.insert(step);
                    right.next();
                    if next == Some(step) {
                        next = shared.pop_front();
                    }
                } else if at.is_some() {
                    left.next();
                }
            }
        }
    }
}

/// A value without some fields. What becomes empty becomes null.
pub(crate) fn remove(shape: Shape<'_>, value: &Value, fields: &FieldSet) -> Value {
    cut(shape, value, fields, &mut Vec::new())
}

fn cut(shape: Shape<'_>, value: &Value, set: &FieldSet, path: &mut Path) -> Value {
    let mut keep = |shape: Option<Shape<'_>>, step: String, within: &Value| {
        path.push(step);
        let kept = match shape {
            _ if set.has(path) => None,
            Some(shape) if set.has_within(path) => Some(cut(shape, within, set, path)),
            _ => Some(within.clone()),
        };
        path.pop();
        kept
    };
    match value {
        Value::Object(fields) => {
            let left: Map<String, Value> = fields
                .iter()
                .filter_map(|(name, within)| {
                    Some((name.clone(), keep(shape.member(name), format!("f:{name}"), within)?))
                })
                .collect();
            if left.is_empty() { Value::Null } else { Value::Object(left) }
        }
        Value::Array(items) if shape.list() != List::Atomic => {
            let left: Vec<Value> = items
                .iter()
                .filter_map(|item| match shape.item_step(item) {
                    Some(step) => keep(Some(shape.items()), step, item),
                    None => Some(item.clone()),
                })
                .collect();
            if left.is_empty() { Value::Null } else { Value::Array(left) }
        }
        other => other.clone(),
    }
}

/// Why a value cannot be applied: the first field that the schema does not have, or an item that cannot be told from another.
pub(crate) fn misfit(shape: Shape<'_>, value: &Value) -> Option<String> {
    unfit(shape, value, &mut Vec::new())
}

fn unfit(shape: Shape<'_>, value: &Value, path: &mut Path) -> Option<String> {
    let expected = |what: &str| {
        let found = match value {
            Value::String(text) => format!("string: {text}"),
            other => other.to_string(),
        };
        Some(format!("{}: expected {what}, got {found}", shown(path)))
    };
    match (shape.type_name(), value) {
        (_, Value::Null) => return None,
        (Some("object"), other) if !other.is_object() => return expected("map"),
        (Some("array"), other) if !other.is_array() => return expected("list"),
        (Some("string"), other) if !other.is_string() => {
            return expected("string");
        }
        (Some("integer" | "number"), other) if !other.is_number() => {
            return expected("numeric (int or float)");
        }
        (Some("boolean"), other) if !other.is_boolean() => return expected("boolean"),
        _ => {}
    }
    match value {
        Value::Object(fields) => fields.iter().find_map(|(name, within)| {
            path.push(format!("f:{name}"));
            let found = match shape.member(name) {
                Some(shape) => unfit(shape, within, path),
                None => Some(format!("{}: field not declared in schema", shown(path))),
            };
            path.pop();
            found
        }),
        Value::Array(items) => {
            let granular = shape.list() != List::Atomic;
            let mut steps = BTreeSet::new();
            items.iter().enumerate().find_map(|(index, item)| {
                let step = shape.item_step(item);
                if granular && step.is_none() {
                    let omits = "associative list with keys has an element that omits key fields";
                    return Some(format!("{}: element {index}: {omits}", shown(path)));
                }
                let step = step.unwrap_or_else(|| format!("[{index}]"));
                if granular && !steps.insert(step.clone()) {
                    return Some(format!("{}: duplicate entries for key {}", shown(path), shown(&[step])));
                }
                path.push(step);
                let found = unfit(shape.items(), item, path);
                path.pop();
                found
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({"type": "object", "properties": {
            "scalar": {"type": "string"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "selector": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
            "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"], "items": {
                "type": "object", "properties": {"port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}, "name": {"type": "string"}}}},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "atomic": {"type": "array", "items": {"type": "string"}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }})
    }

    fn with<T>(run: impl FnOnce(Shape<'_>) -> T) -> T {
        run(Shape::new(&Value::Null, &schema()))
    }

    #[test]
    fn the_field_set_of_a_value_is_as_the_api_server_writes_it() {
        let value = json!({"scalar": "x", "labels": {"a": "b"}, "selector": {"a": "b"}, "ports": [{"port": 80, "name": "http"}],
            "set": ["one"], "atomic": ["x"], "free": {"deep": {"x": [1]}}});
        let expected = json!({"f:scalar": {}, "f:labels": {"f:a": {}}, "f:selector": {}, "f:set": {"v:\"one\"": {}}, "f:atomic": {},
            "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:name": {}}},
            "f:free": {"f:deep": {".": {}, "f:x": {}}}});
        assert_eq!(with(|shape| field_set(shape, &value).to_fields_v1()), expected);
    }

    #[test]
    fn what_is_added_counts_with_all_that_holds_it() {
        let found = with(|shape| compare(shape, &json!({}), &json!({"labels": {"a": "b"}, "atomic": []})));
        let expected = FieldSet::named(&["labels", "labels.a", "atomic"]);
        assert_eq!(
            (found.added, found.modified, found.removed),
            (expected, FieldSet::default(), FieldSet::default())
        );
    }

    #[test]
    fn items_are_merged_by_their_keys_and_keep_their_order() {
        let live =
            json!({"ports": [{"port": 1, "protocol": "TCP"}, {"port": 2, "name": "two"}, {"port": 3}]});
        let sent = json!({"ports": [{"port": 4}, {"port": 2, "protocol": "TCP"}]});
        let merged = with(|shape| merge(shape, Some(&live), &sent));
        let ports: Vec<i64> =
            merged["ports"].as_array().unwrap().iter().map(|port| port["port"].as_i64().unwrap()).collect();
        assert_eq!(ports, [1, 4, 2, 3]);
        assert_eq!(merged["ports"][2], json!({"port": 2, "name": "two", "protocol": "TCP"}));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let misfit = |value: Value| with(|shape| misfit(shape, &value)).unwrap_or_default();
        assert_eq!(misfit(json!({"nope": 1})), ".nope: field not declared in schema");
        assert_eq!(misfit(json!({"scalar": 1})), ".scalar: expected string, got 1");
        assert!(
            misfit(json!({"ports": [{"port": 1}, {"port": 1}]}))
                .starts_with(".ports: duplicate entries for key")
        );
        assert_eq!(misfit(json!({"free": {"anything": {"goes": 1}}})), "");
    }
}
