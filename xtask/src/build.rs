//! What is built, and what is started once it is.

use std::{
    ffi::{OsStr, OsString},
    io::Write,
    process::Stdio,
};

use crate::{
    guests,
    progress::{Board, Task},
    run::{Result, built, cargo, program, root, say, while_doing},
};

/// Builds binaries of the workspace. The whole workspace is named each time, and a test with it, since cargo gives dependencies the
/// features that the packages which are named ask for, and those that only tests ask for where there is a test. So each is built once
/// for the demo, the tests and the lints; otherwise the compiler of guests would be built twice, for a feature of a random generator.
pub(crate) fn binaries(board: &Board, name: &str, binaries: &[&str]) -> Result<()> {
    let bins = binaries.iter().flat_map(|binary| ["--bin", binary]);
    let words = ["build", "--workspace", "--test", SMALL_TEST];
    board.cargo(name, cargo(words.into_iter().chain(bins)))
}

/// A test that takes next to nothing to build.
const SMALL_TEST: &str = "requirements";

/// The `pintle` binary, built.
pub(crate) fn pintle(board: &Board) -> Result<OsString> {
    binaries(board, "host", &["pintle"])?;
    Ok(built("pintle"))
}

/// Begins to build the programs of the control plane, beside everything else: Go and cargo each leave a processor idle now and then.
pub(crate) fn control_plane(board: &Board) -> Result<Task> {
    binaries(board, "workbench", &["workbench"])?;
    Ok(board.beside("control plane", program(built("workbench"), ["control-plane"])))
}

/// Builds everything, and becomes the demo.
pub(crate) fn demo(exit: bool) -> Result<()> {
    let board = Board::new();
    say("building the control plane, the host and the guests; the first time takes a while");
    let control_plane = control_plane(&board)?;
    let guests = guests::build(&board)?;
    control_plane.join()?;
    let mut words: Vec<OsString> = vec!["demo".into()];
    for (flag, value) in
        [("--workspace", root().into()), ("--pintle", built("pintle")), ("--guests", guests.folder().into())]
    {
        words.extend([flag.into(), value]);
    }
    words.extend(exit.then(|| "--exit".into()));
    program(built("workbench"), words).replace()
}

/// Becomes a control plane.
pub(crate) fn cluster() -> Result<()> {
    control_plane(&Board::new())?.join()?;
    program(built("workbench"), ["cluster"]).replace()
}

/// Judges every dependency by deny.toml.
pub(crate) fn dependencies(board: &Board) -> Result<()> {
    binaries(board, "workbench", &["workbench"])?;
    let metadata = cargo(["metadata", "--format-version", "1", "--locked"]).output()?;
    let mut judge =
        program(built("workbench"), [OsStr::new("dependencies"), "--workspace".as_ref(), root().as_ref()]);
    let mut child =
        judge.0.stdin(Stdio::piped()).spawn().map_err(while_doing("the dependencies cannot be judged"))?;
    // It reads all before it says anything. Dropping the pipe ends its input.
    child.stdin.take().map_or(Ok(()), |mut input| input.write_all(metadata.as_bytes()))?;
    let status = child.wait()?;
    judge.judge(status)
}
