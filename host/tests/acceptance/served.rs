//! What the host says of itself over HTTP.

use anyhow::ensure;
use kit::Look;
use pintle_simulation::scenario::Backend;
use pintle_testbed::eventually;

use crate::real::Real;

pub(crate) const NAME: &str = "the host tells Prometheus what it does, and logs as much as it is told to";

const NAMESPACE: &str = "served";

const ROOT: &str = r#"{apiVersion: my.domain/v1, kind: WebServer, metadata: {name: served, namespace: served}, spec: {image: "nginx:1.23.1", replicas: 0, nodePort: 0}}"#;

/// With the host that ran the scenarios.
pub(crate) fn check(real: &Real<'_>) -> anyhow::Result<()> {
    real.make_namespace(NAMESPACE)?;
    real.kubectl(&["apply", "-f", "-"], Some(ROOT))?;
    let ready = ["wait", "-n", NAMESPACE, "--for=condition=Ready", "--timeout=180s", "ws/served"];
    real.kubectl(&ready, None)?;
    metrics(real)?;
    log_levels(real)?;
    real.delete_namespace(NAMESPACE)
}

fn metrics(real: &Real<'_>) -> anyhow::Result<()> {
    let metrics = real.ask_host("/metrics", None)?;
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

fn log_levels(real: &Real<'_>) -> anyhow::Result<()> {
    let set = |level: &str| real.ask_host("/loglevel", Some(("PUT", level)));
    let debug_lines = || real.host_log(&["DEBUG"], usize::MAX).len();
    let refused = set("loud")?;
    ensure!(refused.starts_with("HTTP/1.1 400") && refused.contains("is no level"), "{refused}");
    let level = real.ask_host("/loglevel", Some(("GET", "")))?;
    ensure!(level.trim_end().ends_with("info"), "it logs another level at first: {level}");
    let before = debug_lines();
    ensure!(set("debug")?.starts_with("HTTP/1.1 200"), "the level cannot be set");
    // The lease is renewed every two seconds, and the requests for it are logged then.
    eventually("more is logged", || {
        Ok(Look::reached_if(debug_lines() > before, || real.host_log(&[], 5).join("\n")))
    })?;
    set("info").map(drop)
}
