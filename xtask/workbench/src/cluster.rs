//! A real control plane, on its own.

use std::io::{IsTerminal as _, stdout};
use std::path::Path;

use anyhow::Result;
use pintle_testbed::{Binaries, ControlPlane, NodeBinaries, Options, Source};
use xtask::say;

/// Builds the programs of a control plane if one is to be started, so that the start takes seconds. Prints each step on its own line.
pub(crate) fn build() -> Result<()> {
    // Beside it, cargo draws its progress in the last line of the terminal, which this goes over.
    let clear = if stdout().is_terminal() { "\r\u{1b}[2K" } else { "" };
    match Source::from_env()? {
        Source::Own => Binaries::locate_or_build(&mut |line| println!("{clear}    {line}")).map(drop),
        Source::Existing(_) => Ok(()),
    }
}

/// Starts a control plane, or uses the one that the user names. The progress of the build is shown.
pub(crate) fn start() -> Result<ControlPlane> {
    Source::from_env()?.control_plane(&Options::default(), &mut |line| say(line))
}

pub(crate) fn run() -> Result<()> {
    stay(&start()?, "")
}

/// Builds the programs of a node.
pub(crate) fn build_node() -> Result<()> {
    NodeBinaries::locate_or_build(&mut |line| say(line)).map(drop)
}

/// With a node that runs Pods, which has this image.
pub(crate) fn run_node(image: &Path) -> Result<()> {
    let progress = &mut |line: &str| say(line);
    let options = Options { node: Some(NodeBinaries::locate_or_build(progress)?), ..Options::default() };
    let binaries = Binaries::locate_or_build(progress)?;
    say("starting a control plane, and a node with containerd, kubelet and kube-proxy");
    let plane = ControlPlane::start(&binaries, &options)?;
    plane.load_image(image)?;
    stay(&plane, TRY)
}

/// What people can do with a node. The machine reaches Pods and Services by their addresses.
const TRY: &str = "
kubectl create deployment hello --image=registry.test/hello:1 -- /hello serve
kubectl expose deployment hello --port=80 --target-port=8080
curl $(kubectl get service hello -o jsonpath='{.spec.clusterIP}')
kubectl logs deployment/hello
";

/// Says how to reach it and what to try on it, and keeps it.
fn stay(plane: &ControlPlane, what: &str) -> Result<()> {
    println!("export KUBECONFIG={}", plane.kubeconfig().display());
    println!(
        "export PATH={}:$PATH   # kubectl",
        plane.kubectl().parent().unwrap_or(plane.kubectl()).display()
    );
    print!("{what}");
    say("running until interrupted (Ctrl-C)");
    loop {
        std::thread::park();
    }
}
