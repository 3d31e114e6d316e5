//! The order in which modules are compiled. At most two modules are compiled at once. One of the two places is only for modules that have
//! taken long already, so that a cheap module never waits until an expensive one is done, however many of those there are.
//!
//! The compilation of a module begins in the *fresh* place. After [`FRESH`] it moves to the *slow* place. If the slow place is taken and
//! another module waits for the fresh one, the compilation is stopped, and the module waits for the slow place with the other slow ones.
//! A module that was slow or has failed never gets the fresh place again. Among the modules that wait, those in use go first, and then
//! the one that has waited longest.

use std::{collections::BTreeMap, time::Duration};

/// How long a module may keep the fresh place: a hundred times as long as a guest in Rust takes.
pub const FRESH: Duration = Duration::from_secs(5);

/// The two places, and the modules that wait for one. `K` names a turn; the caller never uses one twice.
#[derive(Clone, Debug)]
pub struct Turns<K> {
    fresh: Option<Running<K>>,
    slow: Option<Running<K>>,
    waiting: BTreeMap<K, Waiting>,
    arrivals: u64,
}

#[derive(Clone, Debug)]
struct Running<K> {
    key: K,
    since: Duration,
    /// The compiler was told to stop, and has not stopped yet.
    is_stopping: bool,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    is_slow: bool,
    is_used: bool,
    arrival: u64,
}

/// What the caller must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision<K> {
    /// Compile this module: it has a place now.
    Begin(K),
    /// Stop the compiler of this module. Then call [`Turns::leave`], and [`Turns::want`] as a slow one.
    Stop(K),
}

impl<K> Default for Turns<K> {
    fn default() -> Self {
        Self { fresh: None, slow: None, waiting: BTreeMap::new(), arrivals: 0 }
    }
}

impl<K: Ord + Clone> Turns<K> {
    /// Adds a module to compile. `is_slow` says that it took long before, or failed.
    pub fn want(&mut self, key: K, is_used: bool, is_slow: bool) {
        self.arrivals += 1;
        self.waiting.insert(key, Waiting { is_slow, is_used, arrival: self.arrivals });
    }

    /// Notes whether a module is in use. This matters only while it waits.
    pub fn uses(&mut self, key: &K, is_used: bool) {
        if let Some(waiting) = self.waiting.get_mut(key) {
            waiting.is_used = is_used;
        }
    }

    /// Ends a turn: the module was compiled, or need not be compiled any more.
    pub fn leave(&mut self, key: &K) {
        self.waiting.remove(key);
        for place in [&mut self.fresh, &mut self.slow] {
            if place.as_ref().is_some_and(|running| running.key == *key) {
                *place = None;
            }
        }
    }

    /// What the caller must do now. Call it after each of the functions above, and again [`FRESH`] after each beginning.
    pub fn decide(&mut self, now: Duration) -> Vec<Decision<K>> {
        let mut decisions = Vec::new();
        if let Some(running) = self.fresh.as_mut().filter(|running| running.since + FRESH <= now) {
            if self.slow.is_none() {
                self.slow = self.fresh.take();
            } else if !running.is_stopping && self.waiting.values().any(|waiting| !waiting.is_slow) {
                running.is_stopping = true;
                decisions.push(Decision::Stop(running.key.clone()));
            }
        }
        for is_slow in [false, true] {
            let place = if is_slow { &mut self.slow } else { &mut self.fresh };
            if place.is_some() {
                continue;
            }
            let next = self.waiting.iter().filter(|(_, waiting)| waiting.is_slow == is_slow);
            let next = next.min_by_key(|(_, waiting)| (!waiting.is_used, waiting.arrival));
            let Some(key) = next.map(|(key, _)| key.clone()) else { continue };
            self.waiting.remove(&key);
            *place = Some(Running { key: key.clone(), since: now, is_stopping: false });
            decisions.push(Decision::Begin(key));
        }
        decisions
    }

    /// How many modules are being compiled, and how many wait.
    pub fn counts(&self) -> (usize, usize) {
        ([&self.fresh, &self.slow].into_iter().flatten().count(), self.waiting.len())
    }
}

#[cfg(test)]
mod tests {
    use Decision::{Begin, Stop};

    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_cheap_module_begins_when_a_bomb_has_had_its_time() {
        let mut turns = Turns::default();
        turns.want("bomb", false, false);
        assert_eq!(turns.decide(at(0)), [Begin("bomb")]);
        turns.want("cheap", false, false);
        assert_eq!(turns.decide(at(1)), []);
        assert_eq!(turns.decide(at(5)), [Begin("cheap")], "the bomb goes on beside it");
        assert_eq!(turns.counts(), (2, 0));
        turns.leave(&"cheap");
        turns.want("another", false, false);
        assert_eq!(turns.decide(at(6)), [Begin("another")]);
    }

    #[test]
    fn a_second_bomb_is_stopped_for_who_waits_and_begins_again_where_the_first_one_ends() {
        let mut turns = Turns::default();
        turns.want("bomb", false, false);
        turns.decide(at(0));
        turns.want("second", false, false);
        assert_eq!(turns.decide(at(5)), [Begin("second")]);
        assert_eq!(turns.decide(at(10)), [], "nobody waits for its place");
        turns.want("cheap", false, false);
        assert_eq!(turns.decide(at(11)), [Stop("second")]);
        assert_eq!(turns.decide(at(12)), [], "once; and its place is its own until it has ended");
        turns.leave(&"second");
        turns.want("second", false, true);
        assert_eq!(turns.decide(at(12)), [Begin("cheap")]);
        turns.leave(&"cheap");
        assert_eq!(turns.decide(at(12)), [], "it has been slow");
        turns.leave(&"bomb");
        assert_eq!(turns.decide(at(30)), [Begin("second")]);
        assert_eq!(turns.decide(at(60)), []);
    }

    #[test]
    fn what_is_slow_and_alone_goes_on_in_the_place_that_becomes_free() {
        let mut turns = Turns::default();
        turns.want("bomb", false, true);
        turns.want("second", false, false);
        assert_eq!(turns.decide(at(0)), [Begin("second"), Begin("bomb")]);
        assert_eq!(turns.decide(at(9)), []);
        turns.leave(&"bomb");
        turns.want("cheap", false, false);
        assert_eq!(turns.decide(at(10)), [Begin("cheap")]);
        assert_eq!(turns.counts(), (2, 0));
    }

    #[test]
    fn of_those_that_wait_the_used_go_first_and_then_who_came_first() {
        let mut turns = Turns::default();
        turns.want("first", false, false);
        turns.decide(at(0));
        for (key, is_used) in [("c", false), ("b", false), ("used", true), ("a", false)] {
            turns.want(key, is_used, false);
        }
        turns.uses(&"a", true);
        let mut order = Vec::new();
        let mut last = "first";
        for _ in 0..4 {
            turns.leave(&last);
            let [Begin(next)] = turns.decide(at(1))[..] else { panic!("one begins") };
            order.push(next);
            last = next;
        }
        assert_eq!(order, ["used", "a", "c", "b"]);
    }

    #[test]
    fn who_leaves_while_it_waits_is_never_begun() {
        let mut turns = Turns::default();
        turns.want("first", false, false);
        turns.decide(at(0));
        turns.want("gone", false, false);
        turns.leave(&"gone");
        turns.leave(&"first");
        assert_eq!(turns.decide(at(1)), []);
        assert_eq!(turns.counts(), (0, 0));
    }

    #[test]
    fn however_many_bombs_there_are_a_cheap_module_waits_for_a_few_times_its_due() {
        // Bombs take 30 s of a place and then leave. A bomb that is stopped begins anew. A cheap module takes no time.
        let mut turns = Turns::default();
        for bomb in 0..20 {
            turns.want(bomb, true, false);
        }
        let cheap = 100;
        let mut since: BTreeMap<u32, u64> = BTreeMap::new();
        let mut begun = None;
        for now in 0..200 {
            if now == 60 {
                turns.want(cheap, true, false);
            }
            let ended: Vec<u32> =
                since.iter().filter(|(_, since)| now - **since >= 30).map(|(key, _)| *key).collect();
            for key in ended {
                since.remove(&key);
                turns.leave(&key);
            }
            loop {
                let decisions = turns.decide(at(now));
                if decisions.is_empty() {
                    break;
                }
                for decision in decisions {
                    match decision {
                        Begin(key) if key == cheap => begun = begun.or(Some(now)),
                        Begin(key) => {
                            since.insert(key, now);
                        }
                        Stop(key) => {
                            since.remove(&key);
                            turns.leave(&key);
                            turns.want(key, true, true);
                        }
                    }
                }
            }
            assert!(turns.counts().0 <= 2);
        }
        // Those that came before it have had five seconds each by then, or have them still: twenty bombs, of which each is fresh once.
        assert!(begun.is_some_and(|begun| begun <= 100), "{begun:?}");
    }
}
