//! The command `pintle console`: it serves the console on this machine, with the rights of a kubeconfig.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
    sync::Arc,
};

use clap::Args;
use pintle_console::{self as console, About, App, Assets, Door, door::local::Local};
use pintle_gateway::LocalDocuments;
use pintle_kubernetes::connect::Connect;
use pintle_modules::{Budget, memory_limit};
use pintle_runtime::{clock, stop_signal};
use tokio::sync::{Semaphore, watch};

use super::{
    live, output,
    problem::{CommandStatus, Problem},
};

/// What opens a page in the browser of whoever is logged in.
const OPENERS: &[&str] = if cfg!(target_os = "macos") { &["open"] } else { &["xdg-open", "wslview"] };

/// Serve the console on this machine
///
/// The console shows and edits what the systems of the cluster are made of, and the modules behind them. It acts with the rights of your
/// kubeconfig, and begins with the namespace of its context. The command prints its address, which ends with a secret: whoever has it acts
/// as you, as long as the command runs. Ctrl-C stops it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Serve the console of the current context
  pintle console

  # Open it in the browser, at a port of yours
  pintle console --port 8020 --open")]
pub(super) struct Console {
    /// Port on this machine [default: any free port]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,

    /// Open the address in your browser. Other users of the machine can read it in the list of processes
    #[arg(long)]
    open: bool,

    /// Folder to read the pages from, instead of those in this program. For those who change the pages
    #[arg(long, value_name = "DIR")]
    assets: Option<PathBuf>,

    #[command(flatten)]
    connect: Connect,
}

impl Console {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        live::block_on(self.serve())
    }

    async fn serve(self) -> Result<CommandStatus, Problem> {
        // It says in a few words what is wrong, before a browser is opened.
        live::client(&self.connect).await?;
        let identity = clock::process_name("pintle-console")?;
        let upstream = self.connect.console_client(&identity).await?;
        let own = upstream.clone();
        let listeners = console::bind_loopback(self.port).await.map_err(|error| {
            Problem::failed(format!("port {} cannot be listened on: {error}", self.port))
                .hint("name another port with --port, or none")
        })?;
        let address = listeners.first().map(|listener| listener.local_addr()).transpose()?;
        let port = address.map_or(self.port, |address| address.port());
        let budget = Budget::new(memory_limit::process_bytes());
        let documents = LocalDocuments::new(upstream.clone(), budget.clone())?;
        let (stopping, is_stopping) = watch::channel(false);
        let shop = console::Shop::default();
        let local = Local::new(port)?;
        let address = local.address();
        let app = Arc::new(App {
            door: Door::local(local),
            upstream,
            memory: console::Memory::new(budget.clone()),
            assets: self.assets.map_or(Assets::Embedded, Assets::Folder),
            documents: Arc::new(documents),
            about: About {
                version: env!("CARGO_PKG_VERSION").into(),
                cluster: self.connect.config().await?.cluster_url.to_string(),
                context: self.connect.context_name(),
                namespace: self.connect.context_namespace(),
            },
            serves_tls: false,
            stopping: is_stopping,
            users: console::Users::default(),
            requests: Semaphore::new(console::REQUESTS),
            watches: console::Watches::default(),
            shop: shop.clone(),
        });
        let stop = stop_signal()?;
        let cluster = app.about.context.as_ref().unwrap_or(&app.about.cluster);
        output::print(&format!("The console of {cluster} is at {address}\nCtrl-C stops it.\n"))?;
        if self.open {
            // A program that opens a browser may wait for it to end.
            std::thread::spawn(move || open(&address));
        }
        // Compiling the first module takes a moment, which the pages need not wait for.
        let opening = tokio::spawn(async move {
            match console::Workshop::start(own, budget).await {
                Ok(workshop) => shop.open(workshop),
                Err(error) => eprintln!("warning: modules can be neither uploaded nor planned: {error}"),
            }
        });
        let stop = async move {
            stop.await;
            let _ = stopping.send(true);
        };
        console::serve(listeners, None, console::router(app), stop).await;
        opening.abort();
        Ok(CommandStatus::Fine)
    }
}

/// Opens an address, if there is a browser. Otherwise there is what is printed, which is enough.
fn open(address: &str) {
    for opener in OPENERS {
        let mut command = Command::new(opener);
        command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if command.status().is_ok_and(|status| status.success()) {
            return;
        }
    }
}
