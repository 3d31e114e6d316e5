//! Defaults of Pods and of Pod templates.

use serde_json::{Value, json};

use super::default;

/// The defaults of a Pod's spec, which also apply to templates.
pub(super) fn spec(spec: &mut Value) {
    default(spec, "dnsPolicy", "ClusterFirst".into());
    default(spec, "restartPolicy", "Always".into());
    default(spec, "securityContext", json!({}));
    default(spec, "terminationGracePeriodSeconds", 30.into());
    default(spec, "schedulerName", "default-scheduler".into());
    // The old name of the field is always shown as well.
    let account = spec.get("serviceAccountName").or(spec.get("serviceAccount")).cloned();
    if let Some(account) = account {
        spec["serviceAccountName"] = account.clone();
        spec["serviceAccount"] = account;
    }
    for list in ["containers", "initContainers"] {
        spec[list].as_array_mut().into_iter().flatten().for_each(container);
        if spec[list].is_null()
            && let Some(fields) = spec.as_object_mut()
        {
            fields.remove(list);
        }
    }
    if let Some(volumes) = spec.get_mut("volumes").and_then(Value::as_array_mut) {
        volumes.iter_mut().for_each(volume);
    }
}

/// The defaults that only Pods have.
pub(super) fn only_pods(spec: &mut Value) {
    default(spec, "enableServiceLinks", true.into());
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let limits = container["resources"]["limits"].as_object().cloned().unwrap_or_default();
            for (name, amount) in limits {
                default(&mut container["resources"]["requests"], &name, amount);
            }
            if container["resources"]["limits"].is_null()
                && let Some(resources) = container["resources"].as_object_mut()
            {
                resources.remove("limits");
            }
        }
    }
}

fn container(container: &mut Value) {
    let image = container["image"].as_str().unwrap_or_default();
    let name = image.rsplit('/').next().unwrap_or(image);
    let latest = !name.contains('@') && (!name.contains(':') || name.ends_with(":latest"));
    let policy = if latest { "Always" } else { "IfNotPresent" };
    default(container, "imagePullPolicy", policy.into());
    default(container, "terminationMessagePath", "/dev/termination-log".into());
    default(container, "terminationMessagePolicy", "File".into());
    default(container, "resources", json!({}));
    for port in container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        default(port, "protocol", "TCP".into());
    }
    for variable in container.get_mut("env").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(field) = variable.pointer_mut("/valueFrom/fieldRef") {
            default(field, "apiVersion", "v1".into());
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = container.get_mut(probe) else { continue };
        for (field, value) in
            [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
        {
            default(probe, field, value.into());
        }
        probe.get_mut("httpGet").into_iter().for_each(http_get);
    }
    for hook in ["/lifecycle/postStart/httpGet", "/lifecycle/preStop/httpGet"] {
        container.pointer_mut(hook).into_iter().for_each(http_get);
    }
}

fn http_get(action: &mut Value) {
    default(action, "path", "/".into());
    default(action, "scheme", "HTTP".into());
}

fn volume(volume: &mut Value) {
    if volume.as_object().is_some_and(|fields| fields.keys().all(|field| field == "name")) {
        volume["emptyDir"] = json!({});
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = volume.get_mut(source) {
            default(source, "defaultMode", 420.into());
        }
    }
    if let Some(host_path) = volume.get_mut("hostPath") {
        default(host_path, "type", "".into());
    }
    for source in volume.pointer_mut("/projected/sources").and_then(Value::as_array_mut).into_iter().flatten()
    {
        if let Some(token) = source.get_mut("serviceAccountToken") {
            default(token, "expirationSeconds", 3_600.into());
        }
    }
}
