//! The worst answers on the API server in memory, with a host that is a process of its own and is held to 512 MiB: what acceptance does
//! on a real control plane, without one.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context, bail};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use kit::{modules, worst};
use pintle_api::{self as api, module_objects};
use pintle_kubernetes::Cluster;
use pintle_offline::documents;
use pintle_simulation::scenario::{Backend, Call, CallScope, Cascade, Mark, ModuleFile, Stop};
use pintle_simulator::{ApiServer, Options};
use pintle_wit::ObjectRef;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tower::Service as _;

/// A user who edits objects.
struct User {
    client: kube::Client,
    cluster: Cluster,
}

impl User {
    async fn send(
        &self,
        verb: &str,
        object: &ObjectRef,
        query: &str,
        content: &str,
        body: &Value,
    ) -> anyhow::Result<()> {
        let resource =
            self.cluster.discover(&object.kind()).await.map_err(|error| anyhow::anyhow!("{error}"))?;
        let resource = resource.with_context(|| format!("{object} is not served"))?;
        let namespace = object.namespace.as_deref().filter(|_| resource.namespaced);
        let path = format!("{}{query}", resource.path(namespace, Some(&object.name)));
        let request = http::Request::builder().method(verb).uri(path).header("content-type", content);
        let request = request.body(body.to_string().into_bytes())?;
        self.client.request::<Value>(request).await.map(drop).with_context(|| format!("{verb} {object}"))
    }
}

impl Backend for User {
    async fn apply(&self, object: &Value) -> anyhow::Result<()> {
        let reference = pintle_core::object::reference(object);
        self.send(
            "PATCH",
            &reference,
            "?fieldManager=kubectl&force=true",
            "application/apply-patch+yaml",
            object,
        )
        .await
    }
    async fn patch(&self, object: &ObjectRef, patch: &Value) -> anyhow::Result<()> {
        self.send("PATCH", object, "?fieldManager=kubectl-edit", "application/merge-patch+json", patch).await
    }
    async fn get(&self, object: &ObjectRef) -> anyhow::Result<Option<Value>> {
        let resource =
            self.cluster.discover(&object.kind()).await.map_err(|error| anyhow::anyhow!("{error}"))?;
        let Some(resource) = resource else { return Ok(None) };
        self.cluster.get(&resource, object).await.map_err(|error| anyhow::anyhow!("{object}: {error}"))
    }
    async fn delete(&self, _: &ObjectRef, _: Cascade) -> anyhow::Result<()> {
        bail!("nothing is deleted here")
    }
    async fn events(&self, _: &ObjectRef) -> anyhow::Result<Vec<String>> {
        Ok(Vec::new())
    }
    async fn stop_host(&self, _: Stop) -> anyhow::Result<()> {
        bail!("the test itself does")
    }
    async fn start_host(&self) -> anyhow::Result<()> {
        bail!("the test itself does")
    }
    async fn advance(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
    fn mark(&self) -> Mark {
        Mark(Duration::ZERO)
    }
    async fn calls_since(&self, _: Mark, _: CallScope<'_>) -> anyhow::Result<Option<Vec<Call>>> {
        Ok(None)
    }
    fn host_log(&self, _: &[&str], _: usize) -> Vec<String> {
        Vec::new()
    }
}

/// Serves the API server in memory to other processes.
async fn serve(server: ApiServer, listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        let service = server.service("host");
        tokio::spawn(async move {
            let answer = service_fn(move |request: http::Request<Incoming>| service.clone().call(request));
            // A connection that ends otherwise is the host's to notice.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

fn objects(path: &str) -> Vec<Value> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)).unwrap();
    documents::parse(path, &text).unwrap().into_iter().map(|document| document.value).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_of_512_mib_lives_through_the_worst_answers_and_serves_their_neighbour() {
    let server = ApiServer::new(Options::default());
    let client = kube::Client::new(server.service("user"), "default");
    let user = User { cluster: Cluster::new(client.clone()), client };
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": api::NAMESPACE}});
    for object in api::crds().iter().chain(&objects("guest-webserver/crd.yaml")).chain([&namespace]) {
        user.apply(object).await.unwrap();
    }
    let module = ModuleFile::of_guest("webserver");
    let bytes = modules::resolve(&module).unwrap();
    let pushed = module_objects("webserver-0.1.0", &bytes, &pintle_engine::Digest::of(&bytes).to_string());
    for object in pushed.iter().chain(&objects("deploy/samples/reconciler-webserver.yaml")) {
        user.apply(object).await.unwrap();
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve(server, listener));
    let folder = tempfile::tempdir().unwrap();
    let (kubeconfig, log) = (folder.path().join("kubeconfig"), folder.path().join("host.log"));
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": format!("http://{address}")}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}], "users": [{"name": "c", "user": {}}],
    });
    fs::write(&kubeconfig, config.to_string()).unwrap();
    worst::check(&user, &kubeconfig, &log, &["--leader-elect=false"])
        .await
        .unwrap_or_else(|error| panic!("{error:#}"));
}
