//! Installing Pintle from deploy/, as docs/install.md tells users to.

use std::fs;

use anyhow::{Context, bail};
use kit::{
    Look, eventually,
    host::{self, Host},
};
use pintle_api::module_objects;
use pintle_offline::documents;
use pintle_simulation::scenario::{Backend, ModuleFile, Stop};
use pintle_testbed::ControlPlane;
use serde_json::json;
use xtask::{GUESTS, Guest, RAW};

use crate::{
    modules,
    real::{Real, reconciler},
    repository,
};

/// What the host may do with the kinds that scenarios bring; a user would let `pintle rbac` print it.
const ROLE: &str = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: pintle-guest-acceptance
  labels: {pintle.dev/aggregate-to-host: "true"}
rules:
  - apiGroups: [acceptance.pintle.dev]
    resources: ["*"]
    verbs: [get, list, watch, create, patch, delete, update]
  - apiGroups: [raw.example.com]
    resources: ["*"]
    verbs: [get, list, watch, create, patch, delete, update]
  - apiGroups: [""]
    resources: [serviceaccounts, persistentvolumeclaims]
    verbs: [get, list, watch, create, patch, delete]
  - apiGroups: [apps, batch, autoscaling]
    resources: [statefulsets, jobs, horizontalpodautoscalers]
    verbs: [get, list, watch, create, patch, delete]
"#;

pub(crate) fn apply_manifests(plane: &ControlPlane) -> anyhow::Result<()> {
    apply_files(plane, &["deploy/install.yaml"])?;
    apply_guests(plane)
}

pub(crate) fn apply_files(plane: &ControlPlane, paths: &[&str]) -> anyhow::Result<()> {
    for path in paths {
        let path = repository().join(path);
        let path = path.to_str().context("the repository's path is not UTF-8")?;
        plane.run_kubectl(&["apply", "--server-side", "--filename", path], None)?;
    }
    Ok(())
}

/// What guests need besides what is installed: their CRDs and roles.
pub(crate) fn apply_guests(plane: &ControlPlane) -> anyhow::Result<()> {
    apply_files(plane, &["deploy/crds", "deploy/rbac", "host/tests/raw/crd.yaml"])?;
    plane.run_kubectl(&["apply", "--server-side", "--filename", "-"], Some(ROLE))?;
    plane.run_kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=180s"], None)?;
    wait_for_the_roles(plane)
}

/// Waits until the host may list a kind of each role that is aggregated into its own. A controller does that in its own time, and a host
/// that comes before is refused, which the audit log keeps.
fn wait_for_the_roles(plane: &ControlPlane) -> anyhow::Result<()> {
    let guests = GUESTS.iter().chain([&RAW]).map(|guest| guest.crd);
    for kind in guests.chain(["reconcilers.pintle.dev", "things.acceptance.pintle.dev"]) {
        let (resource, group) = kind.split_once('.').context("a kind without a group")?;
        // `kubectl auth can-i` takes no kind that is not served yet.
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {
                "user": "system:serviceaccount:pintle-system:pintle",
                "resourceAttributes": {"verb": "list", "group": group, "resource": resource},
            },
        });
        let ask = ["create", "--filename", "-", "--output", "jsonpath={.status.allowed}"];
        pintle_testbed::eventually(format!("the host may list {kind}"), || {
            let allowed = plane.run_kubectl(&ask, Some(&review.to_string()))?;
            Ok(Look::reached_if(allowed.trim() == "true", || format!("allowed: {allowed}")))
        })?;
    }
    Ok(())
}

/// A host that comes before what it needs is not ready, says what to apply, and goes on by itself.
pub(crate) async fn a_host_waits_for_its_crds(plane: &ControlPlane) -> anyhow::Result<()> {
    // As administrator: its own account is not there yet either.
    let log = plane.directory().join("early-host.log");
    let mut host = Host::start(plane.kubeconfig(), &log)?;
    eventually("a host without its CRDs says what to apply", async || {
        if let Look::Reached(said) = host.ready()? {
            bail!("it says that it is ready, without its CRDs: {said}");
        }
        let lines = host::tail(&log, &["deploy/install.yaml"], 1);
        let is_said = lines.iter().any(|line| line.contains("WARN") || line.contains("ERROR"));
        Ok(Look::reached_if(is_said, || host::tail(&log, &[], 20).join("\n")))
    })
    .await?;
    apply_manifests(plane)?;
    eventually("it goes on by itself", async || host.ready())
        .await
        .with_context(|| host::tail(&log, &[], 20).join("\n"))?;
    host.stop(Stop::Gracefully)
}

/// Uploads the guests, and hangs each on its kind.
pub(crate) async fn push_guests(real: &Real<'_>) -> anyhow::Result<()> {
    let guests: Vec<Guest> = GUESTS.into_iter().chain([RAW]).collect();
    for guest in &guests {
        let bytes = modules::resolve(&ModuleFile::of_guest(guest.name))?;
        let digest = pintle_engine::Digest::of(&bytes).to_string();
        for object in module_objects(guest.module, &bytes, &digest) {
            real.apply(&object).await?;
        }
    }
    for guest in &guests {
        hang(guest.reconciler, real).await?;
    }
    for guest in &guests {
        let ready = real.wait_until_ready(&reconciler(guest.name)).await;
        ready.with_context(|| real.host_log(&[], 20).join("\n"))?;
    }
    Ok(())
}

/// Hangs a guest of this repository on its kind: the Reconciler of this file. Its calls have the most time that there is: on a machine that
/// does much else, one would now and then be late for the default, and what the root says of that is a write that scenarios count.
pub(crate) async fn hang(reconciler: &str, real: &Real<'_>) -> anyhow::Result<()> {
    let path = repository().join(reconciler);
    for document in documents::parse(&path.display().to_string(), &fs::read_to_string(&path)?)? {
        let mut reconciler = document.value;
        reconciler["spec"]["limits"]["timeoutMilliseconds"] = 10_000.into();
        real.apply(&reconciler).await?;
    }
    Ok(())
}
