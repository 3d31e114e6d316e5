//! What people see who swap modules, or delete one that is in use.

use std::{
    path::Path,
    process::{Command, Output},
};

use anyhow::{Context, ensure};
use pintle_engine::fixtures;
use pintle_testbed::ControlPlane;
use serde_json::{Value, json};

use crate::kubectl::Check;

/// All of them.
pub(crate) const CHECKS: [Check; 1] =
    [("pintle swap --wait says what a swap does to the roots, and kubectl delete why a module stays", swaps)];

const GROUP_VERSION: &str = "acceptance.pintle.dev/v1";

fn objects() -> Vec<Value> {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "swappeds.acceptance.pintle.dev"},
        "spec": {
            "group": "acceptance.pintle.dev", "scope": "Namespaced",
            "names": {"plural": "swappeds", "kind": "Swapped"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": open}}},
            }],
        },
    });
    let namespaces = ["swaps-one", "swaps-two"];
    let namespace = |name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let objects = namespaces.map(namespace).into_iter().chain([crd]);
    objects.collect()
}

fn roots_and_reconciler() -> Vec<Value> {
    let root = |namespace| {
        json!({"apiVersion": GROUP_VERSION, "kind": "Swapped",
            "metadata": {"name": "root", "namespace": namespace}, "spec": {}})
    };
    let reconciler = json!({
        "apiVersion": "pintle.dev/v1alpha1", "kind": "Reconciler", "metadata": {"name": "swaps"},
        "spec": {
            "for": {"apiVersion": GROUP_VERSION, "kind": "Swapped"}, "module": "swaps-1",
            "grants": {"children": [{"apiVersion": "v1", "kinds": ["ConfigMap"]}]},
        },
    });
    vec![root("swaps-one"), root("swaps-two"), reconciler]
}

fn swaps(plane: &ControlPlane) -> anyhow::Result<()> {
    let apply = |objects: Vec<Value>| {
        for object in objects {
            plane.run_kubectl(&["apply", "-f", "-"], Some(&object.to_string()))?;
        }
        anyhow::Ok(())
    };
    apply(objects())?;
    plane.run_kubectl(
        &["wait", "--for=condition=Established", "crd/swappeds.acceptance.pintle.dev", "--timeout=180s"],
        None,
    )?;
    let manifest = fixtures::manifest("swaps", GROUP_VERSION, "Swapped", &["v1/ConfigMap"]);
    let answers = |value: &str| {
        let child = json!({"id": "made", "object": {"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "made"}, "data": {"is": value}}});
        let answer = json!({"apiVersion": "guest.pintle.dev/v1", "children": [child]});
        fixtures::answers(&manifest, &answer.to_string())
    };
    // The same answers under another digest: a custom section, called `note` and empty.
    let padded = |bytes: Vec<u8>| [bytes, vec![0, 5, 4, b'n', b'o', b't', b'e']].concat();
    let traps = fixtures::traps(&manifest);
    let modules = [
        ("swaps-1", answers("one")),
        ("swaps-2", answers("two")),
        ("swaps-2-again", padded(answers("two"))),
        ("swaps-traps", traps.clone()),
        ("swaps-traps-again", padded(traps)),
    ];
    let folder = tempfile::tempdir()?;
    for (name, bytes) in &modules {
        let file = folder.path().join(name).with_extension("wasm");
        std::fs::write(&file, bytes)?;
        let pushed = pintle(plane, &["push", name, &file.display().to_string(), "--wait", "--timeout=180s"])?;
        ensure!(pushed.status.success(), "{pushed:?}");
    }
    apply(roots_and_reconciler())?;
    plane.run_kubectl(
        &["wait", "reconciler/swaps", "--for=jsonpath={.status.roots.ready}=2", "--timeout=180s"],
        None,
    )?;
    for (module, code, said) in [
        ("swaps-2", 0, "2 roots reconciled: 2 changed, 0 unchanged; 0 failing\n"),
        ("swaps-2-again", 0, "2 roots reconciled: 0 changed, 2 unchanged; 0 failing\n"),
        (
            "swaps-traps",
            1,
            "2 roots reconciled: 0 changed, 2 unchanged; 2 failing (not before)\n  2 of 2 roots fail (2 GuestTrapped): \
             swaps-one/root: GuestTrapped: ",
        ),
        ("swaps-traps-again", 0, "2 roots reconciled: 0 changed, 2 unchanged; 2 failing (as before)\n"),
        ("swaps-1", 0, "2 roots reconciled: 2 changed, 0 unchanged; 0 failing\n"),
    ] {
        let swapped = pintle(plane, &["swap", "swaps", module, "--wait", "--timeout=180s"])?;
        let out = String::from_utf8_lossy(&swapped.stdout);
        let expected = format!(
            "reconciler.pintle.dev/swaps: module {module} is wanted\nreconciler.pintle.dev/swaps: module {module} is in \
             force\nreconciler.pintle.dev/swaps: {said}"
        );
        ensure!(swapped.status.code() == Some(code) && out.starts_with(&expected), "{swapped:?}");
        let way_back =
            if code == 1 { "hint: to go back: pintle swap swaps swaps-2-again --wait\n" } else { "" };
        ensure!(swapped.stderr == way_back.as_bytes(), "a hint, and no progress bar: {swapped:?}");
    }
    let again = pintle(plane, &["swap", "swaps", "swaps-1", "--wait", "--timeout=180s"])?;
    let said = String::from_utf8_lossy(&again.stdout);
    ensure!(again.status.success() && said.contains("it was in force already"), "{again:?}");
    let other = pintle(plane, &["swap", "swaps", "darkroom-0.1.0"])?;
    let said = String::from_utf8_lossy(&other.stderr);
    ensure!(
        other.status.code() == Some(2) && said.contains("darkroom-0.1.0 reconciles deployments.example.com/"),
        "{other:?}"
    );
    module_in_use(plane)?;
    plane.run_kubectl(&["delete", "namespace", "swaps-one", "swaps-two", "--wait=false"], None)?;
    plane.run_kubectl(&["delete", "crd", "swappeds.acceptance.pintle.dev"], None)?;
    for (name, _) in &modules {
        plane.run_kubectl(&["delete", "module", name, "--ignore-not-found", "--timeout=180s"], None)?;
    }
    Ok(())
}

/// A Module that is in use says so to whoever deletes it, at once and afterwards.
fn module_in_use(plane: &ControlPlane) -> anyhow::Result<()> {
    let deleted = plane.kubectl_command().args(["delete", "module", "swaps-1", "--wait=false"]).output()?;
    let warning = String::from_utf8_lossy(&deleted.stderr);
    ensure!(
        deleted.status.success()
            && warning.contains("Module swaps-1 is in use by Reconciler swaps: it goes when"),
        "{deleted:?}"
    );
    plane.run_kubectl(&["wait", "module/swaps-1", "--for=condition=InUse", "--timeout=180s"], None)?;
    let described = plane.run_kubectl(&["describe", "module", "swaps-1"], None)?;
    ensure!(described.contains("swap swaps to another module"), "{described}");
    let free = plane.kubectl_command().args(["delete", "module", "swaps-2", "--timeout=180s"]).output()?;
    ensure!(free.status.success() && free.stderr.is_empty(), "nobody uses this one: {free:?}");
    plane.run_kubectl(&["delete", "reconciler", "swaps", "--timeout=180s"], None)?;
    plane.run_kubectl(&["wait", "module/swaps-1", "--for=delete", "--timeout=180s"], None)?;
    Ok(())
}

/// The command line, as administrator of the control plane.
fn pintle(plane: &ControlPlane, arguments: &[&str]) -> anyhow::Result<Output> {
    let program = Path::new(env!("CARGO_BIN_EXE_pintle"));
    let output = Command::new(program).args(arguments).env("KUBECONFIG", plane.kubeconfig()).output();
    output.with_context(|| format!("{} cannot run", program.display()))
}
