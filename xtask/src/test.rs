//! Every check and test.

use std::time::Instant;

use anyhow::{Context, Result};

use crate::{
    cluster, generate, guests, licences,
    run::{cargo, program, root, say},
    simulate,
};

/// The flags of `cargo xtask test`.
#[derive(clap::Args)]
pub(crate) struct Flags {
    /// Leave out what needs a control plane
    #[arg(long)]
    offline: bool,
    /// Run only the acceptance, and of it only the scenarios whose name contains this
    #[arg(long, value_name = "TEXT")]
    scenario: Option<String>,
}

pub(crate) fn run(flags: &Flags) -> Result<()> {
    let started = Instant::now();
    let mut times = Vec::new();
    let mut step = |name: &'static str, work: &dyn Fn() -> Result<()>| -> Result<()> {
        say(name);
        let begun = Instant::now();
        work().with_context(|| format!("{name}: failed"))?;
        times.push((name, begun.elapsed()));
        Ok(())
    };
    if flags.scenario.is_none() {
        step("toolchain", &toolchain)?;
        step("format", &|| cargo(["fmt", "--all", "--check"]).go())?;
        step("lints", &|| {
            cargo(["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"]).go()
        })?;
        step("licences", &licences::check)?;
        step("generated files", &|| generate::run(true))?;
        step("guests", &|| guests::build().map(|_| ()))?;
        step("unit and engine tests", &|| {
            cargo(["test", "--workspace", "--exclude", "pintle", "--exclude", "pintle-testbed"]).go()?;
            let own = ["--lib", "--test", "cli_offline", "--test", "deploy", "--test", "panic"];
            cargo(["test", "--package", "pintle"].into_iter().chain(own)).go()
        })?;
        step("golden cases", &golden_cases)?;
        step("scenarios on the simulator", &simulate::begin)?;
    } else {
        step("toolchain", &toolchain)?;
        step("guests", &|| guests::build().map(|_| ()))?;
    }
    if !flags.offline {
        step("control plane", &|| cluster::start().map(drop))?;
        if flags.scenario.is_none() {
            step("testbed", &|| cargo(["test", "--package", "pintle-testbed"]).go())?;
        }
        if flags.scenario.is_none() {
            step("conformance of the simulator", &|| {
                // With what else there is, so that its dependencies are built with the features that they have already.
                cargo([
                    "test",
                    "--package",
                    "pintle",
                    "--package",
                    "pintle-simulator",
                    "--test",
                    "conformance",
                ])
                .go()
            })?;
        }
        step("acceptance", &|| {
            let arguments = ["test", "--package", "pintle", "--test", "acceptance"].map(str::to_owned);
            let filter = flags.scenario.iter().flat_map(|text| ["--".to_owned(), text.clone()]);
            cargo(arguments.into_iter().chain(filter)).go()
        })?;
    }
    for (name, took) in times {
        println!("{:>8.1} s  {name}", took.as_secs_f64());
    }
    println!("{:>8.1} s  in all", started.elapsed().as_secs_f64());
    Ok(())
}

/// What a fresh machine may lack of the toolchain: guests' target, formatter and linter. rustup adds what is missing.
fn toolchain() -> Result<()> {
    let has = |arguments: &[&str], line: &str| {
        program("rustup", arguments)
            .output()
            .is_ok_and(|list| list.lines().any(|found| found.starts_with(line)))
    };
    if !has(&["target", "list", "--installed"], "wasm32-unknown-unknown") {
        program("rustup", ["target", "add", "wasm32-unknown-unknown"]).go()?;
    }
    for component in ["clippy", "rustfmt"] {
        if !has(&["component", "list", "--installed"], component) {
            program("rustup", ["component", "add", component]).go()?;
        }
    }
    Ok(())
}

fn golden_cases() -> Result<()> {
    let pintle = crate::run::target().join("debug").join("pintle");
    let guests = crate::run::target().join("guests");
    for name in ["webserver", "darkroom", "configmonitor"] {
        let module = guests.join(format!("{name}.wasm"));
        let cases = root().join(format!("guest-{name}")).join("cases");
        program(&pintle, [std::path::Path::new("test"), &module, &cases]).go()?;
    }
    Ok(())
}
