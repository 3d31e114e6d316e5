//! Making plans, running many, and shortening those that break a property.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use super::{Fault, OnEvent, OnRequest, OnWrite, Outcome, Plan, Reference, Replay, Simulation};
use crate::clock::Random;

/// With this many writes or fewer, every pair of crashes is tried.
const PAIRS_UP_TO: u32 = 12;

/// How late every event comes in the plans about caches that lag.
const LAGS: [Duration; 3] = [Duration::from_millis(30), Duration::from_millis(400), Duration::from_secs(3)];

/// The faults that are tried at every write and every event before anything else.
const FIRST_WRITES: [OnWrite; 4] =
    [OnWrite::CrashBefore, OnWrite::LostReply, OnWrite::CrashAfter, OnWrite::TimeTravel];
const FIRST_EVENTS: [OnEvent; 4] = [OnEvent::Hide, OnEvent::Late, OnEvent::Duplicate, OnEvent::Gone];

/// What plans may be made of.
#[derive(Clone, Copy, Debug, Default)]
pub struct Menu {
    /// Modules to swap to are there (see [`Setting::new`](super::Setting::new)).
    pub spares: bool,
}

impl Menu {
    fn writes(self) -> impl Iterator<Item = OnWrite> {
        let needs_spare = |what: &OnWrite| {
            matches!(
                what,
                OnWrite::SwapTraps | OnWrite::SwapBroken | OnWrite::SwapLoops | OnWrite::SwapAllocates
            )
        };
        OnWrite::ALL.iter().copied().filter(move |what| self.spares || !needs_spare(what))
    }
}

/// Every plan with one fault of the first kinds, at each place that a run has.
pub fn first(run: &Outcome) -> Vec<Plan> {
    let writes =
        (1..=run.writes).flat_map(|number| FIRST_WRITES.map(|what| Plan(vec![Fault::Write(number, what)])));
    let events =
        (1..=run.events).flat_map(|number| FIRST_EVENTS.map(|what| Plan(vec![Fault::Event(number, what)])));
    writes.chain(events).collect()
}

/// Every other plan with one fault, and every pair of crashes where there are few writes.
pub fn further(run: &Outcome, menu: Menu) -> Vec<Plan> {
    let mut plans: Vec<Plan> = LAGS.iter().map(|by| Plan(vec![Fault::Lag(*by)])).collect();
    plans.push(Plan(vec![Fault::Rival]));
    for seconds in [1, 7200] {
        plans.push(Plan(vec![Fault::Skew(Duration::from_secs(seconds))]));
    }
    for number in 1..=run.writes {
        let others = menu.writes().filter(|what| !FIRST_WRITES.contains(what));
        plans.extend(others.map(|what| Plan(vec![Fault::Write(number, what)])));
        plans.push(Plan(vec![Fault::Rival, Fault::Write(number, OnWrite::Partition)]));
        plans.push(Plan(vec![Fault::Rival, Fault::Write(number, OnWrite::CrashAfter)]));
        if run.writes <= PAIRS_UP_TO {
            plans.extend((number + 1..=run.writes).map(|second| {
                Plan(vec![
                    Fault::Write(number, OnWrite::CrashAfter),
                    Fault::Write(second, OnWrite::CrashAfter),
                ])
            }));
        }
    }
    for number in 1..=run.events {
        let others = OnEvent::ALL.iter().filter(|what| !FIRST_EVENTS.contains(what));
        plans.extend(others.map(|what| Plan(vec![Fault::Event(number, *what)])));
    }
    for number in 1..=run.requests {
        plans.extend(OnRequest::ALL.iter().map(|what| Plan(vec![Fault::Request(number, *what)])));
    }
    plans
}

/// The plan of a seed: a few faults of a few kinds, anywhere.
pub fn mixed(run: &Outcome, menu: Menu, seed: u64) -> Plan {
    let mut random = Random::new(seed);
    let writes: Vec<OnWrite> = menu.writes().collect();
    let pick = |random: &mut Random, length: usize| random.below(length as u64) as usize;
    let place = |random: &mut Random, of: u32| 1 + random.below(of.max(1).into()) as u32;
    let mut faults = BTreeSet::new();
    // Which kinds a seed draws from differs too, so that some runs are all crashes and some all events.
    let kinds = 1 + random.below(7);
    for _ in 0..2 + random.below(4) {
        let kind = loop {
            let kind = random.below(3);
            if kinds & 1 << kind != 0 {
                break kind;
            }
        };
        faults.insert(match kind {
            0 => Fault::Write(place(&mut random, run.writes), writes[pick(&mut random, writes.len())]),
            1 => Fault::Event(
                place(&mut random, run.events),
                OnEvent::ALL[pick(&mut random, OnEvent::ALL.len())],
            ),
            _ => Fault::Request(
                place(&mut random, run.requests),
                OnRequest::ALL[pick(&mut random, OnRequest::ALL.len())],
            ),
        });
    }
    match random.below(10) {
        0 => drop(faults.insert(Fault::Rival)),
        1 => drop(faults.insert(Fault::Lag(LAGS[pick(&mut random, LAGS.len())]))),
        _ => {}
    }
    Plan(faults.into_iter().collect())
}

/// A scenario and the run by which others are judged.
pub struct Subject<'a> {
    /// The scenario.
    pub simulation: Simulation<'a>,
    /// Its run in which nothing goes wrong.
    pub reference: Reference,
}

/// A run that broke a property.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What repeats it, as short as it could be made.
    pub replay: Replay,
    /// What came of that.
    pub outcome: Outcome,
}

/// What came of many runs.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// How many distinct plans were run.
    pub plans: usize,
    /// How many of them had each perturbation of the catalogue.
    pub by_class: BTreeMap<&'static str, usize>,
    /// How many had a fault that came to pass.
    pub hit: usize,
    /// The runs that broke a property, at most as many as were asked for.
    pub failures: Vec<Failure>,
    /// How many broke one in all.
    pub failed: usize,
}

/// How much is searched.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// How many plans.
    pub plans: usize,
    /// The first seed of the mixed plans.
    pub seed: u64,
    /// How many runs at once.
    pub threads: usize,
    /// How many failures are shortened and kept.
    pub failures_max: usize,
}

/// The plans for a search, each with the number of its subject: all of the first kinds, then of the others and of the seeds so many
/// that it is as many as asked for.
pub fn plans(subjects: &[Subject<'_>], menu: Menu, effort: &Effort) -> Vec<(usize, u64, Plan)> {
    let mut chosen: Vec<(usize, u64, Plan)> = Vec::new();
    let mut known: BTreeSet<(usize, Plan)> = BTreeSet::new();
    let mut add = |chosen: &mut Vec<(usize, u64, Plan)>, index: usize, seed: u64, plan: Plan| {
        if known.insert((index, plan.clone())) {
            chosen.push((index, seed, plan));
        }
    };
    for (index, subject) in subjects.iter().enumerate() {
        for plan in first(&subject.reference.outcome) {
            add(&mut chosen, index, 0, plan);
        }
    }
    let mut others: Vec<(usize, Plan)> = Vec::new();
    for (index, subject) in subjects.iter().enumerate() {
        others.extend(further(&subject.reference.outcome, menu).into_iter().map(|plan| (index, plan)));
    }
    let mut random = Random::new(effort.seed);
    for last in (1..others.len()).rev() {
        others.swap(last, random.below(last as u64 + 1) as usize);
    }
    // Of what is left, two thirds go to single faults, and the rest to mixtures.
    let left = effort.plans.saturating_sub(chosen.len());
    for (index, plan) in others.into_iter().take(left * 2 / 3) {
        add(&mut chosen, index, 0, plan);
    }
    let mut seed = effort.seed;
    while chosen.len() < effort.plans && !subjects.is_empty() {
        seed += 1;
        let index = seed as usize % subjects.len();
        if let Some(subject) = subjects.get(index) {
            add(&mut chosen, index, seed, mixed(&subject.reference.outcome, menu, seed));
        }
    }
    chosen.truncate(effort.plans);
    chosen
}

/// Runs plans, several at once. `progress` is told of each run that is done.
///
/// # Errors
/// When the machine does not give what a run needs.
pub fn search(
    subjects: &[Subject<'_>],
    plans: &[(usize, u64, Plan)],
    effort: &Effort,
    progress: &(dyn Fn(usize) + Sync),
) -> anyhow::Result<Tally> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let tally = Mutex::new((Tally::default(), Vec::new()));
    let work = || -> anyhow::Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some((index, seed, plan)) = plans.get(number) else { return Ok(()) };
            let Some(subject) = subjects.get(*index) else { return Ok(()) };
            let outcome = subject.simulation.run(*seed, plan, &subject.reference)?;
            let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
            tally.0.plans += 1;
            tally.0.hit += usize::from(outcome.hits > 0);
            for class in plan.classes() {
                *tally.0.by_class.entry(class).or_default() += 1;
            }
            if outcome.broken.is_some() {
                tally.0.failed += 1;
                tally.1.push(number);
            }
            drop(tally);
            progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..effort.threads.max(1)).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a run panicked; run it alone to see why")))
        })
    })?;
    let (mut tally, mut failed) = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    // Which thread was first is no matter of the plans.
    failed.sort_unstable();
    for number in failed.into_iter().take(effort.failures_max) {
        if let Some((index, seed, plan)) = plans.get(number)
            && let Some(subject) = subjects.get(*index)
        {
            tally.failures.push(shorten(subject, *seed, plan)?);
        }
    }
    Ok(tally)
}

/// Leaves faults out of a plan as long as a property still breaks.
///
/// # Errors
/// When the machine does not give what a run needs.
pub fn shorten(subject: &Subject<'_>, seed: u64, plan: &Plan) -> anyhow::Result<Failure> {
    let mut plan = plan.clone();
    let mut outcome = subject.simulation.run(seed, &plan, &subject.reference)?;
    let mut at = 0;
    while plan.0.len() > 1 && at < plan.0.len() {
        let mut fewer = plan.clone();
        fewer.0.remove(at);
        let found = subject.simulation.run(seed, &fewer, &subject.reference)?;
        if found.broken.is_some() {
            (plan, outcome) = (fewer, found);
        } else {
            at += 1;
        }
    }
    let replay = Replay { scenario: subject.simulation.file.clone(), seed, plan };
    Ok(Failure { replay, outcome })
}
