//! The gateway as a process: flags in, signals, certificates, the control loop and the server.

use std::sync::Arc;

use anyhow::{Context, anyhow};
use kube::Client;
use pintle_console::Parts;
use pintle_engine::{Compiler, Engine, EngineConfig, Meter};
use pintle_kubernetes::{Cluster, observer::Observer};
use pintle_modules::{Budget, Compilers, Loader, Report, memory_limit};
use pintle_runtime::{Spawner, clock, stop_signal};
use tokio::sync::watch;
use tracing::info;

use crate::{
    Flags,
    answer::Gateway,
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
/// When it cannot start: no API server, no engine, no address to listen on, no certificate in the files. When one of its tasks has died.
pub async fn run(flags: Flags) -> anyhow::Result<()> {
    flags.log.start();
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
    let own = (flags.service.namespace.clone(), flags.service.name.clone());
    match flags.tls_cert_file.clone().zip(flags.tls_private_key_file.clone()) {
        Some((certificate, key)) => {
            let files = Files { certificate, key };
            let first = files.serve(&served).context("the certificate in the files cannot be served")?;
            spawner.spawn_lasting(files.follow(served.clone(), first, spawner.clone()));
        }
        None => {
            let cluster = Cluster::new(client.clone());
            let keeper = Keeper::new(cluster, &own.0, &own.1, served.clone(), bundle_to);
            spawner.spawn_lasting(keeper.keep());
        }
    }
    let gateway = Host {
        client,
        loader,
        spawner: spawner.clone(),
        budget,
        metrics,
        identity: identity.clone(),
        own,
        bundle,
        guests: Arc::new(InModules),
    }
    .start();
    let server =
        Server::bind(flags.aggregated_bind, tls::server_config(served.clone(), gateway.authentication())?)
            .await
            .with_context(|| format!("cannot listen on {}", flags.aggregated_bind))?;
    if let Some(address) = flags.health_bind {
        health::serve(address, Arc::clone(&gateway), served, &spawner).await?;
    }
    info!(version = env!("CARGO_PKG_VERSION"), identity, address = %server.address()?, service = %flags.service, "The gateway starts");
    let stopped = serve(server, console, gateway, stop_signal()?, &spawner).await;
    info!("Stopped");
    stopped
}

/// Serves until the process is told to stop.
///
/// # Errors
/// When one of its tasks ended although nobody had asked it to: what is served would be what it was then, for ever.
async fn serve(
    server: Server,
    console: Option<Console>,
    gateway: Arc<Gateway<Client>>,
    told: impl Future<Output = ()>,
    spawner: &Spawner,
) -> anyhow::Result<()> {
    let (stopping, stops) = watch::channel(false);
    let stop = async {
        let stopped = tokio::select! {
            () = told => Ok(()),
            task = spawner.ended() => Err(anyhow!("a task of the gateway ended: {task}")),
        };
        let _ = stopping.send(true);
        stopped
    };
    let Some(console) = console else { return server.serve(gateway, stop).await };
    let documents = gateway.documents();
    tokio::join!(server.serve(gateway, stop), console.serve(documents, stops)).0
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
    let report = Arc::clone(metrics) as Arc<dyn Report>;
    let compilers = Compilers::new(flags.compile_limits(), report);
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

#[cfg(test)]
mod tests {
    use std::{net::Ipv4Addr, time::Duration};

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;

    use super::*;

    /// An API server with one View. Who writes a status panics.
    async fn api_server(request: Request<Body>) -> std::io::Result<Response<Body>> {
        let asked = request.uri().to_string();
        assert!(!asked.contains("/status"), "a mistake in the control loop");
        if asked.starts_with("/api/") || asked.contains("watch=true") {
            std::future::pending::<()>().await;
        }
        let view = json!({"metadata": {"name": "llamas"},
            "spec": {"module": "farm", "view": "llamas", "serve": {"aggregated": {}}}});
        let items = if asked.contains("/views") { vec![view] } else { Vec::new() };
        let list = json!({"metadata": {"resourceVersion": "1"}, "items": items});
        Ok(Response::new(Body::from(list.to_string().into_bytes())))
    }

    #[tokio::test(start_paused = true)]
    async fn a_gateway_whose_control_loop_has_died_ends_with_an_error() {
        let client = Client::new(tower::service_fn(api_server), "default");
        let (spawner, metrics) = (Spawner::default(), Arc::new(Metrics::default()));
        let engine = Engine::new(EngineConfig::new(Meter::Fuel, || Duration::ZERO)).unwrap();
        let budget = Budget::fixed(64 << 20);
        let loader = Loader::new(
            Cluster::new(client.clone()),
            engine,
            None,
            budget.clone(),
            spawner.clone(),
            Arc::clone(&metrics) as Arc<dyn Report>,
        );
        let gateway = Host {
            client,
            loader,
            spawner: spawner.clone(),
            budget,
            metrics,
            identity: "gateway-1".into(),
            own: ("pintle-system".into(), "pintle-gateway".into()),
            bundle: watch::channel(String::new()).1,
            guests: Arc::new(InModules),
        }
        .start();
        let tls = tls::server_config(tls::Served::default(), gateway.authentication()).unwrap();
        let server = Server::bind((Ipv4Addr::LOCALHOST, 0).into(), tls).await.unwrap();
        let serving = serve(server, None, gateway, std::future::pending(), &spawner);
        let ended = tokio::time::timeout(Duration::from_secs(3600), serving).await.expect("it goes on");
        let why = ended.unwrap_err().to_string();
        assert!(why.ends_with("control::Control::run"), "{why}");
    }
}
