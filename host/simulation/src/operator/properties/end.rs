//! O2 and O13: the end state is that of the run without faults.

use std::collections::{BTreeMap, BTreeSet};

use pintle_core::object::{at, uid};
use pintle_wit::{ObjectRef, names};
use serde_json::Value;

use super::{
    super::{
        fault::{Fault, OnWrite, Plan},
        world::World,
    },
    Broken, Property,
};
use crate::scenario::differences;

/// The part of the end state that all runs of one scenario have in common: the objects without uids, versions and times, and without the
/// bytes of modules, which only their author writes.
pub(in super::super) fn masked(world: &World) -> BTreeMap<ObjectRef, Value> {
    let snapshot = world.server.snapshot();
    let named = |object: &Value| {
        let reference = pintle_core::object::reference(object);
        (uid(object).to_owned(), format!("uid of {} {}", reference.kind, reference.name))
    };
    // An object that is gone may still be referred to.
    let mut uids: BTreeMap<String, String> = world.with_records(|records| {
        let objects = records.iter().flat_map(|record| [&record.before, &record.after]);
        objects.flatten().map(|object| named(object)).collect()
    });
    uids.extend(snapshot.objects.values().map(|object| named(object)));
    let kept = snapshot.objects.iter().filter(|(reference, object)| {
        !matches!(
            reference.kind.as_str(),
            "Event" | "Lease" | "Pod" | "ReplicaSet" | "EndpointSlice" | "Endpoints"
        ) && object.get("binaryData").is_none()
            // The module of a fault stays in the history of its Reconciler.
            && !(reference.kind == "Module" && reference.name.starts_with("swap-"))
    });
    kept.map(|(reference, object)| {
        let mut object = Value::clone(object);
        let generation = at(&object, &["metadata", "generation"]).cloned();
        // The number of changes on the way may differ. That the last change was observed must not.
        let is_last = |observed: &mut Value| *observed = (generation.as_ref() == Some(observed)).into();
        if let Some(observed) = object.pointer_mut("/status/observedGeneration") {
            is_last(observed);
        }
        let conditions = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
        let observed = conditions.into_iter().flatten().filter_map(|one| one.get_mut("observedGeneration"));
        observed.for_each(is_last);
        if reference.kind == "Module" {
            // A history has no module that was in force so shortly that no status said so.
            for (of, field) in [("metadata", "finalizers"), ("status", "usedBy")] {
                if let Some(fields) = object.get_mut(of).and_then(Value::as_object_mut) {
                    fields.remove(field);
                }
            }
        }
        if object["spec"]["suspend"] == true
            && let Some(status) = object.pointer_mut("/status").and_then(Value::as_object_mut)
        {
            // A suspended Reconciler does not remove kinds without children from this list.
            status.remove("childKinds");
        }
        if let Some(roots) = object.pointer_mut("/status/active/roots").and_then(Value::as_object_mut) {
            // What a swap did on the way, as far as the host knows that led then.
            roots.retain(|count, _| !["changed", "newlyFailing"].contains(&count.as_str()));
        }
        mask(&mut object, &uids);
        (reference.clone(), object)
    })
    .collect()
}

/// Keys whose values differ from run to run.
const DIFFERS: [&str; 17] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
    "lastTransitionTime",
    "lastUpdateTime",
    "time",
    "since",
    "history",
    "compileMilliseconds",
    names::ANNOTATION_DESIRED,
    names::ANNOTATION_RECONCILE_AT,
    "deployment.kubernetes.io/revision",
    "clusterIP",
    "clusterIPs",
    "nodePort",
];

fn mask(value: &mut Value, uids: &BTreeMap<String, String>) {
    match value {
        Value::Object(map) => {
            map.retain(|key, _| !DIFFERS.contains(&key.as_str()));
            map.values_mut().for_each(|value| mask(value, uids));
            // A map that is empty without these keys counts as absent.
            let is_empty = |value: &Value| value.as_object().is_some_and(serde_json::Map::is_empty);
            map.retain(|key, value| !(matches!(key.as_str(), "annotations" | "status") && is_empty(value)));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| mask(item, uids)),
        Value::String(text) => {
            if let Some(name) = uids.get(text.as_str()) {
                text.clone_from(name);
            } else if is_time(text) {
                *text = "a time".into();
            }
        }
        _ => {}
    }
}

/// Whether a text is a point in time, as in a guest's stamps. The time of an action depends on the faults before it.
fn is_time(text: &str) -> bool {
    let begins_as_one = text.as_bytes().get(..5).is_some_and(|start| start.ends_with(b"-"));
    begins_as_one && text.contains('T') && text.parse::<jiff::Timestamp>().is_ok()
}

/// O2, and O13 if something was changed and put back.
pub(in super::super) fn same_end(
    world: &World,
    plan: &Plan,
    end: &BTreeMap<ObjectRef, Value>,
    expected: &BTreeMap<ObjectRef, Value>,
) -> Result<(), Broken> {
    let churns = plan.any(|fault| matches!(fault, Fault::Write(_, OnWrite::Churn)));
    let property = if churns { Property::Returns } else { Property::SameEnd };
    let broken = |what| Err(world.broken(property, what));
    let names: BTreeSet<&ObjectRef> = end.keys().chain(expected.keys()).collect();
    for name in names {
        let (Some(found), Some(expected)) = (end.get(name), expected.get(name)) else {
            let is = if end.contains_key(name) { "there, and should not be" } else { "not there" };
            return broken(format!("{name} is {is}"));
        };
        let mut lines = differences(expected, found);
        let others = differences(found, expected).into_iter();
        lines.extend(others.map(|line| format!("the other way round: {line}")));
        let may_differ = plan.any(Fault::meddles) || plan.any(forgets);
        if found != expected && !(may_differ && only_digest(found, &lines)) {
            return broken(format!("{name} differs:\n  {}", lines.join("\n  ")));
        }
    }
    Ok(())
}

/// Whether an object differs only in the digest of the module that last changed something. The digest depends on what had to be changed,
/// and is lost if a host ends between a child and the status. The status has the digest of some module in any case.
fn only_digest(found: &Value, lines: &[String]) -> bool {
    at(found, &["status", "pintle", "moduleDigest"]).is_some()
        && lines.iter().all(|line| line.contains("moduleDigest"))
}

/// Whether a fault makes another host continue, or the same host in another term. Neither remembers anything.
fn forgets(fault: &Fault) -> bool {
    fault.crashes() || matches!(fault, Fault::Rival | Fault::Write(_, OnWrite::Partition))
}
