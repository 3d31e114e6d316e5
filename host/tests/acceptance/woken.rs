//! Whom a change wakes, as the host's own metrics count it.

use std::{fmt::Write as _, time::Duration};

use anyhow::{Context, ensure};
use pintle_testbed::ControlPlane;

use crate::real::Real;

pub(crate) const NAME: &str = "a change wakes those who need what has changed, and nobody else";

/// How many roots of each kind there are.
const ROOTS: usize = 20;

const NAMESPACE: &str = "woken";

/// How long nothing must have happened: several times what a change takes to reach a root.
const QUIET: Duration = Duration::from_secs(3);

const DEPLOYMENT: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: woken, namespace: woken}
spec:
  selector: {matchLabels: {app: woken}}
  template: {metadata: {labels: {app: woken}}, spec: {containers: [{name: app, image: "nginx:1.23.1"}]}}
"#;

fn objects() -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    for n in 0..2 * ROOTS {
        let meta = format!("metadata: {{name: c{n}, namespace: {NAMESPACE}}}");
        writeln!(text, "---\n{{apiVersion: v1, kind: ConfigMap, {meta}, data: {{k: v}}}}")?;
    }
    for n in 0..ROOTS {
        let meta = format!("metadata: {{name: r{n}, namespace: {NAMESPACE}}}");
        let spec = format!("{{configmap: c{n}, podSelector: {{app: none}}}}");
        writeln!(text, "---\n{{apiVersion: magalix.com/v1, kind: ConfigMonitor, {meta}, spec: {spec}}}")?;
        let spec = format!(
            "{{source: {{type: WebFolder, baseUrl: 'https://example.com'}}, subDomains: [woken-{n}]}}"
        );
        writeln!(
            text,
            "---\n{{apiVersion: deployments.example.com/v1alpha1, kind: Darkroom, {meta}, spec: {spec}}}"
        )?;
    }
    Ok(text)
}

pub(crate) async fn check(plane: &ControlPlane, real: &Real<'_>) -> anyhow::Result<()> {
    let kubectl = |arguments: &[&str]| plane.run_kubectl(&[&["-n", NAMESPACE], arguments].concat(), None);
    real.wait_until_quiet().await?;
    plane.run_kubectl(&["create", "namespace", NAMESPACE], None)?;
    plane.run_kubectl(&["apply", "--server-side", "-f", "-"], Some(&objects()?))?;
    kubectl(&["wait", "--all", "cfgmon,dr", "--for=condition=Ready", "--timeout=120s"])?;
    let mut before = passes(real)?;
    loop {
        tokio::time::sleep(QUIET).await;
        match passes(real)? {
            now if now == before => break,
            now => before = now,
        }
    }

    // A ConfigMap that nobody names.
    kubectl(&["patch", "configmap/c30", "-p", r#"{"data":{"k":"w"}}"#])?;
    tokio::time::sleep(QUIET).await;
    ensure!(
        passes(real)? == before,
        "a ConfigMap that nobody names: {before:?} and then {:?} passes",
        passes(real)?
    );

    // One that is named: a pass that holds the change back until it has settled, one that tells it, and one after the status.
    kubectl(&["patch", "configmap/c7", "-p", r#"{"data":{"k":"w"}}"#])?;
    tokio::time::sleep(2 * QUIET).await;
    let after = passes(real)?;
    let woken = after.0 - before.0;
    ensure!(
        after.1 == before.1 && (1..=4).contains(&woken),
        "one that is named: {woken} passes over ConfigMonitors"
    );

    // A Darkroom: its own claims are known to those alone who claim the same hosts.
    kubectl(&["annotate", "dr/r7", "example.com/note=a"])?;
    tokio::time::sleep(QUIET).await;
    let woken = passes(real)?.1 - after.1;
    ensure!((1..=3).contains(&woken), "a Darkroom: {woken} passes over Darkrooms");

    // What is written for a change is counted too.
    plane.run_kubectl(&["apply", "--server-side", "-f", "-"], Some(DEPLOYMENT))?;
    let restarts = |edit: &str, strategy: &str, count: u32| {
        let spec = format!(r#"{{"spec":{{"podSelector":{{"app":"woken"}},"strategy":"{strategy}"}}}}"#);
        kubectl(&["patch", "cfgmon/r3", "--type=merge", "-p", &spec])?;
        kubectl(&["wait", "cfgmon/r3", "--for=jsonpath={.status.matchedPods}=1", "--timeout=30s"])?;
        kubectl(&["wait", "cfgmon/r3", "--for=condition=Ready", "--timeout=30s"])?;
        kubectl(&["patch", "configmap/c3", "-p", &format!(r#"{{"data":{{"k":"{edit}"}}}}"#)])?;
        let count = format!("--for=jsonpath={{.status.restartCount}}={count}");
        kubectl(&["wait", "cfgmon/r3", &count, "--timeout=30s"])
    };
    restarts("w", "RollingRestart", 1)?;
    kubectl(&["rollout", "status", "deployment/woken", "--timeout=30s"])?;
    restarts("x", "Evict", 2)?;
    tokio::time::sleep(QUIET).await;
    let metrics = real.ask_host("/metrics", None)?;
    for verb in ["patch", "evict"] {
        let (controller, verb) = (r#"controller="configmonitor""#, format!(r#"verb="{verb}""#));
        let is_counted = |line: &str| {
            line.starts_with("pintle_api_requests_total{")
                && line.contains(controller)
                && line.contains(&verb)
        };
        ensure!(metrics.lines().any(is_counted), "{verb} is not counted");
    }
    plane.run_kubectl(&["delete", "namespace", NAMESPACE, "--wait=false"], None)?;
    Ok(())
}

/// The passes over ConfigMonitors and over Darkrooms so far, however they ended.
fn passes(real: &Real<'_>) -> anyhow::Result<(u64, u64)> {
    let metrics = real.ask_host("/metrics", None)?;
    let of = |controller: &str| {
        let series = format!(r#"controller_runtime_reconcile_total{{controller="{controller}","#);
        let counts = metrics.lines().filter(|line| line.starts_with(&series));
        let counts = counts.map(|line| {
            let (_, count) = line.rsplit_once(' ').context("a series without a value")?;
            Ok(count.parse::<u64>()?)
        });
        counts.sum::<anyhow::Result<u64>>()
    };
    Ok((of("configmonitor")?, of("darkroom")?))
}
