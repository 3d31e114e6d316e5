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
        let allowed: Vec<String> = allowed.iter().map(Value::to_string).collect();
        let message = format!("Unsupported value: {value}: supported values: {}", allowed.join(", "));
        say(path, "FieldValueNotSupported", message);
    }
    let mut wrong = |why: String| {
        let shown = if value.is_object() { Value::from("object").to_string() } else { value.to_string() };
        say(path, "FieldValueInvalid", format!("Invalid value: {shown}: {path} in body {why}"));
    };
    let number = |keyword: &str| shape.get(keyword).and_then(Value::as_f64);
    if let Some(given) = value.as_f64() {
        let (least, most) = (number("minimum"), number("maximum"));
        let (over, under) = (flag("exclusiveMinimum"), flag("exclusiveMaximum"));
        match least {
            Some(least) if over && given <= least => wrong(format!("should be greater than {least}")),
            Some(least) if given < least => wrong(format!("should be greater than or equal to {least}")),
            _ => {}
        }
        match most {
            Some(most) if under && given >= most => wrong(format!("should be less than {most}")),
            Some(most) if given > most => wrong(format!("should be less than or equal to {most}")),
            _ => {}
        }
        if let Some(step) = number("multipleOf").filter(|step| (given / step).fract() != 0.0) {
            wrong(format!("should be a multiple of {step}"));
        }
    }
    let size = match value {
        Value::String(text) => Some((text.chars().count(), "Length", "be at least", "chars long")),
        Value::Array(items) => Some((items.len(), "Items", "have at least", "items")),
        Value::Object(fields) => Some((fields.len(), "Properties", "have at least", "properties")),
        _ => None,
    };
    if let Some((size, what, verb, unit)) = size {
        let bound = |keyword: &str| {
            shape.get(keyword).and_then(Value::as_u64).and_then(|bound| usize::try_from(bound).ok())
        };
        if let Some(least) = bound(&format!("min{what}")).filter(|least| size < *least) {
            wrong(format!("should {verb} {least} {unit}"));
        }
        if let Some(most) = bound(&format!("max{what}")).filter(|most| size > *most) {
            let (reason, message) = match value {
                Value::String(_) => {
                    ("FieldValueTooLong", format!("Too long: may not be more than {most} bytes"))
                }
                Value::Array(_) => {
                    ("FieldValueTooMany", format!("Too many: {size}: must have at most {most} items"))
                }
                _ => ("FieldValueTooMany", format!("Too many: {size}: must have at most {most} properties")),
            };
            say(path, reason, message);
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
