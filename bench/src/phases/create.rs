//! All roots are created at once.

use std::time::Duration;

use anyhow::{Context, Result};

use crate::{
    figures::Figures,
    loader,
    settings::{Flags, Phase, Who},
    stage::{ObserverScope, Stage, count, mebibytes},
};

/// How long a load may take: this allows a tenth of the measured rate.
pub(crate) fn patience(roots: u32) -> Duration {
    Duration::from_secs(60) + Duration::from_millis(100) * roots
}

/// The first load.
pub(crate) async fn run(stage: &mut Stage<'_>) -> Result<()> {
    let roots = stage.flags.roots;
    load(stage, Phase::Create, 0..roots, 0).await.map(|_| ())
}

/// As many roots again, to measure the memory of each.
pub(crate) async fn further(stage: &mut Stage<'_>) -> Result<()> {
    let roots = stage.flags.roots;
    let before = stage.usage()?;
    let after = load(stage, Phase::Memory, roots..2 * roots, 0).await?;
    let grown = |after: u64, before: u64| mebibytes(after) - mebibytes(before);
    let thousands = f64::from(roots) / 1000.0;
    stage.put(Phase::Memory, "further_1000_mib", grown(after.peak_bytes, before.peak_bytes) / thousands);
    let bytes = grown(after.resident_bytes, before.resident_bytes) * f64::from(1 << 20);
    stage.put(Phase::Memory, "bytes_per_root", bytes / f64::from(roots));
    Ok(())
}

/// Creates these roots and waits until all of them are right and the contestant is quiet.
pub(crate) async fn load(
    stage: &mut Stage<'_>,
    phase: Phase,
    numbers: std::ops::Range<u32>,
    replicas: u32,
) -> Result<crate::process::Usage> {
    let roots = numbers.end - numbers.start;
    println!("  {}: {} creates {roots} roots", phase.name(), stage.who.name());
    let observer = stage.observer(ObserverScope::Nothing).await?;
    let begun = stage.begin()?;
    stage.put(phase, "idle_mib", mebibytes(begun.usage.resident_bytes));
    stage.put(phase, "idle_peak_mib", mebibytes(begun.usage.peak_bytes));
    let (began, right, ()) = tokio::try_join!(
        loader::create(&stage.api, numbers.clone(), replicas),
        observer.wait_right(numbers.end, patience(roots)),
        profile(stage, phase),
    )
    .with_context(|| format!("{} logged:\n{}", stage.who.name(), stage.recipe.log_tail()))?;
    let converged = (right - began).as_secs_f64();
    let ended = stage.end(phase, "", begun).await?;
    drop(observer);
    stage.check_children(numbers, replicas, "1").await?;
    let mutating = ended.calls.iter().filter(|call| call.is_mutating()).count();
    stage.put(phase, "converged_s", converged);
    stage.put(phase, "roots_per_s", f64::from(roots) / converged);
    stage.put(phase, "mutating_calls_per_root", count(mutating) / f64::from(roots));
    println!(
        "    converged {converged:.2} s, quiet {:.2} s, {:.2} calls a root, peak {:.1} MiB",
        ended.quiet_seconds,
        count(mutating) / f64::from(roots),
        mebibytes(ended.usage.peak_bytes)
    );
    Ok(ended.usage)
}

/// How long the API server is profiled: longer than the load of a thousand roots takes.
const PROFILED_SECONDS: u32 = 20;

async fn profile(stage: &Stage<'_>, phase: Phase) -> Result<()> {
    let Some(directory) = &stage.flags.profiles else { return Ok(()) };
    let profile = stage.api.cpu_profile(PROFILED_SECONDS).await?;
    let name = format!("{}-{}-{}.pprof", phase.name(), stage.who.name().to_lowercase(), stage.run);
    std::fs::create_dir_all(directory)?;
    let path = directory.join(name);
    std::fs::write(&path, profile).with_context(|| format!("writing {}", path.display()))
}

/// The number of roots for each concurrency that is tried.
const TRIED_ROOTS: u32 = 300;

/// Tries concurrencies for FLOOR, each on its own control plane. Returns the seconds until all roots are right.
pub(crate) async fn try_floor(flags: &Flags) -> Result<Vec<(u32, f64)>> {
    let mut tried = Vec::new();
    let mut figures = Figures::default();
    for concurrency in [4, 8, 16, 32, 64] {
        let stage = Stage::start(flags, 0, Who::Floor, false, concurrency, &mut figures).await?;
        let observer = stage.observer(ObserverScope::Nothing).await?;
        // The first roots warm up the API server.
        let warm = 100;
        tokio::try_join!(loader::create(&stage.api, 0..warm, 0), observer.wait_right(warm, patience(warm)))?;
        let (began, right) = tokio::try_join!(
            loader::create(&stage.api, warm..warm + TRIED_ROOTS, 0),
            observer.wait_right(warm + TRIED_ROOTS, patience(TRIED_ROOTS)),
        )?;
        drop(observer);
        let seconds = (right - began).as_secs_f64();
        println!("  FLOOR with {concurrency} requests in flight: {TRIED_ROOTS} roots in {seconds:.2} s");
        tried.push((concurrency, seconds));
        stage.stop().await?;
    }
    Ok(tried)
}
