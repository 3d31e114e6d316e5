//! A real control plane, on its own.

use anyhow::Result;
use pintle_testbed::{ControlPlane, Options, Source};

use crate::run::say;

/// Starts a control plane, or takes the one that the user names; building it is shown.
pub(crate) fn start() -> Result<ControlPlane> {
    Source::from_env()?.control_plane(&Options::default(), &mut |line| say(line))
}

pub(crate) fn run() -> Result<()> {
    let plane = start()?;
    println!("export KUBECONFIG={}", plane.kubeconfig().display());
    println!(
        "export PATH={}:$PATH   # kubectl",
        plane.kubectl().parent().unwrap_or(plane.kubectl()).display()
    );
    say("running until interrupted (Ctrl-C)");
    loop {
        std::thread::park();
    }
}
