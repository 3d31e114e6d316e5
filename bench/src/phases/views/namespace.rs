//! A namespace is deleted, with the objects of a view in it.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::json;

use crate::{farm::Farm, settings::Phase};

/// How long a namespace may take to go.
const PATIENCE: Duration = Duration::from_secs(300);

/// How many creates are in flight.
const IN_FLIGHT: usize = 16;

/// While the API server does not know the view.
pub(super) async fn alone(farm: &mut Farm<'_>, namespace: &str) -> Result<()> {
    let seconds =
        deleted(farm, namespace, "store.farm.example.com/v1", "LlamaRecord", "llamarecords").await?;
    farm.put(Phase::ViewNamespace, "alone_s", seconds);
    Ok(())
}

/// With the view, and afterwards once more without it.
pub(super) async fn with_the_view(farm: &mut Farm<'_>) -> Result<()> {
    let begun = farm.begin()?;
    let seconds = deleted(farm, "bench-view", "farm.example.com/v1alpha", "Llama", "llamas").await?;
    farm.put(Phase::ViewNamespace, "with_view_s", seconds);
    farm.end(Phase::ViewNamespace, &begun)?;
    let delete = ["delete", "apiservice", "v1alpha.farm.example.com"];
    tokio::task::block_in_place(|| farm.plane.run_kubectl(&delete, None))?;
    alone(farm, "bench-after").await
}

/// How many seconds a namespace with so many objects takes from the reply to its deletion until it is gone.
async fn deleted(
    farm: &Farm<'_>,
    namespace: &str,
    api_version: &str,
    kind: &str,
    plural: &str,
) -> Result<f64> {
    let llamas = farm.flags.llamas;
    println!("  view-namespace: {llamas} {plural}");
    farm.create_namespace(namespace).await?;
    let (admin, collection) = (&farm.admin, format!("/apis/{api_version}/namespaces/{namespace}/{plural}"));
    let collection = collection.as_str();
    stream::iter(0..llamas)
        .map(|number| async move {
            let llama = json!({
                "apiVersion": api_version, "kind": kind, "metadata": {"name": format!("llama-{number:05}")},
                "spec": {"weight": 31.4, "height": 0.5},
            });
            admin.create(collection, &llama).await
        })
        .buffer_unordered(IN_FLIGHT)
        .try_collect::<()>()
        .await?;
    let path = format!("/api/v1/namespaces/{namespace}");
    admin.delete(&path).await?;
    let (began, until) = (Instant::now(), Instant::now() + PATIENCE);
    while admin.exists(&path).await? {
        ensure!(Instant::now() < until, "namespace {namespace} does not go");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(began.elapsed().as_secs_f64())
}
