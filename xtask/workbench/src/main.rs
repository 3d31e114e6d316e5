//! What `cargo xtask` starts after building it: what needs more than the standard library. People call it through `cargo xtask`, which
//! makes sure that all requirements are met. The variable `PINTLE` names the built pintle, and `PINTLE_GUESTS` the folder of the built
//! guests; for a browser, `CHROMIUM` names that, and for a node that runs Pods, `PINTLE_IMAGES` the folder of their images.
#![allow(
    clippy::disallowed_methods,
    reason = "a tool for people: it waits and measures in real time, and no simulator runs it"
)]

mod browser;
mod chart;
mod cluster;
mod demo;

use std::env;

use anyhow::bail;

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["control-plane"] => cluster::build(),
        ["cluster"] => cluster::run(),
        ["node-programs"] => cluster::build_node(),
        ["node", flags @ ..] => cluster::run_node(flags.contains(&"--pintle")),
        ["chart"] => chart::run(false),
        ["chart", "--check"] => chart::run(true),
        ["demo", flags @ ..] => {
            let [exit, console, node] = ["--exit", "--console", "--node"].map(|flag| flags.contains(&flag));
            demo::run(exit, console, node)
        }
        ["browser", arguments @ ..] => browser::run(arguments, true),
        // Without the operator, which would work on what the benchmark makes.
        ["numbers"] => browser::run(&["--config", "playwright.bench.config.ts"], false),
        ["pictures"] => browser::run(&["--config", "playwright.pictures.config.ts"], true),
        _ => bail!("call it through cargo xtask"),
    }
}
