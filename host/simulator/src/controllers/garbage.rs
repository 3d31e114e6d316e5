//! Garbage collection, and the deletion of namespaces.

use serde_json::{Value, json};

use super::{ControllerAction, by_uid, is_deleting, of_kind, reference, text};
use crate::{
    Act, Cascade, kinds,
    store::{Key, Store},
    verbs::CRD_FINALIZER,
};

const COLLECTOR: &str = "garbage-collector";

pub(super) fn steps(store: &Store) -> impl Iterator<Item = ControllerAction> {
    orphans(store)
        .into_iter()
        .chain(foreground(store))
        .chain(collect(store))
        .chain(namespaces(store))
        .chain(definitions(store))
}

/// When a CRD is deleted, its objects are deleted too.
fn definitions(store: &Store) -> impl Iterator<Item = ControllerAction> {
    const FINALIZER: &str = "customresource-finalizer";
    of_kind(store, "apiextensions.k8s.io", "customresourcedefinitions")
        .filter(|(_, crd)| is_deleting(crd))
        .filter_map(|(key, crd)| {
            let (group, plural) = (text(crd, "/spec/group"), text(crd, "/spec/names/plural"));
            let mut objects = of_kind(store, group, plural).peekable();
            if objects.peek().is_some() {
                let (key, object) = objects.find(|(_, object)| !is_deleting(object))?;
                let target = reference(key, object);
                return Some(ControllerAction::Act(
                    FINALIZER,
                    Act::Delete { target, cascade: Cascade::Background },
                ));
            }
            let finalizers = crd["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
            let left: Vec<Value> = finalizers.iter().filter(|one| *one != CRD_FINALIZER).cloned().collect();
            let patch = json!({"metadata": {"finalizers": left}});
            let target = reference(key, crd);
            (left.len() < finalizers.len())
                .then_some(ControllerAction::Act(FINALIZER, Act::Merge { target, subresource: None, patch }))
        })
}

/// Whether an owner reference of a dependent matches this object.
fn names(owner: &Value, key: &Key, object: &Value, dependent: &Key) -> bool {
    let kind_fits = owner["kind"] == object["kind"] && owner["name"].as_str() == Some(&key.name);
    // An owner in another namespace does not count.
    kind_fits && (key.namespace.is_empty() || key.namespace == dependent.namespace)
}

fn is_served(store: &Store, owner: &Value) -> bool {
    kinds::of(store, text(owner, "/apiVersion"), text(owner, "/kind")).is_some()
}

fn collect(store: &Store) -> impl Iterator<Item = ControllerAction> {
    let by_uid = by_uid(store);
    store.objects().iter().filter(|(_, object)| !is_deleting(object)).filter_map(move |(key, object)| {
        let owners = object["metadata"]["ownerReferences"].as_array().filter(|owners| !owners.is_empty())?;
        // Whether an owner of a kind that is not served is there, nobody can tell. It may be one of an aggregated API.
        if !owners.iter().all(|owner| is_served(store, owner)) {
            return None;
        }
        let is_there = |owner: &&Value| {
            let found = by_uid.get(owner["uid"].as_str().unwrap_or_default());
            found.is_some_and(|(owner_key, found)| names(owner, owner_key, found, key))
        };
        let (solid, dangling): (Vec<&Value>, Vec<&Value>) = owners.iter().partition(is_there);
        let target = reference(key, object);
        if solid.is_empty() {
            return Some(ControllerAction::Act(
                COLLECTOR,
                Act::Delete { target, cascade: Cascade::Background },
            ));
        }
        if dangling.is_empty() {
            return None;
        }
        let patch = json!({"metadata": {"ownerReferences": solid, "uid": object["metadata"]["uid"]}});
        Some(ControllerAction::Act(COLLECTOR, Act::Merge { target, subresource: None, patch }))
    })
}

/// An object that is deleted and leaves its dependents behind.
fn orphans(store: &Store) -> Option<ControllerAction> {
    let orphan = json!("orphan");
    let finalizers =
        |object: &Value| object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    let (key, owner) = store
        .objects()
        .iter()
        .find(|(_, object)| is_deleting(object) && finalizers(object).contains(&orphan))?;
    let uid = &owner["metadata"]["uid"];
    for (key, dependent) in store.objects() {
        let owners = dependent["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        let left: Vec<&Value> = owners.iter().filter(|owner| owner["uid"] != *uid).collect();
        if left.len() < owners.len() {
            let target = reference(key, dependent);
            let patch = json!({"metadata": {"ownerReferences": left}});
            return Some(ControllerAction::Act(COLLECTOR, Act::Merge { target, subresource: None, patch }));
        }
    }
    let left: Vec<Value> = finalizers(owner).into_iter().filter(|finalizer| *finalizer != orphan).collect();
    let patch = json!({"metadata": {"finalizers": left}});
    Some(ControllerAction::Act(
        COLLECTOR,
        Act::Merge { target: reference(key, owner), subresource: None, patch },
    ))
}

/// An object that is deleted after its dependents.
fn foreground(store: &Store) -> Option<ControllerAction> {
    let waits = json!("foregroundDeletion");
    let finalizers =
        |object: &Value| object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    store
        .objects()
        .iter()
        .filter(|(_, object)| is_deleting(object) && finalizers(object).contains(&waits))
        .find_map(|(key, owner)| {
            let uid = &owner["metadata"]["uid"];
            let mut is_blocked = false;
            for (other, dependent) in store.objects() {
                let owners = dependent["metadata"]["ownerReferences"].as_array();
                let Some(reference_to) = owners.into_iter().flatten().find(|owner| owner["uid"] == *uid)
                else {
                    continue;
                };
                let blocks = reference_to["blockOwnerDeletion"] == true;
                is_blocked |= blocks;
                if !is_deleting(dependent) {
                    // A dependent that blocks its owner waits for its own dependents.
                    let cascade = if blocks { Cascade::Foreground } else { Cascade::Background };
                    let target = reference(other, dependent);
                    return Some(ControllerAction::Act(COLLECTOR, Act::Delete { target, cascade }));
                }
            }
            if is_blocked {
                return None;
            }
            let left: Vec<Value> =
                finalizers(owner).into_iter().filter(|finalizer| *finalizer != waits).collect();
            let patch = json!({"metadata": {"finalizers": left}});
            Some(ControllerAction::Act(
                COLLECTOR,
                Act::Merge { target: reference(key, owner), subresource: None, patch },
            ))
        })
}

/// When a namespace is deleted, everything in it is deleted too.
fn namespaces(store: &Store) -> impl Iterator<Item = ControllerAction> {
    of_kind(store, "", "namespaces").filter(|(_, namespace)| is_deleting(namespace)).filter_map(
        |(key, namespace)| {
            let mut within = store
                .objects()
                .iter()
                .filter(|(other, _)| other.namespace == text(namespace, "/metadata/name"))
                .peekable();
            if within.peek().is_none() {
                return Some(ControllerAction::EndNamespace(key.clone()));
            }
            let (other, object) = within.find(|(_, object)| !is_deleting(object))?;
            let target = reference(other, object);
            Some(ControllerAction::Act(
                "namespace-controller",
                Act::Delete { target, cascade: Cascade::Background },
            ))
        },
    )
}
