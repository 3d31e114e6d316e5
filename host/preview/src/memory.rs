//! [`Memories`]: what previews read and keep takes memory of the process's one budget.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use pintle_core::ApiError;
use pintle_modules::{Budget, Reservation};
use tokio::{
    sync::{Mutex, OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::PreviewError;

/// The lane of all previews of a process. What a lane may hold leaves more than half of the budget to calls of guests and to compilers, also
/// to those that the previews themselves wait for.
const LANE: &str = "previews";

/// How much a preview reserves at once, in bytes: enough to look at one root of a small cluster. It counts as a large reservation, since
/// small ones have no bound a lane.
const STEP_BYTES: u64 = 16 << 20;

/// How long a preview that takes more than one step waits for another one that does: most plans are made by then.
const TURN_TIMEOUT: Duration = Duration::from_secs(60);

/// The memory of all previews of a process. Clones are the same.
#[derive(Clone)]
pub(crate) struct Memories {
    budget: Budget,
    /// Whose turn it is to take more than one step.
    growing: Arc<Semaphore>,
}

impl Memories {
    pub(crate) fn new(budget: Budget) -> Self {
        Self { budget, growing: Arc::new(Semaphore::new(1)) }
    }

    /// The memory of one preview.
    pub(crate) fn of_one(&self) -> Arc<Memory> {
        let (taken, is_out) = (AtomicU64::new(0), AtomicBool::new(false));
        Arc::new(Memory { of_all: self.clone(), reserved: Mutex::default(), taken, is_out })
    }
}

/// The memory of one preview. It is given back when the preview ends.
///
/// A preview waits for more while it holds what it has, unlike everybody else. Only one at a time takes more than one step, to its end:
/// otherwise two that have half of what they need would wait for each other, and neither would come to an end.
pub(crate) struct Memory {
    of_all: Memories,
    reserved: Mutex<Reserved>,
    taken: AtomicU64,
    is_out: AtomicBool,
}

#[derive(Default)]
struct Reserved {
    reservations: Vec<Reservation>,
    bytes: u64,
    turn: Option<OwnedSemaphorePermit>,
}

/// Memory for what is being read. It is free again when this is dropped, and stays reserved for what the preview reads next.
pub(crate) struct Room {
    memory: Arc<Memory>,
    bytes: u64,
}

impl Memory {
    /// Takes so many bytes for as long as the preview lasts, and waits for them for a while.
    ///
    /// # Errors
    /// 429 when there is no memory.
    pub(crate) async fn take(&self, bytes: u64) -> Result<(), ApiError> {
        let mut reserved = self.reserved.lock().await;
        loop {
            let taken = self.taken.load(Ordering::Relaxed);
            let wanted = taken.saturating_add(bytes);
            if wanted <= reserved.bytes {
                // Whoever else takes more waits for the lock.
                self.taken.fetch_add(bytes, Ordering::Relaxed);
                return Ok(());
            }
            let budget = &self.of_all.budget;
            let step = (wanted - reserved.bytes).max(STEP_BYTES).min(budget.bytes_max());
            let reservation = match self.turn(&mut reserved, step).await {
                true => budget.reserve_soon(LANE, step).await.ok(),
                false => None,
            };
            let Some(reservation) = reservation else {
                self.is_out.store(true, Ordering::Relaxed);
                return Err(ApiError { code: 429, message: too_much(taken), ..ApiError::default() });
            };
            reserved.reservations.push(reservation);
            reserved.bytes = reserved.bytes.saturating_add(step);
        }
    }

    /// Waits until it may take a step of so many bytes, and returns whether it may.
    async fn turn(&self, reserved: &mut Reserved, step: u64) -> bool {
        let is_first = reserved.reservations.is_empty() && step <= STEP_BYTES;
        if is_first || reserved.turn.is_some() {
            return true;
        }
        let turn = timeout(TURN_TIMEOUT, Arc::clone(&self.of_all.growing).acquire_owned()).await;
        reserved.turn = turn.ok().and_then(Result::ok);
        reserved.turn.is_some()
    }

    /// Room for something that is about to be read.
    ///
    /// # Errors
    /// 429 when there is no memory.
    pub(crate) async fn room(self: &Arc<Self>, bytes: u64) -> Result<Room, ApiError> {
        self.take(bytes).await?;
        Ok(Room { memory: Arc::clone(self), bytes })
    }

    /// Whether there was memory for everything so far. Without it, what a preview says is not what there is.
    ///
    /// # Errors
    /// When there was not.
    pub(crate) fn sufficed(&self) -> Result<(), PreviewError> {
        match self.is_out.load(Ordering::Relaxed) {
            true => Err(PreviewError::Busy(too_much(self.taken.load(Ordering::Relaxed)))),
            false => Ok(()),
        }
    }
}

impl Room {
    /// What was read takes this much instead.
    ///
    /// # Errors
    /// 429 when that is more, and there is no memory.
    pub(crate) async fn becomes(self, bytes: u64) -> Result<(), ApiError> {
        let memory = Arc::clone(&self.memory);
        drop(self);
        memory.take(bytes).await
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.memory.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

fn too_much(taken: u64) -> String {
    let so_far = match taken >> 20 {
        0 => String::new(),
        mebibytes => format!(" besides {mebibytes} MiB of them"),
    };
    format!(
        "there is no memory for the objects to look at{so_far}; name a namespace, labels, or one root, or try again when others are done"
    )
}

#[cfg(test)]
mod tests {
    use pintle_modules::Purpose;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn reserved(budget: &Budget) -> u64 {
        budget.standing().reserved.iter().map(|(_, bytes)| bytes).sum()
    }

    #[tokio::test(start_paused = true)]
    async fn a_preview_takes_memory_of_the_budget_and_gives_it_back_at_its_end() {
        let budget = Budget::fixed(512 * MIB);
        let memory = Memories::new(budget.clone()).of_one();
        memory.take(MIB).await.unwrap();
        assert_eq!(reserved(&budget), 16 * MIB);
        let room = memory.room(20 * MIB).await.unwrap();
        assert_eq!(reserved(&budget), 32 * MIB);
        room.becomes(10 * MIB).await.unwrap();
        // What was made room for before is there for the next.
        for _ in 0..100 {
            memory.room(20 * MIB).await.unwrap().becomes(0).await.unwrap();
        }
        assert_eq!(reserved(&budget), 32 * MIB);
        assert!(memory.sufficed().is_ok());
        drop(memory);
        assert_eq!(reserved(&budget), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn previews_leave_half_of_the_budget_to_others_and_end_where_they_find_no_memory() {
        let budget = Budget::fixed(512 * MIB);
        let memory = Memories::new(budget.clone()).of_one();
        memory.take(60 * MIB).await.unwrap();
        memory.take(30 * MIB).await.unwrap();
        assert_eq!(memory.take(60 * MIB).await.unwrap_err().code, 429);
        let advice = "besides 90 MiB of them; name a namespace, labels, or one root";
        assert!(matches!(memory.sufficed(), Err(PreviewError::Busy(why)) if why.contains(advice)));
        // A large call of a guest finds its memory meanwhile.
        assert!(!budget.reserve("guest", Purpose::Call, 140 * MIB).await.unwrap().waited());
    }

    #[tokio::test(start_paused = true)]
    async fn of_two_large_previews_the_second_waits_until_the_first_has_ended() {
        let all = Memories::new(Budget::fixed(512 * MIB));
        let (first, second, small) = (all.of_one(), all.of_one(), all.of_one());
        for memory in [&first, &second] {
            memory.take(10 * MIB).await.unwrap();
        }
        first.take(40 * MIB).await.unwrap();
        let waiting = tokio::spawn(async move { second.take(60 * MIB).await });
        tokio::time::sleep(Duration::from_secs(30)).await;
        first.take(30 * MIB).await.unwrap();
        small.take(MIB).await.unwrap();
        assert!(!waiting.is_finished(), "half of what it needs is of no use");
        drop(first);
        waiting.await.unwrap().unwrap();
        // Whoever has it for too long is not waited for.
        let (holds, late) = (all.of_one(), all.of_one());
        holds.take(20 * MIB).await.unwrap();
        assert_eq!(late.take(20 * MIB).await.unwrap_err().code, 429);
    }

    #[tokio::test(start_paused = true)]
    async fn a_preview_works_on_a_host_that_has_next_to_no_memory() {
        let budget = Budget::fixed(64 * MIB);
        let memory = Memories::new(budget.clone()).of_one();
        memory.take(10 * MIB).await.unwrap();
        assert!(memory.take(100 * MIB).await.is_err());
    }
}
