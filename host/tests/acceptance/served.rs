//! What the host says of itself over HTTP.

use anyhow::{Context, ensure};
use kit::Look;
use pintle_simulation::scenario::Backend;
use pintle_testbed::eventually;

use crate::real::Real;

pub(crate) const NAME: &str = "the host tells Prometheus what it does, and logs as much as it is told to";

const NAMESPACE: &str = "served";

/// A root of each guest that is looked at, in a namespace.
const ROOTS: &str = r#"
apiVersion: v1
kind: Namespace
metadata: {name: served}
---
apiVersion: my.domain/v1
kind: WebServer
metadata: {name: served, namespace: served}
spec: {image: "nginx:1.23.1", replicas: 0, nodePort: 0}
---
apiVersion: deployments.example.com/v1alpha1
kind: Darkroom
metadata: {name: served, namespace: served}
spec: {source: {type: WebFolder, baseUrl: "https://example.com"}, subDomains: [served]}
"#;

/// With the host that ran the scenarios.
pub(crate) fn check(real: &Real<'_>) -> anyhow::Result<()> {
    real.kubectl(&["apply", "-f", "-"], Some(ROOTS))?;
    let ready = ["wait", "-n", NAMESPACE, "--for=condition=Ready", "--timeout=180s"];
    real.kubectl(&[&ready[..], &["ws/served", "dr/served"]].concat(), None)?;
    metrics(real)?;
    log_levels(real)?;
    real.delete_namespace(NAMESPACE)
}

fn metrics(real: &Real<'_>) -> anyhow::Result<()> {
    let metrics = real.ask_host("/metrics", None)?;
    ensure!(metrics.starts_with("HTTP/1.1 200"), "{metrics}");
    let value = |line: &str| -> anyhow::Result<f64> {
        let found = metrics.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(' '));
        Ok(found.with_context(|| format!("no {line}"))?.trim().parse()?)
    };
    ensure!(value(r#"leader_election_master_status{name="pintle"}"#)? == 1.0, "the host that works leads");
    for controller in ["darkroom", "webserver"] {
        let about = format!(r#"controller="{controller}""#);
        let passes = value(&format!(r#"controller_runtime_reconcile_total{{{about},result="success"}}"#))?;
        ensure!(passes > 0.0, "{controller}: {passes} passes");
        // The series begins with the first.
        let panics = value(&format!("controller_runtime_reconcile_panics_total{{{about}}}")).unwrap_or(0.0);
        ensure!(panics == 0.0, "{controller}: {panics} panics");
    }
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
    ensure!(
        real.ask_host("/loglevel", Some(("GET", "")))?.trim_end().ends_with("info"),
        "it logs another level at first"
    );
    // Hosts before may have logged more.
    let before = debug_lines();
    renews_its_lease(real)?;
    ensure!(
        debug_lines() == before,
        "it logs more than it was told to:\n{}",
        real.host_log(&["DEBUG"], 5).join("\n")
    );
    ensure!(set("debug")?.starts_with("HTTP/1.1 200"), "the level cannot be set");
    // The lease is renewed every two seconds, and the requests for it are logged then.
    eventually("more is logged", || {
        Ok(Look::reached_if(debug_lines() > before, || real.host_log(&[], 5).join("\n")))
    })?;
    set("info").map(drop)
}

/// Waits until the host has asked for something that it would log if it were told to.
fn renews_its_lease(real: &Real<'_>) -> anyhow::Result<()> {
    if !real.has_audit_log() {
        println!("        skipped: that a host logs no more than it is told to, no audit log");
        return Ok(());
    }
    let now = real.mark();
    eventually("the host renews its Lease", || {
        let calls = real.entries_since(now)?;
        let renewed = calls.iter().any(|entry| entry.is_write() && entry.call.resource == "leases");
        Ok(Look::reached_if(renewed, || format!("{} other calls", calls.len())))
    })
}
