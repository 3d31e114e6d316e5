//! `/healthz`, `/readyz`, `/livez` and `/metrics` without TLS, for probes and scrapers that do not come through the API server.

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
use pintle_runtime::clock;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tracing::{debug, warn};

use crate::{
    answer::{Gateway, METRICS},
    connections::{Activity, Connections, Limits, Place},
    identity::Network,
    reviews::Reviews,
};

/// How many connections may be open, and how many from one network: a probe or a scraper has one. Who comes later takes the place of an older
/// one, so that nobody who holds connections keeps others out.
const CONNECTIONS: Limits = Limits { together: 128, of_one: 16 };

/// How long a client may take for the head of a request.
const PATIENCE: Duration = Duration::from_secs(10);

/// Begins to serve, and returns where.
///
/// # Errors
/// When the address cannot be listened on.
pub(crate) async fn serve<R: Reviews + 'static>(
    address: SocketAddr,
    gateway: Arc<Gateway<R>>,
) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
    let router = Router::new()
        .route("/healthz", get(health::<R>))
        .route("/livez", get(health::<R>))
        .route("/readyz", get(health::<R>))
        .route("/metrics", get(metrics::<R>))
        .with_state(gateway);
    let address = listener.local_addr()?;
    tokio::spawn(accept(listener, router));
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

async fn health<R: Reviews + 'static>(State(gateway): State<Arc<Gateway<R>>>, uri: Uri) -> impl IntoResponse {
    match gateway.unhealthy(uri.path()) {
        None => (StatusCode::OK, "ok".to_owned()),
        Some(text) => (StatusCode::INTERNAL_SERVER_ERROR, text),
    }
}

async fn metrics<R: Reviews + 'static>(State(gateway): State<Arc<Gateway<R>>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, METRICS)], gateway.metrics_text())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::{answer::tests::Setting, identity::issuer::TestIssuer};

    #[tokio::test]
    async fn a_probe_is_answered_however_many_connections_somebody_holds() {
        let setting = Setting::new(TestIssuer::new("proxies"));
        let address = serve((Ipv4Addr::LOCALHOST, 0).into(), Arc::clone(&setting.gateway)).await.unwrap();
        let mut held = Vec::new();
        for _ in 0..CONNECTIONS.together * 2 {
            held.push(TcpStream::connect(address).await.unwrap());
        }
        let mut probe = TcpStream::connect(address).await.unwrap();
        probe.write_all(b"GET /readyz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        probe.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok"), "{answer}");
        // The oldest made room.
        assert_eq!(held[0].read(&mut [0; 1]).await.unwrap(), 0);
    }
}
