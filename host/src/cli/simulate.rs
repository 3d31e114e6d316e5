//! The command `pintle simulate`. The program `pintle-simulate` carries it out: it has the operator, the gateway and an API server in memory
//! in it, which nobody needs in a cluster, and which take long to compile.

use std::{
    env, ffi::OsString, io::ErrorKind, os::unix::process::CommandExt, path::PathBuf, process::Command,
};

use clap::Args;

use super::{
    output::Data,
    problem::{CommandStatus, Problem},
};

/// Test a guest under crashes and errors
///
/// The command runs the operator with the guest on an API server in memory. It runs each scenario once without faults. Then every
/// custom resource must be Ready, unless the scenario expects otherwise. After that it runs the scenario many times with faults: the
/// host crashes, replies are lost, watch events are late or missing, requests fail, and other users change objects. The result must
/// be the same every time, and nothing may be left to do.
///
/// A scenario has `about`, `objects` and `steps`. docs/simulator.md describes the format. A file with objects only is a scenario
/// that creates the objects, deletes the custom resource and creates it again.
///
/// If there is a `reconciler.yaml` beside the module, it must be one that a host accepts for the guest, and grant whatever the manifest
/// declares.
///
/// The exit code is 0 if every property holds, 1 if a property does not hold, and 2 if nothing could be run.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Create, delete and recreate the objects of
  # sample.yaml, with 500 plans of faults
  pintle simulate guest.wasm

  # Run a scenario
  pintle simulate guest.wasm --scenario steps.yaml

  # Run more plans, or a tenth of them
  pintle simulate guest.wasm --seeds 20000
  pintle simulate guest.wasm --quick

  # Repeat one run; a failure prints this line
  pintle simulate guest.wasm \\
    --replay 'sample.yaml seed=0 plan=w3=crash-after'")]
pub struct Simulate {
    /// Module of the guest, the file that `pintle build` wrote
    pub module: PathBuf,

    /// File with a scenario or with objects. Can be repeated [default: sample.yaml beside the module]
    #[arg(long = "scenario", value_name = "FILE")]
    pub scenarios: Vec<PathBuf>,

    /// File with the CRDs of the custom resource and of its children. Can be repeated [default: crd.yaml beside the module]
    #[arg(long = "crd", value_name = "FILE")]
    pub crds: Vec<PathBuf>,

    /// File with the Reconciler [default: one that grants what the guest declares]
    #[arg(long, value_name = "FILE")]
    pub reconciler: Option<PathBuf>,

    /// Number of plans to run
    #[arg(long, value_name = "N", default_value_t = 500, conflicts_with = "replay")]
    pub seeds: usize,

    /// Run one in ten of the plans, and say what that leaves out
    #[arg(long, conflicts_with = "replay")]
    pub quick: bool,

    /// Repeat one run and print everything that happens in it
    #[arg(long, value_name = "LINE")]
    pub replay: Option<String>,

    /// Do not use `crd.yaml` beside the module. The custom resource then has a schema that allows everything
    #[arg(long, conflicts_with = "crds")]
    pub no_crd: bool,

    /// Do not run the guest natively to get the message of a panic
    #[arg(long)]
    pub no_native: bool,

    /// Output format. One of yaml or json [default: text]
    #[arg(short, long, value_name = "yaml|json", hide_possible_values = true)]
    pub output: Option<Data>,
}

/// How to get the program: built as this one was, it is put beside it. The image does not have it.
const HINT: &str = match cfg!(debug_assertions) {
    true => "build it from Pintle's sources: cargo build --package pintle-simulate",
    false => "build it from Pintle's sources: cargo build --release --package pintle-simulate",
};

/// The program that carries it out.
const PROGRAM: &str = "pintle-simulate";

impl Simulate {
    /// Replaces this process by `pintle-simulate`, the one beside this program or else on PATH. It reads the same words again.
    pub(super) fn start(&self) -> Result<CommandStatus, Problem> {
        let beside = env::current_exe().ok().map(|program| program.with_file_name(PROGRAM));
        let program = beside.filter(|program| program.is_file()).unwrap_or_else(|| PROGRAM.into());
        let words: Vec<OsString> = env::args_os().collect();
        let mut command = Command::new(&program);
        if let [name, _, arguments @ ..] = words.as_slice() {
            // The name that it calls itself by in its help: as a plugin of kubectl it has another.
            command.arg0(name).args(arguments);
        }
        let error = command.exec();
        let problem = Problem::new(format!("{} cannot be run: {error}", program.display()));
        Err(match error.kind() {
            ErrorKind::NotFound => problem.hint(HINT),
            _ => problem,
        })
    }
}
