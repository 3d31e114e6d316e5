//! [`Pools`]: how many requests wait and are in work, of one caller and of all.
//!
//! The gateway holds a request while the API server works on the one that it sends on. So it must admit fewer than the API server has seats
//! for: otherwise requests that came through the API server would fill its seats, and wait for requests of the gateway that find none.
//!
//! A place is taken for one thing at a time, by whoever is known by then, and nobody holds one by sending slowly:
//!
//! | pool | a place is held while |
//! | --- | --- |
//! | `reviews` | the API server says what somebody may do |
//! | `bodies` | the body of a request that may be made arrives |
//! | `requests` | such a request is carried out |
//! | `watches` | a watch is followed |
//! | `large` | an answer takes memory of the budget, until it is sent |
//!
//! What is remembered of an answer takes no place, and neither does what needs no review at all: so the API server, which
//! asks as a member of `system:masters` whether the gateway is there, is answered however many others come.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use pintle_core::view::{Status, Verb};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::reply::CROWDED_SECONDS;

/// How long a request waits for a place, at each pool but that of large answers. A burst of three times what one caller may have at a time is
/// through by then, if each request takes half a second; and a request that has to be refused is refused before people take it for lost.
pub const WAIT: Duration = Duration::from_secs(2);

/// How many requests wait at a pool, beside those that have a place. Each takes the head of a request, and what of its body fits into the
/// window of its stream: some 80 KiB at most.
pub const WAITING: usize = 1_000;

/// How many of them may be of one caller: an informer's start, or the apply of a folder, sends 150 at once.
pub const WAITING_OF_ONE: usize = 200;

/// How many questions about callers are asked at a time. The API server answers one within milliseconds.
pub const REVIEWS: usize = 64;

/// How many of them may be about one caller.
pub const REVIEWS_OF_ONE: usize = 4;

/// How many bodies are read at a time: fewer than half of the requests, so that slow ones leave the others their seats.
pub const BODIES: usize = 64;

/// How many of them may be of one caller. Most bodies are there with their request, so that many take turns within a moment.
pub const BODIES_OF_ONE: usize = 8;

/// How many requests may be in work, besides watches. A fourth of what the API server serves at once by default.
pub const REQUESTS: usize = 150;

/// How many of them may be of one caller.
pub const REQUESTS_OF_ONE: usize = 50;

/// How many answers may be large at a time, which take memory of the budget until they are sent. How many there are is rather a question of
/// memory: a gateway of 512 MiB has some for six.
pub const LARGE: usize = 64;

/// How many of them may be of one caller: half of what the smallest gateway has memory for.
pub const LARGE_OF_ONE: usize = 3;

/// How long a large answer waits for its place: as long as for its memory. A list of 5,000 Pods takes about half a second, so that twenty of
/// one controller at once, three at a time, are done after a few seconds.
pub const LARGE_WAIT: Duration = Duration::from_secs(15);

/// How many of one caller may wait. Each has one of its caller's places among the requests meanwhile.
pub const LARGE_WAITING_OF_ONE: usize = 20;

/// How many watches may be followed. Each keeps two connections and some 100 KiB.
pub const WATCHES: usize = 2_000;

/// How many of them may be of one caller.
pub const WATCHES_OF_ONE: usize = 500;

/// Whoever has a share of the places: a user, by name. All of them come over the same connections of the API server.
pub type Party = String;

/// There is no place, and none became free in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl From<Full> for Status {
    fn from(_: Full) -> Self {
        Self::too_many_requests(CROWDED_SECONDS)
    }
}

/// How many places a pool has, and how many may wait for one.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Places.
    pub together: usize,
    /// Places of one party.
    pub of_one: usize,
    /// How many may wait.
    pub waiting: usize,
    /// How many of one party may wait.
    pub waiting_of_one: usize,
    /// How long they wait.
    pub wait: Duration,
}

impl Limits {
    /// So many places, with as many that wait as there are elsewhere.
    pub const fn of(together: usize, of_one: usize) -> Self {
        Self { together, of_one, waiting: WAITING, waiting_of_one: WAITING_OF_ONE, wait: WAIT }
    }

    /// Whether one more may come in, at a place or to wait for one, where so many are, and so many of them of its party.
    fn admit(&self, present: usize, of_party: usize) -> bool {
        present < self.together + self.waiting && of_party < self.of_one + self.waiting_of_one
    }
}

/// Places, which are given in the order in which they were asked for; but nobody waits behind a party that has all of its own.
#[derive(Clone, Debug)]
pub struct Pool(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: &'static str,
    limits: Limits,
    places: Arc<Semaphore>,
    /// The places of each party that has one or waits for one.
    shares: Mutex<BTreeMap<Party, Arc<Semaphore>>>,
    refused: AtomicU64,
}

/// A place that is taken, until this is dropped.
#[derive(Debug)]
pub struct Admitted {
    /// Released in this order: who waits for a place of all has one of its own already.
    _place: OwnedSemaphorePermit,
    _own: OwnedSemaphorePermit,
}

/// How full a pool is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    /// The name of the pool.
    pub pool: &'static str,
    /// How many places are taken.
    pub taken: usize,
    /// How many wait for one.
    pub waiting: usize,
    /// How many were refused since the start.
    pub refused: u64,
}

impl Pool {
    /// A pool of this name.
    pub fn new(name: &'static str, limits: Limits) -> Self {
        Self(Arc::new(Inner {
            name,
            limits,
            places: Arc::new(Semaphore::new(limits.together)),
            shares: Mutex::default(),
            refused: AtomicU64::new(0),
        }))
    }

    /// Takes a place, for which it waits if it must.
    ///
    /// # Errors
    /// When no place becomes free in time, or too many wait already.
    pub async fn admit(&self, party: &str) -> Result<Admitted, Full> {
        let admitted = match self.enter(party) {
            Some(own) => tokio::time::timeout(self.0.limits.wait, self.place(own)).await.ok().flatten(),
            None => None,
        };
        admitted.ok_or_else(|| {
            self.0.refused.fetch_add(1, Ordering::Relaxed);
            Full
        })
    }

    /// The places of a party, if one more of it may come in.
    fn enter(&self, party: &str) -> Option<Arc<Semaphore>> {
        let mut shares = self.shares();
        shares.retain(|_, own| present(own) > 0);
        let of_party = shares.get(party).map_or(0, present);
        if !self.0.limits.admit(shares.values().map(present).sum(), of_party) {
            return None;
        }
        let own = shares.entry(party.to_owned());
        Some(Arc::clone(own.or_insert_with(|| Arc::new(Semaphore::new(self.0.limits.of_one)))))
    }

    /// Waits for a place of the party's own, and with it for one of all: so no party has more of those that wait for these than of places.
    async fn place(&self, own: Arc<Semaphore>) -> Option<Admitted> {
        // They are never closed.
        let own = own.acquire_owned().await.ok()?;
        let place = Arc::clone(&self.0.places).acquire_owned().await.ok()?;
        Some(Admitted { _place: place, _own: own })
    }

    /// How full it is.
    pub fn figures(&self) -> Figures {
        let present: usize = self.shares().values().map(present).sum();
        let taken = self.0.limits.together.saturating_sub(self.0.places.available_permits());
        Figures {
            pool: self.0.name,
            taken,
            waiting: present.saturating_sub(taken),
            refused: self.0.refused.load(Ordering::Relaxed),
        }
    }

    fn shares(&self) -> MutexGuard<'_, BTreeMap<Party, Arc<Semaphore>>> {
        self.0.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many have one of these places or wait for one. Each of them refers to the semaphore, as the pool does.
fn present(own: &Arc<Semaphore>) -> usize {
    Arc::strong_count(own).saturating_sub(1)
}

/// All pools of a gateway.
#[derive(Clone, Debug)]
pub struct Pools {
    /// Questions about callers.
    pub reviews: Pool,
    /// Bodies that arrive.
    pub bodies: Pool,
    /// Requests in work.
    pub requests: Pool,
    /// Watches.
    pub watches: Pool,
    /// Large answers.
    pub large: Pool,
}

impl Default for Pools {
    fn default() -> Self {
        let answers = Limits {
            waiting_of_one: LARGE_WAITING_OF_ONE,
            wait: LARGE_WAIT,
            ..Limits::of(LARGE, LARGE_OF_ONE)
        };
        Self {
            reviews: Pool::new("reviews", Limits::of(REVIEWS, REVIEWS_OF_ONE)),
            bodies: Pool::new("bodies", Limits::of(BODIES, BODIES_OF_ONE)),
            requests: Pool::new("requests", Limits::of(REQUESTS, REQUESTS_OF_ONE)),
            watches: Pool::new("watches", Limits::of(WATCHES, WATCHES_OF_ONE)),
            large: Pool::new("large", answers),
        }
    }
}

impl Pools {
    /// Where what may be done with objects sits until it is answered, and a watch until it ends.
    pub fn seats(&self, verb: Verb) -> &Pool {
        if verb == Verb::Watch { &self.watches } else { &self.requests }
    }

    /// How full each of them is.
    pub fn figures(&self) -> [Figures; 5] {
        let Self { reviews, bodies, requests, watches, large } = self;
        [reviews, bodies, requests, watches, large].map(Pool::figures)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tokio::time::{Instant, sleep};

    use super::*;

    fn party(name: &str) -> Party {
        name.into()
    }

    /// Three places, two of one party; two may wait, one of one party.
    fn small() -> Pool {
        Pool::new("small", Limits { together: 3, of_one: 2, waiting: 2, waiting_of_one: 1, wait: WAIT })
    }

    /// A place that must be free.
    fn at_once(pool: &Pool, name: &str) -> Admitted {
        pool.admit(&party(name)).now_or_never().expect("it need not wait").expect("there is a place")
    }

    fn figures(pool: &Pool) -> (usize, usize, u64) {
        let Figures { taken, waiting, refused, .. } = pool.figures();
        (taken, waiting, refused)
    }

    #[tokio::test(start_paused = true)]
    async fn one_caller_cannot_take_the_place_of_all_and_a_place_is_free_again_afterwards() {
        let pool = small();
        let first = at_once(&pool, "ann");
        let _second = at_once(&pool, "ann");
        let ann = party("ann");
        assert!(pool.admit(&ann).now_or_never().is_none(), "she has two, and waits");
        let third = at_once(&pool, "bob");
        assert_eq!(pool.admit(&party("eve")).await.unwrap_err(), Full, "there are three");
        drop(first);
        assert!(pool.admit(&ann).now_or_never().is_some());
        drop(third);
        assert_eq!(figures(&pool), (1, 0, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_is_admitted_in_turn_and_waits_behind_nobody_who_has_all_of_its_own() {
        let pool = small();
        let (first, _second) = (at_once(&pool, "ann"), at_once(&pool, "ann"));
        let ann = party("ann");
        let mut waiting = Box::pin(pool.admit(&ann));
        assert!((&mut waiting).now_or_never().is_none());
        let _bob = at_once(&pool, "bob");
        assert_eq!(figures(&pool), (3, 1, 0));
        assert_eq!(pool.admit(&ann).now_or_never().unwrap().unwrap_err(), Full, "one of hers waits already");
        drop(first);
        assert!(waiting.now_or_never().unwrap().is_ok());
        assert_eq!(figures(&pool), (2, 0, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_too_long_or_where_too_many_wait_is_refused() {
        let pool = small();
        let _places = (at_once(&pool, "ann"), at_once(&pool, "ann"), at_once(&pool, "bob"));
        let (eve, ivy, jane) = (party("eve"), party("ivy"), party("jane"));
        let began = Instant::now();
        let (eve, ivy, jane) = tokio::join!(pool.admit(&eve), pool.admit(&ivy), async {
            let refused = pool.admit(&jane).await;
            (refused, began.elapsed())
        });
        assert!(eve.is_err() && ivy.is_err() && began.elapsed() == WAIT);
        assert_eq!((jane.0.unwrap_err(), jane.1), (Full, Duration::ZERO), "two wait already");
        assert_eq!(figures(&pool), (3, 0, 3));
    }

    #[tokio::test(start_paused = true)]
    async fn who_goes_away_while_it_waits_takes_no_place() {
        let pool = small();
        let first = at_once(&pool, "ann");
        let _second = at_once(&pool, "ann");
        let ann = party("ann");
        let mut gone = Box::pin(pool.admit(&ann));
        assert!((&mut gone).now_or_never().is_none());
        drop(gone);
        drop(first);
        assert_eq!(figures(&pool), (1, 0, 0));
        assert!(pool.admit(&ann).now_or_never().unwrap().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_of_three_times_a_callers_share_gets_through() {
        let pools = Pools::default();
        let requests = (0..150).map(|_| async {
            let admitted = pools.requests.admit(&party("ann")).await;
            sleep(Duration::from_millis(500)).await;
            admitted.map(drop)
        });
        let admitted = futures::future::join_all(requests).await;
        assert!(admitted.iter().all(Result::is_ok));
        assert_eq!(figures(&pools.requests), (0, 0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn twenty_large_answers_of_one_caller_take_turns_and_are_all_made() {
        let pools = Pools::default();
        let answers = (0..20).map(|_| async {
            let admitted = pools.large.admit(&party("controller")).await;
            sleep(Duration::from_secs(2)).await;
            admitted.map(drop)
        });
        let made = futures::future::join_all(answers).await;
        assert!(made.iter().all(Result::is_ok));
    }
}
