//! FLOOR: a lower bound for every client that makes the same calls. It watches the roots, makes the four applies and the status write for
//! each of them, and forgets the root. It compares, repairs and keeps nothing.

use std::{collections::HashSet, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, future::try_join_all, stream};
use guest_bench::{BenchSpec, children, host_name};
use kube::{
    api::{ApiResource, DynamicObject, GroupVersionKind},
    runtime::{WatchStreamExt, watcher},
};
use serde_json::{Value, json};
use tokio::{sync::Semaphore, task::JoinSet};

use crate::api::{Api, CHILDREN, NAMESPACE, ROOTS};

const MANAGER: &str = "floor";

/// As long as the host's hash.
const HASH: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

/// How often a failed request is sent again: a root without one of its requests would never be right. Each try is a call in the audit log,
/// and so in the figures.
const RETRIES: u32 = 5;
const RETRY_AFTER: Duration = Duration::from_millis(50);

/// The flags of FLOOR's process.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Flags {
    #[arg(long)]
    floor_kubeconfig: PathBuf,
    /// Requests in flight.
    #[arg(long)]
    concurrency: usize,
    /// Instead of waiting for roots: make the calls of a swap over the existing roots, and end.
    #[arg(long)]
    swap: bool,
    /// With `--swap`: the logic to write into the ConfigMaps.
    #[arg(long, default_value = "1")]
    logic: String,
    /// With `--swap`: write every root's status, too.
    #[arg(long)]
    statuses: bool,
    /// Also send what an owner needs: the host's labels and hash on children, its conditions and digest in statuses.
    #[arg(long)]
    marked: bool,
}

struct Floor {
    api: Api,
    in_flight: Semaphore,
    marked: bool,
}

pub(crate) async fn run(flags: Flags) -> Result<()> {
    let floor = Arc::new(Floor {
        api: Api::connect(&flags.floor_kubeconfig).await?,
        in_flight: Semaphore::new(flags.concurrency),
        marked: flags.marked,
    });
    if flags.swap { floor.swap(&flags.logic, flags.statuses).await } else { floor.create().await }
}

impl Floor {
    async fn create(self: Arc<Self>) -> Result<()> {
        let kind = GroupVersionKind::gvk("bench.pintle.dev", "v1", "Bench");
        let roots: kube::Api<DynamicObject> = kube::Api::namespaced_with(
            self.api.client(),
            NAMESPACE,
            &ApiResource::from_gvk_with_plural(&kind, "benches"),
        );
        // The API server ends the watch of a client that is too slow. Then the missed changes must be listed.
        let mut shown =
            watcher(roots, watcher::Config::default()).default_backoff().applied_objects().boxed();
        let mut begun = HashSet::new();
        let mut roots = JoinSet::new();
        loop {
            tokio::select! {
                root = shown.next() => match root.context("the watch ended")? {
                    Ok(root) if begun.insert(root.metadata.uid.clone()) => {
                        let floor = Arc::clone(&self);
                        roots.spawn(async move { floor.root(&serde_json::to_value(root)?).await });
                    }
                    Ok(_) => {}
                    Err(error) => eprintln!("the watch of the roots begins anew: {error:#}"),
                },
                Some(done) = roots.join_next() => done??,
            }
        }
    }

    async fn root(&self, root: &Value) -> Result<()> {
        let (name, spec) = read(root)?;
        let applies = children(&name, &spec, "1").into_iter().zip(CHILDREN).map(|(child, collection)| {
            let name = &name;
            async move { self.apply(format!("{collection}/{name}"), self.owned(child, root)).await }
        });
        try_join_all(applies).await?;
        self.write_status(&name, root, &spec).await
    }

    async fn swap(&self, logic: &str, statuses: bool) -> Result<()> {
        let roots = self.api.list(ROOTS).await?;
        stream::iter(&roots)
            .map(|root| async move {
                let (name, spec) = read(root)?;
                let [config_map, ..] = children(&name, &spec, logic);
                let [collection, ..] = CHILDREN;
                self.apply(format!("{collection}/{name}"), self.owned(config_map, root)).await?;
                if statuses { self.write_status(&name, root, &spec).await } else { Ok(()) }
            })
            .buffer_unordered(self.in_flight.available_permits())
            .try_collect::<()>()
            .await
    }

    async fn write_status(&self, name: &str, root: &Value, spec: &BenchSpec) -> Result<()> {
        let generation = &root["metadata"]["generation"];
        let condition = json!({
            "type": "Ready", "status": "False", "reason": "Progressing", "message": "the Deployment has not been seen",
            "lastTransitionTime": "2000-01-01T00:00:00Z", "observedGeneration": generation,
        });
        let mut object = json!({
            "apiVersion": "bench.pintle.dev/v1", "kind": "Bench",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "status": {
                "observedGeneration": generation, "message": spec.message, "readyReplicas": 0,
                "url": format!("http://{}/", host_name(name)), "conditions": [condition],
            },
        });
        if self.marked {
            let mut reconciling = condition.clone();
            (reconciling["type"], reconciling["status"]) = ("Reconciling".into(), "True".into());
            object["status"]["conditions"] = json!([condition, reconciling]);
            object["status"]["pintle"] = json!({"moduleDigest": HASH});
        }
        self.apply(format!("{ROOTS}/{name}/status"), object).await
    }

    fn owned(&self, mut child: Value, root: &Value) -> Value {
        let metadata = &mut child["metadata"];
        metadata["ownerReferences"] = json!([{
            "apiVersion": "bench.pintle.dev/v1", "kind": "Bench", "name": root["metadata"]["name"], "uid": root["metadata"]["uid"],
            "controller": true, "blockOwnerDeletion": true,
        }]);
        if self.marked {
            metadata["annotations"] = json!({"pintle.dev/desired": HASH});
            metadata["labels"]["pintle.dev/reconciler"] = "bench".into();
            metadata["labels"]["pintle.dev/root"] = root["metadata"]["uid"].clone();
        }
        child
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

fn read(root: &Value) -> Result<(String, BenchSpec)> {
    let name = root["metadata"]["name"].as_str().context("a root without a name")?;
    Ok((name.to_owned(), serde::Deserialize::deserialize(&root["spec"])?))
}
