//! Running programs, with errors that say which one failed and how.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |path| root().join(path))
}

/// A program to be run in the workspace.
pub(crate) struct Program(Command);

/// Cargo, with these arguments.
pub(crate) fn cargo<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Program {
    program(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), arguments)
}

/// A program, with these arguments.
pub(crate) fn program<S: AsRef<OsStr>>(
    name: impl AsRef<OsStr>,
    arguments: impl IntoIterator<Item = S>,
) -> Program {
    let mut command = Command::new(name);
    command.args(arguments).current_dir(root());
    Program(command)
}

/// A program, with these arguments, in a folder of its own.
pub(crate) fn program_in<S: AsRef<OsStr>>(
    folder: &Path,
    name: impl AsRef<OsStr>,
    arguments: impl IntoIterator<Item = S>,
) -> Program {
    let mut program = program(name, arguments);
    program.0.current_dir(folder);
    program
}

impl Program {
    pub(crate) fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Self {
        self.0.env(key, value);
        self
    }

    /// Runs it with its output shown.
    pub(crate) fn go(mut self) -> Result<()> {
        let status = self.0.status().with_context(|| format!("cannot run {}", self.line()))?;
        if !status.success() {
            bail!("failed ({status}): {}", self.line());
        }
        Ok(())
    }

    /// Runs it and takes its output.
    pub(crate) fn output(mut self) -> Result<String> {
        let output = self
            .0
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("cannot run {}", self.line()))?;
        if !output.status.success() {
            bail!("failed ({}): {}", output.status, self.line());
        }
        String::from_utf8(output.stdout).with_context(|| format!("{} did not print text", self.line()))
    }

    fn line(&self) -> String {
        let words = std::iter::once(self.0.get_program()).chain(self.0.get_args());
        words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }
}

/// A line about what is being done.
pub(crate) fn say(line: impl std::fmt::Display) {
    println!("\u{1b}[1;36m==>\u{1b}[0m {line}");
}
