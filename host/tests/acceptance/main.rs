//! Acceptance on a real control plane: `cargo test -p pintle --test acceptance -- [--smoke|--scenarios|--checks|--views|--chart|--versions|--node] [PART-OF-A-NAME...]`.
//!
//! Starts one control plane, installs Pintle from deploy/ as a user would, runs the host as its ServiceAccount, and runs every
//! scenario of scenarios/, side by side where they do not touch what all share, and then every check of [`checks`]. One line each.
//! `--smoke` runs those of tier one alone, `--scenarios` the scenarios alone, `--views` the checks of views, and `--checks`
//! everything else. `--chart` has helm install Pintle instead, upgrade and remove it, and runs nothing else. `--versions` runs
//! what is for an older Kubernetes, which `PINTLE_TESTBED_KUBERNETES` names. `--node` runs Pintle as Pods, on a node that runs Pods; its
//! images are in the folder that `PINTLE_IMAGES` names.
//!
//! `PINTLE_RETRIES` says how often what failed is tried again; what then passes has a line that says so.
#![allow(clippy::disallowed_methods, reason = "acceptance runs in real time")]

mod audit;
mod beside;
mod chart;
mod commands;
mod console;
mod doors;
mod informers;
mod install;
mod large;
mod leaders;
mod memory;
mod node;
mod proxy;
mod real;
mod served;
mod tokens;
mod views;
mod wire;

use std::{collections::BTreeSet, fs, path::PathBuf, process::ExitCode, time::Instant};

use anyhow::{Context, bail, ensure};
use futures::{StreamExt, future::LocalBoxFuture, stream};
use kit::modules;
use pintle_simulation::scenario::{Failed, Names, OnlyOn, Runner, Scenario};
use pintle_testbed::{ControlPlane, Options, Source};

use real::Real;

/// The check that runs before Pintle is installed.
const WAITS_FOR_CRDS: &str = "a host without its CRDs waits for them";

/// The check of the rights that all calls before it needed.
const RIGHTS: &str = "the host's account may do all that the host does";

/// How many scenarios run at once. They mostly wait, for kwok and for garbage collection.
const AT_ONCE: usize = 12;

/// The scenarios of tier one: each system, and what every one of them rests on.
const SMOKE: [&str; 12] = [
    "adoption",
    "bad-swap",
    "configmonitor",
    "darkroom",
    "finalizers",
    "missing-rights",
    "prune",
    "restart",
    "secrets-watched",
    "self-heal",
    "service-accounts",
    "webserver",
];

/// The scenarios of an older Kubernetes.
const OLDER: [&str; 3] = ["darkroom", "self-heal", "swap"];

/// A part of all there is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Scenarios,
    /// The checks of views, which take as long as all others.
    Views,
    Checks,
    /// The chart. It is run only where it is named, since it installs Pintle itself.
    Chart,
    /// What is run on an older Kubernetes, where the check of this part alone is true.
    Older,
    /// Pintle as Pods. Like the chart, it is run only where it is named.
    Node,
}

/// What is run.
struct Arguments {
    /// Only what tier one runs.
    smoke: bool,
    /// Only this part.
    part: Option<Part>,
    /// Only what has one of these in its name.
    names: Vec<String>,
    retries: u32,
}

impl Arguments {
    fn read() -> anyhow::Result<Self> {
        let retries = match std::env::var("PINTLE_RETRIES") {
            Ok(text) => text.parse().context("PINTLE_RETRIES is not a number")?,
            Err(_) => 0,
        };
        let words: Vec<String> = std::env::args().skip(1).collect();
        let (flags, names): (Vec<String>, Vec<String>) =
            words.into_iter().partition(|word| word.starts_with("--"));
        let (smoke, part) = match flags.as_slice() {
            [] => (false, None),
            [flag] if flag == "--smoke" => (true, None),
            [flag] if flag == "--scenarios" => (false, Some(Part::Scenarios)),
            [flag] if flag == "--views" => (false, Some(Part::Views)),
            [flag] if flag == "--checks" => (false, Some(Part::Checks)),
            [flag] if flag == "--chart" => (false, Some(Part::Chart)),
            [flag] if flag == "--versions" => (false, Some(Part::Older)),
            [flag] if flag == "--node" => (false, Some(Part::Node)),
            _ => bail!(
                "one of --smoke, --scenarios, --views, --checks, --chart, --versions and --node, not {}",
                flags.join(" ")
            ),
        };
        Ok(Self { smoke, part, names, retries })
    }

    /// Whether something of this part is to be run.
    fn wants(&self, part: Part, is_smoke: bool, name: &str) -> bool {
        let is_part = match self.part {
            None => part != Part::Older,
            Some(Part::Older) if part == Part::Scenarios => OLDER.contains(&name),
            Some(wanted) => wanted == part,
        };
        (!self.smoke || is_smoke)
            && is_part
            && (self.names.is_empty() || self.names.iter().any(|part| name.contains(part)))
    }
}

/// A check beside the scenarios. They run one after the other.
struct Check<'a> {
    name: &'static str,
    part: Part,
    is_smoke: bool,
    /// Whether it expects the host to run; otherwise the host is stopped before.
    with_host: bool,
    work: Box<dyn Fn() -> LocalBoxFuture<'a, anyhow::Result<()>> + 'a>,
}

fn check<'a, W>(name: &'static str, work: impl Fn() -> W + 'a) -> Check<'a>
where
    W: Future<Output = anyhow::Result<()>> + 'a,
{
    Check {
        name,
        part: Part::Checks,
        is_smoke: false,
        with_host: true,
        work: Box::new(move || Box::pin(work())),
    }
}

impl Check<'_> {
    fn in_smoke(self) -> Self {
        Self { is_smoke: true, ..self }
    }

    fn of_views(self) -> Self {
        Self { part: Part::Views, ..self }
    }

    fn without_host(self) -> Self {
        Self { with_host: false, ..self }
    }
}

/// Everything beside the scenarios, in the order in which it runs.
fn checks<'a>(plane: &'a ControlPlane, real: &'a Real<'a>) -> Vec<Check<'a>> {
    let mut checks: Vec<Check<'_>> =
        commands::cases().map(|case| check(case.claim, move || async move { case.run(plane) })).collect();
    checks.extend([
        check(informers::NAME, move || informers::check(plane)).of_views(),
        check(beside::NAME, move || views::beside_a_crd(plane)).of_views(),
        check(views::SMOKE, move || views::smoke(plane)).of_views().in_smoke(),
        check(views::NAME, move || views::check(plane)).of_views(),
        check(views::LARGE, move || views::large_lists(plane)).of_views(),
        Check { part: Part::Older, ..check(views::OLDER, move || views::on_an_older_server(plane)) },
        check(served::NAME, move || async move { served::check(real) }),
        check(commands::PREVIEWS.claim, move || commands::previews(plane, real)),
        check(doors::NAME, move || doors::check(plane, real)).in_smoke(),
        check(tokens::NAME, move || tokens::check(plane, real)),
        check(memory::NAME, move || memory::check(real)),
        check(large::NAME, move || large::check(real)),
    ]);
    for name in leaders::NAMES {
        checks.push(check(name, move || leaders::run(name, real)).without_host());
    }
    for name in wire::NAMES {
        checks.push(check(name, move || wire::run(name, real)).without_host());
    }
    checks
}

fn main() -> ExitCode {
    let outcome = Arguments::read().and_then(|arguments| {
        let runtime = tokio::runtime::Runtime::new()?;
        runtime.block_on(acceptance(&arguments))
    });
    match outcome {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("acceptance cannot run: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Returns how many have failed.
async fn acceptance(arguments: &Arguments) -> anyhow::Result<usize> {
    let files: Vec<ScenarioFile> = scenario_files()?
        .into_iter()
        .filter(|file| arguments.wants(Part::Scenarios, SMOKE.contains(&&*file.stem), &file.stem))
        .collect();
    let started = Instant::now();
    // Blocking: nothing else is going on yet.
    let plane = match arguments.part {
        Some(Part::Node) => node::start()?,
        _ => Source::from_env()?.control_plane(&Options::default(), &mut |line| println!("{line}"))?,
    };
    let mut tally = Tally { retries: arguments.retries, ..Tally::default() };
    let outcome = match arguments.part {
        Some(Part::Chart) => {
            let outcome = tally.attempt(async |_| chart::check(&plane).await).await;
            tally.line(chart::NAME, outcome);
            Ok(())
        }
        Some(Part::Node) => node::run(arguments, &plane, &mut tally).await,
        _ => everything(arguments, &files, &plane, &mut tally).await,
    };
    println!("{} passed, {} failed, {:.1} s", tally.passed, tally.failed, started.elapsed().as_secs_f32());
    plane.stop()?;
    outcome.map(|()| tally.failed)
}

async fn everything(
    arguments: &Arguments,
    files: &[ScenarioFile],
    plane: &ControlPlane,
    tally: &mut Tally,
) -> anyhow::Result<()> {
    if arguments.wants(Part::Checks, true, WAITS_FOR_CRDS) {
        let outcome = tally.attempt(async |_| install::a_host_waits_for_its_crds(plane).await).await;
        tally.line(WAITS_FOR_CRDS, outcome);
    }
    let started = Instant::now();
    install::apply_manifests(plane)?;
    let real = Real::start(plane).await?;
    install::push_guests(&real).await?;
    println!("the host is up and has its guests after {:.1} s", started.elapsed().as_secs_f32());

    let (alone, together): (Vec<&ScenarioFile>, Vec<&ScenarioFile>) =
        files.iter().partition(|file| file.is_alone);
    let attempt = async |file| (file, tally.attempt(async |attempt| run(&real, file, attempt).await).await);
    let mut running = stream::iter(together).map(attempt).buffer_unordered(AT_ONCE);
    let mut done = Vec::new();
    while let Some((file, outcome)) = running.next().await {
        outcome.print(&file.path());
        done.push(outcome);
    }
    drop(running);
    for outcome in done {
        tally.count(&outcome);
    }
    for file in alone {
        let outcome = tally
            .attempt(async |attempt| {
                // Whatever one that failed left behind.
                real.start_host_unless_it_runs().await?;
                install::push_guests(&real).await?;
                real.wait_until_quiet().await?;
                run(&real, file, attempt).await
            })
            .await;
        tally.line(&file.path(), outcome);
    }
    let is_wanted = |check: &Check<'_>| arguments.wants(check.part, check.is_smoke, check.name);
    for check in checks(plane, &real).into_iter().filter(is_wanted) {
        let outcome = tally
            .attempt(async |_| {
                match check.with_host {
                    true => real.start_host_unless_it_runs().await?,
                    false => real.stop_host_if_it_runs().await?,
                }
                (check.work)().await
            })
            .await;
        tally.line(check.name, outcome);
    }
    let allowed: BTreeSet<&str> = files.iter().flat_map(|file| &file.forbidden).map(String::as_str).collect();
    let outcome = tally.attempt(async |_| no_call_was_forbidden(&real, &allowed).await).await;
    tally.line(RIGHTS, outcome);
    // Last, and not from a cluster that is somebody's own.
    let removal = commands::REMOVAL;
    if arguments.wants(Part::Checks, false, removal.claim) && plane.audit_log().is_some() {
        real.start_host_unless_it_runs().await?;
        let outcome = tally.attempt(async |_| removal.run(plane)).await;
        tally.line(removal.claim, outcome);
    }
    real.stop()
}

/// What came of a check, which may have been tried more than once.
struct Outcome {
    seconds: f32,
    /// What each try that failed said.
    failures: Vec<String>,
    passed: bool,
}

impl Outcome {
    fn print(&self, name: &str) {
        let word = match (self.passed, self.failures.len()) {
            (true, 0) => "ok      ",
            (true, _) => "RETRIED ",
            (false, _) => "FAILED  ",
        };
        println!("{word}{name} ({:.1} s)", self.seconds);
        if self.passed && !self.failures.is_empty() {
            println!("        passed on try {}; before:", self.failures.len() + 1);
        }
        for line in self.failures.iter().flat_map(|failure| failure.lines()) {
            println!("        {line}");
        }
    }
}

#[derive(Default)]
struct Tally {
    retries: u32,
    passed: usize,
    failed: usize,
}

impl Tally {
    /// Runs a check, and again if it failed and may be tried again. It gets the number of the try, from 0.
    async fn attempt(&self, work: impl AsyncFn(u32) -> anyhow::Result<()>) -> Outcome {
        let begun = Instant::now();
        let mut failures = Vec::new();
        let mut passed = false;
        for attempt in 0..=self.retries {
            match work(attempt).await {
                Ok(()) => {
                    passed = true;
                    break;
                }
                Err(error) => failures.push(format!("{error:#}")),
            }
        }
        Outcome { seconds: begun.elapsed().as_secs_f32(), failures, passed }
    }

    fn count(&mut self, outcome: &Outcome) {
        match outcome.passed {
            true => self.passed += 1,
            false => self.failed += 1,
        }
    }

    fn line(&mut self, name: &str, outcome: Outcome) {
        outcome.print(name);
        self.count(&outcome);
    }
}

/// A scenario's file, and what must be known of it before it runs.
struct ScenarioFile {
    stem: String,
    index: usize,
    is_alone: bool,
    /// The calls that the host has no right to, and makes.
    forbidden: Vec<String>,
}

impl ScenarioFile {
    fn path(&self) -> String {
        format!("scenarios/{}.yaml", self.stem)
    }

    /// The scenario with names that no other run on this cluster has, nor an earlier try.
    fn read(&self, attempt: u32) -> anyhow::Result<(Names, Scenario)> {
        let run = format!("{}{:02}{}", run_token(), self.index, "b".repeat(attempt as usize));
        let stem: String = self.stem.chars().take(50).collect();
        let names = Names { namespace: format!("{stem}-{run}"), run };
        let text = fs::read_to_string(repository().join(self.path()))?;
        let scenario = Scenario::read(&self.path(), &names.fill(&text))?;
        Ok((names, scenario))
    }
}

async fn run(real: &Real<'_>, file: &ScenarioFile, attempt: u32) -> anyhow::Result<()> {
    let (names, scenario) = file.read(attempt)?;
    let ran = Runner::new(real, &scenario, names, &modules::resolve).run().await;
    ran.map_err(|failed: Failed| {
        kit::count_failed_wait();
        anyhow::anyhow!("{failed}")
    })
}

fn repository() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The scenarios that run on a real control plane.
fn scenario_files() -> anyhow::Result<Vec<ScenarioFile>> {
    let folder = repository().join("scenarios");
    let mut stems = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            stems.push(path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned());
        }
    }
    ensure!(!stems.is_empty(), "there is no scenario in {}", folder.display());
    for name in SMOKE.into_iter().chain(OLDER) {
        ensure!(stems.iter().any(|stem| stem == name), "there is no scenario {name}");
    }
    stems.sort();
    let mut files = Vec::new();
    for (index, stem) in stems.into_iter().enumerate() {
        let mut file = ScenarioFile { stem, index, is_alone: false, forbidden: Vec::new() };
        let (_, scenario) = file.read(0)?;
        if scenario.only.as_ref().is_some_and(|only| only.on == OnlyOn::Simulator) {
            continue;
        }
        file.is_alone = scenario.is_alone();
        file.forbidden = scenario.forbidden;
        files.push(file);
    }
    Ok(files)
}

fn run_token() -> String {
    let seconds =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let letter = |shift: u32| char::from(b'a' + u8::try_from(seconds / 24_u64.pow(shift) % 24).unwrap_or(0));
    (0..4).map(letter).collect()
}

/// A call that the API server refused for want of a right is a hole in deploy/, whatever came of it.
async fn no_call_was_forbidden(real: &Real<'_>, allowed: &BTreeSet<&str>) -> anyhow::Result<()> {
    let forbidden = real.forbidden().await?;
    let unexpected: BTreeSet<String> =
        forbidden.into_iter().filter(|call| !allowed.contains(call.as_str())).collect();
    ensure!(unexpected.is_empty(), "forbidden: {}", unexpected.into_iter().collect::<Vec<_>>().join(", "));
    Ok(())
}
