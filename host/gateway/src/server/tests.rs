//! Tests of the server: over TLS on loopback.

use std::net::Ipv4Addr;

use futures::{FutureExt, future::join_all};
use http_body_util::BodyExt;
use hyper::client::conn::http2::{self, SendRequest};
use rustls::{pki_types::ServerName, sign::CertifiedKey, version::TLS13};
use tokio::sync::oneshot;
use tokio_rustls::TlsConnector;

use super::*;
use crate::{
    answer::tests::{AnyBody, DOLLY, LLAMAS, Setting, VERSION, of, request, slow, whole},
    identity::{MASTERS, issuer::TestIssuer},
    tls::{self, tests as tls_tests},
};

/// A server on loopback, and how its clients find it.
struct Running {
    setting: Setting,
    proxies: TestIssuer,
    address: SocketAddr,
    authority: String,
    stop: oneshot::Sender<()>,
    served: tokio::task::JoinHandle<()>,
}

impl Running {
    async fn start() -> Self {
        let (setting, proxies) = (Setting::new(), TestIssuer::of_today("proxies"));
        let own = tls_tests::certificate();
        let known = watch::channel(Some(Arc::new(tls_tests::trusting(&proxies)))).1;
        let tls = tls::server_config(tls_tests::serving(&own.pair), known).unwrap();
        let server = Server::bind((Ipv4Addr::LOCALHOST, 0).into(), tls).await.unwrap();
        let address = server.address().unwrap();
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(server.serve(Arc::clone(&setting.gateway), stopped.map(drop)));
        Self { setting, proxies, address, authority: own.authority, stop, served }
    }

    /// A connection of the front proxy.
    async fn client(&self) -> SendRequest<AnyBody> {
        let (certificate, key) = self.proxies.client_with_key(tls_tests::PROXY);
        let shows: Option<CertifiedKey> = Some(tls_tests::certified(certificate, &key));
        let mut client = tls_tests::client(&self.authority, shows, &TLS13);
        client.alpn_protocols = vec![b"h2".to_vec()];
        let stream = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from(tls_tests::NAME).unwrap();
        let stream = TlsConnector::from(Arc::new(client)).connect(name, stream).await.unwrap();
        let spoken = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
        let (sender, connection) = spoken.unwrap();
        tokio::spawn(connection);
        sender
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
async fn slow_bodies_of_whoever_may_do_nothing_and_of_two_users_take_nothing_from_others() {
    let running = Running::start().await;
    let client = running.client().await;
    let refused = (0..50).map(|_| code(&client, asks("POST", LLAMAS, &[of("nobody")], slow())));
    assert_eq!(join_all(refused).await, [403; 50], "whose bodies nobody waits for");
    let mut held = tokio::task::JoinSet::new();
    for user in ["eve", "bob"] {
        for _ in 0..50 {
            let (client, request) = (client.clone(), asks("POST", LLAMAS, &[of(user)], slow()));
            held.spawn(async move { code(&client, request).await });
        }
    }
    running.until("apiserver_current_inflight_requests{request_kind=\"requests\"} 16").await;
    let masters = [of("system:kube-aggregator"), ("x-remote-group", MASTERS)];
    assert_eq!(code(&client, asks("GET", VERSION, &masters, whole(""))).await, 200);
    assert_eq!(code(&client, asks("GET", LLAMAS, &[of("jane")], whole(""))).await, 200);
    let create = asks("POST", LLAMAS, &[of("jane")], whole(DOLLY));
    assert_eq!(code(&client, create).await, 503, "there is no module, and it was asked");
    held.shutdown().await;
    drop(client);
    running.stop().await;
}
