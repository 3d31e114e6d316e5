//! With how much memory a guest is called: with what its last call needed, and again with more if that was not enough.

use pintle_engine::{CallError, CallLimits, CallStats, Origin};
use pintle_wit::{Weight, reasons};

use crate::{Budget, Purpose, Reservation, TooLarge};

/// The memory that a call takes, or may take, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Need {
    /// Linear memory.
    pub(crate) memory_bytes: u64,
    /// The answer as text, as the guest wrote it.
    pub(crate) text_bytes: u64,
    /// The answer as parsed values.
    pub(crate) parsed_bytes: u64,
}

/// The memory that a call takes besides: tables, the store, and the part of its thread's stack that it uses.
const CALL_BYTES: u64 = 1 << 20;

impl Need {
    /// The need that is assumed before anything is known about calls of a Reconciler. Guests in Rust start with 1.1 MiB, and an answer of
    /// one page of YAML takes some 100 KiB as parsed values.
    const FIRST: Self = Self { memory_bytes: 2 << 20, text_bytes: 128 << 10, parsed_bytes: 512 << 10 };

    /// How much to reserve for a call with a request of this length: for the time until its answer was judged, and for the time after.
    pub(crate) fn of_call(self, request_bytes: u64) -> u64 {
        let Self { memory_bytes, text_bytes, parsed_bytes } = self;
        let call = [CALL_BYTES, request_bytes, memory_bytes, text_bytes, parsed_bytes];
        call.into_iter().fold(0, u64::saturating_add).max(self.of_answer())
    }

    /// How much to keep reserved for an answer that was judged, until its pass ends: the children, a second copy of them as they are sent,
    /// and their text on the way to the API server and back.
    pub(crate) fn of_answer(self) -> u64 {
        self.parsed_bytes.saturating_mul(2).saturating_add(self.text_bytes.saturating_mul(4))
    }

    fn each(self, other: Self, choose: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            memory_bytes: choose(self.memory_bytes, other.memory_bytes),
            text_bytes: choose(self.text_bytes, other.text_bytes),
            parsed_bytes: choose(self.parsed_bytes, other.parsed_bytes),
        }
    }

    /// The grant after a call that needed this: a quarter more, and never more than `most`.
    pub(crate) fn grant(self, most: Self) -> Self {
        let wider = |seen: u64, first: u64| seen.saturating_add(seen / 4).max(first);
        self.each(Self::FIRST, wider).each(most, u64::min)
    }
}

/// The most that a call under these limits may take.
fn most(limits: &CallLimits) -> Need {
    Need {
        memory_bytes: limits.memory_bytes as u64,
        text_bytes: limits.response.bytes as u64,
        parsed_bytes: Weight::parsed_bytes_max(limits.response) as u64,
    }
}

/// The limits of a call with this grant.
fn granted(limits: CallLimits, grant: Need) -> CallLimits {
    let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut limits = CallLimits { memory_bytes: bytes(grant.memory_bytes), ..limits };
    limits.response.bytes = bytes(grant.text_bytes);
    limits.response.parsed_bytes = bytes(grant.parsed_bytes);
    limits
}

/// The memory that a call needed.
fn need(stats: CallStats) -> Need {
    Need {
        memory_bytes: stats.peak_memory_bytes as u64,
        text_bytes: stats.response_bytes as u64,
        parsed_bytes: stats.parsed_bytes as u64,
    }
}

/// The next grant for a call that failed for lack of memory, if it may have more. A guest is a pure function, so it can be called again.
fn more(error: &CallError, grant: Need, most: Need) -> Option<Need> {
    if error.origin != Origin::Engine {
        return None;
    }
    let seen = need(error.stats);
    let more = match error.failure.reason.as_str() {
        reasons::MEMORY => Need { memory_bytes: most.memory_bytes, ..grant },
        reasons::TOO_LARGE => Need { text_bytes: most.text_bytes, ..grant },
        // The failure says how much the answer needs, unless the answer was changed on its way.
        reasons::BEYOND_GRANT if seen.parsed_bytes > grant.parsed_bytes => {
            Need { parsed_bytes: seen.parsed_bytes.min(most.parsed_bytes), ..grant }
        }
        reasons::BEYOND_GRANT => Need { parsed_bytes: most.parsed_bytes, ..grant },
        _ => return None,
    };
    (more != grant).then_some(more)
}

/// The memory of the calls of a guest about one request, until one of them was given enough.
pub struct CallMemory<'a> {
    budget: &'a Budget,
    /// That of the guest's Reconciler.
    lane: &'a str,
    limits: CallLimits,
    request_bytes: u64,
    grant: Need,
    /// The last grant, which was not enough.
    too_little: Need,
}

impl<'a> CallMemory<'a> {
    /// The memory of calls within these limits, with a request of this length. The first one is given a quarter more than the last call of
    /// the lane needed.
    pub fn new(budget: &'a Budget, lane: &'a str, limits: CallLimits, request_bytes: usize) -> Self {
        let grant = budget.last_need(lane).grant(most(&limits));
        Self { budget, lane, limits, request_bytes: request_bytes as u64, grant, too_little: Need::default() }
    }

    /// Waits for the memory of the next call, and says within which limits it is made. If the budget can never give so much, the call is
    /// granted less linear memory, provided that this is still more than what was not enough. Most guests never use all that they may have.
    ///
    /// # Errors
    /// When the budget can never give what the call needs at least.
    pub async fn reserve(&mut self) -> Result<(Reservation, CallLimits), TooLarge> {
        let reserved = match self.reserve_grant().await {
            Err(TooLarge { bytes, bytes_max }) => {
                let memory_bytes = self.grant.memory_bytes.saturating_sub(bytes.saturating_sub(bytes_max));
                if memory_bytes <= self.too_little.memory_bytes {
                    return Err(TooLarge { bytes, bytes_max });
                }
                self.grant.memory_bytes = memory_bytes;
                self.reserve_grant().await?
            }
            Ok(reserved) => reserved,
        };
        Ok((reserved, granted(self.limits, self.grant)))
    }

    async fn reserve_grant(&self) -> Result<Reservation, TooLarge> {
        self.budget.reserve(self.lane, Purpose::Call, self.grant.of_call(self.request_bytes)).await
    }

    /// Whether a call that failed like this is to be made again with the next grant. The caller gives its reservation back before.
    pub fn has_more(&mut self, error: Option<&CallError>) -> bool {
        let Some(more) = error.and_then(|error| more(error, self.grant, most(&self.limits))) else {
            return false;
        };
        (self.too_little, self.grant) = (self.grant, more);
        true
    }

    /// Records what the call needed, and says how many bytes to keep reserved for its answer once that was judged.
    pub fn saw(&self, stats: CallStats) -> u64 {
        let need = need(stats);
        self.budget.saw(self.lane, need);
        need.of_answer()
    }
}

#[cfg(test)]
mod tests {
    use pintle_wit::Failure;

    use super::*;
    use crate::budget::SMALL_BYTES_MAX;

    const MIB: u64 = 1 << 20;

    fn failed(reason: &str, origin: Origin, parsed_bytes: usize) -> CallError {
        let stats = CallStats { parsed_bytes, ..CallStats::default() };
        CallError { failure: Box::new(Failure::transient(reason, "it did")), origin, stats }
    }

    #[test]
    fn a_call_that_lacked_memory_is_granted_more_of_what_it_lacked_and_never_more_than_the_limits() {
        let most = Need { memory_bytes: 64 * MIB, text_bytes: 8 * MIB, parsed_bytes: 32 * MIB };
        let grant = Need { memory_bytes: MIB, text_bytes: MIB, parsed_bytes: MIB };
        let next =
            |reason: &str, parsed: usize| more(&failed(reason, Origin::Engine, parsed), grant, most).unwrap();
        assert_eq!(next(reasons::MEMORY, 0), Need { memory_bytes: 64 * MIB, ..grant });
        assert_eq!(next(reasons::TOO_LARGE, 0), Need { text_bytes: 8 * MIB, ..grant });
        assert_eq!(next(reasons::BEYOND_GRANT, 5 << 20), Need { parsed_bytes: 5 * MIB, ..grant });
        assert_eq!(next(reasons::BEYOND_GRANT, 99 << 20), Need { parsed_bytes: 32 * MIB, ..grant });
        assert_eq!(more(&failed(reasons::MEMORY, Origin::Engine, 0), most, most), None, "it had all");
        assert_eq!(more(&failed(reasons::MEMORY, Origin::Guest, 0), grant, most), None, "the guest says so");
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_takes_what_there_is_unless_that_was_too_little_already() {
        let budget = Budget::fixed(64 * MIB);
        budget.saw("a", Need { memory_bytes: 64 * MIB, ..Need::default() });
        let mut memory = CallMemory::new(&budget, "a", CallLimits::default(), 0);
        let (reserved, limits) = memory.reserve().await.unwrap();
        assert!(limits.memory_bytes < 16 << 20 && !reserved.waited(), "{limits:?}");
        drop(reserved);
        assert!(memory.has_more(Some(&failed(reasons::MEMORY, Origin::Engine, 0))));
        assert!(memory.reserve().await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_is_granted_what_the_last_one_needed_and_a_quarter_more() {
        let budget = Budget::fixed(512 * MIB);
        let grant = || CallMemory::new(&budget, "a", CallLimits::default(), 0).grant;
        assert!(grant().of_call(0) <= SMALL_BYTES_MAX / 2, "an ordinary call is small");
        let stats = |bytes: usize| CallStats { peak_memory_bytes: bytes, ..CallStats::default() };
        CallMemory::new(&budget, "a", CallLimits::default(), 0).saw(stats(40 << 20));
        assert_eq!(grant().memory_bytes, 50 * MIB);
        CallMemory::new(&budget, "a", CallLimits::default(), 0).saw(stats(60 << 20));
        assert_eq!(grant().memory_bytes, 64 * MIB, "never more than the limits");
        CallMemory::new(&budget, "a", CallLimits::default(), 0).saw(stats(1 << 20));
        assert!(grant().of_call(0) <= SMALL_BYTES_MAX / 2);
    }
}
