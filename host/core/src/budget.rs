//! The memory budget: how much memory calls of guests, their answers and the compiler may take together, and who is next if all of it is
//! in use.
//!
//! A [`Ledger`] holds the memory that can be reserved. A request waits until it fits. While it waits it holds no reservation, so requests
//! cannot wait for one another in a circle, and every reservation is given back in the end. Each Reconciler has a lane. Lanes take turns,
//! and requests within a lane are served in order.
//!
//! Small requests do not wait behind large ones: while a large request waits, a share of the memory is reserved for small requests. The
//! rest is then reserved for the large request, so that it does not wait for ever either.
//!
//! A [`Habit`] makes most calls small: a call is granted what earlier calls of its Reconciler needed, and not all that it could take. A
//! guest is a pure function, so a call that runs out of its grant is simply made again with a larger one.

use std::collections::{BTreeMap, VecDeque};

/// The largest request, in bytes, that counts as small. An ordinary call takes less than half of it.
pub const SMALL_BYTES_MAX: u64 = 8 << 20;
/// While a large request waits, one in this many bytes is reserved for small ones. With a process limit of 512 MiB, this eighth is
/// enough for ten ordinary calls.
const SMALL_SHARE: u64 = 8;
/// No lane may hold more than one in this many of the bytes for large requests, except with a single reservation. With two, it could
/// leave nothing for others.
const LANE_SHARE: u64 = 2;

/// The least memory, in bytes, that a host is assumed to keep besides: with a thousand roots and nothing to do it has 40 MiB, and a call
/// or two of the engine's pool.
pub const BASE_BYTES_MIN: u64 = 64 << 20;
/// The smallest capacity of the ledger, in bytes, however much the host keeps: enough for four ordinary calls at a time.
pub const CAPACITY_BYTES_MIN: u64 = 16 << 20;

/// The capacity of the ledger, from the memory limit of the process and the bytes that the host keeps besides. A quarter of the rest stays
/// free: for what the allocator rounds up and gives back late, for requests in flight, and for the growth of the host's memory until the
/// next measurement.
pub fn capacity(process_bytes: u64, kept_bytes: u64) -> u64 {
    let rest = process_bytes.saturating_sub(kept_bytes.max(BASE_BYTES_MIN));
    (rest / 4 * 3).max(CAPACITY_BYTES_MIN)
}

/// A reservation, or a request that waits for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// The result of a request for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The memory is reserved.
    Admitted(Ticket),
    /// The request waits. [`Ledger::give_back`] and the like return the ticket later, when it is admitted.
    Waits(Ticket),
    /// The ledger never has so much.
    TooLarge {
        /// The largest request that is possible now, in bytes.
        bytes_max: u64,
    },
}

/// The effect of a change of the ledger on the requests that wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Requests that waited, and are admitted now.
    pub admitted: Vec<Ticket>,
    /// Requests that waited for more than the ledger now has. They are forgotten.
    pub too_large: Vec<Ticket>,
}

/// The reservations, and the requests that wait.
#[derive(Debug)]
pub struct Ledger<L> {
    capacity: u64,
    held: BTreeMap<Ticket, Held<L>>,
    small_held: u64,
    large_held: u64,
    /// How many bytes each lane holds in large reservations.
    lanes: BTreeMap<L, u64>,
    waiting: BTreeMap<L, VecDeque<(Ticket, u64)>>,
    /// The lanes in which requests wait, in the order of their turns.
    turns: VecDeque<L>,
    next: u64,
}

#[derive(Debug)]
struct Held<L> {
    lane: L,
    bytes: u64,
    /// Whether the request was small. A large reservation that shrinks stays large, or it would take from the share for small ones.
    small: bool,
}

enum Fits {
    Yes,
    /// Too much is reserved already.
    NoRoom,
    /// The lane itself holds too much.
    NotInItsLane,
}

impl<L: Ord + Clone> Ledger<L> {
    /// An empty ledger with this capacity, in bytes.
    pub fn new(capacity: u64) -> Self {
        Self {
            capacity,
            held: BTreeMap::new(),
            small_held: 0,
            large_held: 0,
            lanes: BTreeMap::new(),
            waiting: BTreeMap::new(),
            turns: VecDeque::new(),
            next: 0,
        }
    }

    /// Asks for this many bytes.
    pub fn ask(&mut self, lane: &L, bytes: u64) -> Asked {
        if bytes > self.bytes_max() {
            return Asked::TooLarge { bytes_max: self.bytes_max() };
        }
        let ticket = Ticket(self.next);
        self.next += 1;
        self.waiting.entry(lane.clone()).or_default().push_back((ticket, bytes));
        if !self.turns.contains(lane) {
            self.turns.push_back(lane.clone());
        }
        // This admits no other request, since nothing was given back.
        match self.admit().contains(&ticket) {
            true => Asked::Admitted(ticket),
            false => Asked::Waits(ticket),
        }
    }

    /// Gives a reservation back, or cancels a request that waits.
    pub fn give_back(&mut self, ticket: Ticket) -> Changed {
        match self.held.remove(&ticket) {
            Some(held) => self.took(&held.lane, held.small, |bytes| bytes.saturating_sub(held.bytes)),
            None => self.leave(ticket),
        }
        Changed { admitted: self.admit(), too_large: Vec::new() }
    }

    /// Shrinks a reservation to this many bytes. It never grows.
    pub fn shrink(&mut self, ticket: Ticket, bytes: u64) -> Changed {
        if let Some(held) = self.held.get_mut(&ticket) {
            let less = held.bytes.saturating_sub(bytes);
            held.bytes -= less;
            let (lane, small) = (held.lane.clone(), held.small);
            self.took(&lane, small, |bytes| bytes.saturating_sub(less));
        }
        Changed { admitted: self.admit(), too_large: Vec::new() }
    }

    /// Sets the capacity. It may be less than what is reserved already.
    pub fn set_capacity(&mut self, capacity: u64) -> Changed {
        self.capacity = capacity;
        let bytes_max = self.bytes_max();
        let waiting = self.waiting.values().flatten();
        let too_large: Vec<Ticket> =
            waiting.filter(|(_, bytes)| *bytes > bytes_max).map(|(ticket, _)| *ticket).collect();
        for ticket in &too_large {
            self.leave(*ticket);
        }
        Changed { admitted: self.admit(), too_large }
    }

    /// The capacity in bytes, reserved or free.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// How many bytes are reserved.
    pub fn held(&self) -> u64 {
        self.small_held + self.large_held
    }

    /// How many requests wait.
    pub fn waiting(&self) -> usize {
        self.waiting.values().map(VecDeque::len).sum()
    }

    /// The largest request that is possible, in bytes.
    pub fn bytes_max(&self) -> u64 {
        self.large_share().max(self.capacity.min(SMALL_BYTES_MAX))
    }

    fn large_share(&self) -> u64 {
        self.capacity - self.small_share()
    }

    fn small_share(&self) -> u64 {
        self.capacity / SMALL_SHARE
    }

    fn fits(&self, lane: &L, bytes: u64, large_waits: bool) -> Fits {
        let fits = |held: u64, share: u64| held.saturating_add(bytes) <= share;
        let in_all = fits(self.held(), self.capacity);
        if bytes <= SMALL_BYTES_MAX {
            let passes = !large_waits || fits(self.small_held, self.small_share());
            return if in_all && passes { Fits::Yes } else { Fits::NoRoom };
        }
        let of_lane = self.lanes.get(lane).copied().unwrap_or_default();
        if of_lane > 0 && !fits(of_lane, self.large_share() / LANE_SHARE) {
            return Fits::NotInItsLane;
        }
        let is_next = !large_waits && in_all && fits(self.large_held, self.large_share());
        if is_next { Fits::Yes } else { Fits::NoRoom }
    }

    /// Admits all requests that fit, turn by turn.
    fn admit(&mut self) -> Vec<Ticket> {
        let mut admitted = Vec::new();
        while let Some((turn, ticket, bytes)) = self.next_turn() {
            let Some(lane) = self.turns.remove(turn) else { break };
            let left = self.waiting.get_mut(&lane).map_or(0, |waiting| {
                waiting.pop_front();
                waiting.len()
            });
            if left > 0 {
                self.turns.push_back(lane.clone());
            } else {
                self.waiting.remove(&lane);
            }
            let small = bytes <= SMALL_BYTES_MAX;
            self.took(&lane, small, |held| held + bytes);
            self.held.insert(ticket, Held { lane, bytes, small });
            admitted.push(ticket);
        }
        admitted
    }

    /// The first request, in the order of the turns, that may be admitted. While a large request waits for room, no other large one behind
    /// it is admitted, so that it gets its room.
    fn next_turn(&self) -> Option<(usize, Ticket, u64)> {
        let mut large_waits = false;
        for (turn, lane) in self.turns.iter().enumerate() {
            let Some((ticket, bytes)) = self.waiting.get(lane).and_then(VecDeque::front) else { continue };
            match self.fits(lane, *bytes, large_waits) {
                Fits::Yes => return Some((turn, *ticket, *bytes)),
                Fits::NoRoom => large_waits |= *bytes > SMALL_BYTES_MAX,
                Fits::NotInItsLane => {}
            }
        }
        None
    }

    fn took(&mut self, lane: &L, small: bool, change: impl Fn(u64) -> u64) {
        if small {
            self.small_held = change(self.small_held);
            return;
        }
        self.large_held = change(self.large_held);
        let of_lane = self.lanes.entry(lane.clone()).or_default();
        *of_lane = change(*of_lane);
        if *of_lane == 0 {
            self.lanes.remove(lane);
        }
    }

    /// Forgets a request that waits.
    fn leave(&mut self, ticket: Ticket) {
        for waiting in self.waiting.values_mut() {
            waiting.retain(|(other, _)| *other != ticket);
        }
        self.waiting.retain(|_, waiting| !waiting.is_empty());
        let Self { turns, waiting, .. } = self;
        turns.retain(|lane| waiting.contains_key(lane));
    }
}

/// The memory that a call takes, or may take, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// Linear memory.
    pub memory_bytes: u64,
    /// The answer as text, as the guest wrote it.
    pub text_bytes: u64,
    /// The answer as parsed values.
    pub parsed_bytes: u64,
}

/// The memory that a call takes besides: tables, the store, and the part of its thread's stack that it uses.
const CALL_BYTES: u64 = 1 << 20;

impl Need {
    /// The need that is assumed before anything is known about calls of a Reconciler. Guests in Rust start with 1.1 MiB, and an answer of
    /// one page of YAML takes some 100 KiB as parsed values.
    const FIRST: Self = Self { memory_bytes: 2 << 20, text_bytes: 128 << 10, parsed_bytes: 512 << 10 };

    /// How much to reserve for a call with a request of this length: for the time until its answer was judged, and for the time after.
    pub fn of_call(self, request_bytes: u64) -> u64 {
        let Self { memory_bytes, text_bytes, parsed_bytes } = self;
        let call = [CALL_BYTES, request_bytes, memory_bytes, text_bytes, parsed_bytes];
        call.into_iter().fold(0, u64::saturating_add).max(self.of_answer())
    }

    /// How much to keep reserved for an answer that was judged, until its pass ends: the children, a second copy of them as they are sent,
    /// and their text on the way to the API server and back.
    pub fn of_answer(self) -> u64 {
        self.parsed_bytes.saturating_mul(2).saturating_add(self.text_bytes.saturating_mul(4))
    }

    fn each(self, other: Self, choose: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            memory_bytes: choose(self.memory_bytes, other.memory_bytes),
            text_bytes: choose(self.text_bytes, other.text_bytes),
            parsed_bytes: choose(self.parsed_bytes, other.parsed_bytes),
        }
    }

    /// The lesser of each.
    #[must_use]
    pub fn at_most(self, other: Self) -> Self {
        self.each(other, u64::min)
    }

    /// The greater of each.
    #[must_use]
    pub fn at_least(self, other: Self) -> Self {
        self.each(other, u64::max)
    }
}

/// How many calls must need less until the grant has come down by three fifths. So a guest that needs much now and then seldom has to be
/// called a second time.
const FORGETS: u64 = 64;

/// What earlier calls of a Reconciler's guest needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Habit(Need);

impl Habit {
    /// The grant for the next call: a quarter more than earlier calls needed, and never more than `most`.
    pub fn grant(&self, most: Need) -> Need {
        let wider = |seen: u64, _| seen.saturating_add(seen / 4);
        self.0.each(self.0, wider).at_least(Need::FIRST).at_most(most)
    }

    /// Records what a call needed.
    pub fn saw(&mut self, need: Need) {
        self.0 = self.0.each(need, |before, now| match before.checked_sub(now) {
            Some(less) => before - less / FORGETS,
            None => now,
        });
    }
}
