//! What the API server refuses in all metadata, and in objects of the built-in kinds as far as Pintle or its users use them.

use pintle_wit::{Cause, syntax};
use serde_json::Value;

use crate::failure::cause;

struct Findings(Vec<Cause>);

impl Findings {
    fn required(&mut self, field: impl AsRef<str>) {
        self.0.push(cause(field.as_ref(), "FieldValueRequired", "Required value"));
    }

    fn invalid(&mut self, field: impl AsRef<str>, value: &Value, why: &str) {
        self.0.push(cause(field.as_ref(), "FieldValueInvalid", format!("Invalid value: {value}: {why}")));
    }

    fn unsupported(&mut self, field: impl AsRef<str>, value: &Value) {
        self.0.push(cause(field.as_ref(), "FieldValueNotSupported", format!("Unsupported value: {value}")));
    }

    fn forbidden(&mut self, field: impl AsRef<str>, why: &str) {
        self.0.push(cause(field.as_ref(), "FieldValueForbidden", format!("Forbidden: {why}")));
    }
}

/// Everything that is wrong with an object, compared with the live one if there is one.
pub(crate) fn findings(kind: &str, custom: bool, live: Option<&Value>, next: &Value) -> Vec<Cause> {
    let mut found = Findings(Vec::new());
    if kind == "PodDisruptionBudget" && !custom {
        disruption_budget(next, &mut found);
        // The metadata of a new budget is checked only if nothing else is wrong.
        if live.is_none() && !found.0.is_empty() {
            return found.0;
        }
    }
    metadata(kind, custom, live, next, &mut found);
    if !custom {
        match kind {
            "ConfigMap" => config_map(live, next, &mut found),
            "Secret" => secret(live, next, &mut found),
            "Deployment" | "ReplicaSet" => workload(live, next, &mut found),
            "Pod" => pod(live, next, &mut found),
            "Service" => service(live, next, &mut found),
            "Ingress" => ingress(next, &mut found),
            _ => {}
        }
    }
    found.0
}

fn metadata(kind: &str, custom: bool, live: Option<&Value>, next: &Value, found: &mut Findings) {
    let metadata = &next["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default();
    if live.is_none() && !is_name(kind, name) {
        found.invalid(
            "metadata.name",
            &metadata["name"],
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'",
        );
    }
    for (field, map) in [("metadata.labels", &metadata["labels"])] {
        for (key, value) in map.as_object().into_iter().flatten() {
            let text = value.as_str().unwrap_or_default();
            if !is_qualified(key) {
                found.invalid(
                    field,
                    &Value::String(key.clone()),
                    "name part must consist of alphanumeric characters",
                );
            }
            if !is_label_value(text) {
                found.invalid(
                    field,
                    value,
                    "a valid label must be an empty string or consist of alphanumeric characters",
                );
            }
        }
    }
    for key in metadata["annotations"].as_object().into_iter().flatten().map(|(key, _)| key) {
        if !is_qualified(&key.to_lowercase()) {
            found.invalid(
                "metadata.annotations",
                &Value::String(key.clone()),
                "name part must consist of alphanumeric characters",
            );
        }
    }
    let owners = metadata["ownerReferences"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (index, owner) in owners.iter().enumerate() {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if owner[field].as_str().unwrap_or_default().is_empty() {
                found.invalid(
                    format!("metadata.ownerReferences[{index}].{field}"),
                    &owner[field],
                    "must not be empty",
                );
            }
        }
    }
    let controllers: Vec<&str> = owners
        .iter()
        .filter(|owner| owner["controller"] == true)
        .filter_map(|owner| owner["name"].as_str())
        .collect();
    if let [one, other, ..] = controllers.as_slice() {
        let why = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {one} and {other}"
        );
        found.invalid("metadata.ownerReferences", &metadata["ownerReferences"], &why);
    }
    for finalizer in metadata["finalizers"].as_array().into_iter().flatten() {
        let text = finalizer.as_str().unwrap_or_default();
        // Kinds outside of the core may have any finalizer.
        let is_free = custom || kind == "CustomResourceDefinition";
        let well_known = ["foregroundDeletion", "orphan", "kubernetes"].contains(&text);
        if !is_qualified(text) || !text.contains('/') && !well_known && !is_free {
            found.invalid(
                "metadata.finalizers",
                finalizer,
                "name is neither a standard finalizer name nor is it fully qualified",
            );
        }
    }
    let Some(live) = live else { return };
    if metadata["uid"] != live["metadata"]["uid"] {
        found.invalid("metadata.uid", &metadata["uid"], "field is immutable");
    }
    if live["metadata"].get("deletionTimestamp").is_some() {
        let had = live["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        let added = metadata["finalizers"].as_array().into_iter().flatten().any(|one| !had.contains(one));
        if added {
            found.forbidden(
                "metadata.finalizers",
                "no new finalizers can be added if the object is being deleted",
            );
        }
    }
}

fn is_name(kind: &str, name: &str) -> bool {
    match kind {
        "Service" => syntax::is_rfc_1035_label(name),
        "Namespace" => syntax::is_label(name),
        // The name of a role may have anything that is allowed in a path.
        "ClusterRole" | "Role" | "RoleBinding" => !name.is_empty() && !name.contains(['/', '%']),
        _ => syntax::is_subdomain(name),
    }
}

fn is_label_value(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let edge = |byte: Option<u8>| byte.is_none_or(|byte| byte.is_ascii_alphanumeric());
    text.len() <= 63 && text.bytes().all(inner) && edge(text.bytes().next()) && edge(text.bytes().last())
}

fn is_qualified(text: &str) -> bool {
    let (prefix, name) = text.split_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    prefix.is_none_or(|prefix| is_name("", prefix)) && !name.is_empty() && is_label_value(name)
}

fn config_map(live: Option<&Value>, next: &Value, found: &mut Findings) {
    for field in ["data", "binaryData"] {
        data_keys(field, &next[field], found);
    }
    immutable_data(live, next, found);
}

fn secret(live: Option<&Value>, next: &Value, found: &mut Findings) {
    data_keys("data", &next["data"], found);
    if next["type"] == "kubernetes.io/tls" {
        for key in ["tls.crt", "tls.key"] {
            if next["data"].get(key).is_none() {
                found.required(format!("data[{key}]"));
            }
        }
    }
    if live.is_some_and(|live| live["type"] != next["type"]) {
        found.invalid("type", &next["type"], "field is immutable");
    }
    immutable_data(live, next, found);
}

fn data_keys(field: &str, data: &Value, found: &mut Findings) {
    for key in data.as_object().into_iter().flatten().map(|(key, _)| key) {
        let fits = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
        if !fits || key.len() > 253 || key == "." || key.starts_with("..") {
            found.invalid(
                format!("{field}[{key}]"),
                &Value::String(key.clone()),
                "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            );
        }
    }
}

fn immutable_data(live: Option<&Value>, next: &Value, found: &mut Findings) {
    let Some(live) = live.filter(|live| live["immutable"] == true) else { return };
    if next["immutable"] != true {
        found.forbidden("immutable", "field is immutable when `immutable` is set");
    }
    for field in ["data", "binaryData"] {
        if next.get(field) != live.get(field) {
            found.forbidden(field, "field is immutable when `immutable` is set");
        }
    }
}

fn disruption_budget(next: &Value, found: &mut Findings) {
    let spec = &next["spec"];
    let given = |field: &str| spec.get(field).is_some_and(|value| !value.is_null());
    if given("minAvailable") && given("maxUnavailable") {
        found.invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set");
    }
    for field in ["minAvailable", "maxUnavailable"] {
        let at = format!("spec.{field}");
        match &spec[field] {
            Value::Number(number) if number.as_i64().is_some_and(|number| number < 0) => {
                found.invalid(at, &spec[field], "must be greater than or equal to 0");
            }
            Value::String(text) => {
                let percent = text
                    .strip_suffix('%')
                    .filter(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()));
                match percent.and_then(|digits| digits.parse::<u32>().ok()) {
                    None => found.invalid(
                        at,
                        &spec[field],
                        "a valid percent string must be a numeric string followed by an ending '%'",
                    ),
                    Some(101..) => found.invalid(at, &spec[field], "must not be greater than 100%"),
                    Some(_) => {}
                }
            }
            _ => {}
        }
    }
}

fn workload(live: Option<&Value>, next: &Value, found: &mut Findings) {
    let spec = &next["spec"];
    if spec["replicas"].as_i64().is_some_and(|replicas| replicas < 0) {
        found.invalid("spec.replicas", &spec["replicas"], "must be greater than or equal to 0");
    }
    let selector = &spec["selector"];
    let labels = &spec["template"]["metadata"]["labels"];
    match selector["matchLabels"].as_object() {
        _ if selector.is_null() => {
            found.required("spec.selector");
            found.invalid(
                "spec.template.metadata.labels",
                labels,
                "`selector` does not match template `labels`",
            );
        }
        None if selector["matchExpressions"].as_array().is_none_or(Vec::is_empty) => {
            found.invalid("spec.selector", selector, "empty selector is invalid for deployment");
        }
        Some(wanted) if wanted.iter().any(|(key, value)| labels.get(key) != Some(value)) => {
            found.invalid(
                "spec.template.metadata.labels",
                labels,
                "`selector` does not match template `labels`",
            );
        }
        _ => {}
    }
    match (spec["strategy"]["type"].as_str(), spec["strategy"].get("rollingUpdate")) {
        (Some("Recreate"), Some(_)) => {
            found.forbidden(
                "spec.strategy.rollingUpdate",
                "may not be specified when strategy `type` is 'Recreate'",
            );
        }
        (Some("Recreate" | "RollingUpdate") | None, _) => {}
        _ => found.unsupported("spec.strategy.type", &spec["strategy"]["type"]),
    }
    if spec["template"]["spec"]["restartPolicy"] != "Always" {
        found.unsupported("spec.template.spec.restartPolicy", &spec["template"]["spec"]["restartPolicy"]);
    }
    pod_spec("spec.template.spec", &spec["template"]["spec"], found);
    if live.is_some_and(|live| live["spec"]["selector"] != *selector) {
        found.invalid("spec.selector", selector, "field is immutable");
    }
}

fn pod(live: Option<&Value>, next: &Value, found: &mut Findings) {
    pod_spec("spec", &next["spec"], found);
    let Some(live) = live else { return };
    // What may not change in a Pod: everything except images and a few fields that Pintle uses.
    let rest = |pod: &Value| {
        let mut spec = pod["spec"].clone();
        for container in spec["containers"].as_array_mut().into_iter().flatten() {
            container["image"] = Value::Null;
        }
        for field in ["activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations", "nodeName"] {
            spec[field] = Value::Null;
        }
        spec
    };
    if rest(live) != rest(next) {
        found.forbidden("spec", "pod updates may not change fields other than `spec.containers[*].image`");
    }
}

/// Sources of volumes, in the order in which the API server checks them.
const SOURCES: [&str; 7] =
    ["emptyDir", "hostPath", "secret", "persistentVolumeClaim", "downwardAPI", "configMap", "projected"];

fn pod_spec(path: &str, spec: &Value, found: &mut Findings) {
    let containers = spec["containers"].as_array().map(Vec::as_slice).unwrap_or_default();
    if containers.is_empty() {
        found.required(format!("{path}.containers"));
    }
    // A volume with an error cannot be mounted.
    let mut volumes = Vec::new();
    for (index, volume) in spec["volumes"].as_array().into_iter().flatten().enumerate() {
        let sources =
            volume.as_object().into_iter().flatten().map(|(field, _)| field).filter(|field| *field != "name");
        // The first source counts, in the order in which the API server checks them.
        let mut sources: Vec<&String> = sources.collect();
        sources.sort_by_key(|source| SOURCES.iter().position(|known| known == source));
        if sources.len() <= 1 {
            volumes.extend(volume["name"].as_str());
        }
        for source in sources.iter().skip(1) {
            found.forbidden(
                format!("{path}.volumes[{index}].{source}"),
                "may not specify more than 1 volume type",
            );
        }
    }
    let mut names = std::collections::BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        let at = format!("{path}.containers[{index}]");
        let name = container["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            found.required(format!("{at}.name"));
        } else if !is_name("Namespace", name) {
            found.invalid(format!("{at}.name"), &container["name"], "a lowercase RFC 1123 label is expected");
        }
        if !names.insert(name) {
            found.0.push(cause(
                &format!("{at}.name"),
                "FieldValueDuplicate",
                format!("Duplicate value: {name:?}"),
            ));
        }
        if container["image"].as_str().unwrap_or_default().is_empty() {
            found.required(format!("{at}.image"));
        }
        let mut port_names = std::collections::BTreeSet::new();
        for (number, port) in container["ports"].as_array().into_iter().flatten().enumerate() {
            if port["name"].as_str().is_some_and(|name| !port_names.insert(name)) {
                let field = format!("{at}.ports[{number}].name");
                found.0.push(cause(
                    &field,
                    "FieldValueDuplicate",
                    format!("Duplicate value: {}", port["name"]),
                ));
            }
            let at = format!("{at}.ports[{number}].containerPort");
            match port["containerPort"].as_i64() {
                None | Some(0) => found.required(at),
                Some(1..=65_535) => {}
                Some(_) => {
                    found.invalid(at, &port["containerPort"], "must be between 1 and 65535, inclusive")
                }
            }
        }
        for (number, mount) in container["volumeMounts"].as_array().into_iter().flatten().enumerate() {
            if !mount["name"].as_str().is_some_and(|name| volumes.contains(&name)) {
                let at = format!("{at}.volumeMounts[{number}].name");
                found.0.push(cause(&at, "FieldValueNotFound", format!("Not found: {}", mount["name"])));
            }
        }
    }
}

fn service(live: Option<&Value>, next: &Value, found: &mut Findings) {
    let spec = &next["spec"];
    let kind = spec["type"].as_str().unwrap_or_default();
    if !["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"].contains(&kind) {
        found.unsupported("spec.type", &spec["type"]);
    }
    let ports = spec["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
    if ports.is_empty() && kind != "ExternalName" && spec["clusterIP"] != "None" {
        found.required("spec.ports");
    }
    if kind == "ExternalName" && spec["externalName"].as_str().unwrap_or_default().is_empty() {
        found.required("spec.externalName");
    }
    if matches!(kind, "NodePort" | "LoadBalancer") && spec["clusterIP"] == "None" {
        found.invalid(
            "spec.clusterIPs[0]",
            &spec["clusterIP"],
            &format!("may not be set to 'None' for {kind} services"),
        );
    }
    if kind == "ExternalName" && !spec["clusterIP"].as_str().unwrap_or_default().is_empty() {
        found.forbidden("spec.clusterIPs", "may not be set for ExternalName services");
    }
    let mut names = std::collections::BTreeSet::new();
    let mut numbers = std::collections::BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let at = format!("spec.ports[{index}]");
        let name = port["name"].as_str().unwrap_or_default();
        if name.is_empty() && ports.len() > 1 {
            found.required(format!("{at}.name"));
        } else if !name.is_empty() && !names.insert(name) {
            found.0.push(cause(
                &format!("{at}.name"),
                "FieldValueDuplicate",
                format!("Duplicate value: {name:?}"),
            ));
        }
        if !port["port"].as_i64().is_some_and(|number| (1..=65_535).contains(&number)) {
            found.invalid(format!("{at}.port"), &port["port"], "must be between 1 and 65535, inclusive");
        }
        if port["targetPort"].as_i64().is_some_and(|number| !(1..=65_535).contains(&number)) {
            found.invalid(
                format!("{at}.targetPort"),
                &port["targetPort"],
                "must be between 1 and 65535, inclusive",
            );
        }
        if !numbers.insert((port["port"].to_string(), port["protocol"].to_string())) {
            found.0.push(cause(&at, "FieldValueDuplicate", format!("Duplicate value: {port}")));
        }
        if kind == "ClusterIP" && port["nodePort"].as_i64().is_some_and(|number| number != 0) {
            found.forbidden(format!("{at}.nodePort"), "may not be used when `type` is 'ClusterIP'");
        }
    }
    let told = next["status"]["loadBalancer"]["ingress"].as_array().is_some_and(|told| !told.is_empty());
    if told && kind != "LoadBalancer" {
        found.forbidden("status.loadBalancer.ingress", "may only be used when `spec.type` is 'LoadBalancer'");
    }
    if let Some(live) = live {
        let was = &live["spec"]["clusterIP"];
        if live["spec"]["type"] != "ExternalName" && kind != "ExternalName" && *was != spec["clusterIP"] {
            found.invalid("spec.clusterIPs[0]", &spec["clusterIPs"], "may not change once set");
        }
    }
}

fn ingress(next: &Value, found: &mut Findings) {
    let spec = &next["spec"];
    let rules = spec["rules"].as_array().map(Vec::as_slice).unwrap_or_default();
    if rules.is_empty() && spec["defaultBackend"].is_null() {
        found.invalid("spec", spec, "either `defaultBackend` or `rules` must be specified");
    }
    for (index, rule) in rules.iter().enumerate() {
        let host = rule["host"].as_str().unwrap_or_default();
        let plain = host.strip_prefix("*.").unwrap_or(host);
        if !host.is_empty() && !is_name("", plain) {
            found.invalid(
                format!("spec.rules[{index}].host"),
                &rule["host"],
                "a lowercase RFC 1123 subdomain is expected",
            );
        }
        let Some(http) = rule.get("http") else { continue };
        let paths = http["paths"].as_array().map(Vec::as_slice).unwrap_or_default();
        if paths.is_empty() {
            found.required(format!("spec.rules[{index}].http.paths"));
        }
        for (number, path) in paths.iter().enumerate() {
            let at = format!("spec.rules[{index}].http.paths[{number}]");
            match path["pathType"].as_str() {
                None => found.required(format!("{at}.pathType")),
                Some("Exact" | "Prefix" | "ImplementationSpecific") => {}
                Some(_) => found.unsupported(format!("{at}.pathType"), &path["pathType"]),
            }
            let text = path["path"].as_str().unwrap_or_default();
            let may_lack = path["pathType"] == "ImplementationSpecific";
            if !(text.starts_with('/') || text.is_empty() && may_lack) {
                found.invalid(format!("{at}.path"), &path["path"], "must be an absolute path");
            }
            backend(&format!("{at}.backend"), &path["backend"], found);
        }
    }
    if let Some(default) = spec.get("defaultBackend") {
        backend("spec.defaultBackend", default, found);
    }
}

fn backend(at: &str, backend: &Value, found: &mut Findings) {
    let service = &backend["service"];
    if service.is_null() {
        if backend["resource"].is_null() {
            found.required(at);
        }
        return;
    }
    if service["name"].as_str().unwrap_or_default().is_empty() {
        found.required(format!("{at}.service.name"));
    }
    let port = &service["port"];
    let named = !port["name"].as_str().unwrap_or_default().is_empty();
    let numbered = port["number"].as_i64().is_some_and(|number| number != 0);
    match (named, numbered) {
        (false, false) => found.required(at),
        (true, true) => found.invalid(at, port, "cannot set both port name & port number"),
        _ => {}
    }
}
