//! The children of a Bench: the ConfigMap, Deployment, Service and Ingress that the benchmark's guest answers with.

use pintle_guest::{Map, Value, json};

use crate::BenchSpec;

/// Which logic this is. The changed module of a swap is the same code, built with `PINTLE_BENCH_LOGIC=2`.
pub const LOGIC: &str = match option_env!("PINTLE_BENCH_LOGIC") {
    Some(logic) => logic,
    None => "1",
};

/// The name under which the Ingress is reached.
pub fn host_name(name: &str) -> String {
    format!("{name}.bench.example.com")
}

/// The ConfigMap, the Deployment, the Service and the Ingress of a root, without namespace and owner. `logic` shows in the ConfigMap
/// alone.
pub fn children(name: &str, spec: &BenchSpec, logic: &str) -> [Value; 4] {
    let labels = json!({"app.kubernetes.io/name": "bench", "app.kubernetes.io/instance": name});
    let metadata = json!({"name": name, "labels": labels});
    let config_map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": data(name, spec, logic),
    });
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "replicas": spec.replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "automountServiceAccountToken": false,
                    "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
                    "containers": [{
                        "name": "server",
                        "image": "registry.example.com/bench:1",
                        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
                        "envFrom": [{"configMapRef": {"name": name}}],
                        "resources": {
                            "requests": {"cpu": "10m", "memory": "16Mi"},
                            "limits": {"memory": "64Mi"},
                        },
                        "securityContext": {
                            "allowPrivilegeEscalation": false,
                            "capabilities": {"drop": ["ALL"]},
                        },
                    }],
                },
            },
        },
    });
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {
            "selector": labels,
            "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": "http"}],
        },
    });
    let backend = json!({"service": {"name": name, "port": {"name": "http"}}});
    let ingress = json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": metadata,
        "spec": {"rules": [{
            "host": host_name(name),
            "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]},
        }]},
    });
    [config_map, deployment, service, ingress]
}

/// Fifteen keys, the message and the logic among them.
fn data(name: &str, spec: &BenchSpec, logic: &str) -> Value {
    let mut data: Map<String, Value> =
        (1..=13).map(|key| (format!("KEY_{key:02}"), json!(format!("value {key} of {name}")))).collect();
    data.insert("LOGIC".to_owned(), json!(logic));
    data.insert("MESSAGE".to_owned(), json!(spec.message));
    Value::Object(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_config_map_has_fifteen_keys_and_only_it_shows_the_logic() {
        let spec = BenchSpec { replicas: 0, message: "m".to_owned() };
        let (one, two) = (children("a", &spec, "1"), children("a", &spec, "2"));
        assert_eq!(one[0]["data"].as_object().map(Map::len), Some(15));
        assert_ne!(one[0], two[0]);
        assert_eq!(one[1..], two[1..]);
    }
}
