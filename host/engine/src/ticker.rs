//! The ticker: a thread that ends calls at their deadline, and the slots that bound how many calls run at once.
//!
//! Calls of two [`Lane`]s never wait for each other. Otherwise guests that use their whole deadline would hold every slot, and a guest that
//! answers in a moment would take as long as they do.

use std::{
    io,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// How often a running call is checked against its deadline: a fiftieth of the default deadline. A tick costs some microseconds.
pub const TICK: Duration = Duration::from_millis(2);

/// How many ticks must pass before a call has run for `timeout`. The first tick may come right after the call's start, so this is one more
/// than the ticks that fit. A call is never ended early.
pub(crate) fn ticks(timeout: Duration) -> u64 {
    let ticks = timeout.as_nanos().div_ceil(TICK.as_nanos());
    // At most half of the range, because wasmtime adds it to the present number of ticks.
    u64::try_from(ticks).unwrap_or(u64::MAX).min(u64::MAX / 2).saturating_add(1)
}

/// Which slots a call uses. There are as many of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// For calls that end within a moment or are given up.
    Brief,
    /// For calls that may use their whole deadline.
    Long,
}

/// How many lanes there are.
pub(crate) const LANES: usize = 2;

/// The calls in flight, and the thread that ticks while there are any.
#[derive(Debug)]
pub(crate) struct Ticker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Signalled when a long call ends while another waits for its turn.
    turn: Condvar,
    /// Signalled when the thread must wake up, because a call began or the engine ends.
    wake: Condvar,
    ticks: AtomicU64,
    /// How many calls of each lane may run at once.
    slots: usize,
}

#[derive(Debug)]
struct State {
    in_flight: [usize; LANES],
    waiting: usize,
    parked: bool,
    ended: bool,
}

impl State {
    fn is_idle(&self) -> bool {
        self.in_flight == [0; LANES]
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock, and every state in it is valid.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, tick: impl Fn()) {
        let mut state = self.lock();
        loop {
            // The thread parks only after a tick without a call, so that calls in close succession do not wake it one by one.
            while state.is_idle() && !state.ended {
                state.parked = true;
                state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            state.parked = false;
            if state.ended {
                return;
            }
            let (locked, timeout) =
                self.wake.wait_timeout(state, TICK).unwrap_or_else(PoisonError::into_inner);
            state = locked;
            if timeout.timed_out() && !state.is_idle() {
                self.ticks.fetch_add(1, Ordering::Relaxed);
                tick();
            }
        }
    }
}

impl Ticker {
    /// Room for this many calls of each lane at once, and a thread that calls `tick` every [`TICK`] while one is in flight.
    pub(crate) fn start(slots: usize, tick: impl Fn() + Send + 'static) -> io::Result<Self> {
        let mut ticker = Self::without_thread(slots);
        let shared = Arc::clone(&ticker.shared);
        let thread = thread::Builder::new().name("pintle-ticker".into()).spawn(move || shared.run(tick))?;
        ticker.thread = Some(thread);
        Ok(ticker)
    }

    /// Room for this many calls of each lane at once, and no ticks.
    pub(crate) fn without_thread(slots: usize) -> Self {
        let state = State { in_flight: [0; LANES], waiting: 0, parked: false, ended: false };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            turn: Condvar::new(),
            wake: Condvar::new(),
            ticks: AtomicU64::new(0),
            slots: slots.max(1),
        });
        Self { shared, thread: None }
    }

    /// Waits for a free slot for a long call, and takes it.
    pub(crate) fn enter(&self) -> InFlight<'_> {
        let mut state = self.shared.lock();
        while state.in_flight[Lane::Long as usize] == self.shared.slots {
            state.waiting += 1;
            state = self.shared.turn.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
        self.take(Lane::Long, state)
    }

    /// Takes a free slot for a brief call, if there is one.
    pub(crate) fn try_enter(&self) -> Option<InFlight<'_>> {
        let state = self.shared.lock();
        (state.in_flight[Lane::Brief as usize] < self.shared.slots).then(|| self.take(Lane::Brief, state))
    }

    fn take<'a>(&'a self, lane: Lane, mut state: MutexGuard<'a, State>) -> InFlight<'a> {
        state.in_flight[lane as usize] += 1;
        if state.parked {
            state.parked = false;
            self.shared.wake.notify_one();
        }
        InFlight { shared: &self.shared, lane }
    }

    pub(crate) fn ticks(&self) -> u64 {
        self.shared.ticks.load(Ordering::Relaxed)
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.shared.lock().in_flight.iter().sum()
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            // An error means that the thread panicked in a tick, and nothing is left that could handle it.
            let _ = thread.join();
        }
    }
}

/// A slot that a call holds.
pub(crate) struct InFlight<'a> {
    shared: &'a Shared,
    lane: Lane,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.in_flight[self.lane as usize] -= 1;
        if self.lane == Lane::Long && state.waiting > 0 {
            self.shared.turn.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_never_rounded_down() {
        assert_eq!(ticks(Duration::ZERO), 1);
        assert_eq!(ticks(TICK), 2);
        assert_eq!(ticks(TICK + Duration::from_nanos(1)), 3);
        assert_eq!(ticks(Duration::MAX), u64::MAX / 2 + 1);
    }

    #[test]
    fn a_brief_call_does_not_wait_for_long_ones_nor_they_for_it() {
        let ticker = Ticker::without_thread(2);
        let long = [ticker.enter(), ticker.enter()];
        let brief = [ticker.try_enter(), ticker.try_enter()];
        assert!(brief.iter().all(Option::is_some));
        assert!(ticker.try_enter().is_none());
        assert_eq!(ticker.in_flight(), 4);
        drop(brief);
        assert!(ticker.try_enter().is_some());
        drop(long);
        assert_eq!(ticker.in_flight(), 0);
    }
}
