//! What `cargo xtask` starts after building it: what needs more than the standard library. People call it through `cargo xtask`, which
//! makes sure that all requirements are met.
#![allow(
    clippy::disallowed_methods,
    reason = "a tool for people: it waits and measures in real time, and no simulator runs it"
)]

mod browser;
mod cluster;
mod demo;

use std::{io::IsTerminal as _, path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};

/// What `cargo xtask` starts: call it through that.
#[derive(Parser)]
#[command(disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build the programs of the control plane, where they are not there yet
    ControlPlane,
    /// Start a control plane, print its KUBECONFIG, and keep it until interrupted
    Cluster,
    /// Show the main job on a control plane
    Demo {
        /// The folder of the workspace
        #[arg(long)]
        workspace: PathBuf,
        /// The built pintle
        #[arg(long)]
        pintle: PathBuf,
        /// The folder of the built guests
        #[arg(long)]
        guests: PathBuf,
        /// End after the last step instead of staying up
        #[arg(long)]
        exit: bool,
        /// Open the console in the browser after the last step
        #[arg(long)]
        console: bool,
    },
    /// Run the tests of the console in a browser
    Browser {
        /// The folder of the workspace
        #[arg(long)]
        workspace: PathBuf,
        /// The built pintle
        #[arg(long)]
        pintle: PathBuf,
        /// The folder of the built guests
        #[arg(long)]
        guests: PathBuf,
        /// Chromium
        #[arg(long)]
        chromium: PathBuf,
        /// Only the tests whose names fit this pattern
        #[arg(long)]
        grep: Option<String>,
        /// Measure instead, without an operator
        #[arg(long)]
        bench: bool,
        /// Take the pictures of docs/ instead
        #[arg(long, conflicts_with = "bench")]
        pictures: bool,
    },
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
        Command::ControlPlane => cluster::build(),
        Command::Cluster => cluster::run(),
        Command::Demo { workspace, pintle, guests, exit, console } => {
            demo::run(&workspace, &pintle, guests, exit, console)
        }
        Command::Browser { workspace, pintle, guests, chromium, grep, bench, pictures } => {
            let what = match (bench, pictures) {
                (true, _) => browser::What::Numbers,
                (_, true) => browser::What::Pictures,
                _ => browser::What::Tests { grep },
            };
            browser::run(&workspace, &pintle, guests, &chromium, what)
        }
    }
}

/// Prints what is being done.
fn say(line: impl std::fmt::Display) {
    println!("{} {line}", painted("1;36", "==>"));
}

/// A text in a colour on a terminal. In a file, or if NO_COLOR is set, the text has no colour.
fn painted(code: &str, text: &str) -> String {
    let is_allowed = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    match is_allowed && std::io::stdout().is_terminal() {
        true => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        false => text.to_owned(),
    }
}
