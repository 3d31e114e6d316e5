//! What the host says of itself over HTTP.

use anyhow::ensure;

use crate::real::Real;

pub(crate) const NAME: &str = "the host tells Prometheus what it does";

const NAMESPACE: &str = "served";

const ROOT: &str = r#"{apiVersion: my.domain/v1, kind: WebServer, metadata: {name: served, namespace: served}, spec: {image: "nginx:1.23.1", replicas: 0, nodePort: 0}}"#;

/// With the host that ran the scenarios.
pub(crate) fn check(real: &Real<'_>) -> anyhow::Result<()> {
    real.make_namespace(NAMESPACE)?;
    real.kubectl(&["apply", "-f", "-"], Some(ROOT))?;
    let ready = ["wait", "-n", NAMESPACE, "--for=condition=Ready", "--timeout=180s", "ws/served"];
    real.kubectl(&ready, None)?;
    metrics(real)?;
    real.delete_namespace(NAMESPACE)
}

fn metrics(real: &Real<'_>) -> anyhow::Result<()> {
    let metrics = real.ask_host("/metrics")?;
    ensure!(metrics.starts_with("HTTP/1.1 200"), "{metrics}");
    let passes = r#"controller_runtime_reconcile_total{controller="webserver",result="success"}"#;
    ensure!(real.metric(passes)? > 0.0, "no pass is counted:\n{metrics}");
    ensure!(real.metric("controller_runtime_reconcile_panics_total{")? == 0.0, "a pass panicked:\n{metrics}");
    let leads = real.metric(r#"leader_election_master_status{name="pintle"}"#)?;
    ensure!(leads == 1.0, "the host that works leads:\n{metrics}");
    let asked =
        metrics.lines().any(|line| line.starts_with("rest_client_requests_total{") && line.contains("PATCH"));
    ensure!(asked, "its writes are not counted:\n{metrics}");
    Ok(())
}
