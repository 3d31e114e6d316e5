//! Ten thousand roots.

use anyhow::Result;

use super::{create, restart};
use crate::{
    calls::Moment,
    figures::Figures,
    loader,
    settings::{Flags, Phase, Who},
    stage::{ObserverScope, Stage, count, mebibytes},
};

pub(crate) async fn run(
    flags: &Flags,
    run: u32,
    who: Who,
    concurrency: u32,
    figures: &mut Figures,
) -> Result<()> {
    let mut stage = Stage::start(flags, run, who, false, concurrency, figures).await?;
    let roots = flags.many;
    println!("  many: {} creates {roots} roots", who.name());
    let observer = stage.observer(ObserverScope::Nothing).await?;
    let begun = stage.begin()?;
    let at = begun.at;
    let api = stage.api.clone();
    let load = tokio::spawn(async move { loader::create(&api, 0..roots, 0).await });
    // Halfway and at the end: the two figures show whether memory grows faster than the number of roots.
    observer.wait_right(roots / 2, create::patience(roots)).await?;
    let half = stage.usage()?;
    let right = observer.wait_right(roots, create::patience(roots)).await?;
    let converged = (right - load.await??).as_secs_f64();
    let ended = stage.end(Phase::Many, "", begun).await?;
    drop(observer);
    stage.check_children(0..roots, 0, "1").await?;
    let mutating = ended.calls.iter().filter(|call| call.is_mutating()).count();
    stage.put(Phase::Many, "converged_s", converged);
    stage.put(Phase::Many, "roots_per_s", f64::from(roots) / converged);
    stage.put(Phase::Many, "mutating_calls_per_root", count(mutating) / f64::from(roots));
    stage.put(Phase::Many, "half_resident_mib", mebibytes(half.resident_bytes));
    println!("    converged {converged:.1} s, peak {:.1} MiB", mebibytes(ended.usage.peak_bytes));
    if who == Who::Pintle {
        restart_over(&mut stage, at).await?;
    }
    stage.stop().await
}

async fn restart_over(stage: &mut Stage<'_>, since: Moment) -> Result<()> {
    stage.wait_quiet(since).await?;
    restart::undisturbed(stage, Phase::Many).await
}
