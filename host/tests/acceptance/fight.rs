//! Somebody who sets what a child's root sets, again and again.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use pintle_simulation::scenario::Backend;
use pintle_wit::ObjectRef;
use serde_json::{Value, json};

use crate::real::{Real, is_ready, wait};

pub(crate) const NAME: &str =
    "a root over whose child two fight is slowed, never dropped, said, and recovers";

/// How often the child must have been put right before the root is slowed, and may have been.
const REPAIRS: std::ops::RangeInclusive<usize> = 15..=25;
/// How long a slowed root may take: it is tried every 10 s.
const SLOWED: Duration = Duration::from_secs(15);
/// Faster than this nobody may put a slowed root right.
const SLOWED_MIN: Duration = Duration::from_secs(6);
/// How long after the fight it is ready again: half a minute of calm, and some patience.
const CALM: Duration = Duration::from_secs(50);

/// Beside other scenarios, with the host that runs them.
pub(crate) async fn check(real: &Real<'_>) -> anyhow::Result<()> {
    let namespace = "fight";
    real.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})).await?;
    let root = json!({
        "apiVersion": "my.domain/v1", "kind": "WebServer", "metadata": {"name": "ring", "namespace": namespace},
        "spec": {"image": "nginx:1.23.1", "replicas": 0, "nodePort": 0},
    });
    real.apply(&root).await?;
    let root = pintle_core::object::reference(&root);
    let child = ObjectRef { api_version: "apps/v1".into(), kind: "Deployment".into(), ..root.clone() };
    wait(Duration::from_secs(20), "the root is ready", async || {
        Ok(real.get(&root).await?.is_some_and(|root| is_ready(&root)))
    })
    .await?;

    let mut repairs = 0;
    while condition(real, &root, "Reconciling").await?["reason"] != "Throttled" {
        ensure!(repairs <= *REPAIRS.end(), "it was put right {repairs} times, and is not slowed");
        put_right_after(real, &child, SLOWED).await?;
        repairs += 1;
    }
    ensure!(REPAIRS.contains(&repairs), "it is slowed after {repairs} repairs");
    let ready = condition(real, &root, "Ready").await?;
    ensure!(ready["status"] == "False" && ready["reason"] == "Throttled", "{ready}");
    let message = ready["message"].as_str().unwrap_or_default();
    ensure!(
        message.contains("kubectl-edit") && message.contains("spec.replicas"),
        "who fights over what: {message}"
    );
    wait(Duration::from_secs(5), "an Event and the metric say it, too", async || {
        let events = real.events(&root).await?;
        Ok(events.iter().any(|event| event == "Throttled") && throttled(real)? == 1.0)
    })
    .await?;

    // The first may come soon: it is paid for by the time since the one before.
    put_right_after(real, &child, SLOWED).await.context("it was dropped")?;
    let slowed = put_right_after(real, &child, SLOWED).await.context("it was dropped")?;
    ensure!(slowed > SLOWED_MIN, "it is not slowed: {slowed:?}");
    let calm = Instant::now();
    wait(CALM, "the root is ready once the fight is over", async || {
        Ok(real.get(&root).await?.is_some_and(|root| is_ready(&root)) && throttled(real)? == 0.0)
    })
    .await?;
    println!(
        "        slowed after {repairs} repairs; then one took {:.1} s; ready again after {:.1} s",
        slowed.as_secs_f32(),
        calm.elapsed().as_secs_f32()
    );
    let quick = put_right_after(real, &child, SLOWED).await?;
    ensure!(quick < SLOWED_MIN, "it recovered, and the next repair took {quick:?}");
    real.delete_namespace(namespace)
}

/// Sets the child's replicas, and returns how long it took until they were put right.
async fn put_right_after(real: &Real<'_>, child: &ObjectRef, within: Duration) -> anyhow::Result<Duration> {
    real.patch(child, &json!({"spec": {"replicas": 1}})).await?;
    let begun = Instant::now();
    wait(within, "the child is put right", async || {
        let live = real.get(child).await?.context("the child is gone")?;
        Ok(live.pointer("/spec/replicas") == Some(&json!(0)))
    })
    .await?;
    Ok(begun.elapsed())
}

async fn condition(real: &Real<'_>, root: &ObjectRef, name: &str) -> anyhow::Result<Value> {
    let live = real.get(root).await?.context("the root is gone")?;
    let conditions =
        live.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    Ok(conditions.into_iter().find(|condition| condition["type"] == name).unwrap_or_default())
}

fn throttled(real: &Real<'_>) -> anyhow::Result<f64> {
    let metrics = real.ask_host("/metrics", None)?;
    let line = r#"pintle_roots_throttled{controller="webserver"} "#;
    let found = metrics.lines().find_map(|found| found.strip_prefix(line));
    Ok(found.unwrap_or("0").trim().parse()?)
}
