//! The server: TLS connections with HTTP/1.1 or HTTP/2, and for each request the [`Gateway`].

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use http::Request;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto, graceful::GracefulShutdown},
};
use rustls::pki_types::CertificateDer;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tracing::{debug, info, warn};

use crate::{answer::Gateway, reviews::Reviews};

/// How long a client may take for the handshake, and for the head of a request.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a connection may be silent before it is asked whether it still lives, and how long it may take to say so.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);

/// How long requests in flight have when the gateway stops. Watches are ended by then.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// How many connections may be open: the API server keeps a few, and direct callers have one each.
const CONNECTIONS: usize = 4_096;

/// How many requests a client may have in flight on one HTTP/2 connection: as many as the API server sends over one.
const STREAMS: u32 = 1_000;

/// A listener that is bound.
pub struct Server {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Server {
    /// Binds an address.
    ///
    /// # Errors
    /// When it is taken, or not one of this machine.
    pub async fn bind(address: SocketAddr, tls: Arc<rustls::ServerConfig>) -> std::io::Result<Self> {
        Ok(Self { listener: TcpListener::bind(address).await?, acceptor: TlsAcceptor::from(tls) })
    }

    /// The address that it is bound to.
    ///
    /// # Errors
    /// When the operating system does not say.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until this ends. Connections are then told to go away, and what is in flight is finished.
    pub async fn serve<R: Reviews + 'static>(self, gateway: Arc<Gateway<R>>, stop: impl Future<Output = ()>) {
        let graceful = GracefulShutdown::new();
        let places = Arc::new(tokio::sync::Semaphore::new(CONNECTIONS));
        let builder = Arc::new(builder());
        tokio::pin!(stop);
        loop {
            let accepted = tokio::select! {
                () = &mut stop => break,
                accepted = self.listener.accept() => accepted,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    warn!(%error, "A connection cannot be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            // Beyond the limit a connection is closed at once.
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
            let (acceptor, gateway, builder) =
                (self.acceptor.clone(), Arc::clone(&gateway), Arc::clone(&builder));
            let watcher = graceful.watcher();
            tokio::spawn(async move {
                connection(stream, acceptor, gateway, &builder, watcher).await;
                drop(place);
            });
        }
        if tokio::time::timeout(STOP_TIMEOUT, graceful.shutdown()).await.is_err() {
            info!("Some requests were not finished when the gateway stopped");
        }
    }
}

fn builder() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIMEOUT)
        .max_concurrent_streams(STREAMS);
    builder
}

async fn connection<R: Reviews + 'static>(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    gateway: Arc<Gateway<R>>,
    builder: &auto::Builder<TokioExecutor>,
    watcher: hyper_util::server::graceful::Watcher,
) {
    let _ = stream.set_nodelay(true);
    let stream = match tokio::time::timeout(PATIENCE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return debug!(%error, "A handshake failed"),
        Err(_) => return debug!("A handshake took too long"),
    };
    let certificates: Arc<[CertificateDer<'static>]> = stream
        .get_ref()
        .1
        .peer_certificates()
        .unwrap_or_default()
        .iter()
        .map(|one| one.clone().into_owned())
        .collect();
    let service = service_fn(move |request: Request<Incoming>| {
        let (gateway, certificates) = (Arc::clone(&gateway), Arc::clone(&certificates));
        async move { Ok::<_, Infallible>(gateway.answer(&certificates, request).await) }
    });
    let served = watcher.watch(builder.serve_connection(TokioIo::new(stream), service).into_owned());
    if let Err(error) = served.await {
        debug!(error, "A connection ended");
    }
}
