//! `/healthz`, `/readyz` and `/metrics`.

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
};

use anyhow::Context;
use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::IntoResponse,
    routing::get,
};
use tokio::{net::TcpListener, task::JoinHandle};

use super::Shared;

/// The server, listening but not yet answering.
pub(crate) struct Server {
    listener: TcpListener,
    readiness: Readiness,
}

/// Where the answer to `/readyz` comes from, once there is an operator.
#[derive(Clone, Default)]
pub(crate) struct Readiness(Arc<OnceLock<Arc<Shared>>>);

impl Readiness {
    pub(crate) fn follow(&self, shared: &Arc<Shared>) {
        let _ = self.0.set(Arc::clone(shared));
    }

    /// Whether there is an operator that knows what there is and may write.
    pub(crate) fn works(&self) -> bool {
        self.check().is_ok() && self.0.get().is_some_and(|shared| shared.cluster.hold().term().is_some())
    }

    /// What to say of a host that is ready: to work, or to take over at once.
    fn check(&self) -> Result<String, String> {
        let Some(shared) = self.0.get() else { return Err("the operator is starting".into()) };
        let state = shared.state();
        if let Some(error) = &state.own.error {
            return Err(error.clone());
        }
        for (seen, what) in
            [(state.own.modules, "Modules"), (state.own.reconcilers, "Reconcilers"), (state.own.crds, "CRDs")]
        {
            if !seen {
                return Err(format!("the {what} are not listed yet"));
            }
        }
        drop(state);
        Ok(match (&shared.leader, shared.cluster.hold().term()) {
            (None, _) => "ok: this host works, without an election".into(),
            (Some(_), Some(_)) => "ok: this host leads".into(),
            (Some(leader), None) if leader.borrow().is_empty() => "ok: nobody leads yet".into(),
            (Some(leader), None) => {
                format!("ok: this host stands by, ready to take over; {} leads", *leader.borrow())
            }
        })
    }
}

impl Server {
    pub(crate) async fn bind(address: SocketAddr) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("cannot listen on {address} (--bind)"))?;
        Ok(Self { listener, readiness: Readiness::default() })
    }

    pub(crate) fn address(&self) -> String {
        self.listener.local_addr().map_or_else(|error| error.to_string(), |address| address.to_string())
    }

    pub(crate) fn readiness(&self) -> Readiness {
        self.readiness.clone()
    }

    pub(crate) fn start(self) -> JoinHandle<std::io::Result<()>> {
        let routes = Router::new()
            .route("/healthz", get(|| async { "ok" }))
            .route("/livez", get(|| async { "ok" }))
            .route("/readyz", get(readyz))
            .route("/metrics", get(metrics))
            .with_state(self.readiness);
        tokio::spawn(async move { axum::serve(self.listener, routes).await })
    }
}

async fn readyz(State(readiness): State<Readiness>) -> (StatusCode, String) {
    match readiness.check() {
        Ok(message) => (StatusCode::OK, message),
        Err(message) => (StatusCode::SERVICE_UNAVAILABLE, message),
    }
}

async fn metrics(State(readiness): State<Readiness>) -> impl IntoResponse {
    let text = readiness.0.get().map(|shared| shared.metrics_text()).unwrap_or_default();
    ([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text)
}
