//! Another logic for all roots.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use serde_json::json;

use super::milliseconds;
use crate::{
    api::{Api, CHILDREN, KINDS, ROOTS},
    calls::Call,
    figures::percentile,
    loader,
    observer::Observer,
    settings::Phase,
    stage::Stage,
};

/// How long the calls of a swap take alone: one apply and one status write for each root.
pub(super) fn floor(stage: &mut Stage<'_>) -> Result<()> {
    let (at, roots) = (Timestamp::now(), f64::from(stage.flags.roots));
    stage.swap_floor()?;
    let mut calls = stage.audit.since(at)?;
    calls.retain(Call::is_mutating);
    let writes = calls.len() as f64 / roots;
    ensure!(writes >= 2.0, "FLOOR made {writes} writes for each root instead of 2");
    let first = calls.iter().map(|call| call.received).min().context("no call")?;
    let last = calls.iter().map(|call| call.answered).max().context("no call")?;
    stage.put(Phase::Swap, "writes", writes);
    stage.put(Phase::Swap, "swap_s", last.duration_since(first).as_secs_f64());
    Ok(())
}

/// Swaps to logic 2 without other work; then back, while roots are created and edited.
pub(super) async fn run(stage: &mut Stage<'_>) -> Result<()> {
    if stage.who.is_pintle() {
        stage.push("bench-next", "bench-next.wasm")?;
    }
    // The work for the arrival of the module is not part of the swap.
    stage.audit.wait_quiet(Timestamp::now()).await?;
    let roots = u32::try_from(stage.api.list(ROOTS).await?.len())?;
    let observer = Observer::start(&stage.api, &KINDS[..2]).await?;

    let begun = stage.begin()?;
    let accepted = change(stage, 2).await?;
    observer.wait_all(CHILDREN[0], roots, |text| text.starts_with("2:")).await?;
    let (quiet, _) = stage.end(Phase::Swap, &begun, roots).await?;
    stage.put(Phase::Swap, "swap_s", quiet.duration_since(accepted).as_secs_f64());
    stage.check_children(0..stage.flags.roots, "2").await?;

    let (api, is_over) = (stage.api.clone(), AtomicBool::new(false));
    let back = async {
        change(stage, 1).await?;
        let last = observer.wait_all(CHILDREN[0], roots, |text| text.starts_with("1:")).await;
        is_over.store(true, Ordering::Relaxed);
        last
    };
    let (_, [created, edited]) = tokio::try_join!(back, disturb(&api, &observer, &is_over))?;
    stage.audit.wait_quiet(Timestamp::now()).await?;
    stage.put(Phase::Swap, "created_p95_ms", percentile(&created, 95.0));
    stage.put(Phase::Swap, "edited_p95_ms", percentile(&edited, 95.0));
    Ok(())
}

/// Puts another logic in force, and returns when the change was accepted.
async fn change(stage: &mut Stage<'_>, logic: u32) -> Result<Timestamp> {
    if stage.who.is_pintle() {
        let module = if logic == 1 { "bench" } else { "bench-next" };
        let reconciler = "/apis/pintle.dev/v1alpha1/reconcilers/bench";
        stage.api.merge_patch(reconciler, &json!({"spec": {"module": module}})).await?;
        return Ok(Timestamp::now());
    }
    let accepted = Timestamp::now();
    stage.stop_contestant()?;
    stage.logic = logic;
    stage.start_contestant()?;
    Ok(accepted)
}

/// How often a root is created and another one edited during a swap: often enough for samples, and rarely enough to leave the API server to
/// the swap.
const DISTURB_EVERY: Duration = Duration::from_millis(100);

/// Creates a root and edits another one at this interval until the swap is over. Returns how long it took until the status of each new root
/// was right, and until the ConfigMap of each edited one was, in milliseconds.
async fn disturb(api: &Api, observer: &Observer, is_over: &AtomicBool) -> Result<[Vec<f64>; 2]> {
    let mut sent = Vec::new();
    for number in 0.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let next = Instant::now() + DISTURB_EVERY;
        let (fresh, edited, message) =
            (format!("fresh-{number:05}"), loader::name(number), format!("during a swap {number}"));
        api.create(ROOTS, &loader::root(&fresh, &message)).await?;
        sent.push((ROOTS, fresh, message.clone(), Instant::now()));
        api.merge_patch(&format!("{ROOTS}/{edited}"), &json!({"spec": {"message": message}})).await?;
        sent.push((CHILDREN[0], edited, message, Instant::now()));
        tokio::time::sleep_until(next.into()).await;
    }
    let (mut created, mut edited) = (Vec::new(), Vec::new());
    for (collection, name, message, replied) in sent {
        let key = (collection, name);
        // The logic changes too, before or after that.
        let look = observer.wait(format!("{collection}/{} has {message}", key.1), |sights| {
            Some(sights.get(&key)?.iter().find(|sight| sight.text.ends_with(&message))?.at)
        });
        let latencies = if collection == ROOTS { &mut created } else { &mut edited };
        latencies.push(milliseconds(look.await?, replied));
    }
    Ok([created, edited])
}
