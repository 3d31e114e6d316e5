//! Checks whether a config fits the schema in a guest's manifest: a structural schema, as that of a CRD.
//!
//! The schema comes from a guest, so [`structural`](crate::structural) bounds it and counts the steps of a check. Still, do neither under a
//! lock or on a thread of the runtime: the worst schema takes about a second.

use pintle_core::reconciler;
use pintle_wit::{Cause, Failure, Manifest, bounded, reasons, views::ViewsManifest};
use serde_json::{Map, Value, json};

use crate::{
    cause::failure,
    structural::{STEPS_MAX, Structural},
};

/// The longest message, and the longest path, in bytes.
const SHOWN_BYTES_MAX: usize = 500;

/// The compiled schema of a guest's config. Cheap to clone. None if the guest takes no config.
#[derive(Clone, Debug)]
pub struct ConfigSchema(Option<Structural>);

/// Checks whether this host can run a guest with this manifest and its schema.
///
/// # Errors
/// As [`reconciler::supports`] and [`ConfigSchema::compile`].
pub fn supports(manifest: &Manifest) -> Result<ConfigSchema, Failure> {
    reconciler::supports(manifest)?;
    ConfigSchema::compile(manifest.config_schema.as_ref())
}

/// Checks whether this host can serve the views of a guest with this manifest and its schema.
///
/// # Errors
/// As [`ConfigSchema::compile`].
pub fn supports_views(manifest: &ViewsManifest) -> Result<ConfigSchema, Failure> {
    ConfigSchema::compile(manifest.config_schema.as_ref())
}

impl ConfigSchema {
    /// Compiles the schema that a manifest has, or none.
    ///
    /// # Errors
    /// `ConfigSchemaInvalid`, or `ManifestTooLarge` for more than a guest may have. The message names the place.
    pub fn compile(schema: Option<&Value>) -> Result<Self, Failure> {
        let Some(schema) = schema else { return Ok(Self(None)) };
        // In the place of the config, so that the paths of errors are those of a Reconciler or View.
        let whole = json!({"properties": {"spec": {"properties": {"config": schema}}}});
        let compiled = Structural::compile(&whole).map_err(|unsupported| {
            let reason = if unsupported.is_excess {
                reasons::MANIFEST_TOO_LARGE
            } else {
                reasons::CONFIG_SCHEMA_INVALID
            };
            let message = format!("the schema cannot be evaluated: {unsupported}");
            Failure::terminal(reason, bounded(message, SHOWN_BYTES_MAX)).at("configSchema")
        })?;
        let open = ["properties", "additionalProperties", "x-kubernetes-preserve-unknown-fields"];
        let takes_any = open.iter().filter_map(|keyword| schema.get(keyword)).any(|value| *value != false);
        Ok(Self(takes_any.then_some(compiled)))
    }

    /// Whether the guest takes no config, so that there is nothing to check.
    pub fn takes_none(&self) -> bool {
        self.0.is_none()
    }

    /// Checks a config. The guest gets the config as it is: it sets its own defaults, and a null is not left out.
    ///
    /// # Errors
    /// `ConfigInvalid`, with the path of the first field at fault: `spec.config.domainSuffix`. `ConfigTooExpensive` if the check needs more
    /// than ten million steps.
    pub fn check(&self, config: &Value) -> Result<(), Failure> {
        let nothing = json!({});
        let config = if config.is_null() { &nothing } else { config };
        let Some(schema) = &self.0 else { return check_empty(config) };
        let object = json!({"spec": {"config": config}});
        if let Some(path) = schema.prune(&mut object.clone()).first() {
            return Err(invalid(path, format!("the guest knows no such field{}", schema.did_you_mean(path))));
        }
        match schema.find(Vec::new(), &object, None) {
            Ok(causes) => causes.into_iter().next().map_or(Ok(()), |cause| Err(invalid_by(cause))),
            Err(_) => {
                let message = format!(
                    "checking it against the guest's schema takes more than {STEPS_MAX} steps; make the config smaller, or the \
                     schema simpler"
                );
                Err(Failure::terminal(reasons::CONFIG_TOO_EXPENSIVE, message).at("spec.config"))
            }
        }
    }
}

/// Checks the config of a guest that takes none. The error names the first field, so that the user knows what to remove.
fn check_empty(config: &Value) -> Result<(), Failure> {
    let fields = config.as_object();
    if fields.is_some_and(Map::is_empty) {
        return Ok(());
    }
    let name = fields.and_then(|fields| fields.keys().next());
    let path = name.map_or("spec.config".to_owned(), |name| format!("spec.config.{name}"));
    Err(invalid(&path, "this guest takes no config; remove it".to_owned()))
}

fn invalid(path: &str, message: String) -> Failure {
    let cause = Cause { field: path.to_owned(), message, ..Cause::default() };
    invalid_by(cause)
}

/// The failure for what is wrong with a config. Guests and users write parts of the message, which is cut.
fn invalid_by(Cause { field, message, .. }: Cause) -> Failure {
    let (field, message) = (bounded(field, SHOWN_BYTES_MAX), bounded(message, SHOWN_BYTES_MAX));
    failure(reasons::CONFIG_INVALID, Cause { field, message, ..Cause::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compiled(schema: Value) -> ConfigSchema {
        ConfigSchema::compile(Some(&schema)).expect("the schema is taken")
    }

    #[test]
    fn a_config_is_checked_against_the_guests_schema_and_a_misfit_is_named_by_its_path() {
        let port = json!({"type": "object", "properties": {"port": {"type": "integer", "maximum": 9}}});
        let schema = compiled(json!({"type": "object", "properties": {
            "suffix": {"type": "string", "default": "x"}, "inner": port, "list": {"type": "array", "items": port},
        }}));
        for fits in [json!(null), json!({}), json!({"suffix": "a", "list": [{"port": 1}]})] {
            assert_eq!(schema.check(&fits), Ok(()), "{fits}");
        }
        for (config, expected) in [
            (json!({"sufix": "a"}), "spec.config.sufix: the guest knows no such field; did you mean suffix?"),
            (
                json!({"list": [{"part": 1}]}),
                "spec.config.list[0].part: the guest knows no such field; did you mean port?",
            ),
            (json!({"metadata": {}}), "spec.config.metadata: the guest knows no such field"),
            (
                json!({"inner": {"port": "http"}}),
                r#"spec.config.inner.port: Invalid value: "string": spec.config.inner.port in body must be of type integer: "string""#,
            ),
            (
                json!({"inner": {"port": 10}}),
                "spec.config.inner.port: Invalid value: 10: spec.config.inner.port in body should be less than or equal to 9",
            ),
            (
                json!({"suffix": null}),
                r#"spec.config.suffix: Invalid value: "null": spec.config.suffix in body must be of type string: "null""#,
            ),
            (
                json!([]),
                r#"spec.config: Invalid value: "array": spec.config in body must be of type object: "array""#,
            ),
        ] {
            let failure = schema.check(&config).unwrap_err();
            assert_eq!(failure.to_string(), format!("ConfigInvalid: {expected}"), "{config}");
        }
    }

    /// The message for the operator: with no schema at all, and with that of the SDK's NoConfig.
    #[test]
    fn whoever_gives_a_config_to_a_guest_without_one_is_told_what_to_remove() {
        for schema in [ConfigSchema::compile(None).unwrap(), compiled(json!({"type": "object"}))] {
            assert!(schema.takes_none() && schema.check(&json!({})).is_ok());
            let failure = schema.check(&json!({"image": "nginx"})).unwrap_err();
            assert_eq!(
                failure.to_string(),
                "ConfigInvalid: spec.config.image: this guest takes no config; remove it"
            );
        }
    }

    #[test]
    fn a_schema_that_is_not_taken_is_refused_by_the_place_and_one_that_is_too_large_by_the_bound() {
        let many: Map<String, Value> = (0..10_000).map(|field| (format!("f{field}"), json!({}))).collect();
        for (schema, expected) in [
            (
                json!({"properties": {"a": {"$ref": "#/$defs/A"}}}),
                "ConfigSchemaInvalid: configSchema: the schema cannot be evaluated: $ref in spec.config.a of the schema",
            ),
            (
                json!({"properties": many}),
                "ManifestTooLarge: configSchema: the schema cannot be evaluated: more than 10000 schemas, ",
            ),
        ] {
            let refused = ConfigSchema::compile(Some(&schema)).unwrap_err().to_string();
            assert!(refused.starts_with(expected), "{refused}");
        }
    }

    #[test]
    fn a_config_that_takes_too_many_steps_is_refused() {
        let branches = vec![json!({"items": {"type": "integer"}}); 3_000];
        let schema = compiled(json!({"properties": {"list": {"oneOf": branches}}}));
        let failure = schema.check(&json!({"list": vec![1; 100_000]})).unwrap_err();
        assert_eq!(
            (failure.reason.as_str(), failure.path.as_deref()),
            (reasons::CONFIG_TOO_EXPENSIVE, Some("spec.config"))
        );
    }

    #[test]
    fn a_message_is_short_whatever_it_is_about() {
        let schema = compiled(json!({"properties": {"a": {"enum": vec!["y".repeat(1000); 500]}}}));
        for config in [json!({"a": "x".repeat(100_000)}), json!({"x".repeat(100_000): 1})] {
            assert!(schema.check(&config).unwrap_err().to_string().len() < 1_100);
        }
    }

    #[test]
    fn the_schemas_of_our_own_guests_are_taken() {
        for guest in ["darkroom", "webserver", "configmonitor"] {
            let path = format!("{}/../../guest-{guest}/config.schema.json", env!("CARGO_MANIFEST_DIR"));
            let schema = compiled(serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap());
            assert!(schema.check(&json!({})).is_ok(), "{guest}");
            assert!(schema.check(&json!({"unknown": 1})).is_err(), "{guest}");
        }
    }
}
