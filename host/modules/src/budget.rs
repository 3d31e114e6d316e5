//! The memory budget of the process, for calls of guests, for their answers, and for the compiler.
//!
//! Code that may take much memory reserves it first, and gives it back by dropping the [`Reservation`]. It waits until there is room, in
//! the order in which room was asked for. A task must not wait for a reservation while it holds another one, or two tasks could wait for
//! each other.
//!
//! Small reservations have a pool of their own, so that none of them waits behind a large one. Each Reconciler has a lane, and a lane holds
//! at most half of a pool, except with a single reservation: so one guest cannot take what others need.

use std::{
    collections::BTreeMap,
    fs,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::FutureExt;
use pintle_runtime::clock;
use pintle_wit::{Failure, reasons};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::grants::Need;

/// The largest request, in bytes, that counts as small. An ordinary call takes less than half of it.
pub(crate) const SMALL_BYTES_MAX: u64 = 8 << 20;
/// One in this many bytes is for small requests. With a process limit of 512 MiB, this eighth is enough for ten ordinary calls.
const SMALL_SHARE: u64 = 8;
/// What is for small requests at least, in bytes, so that a lane that holds half of it can make the largest of them.
const SMALL_POOL_BYTES_MIN: u64 = 2 * SMALL_BYTES_MAX;
/// A lane may hold one in this many bytes of a pool. With one, it could leave nothing for others.
const LANE_SHARE: usize = 2;

/// The least memory, in bytes, that a host is assumed to keep besides: with a thousand roots and nothing to do it has 40 MiB, and a call
/// or two of the engine's pool.
const BASE_BYTES_MIN: u64 = 64 << 20;
/// The smallest budget, in bytes, however much the host keeps: enough for four ordinary calls at a time, and one that is large.
const CAPACITY_BYTES_MIN: u64 = 2 * SMALL_POOL_BYTES_MIN;

/// The budget, from the memory limit of the process and the bytes that the host keeps besides. A quarter of the rest stays free: for what
/// the allocator rounds up and gives back late, for requests in flight, and for the growth of the host's memory until the next measurement.
fn capacity(process_bytes: u64, kept_bytes: u64) -> u64 {
    let rest = process_bytes.saturating_sub(kept_bytes.max(BASE_BYTES_MIN));
    (rest / 4 * 3).max(CAPACITY_BYTES_MIN)
}

/// What is for small requests of a budget, and what for large ones, in KiB.
fn shares(capacity: u64) -> (usize, usize) {
    let small = (capacity / SMALL_SHARE).max(SMALL_POOL_BYTES_MIN);
    (kibibytes(small), kibibytes(capacity - small))
}

fn kibibytes(bytes: u64) -> usize {
    usize::try_from(bytes.div_ceil(1 << 10)).map_or(KIBIBYTES_MAX, |kibibytes| kibibytes.min(KIBIBYTES_MAX))
}

/// What a semaphore gives at once, at most.
const KIBIBYTES_MAX: usize = u32::MAX as usize;

/// Room for reservations, in KiB.
struct Pool {
    room: Arc<Semaphore>,
    /// How much there is, taken or free.
    total: watch::Sender<usize>,
    /// How much of what is taken does not come back, since the pool has become smaller.
    surplus: Mutex<usize>,
    /// What each lane may still take.
    lanes: Mutex<BTreeMap<String, Lane>>,
}

struct Lane {
    own: Arc<Semaphore>,
    /// How much it had to itself before anything was taken.
    share: usize,
}

/// Room that is taken.
struct Place {
    of_lane: OwnedSemaphorePermit,
    room: OwnedSemaphorePermit,
}

impl Pool {
    fn new(kibibytes: usize) -> Self {
        Self {
            room: Arc::new(Semaphore::new(kibibytes)),
            total: watch::Sender::new(kibibytes),
            surplus: Mutex::default(),
            lanes: Mutex::default(),
        }
    }

    fn total(&self) -> usize {
        *self.total.borrow()
    }

    /// Waits for room; none if the pool has become smaller than that.
    async fn take(&self, lane: &str, kibibytes: usize) -> Option<Place> {
        let becomes_smaller = async {
            let mut total = self.total.subscribe();
            let _ = total.wait_for(|total| *total < kibibytes).await;
        };
        tokio::select! {
            biased;
            () = becomes_smaller => None,
            place = self.place(lane, kibibytes) => place,
        }
    }

    /// Waits for room of the lane's own, and with it for room of all: so no lane has more of those that wait for this than its share.
    async fn place(&self, lane: &str, kibibytes: usize) -> Option<Place> {
        let (own, share) = self.lane(lane);
        // They are never closed.
        let of_lane = own.acquire_many_owned(permits(kibibytes.min(share))).await.ok()?;
        let room = Arc::clone(&self.room).acquire_many_owned(permits(kibibytes)).await.ok()?;
        Some(Place { of_lane, room })
    }

    fn lane(&self, lane: &str) -> (Arc<Semaphore>, usize) {
        let share = self.total() / LANE_SHARE;
        let mut lanes = lock(&self.lanes);
        // A lane that neither holds nor waits has all of its share.
        lanes.retain(|_, lane| Arc::strong_count(&lane.own) > 1);
        let lane = lanes.entry(lane.to_owned());
        let lane = lane.or_insert_with(|| Lane { own: Arc::new(Semaphore::new(share)), share });
        (Arc::clone(&lane.own), lane.share)
    }

    /// Gives back all but this much of a place.
    fn shrink(&self, place: &mut Place, kibibytes: usize) {
        drop(excess(&mut place.of_lane, kibibytes));
        let Some(mut room) = excess(&mut place.room, kibibytes) else { return };
        let mut surplus = lock(&self.surplus);
        let gone = (*surplus).min(room.num_permits());
        if let Some(gone) = room.split(gone) {
            *surplus -= gone.num_permits();
            gone.forget();
        }
    }

    /// Sets how much there is. It may be less than what is taken already.
    fn resize(&self, kibibytes: usize) {
        let mut surplus = lock(&self.surplus);
        let before = self.total();
        if kibibytes >= before {
            let stays = (kibibytes - before).min(*surplus);
            *surplus -= stays;
            self.room.add_permits(kibibytes - before - stays);
        } else {
            let less = before - kibibytes;
            *surplus += less - self.room.forget_permits(less);
        }
        self.total.send_replace(kibibytes);
    }
}

fn permits(kibibytes: usize) -> u32 {
    u32::try_from(kibibytes).unwrap_or(u32::MAX)
}

fn excess(permit: &mut OwnedSemaphorePermit, kept: usize) -> Option<OwnedSemaphorePermit> {
    permit.split(permit.num_permits().saturating_sub(kept))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic leaves nothing in it half-changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

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
    small: Pool,
    large: Pool,
    waiting: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    by_purpose: BTreeMap<Purpose, u64>,
    /// What the process takes besides what is reserved, as far as it is known.
    kept_bytes: u64,
    looked: Option<Duration>,
    /// What the last call of each Reconciler's guest needed.
    needs: BTreeMap<String, Need>,
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
        let (small, large) = shares(capacity(process_bytes, 0));
        Self(Arc::new(Inner {
            process_bytes,
            resident,
            small: Pool::new(small),
            large: Pool::new(large),
            waiting: AtomicUsize::new(0),
            state: Mutex::new(State { kept_bytes: BASE_BYTES_MIN, ..State::default() }),
        }))
    }

    /// Reserves this many bytes, and waits for them if they are not free. A lane is a Reconciler's name, or another name whose requests
    /// leave room to those of other lanes. The caller must not hold another reservation.
    ///
    /// # Errors
    /// When the budget can never give so much.
    pub async fn reserve(&self, lane: &str, purpose: Purpose, bytes: u64) -> Result<Reservation, TooLarge> {
        let is_large = bytes > SMALL_BYTES_MAX;
        if is_large {
            self.look();
        }
        let pool = self.pool(is_large);
        let mut place = pin!(pool.take(lane, kibibytes(bytes)));
        let (place, waited) = match place.as_mut().now_or_never() {
            Some(place) => (place, false),
            None => {
                let _waiting = Waiting::new(&self.0.waiting);
                (place.await, true)
            }
        };
        let Some(place) = place else { return Err(TooLarge { bytes, bytes_max: self.bytes_max() }) };
        *self.state().by_purpose.entry(purpose).or_default() += bytes;
        Ok(Reservation { budget: self.clone(), is_large, place, purpose, bytes, waited })
    }

    /// The same for a request of a client, which waits for a moment only.
    ///
    /// # Errors
    /// When there is no such memory, or not in time.
    pub async fn reserve_soon(&self, lane: &str, bytes: u64) -> Result<Reservation, NoMemory> {
        let reserved = tokio::time::timeout(PATIENCE, self.reserve(lane, Purpose::Request, bytes)).await;
        reserved.map_err(|_| NoMemory::InUse)?.map_err(NoMemory::TooLarge)
    }

    fn pool(&self, is_large: bool) -> &Pool {
        if is_large { &self.0.large } else { &self.0.small }
    }

    /// The largest possible reservation, in bytes.
    pub fn bytes_max(&self) -> u64 {
        bytes(self.0.large.total())
    }

    /// What the last call of a Reconciler's guest needed.
    pub(crate) fn last_need(&self, lane: &str) -> Need {
        self.state().needs.get(lane).copied().unwrap_or_default()
    }

    /// Records what a call of a Reconciler's guest needed.
    pub(crate) fn saw(&self, lane: &str, need: Need) {
        self.state().needs.insert(lane.to_owned(), need);
    }

    /// Forgets a Reconciler that is gone.
    pub fn forget(&self, lane: &str) {
        self.state().needs.remove(lane);
    }

    /// The present state of the budget.
    pub fn standing(&self) -> Standing {
        self.look();
        let state = self.state();
        let reserved = |purpose| (purpose, state.by_purpose.get(&purpose).copied().unwrap_or_default());
        Standing {
            process: self.0.process_bytes,
            kept: state.kept_bytes,
            capacity: self.capacity(),
            reserved: Purpose::ALL.map(reserved).into(),
            waiting: self.0.waiting.load(Ordering::Relaxed),
        }
    }

    fn capacity(&self) -> u64 {
        bytes(self.0.small.total()) + bytes(self.0.large.total())
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
        let held: u64 = state.by_purpose.values().sum();
        state.kept_bytes = if held <= self.capacity() / QUIET_SHARE {
            resident
        } else {
            // It is unknown how much of the reserved memory has been taken, so this is the least that the host keeps.
            state.kept_bytes.max(resident.saturating_sub(held))
        };
        // Under the lock, so that nobody who has measured before sets it after.
        let (small, large) = shares(capacity(self.0.process_bytes, state.kept_bytes));
        self.0.small.resize(small);
        self.0.large.resize(large);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0.state)
    }
}

fn bytes(kibibytes: usize) -> u64 {
    (kibibytes as u64) << 10
}

/// That somebody waits, until this is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Reserved bytes of the budget. Dropping it gives them back.
pub struct Reservation {
    budget: Budget,
    is_large: bool,
    place: Place,
    purpose: Purpose,
    bytes: u64,
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
        *state.by_purpose.entry(self.purpose).or_default() -= self.bytes;
        *state.by_purpose.entry(purpose).or_default() += bytes;
        drop(state);
        (self.purpose, self.bytes) = (purpose, bytes);
        self.budget.pool(self.is_large).shrink(&mut self.place, kibibytes(bytes));
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink(self.purpose, 0);
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
    use std::sync::atomic::AtomicU64;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn reserved(budget: &Budget) -> Vec<u64> {
        budget.standing().reserved.into_iter().map(|(_, bytes)| bytes).collect()
    }

    fn waits(reserved: &mut (impl Future<Output = Result<Reservation, TooLarge>> + Unpin)) -> bool {
        reserved.now_or_never().is_none()
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_small_does_not_wait_behind_what_is_large() {
        let budget = Budget::fixed(512 * MIB);
        let _held = budget.reserve("a", Purpose::Call, 200 * MIB).await.unwrap();
        let mut large = Box::pin(budget.reserve("b", Purpose::Call, 200 * MIB));
        assert!(waits(&mut large));
        for lane in ["a", "b", "c"] {
            assert!(!budget.reserve(lane, Purpose::Call, 4 * MIB).await.unwrap().waited());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_guest_leaves_room_for_others_however_many_of_its_calls_wait() {
        let budget = Budget::fixed(512 * MIB);
        for bytes in [4 * MIB, 80 * MIB] {
            let mut held = Vec::new();
            while let Some(reserved) = budget.reserve("greedy", Purpose::Call, bytes).now_or_never() {
                held.push(reserved.unwrap());
            }
            let mut greedy = Box::pin(budget.reserve("greedy", Purpose::Call, bytes));
            assert!(waits(&mut greedy));
            assert!(!budget.reserve("other", Purpose::Call, bytes).await.unwrap().waited());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn lanes_take_turns_and_nobody_is_passed_by() {
        let budget = Budget::fixed(512 * MIB);
        let first = budget.reserve("a", Purpose::Call, 200 * MIB).await.unwrap();
        let mut again = Box::pin(budget.reserve("a", Purpose::Call, 200 * MIB));
        let mut other = Box::pin(budget.reserve("b", Purpose::Call, 200 * MIB));
        // It would fit at once.
        let mut late = Box::pin(budget.reserve("c", Purpose::Call, 20 * MIB));
        assert!(waits(&mut again) && waits(&mut other) && waits(&mut late));
        drop(first);
        let other = other.await.unwrap();
        assert!(waits(&mut again) && late.await.is_ok());
        drop(other);
        assert!(again.await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_dropped_is_given_to_who_waits() {
        let budget = Budget::fixed(512 * MIB);
        assert_eq!(budget.standing().capacity, 336 * MIB);
        let first = budget.reserve("a", Purpose::Call, 140 * MIB).await.unwrap();
        let second = budget.reserve("b", Purpose::Compile, 100 * MIB).await.unwrap();
        let mut third = Box::pin(budget.reserve("c", Purpose::Call, 140 * MIB));
        assert!(waits(&mut third));
        assert_eq!((reserved(&budget), budget.standing().waiting), (vec![140 * MIB, 0, 100 * MIB, 0], 1));
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
        let mut next = Box::pin(budget.reserve("a", Purpose::Call, 100 * MIB));
        assert!(waits(&mut next));
        call.shrink(Purpose::Answer, 2 * MIB);
        let next = next.await.unwrap();
        assert_eq!(reserved(&budget), [100 * MIB, 2 * MIB, 0, 0]);
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
