//! Installing Pintle from deploy/, as the README tells users to.

use std::{
    fs,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use pintle_api::module_objects;
use pintle_offline::documents;
use pintle_simulation::scenario::{Backend, ModuleFile, Stop};
use pintle_testbed::ControlPlane;
use pintle_wit::ObjectRef;
use roster::GUESTS;
use serde_json::Value;

use crate::{
    host::{self, Host},
    modules,
    real::Real,
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
"#;

pub(crate) fn apply_manifests(plane: &ControlPlane) -> anyhow::Result<()> {
    for path in ["deploy/install.yaml", "deploy/crds", "deploy/rbac"] {
        let path = repository().join(path);
        let path = path.to_str().context("the repository's path is not UTF-8")?;
        plane.run_kubectl(&["apply", "--server-side", "--filename", path], None)?;
    }
    plane.run_kubectl(&["apply", "--server-side", "--filename", "-"], Some(ROLE))?;
    plane.run_kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"], None)?;
    Ok(())
}

/// A host that comes before what it needs is not ready, says what to apply, and goes on by itself.
pub(crate) async fn a_host_waits_for_its_crds(plane: &ControlPlane) -> anyhow::Result<()> {
    // As administrator: its own account is not there yet either.
    let log = plane.directory().join("early-host.log");
    let mut host = Host::start(plane.kubeconfig(), &log)?;
    let until = Instant::now() + Duration::from_secs(20);
    while !host::tail(&log, &["deploy/install.yaml"], 1)
        .iter()
        .any(|line| line.contains("WARN") || line.contains("ERROR"))
    {
        ensure!(
            Instant::now() < until,
            "it does not say what to apply:\n{}",
            host::tail(&log, &[], 20).join("\n")
        );
        ensure!(!host.is_ready()?, "it says that it is ready, without its CRDs");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    ensure!(!host.is_ready()?, "it says that it is ready, without its CRDs");
    apply_manifests(plane)?;
    let until = Instant::now() + Duration::from_secs(40);
    while !host.is_ready()? {
        ensure!(Instant::now() < until, "it does not go on:\n{}", host::tail(&log, &[], 20).join("\n"));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    host.stop(Stop::Gracefully)
}

/// Uploads the guests, and hangs each on its kind.
pub(crate) async fn push_guests(real: &Real<'_>) -> anyhow::Result<()> {
    for guest in GUESTS {
        let bytes = modules::resolve(&ModuleFile::of_guest(guest.name))?;
        let digest = pintle_engine::Digest::of(&bytes).to_string();
        for object in module_objects(guest.module, &bytes, &digest) {
            real.apply(&object).await?;
        }
    }
    for guest in GUESTS {
        hang(guest.name, real).await?;
    }
    for guest in GUESTS {
        wait_until_ready(real, guest.name).await?;
    }
    Ok(())
}

/// Hangs a guest of this repository on its kind.
pub(crate) async fn hang(name: &str, real: &Real<'_>) -> anyhow::Result<()> {
    let path = repository().join(format!("deploy/samples/reconciler-{name}.yaml"));
    for document in documents::parse(&path.display().to_string(), &fs::read_to_string(&path)?)? {
        real.apply(&document.value).await?;
    }
    Ok(())
}

async fn wait_until_ready(real: &Real<'_>, name: &str) -> anyhow::Result<()> {
    let reconciler = ObjectRef {
        api_version: "pintle.dev/v1alpha1".into(),
        kind: "Reconciler".into(),
        namespace: None,
        name: name.into(),
    };
    let until = real.mark().0 + Duration::from_secs(30);
    loop {
        let live = real.get(&reconciler).await?.unwrap_or_default();
        let conditions =
            live.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
        if conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True") {
            return Ok(());
        }
        let log = real.host_log(&[], 20).join("\n");
        ensure!(real.mark().0 < until, "Reconciler {name} is not Ready: {}\n{log}", Value::from(conditions));
        real.advance(Duration::from_millis(100)).await;
    }
}
