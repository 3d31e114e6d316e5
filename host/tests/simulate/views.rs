//! The gateway, with the Views of the farm, and the gateways that the search must catch.

use anyhow::Context;
use kit::modules;
use pintle_simulation::{
    corpus,
    scenario::ModuleFile,
    views::{Setting, Simulation, choice},
};

use super::{
    Arguments, FOR_BROKEN, PLANS, PLANS_OF_GATEWAY, all_caught, broken, catches, read, repeat, search,
    subjects,
};

/// Lines that once broke a property; they are run before all others.
const CORPUS: &str = include_str!("views.txt");
/// The seeds of the runs in which a gateway is ended at each write.
const ENDED_AT_EACH_WRITE: [u64; 3] = [1, 6, 19];

/// The farm, whose Views are Ready.
fn setting() -> anyhow::Result<Setting> {
    let module = modules::resolve(&ModuleFile::of_guest("farm"))?;
    let mut sample = Vec::new();
    for file in ["crd", "apiservice", "views"] {
        sample.extend(read(&format!("deploy/samples/farm/{file}.yaml"))?);
    }
    Setting::new(&module, &sample)
}

/// Runs so many plans, and the broken gateways; returns whether every property holds, and every broken gateway is caught.
pub(crate) fn simulate(count: usize, arguments: &Arguments) -> anyhow::Result<bool> {
    let setting = setting()?;
    let (subjects, fine) = subjects(vec![Simulation::new(&setting)], arguments.seed, arguments.quick)?;
    let ([subject], true) = (subjects.as_slice(), fine) else { return Ok(false) };
    if let Some(line) = &arguments.replay {
        return repeat(&subjects, line);
    }
    let mut plans = corpus(CORPUS, &subjects).context("simulate/views.txt")?;
    let of_corpus = plans.len();
    let seeds: &[u64] = if arguments.quick { &[] } else { &ENDED_AT_EACH_WRITE };
    for &seed in seeds {
        plans.extend(choice::at_each_write(subject, seed)?);
    }
    println!("{of_corpus} plans of a corpus, {} of each write", plans.len() - of_corpus);
    plans.extend(choice::plans(subject, &arguments.effort(count)));
    let mut fine = search(&subjects, &plans, count >= PLANS / PLANS_OF_GATEWAY, arguments)?;
    if !arguments.quick {
        let plans = choice::plans(subject, &FOR_BROKEN);
        fine &= all_caught("broken gateways", broken::GATEWAYS, |gateway| {
            let (upstream, front) = gateway.seams();
            let broken = Simulation::new(&setting).with_seams(upstream, front);
            catches(gateway.name, gateway.breaks, (subject, &broken), &plans)
        })?;
    }
    Ok(fine)
}
