//! Generated files, and the check that they are up to date.

use crate::{
    build,
    progress::Board,
    run::{Result, built, program, say},
};

/// Writes every generated file. With `check`, fails if one is stale.
pub(crate) fn run(board: &Board, check: bool) -> Result<()> {
    say(if check { "comparing the generated files" } else { "writing the generated files" });
    build::binaries(board, "generators", &["generators"])?;
    program(built("generators"), check.then_some("--check")).go()
}
