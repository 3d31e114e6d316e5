//! [`Memory`]: what a preview reads and keeps takes memory of the process's one budget.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pintle_core::ApiError;
use pintle_modules::{Budget, Reservation};
use tokio::sync::Mutex;

use crate::PreviewError;

/// The lane of all previews of a process. What a lane may hold leaves half of the budget to calls of guests and to compilers, also to those
/// that the previews themselves wait for.
const LANE: &str = "previews";

/// How much a preview reserves at once, in bytes: enough to look at one root of a small cluster. It counts as a large reservation, so that
/// ordinary calls find their memory.
const STEP_BYTES: u64 = 16 << 20;

/// The memory of one preview. It is given back when the preview ends.
///
/// A preview waits for more while it holds what it has, unlike everybody else. Of two that have half of what they need, the one that waits
/// longer ends without, and the other one goes on.
pub(crate) struct Memory {
    budget: Budget,
    reserved: Mutex<(Vec<Reservation>, u64)>,
    taken: AtomicU64,
    is_out: AtomicBool,
}

impl Memory {
    pub(crate) fn new(budget: Budget) -> Self {
        let (taken, is_out) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { budget, reserved: Mutex::default(), taken, is_out }
    }

    /// Takes so many bytes, and waits for them for a while.
    ///
    /// # Errors
    /// 429 when there is no memory.
    pub(crate) async fn take(&self, bytes: u64) -> Result<(), ApiError> {
        let mut reserved = self.reserved.lock().await;
        let (reservations, reserved_bytes) = &mut *reserved;
        loop {
            let taken = self.taken.load(Ordering::Relaxed);
            let wanted = taken.saturating_add(bytes);
            if wanted <= *reserved_bytes {
                // Whoever else takes more waits for the lock.
                self.taken.fetch_add(bytes, Ordering::Relaxed);
                return Ok(());
            }
            let step = (wanted - *reserved_bytes).max(STEP_BYTES).min(self.budget.bytes_max());
            let Ok(reservation) = self.budget.reserve_soon(LANE, step).await else {
                self.is_out.store(true, Ordering::Relaxed);
                return Err(ApiError { code: 429, message: too_much(taken), ..ApiError::default() });
            };
            reservations.push(reservation);
            *reserved_bytes = reserved_bytes.saturating_add(step);
        }
    }

    /// Gives so many bytes back, which stay reserved for what the preview reads next.
    pub(crate) fn give_back(&self, bytes: u64) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether there was memory for everything so far. Without it, what a preview says is not what there is.
    ///
    /// # Errors
    /// When there was not.
    pub(crate) fn sufficed(&self) -> Result<(), PreviewError> {
        if self.is_out.load(Ordering::Relaxed) {
            return Err(PreviewError::Busy(too_much(self.taken.load(Ordering::Relaxed))));
        }
        Ok(())
    }
}

fn too_much(taken: u64) -> String {
    format!(
        "there is no memory for the objects to look at besides {} MiB of them; name a namespace, labels, or one root, or try again when \
         others are done",
        taken >> 20
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
        let memory = Memory::new(budget.clone());
        memory.take(MIB).await.unwrap();
        assert_eq!(reserved(&budget), 16 * MIB);
        memory.take(20 * MIB).await.unwrap();
        assert_eq!(reserved(&budget), 32 * MIB);
        memory.give_back(20 * MIB);
        memory.take(10 * MIB).await.unwrap();
        // What was taken before is there for the next.
        for _ in 0..100 {
            memory.take(20 * MIB).await.unwrap();
            memory.give_back(20 * MIB);
        }
        assert_eq!(reserved(&budget), 32 * MIB);
        assert!(memory.sufficed().is_ok());
        drop(memory);
        assert_eq!(reserved(&budget), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn previews_leave_half_of_the_budget_to_others_and_end_where_they_find_no_memory() {
        let budget = Budget::fixed(512 * MIB);
        let memory = Memory::new(budget.clone());
        memory.take(60 * MIB).await.unwrap();
        memory.take(30 * MIB).await.unwrap();
        assert_eq!(memory.take(60 * MIB).await.unwrap_err().code, 429);
        let advice = "besides 90 MiB of them; name a namespace, labels, or one root";
        assert!(matches!(memory.sufficed(), Err(PreviewError::Busy(why)) if why.contains(advice)));
        // A large call of a guest finds its memory meanwhile.
        assert!(!budget.reserve("guest", Purpose::Call, 140 * MIB).await.unwrap().waited());
    }

    #[tokio::test(start_paused = true)]
    async fn of_two_large_previews_one_ends_and_the_other_goes_on() {
        let budget = Budget::fixed(512 * MIB);
        let (first, second) = (Memory::new(budget.clone()), Memory::new(budget));
        first.take(60 * MIB).await.unwrap();
        second.take(60 * MIB).await.unwrap();
        let waiting = tokio::spawn(async move { first.take(60 * MIB).await });
        tokio::time::sleep(std::time::Duration::from_secs(5)).await;
        let taken = second.take(60 * MIB).await;
        assert_eq!((waiting.await.unwrap().unwrap_err().code, taken), (429, Ok(())));
    }

    #[tokio::test(start_paused = true)]
    async fn a_preview_works_on_a_host_that_has_next_to_no_memory() {
        let budget = Budget::fixed(64 * MIB);
        let memory = Memory::new(budget.clone());
        memory.take(10 * MIB).await.unwrap();
        assert!(memory.take(100 * MIB).await.is_err());
    }
}
