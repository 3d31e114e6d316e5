//! The operator on the API server in memory.

use anyhow::Result;

use crate::{
    guests,
    run::{cargo, say},
};

/// The flags of `cargo xtask simulate`.
#[derive(clap::Args)]
pub(crate) struct Flags {
    /// How many plans are run: faults at each place first, then mixtures of them, each by a seed of its own
    #[arg(long, default_value_t = 5000, value_name = "N")]
    seeds: usize,
    /// What the order of the plans comes from, and the seed before the first of the mixtures
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Only the scenarios whose name contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Repeat one run, and print all that happened in it
    #[arg(long, value_name = "LINE")]
    replay: Option<String>,
}

pub(crate) fn run(flags: &Flags) -> Result<()> {
    let mut words =
        vec!["--seeds".to_owned(), flags.seeds.to_string(), "--seed".into(), flags.seed.to_string()];
    for (flag, value) in [("--only", &flags.only), ("--replay", &flags.replay)] {
        words.extend(value.iter().flat_map(|value| [flag.to_owned(), value.clone()]));
    }
    simulate(&["--profile", "search"], words)
}

/// How many plans `cargo xtask test` runs: a minute or so of a debug build, after each scenario as it stands.
const PLANS_IN_TEST: usize = 300;

/// Every scenario on the simulator, and the first plans of the search.
pub(crate) fn begin() -> Result<()> {
    simulate(&[], vec!["--seeds".into(), PLANS_IN_TEST.to_string(), "--no-zoo".into()])
}

/// Runs the test of the simulator with these words.
fn simulate(profile: &[&str], words: Vec<String>) -> Result<()> {
    let guests = guests::build()?;
    say("search");
    let test = ["test", "--package", "pintle", "--test", "simulate"].iter().chain(profile).chain(&["--"]);
    let words = test.map(|word| (*word).to_owned()).chain(words);
    cargo(words).env("PINTLE_GUEST_DIR", guests.folder()).go()
}
