//! Runs many plans, and shortens those that break a property.

use std::{
    any::Any,
    collections::{BTreeMap, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pintle_runtime::clock;

use super::{
    Broken, Class, Fault, Plan, Property, Replay, RunOutcome, Simulation,
    choice::{Chosen, Effort, Subject},
};
use crate::plan::AnyFault;

/// A run that broke a property.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The line that repeats it, with as few faults as possible.
    pub replay: Replay,
    /// The outcome of that line.
    pub outcome: RunOutcome,
}

/// The number of plans of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Plans that were run.
    pub run: usize,
    /// Those of them in which a fault of the class happened.
    pub hit: usize,
}

/// The result of many runs.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// How many distinct plans were run.
    pub plans: usize,
    /// How many plans of each class there were.
    pub by_class: BTreeMap<Class, Count>,
    /// How many plans of each scenario there were, and how long they took together.
    pub by_scenario: BTreeMap<String, (usize, Duration)>,
    /// How many had a fault that happened.
    pub hit: usize,
    /// How many were run twice, to see that both runs are the same.
    pub repeated: usize,
    /// The runs that broke a property, at most as many as the search was asked to keep.
    pub failures: Vec<Failure>,
    /// How many runs broke a property in total.
    pub failed: usize,
}

impl Tally {
    fn count(&mut self, simulation: &Simulation<'_>, plan: &Plan, outcome: &RunOutcome, took: Duration) {
        self.plans += 1;
        self.hit += usize::from(!outcome.hit.is_empty());
        let of_scenario = self.by_scenario.entry(simulation.file.clone()).or_default();
        *of_scenario = (of_scenario.0 + 1, of_scenario.1 + took);
        let hit = Plan::of(outcome.hit.iter().copied()).kinds();
        for kind in plan.kinds() {
            let count = self.by_class.entry(kind).or_default();
            count.run += 1;
            count.hit += usize::from(hit.contains(&kind));
        }
    }

    /// The classes of which no plan came to pass. A search that finds nothing because it no longer reaches anything proves nothing.
    pub fn lacking(&self) -> Vec<Class> {
        let came_to_pass = |class: &Class| self.by_class.get(class).is_some_and(|count| count.hit > 0);
        Class::ALL.into_iter().filter(|class| !came_to_pass(class)).collect()
    }
}

/// Runs plans, several at the same time. `progress` gets the number of finished runs, and how many of them broke a property, after each
/// run.
///
/// # Errors
/// If the machine lacks the resources for a run, or a run panicked.
pub fn search(
    subjects: &[Subject<'_>],
    plans: &[Chosen],
    effort: &Effort,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> anyhow::Result<Tally> {
    let tally = Mutex::new((Tally::default(), Vec::new()));
    on_threads(effort.threads, plans, |number, chosen| {
        let Some(subject) = subjects.get(chosen.subject) else { return Ok(()) };
        let is_again = effort.again_every > 0 && number.is_multiple_of(effort.again_every);
        let begun = clock::monotonic();
        let outcome = run(subject, chosen, is_again)?;
        let took = clock::monotonic().saturating_sub(begun);
        let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
        tally.0.count(&subject.simulation, &chosen.plan, &outcome, took);
        tally.0.repeated += usize::from(is_again);
        if outcome.broken.is_some() {
            tally.0.failed += 1;
            tally.1.push(number);
        }
        let (done, failed) = (tally.0.plans, tally.0.failed);
        drop(tally);
        progress(done, failed);
        Ok(())
    })?;
    let (mut tally, mut failed) = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    // The order of the threads must not affect the result.
    failed.sort_unstable();
    for number in failed {
        if tally.failures.len() >= effort.failures_max {
            break;
        }
        if let Some(chosen) = plans.get(number)
            && let Some(subject) = subjects.get(chosen.subject)
        {
            let failure = shorten(subject, &subject.replay(chosen))?;
            // Several plans may shorten to the same one.
            if !tally.failures.iter().any(|other| other.replay == failure.replay) {
                tally.failures.push(failure);
            }
        }
    }
    Ok(tally)
}

/// Does this with each plan and its number, on so many threads.
///
/// # Errors
/// The first that there was on a thread, which ends that thread.
pub(crate) fn on_threads<T: Sync>(
    threads: usize,
    plans: &[T],
    run: impl Fn(usize, &T) -> anyhow::Result<()> + Sync,
) -> anyhow::Result<()> {
    let next = AtomicUsize::new(0);
    let work = || loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Some(plan) = plans.get(number) else { return Ok(()) };
        run(number, plan)?;
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("the search panicked")))
        })
    })
}

/// Runs a plan. With `again`, runs it twice, and both runs must be the same.
fn run(subject: &Subject<'_>, chosen: &Chosen, again: bool) -> anyhow::Result<RunOutcome> {
    let simulation = &subject.simulation;
    let once = || {
        let run = || simulation.run(chosen.seed, &chosen.plan, &subject.reference);
        catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
            let (replay, said) = (subject.replay(chosen), said(panic.as_ref()));
            Err(anyhow::anyhow!("a run panicked: {said}\n  --replay '{replay}'"))
        })
    };
    let mut outcome = once()?;
    if again && once()?.hash() != outcome.hash() {
        let what = "the same plan did not lead to the same run".into();
        outcome.broken.get_or_insert(Broken { property: Property::Repeatable, step: None, what });
    }
    Ok(outcome)
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it did not say why")
}

/// Removes faults from a plan as long as a property still breaks.
fn shorten(subject: &Subject<'_>, replay: &Replay) -> anyhow::Result<Failure> {
    let run = |replay: &Replay| subject.simulation.run(replay.seed, &replay.plan, &subject.reference);
    let mut failure = Failure { replay: replay.clone(), outcome: run(replay)? };
    let mut shorter = VecDeque::from(Fault::shorter(replay));
    while let Some(replay) = shorter.pop_front() {
        let outcome = run(&replay)?;
        if outcome.broken.is_some() {
            // Once a fault is removed, another one may no longer be needed, so all are tried again.
            shorter = Fault::shorter(&replay).into();
            failure = Failure { replay, outcome };
        }
    }
    Ok(failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_of_which_no_plan_came_to_pass_is_lacking() {
        let mut tally = Tally::default();
        tally.by_class.insert(Class::Crash, Count { run: 9, hit: 1 });
        tally.by_class.insert(Class::LostWrite, Count { run: 9, hit: 0 });
        let lacking = tally.lacking();
        assert_eq!(lacking.len(), Class::ALL.len() - 1);
        assert!(!lacking.contains(&Class::Crash));
    }
}
