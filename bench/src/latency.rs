//! How long one change takes, many times over.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;

use crate::{
    api::{Api, CHILDREN, ROOTS},
    loader,
    observer::Observer,
};

/// The time from one sample to the next. It is longer than the slowest contestant needs for everything that follows a change, so that
/// samples do not wait for one another.
const PACE: Duration = Duration::from_millis(60);

/// How long one sample may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Latencies of changes of one field of one root, in milliseconds.
#[derive(Debug, Default)]
pub(crate) struct Updates {
    /// Until the ConfigMap shows it.
    pub(crate) config: Vec<f64>,
    /// Until the status shows it.
    pub(crate) status: Vec<f64>,
}

/// Changes one root after the other.
pub(crate) async fn updates(api: &Api, observer: &Observer, roots: u32, samples: u32) -> Result<Updates> {
    let mut updates = Updates::default();
    for sample in 0..samples {
        let next = Instant::now() + PACE;
        let name = loader::name(sample % roots);
        let message = format!("update {sample} {}", next_token());
        api.merge_patch(&format!("{ROOTS}/{name}"), &json!({"spec": {"message": message}})).await?;
        let replied = Instant::now();
        let what = format!("update {sample} of {name}");
        let shown = observer
            .wait(&what, PATIENCE, |seen| {
                seen.configs.get(&name).filter(|config| config.message == message).map(|config| config.at)
            })
            .await?;
        let said = observer
            .wait(&what, PATIENCE, |seen| {
                seen.roots.get(&name).filter(|root| root.message == message).map(|root| root.at)
            })
            .await?;
        updates.config.push(milliseconds(shown, replied));
        updates.status.push(milliseconds(said, replied));
        tokio::time::sleep_until(next.into()).await;
    }
    Ok(updates)
}

/// Deletes one child of one root after the other, of each kind in turn, and waits until it is back. Returns the latencies in milliseconds.
pub(crate) async fn heals(api: &Api, observer: &Observer, roots: u32, samples: u32) -> Result<Vec<f64>> {
    let mut heals = Vec::new();
    for (sample, collection) in (0..samples).zip(CHILDREN.into_iter().cycle()) {
        let next = Instant::now() + PACE;
        let child = (collection, loader::name(sample % roots));
        let before = observer.seen().uids.get(&child).map(|(uid, _)| uid.clone()).unwrap_or_default();
        let path = format!("{collection}/{}", child.1);
        api.delete(&path).await?;
        let replied = Instant::now();
        let back = observer
            .wait(&format!("{path} to be back"), PATIENCE, |seen| {
                seen.uids.get(&child).filter(|(uid, _)| *uid != before).map(|(_, at)| *at)
            })
            .await?;
        heals.push(milliseconds(back, replied));
        tokio::time::sleep_until(next.into()).await;
    }
    Ok(heals)
}

/// The time between two moments in milliseconds. The benchmark's watch may show an effect before its own reply comes; that counts as zero.
pub(crate) fn milliseconds(later: Instant, earlier: Instant) -> f64 {
    later.saturating_duration_since(earlier).as_secs_f64() * 1000.0
}

/// A number that is different for each sample of this process.
fn next_token() -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}
