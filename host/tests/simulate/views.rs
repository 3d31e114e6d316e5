//! The gateway on the API server in memory, with the Views of the farm: the search, and the gateways that it must catch.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use pintle_simulation::{
    scenario::ModuleFile,
    views::{
        Fault, OnEvent, OnRequest, Plan, Replay, RunOutcome, Setting, Simulation,
        search::{self, Effort, Tally},
    },
};

use super::{AGAIN_EVERY, Arguments, STEPS_SHOWN, modules, on_all_cores, read, threads, zoo};

/// Lines that once broke a property; they are run before all others.
const CORPUS: &str = include_str!("views.txt");
/// The seeds of the runs in which a gateway is ended at each write.
const ENDED_AT_EACH_WRITE: [u64; 3] = [1, 6, 19];
/// How many plans a broken gateway is given to show what is wrong with it.
const PLANS_PER_ANIMAL: usize = 400;

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

/// Runs so many plans, and the zoo; returns whether every property holds, and every broken gateway is caught.
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
        let replay = Replay { seed, plan: Plan::default() };
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
    if !arguments.no_zoo && !arguments.quick {
        fine &= visit_the_zoo(&setting, &reference, arguments.write_table)?;
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

const TABLE_BEGINS: &str = "<!-- what catches which gateway: written by the test -->\n";

/// Whether every broken gateway is caught, and docs/simulator.md says by what.
fn visit_the_zoo(setting: &Setting, reference: &RunOutcome, write: bool) -> anyhow::Result<bool> {
    let begun = Instant::now();
    let zoo = zoo::gateways();
    // Only one thread compares and prints at a time.
    let printing = Mutex::new(());
    let caught = on_all_cores(zoo, |animal| {
        let by = catch(setting, reference, animal)?;
        let _turn = printing.lock();
        println!("caught   {}: {}", animal.name, by.as_deref().unwrap_or("ESCAPED"));
        Ok(by)
    })?;
    println!("{} broken gateways in {:.1} s", caught.len(), begun.elapsed().as_secs_f64());
    let mut table = String::from("| animal | what is wrong with it | caught by |\n| --- | --- | --- |\n");
    for (animal, by) in zoo.iter().zip(&caught) {
        table.push_str(&format!(
            "| {} | {} | {} |\n",
            animal.name,
            animal.about,
            by.as_deref().unwrap_or("nothing")
        ));
    }
    let is_table_so = super::is_table_so(TABLE_BEGINS, &table, write)?;
    Ok(caught.iter().all(Option::is_some) && is_table_so)
}

/// By what property a broken gateway is caught, and with which faults.
fn catch(
    setting: &Setting,
    reference: &RunOutcome,
    animal: &zoo::BrokenGateway,
) -> anyhow::Result<Option<String>> {
    let (sound, broken) = (Simulation::new(setting), Simulation::new(setting));
    let broken = broken.with_seams(animal.upstream_seams(), animal.front_seams());
    let effort = Effort { plans: PLANS_PER_ANIMAL, seed: 0, threads: 1, failures_max: 0, again_every: 0 };
    for replay in search::plans(reference, &effort) {
        let outcome = broken.run(replay.seed, &replay.plan)?;
        let Some(found) = outcome.broken else { continue };
        // What breaks a sound gateway in the same way says nothing of this one.
        let of_sound = sound.run(replay.seed, &replay.plan)?.broken;
        if of_sound.is_some_and(|of_sound| of_sound.property == found.property) {
            continue;
        }
        let failure = search::shorten(&broken, &replay)?;
        let property = failure.outcome.broken.map_or(found.property, |broken| broken.property);
        let faults: Vec<String> = failure.replay.plan.faults.iter().map(Fault::word).collect();
        let faults = if faults.is_empty() { "no fault".to_owned() } else { faults.join(", ") };
        return Ok(Some(format!("{} ({faults})", property.letter())));
    }
    Ok(None)
}
