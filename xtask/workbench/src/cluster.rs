//! A real control plane, on its own.

use std::env;
use std::io::{IsTerminal as _, stdout};
use std::path::Path;
use std::process;

use anyhow::{Context as _, Result};
use pintle_testbed::{Binaries, ControlPlane, NODE_ADDRESS, NodeBinaries, Options, Source};
use xtask::{IMAGE, say};

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

/// Starts a control plane with a node that runs Pods, which has the images of the tests, and that of the host if asked for.
pub(crate) fn start_with_node(with_pintle: bool) -> Result<ControlPlane> {
    let images = env::var_os("PINTLE_IMAGES").context("PINTLE_IMAGES is not set")?;
    let names = ["hello", "nginx", "resizer", "pintle"];
    let names = if with_pintle { &names[..] } else { &names[..3] };
    ControlPlane::start_with_node(Path::new(&images), names, &mut |line| say(line))
}

pub(crate) fn run_node(with_pintle: bool) -> Result<()> {
    let plane = start_with_node(with_pintle)?;
    let install = format!("\n# The node has {IMAGE}. README.md goes on from here, without kind.\n{INSTALL}");
    let commands = TRY.replace("NODE-ADDRESS", NODE_ADDRESS);
    stay(&plane, &[commands.as_str(), if with_pintle { install.as_str() } else { "" }].concat())
}

/// What a node has, and what people can do with it. The machine reaches Pods and Services by their addresses.
const TRY: &str = "
# The node pulls no images. It has registry.test/hello:1, this machine's nginx as nginx:1.23.0, nginx:1.23.1 and nginx:1.29-alpine,
# and a resizer of the tests as gojektech/darkroom:v0.1.0 and v0.4.0. There is no cluster DNS, and nothing enforces NetworkPolicies.

kubectl create deployment hello --image=registry.test/hello:1 -- /hello serve
kubectl expose deployment hello --port=80 --target-port=8080
kubectl rollout status deployment/hello
curl $(kubectl get service hello -o jsonpath='{.spec.clusterIP}')
kubectl logs deployment/hello

kubectl create deployment web --image=nginx:1.23.1
kubectl create service nodeport web --tcp=80 --node-port=30080
kubectl rollout status deployment/web
curl NODE-ADDRESS:30080
";

/// How the image of the host gets into Pods.
const INSTALL: &str = "\
kubectl apply --server-side -f deploy/install.yaml
kubectl rollout status deployment/pintle -n pintle-system
kubectl logs deployment/pintle -n pintle-system
";

/// Says how to reach it and what to try on it, and keeps it.
fn stay(plane: &ControlPlane, commands: &str) -> Result<()> {
    println!("export KUBECONFIG={}", plane.kubeconfig().display());
    println!(
        "export PATH={}:$PATH   # kubectl",
        plane.kubectl().parent().unwrap_or(plane.kubectl()).display()
    );
    print!("{commands}");
    // A shell without job control has what it starts in the background ignore Ctrl-C.
    say(format_args!("running until interrupted (Ctrl-C, or kill {})", process::id()));
    loop {
        std::thread::park();
    }
}
