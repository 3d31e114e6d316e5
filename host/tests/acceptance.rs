//! Acceptance on a real control plane: `cargo test -p pintle --test acceptance [-- PART-OF-A-NAME...]`.
//!
//! Starts one control plane, installs Pintle from deploy/ as a user would, runs the host as its ServiceAccount, and runs every
//! scenario of scenarios/, side by side where they do not touch what all share. One line a scenario.
#![allow(clippy::disallowed_methods, reason = "acceptance runs in real time")]

#[path = "acceptance/audit.rs"]
mod audit;
#[path = "acceptance/beside.rs"]
mod beside;
#[path = "acceptance/commands.rs"]
mod commands;
#[path = "acceptance/console.rs"]
mod console;
#[path = "acceptance/doors.rs"]
mod doors;
#[path = "acceptance/fight.rs"]
mod fight;
#[path = "acceptance/group.rs"]
mod group;
#[path = "acceptance/host.rs"]
mod host;
#[path = "acceptance/informers.rs"]
mod informers;
#[path = "acceptance/install.rs"]
mod install;
#[path = "acceptance/kubectl.rs"]
mod kubectl;
#[path = "acceptance/leaders.rs"]
mod leaders;
#[path = "acceptance/memory.rs"]
mod memory;
#[path = "acceptance/modules.rs"]
mod modules;
#[path = "acceptance/previews.rs"]
mod planned;
#[path = "previews/run.rs"]
mod previews;
#[path = "acceptance/proxy.rs"]
mod proxy;
#[path = "acceptance/real.rs"]
mod real;
#[path = "acceptance/rights.rs"]
mod rights;
#[path = "acceptance/schemas.rs"]
mod schemas;
#[path = "acceptance/served.rs"]
mod served;
#[path = "acceptance/shell.rs"]
mod shell;
#[path = "acceptance/swaps.rs"]
mod swaps;
#[path = "acceptance/tokens.rs"]
mod tokens;
#[path = "acceptance/views.rs"]
mod views;
#[path = "acceptance/wire.rs"]
mod wire;
#[path = "acceptance/woken.rs"]
mod woken;
#[path = "acceptance/worst.rs"]
mod worst;

use std::{collections::BTreeSet, fs, path::PathBuf, process::ExitCode, time::Instant};

use anyhow::{Context, ensure};
use futures::{StreamExt, stream};
use pintle_simulation::scenario::{Failed, Names, OnlyOn, Runner, Scenario};
use pintle_testbed::{ControlPlane, Options, Source};

use real::Real;

/// How many scenarios run at once. They mostly wait, for kwok and for garbage collection.
const AT_ONCE: usize = 12;

/// A scenario, its file's name, and what its run calls things.
struct Entry {
    file: String,
    names: Names,
    scenario: Scenario,
}

fn main() -> ExitCode {
    let filters: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("no runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(acceptance(&filters)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("acceptance cannot run: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[allow(clippy::too_many_lines, reason = "one check after the other")]
async fn acceptance(filters: &[String]) -> anyhow::Result<bool> {
    let entries = read_scenarios(filters)?;
    let started = Instant::now();
    // Blocking: nothing else is going on yet.
    let plane = Source::from_env()?.control_plane(&Options::default(), &mut |line| println!("{line}"))?;
    let mut tally = Tally::default();
    if filters.is_empty() {
        let begun = Instant::now();
        let outcome = install::a_host_waits_for_its_crds(&plane).await.map_err(|error| format!("{error:#}"));
        tally.line("a host without its CRDs waits for them", begun.elapsed().as_secs_f32(), outcome);
    }
    install::apply_manifests(&plane)?;
    let real = Real::start(&plane).await?;
    install::push_guests(&real).await?;
    println!("control plane and host are up after {:.1} s", started.elapsed().as_secs_f32());

    let (alone, together): (Vec<&Entry>, Vec<&Entry>) =
        entries.iter().partition(|entry| entry.scenario.is_alone());
    let is_wanted = |name: &str| filters.is_empty() || filters.iter().any(|filter| name.contains(filter));
    let mut running =
        stream::iter(together.into_iter().map(|entry| run(&real, entry))).buffer_unordered(AT_ONCE);
    let scenarios = async {
        while let Some((entry, outcome, seconds)) = running.next().await {
            tally.line(&entry.file, seconds, outcome);
        }
    };
    let fight = async {
        let begun = Instant::now();
        let outcome = if is_wanted(fight::NAME) { fight::check(&real).await } else { return None };
        Some((begun.elapsed().as_secs_f32(), outcome.map_err(|error| format!("{error:#}\n"))))
    };
    let ((), fought) = futures::join!(scenarios, fight);
    drop(running);
    if is_wanted(schemas::NAME) {
        let begun = Instant::now();
        let outcome = schemas::check(&real).await.map_err(|error| format!("{error:#}\n"));
        tally.line(schemas::NAME, begun.elapsed().as_secs_f32(), outcome);
    }
    if let Some((seconds, outcome)) = fought {
        tally.line(fight::NAME, seconds, outcome);
    }
    for entry in alone {
        // Whatever one that failed left behind.
        real.start_host_unless_it_runs().await?;
        install::push_guests(&real).await?;
        real.wait_until_quiet().await?;
        let (entry, outcome, seconds) = run(&real, entry).await;
        tally.line(&entry.file, seconds, outcome);
    }
    for (name, check) in kubectl::CHECKS.into_iter().chain(shell::CHECKS).chain(swaps::CHECKS) {
        if is_wanted(name) {
            tally.check(name, || check(&plane));
        }
    }
    if is_wanted(commands::NAME) {
        real.start_host_unless_it_runs().await?;
        tally.check(commands::NAME, || commands::check(&plane));
    }
    if is_wanted(woken::NAME) {
        real.start_host_unless_it_runs().await?;
        let begun = Instant::now();
        let outcome = woken::check(&plane, &real).await.map_err(|error| format!("{error:#}\n"));
        tally.line(woken::NAME, begun.elapsed().as_secs_f32(), outcome);
    }
    views_and_what_they_rest_on(&plane, &is_wanted, &mut tally).await;
    if is_wanted(served::NAME) {
        real.start_host_unless_it_runs().await?;
        tally.check(served::NAME, || served::check(&real));
    }
    plans_and_doors(&plane, &real, &is_wanted, &mut tally).await?;
    if is_wanted(memory::NAME) {
        let begun = Instant::now();
        let outcome = memory::check(&real).await.map_err(|error| format!("{error:#}\n"));
        tally.line(memory::NAME, begun.elapsed().as_secs_f32(), outcome);
    }
    for name in leaders::NAMES.into_iter().chain(wire::NAMES).filter(|name| is_wanted(name)) {
        let begun = Instant::now();
        real.stop_host_if_it_runs().await?;
        let outcome = match wire::NAMES.contains(&name) {
            true => wire::run(name, &real).await,
            false => leaders::run(name, &real).await,
        };
        tally.line(name, begun.elapsed().as_secs_f32(), outcome.map_err(|error| format!("{error:#}\n")));
    }
    let allowed: BTreeSet<&str> =
        entries.iter().flat_map(|entry| &entry.scenario.forbidden).map(String::as_str).collect();
    tally.line(
        "the host's account may do all that the host does",
        0.0,
        no_call_was_forbidden(&real, &allowed),
    );
    // Not from a cluster that is somebody's own.
    if is_wanted(commands::REMOVES) && plane.audit_log().is_some() {
        real.start_host_unless_it_runs().await?;
        tally.check(commands::REMOVES, || commands::removes(&plane));
    }
    real.stop()?;
    println!("{} passed, {} failed, {:.1} s", tally.passed, tally.failed, started.elapsed().as_secs_f32());
    plane.stop()?;
    Ok(tally.failed == 0)
}

/// What people are shown before they swap, the two doors to one kind, and who comes through the door of the gateway.
async fn plans_and_doors(
    plane: &ControlPlane,
    real: &Real<'_>,
    is_wanted: &impl Fn(&str) -> bool,
    tally: &mut Tally,
) -> anyhow::Result<()> {
    if is_wanted(planned::NAME) {
        real.start_host_unless_it_runs().await?;
        let begun = Instant::now();
        let outcome = planned::check(plane, real).await.map_err(|error| format!("{error:#}\n"));
        tally.line(planned::NAME, begun.elapsed().as_secs_f32(), outcome);
    }
    if is_wanted(doors::NAME) {
        real.start_host_unless_it_runs().await?;
        let begun = Instant::now();
        let outcome = doors::check(plane, real).await.map_err(|error| format!("{error:#}\n"));
        tally.line(doors::NAME, begun.elapsed().as_secs_f32(), outcome);
    }
    if is_wanted(tokens::NAME) {
        let begun = Instant::now();
        let outcome = tokens::check(plane, real).await.map_err(|error| format!("{error:#}\n"));
        tally.line(tokens::NAME, begun.elapsed().as_secs_f32(), outcome);
    }
    Ok(())
}

/// Views: the rights of the gateway, the informers that they are judged by, and the farm.
async fn views_and_what_they_rest_on(
    plane: &ControlPlane,
    is_wanted: &impl Fn(&str) -> bool,
    tally: &mut Tally,
) {
    if is_wanted(rights::NAME) {
        tally.check(rights::NAME, || rights::check(plane));
    }
    if is_wanted(informers::NAME) {
        let begun = Instant::now();
        let outcome = informers::check(plane).await.map_err(|error| format!("{error:#}\n"));
        tally.line(informers::NAME, begun.elapsed().as_secs_f32(), outcome);
    }
    if is_wanted(beside::NAME) {
        let begun = Instant::now();
        let outcome = views::beside_a_crd(plane).await.map_err(|error| format!("{error:#}\n"));
        tally.line(beside::NAME, begun.elapsed().as_secs_f32(), outcome);
    }
    if is_wanted(views::NAME) {
        let begun = Instant::now();
        let outcome = views::check(plane).await.map_err(|error| format!("{error:#}\n"));
        tally.line(views::NAME, begun.elapsed().as_secs_f32(), outcome);
    }
}

#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
}

impl Tally {
    /// Runs a check, and prints its line.
    fn check(&mut self, name: &str, check: impl FnOnce() -> anyhow::Result<()>) {
        let begun = Instant::now();
        let outcome = check().map_err(|error| format!("{error:#}\n"));
        self.line(name, begun.elapsed().as_secs_f32(), outcome);
    }

    fn line<E: std::fmt::Display>(&mut self, name: &str, seconds: f32, outcome: Result<(), E>) {
        match outcome {
            Ok(()) => {
                self.passed += 1;
                println!("ok      {name} ({seconds:.1} s)");
            }
            Err(failed) => {
                self.failed += 1;
                println!("FAILED  {name} ({seconds:.1} s)");
                for line in failed.to_string().lines() {
                    println!("        {line}");
                }
            }
        }
    }
}

async fn run<'a>(real: &Real<'_>, entry: &'a Entry) -> (&'a Entry, Result<(), Failed>, f32) {
    let begun = Instant::now();
    let outcome = Runner::new(real, &entry.scenario, entry.names.clone(), &modules::resolve).run().await;
    (entry, outcome, begun.elapsed().as_secs_f32())
}

fn repository() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn read_scenarios(filters: &[String]) -> anyhow::Result<Vec<Entry>> {
    let folder = repository().join("scenarios");
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .with_context(|| format!("reading {}", folder.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    files.sort();
    let mut entries = Vec::new();
    for (index, path) in files.iter().enumerate() {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
        // Four characters that another run on the same cluster has not: its time.
        let run = format!("{}{index:02}", run_token());
        let names = Names { namespace: format!("{}-{run}", stem.chars().take(50).collect::<String>()), run };
        let file = format!("scenarios/{stem}.yaml");
        let scenario =
            Scenario::read(&file, &names.fill(&fs::read_to_string(path)?)).map_err(anyhow::Error::msg)?;
        if scenario.only.as_ref().is_some_and(|only| only.on == OnlyOn::Simulator) {
            continue;
        }
        if filters.is_empty() || filters.iter().any(|filter| stem.contains(filter)) {
            entries.push(Entry { file, names, scenario });
        }
    }
    ensure!(!entries.is_empty() || !filters.is_empty(), "there is no scenario in {}", folder.display());
    Ok(entries)
}

fn run_token() -> String {
    let seconds =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let letter = |shift: u32| char::from(b'a' + u8::try_from(seconds / 24_u64.pow(shift) % 24).unwrap_or(0));
    (0..4).map(letter).collect()
}

/// A call that the API server refused for want of a right is a hole in deploy/, whatever came of it.
fn no_call_was_forbidden(real: &Real<'_>, allowed: &BTreeSet<&str>) -> Result<(), String> {
    let forbidden = real.forbidden().map_err(|error| format!("{error:#}"))?;
    let unexpected: BTreeSet<String> =
        forbidden.into_iter().filter(|call| !allowed.contains(call.as_str())).collect();
    if unexpected.is_empty() {
        Ok(())
    } else {
        Err(format!("forbidden: {}", unexpected.into_iter().collect::<Vec<_>>().join(", ")))
    }
}
