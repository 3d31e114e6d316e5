//! `/healthz`, `/readyz`, `/livez` and `/metrics` without TLS, for probes and scrapers that do not come through the API server.

use std::{net::SocketAddr, sync::Arc};

use anyhow::Context;
use axum::{
    Router,
    extract::State,
    http::{StatusCode, Uri, header},
    response::IntoResponse,
    routing::get,
};
use tokio::net::TcpListener;
use tracing::error;

use crate::{
    answer::{Gateway, METRICS},
    reviews::Reviews,
};

/// Begins to serve.
///
/// # Errors
/// When the address cannot be listened on.
pub(crate) async fn serve<R: Reviews + 'static>(
    address: SocketAddr,
    gateway: Arc<Gateway<R>>,
) -> anyhow::Result<()> {
    let listener = TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
    let router = Router::new()
        .route("/healthz", get(health::<R>))
        .route("/livez", get(health::<R>))
        .route("/readyz", get(health::<R>))
        .route("/metrics", get(metrics::<R>))
        .with_state(gateway);
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            error!(%error, "The server of probes ended");
        }
    });
    Ok(())
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
