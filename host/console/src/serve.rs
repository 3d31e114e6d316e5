//! Connections: TCP, with TLS or without, and for each request the router.
//!
//! They speak HTTP/1.1, of which a browser needs no more: the stream of all its tabs is one connection.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use futures::future::select_all;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::{GracefulShutdown, Watcher},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use tracing::{debug, info, warn};

/// How many connections may be open. Those beyond it wait until one is closed.
const CONNECTIONS: usize = 1024;

/// How long a client may take for the handshake, and for the head of each request.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long requests in flight have when the server stops. Streams are ended by then.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// The largest head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 64 << 10;

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
    tokio::pin!(stop);
    loop {
        let accepted = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, accept(&listeners).await)
        };
        let (place, stream) = tokio::select! {
            () = &mut stop => break,
            accepted = accepted => accepted,
        };
        let served = connection(stream, tls.clone(), router.clone(), graceful.watcher());
        tokio::spawn(async move {
            served.await;
            drop(place);
        });
    }
    drop(listeners);
    if timeout(STOP_TIMEOUT, graceful.shutdown()).await.is_err() {
        info!("Some requests were not finished when the server stopped");
    }
}

/// The next connection of any of these listeners.
async fn accept(listeners: &[TcpListener]) -> TcpStream {
    loop {
        let (accepted, ..) = select_all(listeners.iter().map(|listener| Box::pin(listener.accept()))).await;
        match accepted {
            Ok((stream, _)) => return stream,
            Err(error) => {
                warn!(%error, "A connection cannot be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, tls: Option<TlsAcceptor>, router: Router, watcher: Watcher) {
    let _ = stream.set_nodelay(true);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(PATIENCE).max_buf_size(HEAD_BYTES_MAX);
    let service = TowerToHyperService::new(router);
    let served = match tls {
        None => watcher.watch(http.serve_connection(TokioIo::new(stream), service)).await,
        Some(tls) => match timeout(PATIENCE, tls.accept(stream)).await {
            Ok(Ok(stream)) => watcher.watch(http.serve_connection(TokioIo::new(stream), service)).await,
            Ok(Err(error)) => return debug!(%error, "A handshake failed"),
            Err(_) => return debug!("A handshake took too long"),
        },
    };
    if let Err(error) = served {
        debug!(%error, "A connection ended");
    }
}

#[cfg(test)]
mod tests {
    use std::future;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::fake;

    #[tokio::test(start_paused = true)]
    async fn who_is_silent_or_sends_half_a_head_is_waited_for_a_few_seconds() {
        let (client, _) = fake::upstream(fake::knows_ann);
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = crate::router(fake::app(fake::cluster(), client));
        // It ends with the test.
        tokio::spawn(serve(vec![listener], None, router, future::pending()));
        for head in ["", "GET /console/ HTT"] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(head.as_bytes()).await.unwrap();
            let mut answer = String::new();
            timeout(2 * PATIENCE, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
            assert_eq!(answer, "", "it is closed");
        }
    }
}
