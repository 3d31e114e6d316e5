//! Many watches of one resource.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use futures::{AsyncBufReadExt, StreamExt, TryStreamExt, stream};
use serde_json::json;
use tokio::task::JoinSet;

use crate::{
    farm::{FARM_PODS, Farm, TOKEN, pod_path},
    settings::Phase,
    stage::mebibytes,
};

/// The time from one change to the next: twenty a second.
const PACE: Duration = Duration::from_millis(50);

/// How long the last event may take to all watches.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many watches begin at once.
const AT_ONCE: usize = 16;

/// The names of the figures of a number of Pods.
struct Names {
    core_share: &'static str,
    peak_mib: &'static str,
    resident_mib: &'static str,
    guest_calls_a_second: &'static str,
    events_a_second: &'static str,
}

const OF_FEW: Names = Names {
    core_share: "core_share",
    peak_mib: "peak_mib",
    resident_mib: "resident_mib",
    guest_calls_a_second: "guest_calls_a_second",
    events_a_second: "events_a_second",
};

const OF_MANY: Names = Names {
    core_share: "more_core_share",
    peak_mib: "more_peak_mib",
    resident_mib: "more_resident_mib",
    guest_calls_a_second: "more_guest_calls_a_second",
    events_a_second: "more_events_a_second",
};

pub(super) async fn run(farm: &mut Farm<'_>) -> Result<()> {
    let (few, many) = (farm.flags.pods, farm.flags.more_pods);
    over(farm, few, &OF_FEW).await?;
    over(farm, many, &OF_MANY).await
}

async fn over(farm: &mut Farm<'_>, pods: u32, names: &Names) -> Result<()> {
    let (watches, seconds) = (farm.flags.watches, farm.flags.watch_seconds);
    println!("  view-watch: {watches} watches over {pods} Pods, {seconds} s");
    farm.wait_pods(pods).await?;
    farm.restart().await?;
    let reader = farm.reader().await?;
    let version = reader.version(FARM_PODS).await?;
    let follows = format!("{FARM_PODS}?watch=1&resourceVersion={version}");
    // One client begins as an informer does, with all objects. The others know them already.
    let begins = format!(
        "{FARM_PODS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    );
    let (shown, initial) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let paths = std::iter::once(begins.as_str()).chain(std::iter::repeat(follows.as_str()));
    let streams: Vec<_> = stream::iter(paths.take(watches as usize))
        .map(|path| reader.watch(path))
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await?;
    let mut followers = JoinSet::new();
    for stream in streams {
        let (shown, initial) = (Arc::clone(&shown), Arc::clone(&initial));
        followers.spawn(async move {
            let mut lines = std::pin::pin!(stream.lines());
            while let Some(Ok(line)) = lines.next().await {
                if line.starts_with("{\"type\":\"MODIFIED\"") {
                    shown.fetch_add(1, Ordering::Relaxed);
                } else {
                    initial.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
    }
    // All objects, and the bookmark behind them.
    wait_for(&initial, u64::from(pods) + 1).await.context("the initial events")?;
    tokio::time::sleep(Duration::from_secs(2)).await;

    let begun = farm.begin()?;
    let changes = change(farm, pods, Duration::from_secs(seconds)).await?;
    wait_for(&shown, changes * u64::from(watches)).await.context("the events of all watches")?;
    let used = farm.used(&begun)?;
    ensure!(followers.try_join_next().is_none(), "a watch ended");
    farm.put(Phase::ViewWatch, names.core_share, used.cpu_seconds / used.seconds);
    farm.put(Phase::ViewWatch, names.peak_mib, mebibytes(used.usage.peak_bytes));
    farm.put(Phase::ViewWatch, names.resident_mib, mebibytes(used.usage.resident_bytes));
    #[allow(clippy::cast_precision_loss, reason = "counts here are small")]
    let (calls, events) = (used.guest_calls as f64, (changes * u64::from(watches)) as f64);
    farm.put(Phase::ViewWatch, names.guest_calls_a_second, calls / used.seconds);
    farm.put(Phase::ViewWatch, names.events_a_second, events / used.seconds);
    farm.end(Phase::ViewWatch, &begun)
}

/// Changes another Pod at each interval, and returns how many were changed.
async fn change(farm: &Farm<'_>, pods: u32, lasts: Duration) -> Result<u64> {
    let (until, mut writes, mut number) = (Instant::now() + lasts, JoinSet::new(), 0u32);
    let mut pace = tokio::time::interval(PACE);
    while Instant::now() < until {
        pace.tick().await;
        let (admin, path) = (farm.admin.clone(), pod_path(number.wrapping_mul(7_919) % pods));
        let patch = json!({"metadata": {"annotations": {TOKEN: format!("change {number} of {pods}")}}});
        // The pace holds, also when a write takes longer than that.
        writes.spawn(async move { admin.merge_patch(&path, &patch).await });
        number += 1;
    }
    while let Some(written) = writes.join_next().await {
        written??;
    }
    Ok(u64::from(number))
}

async fn wait_for(count: &AtomicU64, wanted: u64) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    loop {
        let counted = count.load(Ordering::Relaxed);
        if counted >= wanted {
            ensure!(counted == wanted, "{counted} events instead of {wanted}");
            return Ok(());
        }
        ensure!(Instant::now() < until, "{counted} events of {wanted}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
