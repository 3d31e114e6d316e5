//! placeholder
use anyhow::Result;
#[derive(clap::Args)]
pub(crate) struct Flags {
    /// End after the last step instead of staying up
    #[arg(long)]
    exit: bool,
}
pub(crate) fn run(_: &Flags) -> Result<()> { Ok(()) }
