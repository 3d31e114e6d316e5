//! How much memory the calls of guests, their answers and the compiler may take together, and whose turn it is where that is all in use.
//!
//! A [`Ledger`] holds what there is to give. Whoever asks waits until it fits, and holds nothing of the ledger while it waits: so there is
//! no circle of those that wait for one another, and all that was admitted is given back in the end. Lanes, one a Reconciler, take
//! turns; inside a lane the first comes first. What is small does not wait behind what is large: a share of the whole is for it alone
//! while something large waits, and since the rest is then left to that, what is large is not passed by for ever either.
//!
//! A [`Habit`] is what makes most calls small: they are granted what calls of their Reconciler were seen to need, and not all that they
//! could take. A guest is a pure function, so that a call which runs out of its grant is begun anew with a larger one.

use std::collections::{BTreeMap, VecDeque};

/// Up to this, in bytes, what is asked for counts as small. An ordinary call takes less than half of it.
pub const SMALL_BYTES_MAX: u64 = 8 << 20;
/// One in so many bytes is for what is small alone, while something large waits. An eighth of what 512 MiB leave is ten ordinary calls.
const SMALL_SHARE: u64 = 8;
/// No lane may hold more than one in so many of the bytes for what is large, but for a single reservation: with two, nobody else would
/// find any of it free.
const LANE_SHARE: u64 = 2;

/// What a host is taken to keep at least, in bytes: at rest with a thousand roots it has 40 MiB, and a call or two of the engine's pool.
pub const BASE_BYTES_MIN: u64 = 64 << 20;
/// The least that there is to give, in bytes, however much the host keeps: with it four ordinary calls at a time go on.
pub const CAPACITY_BYTES_MIN: u64 = 16 << 20;

/// How much of what a process may take there is to give, where it keeps so many bytes besides. A quarter of the rest is left free: for
/// what the allocator rounds up and gives back late, for requests on their way, and for what the host comes to keep until somebody looks.
pub fn capacity(process_bytes: u64, kept_bytes: u64) -> u64 {
    let rest = process_bytes.saturating_sub(kept_bytes.max(BASE_BYTES_MIN));
    (rest / 4 * 3).max(CAPACITY_BYTES_MIN)
}

/// A reservation, or a place among those who wait for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// What became of a question for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// It may be taken.
    Admitted(Ticket),
    /// It must be waited for. The ticket is among those that [`Ledger::give_back`] and the like admit later on.
    Waits(Ticket),
    /// There is never so much.
    TooLarge {
        /// The most that can be asked for now, in bytes.
        bytes_max: u64,
    },
}

/// What a change of the ledger leads to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// They waited, and may go on.
    pub admitted: Vec<Ticket>,
    /// They waited for more than there is now, and are forgotten.
    pub too_large: Vec<Ticket>,
}

/// Who holds how many bytes, and who waits for how many.
#[derive(Debug)]
pub struct Ledger<L> {
    capacity: u64,
    held: BTreeMap<Ticket, Held<L>>,
    small_held: u64,
    large_held: u64,
    /// What each lane holds of what is large.
    lanes: BTreeMap<L, u64>,
    waiting: BTreeMap<L, VecDeque<(Ticket, u64)>>,
    /// The lanes in which somebody waits, in the order of their turns.
    turns: VecDeque<L>,
    next: u64,
}

#[derive(Debug)]
struct Held<L> {
    lane: L,
    bytes: u64,
    /// What it was when it was asked for. It stays that when it shrinks, or it would take from the small ones' share.
    small: bool,
}

enum Fits {
    Yes,
    /// Others hold too much.
    NoRoom,
    /// The lane itself does.
    NotInItsLane,
}

impl<L: Ord + Clone> Ledger<L> {
    /// A ledger with so many bytes to give.
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

    /// Asks for so many bytes.
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
        // Nobody else can be admitted by it: nothing was given back.
        match self.admit().contains(&ticket) {
            true => Asked::Admitted(ticket),
            false => Asked::Waits(ticket),
        }
    }

    /// Gives back what a ticket holds, or its place among those who wait.
    pub fn give_back(&mut self, ticket: Ticket) -> Changed {
        match self.held.remove(&ticket) {
            Some(held) => self.took(&held.lane, held.small, |bytes| bytes.saturating_sub(held.bytes)),
            None => self.leave(ticket),
        }
        Changed { admitted: self.admit(), too_large: Vec::new() }
    }

    /// Gives back all that a ticket holds but so many bytes. It never holds more than before.
    pub fn shrink(&mut self, ticket: Ticket, bytes: u64) -> Changed {
        if let Some(held) = self.held.get_mut(&ticket) {
            let less = held.bytes.saturating_sub(bytes);
            held.bytes -= less;
            let (lane, small) = (held.lane.clone(), held.small);
            self.took(&lane, small, |bytes| bytes.saturating_sub(less));
        }
        Changed { admitted: self.admit(), too_large: Vec::new() }
    }

    /// Says how much there is to give from now on: more or less than what is held already.
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

    /// How many bytes there are, held or free.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// How many bytes are held.
    pub fn held(&self) -> u64 {
        self.small_held + self.large_held
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.waiting.values().map(VecDeque::len).sum()
    }

    /// The most that one may ask for, in bytes.
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

    /// Admits whoever may be, turn by turn.
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

    /// The first in the order of the turns that may be admitted. Behind something large that waits for room comes nothing else that is
    /// large, so that it comes to its room.
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

    /// Forgets one who waits.
    fn leave(&mut self, ticket: Ticket) {
        for waiting in self.waiting.values_mut() {
            waiting.retain(|(other, _)| *other != ticket);
        }
        self.waiting.retain(|_, waiting| !waiting.is_empty());
        let Self { turns, waiting, .. } = self;
        turns.retain(|lane| waiting.contains_key(lane));
    }
}

/// What a call takes, or may take, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// Linear memory.
    pub memory_bytes: u64,
    /// The answer as the guest wrote it.
    pub text_bytes: u64,
    /// The answer as values.
    pub parsed_bytes: u64,
}

/// What a call takes besides: tables, the store, and what it touches of its thread's stack.
const CALL_BYTES: u64 = 1 << 20;

impl Need {
    /// A call before anything is known of its Reconciler's. Guests in Rust start with 1.1 MiB, and of a page of YAML as an answer
    /// values are made that take some 100 KiB.
    const FIRST: Self = Self { memory_bytes: 2 << 20, text_bytes: 128 << 10, parsed_bytes: 512 << 10 };

    /// How much is to be reserved for a call with a request of this length: until its answer was judged, and for what comes after.
    pub fn of_call(self, request_bytes: u64) -> u64 {
        let Self { memory_bytes, text_bytes, parsed_bytes } = self;
        let call = [CALL_BYTES, request_bytes, memory_bytes, text_bytes, parsed_bytes];
        call.into_iter().fold(0, u64::saturating_add).max(self.of_answer())
    }

    /// How much is to be held for an answer that was judged, until its pass ends: the children, once more as they are sent, and as text
    /// on the way to the API server and back.
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

/// How many times a call has to need less until what is granted has come down by three fifths: a guest that needs much now and then is
/// seldom called twice for it.
const FORGETS: u64 = 64;

/// What calls of a Reconciler's guest were seen to need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Habit(Need);

impl Habit {
    /// What the next call is granted: a quarter more than was seen, and never more than it may have.
    pub fn grant(&self, most: Need) -> Need {
        let wider = |seen: u64, _| seen.saturating_add(seen / 4);
        self.0.each(self.0, wider).at_least(Need::FIRST).at_most(most)
    }

    /// A call needed this.
    pub fn saw(&mut self, need: Need) {
        self.0 = self.0.each(need, |before, now| match before.checked_sub(now) {
            Some(less) => before - less / FORGETS,
            None => now,
        });
    }
}
