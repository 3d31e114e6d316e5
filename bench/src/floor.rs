//! FLOOR: a lower bound for every client that makes the same calls. It watches the roots, makes the four applies and the status write for
//! each of them, and forgets the root. It compares, repairs and keeps nothing.

use std::{collections::HashSet, env, path::Path, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, future::try_join_all, stream};
use guest_bench::{BenchSpec, children, host_name};
use kube::runtime::{WatchStreamExt, watcher};
use serde::Deserialize as _;
use serde_json::{Value, json};
use tokio::{sync::Semaphore, task::JoinSet};

use crate::api::{Api, CHILDREN, KINDS, NAMESPACE, ROOTS};

const MANAGER: &str = "floor";

/// How many requests are in flight, as many as the loader's. NATIVE works on as many roots at once.
const IN_FLIGHT: usize = 16;

/// How often a failed request is sent again: a root without one of its requests would never be right. Each try is a call in the audit log,
/// and so in the figures.
const RETRIES: u32 = 5;
const RETRY_AFTER: Duration = Duration::from_millis(50);

struct Floor {
    api: Api,
    in_flight: Semaphore,
}

/// Makes the calls of a swap over the existing roots, and ends; or else waits for roots.
pub(crate) async fn run(is_swap: bool) -> Result<()> {
    let kubeconfig = env::var_os("KUBECONFIG").context("KUBECONFIG is not set")?;
    let api = Api::connect(Path::new(&kubeconfig)).await?;
    let floor = Floor { api, in_flight: Semaphore::new(IN_FLIGHT) };
    if is_swap { floor.swap().await } else { Arc::new(floor).create().await }
}

impl Floor {
    async fn create(self: Arc<Self>) -> Result<()> {
        // The API server ends the watch of a client that is too slow. Then the missed changes must be listed.
        let roots = watcher(KINDS[0].objects(self.api.client()), watcher::Config::default());
        let mut shown = roots.default_backoff().applied_objects().boxed();
        let mut begun = HashSet::new();
        let mut roots = JoinSet::new();
        loop {
            tokio::select! {
                root = shown.next() => match root.context("the watch ended")? {
                    Ok(root) if begun.insert(root.metadata.uid.clone()) => {
                        let floor = Arc::clone(&self);
                        roots.spawn(async move { floor.root(&serde_json::to_value(root)?, "1", CHILDREN.len()).await });
                    }
                    Ok(_) => {}
                    Err(error) => eprintln!("the watch of the roots begins anew: {error:#}"),
                },
                Some(done) = roots.join_next() => done??,
            }
        }
    }

    /// Applies so many children of a root, and writes its status.
    async fn root(&self, root: &Value, logic: &str, count: usize) -> Result<()> {
        let name = root["metadata"]["name"].as_str().context("a root without a name")?;
        let spec = BenchSpec::deserialize(&root["spec"])?;
        let children = children(name, &spec, logic).into_iter().zip(CHILDREN).take(count);
        let applies = children.map(|(mut child, collection)| {
            child["metadata"]["ownerReferences"] = json!([{
                "apiVersion": "bench.pintle.dev/v1", "kind": "Bench", "name": name, "uid": root["metadata"]["uid"],
                "controller": true, "blockOwnerDeletion": true,
            }]);
            self.apply(format!("{collection}/{name}"), child)
        });
        try_join_all(applies).await?;
        self.write_status(name, root, &spec).await
    }

    /// One apply, of the ConfigMap, and one status write for each root, as many as the host makes.
    async fn swap(&self) -> Result<()> {
        let roots = self.api.list(ROOTS).await?;
        stream::iter(roots.values())
            .map(|root| self.root(root, "2", 1))
            .buffer_unordered(IN_FLIGHT)
            .try_collect()
            .await
    }

    async fn write_status(&self, name: &str, root: &Value, spec: &BenchSpec) -> Result<()> {
        let generation = &root["metadata"]["generation"];
        let object = json!({
            "apiVersion": "bench.pintle.dev/v1", "kind": "Bench",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "status": {
                "observedGeneration": generation, "message": spec.message, "readyReplicas": 0,
                "url": format!("http://{}/", host_name(name)),
                "conditions": [{
                    "type": "Ready", "status": "False", "reason": "Progressing", "message": "the Deployment has not been seen",
                    "lastTransitionTime": "2000-01-01T00:00:00Z", "observedGeneration": generation,
                }],
            },
        });
        self.apply(format!("{ROOTS}/{name}/status"), object).await
    }

    async fn apply(&self, path: String, object: Value) -> Result<()> {
        let _permit = self.in_flight.acquire().await?;
        let mut failures = 0;
        loop {
            match self.api.apply(&path, MANAGER, &object).await {
                Err(error) if failures < RETRIES => {
                    failures += 1;
                    eprintln!("{path} is sent again ({failures} of {RETRIES}): {error:#}");
                    tokio::time::sleep(RETRY_AFTER).await;
                }
                other => return other,
            }
        }
    }
}
