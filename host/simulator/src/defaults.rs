//! Sets the defaults of fields that an object of a built-in kind leaves out, as the API server does: of the kinds that tests compare with
//! it, and of those that controllers work on.

use std::sync::LazyLock;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

/// The defaults of each kind, as [`fill`] reads them.
static DEFAULTS: LazyLock<Value> = LazyLock::new(|| {
    let action = json!({"path": "/", "scheme": "HTTP"});
    let probe = json!({
        "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3, "httpGet?": action,
    });
    let container = json!({
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", "resources": {},
        "ports?": [{"protocol": "TCP"}], "env?": [{"valueFrom?": {"fieldRef?": {"apiVersion": "v1"}}}],
        "livenessProbe?": probe, "readinessProbe?": probe, "startupProbe?": probe,
        "lifecycle?": {"postStart?": {"httpGet?": action}, "preStop?": {"httpGet?": action}},
    });
    let file = json!({"defaultMode": 420});
    let volume = json!({
        "secret?": file, "configMap?": file, "downwardAPI?": file, "hostPath?": {"type": ""},
        "projected?": {"defaultMode": 420, "sources?": [{"serviceAccountToken?": {"expirationSeconds": 3600}}]},
    });
    let pod = json!({
        "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "securityContext": {}, "terminationGracePeriodSeconds": 30,
        "schedulerName": "default-scheduler", "containers?": [container], "initContainers?": [container],
        "volumes?": [volume],
    });
    let template = json!({"metadata": {}, "spec": pod});
    // A time that is not set is shown as null.
    let condition = json!({"lastTransitionTime": null, "lastUpdateTime": null});
    json!({
        "CustomResourceDefinition": {"spec": {"conversion": {"strategy": "None"}}},
        "Deployment": {
            "spec": {
                "replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
                "strategy": {"type": "RollingUpdate"}, "template": template,
            },
            "status": {"conditions?": [condition]},
        },
        "Ingress": {"spec": {}, "status": {"loadBalancer": {}}},
        "Lease": {"spec": {}},
        "Namespace": {"spec": {}, "status": {"phase": "Active"}},
        "Pod": {"spec": pod, "status": {}},
        "PodDisruptionBudget": {"spec": {}, "status": no_disruptions()},
        "ReplicaSet": {"spec": {"replicas": 1, "template": template}, "status": {"replicas": 0}},
        "Secret": {"type": "Opaque"},
        "Service": {
            "spec": {"type": "ClusterIP", "sessionAffinity": "None", "ports?": [{"protocol": "TCP"}]},
            "status": {"loadBalancer": {}},
        },
    })
});

/// The status of a PodDisruptionBudget before the controller has seen it.
pub(crate) fn no_disruptions() -> Value {
    json!({"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0})
}

/// Sets what a value leaves out: each field of a map and, in each item of a list, what the only item here has. A field with `?` behind its
/// name is for what is there.
fn fill(value: &mut Value, defaults: &Value) {
    match defaults {
        Value::Object(defaults) => {
            if value.is_null() {
                *value = json!({});
            }
            let Some(fields) = value.as_object_mut() else { return };
            for (name, default) in defaults {
                match name.strip_suffix('?') {
                    Some(name) => fields.get_mut(name).into_iter().for_each(|within| fill(within, default)),
                    None => fill(fields.entry(name.as_str()).or_insert(Value::Null), default),
                }
            }
        }
        Value::Array(defaults) => {
            for item in value.as_array_mut().into_iter().flatten() {
                defaults.iter().for_each(|default| fill(item, default));
            }
        }
        default if value.is_null() => value.clone_from(default),
        _ => {}
    }
}

/// Sets the defaults of a built-in kind's object.
pub(crate) fn builtin(kind: &str, object: &mut Value) {
    fill(object, &DEFAULTS[kind]);
    match kind {
        "CustomResourceDefinition" => {
            let names = &mut object["spec"]["names"];
            let kind = names["kind"].as_str().unwrap_or_default().to_owned();
            fill(names, &json!({"singular": kind.to_lowercase(), "listKind": format!("{kind}List")}));
        }
        "Deployment" => {
            let strategy = &mut object["spec"]["strategy"];
            if strategy["type"] == "RollingUpdate" {
                fill(strategy, &json!({"rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}));
            }
            pod_spec(&mut object["spec"]["template"]["spec"]);
        }
        "Namespace" => {
            let name = object["metadata"]["name"].clone();
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
            if object["spec"]["finalizers"].is_null() {
                object["spec"]["finalizers"] = json!(["kubernetes"]);
            }
        }
        "Pod" => pod_spec(&mut object["spec"]),
        "ReplicaSet" => pod_spec(&mut object["spec"]["template"]["spec"]),
        "Secret" => secret(object),
        "Service" => service(&mut object["spec"]),
        _ => {}
    }
}

fn items<'a>(map: &'a mut Value, list: &str) -> impl Iterator<Item = &'a mut Value> {
    map.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten()
}

fn pod_spec(spec: &mut Value) {
    // The old name of the field is always shown as well.
    if let Some(account) = spec.get("serviceAccountName").or(spec.get("serviceAccount")).cloned() {
        spec["serviceAccountName"] = account.clone();
        spec["serviceAccount"] = account;
    }
    for list in ["containers", "initContainers"] {
        for container in items(spec, list) {
            let image = container["image"].as_str().unwrap_or_default();
            let name = image.rsplit('/').next().unwrap_or(image);
            let is_latest = !name.contains('@') && (!name.contains(':') || name.ends_with(":latest"));
            let policy = if is_latest { "Always" } else { "IfNotPresent" };
            fill(container, &json!({"imagePullPolicy": policy}));
        }
    }
    for volume in items(spec, "volumes") {
        if volume.as_object().is_some_and(|fields| fields.keys().all(|field| field == "name")) {
            volume["emptyDir"] = json!({});
        }
    }
}

/// Values of a Secret that are sent as text are stored like the others.
fn secret(object: &mut Value) {
    let text = object.as_object_mut().and_then(|fields| fields.remove("stringData"));
    for (key, value) in text.as_ref().and_then(Value::as_object).into_iter().flatten() {
        object["data"][key] = BASE64_STANDARD.encode(value.as_str().unwrap_or_default()).into();
    }
}

fn service(spec: &mut Value) {
    if spec["sessionAffinity"] == "ClientIP" {
        fill(spec, &json!({"sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10_800}}}));
    } else if let Some(fields) = spec.as_object_mut() {
        fields.remove("sessionAffinityConfig");
    }
    let kind = spec["type"].as_str().unwrap_or_default().to_owned();
    if kind != "ExternalName" {
        fill(spec, &json!({"internalTrafficPolicy": "Cluster"}));
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") || spec.get("externalIPs").is_some() {
        fill(spec, &json!({"externalTrafficPolicy": "Cluster"}));
    }
    if kind == "LoadBalancer" {
        fill(spec, &json!({"allocateLoadBalancerNodePorts": true}));
    }
    for port in items(spec, "ports") {
        let target = &port["targetPort"];
        if target.is_null() || *target == 0 || *target == "" {
            port["targetPort"] = port["port"].clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_secret_is_stored_as_data() {
        let mut secret = json!({"stringData": {"a": "x"}});
        builtin("Secret", &mut secret);
        assert_eq!(secret, json!({"type": "Opaque", "data": {"a": "eA=="}}));
    }

    #[test]
    fn what_is_filled_in_makes_no_field_out_of_nothing() {
        let mut service = json!({"spec": {"clusterIP": "None"}});
        builtin("Service", &mut service);
        assert_eq!(service["spec"].get("ports"), None);
        let mut pod = json!({"spec": {}});
        builtin("Pod", &mut pod);
        assert!(!pod.to_string().contains("null"), "{pod}");
    }
}
