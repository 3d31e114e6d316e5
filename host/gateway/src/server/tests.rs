//! Tests of the server: over TLS on loopback, and over streams in memory where time must stand still.

use std::net::{IpAddr, Ipv4Addr};

use futures::{FutureExt, future::join_all};
use http_body_util::BodyExt;
use hyper::client::conn::http2::{self, SendRequest};
use rustls::{pki_types::ServerName, sign::CertifiedKey, version::TLS13};
use tokio::{
    io::{AsyncReadExt, duplex},
    sync::oneshot,
    time::Instant,
};
use tokio_rustls::TlsConnector;

use super::*;
use crate::{
    answer::tests::{AnyBody, DOLLY, LLAMAS, PROXY, Setting, VERSION, of, request, slow, whole},
    identity::{MASTERS, issuer::TestIssuer},
    reviews::tests::Fake,
    tls::{self, tests as tls_tests},
};

/// A server on loopback, and how its clients find it.
struct Running {
    setting: Setting,
    address: SocketAddr,
    authority: String,
    stop: oneshot::Sender<()>,
    served: tokio::task::JoinHandle<()>,
}

impl Running {
    async fn start() -> Self {
        let setting = Setting::new(TestIssuer::of_today("proxies"));
        let own = tls_tests::certificate();
        let tls = tls::server_config(tls_tests::serving(&own.pair)).unwrap();
        let mut server = Server::bind((Ipv4Addr::LOCALHOST, 0).into(), tls).await.unwrap();
        // A connection must not end because many handshakes take long before it has its first request.
        server.patience = Duration::from_secs(600);
        let address = server.address().unwrap();
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(server.serve(Arc::clone(&setting.gateway), stopped.map(drop)));
        Self { setting, address, authority: own.authority, stop, served }
    }

    /// A connection of somebody with this certificate, after the handshake.
    async fn connect(
        &self,
        shows: Option<CertifiedKey>,
    ) -> std::io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
        let mut client = tls_tests::client(&self.authority, shows, &TLS13);
        client.alpn_protocols = vec![b"h2".to_vec()];
        let stream = TcpStream::connect(self.address).await?;
        let name = ServerName::try_from(tls_tests::NAME).unwrap();
        TlsConnector::from(Arc::new(client)).connect(name, stream).await
    }

    async fn client(&self, shows: Option<CertifiedKey>) -> SendRequest<AnyBody> {
        speaks(self.connect(shows).await.unwrap()).await.0
    }

    /// What the front proxy shows.
    fn proxy(&self) -> Option<CertifiedKey> {
        let (certificate, key) = self.setting.proxies.client_with_key(PROXY);
        Some(tls_tests::certified(certificate, &key))
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        self.served.await.unwrap();
    }

    /// Waits until the metrics say so.
    async fn until(&self, sample: &str) {
        let said = async {
            while !self.setting.gateway.metrics_text().contains(sample) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), said).await.expect(sample);
    }
}

/// Speaks HTTP/2 over a stream. The task ends with the connection.
async fn speaks<I>(stream: I) -> (SendRequest<AnyBody>, tokio::task::JoinHandle<hyper::Result<()>>)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    (sender, tokio::spawn(connection))
}

/// The code of an answer, once all of it is there.
async fn code(client: &SendRequest<AnyBody>, request: Request<AnyBody>) -> u16 {
    let mut client = client.clone();
    let reply = client.send_request(request).await.unwrap();
    let code = reply.status().as_u16();
    reply.into_body().collect().await.unwrap();
    code
}

/// A request of a connection's first line: HTTP/2 wants to know the scheme and the server.
fn asks(method: &str, path: &str, headers: &[(&str, &str)], body: AnyBody) -> Request<AnyBody> {
    request(method, &format!("https://{}{path}", tls_tests::NAME), headers, body)
}

#[tokio::test]
async fn slow_bodies_of_strangers_and_of_two_accounts_take_nothing_from_others() {
    let running = Running::start().await;
    let (eve, bob) = (of("eve"), of("bob"));
    let strangers = running.client(None).await;
    let refused = (0..50).map(|_| code(&strangers, asks("POST", LLAMAS, &[], slow())));
    assert_eq!(join_all(refused).await, [403; 50], "whose bodies nobody waits for");
    let accounts = [running.client(None).await, running.client(None).await];
    let mut held = tokio::task::JoinSet::new();
    for (client, (name, value)) in accounts.iter().zip([&eve, &bob]) {
        for _ in 0..50 {
            let (client, request) = (client.clone(), asks("POST", LLAMAS, &[(name, value)], slow()));
            held.spawn(async move { code(&client, request).await });
        }
    }
    running.until("apiserver_current_inflight_requests{request_kind=\"requests\"} 16").await;
    let proxy = running.client(running.proxy()).await;
    let masters = [("x-remote-user", "system:kube-aggregator"), ("x-remote-group", MASTERS)];
    assert_eq!(code(&proxy, asks("GET", VERSION, &masters, whole(""))).await, 200);
    let jane = [("x-remote-user", "jane")];
    assert_eq!(code(&proxy, asks("GET", LLAMAS, &jane, whole(""))).await, 200);
    let create = asks("POST", LLAMAS, &jane, whole(DOLLY));
    assert_eq!(code(&proxy, create).await, 503, "there is no module, and it was asked");
    held.shutdown().await;
    drop((accounts, strangers, proxy));
    running.stop().await;
}

#[tokio::test]
async fn connections_of_one_address_close_their_own_and_the_front_proxy_finds_room() {
    let running = Running::start().await;
    let mut flood = Vec::new();
    for _ in 0..OTHERS.of_one + 20 {
        flood.push(running.connect(None).await.unwrap());
    }
    running.until("pintle_connections_refused_total 20").await;
    let proxy = running.client(running.proxy()).await;
    let masters = [("x-remote-user", "system:kube-aggregator"), ("x-remote-group", MASTERS)];
    assert_eq!(code(&proxy, asks("GET", VERSION, &masters, whole(""))).await, 200);
    let mut closed = 0;
    for stream in &mut flood {
        // A server that has not closed the connection waits for the client to speak.
        let read = stream.read(&mut [0; 64]).now_or_never();
        closed += usize::from(matches!(read, Some(Ok(0) | Err(_))));
    }
    assert!(closed >= 20, "{closed}");
    let last = flood.pop().unwrap();
    let (client, _) = speaks(last).await;
    assert_eq!(code(&client, asks("GET", "/healthz", &[], whole(""))).await, 200, "who comes last is served");
    drop((flood, client, proxy));
    running.stop().await;
}

/// A connection in memory, which is served until it ends, and the client of it.
async fn in_memory() -> (Setting, SendRequest<AnyBody>, tokio::task::JoinHandle<hyper::Result<()>>) {
    let setting = Setting::new(TestIssuer::new("proxies"));
    let tls = tls::server_config(tls::Served::default()).unwrap();
    let serving: Serving<Arc<Fake>> =
        Serving::new(Arc::clone(&setting.gateway), TlsAcceptor::from(tls), PATIENCE);
    let (near, far) = duplex(1 << 16);
    let peer = Arc::new(Peer::at(IpAddr::from(Ipv4Addr::LOCALHOST)));
    let activity = watch::Sender::new(Activity::new(clock::monotonic()));
    tokio::spawn(async move {
        let (_stopping, stops) = watch::channel(());
        serving.requests(far, peer, &serving.for_others, activity, stops).await;
    });
    let (client, connection) = speaks(near).await;
    (setting, client, connection)
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_only_answers_pings_ends() {
    let (_setting, client, connection) = in_memory().await;
    let began = Instant::now();
    assert_eq!(code(&client, asks("GET", "/healthz", &[], whole(""))).await, 200);
    tokio::time::sleep(REST_TIMEOUT / 2).await;
    assert_eq!(code(&client, asks("GET", "/healthz", &[], whole(""))).await, 200);
    connection.await.unwrap().unwrap();
    assert!(began.elapsed() >= REST_TIMEOUT + REST_TIMEOUT / 2, "from the end of its last request");
    assert!(client.is_closed());
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_first_request_ends_sooner() {
    let (_setting, client, connection) = in_memory().await;
    let began = Instant::now();
    connection.await.unwrap().unwrap();
    assert!(began.elapsed() >= PATIENCE && began.elapsed() < REST_TIMEOUT);
    assert!(client.is_closed());
}

#[tokio::test(start_paused = true)]
async fn a_connection_with_a_request_in_work_goes_on() {
    let (_activity, mut seen) = {
        let activity = watch::Sender::new(Activity::new(Duration::ZERO));
        let seen = activity.subscribe();
        (InWork::begin(&activity), seen)
    };
    let rested = until(&mut seen, |activity| rests_until(activity, PATIENCE));
    let ended = tokio::time::timeout(REST_TIMEOUT * 3, rested).await;
    assert!(ended.is_err(), "a watch may be silent for as long as it likes");
}
