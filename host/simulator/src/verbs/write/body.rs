//! Reads the object from the body of a request as the API server does, and makes what it is compared with.

use pintle_schema::{builtin, typed};
use serde_json::{Value, json};

use crate::{
    Failure,
    apply::{
        fields::FieldSet,
        managed::{Manager, Managers, Write},
    },
    defaults,
    failure::cause,
    kinds::Served,
};

/// The managers of an object. If it has none, an earlier manager gets all of its fields.
pub(super) fn managers_of(served: &Served, live: &Value, write: &Write<'_>) -> Managers {
    let managers = Managers::of(live);
    if !managers.is_empty() {
        return managers;
    }
    let name = "before-first-apply";
    let manager = Manager::update(name, write.api_version, Some(&write.manager.subresource));
    let before = Write { manager, ..*write };
    Managers::default().updated(&before, &blank(served), &plain(live))
}

/// The object without its managed fields.
pub(super) fn plain(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}

/// An object of this kind with no fields set. A create is compared with it. Only kinds whose managed fields tests compare have more than
/// metadata.
pub(super) fn blank(served: &Served) -> Value {
    let mut blank = json!({"apiVersion": served.api_version(), "kind": served.kind});
    if served.custom {
        return blank;
    }
    blank["metadata"] = json!({});
    let (spec, status) = match served.kind.as_str() {
        "Deployment" => {
            let template = json!({"metadata": {}, "spec": {"containers": null}});
            (json!({"selector": null, "template": template, "strategy": {}}), json!({}))
        }
        "Service" | "Ingress" => (json!({}), json!({"loadBalancer": {}})),
        "PodDisruptionBudget" => (json!({}), defaults::no_disruptions()),
        _ => return blank,
    };
    blank["spec"] = spec;
    blank["status"] = status;
    blank
}

/// The fields that a write cannot set: the status for most writes, and the reverse for writes of the status.
pub(super) fn resets(served: &Served, subresource: Option<&str>) -> FieldSet {
    let fields: &[&str] = match subresource {
        None if served.status && !served.is("CustomResourceDefinition") => &["status"],
        None => &[],
        Some(_) if served.custom => &["metadata", "spec"],
        Some(_) if served.is("Deployment") => &["spec", "metadata.labels"],
        Some(_) => &["spec"],
    };
    FieldSet::named(fields)
}

/// An object as it was read.
pub(super) struct Decoded {
    /// The object without unknown fields, and with defaults.
    pub(super) object: Value,
    /// The paths of the fields that nobody knows.
    pub(super) unknown: Vec<String>,
}

/// The object that an apply leads to. It has no unknown fields, and nulls stay in it.
///
/// # Errors
/// 400 if it cannot be read.
pub(super) fn applied(served: &Served, merged: &Value) -> Result<Value, Failure> {
    if !served.custom {
        return decoded(served, merged).map(|decoded| decoded.object);
    }
    let mut object = merged.clone();
    object["metadata"] = metadata(merged)?.value;
    complete(served, &mut object);
    Ok(object)
}

/// The metadata of an object of a custom kind.
fn metadata(object: &Value) -> Result<typed::Read, Failure> {
    let given = object.get("metadata").unwrap_or(&Value::Null);
    typed::read(builtin::metadata(), given, "metadata").map_err(Failure::bad_request)
}

/// The object in a body as the API server reads it.
///
/// # Errors
/// 400 if it cannot be read.
pub(super) fn decoded(served: &Served, sent: &Value) -> Result<Decoded, Failure> {
    if !sent.is_object() {
        return Err(Failure::bad_request(
            "couldn't get version/kind; json parse error: an object is expected",
        ));
    }
    let mut object = sent.clone();
    let mut unknown;
    if object.get("metadata").is_none_or(Value::is_null) {
        object["metadata"] = json!({});
    }
    for (field, value) in [("apiVersion", served.api_version()), ("kind", served.kind.clone())] {
        if object[field].as_str().unwrap_or_default().is_empty() {
            object[field] = value.into();
        }
    }
    if let Some(structural) = &served.structural {
        let metadata = metadata(&object)?;
        unknown = metadata.unknown;
        unknown.extend(structural.prune(&mut object));
        object["metadata"] = metadata.value;
    } else {
        let read = typed::read(served.shape(), &object, "")
            .map_err(|why| unreadable(served, &format!("json: {why}")))?;
        unknown = read.unknown;
        object = read.value;
    }
    if object.get("metadata").is_none() {
        object["metadata"] = json!({});
    }
    complete(served, &mut object);
    Ok(Decoded { object, unknown })
}

/// A body that is not an object of its kind.
pub(super) fn unreadable(served: &Served, why: &str) -> Failure {
    Failure::bad_request(format!(
        "{} in version {:?} cannot be handled as a {}: {why}",
        served.kind, served.version, served.kind
    ))
}

pub(super) fn complete(served: &Served, object: &mut Value) {
    match &served.structural {
        // A CRD has no bounds.
        Some(structural) => drop(structural.default(object)),
        None => defaults::builtin(&served.kind, object),
    }
}

/// Applies a JSON patch to an object. As with the API server, a replaced field need not exist.
pub(super) fn json_patched(live: &Value, operations: &Value) -> Result<Value, Failure> {
    let wrong =
        |error: serde_json::Error| Failure::bad_request(format!("the patch is no JSON patch: {error}"));
    let unfit =
        |_| Failure::new(422, "Invalid", "the server rejected our request due to an error in our request");
    let mut next = live.clone();
    for operation in operations.as_array().into_iter().flatten() {
        let mut operation = operation.clone();
        let path = operation["path"].as_str().unwrap_or_default();
        if operation["op"] == "test" && operation["value"].is_null() && next.pointer(path).is_none() {
            // An absent field counts as null.
            continue;
        }
        if operation["op"] == "replace" && next.pointer(path).is_none() {
            operation["op"] = "add".into();
        }
        let patch: json_patch::Patch = serde_json::from_value(json!([operation])).map_err(wrong)?;
        json_patch::patch(&mut next, &patch).map_err(unfit)?;
    }
    Ok(next)
}

/// A patched object, read again. If it cannot be read, the patch is at fault.
pub(super) fn patched(served: &Served, next: &Value) -> Result<Decoded, Failure> {
    decoded(served, next).map_err(|failure| unpatchable(next, &failure.message))
}

/// A patch that does not lead to an object of its kind.
pub(super) fn unpatchable(next: &Value, why: &str) -> Failure {
    let shown = Value::from(next.to_string());
    let causes = vec![cause("patch", "FieldValueInvalid", format!("Invalid value: {shown}: {why}"))];
    Failure::invalid("", "", causes)
}
