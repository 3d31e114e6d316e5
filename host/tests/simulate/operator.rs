//! The operator: the scenarios that the simulator can run, and the hosts and guests that the search must catch.

use std::{collections::BTreeMap, fs};

use anyhow::{Context, ensure};
use kit::modules;
use pintle_engine::fixtures;
use pintle_offline as offline;
use pintle_simulation::{
    Fault, NamedModule, OnWrite, Plan, Replay, Setting, Simulation, Subject, choice, corpus,
    run::Simulate,
    scenario::{ModuleFile, OnlyOn},
    search,
};
use xtask::{GUESTS, RAW};

use super::{
    Arguments, FOR_BROKEN, PLANS, all_caught,
    broken::{self, BrokenHost},
    catches, read, repeat, repository, subjects,
};

/// Plans that once broke a property; they are run before all others.
const CORPUS: &str = include_str!("corpus.txt");

/// The scenarios, by the guests of this repository that they speak of: those are in their cluster, and no others, since every start of a
/// host binds every Reconciler that there is.
type Files = BTreeMap<Vec<&'static str>, Vec<(String, String)>>;

fn files(is_asked_for: &dyn Fn(&str) -> bool) -> anyhow::Result<Files> {
    let mut by_guests = Files::new();
    let entries = fs::read_dir(repository().join("scenarios"))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let files = names.filter(|name| name.ends_with(".yaml")).map(|name| format!("scenarios/{name}"));
    for file in files.filter(|file| is_asked_for(file)) {
        let text = fs::read_to_string(repository().join(&file))?;
        let lower = text.to_lowercase();
        let guests = GUESTS.iter().map(|guest| guest.name).filter(|guest| lower.contains(guest));
        // Its name is a part of other words.
        let raw = lower.contains("raw.example.com").then_some(RAW.name);
        by_guests.entry(guests.chain(raw).collect()).or_default().push((file, text));
    }
    Ok(by_guests)
}

/// Some of the guests of this repository, each on its kind, and modules that misbehave for plans that swap to them.
fn setting(guests: &[&str]) -> anyhow::Result<Setting> {
    let (mut crds, mut modules, mut objects) = (Vec::new(), Vec::new(), Vec::new());
    let mut spares: Vec<NamedModule> = Vec::new();
    let engine = offline::engine()?;
    for guest in GUESTS.into_iter().chain([RAW]).filter(|guest| guests.contains(&guest.name)) {
        let name = guest.name;
        crds.extend(read(&format!("{}/crd.yaml", guest.folder))?);
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
        objects.extend(read(guest.reconciler)?);
    }
    Setting::new(&crds, &modules, &spares, &objects)
}

pub(crate) fn simulate(arguments: &Arguments) -> anyhow::Result<bool> {
    let Arguments { quick, only, replay, .. } = arguments;
    let files = files(&|file| match replay {
        Some(line) => line.split(' ').next() == Some(file),
        None => only.as_ref().is_none_or(|only| file.contains(only.as_str())),
    })?;
    let settings = files.into_iter().map(|(guests, files)| Ok((setting(&guests)?, files)));
    let settings = settings.collect::<anyhow::Result<Vec<_>>>()?;
    let mut simulations = Vec::new();
    for (setting, files) in &settings {
        for (file, text) in files {
            simulations.push(Simulation::new(setting, file, text, &modules::resolve)?);
        }
    }
    let only_on = |simulation: &Simulation<'_>| simulation.scenario().only.as_ref().map(|only| only.on);
    simulations.retain(|simulation| only_on(simulation) != Some(OnlyOn::Real));
    simulations.sort_by(|one, other| one.file.cmp(&other.file));
    let (mut subjects, mut fine) = subjects(simulations, 0, *quick)?;
    if let Some(line) = replay {
        return repeat(&subjects, line);
    }
    // A scenario that only the simulator runs has no plans.
    subjects.retain(|subject| only_on(&subject.simulation).is_none());
    let is_all = only.is_none();
    let corpus = if is_all { corpus(CORPUS, &subjects).context("simulate/corpus.txt")? } else { Vec::new() };
    let plans = choice::plans(&subjects, &corpus, &arguments.effort(arguments.plans));
    let small = subjects.iter().filter(|subject| subject.is_small()).count();
    println!("{} plans, {} of a corpus; every place of {small} small scenarios", plans.len(), corpus.len());
    fine &= super::search(&subjects, &plans, is_all && arguments.plans >= PLANS, arguments)?;
    if is_all {
        let mut hosts: Vec<&BrokenHost> = broken::HOSTS.iter().collect();
        if *quick {
            hosts.retain(|host| broken::QUICK.contains(&host.name));
            ensure!(hosts.len() == broken::QUICK.len(), "a broken host of tier one is missing");
        }
        fine &= all_caught("broken hosts and guests", &hosts, |host| is_caught(&subjects, host))?;
    }
    Ok(fine)
}

/// Whether a broken host or guest breaks its property in one of the plans of a search. If that takes a crash, one after some write must do
/// it, and nothing may be broken where nothing goes wrong.
fn is_caught(subjects: &[Subject<'_>], host: &BrokenHost) -> anyhow::Result<bool> {
    let sound = search::subject(subjects, host.scenario);
    let sound = sound.with_context(|| format!("{} does not run", host.scenario))?;
    let text = fs::read_to_string(repository().join(host.scenario))?;
    let broken = Simulation::new(sound.simulation.setting, host.scenario, &text, &modules::resolve)?;
    let broken = broken.with_seams(host.seams());
    let nothing = Plan::default();
    if !host.needs_crash {
        let mut plans = vec![sound.replay(0, nothing)];
        plans.extend(choice::plans(std::slice::from_ref(sound), &[], &FOR_BROKEN));
        return catches(host.name, host.breaks, (sound, &broken), &plans);
    }
    if let Some(found) = broken.outcome(0, &nothing, Some(&sound.reference))?.broken {
        println!("FAILED  {} breaks {} where nothing goes wrong", host.name, found.property);
        return Ok(false);
    }
    let crash = |number| sound.replay(0, Plan::of([Fault::Write(number, OnWrite::CrashAfter)]));
    let plans: Vec<Replay> = (1..=sound.reference.writes.len() as u32).map(crash).collect();
    catches(host.name, host.breaks, (sound, &broken), &plans)
}
