//! Pintle as Pods: the image with the chart's manifests, on a node that runs Pods. `PINTLE_IMAGES` names the folder of the images.

mod leaders;
mod load;
mod systems;

use std::{env, path::Path};

use anyhow::Context;
use pintle_testbed::{Binaries, ControlPlane, NodeBinaries, Options};
use serde_json::json;

use crate::{Arguments, Check, Part, Tally, chart, install, real::Real};

/// The images that the node gets. `pintle-next` has the host as `pintle` has it, under another tag: what an upgrade goes to.
const IMAGES: [&str; 5] = ["hello", "nginx", "resizer", "pintle", "pintle-next"];

/// Starts a control plane whose only node runs Pods, and has the images.
pub(crate) fn start() -> anyhow::Result<ControlPlane> {
    let images = env::var_os("PINTLE_IMAGES").context("PINTLE_IMAGES names no folder of images")?;
    let progress = &mut |line: &str| println!("{line}");
    let options = Options { node: Some(NodeBinaries::locate_or_build(progress)?), ..Options::default() };
    let plane = ControlPlane::start(&Binaries::locate_or_build(progress)?, &options)?;
    for image in IMAGES {
        plane.load_image(&Path::new(&images).join(format!("{image}.tar")))?;
    }
    Ok(plane)
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
