//! Field ownership, as far as these tests need it: maps are granular, lists are atomic, except for conditions (by type), owner
//! references (by uid) and `listeners` (by port).

use serde_json::{Map, Value, json};

/// Sets what `sent` has in `live`.
pub(crate) fn merge(live: &mut Value, sent: &Value, atomic_conditions: bool) {
    let (Value::Object(fields), Value::Object(sent)) = (&mut *live, sent) else {
        *live = sent.clone();
        return;
    };
    for (key, value) in sent {
        match (fields.get_mut(key), value) {
            (_, Value::Null) => {
                fields.remove(key);
            }
            (Some(there @ Value::Object(_)), Value::Object(_)) => merge(there, value, atomic_conditions),
            (Some(Value::Array(there)), Value::Array(items))
                if list_key(key, atomic_conditions).is_some() =>
            {
                let by = list_key(key, atomic_conditions).unwrap();
                for item in items {
                    match there.iter_mut().find(|other| other[by] == item[by]) {
                        Some(other) => merge(other, item, atomic_conditions),
                        None => there.push(item.clone()),
                    }
                }
            }
            _ => {
                fields.insert(key.clone(), value.clone());
            }
        }
    }
}

/// The fieldsV1 of what was sent.
pub(crate) fn owned(sent: &Value, atomic_conditions: bool) -> Value {
    let Value::Object(fields) = sent else { return json!({}) };
    let mut entry = Map::new();
    for (key, value) in fields {
        let below = match value {
            Value::Object(map) if map.is_empty() => json!({}),
            Value::Object(_) => owned(value, atomic_conditions),
            Value::Array(items) => match list_key(key, atomic_conditions) {
                Some(by) => items
                    .iter()
                    .map(|item| {
                        let mut below = owned(item, atomic_conditions);
                        below["."] = json!({});
                        (format!("k:{{\"{by}\":{}}}", item[by]), below)
                    })
                    .collect::<Map<_, _>>()
                    .into(),
                None => json!({}),
            },
            _ => json!({}),
        };
        // As the API server has it: a map or keyed list without members of its own leaves no trace.
        let traceless = matches!(value, Value::Array(items) if items.is_empty());
        if !traceless {
            entry.insert(format!("f:{key}"), below);
        }
    }
    Value::Object(entry)
}

/// Removes from `live` what `before` owned and `now` does not.
pub(crate) fn drop_unsent(live: &mut Value, before: &Value, now: &Value) {
    let Some(entries) = before.as_object() else { return };
    for (key, below) in entries {
        if let Some(name) = key.strip_prefix("f:") {
            let Some(fields) = live.as_object_mut() else { continue };
            match now.get(key) {
                None if is_leaf(below) => {
                    fields.remove(name);
                }
                other => {
                    if let Some(value) = fields.get_mut(name) {
                        drop_unsent(value, below, other.unwrap_or(&Value::Null));
                        if other.is_none() && is_empty(value) {
                            fields.remove(name);
                        }
                    }
                }
            }
        } else if let Some(keys) = key.strip_prefix("k:") {
            let (Some(items), None) = (live.as_array_mut(), now.get(key)) else { continue };
            let keys: Value = serde_json::from_str(keys).unwrap();
            items.retain(|item| keys.as_object().unwrap().iter().any(|(key, value)| item[key] != *value));
        }
    }
}

/// Somebody else takes the leaf at `path` (dotted) over: it leaves our entry, with the parents that it leaves empty.
pub(crate) fn disown(entry: &mut Value, path: &[&str]) {
    let (Some(fields), Some((first, rest))) = (entry.as_object_mut(), path.split_first()) else { return };
    let key = format!("f:{first}");
    let Some(below) = fields.get_mut(&key) else { return };
    if !rest.is_empty() && !is_leaf(below) {
        disown(below, rest);
        if !is_leaf(below) {
            return;
        }
    }
    fields.remove(&key);
}

fn list_key(field: &str, atomic_conditions: bool) -> Option<&'static str> {
    match field {
        "conditions" if !atomic_conditions => Some("type"),
        "ownerReferences" => Some("uid"),
        "listeners" => Some("port"),
        _ => None,
    }
}

fn is_leaf(entry: &Value) -> bool {
    entry.as_object().is_none_or(Map::is_empty)
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}
