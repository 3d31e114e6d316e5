//! Objects of every kind, with what is often in them and what should not be.

use serde_json::{Map, Value, json};

use crate::generate::Dice;

/// A kind that sequences are about.
pub(crate) struct Kind {
    pub(crate) group: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) plural: &'static str,
}

/// The kinds that sequences are about. The last one is the custom kind.
pub(crate) const KINDS: &[Kind] = &[
    Kind { group: "", kind: "ConfigMap", plural: "configmaps" },
    Kind { group: "", kind: "Secret", plural: "secrets" },
    Kind { group: "", kind: "Service", plural: "services" },
    Kind { group: "apps", kind: "Deployment", plural: "deployments" },
    Kind { group: "networking.k8s.io", kind: "Ingress", plural: "ingresses" },
    Kind { group: "policy", kind: "PodDisruptionBudget", plural: "poddisruptionbudgets" },
    Kind { group: "conformance.pintle.dev", kind: "Widget", plural: "widgets" },
];

impl Kind {
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { "v1".into() } else { format!("{}/v1", self.group) }
    }

    fn root(&self) -> String {
        if self.group.is_empty() { "/api/v1".into() } else { format!("/apis/{}/v1", self.group) }
    }

    pub(crate) fn path(&self, namespace: &str) -> String {
        format!("{}/namespaces/{namespace}/{}", self.root(), self.plural)
    }

    pub(crate) fn all(&self) -> String {
        format!("{}/{}", self.root(), self.plural)
    }

    /// An object, more or less well made.
    pub(crate) fn object(&self, name: &str, dice: &mut Dice) -> Value {
        let mut object =
            json!({"apiVersion": self.api_version(), "kind": self.kind, "metadata": metadata(name, dice)});
        let rest = match self.kind {
            "ConfigMap" => config_map(dice),
            "Secret" => secret(dice),
            "Service" => service(dice),
            "Deployment" => deployment(dice),
            "Ingress" => ingress(dice),
            "PodDisruptionBudget" => disruption_budget(dice),
            _ => widget(dice),
        };
        if let (Some(object), Value::Object(rest)) = (object.as_object_mut(), rest) {
            object.extend(rest);
        }
        if dice.one_in(40) {
            object["metadata"]["labels"] = json!({"bad label!": "x"});
        }
        object
    }

    /// An object that is accepted, and takes nothing that another could get.
    pub(crate) fn plain(&self, name: &str) -> Value {
        let rest = match self.kind {
            "Service" => r#"{"spec": {"clusterIP": "None", "ports": [{"port": 80}]}}"#,
            "Deployment" => {
                r#"{"spec": {"selector": {"matchLabels": {"app": "x"}}, "template": {
                    "metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "main", "image": "web"}]}}}}"#
            }
            "Ingress" => {
                r#"{"spec": {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}}}"#
            }
            "PodDisruptionBudget" => {
                r#"{"spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}}"#
            }
            "Widget" => r#"{"spec": {"size": 1}}"#,
            _ => "{}",
        };
        let mut object =
            json!({"apiVersion": self.api_version(), "kind": self.kind, "metadata": {"name": name}});
        json_patch::merge(&mut object, &serde_json::from_str(rest).unwrap());
        object
    }

    /// What a status write sends.
    pub(crate) fn status(&self, dice: &mut Dice) -> Value {
        match self.kind {
            "Deployment" => {
                let mut status =
                    json!({"observedGeneration": 1 + dice.below(3), "replicas": 1 + dice.below(3)});
                if dice.one_in(2) {
                    status["conditions"] = json!([condition("Available", dice)]);
                }
                status
            }
            "PodDisruptionBudget" => {
                let mut status = json!({"currentHealthy": dice.below(3), "desiredHealthy": dice.below(3), "disruptionsAllowed": dice.below(2),
                                        "expectedPods": dice.below(3), "observedGeneration": dice.below(3)});
                if dice.one_in(2) {
                    status["conditions"] = json!([condition("DisruptionAllowed", dice)]);
                }
                status
            }
            "Service" | "Ingress" => {
                json!({"loadBalancer": {"ingress": [{"ip": format!("192.0.2.{}", 1 + dice.below(3))}]}})
            }
            _ => {
                let mut status = json!({"count": dice.below(4)});
                if dice.one_in(2) {
                    let kinds = [["Ready"].as_slice(), &["Ready", "Degraded"], &["Degraded"]];
                    let kinds = kinds[dice.below(3)];
                    status["conditions"] = kinds.iter().map(|kind| condition(kind, dice)).collect();
                }
                if dice.one_in(20) {
                    status["undeclared"] = 1.into();
                }
                status
            }
        }
    }
}

fn condition(kind: &str, dice: &mut Dice) -> Value {
    json!({"type": kind, "status": dice.pick(&["True", "False"]), "reason": "Because", "message": dice.pick(&["a", "b"]),
           "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

fn metadata(name: &str, dice: &mut Dice) -> Value {
    let mut metadata = json!({"name": name});
    if dice.one_in(2) {
        metadata["labels"] = words(&["app", "tier", "example.com/x"], dice);
    }
    if dice.one_in(3) {
        metadata["annotations"] = words(&["note", "example.com/y"], dice);
    }
    if dice.one_in(12) {
        metadata["finalizers"] = json!(["example.com/hold"]);
    }
    if dice.one_in(10) {
        let owner = |uid: &str, controller: bool| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": format!("owner-{uid}"), "uid": format!("uid-of-{uid}"), "controller": controller});
        let both = dice.one_in(4);
        let mut owners = vec![owner(dice.pick(&["one", "two"]), true)];
        if dice.one_in(3) {
            owners.push(owner("three", both));
        }
        metadata["ownerReferences"] = owners.into();
    }
    metadata
}

/// Some of these keys, each with a small value.
fn words(keys: &[&str], dice: &mut Dice) -> Value {
    let mut map = Map::new();
    for key in keys {
        if dice.one_in(2) {
            map.insert((*key).into(), dice.pick(&["x", "y", ""]).into());
        }
    }
    Value::Object(map)
}

/// Rolls the dice of a part of `objects.txt`, and does what its side says. Returns the side.
fn vary(object: &mut Value, part: &str, dice: &mut Dice) -> usize {
    let mut parts = include_str!("objects.txt").split("\n## ");
    let lines = parts.find_map(|text| text.strip_prefix(part)?.strip_prefix(' ')).unwrap();
    let mut lines = lines.lines().filter(|line| !line.is_empty());
    let side = dice.below(lines.next().unwrap().parse().unwrap());
    for (sides, what) in lines.filter_map(|line| line.split_once(' ')) {
        let (first, last) = sides.split_once('-').unwrap_or((sides, sides));
        let number = |text: &str| text.parse::<usize>().unwrap();
        if side < number(first) || side > number(last) {
            continue;
        }
        if what.starts_with('{') {
            json_patch::merge(object, &serde_json::from_str(what).unwrap());
        } else if what.starts_with('[') {
            let patch: json_patch::Patch = serde_json::from_str(what).unwrap();
            json_patch::patch(object, &patch).unwrap();
        } else {
            vary(object, what, dice);
        }
    }
    side
}

fn config_map(dice: &mut Dice) -> Value {
    let mut map = json!({});
    if !dice.one_in(8) {
        map["data"] = words(&["a", "b", "c.txt"], dice);
    }
    vary(&mut map, "config_map", dice);
    map
}

fn secret(dice: &mut Dice) -> Value {
    let mut data = Map::new();
    for key in ["user", "password"] {
        if dice.one_in(2) {
            data.insert(key.into(), dice.pick(&["eA==", "eHk="]).into());
        }
    }
    let mut secret = json!({"data": data});
    vary(&mut secret, "secret", dice);
    secret
}

fn service(dice: &mut Dice) -> Value {
    let mut ports = Vec::new();
    for (name, number) in [("http", 80), ("https", 443)] {
        if ports.is_empty() || dice.one_in(2) {
            let mut port = json!({"name": name, "port": number});
            vary(&mut port, "service_port", dice);
            ports.push(port);
        }
    }
    let mut spec = json!({"selector": {"app": dice.pick(&["x", "y"])}, "ports": ports});
    vary(&mut spec, "service", dice);
    json!({"spec": spec})
}

fn deployment(dice: &mut Dice) -> Value {
    let app = if dice.one_in(15) { "other" } else { "x" };
    let mut containers = vec![container("main", dice)];
    if dice.one_in(4) {
        containers.push(container("side", dice));
    }
    if dice.one_in(6) {
        containers.reverse();
    }
    let mut template = json!({"metadata": {"labels": {"app": app}}, "spec": {"containers": containers}});
    if dice.one_in(4) {
        template["metadata"]["annotations"] = words(&["restarted", "note"], dice);
    }
    vary(&mut template["spec"], "pod", dice);
    let mut spec = json!({"selector": {"matchLabels": {"app": app}}, "template": template});
    vary(&mut spec, "deployment", dice);
    json!({"spec": spec})
}

fn container(name: &str, dice: &mut Dice) -> Value {
    let mut container =
        json!({"name": name, "image": dice.pick(&["web", "web:1", "web:latest", "r.example.com:5000/web"])});
    if dice.one_in(3) {
        let names = [["A"].as_slice(), &["A", "B"], &["B", "A"], &["B"]][dice.below(4)];
        container["env"] =
            names.iter().map(|name| json!({"name": name, "value": dice.pick(&["1", "2"])})).collect();
    }
    if dice.one_in(3) {
        let mut port = json!({"containerPort": 8080 + dice.below(2)});
        if dice.one_in(2) {
            port["protocol"] = "TCP".into();
        }
        if dice.one_in(3) {
            port["name"] = "http".into();
        }
        container["ports"] = json!([port]);
    }
    vary(&mut container, "container", dice);
    container
}

fn ingress(dice: &mut Dice) -> Value {
    let backend = |dice: &mut Dice| {
        let port = if dice.one_in(4) { json!({"name": "http"}) } else { json!({"number": 80}) };
        json!({"service": {"name": dice.pick(&["a", "b"]), "port": port}})
    };
    let mut rules = Vec::new();
    for host in ["one.example.com", "two.example.com"] {
        if rules.is_empty() || dice.one_in(3) {
            let kind = dice.pick(&["Prefix", "Exact", "ImplementationSpecific"]);
            let path = json!({"path": dice.pick(&["/", "/x"]), "pathType": kind, "backend": backend(dice)});
            rules.push(json!({"host": host, "http": {"paths": [path]}}));
        }
    }
    let mut spec = json!({"rules": rules});
    if vary(&mut spec, "ingress", dice) == 2 {
        spec["defaultBackend"] = backend(dice);
    }
    json!({"spec": spec})
}

fn disruption_budget(dice: &mut Dice) -> Value {
    let mut spec = json!({"selector": {"matchLabels": {"app": dice.pick(&["x", "y"])}}});
    vary(&mut spec, "disruption_budget", dice);
    json!({"spec": spec})
}

fn widget(dice: &mut Dice) -> Value {
    let mut spec = json!({"size": dice.below(8)});
    match vary(&mut spec, "widget", dice) {
        10 | 11 => spec["labels"] = words(&["p", "q"], dice),
        12 | 13 => spec["free"] = json!({"deep": {"x": dice.below(3), "list": [1, dice.below(2)]}}),
        _ => {}
    }
    let mut widget = json!({"spec": spec});
    if dice.one_in(10) {
        widget["status"] = json!({"count": 9});
    }
    widget
}

/// The custom kind. What is in `exact` only `requests/parameters.txt` sets, to compare the words about it.
pub(crate) fn crd() -> Value {
    serde_json::from_str(include_str!("widgets.json")).unwrap()
}
