//! What a simulated process has of its own: it can end at any point, and be cut off from the API server.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use http_body_util::BodyExt;
use jiff::Timestamp;
use pintle_runtime::{Spawner, clock};
use pintle_simulator::{ApiServer, Lost, Service};

use crate::seam::{self, Body, Seam};

/// Control over a process from outside: its clock, its tasks, and its connection.
pub(crate) struct Life {
    /// The name of its connection.
    pub(crate) client: String,
    /// How many were started before it, and itself.
    pub(crate) number: u32,
    pub(crate) clock: Arc<clock::Virtual>,
    pub(crate) spawner: Spawner,
    ended: AtomicBool,
    cut_off: AtomicBool,
}

impl Life {
    /// A process that begins now.
    pub(crate) fn new(prefix: &str, number: u32, now: Timestamp, seed: u64) -> Self {
        let seed = seed.wrapping_mul(31).wrapping_add(number.into());
        let clock = Arc::new(clock::Virtual::new(now, seed));
        Self {
            client: format!("{prefix}{number}"),
            number,
            spawner: Spawner::simulated(Arc::clone(&clock)),
            clock,
            ended: AtomicBool::new(false),
            cut_off: AtomicBool::new(false),
        }
    }

    /// A client of the API server, through a seam if there is one.
    pub(crate) fn connect(self: &Arc<Self>, server: &ApiServer, seam: Option<Arc<dyn Seam>>) -> kube::Client {
        let transport = Transport { inner: server.service(&self.client), life: Arc::clone(self), seam };
        kube::Client::new(transport, "default")
    }

    /// From now on, its requests are neither answered nor carried out.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// Ends it where it is, as a crash does.
    pub(crate) fn kill(&self) {
        self.end();
        self.spawner.end_all();
    }

    /// Sets whether it is cut off from the API server.
    pub(crate) fn cut_off(&self, is: bool) {
        self.cut_off.store(is, Ordering::Relaxed);
    }
}

/// The connection of a process to the API server, for as long as it lives.
#[derive(Clone)]
struct Transport {
    inner: Service,
    life: Arc<Life>,
    seam: Option<Arc<dyn Seam>>,
}

impl<B> tower::Service<http::Request<B>> for Transport
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
{
    type Response = http::Response<Body>;
    type Error = Lost;
    type Future = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Lost>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Lost>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let (mut inner, life, seam) = (self.inner.clone(), Arc::clone(&self.life), self.seam.clone());
        Box::pin(async move {
            if life.ended.load(Ordering::Relaxed) {
                return std::future::pending().await;
            }
            if life.cut_off.load(Ordering::Relaxed) {
                return Err(Lost);
            }
            match seam {
                None => inner.call(request).await.map(|reply| reply.map(BodyExt::boxed_unsync)),
                Some(seam) => seam::through(seam, inner, request).await,
            }
        })
    }
}
