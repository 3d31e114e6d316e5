//! The garbage collector of a run, as far as it works on Llamas: it knows them by an informer of metadata, asks for them and changes them
//! through the view, and treats what they own as kube-controller-manager does.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use pintle_core::object::{self, finalizers, has_finalizer, is_deleting, uid};
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

/// The finalizers that it takes off, in the order in which it looks for them.
const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// A garbage collector.
pub(super) struct Collector {
    world: Arc<World>,
    /// What it knows of Llamas.
    graph: Arc<Informer>,
    /// The uids of Llamas off which it has taken a finalizer, and which, as it was answered. It does not come back to them.
    done: BTreeSet<(String, &'static str)>,
    requests: AtomicU32,
}

impl Collector {
    pub(super) fn new(world: Arc<World>, graph: Arc<Informer>) -> Self {
        Self { world, graph, done: BTreeSet::new(), requests: AtomicU32::new(0) }
    }

    /// Works. Does not end.
    pub(super) async fn run(mut self) {
        loop {
            tokio::time::sleep(EVERY).await;
            let known: Vec<Value> = self.graph.believed().values().cloned().collect();
            for llama in &known {
                self.process(llama).await;
            }
            let uids: BTreeSet<&str> = known.iter().map(uid).collect();
            for dependent in self.world.dependents() {
                if owners(&dependent).any(|owner| !uids.contains(text(owner, "uid"))) {
                    self.attempt_to_delete(&dependent).await;
                }
            }
        }
    }

    /// Does what the finalizers of a Llama that is deleted ask for.
    async fn process(&mut self, llama: &Value) {
        let finalizer = [ORPHAN, FOREGROUND].into_iter().find(|one| has_finalizer(llama, &[*one]));
        let Some(finalizer) = finalizer.filter(|_| is_deleting(llama)) else { return };
        let work = (uid(llama).to_owned(), finalizer);
        if self.done.contains(&work) {
            return;
        }
        let is_of = |owner: &Value| text(owner, "uid") == uid(llama);
        for dependent in self.world.dependents().iter().filter(|one| owners(one).any(is_of)) {
            if finalizer == ORPHAN {
                self.forget_owners(dependent, is_of);
            } else if !is_deleting(dependent) {
                self.attempt_to_delete(dependent).await;
            }
        }
        let holds =
            |owner: &Value| is_of(owner) && (finalizer == ORPHAN || owner["blockOwnerDeletion"] == true);
        let is_held = self.world.dependents().iter().any(|one| owners(one).any(holds));
        if !is_held && self.take_off(llama, finalizer).await {
            self.done.insert(work);
        }
    }

    /// Deletes a dependent whose owners are all gone or wait for it, and otherwise takes the references to those off.
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
        } else {
            self.forget_owners(dependent, |owner| !solid.contains(text(owner, "uid")));
        }
    }

    /// Whether an owner is there and does not wait for its dependents, as the view says now. None: it says nothing of it.
    async fn is_solid(&self, owner: &Value) -> Option<bool> {
        let (code, found) = self.send("GET", text(owner, "name"), None).await?;
        let waits = is_deleting(&found) && has_finalizer(&found, &[FOREGROUND]);
        match code {
            404 => Some(false),
            200 => Some(uid(&found) == text(owner, "uid") && !waits),
            _ => None,
        }
    }

    /// Takes references off a dependent, which is as it is in this moment.
    fn forget_owners(&self, dependent: &Value, which: impl Fn(&Value) -> bool) {
        let left: Vec<&Value> = owners(dependent).filter(|owner| !which(owner)).collect();
        if left.len() < owners(dependent).count() {
            let patch = json!({"metadata": {"ownerReferences": left}});
            let _ = self.world.act(NAME, &merge(&object::reference(dependent), patch));
        }
    }

    /// Takes a finalizer off a Llama through the view. Returns whether it is off, or the Llama gone.
    async fn take_off(&self, llama: &Value, finalizer: &str) -> bool {
        let name = object::name(llama);
        let live = match self.send("GET", name, None).await {
            Some((404, _)) => return true,
            Some((200, live)) => live,
            _ => return false,
        };
        if uid(&live) != uid(llama) || !has_finalizer(&live, &[finalizer]) {
            return true;
        }
        let left: Vec<&str> = finalizers(&live).filter(|one| *one != finalizer).collect();
        let version = &live["metadata"]["resourceVersion"];
        let patch = json!({"metadata": {"resourceVersion": version, "finalizers": left}});
        let answer = self.send("PATCH", name, Some(patch)).await;
        answer.is_some_and(|(code, _)| code < 300 || code == 404)
    }

    async fn send(&self, method: &'static str, name: &str, body: Option<Value>) -> Option<(u16, Value)> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let request = Request {
            method,
            path: format!("{}/{name}", collection("llamas")),
            content_type: body.is_some().then_some("application/merge-patch+json"),
            body,
            accept: Some(METADATA),
            agent: format!("{NAME}-{number}"),
        };
        let answer = tokio::time::timeout(PATIENCE, self.world.send(request)).await.ok()?.ok()?;
        let Content::Whole(found) = answer.content else { return None };
        self.world.say(NAME, format!("{method} {name}: {}", answer.code));
        Some((answer.code, found))
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
