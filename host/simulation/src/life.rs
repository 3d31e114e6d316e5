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
use pintle_runtime::clock;
use pintle_simulator::{ApiServer, Lost, Service};

use crate::seam::{self, Body, Seam};

/// Control over a process from outside.
#[derive(Debug)]
pub(crate) struct Life {
    ended: AtomicBool,
    cut_off: AtomicBool,
    pub(crate) clock: Arc<clock::Virtual>,
}

impl Life {
    /// A process with this clock, that has just begun.
    pub(crate) fn new(clock: Arc<clock::Virtual>) -> Self {
        Self { ended: AtomicBool::new(false), cut_off: AtomicBool::new(false), clock }
    }

    /// From now on, its requests are neither answered nor carried out.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
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

/// A client of the API server for a process, through a seam if there is one.
pub(crate) fn connected(
    server: &ApiServer,
    name: &str,
    life: &Arc<Life>,
    seam: Option<Arc<dyn Seam>>,
) -> kube::Client {
    let transport = Transport { inner: server.service(name), life: Arc::clone(life), seam };
    kube::Client::new(transport, "default")
}
