//! Names that the children of an answer use of each other. A name that no child has is a warning and no error, since the object may be
//! there without the guest. So it is told only where the answer has objects of that kind in that namespace, and none of them is meant.
//!
//! What pod templates name is not here: of that the gate refuses whatever is neither a child nor granted.

use pintle_core::object;
use pintle_schema::nearest::did_you_mean;
use serde_json::{Map, Value};

/// A group and a kind.
type GroupKind<'a> = (&'a str, &'a str);

const INGRESS: GroupKind<'static> = ("networking.k8s.io", "Ingress");
const SERVICE: GroupKind<'static> = ("", "Service");
/// Whatever kind stands beside the name.
const NAMED: GroupKind<'static> = ("", "");

/// Which kind has a name of which kind where: as a text, or as an object with `name`.
const NAMES: [(GroupKind<'static>, &str, GroupKind<'static>); 4] = [
    (INGRESS, "spec.defaultBackend.service", SERVICE),
    (INGRESS, "spec.rules[].http.paths[].backend.service", SERVICE),
    (("apps", "StatefulSet"), "spec.serviceName", SERVICE),
    (("autoscaling", "HorizontalPodAutoscaler"), "spec.scaleTargetRef", NAMED),
];

/// Which kind has labels of Pods where.
const SELECTORS: [(GroupKind<'static>, &str); 2] =
    [(SERVICE, "spec.selector"), (("policy", "PodDisruptionBudget"), "spec.selector.matchLabels")];

/// The names and labels by which children of an answer mean each other and that none of them has.
pub(crate) fn warnings(children: &[Value]) -> Vec<String> {
    let mut found = Vec::new();
    for child in children {
        let beside: Vec<&Value> =
            children.iter().filter(|other| object::namespace(other) == object::namespace(child)).collect();
        let mut warn = |path: String, message: String| {
            found.push(format!("{}: {path}: {message}", object::reference(child)));
        };
        for (_, path, to) in NAMES.iter().filter(|(of, ..)| is(child, *of)) {
            at(child, path).iter().for_each(|(path, value)| name(&beside, *to, path, value, &mut warn));
        }
        let selectors = SELECTORS.iter().filter(|(of, _)| is(child, *of));
        for (path, value) in selectors.flat_map(|(_, path)| at(child, path)) {
            let Some(selector) = value.as_object().filter(|selector| !selector.is_empty()) else { continue };
            let means = |labels: &Map<String, Value>| {
                selector.iter().all(|(name, value)| labels.get(name) == Some(value))
            };
            let mut pods = beside.iter().filter_map(|child| labels_of_pods(child)).peekable();
            let Some(first) = pods.peek().copied() else { continue };
            if !pods.any(means) {
                let first = Value::Object(first.clone());
                warn(path, format!("no child has Pods with the labels {value}; there are Pods with {first}"));
            }
        }
    }
    found
}

/// Judges a name, and the port beside the name of a Service.
fn name(
    beside: &[&Value],
    to: GroupKind<'_>,
    path: &str,
    value: &Value,
    warn: &mut impl FnMut(String, String),
) {
    let own = object::kind(value);
    let to = if to == NAMED { (own.group(), own.kind.as_str()) } else { to };
    let others: Vec<&Value> = beside.iter().copied().filter(|other| is(other, to)).collect();
    let name = value.as_str().or_else(|| object::text(value, &["name"])).unwrap_or_default();
    if name.is_empty() || others.is_empty() {
        return;
    }
    let Some(meant) = others.iter().find(|other| object::name(other) == name) else {
        let near = did_you_mean(name, others.iter().map(|other| object::name(other)));
        let key = if value.is_string() { "" } else { ".name" };
        return warn(format!("{path}{key}"), format!("no child is {} {name:?}{near}", to.1));
    };
    let ports = object::at(meant, &["spec", "ports"]).and_then(Value::as_array);
    for (key, field) in [("name", "name"), ("number", "port")] {
        if let (Some(wanted), Some(ports)) = (object::at(value, &["port", key]), ports)
            && !ports.iter().any(|port| port.get(field) == Some(wanted))
        {
            let names = ports.iter().filter_map(|port| object::text(port, &["name"]));
            let near = did_you_mean(wanted.as_str().unwrap_or_default(), names);
            warn(format!("{path}.port.{key}"), format!("Service {name} has no port {wanted}{near}"));
        }
    }
}

fn is(object: &Value, (group, name): GroupKind<'_>) -> bool {
    let kind = object::kind(object);
    kind.group() == group && kind.kind == name
}

/// The labels of the Pods that a child is or makes.
fn labels_of_pods(child: &Value) -> Option<&Map<String, Value>> {
    let template =
        ["/spec/template", "/spec/jobTemplate/spec/template"].iter().find_map(|at| child.pointer(at));
    let pod = if is(child, ("", "Pod")) { Some(child) } else { template };
    object::at(pod?, &["metadata", "labels"])?.as_object()
}

/// What a dotted path leads to, with the path of each: `[]` stands for each item of a list.
fn at<'a>(value: &'a Value, path: &str) -> Vec<(String, &'a Value)> {
    let mut found = vec![(String::new(), value)];
    for step in path.split('.') {
        let key = step.trim_end_matches("[]");
        let mut below = Vec::new();
        for (path, value) in found {
            let Some(value) = value.get(key) else { continue };
            let path = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
            match value.as_array() {
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

    fn web() -> [Value; 2] {
        let template = json!({"metadata": {"labels": {"app": "web", "tier": "front"}}, "spec": {}});
        let ports = json!([{"name": "http", "port": 80}]);
        [
            child("apps/v1", "Deployment", "web", json!({"template": template})),
            child("v1", "Service", "web", json!({"selector": {"app": "web"}, "ports": ports})),
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
                Some(format!("{backend}.port.number: Service web has no port 8080")),
            ),
            (
                ingress("web", json!({"name": "htpp"})),
                Some(format!("{backend}.port.name: Service web has no port \"htpp\"; did you mean http?")),
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
            (service(json!({"app": "web", "tier": "front"})), None),
            (service(Value::Null), None),
            (
                service(json!({"app": "wbe"})),
                Some("Service n/other: spec.selector: no child has Pods with the labels {\"app\":\"wbe\"}; there are Pods with {\"app\":\"web\",\"tier\":\"front\"}".into()),
            ),
            (
                budget(json!({"app": "x"})),
                Some("PodDisruptionBudget n/web: spec.selector.matchLabels: no child has Pods with the labels {\"app\":\"x\"}; there are Pods with {\"app\":\"web\",\"tier\":\"front\"}".into()),
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
