//! Whether a config fits the schema that a guest's manifest has for it.

use jsonschema::Draft;
use pintle_wit::{Failure, Manifest, reasons};
use serde_json::Value;

use crate::openapi;

/// Checks a Reconciler's config against the module's schema.
///
/// # Errors
/// `ConfigInvalid`, with the path of the first field at fault: `spec.config.domainSuffix`.
pub fn check(manifest: &Manifest, config: &Value) -> Result<(), Failure> {
    let refused =
        |path: String, message: String| Err(Failure::terminal(reasons::CONFIG_INVALID, message).at(path));
    let is_empty = config.is_null() || config.as_object().is_some_and(serde_json::Map::is_empty);
    let Some(schema) = &manifest.config_schema else {
        let name = &manifest.name;
        return if is_empty {
            Ok(())
        } else {
            refused("spec.config".into(), format!("the guest {name} takes no config"))
        };
    };
    let nothing = Value::Object(serde_json::Map::new());
    let config = if config.is_null() { &nothing } else { config };
    openapi::validate(schema, config, Draft::Draft202012).or_else(|misfit| {
        let below = if misfit.path.is_empty() { String::new() } else { format!(".{}", misfit.path) };
        refused(format!("spec.config{below}"), misfit.message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_config_is_checked_against_the_guests_schema() {
        let schema = json!({"type": "object", "properties": {"suffix": {"type": "string"}}, "additionalProperties": false});
        let manifest = Manifest { name: "g".into(), config_schema: Some(schema), ..Manifest::default() };
        let check = |config: Value| check(&manifest, &config).map_err(|failure| failure.path.unwrap());
        assert_eq!(check(json!({"suffix": "a"})), Ok(()));
        assert_eq!(check(Value::Null), Ok(()));
        assert_eq!(check(json!({"suffix": 1})), Err("spec.config.suffix".into()));
        assert_eq!(check(json!({"sufix": "a"})), Err("spec.config".into()));
    }

    #[test]
    fn a_guest_without_a_schema_takes_no_config() {
        let manifest = Manifest::default();
        assert!(check(&manifest, &json!({})).is_ok());
        assert!(check(&manifest, &json!({"a": 1})).is_err());
    }
}
