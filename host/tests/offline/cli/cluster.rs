//! An API server that serves a few objects, to whoever reads.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::TcpListener,
};

use serde_json::{Value, json};

/// What is served, by its path.
#[derive(Default)]
pub(crate) struct Served(BTreeMap<String, Value>);

impl Served {
    /// A cluster in which Pintle is installed.
    pub(crate) fn with_pintle() -> Self {
        Self::default().group("pintle.dev/v1alpha1", &[("modules", "Module"), ("reconcilers", "Reconciler")])
    }

    /// And these kinds, by their plurals.
    pub(crate) fn group(self, version: &str, kinds: &[(&str, &str)]) -> Self {
        let resources: Vec<Value> = kinds
            .iter()
            .map(|(plural, kind)| {
                json!({"name": plural, "singularName": "", "namespaced": true, "kind": kind, "verbs": ["get", "list"]})
            })
            .collect();
        let root = if version.contains('/') { "/apis" } else { "/api" };
        let list = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources});
        self.at(format!("{root}/{version}"), list)
    }

    /// And a Module of which the host has found out what it declares, if there is something.
    pub(crate) fn module(self, name: &str, manifest: Option<&str>) -> Self {
        let status = manifest.map(|text| json!({"manifest": serde_json::from_str::<Value>(text).unwrap()}));
        let module = json!({
            "apiVersion": "pintle.dev/v1alpha1", "kind": "Module", "metadata": {"name": name},
            "spec": {"digest": "sha256:0", "source": {}}, "status": status,
        });
        self.at(format!("/apis/pintle.dev/v1alpha1/modules/{name}"), module)
    }

    /// And this.
    pub(crate) fn at(mut self, path: impl Into<String>, value: Value) -> Self {
        self.0.insert(path.into(), value);
        self
    }

    /// Serves it as long as the test runs; the kubeconfig for it.
    pub(crate) fn start(self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let Ok(mut connection) = connection else { continue };
                let mut request = [0; 4096];
                let read = connection.read(&mut request).unwrap_or(0);
                let request = String::from_utf8_lossy(&request[..read]).into_owned();
                let path = request.split(' ').nth(1).unwrap_or_default();
                let path = path.split('?').next().unwrap_or_default();
                let missing = json!({
                    "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "message": "not found", "code": 404,
                });
                let (status, body) = match self.0.get(path) {
                    Some(found) => ("200 OK", found),
                    None => ("404 Not Found", &missing),
                };
                let body = body.to_string();
                let head = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}",
                    body.len()
                );
                let _ = write!(connection, "{head}\r\nConnection: close\r\n\r\n{body}");
            }
        });
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "a",
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}], "users": [{"name": "a", "user": {}}],
            "clusters": [{"name": "a", "cluster": {"server": format!("http://{address}")}}],
        });
        config.to_string()
    }
}
