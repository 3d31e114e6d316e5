//! O12: how long each root waits for its status.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use pintle_core::object::{at, uid};
use pintle_simulator::Snapshot;
use pintle_wit::{ObjectRef, names};
use serde_json::Value;

use super::{
    super::{
        Evidence, RunOutcome,
        fault::{Plan, Reach},
        script::{Asked, Troubled, is_host},
        world::World,
    },
    Broken, Property, root_kind, root_kinds, roots,
};

/// The most that one root may be delayed by the trouble of another: the duration of a pass, and the time for which a status write may be
/// held back.
const DELAY_MAX: Duration = Duration::from_secs(2);

/// For each time that somebody changed a root, in that order, how long it took until its status had observed the change. None if it never
/// did, because the root was changed again or deleted.
pub(super) fn delays(world: &World) -> BTreeMap<ObjectRef, Vec<Option<Duration>>> {
    let roots = roots(&world.server.snapshot());
    world.with_records(|records| {
        let script = world.script();
        let mut told: BTreeMap<&str, Vec<(Duration, i64)>> = BTreeMap::new();
        for record in records.iter().filter(|record| is_host(&record.seen.client)) {
            let after =
                record.after.as_ref().filter(|_| record.seen.subresource.as_deref() == Some("status"));
            let observed = |after: &Value| at(after, &["status", "observedGeneration"])?.as_i64();
            let seen = after.and_then(|after| Some((uid(after), observed(after)?)));
            if let (Some((uid, observed)), Some(time)) = (seen, script.times.get(&record.seen.number)) {
                told.entry(uid).or_default().push((*time, observed));
            }
        }
        let mut delays: BTreeMap<ObjectRef, Vec<Option<Duration>>> = BTreeMap::new();
        for Asked { at, object, uid, generation } in &script.memory.asked {
            let mut told = told.get(uid.as_str()).into_iter().flatten();
            let first = told.find(|(_, observed)| observed >= generation);
            if roots.contains(object) {
                let delay = first.map(|(time, _)| time.saturating_sub(*at));
                delays.entry(object.clone()).or_default().push(delay);
            }
        }
        delays
    })
}

/// The roots that the faults of a plan may concern. None means all roots.
fn troubled(world: &World, plan: &Plan) -> Option<BTreeSet<ObjectRef>> {
    let script = world.script();
    if plan.0.iter().any(|fault| fault.reach() == Reach::Everybody) {
        return None;
    }
    let said = script.memory.troubled.clone();
    drop(script);
    let snapshot = world.server.snapshot();
    let mut troubled = BTreeSet::new();
    for one in said {
        match one {
            Troubled::Root(root) => drop(troubled.insert(root)),
            Troubled::Of(reconciler) => {
                let kind = root_kind(snapshot.objects.get(&reconciler)?)?;
                troubled.extend(roots(&snapshot).into_iter().filter(|root| root.kind() == kind));
            }
            Troubled::Request(number) => drop(troubled.insert(root_of_request(world, &snapshot, number)?)),
        }
    }
    Some(troubled)
}

/// The root that a request concerns.
fn root_of_request(world: &World, snapshot: &Snapshot, number: u64) -> Option<ObjectRef> {
    let (object, body) = world.with_records(|records| {
        let record = records.iter().find(|record| record.seen.number == number)?;
        Some((record.before.clone().or_else(|| record.after.clone()), record.seen.body.clone()))
    })?;
    let object = object.as_deref().unwrap_or(&body);
    let reference = pintle_core::object::reference(object);
    if root_kinds(snapshot).contains(&reference.kind()) {
        return Some(reference);
    }
    let of = at(object, &["metadata", "labels", names::LABEL_ROOT]).and_then(Value::as_str)?;
    snapshot.objects.iter().find(|(_, object)| uid(object) == of).map(|(reference, _)| reference.clone())
}

/// O12: a root that no fault of the plan concerns gets its status as soon as in the run without faults.
pub(in super::super) fn isolated(
    world: &World,
    evidence: &Evidence,
    plan: &Plan,
    reference: &RunOutcome,
) -> Result<(), Broken> {
    let Some(troubled) = troubled(world, plan) else { return Ok(()) };
    for (root, expected) in &reference.evidence.delays {
        let found = evidence.delays.get(root).filter(|_| !troubled.contains(root));
        for (found, expected) in found.into_iter().flatten().zip(expected) {
            if let (Some(found), Some(expected)) = (found, expected)
                && *found > *expected + DELAY_MAX
            {
                let who: Vec<String> = troubled.iter().map(ToString::to_string).collect();
                let what = format!(
                    "{root} was answered for after {found:?} instead of {expected:?}, although what goes wrong concerns {} alone",
                    who.join(", ")
                );
                return Err(Broken::new(Property::Isolated, what));
            }
        }
    }
    Ok(())
}
