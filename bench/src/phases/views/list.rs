//! Lists of all Pods.

use anyhow::{Result, ensure};
use futures::future::try_join_all;

use super::{Pairs, timed};
use crate::{
    api::Api,
    farm::{FARM_PODS, Farm, PODS},
    settings::Phase,
};

/// How many lists one client reads.
const ALONE: u32 = 20;

/// How many clients read at once, each over a connection of its own, and how often.
const CLIENTS: usize = 16;
const TOGETHER: u32 = 6;

pub(super) async fn run(farm: &mut Farm<'_>) -> Result<()> {
    let pods = farm.flags.pods;
    println!("  view-list: {pods} Pods");
    farm.wait_pods(pods).await?;
    let begun = farm.begin()?;
    let clients = try_join_all((0..CLIENTS).map(|_| farm.reader())).await?;
    let [client, ..] = clients.as_slice() else { return Ok(()) };
    // A connection that is new has a handshake to do.
    for client in &clients {
        timed(client, &format!("{PODS}?limit=1")).await?;
    }
    let (_, direct_bytes) = timed(client, PODS).await?;
    farm.put(Phase::ViewList, "pod_bytes", count(direct_bytes) / f64::from(pods));
    // The first list finds nothing remembered.
    let (first, before) = (timed(client, FARM_PODS).await?.0, &begun);
    let used = farm.used(before)?;
    ensure!(used.guest_calls >= u64::from(pods.div_ceil(64)), "the first list called no guest");
    farm.put(Phase::ViewList, "view_first_ms", first);
    farm.put(Phase::ViewList, "first_cpu_us_a_pod", used.cpu_seconds * 1e6 / f64::from(pods));

    let mut alone = Pairs::default();
    let half = farm.begin()?;
    for sample in 0..ALONE {
        alone.sample(client, sample, PODS, FARM_PODS).await?;
    }
    let used = farm.used(&half)?;
    let listed = f64::from(ALONE) * f64::from(pods);
    farm.put(Phase::ViewList, "cpu_us_a_pod", used.cpu_seconds * 1e6 / listed);
    let (direct, view) = alone.percentiles(50.0);
    farm.put(Phase::ViewList, "direct_p50_ms", direct);
    farm.put(Phase::ViewList, "view_p50_ms", view);

    let (mut together, half) = (Pairs::default(), farm.begin()?);
    for round in 0..TOGETHER {
        for turn in [round % 2, (round + 1) % 2] {
            match turn {
                0 => together.direct.extend(at_once(&clients, PODS).await?),
                _ => together.view.extend(at_once(&clients, FARM_PODS).await?),
            }
        }
    }
    let used = farm.used(&half)?;
    let listed = f64::from(TOGETHER) * count(CLIENTS) * f64::from(pods);
    farm.put(Phase::ViewList, "together_cpu_us_a_pod", used.cpu_seconds * 1e6 / listed);
    let (direct, view) = together.percentiles(50.0);
    farm.put(Phase::ViewList, "direct_together_p50_ms", direct);
    farm.put(Phase::ViewList, "view_together_p50_ms", view);
    farm.end(Phase::ViewList, &begun)
}

/// Every client reads the same at once, in a task of its own: one thread would be what they all wait for.
async fn at_once(clients: &[Api], path: &'static str) -> Result<Vec<f64>> {
    let reads = clients.iter().cloned().map(|client| tokio::spawn(async move { timed(&client, path).await }));
    let read = try_join_all(reads).await?;
    read.into_iter().map(|read| read.map(|(took, _)| took)).collect()
}

fn count(count: usize) -> f64 {
    crate::stage::count(count)
}
