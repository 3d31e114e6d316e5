//! The memory budget of the process, for calls of guests, for their answers, and for the compiler.
//!
//! [`pintle_core::budget`] makes the decisions, and this file waits for them. Code that may take much memory reserves it first, and gives
//! it back by dropping the [`Reservation`]. A task must not wait for a reservation while it holds another one, or two tasks could wait
//! for each other.

use std::{
    collections::BTreeMap,
    fs,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use pintle_core::budget::{self, Asked, Changed, Habit, Ledger, Need, SMALL_BYTES_MAX, Ticket};
use pintle_runtime::clock;
use pintle_wit::{Failure, reasons};
use tokio::sync::oneshot;

/// The purpose of a reservation, as the metric shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// A call of a guest, until its answer was judged.
    Call,
    /// An answer that was judged, until its pass ends.
    Answer,
    /// The compiler, and the first call of the module that it has compiled.
    Compile,
    /// What a client sends, and what is read to answer it.
    Request,
}

impl Purpose {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Call, Self::Answer, Self::Compile, Self::Request];

    /// As a label.
    pub fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Answer => "answer",
            Self::Compile => "compile",
            Self::Request => "request",
        }
    }
}

/// The budget. Clones are the same one.
#[derive(Clone)]
pub struct Budget(Arc<Inner>);

struct Inner {
    process_bytes: u64,
    /// Measures how much memory the process takes now, in bytes, if that is possible.
    resident: Option<fn() -> Option<u64>>,
    state: Mutex<State>,
}

struct State {
    ledger: Ledger<String>,
    waiting: BTreeMap<Ticket, oneshot::Sender<Result<(), TooLarge>>>,
    by_purpose: BTreeMap<Purpose, u64>,
    /// What the process takes besides what is reserved, as far as it is known.
    kept_bytes: u64,
    looked: Option<Duration>,
    habits: BTreeMap<String, Habit>,
}

/// How long a request of a client waits for memory. A client that is told to come again does not wait longer than that itself.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a request of a client found no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoMemory {
    /// The budget can never give so much.
    TooLarge(TooLarge),
    /// Others have it, and none of them gave it back in time.
    InUse,
}

/// The request is larger than what the budget can ever give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// What was asked for, in bytes.
    pub bytes: u64,
    /// The most that can be.
    pub bytes_max: u64,
}

impl From<TooLarge> for Failure {
    fn from(TooLarge { bytes, bytes_max }: TooLarge) -> Self {
        let mebibytes = |bytes: u64| bytes.div_ceil(1 << 20);
        let message = format!(
            "it takes up to {} MiB, and this host has at most {} MiB for one call: raise the host's memory limit, or lower spec.limits of \
             the Reconciler",
            mebibytes(bytes),
            bytes_max >> 20
        );
        // The capacity changes with the memory that the host keeps.
        Self::transient(reasons::MEMORY_BUDGET, message)
    }
}

/// How the budget stands, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// How much the process may take.
    pub process: u64,
    /// How much the host keeps besides reservations.
    pub kept: u64,
    /// How much can be reserved in all.
    pub capacity: u64,
    /// How much is reserved, by purpose.
    pub reserved: Vec<(Purpose, u64)>,
    /// How many requests wait.
    pub waiting: usize,
}

/// How often the memory of the process is measured at most. It costs some twenty microseconds, and only large requests do it.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// While at most one in this many bytes is reserved, all memory of the process counts as kept by the host.
const QUIET_SHARE: u64 = 16;

impl Budget {
    /// The budget of a process that may take this many bytes.
    pub fn new(process_bytes: u64) -> Self {
        Self::measured(process_bytes, Some(resident_bytes))
    }

    /// A budget that never measures the process, for a simulated host, whose process also does other work.
    pub fn fixed(process_bytes: u64) -> Self {
        Self::measured(process_bytes, None)
    }

    fn measured(process_bytes: u64, resident: Option<fn() -> Option<u64>>) -> Self {
        let state = State {
            ledger: Ledger::new(budget::capacity(process_bytes, 0)),
            waiting: BTreeMap::new(),
            by_purpose: BTreeMap::new(),
            kept_bytes: budget::BASE_BYTES_MIN,
            looked: None,
            habits: BTreeMap::new(),
        };
        Self(Arc::new(Inner { process_bytes, resident, state: Mutex::new(state) }))
    }

    /// Reserves this many bytes, and waits for them if they are not free. A lane is a Reconciler's name, or another name whose requests
    /// take turns with those of other lanes. The caller must not hold another reservation.
    ///
    /// # Errors
    /// When the budget can never give so much.
    pub async fn reserve(&self, lane: &str, purpose: Purpose, bytes: u64) -> Result<Reservation, TooLarge> {
        if bytes > SMALL_BYTES_MAX {
            self.look();
        }
        let (mut reservation, turn) = {
            let mut state = self.state();
            let ticket = match state.ledger.ask(&lane.to_owned(), bytes) {
                Asked::TooLarge { bytes_max } => return Err(TooLarge { bytes, bytes_max }),
                Asked::Admitted(ticket) => {
                    *state.by_purpose.entry(purpose).or_default() += bytes;
                    return Ok(Reservation {
                        budget: self.clone(),
                        ticket,
                        purpose,
                        bytes,
                        counted: bytes,
                        waited: false,
                    });
                }
                Asked::Waits(ticket) => ticket,
            };
            let (sender, turn) = oneshot::channel();
            state.waiting.insert(ticket, sender);
            let budget = self.clone();
            // If this is dropped while it waits, it gives up its place.
            (Reservation { budget, ticket, purpose, bytes, counted: 0, waited: true }, turn)
        };
        // The sender is dropped when it has spoken, or with the reservation itself.
        let granted = turn.await.unwrap_or(Err(TooLarge { bytes, bytes_max: 0 }));
        granted.map_err(|too_large| TooLarge { bytes, ..too_large })?;
        *self.state().by_purpose.entry(purpose).or_default() += bytes;
        reservation.counted = bytes;
        Ok(reservation)
    }

    /// The same for a request of a client, which waits for a moment only.
    ///
    /// # Errors
    /// When there is no such memory, or not in time.
    pub async fn reserve_soon(&self, lane: &str, bytes: u64) -> Result<Reservation, NoMemory> {
        let reserved = tokio::time::timeout(PATIENCE, self.reserve(lane, Purpose::Request, bytes)).await;
        reserved.map_err(|_| NoMemory::InUse)?.map_err(NoMemory::TooLarge)
    }

    /// The largest possible reservation, in bytes.
    pub fn bytes_max(&self) -> u64 {
        self.state().ledger.bytes_max()
    }

    /// The grant for the next call of a Reconciler's guest, which may have `most`.
    pub fn grant(&self, lane: &str, most: Need) -> Need {
        self.state().habits.get(lane).copied().unwrap_or_default().grant(most)
    }

    /// Records what a call of a Reconciler's guest needed.
    pub fn saw(&self, lane: &str, need: Need) {
        let mut state = self.state();
        match state.habits.get_mut(lane) {
            Some(habit) => habit.saw(need),
            None => state.habits.entry(lane.to_owned()).or_default().saw(need),
        }
    }

    /// Forgets a Reconciler that is gone.
    pub fn forget(&self, lane: &str) {
        self.state().habits.remove(lane);
    }

    /// The present state of the budget.
    pub fn standing(&self) -> Standing {
        self.look();
        let state = self.state();
        let reserved = |purpose| (purpose, state.by_purpose.get(&purpose).copied().unwrap_or_default());
        Standing {
            process: self.0.process_bytes,
            kept: state.kept_bytes,
            capacity: state.ledger.capacity(),
            reserved: Purpose::ALL.map(reserved).into(),
            waiting: state.ledger.waiting(),
        }
    }

    /// Measures the memory of the process, at most once in [`LOOK_EVERY`], and sets the capacity accordingly.
    fn look(&self) {
        let Some(resident) = self.0.resident else { return };
        let now = clock::monotonic();
        let is_due = |state: &State| state.looked.is_none_or(|at| now.saturating_sub(at) >= LOOK_EVERY);
        if !is_due(&self.state()) {
            return;
        }
        let Some(resident) = resident() else { return };
        let mut state = self.state();
        state.looked = Some(now);
        let held = state.ledger.held();
        state.kept_bytes = if held <= state.ledger.capacity() / QUIET_SHARE {
            resident
        } else {
            // It is unknown how much of the reserved memory has been taken, so this is the least that the host keeps.
            state.kept_bytes.max(resident.saturating_sub(held))
        };
        let capacity = budget::capacity(self.0.process_bytes, state.kept_bytes);
        let changed = state.ledger.set_capacity(capacity);
        state.tell(changed);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic leaves nothing in it half-changed.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Wakes the requests that were admitted. If the waiting task is gone, dropping the reservation gives the memory back.
    fn tell(&mut self, changed: Changed) {
        for ticket in changed.admitted {
            if let Some(waiting) = self.waiting.remove(&ticket) {
                let _ = waiting.send(Ok(()));
            }
        }
        let bytes_max = self.ledger.bytes_max();
        for ticket in changed.too_large {
            if let Some(waiting) = self.waiting.remove(&ticket) {
                // The task that waits knows how much it asked for.
                let _ = waiting.send(Err(TooLarge { bytes: 0, bytes_max }));
            }
        }
    }
}

/// Reserved bytes of the budget. Dropping it gives them back.
pub struct Reservation {
    budget: Budget,
    ticket: Ticket,
    purpose: Purpose,
    bytes: u64,
    /// How many bytes the metric shows for this reservation.
    counted: u64,
    waited: bool,
}

impl Reservation {
    /// Whether the request had to wait.
    pub fn waited(&self) -> bool {
        self.waited
    }

    /// Gives back all but this many bytes, which are for this purpose from now on.
    pub fn shrink(&mut self, purpose: Purpose, bytes: u64) {
        let bytes = bytes.min(self.bytes);
        let mut state = self.budget.state();
        for (of, change) in [(self.purpose, -(self.counted as i64)), (purpose, bytes as i64)] {
            let counted = state.by_purpose.entry(of).or_default();
            *counted = counted.saturating_add_signed(change);
        }
        let changed = state.ledger.shrink(self.ticket, bytes);
        state.tell(changed);
        drop(state);
        (self.purpose, self.bytes, self.counted) = (purpose, bytes, bytes);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut state = self.budget.state();
        state.waiting.remove(&self.ticket);
        let counted = state.by_purpose.entry(self.purpose).or_default();
        *counted = counted.saturating_sub(self.counted);
        let changed = state.ledger.give_back(self.ticket);
        state.tell(changed);
    }
}

/// The memory that the process takes now and cannot give up. The pages of its program do not count, because the system may drop them.
fn resident_bytes() -> Option<u64> {
    resident_in(&fs::read_to_string("/proc/self/status").ok()?)
}

fn resident_in(status: &str) -> Option<u64> {
    let kibibytes = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    };
    Some((kibibytes("RssAnon")? + kibibytes("RssShmem").unwrap_or_default()) << 10)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use futures::FutureExt;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn reserved(budget: &Budget) -> Vec<u64> {
        budget.standing().reserved.into_iter().map(|(_, bytes)| bytes).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_dropped_is_given_to_who_waits() {
        let budget = Budget::fixed(512 * MIB);
        assert_eq!(budget.standing().capacity, 336 * MIB);
        let first = budget.reserve("a", Purpose::Call, 140 * MIB).await.unwrap();
        let second = budget.reserve("b", Purpose::Compile, 140 * MIB).await.unwrap();
        let mut third = Box::pin(budget.reserve("c", Purpose::Call, 140 * MIB));
        assert!(third.as_mut().now_or_never().is_none());
        assert_eq!((reserved(&budget), budget.standing().waiting), (vec![140 * MIB, 0, 140 * MIB, 0], 1));
        drop(first);
        let third = third.await.unwrap();
        assert!(third.waited() && !second.waited());
        drop((second, third));
        assert_eq!(reserved(&budget), [0; 4]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_holds_what_it_takes_and_no_longer_what_its_call_took() {
        let budget = Budget::fixed(512 * MIB);
        let mut call = budget.reserve("a", Purpose::Call, 140 * MIB).await.unwrap();
        let mut next = Box::pin(budget.reserve("a", Purpose::Call, 140 * MIB));
        assert!(next.as_mut().now_or_never().is_none());
        call.shrink(Purpose::Answer, 2 * MIB);
        let next = next.await.unwrap();
        assert_eq!(reserved(&budget), [140 * MIB, 2 * MIB, 0, 0]);
        drop((call, next));
        assert_eq!(reserved(&budget), [0; 4]);
    }

    #[tokio::test(start_paused = true)]
    async fn who_stops_waiting_gives_up_his_place_also_when_his_turn_has_just_come() {
        let budget = Budget::fixed(512 * MIB);
        let first = budget.reserve("a", Purpose::Call, 200 * MIB).await.unwrap();
        let mut gone = Box::pin(budget.reserve("b", Purpose::Call, 200 * MIB));
        let mut late = Box::pin(budget.reserve("c", Purpose::Call, 200 * MIB));
        assert!(gone.as_mut().now_or_never().is_none() && late.as_mut().now_or_never().is_none());
        drop(first);
        // It was given the bytes, and nobody has looked since.
        drop(gone);
        drop(late.await.unwrap());
        assert_eq!((reserved(&budget), budget.standing().waiting), (vec![0; 4], 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_waits_for_memory_for_a_moment_only_and_leaves_no_place_taken() {
        let budget = Budget::fixed(512 * MIB);
        let first = budget.reserve("a", Purpose::Call, 200 * MIB).await.unwrap();
        let mut late = Box::pin(budget.reserve_soon("b", 200 * MIB));
        assert!(late.as_mut().now_or_never().is_none());
        assert_eq!(late.await.map(drop), Err(NoMemory::InUse));
        assert_eq!(budget.standing().waiting, 0);
        drop(first);
        let reserved = budget.reserve_soon("b", 200 * MIB).await.unwrap();
        assert_eq!(budget.standing().reserved.last(), Some(&(Purpose::Request, 200 * MIB)));
        let never = budget.reserve_soon("c", 1 << 40).await.map(drop);
        assert!(matches!(never, Err(NoMemory::TooLarge(TooLarge { bytes, .. })) if bytes == 1 << 40));
        drop(reserved);
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_host_keeps_is_taken_from_what_there_is_to_reserve() {
        static RESIDENT: AtomicU64 = AtomicU64::new(40 * MIB);
        let budget = Budget::measured(512 * MIB, Some(|| Some(RESIDENT.load(Ordering::Relaxed))));
        assert_eq!(budget.standing().capacity, 336 * MIB);
        RESIDENT.store(312 * MIB, Ordering::Relaxed);
        assert_eq!(budget.standing().capacity, 336 * MIB, "it does not look at every moment");
        tokio::time::advance(LOOK_EVERY).await;
        let TooLarge { bytes_max, .. } =
            budget.reserve("a", Purpose::Call, 140 * MIB).await.map(drop).unwrap_err();
        assert_eq!((budget.standing().capacity, bytes_max), (150 * MIB, 150 * MIB / 8 * 7));
        // What is reserved is in what the process takes; so that is not taken away twice.
        RESIDENT.store(100 * MIB, Ordering::Relaxed);
        tokio::time::advance(LOOK_EVERY).await;
        let _held = budget.reserve("a", Purpose::Call, 140 * MIB).await.unwrap();
        RESIDENT.store(240 * MIB, Ordering::Relaxed);
        tokio::time::advance(LOOK_EVERY).await;
        assert_eq!(budget.standing().kept, 100 * MIB);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_more_than_there_comes_to_be_is_told() {
        static RESIDENT: AtomicU64 = AtomicU64::new(40 * MIB);
        let budget = Budget::measured(512 * MIB, Some(|| Some(RESIDENT.load(Ordering::Relaxed))));
        let _held = budget.reserve("a", Purpose::Call, 140 * MIB).await.unwrap();
        let mut waits = Box::pin(budget.reserve("a", Purpose::Call, 140 * MIB));
        assert!(waits.as_mut().now_or_never().is_none());
        RESIDENT.store(500 * MIB, Ordering::Relaxed);
        tokio::time::advance(LOOK_EVERY).await;
        assert!(budget.standing().capacity < 140 * MIB);
        let failure = Failure::from(waits.await.map(drop).unwrap_err());
        assert_eq!((failure.reason.as_str(), failure.retry), (reasons::MEMORY_BUDGET, true));
        assert!(failure.message.contains("up to 140 MiB"), "{failure}");
    }

    #[test]
    fn what_the_process_takes_is_read_without_the_pages_of_its_program() {
        let status = "VmHWM:\t  52000 kB\nVmRSS:\t   50000 kB\nRssAnon:\t   30000 kB\nRssFile:\t   19000 kB\nRssShmem:\t    1000 kB\n";
        assert_eq!(resident_in(status), Some(31_000 << 10));
        assert_eq!(resident_in("VmRSS:\t   50000 kB\n"), None);
        let taken = vec![1u8; 8 << 20];
        assert!(resident_bytes().is_some_and(|bytes| bytes >= std::hint::black_box(&taken).len() as u64));
    }
}
