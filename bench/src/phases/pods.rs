//! With controllers, and nodes on which Pods only pretend to run.

use anyhow::Result;

use super::create;
use crate::{
    figures::Figures,
    settings::{Flags, Phase, Who},
    stage::Stage,
};

/// The number of roots, and of Pods for each root.
const ROOTS: u32 = 300;
const REPLICAS: u32 = 3;

pub(crate) async fn run(flags: &Flags, run: u32, who: Who, figures: &mut Figures) -> Result<()> {
    let mut stage = Stage::start(flags, run, who, true, 16, figures).await?;
    create::load(&mut stage, Phase::Pods, 0..ROOTS, REPLICAS).await?;
    stage.stop().await
}
