//! `cargo xtask`: the commands for developing Pintle.
#![allow(
    clippy::disallowed_methods,
    reason = "a tool for people: it waits and measures in real time, and no simulator runs it"
)]

mod bench;
mod cluster;
mod demo;
mod generate;
mod guests;
mod licences;
mod run;
mod simulate;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

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
    Demo(demo::Flags),
    /// Run every check and test: format, lints, generated files, units, guests, acceptance on a real control plane
    Test(test::Flags),
    /// Run the operator on the API server in memory under many plans of what goes wrong
    Simulate(simulate::Flags),
    /// Start a real control plane, print its KUBECONFIG, and keep it until interrupted
    Cluster,
    /// Build the guests into target/guests
    Guests,
    /// Write the generated files: schemas, CRDs, deploy/install.yaml
    Gen {
        /// Only compare, and fail when a file is stale
        #[arg(long)]
        check: bool,
    },
    /// Check that the licence of every dependency allows our use
    Licences,
    /// Measure: calls of guests, and the operator beside a raw client and an operator in Go; `bench -- --help` lists the phases
    Bench(bench::Flags),
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Demo(flags) => demo::run(&flags),
        Command::Test(flags) => test::run(&flags),
        Command::Simulate(flags) => simulate::run(&flags),
        Command::Cluster => cluster::run(),
        Command::Guests => guests::build().map(|_| ()),
        Command::Gen { check } => generate::run(check),
        Command::Licences => licences::check(),
        Command::Bench(flags) => bench::run(&flags),
    }
}
