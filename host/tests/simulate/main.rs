//! The operator and the gateway on an API server in memory, under everything that can go wrong:
//! `cargo test -p pintle --test simulate -- [--quick] [--seeds N] [--seed N] [--only PART-OF-A-NAME] [--replay LINE]`.
#![allow(clippy::disallowed_methods, reason = "it prints how many runs a second there were")]

mod broken;
mod operator;
mod views;

use std::{
    fs,
    io::{IsTerminal, Write},
    path::PathBuf,
    process::ExitCode,
    sync::atomic::{AtomicU64, Ordering},
    time::Instant,
};

use anyhow::{Context, ensure};
use pintle_offline::documents;
use pintle_simulation::{
    plan::{Plan, Replay},
    run::{FaultOf, Replicas, Simulate},
    search::{self, Effort, Subject, on_threads},
    views::VIEWS,
};
use serde_json::Value;

/// What runs here is made of small objects that come and go; the allocator of the host takes a third less time for them than libc's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How many plans are run when nobody says otherwise, as in tier two.
const PLANS: usize = 5000;
/// How many are run in tier one, of the operator and of the gateway.
const QUICK_PLANS: (usize, usize) = (600, 120);
/// One plan of the gateway for this many of the operator.
const PLANS_OF_GATEWAY: usize = 10;
/// One plan in this many is run twice.
const AGAIN_EVERY: usize = 50;
/// How many failures are shown.
const FAILURES_MAX: usize = 60;
/// How many steps of a failure are shown.
const STEPS_SHOWN: usize = 14;
/// What a broken host or gateway is given to show what is wrong with it.
const FOR_BROKEN: Effort = Effort { plans: 400, seed: 0, threads: 1, failures_max: 0, again_every: 0 };

/// The command line, as far as it needs one.
struct Arguments {
    /// Tier one: every scenario once, fewer plans, and only the broken hosts that tier one looks for.
    quick: bool,
    plans: usize,
    plans_of_gateway: usize,
    seed: u64,
    only: Option<String>,
    replay: Option<String>,
}

impl Arguments {
    fn read() -> anyhow::Result<Self> {
        let quick = std::env::args().any(|word| word == "--quick");
        let (plans, plans_of_gateway) = if quick { QUICK_PLANS } else { (PLANS, PLANS / PLANS_OF_GATEWAY) };
        let mut read = Self { quick, plans, plans_of_gateway, seed: 0, only: None, replay: None };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} needs a value"));
            match word.as_str() {
                "--seeds" => {
                    read.plans = value()?.parse()?;
                    read.plans_of_gateway = read.plans / PLANS_OF_GATEWAY;
                }
                "--seed" => read.seed = value()?.parse()?,
                "--only" => read.only = Some(value()?),
                "--replay" => read.replay = Some(value()?),
                _ => {}
            }
        }
        Ok(read)
    }

    fn effort(&self, plans: usize) -> Effort {
        let (threads, failures_max, again_every) = (threads(), FAILURES_MAX, AGAIN_EVERY);
        Effort { plans, seed: self.seed, threads, failures_max, again_every }
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

/// Runs what is asked for. Returns whether every property holds, and everything broken is caught.
fn simulate(arguments: &Arguments) -> anyhow::Result<bool> {
    let Arguments { quick, plans, plans_of_gateway, only, replay, .. } = arguments;
    if only.as_deref() == Some(VIEWS) || replay.as_ref().is_some_and(|line| line.starts_with(VIEWS)) {
        return views::simulate(if *quick { *plans_of_gateway } else { *plans }, arguments);
    }
    let fine = operator::simulate(arguments)?;
    if only.is_some() || replay.is_some() {
        return Ok(fine);
    }
    Ok(views::simulate(*plans_of_gateway, arguments)? && fine)
}

fn repository() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn read(path: &str) -> anyhow::Result<Vec<Value>> {
    let text = fs::read_to_string(repository().join(path)).with_context(|| format!("reading {path}"))?;
    Ok(documents::parse(path, &text)?.into_iter().map(|document| document.value).collect())
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
}

/// Runs each where nothing goes wrong. Returns those of which no property is broken, and whether that is all of them.
fn subjects<S: Simulate>(
    simulations: Vec<S>,
    seed: u64,
    quick: bool,
) -> anyhow::Result<(Vec<Subject<S>>, bool)> {
    let run = |_: usize, simulation: &S| -> anyhow::Result<_> {
        let begun = Instant::now();
        let once = || simulation.outcome(seed, &Plan::default(), None);
        let reference = once()?;
        let milliseconds = begun.elapsed().as_millis();
        let name = simulation.name();
        ensure!(quick || once()?.hash() == reference.hash(), "{name}: a run is not like the one before");
        Ok((reference, milliseconds))
    };
    let references = on_threads(threads(), &simulations, run)?;
    let mut subjects = Vec::new();
    let mut fine = true;
    for (simulation, (reference, milliseconds)) in simulations.into_iter().zip(references) {
        let name = simulation.name();
        if let Some(broken) = &reference.broken {
            fine = false;
            let last = reference.last_steps(STEPS_SHOWN);
            println!("FAILED  {name}, although nothing goes wrong\n{broken}\n{last}");
            continue;
        }
        let (writes, requests, events) = (reference.writes.len(), reference.requests, reference.events);
        println!("ok      {name}: {writes} writes, {requests} requests, {events} events; {milliseconds} ms");
        subjects.push(Subject { simulation, reference });
    }
    Ok((subjects, fine))
}

/// Repeats one run and prints everything that happened.
fn repeat<S: Simulate>(subjects: &[Subject<S>], line: &str) -> anyhow::Result<bool> {
    let replay: Replay<FaultOf<S>> = line.parse()?;
    let subject = search::subject(subjects, &replay.scenario).context("there is no such scenario")?;
    let outcome = subject.run(replay.seed, &replay.plan)?;
    for step in &outcome.steps {
        println!("{step}");
    }
    match &outcome.broken {
        Some(broken) => println!("{broken}"),
        None => println!("every property holds; {}", outcome.hash()),
    }
    Ok(outcome.broken.is_none())
}

/// Runs plans, and prints what came of them. Returns whether every property holds; and, in a whole search, every class came to pass.
fn search<S: Simulate>(
    subjects: &[Subject<S>],
    plans: &[Replay<FaultOf<S>>],
    is_whole: bool,
    arguments: &Arguments,
) -> anyhow::Result<bool> {
    let effort = arguments.effort(plans.len());
    let begun = Instant::now();
    let shown = AtomicU64::new(0);
    let is_terminal = std::io::stderr().is_terminal();
    let progress = |done: usize, failed: usize| {
        // Four times a second is as much as anybody reads.
        let tick = begun.elapsed().as_millis() as u64 / 250;
        if is_terminal && shown.swap(tick, Ordering::Relaxed) != tick {
            eprint!("\r{done} of {} plans, {failed} failed ", plans.len());
            let _ = std::io::stderr().flush();
        }
    };
    let tally = search::search(subjects, plans, &effort, &progress)?;
    if is_terminal {
        eprint!("\r\x1b[K");
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{} plans in {seconds:.1} s on {} threads, {:.1} a second; {} came to pass, {} were run twice, {} failed",
        tally.plans,
        effort.threads,
        tally.plans as f64 / seconds,
        tally.hit,
        tally.repeated,
        tally.failed
    );
    let counts =
        tally.by_class.iter().map(|(class, count)| format!("{class} {} of {}", count.hit, count.run));
    println!("came to pass: {}", counts.collect::<Vec<_>>().join(", "));
    for failure in &tally.failures {
        println!("FAILED  --replay '{}'", failure.replay);
        if let Some(broken) = &failure.outcome.broken {
            println!("{broken}");
        }
        println!("{}", failure.outcome.last_steps(STEPS_SHOWN));
    }
    let lacking = if is_whole { tally.lacking() } else { Vec::new() };
    for class in &lacking {
        println!("FAILED  no plan of {class} came to pass");
    }
    Ok(tally.failed == 0 && lacking.is_empty())
}

/// Whether each of what is broken is caught.
fn all_caught<B: Sync>(
    what: &str,
    all: &[B],
    is_caught: impl Fn(&B) -> anyhow::Result<bool> + Sync,
) -> anyhow::Result<bool> {
    let begun = Instant::now();
    let caught = on_threads(threads(), all, |_, one| is_caught(one))?;
    println!("{} {what} in {:.1} s", caught.len(), begun.elapsed().as_secs_f64());
    Ok(caught.into_iter().all(|is_caught| is_caught))
}

/// Whether a broken host or gateway breaks its property in one of these plans.
fn catches<S: Simulate>(
    name: &str,
    breaks: <S::Replicas as Replicas>::Property,
    (sound, broken): (&Subject<S>, &S),
    plans: &[Replay<FaultOf<S>>],
) -> anyhow::Result<bool> {
    let broken_by = |simulation: &S, replay: &Replay<FaultOf<S>>| -> anyhow::Result<_> {
        let outcome = simulation.outcome(replay.seed, &replay.plan, Some(&sound.reference))?;
        Ok(outcome.broken.map(|broken| broken.property))
    };
    for replay in plans {
        // What breaks a sound one in the same way says nothing of this one.
        if broken_by(broken, replay)? == Some(breaks) && broken_by(&sound.simulation, replay)? != Some(breaks)
        {
            println!("caught  {name}: {breaks} by {replay}");
            return Ok(true);
        }
    }
    println!("FAILED  {name} was not caught");
    Ok(false)
}
