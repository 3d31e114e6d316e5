//! Reads of Pods through a view, beside reads of the Pods themselves.

use std::time::Instant;

use anyhow::Result;
use futures::future::try_join_all;

use super::{Pairs, milliseconds};
use crate::{
    api::Api,
    farm::{pod_path, pods_path, user},
    process::Meter,
    settings::Phase,
    stage::Stage,
};

/// How many lists one client reads.
const ALONE: u32 = 20;

/// How many clients read at once, each over a connection of its own, and how often.
const CLIENTS: u32 = 16;
const TOGETHER: u32 = 6;

/// Lists of all Pods.
pub(super) async fn list(stage: &mut Stage<'_>) -> Result<()> {
    let (phase, pods) = (Phase::ViewList, stage.flags.pods);
    let begun = stage.begin()?;
    let clients = try_join_all((0..CLIENTS).map(|_| user(stage))).await?;
    let [client, ..] = clients.as_slice() else { return Ok(()) };
    // A connection that is new has a handshake to do.
    for client in &clients {
        read(client, &format!("{}?limit=1", pods_path(false))).await?;
    }
    // The first list finds nothing remembered.
    read(client, pods_path(true)).await?;
    put_cpu(stage, &begun, "first_cpu_us_a_pod", pods)?;

    let (mut alone, half) = (Pairs::default(), stage.begin()?);
    for sample in 0..ALONE {
        alone.add(sample, async |is_view| read(client, pods_path(is_view)).await).await?;
    }
    put_cpu(stage, &half, "cpu_us_a_pod", ALONE * pods)?;
    alone.put(stage, phase, "p50_ms", 50.0);

    let (mut together, half) = (Pairs::default(), stage.begin()?);
    for round in 0..TOGETHER {
        together.add(round, async |is_view| read_at_once(&clients, pods_path(is_view)).await).await?;
    }
    put_cpu(stage, &half, "together_cpu_us_a_pod", TOGETHER * CLIENTS * pods)?;
    together.put(stage, phase, "together_p50_ms", 50.0);
    stage.put(phase, "machine_speed", begun.speed());
    Ok(())
}

/// Gets of one Pod.
pub(super) async fn get(stage: &mut Stage<'_>) -> Result<()> {
    let (phase, pods, samples) = (Phase::ViewGet, stage.flags.pods, stage.flags.samples);
    let client = user(stage).await?;
    let (mut same, mut distinct) = (Pairs::default(), Pairs::default());
    // The connections are made, and the guest is warm.
    for _ in 0..5 {
        read(&client, &pod_path(0, false)).await?;
        read(&client, &pod_path(0, true)).await?;
    }
    let begun = stage.begin()?;
    for sample in 0..samples {
        same.add(sample, async |is_view| read(&client, &pod_path(0, is_view)).await).await?;
    }
    // No name twice, as far as there are enough: whether somebody may read it is asked each time.
    for sample in 0..samples {
        let number = 1 + sample % (pods - 1);
        distinct.add(sample, async |is_view| read(&client, &pod_path(number, is_view)).await).await?;
    }
    same.put(stage, phase, "same_p50_ms", 50.0);
    distinct.put(stage, phase, "distinct_p50_ms", 50.0);
    stage.put(phase, "machine_speed", begun.speed());
    Ok(())
}

/// Records the CPU time that the gateway has used since then, in microseconds for each Pod that was read.
fn put_cpu(stage: &mut Stage<'_>, begun: &Meter, figure: &'static str, pods: u32) -> Result<()> {
    let seconds = stage.usage()?.cpu_seconds - begun.usage.cpu_seconds;
    stage.put(Phase::ViewList, figure, seconds * 1e6 / f64::from(pods));
    Ok(())
}

/// Reads something, and returns how long that took, in milliseconds.
async fn read(api: &Api, path: &str) -> Result<Vec<f64>> {
    let began = Instant::now();
    api.read(path).await?;
    Ok(vec![milliseconds(Instant::now(), began)])
}

/// Every client reads the same at once, in a task of its own: one thread would be what they all wait for.
async fn read_at_once(clients: &[Api], path: &'static str) -> Result<Vec<f64>> {
    let reads = clients.iter().cloned().map(|client| tokio::spawn(async move { read(&client, path).await }));
    let read: Result<Vec<_>> = try_join_all(reads).await?.into_iter().collect();
    Ok(read?.concat())
}
