//! Somebody who sets what a child's root sets, again and again.

use anyhow::{Context, ensure};
use kit::{Look, eventually, host::or_error};
use pintle_simulation::scenario::Backend;
use pintle_wit::ObjectRef;
use serde_json::json;

use crate::real::{Real, condition, deployment, is_ready, web_server};

pub(crate) const NAME: &str =
    "a root over whose child two fight is slowed, never dropped, said, and recovers";

/// How often the child must have been put right before the root is slowed, or a person who edits by hand would be slowed too. It is twenty
/// times, less what the root has spent before.
const REPAIRS_MIN: usize = 10;

/// With the host that runs the scenarios.
pub(crate) async fn check(real: &Real<'_>) -> anyhow::Result<()> {
    let namespace = "fight";
    real.make_namespace(namespace)?;
    let root = web_server(namespace, "ring", "nginx:1.23.1");
    real.apply(&root).await?;
    let root = pintle_core::object::reference(&root);
    let child = deployment(namespace, "ring");
    real.wait_until_ready(&root).await?;

    let mut repairs = 0;
    let slowed = eventually("the root is slowed", async || {
        let live = real.get(&root).await?.context("the root is gone")?;
        if condition(&live, "Reconciling")["reason"] == "Throttled" {
            return Ok(Look::Reached(live));
        }
        put_right(real, &child).await?;
        repairs += 1;
        Ok(Look::NotYet(format!("its child was put right {repairs} times: {}", live["status"])))
    })
    .await?;
    ensure!(repairs >= REPAIRS_MIN, "it is slowed after {repairs} repairs");
    println!("        slowed after {repairs} repairs");
    let ready = condition(&slowed, "Ready");
    ensure!(ready["status"] == "False" && ready["reason"] == "Throttled", "{ready}");
    let message = ready["message"].as_str().unwrap_or_default();
    ensure!(
        message.contains("kubectl-edit") && message.contains("spec.replicas"),
        "who fights over what: {message}"
    );
    eventually("an Event and the metric say it, too", async || {
        let events = real.events(&root).await;
        or_error(events.and_then(|events| {
            let throttled = throttled(real)?;
            let is_so = events.iter().any(|event| event == "Throttled") && throttled == 1.0;
            Ok(Look::reached_if(is_so, || format!("{events:?}, {throttled} roots")))
        }))
    })
    .await?;

    for _ in 0..2 {
        put_right(real, &child).await.context("it was dropped")?;
    }
    eventually("the root is ready once the fight is over", async || {
        let live = real.get(&root).await;
        or_error(live.and_then(|live| {
            let (live, throttled) = (live.unwrap_or_default(), throttled(real)?);
            let is_so = is_ready(&live) && throttled == 0.0;
            Ok(Look::reached_if(is_so, || format!("{}, {throttled} roots", live["status"])))
        }))
    })
    .await?;
    put_right(real, &child).await.context("it recovered")?;
    real.delete_namespace(namespace)
}

/// Sets the child's replicas, and waits until they are put right.
async fn put_right(real: &Real<'_>, child: &ObjectRef) -> anyhow::Result<()> {
    real.patch(child, &json!({"spec": {"replicas": 1}})).await?;
    real.wait_for("it is put right", child, |live| live["spec"]["replicas"] == 0).await
}

fn throttled(real: &Real<'_>) -> anyhow::Result<f64> {
    real.metric(r#"pintle_roots_throttled{controller="webserver"}"#)
}
