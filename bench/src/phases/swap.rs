//! Another logic for all roots.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::create::patience;
use crate::{
    api::ROOTS,
    calls::{Call, Moment},
    figures::percentile,
    latency::milliseconds,
    loader,
    observer::Observer,
    settings::{Phase, Who},
    stage::{ObserverScope, PATIENCE, Stage, count},
};

/// A custom section of a component, called `note` and empty. It changes the digest, but not the answers.
const NOTE: [u8; 7] = [0, 5, 4, b'n', b'o', b't', b'e'];

/// The cost of the calls of a swap alone: one apply for each root, and then with one status write for each root as well.
pub(crate) async fn floor(stage: &mut Stage<'_>) -> Result<()> {
    println!("  swap: FLOOR");
    for (logic, statuses, figure) in [(2, false, "swap_s"), (3, true, "swap_with_statuses_s")] {
        let at = Moment::now();
        stage.recipe.floor_swap(logic, statuses).await?;
        let calls = stage.calls_since(at)?;
        let mutating: Vec<&Call> = calls.iter().filter(|call| call.is_mutating()).collect();
        let wanted = stage.flags.roots as usize * if statuses { 2 } else { 1 };
        ensure!(mutating.len() == wanted, "FLOOR made {} calls instead of {wanted}", mutating.len());
        let first = mutating.iter().map(|call| call.received).min().context("no call")?;
        let last = mutating.iter().map(|call| call.answered).max().context("no call")?;
        let seconds = last.seconds_since(first);
        stage.put(Phase::Swap, figure, seconds);
        println!("    {} calls in {seconds:.2} s", mutating.len());
    }
    Ok(())
}

/// Swaps to logic 2 without other work; then back, while roots are created and edited.
pub(crate) async fn run(stage: &mut Stage<'_>) -> Result<()> {
    println!("  swap: {}", stage.who.name());
    if stage.who == Who::Pintle {
        let next = stage.module("bench-next")?;
        stage.push("bench-next", &next)?;
    }
    // The work for the arrival of the module is not part of the swap.
    stage.wait_quiet(Moment::now()).await?;
    let roots = stage.api.list(ROOTS).await?.len();

    let observer = stage.observer(ObserverScope::Configs).await?;
    let begun = stage.begin()?;
    let (accepted, accepted_at) = change(stage, 2).await?;
    let applied = wait_logic(&observer, "2", roots).await?;
    let ended = stage.end(Phase::Swap, if stage.who == Who::Native { "swap" } else { "" }, begun).await?;
    let proper = ended.calls.iter().filter(|call| !call.is_apart() && !call.is_watch());
    let last = proper.map(|call| call.answered).max().unwrap_or(accepted_at);
    let mutating = ended.calls.iter().filter(|call| call.is_mutating()).count();
    stage.put(Phase::Swap, "swap_s", last.seconds_since(accepted_at));
    stage.put(Phase::Swap, "swap_applied_s", applied.saturating_duration_since(accepted).as_secs_f64());
    stage.put(Phase::Swap, "mutating_calls_per_root", count(mutating) / count(roots));
    println!(
        "    {:.2} s ({:.2} s until the last ConfigMap), {:.2} calls a root",
        last.seconds_since(accepted_at),
        applied.saturating_duration_since(accepted).as_secs_f64(),
        count(mutating) / count(roots)
    );
    stage.check_children(0..stage.flags.roots, 0, "2").await?;
    disturbed(stage, &observer, roots).await
}

/// Puts another logic in force, and returns when the change was accepted.
async fn change(stage: &mut Stage<'_>, logic: u32) -> Result<(Instant, Moment)> {
    let now = || (Instant::now(), Moment::now());
    if stage.who == Who::Pintle {
        let module = if logic == 1 { "bench" } else { "bench-next" };
        let path = "/apis/pintle.dev/v1alpha1/reconcilers/bench";
        stage.api.merge_patch(path, &json!({"spec": {"module": module}})).await?;
        return Ok(now());
    }
    let accepted = now();
    stage.stop_contestant().await?;
    stage.recipe.logic = logic;
    stage.start_contestant()?;
    Ok(accepted)
}

async fn wait_logic(observer: &Observer, logic: &str, roots: usize) -> Result<Instant> {
    let within = patience(u32::try_from(roots)?);
    observer
        .wait("every ConfigMap to have the new logic", within, |seen| {
            let all = seen.logics.get(logic).copied().unwrap_or(0) >= roots;
            all.then(|| seen.configs.values().map(|config| config.at).max()).flatten()
        })
        .await
}

/// How often a root is created and another one edited during a swap: often enough for samples, and rarely enough to leave the API server to
/// the swap.
const PROBE_EVERY: Duration = Duration::from_millis(100);

async fn disturbed(stage: &mut Stage<'_>, observer: &Observer, roots: usize) -> Result<()> {
    let begun = stage.begin()?;
    let over = Arc::new(AtomicBool::new(false));
    let (_, waits) = tokio::try_join!(
        async {
            change(stage, 1).await?;
            let last = wait_logic(observer, "1", roots).await;
            over.store(true, Ordering::Relaxed);
            last
        },
        probe(observer, &over),
    )?;
    stage.end(Phase::Swap, "with roots created and edited", begun).await?;
    for (figure, samples) in
        [("created_during_p95_ms", &waits.created), ("edited_during_p95_ms", &waits.edited)]
    {
        stage.put(Phase::Swap, figure, percentile(samples, 95.0));
        println!("    {figure}: {:.0} ms, {} samples", percentile(samples, 95.0), samples.len());
    }
    Ok(())
}

#[derive(Default)]
struct Waits {
    created: Vec<f64>,
    edited: Vec<f64>,
}

/// Creates a root and edits another one at this interval until the swap is over, and waits for each.
async fn probe(observer: &Observer, over: &AtomicBool) -> Result<Waits> {
    let mut sent: BTreeMap<String, (String, Instant)> = BTreeMap::new();
    let mut created = Vec::new();
    let mut number = 0;
    let api = observer.api();
    while !over.load(Ordering::Relaxed) {
        let next = Instant::now() + PROBE_EVERY;
        let fresh = format!("fresh-{number:05}");
        api.create(ROOTS, &loader::root(&fresh, 0, "during a swap")).await?;
        created.push((fresh, Instant::now()));
        let (name, message) = (loader::name(number), format!("edit {number} during a swap"));
        api.merge_patch(&format!("{ROOTS}/{name}"), &json!({"spec": {"message": message}})).await?;
        sent.insert(name, (message, Instant::now()));
        number += 1;
        tokio::time::sleep_until(next.into()).await;
    }
    let mut waits = Waits::default();
    for (name, replied) in created {
        let at = observer
            .wait(&format!("root {name}, created during a swap"), PATIENCE, |seen| {
                seen.roots.get(&name).and_then(|root| root.first_right)
            })
            .await?;
        waits.created.push(milliseconds(at, replied));
    }
    for (name, (message, replied)) in sent {
        let at = observer
            .wait(&format!("root {name}, edited during a swap"), PATIENCE, |seen| {
                let config = seen.configs.get(&name)?;
                (config.message == message).then_some(config.message_at)
            })
            .await?;
        waits.edited.push(milliseconds(at, replied));
    }
    Ok(waits)
}

/// Swaps to another module whose answers are the same, byte for byte.
pub(crate) async fn same(stage: &mut Stage<'_>) -> Result<()> {
    println!("  same: {}", stage.who.name());
    let mut bytes = stage.module("bench")?;
    bytes.extend(NOTE);
    stage.push("bench-same", &bytes)?;
    stage.wait_quiet(Moment::now()).await?;
    let begun = stage.begin()?;
    let path = "/apis/pintle.dev/v1alpha1/reconcilers/bench";
    stage.api.merge_patch(path, &json!({"spec": {"module": "bench-same"}})).await?;
    let until = Instant::now() + PATIENCE;
    let swapped = Instant::now();
    while stage.api.get(path).await?["status"]["active"]["module"] != "bench-same" {
        ensure!(Instant::now() < until, "the module does not come into force:\n{}", stage.recipe.log_tail());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // The host must call the guest for every root, and the API server sees none of that.
    let mut calls = stage.guest_calls()?;
    let mut changed = Instant::now();
    while changed.elapsed() < Duration::from_secs(2) {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = stage.guest_calls()?;
        if now != calls {
            (calls, changed) = (now, Instant::now());
        }
    }
    let ended = stage.end(Phase::Same, "", begun).await?;
    let mutating = ended.calls.iter().filter(|call| call.is_mutating()).count();
    stage.put(Phase::Same, "swap_s", (changed - swapped).as_secs_f64());
    println!("    {mutating} mutating calls, all asked after {:.2} s", (changed - swapped).as_secs_f64());
    // Back, so that the next phases find the expected module.
    stage.api.merge_patch(path, &json!({"spec": {"module": "bench"}})).await?;
    stage.wait_quiet(Moment::now()).await.map(|_| ())
}
