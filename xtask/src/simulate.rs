//! The operator on the API server in memory.

use anyhow::Result;

use crate::{
    guests,
    run::{cargo, say},
};

/// The flags of `cargo xtask simulate`.
#[derive(clap::Args)]
pub(crate) struct Flags {
    /// How many plans are run
    #[arg(long, alias = "seeds", default_value_t = 5000, value_name = "N")]
    plans: usize,
    /// The first seed of the plans that are mixtures
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
    let guests = guests::build()?;
    say(format_args!("{} plans", flags.plans));
    let mut words =
        ["test", "--release", "--package", "pintle", "--test", "simulate", "--"].map(str::to_owned).to_vec();
    words.extend(["--plans".into(), flags.plans.to_string(), "--seed".into(), flags.seed.to_string()]);
    for (flag, value) in [("--only", &flags.only), ("--replay", &flags.replay)] {
        words.extend(value.iter().flat_map(|value| [flag.to_owned(), value.clone()]));
    }
    cargo(words).env("PINTLE_GUEST_DIR", guests.folder()).go()
}
