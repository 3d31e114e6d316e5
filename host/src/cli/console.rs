//! The command `pintle console`: it serves the console on this machine, with the rights of a kubeconfig.

mod entry;

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
};

use clap::Args;
use pintle_console::{
    self as console, About, App, Assets, Door,
    door::local::{Address, Fate, Local},
};
use pintle_gateway::{LocalDocuments, Seats};
use pintle_kubernetes::connect::Connect;
use pintle_modules::{Budget, memory_limit};
use pintle_runtime::{clock, stop_signal};
use tokio::sync::watch;

use super::{
    live, output,
    problem::{CommandStatus, Problem},
};
use entry::Entry;

/// What opens a page in the browser of whoever is logged in.
const OPENERS: &[&str] = if cfg!(target_os = "macos") { &["open"] } else { &["xdg-open", "wslview"] };

/// Open the console in a browser
///
/// The console shows and edits what the systems of the cluster are made of, and the modules behind them. It is served on this machine
/// alone and acts with the rights of your kubeconfig. The URL has a secret: whoever opens it first acts as you, as long as the command
/// runs. Each is good once, and the next is printed; if one is opened twice, everybody is signed out. Ctrl-C stops it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Open the console of the current context
  pintle console

  # Print the URL and open nothing, at a port of yours
  pintle console --port 8020 --no-open")]
pub(super) struct Console {
    /// Port on this machine [default: any free port]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,

    /// Print the URL only
    #[arg(long)]
    no_open: bool,

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
        let port = match listeners.first() {
            Some(listener) => listener.local_addr()?.port(),
            None => self.port,
        };
        let budget = Budget::new(memory_limit::process_bytes());
        let documents = LocalDocuments::new(upstream.clone(), budget.clone())?;
        let (stopping, is_stopping) = watch::channel(false);
        let shop = console::Shop::default();
        let local = Arc::new(Local::new(port));
        let app = Arc::new(App {
            door: Door::local(Arc::clone(&local)),
            upstream,
            memory: console::Memory::new(budget.clone()),
            assets: self.assets.map_or(Assets::Embedded, Assets::Folder),
            documents: Arc::new(documents),
            about: About {
                version: env!("CARGO_PKG_VERSION").into(),
                cluster: self.connect.config().await?.cluster_url.to_string(),
                context: self.connect.context_name(),
            },
            serves_tls: false,
            stopping: is_stopping,
            users: console::Users::default(),
            admission: Arc::new(Seats::default()),
            hub: console::Hub::default(),
            shop: shop.clone(),
        });
        // From here on, Ctrl-C leaves no file behind.
        let stop = stop_signal()?;
        let cluster = app.about.context.as_ref().unwrap_or(&app.about.cluster);
        let address = local.address()?;
        output::print(&format!(
            "The console of {cluster} is at {}\nThis address is good once, and the next one is printed then. Ctrl-C stops it.\n",
            address.url
        ))?;
        let browser = match self.no_open {
            true => None,
            false => Some(tokio::spawn(browse(local.address()?))),
        };
        let renewing = tokio::spawn(renew(local, address));
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
        renewing.abort();
        if let Some(browser) = browser {
            browser.abort();
            // Its file is gone with it.
            let _ = browser.await;
        }
        Ok(CommandStatus::Fine)
    }
}

/// Prints the next address as soon as one is no longer good.
async fn renew(local: Arc<Local>, mut address: Address) {
    loop {
        let fate = address.fate().await;
        let next = match local.address() {
            Ok(next) => next,
            Err(error) => return eprintln!("warning: there are no more addresses: {error}"),
        };
        // Where nobody reads what is printed, nobody signs in any more, and who has signed in goes on.
        let _ = output::print(&said(fate, &next.url));
        address = next;
    }
}

/// What is said about the address before, and the next one.
fn said(fate: Fate, url: &str) -> String {
    match fate {
        Fate::Used => format!("Somebody signed in. The next address is {url}\n"),
        Fate::Revoked => format!(
            "Everybody was signed out: an address was opened for the second time, so somebody else may know it. Sign in again at {url}\n"
        ),
    }
}

/// Leads a browser to an address, by a file that is there until somebody has come in.
async fn browse(address: Address) {
    let entry = match Entry::to(&address.url) {
        Ok(entry) => entry,
        Err(error) => return eprintln!("warning: no browser is opened: {error}"),
    };
    let file = entry.path();
    // A program that opens a browser may wait for it to end.
    std::thread::spawn(move || open(&file));
    address.fate().await;
    drop(entry);
}

/// Opens a page, if there is a browser. Otherwise there is the address that is printed, which is enough.
fn open(page: &Path) {
    for opener in OPENERS {
        let mut command = Command::new(opener);
        command.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if command.status().is_ok_and(|status| status.success()) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_names_the_next_address_and_why_the_one_before_is_no_longer_good() {
        let url = "http://127.0.0.1:4711/console/#0123abcd";
        let (used, revoked) = (said(Fate::Used, url), said(Fate::Revoked, url));
        for said in [&used, &revoked] {
            assert!(said.ends_with(&format!(" {url}\n")), "{said}");
        }
        assert!(used.contains("signed in") && !used.contains("signed out"));
        assert!(revoked.contains("Everybody was signed out") && revoked.contains("second time"));
    }
}
