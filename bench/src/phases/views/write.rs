//! The way of an event from a write through a view to a client that watches it, beside the same of a CRD.

use std::time::Instant;

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::json;
use tokio::sync::mpsc;

use super::{
    Pairs,
    event::{PACE, follow, shown},
};
use crate::{
    api::Api,
    farm::{Farm, LLAMAS, TWINS, llama, llama_name, llamas},
    latency::milliseconds,
    settings::Phase,
};

const NAMESPACE: &str = "bench-write";

/// How many creates are in flight.
const IN_FLIGHT: usize = 16;

/// What stands before the weight in an event.
const BEFORE: &str = "\"weight\":";

/// The Llamas of one resource, and a watch of them.
struct Herd {
    collection: String,
    seen: mpsc::UnboundedReceiver<(String, Instant)>,
}

pub(super) async fn run(farm: &mut Farm<'_>) -> Result<()> {
    let samples = farm.flags.samples;
    println!("  view-write: {samples} samples");
    farm.create_namespace(NAMESPACE).await?;
    let keeper = farm.keeper().await?;
    let (mut crd, mut view) = (herd(&keeper, TWINS, samples).await?, herd(&keeper, LLAMAS, samples).await?);
    let begun = farm.begin()?;
    let (mut replies, mut events) = (Pairs::default(), Pairs::default());
    for sample in 0..samples {
        let next = Instant::now() + PACE;
        for turn in [sample % 2, (sample + 1) % 2] {
            let (herd, reply, event) = match turn {
                0 => (&mut crd, &mut replies.direct, &mut events.direct),
                _ => (&mut view, &mut replies.view, &mut events.view),
            };
            // No Llama twice: whether somebody may write it is asked each time.
            let (replied, showed) = changed(&keeper, herd, sample).await.context(herd.collection.clone())?;
            reply.push(replied);
            event.push(showed);
        }
        tokio::time::sleep_until(next.into()).await;
    }
    for (pairs, percent, [direct, view]) in [
        (&replies, 50.0, ["crd_reply_p50_ms", "view_reply_p50_ms"]),
        (&events, 50.0, ["crd_event_p50_ms", "view_event_p50_ms"]),
        (&events, 99.0, ["crd_event_p99_ms", "view_event_p99_ms"]),
    ] {
        let values = pairs.percentiles(percent);
        farm.put(Phase::ViewWrite, direct, values.0);
        farm.put(Phase::ViewWrite, view, values.1);
    }
    farm.end(Phase::ViewWrite, &begun)
}

/// Makes Llamas, and watches them.
async fn herd(keeper: &Api, api_version: &str, count: u32) -> Result<Herd> {
    let collection = llamas(api_version, NAMESPACE);
    let path = collection.as_str();
    stream::iter(0..count)
        .map(|number| async move { keeper.create(path, &llama(api_version, number, 1)).await })
        .buffer_unordered(IN_FLIGHT)
        .try_collect::<()>()
        .await?;
    let seen = follow(keeper, path, BEFORE).await?;
    Ok(Herd { collection, seen })
}

/// Changes a Llama, and returns how long it took until the reply was there, and until a watch had shown the change, in milliseconds.
async fn changed(keeper: &Api, herd: &mut Herd, number: u32) -> Result<(f64, f64)> {
    let weight = 1_000 + number;
    let path = format!("{}/{}", herd.collection, llama_name(number));
    let sent = Instant::now();
    keeper.merge_patch(&path, &json!({"spec": {"weight": weight}})).await?;
    let replied = milliseconds(Instant::now(), sent);
    let showed = shown(&mut herd.seen, &weight.to_string()).await?;
    Ok((replied, milliseconds(showed, sent)))
}
