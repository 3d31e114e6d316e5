//! Serves `/healthz`, `/readyz` and `/metrics` on a thread of their own, so that they can report that everything else hangs.

use std::{
    net::{SocketAddr, TcpListener},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
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
use pintle_runtime::{Spawner, clock};
use tokio::sync::oneshot;

use crate::state::Shared;

/// How long an answer that needs the lock waits for it. Probes wait for a second.
const LOCK_PATIENCE: Duration = Duration::from_millis(500);
/// How often it tries meanwhile.
const LOCK_POLL: Duration = Duration::from_millis(5);

/// How often the watchdog says that it gets on.
const LOOK: Duration = Duration::from_secs(1);
/// How long it may not. A guest may compute for 10 s, but not on these threads, and their own work takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

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
    #[error("the lock of what the host knows is held")]
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
    /// When the watchdog last got on, in milliseconds of the clock.
    seen: Arc<AtomicU64>,
    readiness: Readiness,
}

impl Health {
    fn new() -> Self {
        let health = Self { seen: Arc::default(), readiness: Readiness::default() };
        health.look();
        health
    }

    /// The watchdog. It is one of the host's tasks and takes the lock that all of them need, so it gets on only if they can.
    async fn watch(self) {
        loop {
            self.look();
            tokio::time::sleep(LOOK).await;
        }
    }

    fn look(&self) {
        if let Some(shared) = self.readiness.0.get() {
            drop(shared.state());
        }
        let now = u64::try_from(clock::monotonic().as_millis()).unwrap_or(u64::MAX);
        self.seen.store(now, Ordering::Relaxed);
    }

    /// For how long the watchdog has not got on.
    fn standstill(&self) -> Duration {
        clock::monotonic().saturating_sub(Duration::from_millis(self.seen.load(Ordering::Relaxed)))
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
    pub(crate) fn bind(address: SocketAddr) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(address)
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .with_context(|| format!("cannot listen on {address} (--bind)"))?;
        Ok(Self { listener, health: Health::new() })
    }

    pub(crate) fn address(&self) -> String {
        self.listener.local_addr().map_or_else(|error| error.to_string(), |address| address.to_string())
    }

    pub(crate) fn readiness(&self) -> Readiness {
        self.health.readiness.clone()
    }

    /// Answers requests from now on, and starts the watchdog. The returned future ends when the server ends.
    ///
    /// # Errors
    /// When its thread cannot be started.
    pub(crate) fn start(self, spawner: &Spawner) -> anyhow::Result<oneshot::Receiver<std::io::Result<()>>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (ended, end) = oneshot::channel();
        spawner.spawn(self.health.clone().watch());
        std::thread::Builder::new().name("pintle-health".into()).spawn(move || {
            let served = runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(self.listener)?;
                axum::serve(listener, self.health.routes()).await
            });
            // Nothing has to wait for it.
            let _ = ended.send(served);
        })?;
        Ok(end)
    }
}

async fn healthz(State(health): State<Health>) -> (StatusCode, String) {
    let standstill = health.standstill();
    if standstill < PATIENCE {
        return (StatusCode::OK, "ok".into());
    }
    let seconds = standstill.as_secs();
    let message = format!(
        "the host makes no progress for {seconds} s: all its threads are busy, or the lock of what it knows is held"
    );
    (StatusCode::SERVICE_UNAVAILABLE, message)
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
