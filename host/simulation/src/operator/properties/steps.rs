//! O8, O9 and O11: what each request of a host did.

use std::collections::{BTreeMap, BTreeSet};

use pintle_core::object::{at, uid};
use pintle_simulator::Record;
use pintle_wit::{ObjectRef, names};
use serde_json::Value;

use super::{
    super::{
        RunOutcome,
        fault::{Fault, Plan},
        world::World,
    },
    Broken, Property, changes,
    grants::{Grant, grants},
    root_kinds,
};

/// O8, O9 and O11, request by request.
pub(in super::super) fn at_every_step(
    world: &World,
    plan: &Plan,
    reference: Option<&RunOutcome>,
) -> Option<Broken> {
    let snapshot = world.server.snapshot();
    let mut roots = root_kinds(&snapshot);
    let (number, (property, what)) = world.with_records(|records| {
        roots.extend(kinds_ever(records));
        let mut judge = Judge {
            plan,
            reference,
            roots,
            grants: grants(records, &snapshot),
            made: BTreeSet::new(),
            generations: BTreeMap::new(),
        };
        changes(records)
            .find_map(|(record, object)| Some((record.seen.number, judge.wrong(record, &object)?)))
    })?;
    Some(Broken { property, at: world.time_of(number), what })
}

/// The kinds of the roots of Reconcilers at any time of the run, including Reconcilers that are gone at the end.
fn kinds_ever(records: &[Record]) -> impl Iterator<Item = (String, String)> {
    let of_reconcilers = records.iter().filter(|record| record.seen.resource == "reconcilers");
    of_reconcilers.filter_map(|record| {
        let of = &record.after.as_ref()?["spec"]["for"];
        Some((of["apiVersion"].as_str()?.to_owned(), of["kind"].as_str()?.to_owned()))
    })
}

/// What is known of a run before a request.
struct Judge<'a> {
    plan: &'a Plan,
    reference: Option<&'a RunOutcome>,
    /// apiVersion and kind.
    roots: BTreeSet<(String, String)>,
    grants: Vec<Grant>,
    /// The uids of the objects that the hosts made or took over.
    made: BTreeSet<String>,
    /// The last observedGeneration in the status of each root, by uid.
    generations: BTreeMap<String, i64>,
}

impl Judge<'_> {
    /// What is wrong with a change of this object, if anything is.
    fn wrong(&mut self, record: &Record, object: &ObjectRef) -> Option<(Property, String)> {
        let is_root = self.roots.contains(&(object.api_version.clone(), object.kind.clone()));
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
        let number = |path: &[&str]| at(after, path).and_then(Value::as_i64);
        let observed = number(&["status", "observedGeneration"])?;
        let generation = number(&["metadata", "generation"])?;
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
