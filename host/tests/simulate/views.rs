//! The gateway on the API server in memory, with the Views of the farm: the search, and the gateways that it must catch.

use std::time::{Duration, Instant};

use pintle_simulation::{
    scenario::ModuleFile,
    views::{
        Fault, OnEvent, OnRequest, Plan, Property, Replay, RunOutcome, Setting, Simulation, VIEWS,
        search::{self, Effort, Tally},
    },
};

use super::{
    AGAIN_EVERY, Arguments, STEPS_SHOWN,
    broken::{self, BrokenGateway},
    modules, on_all_cores, read, threads,
};

/// Lines that once broke a property; they are run before all others.
const CORPUS: &str = include_str!("views.txt");
/// The seeds of the runs in which a gateway is ended at each write.
const ENDED_AT_EACH_WRITE: [u64; 3] = [1, 6, 19];
/// How many plans a broken gateway is given to show what is wrong with it.
const PLANS_PER_GATEWAY: usize = 400;

/// The farm, whose Views are Ready.
fn setting() -> anyhow::Result<Setting> {
    let module = modules::resolve(&ModuleFile::of_guest("farm"))?;
    let mut sample = Vec::new();
    for file in ["crd", "apiservice", "views"] {
        sample.extend(read(&format!("deploy/samples/farm/{file}.yaml"))?);
    }
    Setting::new(&module, &sample)
}

/// Repeats one run and prints everything that happened.
pub(crate) fn replay(line: &str) -> anyhow::Result<bool> {
    let replay: Replay = line.parse().map_err(anyhow::Error::msg)?;
    let setting = setting()?;
    let outcome = Simulation::new(&setting).run(replay.seed, &replay.plan)?;
    for step in &outcome.steps {
        println!("{step}");
    }
    match &outcome.broken {
        Some(broken) => println!("{broken}"),
        None => println!("every property holds; {}", outcome.hash()),
    }
    Ok(outcome.broken.is_none())
}

/// Runs so many plans, and the broken gateways; returns whether every property holds, and every broken gateway is caught.
pub(crate) fn simulate(plans: usize, arguments: &Arguments) -> anyhow::Result<bool> {
    let setting = setting()?;
    let sound = Simulation::new(&setting);
    let begun = Instant::now();
    let reference = sound.run(arguments.seed, &Plan::default())?;
    println!(
        "the gateway as it stands: {} requests, {} events; {} ms",
        reference.requests,
        reference.events,
        begun.elapsed().as_millis()
    );
    let effort = Effort {
        plans,
        seed: arguments.seed,
        threads: threads(),
        failures_max: 20,
        again_every: AGAIN_EVERY,
    };
    let mut all = Vec::new();
    for line in CORPUS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        all.push(line.parse::<Replay>().map_err(|why| anyhow::anyhow!("simulate/views.txt: {why}"))?);
    }
    let of_corpus = all.len();
    let seeds: &[u64] = if arguments.quick { &[] } else { &ENDED_AT_EACH_WRITE };
    for &seed in seeds {
        let replay = Replay { scenario: VIEWS.into(), seed, plan: Plan::default() };
        all.extend(search::at_each_write(&replay, &sound.run(seed, &replay.plan)?));
    }
    println!("{of_corpus} plans of a corpus, {} of each write", all.len() - of_corpus);
    all.extend(search::plans(&reference, &effort));
    let begun = Instant::now();
    let tally = search::search(&sound, &all, &effort, &|_, _| {})?;
    report(&tally, begun);
    let mut fine = tally.failed == 0;
    if plans >= 500 {
        for word in lacking(&tally) {
            println!("FAILED  no {word} came to pass");
            fine = false;
        }
    }
    if !arguments.quick {
        fine &= catches_broken_gateways(&setting, &reference)?;
    }
    Ok(fine)
}

/// The sorts of faults of which none came to pass.
fn lacking(tally: &Tally) -> Vec<String> {
    let at_requests = OnRequest::ALL.iter().map(|what| Fault::Request(1, *what));
    let at_events = OnEvent::ALL.iter().map(|what| Fault::Event(1, *what));
    let throughout = [Fault::Lag(Duration::ZERO), Fault::Stale(1), Fault::Two];
    let words = at_requests.chain(at_events).chain(throughout).map(|fault| fault.word());
    words.filter(|word| !tally.hit.contains_key(word)).collect()
}

fn report(tally: &Tally, begun: Instant) {
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{} plans of the gateway in {seconds:.1} s on {} threads, {:.1} a second; {} were run twice, {} failed",
        tally.plans,
        threads(),
        tally.plans as f64 / seconds,
        tally.repeated,
        tally.failed
    );
    let counts = tally.hit.iter().map(|(word, count)| format!("{word} {count}"));
    println!("came to pass: {}", counts.collect::<Vec<_>>().join(", "));
    for failure in &tally.failures {
        println!("FAILED  --replay '{}'", failure.replay);
        if let Some(broken) = &failure.outcome.broken {
            println!("{broken}");
        }
        println!("{}", failure.outcome.last_steps(STEPS_SHOWN));
    }
}

/// Whether every broken gateway is caught.
fn catches_broken_gateways(setting: &Setting, reference: &RunOutcome) -> anyhow::Result<bool> {
    let begun = Instant::now();
    let caught = on_all_cores(broken::GATEWAYS, |gateway| catches(setting, reference, gateway))?;
    println!("{} broken gateways in {:.1} s", caught.len(), begun.elapsed().as_secs_f64());
    Ok(caught.into_iter().all(|is_caught| is_caught))
}

/// Whether a broken gateway breaks its property in one of the plans of a search.
fn catches(setting: &Setting, reference: &RunOutcome, gateway: &BrokenGateway) -> anyhow::Result<bool> {
    let sound = Simulation::new(setting);
    let (upstream, front) = gateway.seams();
    let broken = Simulation::new(setting).with_seams(upstream, front);
    let breaks = |simulation: &Simulation<'_>, replay: &Replay| -> anyhow::Result<Option<Property>> {
        let outcome = simulation.run(replay.seed, &replay.plan)?;
        Ok(outcome.broken.map(|broken| broken.property))
    };
    let effort = Effort { plans: PLANS_PER_GATEWAY, seed: 0, threads: 1, failures_max: 0, again_every: 0 };
    for replay in search::plans(reference, &effort) {
        // What breaks a sound gateway in the same way says nothing of this one.
        if breaks(&broken, &replay)? == Some(gateway.breaks)
            && breaks(&sound, &replay)? != Some(gateway.breaks)
        {
            println!("caught  {}: {} by {replay}", gateway.name, gateway.breaks.letter());
            return Ok(true);
        }
    }
    println!("FAILED  {} was not caught", gateway.name);
    Ok(false)
}
