//! The native build of a guest, and what it says of a request at which its module trapped: WebAssembly has no place for the message of
//! a panic.

use std::{
    cell::OnceCell,
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use pintle_core::text;

use super::{
    cargo::{self, Package},
    problem::Problem,
};

/// How long a native call may take. A guest answers in milliseconds, and one that loops does not trap.
const DEADLINE: Duration = Duration::from_secs(10);
/// How much of the standard error of a native call is read, in bytes.
const STDERR_BYTES_MAX: u64 = 64 << 10;
/// How much of a panic is shown.
const SHOWN_LINES_MAX: usize = 6;
const SHOWN_BYTES_MAX: usize = 1000;

/// The arithmetic of the module, which wraps: a native call may panic only where the module does.
const AS_MODULE: [&str; 2] = ["profile.dev.overflow-checks=false", "profile.dev.debug-assertions=false"];

/// Builds the program that writes the generated files of a guest, and calls it.
pub(super) fn build(package: &Package, locked: bool) -> Result<PathBuf, Problem> {
    let mut command = package.cargo();
    command.args(["build", "--features", "schema", "--bin", &package.schema]);
    command.args(["--message-format=json-render-diagnostics"]);
    command.args(cargo::quiet()).args(locked.then_some("--locked"));
    command.args(AS_MODULE.iter().flat_map(|setting| ["--config", setting]));
    let messages = cargo::run(command.stdout(Stdio::piped()), "cargo build")?;
    cargo::program(&messages, &package.schema)
        .ok_or_else(|| Problem::new(format!("cargo built no program {}", package.schema)))
}

/// The native build of the guest whose module is tested, made when the first call traps.
pub struct Native<'a> {
    module: &'a Path,
    wanted: bool,
    program: OnceCell<Result<PathBuf, String>>,
}

impl<'a> Native<'a> {
    /// For the guest that the module lies in the directory of. Unless it is `wanted`, nothing is built or run.
    pub fn new(module: &'a Path, wanted: bool) -> Self {
        Self { module, wanted, program: OnceCell::new() }
    }

    /// What the native build says of a request at which the module trapped, or how to see it. None where nobody wants to know.
    /// `function` is the word for what was called: `call`, `show` or `store`.
    pub fn says(&self, function: &str, request: &str) -> Option<String> {
        if !self.wanted {
            return None;
        }
        match self.program.get_or_init(|| self.built()) {
            Ok(program) => Some(match call(program, function, request) {
                Ok(ended) => ended.told(),
                Err(error) => format!("native run: it cannot be started: {error}"),
            }),
            Err(why) => Some(why.clone()),
        }
    }

    fn built(&self) -> Result<PathBuf, String> {
        let folder = match self.module.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        if !folder.join("Cargo.toml").is_file() {
            return Err("hint: the message of a panic is not in the module; beside the Cargo.toml of its guest, the guest would be run natively to show it".into());
        }
        eprintln!("running the guest natively, to see the message of its panic");
        let package = cargo::package(folder, false);
        let program = package.and_then(|package| {
            package.clean_others()?;
            build(&package, false)
        });
        program.map_err(|problem| {
            let problem = problem.to_string();
            let why = problem.lines().next().unwrap_or_default().trim_start_matches("error: ");
            format!("native run: there is no native build of {}: {why}", folder.display())
        })
    }
}

/// How a native call ended.
#[derive(Debug)]
enum Ended {
    /// With an answer, or a failure of the guest's own.
    Answered,
    /// Otherwise, with this on the standard error.
    Broke { status: String, stderr: String },
    /// Not within [`DEADLINE`].
    TooLate,
}

impl Ended {
    fn of(status: ExitStatus, stderr: &[u8]) -> Self {
        match status.success() {
            true => Self::Answered,
            false => Self::Broke {
                status: status.to_string(),
                stderr: String::from_utf8_lossy(stderr).into_owned(),
            },
        }
    }

    /// What it means for somebody whose module trapped at the same request.
    fn told(&self) -> String {
        match self {
            Self::Answered => "native run: the guest answers this request. The module may be older than the sources (run: pintle build), or only WebAssembly's limits break it: 32 bits, a stack of 64 KiB".into(),
            Self::Broke { status, stderr } => match panic_in(stderr) {
                Some(panic) => format!("native run: {panic}"),
                None => format!("native run: it ended with {status}: {}", shown(stderr.lines())),
            },
            Self::TooLate => format!("native run: no answer within {} s", DEADLINE.as_secs()),
        }
    }
}

/// The message of a panic as the standard library writes it, with its place.
fn panic_in(stderr: &str) -> Option<String> {
    let begin = stderr.find("panicked at ")?;
    let is_message = |line: &&str| !line.starts_with("note: ") && !line.starts_with("stack backtrace:");
    Some(shown(stderr.get(begin..)?.lines().take_while(is_message)))
}

fn shown<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let lines: Vec<&str> = lines.filter(|line| !line.trim().is_empty()).take(SHOWN_LINES_MAX).collect();
    text::clean(&lines.join(" "), SHOWN_BYTES_MAX)
}

/// Calls a function of the guest with a request.
fn call(program: &Path, function: &str, request: &str) -> std::io::Result<Ended> {
    let mut child = Command::new(program)
        .arg(function)
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        let request = request.to_owned();
        // Who ends before it has read everything has said why.
        thread::spawn(move || stdin.write_all(request.as_bytes()));
    }
    let stderr = read(&mut child);
    // The standard error ends when the process does.
    let Ok(stderr) = stderr.recv_timeout(DEADLINE) else {
        child.kill()?;
        child.wait()?;
        return Ok(Ended::TooLate);
    };
    Ok(Ended::of(child.wait()?, &stderr))
}

/// Reads the standard error of a process on a thread of its own. What is too much is read too, so that the process can go on.
fn read(child: &mut Child) -> mpsc::Receiver<Vec<u8>> {
    let (send, receive) = mpsc::channel();
    if let Some(mut stderr) = child.stderr.take() {
        thread::spawn(move || {
            let mut kept = Vec::new();
            let all = (&mut stderr).take(STDERR_BYTES_MAX).read_to_end(&mut kept);
            let _ = all.and_then(|_| std::io::copy(&mut stderr, &mut std::io::sink()));
            // Nobody listens any more after the deadline.
            let _ = send.send(kept);
        });
    }
    receive
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broke(stderr: &str) -> String {
        Ended::Broke { status: "exit status: 101".into(), stderr: stderr.into() }.told()
    }

    #[test]
    fn a_panic_is_told_with_its_place_in_one_line() {
        let stderr = "\nthread 'main' (77) panicked at src/lib.rs:42:13:\nindex out of bounds: the len is 0 but the index is 0\nnote: run with `RUST_BACKTRACE=1`\n";
        assert_eq!(
            broke(stderr),
            "native run: panicked at src/lib.rs:42:13: index out of bounds: the len is 0 but the index is 0"
        );
    }

    #[test]
    fn a_panic_is_cut_and_cannot_write_to_the_terminal() {
        let told =
            broke(&format!("thread 'main' panicked at src/lib.rs:1:1:\n\u{1b}[31m{}", "a\n".repeat(999)));
        assert!(!told.contains('\u{1b}') && told.matches('a').count() < 20, "{told}");
        assert!(broke(&format!("panicked at {}", "a".repeat(9999))).len() < SHOWN_BYTES_MAX + 20);
    }

    #[test]
    fn what_did_not_panic_is_not_called_a_panic() {
        assert!(Ended::Answered.told().starts_with("native run: the guest answers this request."));
        assert_eq!(
            broke("usage: something\n"),
            "native run: it ended with exit status: 101: usage: something"
        );
        assert_eq!(Ended::TooLate.told(), "native run: no answer within 10 s");
    }
}
