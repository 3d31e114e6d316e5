//! Tests of the health endpoints, with tasks and locks that are held up.

use axum::{body::Body, http::Request};
use http_body_util::BodyExt;
use pintle_core::SealingKey;
use pintle_engine::{Engine, EngineConfig, Meter};
use pintle_kubernetes::Cluster;
use pintle_modules::Budget;
use pintle_runtime::Spawner;
use tower::ServiceExt;

use super::*;
use crate::{Host, RootLimits, metrics::Metrics};

/// Longer than anything may take.
const LONG: Duration = Duration::from_secs(3600);

/// A host whose API server never answers.
pub(crate) fn host() -> (Host, Health) {
    host_of("")
}

/// A host whose API server answers requests for a Secret of this name alone.
fn host_of(secret: &'static str) -> (Host, Health) {
    let answers = move |request: http::Request<kube::client::Body>| async move {
        if !request.uri().path().ends_with(&format!("/secrets/{secret}")) {
            std::future::pending::<()>().await;
        }
        let key = r#"{"data": {"key": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}}"#;
        Ok::<_, std::io::Error>(http::Response::new(Body::from(key)))
    };
    let spawner = Spawner::default();
    let health = Health::new();
    let host = Host {
        client: kube::Client::new(tower::service_fn(answers), "default"),
        engine: Engine::new(EngineConfig::new(Meter::Fuel, || Duration::ZERO)).unwrap(),
        budget: Budget::fixed(512 << 20),
        root_limits: RootLimits::default(),
        compilers: None,
        metrics: Arc::new(Metrics::default()),
        identity: "host".into(),
        namespace: "pintle-system".into(),
        leader_elect: false,
        workers: 2,
        spawner,
        guests: None,
        readiness: health.readiness.clone(),
    };
    (host, health)
}

pub(crate) fn shared(host: Host) -> Arc<Shared> {
    let cluster = Cluster::new(host.client.clone());
    host.share(cluster, SealingKey::new([0; 32]), None)
}

async fn ask(health: &Health, path: &str) -> (u16, String) {
    let request = Request::get(path).body(Body::empty()).unwrap();
    let reply = health.routes().oneshot(request).await.unwrap();
    let (head, body) = reply.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (head.status.as_u16(), String::from_utf8(body.to_vec()).unwrap())
}

fn ok() -> (u16, String) {
    (200, "ok".into())
}

#[tokio::test(start_paused = true)]
async fn a_host_that_waits_for_an_api_server_that_does_not_answer_is_healthy() {
    let (host, health) = host();
    let watchdog = tokio::spawn(health.clone().watch());
    let working = tokio::spawn(host.work_until(std::future::pending()));
    tokio::time::sleep(LONG).await;
    assert_eq!(ask(&health, "/healthz").await, ok());
    assert_eq!(ask(&health, "/readyz").await.0, 503);
    working.abort();
    watchdog.abort();

    // The same later: once it had a key.
    let (host, health) = self::host();
    let shared = shared(host);
    let watchdog = tokio::spawn(health.clone().watch());
    let control = tokio::spawn(crate::control::run(Arc::clone(&shared)));
    tokio::time::sleep(LONG).await;
    assert!(!control.is_finished());
    assert_eq!(ask(&health, "/healthz").await, ok());
    assert_eq!(ask(&health, "/livez").await, ok());
    control.abort();
    watchdog.abort();
}

#[tokio::test(start_paused = true)]
#[allow(clippy::await_holding_lock, reason = "that is what must hold up no answer")]
async fn a_lock_that_is_never_let_go_of_is_told_and_holds_up_no_answer() {
    let (host, health) = host();
    let shared = shared(host);
    let state = shared.state();
    let watchdog = health.clone();
    // It waits for the lock, and would hold up this thread too.
    let looking = std::thread::spawn(move || watchdog.look());
    assert_eq!(ask(&health, "/healthz").await, ok());
    tokio::time::advance(LONG).await;
    let (code, text) = ask(&health, "/healthz").await;
    assert!(code == 503 && text.starts_with("the host makes no progress for 3600 s: "), "{code} {text}");
    for path in ["/readyz", "/metrics"] {
        let (code, text) = ask(&health, path).await;
        assert!(code == 503 && text.contains("is held"), "{path}: {code} {text}");
    }
    drop(state);
    looking.join().unwrap();
    health.look();
    assert_eq!(ask(&health, "/healthz").await, ok());
    assert_eq!(ask(&health, "/metrics").await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn a_host_ends_with_an_error_where_its_server_or_its_control_loop_has_died() {
    let (host, _) = host();
    assert!(host.work_until(async { Err(anyhow::anyhow!("the server ended")) }).await.is_err());

    let (host, health) = host_of("pintle-key");
    let working = tokio::spawn(host.work_until(std::future::pending()));
    tokio::time::sleep(LONG).await;
    // Its tasks end, and nobody has told the host to.
    health.readiness.0.get().unwrap().stop();
    assert!(working.await.unwrap().is_err());
}
