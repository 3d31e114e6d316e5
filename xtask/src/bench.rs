//! The benchmarks: calls of guests, and the host as built for its image.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use xtask::{root, say};

use crate::{
    build, console, guests,
    run::{Result, cargo, program, target},
};

/// The flags of `cargo xtask bench`.
#[derive(clap::Args)]
pub(crate) struct Flags {
    /// Run only this part
    #[arg(long, value_name = "PART")]
    only: Option<Part>,
    /// Another build of `pintle`, which the parts `operator` and `views` measure beside this one
    #[arg(long, value_name = "FILE", value_parser = other_build)]
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
    let is_whole = flags.only.is_none() && flags.operator.is_empty() && flags.before.is_none();
    if is_whole || flags.is_engine_alone() {
        cargo(["bench", "--package", "pintle-engine"]).env("PINTLE_GUEST_DIR", guests::build()?).go()?;
    }
    if flags.is_engine_alone() {
        return Ok(());
    }
    say("building the host, the benchmark and its guests");
    let packages =
        ["--package", "pintle", "--bin", "pintle", "--package", "pintle-bench", "--bin", "pintle-bench"];
    cargo(["build", "--profile", "dist"]).args(packages).go()?;
    let built = target().join("dist");
    if flags.only == Some(Part::Console) {
        guests::build()?;
        build::binaries(&["workbench"])?;
        return console::in_browser("numbers", &built.join("pintle"))?.go();
    }
    // The benchmark finds all that is built in this folder and in the one above.
    guests::build_bench(&built.join("pintle"))?;
    if flags.only != Some(Part::Views) {
        native(&target().join("bench-native"))?;
    }
    let mut bench = program(built.join("pintle-bench"), [""; 0]);
    match flags.only {
        Some(Part::Operator) => bench = bench.args(["--part", "operator"]),
        Some(Part::Views) => bench = bench.args(["--part", "views"]),
        Some(Part::Engine | Part::Console) | None => {}
    }
    if let Some(before) = &flags.before {
        bench = bench.args(["--before".as_ref(), before.as_os_str()]);
    }
    bench.args(&flags.operator).go()
}

/// Looks whether a file is a build of Pintle by asking it for its version, since building takes long.
fn other_build(file: &str) -> std::result::Result<PathBuf, String> {
    let path = fs::canonicalize(file).map_err(|error| error.to_string())?;
    let says_so = program(&path, ["--version"]).asked().is_some_and(|said| said.starts_with("pintle "));
    says_so
        .then_some(path)
        .ok_or_else(|| "it does not say that it is Pintle when asked for its --version".to_owned())
}

/// Builds the operator in Go.
fn native(file: &Path) -> Result<()> {
    say("building the operator in Go");
    let go =
        |words: &[&str]| program("go", words).folder(&root().join("bench/native")).env("CGO_ENABLED", "0");
    go(&["vet", "./..."]).go()?;
    go(&["build", "-trimpath", "-o"]).args([file, Path::new(".")]).go()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_build_that_is_none_is_refused_before_anything_is_built() {
        let this_test = std::env::current_exe().unwrap();
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        assert!(other_build("/nowhere/pintle").unwrap_err().contains("No such file"));
        for file in [manifest, this_test.to_str().unwrap()] {
            assert!(other_build(file).unwrap_err().contains("--version"), "{file}");
        }
    }
}
