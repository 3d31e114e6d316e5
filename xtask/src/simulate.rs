//! The operator on the API server in memory.

use crate::{
    guests,
    progress::Board,
    run::{Result, cargo, say},
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
    simulate(&Board::new(), &words)
}

/// Runs the test of the simulator with these arguments. Without any, it runs every scenario, as many plans as its flag has by default, and
/// the zoo.
pub(crate) fn simulate(board: &Board, words: &[String]) -> Result<()> {
    let guests = guests::build(board)?;
    let test = ["test", "--workspace", "--test", "simulate"];
    board.cargo("search", cargo(test).args(["--no-run"]))?;
    say("search");
    cargo(test).args(["--quiet", "--"]).args(words).env("PINTLE_GUEST_DIR", guests.folder()).go()
}
