//! Connections: TCP, with TLS or without, HTTP/1.1 or HTTP/2, and for each request the router.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto, graceful::GracefulShutdown},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc},
};
use tokio_rustls::TlsAcceptor;
use tracing::{debug, info, warn};

/// How long a client may take for the handshake, and for the head of a request.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a connection may be silent before it is asked whether it still lives, and how long it may take to say so.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);

/// How long requests in flight have when the server stops. Streams are ended by then.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// How many connections may be open.
const CONNECTIONS: usize = 1_024;

/// The largest head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// How many requests a client may have in flight on one HTTP/2 connection.
const STREAMS: u32 = 128;

/// Binds loopback, and nothing else: 127.0.0.1, and ::1 where the machine has it. Port 0 is any port that is free on both.
///
/// # Errors
/// When the port is taken.
pub async fn bind_loopback(port: u16) -> std::io::Result<Vec<TcpListener>> {
    let first = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], port))).await?;
    let port = first.local_addr()?.port();
    match TcpListener::bind(SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], port))).await {
        Ok(second) => Ok(vec![first, second]),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => Err(error),
        // Not every machine has IPv6.
        Err(_) => Ok(vec![first]),
    }
}

/// Serves until this ends. Connections are then told to go away, and what is in flight is finished.
pub async fn serve(
    listeners: Vec<TcpListener>,
    tls: Option<TlsAcceptor>,
    router: Router,
    stop: impl Future<Output = ()>,
) {
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let builder = Arc::new(builder());
    let (accepted, mut streams) = mpsc::channel(16);
    let accepting: Vec<_> =
        listeners.into_iter().map(|listener| tokio::spawn(accept(listener, accepted.clone()))).collect();
    tokio::pin!(stop);
    loop {
        let stream = tokio::select! {
            () = &mut stop => break,
            stream = streams.recv() => stream,
        };
        let Some(stream) = stream else { break };
        // Beyond the limit a connection is closed at once.
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
        let (tls, router, builder) = (tls.clone(), router.clone(), Arc::clone(&builder));
        let watcher = graceful.watcher();
        tokio::spawn(async move {
            connection(stream, tls, router, &builder, watcher).await;
            drop(place);
        });
    }
    accepting.iter().for_each(tokio::task::JoinHandle::abort);
    if tokio::time::timeout(STOP_TIMEOUT, graceful.shutdown()).await.is_err() {
        info!("Some requests were not finished when the server stopped");
    }
}

async fn accept(listener: TcpListener, accepted: mpsc::Sender<TcpStream>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                if accepted.send(stream).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                warn!(%error, "A connection cannot be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
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
        .max_header_list_size(HEAD_BYTES_MAX as u32)
        .max_concurrent_streams(STREAMS);
    builder
}

async fn connection(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    router: Router,
    builder: &auto::Builder<TokioExecutor>,
    watcher: hyper_util::server::graceful::Watcher,
) {
    let _ = stream.set_nodelay(true);
    let service = TowerToHyperService::new(router);
    let served = match tls {
        None => watcher.watch(builder.serve_connection(TokioIo::new(stream), service).into_owned()).await,
        Some(tls) => match tokio::time::timeout(PATIENCE, tls.accept(stream)).await {
            Ok(Ok(stream)) => {
                watcher.watch(builder.serve_connection(TokioIo::new(stream), service).into_owned()).await
            }
            Ok(Err(error)) => return debug!(%error, "A handshake failed"),
            Err(_) => return debug!("A handshake took too long"),
        },
    };
    if let Err(error) = served {
        debug!(error, "A connection ended");
    }
}
