//! One call of a guest: what it cost, and how the guest's memory is written and read.

use std::{fmt, sync::Arc, time::Duration};

use pintle_wit::{Failure, Limits, Response, Weight, reasons};
use wasmtime::{
    Store,
    component::{ComponentExportIndex, ComponentNamedList, InstancePre, Lift, Lower},
};

use crate::{
    config::Meter,
    failure,
    limits::{CallLimits, Limiter},
    sandbox::Sandbox,
    ticker::{self, InFlight},
};

/// What a call cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallStats {
    /// The time from the creation of the instance to its end, without the wait for a turn and without reading the answer.
    pub duration: Duration,
    /// The fuel that was spent, under [`Meter::Fuel`].
    pub fuel: Option<u64>,
    /// The most memory that the guest had, in bytes.
    pub peak_memory_bytes: usize,
    /// The length of the answer or of the guest's failure, in bytes; 0 if there is none.
    pub response_bytes: usize,
    /// The most memory that the parsed answer takes, in bytes; 0 if it was not to be parsed.
    pub parsed_bytes: usize,
}

/// What a guest answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer<Document = Response> {
    /// The answer.
    pub response: Document,
    /// The answer as the guest wrote it, to compare answers that must be byte-equal.
    pub text: String,
    /// What the call cost.
    pub stats: CallStats,
}

/// The origin of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The guest: it could not decide, and gave the reason.
    Guest,
    /// The engine: the guest broke a limit, the contract or itself.
    Engine,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallError {
    /// The failure. It is boxed to keep this type small, since nearly all results are answers.
    pub failure: Box<Failure>,
    /// The origin of the failure.
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

/// A component that can be called, and the sandbox in which its calls run.
pub(crate) struct Callee {
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) component: InstancePre<Limiter>,
}

impl Callee {
    /// Waits for its turn.
    pub(crate) fn enter(&self) -> InFlight<'_> {
        self.sandbox.ticker.enter()
    }

    /// Calls one export in its own store and instance, drops both, and then gives the slot back.
    pub(crate) fn call<P, R>(
        &self,
        _slot: InFlight<'_>,
        export: &ComponentExportIndex,
        parameters: P,
        limits: &CallLimits,
    ) -> Result<(R, CallStats), CallError>
    where
        P: ComponentNamedList + Lower,
        R: Lift + Send + Sync + 'static,
        (R,): ComponentNamedList + Lift,
    {
        let sandbox = &*self.sandbox;
        let memory_bytes_max = limits.memory_bytes.min(sandbox.config.memory_bytes_max);
        // The store is dropped before the slot: the slot is free only once the store has given back its part of the pool.
        let started = (sandbox.config.monotonic)();
        let mut store = Store::new(&sandbox.wasmtime, Limiter::new(memory_bytes_max));
        store.limiter(|limiter| limiter);
        // The length of an answer is checked against this before a byte of it is read.
        store.set_hostcall_fuel(limits.response.bytes);
        let outcome = metered(&mut store, sandbox.config.meter, limits).and_then(|()| {
            let instance = self.component.instantiate(&mut store)?;
            let function = instance.get_typed_func::<P, (R,)>(&mut store, export)?;
            function.call(&mut store, parameters)
        });
        let mut stats = CallStats {
            fuel: match sandbox.config.meter {
                Meter::Deadline => None,
                Meter::Fuel => store.get_fuel().ok().map(|left| limits.fuel.saturating_sub(left)),
            },
            peak_memory_bytes: store.data().memory_bytes(),
            ..CallStats::default()
        };
        drop(store);
        stats.duration = (sandbox.config.monotonic)().saturating_sub(started);
        match outcome {
            Ok((result,)) => Ok((result, stats)),
            Err(error) => Err(CallError::engine(failure::of_call(&error, limits, memory_bytes_max), stats)),
        }
    }

    /// Calls an export that takes a document and returns another one or a failure. `read` weighs and reads the one that it returns.
    pub(crate) fn ask<Document>(
        &self,
        slot: InFlight<'_>,
        export: &ComponentExportIndex,
        request_json: &str,
        limits: &CallLimits,
        read: impl FnOnce(&str) -> (Weight, Result<Document, Failure>),
    ) -> Result<Answer<Document>, CallError> {
        let (result, mut stats) =
            self.call::<_, Result<String, String>>(slot, export, (request_json,), limits)?;
        match result {
            Ok(text) => {
                stats.response_bytes = text.len();
                let (weight, parsed) = read(&text);
                stats.parsed_bytes = weight.parsed_bytes();
                match parsed {
                    Ok(response) => Ok(Answer { response, text, stats }),
                    Err(failure) => Err(CallError::engine(failure, stats)),
                }
            }
            Err(text) => {
                stats.response_bytes = text.len();
                Err(stated(&text, limits.response, stats))
            }
        }
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
fn stated(text: &str, limits: Limits, mut stats: CallStats) -> CallError {
    stats.parsed_bytes = Weight::of(text, limits).map_or(0, |weight| weight.parsed_bytes());
    match pintle_wit::parse_failure(text, limits).map(checked) {
        Ok(Ok(failure)) => CallError { failure: Box::new(failure), origin: Origin::Guest, stats },
        Ok(Err(failure)) => CallError::engine(failure, stats),
        Err(mut failure) => {
            failure.message = format!("{}; the guest said {}", failure.message, failure::quoted(text));
            CallError::engine(failure, stats)
        }
    }
}

/// A failure as a guest may state it: its texts are cut, and its reason is a word.
pub(crate) fn checked(failure: Failure) -> Result<Failure, Failure> {
    if is_reason(&failure.reason) {
        return Ok(failure::bounded(failure));
    }
    let message = format!(
        "the failure: {} is not a word in CamelCase of at most {REASON_BYTES_MAX} characters",
        failure::quoted(&failure.reason)
    );
    Err(Failure::terminal(reasons::INVALID_DOCUMENT, message).at("reason"))
}

/// The longest reason, in bytes, as the contract says.
const REASON_BYTES_MAX: usize = 128;

/// Whether Kubernetes accepts this as the reason of a condition. A guest's reason becomes one, and the API server would refuse the whole
/// status because of a wrong one.
fn is_reason(reason: &str) -> bool {
    reason.len() <= REASON_BYTES_MAX
        && reason.starts_with(|c: char| c.is_ascii_uppercase())
        && reason.bytes().all(|byte| byte.is_ascii_alphanumeric())
}
