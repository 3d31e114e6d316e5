//! Sets the defaults of a schema.

use serde_json::Value;

use super::node::Node;

/// Sets the defaults of what an object leaves out, also within defaults. A null where none may be counts as left out.
pub(super) fn set(node: &Node, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, member) in &node.properties {
                if let Some(default) = &member.default
                    && fields.get(name).is_none_or(|value| value.is_null() && !member.words.nullable)
                {
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in fields {
                if let Some(member) = node.field(name) {
                    set_null(member, value);
                    set(member, value);
                }
            }
        }
        Value::Array(items) => {
            if let Some(member) = &node.items {
                for item in items {
                    set_null(member, item);
                    set(member, item);
                }
            }
        }
        _ => {}
    }
}

/// An item or an undeclared field that is null although it may not be gets its default.
fn set_null(node: &Node, value: &mut Value) {
    if value.is_null()
        && !node.words.nullable
        && let Some(default) = &node.default
    {
        *value = default.clone();
    }
}
