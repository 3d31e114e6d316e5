//! The contestant stops and starts over converged roots.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;

use crate::{
    api::CHILDREN,
    calls::Moment,
    loader,
    settings::Phase,
    stage::{PATIENCE, Stage, count},
};

pub(crate) async fn run(stage: &mut Stage<'_>) -> Result<()> {
    println!("  restart: {}", stage.who.name());
    undisturbed(stage, Phase::Restart).await?;
    drifted(stage).await
}

/// Without changes while it was down.
pub(crate) async fn undisturbed(stage: &mut Stage<'_>, phase: Phase) -> Result<()> {
    stage.stop_contestant().await?;
    let begun = stage.begin()?;
    stage.start_contestant()?;
    // A start that has not made its lists yet looks quiet.
    let at = begun.at;
    wait_listed(stage, at).await?;
    let ended = stage.end(phase, if phase == Phase::Restart { "" } else { "restart" }, begun).await?;
    println!("    quiet after {:.2} s", ended.quiet_seconds);
    if phase != Phase::Restart {
        stage.put(phase, "restart_quiet_s", ended.quiet_seconds);
        let mutating = ended.calls.iter().filter(|call| call.is_mutating()).count();
        stage.put(phase, "restart_mutating_calls", count(mutating));
    }
    Ok(())
}

/// Waits until it has started to watch every kind again.
async fn wait_listed(stage: &mut Stage<'_>, since: Moment) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    loop {
        let calls = stage.calls_since(since)?;
        let watched = |kind: &str| calls.iter().any(|call| call.is_watch() && call.resource == kind);
        if ["benches", "configmaps", "deployments", "services", "ingresses"].into_iter().all(watched) {
            return Ok(());
        }
        ensure!(Instant::now() < until, "it does not watch after a restart:\n{}", stage.recipe.log_tail());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// With one child changed and another deleted while it was down.
async fn drifted(stage: &mut Stage<'_>) -> Result<()> {
    stage.stop_contestant().await?;
    let [configs, _, services, _] = CHILDREN;
    let changed = format!("{configs}/{}", loader::name(0));
    let deleted = format!("{services}/{}", loader::name(1));
    stage.api.merge_patch(&changed, &json!({"data": {"KEY_01": "drifted"}})).await?;
    stage.api.delete(&deleted).await?;
    let right = format!("value 1 of {}", loader::name(0));
    let begun = stage.begin()?;
    let started = Instant::now();
    stage.start_contestant()?;
    while stage.api.get(&changed).await?["data"]["KEY_01"] != right.as_str()
        || stage.api.get(&deleted).await.is_err()
    {
        ensure!(
            started.elapsed() < PATIENCE,
            "drift is not repaired after a restart:\n{}",
            stage.recipe.log_tail()
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let repaired = started.elapsed().as_secs_f64();
    wait_listed(stage, begun.at).await?;
    let ended = stage.end(Phase::Restart, "with drift", begun).await?;
    stage.put(Phase::Restart, "drift_repaired_s", repaired);
    let mutating = ended.calls.iter().filter(|call| call.is_mutating()).count();
    stage.put(Phase::Restart, "drift_mutating_calls", count(mutating));
    println!("    with two children that drifted: repaired after {repaired:.2} s, {mutating} mutating calls");
    Ok(())
}
