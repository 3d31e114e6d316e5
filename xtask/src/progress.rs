//! The progress of a build: one line that changes on a terminal, or a line now and then elsewhere.

use std::{
    io::{BufRead, BufReader, IsTerminal, Read, Write},
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use crate::run::{Program, Result};

/// How often a line is printed without a terminal: often enough to show progress, and rarely enough to be read.
const LINE_EVERY: Duration = Duration::from_secs(20);
/// The narrowest terminal in use. The beginning of a longer line would stay on the screen with each change.
const WIDTH: usize = 79;

/// What is being built, and the progress of each part.
#[derive(Clone)]
pub(crate) struct Board(Arc<Mutex<State>>);

struct State {
    began: Instant,
    is_terminal: bool,
    said: Option<Instant>,
    tasks: Vec<(String, String)>,
}

/// Something that is built in the background.
pub(crate) struct Task {
    name: String,
    board: Board,
    thread: JoinHandle<Result<()>>,
}

impl Task {
    /// Waits until it is built.
    pub(crate) fn join(self) -> Result<()> {
        let outcome = self.thread.join().unwrap_or_else(|_| Err(format!("{}: a panic", self.name).into()));
        self.board.end(&self.name);
        outcome
    }
}

impl Board {
    pub(crate) fn new() -> Self {
        let state = State {
            began: Instant::now(),
            is_terminal: std::io::stderr().is_terminal(),
            said: None,
            tasks: Vec::new(),
        };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Runs cargo and shows its progress. Its warnings and errors are shown, but not what it compiles.
    pub(crate) fn cargo(&self, name: &str, program: Program) -> Result<()> {
        let is_terminal = self.with(|state| state.is_terminal);
        let mut program = program
            .env("CARGO_TERM_PROGRESS_WHEN", "always")
            .env("CARGO_TERM_PROGRESS_WIDTH", "200")
            .env("CARGO_TERM_COLOR", if is_terminal { "always" } else { "never" });
        let mut child =
            program.0.stderr(Stdio::piped()).spawn().map_err(|error| program.cannot_run(&error))?;
        for line in child.stderr.take().into_iter().flat_map(lines) {
            match said_by_cargo(&line) {
                CargoLine::Progress(text) => self.is_at(name, &text),
                CargoLine::Status => {}
                CargoLine::Diagnostic => self.show(&line),
            }
        }
        let status = child.wait()?;
        self.end(name);
        program.judge(status)
    }

    /// Runs a program in the background. Its output lines are shown as progress, and its error output at its end.
    pub(crate) fn beside(&self, name: &str, mut program: Program) -> Task {
        let (board, task) = (self.clone(), name.to_owned());
        let thread = thread::spawn(move || {
            let piped = program.0.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = piped.spawn().map_err(|error| program.cannot_run(&error))?;
            let complaints = child.stderr.take().map(|stderr| thread::spawn(move || text(stderr)));
            for line in child.stdout.take().into_iter().flat_map(lines) {
                board.is_at(&task, &line);
            }
            let status = child.wait()?;
            let complaints = complaints.and_then(|thread| thread.join().ok()).unwrap_or_default();
            program.judge(status).map_err(|error| format!("{}\n{error}", complaints.trim_end()).into())
        });
        Task { name: name.to_owned(), board: self.clone(), thread }
    }

    /// Sets the progress of a task.
    pub(crate) fn is_at(&self, name: &str, text: &str) {
        self.with(|state| {
            match state.tasks.iter_mut().find(|(task, _)| task == name) {
                Some((_, at)) => text.clone_into(at),
                None => state.tasks.push((name.into(), text.into())),
            }
            let now = Instant::now();
            if state.is_terminal {
                eprint!("\r\u{1b}[2K{}", state.line());
                // A failure to show a line is not an error.
                let _ = std::io::stderr().flush();
            } else if state.said.is_none_or(|said| now - said >= LINE_EVERY) {
                state.said = Some(now);
                eprintln!("{}", state.line());
            }
        });
    }

    /// Prints a line that stays.
    pub(crate) fn show(&self, line: &str) {
        self.with(|state| {
            state.clear();
            eprintln!("{line}");
        });
    }

    /// Removes a task that is done or has failed.
    pub(crate) fn end(&self, name: &str) {
        self.with(|state| {
            state.clear();
            state.tasks.retain(|(task, _)| task != name);
        });
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    fn clear(&self) {
        if self.is_terminal {
            eprint!("\r\u{1b}[2K");
        }
    }

    fn line(&self) -> String {
        let tasks: Vec<String> = self.tasks.iter().map(|(name, at)| format!("{name}: {at}")).collect();
        let seconds = self.began.elapsed().as_secs();
        let line = format!("    {}:{:02}  {}", seconds / 60, seconds % 60, tasks.join(" | "));
        if self.is_terminal { line.chars().take(WIDTH).collect() } else { line }
    }
}

/// The kind of a line of cargo's standard error.
#[derive(Clone, Debug, PartialEq, Eq)]
enum CargoLine {
    /// Progress.
    Progress(String),
    /// What cargo starts or has done.
    Status,
    /// Everything else: warnings and errors.
    Diagnostic,
}

/// The words at the start of cargo's lines.
const STATUSES: [&str; 17] = [
    "Adding",
    "Blocking",
    "Building",
    "Checking",
    "Compiling",
    "Dirty",
    "Documenting",
    "Downgrading",
    "Downloaded",
    "Downloading",
    "Executable",
    "Finished",
    "Fresh",
    "Locking",
    "Removing",
    "Running",
    "Updating",
];

fn said_by_cargo(line: &str) -> CargoLine {
    let plain = without_escapes(line);
    if plain.trim().is_empty() && plain != line {
        return CargoLine::Status;
    }
    let plain = plain.trim();
    let Some((word, rest)) = plain.split_once(' ') else { return CargoLine::Diagnostic };
    // "Building [=====>       ] 123/406: cranelift-codegen, regex"
    if word == "Building"
        && let Some((_, rest)) = rest.split_once("] ")
    {
        return CargoLine::Progress(match rest.split_once(": ") {
            Some((count, what)) => format!("{} {}", count.replace('/', " of "), what.trim()),
            None => rest.trim_end_matches(':').replace('/', " of "),
        });
    }
    if word == "Blocking" {
        return CargoLine::Progress(format!("blocking {rest}"));
    }
    if STATUSES.contains(&word) { CargoLine::Status } else { CargoLine::Diagnostic }
}

fn without_escapes(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line.chars();
    while let Some(char) = rest.next() {
        if char == '\u{1b}' {
            // A control sequence ends with its first letter.
            rest.by_ref().find(|char| char.is_ascii_alphabetic());
        } else {
            plain.push(char);
        }
    }
    plain
}

/// The lines of an output as they come. A line may also end with only a carriage return, because progress is overwritten.
fn lines(output: impl Read) -> impl Iterator<Item = String> {
    let mut output = BufReader::new(output);
    let mut after_return = false;
    std::iter::from_fn(move || {
        loop {
            let (line, end) = next_line(&mut output)?;
            let is_rest = line.is_empty() && (after_return || end == Some(b'\r'));
            after_return = end == Some(b'\r');
            if !is_rest {
                return Some(String::from_utf8_lossy(&line).into_owned());
            }
        }
    })
}

/// The text up to the next line end, and that line end; none at the end of the output, or if it cannot be read.
fn next_line(output: &mut impl BufRead) -> Option<(Vec<u8>, Option<u8>)> {
    let mut line = Vec::new();
    loop {
        let here = output.fill_buf().ok()?;
        if here.is_empty() {
            return (!line.is_empty()).then_some((line, None));
        }
        match here.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
            Some(at) => {
                let end = here[at];
                line.extend_from_slice(&here[..at]);
                output.consume(at + 1);
                return Some((line, Some(end)));
            }
            None => {
                line.extend_from_slice(here);
                let length = here.len();
                output.consume(length);
            }
        }
    }
}

fn text(mut output: impl Read) -> String {
    let mut bytes = Vec::new();
    // Whatever could be read until an error is the output.
    let _ = output.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_cargo_says_only_progress_and_diagnostics_are_shown() {
        let progress = |line| match said_by_cargo(line) {
            CargoLine::Progress(text) => text,
            other => panic!("{line}: {other:?}"),
        };
        assert_eq!(progress("    Building [=====>    ] 123/406: regex, serde"), "123 of 406 regex, serde");
        assert_eq!(
            progress("\u{1b}[1m\u{1b}[36m    Building\u{1b}[0m [====] 1/2: pintle(bin)   \u{1b}[K"),
            "1 of 2 pintle(bin)"
        );
        assert_eq!(progress("    Building [        ] 0/2: "), "0 of 2");
        for line in ["   Compiling regex v1.0.0", "    Finished `dev` profile in 1s", "  Downloaded a v1"] {
            assert_eq!(said_by_cargo(line), CargoLine::Status, "{line}");
        }
        for line in ["error[E0308]: mismatched types", "  --> src/main.rs:1:2", "warning: unused", ""] {
            assert_eq!(said_by_cargo(line), CargoLine::Diagnostic, "{line}");
        }
    }

    #[test]
    fn a_line_that_is_written_over_is_several_and_an_empty_one_of_a_diagnostic_stays() {
        let found: Vec<String> = lines(&b"a\rb\r\nerror\n\nnext\r\rlast"[..]).collect();
        assert_eq!(found, ["a", "b", "error", "", "next", "last"]);
    }
}
