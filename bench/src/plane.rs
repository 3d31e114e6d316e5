//! A control plane with what every contestant needs: the kind of the roots, the namespace, and an account.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use pintle_testbed::{ControlPlane, Options, Source};
use serde_json::{Value, json};

use crate::{api::NAMESPACE, settings::Who};

/// The root of the repository, whose manifests the benchmark installs.
pub(crate) fn repository() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// The namespace of the accounts of FLOOR and NATIVE. Pintle has the namespace of deploy/.
const ACCOUNTS: &str = "bench-system";

/// Starts a control plane: etcd and the API server alone, or with controllers and nodes.
pub(crate) fn start(with_controllers: bool) -> Result<ControlPlane> {
    let keep = Options::default().keep;
    let options =
        Options { nodes: if with_controllers { 3 } else { 0 }, controllers: with_controllers, keep };
    let plane = Source::from_env()?.control_plane(&options, &mut |line| println!("{line}"))?;
    plane
        .audit_log()
        .context("the benchmark counts calls in the audit log, which an existing cluster does not show")?;
    apply_file(&plane, &repository().join("bench/guest/crd.yaml"))?;
    apply(&plane, &[json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})])?;
    plane.run_kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"], None)?;
    Ok(plane)
}

pub(crate) fn apply_file(plane: &ControlPlane, path: &Path) -> Result<()> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    plane.run_kubectl(&["apply", "--server-side", "--filename", "-"], Some(&text)).map(|_| ())
}

pub(crate) fn apply(plane: &ControlPlane, objects: &[Value]) -> Result<()> {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    plane.run_kubectl(&["apply", "--server-side", "--filename", "-"], Some(&list)).map(|_| ())
}

/// The user name of a contestant in the API server's audit log.
pub(crate) fn user(who: Who) -> String {
    let (namespace, name) = account(who);
    format!("system:serviceaccount:{namespace}:{name}")
}

pub(crate) fn account(who: Who) -> (&'static str, &'static str) {
    match who {
        Who::Floor => (ACCOUNTS, "floor"),
        Who::Native => (ACCOUNTS, "native"),
        Who::Pintle => ("pintle-system", "pintle"),
    }
}

/// The rights of FLOOR and NATIVE: as narrow as a careful author would choose them.
pub(crate) fn install_account(plane: &ControlPlane, who: Who) -> Result<()> {
    let (namespace, name) = account(who);
    let rule = |groups: &[&str], resources: &[&str], verbs: &[&str]| json!({"apiGroups": groups, "resources": resources, "verbs": verbs});
    let all = ["get", "list", "watch", "create", "update", "patch", "delete"];
    apply(
        plane,
        &[
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
                "rules": [
                    rule(&["bench.pintle.dev"], &["benches"], &["get", "list", "watch"]),
                    rule(&["bench.pintle.dev"], &["benches/status"], &["get", "update", "patch"]),
                    rule(&[""], &["configmaps", "services"], &all),
                    rule(&["apps"], &["deployments"], &all),
                    rule(&["networking.k8s.io"], &["ingresses"], &all),
                ],
            }),
            binding(name, name, namespace, name),
        ],
    )
}

/// A ClusterRoleBinding.
pub(crate) fn binding(name: &str, role: &str, namespace: &str, account: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    })
}
