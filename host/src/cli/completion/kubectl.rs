//! kubectl as a shell: it completes its plugins by running `kubectl_complete-NAME` and reading the candidates that this prints.

use std::{
    ffi::OsString,
    io::{self, Write},
    path::Path,
};

use clap::Command;
use clap_complete::{engine, env::EnvCompleter};

use super::write_lines;

/// kubectl, which passes the words behind `kubectl pintle`, the unfinished one last.
pub(super) struct Kubectl;

/// What kubectl is told in the last line, as a sum: cobra's `ShellCompDirective`.
const NO_SPACE: u8 = 2;
const NO_FILES: u8 = 4;

impl EnvCompleter for Kubectl {
    fn name(&self) -> &'static str {
        "kubectl"
    }

    fn is(&self, name: &str) -> bool {
        name == "kubectl"
    }

    fn write_registration(
        &self,
        variable: &str,
        _name: &str,
        _bin: &str,
        completer: &str,
        to: &mut dyn Write,
    ) -> io::Result<()> {
        writeln!(
            to,
            "#!/bin/sh\n# kubectl runs this to complete \"kubectl pintle\". Its name is kubectl_complete-pintle.\n\
             {variable}=kubectl {completer} -- {completer} \"$@\""
        )
    }

    fn write_complete(
        &self,
        command: &mut Command,
        words: Vec<OsString>,
        folder: Option<&Path>,
        to: &mut dyn Write,
    ) -> io::Result<()> {
        let last = words.len().saturating_sub(1);
        let candidates = engine::complete(command, words, last, folder)?;
        write_lines(&candidates, to)?;
        // Something follows a folder and a flag with `=`. Files are among the candidates where they fit.
        let goes_on = candidates.iter().all(|candidate| {
            let value = candidate.get_value().to_string_lossy();
            value.ends_with(['/', '='])
        });
        let directive = if goes_on && !candidates.is_empty() { NO_SPACE | NO_FILES } else { NO_FILES };
        writeln!(to, ":{directive}")
    }
}
