//! A real control plane, on its own.

use std::io::{IsTerminal as _, stdout};

use anyhow::Result;
use pintle_testbed::{Binaries, ControlPlane, Options, Source};
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
