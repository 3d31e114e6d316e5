//! [`Memory`]: what answers of the API server and bodies of requests may take, of the process's one budget.
//!
//! Most are small, and nothing is reserved for them. A larger one waits for memory, and is refused where it finds none in time.

use std::{sync::Arc, time::Duration};

use pintle_core::bulk::Bulk;
use pintle_modules::{Budget, NoMemory, Reservation};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::problem::Problem;

/// What an answer, a body, or the object of a list may take before memory is reserved for it, in bytes: more than most do.
pub(crate) const UNRESERVED_BYTES: u64 = 1 << 20;

/// What is reserved at first for a larger answer, in bytes.
const OF_ANSWER: u64 = 8 << 20;

/// What is reserved for a list that is taken apart while it arrives, in bytes, besides what its largest object takes: a page of what is made
/// of all.
const OF_LIST: u64 = 16 << 20;

/// How often an answer or an object of a list is in memory as values, and as text, at most: as it is, and as what is made of it.
const SHOWN: u64 = 2;

/// How often a body is: as it was read, as what is asked for, and as it is sent on.
const WRITTEN: u64 = 3;

/// The part of the budget that lists and bodies have at most, together. They hold it while guests are called and answers are read for them,
/// so that they must leave as much. It is also what one answer has at most, which thus fits beside them.
const HELD_SHARE: u64 = 2;

/// The part of that which one of them has at most.
const ONE_SHARE: u64 = 4;

/// How long one of them waits for others.
const TURN_TIMEOUT: Duration = Duration::from_secs(10);

/// The memory for answers and bodies. Clones are the same.
#[derive(Clone)]
pub struct Memory {
    budget: Budget,
    /// What lists and bodies may hold, in KiB.
    held: Arc<Semaphore>,
    /// What one of them may, in bytes.
    of_one: u64,
}

/// What a list or a body holds until this is dropped.
pub struct Held {
    _memory: Reservation,
    _turn: OwnedSemaphorePermit,
}

impl Memory {
    /// Memory of this budget.
    pub fn new(budget: Budget) -> Self {
        let held = budget.bytes_max() / HELD_SHARE;
        let held_kibibytes = usize::try_from(held >> 10).unwrap_or(Semaphore::MAX_PERMITS);
        let held_kibibytes = held_kibibytes.clamp(1, Semaphore::MAX_PERMITS);
        Self { budget, held: Arc::new(Semaphore::new(held_kibibytes)), of_one: held / ONE_SHARE }
    }

    /// The memory for an answer that is read whole and takes so many bytes. Whoever holds it waits for no other memory.
    ///
    /// # Errors
    /// 429 when there is none in time.
    pub(crate) async fn of_answer(&self, user: &str, bytes: u64) -> Result<Reservation, Problem> {
        self.reserve(user, bytes.min(self.budget.bytes_max() / HELD_SHARE)).await
    }

    /// The memory for a list that is taken apart, whose largest object takes so many bytes. Guests may be called by whoever holds it.
    ///
    /// # Errors
    /// 429 when there is none in time.
    pub(crate) async fn of_list(&self, user: &str, of_object: u64) -> Result<Held, Problem> {
        self.hold(user, OF_LIST.saturating_add(of_object)).await
    }

    /// The memory for an answer of so many bytes that is being sent.
    ///
    /// # Errors
    /// 429 when there is none in time.
    pub(crate) async fn of_sending(&self, user: &str, bytes: u64) -> Result<Held, Problem> {
        self.hold(user, bytes).await
    }

    /// The memory for a body of such a text; none for one that takes little. Guests may be called by whoever holds it.
    ///
    /// # Errors
    /// 429 when there is none in time.
    pub(crate) async fn of_body(&self, user: &str, bulk: &Bulk) -> Result<Option<Held>, Problem> {
        let bytes = times(WRITTEN, bulk);
        if bytes <= UNRESERVED_BYTES {
            return Ok(None);
        }
        self.hold(user, bytes).await.map(Some)
    }

    #[cfg(test)]
    pub(crate) fn standing(&self) -> pintle_modules::Standing {
        self.budget.standing()
    }

    async fn hold(&self, user: &str, bytes: u64) -> Result<Held, Problem> {
        let bytes = bytes.min(self.of_one);
        let kibibytes = u32::try_from(bytes >> 10).unwrap_or(u32::MAX);
        let turn = timeout(TURN_TIMEOUT, Arc::clone(&self.held).acquire_many_owned(kibibytes)).await;
        let Ok(Ok(turn)) = turn else { return Err(none()) };
        Ok(Held { _memory: self.reserve(user, bytes).await?, _turn: turn })
    }

    async fn reserve(&self, user: &str, bytes: u64) -> Result<Reservation, Problem> {
        self.budget.reserve_soon(user, bytes).await.map_err(|_: NoMemory| none())
    }
}

/// What an answer or an object takes whose text is such, in bytes, with what is made of it.
pub(crate) fn of_text(bulk: &Bulk) -> u64 {
    times(SHOWN, bulk)
}

/// What is reserved for an answer that takes so many bytes by now, in bytes. It doubles each time, so that a long answer asks seldom.
pub(crate) fn step_of(bytes: u64) -> u64 {
    bytes.next_power_of_two().max(OF_ANSWER)
}

fn times(times: u64, bulk: &Bulk) -> u64 {
    times.saturating_mul(bulk.value_bytes() as u64 + bulk.text_bytes() as u64)
}

/// 429: others have the memory.
fn none() -> Problem {
    Problem::busy("the server has no memory for this at present", 5).because("NoMemory")
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn lists_leave_memory_for_the_guests_that_they_wait_for_and_others_wait_a_moment() {
        let budget = Budget::fixed(512 << 20);
        let memory = Memory::new(budget.clone());
        let mut held = Vec::new();
        while let Some(list) = memory.of_list("ann", 8 << 20).now_or_never() {
            held.push(list.unwrap());
        }
        assert!(held.len() >= 4, "{}", held.len());
        let standing = budget.standing();
        let reserved: u64 = standing.reserved.iter().map(|(_, bytes)| bytes).sum();
        assert!(reserved * 2 <= standing.capacity, "{standing:?}");
        let late = memory.of_list("bob", 0).await.map(drop).unwrap_err();
        assert_eq!((late.status.as_u16(), late.retry_after.is_some()), (429, true));
        held.pop();
        assert!(memory.of_list("bob", 0).now_or_never().is_some_and(|list| list.is_ok()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_takes_what_its_values_may_take_and_a_small_one_nothing() {
        let budget = Budget::fixed(512 << 20);
        let memory = Memory::new(budget.clone());
        let body = |text: &str, count: usize| Bulk::of(text.repeat(count).as_bytes());
        let reserved = || budget.standing().reserved.iter().map(|(_, bytes)| bytes).sum::<u64>();
        assert!(memory.of_body("ann", &body("text", 2 << 10)).await.unwrap().is_none());
        assert!(memory.of_body("ann", &body(r#"{"a":1},"#, 10)).await.unwrap().is_none());
        let held = memory.of_body("ann", &body(r#"{"a":1},"#, 5_000)).await.unwrap();
        assert!(held.is_some() && reserved() >= 10 << 20, "{}", reserved());
        drop(held);
        let held = memory.of_body("ann", &body("text", 256 << 10)).await.unwrap();
        assert!(held.is_some() && reserved() < 12 << 20, "{}", reserved());
        drop(held);
        assert_eq!(reserved(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_finds_no_memory_is_refused_after_a_moment_and_not_put_into_what_there_is_not() {
        let memory = Memory::new(Budget::fixed(512 << 20));
        let mut held = Vec::new();
        while let Some(answer) = memory.of_answer(&format!("user-{}", held.len()), 64 << 20).now_or_never() {
            held.push(answer.unwrap());
        }
        assert!(held.len() < 8, "{}", held.len());
        assert_eq!(memory.of_answer("late", 64 << 20).await.map(drop).unwrap_err().status, 429);
        held.pop();
        assert!(memory.of_answer("late", 64 << 20).await.is_ok());
    }
}
