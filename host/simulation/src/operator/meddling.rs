//! Faults by people: changes that nobody should make in a cluster, but that happen.

use std::time::Duration;

use pintle_api::module_objects;
use pintle_core::{object::at, reconciler};
use pintle_engine::Digest;
use pintle_simulator::{Act, Failure, RequestSeen as Request, Verb};
use pintle_wit::{ObjectRef, names};
use serde_json::{Map, Value, json};

use super::{fault::OnWrite, script::Troubled, world::World};

/// The time after which such a change is reverted.
const MEDDLED_FOR: Duration = Duration::from_secs(5);

impl World {
    /// Makes such a change after a request. Returns what the change concerns, if it has an effect.
    pub(super) async fn meddle(&self, what: OnWrite, seen: &Request) -> Option<Troubled> {
        let written = pintle_core::object::reference(&seen.body);
        // A patch does not name its object completely. Most writes of hosts are applies.
        if seen.verb != Verb::Apply || written.kind.is_empty() {
            return None;
        }
        // By then the request has been carried out.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let merge = |target: &ObjectRef, subresource: Option<&str>, patch: Value| {
            let subresource = subresource.map(Into::into);
            self.somebody(&Act::Merge { target: target.clone(), subresource, patch })
        };
        let Some(root) = self.root_of(&written) else {
            // Objects that hosts patch without owning them are edited, but not deleted: whoever deletes such an object means it.
            let is_patched = what == OnWrite::Edit && !written.api_version.starts_with("pintle.dev/");
            let mut changes = changes(&seen.body).into_iter().filter(|_| is_patched);
            let is_done = changes.any(|patch| merge(&written, None, patch).is_ok());
            return is_done.then_some(Troubled::Request(seen.number));
        };
        let is_root = root == written;
        // Objects that exist only because of a root concern only that root.
        let troubled = Troubled::Root(root.clone());
        let is_done = match what {
            OnWrite::Recreate => self.recreate(&root).await,
            OnWrite::EditStatus => {
                merge(&root, Some("status"), json!({"status": {"conditions": []}})).is_ok()
            }
            OnWrite::Churn => self.churn(&root).await,
            OnWrite::SwapTraps
            | OnWrite::SwapBroken
            | OnWrite::SwapLoops
            | OnWrite::SwapAllocates
            | OnWrite::SwapMissing => return self.swap(what, &root).await,
            // Changes of kinds that no watch may show are repaired only with the next edit of their root.
            _ if is_root || !reconciler::is_watchable(&written.kind()) => false,
            OnWrite::Edit => {
                let changes = changes(&seen.body);
                changes.into_iter().any(|patch| merge(&written, None, patch).is_ok())
            }
            OnWrite::Delete => {
                let cascade = pintle_simulator::Cascade::Background;
                self.somebody(&Act::Delete { target: written, cascade }).is_ok()
            }
            OnWrite::StripLabels => {
                let labels = json!({names::LABEL_RECONCILER: null, names::LABEL_ROOT: null});
                merge(&written, None, json!({"metadata": {"labels": labels}})).is_ok()
            }
            OnWrite::StripOwner => {
                let owners = self.server.object(&written)?["metadata"]["ownerReferences"].clone();
                let is_stripped =
                    merge(&written, None, json!({"metadata": {"ownerReferences": null}})).is_ok();
                if is_stripped {
                    // Until somebody restores the owner reference, the object is not provably a child of the root, and the root says so.
                    tokio::time::sleep(MEDDLED_FOR).await;
                    let _ = merge(&written, None, json!({"metadata": {"ownerReferences": owners}}));
                }
                is_stripped
            }
            OnWrite::StripManaged => {
                merge(&written, None, json!({"metadata": {"managedFields": [{}]}})).is_ok()
            }
            _ => false,
        };
        is_done.then_some(troubled)
    }

    /// Names another module in the Reconciler of a root for a while.
    async fn swap(&self, what: OnWrite, root: &ObjectRef) -> Option<Troubled> {
        let reconciler = self.reconciler_of(root)?;
        let other = format!("{}-{}", what.word(), reconciler.name);
        let spare = self.own.spares.iter().find(|(name, _)| *name == other);
        if what != OnWrite::SwapMissing && spare.is_none() {
            return None;
        }
        let before = self.server.object(&reconciler).map(|object| object["spec"]["module"].clone());
        // Only one swap at a time, because the end of a swap restores the module from before it.
        if before.as_ref().and_then(Value::as_str).is_some_and(|module| module.starts_with("swap-")) {
            return None;
        }
        let pushed: Vec<Value> = spare
            .into_iter()
            .flat_map(|(name, bytes)| module_objects(name, bytes, &Digest::of(bytes).to_string()))
            .collect();
        for object in &pushed {
            let object = object.clone();
            self.somebody(&Act::Apply { object, manager: "kubectl".into(), force: true }).ok()?;
        }
        let patch = |module: Value| Act::Merge {
            target: reconciler.clone(),
            subresource: None,
            patch: json!({"spec": {"module": module}}),
        };
        self.somebody(&patch(other.as_str().into())).ok()?;
        tokio::time::sleep(MEDDLED_FOR).await;
        // If somebody else has named another module in the meantime, it stays.
        if self.server.object(&reconciler).is_some_and(|now| now["spec"]["module"] == other.as_str()) {
            let _ = self.somebody(&patch(before.unwrap_or_default()));
        }
        for object in &pushed {
            let cascade = pintle_simulator::Cascade::Background;
            let _ = self.somebody(&Act::Delete { target: pintle_core::object::reference(object), cascade });
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
        let owner = live.pointer("/metadata/ownerReferences/0").cloned();
        let Some(owner) = owner else {
            return self.reconciler_of(written).map(|_| written.clone());
        };
        let text = |key: &str| owner[key].as_str().unwrap_or_default().to_owned();
        Some(ObjectRef {
            api_version: text("apiVersion"),
            kind: text("kind"),
            namespace: written.namespace.clone(),
            name: text("name"),
        })
    }

    fn reconciler_of(&self, root: &ObjectRef) -> Option<ObjectRef> {
        let snapshot = self.server.snapshot();
        let found = snapshot.objects.iter().find(|(reference, object)| {
            reference.kind == "Reconciler"
                && object["spec"]["for"]["kind"] == root.kind.as_str()
                && object["spec"]["for"]["apiVersion"] == root.api_version.as_str()
        });
        found.map(|(reference, _)| reference.clone())
    }

    /// Changes the spec of a root for a while, as far as the API server allows it. Returns whether that succeeded.
    async fn churn(&self, root: &ObjectRef) -> bool {
        let Some(before) = self.server.object(root) else { return false };
        let before = before["spec"].as_object().cloned().unwrap_or_default();
        if before.is_empty() {
            return false;
        }
        let merge = |spec: Value| {
            let patch = json!({"spec": spec});
            self.somebody(&Act::Merge { target: root.clone(), subresource: None, patch })
        };
        let nulls: Map<String, Value> = before.keys().map(|key| (key.clone(), Value::Null)).collect();
        let one = |key: &String| json!({key.as_str(): null});
        let changed = changes(&json!({"spec": before})).into_iter().map(|patch| patch["spec"].clone());
        let mut tries = std::iter::once(Value::Object(nulls)).chain(before.keys().map(one)).chain(changed);
        let Some(meddled) = tries.find_map(|spec| merge(spec).ok()) else { return false };
        tokio::time::sleep(MEDDLED_FOR).await;
        // If somebody else has changed the spec in the meantime, that change stays.
        if self.server.object(root).is_some_and(|now| now["spec"] == meddled["spec"]) {
            let _ = merge(Value::Object(before));
        }
        true
    }

    /// Deletes a root and creates it again. Returns whether that succeeded.
    async fn recreate(&self, root: &ObjectRef) -> bool {
        let Some(before) = self.server.object(root) else { return false };
        let cascade = pintle_simulator::Cascade::Background;
        if self.somebody(&Act::Delete { target: root.clone(), cascade }).is_err() {
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
        let _ = self.somebody(&Act::Apply { object, manager: "kubectl".into(), force: true });
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
        Act::Apply { object, .. } => format!("applies {}", pintle_core::object::reference(object)),
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
