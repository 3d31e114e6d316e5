//! Every check and test, in two tiers.

use std::{
    cell::Cell,
    path::Path,
    time::{Duration, Instant},
};

use clap::builder::{PossibleValue, PossibleValuesParser};
use xtask::{GUESTS, root, say};

use crate::{
    build::{self, PACKAGES},
    console, guests, node, release,
    requirements::{apt, lacks_go, lacks_node, on_path},
    run::{Program, Result, built, cargo, cpu_time, program, target},
};

/// The flags of `cargo xtask test`.
#[derive(clap::Args)]
pub(crate) struct Flags {
    /// Run tier two: everything there is. A check of a real control plane that fails is tried once more, and a line says so
    #[arg(long)]
    all: bool,
    /// Run only this step, and what it needs; with --all, as tier two runs it
    #[arg(long, value_name = "STEP", value_parser = step_names())]
    only: Option<String>,
    /// Leave out what needs a control plane
    #[arg(long)]
    offline: bool,
    /// Install with apt what steps are left out without: Chromium, for the step `image` podman, skopeo and docker-registry,
    /// for `alerts` promtool, and for `node` runc, nft, nginx and curl
    #[arg(long)]
    install: bool,
    /// Of the step of --only, run only what has one of these in its name
    #[arg(last = true, value_name = "NAME", requires = "only")]
    names: Vec<String>,
    /// How long programs have run, besides what compiles.
    #[arg(skip)]
    ran: Cell<Duration>,
}

/// A check, or tests that run together.
struct Step {
    name: &'static str,
    help: &'static str,
    /// Whether it is in tier one, and in tier two.
    tiers: [bool; 2],
    /// The steps without which it cannot run.
    needs: &'static [&'static str],
    /// What the machine lacks for it, if it may be left out for that.
    lacks: fn() -> Option<String>,
    /// What brings that with apt.
    install: fn() -> Result<()>,
    work: fn(&Flags) -> Result<()>,
}

const ONE: [bool; 2] = [true, false];
const TWO: [bool; 2] = [false, true];

const PLANE: &str = "control-plane";

/// The steps, in the order in which they run.
fn steps() -> [Step; 21] {
    let on_a_plane = |name, help| step(name, help).needs(&[PLANE, "guests"]);
    [
        step("format", "The format of the Rust files")
            .work(|flags| flags.run(cargo(["fmt", "--all", "--check"]))),
        step("lints", "clippy").work(|flags| lints(if flags.all { &["--workspace"] } else { &PACKAGES })),
        step("generated", "Whether the generated files are up to date").work(|_| build::generated(true)),
        step("console", "The console's types and functions, and whether console/dist is up to date")
            .lacks(lacks_node)
            .work(|flags| console::checks()?.into_iter().try_for_each(|check| flags.run(check))),
        step("guests", "The guests, built as every author builds them").work(|_| guests::build().map(drop)),
        step("units", "Unit tests, and integration tests that need no control plane")
            .needs(&["guests"])
            .work(units),
        step("golden", "The golden cases of the guests").needs(&["guests"]).work(golden_cases),
        step("alerts", "The alert rules and their tests, by promtool (tier two)")
            .tiers(TWO)
            .lacks(lacks_promtool)
            .install(install_promtool)
            .work(alerts),
        step("simulate", "The search on the simulator: scenarios, plans of faults, broken hosts to catch")
            .needs(&["guests"])
            .work(simulate),
        step(PLANE, "The programs of the control plane, whose build runs beside the steps before")
            .work(|_| build::control_plane()?.join()),
        step("testbed", "The control plane of the tests itself (tier two)")
            .tiers(TWO)
            .needs(&[PLANE])
            .work(|flags| flags.twice("control_plane")),
        step("conformance", "The simulator beside a real API server")
            .needs(&[PLANE])
            .work(|flags| flags.twice("conformance")),
        on_a_plane("smoke", "The main paths on a real control plane (tier one)")
            .tiers(ONE)
            .work(|flags| flags.tests(&["--test", "acceptance"], &["--smoke"])),
        on_a_plane("acceptance", "All scenarios on a real control plane (tier two)")
            .tiers(TWO)
            .work(|flags| flags.tests(&["--test", "acceptance"], &["--scenarios"])),
        on_a_plane("views", "Views on a real control plane, beside what a CRD answers (tier two)")
            .tiers(TWO)
            .work(|flags| flags.tests(&["--test", "acceptance"], &["--views"])),
        on_a_plane("checks", "What else is checked on a real control plane (tier two)")
            .tiers(TWO)
            .work(|flags| flags.tests(&["--test", "acceptance"], &["--checks"])),
        on_a_plane(
            "chart",
            "The chart, with every value, installed, upgraded, rolled back and removed (tier two)",
        )
        .tiers(TWO)
        .lacks(lacks_go)
        .work(chart),
        on_a_plane("versions", "The main paths on Kubernetes 1.35 (tier two)")
            .tiers(TWO)
            .lacks(lacks_go)
            .work(versions),
        on_a_plane("node", "A node on which Pods run, what is left of it, and Pintle as Pods (tier two)")
            .tiers(TWO)
            .lacks(node::lacks)
            .install(node::install)
            .work(pods),
        on_a_plane("browser", "The console in a browser: one story in tier one")
            .lacks(console::lacks_browser)
            .install(console::install_chromium)
            .work(browser),
        step("image", "The image, in skopeo, podman and a registry (tier two)")
            .tiers(TWO)
            .lacks(release::lacks_tools)
            .install(release::install_tools)
            .work(|flags| flags.run(release::check()?)),
    ]
}

/// A step of both tiers that needs nothing.
fn step(name: &'static str, help: &'static str) -> Step {
    Step { name, help, tiers: [true, true], needs: &[], lacks: || None, install: || Ok(()), work: |_| Ok(()) }
}

impl Step {
    fn tiers(self, tiers: [bool; 2]) -> Self {
        Self { tiers, ..self }
    }

    fn needs(self, needs: &'static [&'static str]) -> Self {
        Self { needs, ..self }
    }

    fn lacks(self, lacks: fn() -> Option<String>) -> Self {
        Self { lacks, ..self }
    }

    fn install(self, install: fn() -> Result<()>) -> Self {
        Self { install, ..self }
    }

    fn work(self, work: fn(&Flags) -> Result<()>) -> Self {
        Self { work, ..self }
    }

    fn needs_control_plane(&self) -> bool {
        self.name == PLANE || self.needs.contains(&PLANE)
    }
}

fn step_names() -> PossibleValuesParser {
    steps().map(|step| PossibleValue::new(step.name).help(step.help)).into()
}

impl Flags {
    fn steps(&self) -> Vec<Step> {
        let only = steps().into_iter().find(|step| self.only.as_deref() == Some(step.name));
        let is_wanted = |step: &Step| match &only {
            Some(only) => only.name == step.name || only.needs.contains(&step.name),
            None => step.tiers[usize::from(self.all)] && !(self.offline && step.needs_control_plane()),
        };
        steps().into_iter().filter(is_wanted).collect()
    }

    pub(crate) fn needs_control_plane(&self) -> bool {
        self.steps().iter().any(Step::needs_control_plane)
    }

    /// Runs what is compiled, and ends it if it takes too long.
    fn run(&self, program: Program) -> Result<()> {
        let began = Instant::now();
        let outcome = program.within(Duration::from_secs(60 * if self.all { 30 } else { 10 }));
        self.ran.set(self.ran.get() + began.elapsed());
        outcome
    }

    /// On a real control plane, what another process does can make a sound check fail.
    fn retries(&self) -> &'static str {
        if self.all { "1" } else { "0" }
    }

    /// Compiles these of the tests, and runs them, or what has one of the names.
    fn tests(&self, which: &[&str], arguments: &[&str]) -> Result<()> {
        self.tests_with(which, arguments, &[])
    }

    /// The same, with these variables.
    fn tests_with(&self, which: &[&str], arguments: &[&str], variables: &[(&str, &str)]) -> Result<()> {
        build::tests(which).args(["--no-run"]).go()?;
        let words = ["--no-fail-fast", "--quiet", "--"];
        let mut tests = build::tests(which).args(words).args(arguments).args(&self.names);
        if !self.all {
            tests = tests.env("PINTLE_CONFORMANCE_SEQUENCES", "60");
        }
        self.run(with(tests.env("PINTLE_RETRIES", self.retries()), variables))
    }

    /// Runs a test of a real control plane, and in tier two again if it fails.
    fn twice(&self, test: &str) -> Result<()> {
        match self.tests(&["--test", test], &[]) {
            Err(error) if self.all => say(format_args!("{test}: {error}; once more")),
            outcome => return outcome,
        }
        self.tests(&["--test", test], &[])?;
        say(format_args!("{test}: passed on try 2"));
        Ok(())
    }
}

pub(crate) fn lints(packages: &[&str]) -> Result<()> {
    // --all-targets leaves out the integration tests that run only where they are named, and --tests does not go with a name. For clippy,
    // --benches are the libraries and binaries with their unit tests, too.
    let targets = ["--lib", "--bins", "--benches", "--test=*", "--", "--deny", "warnings"];
    cargo(["clippy"]).args(packages).args(targets).go()
}

/// Runs every part, also when another one fails.
fn units(flags: &Flags) -> Result<()> {
    // Tests of the command line run it, and cargo builds only what is of their own package.
    build::binaries(&["pintle-simulate"])?;
    if !flags.all {
        // Authors of guests read the examples of the SDK.
        let examples = ["test", "--doc", "--quiet", "--package", "pintle-guest", "--features", "schema"];
        let examples = cargo(examples);
        return flags.tests(&["--tests"], &[]).and(flags.run(examples));
    }
    let tests = flags.tests(&["--tests"], &["--include-ignored"]);
    // They run in real time, or compile guests or compile bombs.
    let slow = flags.tests(&["--test", "compile", "--test", "real_time"], &["--include-ignored"]);
    let examples = flags.run(cargo(["test", "--doc", "--quiet"]).args(PACKAGES));
    let benchmarks = ["test", "--quiet", "--package", "pintle-bench", "--package", "guest-bench"];
    tests.and(slow).and(examples).and(flags.run(cargo(benchmarks)))
}

fn golden_cases(flags: &Flags) -> Result<()> {
    let pintle = build::pintle()?;
    GUESTS.iter().try_for_each(|guest| {
        let module = target().join("guests").join(format!("{}.wasm", guest.name));
        let cases = root().join(guest.folder).join("cases");
        flags.run(program(&pintle, [Path::new("test"), &module, &cases]))
    })
}

/// promtool, which Debian has in the package of Prometheus.
fn lacks_promtool() -> Option<String> {
    on_path("promtool").is_none().then(|| "promtool; --install brings it with apt".to_owned())
}

fn install_promtool() -> Result<()> {
    if lacks_promtool().is_none() {
        return Ok(());
    }
    apt(&["prometheus"])?;
    // Where there is systemd, Debian starts a Prometheus that nobody asked for.
    drop(program("systemctl", ["disable", "--now", "prometheus"]).asked());
    Ok(())
}

fn alerts(flags: &Flags) -> Result<()> {
    flags.run(program("promtool", ["check", "rules", "deploy/chart/pintle/alerts.yaml"]))?;
    flags.run(program("promtool", ["test", "rules", "host/tests/offline/alerts/rules.test.yaml"]))
}

fn simulate(flags: &Flags) -> Result<()> {
    let search = || build::tests(&["--test", "simulate"]);
    search().args(["--no-run"]).go()?;
    let extent: &[&str] = if flags.all { &[] } else { &["--quick"] };
    let only = flags.names.iter().flat_map(|name| ["--only", name]);
    flags.run(search().args(["--quiet", "--"]).args(extent).args(only))
}

fn chart(flags: &Flags) -> Result<()> {
    build::binaries(&["workbench"])?;
    flags.run(program(built("workbench"), ["chart", "--check"]))?;
    flags.tests(&["--test", "acceptance"], &["--chart"])
}

/// The older release is built here, whatever control plane the other steps have.
fn versions(flags: &Flags) -> Result<()> {
    let older = [
        ("PINTLE_TESTBED_KUBERNETES", "1.35"),
        ("PINTLE_TESTBED_KUBECONFIG", ""),
        ("KUBEBUILDER_ASSETS", ""),
    ];
    with(program(built("workbench"), ["control-plane"]), &older).go()?;
    flags.tests_with(&["--test", "acceptance"], &["--versions"], &older)
}

/// The step `image` needs the released binary, too, and cargo builds it for the first of the two alone.
fn pods(flags: &Flags) -> Result<()> {
    let images = node::images(true)?;
    let images = images.display().to_string();
    let variables = [("PINTLE_IMAGES", images.as_str())];
    let node = flags.tests_with(&["--test", "node"], &[], &variables);
    node.and(flags.tests_with(&["--test", "acceptance"], &["--node"], &variables))
}

fn with(program: Program, variables: &[(&str, &str)]) -> Program {
    variables.iter().fold(program, |program, (key, value)| program.env(key, value))
}

fn browser(flags: &Flags) -> Result<()> {
    build::binaries(&["workbench", "pintle"])?;
    let mut tests = console::in_browser("browser", &built("pintle"))?;
    if !flags.names.is_empty() {
        tests = tests.args(["--grep", &flags.names.join("|")]);
    } else if !flags.all {
        tests = tests.args(["--grep", "@smoke"]);
    }
    flags.run(tests.env("PINTLE_RETRIES", flags.retries()))
}

/// What came of a step.
struct Outcome {
    name: &'static str,
    /// How long it took to compile and to run, and its CPU time.
    times: [Duration; 3],
    has_failed: bool,
    is_skipped: bool,
    /// Why it has failed, or was left out.
    remark: String,
}

/// Runs the steps, all of them even when one fails.
pub(crate) fn run(flags: &Flags) -> Result<()> {
    let (began, cpu) = (Instant::now(), cpu_time());
    if flags.install {
        flags.steps().iter().try_for_each(|step| (step.install)())?;
    }
    // Beside the steps, until the one that waits for it.
    let _building = flags.needs_control_plane().then(build::control_plane).transpose()?;
    let mut outcomes: Vec<Outcome> = Vec::new();
    for step in flags.steps() {
        say(step.name);
        let (began, cpu) = (Instant::now(), cpu_time());
        flags.ran.set(Duration::ZERO);
        let lacks = (step.lacks)().filter(|_| flags.only.is_none());
        let has_failed = |name: &&&str| outcomes.iter().any(|one| one.name == **name && one.has_failed);
        let failure = match step.needs.iter().find(has_failed) {
            Some(missing) => Some(format!("it needs {missing}").into()),
            None if lacks.is_some() => None,
            None => (step.work)(flags).err(),
        };
        let ran = flags.ran.get();
        let outcome = Outcome {
            name: step.name,
            times: [began.elapsed().saturating_sub(ran), ran, cpu_time().saturating_sub(cpu)],
            has_failed: failure.is_some(),
            is_skipped: failure.is_none() && lacks.is_some(),
            remark: match (&failure, lacks) {
                (Some(failure), _) => format!(": FAILED: {failure}"),
                (None, Some(lacks)) => format!(": skipped, this machine lacks {lacks}"),
                (None, None) => String::new(),
            },
        };
        if !outcome.remark.is_empty() {
            // At once: it may be long until the report.
            say(format_args!("{}{}", outcome.name, outcome.remark));
        }
        outcomes.push(outcome);
    }
    report(&outcomes, began.elapsed(), cpu_time().saturating_sub(cpu))
}

fn report(outcomes: &[Outcome], wall: Duration, cpu: Duration) -> Result<()> {
    say("done");
    println!("   compile       run       CPU");
    for Outcome { name, times, remark, .. } in outcomes {
        let [compiled, ran, cpu] = times.map(|time| time.as_secs_f64());
        println!("{compiled:>8.1} s {ran:>7.1} s {cpu:>7.1} s  {name}{remark}");
    }
    let (wall, cpu) = (wall.as_secs_f64(), cpu.as_secs_f64());
    let all = outcomes.len();
    let failed = outcomes.iter().filter(|outcome| outcome.has_failed).count();
    let skipped = outcomes.iter().filter(|outcome| outcome.is_skipped).count();
    println!("{wall:>8.1} s in all, {cpu:.1} s of CPU time: {all} steps, {failed} failed, {skipped} skipped");
    if failed == 0 { Ok(()) } else { Err(format!("{failed} of {all} steps failed").into()) }
}
