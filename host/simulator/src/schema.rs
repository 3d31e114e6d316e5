//! What the API server changes in an object by the schema of its kind, before it stores the object.

use pintle_schema::shape::Shape;
use serde_json::{Map, Value, json};

use crate::apply::fields::FieldSet;

/// The fields that a write cannot set: the status for most writes, and the reverse for writes of the status.
pub(crate) fn resets(kind: &str, custom: bool, status: bool, subresource: bool) -> FieldSet {
    match (subresource, custom, kind) {
        (false, ..) if status && kind != "CustomResourceDefinition" => FieldSet::named(&["status"]),
        (false, ..) => FieldSet::default(),
        (true, true, _) => FieldSet::named(&["metadata", "spec"]),
        (true, false, "Deployment") => FieldSet::named(&["spec", "metadata.labels"]),
        (true, false, _) => FieldSet::named(&["spec"]),
    }
}

/// An object of a built-in kind as the API server reads it: without unknown fields, and without empty fields where empty means absent.
///
/// # Errors
/// What does not fit, with its path.
pub(crate) fn normal(shape: Shape<'_>, object: &Value) -> Result<Value, String> {
    typed(shape, object, &mut String::new()).map(|value| value.unwrap_or_else(|| json!({})))
}

fn typed(shape: Shape<'_>, value: &Value, path: &mut String) -> Result<Option<Value>, String> {
    let wrong =
        |what: &str| Err(format!("cannot unmarshal {} into field {path} of type {what}", noun(value)));
    if value.is_null() {
        return Ok(None);
    }
    if shape.is_open() {
        return Ok(Some(value.clone()));
    }
    match (shape.type_name(), value) {
        (Some("object"), Value::Object(fields)) => {
            let mut kept = Map::new();
            for (name, within) in fields {
                let declared = shape.field(name);
                let Some(member) = shape.member(name) else { continue };
                let length = path.len();
                path.push('.');
                path.push_str(name);
                let typed = typed(member, within, path)?;
                path.truncate(length);
                match typed {
                    Some(within) if declared.is_none() || !is_empty(name, member, &within) => {
                        kept.insert(name.clone(), within);
                    }
                    None if declared.is_none() && member.type_name() == Some("string") => {
                        kept.insert(name.clone(), "".into());
                    }
                    _ => {}
                }
            }
            Ok(Some(Value::Object(kept)))
        }
        (Some("object"), _) => wrong("object"),
        (Some("array"), Value::Array(items)) => {
            let items: Result<Vec<_>, _> =
                items.iter().map(|item| typed(shape.items(), item, path)).collect();
            Ok(Some(Value::Array(items?.into_iter().flatten().collect())))
        }
        (Some("array"), _) => wrong("array"),
        (Some("string"), Value::String(_)) => Ok(Some(value.clone())),
        (Some("string"), _) => wrong("string"),
        (Some("integer"), Value::Number(number)) if number.is_f64() => wrong("int32"),
        (Some("integer" | "number"), Value::Number(_)) => Ok(Some(value.clone())),
        (Some("integer" | "number"), _) => wrong("int32"),
        (Some("boolean"), Value::Bool(_)) => Ok(Some(value.clone())),
        (Some("boolean"), _) => wrong("bool"),
        _ if shape.is_quantity() => match value {
            Value::Number(number) => Ok(Some(crate::quantity::canonical(&number.to_string()).into())),
            Value::String(text) => Ok(Some(crate::quantity::canonical(text).into())),
            _ => wrong("quantity"),
        },
        _ => Ok(Some(value.clone())),
    }
}

fn noun(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Fields for which zero means absent, although their type does not say so.
const ZERO_IS_ABSENT: [&str; 11] = [
    "failureThreshold",
    "healthCheckNodePort",
    "hostPort",
    "initialDelaySeconds",
    "minReadySeconds",
    "nodePort",
    "observedGeneration",
    "periodSeconds",
    "successThreshold",
    "timeoutSeconds",
    "unavailableReplicas",
];
const FALSE_IS_ABSENT: [&str; 10] = [
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "paused",
    "publishNotReadyAddresses",
    "readOnly",
    "stdin",
    "stdinOnce",
    "tty",
    "preserveUnknownFields",
];
/// Fields for which an empty text does not mean absent.
const EMPTY_IS_KEPT: [&str; 3] = ["ingressClassName", "storageClassName", "volumeName"];

fn is_empty(name: &str, shape: Shape<'_>, value: &Value) -> bool {
    if shape.is_open() {
        // The default of a field in a CRD may be empty.
        return value.is_null();
    }
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty() && shape.get("additionalProperties").is_some(),
        Value::String(text) => text.is_empty() && !EMPTY_IS_KEPT.contains(&name),
        Value::Number(number) => number.as_i64() == Some(0) && ZERO_IS_ABSENT.contains(&name),
        Value::Bool(set) => !set && FALSE_IS_ABSENT.contains(&name),
    }
}

#[cfg(test)]
mod tests {
    use pintle_schema::builtin;
    use pintle_wit::Kind;

    use super::*;

    #[test]
    fn what_is_unknown_or_means_nothing_is_dropped() {
        let schema = builtin::schema(&Kind::new("v1", "ConfigMap")).unwrap();
        let shape = Shape::new(builtin::definitions(), &schema);
        let object =
            json!({"metadata": {"name": "a", "labels": {}}, "data": {"k": ""}, "nope": 1, "immutable": null});
        assert_eq!(normal(shape, &object), Ok(json!({"metadata": {"name": "a"}, "data": {"k": ""}})));
        assert!(normal(shape, &json!({"data": {"k": 1}})).is_err());
        let schema =
            builtin::schema(&Kind::new("apiextensions.k8s.io/v1", "CustomResourceDefinition")).unwrap();
        let shape = Shape::new(builtin::definitions(), &schema);
        let field = json!({"type": "string", "default": ""});
        let versions = json!([{"name": "v1", "schema": {"openAPIV3Schema": {"properties": {"a": field}}}}]);
        let crd = json!({"spec": {"versions": versions}});
        assert_eq!(normal(shape, &crd), Ok(crd));
    }
}
