//! The load on the cluster. It is the same for all contestants.

use std::time::Instant;

use anyhow::Result;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

use crate::api::{Api, ROOTS};

/// How many creates are in flight: enough that the API server is the limit, and not the loader.
const IN_FLIGHT: usize = 16;

/// A root, as it is sent.
pub(crate) fn root(name: &str, replicas: u32, message: &str) -> Value {
    json!({
        "apiVersion": "bench.pintle.dev/v1", "kind": "Bench", "metadata": {"name": name},
        "spec": {"replicas": replicas, "message": message},
    })
}

/// The name of the root with this number.
pub(crate) fn name(number: u32) -> String {
    format!("root-{number:05}")
}

/// Creates all of these roots as fast as possible, and returns when it began.
pub(crate) async fn create(api: &Api, numbers: std::ops::Range<u32>, replicas: u32) -> Result<Instant> {
    let began = Instant::now();
    stream::iter(numbers)
        .map(|number| async move { api.create(ROOTS, &root(&name(number), replicas, "as created")).await })
        .buffer_unordered(IN_FLIGHT)
        .try_collect::<()>()
        .await?;
    Ok(began)
}
