//! From a Module to a module that can be called: in this process, or in processes of their own, for which [`Compilers`] has places.

use std::{pin::pin, sync::Arc};

use futures::FutureExt;
use pintle_api::{ConfigMapSource, ModuleSpec};
use pintle_core::reasons;
use pintle_engine::{CallLimits, Compiler, Digest, Engine, Job, Module};
use pintle_kubernetes::Cluster;
use pintle_runtime::Spawner;
use pintle_wit::{Failure, Weight};
use tokio::sync::Semaphore;
use tracing::debug;

use crate::{
    budget::{Budget, Purpose},
    compilers::{Compilers, Place},
    fetch,
    grants::Need,
    report::{Limit, Report},
};

/// How many modules are fetched and verified at once, besides those that are compiled. Each may be as large as a module may be.
const FETCHES_AT_ONCE: usize = 2;

/// A Module that is to be made ready.
pub struct Order<'a> {
    module: &'a str,
    digest: Digest,
    source: &'a ConfigMapSource,
    counted_for: String,
}

impl<'a> Order<'a> {
    /// An order of the Module with this name. The limits that it hits are counted for somebody, or for nobody if that is empty.
    ///
    /// # Errors
    /// When the spec has no digest that can be read, or names no source.
    pub fn new(module: &'a str, spec: &'a ModuleSpec, counted_for: String) -> Result<Self, Failure> {
        let digest = spec.digest.parse().map_err(|_| {
            Failure::terminal(reasons::DIGEST_MISMATCH, "the digest is not sha256: and 64 hex digits")
                .at("spec.digest")
        })?;
        Ok(Self { module, digest, source: fetch::source_of(&spec.source)?, counted_for })
    }
}

/// A module that is compiled in a process of its own.
struct Work<'a> {
    /// What names it where memory is reserved.
    what: &'a str,
    digest: Digest,
    counted_for: &'a str,
}

/// The bytes of a module, which were verified.
enum Bytes<'a> {
    Here(Arc<Vec<u8>>),
    /// They are fetched again when there is a place to compile them in.
    At(&'a ConfigMapSource),
}

/// Gets Modules ready to be called. A process has one.
pub struct Loader {
    cluster: Cluster,
    engine: Engine,
    /// Where modules are compiled, if not in this process.
    compilers: Option<Arc<Compilers>>,
    budget: Budget,
    spawner: Spawner,
    report: Arc<dyn Report>,
    /// Who may have the bytes of a module in memory.
    fetches: Semaphore,
}

impl Loader {
    /// A loader of the Modules of a cluster. Without compilers, modules are compiled in this process, at once.
    pub fn new(
        cluster: Cluster,
        engine: Engine,
        compilers: Option<Arc<Compilers>>,
        budget: Budget,
        spawner: Spawner,
        report: Arc<dyn Report>,
    ) -> Self {
        let fetches = Semaphore::new(FETCHES_AT_ONCE);
        Self { cluster, engine, compilers, budget, spawner, report, fetches }
    }

    /// Fetches the bytes of a Module, and verifies them.
    ///
    /// # Errors
    /// The reasons that begin with `Source`, and why the bytes are no module that may be compiled.
    pub async fn fetch(&self, order: &Order<'_>) -> Result<Vec<u8>, Failure> {
        let _place = self.fetches.acquire().await;
        let bytes = fetch::bytes(&self.cluster, order.source).await?;
        let (engine, digest) = (self.engine.clone(), order.digest);
        let verified = self.block(move || engine.verify(&bytes, Some(&digest)).map(|_| bytes)).await?;
        verified.map_err(|refused| {
            if let Some(excess) = refused.excess {
                self.report.limit_hit(&order.counted_for, Limit::from(excess));
            }
            refused.failure
        })
    }

    /// Compiles a module whose bytes were verified, and asks the guest for its manifest. While it waits for its turn, the bytes are not kept:
    /// they are fetched again.
    ///
    /// # Errors
    /// Why it was not compiled, or why it is no guest.
    pub async fn compile(&self, order: &Order<'_>, bytes: Vec<u8>) -> Result<Module, Failure> {
        match &self.compilers {
            Some(compilers) => {
                let work = Work { what: order.module, digest: order.digest, counted_for: &order.counted_for };
                self.compile_elsewhere(compilers, &work, Arc::new(bytes), Some(order.source)).await
            }
            None => {
                let (engine, digest) = (self.engine.clone(), order.digest);
                self.block(move || engine.load(&bytes, Some(&digest))).await?
            }
        }
    }

    /// Compiles bytes when there is a place. Where they have a source, they are not kept while they wait for it.
    async fn compile_elsewhere(
        &self,
        compilers: &Arc<Compilers>,
        work: &Work<'_>,
        bytes: Arc<Vec<u8>>,
        source: Option<&ConfigMapSource>,
    ) -> Result<Module, Failure> {
        let mut bytes = Bytes::Here(bytes);
        loop {
            if let Some(known) = self.known(compilers, &work.digest) {
                return known;
            }
            let mut place = pin!(compilers.place(&work.digest));
            let place = match place.as_mut().now_or_never() {
                Some(place) => place,
                None => {
                    // However many modules wait, their bytes are not in memory.
                    bytes = source.map_or(bytes, Bytes::At);
                    let place = place.await;
                    // Another Module may have the same bytes.
                    if let Some(known) = self.known(compilers, &work.digest) {
                        return known;
                    }
                    place
                }
            };
            let here = match &bytes {
                Bytes::Here(bytes) => Arc::clone(bytes),
                Bytes::At(source) => Arc::new(fetch::bytes(&self.cluster, source).await?),
            };
            let (loaded, was_too_slow) = self.compile_in(compilers, place, work, here).await?;
            if !was_too_slow {
                return loaded;
            }
            debug!(what = work.what, "Compiled later: it takes long");
        }
    }

    /// Verifies and compiles bytes that are no Module yet, as those of a Module are: in turn with them, and within the same limits. `what`
    /// names them where memory is reserved. The bytes stay in memory while they wait.
    ///
    /// # Errors
    /// Why they are no module that may be compiled, or no guest.
    pub async fn examine(&self, what: &str, bytes: Vec<u8>, counted_for: &str) -> Result<Module, Failure> {
        let bytes = Arc::new(bytes);
        let (engine, verified) = (self.engine.clone(), Arc::clone(&bytes));
        let verified = self.block(move || engine.verify(&verified, None)).await?;
        let digest = verified.map_err(|refused| {
            if let Some(excess) = refused.excess {
                self.report.limit_hit(counted_for, Limit::from(excess));
            }
            refused.failure
        })?;
        let Some(compilers) = &self.compilers else {
            let engine = self.engine.clone();
            return self.block(move || engine.load(&bytes, Some(&digest))).await?;
        };
        let work = Work { what, digest, counted_for };
        self.compile_elsewhere(compilers, &work, bytes, None).await
    }

    /// Compiles bytes in their place, and says whether they were too slow for it.
    async fn compile_in(
        &self,
        compilers: &Arc<Compilers>,
        place: Place,
        work: &Work<'_>,
        bytes: Arc<Vec<u8>>,
    ) -> Result<(Result<Module, Failure>, bool), Failure> {
        // Each Module has its own lane, so one that waits for much memory holds up no other. The compiler gets no more than was
        // reserved.
        let wanted = (compilers.data_bytes_of(bytes.len()) as u64).max(describe_bytes());
        let reserved = wanted.min(self.budget.bytes_max());
        let room = self.budget.reserve(&format!("module {}", work.what), Purpose::Compile, reserved).await?;
        let (engine, compilers, digest) = (self.engine.clone(), Arc::clone(compilers), work.digest);
        let counted_for = work.counted_for.to_owned();
        // The place is given back when its thread ends, because the compiler runs until then.
        self.block(move || {
            let _room = room;
            let data_bytes_max = usize::try_from(reserved).unwrap_or(usize::MAX);
            let compile = |job: Job<'_>| compilers.compile_in(&place, &job, &counted_for, data_bytes_max);
            let loaded = engine.load_by(Compiler::Elsewhere(&compile), &bytes, Some(&digest));
            (loaded, place.was_too_slow())
        })
        .await
    }

    /// What is known about a module without compiling it.
    fn known(&self, compilers: &Compilers, digest: &Digest) -> Option<Result<Module, Failure>> {
        compilers.refusal(digest).map(Err).or_else(|| self.engine.loaded(digest).map(Ok))
    }

    /// Does work that computes for long where it may block.
    ///
    /// # Errors
    /// When the work panicked.
    pub async fn block<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let done = self.spawner.block(work).await;
        done.map_err(|error| Failure::terminal(reasons::ENGINE_FAILED, error.to_string()))
    }
}

/// The most memory, in bytes, that the first call of a module takes, which asks for its manifest.
fn describe_bytes() -> u64 {
    let CallLimits { memory_bytes, response, .. } = CallLimits::default();
    let (text, parsed) = (response.bytes, Weight::parsed_bytes_max(response));
    Need { memory_bytes: memory_bytes as u64, text_bytes: text as u64, parsed_bytes: parsed as u64 }
        .of_call(0)
}
