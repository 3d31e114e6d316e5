//! The host, as a process of its own.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    sync::OnceLock,
    time::Duration,
};

use crate::{Look, Patience, process};
use anyhow::{Context, ensure};
use pintle_simulation::scenario::Stop;
use pintle_testbed::{Ended, Server, Signal};

/// A running host. Dropping it ends it.
pub struct Host {
    pub server: Server,
    /// Where it answers, once it has logged that.
    address: OnceLock<SocketAddr>,
}

impl Host {
    /// Starts the host with this kubeconfig. What it logs is added to the file.
    pub fn start(kubeconfig: &Path, log: &Path) -> anyhow::Result<Self> {
        Self::start_by(&[], kubeconfig, log, &[], None)
    }

    /// Starts a host that has this name in Leases, Events and the audit log.
    pub fn start_as(kubeconfig: &Path, log: &Path, name: &str) -> anyhow::Result<Self> {
        Self::start_by(&[], kubeconfig, log, &[], Some(("POD_NAME", name)))
    }

    /// Starts a host by way of a command that becomes it, with further flags.
    pub fn start_through(by: &[&str], kubeconfig: &Path, log: &Path, flags: &[&str]) -> anyhow::Result<Self> {
        Self::start_by(by, kubeconfig, log, flags, None)
    }

    fn start_by(
        by: &[&str],
        kubeconfig: &Path,
        log: &Path,
        flags: &[&str],
        name: Option<(&str, &str)>,
    ) -> anyhow::Result<Self> {
        let words = ["operator", "--bind", "127.0.0.1:0"];
        // More than it takes to be no longer fresh, and little enough for a test.
        let mut environment = vec![("PINTLE_COMPILE_CPU_SECONDS", "7")];
        environment.extend(name);
        let server = process::start(by, &[&words[..], flags].concat(), kubeconfig, log, &environment)?;
        Ok(Self { server, address: OnceLock::new() })
    }

    /// What it replies when it is ready. A look that finds its process ended fails.
    pub fn ready(&mut self) -> anyhow::Result<Look<String>> {
        self.server.check()?;
        or_error(self.get("/readyz").map(|said| match said.starts_with("HTTP/1.1 200") {
            true => Look::Reached(said),
            false => Look::NotYet(format!("/readyz: {}", said.replace("\r\n", " "))),
        }))
    }

    /// Whether it says that it leads, or that it is ready and has no rival.
    pub fn leads(&mut self) -> anyhow::Result<Look<()>> {
        Ok(match self.ready()? {
            Look::NotYet(state) => Look::NotYet(state),
            Look::Reached(said) => {
                let says = |what: &str| said.ends_with(what);
                let is_so = says("ok: this host leads") || says("ok: this host works, without an election");
                Look::reached_if(is_so, || said.lines().last().unwrap_or_default().to_owned())
            }
        })
    }

    /// Waits until it leads.
    pub async fn wait_until_it_leads(&mut self) -> anyhow::Result<()> {
        let leads = crate::eventually("the host leads", async || self.leads()).await;
        leads.with_context(|| self.server.end_of_log())
    }

    /// What it replies to a request.
    pub fn get(&self, path: &str) -> anyhow::Result<String> {
        let address = match self.address.get() {
            Some(address) => *address,
            None => {
                let logged = self.server.address_so_far("Pintle starts").context("it does not listen yet")?;
                *self.address.get_or_init(|| logged)
            }
        };
        let reply = ask(address, path, Patience::default().whole())
            .with_context(|| format!("GET {path} of the host at {address}"))?;
        Ok(String::from_utf8(reply)?)
    }

    /// The sum of the series that begin like this.
    pub fn metric(&self, series: &str) -> anyhow::Result<f64> {
        sum_of(&self.get("/metrics")?, series)
    }

    /// Makes it stand still, as a machine does that swaps or is moved.
    pub fn freeze(&self) -> anyhow::Result<()> {
        self.server.signal(Signal::STOP)
    }

    /// Lets it go on.
    pub fn thaw(&self) -> anyhow::Result<()> {
        self.server.signal(Signal::CONT)
    }

    /// Ends it, and waits until it is gone. That it is slow to go is no fault in what is tested.
    pub fn stop(self, how: Stop) -> anyhow::Result<()> {
        if how == Stop::Killed {
            return Ok(());
        }
        if let Ended::WithStatus(status) = self.server.stop()? {
            ensure!(status.success(), "the host was asked to stop, and ended with {status}");
        }
        Ok(())
    }
}

/// Starts a host and waits until it leads: where the last one was killed, that is when its lease has expired.
pub async fn start_ready(kubeconfig: &Path, log: &Path) -> anyhow::Result<Host> {
    let mut host = Host::start(kubeconfig, log)?;
    host.wait_until_it_leads().await?;
    Ok(host)
}

/// A look that failed for a reason that may pass by itself: the error is what is so instead.
pub fn or_error<T>(look: anyhow::Result<Look<T>>) -> anyhow::Result<Look<T>> {
    Ok(look.unwrap_or_else(|error| Look::NotYet(format!("{error:#}"))))
}

/// What a server replies, head and body.
pub fn ask(address: SocketAddr, path: &str, patience: Duration) -> anyhow::Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&address, patience)?;
    stream.set_read_timeout(Some(patience))?;
    // In one piece: some servers of tests read only once.
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply)?;
    Ok(reply)
}

/// The sum of the series that begin like this, in what `/metrics` shows.
pub fn sum_of(metrics: &str, series: &str) -> anyhow::Result<f64> {
    let lines = metrics.lines().filter(|line| line.starts_with(series));
    let values = lines.map(|line| {
        let (_, value) = line.rsplit_once(' ').context("a series without a value")?;
        value.trim().parse::<f64>().with_context(|| line.to_owned())
    });
    values.sum()
}

/// The last lines of a log that contain one of these, or the last of all where none is given.
pub fn tail(log: &Path, about: &[&str], lines: usize) -> Vec<String> {
    let text = fs::read_to_string(log).unwrap_or_default();
    let concerned = |line: &&str| about.is_empty() || about.iter().any(|about| line.contains(about));
    let mut found: Vec<String> = text.lines().filter(concerned).map(ToOwned::to_owned).collect();
    found.split_off(found.len().saturating_sub(lines))
}

/// Where the host of a run logs.
pub fn log_path(directory: &Path) -> PathBuf {
    directory.join("host.log")
}
