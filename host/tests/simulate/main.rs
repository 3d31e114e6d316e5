//! The operator on an API server in memory, under everything that can go wrong:
//! `cargo test -p pintle --test simulate -- [--quick] [--seeds N] [--seed N] [--only PART-OF-A-NAME] [--replay LINE]`.
#![allow(clippy::disallowed_methods, reason = "it prints how many runs a second there were")]

mod broken;
mod views;

use std::{
    collections::BTreeMap,
    fs,
    io::{IsTerminal, Write},
    path::PathBuf,
    process::ExitCode,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Instant,
};

use anyhow::{Context, ensure};
use broken::BrokenHost;
use kit::modules;
use pintle_engine::fixtures;
use pintle_offline as offline;
use pintle_offline::documents;
use pintle_simulation::{
    Fault, NamedModule, Plan, Property, Replay, RunOutcome, Setting, Simulation,
    choice::{self, Effort, Menu, Subject},
    scenario::{ModuleFile, OnlyOn},
    search::{self, Tally},
    views::VIEWS,
};
use serde_json::Value;
use xtask::GUESTS;

/// What runs here is made of small objects that come and go; the allocator of the host takes a third less time for them than libc's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How many plans are run when nobody says otherwise, as in tier two.
const PLANS: usize = 5000;
/// How many are run in tier one, of the operator and of the gateway.
const QUICK_PLANS: (usize, usize) = (600, 120);
/// One plan of the gateway for this many of the operator.
const PLANS_OF_GATEWAY: usize = 10;
/// Plans that once broke a property; they are run before all others.
const CORPUS: &str = include_str!("corpus.txt");
/// One plan in this many is run twice.
const AGAIN_EVERY: usize = 50;
/// How many steps of a failure are shown.
const STEPS_SHOWN: usize = 14;

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

/// The scenarios, by the guests of this repository that they speak of: those are in their cluster, and no others, since every start of a
/// host binds every Reconciler that there is.
struct Files {
    by_guests: BTreeMap<Vec<&'static str>, Vec<(String, String)>>,
}

impl Files {
    fn read(is_asked_for: &dyn Fn(&str) -> bool) -> anyhow::Result<Self> {
        let mut by_guests: BTreeMap<_, Vec<_>> = BTreeMap::new();
        let entries = fs::read_dir(repository().join("scenarios"))?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        for name in names.filter(|name| name.ends_with(".yaml")) {
            let file = format!("scenarios/{name}");
            if !is_asked_for(&file) {
                continue;
            }
            let text = fs::read_to_string(repository().join(&file))?;
            let lower = text.to_lowercase();
            let guests = GUESTS.iter().map(|guest| guest.name).filter(|guest| lower.contains(guest));
            by_guests.entry(guests.collect()).or_default().push((file, text));
        }
        Ok(Self { by_guests })
    }

    fn settings(&self) -> anyhow::Result<BTreeMap<Vec<&'static str>, Setting>> {
        self.by_guests.keys().map(|guests| Ok((guests.clone(), setting(guests)?))).collect()
    }
}

/// Some of the guests of this repository, each on its kind, and modules that misbehave for plans that swap to them.
fn setting(guests: &[&str]) -> anyhow::Result<Setting> {
    let (mut crds, mut modules, mut objects) = (Vec::new(), Vec::new(), Vec::new());
    let mut spares: Vec<NamedModule> = Vec::new();
    let engine = offline::engine()?;
    for guest in GUESTS.into_iter().filter(|guest| guests.contains(&guest.name)) {
        let name = guest.name;
        crds.extend(read(&format!("{}/crd.yaml", guest.folder()))?);
        let bytes = modules::resolve(&ModuleFile::of_guest(name))?;
        let module = engine.load(&bytes, None).map_err(|failure| anyhow::anyhow!("{name}: {failure}"))?;
        let manifest = module.guest().context("it reconciles")?.manifest_text().to_owned();
        spares.extend([
            (format!("swap-traps-{name}"), fixtures::traps(&manifest)),
            (format!("swap-broken-{name}"), fixtures::answers(&manifest, "{\"children\": [")),
            (format!("swap-loops-{name}"), fixtures::loops(&manifest)),
            (format!("swap-allocates-{name}"), fixtures::allocates(&manifest)),
        ]);
        modules.push((guest.module.to_owned(), bytes));
        objects.extend(read(&guest.reconciler())?);
    }
    Setting::new(&crds, &modules, &spares, &objects)
}

/// The scenarios that both backends can run, each with its reference, and whether every property holds in all references. A scenario that
/// only the simulator runs has a reference, and no plans.
fn subjects<'a>(
    settings: &'a BTreeMap<Vec<&'static str>, Setting>,
    files: &Files,
    quick: bool,
) -> anyhow::Result<(Vec<Subject<'a>>, bool)> {
    let mut simulations = Vec::new();
    for (guests, files) in &files.by_guests {
        let setting = settings.get(guests).context("a setting for each set of guests")?;
        for (file, text) in files {
            let simulation = Simulation::new(setting, file, text, &modules::resolve)?;
            let only = simulation.scenario().only.as_ref().map(|only| only.on);
            if only != Some(OnlyOn::Real) {
                simulations.push(simulation);
            }
        }
    }
    simulations.sort_by(|one, other| one.file.cmp(&other.file));
    let run = |simulation: &Simulation<'_>| -> anyhow::Result<_> {
        let begun = Instant::now();
        let reference = simulation.reference(0)?;
        let milliseconds = begun.elapsed().as_millis();
        if !quick {
            let again = simulation.reference(0)?;
            let file = &simulation.file;
            ensure!(
                reference.outcome.hash() == again.outcome.hash(),
                "{file}: a run is not like the one before"
            );
        }
        Ok((reference, milliseconds))
    };
    let references = on_all_cores(&simulations, run)?;
    let mut subjects = Vec::new();
    let mut fine = true;
    for (simulation, (reference, milliseconds)) in simulations.into_iter().zip(references) {
        let (file, outcome) = (&simulation.file, &reference.outcome);
        match &outcome.broken {
            None => {
                println!(
                    "ok      {file}: {} writes, {} requests, {} events; looked at {} times more, nothing changed; {milliseconds} ms",
                    outcome.writes, outcome.requests, outcome.events, outcome.forced
                );
                if simulation.scenario().only.is_none() {
                    subjects.push(Subject { simulation, reference });
                }
            }
            Some(broken) => {
                fine = false;
                println!(
                    "FAILED  {file}, although nothing goes wrong\n{broken}\n{}",
                    outcome.last_steps(STEPS_SHOWN)
                );
            }
        }
    }
    Ok((subjects, fine))
}

/// Does something with each, as many at once as there are cores; the results are in the order of what they are of.
fn on_all_cores<T: Sync, R: Send>(
    all: &[T],
    work: impl Fn(&T) -> anyhow::Result<R> + Sync,
) -> anyhow::Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(one) = all.get(number) else { break };
            let result = work(one);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((number, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads() {
            scope.spawn(work);
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
}

fn simulate(arguments: &Arguments) -> anyhow::Result<bool> {
    let begun = Instant::now();
    if let Some(line) = arguments.replay.as_deref().filter(|line| line.starts_with(VIEWS)) {
        return views::replay(line);
    }
    if arguments.only.as_deref() == Some(VIEWS) {
        let plans = if arguments.quick { arguments.plans_of_gateway } else { arguments.plans };
        return views::simulate(plans, arguments);
    }
    let replay =
        arguments.replay.as_deref().map(str::parse::<Replay>).transpose().map_err(anyhow::Error::msg)?;
    let files = Files::read(&|file| match &replay {
        Some(replay) => replay.scenario == file,
        None => arguments.only.as_ref().is_none_or(|only| file.contains(only.as_str())),
    })?;
    let settings = files.settings()?;
    println!("{} settings are made after {:.1} s", settings.len(), begun.elapsed().as_secs_f64());
    let (subjects, mut fine) = subjects(&settings, &files, arguments.quick)?;
    println!("every scenario as it stands: after {:.1} s", begun.elapsed().as_secs_f64());
    if let Some(replay) = &replay {
        let subject = subjects.first().context("there is no such scenario")?;
        let outcome = subject.simulation.run(replay.seed, &replay.plan, &subject.reference)?;
        trace(&outcome);
        match &outcome.broken {
            Some(broken) => println!("{broken}"),
            None => println!("every property holds; {}", outcome.hash()),
        }
        return Ok(outcome.broken.is_none());
    }
    let tally = search(&subjects, arguments)?;
    report(&tally);
    fine &= tally.failed == 0;
    if arguments.only.is_none() && arguments.plans >= PLANS {
        for class in tally.lacking() {
            println!("FAILED  no plan of {class} came to pass");
            fine = false;
        }
    }
    if arguments.only.is_none() {
        fine &= catches_broken_hosts(&subjects, arguments.quick)?;
        fine &= views::simulate(arguments.plans_of_gateway, arguments)?;
    }
    Ok(fine)
}

fn search(subjects: &[Subject<'_>], arguments: &Arguments) -> anyhow::Result<Tally> {
    let threads = threads();
    let effort = Effort {
        plans: arguments.plans,
        seed: arguments.seed,
        threads,
        failures_max: 60,
        again_every: AGAIN_EVERY,
    };
    let corpus = match &arguments.only {
        Some(_) => Vec::new(),
        None => {
            choice::corpus(CORPUS, subjects).map_err(|why| anyhow::anyhow!("simulate/corpus.txt: {why}"))?
        }
    };
    let plans = choice::plans(subjects, Menu { spares: true }, &corpus, &effort);
    let small = subjects.iter().filter(|subject| subject.is_small()).count();
    println!("{} plans, {} of a corpus; every place of {small} small scenarios", plans.len(), corpus.len());
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
    let tally = search::search(subjects, &plans, &effort, &progress)?;
    if is_terminal {
        eprint!("\r\x1b[K");
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{} plans in {seconds:.1} s on {threads} threads, {:.1} a second; {} came to pass, {} were run twice, {} failed",
        tally.plans,
        tally.plans as f64 / seconds,
        tally.hit,
        tally.repeated,
        tally.failed
    );
    Ok(tally)
}

fn report(tally: &Tally) {
    let counts = tally.by_class.iter().map(|(kind, count)| format!("{kind} {} of {}", count.hit, count.run));
    println!("came to pass: {}", counts.collect::<Vec<_>>().join(", "));
    for (scenario, (plans, took)) in &tally.by_scenario {
        println!("{plans:>6}  {:>4} ms each  {scenario}", took.as_millis() / (*plans).max(1) as u128);
    }
    for failure in &tally.failures {
        println!("FAILED  --replay '{}'", failure.replay);
        if let Some(broken) = &failure.outcome.broken {
            println!("{broken}");
        }
        println!("{}", failure.outcome.last_steps(STEPS_SHOWN));
    }
}

/// How many plans a broken host or guest is given to show what is wrong with it.
const PLANS_PER_HOST: usize = 400;

/// Whether every broken host and guest is caught, of those that this tier looks for.
fn catches_broken_hosts(subjects: &[Subject<'_>], quick: bool) -> anyhow::Result<bool> {
    let begun = Instant::now();
    let mut hosts: Vec<&BrokenHost> = broken::HOSTS.iter().collect();
    if quick {
        hosts.retain(|host| broken::QUICK.contains(&host.name));
        ensure!(hosts.len() == broken::QUICK.len(), "a broken host of tier one is missing");
    }
    let caught = on_all_cores(&hosts, |host| catches(subjects, host))?;
    println!("{} broken hosts and guests in {:.1} s", caught.len(), begun.elapsed().as_secs_f64());
    Ok(caught.into_iter().all(|is_caught| is_caught))
}

/// Whether a broken host or guest breaks its property in one of the plans of a search. If that takes a crash, nothing may be broken where
/// nothing goes wrong.
fn catches(subjects: &[Subject<'_>], host: &BrokenHost) -> anyhow::Result<bool> {
    let sound = subjects.iter().find(|subject| subject.simulation.file == host.scenario);
    let sound = sound.with_context(|| format!("{} does not run", host.scenario))?;
    let text = fs::read_to_string(repository().join(host.scenario))?;
    let broken = Simulation::new(sound.simulation.setting, host.scenario, &text, &modules::resolve)?;
    let broken = broken.with_seams(host.seams());
    let breaks = |simulation: &Simulation<'_>, seed: u64, plan: &Plan| -> anyhow::Result<Option<Property>> {
        let outcome = simulation.run(seed, plan, &sound.reference)?;
        Ok(outcome.broken.map(|broken| broken.property))
    };
    let effort = Effort { plans: PLANS_PER_HOST, seed: 0, threads: 1, failures_max: 0, again_every: 0 };
    let chosen = choice::plans(std::slice::from_ref(sound), Menu::default(), &[], &effort);
    let mut plans = vec![(0, Plan::default())];
    plans.extend(chosen.into_iter().map(|chosen| (chosen.seed, chosen.plan)));
    if host.needs_crash {
        if let Some(found) = breaks(&broken, 0, &Plan::default())? {
            println!("FAILED  {} breaks {} where nothing goes wrong", host.name, found.letter());
            return Ok(false);
        }
        plans.retain(|(_, plan)| plan.any(Fault::crashes));
    }
    for (seed, plan) in plans {
        // What breaks a sound host in the same way says nothing of this one.
        if breaks(&broken, seed, &plan)? == Some(host.breaks)
            && breaks(&sound.simulation, seed, &plan)? != Some(host.breaks)
        {
            println!("caught  {}: {} by {plan}", host.name, host.breaks.letter());
            return Ok(true);
        }
    }
    println!("FAILED  {} was not caught", host.name);
    Ok(false)
}

fn trace(outcome: &RunOutcome) {
    for step in &outcome.steps {
        println!("{step}");
    }
}
