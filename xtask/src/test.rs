//! Every check and test, in two tiers.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use clap::ValueEnum;
use roster::GUESTS;

use crate::{
    build::{self, PACKAGES},
    console, generate, guests, packages,
    progress::{Board, Task},
    requirements::lacks_node,
    run::{Result, built, cargo, cpu_time, program, root, say, target},
    simulate,
};

/// The flags of `cargo xtask test`.
#[derive(clap::Args)]
pub(crate) struct Flags {
    /// Run tier two: everything there is. A check of a real control plane that fails is tried once more, and a line says so
    #[arg(long)]
    all: bool,
    /// Run only this step; with --all, as tier two runs it
    #[arg(long, value_name = "STEP")]
    only: Option<Step>,
    /// Leave out what needs a control plane
    #[arg(long)]
    offline: bool,
    /// Install Chromium with apt if it is missing. Without it, the tests in a browser are left out
    #[arg(long)]
    install: bool,
    /// Of the step of --only, run only what has one of these in its name
    #[arg(last = true, value_name = "NAME", requires = "only")]
    names: Vec<String>,
}

/// The steps, in the order in which they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Step {
    /// The format of the Rust files
    Format,
    /// clippy
    Lints,
    /// Whether the generated files are up to date
    Generated,
    /// The console's types, the tests of its functions, and whether console/dist is up to date
    Console,
    /// The guests, built as every author builds them
    Guests,
    /// Unit tests, and integration tests that need no control plane
    Units,
    /// The golden cases of the guests
    Golden,
    /// The search on the simulator: the scenarios, plans of faults, broken hosts that must be caught
    Simulate,
    /// The control plane of the tests itself (tier two)
    Testbed,
    /// The simulator beside a real API server
    Conformance,
    /// The main paths on a real control plane (tier one)
    Smoke,
    /// All scenarios on a real control plane (tier two)
    Acceptance,
    /// Views on a real control plane, beside what a CRD answers (tier two)
    Views,
    /// What else is checked on a real control plane (tier two)
    Checks,
    /// The console in a browser: one story in tier one
    Browser,
}

impl Step {
    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    fn is_in(self, all: bool) -> bool {
        match self {
            Self::Smoke => !all,
            Self::Testbed | Self::Acceptance | Self::Views | Self::Checks => all,
            _ => true,
        }
    }

    fn needs_control_plane(self) -> bool {
        matches!(
            self,
            Self::Testbed
                | Self::Conformance
                | Self::Smoke
                | Self::Acceptance
                | Self::Views
                | Self::Checks
                | Self::Browser
        )
    }

    fn needs_guests(self) -> bool {
        matches!(
            self,
            Self::Units
                | Self::Golden
                | Self::Simulate
                | Self::Smoke
                | Self::Acceptance
                | Self::Views
                | Self::Checks
                | Self::Browser
        )
    }

    /// What the machine lacks for it, if it may be left out for that.
    fn lacks(self) -> Option<String> {
        match self {
            Self::Console => lacks_node(),
            Self::Browser if console::chromium().is_none() => {
                Some("Chromium; --install brings it with apt".into())
            }
            Self::Browser => lacks_node(),
            _ => None,
        }
    }
}

impl Flags {
    fn steps(&self) -> Vec<Step> {
        let is_wanted = |step: &Step| match self.only {
            Some(only) => only == *step,
            None => step.is_in(self.all) && !(self.offline && step.needs_control_plane()),
        };
        Step::value_variants().iter().copied().filter(is_wanted).collect()
    }

    pub(crate) fn needs_control_plane(&self) -> bool {
        self.steps().into_iter().any(Step::needs_control_plane)
    }

    /// How long a step may run, compiling not counted. It is ended after that.
    fn limit(&self) -> Duration {
        Duration::from_secs(60 * if self.all { 30 } else { 10 })
    }

    /// Runs a step once what it needs is compiled.
    fn run(&self, step: Step) -> Result<()> {
        let limit = self.limit();
        let names = || self.names.iter().map(String::as_str);
        let tests = |which: &[&str], arguments: &[&str]| {
            let mut words = vec!["test"];
            words.extend(PACKAGES);
            words.extend(which);
            words.extend(["--no-fail-fast", "--quiet", "--"]);
            words.extend(arguments);
            let program = cargo(words).args(names());
            // On a real control plane, what another process does can make a sound check fail.
            program.env("PINTLE_RETRIES", if self.all { "1" } else { "0" })
        };
        match step {
            Step::Format => cargo(["fmt", "--all", "--check"]).go(),
            // Compiling is all of it.
            Step::Lints | Step::Guests | Step::Generated => Ok(()),
            Step::Console => console::check(),
            Step::Units => {
                let ignored: &[&str] = if self.all { &["--include-ignored"] } else { &[] };
                let ran = tests(&words(&units(self.all)?), ignored).within(limit);
                let examples = cargo(examples(self.all)).within(limit);
                let benchmarks = if self.all { cargo(BENCHMARKS).within(limit) } else { Ok(()) };
                ran.and(examples).and(benchmarks)
            }
            Step::Golden => golden_cases(),
            Step::Simulate => {
                let extent: &[&str] = if self.all { &[] } else { &["--quick"] };
                let only = self.names.iter().flat_map(|name| ["--only", name]);
                let mut arguments = extent.to_vec();
                arguments.extend(only);
                simulate::program(&arguments).within(limit)
            }
            Step::Testbed => self.twice(step, || tests(&["--test", "control_plane"], &[]).within(limit)),
            Step::Conformance => self.twice(step, || {
                let compared = tests(&["--test", "conformance"], &[]);
                match self.all {
                    true => compared.within(limit),
                    false => compared.env("PINTLE_CONFORMANCE_SEQUENCES", "60").within(limit),
                }
            }),
            Step::Smoke => tests(&["--test", "acceptance"], &["--smoke"]).within(limit),
            Step::Acceptance => tests(&["--test", "acceptance"], &["--scenarios"]).within(limit),
            Step::Views => tests(&["--test", "acceptance"], &["--views"]).within(limit),
            Step::Checks => tests(&["--test", "acceptance"], &["--checks"]).within(limit),
            Step::Browser => {
                let pattern = match (self.names.is_empty(), self.all) {
                    (false, _) => Some(self.names.join("|")),
                    (true, false) => Some("@smoke".into()),
                    (true, true) => None,
                };
                let chromium = console::chromium().ok_or("there is no Chromium on PATH")?;
                let tests = console::browser_tests(&chromium, pattern.as_deref())?;
                tests.env("PINTLE_RETRIES", if self.all { "1" } else { "0" }).within(limit)
            }
        }
    }

    /// Runs a step of a real control plane, and in tier two again if it fails.
    fn twice(&self, step: Step, work: impl Fn() -> Result<()>) -> Result<()> {
        let first = work();
        let Err(error) = first else { return first };
        if !self.all {
            return Err(error);
        }
        say(format_args!("{}: {error}; once more", step.name()));
        work()?;
        say(format_args!("{}: passed on try 2", step.name()));
        Ok(())
    }

    /// Compiles what a step runs.
    fn compile(&self, step: Step, board: &Board) -> Result<()> {
        let test = |name: &str| compile_tests(board, &["--test", name]);
        match step {
            Step::Format | Step::Console => Ok(()),
            Step::Lints => {
                lints(board)?;
                if self.all { lints_of_benchmarks(board) } else { Ok(()) }
            }
            Step::Generated => generate::run(board, true),
            Step::Guests => guests::build(board).map(drop),
            Step::Units => {
                compile_tests(board, &words(&units(self.all)?))?;
                // Tests of the command line run it, and cargo builds only what is of their own package.
                build::binaries(board, "search", &["pintle-simulate"])?;
                if self.all { board.cargo("tests", cargo(BENCHMARKS).args(["--no-run"])) } else { Ok(()) }
            }
            Step::Golden => build::pintle(board).map(drop),
            Step::Simulate => test("simulate"),
            Step::Testbed => test("control_plane"),
            Step::Conformance => test("conformance"),
            Step::Smoke | Step::Acceptance | Step::Views | Step::Checks => test("acceptance"),
            Step::Browser => build::binaries(board, "workbench", &["workbench", "pintle"]),
        }
    }
}

/// What came of a step.
struct Outcome {
    name: String,
    compiled: Duration,
    ran: Duration,
    cpu: Duration,
    result: StepResult,
}

enum StepResult {
    Passed,
    Failed(String),
    /// What the machine lacks for it.
    Skipped(String),
}

/// Runs the steps, all of them even when one fails.
pub(crate) fn run(flags: &Flags) -> Result<()> {
    let began = Instant::now();
    let cpu = cpu_time();
    let board = Board::new();
    let steps = flags.steps();
    if flags.install {
        console::install_chromium()?;
    }
    let mut outcomes: Vec<Outcome> = Vec::new();
    // In the background, until a step needs it.
    let mut control_plane = match flags.needs_control_plane() {
        true => Some(build::control_plane(&board)?),
        false => None,
    };
    if flags.only.is_some_and(Step::needs_guests) {
        guests::build(&board)?;
    }
    let mut lacking: Option<String> = None;
    for step in steps {
        if step.needs_control_plane()
            && let Some(building) = control_plane.take()
        {
            let outcome = timed("control plane", || building.join(), || Ok(()));
            lacking = outcome.failure().map(|_| "the control plane, which could not be built".into());
            outcomes.push(outcome);
        }
        let name = step.name();
        let has_failed = |name: &str| outcomes.iter().any(|one| one.name == name && one.failure().is_some());
        let needed = match &lacking {
            Some(lacking) if step.needs_control_plane() => Some(lacking.clone()),
            _ if step.needs_guests() && has_failed("guests") => Some("the guests".into()),
            _ => None,
        };
        say(&name);
        let outcome = match (needed, step.lacks()) {
            (Some(needed), _) => Outcome::of(name, StepResult::Failed(format!("lacks {needed}"))),
            (None, Some(lacks)) if flags.only.is_none() => Outcome::of(name, StepResult::Skipped(lacks)),
            (None, Some(lacks)) => {
                Outcome::of(name, StepResult::Failed(format!("this machine lacks {lacks}")))
            }
            (None, None) => timed(&name, || flags.compile(step, &board), || flags.run(step)),
        };
        outcome.say();
        outcomes.push(outcome);
    }
    drop(control_plane.map(Task::join));
    report(&outcomes, began.elapsed(), cpu_time().saturating_sub(cpu))
}

fn timed(name: &str, compile: impl FnOnce() -> Result<()>, run: impl FnOnce() -> Result<()>) -> Outcome {
    let (began, cpu) = (Instant::now(), cpu_time());
    let compiled = compile();
    let middle = Instant::now();
    let ran = compiled.and_then(|()| run());
    let result = match ran {
        Ok(()) => StepResult::Passed,
        Err(error) => StepResult::Failed(error.to_string()),
    };
    Outcome {
        name: name.to_owned(),
        compiled: middle - began,
        ran: middle.elapsed(),
        cpu: cpu_time().saturating_sub(cpu),
        result,
    }
}

impl Outcome {
    fn of(name: String, result: StepResult) -> Self {
        let none = Duration::ZERO;
        Self { name, compiled: none, ran: none, cpu: none, result }
    }

    fn failure(&self) -> Option<&str> {
        match &self.result {
            StepResult::Failed(why) => Some(why),
            StepResult::Passed | StepResult::Skipped(_) => None,
        }
    }

    /// Tells at once what is wrong: it may be long until the report.
    fn say(&self) {
        match &self.result {
            StepResult::Passed => {}
            StepResult::Failed(why) => say(format_args!("{}: FAILED: {why}", self.name)),
            StepResult::Skipped(lacks) => {
                say(format_args!("{}: skipped, this machine lacks {lacks}", self.name))
            }
        }
    }
}

fn report(outcomes: &[Outcome], wall: Duration, cpu: Duration) -> Result<()> {
    say("done");
    println!("   compile       run       CPU");
    for outcome in outcomes {
        let times = [outcome.compiled, outcome.ran, outcome.cpu].map(|time| time.as_secs_f64());
        let word = match &outcome.result {
            StepResult::Passed => String::new(),
            StepResult::Failed(why) => format!(": FAILED: {why}"),
            StepResult::Skipped(lacks) => format!(": skipped, this machine lacks {lacks}"),
        };
        println!("{:>8.1} s {:>7.1} s {:>7.1} s  {}{word}", times[0], times[1], times[2], outcome.name);
    }
    let failed = outcomes.iter().filter(|outcome| outcome.failure().is_some()).count();
    println!(
        "{:>8.1} s in all, {:.1} s of CPU time: {} steps, {failed} failed",
        wall.as_secs_f64(),
        cpu.as_secs_f64(),
        outcomes.len()
    );
    if failed == 0 { Ok(()) } else { Err(format!("{failed} of {} steps failed", outcomes.len()).into()) }
}

pub(crate) fn lints(board: &Board) -> Result<()> {
    let words = ["clippy"].into_iter().chain(PACKAGES);
    board.cargo("lints", cargo(words.chain(["--all-targets", "--", "--deny", "warnings"])))
}

fn lints_of_benchmarks(board: &Board) -> Result<()> {
    let words = ["clippy", "--package", "pintle-bench", "--package", "guest-bench", "--all-targets"];
    board.cargo("lints", cargo(words.into_iter().chain(["--", "--deny", "warnings"])))
}

/// Compiles tests. It names the packages for the same reason as [`build::binaries`].
fn compile_tests(board: &Board, which: &[&str]) -> Result<()> {
    let words = ["test"].into_iter().chain(PACKAGES).chain(which.iter().copied());
    board.cargo("tests", cargo(words.chain(["--no-run"])))
}

/// The search, and the tests that need a control plane.
const STEPS_OF_THEIR_OWN: [&str; 4] = ["acceptance", "conformance", "control_plane", "simulate"];

/// Run in real time, or compile guests or compile bombs.
const TIER_TWO: [&str; 2] = ["compile", "real_time"];

/// The arguments of `cargo test` for all tests except those that are separate steps.
fn units(all: bool) -> Result<Vec<String>> {
    let mut which = vec!["--lib".to_owned(), "--bins".into()];
    for name in packages::integration_tests(&root())? {
        let is_left_out =
            STEPS_OF_THEIR_OWN.contains(&name.as_str()) || !all && TIER_TWO.contains(&name.as_str());
        if !is_left_out {
            which.extend(["--test".into(), name]);
        }
    }
    Ok(which)
}

fn words(owned: &[String]) -> Vec<&str> {
    owned.iter().map(String::as_str).collect()
}

/// The tests of the benchmarks, which are not among [`PACKAGES`].
const BENCHMARKS: [&str; 6] = ["test", "--quiet", "--package", "pintle-bench", "--package", "guest-bench"];

/// The examples in the documentation as tests. Authors of guests read those of the SDK.
fn examples(all: bool) -> Vec<&'static str> {
    let packages: &[&str] = if all { &PACKAGES } else { &["--package", "pintle-guest"] };
    ["test", "--doc", "--quiet"].into_iter().chain(packages.iter().copied()).collect()
}

fn golden_cases() -> Result<()> {
    let guests = target().join("guests");
    for guest in GUESTS {
        let module = guests.join(format!("{}.wasm", guest.name));
        let cases = root().join(guest.folder()).join("cases");
        program(built("pintle"), [Path::new("test"), &module, &cases]).go()?;
    }
    Ok(())
}
