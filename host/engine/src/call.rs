//! One call of a guest: its limits, what it cost, and how the guest's memory is written and read.

use std::{fmt, time::Duration};

use pintle_wit::{Failure, Limits, Response, Weight, reasons};
use wasmtime::{
    ResourceLimiter, Store,
    component::{ComponentExportIndex, ComponentNamedList, InstancePre, Lift, Lower},
};

use crate::{
    Meter,
    config::{CORE_INSTANCES_MAX, MEMORIES_MAX, TABLE_ELEMENTS_MAX, TABLES_MAX},
    engine::Inner,
    failure,
    ticker::{self, InFlight},
};

/// What one call may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// How long the guest may run. Counts under [`Meter::Deadline`]. Default: 100 ms, some thousands of ordinary calls.
    pub timeout: Duration,
    /// How much fuel the guest may spend. Counts under [`Meter::Fuel`]. Default: 500 million, which burn in 20 to 80 ms, so that
    /// what passes offline keeps within the default timeout too.
    pub fuel: u64,
    /// How much memory the guest may have, in bytes, in all. Default: 64 MiB, forty times what a root as large as etcd accepts
    /// takes in JSON.
    pub memory_bytes: usize,
    /// How much of the answer is read.
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

/// What a call cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallStats {
    /// From the creation of the instance to its end, without waiting for a turn and without reading the answer.
    pub duration: Duration,
    /// The fuel that was spent, under [`Meter::Fuel`].
    pub fuel: Option<u64>,
    /// The most memory that the guest had, in bytes.
    pub peak_memory_bytes: usize,
    /// The length of the answer or of the guest's failure, in bytes; 0 where there is none.
    pub response_bytes: usize,
    /// How much memory making values of it takes at most, in bytes; 0 where none were to be made.
    pub parsed_bytes: usize,
}

/// What a guest answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The answer.
    pub response: Response,
    /// The same as the guest wrote it: what is compared where answers must be byte-equal.
    pub text: String,
    /// What the call cost.
    pub stats: CallStats,
}

/// Who says that there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The guest: it could not decide, and says why.
    Guest,
    /// The engine: the guest broke a limit, the contract or itself.
    Engine,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallError {
    /// The reason. Boxed, since answers are what is moved about all day.
    pub failure: Box<Failure>,
    /// Whose reason it is.
    pub origin: Origin,
    /// What the call cost.
    pub stats: CallStats,
}

impl CallError {
    pub(crate) fn engine(failure: Failure, stats: CallStats) -> Self {
        Self { failure: Box::new(failure::bounded(failure)), origin: Origin::Engine, stats }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.failure, f)
    }
}

impl std::error::Error for CallError {}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        *error.failure
    }
}

/// The limiter stopped a growth of memory.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("{desired_bytes} bytes of memory are beyond the limit")]
pub(crate) struct MemoryRefused {
    pub(crate) desired_bytes: usize,
}

/// Counts what a store holds. A refused growth ends the call: told about it, a guest would trap a moment later without its reason.
pub(crate) struct Limiter {
    memory_bytes_max: usize,
    memory_bytes: usize,
    desired_bytes: usize,
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

/// Calls one export in a store and an instance of its own, and drops both, then gives the slot back.
pub(crate) fn call<P, R>(
    engine: &Inner,
    _slot: InFlight<'_>,
    guest: &InstancePre<Limiter>,
    export: &ComponentExportIndex,
    parameters: P,
    limits: &CallLimits,
) -> Result<(R, CallStats), CallError>
where
    P: ComponentNamedList + Lower,
    R: Lift + Send + Sync + 'static,
    (R,): ComponentNamedList + Lift,
{
    let memory_bytes_max = limits.memory_bytes.min(engine.config.memory_bytes_max);
    // The store is dropped before the slot, which is free only once the store has given back its part of the pool.
    let started = (engine.config.monotonic)();
    let limiter = Limiter { memory_bytes_max, memory_bytes: 0, desired_bytes: 0 };
    let mut store = Store::new(&engine.wasmtime, limiter);
    store.limiter(|limiter| limiter);
    // The length of an answer is checked against this before a byte of it is read.
    store.set_hostcall_fuel(limits.response.bytes);
    let outcome = metered(&mut store, engine.config.meter, limits).and_then(|()| {
        let instance = guest.instantiate(&mut store)?;
        let function = instance.get_typed_func::<P, (R,)>(&mut store, export)?;
        function.call(&mut store, parameters)
    });
    let mut stats = CallStats {
        fuel: match engine.config.meter {
            Meter::Deadline => None,
            Meter::Fuel => store.get_fuel().ok().map(|left| limits.fuel.saturating_sub(left)),
        },
        peak_memory_bytes: store.data().memory_bytes,
        ..CallStats::default()
    };
    drop(store);
    stats.duration = (engine.config.monotonic)().saturating_sub(started);
    match outcome {
        Ok((result,)) => Ok((result, stats)),
        Err(error) => Err(CallError::engine(failure::of_call(&error, limits, memory_bytes_max), stats)),
    }
}

fn metered(store: &mut Store<Limiter>, meter: Meter, limits: &CallLimits) -> wasmtime::Result<()> {
    match meter {
        Meter::Deadline => {
            store.set_epoch_deadline(ticker::ticks(limits.timeout));
            Ok(())
        }
        Meter::Fuel => store.set_fuel(limits.fuel),
    }
}

/// The failure that a guest stated, if it is one.
pub(crate) fn stated(text: &str, limits: Limits, mut stats: CallStats) -> CallError {
    stats.parsed_bytes = Weight::of(text, limits).map_or(0, |weight| weight.parsed_bytes());
    match pintle_wit::parse_failure(text, limits) {
        Ok(failure) if !is_reason(&failure.reason) => {
            let message = format!(
                "the failure: {} is not a word in CamelCase of at most {REASON_BYTES_MAX} characters",
                failure::quoted(&failure.reason)
            );
            CallError::engine(Failure::terminal(reasons::INVALID_DOCUMENT, message).at("reason"), stats)
        }
        Ok(failure) => {
            CallError { failure: Box::new(failure::bounded(failure)), origin: Origin::Guest, stats }
        }
        Err(mut failure) => {
            failure.message = format!("{}; the guest said {}", failure.message, failure::quoted(text));
            CallError::engine(failure, stats)
        }
    }
}

/// The longest reason, in bytes, as the contract says.
const REASON_BYTES_MAX: usize = 128;

/// Whether Kubernetes takes this as the reason of a condition. A guest's reason becomes one, and the API server would refuse the
/// whole status for a wrong one.
fn is_reason(reason: &str) -> bool {
    reason.len() <= REASON_BYTES_MAX
        && reason.starts_with(|c: char| c.is_ascii_uppercase())
        && reason.bytes().all(|byte| byte.is_ascii_alphanumeric())
}
