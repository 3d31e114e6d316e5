//! The load on the cluster. It is the same for all contestants.

use anyhow::Result;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

use crate::api::Api;

/// How many creates are in flight: enough that the API server is the limit, and not the loader.
const IN_FLIGHT: usize = 16;

/// A root, as it is sent.
pub(crate) fn root(name: &str, message: &str) -> Value {
    json!({
        "apiVersion": "bench.pintle.dev/v1", "kind": "Bench", "metadata": {"name": name},
        "spec": {"replicas": 0, "message": message},
    })
}

/// The name of the root with this number.
pub(crate) fn name(number: u32) -> String {
    format!("root-{number:05}")
}

/// Creates objects as fast as possible.
pub(crate) async fn create(
    api: &Api,
    collection: &str,
    objects: impl IntoIterator<Item = Value>,
) -> Result<()> {
    stream::iter(objects)
        .map(|object| async move { api.create(collection, &object).await })
        .buffer_unordered(IN_FLIGHT)
        .try_collect()
        .await
}
