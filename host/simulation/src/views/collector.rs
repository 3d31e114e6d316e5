//! The garbage collector of a run, as far as it works on Llamas: it knows them by an informer of metadata, asks for them through the view,
//! and deletes what names one that is gone as its owner, as kube-controller-manager does.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use pintle_core::object::{self, uid};
use serde_json::{Value, json};

use super::{
    collection,
    gateways::{Content, Request},
    informer::{Informer, METADATA},
    objects::{is_owned, owners},
    world::World,
};
use crate::acts::{delete, merge};

/// How often it looks at what there is to do.
const EVERY: Duration = Duration::from_millis(500);

/// How long it waits for an answer. A request without one is made again.
const PATIENCE: Duration = Duration::from_secs(10);

/// Its name.
const NAME: &str = "garbage-collector";

/// A garbage collector.
pub(super) struct Collector {
    world: Arc<World>,
    /// What it knows of Llamas.
    graph: Arc<Informer>,
    requests: AtomicU32,
}

impl Collector {
    pub(super) fn new(world: Arc<World>, graph: Arc<Informer>) -> Self {
        Self { world, graph, requests: AtomicU32::new(0) }
    }

    /// Works. Does not end.
    pub(super) async fn run(self) {
        loop {
            tokio::time::sleep(EVERY).await;
            let uids: BTreeSet<String> =
                self.graph.believed().values().map(|llama| uid(llama).to_owned()).collect();
            for dependent in self.world.dependents() {
                if owners(&dependent).any(|owner| !uids.contains(text(owner, "uid"))) {
                    self.attempt_to_delete(&dependent).await;
                }
            }
        }
    }

    /// Deletes a dependent whose owners are all gone, and otherwise takes the references to those off.
    async fn attempt_to_delete(&self, dependent: &Value) {
        let mut solid: BTreeSet<&str> = BTreeSet::new();
        for owner in owners(dependent) {
            // While the owner cannot be asked for, nothing is done.
            let Some(is_solid) = self.is_solid(owner).await else { return };
            solid.extend(is_solid.then(|| text(owner, "uid")));
        }
        let target = object::reference(dependent);
        let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
        if self.world.server.object(&target).is_none_or(|now| version(&now) != version(dependent)) {
            return;
        }
        if solid.is_empty() {
            let _ = self.world.act(NAME, &delete(&target));
            return;
        }
        let left: Vec<&Value> =
            owners(dependent).filter(|owner| solid.contains(text(owner, "uid"))).collect();
        if left.len() < owners(dependent).count() {
            let _ = self.world.act(NAME, &merge(&target, json!({"metadata": {"ownerReferences": left}})));
        }
    }

    /// Whether an owner is there, as the view says now. None: it says nothing of it.
    async fn is_solid(&self, owner: &Value) -> Option<bool> {
        let (name, number) = (text(owner, "name"), self.requests.fetch_add(1, Ordering::Relaxed));
        let request = Request {
            accept: Some(METADATA),
            agent: format!("{NAME}-{number}"),
            ..Request::get(format!("{}/{name}", collection("llamas")))
        };
        let answer = tokio::time::timeout(PATIENCE, self.world.send(request)).await.ok()?.ok()?;
        let Content::Whole(found) = answer.content else { return None };
        self.world.say(NAME, format!("GET {name}: {}", answer.code));
        match answer.code {
            404 => Some(false),
            200 => Some(uid(&found) == text(owner, "uid")),
            _ => None,
        }
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

impl World {
    /// What Llamas own.
    pub(super) fn dependents(&self) -> Vec<Value> {
        let snapshot = self.server.snapshot();
        let owned = snapshot.objects.values().filter(|object| is_owned(object));
        owned.map(|object| Value::clone(object)).collect()
    }
}
