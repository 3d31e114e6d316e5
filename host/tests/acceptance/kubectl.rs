//! What people see with kubectl.

use anyhow::ensure;
use pintle_testbed::ControlPlane;

use crate::repository;

/// A check by name.
pub(crate) type Check = (&'static str, fn(&ControlPlane) -> anyhow::Result<()>);

/// All of them.
pub(crate) const CHECKS: [Check; 4] = [
    ("kubectl get dr shows NAME VERSION TYPE", darkroom_columns),
    ("kubectl get ws shows replicas and image", webserver_columns),
    ("kubectl get cfgmon shows the ConfigMap and its Pods", configmonitor_columns),
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
        ["wait", "-n", "columns-webserver", "--for=condition=Ready", "--timeout=30s", "ws/webserver-sample"];
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
            "--timeout=30s",
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
        "--timeout=30s",
        monitor,
    ];
    plane.run_kubectl(&matched, None)?;
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
        "--timeout=30s",
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

fn own_columns(plane: &ControlPlane) -> anyhow::Result<()> {
    let printed = plane.run_kubectl(&["get", "modules", "darkroom-0.1.0"], None)?;
    let found = rows(&printed);
    ensure!(found[0] == ["NAME", "READY", "REASON", "GUEST", "VERSION", "AGE"], "{printed}");
    ensure!(found[1][1] == "True" && found[1][3] == "darkroom", "{printed}");
    let printed = plane.run_kubectl(&["get", "reconcilers", "darkroom"], None)?;
    let found = rows(&printed);
    ensure!(
        found[0] == ["NAME", "KIND", "MODULE", "READY", "REASON", "ROOTS", "FAILING", "AGE"],
        "{printed}"
    );
    ensure!(found[1][..4] == ["darkroom", "Darkroom", "darkroom-0.1.0", "True"], "{printed}");
    Ok(())
}
