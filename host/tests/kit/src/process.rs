//! Programs as processes of their own.

use std::{
    fs::{File, OpenOptions},
    io::{Read as _, Seek as _, SeekFrom},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context, bail};
use serde_json::Value;

use crate::{
    Look,
    host::{or_error, tail},
};

/// A process that ends with this value.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server of the built `pintle`, which adds what it logs to a file.
pub struct Server {
    pub process: Running,
    log: PathBuf,
    /// Where its own lines begin in the log.
    begins: u64,
}

impl Server {
    /// Starts it with these words and this kubeconfig, by way of a command that becomes it.
    pub fn start(
        by: &[&str],
        words: &[&str],
        kubeconfig: &Path,
        log: &Path,
        environment: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(log)?;
        let begins = file.metadata()?.len();
        let pintle = pintle()?;
        let pintle = pintle.to_str().context("the path of pintle is not UTF-8")?;
        let words: Vec<&str> = by.iter().copied().chain([pintle]).chain(words.iter().copied()).collect();
        let (program, words) = words.split_first().context("a program")?;
        let child = Command::new(program)
            .args(words)
            .args(["--log-format", "json", "--kubeconfig"])
            .arg(kubeconfig)
            .env_remove("KUBECONFIG")
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .context("starting pintle")?;
        Ok(Self { process: Running(child), log: log.to_owned(), begins })
    }

    pub fn pid(&self) -> u32 {
        self.process.0.id()
    }

    /// Fails when its process has ended.
    pub fn still_runs(&mut self) -> anyhow::Result<()> {
        match self.process.0.try_wait()? {
            Some(status) => bail!("the server ended: {status}\n{}", self.last_words()),
            None => Ok(()),
        }
    }

    /// The last lines of its log.
    pub fn last_words(&self) -> String {
        tail(&self.log, &[], 20).join("\n")
    }

    /// The address that it has bound, as it logs it with this message.
    pub fn logged_address(&self, message: &str) -> anyhow::Result<SocketAddr> {
        let log = self.log.display();
        let mut file = File::open(&self.log).with_context(|| format!("opening {log}"))?;
        file.seek(SeekFrom::Start(self.begins))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        let text = String::from_utf8_lossy(&text);
        let mut lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let line = lines.find(|line| line["message"] == message);
        let line = line.with_context(|| format!("{log} does not say {message:?} yet"))?;
        Ok(line["address"].as_str().with_context(|| format!("no address: {line}"))?.parse()?)
    }

    /// Waits until it has logged that address.
    pub fn wait_for_address(&mut self, message: &str) -> anyhow::Result<SocketAddr> {
        pintle_testbed::eventually(format!("a server says {message:?}"), || {
            self.still_runs()?;
            or_error(self.logged_address(message).map(Look::Reached))
        })
    }
}

/// The built `pintle`: cargo puts it one folder above the tests.
fn pintle() -> anyhow::Result<PathBuf> {
    let test = std::env::current_exe()?;
    let folder = test.ancestors().nth(2).context("a test outside of the folder of cargo")?;
    Ok(folder.join("pintle"))
}
