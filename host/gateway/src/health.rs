//! `/healthz`, `/readyz`, `/livez` and `/metrics`, on a port of their own and without TLS, for probes and scrapers: nobody but the API
//! server's front proxy gets to the aggregated API.

use std::{net::SocketAddr, sync::Arc};

use anyhow::Context;
use axum::{
    Router,
    extract::State,
    http::{StatusCode, Uri, header},
    response::IntoResponse,
    routing::get,
};
use pintle_runtime::Spawner;
use tokio::net::TcpListener;
use tracing::warn;

use crate::{answer::Gateway, reviews::Reviews, tls::Served};

/// The form of metrics.
const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

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
    spawner.spawn_lasting(answer(listener, router));
    Ok(address)
}

/// Answers whoever connects. Does not end.
async fn answer(listener: TcpListener, router: Router) {
    if let Err(error) = axum::serve(listener, router).await {
        warn!(%error, "Probes are answered no more");
    }
}

fn said(path: &str, missing: Option<&str>) -> impl IntoResponse + use<> {
    match missing {
        None => (StatusCode::OK, "ok".to_owned()),
        Some(missing) => {
            let path = path.trim_matches('/');
            let text = format!("[-]{missing} failed: reason withheld\n{path} check failed\n");
            (StatusCode::INTERNAL_SERVER_ERROR, text)
        }
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

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
    };

    use super::*;
    use crate::{answer::tests::Setting, tls::tests::certificate};

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
    async fn a_gateway_without_a_certificate_is_not_ready() {
        let setting = Setting::new();
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
