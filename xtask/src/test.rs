//! Every check and test, in two tiers.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use clap::ValueEnum;
use xtask::GUESTS;

use crate::{
    build::{self, PACKAGES},
    console, guests,
    requirements::lacks_node,
    run::{Result, built, cargo, cpu_time, program, root, say, target},
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

/// The integration tests of tier two: they run in real time, or compile guests or compile bombs.
const TIER_TWO: [&str; 4] = ["--test", "compile", "--test", "real_time"];

/// What is not among [`PACKAGES`].
const BENCHMARKS: [&str; 4] = ["--package", "pintle-bench", "--package", "guest-bench"];

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
        self >= Self::Testbed
    }

    fn needs_guests(self) -> bool {
        self >= Self::Units && !matches!(self, Self::Testbed | Self::Conformance)
    }

    /// What the machine lacks for it, if it may be left out for that.
    fn lacks(self) -> Option<String> {
        match self {
            Self::Browser if console::chromium().is_none() => {
                Some("Chromium; --install brings it with apt".into())
            }
            Self::Console | Self::Browser => lacks_node(),
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

    /// On a real control plane, what another process does can make a sound check fail.
    fn retries(&self) -> &'static str {
        if self.all { "1" } else { "0" }
    }

    /// Compiles what a step runs.
    fn compile(&self, step: Step) -> Result<()> {
        let compile_tests = |which: &[&str]| build::tests(which).args(["--no-run"]).go();
        match step {
            Step::Format | Step::Console => Ok(()),
            Step::Lints => {
                lints()?;
                if self.all { clippy(&BENCHMARKS, "--all-targets") } else { Ok(()) }
            }
            Step::Generated => build::generated(true),
            Step::Guests => guests::build().map(drop),
            Step::Units => {
                compile_tests(&["--tests"])?;
                // Tests of the command line run it, and cargo builds only what is of their own package.
                build::binaries(&["pintle-simulate"])?;
                if self.all {
                    compile_tests(&TIER_TWO)?;
                    cargo(["test", "--no-run"]).args(BENCHMARKS).go()?;
                }
                Ok(())
            }
            Step::Golden => build::pintle().map(drop),
            Step::Simulate => compile_tests(&["--test", "simulate"]),
            Step::Testbed => compile_tests(&["--test", "control_plane"]),
            Step::Conformance => compile_tests(&["--test", "conformance"]),
            Step::Smoke | Step::Acceptance | Step::Views | Step::Checks => {
                compile_tests(&["--test", "acceptance"])
            }
            Step::Browser => build::binaries(&["workbench", "pintle"]),
        }
    }

    /// Runs a step once what it needs is compiled.
    fn run(&self, step: Step) -> Result<()> {
        let acceptance = |part: &str| self.tests(&["--test", "acceptance"], &[part]);
        match step {
            Step::Format => cargo(["fmt", "--all", "--check"]).go(),
            // Compiling is all of it.
            Step::Lints | Step::Guests | Step::Generated => Ok(()),
            Step::Console => console::check(),
            Step::Units => self.units(),
            Step::Golden => golden_cases(),
            Step::Simulate => {
                let extent: &[&str] = if self.all { &[] } else { &["--quick"] };
                let only = self.names.iter().flat_map(|name| ["--only", name]);
                let search = build::tests(&["--test", "simulate"]).args(["--quiet", "--"]);
                search.args(extent).args(only).within(self.limit())
            }
            Step::Testbed => self.twice(step, "control_plane"),
            Step::Conformance => self.twice(step, "conformance"),
            Step::Smoke => acceptance("--smoke"),
            Step::Acceptance => acceptance("--scenarios"),
            Step::Views => acceptance("--views"),
            Step::Checks => acceptance("--checks"),
            Step::Browser => {
                let pattern = match (self.names.is_empty(), self.all) {
                    (false, _) => Some(self.names.join("|")),
                    (true, false) => Some("@smoke".into()),
                    (true, true) => None,
                };
                let chromium = console::chromium().ok_or("there is no Chromium on PATH")?;
                let tests = console::browser_tests(&chromium, pattern.as_deref())?;
                tests.env("PINTLE_RETRIES", self.retries()).within(self.limit())
            }
        }
    }

    /// Runs these of the tests, or what has one of the names.
    fn tests(&self, which: &[&str], arguments: &[&str]) -> Result<()> {
        let words = ["--no-fail-fast", "--quiet", "--"];
        let mut tests = build::tests(which).args(words).args(arguments).args(&self.names);
        if !self.all {
            tests = tests.env("PINTLE_CONFORMANCE_SEQUENCES", "60");
        }
        tests.env("PINTLE_RETRIES", self.retries()).within(self.limit())
    }

    /// Runs every part, also when another one fails.
    fn units(&self) -> Result<()> {
        let ignored: &[&str] = if self.all { &["--include-ignored"] } else { &[] };
        // Authors of guests read the examples of the SDK.
        let packages: &[&str] = if self.all { &PACKAGES } else { &["--package", "pintle-guest"] };
        let tests = self.tests(&["--tests"], ignored);
        let examples = cargo(["test", "--doc", "--quiet"]).args(packages).within(self.limit());
        if !self.all {
            return tests.and(examples);
        }
        let tier_two = self.tests(&TIER_TWO, ignored);
        let benchmarks = cargo(["test", "--quiet"]).args(BENCHMARKS).within(self.limit());
        tests.and(examples).and(tier_two).and(benchmarks)
    }

    /// Runs a test of a real control plane, and in tier two again if it fails.
    fn twice(&self, step: Step, test: &str) -> Result<()> {
        match self.tests(&["--test", test], &[]) {
            Err(error) if self.all => say(format_args!("{}: {error}; once more", step.name())),
            outcome => return outcome,
        }
        self.tests(&["--test", test], &[])?;
        say(format_args!("{}: passed on try 2", step.name()));
        Ok(())
    }
}

/// What came of a step.
struct Outcome {
    name: String,
    /// How long it took to compile and to run, and its CPU time.
    times: [Duration; 3],
    has_failed: bool,
    /// Why it has failed, or was left out.
    remark: String,
}

/// Runs the steps, all of them even when one fails.
pub(crate) fn run(flags: &Flags) -> Result<()> {
    let (began, cpu) = (Instant::now(), cpu_time());
    if flags.install {
        console::install_chromium()?;
    }
    // Beside the steps, until one needs it.
    let mut control_plane = flags.needs_control_plane().then(build::control_plane).transpose()?;
    if flags.only.is_some_and(Step::needs_guests) {
        guests::build()?;
    }
    let mut outcomes: Vec<Outcome> = Vec::new();
    for step in flags.steps() {
        if step.needs_control_plane()
            && let Some(building) = control_plane.take()
        {
            outcomes.push(Outcome::of("control plane", || building.join(), || Ok(())));
        }
        let has_failed = |name: &str| outcomes.iter().any(|one| one.name == name && one.has_failed);
        let outcome = match step.lacks() {
            Some(lacks) if flags.only.is_none() => Outcome::left_out(step, &lacks),
            _ if step.needs_control_plane() && has_failed("control plane") => {
                Outcome::of(&step.name(), || Err("it needs the control plane".into()), || Ok(()))
            }
            _ if step.needs_guests() && has_failed("guests") => {
                Outcome::of(&step.name(), || Err("it needs the guests".into()), || Ok(()))
            }
            _ => Outcome::of(&step.name(), || flags.compile(step), || flags.run(step)),
        };
        outcomes.push(outcome);
    }
    report(&outcomes, began.elapsed(), cpu_time().saturating_sub(cpu))
}

impl Outcome {
    fn of(name: &str, compile: impl FnOnce() -> Result<()>, run: impl FnOnce() -> Result<()>) -> Self {
        say(name);
        let (began, cpu) = (Instant::now(), cpu_time());
        let compiled = compile();
        let middle = Instant::now();
        let failure = compiled.and_then(|()| run()).err();
        let times = [middle - began, middle.elapsed(), cpu_time().saturating_sub(cpu)];
        let remark = failure.as_ref().map_or_else(String::new, |error| format!(": FAILED: {error}"));
        if failure.is_some() {
            // At once: it may be long until the report.
            say(format_args!("{name}{remark}"));
        }
        Self { name: name.to_owned(), times, has_failed: failure.is_some(), remark }
    }

    fn left_out(step: Step, lacks: &str) -> Self {
        let (name, remark) = (step.name(), format!(": skipped, this machine lacks {lacks}"));
        say(format_args!("{name}{remark}"));
        Self { name, times: [Duration::ZERO; 3], has_failed: false, remark }
    }
}

fn report(outcomes: &[Outcome], wall: Duration, cpu: Duration) -> Result<()> {
    say("done");
    println!("   compile       run       CPU");
    for Outcome { name, times, remark, .. } in outcomes {
        let [compiled, ran, cpu] = times.map(|time| time.as_secs_f64());
        println!("{compiled:>8.1} s {ran:>7.1} s {cpu:>7.1} s  {name}{remark}");
    }
    let (wall, cpu) = (wall.as_secs_f64(), cpu.as_secs_f64());
    let (all, failed) = (outcomes.len(), outcomes.iter().filter(|outcome| outcome.has_failed).count());
    println!("{wall:>8.1} s in all, {cpu:.1} s of CPU time: {all} steps, {failed} failed");
    if failed == 0 { Ok(()) } else { Err(format!("{failed} of {all} steps failed").into()) }
}

pub(crate) fn lints() -> Result<()> {
    clippy(&PACKAGES, "--all-targets")?;
    // Those tests too that cargo leaves out unless something names them.
    clippy(&PACKAGES, "--test=*")
}

fn clippy(packages: &[&str], targets: &str) -> Result<()> {
    cargo(["clippy"]).args(packages).args([targets, "--", "--deny", "warnings"]).go()
}

fn golden_cases() -> Result<()> {
    for guest in GUESTS {
        let module = target().join("guests").join(format!("{}.wasm", guest.name));
        let cases = root().join(guest.folder()).join("cases");
        program(built("pintle"), [Path::new("test"), &module, &cases]).go()?;
    }
    Ok(())
}
