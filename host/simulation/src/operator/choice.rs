//! The plans of a search: those of the corpus, every place of small scenarios, and for each class as many plans as its weight says.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use pintle_runtime::clock::Random;

use super::{Class, Fault, Hosts, OnEvent, OnRequest, OnWrite, Plan, Replay, Subject, fault::RIVAL};
use crate::{corpus::places, search::Effort};

/// How late every event comes in the plans with a stale cache, in milliseconds: within a pass, between two passes, and after the first
/// back-offs.
const LAGS: [u64; 7] = [10, 30, 100, 400, 1000, 3000, 9000];

/// How far each host's wall clock is behind that of the host before it, in seconds.
const SKEWS: [u64; 4] = [1, 30, 600, 7200];

/// What can go wrong in the run of a subject.
struct Places<'a> {
    /// What the hosts write, from the trace of the run without faults.
    writes: Vec<&'a str>,
    requests: u32,
    events: u32,
    /// The faults that the scenario excludes.
    without: &'a [String],
    /// Whether there are modules to swap to.
    has_spares: bool,
}

impl<'a> Places<'a> {
    fn of(subject: &'a Subject<'_>) -> Self {
        let run = &subject.reference;
        let writes = places::<Hosts>(&run.steps).filter(|(place, _)| place.starts_with('w'));
        let without = subject.simulation.scenario().without.as_ref();
        Self {
            writes: writes.map(|(_, what)| what).collect(),
            requests: run.requests,
            events: run.events,
            without: without.map_or(&[], |without| without.faults.as_slice()),
            has_spares: !subject.simulation.setting.spares.is_empty(),
        }
    }

    fn allow(&self, word: &str) -> bool {
        !self.without.iter().any(|one| one == word)
    }

    fn write_count(&self) -> u32 {
        self.writes.len() as u32
    }

    /// The faults at a write that can have an effect. People change roots, their children, and objects that the host patches. They do not
    /// change the host's own objects, or children that no watch shows.
    fn at_write(&self, number: u32) -> Vec<Fault> {
        let write = (number as usize).checked_sub(1).and_then(|index| self.writes.get(index));
        let applied = write.and_then(|write| write.strip_prefix("apply ")?.split(' ').next());
        let can_be = |what: &OnWrite| {
            let class = what.class();
            if !class.meddles() {
                return true;
            }
            let needs_spare = class == Class::BrokenSwap || *what == OnWrite::SwapTraps;
            let Some(resource) = applied.filter(|_| self.has_spares || !needs_spare) else { return false };
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            let is_own = matches!(resource, "modules" | "reconcilers");
            let is_child = subresource.is_empty() && resource != "secrets";
            let needs_child = class == Class::Meddling && *what != OnWrite::EditStatus;
            !is_own && (is_child || !needs_child)
        };
        let fitting = OnWrite::ALL.iter().copied().filter(|what| self.allow(what.word()) && can_be(what));
        fitting.map(|what| Fault::Write(number, what)).collect()
    }

    fn at_event(&self, number: u32) -> Vec<Fault> {
        let fitting = OnEvent::ALL.iter().copied().filter(|what| self.allow(what.word()));
        fitting.map(|what| Fault::Event(number, what)).collect()
    }

    fn at_request(number: u32) -> Vec<Fault> {
        OnRequest::ALL.iter().map(|what| Fault::Request(number, *what)).collect()
    }

    /// Every plan with one fault, pairs of crashes, and faults beside a second host.
    fn single(&self) -> Vec<Plan> {
        let rival = self.allow(RIVAL).then_some(Fault::Rival);
        let of_run = LAGS.map(lag).into_iter().chain(SKEWS.map(skew)).chain(rival);
        let writes = 1..=self.write_count();
        let at_writes = writes.clone().flat_map(|number| self.at_write(number));
        let at_events = (1..=self.events).flat_map(|number| self.at_event(number));
        let at_requests = (1..=self.requests).flat_map(Self::at_request);
        let one = of_run.chain(at_writes).chain(at_events).chain(at_requests);
        let mut plans: Vec<Plan> = one.map(|fault| Plan::of([fault])).collect();
        let crash = |number| Fault::Write(number, OnWrite::CrashAfter);
        for first in writes {
            plans.extend(
                (first + 1..=self.write_count()).map(|second| Plan::of([crash(first), crash(second)])),
            );
            let beside = [OnWrite::Partition, OnWrite::CrashAfter, OnWrite::CrashBefore];
            let beside =
                beside.map(|what| Fault::Write(first, what)).into_iter().zip(rival.into_iter().cycle());
            plans.extend(beside.map(|(fault, rival)| Plan::of([fault, rival])));
        }
        plans
    }

    /// The plan of a seed: a few random faults at random places.
    fn mixed(&self, seed: u64) -> Plan {
        let mut random = Random::new(seed);
        let mut faults = BTreeSet::new();
        // The seed also decides which kinds of places it draws, so that some runs have only crashes and some only events.
        let mask = 1 + random.below(7);
        let kinds: Vec<u64> = (0..3).filter(|&kind| mask & 1 << kind != 0).collect();
        for _ in 0..2 + random.below(4) {
            let kind = draw(&mut random, &kinds);
            let mut place = |of: u32| 1 + random.below(of.max(1).into()) as u32;
            let fitting = match kind {
                Some(0) => self.at_write(place(self.write_count())),
                Some(1) => self.at_event(place(self.events)),
                _ => Self::at_request(place(self.requests)),
            };
            faults.extend(draw(&mut random, &fitting));
        }
        faults.extend(match random.below(12) {
            0 | 1 => self.allow(RIVAL).then_some(Fault::Rival),
            2 => draw(&mut random, &LAGS).map(lag),
            3 => draw(&mut random, &SKEWS).map(skew),
            _ => None,
        });
        Plan::of(faults)
    }
}

fn lag(milliseconds: u64) -> Fault {
    Fault::Lag(Duration::from_millis(milliseconds))
}

fn skew(seconds: u64) -> Fault {
    Fault::Skew(Duration::from_secs(seconds))
}

fn draw<T: Copy>(random: &mut Random, from: &[T]) -> Option<T> {
    from.get(random.below(from.len() as u64) as usize).copied()
}

fn shuffle<T>(random: &mut Random, all: &mut [T]) {
    for last in (1..all.len()).rev() {
        all.swap(last, random.below(last as u64 + 1) as usize);
    }
}

/// The classes of a plan of these faults. More than one crash is a class of its own, and so is a mixture.
pub(super) fn classes(faults: &[Fault]) -> Vec<Class> {
    let mut classes: Vec<Class> = faults.iter().map(Fault::class).collect();
    classes.extend((faults.iter().filter(|fault| fault.crashes()).count() > 1).then_some(Class::TwoCrashes));
    classes.extend((stratum(faults) == Class::Mixed).then_some(Class::Mixed));
    classes.sort_unstable();
    classes.dedup();
    classes
}

/// The class of a plan of these faults when plans are chosen.
fn stratum(faults: &[Fault]) -> Class {
    match faults {
        [one] => one.class(),
        [first, second] if first.crashes() && second.crashes() => Class::TwoCrashes,
        [_, Fault::Rival] => Class::Rivals,
        _ => Class::Mixed,
    }
}

impl Subject<'_> {
    /// Whether every search tries every place of it.
    pub fn is_small(&self) -> bool {
        const PLACES_MAX: u32 = 60;
        self.reference.writes.len() as u32 + self.reference.events <= PLACES_MAX
    }

    /// The rough cost of a run, without a unit. It is counted and not timed, so that plans do not depend on the machine.
    fn cost(&self) -> u64 {
        const BYTES_A_REQUEST: usize = 10_000;
        let (requests, events) = (self.reference.requests, self.reference.events);
        u64::from(30 + requests + events) + (self.simulation.module_bytes / BYTES_A_REQUEST) as u64
    }
}

/// Whether a plan is one of those that are tried at every place of small scenarios.
fn is_thorough(plan: &Plan) -> bool {
    use OnEvent::{Compact, Duplicate, Hide, Late};
    use OnWrite::{CrashAfter, CrashBefore, LostReply};
    matches!(
        plan.0.as_slice(),
        [Fault::Write(_, CrashAfter | LostReply | CrashBefore)]
            | [Fault::Event(_, Hide | Late | Duplicate | Compact)]
    )
}

/// A plan for a subject, with its seed.
type Run<'s, 'a> = (&'s Subject<'a>, u64, Plan);

/// The plans for a search: first those of the corpus, then every place of small scenarios, then plans of all classes up to the number asked
/// for. A smaller search has the first plans of a larger one.
///
/// In a class the subjects take turns by the cost of a run, so that each gets the same share of the time, and those with few places are
/// searched completely before those with many. When the plans with one fault are used up, only mixtures remain.
pub fn plans(subjects: &[Subject<'_>], corpus: &[Replay], effort: &Effort) -> Vec<Replay> {
    let places: Vec<Places<'_>> = subjects.iter().map(Places::of).collect();
    let mut random = Random::new(effort.seed);
    let mut first = corpus.to_vec();
    // The turn of each plan in its class, and its run.
    let mut by_class: BTreeMap<Class, Vec<(u64, Run<'_, '_>)>> = BTreeMap::new();
    for (subject, places) in subjects.iter().zip(&places) {
        let mut plans = places.single();
        let thorough = plans.iter().filter(|plan| subject.is_small() && is_thorough(plan));
        first.extend(thorough.map(|plan| subject.replay(0, plan.clone())));
        shuffle(&mut random, &mut plans);
        let mut spent: BTreeMap<Class, u64> = BTreeMap::new();
        for plan in plans {
            let class = stratum(&plan.0);
            let spent = spent.entry(class).or_default();
            *spent += subject.cost();
            by_class.entry(class).or_default().push((*spent, (subject, 0, plan)));
        }
    }
    let mut spent = vec![0u64; subjects.len()];
    // Twice as many as are asked for, since some are known already.
    for seed in (1..=2 * effort.plans as u64).map(|number| effort.seed + number) {
        let all = subjects.iter().zip(&places).zip(&mut spent);
        let next = all.min_by_key(|((subject, _), spent)| **spent + subject.cost());
        let Some(((subject, places), spent)) = next else { break };
        *spent += subject.cost();
        by_class.entry(Class::Mixed).or_default().push((seed, (subject, seed, places.mixed(seed))));
    }
    let mut due = Vec::new();
    for (class, mut plans) in by_class {
        plans.sort_by_key(|(turn, _)| *turn);
        due.extend((0u64..).zip(plans).map(|(taken, (_, run))| (taken * 1000 / class.weight(), run)));
    }
    due.sort_by_key(|(share, _)| *share);
    let due = due.into_iter().map(|(_, (subject, seed, plan))| subject.replay(seed, plan));
    let mut known = BTreeSet::new();
    let unknown = |replay: &Replay| known.insert((replay.scenario.clone(), replay.plan.clone()));
    first.into_iter().chain(due).filter(unknown).take(effort.plans.max(corpus.len())).collect()
}
