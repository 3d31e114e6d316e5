//! Reads objects as the API server reads those whose types are its own: of built-in kinds, and the metadata of all.

use pintle_core::quantity;
use serde_json::{Map, Value, json};

use crate::shape::Shape;

/// An object as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    /// The object without unknown fields, and without empty fields where empty means absent.
    pub value: Value,
    /// The paths of the fields that were left out because nobody knows them, sorted.
    pub unknown: Vec<String>,
}

/// Reads the value at a path, which is empty for a whole object.
///
/// # Errors
/// What does not fit, with its path.
pub fn read(shape: Shape<'_>, value: &Value, path: &str) -> Result<Read, String> {
    let mut unknown = Vec::new();
    let value = typed(shape, value, &mut path.to_owned(), &mut unknown)?.unwrap_or_else(|| json!({}));
    unknown.sort();
    Ok(Read { value, unknown })
}

fn typed(
    shape: Shape<'_>,
    value: &Value,
    path: &mut String,
    unknown: &mut Vec<String>,
) -> Result<Option<Value>, String> {
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
                let length = path.len();
                if length > 0 {
                    path.push('.');
                }
                path.push_str(name);
                let Some(member) = shape.member(name) else {
                    unknown.push(path.clone());
                    path.truncate(length);
                    continue;
                };
                let typed = typed(member, within, path, unknown)?;
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
            let mut read = Vec::with_capacity(items.len());
            for (index, item) in items.iter().enumerate() {
                let length = path.len();
                path.push_str(&format!("[{index}]"));
                read.extend(typed(shape.items(), item, path, unknown)?);
                path.truncate(length);
            }
            Ok(Some(Value::Array(read)))
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
            Value::Number(number) => Ok(Some(quantity::canonical(&number.to_string()).into())),
            Value::String(text) => Ok(Some(quantity::canonical(text).into())),
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
    use pintle_wit::Kind;

    use super::*;
    use crate::builtin;

    fn read_as(api_version: &str, kind: &str, object: &Value) -> Result<Read, String> {
        let schema = builtin::schema(&Kind::new(api_version, kind)).unwrap();
        read(Shape::new(builtin::definitions(), &schema), object, "")
    }

    #[test]
    fn what_is_unknown_or_means_nothing_is_dropped() {
        let object = json!({"metadata": {"name": "a", "labels": {}, "nmae": ""}, "data": {"k": ""}, "nope": 1, "immutable": null});
        let value = json!({"metadata": {"name": "a"}, "data": {"k": ""}});
        let unknown = vec!["metadata.nmae".into(), "nope".into()];
        assert_eq!(read_as("v1", "ConfigMap", &object), Ok(Read { value, unknown }));
        let field = json!({"type": "string", "default": ""});
        let versions = json!([{"name": "v1", "schema": {"openAPIV3Schema": {"properties": {"a": field}}}}]);
        let crd = json!({"spec": {"versions": versions}});
        let read = read_as("apiextensions.k8s.io/v1", "CustomResourceDefinition", &crd);
        assert_eq!(read.map(|read| read.value), Ok(crd));
    }

    #[test]
    fn what_has_another_type_is_named_by_its_path() {
        let spec = json!({"ports": [{"port": 1}, {"port": "http"}]});
        let why = read_as("v1", "Service", &json!({"spec": spec})).unwrap_err();
        assert_eq!(why, "cannot unmarshal string into field spec.ports[1].port of type int32");
        let metadata = json!({"name": "a", "labels": {"a": 1}});
        let why = read(builtin::metadata(), &metadata, "metadata").unwrap_err();
        assert_eq!(why, "cannot unmarshal number into field metadata.labels.a of type string");
    }
}
