//! From a Module to a module that can be called: in this process, or in processes of their own, where [`Compilers`] decides whose turn it
//! is.

use std::{collections::BTreeSet, sync::Arc};

use pintle_api::ModuleSpec;
use pintle_core::reasons;
use pintle_engine::{CallLimits, Compiler, Digest, Engine, Module};
use pintle_kubernetes::Cluster;
use pintle_runtime::Spawner;
use pintle_wit::{Failure, Weight};
use tokio::sync::Semaphore;
use tracing::debug;

use crate::{
    budget::{Budget, Purpose},
    compilers::{Compilers, Ticket},
    fetch::{self, Source},
    grants::Need,
    report::{Limit, Owner, Report},
};

/// How many modules are fetched and verified at once, besides those that are compiled. Each may be as large as a module may be.
const FETCHES_AT_ONCE: usize = 2;

/// A Module that is to be made ready.
pub struct Order<'a> {
    module: &'a str,
    digest: Digest,
    source: Source<'a>,
    is_used: bool,
    owner: &'a dyn Owner,
}

impl<'a> Order<'a> {
    /// An order of the Module with this name. What somebody waits to call (`is_used`) comes before what nobody uses yet.
    ///
    /// # Errors
    /// When the spec has no digest that can be read, or names no source.
    pub fn new(
        module: &'a str,
        spec: &'a ModuleSpec,
        is_used: bool,
        owner: &'a dyn Owner,
    ) -> Result<Self, Failure> {
        let digest = spec.digest.parse().map_err(|_| {
            Failure::terminal(reasons::DIGEST_MISMATCH, "the digest is not sha256: and 64 hex digits")
                .at("spec.digest")
        })?;
        Ok(Self { module, digest, source: Source::of(&spec.source)?, is_used, owner })
    }
}

/// A module's turn to be compiled.
struct Turn {
    ticket: Ticket,
    digest: Digest,
    counted_for: String,
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

    /// Takes note of which modules are in use, so that those that wait are compiled first. `used` is called only if a module waits.
    pub fn uses(&self, used: impl FnOnce() -> BTreeSet<Digest>) {
        if let Some(compilers) = &self.compilers {
            compilers.uses(used);
        }
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
                self.report.limit_hit(&order.owner.counted_for(), Limit::from(excess));
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
            Some(compilers) => self.compile_elsewhere(compilers, order, bytes).await,
            None => {
                let (engine, digest) = (self.engine.clone(), order.digest);
                self.block(move || engine.load(&bytes, Some(&digest))).await?
            }
        }
    }

    async fn compile_elsewhere(
        &self,
        compilers: &Arc<Compilers>,
        order: &Order<'_>,
        bytes: Vec<u8>,
    ) -> Result<Module, Failure> {
        let digest = order.digest;
        let mut bytes = Some(bytes);
        loop {
            if let Some(known) = self.known(compilers, &digest) {
                return known;
            }
            let ticket = compilers.want(digest, order.is_used);
            if !ticket.has_begun() {
                // However many modules wait, their bytes are not in memory.
                bytes = None;
                ticket.begun().await;
                if !order.owner.has_module() {
                    return Err(Failure::transient(reasons::DELETED, "the Module is gone"));
                }
                // Another Module may have the same bytes.
                if let Some(known) = self.known(compilers, &digest) {
                    return known;
                }
            }
            let bytes = match bytes.take() {
                Some(bytes) => bytes,
                None => fetch::bytes(&self.cluster, order.source).await?,
            };
            let turn = Turn { ticket, digest, counted_for: order.owner.counted_for() };
            let (loaded, ticket) = self.compile_in_turn(compilers, order.module, turn, bytes).await?;
            match loaded {
                Err(_) if ticket.was_stopped() => {
                    debug!(module = order.module, "Compiled later: it takes long")
                }
                loaded => return loaded,
            }
        }
    }

    /// Verifies and compiles bytes that are no Module yet, as those of a Module are: in turn with them, and within the same limits. `what`
    /// names them where memory is reserved. The bytes stay in memory while they wait.
    ///
    /// # Errors
    /// Why they are no module that may be compiled, or no guest.
    pub async fn examine(&self, what: &str, bytes: Vec<u8>, counted_for: &str) -> Result<Module, Failure> {
        let bytes: Arc<[u8]> = bytes.into();
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
        loop {
            if let Some(known) = self.known(compilers, &digest) {
                return known;
            }
            let ticket = compilers.want(digest, false);
            ticket.begun().await;
            if let Some(known) = self.known(compilers, &digest) {
                return known;
            }
            let turn = Turn { ticket, digest, counted_for: counted_for.to_owned() };
            let (loaded, ticket) = self.compile_in_turn(compilers, what, turn, Arc::clone(&bytes)).await?;
            match loaded {
                Err(_) if ticket.was_stopped() => debug!(what, "Compiled later: it takes long"),
                loaded => return loaded,
            }
        }
    }

    /// Compiles bytes whose turn it is, and gives the ticket back when the compiler has ended.
    async fn compile_in_turn<B: AsRef<[u8]> + Send + 'static>(
        &self,
        compilers: &Compilers,
        what: &str,
        turn: Turn,
        bytes: B,
    ) -> Result<(Result<Module, Failure>, Ticket), Failure> {
        let Turn { ticket, digest, counted_for } = turn;
        let engine = self.engine.clone();
        // Each Module has its own lane, so one that waits for much memory holds up no other. The compiler gets no more than was
        // reserved.
        let wanted = (compilers.data_bytes_of(bytes.as_ref().len()) as u64).max(describe_bytes());
        let reserved = wanted.min(self.budget.bytes_max());
        let lane = format!("module {what}");
        let room = self.budget.reserve(&lane, Purpose::Compile, reserved).await?;
        // The ticket is given back when its thread ends, because the compiler runs until then.
        self.block(move || {
            let _room = room;
            let data_bytes_max = usize::try_from(reserved).unwrap_or(usize::MAX);
            let compile = |job: pintle_engine::Job<'_>| ticket.compile(&job, &counted_for, data_bytes_max);
            (engine.load_by(Compiler::Elsewhere(&compile), bytes.as_ref(), Some(&digest)), ticket)
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
