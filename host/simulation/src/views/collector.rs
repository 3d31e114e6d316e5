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

use pintle_simulator::{Act, Cascade};
use pintle_wit::ObjectRef;
use serde_json::{Value, json};

use super::{
    collection,
    gateways::{Content, Request},
    informer::{Informer, METADATA},
    objects::{is_owned, owned, owners},
    world::World,
};

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

/// What an owner is to a dependent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// It is there.
    Solid,
    /// It is gone, or another one has its name.
    Dangling,
    /// It waits until its dependents are gone.
    Waiting,
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
        let has = |finalizer: &str| {
            let finalizers = llama["metadata"]["finalizers"].as_array();
            finalizers.is_some_and(|finalizers| finalizers.iter().any(|one| one == finalizer))
        };
        let is_deleted = llama["metadata"].get("deletionTimestamp").is_some();
        let finalizer = [ORPHAN, FOREGROUND].into_iter().find(|finalizer| has(finalizer));
        let Some(finalizer) = finalizer.filter(|_| is_deleted) else { return };
        let work = (uid(llama).to_owned(), finalizer);
        if self.done.contains(&work) {
            return;
        }
        let is_of = |owner: &&Value| text(owner, "uid") == uid(llama);
        for dependent in self.world.dependents().iter().filter(|one| owners(one).any(|owner| is_of(&owner))) {
            match finalizer {
                ORPHAN => self.forget_owners(dependent, |owner| is_of(&owner)),
                _ if dependent["metadata"].get("deletionTimestamp").is_none() => {
                    self.attempt_to_delete(dependent).await;
                }
                _ => {}
            }
        }
        let left = self.world.dependents();
        let holds = |owner: &Value| {
            is_of(&owner)
                && (finalizer == ORPHAN || owner.get("blockOwnerDeletion") == Some(&Value::Bool(true)))
        };
        if !left.iter().any(|one| owners(one).any(holds)) && self.take_off(llama, finalizer).await {
            self.done.insert(work);
        }
    }

    /// Deletes a dependent whose owners are all gone or wait for it, and otherwise takes the references to those off.
    async fn attempt_to_delete(&self, dependent: &Value) {
        let mut judged = Vec::new();
        for owner in owners(dependent) {
            // While the owner cannot be asked for, nothing is done.
            let Some(is) = self.ask(owner).await else { return };
            judged.push((text(owner, "uid").to_owned(), is));
        }
        let target = reference(dependent);
        let now = self.world.server.object(&target);
        let is_as_seen = now.is_some_and(|now| {
            now["metadata"]["resourceVersion"] == dependent["metadata"]["resourceVersion"]
        });
        if !is_as_seen {
            return;
        }
        match judged.iter().any(|(_, is)| *is == Owner::Solid) {
            false => drop(self.world.act(NAME, &Act::Delete { target, cascade: Cascade::Background })),
            true => self.forget_owners(dependent, |owner| {
                judged.iter().any(|(uid, is)| uid == text(owner, "uid") && *is != Owner::Solid)
            }),
        }
    }

    /// What an owner is, as the view says now. None: it says nothing of it.
    async fn ask(&self, owner: &Value) -> Option<Owner> {
        let (code, found) = self.send("GET", text(owner, "name"), None).await?;
        let is_waiting = || {
            let finalizers = found["metadata"]["finalizers"].as_array();
            found["metadata"].get("deletionTimestamp").is_some()
                && finalizers.is_some_and(|finalizers| finalizers.iter().any(|one| one == FOREGROUND))
        };
        match code {
            404 => Some(Owner::Dangling),
            200 if uid(&found) != text(owner, "uid") => Some(Owner::Dangling),
            200 if is_waiting() => Some(Owner::Waiting),
            200 => Some(Owner::Solid),
            _ => None,
        }
    }

    /// Takes references off a dependent, which is as it is in this moment.
    fn forget_owners(&self, dependent: &Value, which: impl Fn(&Value) -> bool) {
        let left: Vec<&Value> = owners(dependent).filter(|owner| !which(owner)).collect();
        if left.len() < owners(dependent).count() {
            let patch = json!({"metadata": {"ownerReferences": left}});
            let act = Act::Merge { target: reference(dependent), subresource: None, patch };
            drop(self.world.act(NAME, &act));
        }
    }

    /// Takes a finalizer off a Llama through the view. Returns whether it is off, or the Llama gone.
    async fn take_off(&self, llama: &Value, finalizer: &str) -> bool {
        let name = text(&llama["metadata"], "name");
        match self.send("GET", name, None).await {
            Some((404, _)) => true,
            Some((200, live)) if uid(&live) != uid(llama) => true,
            Some((200, live)) => {
                let finalizers = live["metadata"]["finalizers"].as_array().into_iter().flatten();
                let left: Vec<&Value> = finalizers.clone().filter(|one| *one != finalizer).collect();
                if left.len() == finalizers.count() {
                    return true;
                }
                let patch = json!({"metadata": {
                    "resourceVersion": live["metadata"]["resourceVersion"], "finalizers": left,
                }});
                self.send("PATCH", name, Some(patch)).await.is_some_and(|(code, _)| code < 300 || code == 404)
            }
            _ => false,
        }
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
        self.world.script().say(NAME, format!("{method} {name}: {}", answer.code));
        Some((answer.code, found))
    }
}

fn uid(object: &Value) -> &str {
    text(&object["metadata"], "uid")
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn reference(dependent: &Value) -> ObjectRef {
    owned(text(&dependent["metadata"], "name"))
}

impl World {
    /// What Llamas own.
    pub(super) fn dependents(&self) -> Vec<Value> {
        let snapshot = self.server.snapshot();
        snapshot
            .objects
            .values()
            .filter(|object| is_owned(object))
            .map(|object| Value::clone(object))
            .collect()
    }
}
