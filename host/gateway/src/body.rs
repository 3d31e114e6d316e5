//! Bodies of requests: JSON or YAML, read strictly.

use pintle_core::view::{Status, accept::Body, query::FieldValidation};
use pintle_schema::strict;
use serde_json::Value;

/// The largest body, in bytes: as much as the API server takes.
pub(crate) const BODY_BYTES_MAX: usize = 3 << 20;

/// Reads an object.
///
/// # Errors
/// 400 for what is none, or has a field twice where the client wants to be strict.
pub(crate) fn object(
    form: Body,
    bytes: &[u8],
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<Value, Status> {
    let (object, duplicates) = match form {
        Body::Json => {
            let parsed = strict::parse(bytes)
                .map_err(|error| Status::bad_request(format!("the body is no JSON: {error}")))?;
            (parsed.value, parsed.duplicates)
        }
        Body::Yaml => (yaml(bytes)?, Vec::new()),
    };
    match object.is_object() {
        true => {
            warnings.extend(validation.judge(&duplicates, &[]).map_err(Status::bad_request)?);
            Ok(object)
        }
        false => Err(Status::bad_request("the body is no object")),
    }
}

/// Reads a YAML document. A key that is there twice is always an error in YAML.
fn yaml(bytes: &[u8]) -> Result<Value, Status> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Status::bad_request(format!("the body is no UTF-8: {error}")))?;
    serde_saphyr::from_str(text).map_err(|error| Status::bad_request(format!("the body is no YAML: {error}")))
}

/// What becomes of fields that the schema does not have.
///
/// # Errors
/// 400 where the client wants to be strict.
pub(crate) fn unknown_fields(
    unknown: &[String],
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<(), Status> {
    warnings.extend(validation.judge(&[], unknown).map_err(Status::bad_request)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(form: Body, text: &str, validation: FieldValidation) -> (Result<Value, u16>, Vec<String>) {
        let mut warnings = Vec::new();
        let read = object(form, text.as_bytes(), validation, &mut warnings).map_err(|status| status.code);
        (read, warnings)
    }

    #[test]
    fn an_object_is_read_from_json_and_yaml() {
        let object = json!({"spec": {"weight": 31.4}});
        assert_eq!(read(Body::Json, &object.to_string(), FieldValidation::Strict).0, Ok(object.clone()));
        assert_eq!(read(Body::Yaml, "spec:\n  weight: 31.4\n", FieldValidation::Strict).0, Ok(object));
        for wrong in ["", "[]", "{", "1"] {
            assert_eq!(read(Body::Json, wrong, FieldValidation::Ignore).0, Err(400), "{wrong}");
            assert_eq!(read(Body::Yaml, wrong, FieldValidation::Ignore).0, Err(400), "{wrong}");
        }
    }

    #[test]
    fn a_field_that_is_there_twice_is_refused_told_or_let_be() {
        let text = r#"{"spec": {"a": 1, "a": 2}}"#;
        assert_eq!(read(Body::Json, text, FieldValidation::Strict).0, Err(400));
        let (object, warnings) = read(Body::Json, text, FieldValidation::Warn);
        assert_eq!(
            (object.unwrap()["spec"]["a"].clone(), warnings),
            (json!(2), vec!["duplicate field \"spec.a\"".to_owned()])
        );
        assert!(read(Body::Json, text, FieldValidation::Ignore).1.is_empty());
    }
}
