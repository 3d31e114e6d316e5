//! Checks that an object has only fields that its kind declares, with values of the declared types. The API server says the same about an
//! apply; this needs no API server, and gives the path as in JSON.

use std::collections::BTreeMap;

use pintle_core::{object, reasons};
use pintle_wit::{Failure, Kind};
use serde_json::Value;

use crate::{builtin, nearest::did_you_mean, shape::Shape};

/// The schemas of kinds: built-in ones that this program has, and those of CRDs.
#[derive(Clone, Debug, Default)]
pub struct Kinds {
    custom: BTreeMap<Kind, Value>,
}

impl Kinds {
    /// The built-in kinds, and those of these CRDs. Other objects are skipped.
    pub fn with_crds<'a>(crds: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut custom = BTreeMap::new();
        for crd in crds {
            let (Some(group), Some(kind)) =
                (object::text(crd, &["spec", "group"]), object::text(crd, &["spec", "names", "kind"]))
            else {
                continue;
            };
            let versions = object::at(crd, &["spec", "versions"]).and_then(Value::as_array);
            for version in versions.into_iter().flatten() {
                let Some(name) = object::text(version, &["name"]) else { continue };
                let schema = version.pointer("/schema/openAPIV3Schema").unwrap_or(&Value::Null);
                custom.insert(Kind::new(format!("{group}/{name}"), kind), builtin::with_metadata(schema));
            }
        }
        Self { custom }
    }

    /// Whether there is a schema of this kind, so that [`Kinds::fit`] says something about its objects.
    pub fn has(&self, kind: &Kind) -> bool {
        self.custom.contains_key(kind) || builtin::schema(kind).is_some()
    }

    /// Finds the first field of an object that its kind does not declare, or whose value has another type: `FieldUndeclared` or `Invalid`,
    /// with the path after `at`. If the kind is unknown, everything fits. Missing fields are not reported.
    ///
    /// The failure for that field.
    pub fn fit(&self, object: &Value, at: &str) -> Result<(), Failure> {
        let kind = object::kind(object);
        let (schema, whose) = match self.custom.get(&kind) {
            Some(schema) => (schema.clone(), "in its CRD".to_owned()),
            None => match builtin::schema(&kind) {
                Some(schema) => (schema, format!("in Kubernetes {}", builtin::KUBERNETES)),
                None => return Ok(()),
            },
        };
        let mut path = at.to_owned();
        let shape = Shape::new(builtin::definitions(), &schema);
        let Some(misfit) = misfit(shape, object, &mut path) else { return Ok(()) };
        let about = object::reference(object);
        let (reason, message) = match misfit {
            Unfit::Undeclared { name, near } => {
                (reasons::FIELD_UNDECLARED, format!("{about} has no field {name} {whose}{near}"))
            }
            Unfit::Type { found, wanted } => (reasons::INVALID, format!("{about}: {found} is not {wanted}")),
        };
        Err(Failure::terminal(reason, message).at(path))
    }
}

enum Unfit {
    Undeclared { name: String, near: String },
    Type { found: String, wanted: &'static str },
}

/// The longest value that is shown, in characters.
const SHOWN_MAX: usize = 60;

/// The first misfit. Afterwards `path` is its path.
fn misfit(shape: Shape<'_>, value: &Value, path: &mut String) -> Option<Unfit> {
    let wanted = match (shape.type_name(), value) {
        // Null counts as absent.
        (_, Value::Null) => return None,
        (Some("object"), other) if !other.is_object() => Some("an object"),
        (Some("array"), other) if !other.is_array() => Some("a list"),
        (Some("string"), other) if !other.is_string() => Some("text (put it in quotes)"),
        (Some("integer"), other) if !other.is_i64() && !other.is_u64() => Some("an integer"),
        (Some("number"), other) if !other.is_number() => Some("a number"),
        (Some("boolean"), other) if !other.is_boolean() => Some("true or false"),
        _ => None,
    };
    if let Some(wanted) = wanted {
        return Some(Unfit::Type { found: shown(value), wanted });
    }
    let before = path.len();
    match value {
        Value::Object(fields) => {
            for (name, within) in fields {
                step(path, name);
                let Some(member) = shape.member(name) else {
                    let near = did_you_mean(name, shape.fields().map(|(name, _)| name.as_str()));
                    return Some(Unfit::Undeclared { name: name.clone(), near });
                };
                if let Some(found) = misfit(member, within, path) {
                    return Some(found);
                }
                path.truncate(before);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                if let Some(found) = misfit(shape.items(), item, path) {
                    return Some(found);
                }
                path.truncate(before);
            }
        }
        _ => {}
    }
    None
}

/// In the form in which Kubernetes writes paths: `metadata.labels[example.com/a]`.
fn step(path: &mut String, name: &str) {
    match name.contains(['.', '/']) {
        true => path.push_str(&format!("[{name}]")),
        false if path.is_empty() => path.push_str(name),
        false => path.push_str(&format!(".{name}")),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) => "an object".into(),
        Value::Array(_) => "a list".into(),
        other => {
            let text = other.to_string();
            match text.char_indices().nth(SHOWN_MAX) {
                None => text,
                Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(spec: Value) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
    }

    fn said(object: &Value) -> String {
        Kinds::default()
            .fit(object, "children[0].object")
            .map_or_else(|failure| failure.to_string(), |()| "fits".into())
    }

    #[test]
    fn a_misspelt_field_is_named_with_the_nearest_that_there_are() {
        assert_eq!(
            said(&deployment(json!({"replica": 1}))),
            "FieldUndeclared: children[0].object.spec.replica: Deployment web has no field replica in Kubernetes 1.36; did you mean replicas?"
        );
        let ports = json!([{"name": "http", "containerport": 80}]);
        let template = json!({"spec": {"containers": [{"name": "a", "ports": ports}]}});
        assert_eq!(
            said(&deployment(json!({"template": template}))),
            "FieldUndeclared: children[0].object.spec.template.spec.containers[0].ports[0].containerport: Deployment web has no field containerport in Kubernetes 1.36; did you mean containerPort?"
        );
    }

    #[test]
    fn a_value_of_another_type_is_named_with_what_it_should_be() {
        for (object, wanted) in [
            (
                deployment(json!({"replicas": "3"})),
                r#"Invalid: children[0].object.spec.replicas: Deployment web: "3" is not an integer"#,
            ),
            (
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a.b": 1}}),
                "Invalid: children[0].object.data[a.b]: ConfigMap a: 1 is not text (put it in quotes)",
            ),
            (
                deployment(json!([])),
                "Invalid: children[0].object.spec: Deployment web: a list is not an object",
            ),
        ] {
            assert_eq!(said(&object), wanted);
        }
    }

    #[test]
    fn what_the_api_server_takes_fits() {
        let resources = json!({"limits": {"cpu": 1, "memory": "64Mi"}});
        let container = json!({"name": "a", "resources": resources, "env": [{"name": "A", "value": null}]});
        let template = json!({"metadata": {"labels": {"a.b/c": "d"}}, "spec": {"containers": [container]}});
        let strategy = json!({"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}});
        let object = deployment(json!({"template": template, "strategy": strategy}));
        assert_eq!(said(&object), "fits");
        let probe = json!({"httpGet": {"port": "http", "path": "/"}});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "livenessProbe": probe}]}});
        assert_eq!(said(&pod), "fits");
        assert_eq!(
            said(&json!({"apiVersion": "example.com/v1", "kind": "X", "anything": {"goes": 1}})),
            "fits"
        );
    }

    #[test]
    fn the_schemas_of_crds_count_too() {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}});
        let crd = json!({"spec": {
            "group": "example.com", "names": {"kind": "Thing"}, "versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}],
        }});
        let kinds = Kinds::with_crds([&crd]);
        let thing = |spec: Value| json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec});
        assert!(kinds.fit(&thing(json!({"size": 1})), "").is_ok());
        let failure = kinds.fit(&thing(json!({"sise": 1})), "").unwrap_err();
        assert_eq!(
            failure.to_string(),
            "FieldUndeclared: spec.sise: Thing a has no field sise in its CRD; did you mean size?"
        );
    }
}
