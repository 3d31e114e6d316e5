//! The two sides, reached by the same client.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use anyhow::{Context, ensure};
use futures::StreamExt;
use http_body_util::BodyExt;
use kube::{Client, client::Body};
use pintle_simulator::{ApiServer, Options};
use serde_json::{Value, json};

use crate::{
    normal::Events,
    objects::{KINDS, crd},
};

/// How many lines of a difference are shown.
const LINES_MAX: usize = 40;

/// A request as it is sent.
pub(crate) struct Request {
    pub(crate) method: &'static str,
    pub(crate) uri: String,
    pub(crate) content_type: &'static str,
    /// The body. A text is sent as it is, for instance JSON that has a field twice.
    pub(crate) body: Value,
}

/// What came back, as it came.
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) body: Value,
    /// What the client is warned of.
    pub(crate) warnings: Vec<String>,
}

/// What came back, as far as it is compared.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    body: Value,
    /// What a refusal says, which is shown and not compared.
    pub(crate) words: String,
}

impl PartialEq for Answer {
    fn eq(&self, other: &Self) -> bool {
        self.code == other.code && self.body == other.body
    }
}

impl Answer {
    pub(crate) fn new(code: u16, body: Value, words: String) -> Self {
        Self { code, body, words }
    }

    /// In which lines they differ.
    pub(crate) fn difference(&self, simulated: &Self) -> String {
        let lines = |answer: &Self| -> Vec<String> {
            let text = serde_json::to_string_pretty(&answer.body).unwrap_or_default();
            text.lines().map(Into::into).collect()
        };
        let mut text = format!(
            "  real      {} {}\n  simulated {} {}\n",
            self.code, self.words, simulated.code, simulated.words
        );
        let (real, other) = (lines(self), lines(simulated));
        let (real, other) = (real.join("\n"), other.join("\n"));
        let difference =
            similar::TextDiff::from_lines(&real, &other).unified_diff().context_radius(4).to_string();
        text.extend(difference.split_inclusive('\n').take(LINES_MAX));
        text
    }
}

pub(crate) trait Backend {
    /// Sends a request that accepts this form of an answer.
    async fn exchange(&self, request: &Request, accept: &str) -> anyhow::Result<Reply>;

    async fn send(&self, request: &Request) -> anyhow::Result<(u16, Value)> {
        let Reply { code, body, .. } = self.exchange(request, accept(request)).await?;
        Ok((code, body))
    }
}

/// As the host asks: of what it applies to kinds without a status, the metadata alone.
fn accept(request: &Request) -> &'static str {
    let of_such_a_kind = ["/configmaps/", "/secrets/"].iter().any(|part| request.uri.contains(part));
    if request.content_type.contains("apply-patch") && of_such_a_kind {
        return "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    }
    "application/json"
}

async fn send(client: &Client, request: &Request) -> anyhow::Result<(u16, Value)> {
    let Reply { code, body, .. } = exchange(client, request, accept(request)).await?;
    Ok((code, body))
}

async fn exchange(client: &Client, request: &Request, accept: &str) -> anyhow::Result<Reply> {
    let body = match &request.body {
        Value::Null => Vec::new(),
        Value::String(text) => text.clone().into_bytes(),
        body => body.to_string().into_bytes(),
    };
    let made = http::Request::builder()
        .method(request.method)
        .uri(&request.uri)
        .header("content-type", request.content_type)
        .header("accept", accept)
        .header("user-agent", "conformance/1")
        .body(Body::from(body))?;
    let response = client.send(made).await.with_context(|| format!("{} {}", request.method, request.uri))?;
    let code = response.status().as_u16();
    let warnings = response.headers().get_all("warning").into_iter();
    let warnings = warnings.filter_map(|value| Some(value.to_str().ok()?.to_owned())).collect();
    let bytes = response.into_body().collect().await?.to_bytes();
    let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into());
    Ok(Reply { code, body, warnings })
}

/// Deletes what holds on to node ports.
async fn clean(client: &Client, namespace: &str) -> anyhow::Result<()> {
    for name in crate::generate::NAMES {
        let request = Request {
            method: "DELETE",
            uri: format!("/api/v1/namespaces/{namespace}/services/{name}"),
            content_type: "application/json",
            body: Value::Null,
        };
        send(client, &request).await?;
    }
    Ok(())
}

fn post(uri: &str, body: Value) -> Request {
    Request { method: "POST", uri: uri.into(), content_type: "application/json", body }
}

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

pub(crate) struct Simulated {
    server: ApiServer,
    client: Client,
    began: u64,
}

impl Simulated {
    pub(crate) async fn new(name: &str) -> anyhow::Result<Self> {
        let server = ApiServer::new(Options::default());
        let client = Client::new(server.service("conformance"), "default");
        for request in [post(CRDS, crd()), post("/api/v1/namespaces", namespace(name))] {
            let (code, body) = send(&client, &request).await?;
            ensure!(code == 201, "{body}");
        }
        let began = server.version();
        Ok(Self { server, client, began })
    }

    pub(crate) async fn clean(&self, namespace: &str) -> anyhow::Result<()> {
        clean(&self.client, namespace).await
    }

    pub(crate) async fn events(&self, namespace: &str) -> anyhow::Result<Events> {
        let mut events = Events::default();
        for kind in KINDS {
            let uri = format!(
                "{}?watch=true&resourceVersion={}&timeoutSeconds=1000",
                kind.path(namespace),
                self.began
            );
            let made = http::Request::get(&uri).body(Body::empty())?;
            let body = self.client.send(made).await?.into_body();
            // Whatever there is, is there at once.
            let mut body = std::pin::pin!(body);
            while let Some(Some(Ok(frame))) = futures::FutureExt::now_or_never(body.frame()) {
                for line in frame
                    .data_ref()
                    .map(|bytes| bytes.to_vec())
                    .unwrap_or_default()
                    .split(|byte| *byte == b'\n')
                {
                    if !line.is_empty() {
                        events.add(kind.kind, serde_json::from_slice(line)?);
                    }
                }
            }
        }
        ensure!(self.server.version() >= self.began, "versions go up");
        Ok(events)
    }
}

impl Backend for Simulated {
    async fn exchange(&self, request: &Request, accept: &str) -> anyhow::Result<Reply> {
        exchange(&self.client, request, accept).await
    }
}

pub(crate) struct Real {
    client: Client,
    events: Arc<Mutex<BTreeMap<String, Events>>>,
    watches: Mutex<Vec<tokio::task::JoinHandle<()>>>,
}

impl Drop for Real {
    fn drop(&mut self) {
        self.watches.get_mut().unwrap().iter().for_each(|watch| watch.abort());
    }
}

impl Real {
    pub(crate) async fn connect(kubeconfig: &Path) -> anyhow::Result<Self> {
        let file = kube::config::Kubeconfig::read_from(kubeconfig)?;
        let mut config = kube::Config::from_custom_kubeconfig(file, &Default::default()).await?;
        config.default_retry = false;
        let real =
            Self { client: Client::try_from(config)?, events: Arc::default(), watches: Mutex::default() };
        let (code, body) = send(&real.client, &post(CRDS, crd())).await?;
        ensure!(code == 201 || code == 409, "{body}");
        let kind = KINDS.iter().find(|kind| kind.is_custom()).context("there is a custom kind")?;
        for _ in 0..100 {
            let (code, _) = real.get(&kind.path("default")).await?;
            if code == 200 {
                return Ok(real);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        anyhow::bail!("the custom kind is not served")
    }

    pub(crate) async fn get(&self, uri: &str) -> anyhow::Result<(u16, Value)> {
        let request =
            Request { method: "GET", uri: uri.into(), content_type: "application/json", body: Value::Null };
        send(&self.client, &request).await
    }

    pub(crate) async fn make_namespace(&self, name: &str) -> anyhow::Result<()> {
        let (code, body) = send(&self.client, &post("/api/v1/namespaces", namespace(name))).await?;
        ensure!(code == 201, "{body}");
        Ok(())
    }

    pub(crate) async fn clean(&self, namespace: &str) -> anyhow::Result<()> {
        clean(&self.client, namespace).await
    }

    /// One watch a kind, for all sequences.
    pub(crate) async fn watch_everything(&self) -> anyhow::Result<()> {
        for kind in KINDS {
            let (_, list) = self.get(&format!("{}?limit=1", kind.all())).await?;
            let version =
                list["metadata"]["resourceVersion"].as_str().context("a list has a version")?.to_owned();
            let uri = format!("{}?watch=true&resourceVersion={version}&timeoutSeconds=3000", kind.all());
            let request = http::Request::get(&uri).body(Vec::new())?;
            let stream = self.client.request_events::<Value>(request).await?;
            let events = Arc::clone(&self.events);
            let watch = tokio::spawn(async move {
                let mut stream = std::pin::pin!(stream);
                while let Some(event) = stream.next().await {
                    let (name, object) = match event {
                        Ok(kube::core::WatchEvent::Added(object)) => ("ADDED", object),
                        Ok(kube::core::WatchEvent::Modified(object)) => ("MODIFIED", object),
                        Ok(kube::core::WatchEvent::Deleted(object)) => ("DELETED", object),
                        _ => continue,
                    };
                    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
                    let mut events = events.lock().unwrap();
                    events
                        .entry(namespace)
                        .or_default()
                        .add(kind.kind, json!({"type": name, "object": object}));
                }
            });
            self.watches.lock().unwrap().push(watch);
        }
        Ok(())
    }

    /// Waits until the watches have been quiet for two seconds.
    pub(crate) async fn drain(&self) {
        let count = || self.events.lock().unwrap().values().map(Events::count).sum::<usize>();
        let mut before = count();
        loop {
            tokio::time::sleep(Duration::from_secs(2)).await;
            let now = count();
            if now == before {
                return;
            }
            before = now;
        }
    }

    pub(crate) fn events(&self, namespace: &str) -> Events {
        self.events.lock().unwrap().get(namespace).cloned().unwrap_or_default()
    }
}

impl Backend for Real {
    async fn exchange(&self, request: &Request, accept: &str) -> anyhow::Result<Reply> {
        exchange(&self.client, request, accept).await
    }
}
