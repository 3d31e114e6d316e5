//! What the API server refuses in all metadata, and in objects of the built-in kinds that tests compare with it.

use std::collections::BTreeSet;

use pintle_core::view::status::fault::{forbidden, invalid_value, not_supported, required};
use pintle_schema::metadata;
use pintle_wit::{Cause, syntax};
use serde_json::Value;

use crate::{failure::cause, kinds::Served, selector};

/// Everything that is wrong with an object, compared with the live one if there is one.
pub(crate) fn findings(served: &Served, live: Option<&Value>, next: &Value) -> Vec<Cause> {
    let mut found = Vec::new();
    if served.is("PodDisruptionBudget") {
        disruption_budget(&next["spec"], &mut found);
        // The metadata of a new budget is checked only if nothing else is wrong.
        if live.is_none() && !found.is_empty() {
            return found;
        }
    }
    found.extend(of_metadata(served, live, next));
    match served.kind.as_str() {
        _ if served.custom => {}
        "ConfigMap" => data(live, next, &mut found),
        "Secret" => secret(live, next, &mut found),
        "Deployment" | "ReplicaSet" => workload(live, &next["spec"], &mut found),
        "Job" => job(live, &next["spec"], &mut found),
        "Pod" => pod_spec("spec", &next["spec"], &mut found),
        "Service" => service(live, next, &mut found),
        "Ingress" => ingress(&next["spec"], &mut found),
        _ => {}
    }
    found
}

fn invalid(at: &str, value: &Value, why: &str) -> Cause {
    invalid_value(at, &value.to_string(), why)
}

fn duplicate(at: &str, value: &Value) -> Cause {
    cause(at, "FieldValueDuplicate", format!("Duplicate value: {value}"))
}

fn items(list: &Value) -> impl Iterator<Item = (usize, &Value)> {
    list.as_array().into_iter().flatten().enumerate()
}

fn keys(map: &Value) -> impl Iterator<Item = &String> {
    map.as_object().into_iter().flat_map(serde_json::Map::keys)
}

fn of_metadata(served: &Served, live: Option<&Value>, next: &Value) -> Vec<Cause> {
    let metadata = &next["metadata"];
    if let Some(live) = live {
        let mut found = metadata::misfits_after(metadata, &live["metadata"]);
        if metadata["uid"] != live["metadata"]["uid"] {
            found.push(invalid("metadata.uid", &metadata["uid"], "field is immutable"));
        }
        return found;
    }
    let mut found = metadata::misfits(metadata);
    if served.group == "rbac.authorization.k8s.io" {
        // Its name may have anything that is allowed in a path.
        found.retain(|cause| cause.field != "metadata.name");
    }
    if served.is("Service") && !syntax::is_rfc_1035_label(metadata["name"].as_str().unwrap_or_default()) {
        found.push(invalid("metadata.name", &metadata["name"], "a DNS-1035 label is expected"));
    }
    found
}

/// The data of a ConfigMap or a Secret.
fn data(live: Option<&Value>, next: &Value, found: &mut Vec<Cause>) {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    for field in ["data", "binaryData"] {
        for key in keys(&next[field]) {
            if key.len() > 253 || key == "." || key.starts_with("..") || !key.bytes().all(is_plain) {
                let why = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
                found.push(invalid(&format!("{field}[{key}]"), &key.as_str().into(), why));
            }
        }
    }
    let Some(live) = live.filter(|live| live["immutable"] == true) else { return };
    for field in ["immutable", "data", "binaryData"] {
        if next.get(field) != live.get(field) {
            found.push(forbidden(field, "field is immutable when `immutable` is set"));
        }
    }
}

fn secret(live: Option<&Value>, next: &Value, found: &mut Vec<Cause>) {
    data(live, next, found);
    if next["type"] == "kubernetes.io/tls" {
        let missing = ["tls.crt", "tls.key"].into_iter().filter(|key| next["data"].get(key).is_none());
        found.extend(missing.map(|key| required(&format!("data[{key}]"), "")));
    }
    if live.is_some_and(|live| live["type"] != next["type"]) {
        found.push(invalid("type", &next["type"], "field is immutable"));
    }
}

fn disruption_budget(spec: &Value, found: &mut Vec<Cause>) {
    if !spec["minAvailable"].is_null() && !spec["maxUnavailable"].is_null() {
        found.push(invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set"));
    }
    for field in ["minAvailable", "maxUnavailable"] {
        let percent = |text: &str| text.strip_suffix('%')?.parse::<u8>().ok();
        let fits = match &spec[field] {
            Value::Number(number) => number.as_i64().is_none_or(|number| number >= 0),
            Value::String(text) => percent(text).is_some_and(|percent| percent <= 100),
            _ => true,
        };
        if !fits {
            let why = "must be 0 or more, or from 0% to 100%";
            found.push(invalid(&format!("spec.{field}"), &spec[field], why));
        }
    }
}

fn workload(live: Option<&Value>, spec: &Value, found: &mut Vec<Cause>) {
    if spec["replicas"].as_i64().is_some_and(|replicas| replicas < 0) {
        found.push(invalid("spec.replicas", &spec["replicas"], "must be greater than or equal to 0"));
    }
    let (selector, template) = (&spec["selector"], &spec["template"]);
    if selector.is_null() {
        found.push(required("spec.selector", ""));
    }
    let labels = &template["metadata"]["labels"];
    if !selector::selects(selector, labels) {
        let why = "`selector` does not match template `labels`";
        found.push(invalid("spec.template.metadata.labels", labels, why));
    }
    if spec["strategy"]["type"] == "Recreate" && spec["strategy"].get("rollingUpdate").is_some() {
        let why = "may not be specified when strategy `type` is 'Recreate'";
        found.push(forbidden("spec.strategy.rollingUpdate", why));
    }
    let policy = &template["spec"]["restartPolicy"];
    if policy != "Always" {
        found.push(not_supported("spec.template.spec.restartPolicy", &policy.to_string(), &["Always"]));
    }
    pod_spec("spec.template.spec", &template["spec"], found);
    if live.is_some_and(|live| live["spec"]["selector"] != *selector) {
        found.push(invalid("spec.selector", selector, "field is immutable"));
    }
}

fn job(live: Option<&Value>, spec: &Value, found: &mut Vec<Cause>) {
    if live.is_some_and(|live| live["spec"]["template"] != spec["template"]) {
        found.push(invalid("spec.template", &spec["template"], "field is immutable"));
    }
}

/// Sources of volumes, in the order in which the API server checks them.
const SOURCES: [&str; 7] =
    ["emptyDir", "hostPath", "secret", "persistentVolumeClaim", "downwardAPI", "configMap", "projected"];

fn pod_spec(at: &str, spec: &Value, found: &mut Vec<Cause>) {
    // A volume with an error cannot be mounted.
    let mut volumes = Vec::new();
    for (index, volume) in items(&spec["volumes"]) {
        // The first source counts, in the order in which the API server checks them.
        let mut sources: Vec<&String> = keys(volume).filter(|field| *field != "name").collect();
        sources.sort_by_key(|source| SOURCES.iter().position(|known| known == source));
        if sources.len() <= 1 {
            volumes.push(&volume["name"]);
        }
        for source in sources.iter().skip(1) {
            let at = format!("{at}.volumes[{index}].{source}");
            found.push(forbidden(&at, "may not specify more than 1 volume type"));
        }
    }
    for (index, container) in items(&spec["containers"]) {
        let at = format!("{at}.containers[{index}]");
        if container["image"].is_null() {
            found.push(required(&format!("{at}.image"), ""));
        }
        let mut names = BTreeSet::new();
        for (index, port) in items(&container["ports"]) {
            if port["name"].as_str().is_some_and(|name| !names.insert(name)) {
                found.push(duplicate(&format!("{at}.ports[{index}].name"), &port["name"]));
            }
        }
        for (index, mount) in items(&container["volumeMounts"]) {
            if !volumes.contains(&&mount["name"]) {
                let at = format!("{at}.volumeMounts[{index}].name");
                found.push(cause(&at, "FieldValueNotFound", format!("Not found: {}", mount["name"])));
            }
        }
    }
}

fn service(live: Option<&Value>, next: &Value, found: &mut Vec<Cause>) {
    const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    let spec = &next["spec"];
    let kind = spec["type"].as_str().unwrap_or_default();
    let (is_external, is_headless) = (kind == "ExternalName", spec["clusterIP"] == "None");
    if !TYPES.contains(&kind) {
        found.push(not_supported("spec.type", &spec["type"].to_string(), &TYPES));
    }
    if spec["ports"].as_array().is_none_or(Vec::is_empty) && !is_external && !is_headless {
        found.push(required("spec.ports", ""));
    }
    if is_external && spec["externalName"].is_null() {
        found.push(required("spec.externalName", ""));
    }
    if is_headless && matches!(kind, "NodePort" | "LoadBalancer") {
        let why = format!("may not be set to 'None' for {kind} services");
        found.push(invalid("spec.clusterIPs[0]", &spec["clusterIP"], &why));
    }
    if is_external && !spec["clusterIP"].is_null() {
        found.push(forbidden("spec.clusterIPs", "may not be set for ExternalName services"));
    }
    let mut names = BTreeSet::new();
    for (index, port) in items(&spec["ports"]) {
        let at = format!("spec.ports[{index}]");
        match port["name"].as_str() {
            None if items(&spec["ports"]).nth(1).is_some() => found.push(required(&format!("{at}.name"), "")),
            Some(name) if !names.insert(name) => found.push(duplicate(&format!("{at}.name"), &port["name"])),
            _ => {}
        }
        // A target may be a name, too.
        for field in ["port", "targetPort"].into_iter().filter(|field| !port[field].is_string()) {
            if !port[field].as_i64().is_some_and(|number| (1..=65_535).contains(&number)) {
                let why = "must be between 1 and 65535, inclusive";
                found.push(invalid(&format!("{at}.{field}"), &port[field], why));
            }
        }
    }
    if kind != "LoadBalancer" && items(&next["status"]["loadBalancer"]["ingress"]).next().is_some() {
        let why = "may only be used when `spec.type` is 'LoadBalancer'";
        found.push(forbidden("status.loadBalancer.ingress", why));
    }
    let was = live.map(|live| &live["spec"]).filter(|was| was["type"] != "ExternalName" && !is_external);
    if was.is_some_and(|was| was["clusterIP"] != spec["clusterIP"]) {
        found.push(invalid("spec.clusterIPs[0]", &spec["clusterIPs"], "may not change once set"));
    }
}

fn ingress(spec: &Value, found: &mut Vec<Cause>) {
    let default = &spec["defaultBackend"];
    if items(&spec["rules"]).next().is_none() && default.is_null() {
        found.push(invalid("spec", spec, "either `defaultBackend` or `rules` must be specified"));
    }
    for (index, rule) in items(&spec["rules"]) {
        let at = format!("spec.rules[{index}]");
        if rule["host"].as_str().is_some_and(|host| !is_host(host)) {
            let why = "a lowercase RFC 1123 subdomain is expected";
            found.push(invalid(&format!("{at}.host"), &rule["host"], why));
        }
        for (number, path) in items(&rule["http"]["paths"]) {
            let at = format!("{at}.http.paths[{number}]");
            if path["pathType"].is_null() {
                found.push(required(&format!("{at}.pathType"), ""));
            }
            let may_lack = path["pathType"] == "ImplementationSpecific" && path["path"].is_null();
            if !may_lack && !path["path"].as_str().is_some_and(|path| path.starts_with('/')) {
                found.push(invalid(&format!("{at}.path"), &path["path"], "must be an absolute path"));
            }
        }
    }
    // Each may come from another manager.
    let port = &default["service"]["port"];
    if !port["name"].is_null() && !port["number"].is_null() {
        found.push(invalid("spec.defaultBackend", port, "cannot set both port name & port number"));
    }
}

fn is_host(host: &str) -> bool {
    syntax::is_subdomain(host.strip_prefix("*.").unwrap_or(host))
}
