//! [`Connections`]: which connections are open, of each network and of all, and which one goes when there are too many.
//!
//! Nobody can be told from anybody else before the handshake, so nobody is turned away there for the number of others: who comes takes the
//! place of one that is at rest, of its own network or of the one that has most. A flood of connections from one network closes its own.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use pintle_runtime::clock;
use tokio::sync::{Notify, watch};

use crate::identity::Network;

/// How many connections there may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) together: usize,
    pub(crate) of_one: usize,
}

/// What happens on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Activity {
    /// How many requests are not answered to their end. A watch is one.
    in_work: usize,
    /// Whether there was ever a request.
    is_used: bool,
    /// Since when this is so.
    since: Duration,
}

impl Activity {
    /// That of a connection that begins.
    pub(crate) fn new(now: Duration) -> Self {
        Self { in_work: 0, is_used: false, since: now }
    }

    fn begin(&mut self, now: Duration) {
        *self = Self { in_work: self.in_work + 1, is_used: true, since: now };
    }

    fn end(&mut self, now: Duration) {
        *self = Self { in_work: self.in_work.saturating_sub(1), is_used: true, since: now };
    }

    /// Since when nothing is asked; none while something is.
    pub(crate) fn rests_since(&self) -> Option<Duration> {
        (self.in_work == 0).then_some(self.since)
    }

    /// Whether there was ever a request.
    pub(crate) fn is_used(&self) -> bool {
        self.is_used
    }
}

/// A request that is in work, until this is dropped.
pub(crate) struct InWork(watch::Sender<Activity>);

impl InWork {
    /// One more on a connection.
    pub(crate) fn begin(activity: &watch::Sender<Activity>) -> Self {
        activity.send_modify(|activity| activity.begin(clock::monotonic()));
        Self(activity.clone())
    }
}

impl Drop for InWork {
    fn drop(&mut self) {
        self.0.send_modify(|activity| activity.end(clock::monotonic()));
    }
}

/// The open connections of some sort. Clones have the same.
#[derive(Clone)]
pub(crate) struct Connections(Arc<Inner>);

struct Inner {
    limits: Limits,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    next: u64,
    open: BTreeMap<Network, BTreeMap<u64, Open>>,
}

struct Open {
    activity: watch::Receiver<Activity>,
    goes: Arc<Notify>,
}

/// A connection that is open, until this is dropped.
pub(crate) struct Place {
    connections: Connections,
    network: Network,
    number: u64,
    goes: Arc<Notify>,
}

/// What becomes of a connection that comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comes {
    /// There is room.
    In,
    /// It takes the place of this one.
    For(Network, u64),
    /// All of its network are in work.
    Away,
}

/// Decides what becomes of a connection that comes from a network, where these are open: for each network its connections in the order in
/// which they came, and since when they are at rest.
fn decide(open: &BTreeMap<Network, Vec<(u64, Option<Duration>)>>, network: Network, limits: Limits) -> Comes {
    let longest_at_rest = |of: &[(u64, Option<Duration>)]| {
        let resting = of.iter().filter_map(|(number, since)| Some(((*since)?, *number)));
        resting.min().map(|(_, number)| number)
    };
    let own = open.get(&network).map_or(&[][..], Vec::as_slice);
    let instead = |of: &[(u64, Option<Duration>)]| {
        longest_at_rest(of).map_or(Comes::Away, |number| Comes::For(network, number))
    };
    if own.len() >= limits.of_one {
        return instead(own);
    }
    if open.values().map(Vec::len).sum::<usize>() < limits.together {
        return Comes::In;
    }
    match open.iter().max_by_key(|(_, of)| of.len()) {
        // Whoever has most is not in the right to have all of them in work.
        Some((most, of)) if of.len() > own.len() => {
            let number = longest_at_rest(of).or_else(|| of.last().map(|(number, _)| *number));
            number.map_or(Comes::Away, |number| Comes::For(*most, number))
        }
        _ => instead(own),
    }
}

impl Connections {
    /// None yet, and so many at most.
    pub(crate) fn new(limits: Limits) -> Self {
        Self(Arc::new(Inner { limits, table: Mutex::default() }))
    }

    /// Lets a connection in, for which another one may have to go.
    pub(crate) fn admit(&self, network: Network, activity: watch::Receiver<Activity>) -> Option<Place> {
        let mut table = self.table();
        match decide(&table.seen(), network, self.0.limits) {
            Comes::In => {}
            Comes::For(of, number) => {
                if let Some(gone) = table.remove(of, number) {
                    gone.goes.notify_one();
                }
            }
            Comes::Away => return None,
        }
        let (number, goes) = (table.next, Arc::new(Notify::new()));
        table.next += 1;
        table.open.entry(network).or_default().insert(number, Open { activity, goes: Arc::clone(&goes) });
        Some(Place { connections: self.clone(), network, number, goes })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn seen(&self) -> BTreeMap<Network, Vec<(u64, Option<Duration>)>> {
        let seen = |(number, open): (&u64, &Open)| (*number, open.activity.borrow().rests_since());
        self.open.iter().map(|(network, open)| (*network, open.iter().map(seen).collect())).collect()
    }

    fn remove(&mut self, network: Network, number: u64) -> Option<Open> {
        let of = self.open.get_mut(&network)?;
        let removed = of.remove(&number);
        if of.is_empty() {
            self.open.remove(&network);
        }
        removed
    }
}

impl Place {
    /// Ends when another connection takes the place of this one.
    pub(crate) async fn is_taken(&self) {
        self.goes.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.table().remove(self.network, self.number);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    const LIMITS: Limits = Limits { together: 5, of_one: 3 };

    fn network(last: u8) -> Network {
        Network::of([192, 0, 2, last].into())
    }

    /// A connection that is at rest since then, in seconds; or in work.
    fn at(number: u64, seconds: Option<u64>) -> (u64, Option<Duration>) {
        (number, seconds.map(Duration::from_secs))
    }

    #[test]
    fn who_comes_takes_the_place_of_who_has_most_or_of_its_own() {
        let (a, b, c) = (network(1), network(2), network(3));
        let resting = || vec![at(1, Some(9)), at(2, Some(4)), at(3, None)];
        let busy = || vec![at(1, None), at(2, None), at(3, None)];
        for (what, open, expected) in [
            ("nobody is there", vec![], Comes::In),
            ("there is room", vec![(a, vec![at(1, None)]), (b, resting())], Comes::In),
            ("it has its share", vec![(a, resting())], Comes::For(a, 2)),
            ("it has its share in work", vec![(a, busy())], Comes::Away),
            ("another has most", vec![(b, resting()), (c, vec![at(4, None), at(5, None)])], Comes::For(b, 2)),
            (
                "another has most in work",
                vec![(b, busy()), (c, vec![at(4, None), at(5, Some(1))])],
                Comes::For(b, 3),
            ),
            (
                "nobody has more",
                vec![
                    (a, vec![at(4, None), at(5, Some(1))]),
                    (b, vec![at(1, None), at(2, Some(0))]),
                    (c, vec![at(3, None)]),
                ],
                Comes::For(a, 5),
            ),
        ] {
            assert_eq!(decide(&open.into_iter().collect(), a, LIMITS), expected, "{what}");
        }
    }

    #[test]
    fn a_flood_of_one_network_closes_its_own_and_whoever_comes_finds_room() {
        let connections = Connections::new(LIMITS);
        let rest = watch::channel(Activity::new(Duration::ZERO)).1;
        let admit = |last| connections.admit(network(last), rest.clone()).unwrap();
        let others = [admit(1), admit(2)];
        let flood: Vec<Place> = (0..20).map(|_| admit(9)).collect();
        let is_closed = |place: &Place| place.is_taken().now_or_never().is_some();
        assert_eq!(flood.iter().filter(|place| is_closed(place)).count(), 17);
        let comes = admit(3);
        assert!(flood.iter().any(is_closed), "one of the flood makes room");
        assert!(!others.iter().chain([&comes]).any(is_closed));
        drop((flood, others, comes));
        assert!(connections.table().open.is_empty());
    }

    #[test]
    fn a_connection_is_at_rest_from_the_end_of_its_last_request() {
        let (activity, seen) = watch::channel(Activity::new(Duration::from_secs(3)));
        assert_eq!(
            (seen.borrow().rests_since(), seen.borrow().is_used()),
            (Some(Duration::from_secs(3)), false)
        );
        let (first, second) = (InWork::begin(&activity), InWork::begin(&activity));
        drop(first);
        assert_eq!(seen.borrow().rests_since(), None);
        drop(second);
        let seen = *seen.borrow();
        assert!(seen.rests_since().is_some() && seen.is_used());
    }
}
