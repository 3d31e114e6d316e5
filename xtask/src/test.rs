//! Every check and test.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use roster::GUESTS;

use crate::{
    build, console, generate, guests, packages,
    progress::Board,
    requirements::lacks_node,
    run::{Result, built, cargo, program, root, say, target},
    simulate,
};

/// The flags of `cargo xtask test`.
#[derive(clap::Args)]
pub(crate) struct Flags {
    /// Leave out what needs a control plane
    #[arg(long)]
    pub(crate) offline: bool,
    /// Run only the acceptance tests, and only scenarios whose name contains this
    #[arg(long, value_name = "TEXT")]
    scenario: Option<String>,
    /// Run only the tests in a browser whose names fit this pattern
    #[arg(long, value_name = "PATTERN", conflicts_with_all = ["offline", "scenario"])]
    browser: Option<String>,
    /// Install Chromium with apt if it is missing. Without it, the tests in a browser are left out
    #[arg(long)]
    install: bool,
}

/// The steps so far, and how long each took.
#[derive(Default)]
struct Steps {
    done: Vec<(&'static str, Duration)>,
    /// What was left out, and what the machine lacks for it.
    skipped: Vec<(&'static str, String)>,
}

impl Steps {
    fn run<T>(&mut self, name: &'static str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        say(name);
        let begun = Instant::now();
        let done = work().map_err(|error| format!("{name}: failed: {error}"))?;
        self.done.push((name, begun.elapsed()));
        Ok(done)
    }

    fn skip(&mut self, name: &'static str, lacks: String) {
        say(format_args!("{name}: skipped, this machine lacks {lacks}"));
        self.skipped.push((name, lacks));
    }

    /// The tests in a browser, where there is one.
    fn browser(&mut self, board: &Board, filter: Option<&str>) -> Result<()> {
        const NAME: &str = "browser";
        let lacks = match (lacks_node(), console::chromium()) {
            (None, Some(chromium)) => {
                return self.run(NAME, || console::browser_tests(board, &chromium, filter));
            }
            (Some(lacks), _) => lacks,
            (None, None) => "Chromium; --install brings it with apt".into(),
        };
        self.skip(NAME, lacks);
        Ok(())
    }

    fn print(&self, took: Duration) {
        for (name, took) in &self.done {
            println!("{:>8.1} s  {name}", took.as_secs_f64());
        }
        for (name, lacks) in &self.skipped {
            println!(" skipped    {name}: this machine lacks {lacks}");
        }
        let steps = self.done.len();
        println!("{:>8.1} s  in all: {steps} steps, {} skipped", took.as_secs_f64(), self.skipped.len());
    }
}

pub(crate) fn run(flags: &Flags) -> Result<()> {
    let started = Instant::now();
    let board = Board::new();
    let mut steps = Steps::default();
    let everything = flags.scenario.is_none() && flags.browser.is_none();
    if flags.install {
        steps.run("chromium", console::install_chromium)?;
    }
    // In the background, until a step needs it.
    let control_plane = match flags.offline {
        true => None,
        false => Some(steps.run("workbench", || build::control_plane(&board))?),
    };
    if everything {
        steps.run("format", || cargo(["fmt", "--all", "--check"]).go())?;
        steps.run("lints", || lints(&board))?;
        steps.run("dependencies", || build::dependencies(&board))?;
        steps.run("generated files", || generate::run(&board, true))?;
        match lacks_node() {
            None => steps.run("console", console::check)?,
            Some(lacks) => steps.skip("console", lacks),
        }
        steps.run("guests", || guests::build(&board).map(drop))?;
        steps.run("unit and engine tests", || units(&board))?;
        steps.run("golden cases", golden_cases)?;
        steps.run("scenarios on the simulator", || simulate::simulate(&board, &[]))?;
    } else {
        steps.run("guests", || guests::build(&board).map(drop))?;
    }
    if let Some(control_plane) = control_plane {
        steps.run("control plane", || control_plane.join())?;
        if everything {
            steps.run("testbed", || tests(&board, &["--test", "control_plane"], &[]))?;
            steps.run("conformance of the simulator", || tests(&board, &["--test", "conformance"], &[]))?;
        }
        if everything || flags.browser.is_some() {
            steps.browser(&board, flags.browser.as_deref())?;
        }
        if flags.browser.is_none() {
            let filter: Vec<&str> = flags.scenario.iter().map(String::as_str).collect();
            steps.run("acceptance", || tests(&board, &["--test", "acceptance"], &filter))?;
        }
    }
    steps.print(started.elapsed());
    Ok(())
}

pub(crate) fn lints(board: &Board) -> Result<()> {
    board.cargo("lints", cargo(["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"]))
}

/// Builds the tests of the workspace that `which` selects, and runs those whose names contain one of `names`. It names the whole workspace
/// for the same reason as [`build::binaries`].
pub(crate) fn tests(board: &Board, which: &[&str], names: &[&str]) -> Result<()> {
    let words = || cargo(["test", "--workspace"]).args(which);
    board.cargo("tests", words().args(["--no-run"]))?;
    words().args(["--quiet", "--"]).args(names).go()
}

/// All tests except those that are separate steps.
fn units(board: &Board) -> Result<()> {
    let integration = packages::integration_tests(&root())?;
    let integration = integration.iter().filter(|name| !STEPS_OF_THEIR_OWN.contains(&name.as_str()));
    let mut which = vec!["--lib", "--bins"];
    which.extend(integration.flat_map(|name| ["--test", name]));
    tests(board, &which, &[])?;
    cargo(["test", "--workspace", "--doc", "--quiet"]).go()
}

/// The search, and the tests that need a control plane.
const STEPS_OF_THEIR_OWN: [&str; 4] = ["acceptance", "conformance", "control_plane", "simulate"];

fn golden_cases() -> Result<()> {
    let guests = target().join("guests");
    for guest in GUESTS {
        let module = guests.join(format!("{}.wasm", guest.name));
        let cases = root().join(guest.folder()).join("cases");
        program(built("pintle"), [Path::new("test"), &module, &cases]).go()?;
    }
    Ok(())
}
