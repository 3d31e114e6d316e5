//! Runs the compilers of this host: at most two at once, with which limits, and which modules are not tried again.
//!
//! One of the two places is for modules that have taken long already, the other one for all others. A module has a few seconds there, and
//! is then compiled anew in the place of the slow ones: so a cheap module never waits until an expensive one is done.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use pintle_engine::{Digest, Job};
use pintle_runtime::clock;
use pintle_wit::{Failure, reasons};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use crate::{
    child::{self, Ended, Limits},
    report::{Limit, Report},
};

/// The function that compiles a module in a process of its own: [`child::compile`](crate::child::compile), except in tests.
pub type Run = Box<dyn Fn(&Job<'_>, &Limits) -> Ended + Send + Sync>;

/// How many modules are remembered as slow or too expensive: far more than a cluster has. If there are more, all of this is forgotten and
/// found out anew.
const REMEMBERED: usize = 4096;

/// How much of a processor's time a module may take that is not known as slow: a hundred times as much as a guest in Rust takes.
const FRESH_CPU: Duration = Duration::from_secs(5);
/// How long that may take on a busy machine.
const FRESH_WALL: Duration = Duration::from_secs(20);

/// Compiles modules in processes of their own, at most two at once.
pub struct Compilers {
    limits: Limits,
    run: Run,
    report: Arc<dyn Report>,
    fresh: Arc<Semaphore>,
    slow: Arc<Semaphore>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// Modules that have taken long, or failed.
    slow: BTreeSet<Digest>,
    /// Modules that are not tried again, since the same bytes cost the same.
    refused: BTreeMap<Digest, Failure>,
}

/// A place to compile a module in, until this is dropped.
pub(crate) struct Place {
    is_fresh: bool,
    /// Whether the module was slower than it may be here. It must then be compiled again.
    was_too_slow: Cell<bool>,
    /// The semaphores are never closed.
    _permit: Result<OwnedSemaphorePermit, AcquireError>,
}

impl Place {
    /// Whether the module must be compiled again, in the place of the slow ones.
    pub(crate) fn was_too_slow(&self) -> bool {
        self.was_too_slow.get()
    }
}

impl Compilers {
    /// Compilers with these limits, as processes of this same program.
    pub fn new(limits: Limits, report: Arc<dyn Report>) -> Arc<Self> {
        let run =
            |job: &Job<'_>, limits: &Limits| child::compile(Path::new(child::THIS_PROGRAM), job, limits);
        Self::run_by(Box::new(run), limits, report)
    }

    /// The same, run by this function.
    pub fn run_by(run: Run, limits: Limits, report: Arc<dyn Report>) -> Arc<Self> {
        let (fresh, slow) = (Arc::new(Semaphore::new(1)), Arc::new(Semaphore::new(1)));
        Arc::new(Self { limits, run, report, fresh, slow, known: Mutex::default() })
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Every change is one insertion or removal.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How much memory the compiler may take for a module of this size, both in bytes.
    pub(crate) fn data_bytes_of(&self, module_bytes: usize) -> usize {
        self.limits.data_bytes_of(module_bytes)
    }

    /// Why a module is not tried again.
    pub(crate) fn refusal(&self, digest: &Digest) -> Option<Failure> {
        self.known().refused.get(digest).cloned()
    }

    /// Waits for a place to compile a module in, in turn.
    pub(crate) async fn place(&self, digest: &Digest) -> Place {
        let is_fresh = !self.known().slow.contains(digest);
        let places = if is_fresh { &self.fresh } else { &self.slow };
        let permit = Arc::clone(places).acquire_owned().await;
        Place { is_fresh, was_too_slow: Cell::new(false), _permit: permit }
    }

    /// Compiles a module in its place, in at most `data_bytes` of memory: what was reserved for it. Blocks.
    ///
    /// # Errors
    /// `InvalidWasm`, `CompileTooExpensive` and `CompilerFailed`.
    pub(crate) fn compile_in(
        &self,
        place: &Place,
        job: &Job<'_>,
        counted_for: &str,
        data_bytes: usize,
    ) -> Result<Vec<u8>, Failure> {
        let mut limits = Limits { data_bytes_max: data_bytes, ..self.limits };
        if place.is_fresh {
            limits.cpu = limits.cpu.min(FRESH_CPU);
            limits.wall = limits.wall.min(FRESH_WALL);
        }
        let (ended, took) = self.run(job, &limits);
        let was_too_slow = match ended {
            Ended::TooExpensive => limits.cpu < self.limits.cpu,
            Ended::TooLong => limits.wall < self.limits.wall,
            _ => false,
        };
        if was_too_slow {
            self.report.compiled("stopped", took);
            self.known().remember_slow(job.digest);
            place.was_too_slow.set(true);
            return Err(Failure::transient(reasons::COMPILER_FAILED, "others are compiled first"));
        }
        self.judge(ended, took, job, &limits, counted_for)
    }

    /// Compiles at once, without waiting for a place: for modules that are part of the host itself. Blocks.
    ///
    /// # Errors
    /// `InvalidWasm`, `CompileTooExpensive` and `CompilerFailed`.
    pub fn compile_at_once(&self, job: &Job<'_>) -> Result<Vec<u8>, Failure> {
        let (ended, took) = self.run(job, &self.limits);
        self.judge(ended, took, job, &self.limits, "")
    }

    fn run(&self, job: &Job<'_>, limits: &Limits) -> (Ended, Duration) {
        let began = clock::monotonic();
        let ended = (self.run)(job, limits);
        (ended, clock::monotonic().saturating_sub(began))
    }

    fn judge(
        &self,
        ended: Ended,
        took: Duration,
        job: &Job<'_>,
        limits: &Limits,
        counted_for: &str,
    ) -> Result<Vec<u8>, Failure> {
        let judged = judge(ended, limits, job.bytes.len());
        self.report.compiled(judged.outcome, took);
        if let Some(limit) = judged.limit {
            self.report.limit_hit(counted_for, limit);
        }
        let mut known = self.known();
        match &judged.result {
            Ok(_) if took < FRESH_CPU => {
                known.slow.remove(&job.digest);
            }
            Err(failure) if failure.reason == reasons::COMPILE_TOO_EXPENSIVE => {
                if known.refused.len() >= REMEMBERED {
                    known.refused.clear();
                }
                known.refused.insert(job.digest, failure.clone());
            }
            Err(failure) if failure.retry => known.remember_slow(job.digest),
            _ => {}
        }
        drop(known);
        judged.result
    }
}

impl Known {
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
