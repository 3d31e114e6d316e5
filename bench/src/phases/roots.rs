//! What concerns all roots.

use std::{
    ops::Range,
    time::{Duration, Instant},
};

use anyhow::Result;

use crate::{
    api::{KINDS, ROOTS},
    loader,
    observer::Observer,
    settings::Phase,
    stage::Stage,
};

/// How long nothing happens.
const IDLE: Duration = Duration::from_secs(60);

/// Creates these roots at once, and waits until all of them are right and the contestant is quiet.
pub(super) async fn create(stage: &mut Stage<'_>, phase: Phase, numbers: Range<u32>) -> Result<()> {
    let observer = Observer::start(&stage.api, &KINDS[..1]).await?;
    let begun = stage.begin()?;
    let roots = numbers.clone().map(|number| loader::root(&loader::name(number), "as created"));
    let began = Instant::now();
    let ((), right) = tokio::try_join!(
        loader::create(&stage.api, ROOTS, roots),
        observer.wait_all(ROOTS, numbers.end, |message| !message.is_empty()),
    )?;
    let (_, usage) = stage.end(phase, &begun, numbers.end - numbers.start).await?;
    drop(observer);
    stage.check_children(numbers, "1").await?;
    stage.put(phase, "converged_s", (right - began).as_secs_f64());
    stage.put(phase, "growth_mib", usage.peak_mib - begun.usage.peak_mib);
    Ok(())
}

/// Stops and starts the contestant over converged roots.
pub(super) async fn restart(stage: &mut Stage<'_>) -> Result<()> {
    stage.stop_contestant()?;
    let begun = stage.begin()?;
    stage.start_contestant()?;
    // A start that has not made its lists yet looks quiet.
    stage.wait_watching(begun.at).await?;
    stage.end(Phase::Restart, &begun, 1).await.map(drop)
}

/// Nothing happens.
pub(super) async fn idle(stage: &mut Stage<'_>) -> Result<()> {
    let begun = stage.begin()?;
    tokio::time::sleep(IDLE).await;
    let calls = stage.audit.since(begun.at)?;
    let requests = calls.iter().filter(|call| !call.is_watch() && call.resource != "leases").count();
    stage.end(Phase::Idle, &begun, 1).await?;
    stage.put(Phase::Idle, "requests", requests as f64);
    if stage.who.is_pintle() {
        for (of, figure) in [("roots", "bytes_a_root"), ("children", "bytes_a_child")] {
            let bytes = stage.metric(&format!("pintle_cache_bytes{{of=\"{of}\"}}"))?;
            let objects = stage.metric(&format!("pintle_cache_objects{{of=\"{of}\"}}"))?;
            stage.put(Phase::Idle, figure, bytes / objects);
        }
    }
    Ok(())
}
