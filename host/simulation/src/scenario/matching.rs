//! Compares an object with the fields that are expected of it.

use serde_json::Value;

/// Matches any value.
const ANY: &str = "$ANY";

/// The places where an object is not as expected, one on each line. A map must have at least the expected fields, a list exactly the
/// expected items, and `null` stands for an absent field.
pub fn differences(expected: &Value, found: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    compare("", expected, Some(found), &mut lines);
    lines
}

fn compare(path: &str, expected: &Value, found: Option<&Value>, lines: &mut Vec<String>) {
    let place = if path.is_empty() { "the object" } else { path };
    let Some(found) = found.filter(|found| !found.is_null()) else {
        if !expected.is_null() {
            lines.push(format!("{place}: expected {expected}, found nothing"));
        }
        return;
    };
    match (expected, found) {
        (Value::String(text), _) if text == ANY => {}
        (Value::Object(expected), Value::Object(found)) => {
            for (key, value) in expected {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                compare(&path, value, found.get(key), lines);
            }
        }
        (Value::Array(expected), Value::Array(items)) if expected.len() == items.len() => {
            for (index, value) in expected.iter().enumerate() {
                compare(&format!("{path}[{index}]"), value, items.get(index), lines);
            }
        }
        (Value::Null, _) => lines.push(format!("{place}: expected nothing, found {found}")),
        _ if expected == found => {}
        _ => lines.push(format!("{place}: expected {expected}, found {found}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_map_may_have_more_and_a_list_may_not() {
        assert!(differences(&json!({"a": {"b": 1}}), &json!({"a": {"b": 1, "c": 2}, "d": 3})).is_empty());
        assert_eq!(differences(&json!({"a": [1]}), &json!({"a": [1, 2]})), ["a: expected [1], found [1,2]"]);
        assert_eq!(
            differences(&json!({"a": [{"b": 1}]}), &json!({"a": [{"b": 2}]})),
            ["a[0].b: expected 1, found 2"]
        );
    }

    #[test]
    fn null_is_a_field_that_is_not_there() {
        assert!(differences(&json!({"a": null}), &json!({})).is_empty());
        assert_eq!(differences(&json!({"a": null}), &json!({"a": 1})), ["a: expected nothing, found 1"]);
        assert_eq!(differences(&json!({"a": "$ANY"}), &json!({})), ["a: expected \"$ANY\", found nothing"]);
        assert!(differences(&json!({"a": "$ANY"}), &json!({"a": {"b": 1}})).is_empty());
    }
}
