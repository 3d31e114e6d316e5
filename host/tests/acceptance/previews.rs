//! The commands `plan`, `inspect` and `record` on a real control plane. Scenarios compare what a plan says with what a swap then does.

use std::process::Command;

use anyhow::{Context, ensure};
use kit::{Look, modules};
use pintle_testbed::{ControlPlane, eventually};

use crate::{install, real::Real, repository};

pub(crate) const NAME: &str = "plan, inspect and record say what is there and what would change";

pub(crate) async fn check(plane: &ControlPlane, real: &Real<'_>) -> anyhow::Result<()> {
    let outcome = commands(plane);
    // They leave one that is suspended.
    plane.run_kubectl(&["delete", "reconciler/darkroom", "--ignore-not-found", "--timeout=180s"], None)?;
    install::push_guests(real).await?;
    outcome
}

const ROOT: &str = r#"
apiVersion: v1
kind: Namespace
metadata: {name: previewed}
---
apiVersion: deployments.example.com/v1alpha1
kind: Darkroom
metadata: {name: seen, namespace: previewed}
spec: {source: {type: WebFolder, baseUrl: "https://example.com"}, subDomains: [seen-before]}
"#;

/// The commands say the same of a root as the code that they rest on, with the exit codes that scripts rely on.
fn commands(plane: &ControlPlane) -> anyhow::Result<()> {
    let sample = repository().join("deploy/samples/reconciler-darkroom.yaml");
    let sample = sample.to_str().context("the repository's path is not UTF-8")?;
    plane.run_kubectl(&["apply", "--server-side", "-f", sample], None)?;
    plane.run_kubectl(&["apply", "--server-side", "-f", "-"], Some(ROOT))?;
    plane.run_kubectl(
        &["-n", "previewed", "wait", "dr/seen", "--for=condition=Ready", "--timeout=180s"],
        None,
    )?;
    let pintle = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pintle"));
        command.args(arguments).env("KUBECONFIG", plane.kubeconfig());
        let ended = command.output().context("running pintle")?;
        let (said, wrong) = (String::from_utf8(ended.stdout)?, String::from_utf8(ended.stderr)?);
        anyhow::Ok((ended.status, said, wrong))
    };
    let run = |arguments: &[&str], wanted: i32| {
        let (status, said, wrong) = pintle(arguments)?;
        ensure!(status.code() == Some(wanted), "{arguments:?}: {status}\n{said}\n{wrong}");
        anyhow::Ok(said)
    };
    let guest = modules::guests().join("darkroom.wasm");
    let guest = guest.to_str().context("the path of the guests is not UTF-8")?;
    // The status of a root that is ready may still be completed.
    eventually("a plan finds nothing to do", || {
        let (status, said, wrong) = pintle(&["plan", "darkroom"])?;
        let is_so = status.code() == Some(0) && said.contains("1 root: 1 unchanged");
        Ok(Look::reached_if(is_so, || format!("{status}\n{said}\n{wrong}")))
    })?;
    run(&["plan", "darkroom", guest, "-n", "previewed", "-o", "summary"], 0)?;
    run(&["plan", "darkroom", "--for", "previewed/seen", "-o", "json", "--server"], 0)?;
    run(&["plan", "no-such"], 2)?;
    run(&["plan", "darkroom", "no-such"], 2)?;
    let said = run(&["inspect", "dr/seen", "-n", "previewed", "--diff"], 0)?;
    ensure!(said.is_empty(), "{said}");
    let said = run(&["inspect", "darkroom/seen", "-n", "previewed"], 0)?;
    ensure!(said.contains("request:") && said.contains("answer:"), "{said}");
    let case = plane.directory().join("recorded.yaml");
    std::fs::write(&case, run(&["record", "darkrooms/seen", "-n", "previewed"], 0)?)?;
    run(&["test", guest, case.to_str().context("a path")?], 0)?;
    // What differs is shown, and says so by the exit code.
    let suspend = [
        "patch",
        "reconciler",
        "darkroom",
        "--type=merge",
        "-p",
        r#"{"spec":{"suspend":true}}"#,
        "--output=jsonpath={.metadata.generation}",
    ];
    let generation = plane.run_kubectl(&suspend, None)?;
    // Until the host knows it, it puts right what somebody edits.
    let known = format!("--for=jsonpath={{.status.observedGeneration}}={}", generation.trim());
    plane.run_kubectl(&["wait", "reconciler/darkroom", &known, "--timeout=180s"], None)?;
    plane.run_kubectl(
        &["-n", "previewed", "patch", "configmap/seen", "--type=merge", "-p", r#"{"data":{"PORT":"1"}}"#],
        None,
    )?;
    let said = run(&["plan", "darkroom"], 1)?;
    ensure!(said.contains("-  PORT: \"1\"") && said.contains("data.PORT"), "{said}");
    plane.run_kubectl(&["delete", "darkroom/seen", "-n", "previewed"], None)?;
    plane.run_kubectl(&["delete", "namespace/previewed"], None)?;
    Ok(())
}
