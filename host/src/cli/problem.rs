//! How commands end.

use std::fmt;

/// How a command that could do its work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandStatus {
    /// All is well. Exit code 0.
    Fine,
    /// What was asked about failed, and what is wrong was printed. Exit code 1.
    Failed,
}

/// Why a command could not do its work.
#[derive(Debug)]
pub struct Problem {
    message: String,
    hint: Option<String>,
    exit_code: u8,
}

impl Problem {
    /// A wrong use, or something around the command that does not work. Exit code 2.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, exit_code: 2 }
    }

    /// The thing that was asked about failed. Exit code 1.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { exit_code: 1, ..Self::new(message) }
    }

    /// The same problem, with what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What happened, without what to do.
    pub(super) fn message(&self) -> &str {
        &self.message
    }

    pub(super) fn exit_code(&self) -> u8 {
        self.exit_code
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error: {}", self.message)?;
        match &self.hint {
            Some(hint) => writeln!(f, "hint: {hint}"),
            None => Ok(()),
        }
    }
}

// Every error from below is about files, processes or the network: a caller that knows better says so with `Problem::failed`.
impl<E: Into<anyhow::Error>> From<E> for Problem {
    fn from(error: E) -> Self {
        Self::new(in_one_line(&error.into()))
    }
}

/// An error and its causes. Many errors repeat their cause; it is said once.
pub(super) fn in_one_line(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_said_once() {
        let error =
            anyhow::anyhow!("no such file").context("cannot read f: no such file").context("no cluster");
        assert_eq!(in_one_line(&error), "no cluster: cannot read f: no such file");
    }
}
