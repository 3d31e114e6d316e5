//! What the API server does with an object of a CRD before a guest sees it: it refuses an object that does not fit the schema, and sets the
//! defaults. CEL rules are not evaluated here.

use jsonschema::{Draft, PatternOptions, Validator};
use pintle_core::{object, reasons};
use pintle_wit::Failure;
use serde_json::{Map, Value, json};

use crate::nearest::did_you_mean;

/// A version of a CRD.
#[derive(Clone, Debug)]
pub struct CrdVersion {
    /// The element of `spec.versions`.
    pub version: Value,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

impl CrdVersion {
    /// The version of `crd` for objects of this apiVersion.
    pub fn of(crd: &Value, api_version: &str) -> Option<Self> {
        let group = object::text(crd, &["spec", "group"])?;
        let versions = object::at(crd, &["spec", "versions"])?.as_array()?;
        let version = versions
            .iter()
            .find(|version| {
                object::text(version, &["name"]).is_some_and(|name| format!("{group}/{name}") == api_version)
            })?
            .clone();
        let namespaced = object::text(crd, &["spec", "scope"]) != Some("Cluster");
        Some(Self { version, namespaced })
    }

    /// Sets the defaults of the schema, and checks that the object fits it.
    ///
    /// # Errors
    /// `Invalid`, with the field's path.
    pub fn admit(&self, object: &mut Value) -> Result<(), Failure> {
        let Some(schema) = self.version.pointer("/schema/openAPIV3Schema") else { return Ok(()) };
        fill_in(schema, object);
        let mut unknown = Vec::new();
        unknown_fields(schema, object, "", true, &mut unknown);
        if let Some((path, near)) = unknown.into_iter().next() {
            let message = format!("the CRD knows no such field{near}");
            return Err(Failure::terminal(reasons::INVALID, message).at(path));
        }
        validate(&json_schema(schema), object, Draft::Draft4).map_err(|misfit| {
            let failure = Failure::terminal(reasons::INVALID, misfit.message);
            if misfit.path.is_empty() { failure } else { failure.at(misfit.path) }
        })
    }
}

/// The first place where a value does not fit its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The field, `spec.ports[0].name`; empty for the value itself.
    pub path: String,
    /// What is wrong with it.
    pub message: String,
}

/// Checks a value against a JSON Schema. Patterns are matched in linear time, and nothing is fetched, because schemas come from guests.
///
/// # Errors
/// The first misfit. A schema that is not valid is also an error.
pub fn validate(schema: &Value, value: &Value, draft: Draft) -> Result<(), Misfit> {
    let no_schema = |message: String| Misfit { path: String::new(), message };
    let validator: Validator = jsonschema::options()
        .with_draft(draft)
        .with_pattern_options(PatternOptions::regex())
        .build(schema)
        .map_err(|error| no_schema(format!("the schema is no JSON Schema: {error}")))?;
    match validator.iter_errors(value).next() {
        None => Ok(()),
        Some(error) => {
            Err(Misfit { path: dotted(error.instance_path().as_str()), message: error.to_string() })
        }
    }
}

/// A JSON pointer in the form in which Kubernetes writes paths: `/spec/ports/0/name` becomes `spec.ports[0].name`.
fn dotted(pointer: &str) -> String {
    let mut path = String::new();
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        let is_index = !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit());
        if is_index || step.contains(['.', '/']) {
            path.push_str(&format!("[{step}]"));
        } else {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(&step);
        }
    }
    path
}

/// A structural schema as a JSON Schema: `nullable` becomes a type.
fn json_schema(schema: &Value) -> Value {
    match schema {
        Value::Array(items) => items.iter().map(json_schema).collect(),
        Value::Object(fields) => {
            let mut out: Map<String, Value> =
                fields.iter().map(|(key, value)| (key.clone(), json_schema(value))).collect();
            if fields.get("nullable") == Some(&Value::Bool(true))
                && let Some(Value::String(name)) = fields.get("type")
            {
                out.insert("type".into(), json!([name, "null"]));
            }
            Value::Object(out)
        }
        scalar => scalar.clone(),
    }
}

fn fill_in(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            for (key, schema) in properties.into_iter().flatten() {
                if !fields.contains_key(key)
                    && let Some(default) = schema.get("default")
                {
                    fields.insert(key.clone(), default.clone());
                }
            }
            for (key, value) in fields.iter_mut() {
                if let Some(schema) = below(schema, key) {
                    fill_in(schema, value);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                items.iter_mut().for_each(|item| fill_in(schema, item));
            }
        }
        _ => {}
    }
}

fn below<'a>(schema: &'a Value, key: &str) -> Option<&'a Value> {
    let property = schema.get("properties").and_then(|properties| properties.get(key));
    property.or_else(|| schema.get("additionalProperties").filter(|schema| schema.is_object()))
}

fn unknown_fields(
    schema: &Value,
    value: &Value,
    path: &str,
    is_root: bool,
    found: &mut Vec<(String, String)>,
) {
    let preserves = schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                // The API server knows these fields of every object, and the schema does not describe metadata.
                if is_root && matches!(key.as_str(), "apiVersion" | "kind" | "metadata") {
                    continue;
                }
                let at = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                match below(schema, key) {
                    Some(schema) => unknown_fields(schema, value, &at, false, found),
                    None if preserves || schema.get("additionalProperties") == Some(&Value::Bool(true)) => {}
                    None => {
                        let known = schema.get("properties").and_then(Value::as_object);
                        let known = known.into_iter().flatten().map(|(name, _)| name.as_str());
                        found.push((at, did_you_mean(key, known)));
                    }
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for (index, item) in items.iter().enumerate() {
                    unknown_fields(schema, item, &format!("{path}[{index}]"), false, found);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version() -> CrdVersion {
        let crd = json!({"spec": {"group": "example.com", "scope": "Namespaced", "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {
            "type": "object", "required": ["spec"], "properties": {"spec": {"type": "object", "properties": {
                "replicas": {"type": "integer", "minimum": 0, "exclusiveMinimum": true, "default": 1},
                "ports": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string", "nullable": true}}}},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            }}},
        }}}]}});
        CrdVersion::of(&crd, "example.com/v1").unwrap()
    }

    fn admit(spec: Value) -> Result<Value, String> {
        let mut object =
            json!({"apiVersion": "example.com/v1", "kind": "X", "metadata": {"name": "a"}, "spec": spec});
        version()
            .admit(&mut object)
            .map(|()| object["spec"].take())
            .map_err(|failure| failure.path.unwrap_or_default())
    }

    #[test]
    fn a_misspelt_field_is_named_with_the_nearest() {
        let mut object = json!({"apiVersion": "example.com/v1", "kind": "X", "spec": {"replicsa": 1}});
        let failure = version().admit(&mut object).unwrap_err();
        assert_eq!(
            failure.to_string(),
            "Invalid: spec.replicsa: the CRD knows no such field; did you mean replicas?"
        );
    }

    #[test]
    fn defaults_are_filled_in() {
        assert_eq!(admit(json!({})), Ok(json!({"replicas": 1})));
    }

    #[test]
    fn what_does_not_fit_is_named_by_its_path() {
        assert_eq!(admit(json!({"replicas": 0})), Err("spec.replicas".into()));
        assert_eq!(admit(json!({"ports": [{"name": null}, {"name": 1}]})), Err("spec.ports[1].name".into()));
        assert_eq!(admit(json!({"replicsa": 1})), Err("spec.replicsa".into()));
        assert_eq!(admit(json!({"labels": {"example.com/a": 1}})), Err("spec.labels[example.com/a]".into()));
    }
}
