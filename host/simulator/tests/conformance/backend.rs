//! The two sides, reached by the same client.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex},
};

use anyhow::{Context, bail, ensure};
use futures::{FutureExt, StreamExt};
use http_body_util::BodyExt;
use kube::{Client, client::Body};
use pintle_simulator::{ApiServer, Options};
use pintle_testbed::{Look, Patience, asynchronous::eventually};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::{
    normal::Events,
    objects::{KINDS, crd},
};

/// How many lines of a difference are shown.
const LINES_MAX: usize = 40;

/// The namespace of what is made last.
const LAST: &str = "last";

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

impl Reply {
    /// Reads it to its end.
    pub(crate) async fn read(response: http::Response<Body>) -> anyhow::Result<Self> {
        let (code, warnings) = (response.status().as_u16(), warnings(&response));
        let bytes = response.into_body().collect().await?.to_bytes();
        let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into());
        Ok(Self { code, body, warnings })
    }
}

/// What the client is warned of.
pub(crate) fn warnings(response: &http::Response<Body>) -> Vec<String> {
    let warnings = response.headers().get_all("warning").into_iter();
    warnings.filter_map(|value| Some(value.to_str().ok()?.to_owned())).collect()
}

/// The events of a watch.
pub(crate) struct EventStream {
    body: Body,
    /// What of the next event is there.
    bytes: Vec<u8>,
}

impl EventStream {
    pub(crate) fn new(body: Body) -> Self {
        Self { body, bytes: Vec::new() }
    }

    /// The next event; none when the watch has ended.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Option<Value>> {
        loop {
            if let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.bytes.drain(..=end).collect();
                return Ok(Some(serde_json::from_slice(&line)?));
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(frame) => self.bytes.extend(frame?.into_data().unwrap_or_default()),
            }
        }
    }

    /// The events up to the first of which this is so, or up to the end of the watch.
    pub(crate) async fn read_until(
        &mut self,
        what: &str,
        is_last: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<Vec<Value>> {
        let mut events = Vec::new();
        let reading = async {
            while let Some(event) = self.next().await? {
                events.push(event);
                if events.last().is_some_and(&is_last) {
                    break;
                }
            }
            anyhow::Ok(())
        };
        let patience = Patience::default();
        let read = tokio::time::timeout(patience.whole(), reading).await;
        match read {
            Ok(read) => read.map(|()| events),
            Err(_) => bail!(patience.lost(&what, &Value::from(events).to_string())),
        }
    }
}

pub(crate) trait Backend {
    /// What reaches it.
    fn client(&self) -> &Client;

    /// Sends a request that accepts this form of an answer, and returns when the answer begins.
    async fn begin(&self, request: &Request, accept: &str) -> anyhow::Result<http::Response<Body>> {
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
        self.client().send(made).await.with_context(|| format!("{} {}", request.method, request.uri))
    }

    async fn send(&self, request: &Request) -> anyhow::Result<(u16, Value)> {
        let Reply { code, body, .. } = Reply::read(self.begin(request, accept(request)).await?).await?;
        Ok((code, body))
    }

    /// Makes this.
    async fn make(&self, uri: &str, object: Value) -> anyhow::Result<()> {
        let (code, body) = self.send(&post(uri, object)).await?;
        ensure!(code == 201, "{body}");
        Ok(())
    }

    async fn make_namespace(&self, name: &str) -> anyhow::Result<()> {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.make("/api/v1/namespaces", namespace).await
    }

    /// Deletes what holds on to node ports.
    async fn clean(&self, namespace: &str) -> anyhow::Result<()> {
        for name in crate::generate::NAMES {
            let request = Request {
                method: "DELETE",
                uri: format!("/api/v1/namespaces/{namespace}/services/{name}"),
                content_type: "application/json",
                body: Value::Null,
            };
            self.send(&request).await?;
        }
        Ok(())
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

fn post(uri: &str, body: Value) -> Request {
    Request { method: "POST", uri: uri.into(), content_type: "application/json", body }
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
        let mut simulated = Self { server, client, began: 0 };
        simulated.make(CRDS, crd()).await?;
        simulated.make_namespace(name).await?;
        simulated.began = simulated.server.version();
        Ok(simulated)
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
            let mut stream = EventStream::new(self.client.send(made).await?.into_body());
            // Whatever there is, is there at once.
            while let Some(event) = stream.next().now_or_never().transpose()?.flatten() {
                events.add(kind.kind, event);
            }
        }
        ensure!(self.server.version() >= self.began, "versions go up");
        Ok(events)
    }
}

impl Backend for Simulated {
    fn client(&self) -> &Client {
        &self.client
    }
}

pub(crate) struct Real {
    client: Client,
    events: Arc<Mutex<BTreeMap<String, Events>>>,
    watches: Mutex<Vec<JoinHandle<()>>>,
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
        let (code, body) = real.send(&post(CRDS, crd())).await?;
        ensure!(code == 201 || code == 409, "{body}");
        let kind = KINDS.last().context("there is a custom kind")?;
        real.get_eventually(&kind.path("default")).await?;
        Ok(real)
    }

    /// Waits until there is something at an address.
    pub(crate) async fn get_eventually(&self, uri: &str) -> anyhow::Result<Value> {
        eventually(&format!("{uri} is served"), async || {
            let (code, body) = self.get(uri).await?;
            Ok(if code == 200 { Look::Reached(body) } else { Look::NotYet(format!("{code} {body}")) })
        })
        .await
    }

    pub(crate) async fn get(&self, uri: &str) -> anyhow::Result<(u16, Value)> {
        let request =
            Request { method: "GET", uri: uri.into(), content_type: "application/json", body: Value::Null };
        self.send(&request).await
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
                        other => {
                            println!("the watch of {}: {other:?}", kind.plural);
                            continue;
                        }
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

    /// Waits until the watches have sent every change so far, which is when each shows an object that is made now.
    pub(crate) async fn drain(&self) -> anyhow::Result<()> {
        self.make_namespace(LAST).await?;
        for kind in KINDS {
            self.make(&kind.path(LAST), kind.plain("last")).await?;
        }
        eventually("each watch shows what was made last", async || {
            let shown = self.events(LAST);
            let missing: Vec<&str> =
                KINDS.iter().filter(|kind| !shown.include(kind.kind)).map(|kind| kind.plural).collect();
            let has_ended = self.watches.lock().unwrap().iter().any(JoinHandle::is_finished);
            ensure!(missing.is_empty() || !has_ended, "a watch has ended; not shown: {missing:?}");
            Ok(Look::reached_if(missing.is_empty(), || format!("not shown: {missing:?}")))
        })
        .await
    }

    pub(crate) fn events(&self, namespace: &str) -> Events {
        self.events.lock().unwrap().get(namespace).cloned().unwrap_or_default()
    }
}

impl Backend for Real {
    fn client(&self) -> &Client {
        &self.client
    }
}
