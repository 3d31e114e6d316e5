//! The server: TLS connections with HTTP/1.1 or HTTP/2, and for each request the [`Gateway`].

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use http::Request;
use hyper::body::Incoming;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
    service::TowerToHyperService,
};
use pintle_runtime::clock;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tower::service_fn;
use tracing::{debug, info, warn};

use crate::{
    answer::Gateway,
    connections::{Activity, Connections, InWork, Limits, Place},
    identity::{Network, Peer},
    reply,
    reviews::Reviews,
};

/// How long a client may take for the handshake, and for the head of its first request.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a connection may be silent before it is asked whether it still lives, and how long it may take to say so.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);

/// How long a connection may be without a request, whether it lives or not. The API server asks twice a minute whether the gateway is there,
/// and gives up connections of its own that rest for 90 s.
const REST_TIMEOUT: Duration = Duration::from_secs(300);

/// How long requests in flight have when the gateway stops. Watches are ended by then. A connection that is at rest and was told to go has as
/// long.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// How many handshakes may be under way, and how many from one network. An honest one takes milliseconds.
const HANDSHAKES: Limits = Limits { together: 256, of_one: 32 };

/// How many connections of others than the front proxy may be open, and how many from one network: direct callers have one each. Those of the
/// front proxy, which are a few of each API server, are not limited.
const OTHERS: Limits = Limits { together: 1_024, of_one: 64 };

/// How many requests the front proxy may have in flight on one HTTP/2 connection: as many as it sends over one.
const STREAMS: u32 = 1_000;

/// How many others may: as many as one caller may have in work and waiting.
const STREAMS_OF_OTHERS: u32 = 250;

/// How much of a body arrives before it is read, in bytes: as much as HTTP/2 lets through by default. The window of a connection is as large as
/// those of its streams, so that bodies that wait never hold up those that are read.
const STREAM_WINDOW: u32 = 64 << 10;

/// The largest head of a request of HTTP/1.1, in bytes.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// A listener that is bound.
pub struct Server {
    listener: TcpListener,
    acceptor: TlsAcceptor,
    /// [`PATIENCE`], except in tests, whose clients may be slow.
    patience: Duration,
}

/// What connections are served with.
struct Serving<R> {
    gateway: Arc<Gateway<R>>,
    acceptor: TlsAcceptor,
    patience: Duration,
    handshakes: Connections,
    others: Connections,
    for_front_proxy: auto::Builder<TokioExecutor>,
    for_others: auto::Builder<TokioExecutor>,
}

impl Server {
    /// Binds an address.
    ///
    /// # Errors
    /// When it is taken, or not one of this machine.
    pub async fn bind(address: SocketAddr, tls: Arc<rustls::ServerConfig>) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        Ok(Self { listener, acceptor: TlsAcceptor::from(tls), patience: PATIENCE })
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
        let serving = Arc::new(Serving::new(gateway, self.acceptor, self.patience));
        // Each connection has a receiver until it has ended.
        let (stopping, stops) = watch::channel(());
        tokio::pin!(stop);
        let stopped = loop {
            let accepted = tokio::select! {
                stopped = &mut stop => break stopped,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, from)) => {
                    let (serving, stops) = (Arc::clone(&serving), stops.clone());
                    tokio::spawn(async move { serving.connection(stream, from, stops).await });
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
    fn new(gateway: Arc<Gateway<R>>, acceptor: TlsAcceptor, patience: Duration) -> Self {
        Self {
            gateway,
            acceptor,
            patience,
            handshakes: Connections::new(HANDSHAKES),
            others: Connections::new(OTHERS),
            for_front_proxy: builder(STREAMS, patience),
            for_others: builder(STREAMS_OF_OTHERS, patience),
        }
    }

    /// Serves a connection until it ends.
    async fn connection(&self, stream: TcpStream, from: SocketAddr, stops: watch::Receiver<()>) {
        let _ = stream.set_nodelay(true);
        let network = Network::of(from.ip());
        let activity = watch::Sender::new(Activity::new(clock::monotonic()));
        let Some(stream) = self.handshake(stream, network, &activity).await else { return };
        let shown = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let certificates = shown.iter().map(|one| one.clone().into_owned()).collect();
        let peer = Arc::new(Peer { network, certificates });
        // Before the gateway has read how the cluster authenticates, everybody is one of the others. Such connections end as theirs do.
        if self.gateway.is_front_proxy(&peer) {
            return self.requests(stream, peer, &self.for_front_proxy, activity, stops).await;
        }
        let Some(place) = self.others.admit(network, activity.subscribe()) else { return self.refused() };
        tokio::select! {
            () = place.is_taken() => self.refused(),
            () = self.requests(stream, peer, &self.for_others, activity, stops) => {}
        }
    }

    /// A connection was closed for others, or for its own number.
    fn refused(&self) {
        self.gateway.metrics().connection_refused();
    }

    async fn handshake(
        &self,
        stream: TcpStream,
        network: Network,
        activity: &watch::Sender<Activity>,
    ) -> Option<TlsStream<TcpStream>> {
        let place: Option<Place> = self.handshakes.admit(network, activity.subscribe());
        let Some(place) = place else {
            self.refused();
            return None;
        };
        let shaken = tokio::select! {
            () = place.is_taken() => {
                self.refused();
                return None;
            }
            shaken = tokio::time::timeout(self.patience, self.acceptor.accept(stream)) => shaken,
        };
        match shaken {
            Ok(Ok(stream)) => return Some(stream),
            Ok(Err(error)) => debug!(%error, "A handshake failed"),
            Err(_) => debug!("A handshake took too long"),
        }
        None
    }

    /// Answers the requests of a connection until it ends.
    async fn requests<I>(
        &self,
        stream: I,
        peer: Arc<Peer>,
        builder: &auto::Builder<TokioExecutor>,
        activity: watch::Sender<Activity>,
        mut stops: watch::Receiver<()>,
    ) where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (gateway, mut seen) = (Arc::clone(&self.gateway), activity.subscribe());
        let service = service_fn(move |request: Request<Incoming>| {
            let (gateway, peer, in_work) =
                (Arc::clone(&gateway), Arc::clone(&peer), InWork::begin(&activity));
            async move {
                let reply = gateway.answer(&peer, request).await;
                // A request is in work until the client has its answer, or has gone.
                Ok::<_, Infallible>(reply::keeping(reply, in_work))
            }
        });
        let service = TowerToHyperService::new(service);
        let mut served = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
        let ended = tokio::select! {
            ended = served.as_mut() => Some(ended),
            _ = stops.changed() => None,
            () = until(&mut seen, |activity| rests_until(activity, self.patience)) => None,
        };
        let ended = match ended {
            Some(ended) => ended,
            None => {
                served.as_mut().graceful_shutdown();
                let told = clock::monotonic();
                let gone = |activity: &Activity| Some(activity.rests_since()?.max(told) + STOP_TIMEOUT);
                tokio::select! {
                    ended = served => ended,
                    // It has nothing to wait for, and does not go.
                    () = until(&mut seen, gone) => Ok(()),
                }
            }
        };
        if let Err(error) = ended {
            debug!(error, "A connection ended");
        }
    }
}

/// Until when a connection may go on as it is, with this patience for its first request. None: as long as its requests do.
fn rests_until(activity: &Activity, patience: Duration) -> Option<Duration> {
    let left = if activity.is_used() { REST_TIMEOUT } else { patience };
    activity.rests_since().map(|since| since + left)
}

/// Waits until a connection has been at rest for too long.
async fn until(seen: &mut watch::Receiver<Activity>, due: impl Fn(&Activity) -> Option<Duration>) {
    loop {
        let due = due(&seen.borrow_and_update());
        let changed = async {
            // Without a connection there is nothing to wait for, and nobody who waits.
            if seen.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        match due {
            None => changed.await,
            Some(due) => {
                let left = due.saturating_sub(clock::monotonic());
                if tokio::time::timeout(left, changed).await.is_err() {
                    return;
                }
            }
        }
    }
}

fn builder(streams: u32, patience: Duration) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(patience).max_buf_size(HEAD_BYTES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIMEOUT)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(streams.saturating_mul(STREAM_WINDOW))
        .max_concurrent_streams(streams);
    builder
}

#[cfg(test)]
mod tests;
