//! What the host says of itself over HTTP.

use anyhow::{Context, ensure};
use pintle_simulation::scenario::Backend;

use crate::real::Real;

pub(crate) const NAME: &str = "the host tells Prometheus what it does, and logs as much as it is told to";

/// With the host that ran the scenarios.
pub(crate) fn check(real: &Real<'_>) -> anyhow::Result<()> {
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

    let set = |level: &str| real.ask_host("/loglevel", Some(("PUT", level)));
    let debug_lines = || real.host_log(&["DEBUG"], usize::MAX).len();
    let refused = set("loud")?;
    ensure!(refused.starts_with("HTTP/1.1 400") && refused.contains("is no level"), "{refused}");
    ensure!(
        real.ask_host("/loglevel", Some(("GET", "")))?.trim_end().ends_with("info"),
        "it logs another level at first"
    );
    ensure!(
        debug_lines() == 0,
        "it logs more than it was told to:\n{}",
        real.host_log(&["DEBUG"], 5).join("\n")
    );
    ensure!(set("debug")?.starts_with("HTTP/1.1 200"), "the level cannot be set");
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    // The lease is renewed every two seconds, and the requests for it are logged then.
    while debug_lines() == 0 {
        ensure!(std::time::Instant::now() < until, "nothing more is logged");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    set("info").map(|_| ())
}
