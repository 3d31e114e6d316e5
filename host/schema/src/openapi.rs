//! What the API server does with an object of a CRD before a guest sees it: it refuses an object that does not fit the schema, and sets the
//! defaults.

use pintle_core::{object, reasons, view::status::fault::NO_FIELD, violations::Violations};
use pintle_wit::Failure;
use serde_json::Value;

use crate::structural::Structural;

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
    /// `Invalid`, with the path of the first field at fault, and the others in the message.
    pub fn admit(&self, object: &mut Value) -> Result<(), Failure> {
        let Some(schema) = self.version.pointer("/schema/openAPIV3Schema") else { return Ok(()) };
        let schema = Structural::of_crd(schema).map_err(|unsupported| {
            let message = format!("the schema of the CRD cannot be evaluated: {unsupported}");
            Failure::terminal(reasons::INVALID, message)
        })?;
        let mut violations = Violations::default();
        for path in schema.prune(object) {
            let message = format!("the CRD knows no such field{}", schema.did_you_mean(&path));
            violations.add(reasons::INVALID, path, message);
        }
        for cause in schema.admit(Vec::new(), object, None) {
            let path = if cause.field == NO_FIELD { "" } else { &cause.field };
            violations.add(reasons::INVALID, path, cause.message);
        }
        violations.into_result().map_err(|found| found.failure())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn version() -> CrdVersion {
        let crd = json!({"spec": {"group": "example.com", "scope": "Namespaced", "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {
            "type": "object", "required": ["spec"], "properties": {"spec": {"type": "object", "properties": {
                "replicas": {"type": "integer", "minimum": 0, "exclusiveMinimum": true, "default": 1},
                "ports": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string", "nullable": true}}}},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            }, "x-kubernetes-validations": [{"rule": "self.replicas < 10", "message": "at most nine"}]}},
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
    fn all_violations_are_told_at_once() {
        let spec = json!({"nope": 1, "replicas": 12, "labels": {"a": "b"}});
        let mut object = json!({"apiVersion": "example.com/v1", "kind": "X", "spec": spec});
        assert_eq!(
            version().admit(&mut object).unwrap_err().to_string(),
            "Invalid: spec.nope: the CRD knows no such field;\nspec: Invalid value: at most nine (Invalid)"
        );
        let spec = json!({"replicas": 0, "tags": ["a", "a"]});
        let mut object = json!({"apiVersion": "example.com/v1", "kind": "X", "spec": spec});
        let said = version().admit(&mut object).unwrap_err().to_string();
        assert!(said.contains("spec.replicas: ") && said.contains(";\nspec.tags[1]: "), "{said}");
    }

    #[test]
    fn defaults_are_filled_in() {
        assert_eq!(admit(json!({})), Ok(json!({"replicas": 1})));
    }

    #[test]
    fn what_does_not_fit_is_named_by_its_path() {
        for (spec, path) in [
            (json!({"replicas": 0}), "spec.replicas"),
            (json!({"ports": [{"name": null}, {"name": 1}]}), "spec.ports[1].name"),
            (json!({"replicsa": 1}), "spec.replicsa"),
            (json!({"labels": {"example.com/a": 1}}), "spec.labels.example.com/a"),
            (json!({"tags": ["a", "a"]}), "spec.tags[1]"),
            (json!({"replicas": 10}), "spec"),
        ] {
            assert_eq!(admit(spec), Err(path.into()));
        }
    }
}
