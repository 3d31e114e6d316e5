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
                _ => count.deleted += u32::from(record.seen.verb == Verb::Delete),
            }
        }
    });
    Evidence { end, counts, delays: delays(world), ..Evidence::default() }
}

/// O3 and O10.
pub(in super::super) fn counted(
    world: &World,
    evidence: &Evidence,
    plan: &Plan,
    reference: &RunOutcome,
) -> Result<(), Broken> {
    let count_of = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    // A change that somebody undid is made again, once.
    let meddled = count_of(plan.0.iter().filter(|fault| fault.meddles()).count());
    // A host with an old view creates the children of a root that is gone by now, as every controller does, and the garbage collector
    // deletes them. Only a host with an old view may do that.
    let travels = plan.any(|fault| fault.class() == Class::OldView);
    for (object, found) in &evidence.counts {
        let expected = reference.evidence.counts.get(object).copied().unwrap_or_default();
        let orphaned = if travels { found.orphaned } else { 0 };
        for (what, found, expected, more) in [
            ("created", found.created, expected.created, meddled + orphaned),
            ("deleted", found.deleted, expected.deleted, meddled),
        ] {
            if found > expected + more {
                let what = format!("{object} was {what} {found} times instead of {expected}");
                return Err(world.broken(Property::Counted, what));
            }
        }
    }
    let (requests, enough) = (world.script().requests, reference.requests);
    let requests_max = 6 * enough + 300 + 150 * count_of(plan.0.len());
    if requests > requests_max.min(REQUESTS_MAX) {
        let what = format!("{requests} requests, where {enough} are enough");
        return Err(world.broken(Property::Bounded, what));
    }
    Ok(())
}

/// The uids of an object's owners.
fn owners(made: &Value) -> impl Iterator<Item = &str> {
    let owners = object::at(made, &["metadata", "ownerReferences"]).and_then(Value::as_array);
    owners.into_iter().flatten().filter_map(|owner| owner["uid"].as_str())
}
