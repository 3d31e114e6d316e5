//! Reads of one Pod.

use anyhow::Result;

use super::{Pairs, timed};
use crate::{
    farm::{Farm, farm_pod_path, pod_path},
    settings::Phase,
};

pub(super) async fn run(farm: &mut Farm<'_>) -> Result<()> {
    let (pods, samples) = (farm.flags.pods, farm.flags.samples);
    println!("  view-get: {samples} samples");
    farm.wait_pods(pods).await?;
    let client = farm.reader().await?;
    let (mut same, mut distinct) = (Pairs::default(), Pairs::default());
    // The connections are made, and the guest is warm.
    for _ in 0..5 {
        timed(&client, &pod_path(0)).await?;
        timed(&client, &farm_pod_path(0)).await?;
    }
    let begun = farm.begin()?;
    for sample in 0..samples {
        same.sample(&client, sample, &pod_path(0), &farm_pod_path(0)).await?;
    }
    // No name twice, as far as there are enough: whether somebody may read it is asked each time.
    for sample in 0..samples {
        let number = 1 + sample % (pods - 1);
        distinct.sample(&client, sample, &pod_path(number), &farm_pod_path(number)).await?;
    }
    for (pairs, percent, [direct, view]) in [
        (&same, 50.0, ["same_direct_p50_ms", "same_view_p50_ms"]),
        (&same, 99.0, ["same_direct_p99_ms", "same_view_p99_ms"]),
        (&distinct, 50.0, ["distinct_direct_p50_ms", "distinct_view_p50_ms"]),
        (&distinct, 99.0, ["distinct_direct_p99_ms", "distinct_view_p99_ms"]),
    ] {
        let values = pairs.percentiles(percent);
        farm.put(Phase::ViewGet, direct, values.0);
        farm.put(Phase::ViewGet, view, values.1);
    }
    farm.end(Phase::ViewGet, &begun)
}
