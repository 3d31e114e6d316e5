//! Programs as processes of their own.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command},
};

use anyhow::Context;
use pintle_testbed::Server;

/// A process that ends with this value.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server of the built `pintle` with these words and this kubeconfig, by way of a command that becomes it. What it logs is added to
/// the file.
pub fn start(
    by: &[&str],
    words: &[&str],
    kubeconfig: &Path,
    log: &Path,
    environment: &[(&str, &str)],
) -> anyhow::Result<Server> {
    let pintle = pintle()?;
    let pintle = pintle.to_str().context("the path of pintle is not UTF-8")?;
    let whole: Vec<&str> = by.iter().copied().chain([pintle]).chain(words.iter().copied()).collect();
    let (program, rest) = whole.split_first().context("a program")?;
    let mut command = Command::new(program);
    command.args(rest).arg("--kubeconfig").arg(kubeconfig);
    command.env_remove("KUBECONFIG").envs(environment.iter().copied());
    Server::start(&format!("pintle {}", words.first().unwrap_or(&"")), &mut command, log)
}

/// The built `pintle`: cargo puts it one folder above the tests.
fn pintle() -> anyhow::Result<PathBuf> {
    let test = std::env::current_exe()?;
    let folder = test.ancestors().nth(2).context("a test outside of the folder of cargo")?;
    Ok(folder.join("pintle"))
}
