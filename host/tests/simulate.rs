//! The operator on an API server in memory, under everything that can go wrong:
//! `cargo test -p pintle --test simulate -- [--plans N] [--seed N] [--only PART-OF-A-NAME] [--replay LINE]`.
#![allow(clippy::disallowed_methods, reason = "it prints how many runs a second there were")]

#[path = "acceptance/modules.rs"]
mod modules;
#[path = "simulate/zoo.rs"]
mod zoo;

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
    /// Write the table of docs/simulator.md instead of comparing it.
    write_table: bool,
    /// Leave the zoo out.
    no_zoo: bool,
}

impl Arguments {
    fn read() -> anyhow::Result<Self> {
        let mut read =
            Self { plans: 5000, seed: 0, only: None, replay: None, write_table: false, no_zoo: false };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} needs a value"));
            match word.as_str() {
                "--plans" => read.plans = value()?.parse()?,
                "--seed" => read.seed = value()?.parse()?,
                "--only" => read.only = Some(value()?),
                "--replay" => read.replay = Some(value()?),
                "--write-table" => read.write_table = true,
                "--no-zoo" => read.no_zoo = true,
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
    let guests = [
        ("darkroom", Guest::Darkroom),
        ("webserver", Guest::Webserver),
        ("configmonitor", Guest::Configmonitor),
    ];
    for (name, guest) in guests {
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
    fine &= tally.failed == 0;
    if !arguments.no_zoo && arguments.only.is_none() {
        fine &= visit_the_zoo(&setting, &subjects, arguments.write_table)?;
    }
    Ok(fine)
}

/// How many plans a broken host or guest is given to show what is wrong with it.
const PLANS_PER_ANIMAL: usize = 150;

/// Whether every broken host and guest is caught, and docs/simulator.md says by what.
fn visit_the_zoo(setting: &Setting, subjects: &[Subject<'_>], write: bool) -> anyhow::Result<bool> {
    let begun = Instant::now();
    // Two at once, every other one each.
    let half = |first: usize| {
        let animals = zoo::ANIMALS.iter().skip(first).step_by(2);
        animals.map(|animal| catch(setting, subjects, animal)).collect::<anyhow::Result<Vec<_>>>()
    };
    let (even, odd) = std::thread::scope(|scope| {
        let odd = scope.spawn(|| half(1));
        (half(0), odd.join())
    });
    let (even, odd) = (even?, odd.map_err(|_| anyhow::anyhow!("a run panicked"))??);
    let mut caught: Vec<Option<String>> = Vec::new();
    let mut odd = odd.into_iter();
    for by in even {
        caught.push(by);
        caught.extend(odd.next());
    }
    let mut table = String::from(
        "| animal | what is wrong with it | scenario | caught by |\n| --- | --- | --- | --- |\n",
    );
    let mut fine = true;
    for (animal, by) in zoo::ANIMALS.iter().zip(&caught) {
        let by = by.as_deref().unwrap_or("nothing");
        fine &= by != "nothing";
        if by == "nothing" {
            println!("ESCAPED  {}", animal.name);
        }
        let scenario = animal.scenario.trim_start_matches("scenarios/").trim_end_matches(".yaml");
        table.push_str(&format!("| {} | {} | {scenario} | {by} |\n", animal.name, animal.about));
    }
    println!("{} animals in {:.1} s", caught.len(), begun.elapsed().as_secs_f64());
    let path = repository().join("docs/simulator.md");
    let page = fs::read_to_string(&path)?;
    let (before, rest) = page.split_once(TABLE_BEGINS).context("docs/simulator.md has no table")?;
    let (_, after) = rest.split_once(TABLE_ENDS).context("the table of docs/simulator.md has no end")?;
    let now = format!("{before}{TABLE_BEGINS}{table}{TABLE_ENDS}{after}");
    if write {
        fs::write(&path, now)?;
    } else if now != page {
        println!("FAILED  the table of docs/simulator.md is not what is so; write it with --write-table");
        fine = false;
    }
    Ok(fine)
}

const TABLE_BEGINS: &str = "<!-- what catches what: written by the test -->\n";
const TABLE_ENDS: &str = "<!-- end -->";

/// By what property and perturbation an animal is caught, if it is.
fn catch(
    setting: &Setting,
    subjects: &[Subject<'_>],
    animal: &zoo::Animal,
) -> anyhow::Result<Option<String>> {
    let healthy = subjects.iter().find(|subject| subject.simulation.file == animal.scenario);
    let healthy = healthy.with_context(|| format!("{} does not run", animal.scenario))?;
    let text = fs::read_to_string(repository().join(animal.scenario))?;
    let broken = Simulation::new(setting, animal.scenario, &text, &modules::resolve)?;
    let broken = broken.with_seams(animal.seams());
    let run = &healthy.reference.outcome;
    // Of every kind of fault some, at places that lie apart.
    let all: Vec<_> =
        search::first(run).into_iter().chain(search::further(run, Menu { spares: false })).collect();
    let apart = all.len().div_ceil(PLANS_PER_ANIMAL).max(1);
    let plans = std::iter::once(pintle::simulate::Plan::default()).chain(all.into_iter().step_by(apart));
    for plan in plans {
        let outcome = broken.run(0, &plan, &healthy.reference)?;
        // What breaks a sound host in the same way says nothing of this one.
        let of_sound = |plan| {
            let outcome = healthy.simulation.run(0, plan, &healthy.reference)?;
            anyhow::Ok(outcome.broken.map(|broken| broken.property))
        };
        if let Some(found) = outcome.broken
            && of_sound(&plan)? != Some(found.property)
        {
            let classes = if plan.0.is_empty() { "no fault".into() } else { plan.classes().join(", ") };
            println!("caught   {}: {} ({classes})", animal.name, found.property.letter());
            return Ok(Some(format!("{} ({classes})", found.property.letter())));
        }
    }
    Ok(None)
}

fn trace(outcome: &Outcome) {
    for step in &outcome.steps {
        println!("{step}");
    }
}
