//! The way of an event from a write to a client that watches a view.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures::{AsyncBufReadExt, StreamExt};
use serde_json::json;
use tokio::sync::mpsc;

use super::{Pairs, milliseconds, single::PACE};
use crate::{
    api::Api,
    farm::{LLAMAS, TWINS, add_namespace, add_twin, llama, llama_name, llamas, pod_path, pods_path, user},
    loader,
    settings::Phase,
    stage::Stage,
};

/// How long an event may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// What stands before the token in an event of a Pod.
const BEFORE_TOKEN: &str = "\"bench.pintle.dev/token\":\"";

/// What stands before the weight in an event of a Llama.
const BEFORE_WEIGHT: &str = "\"weight\":";

/// The namespace of the Llamas.
const NAMESPACE: &str = "bench-llamas";

/// A Pod is changed, and a watch of Pods and one of the view show it.
pub(super) async fn pod_event(stage: &mut Stage<'_>) -> Result<()> {
    let (pods, samples) = (stage.flags.pods, stage.flags.samples);
    let user = user(stage).await?;
    let mut direct = Watch::start(&user, pods_path(false), BEFORE_TOKEN).await?;
    let mut view = Watch::start(&user, pods_path(true), BEFORE_TOKEN).await?;
    let begun = stage.begin()?;
    let mut pairs = Pairs::default();
    for sample in 0..samples {
        let next = Instant::now() + PACE;
        let token = format!("event {sample}");
        let patch = json!({"metadata": {"annotations": {"bench.pintle.dev/token": token}}});
        let sent = Instant::now();
        stage.api.merge_patch(&pod_path(sample % pods, false), &patch).await?;
        // Both watches show the same write, so that neither has the better moment.
        pairs.direct.push(milliseconds(direct.wait(&token).await.context("direct")?, sent));
        pairs.view.push(milliseconds(view.wait(&token).await.context("through the view")?, sent));
        tokio::time::sleep_until(next.into()).await;
    }
    pairs.put(stage, Phase::ViewEvent, "p50_ms", 50.0);
    pairs.put(stage, Phase::ViewEvent, "p99_ms", 99.0);
    stage.put(Phase::ViewEvent, "machine_speed", begun.speed());
    Ok(())
}

/// A Llama is changed through its view, and an object of a CRD of the same schema directly, and a watch of each shows it.
pub(super) async fn llama_event(stage: &mut Stage<'_>) -> Result<()> {
    let samples = stage.flags.samples;
    add_twin(stage)?;
    add_namespace(stage, NAMESPACE).await?;
    let user = user(stage).await?;
    let (mut crd, mut view) = (herd(&user, TWINS, samples).await?, herd(&user, LLAMAS, samples).await?);
    let begun = stage.begin()?;
    let mut pairs = Pairs::default();
    for sample in 0..samples {
        let next = Instant::now() + PACE;
        let pair = pairs.add(sample, async |is_view| {
            let (collection, watch) = if is_view { &mut view } else { &mut crd };
            // No Llama twice: whether somebody may write it is asked each time.
            let (path, weight) = (format!("{collection}/{}", llama_name(sample)), 1_000 + sample);
            let sent = Instant::now();
            user.merge_patch(&path, &json!({"spec": {"weight": weight}})).await?;
            Ok(vec![milliseconds(watch.wait(&weight.to_string()).await.context(path)?, sent)])
        });
        pair.await?;
        tokio::time::sleep_until(next.into()).await;
    }
    pairs.put(stage, Phase::ViewWrite, "p50_ms", 50.0);
    pairs.put(stage, Phase::ViewWrite, "p99_ms", 99.0);
    stage.put(Phase::ViewWrite, "machine_speed", begun.speed());
    Ok(())
}

/// Makes Llamas of a group and version, and watches them. Returns their collection too.
async fn herd(user: &Api, api_version: &str, count: u32) -> Result<(String, Watch)> {
    let collection = llamas(api_version, NAMESPACE);
    loader::create(user, &collection, (0..count).map(|number| llama(api_version, number))).await?;
    let watch = Watch::start(user, &collection, BEFORE_WEIGHT).await?;
    Ok((collection, watch))
}

/// A watch, of which only a token in each event is read, and when it came.
struct Watch {
    tokens: mpsc::UnboundedReceiver<(String, Instant)>,
}

impl Watch {
    /// Watches from now on, for tokens that stand behind this text.
    async fn start(api: &Api, collection: &str, before: &'static str) -> Result<Self> {
        let stream = api.watch(collection).await?;
        let (seen, tokens) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut lines = std::pin::pin!(stream.lines());
            while let Some(Ok(line)) = lines.next().await {
                let at = Instant::now();
                if token(&line, before).is_some_and(|token| seen.send((token.to_owned(), at)).is_err()) {
                    break;
                }
            }
        });
        Ok(Self { tokens })
    }

    /// When it has shown a token.
    async fn wait(&mut self, wanted: &str) -> Result<Instant> {
        loop {
            let next = tokio::time::timeout(PATIENCE, self.tokens.recv()).await;
            let next = next.with_context(|| format!("{wanted} is not shown"))?;
            let (token, at) = next.context("a watch ended")?;
            if token == wanted {
                return Ok(at);
            }
        }
    }
}

/// The token of an event, without reading all of it.
fn token<'a>(line: &'a str, before: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(before)?;
    rest.split_once(['"', ',', '}']).map(|(token, _)| token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_found_in_an_event() {
        let event = json!({"type": "MODIFIED", "object": {"metadata": {"annotations": {"bench.pintle.dev/token": "event 7", "a": "b"}}}});
        assert_eq!(token(&event.to_string(), BEFORE_TOKEN), Some("event 7"));
        assert_eq!(token("{}", BEFORE_TOKEN), None);
        let event = json!({"object": {"spec": {"height": 2, "weight": 17}, "f:weight": {}}});
        assert_eq!(token(&event.to_string(), BEFORE_WEIGHT), Some("17"));
    }
}
