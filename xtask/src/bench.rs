//! The benchmarks: calls of guests, and the host as built for its image.

use std::{ffi::OsString, fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use crate::{
    console, guests,
    run::{Result, cargo, program, root, say, target},
};

/// The flags of `cargo xtask bench`.
#[derive(clap::Args)]
pub(crate) struct Flags {
    /// Run only this part
    #[arg(long, value_name = "PART")]
    only: Option<Part>,
    /// Another build of `pintle`, which the parts `operator` and `views` measure beside this one
    #[arg(long, value_name = "FILE", value_parser = program_file)]
    before: Option<PathBuf>,
    /// Flags for the parts `operator` and `views`, for instance: --phase create,restart --runs 1
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FLAGS")]
    operator: Vec<OsString>,
}

/// A part of the benchmarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Loading and calling guests
    Engine,
    /// The operator on a real control plane, beside FLOOR and NATIVE
    Operator,
    /// Views through a gateway on a real control plane, beside what they show
    Views,
    /// The console in Chromium, beside requests to the API server. Needs Node and Chromium
    Console,
}

impl Flags {
    /// Whether no control plane is started.
    pub(crate) fn is_engine_alone(&self) -> bool {
        self.only == Some(Part::Engine)
    }
}

pub(crate) fn run(flags: &Flags) -> Result<()> {
    if flags.before.is_some() && matches!(flags.only, Some(Part::Engine | Part::Console)) {
        return Err("--before is for the parts `operator` and `views`".into());
    }
    // A user who asks for phases or compares builds does not want the part `engine`.
    let is_whole = flags.operator.is_empty() && flags.before.is_none();
    let engine = flags.only.map_or(is_whole, |part| part == Part::Engine);
    if engine {
        cargo(["bench", "--package", "pintle-engine"]).env("PINTLE_GUEST_DIR", guests::build()?).go()?;
    }
    if flags.is_engine_alone() {
        return Ok(());
    }
    say("building the host, the benchmark and its guests");
    let packages =
        ["--package", "pintle", "--bin", "pintle", "--package", "pintle-bench", "--bin", "pintle-bench"];
    cargo(["build", "--profile", "dist"].iter().chain(&packages)).go()?;
    let built = target().join("dist");
    if flags.only == Some(Part::Console) {
        guests::build()?;
        let chromium = console::chromium().ok_or("there is no Chromium on PATH")?;
        return console::numbers(&chromium, &built.join("pintle"));
    }
    let guests = guests::build_bench(built.join("pintle").as_os_str())?;
    let mut named: Vec<(&str, OsString)> = vec![
        ("--pintle", built.join("pintle").into()),
        ("--guests", guests.into()),
        ("--json", target().join("bench.json").into()),
    ];
    if flags.only != Some(Part::Views) {
        named.push(("--native", native()?.into()));
    }
    if let Some(before) = &flags.before {
        named.push(("--before", before.into()));
    }
    match flags.only {
        Some(Part::Operator) => named.push(("--part", "operator".into())),
        Some(Part::Views) => named.push(("--part", "views".into())),
        Some(Part::Engine | Part::Console) | None => {}
    }
    let named = named.into_iter().flat_map(|(flag, value)| [flag.into(), value]);
    program(built.join("pintle-bench"), named.chain(flags.operator.iter().cloned())).go()
}

/// A file that can be run. What is none is refused before anything is built; the benchmark then looks whether it is Pintle.
fn program_file(file: &str) -> std::result::Result<PathBuf, String> {
    let path = fs::canonicalize(file).map_err(|error| error.to_string())?;
    let metadata = fs::metadata(&path).map_err(|error| error.to_string())?;
    let is_program = metadata.is_file() && metadata.permissions().mode() & 0o111 != 0;
    if is_program { Ok(path) } else { Err("it is no program".to_owned()) }
}

/// Builds the operator in Go, and returns where it is.
fn native() -> Result<PathBuf> {
    say("building the operator in Go");
    let native = target().join("bench-native");
    let source = root().join("bench/native");
    program("go", ["vet", "./..."]).folder(&source).go()?;
    let build: [OsString; 5] =
        ["build".into(), "-trimpath".into(), "-o".into(), native.clone().into(), ".".into()];
    program("go", build).folder(&source).env("CGO_ENABLED", "0").go()?;
    Ok(native)
}
