//! Runs programs, with errors that say which one failed and how.

use std::{
    error::Error,
    ffi::{OsStr, OsString},
    fmt::Display,
    io::IsTerminal as _,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// An error is a text for people.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Cargo's target folder.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |path| root().join(path))
}

/// A program to be run in the workspace.
pub(crate) struct Program(pub(crate) Command);

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

impl Program {
    pub(crate) fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Self {
        self.0.env(key, value);
        self
    }

    pub(crate) fn args<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.0.args(arguments);
        self
    }

    pub(crate) fn folder(mut self, folder: &Path) -> Self {
        self.0.current_dir(folder);
        self
    }

    /// Runs it with its output shown.
    pub(crate) fn go(mut self) -> Result<()> {
        let status = self.0.status().map_err(|error| self.cannot_run(&error))?;
        self.judge(status)
    }

    /// Runs it and takes its output.
    pub(crate) fn output(mut self) -> Result<String> {
        let output = self.0.stderr(Stdio::inherit()).output().map_err(|error| self.cannot_run(&error))?;
        self.judge(output.status)?;
        String::from_utf8(output.stdout)
            .map_err(|_| format!("{} printed something that is no text", self.line()).into())
    }

    /// Its output, if it can be run and succeeds. Its error output is ignored.
    pub(crate) fn asked(mut self) -> Option<String> {
        let output = self.0.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
        String::from_utf8(output.stdout).ok().filter(|_| output.status.success())
    }

    /// Replaces this process by the program. Returns only if that fails.
    pub(crate) fn replace(mut self) -> Result<()> {
        let error = self.0.exec();
        Err(self.cannot_run(&error))
    }

    pub(crate) fn judge(&self, status: std::process::ExitStatus) -> Result<()> {
        if status.success() { Ok(()) } else { Err(format!("failed ({status}): {}", self.line()).into()) }
    }

    pub(crate) fn cannot_run(&self, error: &std::io::Error) -> Box<dyn Error + Send + Sync> {
        format!("cannot run {}: {error}", self.line()).into()
    }

    fn line(&self) -> String {
        let words = std::iter::once(self.0.get_program()).chain(self.0.get_args());
        words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }
}

/// Adds what could not be done to an error.
pub(crate) fn while_doing<E: Display>(what: impl Display) -> impl FnOnce(E) -> Box<dyn Error + Send + Sync> {
    move |error| format!("{what}: {error}").into()
}

/// The path of a built binary.
pub(crate) fn built(name: &str) -> OsString {
    target().join("debug").join(name).into()
}

/// Prints what is being done. The line has colours on a terminal, but not in a file, and not if NO_COLOR is set.
pub(crate) fn say(line: impl Display) {
    let is_allowed = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    match is_allowed && std::io::stdout().is_terminal() {
        true => println!("\u{1b}[1;36m==>\u{1b}[0m {line}"),
        false => println!("==> {line}"),
    }
}
