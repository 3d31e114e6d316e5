//! Garbage collection, and the deletion of namespaces.

use pintle_core::object::{finalizers, has_finalizer, is_deleting};
use serde_json::{Value, json};

use super::{ControllerAction, by_uid, delete, live, merge, of_kind, text};
use crate::{
    Cascade, kinds,
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
    let crds = of_kind(store, "apiextensions.k8s.io", "customresourcedefinitions").map(|(_, crd)| crd);
    crds.filter(|crd| is_deleting(crd)).filter_map(|crd| {
        let (group, plural) = (text(crd, "/spec/group"), text(crd, "/spec/names/plural"));
        if of_kind(store, group, plural).next().is_some() {
            return Some(delete(FINALIZER, live(store, group, plural).next()?, Cascade::Background));
        }
        has_finalizer(crd, &[CRD_FINALIZER]).then(|| without_finalizer(FINALIZER, crd, CRD_FINALIZER))
    })
}

fn without_finalizer(actor: &'static str, object: &Value, finalizer: &str) -> ControllerAction {
    let left: Vec<&str> = finalizers(object).filter(|one| *one != finalizer).collect();
    merge(actor, object, None, json!({"metadata": {"finalizers": left}}))
}

fn owners(object: &Value) -> &[Value] {
    object["metadata"]["ownerReferences"].as_array().map(Vec::as_slice).unwrap_or_default()
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
        let owners = owners(object);
        // Whether an owner of a kind that is not served is there, nobody can tell. It may be one of an aggregated API.
        if owners.is_empty() || !owners.iter().all(|owner| is_served(store, owner)) {
            return None;
        }
        let is_there = |owner: &&Value| {
            let found = by_uid.get(owner["uid"].as_str().unwrap_or_default());
            found.is_some_and(|(owner_key, found)| names(owner, owner_key, found, key))
        };
        let solid: Vec<&Value> = owners.iter().filter(is_there).collect();
        if solid.is_empty() {
            return Some(delete(COLLECTOR, object, Cascade::Background));
        }
        let patch = json!({"metadata": {"ownerReferences": solid, "uid": object["metadata"]["uid"]}});
        (solid.len() < owners.len()).then(|| merge(COLLECTOR, object, None, patch))
    })
}

/// The objects that are deleted, and that the collector holds by this finalizer.
fn held<'a>(store: &'a Store, finalizer: &'static str) -> impl Iterator<Item = &'a Value> {
    let objects = store.objects().values().map(|object| &**object);
    objects.filter(move |object| is_deleting(object) && has_finalizer(object, &[finalizer]))
}

/// An object that is deleted and leaves its dependents behind.
fn orphans(store: &Store) -> Option<ControllerAction> {
    let owner = held(store, "orphan").next()?;
    for dependent in store.objects().values() {
        let is_other = |one: &&Value| one["uid"] != owner["metadata"]["uid"];
        let left: Vec<&Value> = owners(dependent).iter().filter(is_other).collect();
        if left.len() < owners(dependent).len() {
            let patch = json!({"metadata": {"ownerReferences": left}});
            return Some(merge(COLLECTOR, dependent, None, patch));
        }
    }
    Some(without_finalizer(COLLECTOR, owner, "orphan"))
}

/// An object that is deleted after its dependents.
fn foreground(store: &Store) -> Option<ControllerAction> {
    held(store, "foregroundDeletion").find_map(|owner| {
        let mut is_blocked = false;
        for dependent in store.objects().values() {
            let mut owners = owners(dependent).iter();
            let Some(reference) = owners.find(|one| one["uid"] == owner["metadata"]["uid"]) else { continue };
            let blocks = reference["blockOwnerDeletion"] == true;
            is_blocked |= blocks;
            if !is_deleting(dependent) {
                // A dependent that blocks its owner waits for its own dependents.
                let cascade = if blocks { Cascade::Foreground } else { Cascade::Background };
                return Some(delete(COLLECTOR, dependent, cascade));
            }
        }
        (!is_blocked).then(|| without_finalizer(COLLECTOR, owner, "foregroundDeletion"))
    })
}

/// When a namespace is deleted, everything in it is deleted too.
fn namespaces(store: &Store) -> impl Iterator<Item = ControllerAction> {
    of_kind(store, "", "namespaces").filter(|(_, namespace)| is_deleting(namespace)).filter_map(|(key, _)| {
        let mut within = store.objects().iter().filter(|(other, _)| other.namespace == key.name).peekable();
        if within.peek().is_none() {
            return Some(ControllerAction::Remove(key.clone()));
        }
        let (_, object) = within.find(|(_, object)| !is_deleting(object))?;
        Some(delete("namespace-controller", object, Cascade::Background))
    })
}
