//! A control plane with what every contestant needs: the kind of the roots, the namespace, and an account.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, Result, ensure};
use pintle_testbed::{ControlPlane, Options, Source, output};
use serde_json::{Value, json};

use crate::{
    api::NAMESPACE,
    settings::{Part, Who, built},
};

/// The namespace of the accounts in accounts.yaml.
pub(crate) const ACCOUNTS: &str = "bench-system";

/// The namespace and name of a contestant's account.
pub(crate) fn account(who: Who, part: Part) -> (&'static str, &'static str) {
    match (who, part) {
        (Who::Floor, _) => (ACCOUNTS, "floor"),
        (Who::Native, _) => (ACCOUNTS, "native"),
        (Who::Before | Who::Pintle, Part::Operator) => ("pintle-system", "pintle"),
        (Who::Before | Who::Pintle, Part::Views) => ("pintle-system", "pintle-gateway"),
    }
}

/// Starts a control plane: etcd and the API server alone, and with controllers for views.
pub(crate) fn start(part: Part) -> Result<ControlPlane> {
    let options = Options { nodes: 0, controllers: part == Part::Views, ..Options::default() };
    let plane = Source::from_env()?.control_plane(&options, &mut |line| println!("{line}"))?;
    for file in ["bench/accounts.yaml", "bench/guest/crd.yaml"] {
        apply_file(&plane, file)?;
    }
    apply(&plane, &[json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})])?;
    wait_crds(&plane)?;
    Ok(plane)
}

/// Installs what the host or the gateway needs, from deploy/. It runs beside the control plane, with the same account and roles.
pub(crate) fn install(plane: &ControlPlane, files: &[&str]) -> Result<()> {
    for file in files {
        apply_file(plane, file)?;
    }
    let scale = ["scale", "deployment", "--all", "--namespace=pintle-system", "--replicas=0"];
    plane.run_kubectl(&scale, None)?;
    wait_crds(plane)
}

/// Gives the host the role of its guest. Without kube-controller-manager nobody fills an aggregated ClusterRole, so the roles that it would
/// combine are bound one by one.
pub(crate) fn bind_roles(plane: &ControlPlane, program: &Path) -> Result<()> {
    let role = output(Command::new(program).arg("rbac").arg(built("../guests/bench.wasm")?), None)?;
    apply_text(plane, &role)?;
    let selector = "--selector=pintle.dev/aggregate-to-host=true";
    let roles = plane.run_kubectl(&["get", "clusterroles", selector, "--output=name"], None)?;
    let (namespace, account) = account(Who::Pintle, Part::Operator);
    let names = roles.lines().filter_map(|line| line.rsplit('/').next());
    let bindings = names.map(|role| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": format!("bench-{role}")},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
        })
    });
    let bindings: Vec<Value> = bindings.collect();
    ensure!(!bindings.is_empty(), "deploy/ has no role for the host");
    apply(plane, &bindings)
}

/// Applies a file of the repository.
pub(crate) fn apply_file(plane: &ControlPlane, file: &str) -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
    apply_text(plane, &fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?)
}

pub(crate) fn apply(plane: &ControlPlane, objects: &[Value]) -> Result<()> {
    apply_text(plane, &json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string())
}

fn apply_text(plane: &ControlPlane, text: &str) -> Result<()> {
    plane.run_kubectl(&["apply", "--server-side", "--filename", "-"], Some(text)).map(drop)
}

pub(crate) fn wait_crds(plane: &ControlPlane) -> Result<()> {
    let wait = ["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"];
    plane.run_kubectl(&wait, None).map(drop)
}
