use std::io::{Read, Write};

use clap::Args;
use pintle_engine::{Engine, EngineConfig, Meter};

use super::problem::{Problem, Verdict};
use crate::clock;

/// Compile a module for the operator that started this process
///
/// Reads the module from standard input and writes what it was compiled to, for this machine and this very program.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # The operator starts it by itself
  pintle compile < guest.wasm > guest.compiled")]
pub(super) struct Compile {}

impl Compile {
    pub(super) fn run(self) -> Result<Verdict, Problem> {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes)?;
        let engine = Engine::new(EngineConfig::new(Meter::Deadline, clock::monotonic))
            .map_err(|error| Problem::failed(error.to_string()))?;
        let compiled = engine.precompile(&bytes).map_err(|failure| Problem::failed(failure.message))?;
        std::io::stdout().write_all(&compiled)?;
        Ok(Verdict::Fine)
    }
}
