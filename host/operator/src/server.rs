//! Serves `/healthz`, `/readyz` and `/metrics` on a thread of their own, so that they can report that everything else hangs.

use std::{
    net::{SocketAddr, TcpListener},
    sync::{Arc, OnceLock},
    time::Duration,
};

use anyhow::Context;
use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::IntoResponse,
    routing::get,
};
use pintle_runtime::{
    clock,
    heartbeat::{Heartbeats, Standstill},
};
use tokio::sync::oneshot;

use crate::state::Shared;

/// How long an answer that needs the lock waits for it. Probes wait for a second.
const LOCK_PATIENCE: Duration = Duration::from_millis(500);
/// How often it tries meanwhile.
const LOCK_POLL: Duration = Duration::from_millis(5);
/// How often the lock is checked, so that the result does not depend on how often a probe asks.
const LOCK_LOOK: Duration = Duration::from_secs(1);

/// The server, listening but not yet answering.
pub(crate) struct Server {
    listener: TcpListener,
    health: Health,
}

/// Where the answer to `/readyz` comes from, once there is an operator.
#[derive(Clone, Default)]
pub struct Readiness(Arc<OnceLock<Arc<Shared>>>);

impl Readiness {
    pub(crate) fn follow(&self, shared: &Arc<Shared>) {
        let _ = self.0.set(Arc::clone(shared));
    }

    /// Whether there is an operator whose caches are complete and that may write.
    pub fn works(&self) -> bool {
        self.check().is_ok() && self.0.get().is_some_and(|shared| shared.cluster.hold().term().is_some())
    }

    /// The operator, if its lock is free now.
    async fn with_lock(&self) -> Result<Option<&Arc<Shared>>, Unready> {
        let Some(shared) = self.0.get() else { return Ok(None) };
        let free = async {
            while shared.is_locked() {
                tokio::time::sleep(LOCK_POLL).await;
            }
        };
        let waited = tokio::time::timeout(LOCK_PATIENCE, free).await;
        waited.map_err(|_| Unready::Locked)?;
        Ok(Some(shared))
    }

    /// The answer for a host that is ready to work, or ready to take over at once.
    fn check(&self) -> Result<String, Unready> {
        let Some(shared) = self.0.get() else { return Err(Unready::Starting) };
        let state = shared.state();
        if let Some(error) = state.own.error() {
            return Err(Unready::Unwatched(error.into()));
        }
        if let Some(what) = state.own.unlisted() {
            return Err(Unready::Unlisted(what));
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

/// Why the host is not ready, or cannot say so.
#[derive(Debug, thiserror::Error)]
enum Unready {
    #[error("the operator is starting")]
    Starting,
    #[error("the lock of what the host knows is held; /healthz says for how long")]
    Locked,
    /// The host's own objects cannot be watched.
    #[error("{0}")]
    Unwatched(String),
    #[error("the {0} are not listed yet")]
    Unlisted(&'static str),
}

/// Whether the host makes progress.
#[derive(Clone)]
pub(crate) struct Health {
    beats: Heartbeats,
    readiness: Readiness,
}

impl Health {
    /// The answer at this time.
    ///
    /// # Errors
    /// The part that makes no progress.
    pub(crate) fn check(&self, now: Duration) -> Result<(), Standstill> {
        self.look_at_lock(now)?;
        self.beats.check(now)
    }

    fn look_at_lock(&self, now: Duration) -> Result<(), Standstill> {
        match self.readiness.0.get() {
            Some(shared) => shared.lock.check(shared.is_locked(), now),
            None => Ok(()),
        }
    }

    fn routes(&self) -> Router {
        Router::new()
            .route("/healthz", get(healthz))
            .route("/livez", get(healthz))
            .route("/readyz", get(readyz))
            .route("/metrics", get(metrics))
            .with_state(self.clone())
    }
}

impl Server {
    pub(crate) fn bind(address: SocketAddr, beats: Heartbeats) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(address)
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .with_context(|| format!("cannot listen on {address} (--bind)"))?;
        Ok(Self { listener, health: Health { beats, readiness: Readiness::default() } })
    }

    pub(crate) fn address(&self) -> String {
        self.listener.local_addr().map_or_else(|error| error.to_string(), |address| address.to_string())
    }

    pub(crate) fn readiness(&self) -> Readiness {
        self.health.readiness.clone()
    }

    /// Answers requests from now on. The returned future ends when the server ends.
    ///
    /// # Errors
    /// When its thread cannot be started.
    pub(crate) fn start(self) -> anyhow::Result<oneshot::Receiver<std::io::Result<()>>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (ended, end) = oneshot::channel();
        std::thread::Builder::new().name("pintle-health".into()).spawn(move || {
            let served = runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(self.listener)?;
                let look = async {
                    loop {
                        tokio::time::sleep(LOCK_LOOK).await;
                        let _ = self.health.look_at_lock(clock::monotonic());
                    }
                };
                tokio::select! {
                    served = axum::serve(listener, self.health.routes()) => served,
                    () = look => Ok(()),
                }
            });
            // Nothing has to wait for it.
            let _ = ended.send(served);
        })?;
        Ok(end)
    }
}

async fn healthz(State(health): State<Health>) -> (StatusCode, String) {
    match health.check(clock::monotonic()) {
        Ok(()) => (StatusCode::OK, "ok".into()),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
    }
}

async fn readyz(State(health): State<Health>) -> (StatusCode, String) {
    let ready = match health.readiness.with_lock().await {
        Ok(_) => health.readiness.check(),
        Err(error) => Err(error),
    };
    match ready {
        Ok(message) => (StatusCode::OK, message),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
    }
}

async fn metrics(State(health): State<Health>) -> Result<impl IntoResponse, (StatusCode, String)> {
    let unavailable = |error: Unready| (StatusCode::SERVICE_UNAVAILABLE, error.to_string());
    let shared = health.readiness.with_lock().await.map_err(unavailable)?;
    let text = shared.map(|shared| shared.metrics_text()).unwrap_or_default();
    Ok(([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text))
}

#[cfg(test)]
pub(crate) mod tests;
