//! The plans of a search: those of the corpus, every place of small scenarios, and for each class as many plans as its weight says.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use pintle_runtime::clock::Random;

use super::{
    Class, Fault, Hosts, OnEvent, OnRequest, OnWrite, Plan, Replay, Subject,
    fault::{RIVAL, Reach},
};
use crate::{corpus::places, search::Effort};

/// With this many writes or fewer, every pair of crashes is a plan. With more, [`PAIRS_DRAWN`] pairs are drawn.
const PAIRS_UP_TO: u32 = 12;

const PAIRS_DRAWN: usize = 80;

/// How late every event comes in the plans with a stale cache, in milliseconds: within a pass, between two passes, and after the first
/// back-offs.
const LAGS: [u64; 7] = [10, 30, 100, 400, 1000, 3000, 9000];

/// How far each host's wall clock is behind that of the host before it, in seconds.
const SKEWS: [u64; 4] = [1, 30, 600, 7200];

/// What plans may contain.
#[derive(Clone, Copy, Debug, Default)]
pub struct Menu {
    /// Modules to swap to exist (see [`Setting::new`](super::Setting::new)).
    pub spares: bool,
}

impl Menu {
    fn writes(self) -> impl Iterator<Item = OnWrite> {
        let needs_spare =
            |what: &OnWrite| Fault::Write(0, *what).reach() == Reach::Kind && *what != OnWrite::SwapMissing;
        OnWrite::ALL.iter().copied().filter(move |what| self.spares || !needs_spare(what))
    }
}

/// Every plan with one fault, pairs of crashes, and faults beside a second host.
pub fn single(subject: &Subject<'_>, menu: Menu) -> Vec<Plan> {
    let run = &subject.reference;
    let write_count = run.writes.len() as u32;
    let mut plans: Vec<Plan> =
        LAGS.iter().map(|by| Plan::of([Fault::Lag(Duration::from_millis(*by))])).collect();
    let writes = Writes::of(subject);
    plans.extend(writes.may_have_rivals().then(|| Plan::of([Fault::Rival])));
    plans.extend(SKEWS.iter().map(|by| Plan::of([Fault::Skew(Duration::from_secs(*by))])));
    for number in 1..=write_count {
        let fitting = menu.writes().filter(|what| writes.may_befall(number, *what));
        plans.extend(fitting.map(|what| Plan::of([Fault::Write(number, what)])));
        let beside_a_rival = [OnWrite::Partition, OnWrite::CrashAfter, OnWrite::CrashBefore];
        for what in beside_a_rival.into_iter().filter(|_| writes.may_have_rivals()) {
            plans.push(Plan::of([Fault::Write(number, what), Fault::Rival]));
        }
    }
    for number in 1..=run.events {
        plans.extend(writes.events().map(|what| Plan::of([Fault::Event(number, what)])));
    }
    for number in 1..=run.requests {
        plans.extend(OnRequest::ALL.iter().map(|what| Plan::of([Fault::Request(number, *what)])));
    }
    let pair = |first, second| {
        Plan::of([Fault::Write(first, OnWrite::CrashAfter), Fault::Write(second, OnWrite::CrashAfter)])
    };
    if write_count <= PAIRS_UP_TO {
        plans.extend(
            (1..=write_count)
                .flat_map(|first| (first + 1..=write_count).map(move |second| pair(first, second))),
        );
    } else {
        let mut random = Random::new(write_count.into());
        plans.extend((0..PAIRS_DRAWN).map(|_| {
            let first = place(&mut random, write_count - 1);
            pair(first, first + place(&mut random, write_count - first))
        }));
    }
    plans
}

/// The writes of a subject, from the trace of its run without faults.
struct Writes<'a> {
    writes: Vec<&'a str>,
    /// The faults that the scenario excludes.
    without: &'a [String],
}

impl<'a> Writes<'a> {
    fn of(subject: &'a Subject<'_>) -> Self {
        let places = places::<Hosts>(&subject.reference.steps).filter(|(place, _)| place.starts_with('w'));
        let without = subject.simulation.scenario().without.as_ref();
        Self {
            writes: places.map(|(_, what)| what).collect(),
            without: without.map_or(&[], |without| without.faults.as_slice()),
        }
    }

    fn may_have_rivals(&self) -> bool {
        !self.without.iter().any(|word| word == RIVAL)
    }

    /// The faults that an event may have.
    fn events(&self) -> impl Iterator<Item = OnEvent> {
        let is_wanted = |what: &OnEvent| !self.without.iter().any(|word| word == what.word());
        OnEvent::ALL.iter().copied().filter(is_wanted)
    }

    /// Whether a fault at a write can have an effect. People change roots, their children, and objects that the host patches. They do
    /// not change the host's own objects, or children that no watch shows.
    fn may_befall(&self, number: u32, what: OnWrite) -> bool {
        if self.without.iter().any(|word| word == what.word()) {
            return false;
        }
        let class = Fault::Write(number, what).class();
        if !class.meddles() {
            return true;
        }
        let write = (number as usize).checked_sub(1).and_then(|index| self.writes.get(index));
        let Some(resource) = write.and_then(|write| write.strip_prefix("apply ")?.split(' ').next()) else {
            return false;
        };
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let is_own = matches!(resource, "modules" | "reconcilers");
        let is_child = subresource.is_empty() && resource != "secrets";
        let needs_child = class == Class::Meddling && what != OnWrite::EditStatus;
        !is_own && (is_child || !needs_child)
    }
}

/// A random place from 1 to `of`.
fn place(random: &mut Random, of: u32) -> u32 {
    1 + random.below(of.max(1).into()) as u32
}

/// The plan of a seed: a few random faults at random places.
pub fn mixed(subject: &Subject<'_>, menu: Menu, seed: u64) -> Plan {
    let run = &subject.reference;
    let write_count = run.writes.len() as u32;
    let mut random = Random::new(seed);
    let (writes, known) = (menu.writes().collect::<Vec<OnWrite>>(), Writes::of(subject));
    let pick = |random: &mut Random, length: usize| random.below(length as u64) as usize;
    let mut faults = BTreeSet::new();
    // The seed also decides which kinds of places it draws, so that some runs have only crashes and some only events.
    let kinds = 1 + random.below(7);
    for _ in 0..2 + random.below(4) {
        let kind = loop {
            let kind = random.below(3);
            if kinds & 1 << kind != 0 {
                break kind;
            }
        };
        faults.insert(match kind {
            0 => {
                let number = place(&mut random, write_count);
                let fitting: Vec<&OnWrite> =
                    writes.iter().filter(|what| known.may_befall(number, **what)).collect();
                Fault::Write(number, *fitting[pick(&mut random, fitting.len())])
            }
            1 => {
                let fitting: Vec<OnEvent> = known.events().collect();
                Fault::Event(place(&mut random, run.events), fitting[pick(&mut random, fitting.len())])
            }
            _ => Fault::Request(
                place(&mut random, run.requests),
                OnRequest::ALL[pick(&mut random, OnRequest::ALL.len())],
            ),
        });
    }
    match random.below(12) {
        0 | 1 if known.may_have_rivals() => drop(faults.insert(Fault::Rival)),
        2 => drop(faults.insert(Fault::Lag(Duration::from_millis(LAGS[pick(&mut random, LAGS.len())])))),
        3 => drop(faults.insert(Fault::Skew(Duration::from_secs(SKEWS[pick(&mut random, SKEWS.len())])))),
        _ => {}
    }
    Plan::of(faults)
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

/// Plans of one class. The subjects take turns by the cost of a run, so that each gets the same share of the time, and those with few
/// places are searched completely before those with many.
struct Stratum {
    weight: u64,
    taken: u64,
    left: std::vec::IntoIter<(usize, Plan)>,
}

/// The plans for a search: first those of the corpus, then every place of small scenarios, then plans of all classes up to the number asked
/// for. A smaller search has the first plans of a larger one.
pub fn plans(subjects: &[Subject<'_>], menu: Menu, corpus: &[Replay], effort: &Effort) -> Vec<Replay> {
    let mut chosen: Vec<Replay> = Vec::new();
    let mut known: BTreeSet<(usize, Plan)> = BTreeSet::new();
    for replay in corpus {
        let of = subjects.iter().position(|subject| subject.simulation.file == replay.scenario);
        if of.is_some_and(|subject| known.insert((subject, replay.plan.clone()))) {
            chosen.push(replay.clone());
        }
    }
    let line = |subject: usize, seed, plan| subjects.get(subject).map(|of| of.replay(seed, plan));
    for (subject, plan) in whole(subjects) {
        if chosen.len() < effort.plans && known.insert((subject, plan.clone())) {
            chosen.extend(line(subject, 0, plan));
        }
    }
    let mut strata = strata(subjects, menu, effort.seed);
    let mut seed = effort.seed;
    let mut spent = vec![0; subjects.len()];
    // A known mixture is skipped. If there are no places, every mixture is known.
    let mut patience = 16 * effort.plans;
    while chosen.len() < effort.plans && patience > 0 && !subjects.is_empty() {
        let due = strata
            .iter_mut()
            .filter(|(kind, stratum)| **kind == Class::Mixed || stratum.left.len() > 0)
            .min_by_key(|(_, stratum)| stratum.taken.saturating_mul(1000) / stratum.weight);
        let Some((kind, stratum)) = due else { break };
        let (subject, of_seed, plan) = match stratum.left.next() {
            Some((subject, plan)) => (subject, 0, plan),
            None => {
                seed += 1;
                patience -= 1;
                let after = |(index, spent): &(usize, &mut u64)| {
                    **spent + subjects.get(*index).map_or(0, Subject::cost)
                };
                let next = spent.iter_mut().enumerate().min_by_key(after);
                let Some((subject, of, spent)) =
                    next.and_then(|(at, spent)| Some((at, subjects.get(at)?, spent)))
                else {
                    break;
                };
                *spent += of.cost();
                (subject, seed, mixed(of, menu, seed))
            }
        };
        debug_assert!(*kind == Class::Mixed || of_seed == 0);
        if known.insert((subject, plan.clone())) {
            stratum.taken += 1;
            chosen.extend(line(subject, of_seed, plan));
        }
    }
    chosen
}

/// For small scenarios, a crash before each write, a crash after it and a lost reply, and each event hidden, late, duplicated and followed
/// by a list. The order does not depend on the number of plans, so that a smaller search has the first plans of a larger one.
fn whole(subjects: &[Subject<'_>]) -> impl Iterator<Item = (usize, Plan)> {
    const OF_WRITES: [OnWrite; 3] = [OnWrite::CrashAfter, OnWrite::LostReply, OnWrite::CrashBefore];
    const OF_EVENTS: [OnEvent; 4] = [OnEvent::Hide, OnEvent::Late, OnEvent::Duplicate, OnEvent::Compact];
    let of = |(index, subject): (usize, &Subject<'_>)| {
        let (writes, events) = (subject.reference.writes.len() as u32, subject.reference.events);
        let known = Writes::of(subject);
        let of_writes = OF_WRITES.into_iter().filter(|what| known.may_befall(1, *what)).collect::<Vec<_>>();
        let of_events =
            OF_EVENTS.into_iter().filter(|what| known.events().any(|one| one == *what)).collect::<Vec<_>>();
        let of_writes = (1..=writes).flat_map(move |number| {
            of_writes.clone().into_iter().map(move |what| Fault::Write(number, what))
        });
        let of_events = (1..=events).flat_map(move |number| {
            of_events.clone().into_iter().map(move |what| Fault::Event(number, what))
        });
        let plans = of_writes.chain(of_events).map(move |fault| (index, Plan::of([fault])));
        subject.is_small().then_some(plans)
    };
    subjects.iter().enumerate().filter_map(of).flatten()
}

fn strata(subjects: &[Subject<'_>], menu: Menu, seed: u64) -> BTreeMap<Class, Stratum> {
    let mut of_kind: BTreeMap<Class, Vec<Vec<Plan>>> = BTreeMap::new();
    for (index, subject) in subjects.iter().enumerate() {
        for plan in single(subject, menu) {
            let lists = of_kind.entry(stratum(&plan.0)).or_insert_with(|| vec![Vec::new(); subjects.len()]);
            if let Some(list) = lists.get_mut(index) {
                list.push(plan);
            }
        }
    }
    let mut random = Random::new(seed);
    let stratum = |kind: Class| {
        let mut lists = of_kind.remove(&kind).unwrap_or_default();
        for list in &mut lists {
            for last in (1..list.len()).rev() {
                list.swap(last, random.below(last as u64 + 1) as usize);
            }
        }
        let costs = subjects.iter().map(Subject::cost);
        let mut turns: Vec<(u64, usize, Plan)> = Vec::new();
        for ((index, list), cost) in lists.into_iter().enumerate().zip(costs) {
            turns.extend((1..).zip(list).map(|(turn, plan)| (turn * cost, index, plan)));
        }
        // A stable sort: plans with the same turn keep their order.
        turns.sort_by_key(|(spent, index, _)| (*spent, *index));
        let left: Vec<(usize, Plan)> = turns.into_iter().map(|(_, index, plan)| (index, plan)).collect();
        (kind, Stratum { weight: kind.weight(), taken: 0, left: left.into_iter() })
    };
    Class::ALL.iter().copied().map(stratum).collect()
}
