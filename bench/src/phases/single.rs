//! One change to one root at a time.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;

use super::milliseconds;
use crate::{
    api::{CHILDREN, KINDS, ROOTS},
    figures::percentile,
    loader,
    observer::Observer,
    settings::Phase,
    stage::Stage,
};

/// The time from one sample to the next. It is longer than the slowest contestant needs for everything that follows a change, so that
/// samples do not wait for one another.
pub(super) const PACE: Duration = Duration::from_millis(60);

/// Changes one field of one root.
pub(super) async fn update(stage: &mut Stage<'_>) -> Result<()> {
    let (roots, samples) = (stage.flags.roots, stage.flags.samples);
    let observer = Observer::start(&stage.api, &KINDS[..2]).await?;
    let begun = stage.begin()?;
    let (mut configs, mut statuses) = (Vec::new(), Vec::new());
    for sample in 0..samples {
        let next = Instant::now() + PACE;
        let (root, message) = (loader::name(sample % roots), format!("update {sample}"));
        stage.api.merge_patch(&format!("{ROOTS}/{root}"), &json!({"spec": {"message": message}})).await?;
        let replied = Instant::now();
        for (collection, text, latencies) in
            [(CHILDREN[0], format!("1: {message}"), &mut configs), (ROOTS, message.clone(), &mut statuses)]
        {
            let key = (collection, root.clone());
            let look = observer.wait(format!("{collection}/{root} has {message}"), |sights| {
                sights.get(&key)?.last().filter(|sight| sight.text == text).map(|sight| sight.at)
            });
            latencies.push(milliseconds(look.await?, replied));
        }
        tokio::time::sleep_until(next.into()).await;
    }
    drop(observer);
    stage.end(Phase::Update, &begun, samples).await?;
    stage.put(Phase::Update, "config_p50_ms", percentile(&configs, 50.0));
    stage.put(Phase::Update, "config_p99_ms", percentile(&configs, 99.0));
    stage.put(Phase::Update, "status_p50_ms", percentile(&statuses, 50.0));
    stage.put(Phase::Update, "status_p99_ms", percentile(&statuses, 99.0));
    Ok(())
}

/// Deletes one child of one root, of each kind in turn.
pub(super) async fn heal(stage: &mut Stage<'_>) -> Result<()> {
    let (roots, samples) = (stage.flags.roots, stage.flags.samples);
    let observer = Observer::start(&stage.api, &KINDS).await?;
    let begun = stage.begin()?;
    let mut heals = Vec::new();
    for (sample, collection) in (0..samples).zip(CHILDREN.into_iter().cycle()) {
        let next = Instant::now() + PACE;
        let key = (collection, loader::name(sample % roots));
        let path = format!("{collection}/{}", key.1);
        let uid = observer.sights().get(&key).and_then(|sights| Some(sights.last()?.uid.clone()));
        let before = uid.unwrap_or_default();
        stage.api.delete(&path).await?;
        let replied = Instant::now();
        let look = observer.wait(format!("{path} is back"), |sights| {
            sights.get(&key)?.last().filter(|sight| sight.uid != before).map(|sight| sight.at)
        });
        heals.push(milliseconds(look.await?, replied));
        tokio::time::sleep_until(next.into()).await;
    }
    drop(observer);
    stage.end(Phase::Heal, &begun, samples).await?;
    stage.put(Phase::Heal, "healed_p50_ms", percentile(&heals, 50.0));
    stage.put(Phase::Heal, "healed_p99_ms", percentile(&heals, 99.0));
    Ok(())
}
