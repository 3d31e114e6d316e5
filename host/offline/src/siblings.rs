//! Names that the children of an answer use of each other. A name that no child has is a warning and no error, since the object may be
//! there without the guest. So it is told only where the answer has objects of that kind in that namespace, and none of them is meant.
//!
//! Secrets, ConfigMaps and PersistentVolumeClaims of pod templates are not here: of those the gate refuses whatever is neither a child nor
//! granted.

use pintle_core::object;
use pintle_schema::nearest::did_you_mean;
use pintle_wit::Kind;
use serde_json::{Map, Value};

/// A group and a kind.
type GroupKind = (&'static str, &'static str);

const SERVICE: GroupKind = ("", "Service");
const SERVICE_ACCOUNT: GroupKind = ("", "ServiceAccount");
/// Whatever kind stands beside the name.
const NAMED: GroupKind = ("", "");

/// Which kind has a name of which kind where: as a text, or as an object with `name`.
const NAMES: [(GroupKind, &str, GroupKind); 10] = [
    (("networking.k8s.io", "Ingress"), "spec.defaultBackend.service", SERVICE),
    (("networking.k8s.io", "Ingress"), "spec.rules[].http.paths[].backend.service", SERVICE),
    (("apps", "StatefulSet"), "spec.serviceName", SERVICE),
    (("autoscaling", "HorizontalPodAutoscaler"), "spec.scaleTargetRef", NAMED),
    (("", "Pod"), "spec.serviceAccountName", SERVICE_ACCOUNT),
    (("apps", "Deployment"), "spec.template.spec.serviceAccountName", SERVICE_ACCOUNT),
    (("apps", "StatefulSet"), "spec.template.spec.serviceAccountName", SERVICE_ACCOUNT),
    (("apps", "DaemonSet"), "spec.template.spec.serviceAccountName", SERVICE_ACCOUNT),
    (("batch", "Job"), "spec.template.spec.serviceAccountName", SERVICE_ACCOUNT),
    (("batch", "CronJob"), "spec.jobTemplate.spec.template.spec.serviceAccountName", SERVICE_ACCOUNT),
];

/// Which kind has labels of Pods where.
const SELECTORS: [(GroupKind, &str); 2] =
    [(SERVICE, "spec.selector"), (("policy", "PodDisruptionBudget"), "spec.selector.matchLabels")];

/// The names and labels by which children of an answer mean each other and that none of them has.
pub(crate) fn warnings(children: &[Value]) -> Vec<String> {
    let mut found = Vec::new();
    for child in children {
        let kind = object::kind(child);
        let is_of = |(group, name): GroupKind| kind.group() == group && kind.kind == name;
        let beside = || children.iter().filter(|other| object::namespace(other) == object::namespace(child));
        let mut warn = |path: &str, message: String| {
            found.push(format!("{}: {path}: {message}", object::reference(child)));
        };
        for (_, path, to) in NAMES.iter().filter(|(of, ..)| is_of(*of)) {
            for (path, value) in at(child, path) {
                let Some((at, name)) = named(&path, value) else { continue };
                let own = object::kind(value);
                let (group, wanted) = if *to == NAMED { (own.group(), own.kind.as_str()) } else { *to };
                let same = |other: &&Value| {
                    let kind = object::kind(other);
                    kind.group() == group && kind.kind == wanted
                };
                let others: Vec<&Value> = beside().filter(same).collect();
                match others.iter().find(|other| object::name(other) == name) {
                    Some(meant) => {
                        if let Some((key, message)) = port(value, meant) {
                            warn(&format!("{path}.{key}"), message);
                        }
                    }
                    None if others.is_empty() => {}
                    None => {
                        let near = did_you_mean(name, others.iter().map(|other| object::name(other)));
                        warn(&at, format!("no child is {wanted} {name:?}{near}"));
                    }
                }
            }
        }
        for (_, path) in SELECTORS.iter().filter(|(of, _)| is_of(*of)) {
            for (path, value) in at(child, path) {
                let Some(selector) = value.as_object().filter(|selector| !selector.is_empty()) else {
                    continue;
                };
                let mut pods = beside().filter_map(labels_of_pods).peekable();
                let is_any = pods.peek().is_some();
                let means = |labels: &Map<String, Value>| {
                    selector.iter().all(|(name, value)| labels.get(name) == Some(value))
                };
                if is_any && !pods.any(means) {
                    warn(&path, format!("no child has Pods with the labels {value}"));
                }
            }
        }
    }
    found
}

/// The name in a value, and its path.
fn named<'a>(path: &str, value: &'a Value) -> Option<(String, &'a str)> {
    let (path, name) = match value {
        Value::String(name) => (path.to_owned(), name.as_str()),
        _ => (format!("{path}.name"), object::text(value, &["name"])?),
    };
    (!name.is_empty()).then_some((path, name))
}

/// The port beside the name of a Service, if the Service does not have it: where it is, and what to say of it.
fn port(backend: &Value, service: &Value) -> Option<(&'static str, String)> {
    let wanted = backend.get("port")?;
    let ports = object::at(service, &["spec", "ports"])?.as_array()?;
    let (key, field, at) = match wanted.get("name") {
        Some(_) => ("name", "name", "port.name"),
        None => ("number", "port", "port.number"),
    };
    let wanted = wanted.get(key)?;
    let known = || ports.iter().filter_map(|port| port.get(field));
    if known().any(|port| port == wanted) {
        return None;
    }
    let known: Vec<String> = known().map(ToString::to_string).collect();
    let known = if known.is_empty() { "none".into() } else { known.join(", ") };
    Some((at, format!("Service {} has no port {wanted}; it has {known}", object::name(service))))
}

/// The labels of the Pods that a child is or makes.
fn labels_of_pods(child: &Value) -> Option<&Map<String, Value>> {
    let labels = if object::kind(child) == Kind::new("v1", "Pod") {
        child.pointer("/metadata/labels")
    } else {
        let template = child.pointer("/spec/template/metadata/labels");
        template.or_else(|| child.pointer("/spec/jobTemplate/spec/template/metadata/labels"))
    };
    labels?.as_object()
}

/// What a dotted path leads to, with the path of each: `[]` stands for each item of a list.
fn at<'a>(value: &'a Value, path: &str) -> Vec<(String, &'a Value)> {
    let mut found = vec![(String::new(), value)];
    for step in path.split('.') {
        let (key, is_list) = step.strip_suffix("[]").map_or((step, false), |key| (key, true));
        let mut below = Vec::new();
        for (path, value) in found {
            let Some(value) = value.get(key) else { continue };
            let path = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
            match value.as_array().filter(|_| is_list) {
                Some(items) => {
                    let items = items.iter().enumerate();
                    below.extend(items.map(|(index, item)| (format!("{path}[{index}]"), item)));
                }
                None => below.push((path, value)),
            }
        }
        found = below;
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn child(api_version: &str, kind: &str, name: &str, spec: Value) -> Value {
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "n"}, "spec": spec})
    }

    fn web() -> [Value; 3] {
        let template = json!({"metadata": {"labels": {"app": "web", "tier": "front"}}, "spec": {}});
        let ports = json!([{"name": "http", "port": 80}]);
        [
            child("apps/v1", "Deployment", "web", json!({"template": template})),
            child("v1", "Service", "web", json!({"selector": {"app": "web"}, "ports": ports})),
            child("v1", "ServiceAccount", "web", json!({})),
        ]
    }

    fn ingress(name: &str, port: Value) -> Value {
        let paths = json!([{"backend": {"service": {"name": name, "port": port}}}]);
        child("networking.k8s.io/v1", "Ingress", "web", json!({"rules": [{"http": {"paths": paths}}]}))
    }

    fn scaler(kind: &str, name: &str) -> Value {
        let target = json!({"apiVersion": "apps/v1", "kind": kind, "name": name});
        child("autoscaling/v2", "HorizontalPodAutoscaler", "web", json!({"scaleTargetRef": target}))
    }

    #[test]
    fn a_name_that_no_child_has_is_told_where_the_answer_has_others_of_the_kind() {
        let backend = "Ingress n/web: spec.rules[0].http.paths[0].backend.service";
        let account = |name: &str| json!({"template": {"spec": {"serviceAccountName": name}}});
        let service = |selector: Value| child("v1", "Service", "other", json!({"selector": selector}));
        let budget = |labels: Value| {
            child("policy/v1", "PodDisruptionBudget", "web", json!({"selector": {"matchLabels": labels}}))
        };
        for (child, told) in [
            (ingress("web", json!({"number": 80})), None),
            (ingress("web", json!({"name": "http"})), None),
            (
                ingress("webb", json!({"number": 80})),
                Some(format!("{backend}.name: no child is Service \"webb\"; did you mean web?")),
            ),
            (
                ingress("web", json!({"number": 8080})),
                Some(format!("{backend}.port.number: Service web has no port 8080; it has 80")),
            ),
            (
                ingress("web", json!({"name": "https"})),
                Some(format!("{backend}.port.name: Service web has no port \"https\"; it has \"http\"")),
            ),
            (
                child("networking.k8s.io/v1", "Ingress", "web", json!({"defaultBackend": {"service": {"name": "x"}}})),
                Some("Ingress n/web: spec.defaultBackend.service.name: no child is Service \"x\"".into()),
            ),
            (
                child("apps/v1", "StatefulSet", "db", json!({"serviceName": "db"})),
                Some("StatefulSet n/db: spec.serviceName: no child is Service \"db\"".into()),
            ),
            (child("apps/v1", "StatefulSet", "db", json!({"serviceName": ""})), None),
            (scaler("Deployment", "web"), None),
            (
                scaler("Deployment", "wed"),
                Some("HorizontalPodAutoscaler n/web: spec.scaleTargetRef.name: no child is Deployment \"wed\"; did you mean web?".into()),
            ),
            // Somebody else may have it.
            (scaler("StatefulSet", "db"), None),
            (child("batch/v1", "Job", "j", account("web")), None),
            (
                child("batch/v1", "Job", "j", account("x")),
                Some("Job n/j: spec.template.spec.serviceAccountName: no child is ServiceAccount \"x\"".into()),
            ),
            (service(json!({"app": "web", "tier": "front"})), None),
            (service(Value::Null), None),
            (
                service(json!({"app": "wbe"})),
                Some("Service n/other: spec.selector: no child has Pods with the labels {\"app\":\"wbe\"}".into()),
            ),
            (
                budget(json!({"app": "x"})),
                Some("PodDisruptionBudget n/web: spec.selector.matchLabels: no child has Pods with the labels {\"app\":\"x\"}".into()),
            ),
        ] {
            let children = [web().to_vec(), vec![child]].concat();
            assert_eq!(warnings(&children), Vec::from_iter(told), "{:?}", children.last());
        }
    }

    #[test]
    fn what_the_answer_has_none_of_is_somebody_elses() {
        assert_eq!(warnings(&[ingress("web", json!({"number": 80}))]), [""; 0]);
        assert_eq!(warnings(&[web()[1].clone()]), [""; 0]);
        let mut elsewhere = web();
        elsewhere.iter_mut().for_each(|child| child["metadata"]["namespace"] = "other".into());
        let children = [elsewhere.to_vec(), vec![ingress("x", json!({"number": 80}))]].concat();
        assert_eq!(warnings(&children), [""; 0]);
    }
}
