//! What people see with Pintle's own command line.

use std::{
    env,
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::{Context, ensure};
use kit::Look;
use pintle_core::view::metadata::collectors_of;
use pintle_testbed::{ControlPlane, eventually};
use serde_json::json;

use crate::repository;

pub(crate) const NAME: &str = "the command line shows what blocks";

/// Removes Pintle from the cluster: the last thing that is done with it.
pub(crate) const REMOVES: &str = "the command line removes Pintle and leaves the roots and their children";

const NAMESPACE: &str = "commands";

struct Said {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn pintle(plane: &ControlPlane, arguments: &[&str]) -> anyhow::Result<Said> {
    let output = Command::new(env!("CARGO_BIN_EXE_pintle"))
        .args(arguments)
        .env("KUBECONFIG", plane.kubeconfig())
        .stdin(Stdio::null())
        .output()?;
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).context("no UTF-8");
    Ok(Said { code: output.status.code(), stdout: text(output.stdout)?, stderr: text(output.stderr)? })
}

/// What a command prints that succeeds.
fn printed(plane: &ControlPlane, arguments: &[&str]) -> anyhow::Result<String> {
    let said = pintle(plane, arguments)?;
    ensure!(said.code == Some(0), "pintle {}: {}{}", arguments.join(" "), said.stdout, said.stderr);
    Ok(said.stdout)
}

fn webserver(namespace: &str, name: &str, node_port: u16) -> String {
    format!(
        "{{apiVersion: my.domain/v1, kind: WebServer, metadata: {{name: {name}, namespace: {namespace}}}, \
         spec: {{image: 'nginx:1.23.1', replicas: 1, nodePort: {node_port}}}}}"
    )
}

/// With the guests and the host that ran the scenarios.
pub(crate) fn check(plane: &ControlPlane) -> anyhow::Result<()> {
    let kubectl = |arguments: &[&str]| plane.run_kubectl(arguments, None);
    kubectl(&["create", "namespace", NAMESPACE])?;
    // A Deployment of that name belongs to nobody.
    kubectl(&["create", "deployment", "taken", "-n", NAMESPACE, "--image=nginx", "--replicas=0"])?;
    plane.run_kubectl(&["apply", "-f", "-"], Some(&webserver(NAMESPACE, "taken", 30_111)))?;
    kubectl(&["wait", "-n", NAMESPACE, "--for=condition=Ready=False", "--timeout=180s", "ws/taken"])?;
    let shown = ["reconciler/webserver", "RootsReady: ", " roots fail ("];
    // The host counts the roots that fail when it gets to it.
    eventually("the status shows that roots of webserver fail", || {
        let status = pintle(plane, &["status"])?;
        let is_shown = status.code == Some(1) && shown.iter().all(|word| status.stdout.contains(word));
        Ok(Look::reached_if(is_shown, || format!("{:?} {}{}", status.code, status.stdout, status.stderr)))
    })?;
    kubectl(&["delete", "namespace", NAMESPACE, "--wait=false"])?;
    Ok(())
}

/// A Module in use that was deleted goes later, and cannot be pushed until then.
fn refuses_to_push_what_goes(plane: &ControlPlane) -> anyhow::Result<()> {
    plane.run_kubectl(&["delete", "module", "darkroom-0.1.0", "--wait=false"], None)?;
    let file = guests().join("darkroom.wasm").display().to_string();
    let said = pintle(plane, &["push", "darkroom-0.1.0", &file])?;
    ensure!(
        said.code == Some(2) && said.stderr.contains("is being deleted and is in use by Reconciler darkroom"),
        "{}{}",
        said.stdout,
        said.stderr
    );
    Ok(())
}

/// Where `cargo xtask guests` puts them.
fn guests() -> PathBuf {
    env::var_os("PINTLE_GUEST_DIR").map_or_else(|| repository().join("target/guests"), Into::into)
}

/// A View whose gateway is gone for ever, and an object that it shows, on which the garbage collector has a finalizer for the view.
fn is_held_by_nobody(plane: &ControlPlane) -> anyhow::Result<()> {
    let [foreground, _] = collectors_of("held.example.com", "things");
    let view = json!({
        "apiVersion": "pintle.dev/v1alpha1", "kind": "View",
        "metadata": {"name": "held", "finalizers": ["pintle.dev/view"]},
        "spec": {"module": "held", "view": "things", "serve": {"aggregated": {}}},
    });
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "held", "namespace": "stays", "finalizers": [foreground]},
    });
    let status = json!({"status": {"served": {
        "apiVersion": "held.example.com/v1", "kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList",
        "verbs": ["delete", "get"], "schema": {"type": "object"}, "reads": ["data"], "writes": ["data"],
        "backing": {"apiVersion": "v1", "kind": "ConfigMap", "plural": "configmaps", "namespaced": true},
    }}});
    for object in [view, object] {
        plane.run_kubectl(&["apply", "-f", "-"], Some(&object.to_string()))?;
    }
    let patch = ["patch", "view", "held", "--subresource=status", "--type=merge", "-p", &status.to_string()];
    plane.run_kubectl(&patch, None)?;
    Ok(())
}

/// The host works until it goes.
pub(crate) fn removes(plane: &ControlPlane) -> anyhow::Result<()> {
    let kubectl = |arguments: &[&str]| plane.run_kubectl(arguments, None);
    kubectl(&["create", "namespace", "stays"])?;
    plane.run_kubectl(&["apply", "-f", "-"], Some(&webserver("stays", "stays", 30_112)))?;
    kubectl(&["wait", "-n", "stays", "--for=condition=Ready", "--timeout=180s", "ws/stays"])?;
    refuses_to_push_what_goes(plane)?;
    is_held_by_nobody(plane)?;
    let planned = printed(plane, &["uninstall", "--crds", "--dry-run"])?;
    ensure!(planned.contains("namespace/pintle-system, with everything in it"), "{planned}");
    kubectl(&["get", "reconciler", "webserver"])?;
    let told = printed(plane, &["uninstall", "--crds", "--yes", "--timeout=180s"])?;
    ensure!(
        told.ends_with("customresourcedefinition.apiextensions.k8s.io/modules.pintle.dev deleted\n"),
        "{told}"
    );
    let left = kubectl(&["get", "crds,namespaces,clusterroles", "-o", "name"])?;
    for gone in ["reconcilers.pintle.dev", "modules.pintle.dev", "namespace/pintle-system", "/pintle-host"] {
        ensure!(!left.contains(gone), "{gone} is still there:\n{left}");
    }
    kubectl(&["get", "-n", "stays", "ws/stays", "deployment/stays"])?;
    let finalizers =
        kubectl(&["get", "-n", "stays", "configmap/held", "-o", "jsonpath={.metadata.finalizers}"])?;
    ensure!(finalizers.is_empty(), "nobody could delete it any more: {finalizers}");
    let again = printed(plane, &["uninstall", "--crds", "--yes"])?;
    ensure!(again.contains("there is nothing to delete"), "{again}");
    Ok(())
}
