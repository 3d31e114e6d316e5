//! What `cargo xtask` starts after building it: what needs more than the standard library. People call it through `cargo xtask`, which
//! makes sure that all requirements are met. The variable `PINTLE` names the built pintle, and `PINTLE_GUESTS` the folder of the built
//! guests; for a browser, `CHROMIUM` names that.
#![allow(
    clippy::disallowed_methods,
    reason = "a tool for people: it waits and measures in real time, and no simulator runs it"
)]

mod browser;
mod cluster;
mod demo;
mod server;

use std::{env, io::IsTerminal as _, path::Path, process::ExitCode};

use anyhow::bail;

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
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["control-plane"] => cluster::build(),
        ["cluster"] => cluster::run(),
        ["demo", flags @ ..] => demo::run(flags.contains(&"--exit"), flags.contains(&"--console")),
        ["browser", arguments @ ..] => browser::run(arguments, true),
        // Without the operator, which would work on what the benchmark makes.
        ["numbers"] => browser::run(&["--config", "playwright.bench.config.ts"], false),
        ["pictures"] => browser::run(&["--config", "playwright.pictures.config.ts"], true),
        _ => bail!("call it through cargo xtask"),
    }
}

/// The folder of the workspace.
fn workspace() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here)
}

/// Prints what is being done.
fn say(line: impl std::fmt::Display) {
    println!("{} {line}", painted("1;36", "==>"));
}

/// A text in a colour on a terminal. In a file, or if NO_COLOR is set, the text has no colour.
fn painted(code: &str, text: &str) -> String {
    let is_allowed = env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    if is_allowed && std::io::stdout().is_terminal() {
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    } else {
        text.to_owned()
    }
}
