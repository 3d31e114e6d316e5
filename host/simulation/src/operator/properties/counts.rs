//! O3 and O10: how often the hosts changed each object, and how many requests that took.

use std::collections::{BTreeMap, BTreeSet};

use pintle_core::object;
use pintle_simulator::Verb;
use pintle_wit::ObjectRef;
use serde_json::Value;

use super::{
    super::{Evidence, RunOutcome, class::Class, fault::Plan, world::World},
    Broken, Property, changes,
    delays::delays,
};
use crate::script::REQUESTS_MAX;

/// How often the hosts changed an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Counts {
    pub(in super::super) created: u32,
    pub(in super::super) deleted: u32,
    pub(in super::super) changed: u32,
    /// How many of the created objects had an owner that was already gone, so that the garbage collector deleted them.
    pub(in super::super) orphaned: u32,
}

/// The numbers by which the run is judged.
pub(in super::super) fn evidence(world: &World, end: BTreeMap<ObjectRef, Value>) -> Evidence {
    let mut counts: BTreeMap<ObjectRef, Counts> = BTreeMap::new();
    world.with_records(|records| {
        let mut gone: BTreeSet<&str> = BTreeSet::new();
        for record in records {
            if let (Some(before), None) = (&record.before, &record.after) {
                gone.insert(object::uid(before));
            }
            let Some((_, mut reference)) = changes(std::slice::from_ref(record)).next() else { continue };
            // A Pod of a Deployment has another name in every run, so Pods are counted together.
            if reference.kind == "Pod" {
                reference.name.clear();
            }
            let count = counts.entry(reference).or_default();
            match (&record.before, &record.after) {
                (None, made) => {
                    count.created += 1;
                    let is_orphan =
                        made.iter().flat_map(|made| owners(made)).any(|owner| gone.contains(owner));
                    count.orphaned += u32::from(is_orphan);
                }
                (_, None) => count.deleted += 1,
                _ if record.seen.verb == Verb::Delete => count.deleted += 1,
                _ => count.changed += 1,
            }
        }
    });
    let requests = world.script().requests;
    Evidence { end, counts, requests, delays: delays(world), ..Evidence::default() }
}

/// O3 and O10.
pub(in super::super) fn counted(
    world: &World,
    evidence: &Evidence,
    plan: &Plan,
    reference: &RunOutcome,
) -> Result<(), Broken> {
    let expected = &reference.evidence;
    let faults = u32::try_from(plan.0.len()).unwrap_or(u32::MAX);
    let broken = |property, what| Err(world.broken(property, what));
    // A change that somebody undid is made again, once.
    let meddled = u32::try_from(plan.0.iter().filter(|fault| fault.meddles()).count()).unwrap_or(u32::MAX);
    // A host with an old view creates the children of a root that is gone by now, as every controller does, and the garbage collector
    // deletes them. Only a host with an old view may do that.
    let travels = plan.0.iter().any(|fault| fault.class() == Class::OldView);
    for (object, found) in &evidence.counts {
        let expected = expected.counts.get(object).copied().unwrap_or_default();
        let orphaned = if travels { found.orphaned } else { 0 };
        if found.created > expected.created + meddled + orphaned {
            let what =
                format!("{object} was created {} times instead of {}", found.created, expected.created);
            return broken(Property::Counted, what);
        }
        if found.deleted > expected.deleted + meddled {
            let what =
                format!("{object} was deleted {} times instead of {}", found.deleted, expected.deleted);
            return broken(Property::Counted, what);
        }
    }
    let requests_max = 6 * expected.requests + 300 + 150 * faults;
    if evidence.requests > requests_max.min(REQUESTS_MAX) {
        let what = format!("{} requests, where {} are enough", evidence.requests, expected.requests);
        return broken(Property::Bounded, what);
    }
    Ok(())
}

/// The uids of an object's owners.
fn owners(made: &Value) -> impl Iterator<Item = &str> {
    let owners = object::at(made, &["metadata", "ownerReferences"]).and_then(Value::as_array);
    owners.into_iter().flatten().filter_map(|owner| owner["uid"].as_str())
}
