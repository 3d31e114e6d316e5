//! Faults by people: changes that nobody should make in a cluster, but that happen.

use std::time::Duration;

use pintle_api::module_objects;
use pintle_core::{
    object::{self, at},
    reconciler,
};
use pintle_engine::Digest;
use pintle_simulator::{Act, Failure, RequestSeen as Request, Verb};
use pintle_wit::{ObjectRef, names};
use serde_json::{Map, Value, json};

use super::{Class, fault::OnWrite, properties::root_kind, script::Troubled, world::World};
use crate::acts::{apply, delete, merge, reference};

/// The time after which such a change is reverted.
const MEDDLED_FOR: Duration = Duration::from_secs(5);

impl World {
    /// Makes such a change after a request. Returns what the change concerns, if it has an effect.
    pub(super) async fn meddle(&self, what: OnWrite, seen: &Request) -> Option<Troubled> {
        let written = object::reference(&seen.body);
        // A patch does not name its object completely. Most writes of hosts are applies.
        if seen.verb != Verb::Apply || written.kind.is_empty() {
            return None;
        }
        // By then the request has been carried out.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let merges = |target: &ObjectRef, patch: Value| self.somebody(&merge(target, patch)).is_ok();
        let edits = || changes(&seen.body).into_iter().any(|patch| merges(&written, patch));
        let Some(root) = self.root_of(&written) else {
            // Objects that hosts patch without owning them are edited, but not deleted: whoever deletes such an object means it. So does
            // whoever sets a field that no host may force.
            let is_own = written.api_version.starts_with("pintle.dev/");
            let is_patched = what == OnWrite::Edit && seen.force && !is_own;
            return (is_patched && edits()).then_some(Troubled::Request(seen.number));
        };
        if matches!(what.class(), Class::BadSwap | Class::BrokenSwap) {
            return self.swap(what, &root).await;
        }
        // Changes of kinds that no watch may show are repaired only with the next edit of their root.
        let is_child = root != written && reconciler::is_watchable(&written.kind());
        let is_done = match what {
            OnWrite::Recreate => self.recreate(&root).await,
            OnWrite::Churn => self.churn(&root).await,
            OnWrite::EditStatus => {
                let (target, subresource) = (root.clone(), Some("status".into()));
                let patch = json!({"status": {"conditions": []}});
                self.somebody(&Act::Merge { target, subresource, patch }).is_ok()
            }
            _ if !is_child => false,
            OnWrite::Edit => edits(),
            OnWrite::Delete => self.somebody(&delete(&written)).is_ok(),
            OnWrite::StripLabels => {
                let labels = json!({names::LABEL_RECONCILER: null, names::LABEL_ROOT: null});
                merges(&written, json!({"metadata": {"labels": labels}}))
            }
            OnWrite::StripOwner => {
                let owners = self.server.object(&written)?["metadata"]["ownerReferences"].clone();
                let is_stripped = merges(&written, json!({"metadata": {"ownerReferences": null}}));
                if is_stripped {
                    // Until somebody restores the owner reference, the object is not provably a child of the root, and the root says so.
                    tokio::time::sleep(MEDDLED_FOR).await;
                    // Whoever has adopted it meanwhile would lose it, since the owner may be gone.
                    let is_adopted = self.server.object(&written).is_some_and(|now| {
                        at(&now, &["metadata", "annotations", names::ANNOTATION_ADOPT]).is_some()
                    });
                    if !is_adopted {
                        merges(&written, json!({"metadata": {"ownerReferences": owners}}));
                    }
                }
                is_stripped
            }
            OnWrite::StripManaged => merges(&written, json!({"metadata": {"managedFields": [{}]}})),
            _ => false,
        };
        // Objects that exist only because of a root concern only that root.
        is_done.then_some(Troubled::Root(root))
    }

    /// Names another module in the Reconciler of a root for a while.
    async fn swap(&self, what: OnWrite, root: &ObjectRef) -> Option<Troubled> {
        let reconciler = self.reconciler_of(root)?;
        let module = format!("{}-{}", what.word(), reconciler.name);
        let spare = self.own.spares.iter().find(|(name, _)| *name == module);
        if what != OnWrite::SwapMissing && spare.is_none() {
            return None;
        }
        let before = self.server.object(&reconciler)?["spec"]["module"].clone();
        // Only one swap at a time, because the end of a swap restores the module from before it.
        if before.as_str().is_some_and(|module| module.starts_with("swap-")) {
            return None;
        }
        let of_spare = spare.map(|(name, bytes)| module_objects(name, bytes, &Digest::of(bytes).to_string()));
        let pushed: Vec<Value> = of_spare.unwrap_or_default();
        for object in &pushed {
            self.somebody(&apply(object)).ok()?;
        }
        let names = |module: Value| merge(&reconciler, json!({"spec": {"module": module}}));
        self.somebody(&names(module.as_str().into())).ok()?;
        tokio::time::sleep(MEDDLED_FOR).await;
        // If somebody else has named another module in the meantime, it stays.
        if self.server.object(&reconciler).is_some_and(|now| now["spec"]["module"] == module.as_str()) {
            let _ = self.somebody(&names(before));
        }
        // Its bytes stay, as with `pintle push`: the Module is held by the history of the Reconciler.
        for module in pushed.iter().filter(|object| object["kind"] == "Module") {
            let _ = self.somebody(&delete(&object::reference(module)));
        }
        Some(Troubled::Of(reconciler))
    }

    fn somebody(&self, act: &Act) -> Result<Value, Failure> {
        let done = self.act("somebody", act);
        let outcome =
            done.as_ref().err().map_or_else(String::new, |failure| format!(": {}", failure.message));
        self.say("somebody", format!("{}{outcome}", named(act)));
        done
    }

    /// The root of an object that a host wrote: the object itself, or the owner in its owner reference.
    fn root_of(&self, written: &ObjectRef) -> Option<ObjectRef> {
        if written.api_version.starts_with("pintle.dev/") {
            return None;
        }
        let live = self.server.object(written)?;
        let Some(owner) = live.pointer("/metadata/ownerReferences/0") else {
            return self.reconciler_of(written).map(|_| written.clone());
        };
        let text = |key: &str| owner[key].as_str().unwrap_or_default();
        Some(reference(text("apiVersion"), text("kind"), written.namespace.as_deref(), text("name")))
    }

    fn reconciler_of(&self, root: &ObjectRef) -> Option<ObjectRef> {
        let snapshot = self.server.snapshot();
        let mut reconcilers = snapshot.objects.iter().filter(|(reference, _)| reference.kind == "Reconciler");
        let found = reconcilers.find(|(_, object)| root_kind(object) == Some(root.kind()));
        found.map(|(reference, _)| reference.clone())
    }

    /// Changes the spec of a root for a while, as far as the API server allows it. Returns whether that succeeded.
    async fn churn(&self, root: &ObjectRef) -> bool {
        let before = self.server.object(root).and_then(|root| root["spec"].as_object().cloned());
        let Some(before) = before.filter(|before| !before.is_empty()) else { return false };
        let merged = |spec: Value| self.somebody(&merge(root, json!({"spec": spec}))).ok();
        let nulls: Map<String, Value> = before.keys().map(|key| (key.clone(), Value::Null)).collect();
        let one = |key: &String| json!({key.as_str(): null});
        let changed = changes(&json!({"spec": before})).into_iter().map(|patch| patch["spec"].clone());
        let mut tries = std::iter::once(Value::Object(nulls)).chain(before.keys().map(one)).chain(changed);
        let Some(meddled) = tries.find_map(merged) else { return false };
        tokio::time::sleep(MEDDLED_FOR).await;
        // If somebody else has changed the spec in the meantime, that change stays.
        if self.server.object(root).is_some_and(|now| now["spec"] == meddled["spec"]) {
            merged(Value::Object(before));
        }
        true
    }

    /// Deletes a root and creates it again. Returns whether that succeeded.
    async fn recreate(&self, root: &ObjectRef) -> bool {
        let Some(before) = self.server.object(root) else { return false };
        if self.somebody(&delete(root)).is_err() {
            return false;
        }
        let (until, since) = (self.origin.elapsed() + Duration::from_secs(60), self.script().steps.len());
        while self.server.object(root).is_some() {
            if self.origin.elapsed() >= until {
                self.say("somebody", format!("waits in vain for the end of {root}"));
                return true;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        let deleted = format!("deletes {root}");
        if self.script().steps.iter().skip(since).any(|step| step.who == "user" && step.what == deleted) {
            return true;
        }
        let metadata = json!({
            "name": root.name, "namespace": root.namespace,
            "labels": before["metadata"]["labels"], "annotations": before["metadata"]["annotations"],
        });
        let mut object = json!({
            "apiVersion": root.api_version, "kind": root.kind, "metadata": metadata, "spec": before["spec"],
        });
        without_nulls(&mut object);
        let _ = self.somebody(&apply(&object));
        true
    }
}

fn without_nulls(value: &mut Value) {
    if let Some(map) = value.as_object_mut() {
        map.retain(|_, value| !value.is_null());
        map.values_mut().for_each(without_nulls);
    }
}

pub(super) fn named(act: &Act) -> String {
    match act {
        Act::Apply { object, .. } => format!("applies {}", object::reference(object)),
        Act::Merge { target, patch, .. } => format!("patches {target} with {patch}"),
        Act::Delete { target, .. } => format!("deletes {target}"),
        _ => "acts".into(),
    }
}

/// Merge patches that each change one value of a written object, the most useful ones first.
fn changes(written: &Value) -> Vec<Value> {
    fn leaves(value: &Value, path: &mut Vec<String>, found: &mut Vec<Value>) {
        let changed = match value {
            Value::Object(map) => {
                for (key, value) in map {
                    path.push(key.clone());
                    leaves(value, path, found);
                    path.pop();
                }
                return;
            }
            Value::String(text) => json!(format!("{text}-meddled")),
            Value::Number(number) => json!(number.as_i64().unwrap_or(0) + 1),
            Value::Bool(is) => json!(!is),
            _ => return,
        };
        found.push(path.iter().rev().fold(changed, |inner, key| json!({key.as_str(): inner})));
    }
    let mut found = Vec::new();
    for (key, value) in written.as_object().into_iter().flatten() {
        if !matches!(key.as_str(), "apiVersion" | "kind" | "metadata" | "status") {
            leaves(value, &mut vec![key.clone()], &mut found);
        }
    }
    let labels = at(written, &["metadata", "labels"]).and_then(Value::as_object);
    for (key, _) in labels.into_iter().flatten().filter(|(key, _)| !key.starts_with("pintle.dev/")) {
        found.push(json!({"metadata": {"labels": {key.as_str(): "meddled"}}}));
    }
    found
}
