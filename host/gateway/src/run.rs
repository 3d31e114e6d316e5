//! The gateway as a process: flags in, signals, certificates, the control loop and the server.

use std::{path::Path, sync::Arc};

use anyhow::Context;
use kube::Client;
use pintle_engine::{Compiler, Engine, EngineConfig, Meter};
use pintle_kubernetes::{Cluster, observer::Observer};
use pintle_modules::{Budget, Compilers, Loader, Report, Run, child, memory_limit};
use pintle_runtime::{Spawner, clock, stop_signal};
use tokio::sync::watch;
use tracing::info;

use crate::{
    Flags, health,
    host::Host,
    metrics::Metrics,
    server::Server,
    show::InModules,
    tls::{self, Files, Keeper},
};

/// Runs the gateway until it is told to stop.
///
/// # Errors
/// When it cannot start: no API server, no engine, no address to listen on, no certificate in the files.
pub async fn run(flags: Flags) -> anyhow::Result<()> {
    let _ = flags.log.start();
    let identity = Flags::identity()?;
    let metrics = Arc::new(Metrics::default());
    let client = flags.connect.client_of(&identity, Arc::clone(&metrics) as Arc<dyn Observer>).await?;
    let spawner = Spawner::default();
    let budget = Budget::new(flags.memory_budget.unwrap_or_else(memory_limit::process_bytes));
    let loader = loader(&flags, &client, &metrics, &budget, &spawner).await?;
    let served = tls::Served::default();
    let (bundle_to, bundle) = watch::channel(String::new());
    let (carried, carried_by) = watch::channel(None);
    let own = (flags.service.namespace.clone(), flags.service.name.clone());
    match flags.tls_cert_file.clone().zip(flags.tls_private_key_file.clone()) {
        Some((certificate, key)) => {
            let files = Files { certificate, key };
            let first = files.serve(&served).context("the certificate in the files cannot be served")?;
            spawner.spawn(files.follow(served.clone(), first, spawner.clone()));
        }
        None => {
            let cluster = Cluster::new(client.clone());
            let keeper = Keeper::new(cluster, &own.0, &own.1, served.clone(), bundle_to, carried_by);
            spawner.spawn(keeper.keep());
        }
    }
    let server = Server::bind(flags.aggregated_bind, tls::server_config(served)?)
        .await
        .with_context(|| format!("cannot listen on {}", flags.aggregated_bind))?;
    let gateway = Host {
        client,
        loader,
        spawner,
        budget,
        metrics,
        identity: identity.clone(),
        own,
        bundle,
        carried,
        guests: Arc::new(InModules),
    }
    .start();
    if let Some(address) = flags.health_bind {
        health::serve(address, Arc::clone(&gateway)).await?;
    }
    info!(version = env!("CARGO_PKG_VERSION"), identity, address = %server.address()?, service = %flags.service, "The gateway starts");
    server.serve(gateway, stop_signal()?).await;
    info!("Stopped");
    Ok(())
}

/// What loads modules. An engine whose deadline does not fire would let one guest hold a thread for ever, so that is tried first.
async fn loader(
    flags: &Flags,
    client: &Client,
    metrics: &Arc<Metrics>,
    budget: &Budget,
    spawner: &Spawner,
) -> anyhow::Result<Loader> {
    let engine = Engine::new(EngineConfig::new(Meter::Deadline, clock::monotonic))
        .context("the WebAssembly engine does not start")?;
    let run: Run =
        Box::new(|job, limits, stop| child::compile(Path::new(child::THIS_PROGRAM), job, limits, stop));
    let report = Arc::clone(metrics) as Arc<dyn Report>;
    let compilers = Compilers::new(flags.compile_limits(), run, Arc::clone(&report));
    let (check, compile) = (engine.clone(), Arc::clone(&compilers));
    tokio::task::spawn_blocking(move || {
        check.self_test(Compiler::Elsewhere(&|job| compile.compile_at_once(&job)))
    })
    .await?
    .context("the engine's deadline does not fire")?;
    let cluster = Cluster::new(client.clone());
    Ok(Loader::new(cluster, engine, Some(compilers), budget.clone(), spawner.clone(), report))
}
