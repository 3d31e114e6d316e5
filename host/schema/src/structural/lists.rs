//! The items of sets and of keyed lists are different from each other.

use serde_json::{Map, Value, json};

use super::{
    found::{Counted, Found},
    node::{List, Node},
};
use crate::cause::{duplicate, invalid};

/// Finds items that a list has twice.
pub(super) fn check(node: &Node, value: &Value, path: &str, found: &mut Found) -> Counted {
    found.look_at(path)?;
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if let Some(member) = node.properties.get(name) {
                    let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    check(member, value, &path, found)?;
                } else if let Some(member) = node.field(name) {
                    check(member, value, &format!("{path}[{name}]"), found)?;
                }
            }
        }
        Value::Array(items) => {
            match &node.list {
                List::Atomic => {}
                List::Set => twice(items, path, found)?,
                List::Map(keys) => keyed(keys, items, path, found)?,
            }
            if let Some(member) = &node.items {
                for (index, item) in items.iter().enumerate() {
                    check(member, item, &format!("{path}[{index}]"), found)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

/// The fields by which an item is told from others.
pub(super) fn key(keys: &[String], item: &Value) -> Value {
    let given = keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
    Value::Object(given.collect::<Map<_, _>>())
}

fn keyed(keys: &[String], items: &[Value], path: &str, found: &mut Found) -> Counted {
    let is_other = |item: &&Value| !item.is_null() && !item.is_object();
    if let Some((index, item)) = items.iter().enumerate().find(|(_, item)| is_other(item)) {
        let path = format!("{path}[{index}]");
        return found.push(invalid(&path, item, "must be an object for an array of list-type map"));
    }
    found.spend(keys.len().saturating_mul(items.len()))?;
    twice(&items.iter().map(|item| key(keys, item)).collect::<Vec<_>>(), path, found)
}

fn twice(items: &[Value], path: &str, found: &mut Found) -> Counted {
    let mut seen = std::collections::BTreeMap::new();
    for (index, item) in items.iter().enumerate() {
        let times: &mut u32 = seen.entry(json!(item).to_string()).or_default();
        *times += 1;
        // An item that is there three times is named once.
        if *times == 2 {
            found.push(duplicate(&format!("{path}[{index}]"), item))?;
        }
    }
    Ok(())
}
