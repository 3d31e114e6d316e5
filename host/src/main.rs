//! `pintle`: the operator and its command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    pintle::cli::main()
}
