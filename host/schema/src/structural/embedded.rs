//! Objects within objects (`x-kubernetes-embedded-resource`).

use pintle_core::view::status::fault::required;
use pintle_wit::{Cause, syntax};
use serde_json::Value;

use super::node::Node;
use crate::{builtin, cause::invalid, typed};

/// What is wrong with the apiVersion, kind and metadata of the objects within an object.
pub(super) fn misfits(node: &Node, value: &Value) -> Vec<Cause> {
    let mut found = Vec::new();
    check(node, value, "", &mut found);
    found
}

fn check(node: &Node, value: &Value, path: &str, found: &mut Vec<Cause>) {
    match value {
        Value::Object(fields) => {
            if node.words.is_embedded {
                embedded(value, path, found);
            }
            for (name, value) in fields {
                if let Some(member) = node.properties.get(name) {
                    check(member, value, &child(path, name), found);
                } else if let Some(member) = node.field(name) {
                    check(member, value, &format!("{path}[{name}]"), found);
                }
            }
        }
        Value::Array(items) => {
            if let Some(member) = &node.items {
                for (index, item) in items.iter().enumerate() {
                    check(member, item, &format!("{path}[{index}]"), found);
                }
            }
        }
        _ => {}
    }
}

fn child(path: &str, name: &str) -> String {
    if path.is_empty() { name.into() } else { format!("{path}.{name}") }
}

fn embedded(object: &Value, path: &str, found: &mut Vec<Cause>) {
    for (field, fault) in [("apiVersion", of_api_version as fn(&str) -> Option<String>), ("kind", of_kind)] {
        let at = child(path, field);
        match object.get(field) {
            None => found.push(required(&at, "")),
            Some(Value::String(text)) if text.is_empty() => {
                found.push(invalid(&at, &Value::from(""), "must not be empty"));
            }
            Some(value @ Value::String(text)) => {
                found.extend(fault(text).map(|why| invalid(&at, value, &why)));
            }
            Some(other) => found.push(invalid(&at, other, "must be a string")),
        }
    }
    let Some(metadata) = object.get("metadata") else { return };
    let at = child(path, "metadata");
    if let Err(why) = typed::read(builtin::metadata(), metadata, &at) {
        found.push(invalid(&at, metadata, &why));
    }
}

/// What is wrong with an apiVersion: the API server asks for no more than one slash.
fn of_api_version(text: &str) -> Option<String> {
    (text.matches('/').count() > 1).then(|| format!("unexpected GroupVersion string: {text}"))
}

fn of_kind(text: &str) -> Option<String> {
    let why = "may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric \
               characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or \
               'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
    (!syntax::is_kind(text)).then(|| why.into())
}
