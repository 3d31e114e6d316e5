//! Measures Pintle on a real control plane beside FLOOR, a client that makes only the necessary calls, and NATIVE, an operator in Go with
//! the same logic, and views through a gateway beside what they show: `cargo xtask bench`. The page `bench/README.md` says what is measured, and how.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark is about time on the wall, and no simulator runs it"
)]

mod api;
mod calls;
mod contestant;
mod farm;
mod figures;
mod floor;
mod latency;
mod loader;
mod observer;
mod phases;
mod plane;
mod process;
mod report;
mod settings;
mod stage;
mod targets;

use std::process::ExitCode;

use clap::Parser;

/// Measures Pintle beside a raw client and an operator in Go, and views beside what they show.
#[derive(Parser)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench", args_override_self = true)]
struct Arguments {
    #[command(flatten)]
    flags: settings::Flags,
}

/// FLOOR's own process: the benchmark starts itself with these flags.
#[derive(Parser)]
struct FloorArguments {
    #[command(flatten)]
    flags: floor::Flags,
}

#[tokio::main]
async fn main() -> ExitCode {
    let is_floor = std::env::args().nth(1).is_some_and(|argument| argument == "floor");
    let outcome = if is_floor {
        floor::run(FloorArguments::parse_from(std::env::args_os().skip(1)).flags).await
    } else {
        phases::run(&Arguments::parse().flags).await
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
