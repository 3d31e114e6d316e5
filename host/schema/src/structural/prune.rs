//! Removes what a schema does not have.

use serde_json::Value;

use super::node::{Additional, Node};
use crate::{builtin, typed};

/// Fields of each object, which its schema need not declare.
const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes the fields that the schema does not have, at the root of an object. Their paths, sorted; those in the metadata of embedded
/// objects come last.
pub(super) fn root(node: &Node, object: &mut Value) -> Vec<String> {
    let (mut unknown, mut embedded) = (Vec::new(), Vec::new());
    prune(Some(node), object, &mut String::new(), true, &mut unknown);
    drop_nulls(Some(node), object);
    metadata(node, object, &mut String::new(), &mut embedded);
    unknown.sort();
    embedded.sort();
    unknown.extend(embedded);
    unknown
}

/// The same for a value at some place.
pub(super) fn value(node: &Node, value: &mut Value) {
    prune(Some(node), value, &mut String::new(), false, &mut Vec::new());
}

fn prune(node: Option<&Node>, value: &mut Value, path: &mut String, root: bool, unknown: &mut Vec<String>) {
    if node.is_some_and(|node| node.words.preserves_unknown) {
        return within(node, value, path, root, unknown);
    }
    match value {
        Value::Object(fields) => {
            let is_embedded = root || node.is_some_and(|node| node.words.is_embedded);
            fields.retain(|name, value| {
                if is_embedded && META.contains(&name.as_str()) {
                    return true;
                }
                let (member, is_known) = match node {
                    None => (None, false),
                    Some(node) => match (node.properties.get(name), &node.additional) {
                        (Some(member), _) => (Some(member), true),
                        (None, Some(Additional::Of(member))) => (Some(&**member), true),
                        (None, Some(Additional::Any)) => (None, true),
                        (None, None) => (None, false),
                    },
                };
                stepped(path, name, |path| match is_known {
                    true => prune(member, value, path, false, unknown),
                    false => unknown.push(path.clone()),
                });
                is_known
            });
        }
        Value::Array(items) => {
            let member = node.and_then(|node| node.items.as_deref());
            for (index, item) in items.iter_mut().enumerate() {
                indexed(path, index, |path| prune(member, item, path, false, unknown));
            }
        }
        _ => {}
    }
}

/// Prunes what is declared within a value that may have unknown fields.
fn within(node: Option<&Node>, value: &mut Value, path: &mut String, root: bool, unknown: &mut Vec<String>) {
    let Some(node) = node else { return };
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if (root || node.words.is_embedded) && META.contains(&name.as_str()) {
                    continue;
                }
                if let Some(member) = node.field(name) {
                    stepped(path, name, |path| prune(Some(member), value, path, false, unknown));
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                indexed(path, index, |path| within(node.items.as_deref(), item, path, false, unknown));
            }
        }
        _ => {}
    }
}

/// Drops the fields that are null although they may not be, and that have no default.
fn drop_nulls(node: Option<&Node>, value: &mut Value) {
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            let member = node.and_then(|node| node.field(name));
            if value.is_null() {
                return member.is_none_or(|member| member.words.nullable || member.default.is_some());
            }
            drop_nulls(member, value);
            true
        }),
        Value::Array(items) => {
            let member = node.and_then(|node| node.items.as_deref());
            items.iter_mut().for_each(|item| drop_nulls(member, item));
        }
        _ => {}
    }
}

/// Prunes the metadata of objects within the object.
fn metadata(node: &Node, value: &mut Value, path: &mut String, unknown: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if node.words.is_embedded && name == "metadata" {
                    let shape = builtin::metadata();
                    // What cannot be read is refused when the object is validated.
                    stepped(path, name, |path| {
                        if let Ok(read) = typed::read(shape, value, path) {
                            unknown.extend(read.unknown);
                            *value = read.value;
                        }
                    });
                } else if let Some(member) = node.field(name) {
                    stepped(path, name, |path| metadata(member, value, path, unknown));
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                if let Some(member) = &node.items {
                    indexed(path, index, |path| metadata(member, item, path, unknown));
                }
            }
        }
        _ => {}
    }
}

fn stepped(path: &mut String, name: &str, act: impl FnOnce(&mut String)) {
    let length = path.len();
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
    act(path);
    path.truncate(length);
}

fn indexed(path: &mut String, index: usize, act: impl FnOnce(&mut String)) {
    let length = path.len();
    path.push_str(&format!("[{index}]"));
    act(path);
    path.truncate(length);
}
