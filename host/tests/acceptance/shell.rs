//! The command line beside a cluster, as people and their shells call it.

use std::{collections::BTreeSet, os::unix::fs::symlink, process::Command};

use anyhow::{Context, ensure};
use pintle_offline::documents;
use pintle_testbed::ControlPlane;
use serde_json::Value;

use crate::{kubectl::Check, repository};

/// All checks.
pub(crate) const CHECKS: [Check; 2] = [
    ("pintle rbac MODULE gives what the roles of deploy give, and kubectl takes it", role_of_a_module),
    ("kubectl pintle runs, completes and says its version", plugin),
];

/// What a command of the shell prints, with `pintle` and `kubectl` in the PATH.
fn sh(plane: &ControlPlane, script: &str) -> anyhow::Result<String> {
    let bin = plane.directory().join("commands");
    std::fs::create_dir_all(&bin)?;
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_pintle"));
    for (name, to) in [("pintle", program), ("kubectl-pintle", program), ("kubectl", plane.kubectl())] {
        let link = bin.join(name);
        if !link.exists() {
            symlink(to, link)?;
        }
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("bash")
        .args(["-eo", "pipefail", "-c", script])
        .env("PATH", format!("{}:{path}", bin.display()))
        .env("KUBECONFIG", plane.kubeconfig())
        .current_dir(&bin)
        .output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    ensure!(output.status.success() && output.stderr.is_empty(), "{script}: {}", text(&output.stderr));
    Ok(text(&output.stdout))
}

/// What a role allows, in whatever order and rules: group, resource and verb.
fn rights(role: &Value) -> BTreeSet<[String; 3]> {
    let list = |rule: &Value, field: &str| -> Vec<String> {
        let values = rule[field].as_array().into_iter().flatten();
        values.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut rights = BTreeSet::new();
    for rule in role["rules"].as_array().into_iter().flatten() {
        for group in list(rule, "apiGroups") {
            for resource in list(rule, "resources") {
                let all = list(rule, "verbs").into_iter().map(|verb| [group.clone(), resource.clone(), verb]);
                rights.extend(all);
            }
        }
    }
    rights
}

fn role_of_a_module(plane: &ControlPlane) -> anyhow::Result<()> {
    for guest in xtask::GUESTS {
        // A guest that evicts no Pods gets nothing by the flag.
        let printed = sh(plane, &format!("pintle rbac {} --pod-deletions -o json", guest.module))?;
        let path = repository().join(guest.role());
        let file = std::fs::read_to_string(&path)?;
        let documents = documents::parse(&path.display().to_string(), &file)?;
        let expected = &documents.first().context("no role in deploy")?.value;
        let printed: Value = serde_json::from_str(&printed)?;
        ensure!(printed["metadata"] == expected["metadata"], "{}: {printed:#}", guest.name);
        // More for a guest that patches: its manifest does not tell whether the patches are to be removed, which takes a finalizer.
        ensure!(rights(&printed).is_superset(&rights(expected)), "{}: {printed:#}", guest.name);
        let applied = sh(
            plane,
            &format!("pintle rbac {} | kubectl apply --server-side --dry-run=server -f -", guest.module),
        )?;
        ensure!(applied.contains("serverside-applied"), "{applied}");
    }
    Ok(())
}

fn plugin(plane: &ControlPlane) -> anyhow::Result<()> {
    let version: Value = serde_json::from_str(&sh(plane, "kubectl pintle version -o json")?)?;
    ensure!(version["client"]["version"] == env!("CARGO_PKG_VERSION"), "{version}");
    ensure!(version["cluster"]["host"]["version"] == "0.1.0", "{version}");
    ensure!(version["cluster"]["version"].as_str().is_some_and(|text| text.starts_with("v1.")), "{version}");
    let script = "kubectl_complete-pintle";
    sh(plane, &format!("kubectl pintle completion kubectl > {script} && chmod +x {script}"))?;
    let completed = sh(plane, "kubectl __complete pintle swap dark 2>/dev/null")?;
    ensure!(completed.starts_with("darkroom\n"), "{completed}");
    let completed = sh(plane, "kubectl __complete pintle swap darkroom dark 2>/dev/null")?;
    ensure!(completed.starts_with("darkroom-0.1.0\n"), "{completed}");
    Ok(())
}
