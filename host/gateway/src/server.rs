//! The server: TLS connections of the front proxy with HTTP/1.1 or HTTP/2, and for each request the [`Gateway`].

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use http::Request;
use hyper::body::Incoming;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tower::service_fn;
use tracing::{debug, info, warn};

use crate::{answer::Gateway, reviews::Reviews};

/// How long a client may take for the handshake, and for the head of a request of HTTP/1.1.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many handshakes may be under way. An honest one takes milliseconds, and the API server keeps its connections.
const HANDSHAKES: usize = 1_024;

/// How long a connection may be silent before it is asked whether it still lives, and how long it may take to say so.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);

/// How long requests in flight have when the gateway stops. Watches are ended by then.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// How many requests may be in flight on one HTTP/2 connection: as many as the API server sends over one.
const STREAMS: u32 = 1_000;

/// How much of a body arrives before it is read, in bytes: as much as HTTP/2 lets through by default. The window of a connection is as large as
/// those of its streams, so that bodies that wait never hold up those that are read.
const STREAM_WINDOW: u32 = 64 << 10;

/// The largest head of a request of HTTP/1.1, in bytes.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// A listener that is bound.
pub struct Server {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

/// What connections are served with.
struct Serving<R> {
    gateway: Arc<Gateway<R>>,
    acceptor: TlsAcceptor,
    handshakes: Semaphore,
    builder: auto::Builder<TokioExecutor>,
}

impl Server {
    /// Binds an address.
    ///
    /// # Errors
    /// When it is taken, or not one of this machine.
    pub async fn bind(address: SocketAddr, tls: Arc<rustls::ServerConfig>) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        Ok(Self { listener, acceptor: TlsAcceptor::from(tls) })
    }

    /// The address that it is bound to.
    ///
    /// # Errors
    /// When the operating system does not say.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until this ends, and returns what it ended with. Connections are then told to go away, and what is in flight is finished.
    pub async fn serve<R: Reviews + 'static, T>(
        self,
        gateway: Arc<Gateway<R>>,
        stop: impl Future<Output = T>,
    ) -> T {
        let handshakes = Semaphore::new(HANDSHAKES);
        let serving = Arc::new(Serving { gateway, acceptor: self.acceptor, handshakes, builder: builder() });
        // Each connection has a receiver until it has ended.
        let (stopping, stops) = watch::channel(());
        tokio::pin!(stop);
        let stopped = loop {
            let accepted = tokio::select! {
                stopped = &mut stop => break stopped,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    let (serving, stops) = (Arc::clone(&serving), stops.clone());
                    tokio::spawn(async move { serving.connection(stream, stops).await });
                }
                Err(error) => {
                    warn!(%error, "A connection cannot be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        };
        drop(stops);
        stopping.send_replace(());
        if tokio::time::timeout(STOP_TIMEOUT, stopping.closed()).await.is_err() {
            info!("Some requests were not finished when the gateway stopped");
        }
        stopped
    }
}

impl<R: Reviews + 'static> Serving<R> {
    /// Answers the requests of a connection until it ends.
    async fn connection(&self, stream: TcpStream, mut stops: watch::Receiver<()>) {
        let _ = stream.set_nodelay(true);
        let Some(stream) = self.handshake(stream).await else { return };
        let gateway = Arc::clone(&self.gateway);
        let service = service_fn(move |request: Request<Incoming>| {
            let gateway = Arc::clone(&gateway);
            async move { Ok::<_, Infallible>(gateway.answer(request).await) }
        });
        let service = TowerToHyperService::new(service);
        let mut served = std::pin::pin!(self.builder.serve_connection(TokioIo::new(stream), service));
        let ended = tokio::select! {
            ended = served.as_mut() => Some(ended),
            _ = stops.changed() => None,
        };
        let ended = match ended {
            Some(ended) => ended,
            None => {
                served.as_mut().graceful_shutdown();
                served.await
            }
        };
        if let Err(error) = ended {
            debug!(error, "A connection ended");
        }
    }

    async fn handshake(&self, stream: TcpStream) -> Option<TlsStream<TcpStream>> {
        let Ok(_place) = self.handshakes.try_acquire() else {
            self.gateway.metrics().connection_refused();
            return None;
        };
        match tokio::time::timeout(PATIENCE, self.acceptor.accept(stream)).await {
            Ok(Ok(stream)) => return Some(stream),
            Ok(Err(error)) => debug!(%error, "A handshake failed"),
            Err(_) => debug!("A handshake took too long"),
        }
        None
    }
}

fn builder() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(PATIENCE).max_buf_size(HEAD_BYTES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIMEOUT)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(STREAMS.saturating_mul(STREAM_WINDOW))
        .max_concurrent_streams(STREAMS);
    builder
}

#[cfg(test)]
mod tests;
