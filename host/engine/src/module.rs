//! [`Module`]: a guest that was loaded, and the ways to call it.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use pintle_wit::{Failure, Limits, Manifest, reasons};
use wasmtime::component::InstancePre;

use crate::{
    call::{self, Answer, CallError, CallStats, Origin},
    config::Meter,
    digest::Digest,
    limits::{CallLimits, Limiter},
    sandbox::Sandbox,
    ticker::{InFlight, TICK},
    worlds::{Reconciler, Worlds},
};

/// How long a call by [`Module::reconcile_at_once`] may take: some ten ordinary calls.
const MOMENT: Duration = TICK;

/// How much memory such a call may use, in bytes: three times that of an ordinary call. A deadline is looked at between instructions, and a
/// single one may fill all of a guest's memory. With 64 MiB of fresh memory that takes 40 ms, with this some 2 ms.
const MOMENT_MEMORY_BYTES: usize = 4 << 20;

/// How long the answer of such a call may be, in bytes, and how much memory it may take when it is parsed. Both take a millisecond or two.
const MOMENT_ANSWER_BYTES: usize = 256 << 10;
const MOMENT_PARSED_BYTES: usize = 1 << 20;

/// How many calls in a row are at most not tried at once after calls took longer than [`MOMENT`]. For a guest that always takes longer, the
/// attempts cost a hundredth of that. A guest that took longer once, since the machine was busy, is left alone for one call: the number
/// doubles with each attempt that fails, and an attempt that succeeds takes it back.
const PATIENCE_MAX: u32 = 100;

/// A guest that was loaded. It is cheap to clone, and every clone is the same module.
#[derive(Clone)]
pub struct Module(pub(crate) Arc<Loaded>);

pub(crate) struct Loaded {
    sandbox: Arc<Sandbox>,
    guest: InstancePre<Limiter>,
    worlds: Worlds,
    digest: Digest,
    manifest: Manifest,
    manifest_text: String,
    size: Size,
    compile_duration: Duration,
    /// How many further calls are not tried at once.
    patience: AtomicU32,
    /// How many calls were not tried at once after the last attempt that failed.
    patience_before: AtomicU32,
}

/// How large a module is, in bytes.
pub(crate) struct Size {
    /// Its own bytes.
    pub(crate) bytes: usize,
    /// Its compiled form.
    pub(crate) code_bytes: usize,
}

impl Loaded {
    /// Asks the guest for its manifest. This is the last check of a module.
    pub(crate) fn probe(
        sandbox: Arc<Sandbox>,
        guest: InstancePre<Limiter>,
        worlds: Worlds,
        digest: Digest,
        size: Size,
        compile_duration: Duration,
    ) -> Result<Self, Failure> {
        let (manifest_text, manifest, _) =
            describe(&sandbox, &guest, &worlds.reconciler, &CallLimits::default()).map_err(|mut error| {
                error.failure.message = format!("describe: {}", error.failure.message);
                *error.failure
            })?;
        Ok(Self {
            sandbox,
            guest,
            worlds,
            digest,
            manifest,
            manifest_text,
            size,
            compile_duration,
            patience: AtomicU32::new(0),
            patience_before: AtomicU32::new(0),
        })
    }
}

fn describe(
    sandbox: &Sandbox,
    guest: &InstancePre<Limiter>,
    exports: &Reconciler,
    limits: &CallLimits,
) -> Result<(String, Manifest, CallStats), CallError> {
    let (text, mut stats) =
        call::call::<(), String>(sandbox, sandbox.ticker.enter(), guest, &exports.describe, (), limits)?;
    stats.response_bytes = text.len();
    match pintle_wit::parse_manifest(&text, limits.response) {
        Ok(manifest) => Ok((text, manifest, stats)),
        Err(failure) => Err(CallError::engine(failure, stats)),
    }
}

impl Module {
    /// Asks the guest what should exist because of a root. The request is a [`pintle_wit::Request`] in JSON.
    ///
    /// The call runs on this thread. If as many calls run already as the engine allows, it first waits for its turn. The thread must have a
    /// stack of at least 1 MiB.
    ///
    /// # Errors
    /// The guest's own failure, or the engine's for a guest that broke a limit or the contract.
    pub fn reconcile(&self, request_json: &str, limits: &CallLimits) -> Result<Answer, CallError> {
        self.reconcile_in(self.0.sandbox.ticker.enter(), request_json, limits)
    }

    /// The same as [`Self::reconcile`], if it holds up the calling thread for at most some milliseconds: there must be a free turn, and the
    /// guest must answer quickly. Otherwise it returns `None`, and [`Self::reconcile`] must be called on a thread that may block. Handing a
    /// call to another thread and back takes about as long as an ordinary call.
    ///
    /// # Errors
    /// As [`Self::reconcile`].
    pub fn reconcile_at_once(
        &self,
        request_json: &str,
        limits: &CallLimits,
    ) -> Option<Result<Answer, CallError>> {
        let loaded = &*self.0;
        // Fuel is the same on every thread, but it is unknown how much time it stands for.
        if loaded.sandbox.config.meter == Meter::Fuel {
            return None;
        }
        let less = |patience: u32| patience.checked_sub(1);
        if loaded.patience.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok() {
            return None;
        }
        let moment = moment(limits);
        let answer = self.reconcile_in(loaded.sandbox.ticker.try_enter()?, request_json, &moment);
        if answer.as_ref().is_err_and(|error| is_due_to(error, &moment, limits)) {
            // A guest is a pure function, so it can simply be called again.
            let patience =
                loaded.patience_before.load(Ordering::Relaxed).saturating_mul(2).clamp(1, PATIENCE_MAX);
            loaded.patience_before.store(patience, Ordering::Relaxed);
            loaded.patience.store(patience, Ordering::Relaxed);
            return None;
        }
        loaded.patience_before.store(0, Ordering::Relaxed);
        Some(answer)
    }

    fn reconcile_in(
        &self,
        slot: InFlight<'_>,
        request_json: &str,
        limits: &CallLimits,
    ) -> Result<Answer, CallError> {
        let loaded = &*self.0;
        let (result, mut stats) = call::call::<_, Result<String, String>>(
            &loaded.sandbox,
            slot,
            &loaded.guest,
            &loaded.worlds.reconciler.reconcile,
            (request_json,),
            limits,
        )?;
        match result {
            Ok(text) => {
                stats.response_bytes = text.len();
                let (weight, parsed) = pintle_wit::weigh_and_parse_response(&text, limits.response);
                stats.parsed_bytes = weight.parsed_bytes();
                match parsed {
                    Ok(response) => Ok(Answer { response, text, stats }),
                    Err(failure) => Err(CallError::engine(failure, stats)),
                }
            }
            Err(text) => {
                stats.response_bytes = text.len();
                Err(call::stated(&text, limits.response, stats))
            }
        }
    }

    /// Asks the guest for its manifest again, and returns the text with the cost of the call. The manifest in force is [`Self::manifest`].
    ///
    /// # Errors
    /// As [`Self::reconcile`].
    pub fn describe(&self, limits: &CallLimits) -> Result<(String, CallStats), CallError> {
        let loaded = &*self.0;
        let (text, _, stats) = describe(&loaded.sandbox, &loaded.guest, &loaded.worlds.reconciler, limits)?;
        Ok((text, stats))
    }

    /// The digest of the module's bytes.
    pub fn digest(&self) -> Digest {
        self.0.digest
    }

    /// The manifest that the guest declared when it was loaded.
    pub fn manifest(&self) -> &Manifest {
        &self.0.manifest
    }

    /// The same as the guest wrote it.
    pub fn manifest_text(&self) -> &str {
        &self.0.manifest_text
    }

    /// The interfaces of the contract that the module exports, one for each of its worlds.
    pub fn interfaces(&self) -> Vec<&'static str> {
        self.0.worlds.interfaces()
    }

    /// How large the module is, in bytes.
    pub fn size_bytes(&self) -> usize {
        self.0.size.bytes
    }

    /// How much memory its machine code takes, with its data, in bytes.
    pub fn code_bytes(&self) -> usize {
        self.0.size.code_bytes
    }

    /// How long compiling it took; if it was compiled elsewhere, including the way there and back.
    pub fn compile_duration(&self) -> Duration {
        self.0.compile_duration
    }
}

/// The limits of a call that is made at once.
fn moment(limits: &CallLimits) -> CallLimits {
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
fn is_due_to(error: &CallError, moment: &CallLimits, limits: &CallLimits) -> bool {
    error.origin == Origin::Engine
        && match error.failure.reason.as_str() {
            reasons::DEADLINE => moment.timeout < limits.timeout,
            reasons::MEMORY => moment.memory_bytes < limits.memory_bytes,
            reasons::TOO_LARGE => moment.response.bytes < limits.response.bytes,
            reasons::BEYOND_GRANT => moment.response.parsed_bytes < limits.response.parsed_bytes,
            _ => false,
        }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module")
            .field("digest", &self.0.digest)
            .field("name", &self.0.manifest.name)
            .field("version", &self.0.manifest.version)
            .finish_non_exhaustive()
    }
}
