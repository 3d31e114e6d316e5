//! `cargo xtask`: the commands for developing Pintle.
//!
//! This package checks the machine, builds, and starts what it built. It has almost no dependencies, because the user of the
//! demo waits for it before anything is checked or printed. What needs more is in `workbench/`, `packager/` and `generators/`.
#![allow(
    clippy::disallowed_methods,
    reason = "a tool for people: it waits and measures in real time, and no simulator runs it"
)]

mod bench;
mod build;
mod changed;
mod console;
mod guests;
mod node;
mod release;
mod requirements;
mod run;
mod simulate;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use requirements::{component, control_plane, disk, go, pods, skopeo, wasm_target};
use run::{Program, Result};

/// The commands for developing Pintle.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show the main job on a real control plane, and leave it running to play with
    Demo {
        /// End after the last step instead of staying up; the exit status is 0 only when every step happened
        #[arg(long)]
        exit: bool,
        /// Open the console in the browser after the last step
        #[arg(long, conflicts_with = "exit")]
        console: bool,
        /// Run Pintle and its systems as Pods, on a node as `cargo xtask node` has one. The image is built first, which takes half an hour
        #[arg(long)]
        node: bool,
    },
    /// Run the checks and tests of a commit, tier one; with --all every one there is, tier two
    Test(test::Flags),
    /// Check what changed: format, lints, and the unit tests of the packages that differ from the last commit, or that it changed
    Check,
    /// Run the operator on the API server in memory under many plans of faults
    Simulate(simulate::Flags),
    /// Start a real control plane, print its KUBECONFIG, and keep it until interrupted
    Cluster,
    /// Start a control plane with a node that runs Pods, containerd and kubelet in namespaces of their own, and keep it until interrupted.
    /// Needs root on Linux with cgroups of version 1, Go, runc, nft, curl, and nginx, of which it makes an image; says what is missing
    Node {
        /// Install runc, nft, nginx and curl with apt before
        #[arg(long)]
        install: bool,
        /// Make the image of the host, too, which takes half an hour, give it to the node, and say how to install it
        #[arg(long)]
        pintle: bool,
    },
    /// Build the guests into target/guests
    Guests,
    /// Write the generated files: schemas, CRDs, and what is rendered from a chart that has changed, which needs Go
    Gen {
        /// Only compare, and fail when a file is stale
        #[arg(long)]
        check: bool,
    },
    /// Build the pages of the console into console/dist, which is committed. Needs Node
    Console {
        /// Check their types, run the tests of their functions, and fail when console/dist is stale
        #[arg(long)]
        check: bool,
        /// Take the pictures of docs/ anew, in Chromium and on a control plane
        #[arg(long, conflicts_with = "check")]
        pictures: bool,
    },
    /// Make the image of the host, target/image/pintle.tar, which docker, podman, kind and containerd load, and push it with --push
    Image(release::Flags),
    /// Make the files of a release in target/releases (the image, the command line, a list of components, checksums), and check whether the
    /// crates of the SDK can be published
    Release,
    /// Measure: calls of guests, and the operator beside a raw client and an operator in Go; `bench -- --help` lists the phases
    Bench(bench::Flags),
}

impl Command {
    /// What of its needs the machine lacks. Disk: the size of what a cold run leaves behind, and room for what makes the next build faster. A
    /// test leaves 8.7 GiB as CI runs it, which is without that and without debug information.
    fn lacks(&self) -> Vec<Option<String>> {
        match self {
            Self::Demo { node: false, .. } => vec![wasm_target(), control_plane(), disk(8)],
            Self::Demo { node: true, .. } => vec![pods(), wasm_target(), control_plane(), disk(12)],
            Self::Test(flags) => {
                let plane = || flags.needs_control_plane().then(control_plane).flatten();
                vec![wasm_target(), component("rustfmt"), component("clippy"), disk(12), plane()]
            }
            Self::Check => vec![component("rustfmt"), component("clippy"), disk(6)],
            Self::Simulate(_) => vec![wasm_target(), disk(8)],
            Self::Cluster => vec![control_plane(), disk(4)],
            Self::Node { pintle, .. } => vec![disk(if *pintle { 8 } else { 6 })],
            Self::Guests => vec![wasm_target(), disk(6)],
            Self::Gen { .. } => vec![disk(6)],
            Self::Console { .. } => vec![requirements::node()],
            Self::Image(flags) => vec![disk(8), flags.is_push().then(skopeo).flatten()],
            Self::Release => vec![wasm_target(), disk(8)],
            Self::Bench(flags) if flags.is_engine_alone() => vec![wasm_target(), disk(8)],
            Self::Bench(_) => vec![wasm_target(), go(), control_plane(), disk(12)],
        }
    }
}

fn main() -> ExitCode {
    if let Err(error) = run(&Arguments::parse().command) {
        eprintln!("error: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn run(command: &Command) -> Result<()> {
    requirements::meet(command.lacks())?;
    match command {
        Command::Demo { exit, console, node } => build::demo(*exit, *console, *node),
        Command::Test(flags) => test::run(flags),
        Command::Check => changed::check(),
        Command::Simulate(flags) => simulate::run(flags),
        Command::Cluster => build::cluster(),
        Command::Node { install, pintle } => node::run(*install, *pintle),
        Command::Guests => guests::build().map(drop),
        Command::Gen { check } => build::generated(*check),
        Command::Console { check: true, .. } => console::checks()?.into_iter().try_for_each(Program::go),
        Command::Console { pictures: true, .. } => console::pictures(),
        Command::Console { .. } => console::build(),
        Command::Image(flags) => release::image(flags),
        Command::Release => release::release(),
        Command::Bench(flags) => bench::run(flags),
    }
}
