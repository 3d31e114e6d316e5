//! Calls that are made at once, on a thread that may not wait: with which limits, and for which guests they are not tried.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use pintle_wit::{Limits, reasons};

use crate::{
    call::{CallError, Origin},
    limits::CallLimits,
    ticker::TICK,
};

/// How long such a call may take: some ten ordinary calls.
const MOMENT: Duration = TICK;

/// How much memory it may use, in bytes: three times that of an ordinary call. A deadline is looked at between instructions, and a
/// single one may fill all of a guest's memory. With 64 MiB of fresh memory that takes 40 ms, with this some 2 ms.
const MOMENT_MEMORY_BYTES: usize = 4 << 20;

/// How long its answer may be, in bytes, and how much memory it may take when it is parsed. Both take a millisecond or two.
const MOMENT_ANSWER_BYTES: usize = 256 << 10;
const MOMENT_PARSED_BYTES: usize = 1 << 20;

/// How many calls in a row are at most not tried at once after calls took longer than [`MOMENT`]. For a guest that always takes longer, the
/// attempts cost a hundredth of that. A guest that took longer once, since the machine was busy, is left alone for one call: the number
/// doubles with each attempt that fails, and an attempt that succeeds takes it back.
const PATIENCE_MAX: u32 = 100;

/// How many calls are not tried at once, since others took too long.
#[derive(Default)]
pub(crate) struct Patience {
    /// How many further calls are not tried.
    left: AtomicU32,
    /// How many calls were not tried after the last attempt that failed.
    before: AtomicU32,
}

impl Patience {
    /// Whether the next call is not to be tried.
    pub(crate) fn has_some(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    /// An attempt failed.
    pub(crate) fn doubles(&self) {
        let patience = self.before.load(Ordering::Relaxed).saturating_mul(2).clamp(1, PATIENCE_MAX);
        self.before.store(patience, Ordering::Relaxed);
        self.left.store(patience, Ordering::Relaxed);
    }

    /// An attempt succeeded.
    pub(crate) fn ends(&self) {
        self.before.store(0, Ordering::Relaxed);
    }
}

/// The limits of a call that is made at once.
pub(crate) fn moment(limits: &CallLimits) -> CallLimits {
    let response = Limits {
        bytes: limits.response.bytes.min(MOMENT_ANSWER_BYTES),
        parsed_bytes: limits.response.parsed_bytes.min(MOMENT_PARSED_BYTES),
        ..limits.response
    };
    CallLimits {
        timeout: limits.timeout.min(MOMENT),
        memory_bytes: limits.memory_bytes.min(MOMENT_MEMORY_BYTES),
        response,
        ..*limits
    }
}

/// Whether a call that was made at once might have succeeded with the limits that the guest has otherwise.
pub(crate) fn is_due_to(error: &CallError, moment: &CallLimits, limits: &CallLimits) -> bool {
    error.origin == Origin::Engine
        && match error.failure.reason.as_str() {
            reasons::DEADLINE => moment.timeout < limits.timeout,
            reasons::MEMORY => moment.memory_bytes < limits.memory_bytes,
            reasons::TOO_LARGE => moment.response.bytes < limits.response.bytes,
            reasons::BEYOND_GRANT => moment.response.parsed_bytes < limits.response.parsed_bytes,
            _ => false,
        }
}
