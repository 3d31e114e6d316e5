//! The console, as `pintle console` serves it to whoever starts it.

use std::{
    fs::File,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result};
use pintle_testbed::ControlPlane;

use super::Server;

/// A console that was started, and the address that signs its user in.
pub(crate) struct Console {
    pub(crate) server: Server,
    pub(crate) url: String,
}

impl Console {
    /// Starts `pintle console` with the administrator's kubeconfig.
    pub(crate) fn start(plane: &ControlPlane, pintle: &Path, arguments: &[&str]) -> Result<Self> {
        let log = plane.directory().join("logs").join("console.log");
        let mut command = Command::new(pintle);
        command
            .arg("console")
            .args(arguments)
            .env("KUBECONFIG", plane.kubeconfig())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&log)?);
        plane.takes_in(&mut command)?;
        let mut process = command.spawn().context("cannot start the console")?;
        let said = process.stdout.take().map(BufReader::new).context("the console has no output")?;
        let server = Server { name: "console", process, log };
        let mut lines = said.lines().map_while(std::result::Result::ok);
        let url = lines.find_map(|line| {
            line.split_whitespace().find(|word| word.starts_with("http://")).map(str::to_owned)
        });
        let url = url
            .with_context(|| format!("the console names no address; its log is {}", server.log.display()))?;
        Ok(Self { server, url })
    }
}
