//! [`CallLimits`]: what one call may use, and what holds a guest's memory to it.

use std::time::Duration;

use pintle_wit::Limits;
use wasmtime::ResourceLimiter;

use crate::config::{CORE_INSTANCES_MAX, MEMORIES_MAX, TABLE_ELEMENTS_MAX, TABLES_MAX};

/// How much longer a call of a view may run for each KiB of its request. It is three times what a guest of the SDK needs to read the labels
/// that take longest, on a machine of two cores: `cargo bench -p pintle-engine` measured 157 µs a KiB for short ones and 41 to 63 for long
/// ones. 256 KiB, the most of a batch, have an eighth of a second.
const TIME_PER_KIB: Duration = Duration::from_micros(500);

/// The same in fuel, in the ratio of the defaults.
const FUEL_PER_KIB: u64 = 2_500_000;

/// What one call may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// How long the guest may run; of a view, with a short request. Counts under [`Meter::Deadline`](crate::Meter::Deadline). Default: 100 ms, some thousands of ordinary calls.
    pub timeout: Duration,
    /// How much fuel the guest may spend. Counts under [`Meter::Fuel`](crate::Meter::Fuel). Default: 500 million, which take 20 to 80 ms, so that a guest that
    /// passes offline also keeps within the default timeout.
    pub fuel: u64,
    /// How much memory the guest may have in all, in bytes. Default: 64 MiB, forty times as much as the JSON of the largest root that etcd
    /// accepts.
    pub memory_bytes: usize,
    /// The limits on the answer.
    pub response: Limits,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            timeout: Duration::from_millis(100),
            fuel: 500_000_000,
            memory_bytes: 64 << 20,
            response: Limits::default(),
        }
    }
}

impl CallLimits {
    /// The limits of a call with a request of this length, if these are those of a short one: reading a long request takes its time, and a
    /// large object must be shown as well as a small one.
    #[must_use]
    pub fn for_request(self, bytes: usize) -> Self {
        let kibibytes = u32::try_from(bytes >> 10).unwrap_or(u32::MAX);
        Self {
            timeout: self.timeout.saturating_add(TIME_PER_KIB.saturating_mul(kibibytes)),
            fuel: self.fuel.saturating_add(FUEL_PER_KIB.saturating_mul(kibibytes.into())),
            ..self
        }
    }
}

/// The limiter stopped a growth of memory.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("{desired_bytes} bytes of memory are beyond the limit")]
pub(crate) struct MemoryRefused {
    pub(crate) desired_bytes: usize,
}

/// Counts what a store holds. A refused growth ends the call: otherwise the guest would trap a moment later, and the reason would be lost.
pub(crate) struct Limiter {
    memory_bytes_max: usize,
    memory_bytes: usize,
    desired_bytes: usize,
}

impl Limiter {
    pub(crate) fn new(memory_bytes_max: usize) -> Self {
        Self { memory_bytes_max, memory_bytes: 0, desired_bytes: 0 }
    }

    /// How much memory the store has, which is the most that it ever had.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        self.desired_bytes = self.memory_bytes.saturating_add(desired.saturating_sub(current));
        if self.desired_bytes > self.memory_bytes_max {
            return Err(MemoryRefused { desired_bytes: self.desired_bytes }.into());
        }
        self.memory_bytes = self.desired_bytes;
        Ok(true)
    }

    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        Err(MemoryRefused { desired_bytes: self.desired_bytes }.into())
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(desired <= TABLE_ELEMENTS_MAX)
    }

    fn instances(&self) -> usize {
        CORE_INSTANCES_MAX
    }

    fn tables(&self) -> usize {
        TABLES_MAX
    }

    fn memories(&self) -> usize {
        MEMORIES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_may_run_longer_the_longer_its_request_is() {
        let limits = CallLimits::default();
        let of = |bytes: usize| limits.for_request(bytes);
        assert_eq!(of(0), limits);
        assert_eq!(of(1023), limits);
        assert_eq!(of(1 << 20).timeout, limits.timeout + Duration::from_millis(512));
        assert!(of(8 << 20).timeout < Duration::from_secs(5), "a call ends in time for its request");
        let ratio = |limits: CallLimits| u128::from(limits.fuel) / limits.timeout.as_micros();
        assert_eq!(ratio(of(1 << 20)), ratio(limits), "what passes offline passes in a cluster");
        assert_eq!(of(usize::MAX).memory_bytes, limits.memory_bytes);
    }
}
