//! O8, O9 and O11: what each request of a host did.

use std::collections::{BTreeMap, BTreeSet};

use pintle_core::object::{at, generation, uid};
use pintle_simulator::Record;
use pintle_wit::{Kind, ObjectRef, names};
use serde_json::Value;

use super::{
    super::{
        RunOutcome,
        fault::{Fault, Plan},
        world::World,
    },
    Broken, Property, changes,
    grants::{Grant, grants},
    root_kind, root_kinds,
};

/// O8, O9 and O11, request by request.
pub(in super::super) fn at_every_step(
    world: &World,
    plan: &Plan,
    reference: Option<&RunOutcome>,
) -> Option<Broken> {
    let snapshot = world.server.snapshot();
    let (number, (property, what)) = world.with_records(|records| {
        // Those of Reconcilers that are gone at the end are roots too.
        let of_reconcilers = records.iter().filter(|record| record.seen.resource == "reconcilers");
        let ever = of_reconcilers.filter_map(|record| root_kind(record.after.as_ref()?));
        let mut judge = Judge {
            plan,
            reference,
            roots: ever.chain(root_kinds(&snapshot)).collect(),
            grants: grants(records, &snapshot),
            made: BTreeSet::new(),
            generations: BTreeMap::new(),
        };
        changes(records)
            .find_map(|(record, object)| Some((record.seen.number, judge.wrong(record, &object)?)))
    })?;
    Some(Broken { property, at: world.time_of(number), what })
}

/// What is known of a run before a request.
struct Judge<'a> {
    plan: &'a Plan,
    reference: Option<&'a RunOutcome>,
    roots: BTreeSet<Kind>,
    grants: Vec<Grant>,
    /// The uids of the objects that the hosts made or took over.
    made: BTreeSet<String>,
    /// The last observedGeneration in the status of each root, by uid.
    generations: BTreeMap<String, i64>,
}

impl Judge<'_> {
    /// What is wrong with a change of this object, if anything is.
    fn wrong(&mut self, record: &Record, object: &ObjectRef) -> Option<(Property, String)> {
        let is_root = self.roots.contains(&object.kind());
        match (&record.before, &record.after) {
            (None, Some(after)) => {
                self.made.insert(uid(after).to_owned());
                None
            }
            (Some(before), after) if is_root => self.wrong_root(object, before, after.as_deref()?),
            (Some(before), after) => self.wrong_child(record, object, before, after.is_none()),
            (None, None) => None,
        }
    }

    fn wrong_root(&mut self, root: &ObjectRef, before: &Value, after: &Value) -> Option<(Property, String)> {
        if before["spec"] != after["spec"] {
            return Some((Property::NoForeignHarm, format!("the spec of {root} was changed")));
        }
        let observed = at(after, &["status", "observedGeneration"]).and_then(Value::as_i64)?;
        let generation = generation(after)?;
        let last = self.generations.entry(uid(after).to_owned()).or_insert(observed);
        if observed > generation || observed < *last {
            let what = format!(
                "the status of {root} speaks of generation {observed}; it is {generation}, and was at {last}"
            );
            return Some((Property::Monotone, what));
        }
        *last = observed;
        None
    }

    fn wrong_child(
        &mut self,
        record: &Record,
        child: &ObjectRef,
        before: &Value,
        is_gone: bool,
    ) -> Option<(Property, String)> {
        if !self.made.contains(uid(before)) {
            if self.grants.iter().any(|grant| grant.allows(record)) {
                return None;
            }
            if at(before, &["metadata", "annotations", names::ANNOTATION_ADOPT]).is_none() {
                let what = format!("{:?} of {child}, which no host made", record.seen.verb);
                return Some((Property::NoForeignHarm, what));
            }
            self.made.insert(uid(before).to_owned());
        }
        let is_wanted = self.reference.is_some_and(|reference| {
            let evidence = &reference.evidence;
            evidence.end.contains_key(child)
                && evidence.counts.get(child).is_none_or(|counts| counts.deleted == 0)
        });
        let is_early = is_gone && is_wanted && !self.plan.any(Fault::meddles);
        is_early.then(|| (Property::SafeOnTheWay, format!("{child} was deleted, and belongs to the end")))
    }
}
