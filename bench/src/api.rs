//! The benchmark's own requests.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use futures::AsyncBufRead;
use http::{Method, Request, header};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
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
        Ok(Self::new(Client::try_from(config)?))
    }

    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    pub(crate) async fn list(&self, collection: &str) -> Result<Vec<Value>> {
        let mut reply: Value = self.client.request(Request::get(collection).body(Vec::new())?).await?;
        match reply.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => Ok(items),
            _ => anyhow::bail!("{collection} is no list"),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value> {
        Ok(self.client.request(Request::get(path).body(Vec::new())?).await?)
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

    /// Watches something as JSON that is not compressed.
    pub(crate) async fn watch(&self, path: &str) -> Result<impl AsyncBufRead + use<>> {
        let request = uncompressed(path).body(Vec::new())?;
        self.client.request_stream(request).await.with_context(|| path.to_owned())
    }

    /// The version of a collection.
    pub(crate) async fn version(&self, collection: &str) -> Result<String> {
        let list: Value = serde_json::from_slice(&self.read(&format!("{collection}?limit=1")).await?)?;
        let version = list["metadata"]["resourceVersion"].as_str();
        version.map(str::to_owned).with_context(|| format!("{collection} has no version"))
    }

    /// Whether an object is there.
    pub(crate) async fn exists(&self, path: &str) -> Result<bool> {
        match self.client.request_text(Request::get(path).body(Vec::new())?).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
            Err(error) => Err(error).with_context(|| path.to_owned()),
        }
    }

    /// A CPU profile of the API server for the next `seconds`, as a file for `go tool pprof`.
    pub(crate) async fn cpu_profile(&self, seconds: u32) -> Result<Vec<u8>> {
        let request = Request::get(format!("/debug/pprof/profile?seconds={seconds}"));
        let reply = self.client.send(request.body(kube::client::Body::empty())?).await?;
        ensure!(reply.status().is_success(), "the API server answers {} to /debug/pprof", reply.status());
        Ok(reply.into_body().collect_bytes().await?.to_vec())
    }

    pub(crate) async fn create(&self, collection: &str, object: &Value) -> Result<()> {
        self.send(Method::POST, collection, "application/json", object).await
    }

    pub(crate) async fn merge_patch(&self, path: &str, patch: &Value) -> Result<()> {
        self.send(Method::PATCH, path, "application/merge-patch+json", patch).await
    }

    /// Replaces an object by one that names its version.
    pub(crate) async fn update(&self, path: &str, object: &Value) -> Result<()> {
        self.send(Method::PUT, path, "application/json", object).await
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

/// The code with which the API server refused a request, if it did.
pub(crate) fn refused(error: &anyhow::Error) -> Option<u16> {
    match error.downcast_ref::<kube::Error>() {
        Some(kube::Error::Api(status)) => Some(status.code),
        _ => None,
    }
}

/// A request for JSON that is not compressed.
fn uncompressed(path: &str) -> http::request::Builder {
    Request::get(path).header(header::ACCEPT, "application/json").header(header::ACCEPT_ENCODING, "identity")
}
