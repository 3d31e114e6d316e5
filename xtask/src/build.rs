//! What xtask builds, and what it then starts.

use std::path::{Path, PathBuf};

use xtask::say;

use crate::{
    guests, node,
    run::{Background, Program, Result, built, cargo, program, target},
};

/// The packages of every build but the benchmarks': no demo and no test of tier one needs those.
pub(crate) const PACKAGES: [&str; 5] =
    ["--workspace", "--exclude", "pintle-bench", "--exclude", "guest-bench"];

/// A test that takes almost no time to build.
const SMALL_TEST: &str = "requirements";

/// Builds binaries of the workspace. Each call names the same packages and a test, because cargo enables the features that the named
/// packages ask for, and those that tests ask for only if there is a test. So everything is built once for the demo, the tests and the
/// lints. Otherwise the compiler of guests would be built twice, because of one feature of a random generator.
pub(crate) fn binaries(binaries: &[&str]) -> Result<()> {
    let bins = binaries.iter().flat_map(|binary| ["--bin", binary]);
    cargo(["build", "--test", SMALL_TEST]).args(PACKAGES).args(bins).go()
}

/// `cargo test` of these of the tests, with the packages of [`binaries`].
pub(crate) fn tests(which: &[&str]) -> Program {
    cargo(["test"]).args(PACKAGES).args(which)
}

/// The `pintle` binary, built.
pub(crate) fn pintle() -> Result<PathBuf> {
    binaries(&["pintle"])?;
    Ok(built("pintle"))
}

/// Starts the build of the control plane's programs beside this process. Go and cargo each leave a CPU idle now and then.
pub(crate) fn control_plane() -> Result<Background> {
    binaries(&["workbench"])?;
    program(built("workbench"), ["control-plane"]).begin()
}

/// Writes every generated file. With `check`, fails if one is stale; whether what is rendered is of the chart, a test compares, and what helm
/// makes of it is a step of its own.
pub(crate) fn generated(check: bool) -> Result<()> {
    binaries(&["generators", "workbench"])?;
    program(built("generators"), check.then_some("--check")).go()?;
    if check { Ok(()) } else { program(built("workbench"), ["chart"]).go() }
}

/// The built workbench, for this `pintle` and the built guests.
pub(crate) fn workbench(pintle: &Path, word: &str) -> Program {
    program(built("workbench"), [word]).env("PINTLE", pintle).env("PINTLE_GUESTS", target().join("guests"))
}

/// Builds everything, and replaces this process by the demo. On a node, its Pods run the image.
pub(crate) fn demo(exit: bool, console: bool, on_node: bool) -> Result<()> {
    say("building the control plane, the host and the guests; the first time takes a while");
    let control_plane = control_plane()?;
    let pintle = pintle()?;
    guests::build()?;
    let images = on_node.then(|| node::images(true)).transpose()?;
    control_plane.join()?;
    let flags = [(exit, "--exit"), (console, "--console"), (on_node, "--node")];
    let flags = flags.into_iter().filter_map(|(is_set, flag)| is_set.then_some(flag));
    let demo = workbench(&pintle, "demo").args(flags);
    match images {
        Some(folder) => demo.env("PINTLE_IMAGES", folder).replace(),
        None => demo.replace(),
    }
}

/// Replaces this process by a control plane.
pub(crate) fn cluster() -> Result<()> {
    binaries(&["workbench"])?;
    program(built("workbench"), ["cluster"]).replace()
}
