//! The controllers of every cluster, one step at a time: garbage collection, namespace deletion, Deployments with Pods that only pretend to
//! run, StatefulSets and DaemonSets without any, and PodDisruptionBudgets.

mod deployments;
mod disruption;
mod garbage;
mod sets;

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use crate::{
    Act,
    store::{Key, Store},
};

/// What a controller does next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ControllerAction {
    /// It takes this action, under this name.
    Act(&'static str, Act),
    /// It deletes a Pod that has stopped.
    EndPod(pintle_wit::ObjectRef),
    /// It removes the last finalizer of an empty namespace.
    EndNamespace(Key),
}

/// A step that could be taken now. Steps have an order; `nth` 0 is the first.
pub(crate) fn step(store: &Store, nth: usize) -> Option<ControllerAction> {
    let workloads = deployments::steps(store).chain(sets::steps(store));
    garbage::steps(store).chain(workloads).chain(disruption::steps(store)).nth(nth)
}

/// The objects of a kind, in order.
fn of_kind<'a>(
    store: &'a Store,
    group: &'a str,
    resource: &'a str,
) -> impl Iterator<Item = (&'a Key, &'a Arc<Value>)> {
    store.objects().iter().filter(move |(key, _)| key.group == group && key.resource == resource)
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn is_deleting(object: &Value) -> bool {
    object["metadata"].get("deletionTimestamp").is_some()
}

/// The uid of the owner that controls an object.
fn controller(object: &Value) -> Option<&str> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    owners.iter().find(|owner| owner["controller"] == true)?["uid"].as_str()
}

fn reference(key: &Key, object: &Value) -> pintle_wit::ObjectRef {
    pintle_wit::ObjectRef {
        api_version: text(object, "/apiVersion").into(),
        kind: text(object, "/kind").into(),
        namespace: Some(key.namespace.clone()).filter(|namespace| !namespace.is_empty()),
        name: key.name.clone(),
    }
}

/// Every object by its uid.
fn by_uid(store: &Store) -> BTreeMap<&str, (&Key, &Value)> {
    store
        .objects()
        .iter()
        .map(|(key, object)| (text(object, "/metadata/uid"), (key, object.as_ref())))
        .collect()
}
