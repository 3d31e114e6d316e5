//! Pintle as Pods: the image with the chart's manifests, on a node that runs Pods. `PINTLE_IMAGES` names the folder of the images.

mod leaders;
mod load;
mod systems;

use std::{collections::BTreeSet, env, fs, path::Path};

use anyhow::Context;
use kit::{Look, eventually, host::or_error};
use pintle_core::object;
use pintle_testbed::ControlPlane;
use serde_json::{Value, json};

use crate::{
    Arguments, Check, Part, RIGHTS, Tally, chart, install, no_call_was_forbidden,
    real::{Real, is_ready},
};

/// Where the release is.
const NAMESPACE: &str = "pintle-system";

/// What selects the Pods of the operator.
const OPERATOR: &str = "app.kubernetes.io/name=pintle";

/// The images that the node gets. `pintle-next` has the host as `pintle` has it, under another tag: what an upgrade goes to.
const IMAGES: [&str; 5] = ["hello", "nginx", "resizer", "pintle", "pintle-next"];

/// Starts a control plane whose only node runs Pods, and has the images.
pub(crate) fn start() -> anyhow::Result<ControlPlane> {
    let images = env::var_os("PINTLE_IMAGES").context("PINTLE_IMAGES names no folder of images")?;
    ControlPlane::start_with_node(Path::new(&images), &IMAGES, &mut |line: &str| println!("{line}"))
}

/// Installs Pintle with two operators and two gateways, and runs what is asked for.
pub(crate) async fn run(
    arguments: &Arguments,
    plane: &ControlPlane,
    tally: &mut Tally,
) -> anyhow::Result<()> {
    plane.run_kubectl(&["apply", "--server-side", "--filename", "-"], Some(chart::RELEASE))?;
    systems::make_certificate(plane)?;
    let helm = pintle_testbed::helm(&mut |line| println!("{line}"))?;
    let values = values(plane)?;
    chart::helm(&helm, plane, &[&chart::INSTALL[..], &values.each_ref().map(String::as_str)].concat())?;
    install::apply_guests(plane)?;
    let real = Real::without_host(plane).await?;
    install::push_guests(&real).await?;
    for check in
        checks(plane, &real).into_iter().filter(|check| arguments.wants(Part::Node, false, check.name))
    {
        let outcome = tally.attempt(async |_| (check.work)().await).await;
        tally.line(check.name, outcome);
    }
    let outcome = tally.attempt(async |_| no_call_was_forbidden(&real, &BTreeSet::new()).await).await;
    tally.line(RIGHTS, outcome);
    Ok(())
}

/// The values of the release: with gateways and their console. Policies see the API server where it listens and not at its Service, and a
/// test has it listen at any free port.
fn values(plane: &ControlPlane) -> anyhow::Result<[String; 3]> {
    let server = ["config", "view", "--minify", "--output=jsonpath={.clusters[0].cluster.server}"];
    let server = plane.run_kubectl(&server, None)?;
    let (_, port) = server.rsplit_once(':').context("the API server has no port")?;
    Ok([
        "--set=gateway.enabled=true".to_owned(),
        format!("--set-json=gateway.args={}", json!(systems::CONSOLE_FLAGS)),
        format!("--set-json=networkPolicy.apiServerPorts=[443, 6443, {port}]"),
    ])
}

/// Everything that is checked, in the order in which it runs.
fn checks<'a>(plane: &'a ControlPlane, real: &'a Real<'a>) -> Vec<Check<'a>> {
    let mut checks = systems::checks(plane, real);
    checks.extend(load::checks(real));
    checks.extend(leaders::checks(plane, real));
    checks
}

/// The Pods with this label, once there are so many, all of them Ready, and no other that is still ending.
async fn ready_pods(
    real: &Real<'_>,
    namespace: &str,
    label: &str,
    count: usize,
) -> anyhow::Result<Vec<Value>> {
    eventually(format!("there are {count} Pods with {label}, and they are ready"), async || {
        or_error(real.kubectl_json(&["get", "pods", "-n", namespace, "-l", label]).map(|list| {
            let pods = list["items"].as_array().cloned().unwrap_or_default();
            let stays = |pod: &Value| is_ready(pod) && pod["metadata"]["deletionTimestamp"].is_null();
            if pods.len() == count && pods.iter().all(stays) {
                return Look::Reached(pods);
            }
            let states = pods.iter().map(|pod| format!("{}: {}", object::name(pod), pod["status"]));
            Look::NotYet(states.collect::<Vec<_>>().join("\n"))
        }))
    })
    .await
}

/// The process of the operator or gateway in this Pod, as the machine knows it.
fn process_of(pod: &Value) -> anyhow::Result<u32> {
    let uid = object::uid(pod);
    for entry in fs::read_dir("/proc")? {
        let path = entry?.path();
        let number = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok());
        let Some(process) = number else { continue };
        // It may have ended meanwhile.
        let read = |file: &str| fs::read_to_string(path.join(file)).unwrap_or_default();
        let command = read("cmdline");
        // There is also the Pod's own process, and now and then a compiler.
        let is_server =
            ["operator", "gateway"].iter().any(|word| command.starts_with(&format!("/pintle\0{word}\0")));
        if is_server && read("cgroup").contains(uid) {
            return Ok(process);
        }
    }
    anyhow::bail!("no process of the Pod {} is found", object::name(pod))
}
