//! A way to the API server on which things go wrong: it sees every request of a host in the order in which they come, lets those that
//! a test names through, and keeps their replies for itself.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use anyhow::Context;
use http::{Method, Request, Response, header};
use http_body_util::BodyExt;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use kube::{Client, client::Body};
use pintle_kubernetes::connect::Connect;
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
};

/// A running proxy. Dropping it ends it, and every connection through it.
pub(crate) struct Proxy {
    shared: Arc<Shared>,
    server: String,
    task: JoinHandle<()>,
}

/// What becomes of a reply that is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The connection is closed instead.
    Closed,
    /// Nothing comes, and the connection stays.
    Silent,
}

/// A request that changes something.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Its path, without the query.
    pub(crate) path: String,
    pub(crate) body: Value,
    /// The code of the API server's reply, once there is one.
    pub(crate) code: Option<u16>,
    /// How its reply was lost, if it was.
    pub(crate) lost: Option<Lost>,
}

impl Asked {
    pub(crate) fn is_accepted(&self) -> bool {
        self.code.is_some_and(|code| (200..300).contains(&code))
    }
}

/// A request that changes nothing.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) accept: String,
}

struct Shared {
    api: Client,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    asked: Vec<Asked>,
    reads: Vec<Read>,
    /// Those of the reads, by their place, whose reply still goes on.
    open: BTreeSet<usize>,
    /// The ends of paths whose next accepted write is not replied to.
    loses: Vec<(String, Lost)>,
}

impl Proxy {
    /// A proxy before the API server of this kubeconfig, and a kubeconfig that leads to it.
    pub(crate) async fn start(kubeconfig: &Path, through: &Path) -> anyhow::Result<Self> {
        let connect = Connect { kubeconfig: Some(kubeconfig.to_owned()), context: None };
        let shared = Arc::new(Shared { api: connect.client().await?, state: Mutex::default() });
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let server = format!("http://{}", listener.local_addr()?);
        let task = tokio::spawn(serve(listener, Arc::clone(&shared)));
        let mut config: Value =
            serde_json::from_str(&fs::read_to_string(kubeconfig)?).context("the testbed writes JSON")?;
        for cluster in config["clusters"].as_array_mut().into_iter().flatten() {
            cluster["cluster"] = json!({"server": server});
        }
        fs::write(through, config.to_string())?;
        Ok(Self { shared, server, task })
    }

    /// Lets the next write to a path that ends like this through, and loses the reply when it is accepted.
    pub(crate) fn lose(&self, path: &str, how: Lost) {
        self.state().loses.push((path.to_owned(), how));
    }

    /// The writes so far, in the order in which they came.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.state().asked.clone()
    }

    /// The reads so far, watches included.
    pub(crate) fn reads(&self) -> Vec<Read> {
        self.state().reads.clone()
    }

    /// The reads whose reply still goes on: watches, as long as the host keeps them.
    pub(crate) fn open(&self) -> Vec<Read> {
        let state = self.state();
        state.open.iter().filter_map(|number| state.reads.get(*number)).cloned().collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Display for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.server)
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    // Its connections end with it.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(follow(stream, Arc::clone(&shared)));
        while connections.try_join_next().is_some() {}
    }
}

async fn follow(stream: TcpStream, shared: Arc<Shared>) {
    let service = service_fn(move |request| exchange(Arc::clone(&shared), request));
    // A reply that is lost on purpose ends the connection with an error, as does a host that ends.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// A read whose reply goes on: until it has ended, or nobody takes it any more.
struct Open {
    shared: Arc<Shared>,
    number: usize,
}

impl Open {
    fn new(shared: &Arc<Shared>, read: Read) -> Self {
        let mut state = shared.state();
        let number = state.reads.len();
        state.reads.push(read);
        state.open.insert(number);
        Self { shared: Arc::clone(shared), number }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.shared.state().open.remove(&self.number);
    }
}

async fn exchange(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> anyhow::Result<Response<axum::body::Body>> {
    let (mut parts, body) = request.into_parts();
    // Those of the way to the API server are another connection's.
    parts.headers.remove(header::HOST);
    parts.headers.remove(header::CONNECTION);
    if parts.method == Method::GET {
        let accept = parts.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
        let read = Read {
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            accept: accept.unwrap_or_default().to_owned(),
        };
        let open = Open::new(&shared, read);
        let response = shared.api.send(Request::from_parts(parts, Body::empty())).await?;
        return Ok(response.map(|body| {
            axum::body::Body::new(body.map_frame(move |frame| {
                let _ = &open;
                frame
            }))
        }));
    }
    let bytes = body.collect().await?.to_bytes().to_vec();
    let path = parts.uri.path().to_owned();
    let number = {
        let body = serde_json::from_slice(&bytes).unwrap_or_default();
        let mut state = shared.state();
        state.asked.push(Asked { path: path.clone(), body, code: None, lost: None });
        state.asked.len() - 1
    };
    let response = shared.api.send(Request::from_parts(parts, Body::from(bytes))).await?;
    let lost = {
        let mut state = shared.state();
        let rule = state.loses.iter().position(|(end, _)| path.ends_with(end.as_str()));
        let rule = rule.filter(|_| response.status().is_success());
        let lost = rule.map(|rule| state.loses.remove(rule).1);
        if let Some(asked) = state.asked.get_mut(number) {
            (asked.code, asked.lost) = (Some(response.status().as_u16()), lost);
        }
        lost
    };
    match lost {
        None => Ok(response.map(axum::body::Body::new)),
        Some(Lost::Closed) => anyhow::bail!("the reply is lost"),
        Some(Lost::Silent) => std::future::pending().await,
    }
}
