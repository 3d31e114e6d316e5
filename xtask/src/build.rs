//! What xtask builds, and what it then starts.

use std::ffi::OsString;

use crate::{
    guests,
    progress::{Board, Task},
    run::{Result, built, cargo, program, root, say},
};

/// The packages of every build but the benchmarks': no demo and no test of tier one needs those.
pub(crate) const PACKAGES: [&str; 5] =
    ["--workspace", "--exclude", "pintle-bench", "--exclude", "guest-bench"];

/// Builds binaries of the workspace. Each call names the same packages and a test, because cargo enables the features that the named
/// packages ask for, and those that tests ask for only if there is a test. So everything is built once for the demo, the tests and the
/// lints. Otherwise the compiler of guests would be built twice, because of one feature of a random generator.
pub(crate) fn binaries(board: &Board, name: &str, binaries: &[&str]) -> Result<()> {
    let bins = binaries.iter().flat_map(|binary| ["--bin", binary]);
    let words = ["build", "--test", SMALL_TEST];
    board.cargo(name, cargo(words.into_iter().chain(PACKAGES).chain(bins)))
}

/// A test that takes almost no time to build.
const SMALL_TEST: &str = "requirements";

/// The `pintle` binary, built.
pub(crate) fn pintle(board: &Board) -> Result<OsString> {
    binaries(board, "host", &["pintle"])?;
    Ok(built("pintle"))
}

/// Starts the build of the control plane's programs in the background. Go and cargo each leave a CPU idle now and then.
pub(crate) fn control_plane(board: &Board) -> Result<Task> {
    binaries(board, "workbench", &["workbench"])?;
    Ok(board.beside("control plane", program(built("workbench"), ["control-plane"])))
}

/// Builds everything, and replaces this process by the demo.
pub(crate) fn demo(exit: bool, console: bool) -> Result<()> {
    let board = Board::new();
    say("building the control plane, the host and the guests; the first time takes a while");
    let control_plane = control_plane(&board)?;
    pintle(&board)?;
    let guests = guests::build(&board)?;
    control_plane.join()?;
    let mut words: Vec<OsString> = vec!["demo".into()];
    for (flag, value) in
        [("--workspace", root().into()), ("--pintle", built("pintle")), ("--guests", guests.folder().into())]
    {
        words.extend([flag.into(), value]);
    }
    words.extend(exit.then(|| "--exit".into()));
    words.extend(console.then(|| "--console".into()));
    program(built("workbench"), words).replace()
}

/// Replaces this process by a control plane.
pub(crate) fn cluster() -> Result<()> {
    control_plane(&Board::new())?.join()?;
    program(built("workbench"), ["cluster"]).replace()
}
