//! Runs many plans, and shortens those that break a property.

use std::{
    any::Any,
    collections::{BTreeMap, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::{
    plan::{AnyFault, Plan, Replay},
    run::{Broken, FaultOf, Replicas, RunOutcome, Simulate},
};

/// What is run with plans.
pub struct Subject<S: Simulate> {
    /// How it is run.
    pub simulation: S,
    /// Its run without faults.
    pub reference: RunOutcome<S::Replicas>,
}

impl<S: Simulate> Subject<S> {
    /// Runs a plan.
    ///
    /// # Errors
    /// When the machine lacks the resources for a run.
    pub fn run(&self, seed: u64, plan: &Plan<FaultOf<S>>) -> anyhow::Result<RunOutcome<S::Replicas>> {
        self.simulation.outcome(seed, plan, Some(&self.reference))
    }

    /// The line that repeats a run.
    pub fn replay(&self, seed: u64, plan: Plan<FaultOf<S>>) -> Replay<FaultOf<S>> {
        Replay { scenario: self.simulation.name().to_owned(), seed, plan }
    }
}

/// The subject with this name.
pub fn subject<'s, S: Simulate>(subjects: &'s [Subject<S>], name: &str) -> Option<&'s Subject<S>> {
    subjects.iter().find(|subject| subject.simulation.name() == name)
}

/// The size of a search.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// The number of plans.
    pub plans: usize,
    /// The seed that the choice of plans begins with.
    pub seed: u64,
    /// The number of runs at the same time.
    pub threads: usize,
    /// The most failures that are shortened and kept.
    pub failures_max: usize,
    /// One in this many plans is run twice, to see that both runs are the same. With 0, none is.
    pub again_every: usize,
}

/// A run that broke a property.
pub struct Failure<R: Replicas> {
    /// The line that repeats it, with as little as possible in it.
    pub replay: Replay<R::Fault>,
    /// The outcome of that line.
    pub outcome: RunOutcome<R>,
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
pub struct Tally<R: Replicas> {
    /// How many plans were run.
    pub plans: usize,
    /// How many plans of each class there were.
    pub by_class: BTreeMap<R::Class, Count>,
    /// How many had a fault that happened.
    pub hit: usize,
    /// How many were run twice, to see that both runs are the same.
    pub repeated: usize,
    /// The runs that broke a property, at most as many as the search was asked to keep.
    pub failures: Vec<Failure<R>>,
    /// How many runs broke a property in total.
    pub failed: usize,
}

impl<R: Replicas> Default for Tally<R> {
    fn default() -> Self {
        Self { plans: 0, by_class: BTreeMap::new(), hit: 0, repeated: 0, failures: Vec::new(), failed: 0 }
    }
}

impl<R: Replicas> Tally<R> {
    fn count(&mut self, replay: &Replay<R::Fault>, outcome: &RunOutcome<R>) {
        self.plans += 1;
        self.failed += usize::from(outcome.broken.is_some());
        self.hit += usize::from(!outcome.hit.is_empty());
        let hit: Vec<R::Fault> = outcome.hit.iter().copied().collect();
        let hit = R::classes_of(&hit);
        for class in R::classes_of(&replay.plan.0) {
            let is_hit = hit.contains(&class);
            let count = self.by_class.entry(class).or_default();
            count.run += 1;
            count.hit += usize::from(is_hit);
        }
    }

    /// The classes of which no plan came to pass. A search that finds nothing because it no longer reaches anything proves nothing.
    pub fn lacking(&self) -> Vec<R::Class> {
        let mut classes = R::classes();
        classes.retain(|class| self.by_class.get(class).is_none_or(|count| count.hit == 0));
        classes
    }
}

/// Runs plans, several at the same time. `progress` gets the number of finished runs, and how many of them broke a property, after each
/// run.
///
/// # Errors
/// If the machine lacks the resources for a run, or a run panicked.
pub fn search<S: Simulate>(
    subjects: &[Subject<S>],
    plans: &[Replay<FaultOf<S>>],
    effort: &Effort,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> anyhow::Result<Tally<S::Replicas>> {
    let tally = Mutex::new(Tally::<S::Replicas>::default());
    let broke = on_threads(effort.threads, plans, |number, replay| {
        let Some(subject) = subject(subjects, &replay.scenario) else { return Ok(None) };
        let is_again = effort.again_every > 0 && number.is_multiple_of(effort.again_every);
        let outcome = run(subject, replay, is_again)?;
        let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
        tally.count(replay, &outcome);
        tally.repeated += usize::from(is_again);
        let (done, failed) = (tally.plans, tally.failed);
        drop(tally);
        progress(done, failed);
        Ok(outcome.broken)
    })?;
    let mut tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    for (replay, broken) in plans.iter().zip(broke) {
        let Some(broken) = broken else { continue };
        if tally.failures.len() >= effort.failures_max {
            break;
        }
        if let Some(subject) = subject(subjects, &replay.scenario) {
            let failure = shorten(subject, replay, broken)?;
            // Several plans may shorten to the same one.
            if !tally.failures.iter().any(|other| other.replay == failure.replay) {
                tally.failures.push(failure);
            }
        }
    }
    Ok(tally)
}

/// Does this with each and its number, on so many threads. The results are in the order of what they are of.
///
/// # Errors
/// One that there was on a thread, which ends that thread.
pub fn on_threads<T: Sync, U: Send>(
    threads: usize,
    all: &[T],
    work: impl Fn(usize, &T) -> anyhow::Result<U> + Sync,
) -> anyhow::Result<Vec<U>> {
    let next = AtomicUsize::new(0);
    let on_one = || {
        let mut done = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(one) = all.get(number) else { return anyhow::Ok(done) };
            done.push((number, work(number, one)?));
        }
    };
    let mut done = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(on_one)).collect();
        let mut done = Vec::new();
        for thread in threads {
            done.extend(thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("the search panicked")))?);
        }
        anyhow::Ok(done)
    })?;
    done.sort_by_key(|(number, _)| *number);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

/// Runs a plan. With `again`, runs it twice, and both runs must be the same.
fn run<S: Simulate>(
    subject: &Subject<S>,
    replay: &Replay<FaultOf<S>>,
    again: bool,
) -> anyhow::Result<RunOutcome<S::Replicas>> {
    let once = || {
        let run = || subject.run(replay.seed, &replay.plan);
        catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
            let said = said(panic.as_ref());
            Err(anyhow::anyhow!("a run panicked: {said}\n  --replay '{replay}'"))
        })
    };
    let mut outcome = once()?;
    if again && once()?.hash() != outcome.hash() {
        let what = "the same plan did not lead to the same run";
        outcome.broken.get_or_insert(Broken::new(S::Replicas::REPEATABLE, what));
    }
    Ok(outcome)
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it did not say why")
}

/// Takes as much as possible from a line as long as a property still breaks.
fn shorten<S: Simulate>(
    subject: &Subject<S>,
    replay: &Replay<FaultOf<S>>,
    broken: Broken<<S::Replicas as Replicas>::Property>,
) -> anyhow::Result<Failure<S::Replicas>> {
    let mut outcome = subject.run(replay.seed, &replay.plan)?;
    // One run alone does not show that two differ.
    outcome.broken.get_or_insert(broken);
    let mut failure = Failure { replay: replay.clone(), outcome };
    let mut shorter = VecDeque::from(AnyFault::shorter(replay));
    while let Some(replay) = shorter.pop_front() {
        let outcome = subject.run(replay.seed, &replay.plan)?;
        if outcome.broken.is_some() {
            // Once a fault is removed, another one may no longer be needed, so all are tried again.
            shorter = AnyFault::shorter(&replay).into();
            failure = Failure { replay, outcome };
        }
    }
    Ok(failure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Class, Hosts};

    #[test]
    fn a_class_of_which_no_plan_came_to_pass_is_lacking() {
        let mut tally = Tally::<Hosts>::default();
        tally.by_class.insert(Class::Crash, Count { run: 9, hit: 1 });
        tally.by_class.insert(Class::LostWrite, Count { run: 9, hit: 0 });
        let lacking = tally.lacking();
        assert_eq!(lacking.len(), Class::ALL.len() - 1);
        assert!(!lacking.contains(&Class::Crash));
    }
}
