//! With how much memory a guest is called: with what its earlier calls needed, and again with more if that was not enough.

use pintle_core::budget::Need;
use pintle_engine::{CallError, CallLimits, CallStats, Origin};
use pintle_wit::{Weight, reasons};

use crate::{Budget, Purpose, Reservation, TooLarge};

/// The most that a call under these limits may take.
pub fn most(limits: &CallLimits) -> Need {
    Need {
        memory_bytes: limits.memory_bytes as u64,
        text_bytes: limits.response.bytes as u64,
        parsed_bytes: Weight::parsed_bytes_max(limits.response) as u64,
    }
}

/// The limits of a call with this grant.
pub fn granted(limits: CallLimits, grant: Need) -> CallLimits {
    let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut limits = CallLimits { memory_bytes: bytes(grant.memory_bytes), ..limits };
    limits.response.bytes = bytes(grant.text_bytes);
    limits.response.parsed_bytes = bytes(grant.parsed_bytes);
    limits
}

/// The memory that a call needed.
pub fn need(stats: CallStats) -> Need {
    Need {
        memory_bytes: stats.peak_memory_bytes as u64,
        text_bytes: stats.response_bytes as u64,
        parsed_bytes: stats.parsed_bytes as u64,
    }
}

/// The next grant for a call that failed for lack of memory, if it may have more. A guest is a pure function, so it can be called again.
pub fn more(error: &CallError, grant: Need, most: Need) -> Option<Need> {
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

impl Budget {
    /// Waits for the memory that a call is granted. If the budget can never give so much, the call is granted less linear memory, provided
    /// that this is still more than the grant that was not enough. Most guests never use all that they may have.
    ///
    /// # Errors
    /// When the budget can never give what the call needs at least.
    pub async fn reserve_call(
        &self,
        lane: &str,
        grant: &mut Need,
        too_little: Need,
        request_bytes: u64,
    ) -> Result<Reservation, TooLarge> {
        let reserved = self.reserve(lane, Purpose::Call, grant.of_call(request_bytes)).await;
        let Err(TooLarge { bytes, bytes_max }) = reserved else { return reserved };
        let memory_bytes = grant.memory_bytes.saturating_sub(bytes.saturating_sub(bytes_max));
        if memory_bytes <= too_little.memory_bytes {
            return reserved;
        }
        grant.memory_bytes = memory_bytes;
        self.reserve(lane, Purpose::Call, grant.of_call(request_bytes)).await
    }
}

#[cfg(test)]
mod tests {
    use pintle_wit::Failure;

    use super::*;

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
        let most = Need { memory_bytes: 64 * MIB, text_bytes: 0, parsed_bytes: 0 };
        let mut grant = most;
        let reserved = budget.reserve_call("a", &mut grant, Need::default(), 0).await.unwrap();
        assert!(grant.memory_bytes < most.memory_bytes && !reserved.waited(), "{grant:?}");
        drop(reserved);
        let (too_little, mut again) = (grant, most);
        assert!(budget.reserve_call("a", &mut again, too_little, 0).await.is_err());
    }
}
