//! The errors of the API server about one field, in its own words. They become the `details.causes` of a Status.

use pintle_wit::{Cause, Failure};
use serde_json::Value;

/// The field of an error about the whole object.
const NO_FIELD: &str = "<nil>";

/// An error about a field; the path is empty for the whole object.
fn cause(path: &str, reason: &str, message: String) -> Cause {
    let field = if path.is_empty() { NO_FIELD } else { path };
    Cause { field: field.into(), reason: reason.into(), message }
}

/// The failure for an error.
pub(crate) fn failure(reason: &str, Cause { field, message, .. }: Cause) -> Failure {
    let failure = Failure::terminal(reason, message);
    if field == NO_FIELD { failure } else { failure.at(field) }
}

pub(crate) fn required(path: &str, detail: &str) -> Cause {
    cause(path, "FieldValueRequired", with_detail("Required value", detail))
}

pub(crate) fn forbidden(path: &str, detail: &str) -> Cause {
    cause(path, "FieldValueForbidden", format!("Forbidden: {detail}"))
}

pub(crate) fn invalid(path: &str, value: &Value, detail: &str) -> Cause {
    cause(path, "FieldValueInvalid", with_detail(&format!("Invalid value: {}", shown(value)), detail))
}

/// An error about the object as a whole, which shows no value.
pub(crate) fn invalid_null(detail: &str) -> Cause {
    invalid("", &Value::Null, detail)
}

/// An invalid value that is too large to show.
pub(crate) fn invalid_unseen(path: &str, detail: &str) -> Cause {
    cause(path, "FieldValueInvalid", with_detail("Invalid value", detail))
}

pub(crate) fn type_invalid(path: &str, value: &str, detail: &str) -> Cause {
    let message = with_detail(&format!("Invalid value: {}", quoted(value)), detail);
    cause(path, "FieldValueTypeInvalid", message)
}

pub(crate) fn not_supported(path: &str, value: &Value, allowed: &[Value]) -> Cause {
    let allowed = allowed.iter().map(|one| match one {
        Value::String(text) => quoted(text),
        other => quoted(&other.to_string()),
    });
    let allowed: Vec<String> = allowed.collect();
    let message = format!("Unsupported value: {}: supported values: {}", shown(value), allowed.join(", "));
    cause(path, "FieldValueNotSupported", message)
}

pub(crate) fn too_long(path: &str, most: u64) -> Cause {
    let unit = if most == 1 { "byte" } else { "bytes" };
    cause(path, "FieldValueTooLong", format!("Too long: may not be more than {most} {unit}"))
}

pub(crate) fn too_many(path: &str, found: usize, most: u64) -> Cause {
    let unit = if most == 1 { "item" } else { "items" };
    cause(path, "FieldValueTooMany", format!("Too many: {found}: must have at most {most} {unit}"))
}

pub(crate) fn duplicate(path: &str, value: &Value) -> Cause {
    cause(path, "FieldValueDuplicate", format!("Duplicate value: {}", shown(value)))
}

/// A duplicate that is too large to show.
pub(crate) fn duplicate_unseen(path: &str) -> Cause {
    cause(path, "FieldValueDuplicate", "Duplicate value".into())
}

fn with_detail(text: &str, detail: &str) -> String {
    if detail.is_empty() { text.into() } else { format!("{text}: {detail}") }
}

pub(crate) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn shown(value: &Value) -> String {
    match value.as_f64() {
        Some(number) if value.is_f64() => float(number),
        _ => value.to_string(),
    }
}

/// A number as Go prints it: six digits before it is written with an exponent.
pub(crate) fn float(number: f64) -> String {
    let scientific = format!("{number:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_shown_as_the_api_server_shows_it() {
        for (value, expected) in [
            (json!("a\"b"), r#"Invalid value: "a\"b": why"#),
            (json!(3), "Invalid value: 3: why"),
            (json!(0.5), "Invalid value: 0.5: why"),
            (json!(1_000_000.5), "Invalid value: 1.0000005e+06: why"),
            (json!(0.000_001), "Invalid value: 1e-06: why"),
            (json!({"a": [1]}), r#"Invalid value: {"a":[1]}: why"#),
        ] {
            assert_eq!(invalid("spec.x", &value, "why").message, expected);
        }
        assert_eq!(required("", "").field, "<nil>");
        assert_eq!(required("a", "").message, "Required value");
        assert_eq!(too_many("a", 3, 1).message, "Too many: 3: must have at most 1 item");
        let allowed = [json!("a"), json!(1)];
        let message = r#"Unsupported value: "c": supported values: "a", "1""#;
        assert_eq!(not_supported("a", &json!("c"), &allowed).message, message);
    }
}
