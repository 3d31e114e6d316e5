//! Sets the defaults of fields that an object of a built-in kind leaves out, as the API server does.

mod pod;
mod workloads;

use serde_json::{Value, json};

/// Sets a field that is absent.
fn default(object: &mut Value, field: &str, value: Value) {
    if object.get(field).is_none_or(Value::is_null) {
        object[field] = value;
    }
}

/// Sets the defaults of a built-in kind's object.
pub(crate) fn builtin(kind: &str, object: &mut Value) {
    match kind {
        "CronJob" => workloads::cron_job(object),
        "DaemonSet" => workloads::daemon_set(object),
        "Deployment" => deployment(object),
        "HorizontalPodAutoscaler" => workloads::autoscaler(object),
        "NetworkPolicy" => network_policy(object),
        "StatefulSet" => workloads::stateful_set(object),
        "ReplicaSet" => {
            default(&mut object["spec"], "replicas", 1.into());
            template(&mut object["spec"]);
            default(object, "status", json!({}));
            default(&mut object["status"], "replicas", 0.into());
        }
        "Pod" => {
            pod::spec(&mut object["spec"]);
            pod::only_pods(&mut object["spec"]);
            default(object, "status", json!({}));
        }
        "Service" => service(object),
        "Ingress" => {
            default(object, "spec", json!({}));
            default(object, "status", json!({}));
            default(&mut object["status"], "loadBalancer", json!({}));
        }
        "Secret" => secret(object),
        "Namespace" => namespace(object),
        "CustomResourceDefinition" => custom_resource_definition(object),
        "Lease" => default(object, "spec", json!({})),
        "PodDisruptionBudget" => {
            default(object, "spec", json!({}));
            default(object, "status", json!({}));
            for field in ["currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"] {
                default(&mut object["status"], field, 0.into());
            }
        }
        "PersistentVolumeClaim" => claim(object),
        _ => {}
    }
}

fn claim(object: &mut Value) {
    default(object, "spec", json!({}));
    default(&mut object["spec"], "volumeMode", "Filesystem".into());
    default(&mut object["spec"], "resources", json!({}));
    default(object, "status", json!({}));
    default(&mut object["status"], "phase", "Pending".into());
}

fn network_policy(object: &mut Value) {
    default(object, "spec", json!({}));
    let spec = &mut object["spec"];
    let has_egress = spec["egress"].as_array().is_some_and(|rules| !rules.is_empty());
    default(spec, "policyTypes", if has_egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) });
    for direction in ["ingress", "egress"] {
        let rules = spec.get_mut(direction).and_then(Value::as_array_mut).into_iter().flatten();
        for port in rules.filter_map(|rule| rule.get_mut("ports")?.as_array_mut()).flatten() {
            default(port, "protocol", "TCP".into());
        }
    }
}

fn deployment(object: &mut Value) {
    default(object, "spec", json!({}));
    let spec = &mut object["spec"];
    default(spec, "replicas", 1.into());
    default(spec, "revisionHistoryLimit", 10.into());
    default(spec, "progressDeadlineSeconds", 600.into());
    default(spec, "strategy", json!({}));
    let strategy = &mut spec["strategy"];
    default(strategy, "type", "RollingUpdate".into());
    if strategy["type"] == "RollingUpdate" {
        default(strategy, "rollingUpdate", json!({}));
        default(&mut strategy["rollingUpdate"], "maxUnavailable", "25%".into());
        default(&mut strategy["rollingUpdate"], "maxSurge", "25%".into());
    }
    template(spec);
    default(object, "status", json!({}));
    for condition in
        object["status"].get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten()
    {
        // A time that is not set is shown as null.
        default(condition, "lastTransitionTime", Value::Null);
        default(condition, "lastUpdateTime", Value::Null);
    }
}

fn template(spec: &mut Value) {
    default(spec, "template", json!({}));
    default(&mut spec["template"], "metadata", json!({}));
    default(&mut spec["template"], "spec", json!({}));
    pod::spec(&mut spec["template"]["spec"]);
}

fn service(object: &mut Value) {
    default(object, "spec", json!({}));
    let spec = &mut object["spec"];
    default(spec, "type", "ClusterIP".into());
    default(spec, "sessionAffinity", "None".into());
    if spec["sessionAffinity"] == "ClientIP" {
        default(spec, "sessionAffinityConfig", json!({"clientIP": {"timeoutSeconds": 10_800}}));
    }
    if spec["sessionAffinity"] == "None"
        && let Some(fields) = spec.as_object_mut()
    {
        fields.remove("sessionAffinityConfig");
    }
    let kind = spec["type"].as_str().unwrap_or_default().to_owned();
    if kind != "ExternalName" {
        default(spec, "internalTrafficPolicy", "Cluster".into());
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") || spec.get("externalIPs").is_some() {
        default(spec, "externalTrafficPolicy", "Cluster".into());
    }
    if kind == "LoadBalancer" {
        default(spec, "allocateLoadBalancerNodePorts", true.into());
    }
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        default(port, "protocol", "TCP".into());
        let number = port["port"].clone();
        let target = &port["targetPort"];
        if target.is_null() || *target == 0 || *target == "" {
            port["targetPort"] = number;
        }
    }
    default(object, "status", json!({}));
    default(&mut object["status"], "loadBalancer", json!({}));
}

fn secret(object: &mut Value) {
    default(object, "type", "Opaque".into());
    // Values that are sent as text are stored like the others.
    let Some(Value::Object(text)) = object.as_object_mut().and_then(|fields| fields.remove("stringData"))
    else {
        return;
    };
    for (key, value) in text {
        object["data"][key] = base64(value.as_str().unwrap_or_default().as_bytes()).into();
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let letter = |bits: u32| char::from(LETTERS[usize::try_from(bits & 63).unwrap_or(0)]);
    bytes
        .chunks(3)
        .flat_map(|chunk| {
            let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
            let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            let mut letters = [letter(bits >> 18), letter(bits >> 12), letter(bits >> 6), letter(bits)];
            letters.iter_mut().skip(chunk.len() + 1).for_each(|unused| *unused = '=');
            letters
        })
        .collect()
}

fn namespace(object: &mut Value) {
    let name = object["metadata"]["name"].clone();
    object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
    default(object, "spec", json!({}));
    default(&mut object["spec"], "finalizers", json!(["kubernetes"]));
    default(object, "status", json!({}));
    default(&mut object["status"], "phase", "Active".into());
}

fn custom_resource_definition(object: &mut Value) {
    let names = &mut object["spec"]["names"];
    let singular = names["kind"].as_str().unwrap_or_default().to_lowercase();
    let list = format!("{}List", names["kind"].as_str().unwrap_or_default());
    default(names, "singular", singular.into());
    default(names, "listKind", list.into());
    default(&mut object["spec"], "conversion", json!({"strategy": "None"}));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_secret_is_stored_as_data() {
        let mut secret = json!({"stringData": {"a": "x", "b": "xy", "c": "xyz", "d": ""}});
        builtin("Secret", &mut secret);
        let expected = json!({"type": "Opaque", "data": {"a": "eA==", "b": "eHk=", "c": "eHl6", "d": ""}});
        assert_eq!(secret, expected);
    }

    #[test]
    fn a_network_policy_is_about_egress_only_if_it_has_rules_for_it() {
        let mut policy = json!({"spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}]}});
        builtin("NetworkPolicy", &mut policy);
        assert_eq!(policy["spec"]["policyTypes"], json!(["Ingress"]));
        assert_eq!(policy["spec"]["ingress"][0]["ports"], json!([{"port": 80, "protocol": "TCP"}]));
        let mut policy = json!({"spec": {"podSelector": {}, "egress": [{}]}});
        builtin("NetworkPolicy", &mut policy);
        assert_eq!(policy["spec"]["policyTypes"], json!(["Ingress", "Egress"]));
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
