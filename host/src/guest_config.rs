//! Whether a Reconciler's config fits what its guest accepts.

use jsonschema::Draft;
use pintle_wit::{Failure, Manifest, reasons};
use serde_json::{Map, Value};

use crate::offline::openapi;

/// Checks a config against the schema in the manifest. No config counts as an empty one; a manifest without a schema accepts
/// nothing else.
///
/// # Errors
/// `ConfigInvalid`, with the path from the Reconciler's `spec`.
pub fn check(manifest: &Manifest, config: &Value) -> Result<(), Failure> {
    let invalid = |message: String, path: &str| {
        let inside = if path.is_empty() || path.starts_with('[') { "" } else { "." };
        Err(Failure::terminal(reasons::CONFIG_INVALID, message).at(format!("spec.config{inside}{path}")))
    };
    let Some(schema) = &manifest.config_schema else {
        return match config {
            Value::Null => Ok(()),
            Value::Object(fields) if fields.is_empty() => Ok(()),
            _ => invalid(format!("guest {} takes no config", manifest.name), ""),
        };
    };
    let empty = Value::Object(Map::new());
    let config = if config.is_null() { &empty } else { config };
    match openapi::validate(schema, config, Draft::Draft202012) {
        Ok(()) => Ok(()),
        Err(misfit) => invalid(misfit.message, &misfit.path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_config_that_does_not_fit_is_named_by_its_path() {
        let schema = json!({"type": "object", "additionalProperties": false, "properties": {"a": {"type": "object", "properties": {"b": {"type": "integer"}}}}});
        let manifest = Manifest { config_schema: Some(schema), ..Manifest::default() };
        assert_eq!(check(&manifest, &Value::Null), Ok(()));
        assert_eq!(check(&manifest, &json!({"a": {"b": 1}})), Ok(()));
        let failure = check(&manifest, &json!({"a": {"b": "x"}})).unwrap_err();
        assert_eq!((failure.reason.as_str(), failure.path.as_deref()), ("ConfigInvalid", Some("spec.config.a.b")));
        let failure = check(&manifest, &json!({"c": 1})).unwrap_err();
        assert!(failure.message.contains('c'), "{failure}");
    }

    #[test]
    fn a_guest_without_a_schema_takes_no_config() {
        let manifest = Manifest::default();
        assert_eq!(check(&manifest, &json!({})), Ok(()));
        assert!(check(&manifest, &json!({"a": 1})).is_err());
    }
}
