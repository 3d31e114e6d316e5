//! The operator on an API server in memory, under everything that can go wrong:
//! `cargo test -p pintle --test simulate -- [--plans N] [--seed N] [--only PART-OF-A-NAME] [--replay LINE]`.
#![allow(clippy::disallowed_methods, reason = "it prints how many runs a second there were")]

#[path = "acceptance/modules.rs"]
mod modules;

use std::{fs, path::PathBuf, process::ExitCode, time::Instant};

use anyhow::{Context, ensure};
use pintle::{
    offline::documents,
    scenario::{Guest, ModuleFile},
    simulate::{
        Outcome, Replay, Setting, Simulation,
        search::{self, Effort, Menu, Subject},
    },
};
use serde_json::Value;

/// The command line, as far as it needs one.
struct Arguments {
    plans: usize,
    seed: u64,
    only: Option<String>,
    replay: Option<String>,
}

impl Arguments {
    fn read() -> anyhow::Result<Self> {
        let mut read = Self { plans: 5000, seed: 0, only: None, replay: None };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} needs a value"));
            match word.as_str() {
                "--plans" => read.plans = value()?.parse()?,
                "--seed" => read.seed = value()?.parse()?,
                "--only" => read.only = Some(value()?),
                "--replay" => read.replay = Some(value()?),
                _ => {}
            }
        }
        Ok(read)
    }
}

fn main() -> ExitCode {
    if std::env::var_os("SIMULATE_LOG").is_some() {
        let filter = tracing_subscriber::EnvFilter::from_env("SIMULATE_LOG");
        tracing_subscriber::fmt().with_env_filter(filter).without_time().with_writer(std::io::stderr).init();
    }
    match Arguments::read().and_then(|arguments| simulate(&arguments)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("the simulation cannot run: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn repository() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn read(path: &str) -> anyhow::Result<Vec<Value>> {
    let text = fs::read_to_string(repository().join(path)).with_context(|| format!("reading {path}"))?;
    Ok(documents::parse(path, &text)?.into_iter().map(|document| document.value).collect())
}

/// The guests of this repository, each on its kind.
fn setting() -> anyhow::Result<Setting> {
    let (mut crds, mut modules, mut objects) = (Vec::new(), Vec::new(), Vec::new());
    for (name, guest) in [("darkroom", Guest::Darkroom), ("webserver", Guest::Webserver)] {
        crds.extend(read(&format!("guest-{name}/crd.yaml"))?);
        let bytes = modules::resolve(&ModuleFile { guest: Some(guest), ..ModuleFile::default() })?;
        modules.push((format!("{name}-0.1.0"), bytes));
        objects.extend(read(&format!("deploy/samples/reconciler-{name}.yaml"))?);
    }
    Setting::new(&crds, &modules, &[], &objects)
}

fn simulate(arguments: &Arguments) -> anyhow::Result<bool> {
    let begun = Instant::now();
    let setting = setting()?;
    println!("the setting is made after {:.1} s", begun.elapsed().as_secs_f64());
    let mut files: Vec<String> = fs::read_dir(repository().join("scenarios"))?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".yaml"))
        .map(|name| format!("scenarios/{name}"))
        .collect();
    files.sort();
    let replay =
        arguments.replay.as_deref().map(str::parse::<Replay>).transpose().map_err(anyhow::Error::msg)?;
    let is_asked_for = |file: &String| match &replay {
        Some(replay) => replay.scenario == **file,
        None => arguments.only.as_ref().is_none_or(|only| file.contains(only.as_str())),
    };
    let mut subjects = Vec::new();
    let mut fine = true;
    for file in files.iter().filter(|file| is_asked_for(file)) {
        let text = fs::read_to_string(repository().join(file))?;
        let simulation = Simulation::new(&setting, file, &text, &modules::resolve)?;
        if simulation.scenario().only.is_some() {
            continue;
        }
        let begun = Instant::now();
        let reference = simulation.reference(0)?;
        let again = simulation.reference(0)?;
        ensure!(reference.outcome.hash == again.outcome.hash, "{file}: a run is not like the one before");
        let milliseconds = begun.elapsed().as_millis() / 2;
        let outcome = &reference.outcome;
        match &outcome.broken {
            None => {
                println!(
                    "ok      {file}: {} writes, {} requests, {} events, {milliseconds} ms",
                    outcome.writes, outcome.requests, outcome.events
                );
                subjects.push(Subject { simulation, reference });
            }
            Some(broken) => {
                fine = false;
                println!("FAILED  {file} ({milliseconds} ms)\n  {broken}");
                if arguments.only.is_some() {
                    trace(outcome);
                }
            }
        }
    }
    if let Some(replay) = &replay {
        let subject = subjects.first().context("there is no such scenario")?;
        let outcome = subject.simulation.run(replay.seed, &replay.plan, &subject.reference)?;
        trace(&outcome);
        match &outcome.broken {
            Some(broken) => println!("{broken}"),
            None => println!("every property holds; {}", outcome.hash),
        }
        return Ok(outcome.broken.is_none());
    }
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let effort = Effort { plans: arguments.plans, seed: arguments.seed, threads, failures_max: 20 };
    let plans = search::plans(&subjects, Menu { spares: false }, &effort);
    let begun = Instant::now();
    let tally = search::search(&subjects, &plans, &effort, &|_| {})?;
    let seconds = begun.elapsed().as_secs_f64();
    for failure in &tally.failures {
        println!("FAILED  --replay '{}'", failure.replay);
        if let Some(broken) = &failure.outcome.broken {
            println!("  {broken}");
        }
    }
    println!(
        "{} plans in {seconds:.1} s, {:.1} a second; {} came to pass, {} failed",
        tally.plans,
        tally.plans as f64 / seconds,
        tally.hit,
        tally.failed
    );
    for (class, number) in &tally.by_class {
        print!("{class} {number}  ");
    }
    println!();
    Ok(fine && tally.failed == 0)
}

fn trace(outcome: &Outcome) {
    for step in &outcome.steps {
        println!("{step}");
    }
}
