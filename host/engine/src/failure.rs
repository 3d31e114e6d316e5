//! Turns errors of wasmtime into failures of the contract.

use std::{char::DecodeUtf16Error, fmt::Write as _, str::Utf8Error, string::FromUtf8Error};

use pintle_wit::{Failure, reasons};
use wasmtime::{Error, Trap, WasmBacktrace};

use crate::limits::{CallLimits, MemoryRefused};

/// The longest message, in bytes. It becomes the message of a condition and of an Event, which may have 32 KiB and 1 KiB.
const MESSAGE_BYTES_MAX: usize = 1024;

/// The longest path, in bytes: far beyond any field of Kubernetes.
const PATH_BYTES_MAX: usize = 256;

/// The longest name of a function in a message, in bytes, and how many of them: enough to find a panic.
const NAME_BYTES_MAX: usize = 80;
const NAMES_MAX: usize = 5;

/// Cuts a text that a guest may have made long. Guests write parts of most messages: names of fields, exports and functions.
pub(crate) fn bounded(mut failure: Failure) -> Failure {
    cut(&mut failure.reason, MESSAGE_BYTES_MAX);
    cut(&mut failure.message, MESSAGE_BYTES_MAX);
    if let Some(path) = &mut failure.path {
        cut(path, PATH_BYTES_MAX);
    }
    failure
}

fn cut(text: &mut String, bytes_max: usize) {
    if text.len() > bytes_max {
        text.truncate(text.floor_char_boundary(bytes_max - "…".len()));
        text.push('…');
    }
}

/// A piece of text that a guest wrote, for a message: short, and on one line.
pub(crate) fn quoted(text: &str) -> String {
    let mut text = text.to_owned();
    cut(&mut text, NAME_BYTES_MAX);
    format!("`{}`", text.escape_debug())
}

/// The failure of a call that ended without an answer.
pub(crate) fn of_call(error: &Error, limits: &CallLimits, memory_bytes_max: usize) -> Failure {
    if let Some(refused) = error.downcast_ref::<MemoryRefused>() {
        let message = format!(
            "the guest asked for {} bytes of memory, the limit is {memory_bytes_max}",
            refused.desired_bytes
        );
        return Failure::transient(reasons::MEMORY, message);
    }
    if let Some(trap) = error.downcast_ref::<Trap>() {
        return of_trap(*trap, error, limits);
    }
    if error.is::<Utf8Error>() || error.is::<FromUtf8Error>() || error.is::<DecodeUtf16Error>() {
        return Failure::terminal(reasons::NOT_UTF8, format!("the guest's answer is not text: {error}"));
    }
    // These two have no type of their own. For each there is a test that fails when wasmtime changes the text.
    let said = format!("{error:#}");
    if said.contains("fuel allocated for hostcalls") {
        let message = format!("the guest's answer is larger than {} bytes", limits.response.bytes);
        return Failure::terminal(reasons::TOO_LARGE, message);
    }
    if said.contains("out of bounds of memory") {
        return Failure::terminal(reasons::OUT_OF_BOUNDS, "the guest's answer lies outside its memory");
    }
    Failure::terminal(reasons::TRAP, format!("the guest broke the component ABI: {said}"))
}

fn of_trap(trap: Trap, error: &Error, limits: &CallLimits) -> Failure {
    let hint = match trap {
        Trap::Interrupt => {
            let milliseconds = limits.timeout.as_millis();
            let message = format!("the guest ran longer than {milliseconds} ms{}", frames(error));
            return Failure::transient(reasons::DEADLINE, message);
        }
        Trap::OutOfFuel => {
            let message = format!("the guest spent {} units of fuel{}", limits.fuel, frames(error));
            return Failure::terminal(reasons::FUEL, message);
        }
        Trap::StackOverflow => {
            let message = format!("the guest used up its stack{}", frames(error));
            return Failure::terminal(reasons::STACK, message);
        }
        Trap::StringOutOfBounds | Trap::ListOutOfBounds => {
            return Failure::terminal(reasons::OUT_OF_BOUNDS, "the guest's answer lies outside its memory");
        }
        Trap::UnreachableCodeReached => " (a panic, in most languages)",
        // The stack of a Rust guest is at the bottom of its memory, so a stack overflow leads to this trap.
        Trap::MemoryOutOfBounds => " (often a stack that was used up: 64 KiB in Rust)",
        _ => "",
    };
    Failure::terminal(reasons::TRAP, format!("the guest trapped: {trap}{hint}{}", frames(error)))
}

/// The place of a trap, as far as the guest contains the names of its functions.
fn frames(error: &Error) -> String {
    let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() else { return String::new() };
    let mut text = String::new();
    for name in backtrace.frames().iter().filter_map(|frame| frame.func_name()).take(NAMES_MAX) {
        let by = if text.is_empty() { ", in" } else { ", called by" };
        // Writing to a String cannot fail.
        let _ = write!(text, "{by} {}", quoted(name));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let failure = bounded(Failure::terminal("X", "é".repeat(2000)).at("p".repeat(300)));
        assert_eq!(failure.message.len(), MESSAGE_BYTES_MAX - 1);
        assert!(failure.message.ends_with("é…"));
        assert_eq!(failure.path.map(|path| path.len()), Some(PATH_BYTES_MAX));
    }

    #[test]
    fn a_quoted_text_stays_on_its_line() {
        assert_eq!(quoted("a\n\u{1b}[31mb"), r"`a\n\u{1b}[31mb`");
    }
}
