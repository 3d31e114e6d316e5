//! One change to one root at a time.

use anyhow::Result;

use crate::{
    figures::percentile,
    latency,
    settings::Phase,
    stage::{ObserverScope, Stage, count},
};

/// Changes one field of one root.
pub(crate) async fn update(stage: &mut Stage<'_>) -> Result<()> {
    println!("  update: {}, {} samples", stage.who.name(), stage.flags.samples);
    let observer = stage.observer(ObserverScope::Configs).await?;
    let begun = stage.begin()?;
    let updates = latency::updates(&stage.api, &observer, stage.flags.roots, stage.flags.samples).await?;
    drop(observer);
    let ended = stage.end(Phase::Update, "", begun).await?;
    let mutating = ended.calls.iter().filter(|call| call.is_mutating()).count();
    for (figure, samples, percent) in [
        ("config_p50_ms", &updates.config, 50.0),
        ("config_p99_ms", &updates.config, 99.0),
        ("status_p50_ms", &updates.status, 50.0),
        ("status_p99_ms", &updates.status, 99.0),
    ] {
        stage.put(Phase::Update, figure, percentile(samples, percent));
    }
    stage.put(Phase::Update, "samples", count(updates.config.len()));
    stage.put(Phase::Update, "mutating_calls_per_sample", count(mutating) / count(updates.config.len()));
    println!(
        "    ConfigMap {:.1} / {:.1} ms, status {:.1} / {:.1} ms (p50 / p99), {:.2} calls",
        percentile(&updates.config, 50.0),
        percentile(&updates.config, 99.0),
        percentile(&updates.status, 50.0),
        percentile(&updates.status, 99.0),
        count(mutating) / count(updates.config.len())
    );
    Ok(())
}

/// Deletes a child.
pub(crate) async fn heal(stage: &mut Stage<'_>) -> Result<()> {
    println!("  heal: {}, {} samples", stage.who.name(), stage.flags.samples);
    let observer = stage.observer(ObserverScope::Children).await?;
    let begun = stage.begin()?;
    let heals = latency::heals(&stage.api, &observer, stage.flags.roots, stage.flags.samples).await?;
    drop(observer);
    let ended = stage.end(Phase::Heal, "", begun).await?;
    let mutating = ended.calls.iter().filter(|call| call.is_mutating()).count();
    stage.put(Phase::Heal, "healed_p50_ms", percentile(&heals, 50.0));
    stage.put(Phase::Heal, "healed_p99_ms", percentile(&heals, 99.0));
    stage.put(Phase::Heal, "samples", count(heals.len()));
    stage.put(Phase::Heal, "mutating_calls_per_sample", count(mutating) / count(heals.len()));
    println!(
        "    {:.1} / {:.1} ms (p50 / p99), {:.2} calls",
        percentile(&heals, 50.0),
        percentile(&heals, 99.0),
        count(mutating) / count(heals.len())
    );
    Ok(())
}
