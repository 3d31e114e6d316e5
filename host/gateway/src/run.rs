//! The gateway as a process: flags in, signals, certificates, the control loop and the server.

use std::{path::Path, sync::Arc};

use anyhow::Context;
use kube::Client;
use pintle_console::Parts;
use pintle_engine::{Compiler, Engine, EngineConfig, Meter};
use pintle_kubernetes::{Cluster, observer::Observer};
use pintle_modules::{Budget, Compilers, Loader, Report, Run, child, memory_limit};
use pintle_runtime::{Spawner, clock, stop_signal};
use tokio::sync::watch;
use tracing::info;

use crate::{
    Flags,
    console::Console,
    health,
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
    let engine = engine(&flags, &metrics).await?;
    let console = match flags.console_bind {
        Some(address) => {
            let parts = engine.parts(&client, &metrics, &budget, &spawner);
            Some(Console::bind(address, &flags, &identity, parts).await?)
        }
        None => None,
    };
    let loader = engine.loader(&client, &metrics, &budget, &spawner);
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
    let server = Server::bind(flags.aggregated_bind, tls::server_config(served.clone())?)
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
        health::serve(address, Arc::clone(&gateway), served).await?;
    }
    info!(version = env!("CARGO_PKG_VERSION"), identity, address = %server.address()?, service = %flags.service, "The gateway starts");
    let stop = stop_signal()?;
    match console {
        None => server.serve(gateway, stop).await,
        Some(console) => {
            let (stopping, stops) = watch::channel(false);
            let stop = async {
                stop.await;
                let _ = stopping.send(true);
            };
            let documents = gateway.documents();
            tokio::join!(server.serve(gateway, stop), console.serve(documents, stops));
        }
    }
    info!("Stopped");
    Ok(())
}

/// The engine of this process, and what compiles for it.
struct Guests {
    engine: Engine,
    compilers: Arc<Compilers>,
}

/// Starts the engine. One whose deadline does not fire would let one guest hold a thread for ever, so that is tried first.
async fn engine(flags: &Flags, metrics: &Arc<Metrics>) -> anyhow::Result<Guests> {
    let engine = Engine::new(EngineConfig::new(Meter::Deadline, clock::monotonic))
        .context("the WebAssembly engine does not start")?;
    let run: Run =
        Box::new(|job, limits, stop| child::compile(Path::new(child::THIS_PROGRAM), job, limits, stop));
    let report = Arc::clone(metrics) as Arc<dyn Report>;
    let compilers = Compilers::new(flags.compile_limits(), run, report);
    let (check, compile) = (engine.clone(), Arc::clone(&compilers));
    tokio::task::spawn_blocking(move || {
        check.self_test(Compiler::Elsewhere(&|job| compile.compile_at_once(&job)))
    })
    .await?
    .context("the engine's deadline does not fire")?;
    Ok(Guests { engine, compilers })
}

impl Guests {
    /// What loads the Modules of Views.
    fn loader(&self, client: &Client, metrics: &Arc<Metrics>, budget: &Budget, spawner: &Spawner) -> Loader {
        let Parts { engine, compilers, budget, spawner, report, client, .. } =
            self.parts(client, metrics, budget, spawner);
        Loader::new(Cluster::new(client), engine, compilers, budget, spawner, report)
    }

    /// What the console compiles and calls modules with: the same engine, compilers and memory. The gateway's account reads the bytes of
    /// Modules for everybody who may read the Module.
    fn parts(&self, client: &Client, metrics: &Arc<Metrics>, budget: &Budget, spawner: &Spawner) -> Parts {
        Parts {
            engine: self.engine.clone(),
            compilers: Some(Arc::clone(&self.compilers)),
            budget: budget.clone(),
            spawner: spawner.clone(),
            report: Arc::clone(metrics) as Arc<dyn Report>,
            client: client.clone(),
            reads_modules: true,
        }
    }
}
