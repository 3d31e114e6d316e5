//! [`Room`]: the memory of the process's budget that an answer takes while it is made and until it is sent.

use std::time::Duration;

use pintle_core::{bulk::Bulk, view::Status};
use pintle_modules::{Budget, Purpose, Reservation};
use tokio::sync::Mutex;

use crate::admission::{Admitted, LARGE_WAIT, Party, Pool};

/// After how many seconds who finds no memory should ask again.
const RETRY_SECONDS: u32 = 2;

/// How often an object is in memory as values while it is shown, at most: those that were read, and those of a table. A test of `pintle-core`
/// measures it.
const SHOWN: u64 = 2;

/// How often it is while it is written: as it is, as it is shown, as it was sent, as a guest stores it, as it is sent on, and the answer.
const WRITTEN: u64 = 6;

/// How often it is as text: what was read, what a guest shows, and the answer while it grows.
const AS_TEXT: u64 = 6;

/// What an object, or a list, may take besides, in bytes. An object in etcd has at most 1.5 MiB.
pub(crate) const OBJECT_BYTES: u64 = 16 << 20;

/// The most memory that showing an object takes whose text is such, in bytes.
pub(crate) fn of_shown(bulk: &Bulk) -> u64 {
    of_object(bulk, SHOWN)
}

fn of_object(bulk: &Bulk, times: u64) -> u64 {
    times * bulk.value_bytes() as u64 + AS_TEXT * bulk.text_bytes() as u64
}

/// What an answer takes before any is reserved for it, in bytes. All that are in flight together take a seventh of a gateway of 512 MiB.
pub(crate) const FREE_BYTES: u64 = 512 << 10;

/// How long an answer waits for memory, when it has its place. Clients wait a minute, and need some of it for the answer.
const WAIT: Duration = LARGE_WAIT;

/// Whose reservations they are, beside those of Views, none of which has such a name. All answers together hold at most half of what is for
/// large reservations, so that the calls of guests that they wait for find memory.
const LANE: &str = "(answers)";

/// The memory of one answer.
pub(crate) struct Room {
    budget: Budget,
    /// What it takes without a reservation, in bytes.
    free: u64,
    /// What is reserved at first, in bytes.
    most: u64,
    /// How often an object is in memory as values.
    times: u64,
    share: Option<Share>,
    held: Mutex<Held>,
}

/// Of whose large answers it is one, and the pool in which these are counted: a caller that does not read its answers leaves room for others.
pub(crate) type Share = (Pool, Party);

#[derive(Default)]
struct Held {
    place: Option<Admitted>,
    reserved: Option<(Reservation, u64)>,
}

impl Room {
    /// Room for an answer that usually takes no more than `free` bytes, and otherwise as good as never more than `most`.
    pub(crate) fn new(budget: &Budget, free: u64, most: u64) -> Self {
        Self { budget: budget.clone(), free, most, times: SHOWN, share: None, held: Mutex::default() }
    }

    /// Room for an answer of one object.
    pub(crate) fn for_object(budget: &Budget, share: Share) -> Self {
        Self::new(budget, FREE_BYTES, OBJECT_BYTES).with(share)
    }

    /// Room for an object that is written.
    pub(crate) fn for_write(budget: &Budget, share: Share) -> Self {
        Self { times: WRITTEN, ..Self::for_object(budget, share) }
    }

    /// The same, of this share.
    pub(crate) fn with(self, (pool, party): Share) -> Self {
        Self { share: Some((pool, party)), ..self }
    }

    /// Waits until an object of such a text may be read, and shown or written.
    ///
    /// # Errors
    /// 429 when there is no memory for a while.
    pub(crate) async fn hold_object(&self, bulk: &Bulk) -> Result<(), Status> {
        self.hold(of_object(bulk, self.times)).await
    }

    /// Whether it holds any.
    pub(crate) fn is_held(&mut self) -> bool {
        self.held.get_mut().reserved.is_some()
    }

    /// Waits until the answer may take so many bytes.
    ///
    /// # Errors
    /// 429 when there is no memory for a while, or its caller has as many large answers as it may.
    pub(crate) async fn hold(&self, bytes: u64) -> Result<(), Status> {
        let mut held = self.held.lock().await;
        if bytes <= held.reserved.as_ref().map_or(self.free, |(_, bytes)| *bytes) {
            return Ok(());
        }
        if let (Some((pool, party)), None) = (&self.share, &held.place) {
            held.place = Some(pool.admit(party).await?);
        }
        // Nobody waits for memory while it holds some, so that no two answers wait for each other.
        held.reserved = None;
        let wanted = wanted(bytes, self.most, self.budget.bytes_max());
        let reserved = self.budget.reserve(LANE, Purpose::Answer, wanted);
        match tokio::time::timeout(WAIT, reserved).await {
            Ok(Ok(reservation)) => {
                // What the budget never has is not asked for again.
                held.reserved = Some((reservation, wanted.max(bytes)));
                Ok(())
            }
            Ok(Err(_)) | Err(_) => Err(Status::too_many_requests(RETRY_SECONDS)),
        }
    }
}

/// How much is reserved for an answer that takes so many bytes now: all that it will usually need, so that it asks once; and no more than
/// there can be.
fn wanted(bytes: u64, most: u64, bytes_max: u64) -> u64 {
    bytes.max(most).min(bytes_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn an_answer_asks_once_for_all_that_it_usually_needs_and_never_for_what_cannot_be() {
        assert_eq!(wanted(MIB, 16 * MIB, 200 * MIB), 16 * MIB);
        assert_eq!(wanted(20 * MIB, 16 * MIB, 200 * MIB), 20 * MIB);
        assert_eq!(wanted(20 * MIB, 16 * MIB, 14 * MIB), 14 * MIB);
    }

    #[tokio::test(start_paused = true)]
    async fn what_finds_no_memory_waits_and_is_then_told_to_come_again_and_room_is_given_back() {
        let budget = Budget::fixed(512 * MIB);
        let room = || Room::new(&budget, MIB, 100 * MIB);
        let (first, second) = (room(), room());
        second.hold(MIB).await.unwrap();
        assert_eq!(budget.standing().reserved.iter().map(|(_, bytes)| bytes).sum::<u64>(), 0, "it is small");
        first.hold(2 * MIB).await.unwrap();
        first.hold(50 * MIB).await.unwrap();
        let refused = second.hold(2 * MIB).await.unwrap_err();
        assert_eq!((refused.code, refused.details.retry_after_seconds), (429, Some(RETRY_SECONDS)));
        assert_eq!(budget.standing().waiting, 0, "who is told to come again does not wait any more");
        let waiting = tokio::spawn(async move { second.hold(2 * MIB).await });
        tokio::task::yield_now().await;
        drop(first);
        assert_eq!(waiting.await.unwrap(), Ok(()));
    }
}
