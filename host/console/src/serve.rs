//! Connections: TCP, with TLS or without, HTTP/1.1 or HTTP/2, and for each request the router.

use std::{future, net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use http::Request;
use hyper::body::Incoming;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{
        conn::auto,
        graceful::{GracefulShutdown, Watcher},
    },
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Notify, mpsc},
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use tower::util::MapRequest;
use tracing::{debug, info, warn};

use crate::places::{Limits, Place, Places};

/// How long a client may take for the handshake, for its first request, and for the head of a request.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a connection may be silent before it is asked whether it still lives, and how long it may take to say so.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);

/// How long requests in flight have when the server stops. Streams are ended by then.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

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
    let server = Server { limits: Limits::default(), patience: PATIENCE, tls, router };
    server.serve(listeners, stop).await;
}

/// What serves each connection, as one of so many.
struct Server {
    limits: Limits,
    /// As [`PATIENCE`].
    patience: Duration,
    tls: Option<TlsAcceptor>,
    router: Router,
}

impl Server {
    async fn serve(self, listeners: Vec<TcpListener>, stop: impl Future<Output = ()>) {
        let graceful = GracefulShutdown::new();
        let places = Places::new(self.limits);
        let builder = Arc::new(builder(self.patience));
        let server = Arc::new(self);
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
            let place = places.begin();
            let (server, builder) = (Arc::clone(&server), Arc::clone(&builder));
            let watcher = graceful.watcher();
            tokio::spawn(async move {
                let began = Arc::new(Notify::new());
                tokio::select! {
                    () = server.connection(stream, &builder, watcher, &place, &began) => {}
                    () = place.cut() => debug!("A connection of nobody is cut for another"),
                    () = says_nothing(&began, server.patience) => debug!("A connection had no request"),
                }
            });
        }
        accepting.iter().for_each(tokio::task::JoinHandle::abort);
        if timeout(STOP_TIMEOUT, graceful.shutdown()).await.is_err() {
            info!("Some requests were not finished when the server stopped");
        }
    }

    async fn connection(
        &self,
        stream: TcpStream,
        builder: &auto::Builder<TokioExecutor>,
        watcher: Watcher,
        place: &Arc<Place>,
        began: &Arc<Notify>,
    ) {
        let _ = stream.set_nodelay(true);
        let (place, began) = (Arc::clone(place), Arc::clone(began));
        let service = TowerToHyperService::new(MapRequest::new(
            self.router.clone(),
            move |mut request: Request<Incoming>| {
                began.notify_one();
                request.extensions_mut().insert(Arc::clone(&place));
                request
            },
        ));
        let served = match &self.tls {
            None => watcher.watch(builder.serve_connection(TokioIo::new(stream), service).into_owned()).await,
            Some(tls) => match timeout(self.patience, tls.accept(stream)).await {
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

/// Ends when the first request takes too long.
async fn says_nothing(began: &Notify, patience: Duration) {
    if timeout(patience, began.notified()).await.is_ok() {
        future::pending().await
    }
}

fn builder(patience: Duration) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(patience).max_buf_size(HEAD_BYTES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIMEOUT)
        .max_header_list_size(HEAD_BYTES_MAX as u32)
        .max_concurrent_streams(STREAMS);
    builder
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::fake;

    const LIMITS: Limits = Limits { strangers: 8, known: 8, of_one: 8 };

    /// So much patience that no connection ends because the machine is slow.
    const MUCH: Duration = Duration::from_secs(600);

    const TOO_SLOW: &str = "HTTP/1.1 408 Request Timeout";

    /// Serves behind the door of a cluster with these limits and this patience, and says where.
    async fn served(patience: Duration) -> SocketAddr {
        let (client, _) = fake::upstream(fake::knows_ann);
        let router = crate::router(fake::app(fake::cluster(), client));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        // It ends with the test.
        let server = Server { limits: LIMITS, patience, tls: None, router };
        tokio::spawn(server.serve(vec![listener], future::pending()));
        address
    }

    async fn send(address: SocketAddr, head: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    }

    /// The status line of the next answer; empty if the connection was closed.
    async fn status(stream: &mut TcpStream) -> String {
        let mut read = Vec::new();
        while !read.ends_with(b"\r\n") {
            match stream.read_u8().await {
                Ok(byte) => read.push(byte),
                Err(_) => break,
            }
        }
        String::from_utf8(read).unwrap().trim().to_owned()
    }

    const OWN: &str =
        "GET /api/v1/session HTTP/1.1\r\nhost: console.test\r\nauthorization: Bearer ann-token\r\n\r\n";
    const SLOW: &str = "POST /api/v1/session HTTP/1.1\r\nhost: console.test\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";

    #[tokio::test]
    async fn slow_requests_of_nobody_keep_nobody_out() {
        let address = served(MUCH).await;
        let mut owner = send(address, OWN).await;
        assert_eq!(status(&mut owner).await, "HTTP/1.1 200 OK");
        let (mut held, mut silent) = (Vec::new(), Vec::new());
        for _ in 0..LIMITS.strangers * 4 {
            held.push(send(address, SLOW).await);
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        // Somebody who comes only now.
        let mut late = send(address, OWN).await;
        assert_eq!(status(&mut late).await, "HTTP/1.1 200 OK");
        // The connection that the owner had is still there: its next answer follows what is left of the first.
        owner.write_all(OWN.replace("host", "connection: close\r\nhost").as_bytes()).await.unwrap();
        let mut rest = String::new();
        owner.read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest.matches("HTTP/1.1 200 OK").count(), 1, "{rest}");
        assert_eq!(status(&mut silent[0]).await, "", "the oldest were cut");
        // Where the machine is slow, the first requests may have ended for themselves before.
        let mut ended = String::new();
        for stream in &mut held {
            ended = status(stream).await;
            if ended != TOO_SLOW {
                break;
            }
        }
        assert_eq!(ended, "", "the oldest were cut, although they had a request");
    }

    #[tokio::test]
    async fn what_nobody_sends_is_waited_for_a_few_seconds_and_read_up_to_some_kibibytes() {
        let (address, impatient) = (served(MUCH).await, served(PATIENCE).await);
        let large = SLOW.replace("content-length: 100", "content-length: 5000");
        assert_eq!(status(&mut send(address, &large).await).await, "HTTP/1.1 413 Payload Too Large");
        let mut silent = TcpStream::connect(impatient).await.unwrap();
        let mut half = send(impatient, "GET /console/ HTT").await;
        assert_eq!(status(&mut send(address, SLOW).await).await, TOO_SLOW);
        assert_eq!(status(&mut silent).await, "");
        assert_eq!(status(&mut half).await, "");
    }
}
