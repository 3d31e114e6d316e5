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
    Broken, Property, root_kinds, roots,
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
        for record in records.iter().filter(|record| record.seen.subresource.as_deref() == Some("status")) {
            let Some(after) = record.after.as_ref().filter(|_| is_host(&record.seen.client)) else {
                continue;
            };
            let observed = at(after, &["status", "observedGeneration"]).and_then(Value::as_i64);
            let (Some(observed), Some(time)) = (observed, script.times.get(&record.seen.number)) else {
                continue;
            };
            told.entry(uid(after)).or_default().push((*time, observed));
        }
        let mut delays: BTreeMap<ObjectRef, Vec<Option<Duration>>> = BTreeMap::new();
        for asked in script.memory.asked.iter().filter(|asked| roots.contains(&asked.object)) {
            let Asked { at, object, uid, generation } = asked;
            let told = told.get(uid.as_str()).into_iter().flatten();
            let first = told.into_iter().find(|(_, observed)| observed >= generation);
            let delay = first.map(|(time, _)| time.saturating_sub(*at));
            delays.entry(object.clone()).or_default().push(delay);
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
                let of = snapshot.objects.get(&reconciler).map(|object| &object["spec"]["for"])?;
                let is_of = |root: &ObjectRef| {
                    of["apiVersion"] == root.api_version.as_str() && of["kind"] == root.kind.as_str()
                };
                troubled.extend(roots(&snapshot).into_iter().filter(is_of));
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
    if root_kinds(snapshot).contains(&(reference.api_version.clone(), reference.kind.clone())) {
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
        let Some(found) = evidence.delays.get(root).filter(|_| !troubled.contains(root)) else { continue };
        for (found, expected) in found.iter().zip(expected) {
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
