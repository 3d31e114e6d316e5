//! What the guests are asked.

use serde_json::{Value, json};

/// A Darkroom of each source type.
pub(crate) fn darkroom() -> Vec<(&'static str, String)> {
    let request = |source: Value| {
        json!({
            "apiVersion": "guest.pintle.dev/v1",
            "object": {
                "apiVersion": "deployments.example.com/v1alpha1",
                "kind": "Darkroom",
                "metadata": {
                    "name": "darkroom-sample",
                    "namespace": "default",
                    "uid": "5f2b7c1e-0b53-4b8e-9a59-2f9c6a1d7a11",
                    "generation": 1,
                    "creationTimestamp": "2026-11-20T10:00:00Z",
                },
                "spec": {"version": "0.1.0", "subDomains": ["ajatprabha"], "source": source},
            },
            "config": {"domainSuffix": "darkroom.example.com"},
        })
        .to_string()
    };
    let folder = json!({"type": "WebFolder", "baseUrl": "https://ajatprabha.in/assets"});
    let bucket =
        json!({"type": "S3", "bucket": "images", "region": "eu-west-1", "accessKey": "a", "secretKey": "b"});
    vec![("a WebFolder", request(folder)), ("an S3 bucket, with its Secret", request(bucket))]
}

/// A new root, one at rest, and one as large as they get.
pub(crate) fn webserver() -> Vec<(&'static str, String)> {
    let root = |annotations: Value, status: Value| {
        json!({
            "apiVersion": "my.domain/v1",
            "kind": "WebServer",
            "metadata": {
                "name": "webserver-sample",
                "namespace": "default",
                "uid": "5f2b7c1e-0b53-4b8e-9a59-2f9c6a1d7a10",
                "generation": 1,
                "creationTimestamp": "2026-11-20T10:00:00Z",
                "labels": {"app.kubernetes.io/name": "webserver", "app.kubernetes.io/managed-by": "kustomize"},
                "annotations": annotations,
            },
            "spec": {"replicas": 3, "image": "nginx:1.27.3", "nodePort": 30010},
            "status": status,
        })
    };
    let request = |object: Value, children: Value| {
        json!({"apiVersion": "guest.pintle.dev/v1", "object": object, "children": children}).to_string()
    };
    let meta = |name: &str| {
        json!({
            "name": name,
            "namespace": "default",
            "uid": "0c9f0d52-7f0a-4a53-93a5-6f4f6a8a2b11",
            "generation": 1,
            "creationTimestamp": "2026-11-20T10:00:01Z",
            "labels": {"app": "webserver", "webserver_cr": "webserver-sample"},
        })
    };
    let selector = json!({"app": "webserver", "webserver_cr": "webserver-sample"});
    let container = json!({
        "name": "webserver", "image": "nginx:1.27.3", "imagePullPolicy": "IfNotPresent",
        "ports": [{"containerPort": 80, "protocol": "TCP"}], "terminationMessagePath": "/dev/termination-log",
    });
    let condition = |kind: &str, reason: &str| {
        json!({
            "type": kind, "status": "True", "reason": reason, "message": "as it should be",
            "lastTransitionTime": "2026-11-20T10:00:05Z", "lastUpdateTime": "2026-11-20T10:00:05Z",
        })
    };
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta("webserver-sample"),
        "spec": {
            "replicas": 3, "selector": {"matchLabels": selector}, "revisionHistoryLimit": 10,
            "template": {"metadata": {"labels": selector}, "spec": {"containers": [container], "restartPolicy": "Always"}},
        },
        "status": {
            "observedGeneration": 1, "replicas": 3, "readyReplicas": 3, "updatedReplicas": 3, "availableReplicas": 3,
            "conditions": [condition("Available", "MinimumReplicasAvailable"), condition("Progressing", "NewReplicaSetAvailable")],
        },
    });
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": meta("webserver-sample-service"),
        "spec": {
            "type": "NodePort", "selector": selector, "clusterIP": "10.0.0.17", "ipFamilies": ["IPv4"],
            "ports": [{"port": 80, "targetPort": 80, "nodePort": 30010, "protocol": "TCP"}],
        },
        "status": {"loadBalancer": {}},
    });
    let status = json!({"replicas": 3, "readyReplicas": 3, "updatedReplicas": 3, "selector": "app=webserver", "nodePort": 30010});
    let large: Value =
        (0..600).map(|n| (format!("example.com/annotation-{n}"), Value::from("x".repeat(80)))).collect();
    vec![
        ("a new root", request(root(json!({}), json!({})), json!([]))),
        ("a root at rest with its children", request(root(json!({}), status), json!([deployment, service]))),
        ("a root of 64 KB", request(root(large, json!({})), json!([]))),
    ]
}

/// Roots with labels of which many values are made, and some.
pub(crate) fn long() -> Vec<(String, String)> {
    let root = |count: usize, digits: usize, value: &str| {
        let labels: serde_json::Map<String, Value> =
            (0..count).map(|at| (format!("{at:0digits$x}"), value.into())).collect();
        json!({"apiVersion": "guest.pintle.dev/v1", "object": {
            "apiVersion": "my.domain/v1", "kind": "WebServer", "spec": {"replicas": 3, "image": "nginx:1.27.3", "nodePort": 30010},
            "metadata": {"name": "long", "namespace": "default", "labels": labels}}})
        .to_string()
    };
    let bytes = [256 << 10, 1_400 << 10];
    let short = bytes.map(|bytes| ("short labels".to_owned(), root(bytes / 11, 5, "")));
    let long = bytes.map(|bytes| ("long labels".to_owned(), root(bytes / 111, 50, &"x".repeat(55))));
    short.into_iter().chain(long).collect()
}
