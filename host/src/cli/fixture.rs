//! A cluster in memory for the tests of commands that talk to one, and objects for it.

use kube::Client;
use pintle_core::object;
use pintle_simulator::{Act, ApiServer, Options};
use pintle_wit::ObjectRef;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const DIGEST: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

/// When everything was created.
const CREATED: &str = "2000-01-01T00:00:00Z";

/// A cluster with the host's CRDs and these objects with their statuses.
pub(super) fn cluster(objects: &[Value]) -> (ApiServer, Client) {
    let server = ApiServer::new(Options::default());
    for object in pintle_api::crds().iter().chain(objects) {
        server.act("test", &Act::Create(object.clone())).unwrap();
        if object["kind"] != "CustomResourceDefinition" && object.get("status").is_some() {
            let act = Act::Merge {
                target: object::reference(object),
                subresource: Some("status".into()),
                patch: json!({"status": object["status"]}),
            };
            server.act("test", &act).unwrap();
        }
    }
    let client = Client::new(server.service("cli"), "default");
    (server, client)
}

/// A condition of this type and status.
pub(super) fn condition(name: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": name, "status": status, "reason": reason, "message": message, "lastTransitionTime": CREATED})
}

/// A Module; of this guest, if it was loaded.
pub(super) fn module(name: &str, guest: Option<&str>) -> Value {
    let status = guest.map_or_else(
        || json!({}),
        |guest| json!({"manifest": {"name": guest, "version": "0.1.0"}, "size": 7, "conditions": [condition("Ready", "True", "Succeeded", "")]}),
    );
    json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "Module",
        "metadata": {"name": name, "creationTimestamp": CREATED}, "status": status,
        "spec": {"digest": DIGEST, "source": {"configMap": {"namespace": "pintle-system", "name": name, "key": "k"}}}})
}

/// A Reconciler `r` for kind A that wants one Module and has another in force, with its conditions.
pub(super) fn reconciler(module: &str, active: Option<&str>, conditions: &[Value]) -> Value {
    let active = active.map(|name| json!({"module": name, "digest": DIGEST, "since": CREATED}));
    let mut status = json!({"roots": {"total": 3, "ready": 1, "failing": 2}, "conditions": conditions});
    if let Some(active) = active {
        status["active"] = active;
    }
    json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "Reconciler", "metadata": {"name": "r", "creationTimestamp": CREATED},
        "spec": {"for": {"apiVersion": "a.io/v1", "kind": "A"}, "module": module}, "status": status})
}

/// A View that wants one Module and has another in force, with its conditions. It serves its own name in group `b.io`.
pub(super) fn view(name: &str, module: &str, active: Option<&str>, conditions: &[Value]) -> Value {
    let mut status = json!({"conditions": conditions});
    if let Some(active) = active {
        status["active"] = json!({"module": active, "digest": DIGEST, "epoch": 1, "since": CREATED});
        status["served"] = json!({"apiVersion": "b.io/v1", "kind": "B", "plural": name, "singular": "b", "listKind": "BList",
            "verbs": ["get"], "schema": {"type": "object"}, "reads": [],
            "backing": {"apiVersion": "v1", "kind": "Pod", "plural": "pods", "namespaced": true}});
    }
    json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "View", "metadata": {"name": name, "creationTimestamp": CREATED},
        "spec": {"module": module, "view": name, "serve": {"aggregated": {}}}, "status": status})
}

/// The CRD of this name.
pub(super) fn crd_named(name: &str) -> ObjectRef {
    object::reference(&json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": name}}))
}

/// A View `v` of Llamas that wants one Module and has another in force, with its conditions.
pub(super) fn view_of_llamas(module: &str, active: Option<&str>, conditions: &[Value]) -> Value {
    let mut status = json!({"conditions": conditions});
    if let Some(name) = active {
        status["active"] = json!({"module": name, "digest": DIGEST, "epoch": 7, "since": CREATED});
        status["served"] = json!({
            "apiVersion": "farm.example.com/v1alpha", "kind": "Llama", "plural": "llamas", "singular": "llama",
            "listKind": "LlamaList", "verbs": ["get"], "schema": {"type": "object"}, "reads": ["spec"],
            "backing": {"apiVersion": "store.farm.example.com/v1", "kind": "LlamaRecord", "plural": "llamarecords",
                "namespaced": true},
        });
    }
    json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "View", "metadata": {"name": "v", "creationTimestamp": CREATED},
        "spec": {"module": module, "view": "llamas", "serve": {"aggregated": {}}, "access": "View"}, "status": status})
}

/// Objects as the commands read them.
pub(super) fn read<K: DeserializeOwned>(values: &[Value]) -> Vec<K> {
    values.iter().map(|value| serde_json::from_value(value.clone()).unwrap()).collect()
}
