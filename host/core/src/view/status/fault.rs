//! What is wrong with a field, in the API server's own words: the causes of a 422.

use pintle_wit::Cause;
use serde_json::Value;

/// What stands in the place of the field when the object as a whole is at fault.
pub const NO_FIELD: &str = "<nil>";

/// A fault of a field; of the whole object, if the field is empty.
pub fn fault(field: &str, reason: &str, kind: &str, detail: &str) -> Cause {
    let message = if detail.is_empty() { kind.to_owned() } else { format!("{kind}: {detail}") };
    let field = if field.is_empty() { NO_FIELD } else { field };
    Cause { field: field.to_owned(), reason: reason.to_owned(), message }
}

/// The field is missing.
pub fn required(field: &str, detail: &str) -> Cause {
    fault(field, "FieldValueRequired", "Required value", detail)
}

/// The field may not be set as things are.
pub fn forbidden(field: &str, detail: &str) -> Cause {
    fault(field, "FieldValueForbidden", "Forbidden", detail)
}

/// The field has more than this many bytes.
pub fn too_long(field: &str, bytes_max: u64) -> Cause {
    let unit = if bytes_max == 1 { "byte" } else { "bytes" };
    fault(field, "FieldValueTooLong", "Too long", &format!("may not be more than {bytes_max} {unit}"))
}

/// The field has a text that it may not have.
pub fn invalid(field: &str, value: &str, detail: &str) -> Cause {
    fault(field, "FieldValueInvalid", &format!("Invalid value: {value:?}"), detail)
}

/// The field has a value that it may not have. The value is JSON.
pub fn invalid_value(field: &str, value: &str, detail: &str) -> Cause {
    fault(field, "FieldValueInvalid", &format!("Invalid value: {value}"), detail)
}

/// The field has a value that is none of these. The value is JSON.
pub fn not_supported(field: &str, value: &str, supported: &[impl AsRef<str>]) -> Cause {
    let supported: Vec<String> =
        supported.iter().map(|value| Value::from(value.as_ref()).to_string()).collect();
    let detail = format!("supported values: {}", supported.join(", "));
    fault(field, "FieldValueNotSupported", &format!("Unsupported value: {value}"), &detail)
}

/// Each fault once, as one text. None if there are none.
pub fn listed(causes: &[Cause]) -> Option<String> {
    let mut texts: Vec<String> = Vec::new();
    for cause in causes {
        let text = format!("{}: {}", cause.field, cause.message);
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!("[{}]", many.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_said_as_the_api_server_says_it() {
        for (cause, reason, message) in [
            (required("f", "say it"), "FieldValueRequired", "Required value: say it"),
            (forbidden("f", "not here"), "FieldValueForbidden", "Forbidden: not here"),
            (too_long("f", 128), "FieldValueTooLong", "Too long: may not be more than 128 bytes"),
            (invalid_value("f", "1", "no"), "FieldValueInvalid", "Invalid value: 1: no"),
            (invalid("f", "x", "no"), "FieldValueInvalid", "Invalid value: \"x\": no"),
            (
                not_supported("f", "\"x\"", &["a", "b"]),
                "FieldValueNotSupported",
                "Unsupported value: \"x\": supported values: \"a\", \"b\"",
            ),
        ] {
            assert_eq!((cause.reason.as_str(), cause.message.as_str()), (reason, message));
        }
    }
}
