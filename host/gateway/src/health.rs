//! `/healthz`, `/readyz`, `/livez` and `/metrics` without TLS, for probes and scrapers that do not come through the API server.
//!
//! Their listener is their own: whoever fills the connections of the aggregated API or of the console does not have the gateway restarted.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Context;
use axum::{
    Router,
    extract::State,
    http::{StatusCode, Uri, header},
    response::IntoResponse,
    routing::get,
};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use pintle_runtime::{Spawner, clock};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tracing::{debug, warn};

use crate::{
    answer::{Gateway, METRICS, failed},
    connections::{Activity, Connections, Limits, Place},
    identity::Network,
    reviews::Reviews,
    tls::Served,
};

/// How many connections may be open, and how many from one network: a probe or a scraper has one. Who comes later takes the place of an older
/// one, so that nobody who holds connections keeps others out.
const CONNECTIONS: Limits = Limits { together: 128, of_one: 16 };

/// How long a client may take for the head of a request.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is asked.
struct Health<R> {
    gateway: Arc<Gateway<R>>,
    /// The certificate of the aggregated API.
    served: Served,
}

/// Begins to serve, and returns where.
///
/// # Errors
/// When the address cannot be listened on.
pub(crate) async fn serve<R: Reviews + 'static>(
    address: SocketAddr,
    gateway: Arc<Gateway<R>>,
    served: Served,
    spawner: &Spawner,
) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address} (--health-bind)"))?;
    let router = Router::new()
        .route("/healthz", get(health))
        .route("/livez", get(health))
        .route("/readyz", get(ready::<R>))
        .route("/metrics", get(metrics::<R>))
        .with_state(Arc::new(Health { gateway, served }));
    let address = listener.local_addr()?;
    spawner.spawn_lasting(accept(listener, router));
    Ok(address)
}

/// Serves whoever connects. Does not end.
async fn accept(listener: TcpListener, router: Router) {
    let connections = Connections::new(CONNECTIONS);
    loop {
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                warn!(%error, "A connection of a probe cannot be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        // Each counts as one at rest: what is answered here is short.
        let rests = watch::channel(Activity::new(clock::monotonic())).1;
        if let Some(place) = connections.admit(Network::of(from.ip()), rests) {
            tokio::spawn(connection(stream, place, router.clone()));
        }
    }
}

async fn connection(stream: TcpStream, place: Place, router: Router) {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    let served = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    tokio::select! {
        () = place.is_taken() => {}
        ended = served => if let Err(error) = ended {
            debug!(%error, "A connection of a probe ended");
        }
    }
}

fn said(path: &str, missing: Option<&str>) -> impl IntoResponse + use<> {
    match missing {
        None => (StatusCode::OK, "ok".to_owned()),
        Some(missing) => (StatusCode::INTERNAL_SERVER_ERROR, failed(path, missing)),
    }
}

async fn health(uri: Uri) -> impl IntoResponse {
    said(uri.path(), None)
}

async fn ready<R: Reviews + 'static>(State(health): State<Arc<Health<R>>>, uri: Uri) -> impl IntoResponse {
    // Without a certificate no handshake succeeds.
    let certificate = (!health.served.is_set()).then_some("certificate");
    said(uri.path(), certificate.or_else(|| health.gateway.waits_for()))
}

async fn metrics<R: Reviews + 'static>(State(health): State<Arc<Health<R>>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, METRICS)], health.gateway.metrics_text())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::{answer::tests::Setting, identity::issuer::TestIssuer, tls::tests::certificate};

    async fn probed(address: SocketAddr, path: &str) -> String {
        let mut probe = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        probe.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        probe.read_to_string(&mut answer).await.unwrap();
        answer
    }

    fn is_ok(answer: &str) -> bool {
        answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok")
    }

    #[tokio::test]
    async fn a_probe_is_answered_however_many_connections_somebody_holds() {
        let setting = Setting::new(TestIssuer::new("proxies"));
        let at = (Ipv4Addr::LOCALHOST, 0).into();
        let (gateway, spawner) = (Arc::clone(&setting.gateway), Spawner::default());
        let address = serve(at, gateway, Served::default(), &spawner).await.unwrap();
        let mut held = Vec::new();
        for _ in 0..CONNECTIONS.together * 2 {
            held.push(TcpStream::connect(address).await.unwrap());
        }
        let answer = probed(address, "/healthz").await;
        assert!(is_ok(&answer), "{answer}");
        // The oldest made room.
        assert_eq!(held[0].read(&mut [0; 1]).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_gateway_without_a_certificate_is_not_ready() {
        let setting = Setting::new(TestIssuer::new("proxies"));
        let (at, served) = ((Ipv4Addr::LOCALHOST, 0).into(), Served::default());
        let (gateway, spawner) = (Arc::clone(&setting.gateway), Spawner::default());
        let address = serve(at, gateway, served.clone(), &spawner).await.unwrap();
        let answer = probed(address, "/readyz").await;
        assert!(answer.starts_with("HTTP/1.1 500") && answer.contains("[-]certificate failed"), "{answer}");
        served.set(&certificate().pair).unwrap();
        let answer = probed(address, "/readyz").await;
        assert!(is_ok(&answer), "{answer}");
    }
}
