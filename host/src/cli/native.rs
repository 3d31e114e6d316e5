//! The native build of a guest, and what it says of a request at which its module trapped: WebAssembly has no place for the message of
//! a panic.

use std::{
    cell::OnceCell,
    io::{self, Seek, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use pintle_core::text;

use super::{
    cargo::{self, Package},
    problem::Problem,
};

/// How much of a panic is shown.
const SHOWN_LINES_MAX: usize = 6;
const SHOWN_BYTES_MAX: usize = 1000;

/// What the module does without: a native call may panic only where the module does. What the guest depends on keeps them, so that
/// `cargo test` has it built already.
const NOT_IN_MODULE: [&str; 2] = ["overflow-checks", "debug-assertions"];

/// Builds the program that writes the generated files of a guest, and calls it.
pub(super) fn build(package: &Package, locked: bool) -> Result<PathBuf, Problem> {
    let words = ["build", "--features", "schema", "--bin", &package.schema];
    let settings =
        NOT_IN_MODULE.map(|check| format!("profile.dev.package.\"{}\".{check}=false", package.name));
    let settings = settings.each_ref().map(String::as_str);
    Package::make(&package.schema, &mut package.cargo(&words, &settings, locked))
}

/// The native build of the guest whose module is tested, made when the first call traps.
pub struct Native<'a> {
    /// The module, if anybody wants to know.
    module: Option<&'a Path>,
    program: OnceCell<Result<PathBuf, String>>,
}

impl<'a> Native<'a> {
    /// For the guest that the module lies in the directory of. Unless it is `wanted`, nothing is built or run.
    pub fn new(module: &'a Path, wanted: bool) -> Self {
        Self { module: wanted.then_some(module), program: OnceCell::new() }
    }

    /// What the native build says of a request at which the module trapped, or how to see it. None where nobody wants to know.
    /// `function` is the word for what was called: `call`, `show` or `store`.
    pub fn says(&self, function: &str, request: &str) -> Option<String> {
        let module = self.module?;
        let program = self.program.get_or_init(|| built(module)).as_ref();
        let said = program.map(|program| {
            call(program, function, request)
                .unwrap_or_else(|error| format!("native run: it cannot be started: {error}"))
        });
        Some(said.unwrap_or_else(Clone::clone))
    }
}

/// Makes the native build of the guest that a module lies in the directory of.
fn built(module: &Path) -> Result<PathBuf, String> {
    let parent = module.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = parent.unwrap_or(Path::new("."));
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

/// What it means for somebody whose module trapped at a request that the native build ended like this at it.
fn told(is_answered: bool, status: &str, stderr: &str) -> String {
    if is_answered {
        return "native run: the guest answers this request. The module may be older than the sources (run: pintle build), or only WebAssembly's limits break it: 32 bits, a stack of 64 KiB".into();
    }
    match panic_in(stderr) {
        Some(panic) => format!("native run: {panic}"),
        None => format!("native run: it ended with {status}: {}", shown(stderr.lines())),
    }
}

/// Calls a function of the guest with a request, and returns what that means.
fn call(program: &Path, function: &str, request: &str) -> io::Result<String> {
    // A file and no pipe: the process may end before it has read everything.
    let mut input = tempfile::tempfile()?;
    input.write_all(request.as_bytes())?;
    input.rewind()?;
    let mut command = Command::new(program);
    command.arg(function).env("RUST_BACKTRACE", "0").stdin(input).stdout(Stdio::null());
    let ended = command.stderr(Stdio::piped()).output()?;
    let stderr = String::from_utf8_lossy(&ended.stderr);
    Ok(told(ended.status.success(), &ended.status.to_string(), &stderr))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broke(stderr: &str) -> String {
        told(false, "exit status: 101", stderr)
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
        assert!(told(true, "", "").starts_with("native run: the guest answers this request."));
        assert_eq!(
            broke("usage: something\n"),
            "native run: it ended with exit status: 101: usage: something"
        );
    }
}
