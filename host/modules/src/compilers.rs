//! Runs the compilers of this host: in which order (`pintle_core::turns`), with which limits, and which modules are not tried again.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use pintle_core::turns::{Decision, FRESH, Turns};
use pintle_engine::{Digest, Job};
use pintle_runtime::clock;
use pintle_wit::{Failure, reasons};
use tokio::sync::Notify;

use crate::{
    child::{Ended, Limits, Stop},
    report::{Limit, Report},
};

/// The function that compiles a module in a process of its own: [`child::compile`](crate::child::compile), except in tests.
pub type Run = Box<dyn Fn(&Job<'_>, &Limits, &Stop) -> Ended + Send + Sync>;

/// How many modules are remembered as slow or too expensive: far more than a cluster has. If there are more, all of this is forgotten and
/// found out anew.
const REMEMBERED: usize = 4096;

/// Compiles modules in processes of their own, at most two at once.
pub struct Compilers {
    limits: Limits,
    run: Run,
    report: Arc<dyn Report>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    turns: Turns<u64>,
    tickets: BTreeMap<u64, (Digest, Arc<Turn>)>,
    last: u64,
    /// Modules that have taken long, or failed.
    slow: BTreeSet<Digest>,
    /// Modules that are not tried again, since the same bytes cost the same.
    refused: BTreeMap<Digest, Failure>,
}

/// The state that the holder of a ticket shares with the compilers.
#[derive(Default)]
struct Turn {
    has_begun: AtomicBool,
    begins: Notify,
    stop: Stop,
}

/// A module's place among those that wait to be compiled or are being compiled. Dropping it gives the place up.
pub(crate) struct Ticket {
    compilers: Arc<Compilers>,
    id: u64,
    turn: Arc<Turn>,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut inner = self.compilers.inner();
        inner.tickets.remove(&self.id);
        inner.turns.leave(&self.id);
        drop(inner);
        self.compilers.look();
    }
}

impl Ticket {
    /// Whether its turn has come.
    pub(crate) fn has_begun(&self) -> bool {
        self.turn.has_begun.load(Ordering::Acquire)
    }

    /// Waits for its turn.
    pub(crate) async fn begun(&self) {
        while !self.has_begun() {
            // A notification before this is not lost.
            self.turn.begins.notified().await;
        }
    }

    /// Whether its compiler was stopped so that another one could begin. The module must then be compiled again.
    pub(crate) fn was_stopped(&self) -> bool {
        self.turn.stop.is_requested()
    }

    /// Compiles the module whose turn it is, in at most `data_bytes` of memory: what was reserved for it. Blocks.
    ///
    /// # Errors
    /// `InvalidWasm`, `CompileTooExpensive` and `CompilerFailed`.
    pub(crate) fn compile(
        &self,
        job: &Job<'_>,
        counted_for: &str,
        data_bytes: usize,
    ) -> Result<Vec<u8>, Failure> {
        let limits = Limits { data_bytes_max: data_bytes, ..self.compilers.limits };
        self.compilers.compile(job, &limits, &self.turn.stop, counted_for)
    }
}

impl Compilers {
    /// Compilers with these limits, run by this function.
    pub fn new(limits: Limits, run: Run, report: Arc<dyn Report>) -> Arc<Self> {
        Arc::new(Self { limits, run, report, inner: Mutex::default() })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Every change is one insertion or removal.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How much memory the compiler may take for a module of this size, both in bytes.
    pub(crate) fn data_bytes_of(&self, module_bytes: usize) -> usize {
        self.limits.data_bytes_of(module_bytes)
    }

    /// Why a module is not tried again.
    pub(crate) fn refusal(&self, digest: &Digest) -> Option<Failure> {
        self.inner().refused.get(digest).cloned()
    }

    /// Queues a module. Must be called where tasks can be started.
    pub(crate) fn want(self: &Arc<Self>, digest: Digest, is_used: bool) -> Ticket {
        let turn = Arc::new(Turn::default());
        let mut inner = self.inner();
        inner.last += 1;
        let id = inner.last;
        let is_slow = inner.slow.contains(&digest);
        inner.turns.want(id, is_used, is_slow);
        inner.tickets.insert(id, (digest, Arc::clone(&turn)));
        drop(inner);
        self.look();
        Ticket { compilers: Arc::clone(self), id, turn }
    }

    /// Takes note of which modules are in use. `uses` is called only if a module waits.
    pub(crate) fn uses(&self, used: impl FnOnce() -> BTreeSet<Digest>) {
        let mut inner = self.inner();
        if inner.tickets.is_empty() {
            return;
        }
        let used = used();
        let Inner { turns, tickets, .. } = &mut *inner;
        for (id, (digest, _)) in tickets.iter() {
            turns.uses(id, used.contains(digest));
        }
    }

    /// Carries out the decisions that are due now.
    fn look(self: &Arc<Self>) {
        let mut any_begins = false;
        {
            let mut inner = self.inner();
            for decision in inner.turns.decide(clock::monotonic()) {
                let (Decision::Begin(id) | Decision::Stop(id)) = decision;
                let Some((digest, turn)) = inner.tickets.get(&id).cloned() else { continue };
                if let Decision::Begin(_) = decision {
                    any_begins = true;
                    turn.has_begun.store(true, Ordering::Release);
                    turn.begins.notify_one();
                } else {
                    inner.remember_slow(digest);
                    turn.stop.request();
                }
            }
            let (running, waiting) = inner.turns.counts();
            self.report.compiles(running, waiting);
        }
        if any_begins && let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let compilers = Arc::downgrade(self);
            runtime.spawn(async move {
                tokio::time::sleep(FRESH).await;
                if let Some(compilers) = compilers.upgrade() {
                    compilers.look();
                }
            });
        }
    }

    /// Compiles at once, without waiting for a turn: for modules that are part of the host itself. Blocks.
    ///
    /// # Errors
    /// `InvalidWasm`, `CompileTooExpensive` and `CompilerFailed`.
    pub fn compile_at_once(&self, job: &Job<'_>) -> Result<Vec<u8>, Failure> {
        self.compile(job, &self.limits, &Stop::default(), "")
    }

    fn compile(
        &self,
        job: &Job<'_>,
        limits: &Limits,
        stop: &Stop,
        counted_for: &str,
    ) -> Result<Vec<u8>, Failure> {
        let began = clock::monotonic();
        let ended = (self.run)(job, limits, stop);
        let took = clock::monotonic().saturating_sub(began);
        let judged = judge(ended, limits, job.bytes.len());
        self.report.compiled(judged.outcome, took);
        if let Some(limit) = judged.limit {
            self.report.limit_hit(counted_for, limit);
        }
        let mut inner = self.inner();
        let failure = match judged.result {
            Ok(artifact) => {
                if took < FRESH {
                    inner.slow.remove(&job.digest);
                }
                return Ok(artifact);
            }
            Err(failure) => failure,
        };
        if failure.reason == reasons::COMPILE_TOO_EXPENSIVE {
            if inner.refused.len() >= REMEMBERED {
                inner.refused.clear();
            }
            inner.refused.insert(job.digest, failure.clone());
        } else if failure.retry {
            inner.remember_slow(job.digest);
        }
        Err(failure)
    }
}

impl Inner {
    fn remember_slow(&mut self, digest: Digest) {
        if self.slow.len() >= REMEMBERED {
            self.slow.clear();
        }
        self.slow.insert(digest);
    }
}

/// The meaning of how a compiler ended.
struct Judged {
    /// The label of the metric.
    outcome: &'static str,
    result: Result<Vec<u8>, Failure>,
    limit: Option<Limit>,
}

fn judge(ended: Ended, limits: &Limits, module_bytes: usize) -> Judged {
    let failed = |message: String| Err(Failure::transient(reasons::COMPILER_FAILED, message));
    let (outcome, result, limit) = match ended {
        Ended::Made(artifact) => ("made", Ok(artifact), None),
        Ended::Invalid(said) => ("invalid", Err(Failure::terminal(reasons::INVALID_WASM, said)), None),
        Ended::TooExpensive => {
            let message = format!(
                "compiling the module took more than {} s of a processor's time; make its functions smaller and push it under \
                 another name",
                limits.cpu.as_secs()
            );
            let failure = Failure::terminal(reasons::COMPILE_TOO_EXPENSIVE, message);
            ("too-expensive", Err(failure), Some(Limit::CompileCpu))
        }
        Ended::TooLong => {
            let message = format!(
                "the compiler was not done after {} s; the machine may be busy, and it is tried again",
                limits.wall.as_secs()
            );
            ("failed", failed(message), Some(Limit::CompileTime))
        }
        Ended::TooLarge(bytes_max) => {
            let message = format!("the module compiles to more than {bytes_max} bytes");
            let failure = Failure::terminal(reasons::COMPILE_TOO_EXPENSIVE, message);
            ("too-expensive", Err(failure), Some(Limit::CompiledBytes))
        }
        Ended::Killed(how) => {
            let message = format!(
                "the compiler was ended ({how}), most likely for want of memory: it has {} MiB; it is tried again",
                limits.data_bytes_of(module_bytes) >> 20
            );
            ("failed", failed(message), Some(Limit::CompileMemory))
        }
        Ended::Failed(why) => {
            ("failed", failed(format!("the compiler failed: {why}; it is tried again")), None)
        }
        Ended::Stopped => ("stopped", failed("others are compiled first".into()), None),
    };
    Judged { outcome, result, limit }
}

/// How long after this many failures in a row, the last of them for this reason, a module is loaded again. A compilation that fails for
/// lack of memory or time seldom succeeds a moment later, and costs as much.
pub fn retry_after(reason: &str, failures: u32) -> Duration {
    let (first, max): (u64, u64) =
        if reason == reasons::COMPILER_FAILED { (2_000, 300_000) } else { (500, 30_000) };
    Duration::from_millis((first << failures.min(10)).min(max))
}

#[cfg(test)]
mod tests;
