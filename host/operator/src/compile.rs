//! Compiles modules: in this process, or in processes of their own, where [`Compilers`] decides whose turn it is.

pub mod child;
mod compilers;

use std::sync::Arc;

use pintle_core::{budget, reasons};
use pintle_engine::{CallLimits, Compiler, Digest, Module};
use pintle_wit::{Failure, Weight};
use tracing::debug;

use crate::{
    budget::Purpose,
    fetch::{self, Source},
    state::Shared,
};

pub use compilers::Compilers;
pub(crate) use compilers::{Run, retry_after};

/// A module to compile.
pub(crate) struct Order<'a> {
    /// The name of its Module.
    pub(crate) module: &'a str,
    /// The uid of its Module.
    pub(crate) uid: &'a str,
    pub(crate) digest: Digest,
    pub(crate) source: Source<'a>,
    /// Somebody waits for it to be called.
    pub(crate) is_used: bool,
}

/// Compiles a module whose bytes were verified, and asks the guest for its manifest.
///
/// # Errors
/// Why it was not compiled, or why it is no guest.
pub(crate) async fn module(shared: &Shared, order: &Order<'_>, bytes: Vec<u8>) -> Result<Module, Failure> {
    match &shared.compilers {
        Some(compilers) => elsewhere(shared, compilers, order, bytes).await,
        None => {
            let (engine, digest) = (shared.engine.clone(), order.digest);
            shared.block(move || engine.load(&bytes, Some(&digest))).await?
        }
    }
}

async fn elsewhere(
    shared: &Shared,
    compilers: &Arc<Compilers>,
    order: &Order<'_>,
    bytes: Vec<u8>,
) -> Result<Module, Failure> {
    let digest = order.digest;
    let mut bytes = Some(bytes);
    loop {
        if let Some(known) = known(shared, compilers, &digest) {
            return known;
        }
        let ticket = compilers.want(digest, order.is_used);
        if !ticket.has_begun() {
            // However many modules wait, their bytes are not in memory.
            bytes = None;
            ticket.begun().await;
            if !shared.state().has_module(order.module, order.uid) {
                return Err(Failure::transient(reasons::DELETED, "the Module is gone"));
            }
            // Another Module may have the same bytes.
            if let Some(known) = known(shared, compilers, &digest) {
                return known;
            }
        }
        let bytes = match bytes.take() {
            Some(bytes) => bytes,
            None => fetch::bytes(&shared.cluster, order.source).await?,
        };
        let (engine, controller) = (shared.engine.clone(), shared.first_user_of(order.module));
        // Each Module has its own lane, so one that waits for much memory holds up no other. The compiler gets no more than was
        // reserved.
        let wanted = (compilers.data_bytes_of(bytes.len()) as u64).max(describe_bytes());
        let reserved = wanted.min(shared.budget.bytes_max());
        let lane = format!("module {}", order.module);
        let room = shared.budget.reserve(&lane, Purpose::Compile, reserved).await?;
        // The ticket is given back when its thread ends, because the compiler runs until then.
        let (loaded, ticket) = shared
            .block(move || {
                let _room = room;
                let data_bytes_max = usize::try_from(reserved).unwrap_or(usize::MAX);
                let compile = |job: pintle_engine::Job<'_>| ticket.compile(&job, &controller, data_bytes_max);
                (engine.load_by(Compiler::Elsewhere(&compile), &bytes, Some(&digest)), ticket)
            })
            .await?;
        match loaded {
            Err(_) if ticket.was_stopped() => debug!(module = order.module, "Compiled later: it takes long"),
            loaded => return loaded,
        }
    }
}

/// What is known about a module without compiling it.
fn known(shared: &Shared, compilers: &Compilers, digest: &Digest) -> Option<Result<Module, Failure>> {
    compilers.refusal(digest).map(Err).or_else(|| shared.engine.loaded(digest).map(Ok))
}

/// The most memory, in bytes, that the first call of a module takes, which asks for its manifest.
fn describe_bytes() -> u64 {
    let CallLimits { memory_bytes, response, .. } = CallLimits::default();
    let (text, parsed) = (response.bytes, Weight::parsed_bytes_max(response));
    budget::Need { memory_bytes: memory_bytes as u64, text_bytes: text as u64, parsed_bytes: parsed as u64 }
        .of_call(0)
}
