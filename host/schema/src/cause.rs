//! The errors of the API server about one field of a custom kind, in its own words. They become the `details.causes` of a Status.

use pintle_core::view::status::fault::{self, NO_FIELD};
use pintle_wit::{Cause, Failure};
use serde_json::Value;

/// The failure for an error.
pub(crate) fn failure(reason: &str, Cause { field, message, .. }: Cause) -> Failure {
    let failure = Failure::terminal(reason, message);
    if field == NO_FIELD { failure } else { failure.at(field) }
}

pub(crate) fn invalid(path: &str, value: &Value, detail: &str) -> Cause {
    fault::invalid_value(path, &shown(value), detail)
}

/// An error about the object as a whole, which shows no value.
pub(crate) fn invalid_null(detail: &str) -> Cause {
    invalid("", &Value::Null, detail)
}

/// An invalid value that is too large to show.
pub(crate) fn invalid_unseen(path: &str, detail: &str) -> Cause {
    fault::fault(path, "FieldValueInvalid", "Invalid value", detail)
}

pub(crate) fn type_invalid(path: &str, value: &str, detail: &str) -> Cause {
    fault::fault(path, "FieldValueTypeInvalid", &format!("Invalid value: {}", quoted(value)), detail)
}

pub(crate) fn not_supported(path: &str, value: &Value, allowed: &[Value]) -> Cause {
    let text = |one: &Value| one.as_str().map_or_else(|| one.to_string(), str::to_owned);
    let allowed: Vec<String> = allowed.iter().map(text).collect();
    fault::not_supported(path, &shown(value), &allowed)
}

pub(crate) fn too_many(path: &str, found: usize, most: u64) -> Cause {
    let unit = if most == 1 { "item" } else { "items" };
    let detail = format!("must have at most {most} {unit}");
    fault::fault(path, "FieldValueTooMany", &format!("Too many: {found}"), &detail)
}

pub(crate) fn duplicate(path: &str, value: &Value) -> Cause {
    fault::fault(path, "FieldValueDuplicate", &format!("Duplicate value: {}", shown(value)), "")
}

/// A duplicate that is too large to show.
pub(crate) fn duplicate_unseen(path: &str) -> Cause {
    fault::fault(path, "FieldValueDuplicate", "Duplicate value", "")
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
        assert_eq!(invalid_null("why").field, "<nil>");
        assert_eq!(too_many("a", 3, 1).message, "Too many: 3: must have at most 1 item");
        let allowed = [json!("a"), json!(1)];
        let message = r#"Unsupported value: "c": supported values: "a", "1""#;
        assert_eq!(not_supported("a", &json!("c"), &allowed).message, message);
    }
}
