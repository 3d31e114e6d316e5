//! The operator as a process: flags in, signals, the server of probes and metrics.

use std::sync::Arc;

use anyhow::{Context, anyhow};
use pintle_engine::{Compiler, Engine, EngineConfig, Meter};
use pintle_kubernetes::observer::Observer;
use pintle_modules::{Budget, Compilers, Report, memory_limit};
use pintle_runtime::{Spawner, clock, stop_signal};
use tracing::info;

use crate::{Flags, Host, Metrics, RootLimits, server};

/// All roots together take one in this many bytes of the memory of the process.
const ROOTS_SHARE: u64 = 4;

/// Runs the operator until it is told to stop.
///
/// # Errors
/// When it cannot start: no API server, no engine, no address to listen on.
pub async fn run(flags: Flags) -> anyhow::Result<()> {
    flags.log.start();
    let identity = flags.identity()?;
    let metrics = Arc::new(Metrics::default());
    let client = flags.connect.client_of(&identity, Arc::clone(&metrics) as Arc<dyn Observer>).await?;
    let config = EngineConfig::new(Meter::Deadline, clock::monotonic);
    let engine = Engine::new(config).context("the WebAssembly engine does not start")?;
    let compilers = Compilers::new(flags.compile_limits(), Arc::clone(&metrics) as Arc<dyn Report>);
    let (check, compile) = (engine.clone(), Arc::clone(&compilers));
    // An engine whose deadline does not fire would let one guest hold a worker for ever.
    tokio::task::spawn_blocking(move || {
        check.self_test(Compiler::Elsewhere(&|job| compile.compile_at_once(&job)))
    })
    .await?
    .context("the engine's deadline does not fire")?;
    let spawner = Spawner::default();
    let server = server::Server::bind(flags.bind)?;
    let budget = Budget::new(flags.memory_budget.unwrap_or_else(memory_limit::process_bytes));
    let standing = budget.standing();
    info!(
        memory_mebibytes = standing.process >> 20, for_calls_mebibytes = standing.capacity >> 20,
        version = env!("CARGO_PKG_VERSION"), identity, address = %server.address(), allocation = ?engine.allocation(),
        "Pintle starts"
    );
    let readiness = server.readiness();
    let stop = stop_signal()?;
    let serving = server.start(&spawner)?;
    let host = Host {
        client,
        engine,
        compilers: Some(compilers),
        metrics,
        identity,
        namespace: flags.namespace,
        leader_elect: flags.leader_elect,
        workers: flags.workers,
        budget,
        root_limits: RootLimits {
            each: flags.max_root_size,
            all: flags.max_roots_size.unwrap_or(standing.process / ROOTS_SHARE),
        },
        spawner,
        guests: None,
        readiness,
    };
    let stopped = async {
        tokio::select! {
            () = stop => Ok(()),
            ended = serving => Err(anyhow!("the server ended: {ended:?}")),
        }
    };
    host.work_until(stopped).await?;
    info!("Stopped");
    Ok(())
}
