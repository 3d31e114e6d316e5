//! Reads the object from the body of a request as the API server does, and makes what it is compared with.

use serde_json::{Value, json};

use crate::{
    Failure,
    apply::managed::{Manager, Managers, Write},
    custom, defaults,
    failure::cause,
    kinds::Served,
    schema,
};

/// The managers of an object. If it has none, an earlier manager gets all of its fields.
pub(super) fn managers_of(served: &Served, live: &Value, write: &Write<'_>) -> Managers {
    let managers = Managers::of(live);
    if !managers.is_empty() {
        return managers;
    }
    let before = Write {
        shape: write.shape,
        manager: Manager::update("before-first-apply", write.api_version, Some(&write.manager.subresource)),
        api_version: write.api_version,
        time: write.time,
        resets: write.resets,
    };
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

/// An object of this kind with no fields set. A create is compared with it.
pub(super) fn blank(served: &Served) -> Value {
    let mut blank = json!({"apiVersion": served.api_version(), "kind": served.kind});
    if served.custom {
        return blank;
    }
    blank["metadata"] = json!({});
    let template = json!({"metadata": {}, "spec": {"containers": null}});
    match served.kind.as_str() {
        "Deployment" => {
            blank["spec"] = json!({"selector": null, "template": template, "strategy": {}});
            blank["status"] = json!({});
        }
        "DaemonSet" => {
            blank["spec"] = json!({"selector": null, "template": template, "updateStrategy": {}});
            blank["status"] = json!({
                "currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0,
            });
        }
        "StatefulSet" => {
            blank["spec"] = json!({"selector": null, "template": template, "updateStrategy": {}});
            blank["status"] = json!({"replicas": 0, "availableReplicas": 0});
        }
        "ReplicaSet" => {
            blank["spec"] = json!({"selector": null, "template": template});
            blank["status"] = json!({"replicas": 0});
        }
        "CronJob" => {
            let job = json!({"metadata": {}, "spec": {"template": template}});
            blank["spec"] = json!({"schedule": "", "jobTemplate": job});
            blank["status"] = json!({});
        }
        "HorizontalPodAutoscaler" => {
            let target = json!({"kind": "", "name": ""});
            blank["spec"] = json!({"scaleTargetRef": target, "maxReplicas": 0});
            blank["status"] = json!({"desiredReplicas": 0, "currentMetrics": null});
        }
        "Job" => {
            blank["spec"] = json!({"template": template});
            blank["status"] = json!({});
        }
        "Pod" => {
            blank["spec"] = json!({"containers": null});
            blank["status"] = json!({});
        }
        "Service" | "Ingress" => {
            blank["spec"] = json!({});
            blank["status"] = json!({"loadBalancer": {}});
        }
        "PersistentVolumeClaim" => {
            blank["spec"] = json!({"resources": {}});
            blank["status"] = json!({});
        }
        "Namespace" => {
            blank["spec"] = json!({});
            blank["status"] = json!({});
        }
        "Lease" => blank["spec"] = json!({}),
        "PodDisruptionBudget" => {
            blank["spec"] = json!({});
            blank["status"] = no_disruptions();
        }
        _ => {}
    }
    blank
}

/// The status of a PodDisruptionBudget before the controller has seen it.
pub(super) fn no_disruptions() -> Value {
    json!({"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0})
}

pub(super) fn resets(served: &Served, subresource: Option<&str>) -> crate::apply::fields::FieldSet {
    schema::resets(&served.kind, served.custom, served.status, subresource.is_some())
}

/// The object in a body as the API server reads it, with defaults.
///
/// # Errors
/// 400 if it cannot be read.
pub(super) fn decoded(served: &Served, sent: &Value) -> Result<Value, Failure> {
    if !sent.is_object() {
        return Err(Failure::bad_request(
            "couldn't get version/kind; json parse error: an object is expected",
        ));
    }
    let shape = served.shape();
    let mut object = sent.clone();
    if object.get("metadata").is_none_or(Value::is_null) {
        object["metadata"] = json!({});
    }
    for (field, value) in [("apiVersion", served.api_version()), ("kind", served.kind.clone())] {
        if object[field].as_str().unwrap_or_default().is_empty() {
            object[field] = value.into();
        }
    }
    if served.custom {
        let metadata = schema::normal(shape.field("metadata").unwrap_or(shape), &object["metadata"])
            .map_err(Failure::bad_request)?;
        object = custom::pruned(shape, &object);
        object["metadata"] = metadata;
    } else {
        object = schema::normal(shape, &object).map_err(|why| {
            Failure::bad_request(format!(
                "{} in version {:?} cannot be handled as a {}: json: {why}",
                served.kind, served.version, served.kind
            ))
        })?;
    }
    if object.get("metadata").is_none() {
        object["metadata"] = json!({});
    }
    complete(served, &mut object);
    Ok(object)
}

pub(super) fn complete(served: &Served, object: &mut Value) {
    if served.custom {
        defaults::by_schema(served.shape(), object);
    } else {
        defaults::builtin(&served.kind, object);
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
pub(super) fn patched(served: &Served, next: &Value) -> Result<Value, Failure> {
    decoded(served, next).map_err(|failure| {
        let causes = vec![cause("patch", "FieldValueInvalid", failure.message)];
        Failure::invalid("", "", causes)
    })
}
