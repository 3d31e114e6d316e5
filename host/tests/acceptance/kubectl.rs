//! What people see with kubectl.

use anyhow::ensure;
use pintle_testbed::ControlPlane;

use crate::repository;

/// A check by name.
pub(crate) type Check = (&'static str, fn(&ControlPlane) -> anyhow::Result<()>);

/// All of them.
pub(crate) const CHECKS: [Check; 5] = [
    ("kubectl get dr shows NAME VERSION TYPE", darkroom_columns),
    ("kubectl get ws shows replicas and image", webserver_columns),
    ("kubectl get cfgmon shows the ConfigMap and its Pods", configmonitor_columns),
    ("kubectl rollout undo of what a ConfigMonitor restarts stays undone", configmonitor_rollback),
    ("kubectl get shows what Modules and Reconcilers are about", own_columns),
];

fn sample(plane: &ControlPlane, namespace: &str, file: &str) -> anyhow::Result<()> {
    plane.run_kubectl(&["create", "namespace", namespace], None)?;
    let path = repository().join("deploy/samples").join(file);
    plane.run_kubectl(&["apply", "-n", namespace, "-f", &path.display().to_string()], None)?;
    Ok(())
}

fn rows(printed: &str) -> Vec<Vec<&str>> {
    printed.lines().map(|line| line.split_whitespace().collect()).collect()
}

fn darkroom_columns(plane: &ControlPlane) -> anyhow::Result<()> {
    sample(plane, "columns-darkroom", "darkroom.yaml")?;
    let printed = plane.run_kubectl(&["get", "dr", "-n", "columns-darkroom"], None)?;
    let rows = rows(&printed);
    ensure!(rows[0][..3] == ["NAME", "VERSION", "TYPE"], "{printed}");
    ensure!(rows[1][..3] == ["darkroom-sample", "0.1.0", "WebFolder"], "{printed}");
    plane.run_kubectl(&["delete", "namespace", "columns-darkroom", "--wait=false"], None)?;
    Ok(())
}

fn webserver_columns(plane: &ControlPlane) -> anyhow::Result<()> {
    sample(plane, "columns-webserver", "webserver.yaml")?;
    let ready =
        ["wait", "-n", "columns-webserver", "--for=condition=Ready", "--timeout=180s", "ws/webserver-sample"];
    plane.run_kubectl(&ready, None)?;
    let printed = plane.run_kubectl(&["get", "ws", "-n", "columns-webserver"], None)?;
    let rows = rows(&printed);
    ensure!(rows[0] == ["NAME", "REPLICAS", "READY", "IMAGE", "AGE"], "{printed}");
    ensure!(rows[1][..4] == ["webserver-sample", "3", "3", "nginx:1.23.1"], "{printed}");
    plane.run_kubectl(&["scale", "-n", "columns-webserver", "ws/webserver-sample", "--replicas=4"], None)?;
    plane.run_kubectl(
        &[
            "wait",
            "-n",
            "columns-webserver",
            "--for=jsonpath={.status.readyReplicas}=4",
            "--timeout=180s",
            "ws/webserver-sample",
        ],
        None,
    )?;
    plane.run_kubectl(&["delete", "namespace", "columns-webserver", "--wait=false"], None)?;
    Ok(())
}

fn configmonitor_columns(plane: &ControlPlane) -> anyhow::Result<()> {
    sample(plane, "columns-configmonitor", "configmonitor.yaml")?;
    let monitor = "cfgmon/flakapp-config-monitor";
    let matched = [
        "wait",
        "-n",
        "columns-configmonitor",
        "--for=jsonpath={.status.matchedPods}=1",
        "--timeout=180s",
        monitor,
    ];
    plane.run_kubectl(&matched, None)?;
    // A ConfigMap that comes after its monitor is seen when it has settled; what it is by then is no change.
    let ready = ["wait", "-n", "columns-configmonitor", "--for=condition=Ready", "--timeout=180s", monitor];
    plane.run_kubectl(&ready, None)?;
    let edit = r#"{"data":{"config.cfg":"MSG=Hello"}}"#;
    plane.run_kubectl(
        &["patch", "-n", "columns-configmonitor", "configmap/flaskapp-config", "-p", edit],
        None,
    )?;
    let restarted = [
        "wait",
        "-n",
        "columns-configmonitor",
        "--for=jsonpath={.status.restartCount}=1",
        "--timeout=180s",
        monitor,
    ];
    plane.run_kubectl(&restarted, None)?;
    let printed = plane.run_kubectl(&["get", "cfgmon", "-n", "columns-configmonitor"], None)?;
    let rows = rows(&printed);
    ensure!(rows[0] == ["NAME", "CONFIGMAP", "MATCHED", "LASTRESTART", "AGE"], "{printed}");
    ensure!(rows[1][..2] == ["flakapp-config-monitor", "flaskapp-config"] && rows[1].len() == 5, "{printed}");
    plane.run_kubectl(&["delete", "namespace", "columns-configmonitor", "--wait=false"], None)?;
    Ok(())
}

/// Somebody rolls a Deployment back that a ConfigMonitor has restarted: that is not undone, and the next change restarts it again. Each change
/// of its spec counts the generation up, so that the generation after the next restart says whether anything else was changed before.
fn configmonitor_rollback(plane: &ControlPlane) -> anyhow::Result<()> {
    const NAMESPACE: &str = "configmonitor-rollback";
    let kubectl = |arguments: &[&str]| plane.run_kubectl(&[&["-n", NAMESPACE], arguments].concat(), None);
    let monitor = "cfgmon/flakapp-config-monitor";
    let is_restarted = |count: u32, content: &str| {
        let edit = format!(r#"{{"data":{{"config.cfg":"{content}"}}}}"#);
        kubectl(&["patch", "configmap/flaskapp-config", "-p", &edit])?;
        let count = format!("--for=jsonpath={{.status.restartCount}}={count}");
        kubectl(&["wait", monitor, &count, "--timeout=180s"])?;
        kubectl(&["wait", monitor, "--for=condition=Restarting=False", "--timeout=180s"])?;
        kubectl(&["wait", monitor, "--for=condition=Ready", "--timeout=180s"])
    };
    let deployment = || {
        let annotation =
            r"{.spec.template.metadata.annotations.magalix\.com/config-hash-flakapp-config-monitor}";
        let path = format!("-o=jsonpath={{.metadata.generation}} {annotation}");
        kubectl(&["get", "deployment/frontend", &path])
    };
    let rolled_out = || kubectl(&["rollout", "status", "deployment/frontend", "--timeout=180s"]);
    sample(plane, NAMESPACE, "configmonitor.yaml")?;
    kubectl(&["wait", monitor, "--for=jsonpath={.status.matchedPods}=1", "--timeout=180s"])?;
    // A ConfigMap that comes after its monitor is seen when it has settled; what it is by then is no change.
    kubectl(&["wait", monitor, "--for=condition=Ready", "--timeout=180s"])?;
    is_restarted(1, "one")?;
    let first = deployment()?;
    is_restarted(2, "two")?;
    for (generation, (command, ends)) in [(4, ("undo", ".1")), (5, ("restart", ".1")), (6, ("undo", ".1"))] {
        kubectl(&["rollout", command, "deployment/frontend"])?;
        rolled_out()?;
        let now = deployment()?;
        ensure!(
            now.starts_with(&format!("{generation} ")) && now.ends_with(ends),
            "rollout {command}: {now}"
        );
        ensure!(
            now.split_once(' ').map(|(_, hash)| hash) == first.split_once(' ').map(|(_, hash)| hash),
            "{now}"
        );
        kubectl(&["wait", monitor, "--for=condition=Ready", "--timeout=180s"])?;
    }
    is_restarted(3, "three")?;
    let now = deployment()?;
    ensure!(now.starts_with("7 ") && now.ends_with(".3"), "{now}");
    kubectl(&["rollout", "undo", "deployment/frontend", "--to-revision=1"])?;
    rolled_out()?;
    let now = deployment()?;
    ensure!(now.trim() == "8", "to a revision without the annotation: {now}");
    is_restarted(4, "four")?;
    let now = deployment()?;
    ensure!(now.starts_with("9 ") && now.ends_with(".4"), "{now}");
    plane.run_kubectl(&["delete", "namespace", NAMESPACE, "--wait=false"], None)?;
    Ok(())
}

fn own_columns(plane: &ControlPlane) -> anyhow::Result<()> {
    let printed = plane.run_kubectl(&["get", "modules", "darkroom-0.1.0"], None)?;
    let found = rows(&printed);
    ensure!(found[0] == ["NAME", "READY", "REASON", "GUEST", "VERSION", "USED-BY", "AGE"], "{printed}");
    ensure!(found[1][1] == "True" && found[1][3] == "darkroom" && found[1][5] == "darkroom", "{printed}");
    let printed = plane.run_kubectl(&["get", "reconcilers", "darkroom"], None)?;
    let found = rows(&printed);
    ensure!(
        found[0] == ["NAME", "KIND", "MODULE", "READY", "REASON", "ROOTS", "FAILING", "ROOTS-REASON", "AGE"],
        "{printed}"
    );
    ensure!(found[1][..4] == ["darkroom", "Darkroom", "darkroom-0.1.0", "True"], "{printed}");
    Ok(())
}
