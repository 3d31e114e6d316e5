//! The built binary in a folder of its own.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// The built program.
const PINTLE: &str = env!("CARGO_BIN_EXE_pintle");

/// An empty folder outside of the repository, that goes with its test.
pub(crate) struct Folder(tempfile::TempDir);

/// What came of a command.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Asks until the answer is as it should be, ten times at most. What needs a cluster is patient for some seconds and then goes on without,
/// and where the machine is slow, the cluster of a test may need longer.
pub(crate) fn ask_until<T>(is_met: impl Fn(&T) -> bool, ask: impl Fn() -> T) -> T {
    (1..10).fold(ask(), |answer, _| if is_met(&answer) { answer } else { ask() })
}

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Where guests are built, which share their dependencies there. Tests that run at once have guests of different names.
    fn target() -> PathBuf {
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("guests")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap_or(Path::new(""))).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        self.run_with(&[], arguments)
    }

    /// The same, which ends with this code.
    pub(crate) fn ends(&self, code: i32, arguments: &[&str]) -> Run {
        let run = self.run(arguments);
        assert_eq!(run.code, code, "{arguments:?}: {run:?}");
        run
    }

    /// With variables in its environment.
    pub(crate) fn run_with(&self, environment: &[(&str, &str)], arguments: &[&str]) -> Run {
        self.run_program(Path::new(PINTLE), environment, arguments)
    }

    /// A line of bash, with the built programs in the PATH.
    pub(crate) fn run_bash(&self, line: &str) -> Run {
        let programs = Path::new(PINTLE).parent().unwrap();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
        let environment =
            [("PATH", path.as_str()), ("REPOSITORY", concat!(env!("CARGO_MANIFEST_DIR"), "/.."))];
        self.run_program(Path::new("bash"), &environment, &["-o", "pipefail", "-c", line])
    }

    /// Another program than the built one.
    pub(crate) fn run_program(
        &self,
        program: &Path,
        environment: &[(&str, &str)],
        arguments: &[&str],
    ) -> Run {
        // cargo builds only the programs of a test's own package. `cargo xtask test` builds this one too.
        let is_built = Path::new(PINTLE).with_file_name("pintle-simulate").is_file();
        let is_wanted = arguments.iter().any(|words| words.contains("simulate"));
        assert!(is_built || !is_wanted, "run: cargo build --package pintle-simulate");
        let output = Command::new(program)
            .args(arguments)
            .current_dir(self.0.path())
            // Neither the cluster nor the build folder of whoever runs the tests, nor what CI tells cargo.
            .env_remove("KUBECONFIG")
            .env_remove("CARGO_INCREMENTAL")
            .env_remove("CARGO_PROFILE_DEV_DEBUG")
            .env("CARGO_TARGET_DIR", Self::target())
            .envs(environment.iter().copied())
            // Nobody sits there who could be asked.
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Run { code: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}
