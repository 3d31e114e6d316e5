//! Whom a change wakes, as the host's own metrics count it.

use std::fmt::Write as _;

use anyhow::ensure;
use kit::{
    Look, eventually,
    host::{or_error, sum_of},
};
use pintle_testbed::ControlPlane;

use crate::real::Real;

pub(crate) const NAME: &str = "a change wakes those who need what has changed, and nobody else";

/// How many roots of each kind there are.
const ROOTS: usize = 20;

const NAMESPACE: &str = "woken";

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
    real.make_namespace(NAMESPACE)?;
    plane.run_kubectl(&["apply", "--server-side", "-f", "-"], Some(&objects()?))?;
    kubectl(&["wait", "--all", "cfgmon,dr", "--for=condition=Ready", "--timeout=180s"])?;
    let before = at_rest(real).await?;

    // A ConfigMap that nobody names, and then one that is named: the host hears of them in this order. What it names wakes its monitor
    // alone, a few times: to hold the change back until it has settled, to tell it, and after the status.
    kubectl(&["patch", "configmap/c30", "-p", r#"{"data":{"k":"w"}}"#])?;
    kubectl(&["patch", "configmap/c7", "-p", r#"{"data":{"k":"w"}}"#])?;
    let after = passes_since(real, before, (1.0, 0.0)).await?;
    ensure!(few(before.0, after.0), "of ConfigMaps: {before:?} and then {after:?} passes");
    ensure!(few(before.1, after.1), "of ConfigMaps: {before:?} and then {after:?} passes over Darkrooms");

    // Two Darkrooms, one after the other: the claims of each are known to those alone who claim the same hosts.
    let before = after;
    kubectl(&["annotate", "dr/r7", "example.com/note=a"])?;
    kubectl(&["annotate", "dr/r8", "example.com/note=a"])?;
    let after = passes_since(real, before, (0.0, 2.0)).await?;
    ensure!(few(before.1, after.1), "of two Darkrooms: {before:?} and then {after:?} passes");

    // What is written for a change is counted too.
    plane.run_kubectl(&["apply", "--server-side", "-f", "-"], Some(DEPLOYMENT))?;
    let restarts = |edit: &str, strategy: &str, count: u32| {
        let spec = format!(r#"{{"spec":{{"podSelector":{{"app":"woken"}},"strategy":"{strategy}"}}}}"#);
        kubectl(&["patch", "cfgmon/r3", "--type=merge", "-p", &spec])?;
        kubectl(&["wait", "cfgmon/r3", "--for=jsonpath={.status.matchedPods}=1", "--timeout=180s"])?;
        kubectl(&["wait", "cfgmon/r3", "--for=condition=Ready", "--timeout=180s"])?;
        kubectl(&["patch", "configmap/c3", "-p", &format!(r#"{{"data":{{"k":"{edit}"}}}}"#)])?;
        let count = format!("--for=jsonpath={{.status.restartCount}}={count}");
        kubectl(&["wait", "cfgmon/r3", &count, "--timeout=180s"])
    };
    restarts("w", "RollingRestart", 1)?;
    kubectl(&["rollout", "status", "deployment/woken", "--timeout=180s"])?;
    restarts("x", "Evict", 2)?;
    for verb in ["patch", "evict"] {
        eventually(format!("{verb} is counted"), async || {
            or_error(real.ask_host("/metrics").map(|metrics| {
                let (controller, verb) = (r#"controller="configmonitor""#, format!(r#"verb="{verb}""#));
                let requests = metrics.lines().filter(|line| line.starts_with("pintle_api_requests_total{"));
                let own: Vec<&str> = requests.filter(|line| line.contains(controller)).collect();
                Look::reached_if(own.iter().any(|line| line.contains(&verb)), || own.join("\n"))
            }))
        })
        .await?;
    }
    plane.run_kubectl(&["delete", "namespace", NAMESPACE, "--wait=false"], None)?;
    Ok(())
}

/// Whether so many more passes are fewer than there would be if every root had been woken.
fn few(before: f64, after: f64) -> bool {
    after - before < ROOTS as f64
}

/// The passes over ConfigMonitors and over Darkrooms so far, however they ended, once no root waits for one and no further pass is made
/// meanwhile.
async fn at_rest(real: &Real<'_>) -> anyhow::Result<(f64, f64)> {
    passes_since(real, (0.0, 0.0), (1.0, 1.0)).await
}

/// As [`at_rest`], once there are so many more passes than before.
async fn passes_since(real: &Real<'_>, before: (f64, f64), more: (f64, f64)) -> anyhow::Result<(f64, f64)> {
    let mut last = None;
    eventually(format!("{more:?} more passes than {before:?}, and no root waits"), async || {
        or_error(passes(real).map(|(now, waiting)| {
            let is_so = now.0 >= before.0 + more.0 && now.1 >= before.1 + more.1;
            let is_at_rest = waiting == 0.0 && last.replace(now) == Some(now);
            match is_so && is_at_rest {
                true => Look::Reached(now),
                false => Look::NotYet(format!("{now:?} passes, {waiting} roots wait")),
            }
        }))
    })
    .await
}

/// The passes over ConfigMonitors and over Darkrooms, and how many roots wait for one.
fn passes(real: &Real<'_>) -> anyhow::Result<((f64, f64), f64)> {
    let metrics = real.ask_host("/metrics")?;
    let of = |controller: &str| {
        sum_of(&metrics, &format!(r#"controller_runtime_reconcile_total{{controller="{controller}","#))
    };
    Ok(((of("configmonitor")?, of("darkroom")?), sum_of(&metrics, "workqueue_depth{")?))
}
