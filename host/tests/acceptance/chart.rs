//! The chart, as Helm installs, upgrades, rolls back and removes it. Pods only pretend to run here, so the host runs beside them.

use std::{path::Path, process::Command, time::Duration};

use anyhow::{Context, ensure};
use kit::{Look, eventually};
use pintle_core::object;
use pintle_offline::documents;
use pintle_simulation::scenario::{Backend, Mark, Stop};
use pintle_testbed::{ControlPlane, output};
use serde_json::{Value, json};
use xtask::CHART;

use crate::{
    install,
    real::{Real, web_server},
    repository,
};

pub(crate) const NAME: &str =
    "helm installs, upgrades, rolls back and removes the chart, and roots and children stay as they are";

/// Where the root is.
const NAMESPACE: &str = "charted";

/// Where the release is. Its Pods must be as Pod Security asks for.
pub(crate) const RELEASE: &str = r#"{"apiVersion": "v1", "kind": "Namespace", "metadata": {
    "name": "pintle-system", "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}"#;

/// The words by which helm installs or upgrades the release.
pub(crate) const INSTALL: [&str; 6] = ["upgrade", "--install", "pintle", CHART, "--wait", "--timeout=3m"];

pub(crate) async fn check(plane: &ControlPlane) -> anyhow::Result<()> {
    if plane.audit_log().is_none() {
        println!("        skipped: {NAME}, no audit log, and a cluster that is somebody's own");
        return Ok(());
    }
    plane.run_kubectl(&["apply", "--server-side", "--filename", "-"], Some(RELEASE))?;
    let program = pintle_testbed::helm(&mut |line| println!("{line}"))?;
    let helm = |words: &[&str]| helm(&program, plane, words);

    let tagged = helm(&["template", "pintle", CHART, "--set=image.repository=pintle:0.1.0"]);
    ensure!(tagged.is_err(), "an image with two tags is rendered");
    let without = ["install", "pintle", CHART, "--dry-run=client", "--set=operator.replicas=0,image.tag=v1"];
    let notes = helm(&without)?;
    for said in ["No host runs", "The image is pintle:v1."] {
        ensure!(notes.contains(said), "the notes do not say {said:?}");
    }

    helm(&INSTALL)?;
    let real = start(plane).await?;
    real.make_namespace(NAMESPACE)?;
    let root = web_server(NAMESPACE, "web", "nginx:1.23.1");
    real.apply(&root).await?;
    let root = object::reference(&root);
    real.wait_until_ready(&root).await?;
    until_quiet(&real).await?;
    let before = seen(plane)?;

    let mark = real.mark();
    let crds = helm(&["show", "crds", CHART])?;
    plane.run_kubectl(&["apply", "--server-side", "--force-conflicts", "--filename", "-"], Some(&crds))?;
    let upgrade = [&INSTALL[..], &["--set=operator.replicas=3,gateway.enabled=true"]].concat();
    let hook = helm(&["template", "pintle", CHART, "--show-only=templates/uninstall.yaml"])?;
    for change in [&upgrade[..], &["rollback", "pintle", "--wait", "--timeout=3m"]] {
        helm(change)?;
        // As a Deployment does with its Pods.
        real.stop_host(Stop::Gracefully).await?;
        // In between, nothing is deleted that would only be marked for it.
        let refused = delete_what_needs_the_host(plane, &hook).err().map(|error| format!("{error:#}"));
        let is_refused = refused.as_ref().is_some_and(|said| said.contains("none leads"));
        ensure!(is_refused, "without a host, the Job says {refused:?}");
        real.start_host().await?;
        until_quiet(&real).await?;
    }
    let wrote = written(&real, NAMESPACE, mark).await?;
    ensure!(wrote.is_empty(), "an upgrade and its rollback wrote: {wrote:?}");
    ensure!(seen(plane)? == before, "an upgrade changed {before} to {}", seen(plane)?);

    delete_what_needs_the_host(plane, &hook)?;
    real.stop()?;
    helm(&["uninstall", "pintle", "--wait", "--timeout=3m"])?;
    let left = plane.run_kubectl(
        &[
            "get",
            "reconcilers,modules,views,clusterroles,clusterrolebindings,deployments",
            "--namespace=pintle-system",
            "--output=name",
        ],
        None,
    )?;
    let left: Vec<&str> =
        left.lines().filter(|name| name.contains("pintle") && !name.contains("/pintle-guest-")).collect();
    ensure!(left.is_empty(), "helm uninstall leaves {left:?}");

    helm(&INSTALL)?;
    let real = start(plane).await?;
    real.wait_until_ready(&root).await?;
    until_quiet(&real).await?;
    // In between nobody reconciled the root, and its status said so.
    let mut wrote = written(&real, NAMESPACE, mark).await?;
    wrote.retain(|resource| resource != "webservers/status");
    ensure!(wrote.is_empty(), "to uninstall and install again wrote: {wrote:?}");
    ensure!(seen(plane)? == before, "to uninstall and install again changed {before} to {}", seen(plane)?);
    real.stop()
}

/// Runs the host as the account of the release, with the guests.
async fn start(plane: &ControlPlane) -> anyhow::Result<Real<'_>> {
    install::apply_guests(plane)?;
    let real = Real::start(plane).await?;
    install::push_guests(&real).await?;
    Ok(real)
}

pub(crate) async fn until_quiet(real: &Real<'_>) -> anyhow::Result<()> {
    eventually("the host is quiet", async || {
        let mark = real.mark();
        real.advance(Duration::from_secs(1)).await;
        let calls = real.calls_since(mark).await?.unwrap_or_default();
        Ok(Look::reached_if(calls.is_empty(), || format!("{calls:?}")))
    })
    .await
}

/// What of the roots and children of a namespace the host has written since then.
pub(crate) async fn written(real: &Real<'_>, namespace: &str, mark: Mark) -> anyhow::Result<Vec<String>> {
    let calls = real.calls_since(mark).await?.unwrap_or_default().into_iter();
    let ours = calls.filter(|call| call.namespace.as_deref() == Some(namespace) && call.resource != "events");
    Ok(ours.map(|call| call.resource).collect())
}

/// Which root, children and CRDs there are, and how often each was changed.
fn seen(plane: &ControlPlane) -> anyhow::Result<String> {
    let print = r#"--output=jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.metadata.generation}{"\n"}{end}"#;
    let namespace = format!("--namespace={NAMESPACE}");
    let ours = plane.run_kubectl(&["get", "webservers,deployments,services", &namespace, print], None)?;
    Ok(ours + &plane.run_kubectl(&["get", "crds", print], None)?)
}

/// Does what the Job of the chart does before anything else is deleted, with its words and as its account.
fn delete_what_needs_the_host(plane: &ControlPlane, hook: &str) -> anyhow::Result<()> {
    let objects: Vec<Value> =
        documents::parse("the hook", hook)?.into_iter().map(|document| document.value).collect();
    let (jobs, others): (Vec<Value>, Vec<Value>) =
        objects.into_iter().partition(|object| object["kind"] == "Job");
    let others = json!({"apiVersion": "v1", "kind": "List", "items": others}).to_string();
    plane.run_kubectl(&["apply", "--server-side", "--filename", "-"], Some(&others))?;
    let account = "--as=system:serviceaccount:pintle-system:pintle-uninstall";
    pintle_testbed::eventually("the account of the Job has its rights", || {
        let may = plane.run_kubectl(&["auth", "can-i", "delete", "modules.pintle.dev", account], None);
        Ok(Look::reached_if(may.is_ok(), || "it has not".into()))
    })?;
    let job = jobs.first().context("the hook has no Job")?;
    let words = job.pointer("/spec/template/spec/containers/0/args").and_then(Value::as_array);
    let words = words.into_iter().flatten().filter_map(Value::as_str);
    let kubeconfig = plane.kubeconfig_for_service_account("pintle-system", "pintle-uninstall")?;
    let mut pintle = Command::new(env!("CARGO_BIN_EXE_pintle"));
    output(pintle.args(words).arg("--kubeconfig").arg(kubeconfig), None)?;
    plane.run_kubectl(&["delete", "--filename", "-"], Some(&others)).map(drop)
}

pub(crate) fn helm(program: &Path, plane: &ControlPlane, words: &[&str]) -> anyhow::Result<String> {
    let mut helm = Command::new(program);
    helm.args(words).arg("--namespace=pintle-system").current_dir(repository());
    for home in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
        helm.env(home, plane.directory().join("helm"));
    }
    output(helm.env("KUBECONFIG", plane.kubeconfig()), None)
}
