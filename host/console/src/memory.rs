//! [`Memory`]: what answers of the API server and bodies of requests may take, of the process's one budget.
//!
//! Most are small, and nothing is reserved for them. A larger one waits for memory, and is refused where it finds none in time.

use pintle_core::bulk::Bulk;
use pintle_modules::{Budget, NoMemory, Reservation};

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

/// The lane of all lists and bodies. They hold memory while guests are called and answers are read for them, so that they must leave as much,
/// as every lane does.
const LANE: &str = "(lists and bodies)";

/// The part of the largest reservation that one answer has at most, which thus fits beside them.
const ANSWER_SHARE: u64 = 2;

/// The part of it that a list or a body has at most.
const ONE_SHARE: u64 = 8;

/// The memory for answers and bodies. Clones are the same.
#[derive(Clone)]
pub struct Memory {
    budget: Budget,
    /// What a list or a body may hold, in bytes.
    of_one: u64,
}

impl Memory {
    /// Memory of this budget.
    pub fn new(budget: Budget) -> Self {
        let of_one = budget.bytes_max() / ONE_SHARE;
        Self { budget, of_one }
    }

    /// The memory for an answer that is read whole and takes so many bytes. Whoever holds it waits for no other memory.
    ///
    /// # Errors
    /// 429 when there is none in time.
    pub(crate) async fn of_answer(&self, user: &str, bytes: u64) -> Result<Reservation, Problem> {
        self.reserve(user, bytes.min(self.budget.bytes_max() / ANSWER_SHARE)).await
    }

    /// The memory for a list that is taken apart, whose largest object takes so many bytes. Guests may be called by whoever holds it.
    ///
    /// # Errors
    /// 429 when there is none in time.
    pub(crate) async fn of_list(&self, of_object: u64) -> Result<Reservation, Problem> {
        self.hold(OF_LIST.saturating_add(of_object)).await
    }

    /// The memory for an answer of so many bytes that is being sent.
    ///
    /// # Errors
    /// 429 when there is none in time.
    pub(crate) async fn of_sending(&self, bytes: u64) -> Result<Reservation, Problem> {
        self.hold(bytes).await
    }

    /// The memory for a body of such a text; none for one that takes little. Guests may be called by whoever holds it.
    ///
    /// # Errors
    /// 429 when there is none in time.
    pub(crate) async fn of_body(&self, bulk: &Bulk) -> Result<Option<Reservation>, Problem> {
        let bytes = times(WRITTEN, bulk);
        if bytes <= UNRESERVED_BYTES {
            return Ok(None);
        }
        self.hold(bytes).await.map(Some)
    }

    #[cfg(test)]
    pub(crate) fn standing(&self) -> pintle_modules::Standing {
        self.budget.standing()
    }

    async fn hold(&self, bytes: u64) -> Result<Reservation, Problem> {
        self.reserve(LANE, bytes.min(self.of_one)).await
    }

    async fn reserve(&self, lane: &str, bytes: u64) -> Result<Reservation, Problem> {
        self.budget.reserve_soon(lane, bytes).await.map_err(|_: NoMemory| none())
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
        while let Some(list) = memory.of_list(8 << 20).now_or_never() {
            held.push(list.unwrap());
        }
        assert!(held.len() >= 4, "{}", held.len());
        let standing = budget.standing();
        let reserved: u64 = standing.reserved.iter().map(|(_, bytes)| bytes).sum();
        assert!(reserved * 2 <= standing.capacity, "{standing:?}");
        let late = memory.of_list(0).await.map(drop).unwrap_err();
        assert_eq!((late.status.as_u16(), late.retry_after.is_some()), (429, true));
        held.pop();
        assert!(memory.of_list(0).now_or_never().is_some_and(|list| list.is_ok()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_takes_what_its_values_may_take_and_a_small_one_nothing() {
        let budget = Budget::fixed(512 << 20);
        let memory = Memory::new(budget.clone());
        let body = |text: &str, count: usize| Bulk::of(text.repeat(count).as_bytes());
        let reserved = || budget.standing().reserved.iter().map(|(_, bytes)| bytes).sum::<u64>();
        assert!(memory.of_body(&body("text", 2 << 10)).await.unwrap().is_none());
        assert!(memory.of_body(&body(r#"{"a":1},"#, 10)).await.unwrap().is_none());
        let held = memory.of_body(&body(r#"{"a":1},"#, 5_000)).await.unwrap();
        assert!(held.is_some() && reserved() >= 10 << 20, "{}", reserved());
        drop(held);
        let held = memory.of_body(&body("text", 256 << 10)).await.unwrap();
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
