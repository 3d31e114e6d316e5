//! Measures Pintle on a real control plane beside FLOOR, a client that makes only the necessary calls, and NATIVE, an operator in Go with
//! the same logic, and views through a gateway beside what they show: `cargo xtask bench`. The page `bench/README.md` says what is measured, and how.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark is about time on the wall, and no simulator runs it"
)]

mod api;
mod calls;
mod farm;
mod figures;
mod floor;
mod loader;
mod observer;
mod phases;
mod plane;
mod process;
mod report;
mod settings;
mod stage;
mod targets;

use clap::Parser as _;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // The benchmark starts itself as FLOOR.
    if std::env::args_os().nth(1).is_some_and(|word| word == "floor") {
        floor::run(std::env::args_os().any(|word| word == "--swap")).await
    } else {
        phases::run(&settings::Flags::parse()).await
    }
}
