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

/// kubectl in a namespace, whose words stand in one text. It returns what kubectl prints.
fn kubectl_in(plane: &ControlPlane, namespace: &'static str) -> impl Fn(&str) -> anyhow::Result<String> {
    move |words| {
        let words: Vec<&str> = ["-n", namespace].into_iter().chain(words.split(' ')).collect();
        plane.run_kubectl(&words, None)
    }
}

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
    let kubectl = kubectl_in(plane, "columns-darkroom");
    sample(plane, "columns-darkroom", "darkroom.yaml")?;
    let printed = kubectl("get dr")?;
    let rows = rows(&printed);
    ensure!(rows[0][..3] == ["NAME", "VERSION", "TYPE"], "{printed}");
    ensure!(rows[1][..3] == ["darkroom-sample", "0.1.0", "WebFolder"], "{printed}");
    kubectl("delete namespace columns-darkroom --wait=false").map(drop)
}

fn webserver_columns(plane: &ControlPlane) -> anyhow::Result<()> {
    let kubectl = kubectl_in(plane, "columns-webserver");
    sample(plane, "columns-webserver", "webserver.yaml")?;
    kubectl("wait --for=condition=Ready --timeout=180s ws/webserver-sample")?;
    let printed = kubectl("get ws")?;
    let rows = rows(&printed);
    ensure!(rows[0] == ["NAME", "REPLICAS", "READY", "IMAGE", "AGE"], "{printed}");
    ensure!(rows[1][..4] == ["webserver-sample", "3", "3", "nginx:1.23.1"], "{printed}");
    kubectl("scale ws/webserver-sample --replicas=4")?;
    kubectl("wait --for=jsonpath={.status.readyReplicas}=4 --timeout=180s ws/webserver-sample")?;
    kubectl("delete namespace columns-webserver --wait=false").map(drop)
}

fn configmonitor_columns(plane: &ControlPlane) -> anyhow::Result<()> {
    let kubectl = kubectl_in(plane, "columns-configmonitor");
    let wait = |what: &str| kubectl(&format!("wait {what} --timeout=180s cfgmon/flakapp-config-monitor"));
    sample(plane, "columns-configmonitor", "configmonitor.yaml")?;
    wait("--for=jsonpath={.status.matchedPods}=1")?;
    // A ConfigMap that comes after its monitor is seen when it has settled; what it is by then is no change.
    wait("--for=condition=Ready")?;
    kubectl(r#"patch configmap/flaskapp-config -p {"data":{"config.cfg":"MSG=Hello"}}"#)?;
    wait("--for=jsonpath={.status.restartCount}=1")?;
    let printed = kubectl("get cfgmon")?;
    let rows = rows(&printed);
    ensure!(rows[0] == ["NAME", "CONFIGMAP", "MATCHED", "LASTRESTART", "AGE"], "{printed}");
    ensure!(rows[1][..2] == ["flakapp-config-monitor", "flaskapp-config"] && rows[1].len() == 5, "{printed}");
    kubectl("delete namespace columns-configmonitor --wait=false").map(drop)
}

/// Somebody rolls a Deployment back that a ConfigMonitor has restarted: that is not undone, and the next change restarts it again. Each change
/// of its spec counts the generation up, so that the generation after the next restart says whether anything else was changed before.
fn configmonitor_rollback(plane: &ControlPlane) -> anyhow::Result<()> {
    const NAMESPACE: &str = "configmonitor-rollback";
    let kubectl = kubectl_in(plane, NAMESPACE);
    let wait = |what: &str| kubectl(&format!("wait {what} --timeout=180s cfgmon/flakapp-config-monitor"));
    let is_restarted = |count: u32, content: &str| {
        let edit = format!(r#"{{"data":{{"config.cfg":"{content}"}}}}"#);
        kubectl(&format!("patch configmap/flaskapp-config -p {edit}"))?;
        wait(&format!("--for=jsonpath={{.status.restartCount}}={count}"))?;
        wait("--for=condition=Restarting=False")?;
        wait("--for=condition=Ready")
    };
    let deployment = || {
        let annotation =
            r"{.spec.template.metadata.annotations.magalix\.com/config-hash-flakapp-config-monitor}";
        let path = format!("-o=jsonpath={{.metadata.generation}} {annotation}");
        plane.run_kubectl(&["-n", NAMESPACE, "get", "deployment/frontend", &path], None)
    };
    let rolled_out = || kubectl("rollout status deployment/frontend --timeout=180s");
    sample(plane, NAMESPACE, "configmonitor.yaml")?;
    wait("--for=jsonpath={.status.matchedPods}=1")?;
    // A ConfigMap that comes after its monitor is seen when it has settled; what it is by then is no change.
    wait("--for=condition=Ready")?;
    is_restarted(1, "one")?;
    let first = deployment()?;
    is_restarted(2, "two")?;
    for (generation, command) in [(4, "undo"), (5, "restart"), (6, "undo")] {
        kubectl(&format!("rollout {command} deployment/frontend"))?;
        rolled_out()?;
        let now = deployment()?;
        ensure!(
            now.starts_with(&format!("{generation} ")) && now.ends_with(".1"),
            "rollout {command}: {now}"
        );
        ensure!(
            now.split_once(' ').map(|(_, hash)| hash) == first.split_once(' ').map(|(_, hash)| hash),
            "{now}"
        );
        wait("--for=condition=Ready")?;
    }
    is_restarted(3, "three")?;
    let now = deployment()?;
    ensure!(now.starts_with("7 ") && now.ends_with(".3"), "{now}");
    kubectl("rollout undo deployment/frontend --to-revision=1")?;
    rolled_out()?;
    let now = deployment()?;
    ensure!(now.trim() == "8", "to a revision without the annotation: {now}");
    is_restarted(4, "four")?;
    let now = deployment()?;
    ensure!(now.starts_with("9 ") && now.ends_with(".4"), "{now}");
    kubectl("delete namespace configmonitor-rollback --wait=false").map(drop)
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
