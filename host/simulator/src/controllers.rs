//! The controllers of every cluster, one step at a time: garbage collection, namespace deletion, Deployments with Pods that only pretend to
//! run, StatefulSets and DaemonSets without any, and PodDisruptionBudgets.

mod deployments;
mod disruption;
mod garbage;
mod sets;

use std::{collections::BTreeMap, sync::Arc};

use pintle_core::object::{is_deleting, reference, uid};
use serde_json::Value;

use crate::{
    Act, Cascade,
    store::{Key, Store},
};

/// What a controller does next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ControllerAction {
    /// It takes this action, under this name.
    Act(&'static str, Act),
    /// It ends a Pod that has stopped, or an empty namespace.
    Remove(Key),
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

/// The objects of a kind that are not being deleted.
fn live<'a>(store: &'a Store, group: &'a str, resource: &'a str) -> impl Iterator<Item = &'a Arc<Value>> {
    of_kind(store, group, resource).map(|(_, object)| object).filter(|object| !is_deleting(object))
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn number(value: &Value, pointer: &str) -> i64 {
    value.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

/// The uid of the owner that controls an object.
fn controller(object: &Value) -> Option<&str> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    owners.iter().find(|owner| owner["controller"] == true)?["uid"].as_str()
}

/// Every object by its uid.
fn by_uid(store: &Store) -> BTreeMap<&str, (&Key, &Value)> {
    store.objects().iter().map(|(key, object)| (uid(object), (key, object.as_ref()))).collect()
}

fn delete(actor: &'static str, object: &Value, cascade: Cascade) -> ControllerAction {
    ControllerAction::Act(actor, Act::Delete { target: reference(object), cascade })
}

fn merge(actor: &'static str, object: &Value, subresource: Option<&str>, patch: Value) -> ControllerAction {
    let (target, subresource) = (reference(object), subresource.map(Into::into));
    ControllerAction::Act(actor, Act::Merge { target, subresource, patch })
}

/// Writes a status if it differs.
fn status_step(actor: &'static str, object: &Value, status: Value) -> Option<ControllerAction> {
    if object["status"] == status {
        return None;
    }
    let target = reference(object);
    let patch = serde_json::json!([{"op": "add", "path": "/status", "value": status}]);
    Some(ControllerAction::Act(actor, Act::JsonPatch { target, subresource: Some("status".into()), patch }))
}
