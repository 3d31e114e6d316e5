//! The programs that the benchmark starts.

use std::{
    fs::{self, OpenOptions},
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::process::Usage;

/// How long a program may take to stop.
const STOP_WITHIN: Duration = Duration::from_secs(30);

/// A program that runs until it is asked to stop. Dropping it kills it.
pub(crate) struct Running {
    child: Child,
    metrics: SocketAddr,
}

impl Running {
    /// Starts a program, which adds to a log and may serve metrics.
    pub(crate) fn start(command: &mut Command, log: &Path, metrics: SocketAddr) -> Result<Self> {
        let log = OpenOptions::new().create(true).append(true).open(log)?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child =
            command.spawn().with_context(|| format!("starting {}", command.get_program().display()))?;
        Ok(Self { child, metrics })
    }

    pub(crate) fn usage(&mut self) -> Result<Usage> {
        if let Some(status) = self.child.try_wait()? {
            bail!("it ended: {status}");
        }
        Usage::of(self.child.id())
    }

    /// Asks it to stop, and waits until it has stopped.
    pub(crate) async fn stop(mut self) -> Result<()> {
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        let until = Instant::now() + STOP_WITHIN;
        // How long NATIVE takes to stop is a part of its swap.
        while self.child.try_wait()?.is_none() {
            ensure!(Instant::now() < until, "it does not end within {STOP_WITHIN:?} of being asked to");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Ok(())
    }

    /// The sum of the samples whose name and labels begin like this.
    pub(crate) fn metric(&self, begins: &str) -> Result<f64> {
        let mut stream = TcpStream::connect(self.metrics)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut reply = String::new();
        stream.read_to_string(&mut reply)?;
        let samples = reply.lines().filter(|line| line.starts_with(begins));
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

/// An address of the loopback interface that nobody listens on.
pub(crate) fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

/// Runs a program to its end, and returns what it printed.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("starting {command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// The last lines of a log.
pub(crate) fn log_tail(path: &Path) -> String {
    // A log that cannot be read counts as empty.
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().rev().take(20).collect();
    let last: Vec<&str> = lines.into_iter().rev().collect();
    format!("{} ends with:\n{}\n", path.display(), last.join("\n"))
}
