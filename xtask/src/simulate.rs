//! The operator on the API server in memory.

use xtask::say;

use crate::{build, guests, run::Result};

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
    guests::build()?;
    let search = || build::tests(&["--test", "simulate"]);
    search().args(["--no-run"]).go()?;
    say("search");
    let mut words =
        vec!["--seeds".to_owned(), flags.seeds.to_string(), "--seed".into(), flags.seed.to_string()];
    for (flag, value) in [("--only", &flags.only), ("--replay", &flags.replay)] {
        words.extend(value.iter().flat_map(|value| [flag.to_owned(), value.clone()]));
    }
    search().args(["--quiet", "--"]).args(words).go()
}
