//! The console, as `pintle console` serves it to whoever starts it.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use pintle_testbed::{ControlPlane, Look, eventually};

use super::Server;

/// A console that was started for tests.
pub(crate) struct Console {
    pub(crate) server: Server,
    /// The first address. It signs one browser in, and then the console prints the next.
    pub(crate) url: String,
    /// The file with all that it prints.
    pub(crate) said: PathBuf,
}

impl Console {
    pub(super) fn start(plane: &ControlPlane, pintle: &Path) -> Result<Self> {
        let said = plane.directory().join("logs").join("console.out");
        let output = File::create(&said)?;
        let mut server = start(plane, pintle, &["--no-open"], output.into())?;
        let url = eventually("the console names its address", || {
            let ended = server.process.try_wait()?;
            let printed = fs::read_to_string(&said).unwrap_or_default();
            if let Some(url) = address(&printed) {
                return Ok(Look::Reached(url));
            }
            ensure!(ended.is_none(), "the console has ended: {}", server.last_lines());
            Ok(Look::NotYet(format!("it has printed {printed:?}; {}", server.last_lines())))
        })?;
        Ok(Self { server, url, said })
    }
}

/// Starts `pintle console` with the administrator's kubeconfig.
pub(super) fn start(
    plane: &ControlPlane,
    pintle: &Path,
    arguments: &[&str],
    output: Stdio,
) -> Result<Server> {
    let log = plane.directory().join("logs").join("console.log");
    let mut command = Command::new(pintle);
    command
        .arg("console")
        .args(arguments)
        .env("KUBECONFIG", plane.kubeconfig())
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(File::create(&log)?);
    plane.takes_in(&mut command)?;
    let process = command.spawn().context("cannot start the console")?;
    Ok(Server { name: "console", process, log })
}

/// The first address in what was printed, once its line is whole.
fn address(said: &str) -> Option<String> {
    let (lines, _) = said.rsplit_once('\n')?;
    lines.split_whitespace().find(|word| word.starts_with("http://")).map(str::to_owned)
}
