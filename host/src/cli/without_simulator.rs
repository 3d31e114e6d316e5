//! `pintle simulate` of a `pintle` that was built without the simulator.

use std::ffi::OsString;

use clap::Args;

use super::problem::{CommandStatus, Problem};

/// Test a guest under crashes and errors (not in this build)
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(super) struct Simulate {
    #[arg(hide = true, allow_hyphen_values = true, trailing_var_arg = true)]
    words: Vec<OsString>,
}

#[cfg_attr(feature = "simulation", allow(dead_code, reason = "only its tests are built beside the real one"))]
impl Simulate {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        drop(self.words);
        Err(Problem::new("this pintle was built without the simulator, as it is in the image")
            .hint("build the command line from Pintle's sources: cargo build --release --package pintle"))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        simulate: Simulate,
    }

    #[test]
    fn whatever_is_asked_of_it_the_answer_says_how_to_get_one() {
        let line = Line::parse_from(["simulate", "guest.wasm", "--seeds", "3", "--help"]);
        let problem = line.simulate.run().expect_err("there is none");
        assert!(format!("{problem:?}").contains("cargo build --release --package pintle"), "{problem:?}");
    }
}
