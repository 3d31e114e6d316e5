//! Objects of custom kinds: what their schema does not have is cut away, and what it forbids is refused.

use pintle_wit::Cause;
use serde_json::{Map, Value};

use crate::{apply::shape::Shape, failure::cause};

/// A value without the fields that its schema does not have.
pub(crate) fn pruned(shape: Shape<'_>, value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter_map(|(name, within)| {
                shape.member(name).map(|member| (name.clone(), pruned(member, within)))
            });
            Value::Object(kept.collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| pruned(shape.items(), item)).collect()),
        other => other.clone(),
    }
}

/// Everything in a value that its schema forbids. Rules in CEL are not evaluated.
pub(crate) fn misfits(shape: Shape<'_>, value: &Value) -> Vec<Cause> {
    let mut found = Vec::new();
    check(shape, value, "", &mut found);
    found
}

fn check(shape: Shape<'_>, value: &Value, path: &str, found: &mut Vec<Cause>) {
    let flag = |keyword: &str| shape.get(keyword) == Some(&Value::Bool(true));
    if value.is_null() && flag("nullable") {
        return;
    }
    let mut say = |path: &str, reason: &str, message: String| found.push(cause(path, reason, message));
    let fits = match shape.type_name() {
        _ if shape.is_int_or_string() => value.is_string() || value.is_i64() || value.is_u64(),
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0)
        }
        Some("number") => value.is_number(),
        _ => true,
    };
    if !fits {
        let expected = shape.type_name().unwrap_or("integer or string");
        let message = format!("Invalid value: {value}: {path} in body must be of type {expected}");
        return say(path, "FieldValueTypeInvalid", message);
    }
    if let Some(allowed) = shape.get("enum").and_then(Value::as_array)
        && !allowed.contains(value)
    {
        say(path, "FieldValueNotSupported", format!("Unsupported value: {value}"));
    }
    let number = |keyword: &str| shape.get(keyword).and_then(Value::as_f64);
    if let Some(given) = value.as_f64() {
        let exclusive = |keyword: &str| flag(keyword);
        let low = number("minimum")
            .is_some_and(|least| given < least || given <= least && exclusive("exclusiveMinimum"));
        let high = number("maximum")
            .is_some_and(|most| given > most || given >= most && exclusive("exclusiveMaximum"));
        let uneven = number("multipleOf").is_some_and(|step| (given / step).fract() != 0.0);
        if low || high || uneven {
            say(path, "FieldValueInvalid", format!("Invalid value: {value}: {path} in body is out of range"));
        }
    }
    let size = |value: &Value| match value {
        Value::String(text) => Some((text.chars().count(), "minLength", "maxLength")),
        Value::Array(items) => Some((items.len(), "minItems", "maxItems")),
        Value::Object(fields) => Some((fields.len(), "minProperties", "maxProperties")),
        _ => None,
    };
    if let Some((size, least, most)) = size(value) {
        let bound =
            |keyword: &str| shape.get(keyword).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
        if bound(most).is_some_and(|most| size > most) {
            say(path, "FieldValueTooLong", format!("Too long: {path} has {size}"));
        }
        if bound(least).is_some_and(|least| size < least) {
            say(
                path,
                "FieldValueInvalid",
                format!("Invalid value: {value}: {path} in body should be longer"),
            );
        }
    }
    if let (Some(pattern), Some(text)) = (shape.get("pattern").and_then(Value::as_str), value.as_str())
        && regex::Regex::new(pattern).is_ok_and(|pattern| !pattern.is_match(text))
    {
        say(
            path,
            "FieldValueInvalid",
            format!("Invalid value: {value}: {path} in body should match '{pattern}'"),
        );
    }
    match value {
        Value::Object(fields) => {
            let at = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            for name in shape
                .get("required")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
            {
                if !fields.contains_key(name) {
                    say(&at(name), "FieldValueRequired", "Required value".into());
                }
            }
            for (name, within) in fields {
                // Metadata has rules of its own.
                if path.is_empty() && name == "metadata" {
                    continue;
                }
                if let Some(member) = shape.member(name) {
                    check(member, within, &at(name), found);
                }
            }
        }
        Value::Array(items) => {
            let mut steps = std::collections::BTreeSet::new();
            for (index, item) in items.iter().enumerate() {
                let at = format!("{path}[{index}]");
                if let Some(step) = shape.item_step(item)
                    && !steps.insert(step)
                {
                    found.push(cause(&at, "FieldValueDuplicate", format!("Duplicate value: {item}")));
                }
                check(shape.items(), item, &at, found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({"type": "object", "properties": {
            "spec": {"type": "object", "required": ["size"], "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 5},
                "color": {"type": "string", "enum": ["red", "blue"]},
                "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 3},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }},
        }})
    }

    #[test]
    fn what_the_schema_does_not_have_is_cut_away() {
        let schema = schema();
        let object = json!({"spec": {"size": 1, "nope": 2, "free": {"any": {"thing": 1}}}, "other": 1});
        let kept = pruned(Shape::new(&Value::Null, &schema), &object);
        assert_eq!(kept, json!({"spec": {"size": 1, "free": {"any": {"thing": 1}}}}));
    }

    #[test]
    fn what_the_schema_forbids_is_named_by_its_path() {
        let schema = schema();
        for (spec, path) in [
            (json!({}), "spec.size"),
            (json!({"size": 9}), "spec.size"),
            (json!({"size": "x"}), "spec.size"),
            (json!({"size": 1, "color": "green"}), "spec.color"),
            (json!({"size": 1, "name": "X"}), "spec.name"),
            (json!({"size": 1, "name": "long"}), "spec.name"),
        ] {
            let causes = misfits(Shape::new(&Value::Null, &schema), &json!({"spec": spec}));
            assert_eq!(causes.first().map(|cause| cause.field.as_str()), Some(path), "{spec}");
        }
        assert!(misfits(Shape::new(&Value::Null, &schema), &json!({"spec": {"size": 2}})).is_empty());
    }
}
