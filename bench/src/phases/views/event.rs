//! The way of an event from a write to a client that watches.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures::{AsyncBufReadExt, StreamExt};
use serde_json::json;
use tokio::sync::mpsc;

use super::Pairs;
use crate::{
    api::Api,
    farm::{FARM_PODS, Farm, PODS, TOKEN, pod_path},
    latency::milliseconds,
    settings::Phase,
};

/// The time from one sample to the next.
pub(super) const PACE: Duration = Duration::from_millis(60);

/// How long an event may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a watch has shown: a token, and when.
type Seen = (String, Instant);

/// What stands before the token in an event of a Pod.
const BEFORE: &str = "\"bench.pintle.dev/token\":\"";

pub(super) async fn run(farm: &mut Farm<'_>) -> Result<()> {
    let (pods, samples) = (farm.flags.pods, farm.flags.samples);
    println!("  view-event: {samples} samples");
    farm.wait_pods(pods).await?;
    let reader = farm.reader().await?;
    let mut direct = follow(&reader, PODS, BEFORE).await?;
    let mut view = follow(&reader, FARM_PODS, BEFORE).await?;
    let begun = farm.begin()?;
    let mut pairs = Pairs::default();
    for sample in 0..samples {
        let next = Instant::now() + PACE;
        let token = format!("event {sample}");
        let patch = json!({"metadata": {"annotations": {TOKEN: token}}});
        let sent = Instant::now();
        farm.admin.merge_patch(&pod_path(sample % pods), &patch).await?;
        // Both watches show the same write, so that neither has the better moment.
        pairs.direct.push(milliseconds(shown(&mut direct, &token).await.context("direct")?, sent));
        pairs.view.push(milliseconds(shown(&mut view, &token).await.context("through the view")?, sent));
        tokio::time::sleep_until(next.into()).await;
    }
    for (percent, [direct, view]) in
        [(50.0, ["direct_p50_ms", "view_p50_ms"]), (99.0, ["direct_p99_ms", "view_p99_ms"])]
    {
        let values = pairs.percentiles(percent);
        farm.put(Phase::ViewEvent, direct, values.0);
        farm.put(Phase::ViewEvent, view, values.1);
    }
    farm.end(Phase::ViewEvent, &begun)
}

/// Watches from now on, for tokens that stand behind this text.
pub(super) async fn follow(
    api: &Api,
    collection: &str,
    before: &'static str,
) -> Result<mpsc::UnboundedReceiver<Seen>> {
    let version = api.version(collection).await?;
    let stream = api.watch(&format!("{collection}?watch=1&resourceVersion={version}")).await?;
    let (seen, receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut lines = std::pin::pin!(stream.lines());
        while let Some(Ok(line)) = lines.next().await {
            let at = Instant::now();
            if token(&line, before).is_some_and(|token| seen.send((token.to_owned(), at)).is_err()) {
                break;
            }
        }
    });
    Ok(receiver)
}

/// The token of an event, without reading all of it.
fn token<'a>(line: &'a str, before: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(before)?;
    rest.split_once(['"', ',', '}']).map(|(token, _)| token)
}

/// When a watch has shown a token.
pub(super) async fn shown(seen: &mut mpsc::UnboundedReceiver<Seen>, wanted: &str) -> Result<Instant> {
    loop {
        let next = tokio::time::timeout(PATIENCE, seen.recv()).await;
        let (token, at) = next.with_context(|| format!("{wanted} is not shown"))?.context("a watch ended")?;
        if token == wanted {
            return Ok(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_found_in_an_event() {
        let event = json!({"type": "MODIFIED", "object": {"metadata": {"annotations": {TOKEN: "event 7", "a": "b"}}}});
        assert_eq!(token(&event.to_string(), BEFORE), Some("event 7"));
        assert_eq!(token("{}", BEFORE), None);
        let event = json!({"object": {"spec": {"height": 2, "weight": 17}, "f:weight": {}}});
        assert_eq!(token(&event.to_string(), "\"weight\":"), Some("17"));
    }
}
