//! The contestants, as processes of their own.

use std::{
    fs::{File, OpenOptions},
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    process::{self, Usage},
    settings::{Flags, Who},
};

/// How long a contestant may take to stop.
const STOP_WITHIN: Duration = Duration::from_secs(30);

/// How to start a contestant.
#[derive(Clone, Debug)]
pub(crate) struct Recipe {
    who: Who,
    program: PathBuf,
    kubeconfig: PathBuf,
    log: PathBuf,
    floor_concurrency: u32,
    floor_marked: bool,
    /// The logic of NATIVE. Pintle's logic comes from the cluster.
    pub(crate) logic: u32,
}

/// A running contestant. Dropping it kills it.
pub(crate) struct Running {
    child: Child,
    /// The address of Pintle's metrics.
    address: Option<SocketAddr>,
}

impl Recipe {
    pub(crate) fn new(
        who: Who,
        flags: &Flags,
        kubeconfig: PathBuf,
        directory: &Path,
        floor_concurrency: u32,
    ) -> Result<Self> {
        let program = match who {
            Who::Floor => std::env::current_exe()?,
            Who::Native => flags.native.clone().context("--native says where NATIVE is")?,
            Who::Pintle => flags.pintle.clone(),
        };
        let log = directory.join("logs").join(format!("{}.log", who.name().to_lowercase()));
        Ok(Self {
            who,
            program,
            kubeconfig,
            log,
            floor_concurrency,
            floor_marked: flags.floor_marked,
            logic: 1,
        })
    }

    fn command(&self) -> Result<Command> {
        let log = open_log(&self.log)?;
        let mut command = Command::new(&self.program);
        command.env("KUBECONFIG", &self.kubeconfig).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        Ok(command)
    }

    pub(crate) fn start(&self) -> Result<Running> {
        let mut command = self.command()?;
        let mut address = None;
        match self.who {
            Who::Floor => self.floor(&mut command),
            Who::Native => {
                command.arg("--health-probe-bind-address=0").arg(format!("--logic={}", self.logic));
            }
            Who::Pintle => {
                let free = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
                command.args(["operator", "--bind", &free.to_string(), "--kubeconfig"]).arg(&self.kubeconfig);
                address = Some(free);
            }
        }
        let child = command.spawn().with_context(|| format!("starting {}", self.program.display()))?;
        Ok(Running { child, address })
    }

    /// Runs FLOOR over existing roots, to its end.
    pub(crate) async fn floor_swap(&self, logic: u32, statuses: bool) -> Result<()> {
        let mut command = self.command()?;
        self.floor(&mut command);
        command.args(["--swap", "--logic", &logic.to_string()]).args(statuses.then_some("--statuses"));
        let status = tokio::task::spawn_blocking(move || command.status()).await??;
        ensure!(status.success(), "FLOOR ended with {status}:\n{}", self.log_tail());
        Ok(())
    }

    fn floor(&self, command: &mut Command) {
        command.args(["floor", "--concurrency", &self.floor_concurrency.to_string(), "--floor-kubeconfig"]);
        command.arg(&self.kubeconfig).args(self.floor_marked.then_some("--marked"));
    }

    /// The last lines that it logged.
    pub(crate) fn log_tail(&self) -> String {
        log_tail(&self.log)
    }
}

/// Opens a log at its end.
pub(crate) fn open_log(path: &Path) -> Result<File> {
    let log = OpenOptions::new().create(true).append(true).open(path);
    log.with_context(|| format!("opening {}", path.display()))
}

/// The last lines of a log.
pub(crate) fn log_tail(path: &Path) -> String {
    let mut text = String::new();
    // A log that cannot be read counts as empty.
    let _ = File::open(path).and_then(|mut file| file.read_to_string(&mut text));
    let lines: Vec<&str> = text.lines().rev().take(20).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("\n")
}

impl Running {
    /// A process that serves its metrics at this address.
    pub(crate) fn of(child: Child, metrics: SocketAddr) -> Self {
        Self { child, address: Some(metrics) }
    }

    pub(crate) fn usage(&mut self) -> Result<Usage> {
        if let Some(status) = self.child.try_wait()? {
            bail!("it ended: {status}");
        }
        process::usage(self.child.id())
    }

    /// Asks it to stop, and waits until it has stopped.
    pub(crate) async fn stop(mut self) -> Result<()> {
        let process = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(process, rustix::process::Signal::TERM)?;
        let until = Instant::now() + STOP_WITHIN;
        while self.child.try_wait()?.is_none() {
            ensure!(Instant::now() < until, "it does not end within {STOP_WITHIN:?} of being asked to");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Ok(())
    }

    /// The number of calls of guests so far. Zero for a contestant without guests.
    pub(crate) fn guest_calls(&self) -> Result<u64> {
        Ok(self.metric("pintle_guest_call_seconds_count")? as u64)
    }

    /// The sum of the samples whose name and labels begin like this. Zero for a contestant without metrics.
    pub(crate) fn metric(&self, begins: &str) -> Result<f64> {
        let Some(address) = self.address else { return Ok(0.0) };
        let text = http_get(address, "/metrics")?;
        let samples = text.lines().filter(|line| line.starts_with(begins));
        Ok(samples.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Already ended when `stop` ran.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn http_get(address: SocketAddr, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply)?;
    Ok(reply)
}
