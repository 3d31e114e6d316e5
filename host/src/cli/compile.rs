//! The command `pintle compile`: the operator starts it as a process of its own for every module that it compiles.

use std::{
    io::{Read, Write},
    process, thread,
};

use clap::{
    Parser,
    builder::{PossibleValuesParser, TypedValueParser as _},
};
use pintle_engine::{Allocation, EngineConfig, Meter, Precompiler, Target};
use pintle_runtime::clock;
use rustix::process::{Resource, Rlimit, getrlimit, nice, setrlimit};

use super::problem::{CommandStatus, Problem};

/// Compile a module for the operator that started this process
///
/// Reads the module from standard input and writes what it was compiled to, for an engine as the flags have it, of this machine and
/// this very program.
#[derive(Debug, Parser)]
#[command(
    name = "pintle compile",
    after_help = "\
Examples:
  # The operator starts it by itself
  pintle compile < guest.wasm > guest.compiled"
)]
pub(super) struct Compile {
    /// Where the memory of that engine's calls comes from
    #[arg(
        long,
        value_name = "HOW",
        default_value = "pool",
        value_parser = PossibleValuesParser::new(["pool", "on-demand"])
            .map(|how| if how == "pool" { Allocation::Pool } else { Allocation::OnDemand })
    )]
    allocation: Allocation,

    /// What that engine counts calls in
    #[arg(
        long,
        value_name = "WHAT",
        default_value = "deadline",
        value_parser = PossibleValuesParser::new(["deadline", "fuel"])
            .map(|what| if what == "deadline" { Meter::Deadline } else { Meter::Fuel })
    )]
    meter: Meter,

    /// The most memory that any call of it may be given
    #[arg(long, value_name = "BYTES")]
    memory_bytes_max: Option<usize>,

    /// Read so many bytes, and take the end of the input behind them as the end of whoever wants the result
    #[arg(long, value_name = "BYTES")]
    module_bytes: Option<usize>,

    /// End when so much of a processor's time was used
    #[arg(long, value_name = "SECONDS")]
    cpu_seconds: Option<u64>,

    /// Get by with so much memory
    #[arg(long, value_name = "BYTES")]
    data_bytes: Option<u64>,
}

/// How far a compiler steps back behind those who reconcile. Not further: on a busy machine it must still come to an end.
const NICE: i32 = 10;

/// With this much more a compiler is killed that survived its limit of time, in seconds.
const CPU_GRACE_SECONDS: u64 = 5;

/// The exit code of a failure that may pass by itself. The module's own is [`Problem::failed`]'s.
const EXIT_TRANSIENT: i32 = 3;

impl Compile {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        // Before anything is read that somebody else wrote.
        self.limit()?;
        let bytes = self.read()?;
        let compiled = Precompiler::new(&self.target())
            .map_err(|error| Problem::new(error.to_string()))?
            .precompile(&bytes);
        match compiled {
            Ok(artifact) => {
                std::io::stdout().write_all(&artifact)?;
                Ok(CommandStatus::Fine)
            }
            Err(failure) if failure.retry => {
                eprintln!("error: {}", failure.message);
                process::exit(EXIT_TRANSIENT)
            }
            Err(failure) => Err(Problem::failed(failure.message)),
        }
    }

    fn target(&self) -> Target {
        let default = EngineConfig::new(Meter::Deadline, clock::monotonic).memory_bytes_max;
        let memory_bytes_max = self.memory_bytes_max.unwrap_or(default);
        Target { allocation: self.allocation, meter: self.meter, memory_bytes_max }
    }

    fn limit(&self) -> Result<(), Problem> {
        // A core of a compiler is of no use to anybody, and as large as the compiler.
        at_most(Resource::Core, 0, 0)?;
        if let Some(seconds) = self.cpu_seconds {
            at_most(Resource::Cpu, seconds, seconds.saturating_add(CPU_GRACE_SECONDS))?;
        }
        if let Some(bytes) = self.data_bytes {
            at_most(Resource::Data, bytes, bytes)?;
        }
        if self.module_bytes.is_some() {
            // Threads have it from the one that starts them.
            nice(NICE)?;
        }
        Ok(())
    }

    fn read(&self) -> Result<Vec<u8>, Problem> {
        let mut bytes = Vec::new();
        let Some(length) = self.module_bytes else {
            std::io::stdin().read_to_end(&mut bytes)?;
            return Ok(bytes);
        };
        std::io::stdin().take(length as u64).read_to_end(&mut bytes)?;
        if bytes.len() < length {
            return Err(Problem::new("the module ended early"));
        }
        // The operating system tells a child that its parent died by the thread that made it, which may end before the process does. A
        // pipe that nobody else has ends with the process alone.
        thread::Builder::new().name("lifeline".into()).spawn(|| {
            let mut nothing = [0];
            while std::io::stdin().read(&mut nothing).is_ok_and(|read| read > 0) {}
            process::exit(EXIT_TRANSIENT)
        })?;
        Ok(bytes)
    }
}

/// Sets a limit, or leaves it where it is lower.
fn at_most(resource: Resource, soft: u64, hard: u64) -> Result<(), Problem> {
    let ceiling = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let limit = Rlimit { current: Some(soft.min(ceiling)), maximum: Some(hard.min(ceiling)) };
    Ok(setrlimit(resource, limit)?)
}
