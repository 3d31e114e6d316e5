//! Sets the defaults of a schema.

use serde_json::Value;

use super::{
    found::{Counted, Found},
    node::Node,
};

/// Sets the defaults of what an object leaves out, also within defaults. A null where none may be counts as left out.
pub(super) fn set(node: &Node, value: &mut Value, found: &mut Found) -> Counted {
    match value {
        Value::Object(fields) => {
            found.spend(1 + node.properties.len())?;
            for (name, member) in &node.properties {
                if let Some(default) = &member.default
                    && fields.get(name).is_none_or(|value| value.is_null() && !member.words.nullable)
                {
                    fields.insert(name.clone(), found.copy(default)?);
                }
            }
            for (name, value) in fields {
                if let Some(member) = node.field(name) {
                    set_null(member, value, found)?;
                    set(member, value, found)?;
                }
            }
        }
        Value::Array(items) => {
            if let Some(member) = &node.items {
                for item in items {
                    set_null(member, item, found)?;
                    set(member, item, found)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

/// An item or an undeclared field that is null although it may not be gets its default.
fn set_null(node: &Node, value: &mut Value, found: &mut Found) -> Counted {
    if value.is_null()
        && !node.words.nullable
        && let Some(default) = &node.default
    {
        *value = found.copy(default)?;
    }
    Ok(())
}
