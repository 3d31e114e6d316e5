//! Installing Pintle from deploy/, as the README tells users to.

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
use pintle_wit::ObjectRef;
use roster::GUESTS;

use crate::{modules, real::Real, repository};

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
    plane.run_kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=180s"], None)?;
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
    real.wait_until_ready(&reconciler).await.with_context(|| real.host_log(&[], 20).join("\n"))
}
