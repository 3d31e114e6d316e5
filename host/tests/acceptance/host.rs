//! The host, as a process of its own.

use std::{
    fs::{self, OpenOptions},
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use pintle_simulation::scenario::Stop;

/// How long the host may take to become ready, or to end, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(40);

/// A running host. Dropping it ends it.
pub(crate) struct Host {
    child: Child,
    address: SocketAddr,
    admin: SocketAddr,
}

impl Host {
    /// Starts the host with this kubeconfig. What it logs is added to the file.
    pub(crate) fn start(kubeconfig: &Path, log: &Path) -> anyhow::Result<Self> {
        Self::start_as(kubeconfig, log, None)
    }

    /// Starts a host that has this name in Leases, Events and the audit log.
    pub(crate) fn start_as(kubeconfig: &Path, log: &Path, name: Option<&str>) -> anyhow::Result<Self> {
        Self::start_by(&[], kubeconfig, log, &[], name)
    }

    /// Starts a host by way of a command that becomes it, with further flags.
    pub(crate) fn start_through(
        by: &[&str],
        kubeconfig: &Path,
        log: &Path,
        flags: &[&str],
    ) -> anyhow::Result<Self> {
        Self::start_by(by, kubeconfig, log, flags, None)
    }

    fn start_by(
        by: &[&str],
        kubeconfig: &Path,
        log: &Path,
        flags: &[&str],
        name: Option<&str>,
    ) -> anyhow::Result<Self> {
        let free = || TcpListener::bind("127.0.0.1:0")?.local_addr();
        let (address, admin) = (free()?, free()?);
        let log = OpenOptions::new().create(true).append(true).open(log)?;
        let words: Vec<&str> = by.iter().copied().chain([env!("CARGO_BIN_EXE_pintle"), "operator"]).collect();
        let (program, words) = words.split_first().context("a program")?;
        let child = Command::new(program)
            .args(words)
            .args(flags)
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .arg("--bind")
            .arg(address.to_string())
            .arg("--admin-bind")
            .arg(admin.to_string())
            .env_remove("KUBECONFIG")
            // More than it takes to be no longer fresh, and little enough for a test.
            .env("PINTLE_COMPILE_CPU_SECONDS", "7")
            .envs(name.map(|name| ("POD_NAME", name)))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("starting the host")?;
        Ok(Self { child, address, admin })
    }

    /// Whether it says that it is ready.
    pub(crate) fn is_ready(&mut self) -> anyhow::Result<bool> {
        if let Some(status) = self.child.try_wait()? {
            bail!("the host ended: {status}");
        }
        Ok(self.get("/readyz")?.starts_with("HTTP/1.1 200"))
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether its process has ended.
    pub(crate) fn has_ended(&mut self) -> anyhow::Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    /// Whether it says that it leads, or that it is ready and has no rival.
    pub(crate) fn leads(&mut self) -> anyhow::Result<bool> {
        let said = if self.is_ready()? { self.get("/readyz")? } else { String::new() };
        Ok(said.ends_with("ok: this host leads")
            || said.ends_with("ok: this host works, without an election"))
    }

    /// What it replies to a request; nothing when it does not.
    pub(crate) fn get(&self, path: &str) -> anyhow::Result<String> {
        Self::ask(self.address, "GET", path, "")
    }

    /// What its listener for administrators replies.
    pub(crate) fn administer(&self, method: &str, path: &str, body: &str) -> anyhow::Result<String> {
        Self::ask(self.admin, method, path, body)
    }

    fn ask(address: SocketAddr, method: &str, path: &str, body: &str) -> anyhow::Result<String> {
        let Ok(mut stream) = TcpStream::connect(address) else { return Ok(String::new()) };
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        )?;
        let mut reply = String::new();
        if stream.read_to_string(&mut reply).is_err() {
            reply.clear();
        }
        Ok(reply)
    }

    /// Makes it stand still, as a machine does that swaps or is moved.
    pub(crate) fn freeze(&self) -> anyhow::Result<()> {
        self.signal(rustix::process::Signal::STOP)
    }

    /// Lets it go on.
    pub(crate) fn thaw(&self) -> anyhow::Result<()> {
        self.signal(rustix::process::Signal::CONT)
    }

    fn signal(&self, signal: rustix::process::Signal) -> anyhow::Result<()> {
        Ok(rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal)?)
    }

    /// Ends it, and waits until it is gone.
    pub(crate) fn stop(mut self, how: Stop) -> anyhow::Result<()> {
        match how {
            Stop::Killed => self.child.kill()?,
            Stop::Gracefully => self.signal(rustix::process::Signal::TERM)?,
        }
        let until = Instant::now() + PATIENCE;
        while self.child.try_wait()?.is_none() {
            ensure!(Instant::now() < until, "the host does not end within {PATIENCE:?} of being asked to");
            std::thread::sleep(Duration::from_millis(20));
        }
        let status = self.child.wait()?;
        ensure!(
            how == Stop::Killed || status.success(),
            "the host was asked to stop, and ended with {status}"
        );
        Ok(())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a host and waits until it leads: where the last one was killed, that is when its lease has expired.
pub(crate) async fn start_ready(kubeconfig: &Path, log: &Path) -> anyhow::Result<Host> {
    let mut host = Host::start(kubeconfig, log)?;
    wait_until_it_leads(&mut host, log).await?;
    Ok(host)
}

/// Waits until a host leads.
pub(crate) async fn wait_until_it_leads(host: &mut Host, log: &Path) -> anyhow::Result<()> {
    let until = Instant::now() + PATIENCE;
    while !host.leads()? {
        ensure!(
            Instant::now() < until,
            "the host does not lead within {PATIENCE:?}:\n{}",
            tail(log, &[], 20).join("\n")
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// The last lines of a log that contain one of these, or the last of all where none is given.
pub(crate) fn tail(log: &Path, about: &[&str], lines: usize) -> Vec<String> {
    let text = fs::read_to_string(log).unwrap_or_default();
    let concerned = |line: &&str| about.is_empty() || about.iter().any(|about| line.contains(about));
    let mut found: Vec<String> = text.lines().filter(concerned).map(ToOwned::to_owned).collect();
    found.split_off(found.len().saturating_sub(lines))
}

/// Where the host of a run logs.
pub(crate) fn log_path(directory: &Path) -> PathBuf {
    directory.join("host.log")
}
