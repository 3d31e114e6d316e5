//! The operator on the API server in memory.

use crate::{
    build::PACKAGES,
    guests,
    progress::Board,
    run::{Program, Result, cargo, say},
};

/// The flags of `cargo xtask simulate`.
#[derive(clap::Args)]
pub(crate) struct Flags {
    /// How many plans are run: faults at each place first, then mixtures of them, each with its own seed. A tenth as many of the gateway
    #[arg(long, default_value_t = 5000, value_name = "N")]
    seeds: usize,
    /// The seed for the order of the plans. The mixtures have the seeds after it
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Only the scenarios whose name contains this; views: the gateway alone
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Repeat one run, and print everything that happened in it
    #[arg(long, value_name = "LINE")]
    replay: Option<String>,
}

pub(crate) fn run(flags: &Flags) -> Result<()> {
    let mut words =
        vec!["--seeds".to_owned(), flags.seeds.to_string(), "--seed".into(), flags.seed.to_string()];
    for (flag, value) in [("--only", &flags.only), ("--replay", &flags.replay)] {
        words.extend(value.iter().flat_map(|value| [flag.to_owned(), value.clone()]));
    }
    let board = Board::new();
    guests::build(&board)?;
    let compile = ["test"].into_iter().chain(PACKAGES).chain(["--test", "simulate", "--no-run"]);
    board.cargo("search", cargo(compile))?;
    say("search");
    program(&words.iter().map(String::as_str).collect::<Vec<_>>()).go()
}

/// The test of the simulator, with these arguments. Without any, it runs every scenario, as many plans as its flag has by default, and
/// everything that must be caught.
pub(crate) fn program(arguments: &[&str]) -> Program {
    let words = ["test"].into_iter().chain(PACKAGES).chain(["--test", "simulate", "--quiet", "--"]);
    cargo(words).args(arguments)
}
