//! Objects of every kind, with what is often in them and what should not be.

use serde_json::{Map, Value, json};

use crate::generate::Dice;

/// A kind that sequences are about.
pub(crate) struct Kind {
    pub(crate) group: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) plural: &'static str,
}

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

    pub(crate) fn is_custom(&self) -> bool {
        self.kind == "Widget"
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
        let selector = json!({"matchLabels": {"app": "x"}});
        let spec = match self.kind {
            "Service" => json!({"clusterIP": "None", "ports": [{"port": 80}]}),
            "Deployment" => {
                let containers = json!([{"name": "main", "image": "web"}]);
                let template =
                    json!({"metadata": {"labels": {"app": "x"}}, "spec": {"containers": containers}});
                json!({"selector": selector, "template": template})
            }
            "Ingress" => json!({"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}}),
            "PodDisruptionBudget" => json!({"minAvailable": 1, "selector": selector}),
            "Widget" => json!({"size": 1}),
            _ => Value::Null,
        };
        let mut object =
            json!({"apiVersion": self.api_version(), "kind": self.kind, "metadata": {"name": name}});
        if !spec.is_null() {
            object["spec"] = spec;
        }
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

fn config_map(dice: &mut Dice) -> Value {
    let mut map = json!({});
    if !dice.one_in(8) {
        map["data"] = words(&["a", "b", "c.txt"], dice);
    }
    match dice.below(30) {
        0 => map["data"]["bad key"] = "x".into(),
        1 => map["data"]["a"] = 1.into(),
        2 => map["immutable"] = true.into(),
        3 => map["unknown"] = "field".into(),
        4 => map["binaryData"] = json!({"bin": "AAEC"}),
        _ => {}
    }
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
    match dice.below(14) {
        0 => secret["type"] = "example.com/other".into(),
        1 => secret["type"] = "Opaque".into(),
        2 => secret["type"] = "kubernetes.io/tls".into(),
        3 => secret["data"]["bad key"] = "eA==".into(),
        _ => {}
    }
    secret
}

fn service(dice: &mut Dice) -> Value {
    let mut ports = Vec::new();
    for (name, number) in [("http", 80), ("https", 443)] {
        if ports.is_empty() || dice.one_in(2) {
            let mut port = json!({"name": name, "port": number});
            match dice.below(6) {
                0 => port["targetPort"] = 8080.into(),
                1 => port["targetPort"] = "http".into(),
                2 => port["protocol"] = "TCP".into(),
                3 => port["protocol"] = "UDP".into(),
                _ => {}
            }
            ports.push(port);
        }
    }
    let mut spec = json!({"selector": {"app": dice.pick(&["x", "y"])}, "ports": ports});
    match dice.below(24) {
        0 | 1 => spec["type"] = "NodePort".into(),
        2..6 => spec["type"] = "ClusterIP".into(),
        6 => spec["clusterIP"] = "None".into(),
        7 => {
            spec["type"] = "ExternalName".into();
            spec["externalName"] = "example.com".into();
        }
        8 => spec["sessionAffinity"] = "ClientIP".into(),
        9 => spec["ports"] = json!([]),
        10 => spec["ports"] = json!([{"port": 1}, {"port": 2}]),
        11 => spec["type"] = "Nonsense".into(),
        12 => spec["ports"][0]["port"] = 70_000.into(),
        13 => spec["ports"][0]["port"] = "eighty".into(),
        14 => spec["publishNotReadyAddresses"] = true.into(),
        _ => {}
    }
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
    match dice.below(16) {
        0 => template["spec"]["volumes"] = json!([{"name": "v", "configMap": {"name": "a"}}]),
        1 => template["spec"]["volumes"] = json!([{"name": "v"}]),
        2 => template["spec"]["volumes"] = json!([{"name": "v", "secret": {"secretName": "a"}}]),
        3 => template["spec"]["serviceAccountName"] = "robot".into(),
        4 => template["spec"]["nodeSelector"] = json!({"disk": "ssd"}),
        5 => template["spec"]["securityContext"] = json!({"runAsNonRoot": true, "fsGroup": 7}),
        6 => template["spec"]["initContainers"] = json!([{"name": "init", "image": "i"}]),
        7 => template["spec"]["terminationGracePeriodSeconds"] = 5.into(),
        8 => template["spec"]["restartPolicy"] = "Never".into(),
        9 => template["spec"]["tolerations"] = json!([{"key": "k", "operator": "Exists"}]),
        10 => template["spec"]["imagePullSecrets"] = json!([{"name": "s"}]),
        _ => {}
    }
    let mut spec = json!({"selector": {"matchLabels": {"app": app}}, "template": template});
    match dice.below(24) {
        0..10 => spec["replicas"] = dice.below(4).into(),
        10 => spec["strategy"] = json!({"type": "Recreate"}),
        11 => spec["strategy"] = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}),
        12 => spec["template"]["metadata"]["labels"]["app"] = "mismatch".into(),
        13 => drop(spec.as_object_mut().map(|fields| fields.remove("selector"))),
        14 => spec["replicas"] = "two".into(),
        15 => spec["replicas"] = (-1).into(),
        16 => spec["minReadySeconds"] = 3.into(),
        17 => spec["revisionHistoryLimit"] = 2.into(),
        18 => spec["unknown"] = json!({"field": 1}),
        _ => {}
    }
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
    match dice.below(24) {
        0 => container["resources"] = json!({"requests": {"cpu": "100m", "memory": "64Mi"}}),
        1 => container["resources"] = json!({"limits": {"cpu": "0.5"}, "requests": {"cpu": 0.25}}),
        2 => container["readinessProbe"] = json!({"httpGet": {"port": 80}}),
        3 => container["livenessProbe"] = json!({"tcpSocket": {"port": "http"}, "periodSeconds": 3}),
        4 => container["command"] = json!(["sh", "-c", dice.pick(&["a", "b"])]),
        5 => drop(container.as_object_mut().map(|fields| fields.remove("image"))),
        6 => container["volumeMounts"] = json!([{"name": "v", "mountPath": "/v"}]),
        7 => {
            container["env"] =
                json!([{"name": "F", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}])
        }
        8 => container["envFrom"] = json!([{"configMapRef": {"name": "a"}}]),
        9 => container["securityContext"] = json!({"allowPrivilegeEscalation": false}),
        10 => container["env"] = json!([{"name": "E", "value": ""}]),
        _ => {}
    }
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
    match dice.below(16) {
        0 => spec["ingressClassName"] = "nginx".into(),
        1 => spec["tls"] = json!([{"hosts": ["one.example.com"], "secretName": "tls"}]),
        2 => spec["defaultBackend"] = backend(dice),
        3 => spec = json!({}),
        4 => drop(spec["rules"][0]["http"]["paths"][0].as_object_mut().map(|path| path.remove("pathType"))),
        5 => spec["rules"][0]["host"] = "Bad_Host".into(),
        6 => spec["rules"][0]["http"]["paths"][0]["path"] = "no-slash".into(),
        _ => {}
    }
    json!({"spec": spec})
}

fn disruption_budget(dice: &mut Dice) -> Value {
    let mut spec = json!({"selector": {"matchLabels": {"app": dice.pick(&["x", "y"])}}});
    match dice.below(10) {
        0..4 => spec["minAvailable"] = dice.below(3).into(),
        4 => spec["minAvailable"] = dice.pick(&["50%", "150%", "half"]).into(),
        5 => spec["maxUnavailable"] = dice.below(2).into(),
        6 => spec["maxUnavailable"] = (-1).into(),
        7 => spec = json!({"minAvailable": 1, "maxUnavailable": 1}),
        8 => spec["unhealthyPodEvictionPolicy"] = dice.pick(&["AlwaysAllow", "IfHealthyBudget"]).into(),
        _ => {}
    }
    json!({"spec": spec})
}

fn widget(dice: &mut Dice) -> Value {
    let mut spec = json!({"size": dice.below(8)});
    match dice.below(32) {
        0 | 1 => spec["color"] = dice.pick(&["red", "blue"]).into(),
        2 => spec["color"] = "green".into(),
        3 => spec["size"] = 99.into(),
        4 => spec["size"] = "big".into(),
        5 | 6 => {
            spec["tags"] =
                [json!(["a"]), json!(["a", "b"]), json!(["b", "a"]), json!(["c"])][dice.below(4)].clone()
        }
        7 | 8 => {
            let ports = [
                json!([{"port": 1}]),
                json!([{"port": 1, "name": "x"}, {"port": 2}]),
                json!([{"port": 2}, {"port": 1}]),
            ];
            spec["ports"] = ports[dice.below(3)].clone();
        }
        9 => spec["ports"] = json!([{"port": 1}, {"port": 1}]),
        10 | 11 => spec["labels"] = words(&["p", "q"], dice),
        12 | 13 => spec["free"] = json!({"deep": {"x": dice.below(3), "list": [1, dice.below(2)]}}),
        14 => spec["atomic"] = json!(["x", dice.pick(&["y", "z"])]),
        15 => spec["nested"] = json!({"on": false}),
        16 => spec["nested"] = json!({}),
        17 => spec["unknown"] = "field".into(),
        18 => drop(spec.as_object_mut().map(|fields| fields.remove("size"))),
        19 => spec["either"] = [json!(1), json!("two")][dice.below(2)].clone(),
        20 => spec["whole"] = json!({"a": dice.pick(&["1", "2"])}),
        21 => spec["name"] = dice.pick(&["fits", "Does Not"]).into(),
        22 => {
            spec["when"] = dice
                .pick(&[
                    "2026-01-01T00:00:00Z",
                    "2026-01-01T00:00:00.25+02:00",
                    "tomorrow",
                    "2026-02-30T00:00:00Z",
                ])
                .into()
        }
        23 | 24 => {
            spec["one"] =
                [json!({"a": 1}), json!({"b": 1}), json!({}), json!({"a": 1, "b": 1}), json!({"b": "x"})]
                    [dice.below(5)]
                .clone();
        }
        25 => spec["color"] = "green".into(),
        26 | 27 => spec["color"] = "red".into(),
        28 => {
            spec["color"] = "red".into();
            spec["size"] = 0.into();
        }
        29 => spec["tags"] = json!(["a", "reserved"]),
        30 => spec["ports"] = json!([]),
        _ => {}
    }
    let mut widget = json!({"spec": spec});
    if dice.one_in(10) {
        widget["status"] = json!({"count": 9});
    }
    widget
}

/// What only [`crate::parameters`] sets, to compare the words about it.
fn exact() -> Value {
    let above =
        json!([{"rule": "self >= oldSelf", "messageExpression": "self > 1.2 ? 'not less' : 'much less'"}]);
    json!({"type": "object", "properties": {
        "text": {"type": "string", "minLength": 2, "maxLength": 3, "pattern": "^[a-z]+$"},
        "share": {"type": "number", "minimum": 0.5, "exclusiveMinimum": true, "maximum": 1_000_000.5, "multipleOf": 0.5},
        "small": {"type": "integer", "format": "int32"},
        "day": {"type": "string", "format": "date"},
        "bytes": {"type": "string", "format": "byte"},
        "address": {"type": "string", "format": "ipv4"},
        "level": {"type": "integer", "enum": [1, 2]},
        "nothing": {"type": "string", "nullable": true, "enum": ["a"]},
        "pair": {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "integer"}},
        "map": {"type": "object", "minProperties": 1, "maxProperties": 2, "additionalProperties": {
            "type": "integer", "x-kubernetes-validations": [{"rule": "self > 0"}]}},
        "parts": {"type": "array", "maxItems": 9, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {
            "type": "object", "required": ["name"], "properties": {
                "name": {"type": "string", "maxLength": 9}, "weight": {"type": "number", "x-kubernetes-validations": above}}}},
        "once": {"type": "string", "maxLength": 9, "x-kubernetes-validations": [
            {"rule": "oldSelf.hasValue() ? self == oldSelf.value() : self != 'never'", "optionalOldSelf": true}]},
        "all": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "allOf": [{"properties": {"a": {"minimum": 1}}}, {"properties": {"b": {"maximum": 1}}}],
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}], "not": {"required": ["a", "b"]}},
        "lookup": {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 9,
            "x-kubernetes-validations": [{"rule": "self['x'] > 0", "reason": "FieldValueRequired"}]},
        "template": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {
            "spec": {"type": "object", "properties": {"a": {"type": "string"}}}}},
    }})
}

/// The custom kind.
pub(crate) fn crd() -> Value {
    let schema = json!({"type": "object", "required": ["spec"], "x-kubernetes-validations": [
        {"rule": "!has(self.status) || !has(self.status.count) || self.status.count <= self.spec.size + 2", "message": "no more than there is room for"},
    ], "properties": {
        "spec": {"type": "object", "required": ["size"], "x-kubernetes-validations": [
            {"rule": "self.color != 'red' || self.size > 0", "message": "a red one has a size"},
            {"rule": "!has(oldSelf.whole) || has(self.whole)", "message": "what is whole stays so", "reason": "FieldValueForbidden", "fieldPath": ".whole"},
            {"rule": "!has(self.nested) || self.nested.level < 3 || self.size < 7", "messageExpression": "self.size > 8 ? 'far too much' : 'too much'"},
        ], "properties": {
            "when": {"type": "string", "format": "date-time"},
            "one": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
            "size": {"type": "integer", "minimum": 0, "maximum": 9},
            "color": {"type": "string", "enum": ["red", "blue"], "default": "blue"},
            "name": {"type": "string", "pattern": "^[a-z]+$"},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "maxItems": 5, "items": {
                "type": "string", "maxLength": 9, "x-kubernetes-validations": [{"rule": "self != 'reserved'", "message": "is reserved"}]}},
            "ports": {"type": "array", "minItems": 1, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"], "items": {
                "type": "object", "required": ["port"], "properties": {
                    "port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}, "name": {"type": "string"}}}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "atomic": {"type": "array", "items": {"type": "string"}},
            "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
            "nested": {"type": "object", "properties": {
                "on": {"type": "boolean", "default": true}, "level": {"type": "integer", "default": 3}}},
            "either": {"x-kubernetes-int-or-string": true},
            "exact": exact(),
        }},
        "status": {"type": "object", "properties": {
            "count": {"type": "integer"},
            "conditions": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"], "items": {
                "type": "object", "required": ["type", "status"], "properties": {
                    "type": {"type": "string"}, "status": {"type": "string"}, "reason": {"type": "string"},
                    "message": {"type": "string"}, "lastTransitionTime": {"type": "string", "format": "date-time"}}}},
        }},
    }});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.conformance.pintle.dev"},
        "spec": {
            "group": "conformance.pintle.dev", "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}},
            }],
        },
    })
}
