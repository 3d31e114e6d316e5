//! The election by a Lease under slow, lost and reordered messages, and candidates that stand still.

use std::time::Duration;

use pintle_core::election::{Act, Election, Timing, Versioned, Wrote};
use proptest::prelude::*;

const T: Timing = Timing::DEFAULT;
const TICK: Duration = Duration::from_millis(100);
/// How long things go wrong, and how long they then go well, in ticks.
const BAD: u32 = 900;
const GOOD: u32 = 300;

/// Numbers without an end from a seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// A request on its way: it reaches the server at one time, and its reply the candidate at another, or never.
struct Request {
    act: Act,
    began: Duration,
    arrives: Duration,
    replied: Option<Duration>,
    reply: Option<Reply>,
    /// The candidate does not wait for it any more.
    given_up: bool,
}

enum Reply {
    Found(Option<Versioned>),
    Wrote(Wrote),
}

struct Candidate {
    election: Election,
    /// Its clock shows another time than everybody else's.
    offset: Duration,
    frozen_until: Duration,
    requests: Vec<Request>,
}

#[derive(Default)]
struct Server {
    lease: Option<Versioned>,
    writes: u64,
}

impl Server {
    fn carry_out(&mut self, act: &Act) -> Reply {
        let Act::Write(record, version) = act else { return Reply::Found(self.lease.clone()) };
        if self.lease.as_ref().map(|lease| &lease.version) != version.as_ref() {
            return Reply::Wrote(Wrote::Outdated);
        }
        self.writes += 1;
        let written = Versioned { record: record.clone(), version: self.writes.to_string() };
        self.lease = Some(written.clone());
        Reply::Wrote(Wrote::Accepted(written))
    }
}

impl Candidate {
    /// Takes what arrived, gives up on what took too long, and does what is next.
    fn step(&mut self, now: Duration, chance: &mut Chance, well: bool) {
        let local = now + self.offset;
        for request in self.requests.iter_mut().filter(|request| !request.given_up) {
            let arrived = request.replied.is_some_and(|at| at <= now);
            if arrived && now < request.began + T.attempt_timeout() {
                match request.reply.take() {
                    Some(Reply::Found(found)) => self.election.read(local, Some(found)),
                    Some(Reply::Wrote(outcome)) => {
                        self.election.wrote(request.began + self.offset, local, outcome)
                    }
                    None => continue,
                }
                request.given_up = true;
            } else if now >= request.began + T.attempt_timeout() {
                request.given_up = true;
                match request.act {
                    Act::Read => self.election.read(local, None),
                    _ => self.election.wrote(request.began + self.offset, local, Wrote::Unknown),
                }
            }
        }
        // What was given up may still reach the server.
        self.requests.retain(|request| !request.given_up || request.reply.is_none() && request.arrives > now);
        if self.requests.iter().any(|request| !request.given_up) {
            return;
        }
        let act = self.election.next(local, &format!("{now:?}"));
        if matches!(act, Act::Wait(_)) {
            return;
        }
        let slow = |chance: &mut Chance| match (well, chance.below(4)) {
            (true, _) => TICK,
            (false, 0) => Duration::from_millis(chance.below(9000)),
            (false, _) => Duration::from_millis(chance.below(400)),
        };
        let arrives = now + slow(chance);
        let lost = !well && chance.below(4) == 0;
        let replied = (!lost).then(|| arrives + slow(chance));
        self.requests.push(Request { act, began: now, arrives, replied, reply: None, given_up: false });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_two_hold_the_lease_at_once_and_one_does_when_all_is_well(seed: u64, candidates in 2usize..4) {
        let mut chance = Chance(seed);
        let mut server = Server::default();
        let mut all: Vec<Candidate> = (0..candidates)
            .map(|index| Candidate {
                election: Election::new(format!("host-{index}"), T),
                offset: Duration::from_secs(chance.below(1_000_000)),
                frozen_until: Duration::ZERO,
                requests: Vec::new(),
            })
            .collect();
        // Until when the last other one held it, to see the margin.
        let mut last: Option<(usize, Duration)> = None;
        for tick in 0..BAD + GOOD {
            let (now, well) = (TICK * tick, tick >= BAD);
            for candidate in &mut all {
                for request in candidate.requests.iter_mut() {
                    if request.arrives <= now && request.reply.is_none() && request.replied != Some(Duration::MAX) {
                        request.reply = Some(server.carry_out(&request.act));
                        if request.given_up {
                            (request.reply, request.replied) = (None, Some(Duration::MAX));
                        }
                    }
                }
                if !well && chance.below(200) == 0 {
                    candidate.frozen_until = now + Duration::from_millis(chance.below(20_000));
                }
                if candidate.frozen_until <= now || well {
                    candidate.step(now, &mut chance, well);
                }
            }
            let holders: Vec<usize> = (0..all.len())
                .filter(|index| all[*index].election.held_until(now + all[*index].offset).is_some())
                .collect();
            prop_assert!(holders.len() <= 1, "at {now:?}: {holders:?}");
            if let Some(holder) = holders.first() {
                if let Some((before, until)) = last.filter(|(before, _)| before != holder) {
                    // A write of the one before that ended in time was answered this long before anybody else's can begin.
                    let margin = T.duration - T.renew_deadline - TICK;
                    prop_assert!(until + margin <= now, "{holder} holds at {now:?}, {before} held until {until:?}");
                }
                let election = &all[*holder].election;
                let until = election.held_until(now + all[*holder].offset).unwrap() - all[*holder].offset;
                last = Some((*holder, until));
            }
        }
        let end = TICK * (BAD + GOOD);
        let held = all.iter().filter(|one| one.election.held_until(end + one.offset).is_some()).count();
        prop_assert_eq!(held, 1, "somebody holds it in the end");
    }
}
