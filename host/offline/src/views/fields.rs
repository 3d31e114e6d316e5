//! The fields of objects in the form in which the laws compare them.

use pintle_core::number;
use serde_json::Value;

/// A value in the form in which it is compared: null is absent, and 1.0 is 1, as to an API server.
pub fn normal(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let present = fields.iter().filter(|(_, value)| !value.is_null());
            Value::Object(present.map(|(name, value)| (name.clone(), normal(value))).collect())
        }
        Value::Array(items) => items.iter().map(normal).collect(),
        Value::Number(number) => number::stored(number).into(),
        other => other.clone(),
    }
}

/// Takes out of a value the fields that its schema marks `writeOnly`: a secret that is written and never shown.
pub fn without_write_only(value: &mut Value, schema: &Value) {
    let is_write_only = |schema: &Value| schema.get("writeOnly") == Some(&Value::Bool(true));
    match value {
        Value::Object(fields) => {
            let declared = schema.get("properties").and_then(Value::as_object);
            let of = |name: &str| {
                let declared = declared.and_then(|declared| declared.get(name));
                declared.or_else(|| schema.get("additionalProperties"))
            };
            fields.retain(|name, _| !of(name).is_some_and(is_write_only));
            for (name, value) in fields {
                if let Some(schema) = of(name) {
                    without_write_only(value, schema);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                items.iter_mut().for_each(|item| without_write_only(item, schema));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn null_is_absent_and_one_is_one_however_it_is_written() {
        assert_eq!(normal(&json!({"a": null, "b": [1.0, 0.5, null]})), json!({"b": [1, 0.5, null]}));
    }

    #[test]
    fn what_is_only_written_is_taken_out_at_every_depth() {
        let secret = json!({"type": "string", "writeOnly": true});
        let schema = json!({"properties": {"token": secret, "users": {"items": {"properties": {"password": secret}}},
            "more": {"additionalProperties": secret}}});
        let mut value = json!({"token": "t", "users": [{"name": "a", "password": "p"}], "more": {"x": "y"}});
        without_write_only(&mut value, &schema);
        assert_eq!(value, json!({"users": [{"name": "a"}], "more": {}}));
    }
}
