//! The benchmark's own requests.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context, Result, ensure};
use futures::AsyncBufRead;
use http::{Method, Request, header};
use kube::{
    Client, Config,
    api::{ApiResource, DynamicObject, GroupVersionKind},
    config::{KubeConfigOptions, Kubeconfig},
};
use pintle_testbed::{Look, asynchronous::eventually};
use serde_json::{Value, json};

/// The namespace of the roots. Every contestant has its own control plane, so one name is enough.
pub(crate) const NAMESPACE: &str = "bench";

/// The collections of the children: ConfigMap, Deployment, Service, Ingress, in the order of the guest.
pub(crate) const CHILDREN: [&str; 4] = [
    "/api/v1/namespaces/bench/configmaps",
    "/apis/apps/v1/namespaces/bench/deployments",
    "/api/v1/namespaces/bench/services",
    "/apis/networking.k8s.io/v1/namespaces/bench/ingresses",
];

/// The collection of the roots.
pub(crate) const ROOTS: &str = "/apis/bench.pintle.dev/v1/namespaces/bench/benches";

/// A kind of which a contestant reads or writes objects.
pub(crate) struct Kind {
    pub(crate) collection: &'static str,
    group: &'static str,
    kind: &'static str,
}

/// The kind of the roots, and those of the children.
pub(crate) static KINDS: [Kind; 5] = [
    Kind { collection: ROOTS, group: "bench.pintle.dev", kind: "Bench" },
    Kind { collection: CHILDREN[0], group: "", kind: "ConfigMap" },
    Kind { collection: CHILDREN[1], group: "apps", kind: "Deployment" },
    Kind { collection: CHILDREN[2], group: "", kind: "Service" },
    Kind { collection: CHILDREN[3], group: "networking.k8s.io", kind: "Ingress" },
];

impl Kind {
    pub(crate) fn objects(&self, client: Client) -> kube::Api<DynamicObject> {
        let kind = GroupVersionKind::gvk(self.group, "v1", self.kind);
        kube::Api::namespaced_with(client, NAMESPACE, &ApiResource::from_gvk(&kind))
    }
}

/// A client of the API server for the benchmark's loader.
#[derive(Clone)]
pub(crate) struct Api {
    client: Client,
}

impl Api {
    /// Connects with a client like the host's (host/kubernetes/src/connect.rs): the same crate, the same TLS, no retries.
    pub(crate) async fn connect(kubeconfig: &Path) -> Result<Self> {
        let file = Kubeconfig::read_from(kubeconfig)?;
        let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
        config.default_retry = false;
        Ok(Self { client: Client::try_from(config)? })
    }

    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// The objects of a collection, by name.
    pub(crate) async fn list(&self, collection: &str) -> Result<BTreeMap<String, Value>> {
        let mut list: Value = serde_json::from_slice(&self.read(collection).await?)?;
        let items: Vec<Value> = serde_json::from_value(list["items"].take())?;
        let name = |item: &Value| item["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        Ok(items.into_iter().map(|item| (name(&item), item)).collect())
    }

    /// Reads something as JSON that is not compressed, and returns it as it came.
    pub(crate) async fn read(&self, path: &str) -> Result<Vec<u8>> {
        let request = uncompressed(path).body(kube::client::Body::empty())?;
        let reply = self.client.send(request).await.with_context(|| path.to_owned())?;
        let status = reply.status();
        let body = reply.into_body().collect_bytes().await?.to_vec();
        ensure!(status.is_success(), "{path} is answered with {status}: {}", String::from_utf8_lossy(&body));
        Ok(body)
    }

    /// Waits until something can be read.
    pub(crate) async fn wait(&self, path: &str) -> Result<()> {
        eventually(format!("{path} is there"), async || Ok(Look::of(self.read(path).await.map(drop)))).await
    }

    /// Watches something from now on, as JSON that is not compressed.
    pub(crate) async fn watch(&self, collection: &str) -> Result<impl AsyncBufRead + use<>> {
        let list: Value = serde_json::from_slice(&self.read(&format!("{collection}?limit=1")).await?)?;
        let version = list["metadata"]["resourceVersion"].as_str();
        let version = version.with_context(|| format!("{collection} has no version"))?;
        let path = format!("{collection}?watch=1&resourceVersion={version}");
        let request = uncompressed(&path).body(Vec::new())?;
        self.client.request_stream(request).await.context(path)
    }

    pub(crate) async fn create(&self, collection: &str, object: &Value) -> Result<()> {
        self.send(Method::POST, collection, "application/json", object).await
    }

    pub(crate) async fn merge_patch(&self, path: &str, patch: &Value) -> Result<()> {
        self.send(Method::PATCH, path, "application/merge-patch+json", patch).await
    }

    /// Applies with force, as a controller does with its own objects.
    pub(crate) async fn apply(&self, path: &str, manager: &str, object: &Value) -> Result<()> {
        let path = format!("{path}?fieldManager={manager}&force=true");
        self.send(Method::PATCH, &path, "application/apply-patch+yaml", object).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<()> {
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"});
        self.send(Method::DELETE, path, "application/json", &options).await
    }

    /// Sends a request, and reads the reply only if it is an error.
    async fn send(&self, method: Method, path: &str, content: &str, body: &Value) -> Result<()> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::CONTENT_TYPE, content)
            .header(header::ACCEPT, "application/json")
            .body(body.to_string().into_bytes())?;
        self.client.request_text(request).await.with_context(|| path.to_owned()).map(|_| ())
    }
}

/// A request for JSON that is not compressed.
fn uncompressed(path: &str) -> http::request::Builder {
    Request::get(path).header(header::ACCEPT, "application/json").header(header::ACCEPT_ENCODING, "identity")
}
