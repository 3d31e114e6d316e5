//! Whose turn it is to be compiled. Two modules at most are compiled at once, and one of the two places is only for what has taken
//! long already, so that however many expensive modules there are, a cheap one waits for none of them to end.
//!
//! A module is begun in the *fresh* place. When it has had that for [`FRESH`], it moves to the *slow* one; if that is taken and somebody
//! waits for the fresh one, it is stopped, and waits for the slow one with all others of its kind. Who has been slow, or has failed, does
//! not come into the fresh place again. Among those that wait, modules that somebody uses go first, then whoever came first.

use std::{collections::BTreeMap, time::Duration};

/// For how long a module has the fresh place to itself: a hundred times what a guest in Rust takes.
pub const FRESH: Duration = Duration::from_secs(5);

/// The places, and who waits for one. `K` names a turn; the caller never uses one twice.
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
    /// It was told to end, and has not yet.
    is_stopping: bool,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    is_slow: bool,
    is_used: bool,
    arrival: u64,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision<K> {
    /// It has a place now: compile it.
    Begin(K),
    /// End its compiler; then it is to leave, and to come back as one that is slow.
    Stop(K),
}

impl<K> Default for Turns<K> {
    fn default() -> Self {
        Self { fresh: None, slow: None, waiting: BTreeMap::new(), arrivals: 0 }
    }
}

impl<K: Ord + Clone> Turns<K> {
    /// A module is to be compiled. `is_slow` says that it took long before, or failed.
    pub fn want(&mut self, key: K, is_used: bool, is_slow: bool) {
        self.arrivals += 1;
        self.waiting.insert(key, Waiting { is_slow, is_used, arrival: self.arrivals });
    }

    /// Somebody uses a module now, or nobody does any more. Counts while it waits.
    pub fn uses(&mut self, key: &K, is_used: bool) {
        if let Some(waiting) = self.waiting.get_mut(key) {
            waiting.is_used = is_used;
        }
    }

    /// A turn is over, or is not wanted any more.
    pub fn leave(&mut self, key: &K) {
        self.waiting.remove(key);
        for place in [&mut self.fresh, &mut self.slow] {
            if place.as_ref().is_some_and(|running| running.key == *key) {
                *place = None;
            }
        }
    }

    /// What is to be done now. To be asked after each of the above, and again [`FRESH`] after each beginning.
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

    /// How many are being compiled, and how many wait.
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
        // Bombs take 30 s of a place and then leave; whoever is stopped begins anew. A cheap one takes no time.
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
