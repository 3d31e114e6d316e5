//! Runs many plans on the gateway, and shortens those that break a property.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use pintle_runtime::clock::Random;

use super::{
    Broken, Property, RunOutcome, Simulation,
    fault::{Fault, OnEvent, OnRequest, Plan, Replay, VIEWS},
};
use crate::{operator::search::on_threads, plan::AnyFault};

/// How much is searched.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// How many plans.
    pub plans: usize,
    /// The seed of the first plan.
    pub seed: u64,
    /// How many run at the same time.
    pub threads: usize,
    /// How many failures are shortened and kept.
    pub failures_max: usize,
    /// One plan in this many is run twice.
    pub again_every: usize,
}

/// A run that broke a property.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The line that repeats it, with as few faults and steps as possible.
    pub replay: Replay,
    /// The outcome of that line.
    pub outcome: RunOutcome,
}

/// The result of many runs.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// How many plans were run.
    pub plans: usize,
    /// How many were run twice, to see that both runs are the same.
    pub repeated: usize,
    /// How many plans had a fault of each sort that happened.
    pub hit: BTreeMap<String, usize>,
    /// How many runs broke a property.
    pub failed: usize,
    /// These, shortened; at most as many as the search was asked to keep.
    pub failures: Vec<Failure>,
}

/// The plans of a search: one without faults, then single faults and mixtures in turns. `reference` says how many places there are.
pub fn plans(reference: &RunOutcome, effort: &Effort) -> Vec<Replay> {
    (0..effort.plans as u64).map(|number| replay(reference, effort.seed + number, number)).collect()
}

/// Plans that end a gateway before and after each write of a run, or lose the reply to it.
pub fn at_each_write(replay: &Replay, run: &RunOutcome) -> Vec<Replay> {
    let faults = [OnRequest::Crash, OnRequest::CrashAfter, OnRequest::LostReply];
    let places = run.writes.iter().flat_map(|number| faults.map(|fault| Fault::Request(*number, fault)));
    let with = |fault| {
        let mut with = replay.clone();
        with.plan.0.push(fault);
        with
    };
    places.map(with).collect()
}

fn replay(reference: &RunOutcome, seed: u64, number: u64) -> Replay {
    let mut random = Random::new(seed);
    let count = match number {
        0 => 0,
        number if number % 2 == 1 => 1,
        _ => 2 + random.below(4),
    };
    let mut faults: Vec<Fault> = (0..count).map(|_| fault(reference, &mut random)).collect();
    faults.sort_unstable();
    faults.dedup();
    Replay { scenario: VIEWS.into(), seed, plan: Plan::of(faults) }
}

fn fault(reference: &RunOutcome, random: &mut Random) -> Fault {
    let mut place = |of: u32| 1 + u32::try_from(random.below(of.max(1).into())).unwrap_or(0);
    let (request, event) = (place(reference.requests), place(reference.events));
    let mut pick = |of: usize| usize::try_from(random.below(of as u64)).unwrap_or(0);
    match pick(20) {
        0 => Fault::Two,
        1 => Fault::Lag(Duration::from_millis(100 * (1 + pick(20) as u64))),
        2 => Fault::Stale(1 + pick(20) as u64),
        3..=5 => {
            Fault::Event(event, OnEvent::ALL.get(pick(OnEvent::ALL.len())).copied().unwrap_or(OnEvent::Gone))
        }
        _ => {
            let what = OnRequest::ALL.get(pick(OnRequest::ALL.len())).copied();
            Fault::Request(request, what.unwrap_or(OnRequest::Lost))
        }
    }
}

/// Runs plans.
///
/// # Errors
/// When the machine lacks the resources for a run.
pub fn search(
    simulation: &Simulation<'_>,
    plans: &[Replay],
    effort: &Effort,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> anyhow::Result<Tally> {
    let shared = Mutex::new((Tally::default(), Vec::new()));
    on_threads(effort.threads, plans, |number, replay| {
        let mut outcome = simulation.run(replay.seed, &replay.plan)?;
        let is_again = number.is_multiple_of(effort.again_every.max(1));
        if is_again && simulation.run(replay.seed, &replay.plan)?.hash() != outcome.hash() {
            let what = "the same plan did not lead to the same run";
            outcome.broken.get_or_insert(Broken::new(Property::Repeatable, what));
        }
        let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let (tally, failed) = &mut *shared;
        tally.plans += 1;
        tally.repeated += usize::from(is_again);
        for fault in &outcome.hit {
            *tally.hit.entry(fault.word()).or_default() += 1;
        }
        if outcome.broken.is_some() {
            tally.failed += 1;
            failed.push(number);
        }
        let (done, failed) = (tally.plans, tally.failed);
        drop(shared);
        progress(done, failed);
        Ok(())
    })?;
    let (mut tally, mut failed) = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    // The order of the threads must not affect the result.
    failed.sort_unstable();
    for replay in failed.into_iter().take(effort.failures_max).filter_map(|number| plans.get(number)) {
        tally.failures.push(shorten(simulation, replay)?);
    }
    Ok(tally)
}

/// Removes faults and steps from a plan as long as a property still breaks.
fn shorten(simulation: &Simulation<'_>, replay: &Replay) -> anyhow::Result<Failure> {
    let outcome = simulation.run(replay.seed, &replay.plan)?;
    let mut failure = Failure { replay: replay.clone(), outcome };
    let mut shorter = VecDeque::from(Fault::shorter(replay));
    while let Some(replay) = shorter.pop_front() {
        let outcome = simulation.run(replay.seed, &replay.plan)?;
        if outcome.broken.is_some() {
            // Once a fault is removed, another one may no longer be needed, so all are tried again.
            shorter = Fault::shorter(&replay).into();
            failure = Failure { replay, outcome };
        }
    }
    Ok(failure)
}
