//! O2 and O13: the end state is that of the run without faults.

use std::collections::{BTreeMap, BTreeSet};

use pintle_api::Reconciler;
use pintle_core::object::{at, uid};
use pintle_wit::{ObjectRef, names};
use serde::Deserialize;
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
    let past_users = past_users(snapshot.objects.values().map(|object| &**object));
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
        if let Some(past) = past_users.get(&reference.name).filter(|_| reference.kind == "Module") {
            without_past_users(&mut object, past);
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

/// The Reconcilers that have a Module in their history alone, by the name of the Module.
fn past_users<'a>(objects: impl Iterator<Item = &'a Value>) -> BTreeMap<String, BTreeSet<String>> {
    let mut users: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let reconcilers = objects.filter(|object| pintle_core::object::kind(object).kind == "Reconciler");
    for reconciler in reconcilers.filter_map(|object| Reconciler::deserialize(object).ok()) {
        let wanted = reconciler.modules();
        for module in reconciler.modules_before().filter(|module| !wanted.contains(module)) {
            users.entry(module.to_owned()).or_default().extend(reconciler.metadata.name.clone());
        }
    }
    users
}

/// Leaves out the Reconcilers that use a Module only as one before. A history has no module that was in force so shortly that no status
/// said so.
fn without_past_users(module: &mut Value, past: &BTreeSet<String>) {
    let Some(used_by) = module.pointer_mut("/status/usedBy").and_then(Value::as_array_mut) else { return };
    used_by.retain(|user| user.as_str().is_none_or(|user| !past.contains(user)));
    if !used_by.is_empty() {
        return;
    }
    for (of, field) in [("metadata", "finalizers"), ("status", "usedBy")] {
        if let Some(fields) = module.get_mut(of).and_then(Value::as_object_mut) {
            fields.remove(field);
        }
    }
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
            // A map that is empty without these keys counts as absent, and so does a list of finalizers.
            map.retain(|key, value| match (key.as_str(), value) {
                ("annotations" | "status", Value::Object(fields)) => !fields.is_empty(),
                ("finalizers", Value::Array(names)) => !names.is_empty(),
                _ => true,
            });
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_uses_a_module_counts_unless_it_is_in_a_history_alone() {
        let reconciler = |name: &str, module: &str, before: &[&str]| {
            let active = |module: &str| json!({"module": module, "digest": "", "since": ""});
            let history: Vec<Value> = before.iter().map(|module| active(module)).collect();
            json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "Reconciler", "metadata": {"name": name},
                "spec": {"for": {"apiVersion": "a.io/v1", "kind": "A"}, "module": module},
                "status": {"active": active(module), "history": history}})
        };
        let objects = [reconciler("a", "one", &["two", "one"]), reconciler("b", "two", &["three"])];
        let past = past_users(objects.iter());
        let left = |module: &str, used_by: Value| {
            let finalizers = json!(["pintle.dev/in-use"]);
            let mut module_object =
                json!({"metadata": {"finalizers": finalizers}, "status": {"usedBy": used_by}});
            if let Some(past) = past.get(module) {
                without_past_users(&mut module_object, past);
            }
            (module_object["status"]["usedBy"].clone(), module_object["metadata"]["finalizers"] == finalizers)
        };
        assert_eq!(left("one", json!(["a"])), (json!(["a"]), true));
        assert_eq!(left("two", json!(["a", "b"])), (json!(["b"]), true));
        assert_eq!(left("three", json!(["b"])), (Value::Null, false));
        assert_eq!(left("three", json!(["a", "b"])), (json!(["a"]), true), "nobody says why");
        assert_eq!(left("four", json!(["a"])), (json!(["a"]), true));
    }
}
