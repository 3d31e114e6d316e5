//! The plans of a search: single faults and mixtures, in turns.

use std::time::Duration;

use pintle_runtime::clock::Random;

use super::{
    Replay, Subject,
    fault::{Fault, OnEvent, OnRequest, Plan},
};
use crate::search::Effort;

/// One plan without faults, then single faults and mixtures in turns. The reference says how many places there are.
pub fn plans(subject: &Subject<'_>, effort: &Effort) -> Vec<Replay> {
    let line = |number| {
        let seed = effort.seed + number;
        subject.replay(seed, plan(subject, &mut Random::new(seed), number))
    };
    (0..effort.plans as u64).map(line).collect()
}

/// Plans that end a gateway before and after each write of a run, or lose the reply to it.
///
/// # Errors
/// When the machine lacks the resources for a run.
pub fn at_each_write(subject: &Subject<'_>, seed: u64) -> anyhow::Result<Vec<Replay>> {
    let faults = [OnRequest::Crash, OnRequest::CrashAfter, OnRequest::LostReply];
    let run = subject.run(seed, &Plan::default())?;
    let places = run.writes.iter().flat_map(|number| faults.map(|fault| Fault::Request(*number, fault)));
    Ok(places.map(|fault| subject.replay(seed, Plan::of([fault]))).collect())
}

fn plan(subject: &Subject<'_>, random: &mut Random, number: u64) -> Plan {
    let count = match number {
        0 => 0,
        number if number % 2 == 1 => 1,
        _ => 2 + random.below(4),
    };
    let mut faults: Vec<Fault> = (0..count).map(|_| fault(subject, random)).collect();
    faults.sort_unstable();
    faults.dedup();
    Plan::of(faults)
}

fn fault(subject: &Subject<'_>, random: &mut Random) -> Fault {
    let mut place = |of: u32| 1 + random.below(of.max(1).into()) as u32;
    let (request, event) = (place(subject.reference.requests), place(subject.reference.events));
    let mut pick = |of: usize| random.below(of as u64) as usize;
    match pick(20) {
        0 => Fault::Two,
        1 => Fault::Lag(Duration::from_millis(100 * (1 + pick(20) as u64))),
        2 => Fault::Stale(1 + pick(20) as u64),
        3..=5 => Fault::Event(event, OnEvent::ALL[pick(OnEvent::ALL.len())]),
        _ => Fault::Request(request, OnRequest::ALL[pick(OnRequest::ALL.len())]),
    }
}
