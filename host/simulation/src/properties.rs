//! The properties that must hold in every run, whatever the faults are. Their letters are those of docs/simulator.md.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

use pintle_core::object::{at, uid};
use pintle_simulator::{Record, Snapshot, Verb};
use pintle_wit::{ObjectRef, names};
use serde_json::Value;

use super::{
    plan::{Fault, OnWrite, Plan, Reach},
    run::{Evidence, Reference},
    script::{Asked, REQUESTS_MAX, Step, Troubled, is_host},
    world::World,
};

/// A property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Property {
    /// O1: each step of the scenario reaches what it expects.
    Converges,
    /// O2: the end state is that of the run without faults.
    SameEnd,
    /// O3: no object is created or deleted more often than in the run without faults.
    Counted,
    /// O4, O6: when everything is as it should be, another reconcile changes nothing.
    Steady,
    /// O5: a guest's answer depends only on its request, and not on the order of objects in it.
    Pure,
    /// O7: nothing is left of a root that is gone.
    NoOrphans,
    /// O8: the hosts do not change objects that they did not create.
    NoForeignHarm,
    /// O9: a status never speaks of a generation that is not there yet, nor of an older one than before.
    Monotone,
    /// O10: the hosts come to rest within a bounded number of requests, and a parsed answer takes no more memory than its call was granted.
    Bounded,
    /// O11: no object is deleted on the way that exists in the end state.
    SafeOnTheWay,
    /// O12: one root's trouble does not delay another.
    Isolated,
    /// O13: an object that was changed and put back is as it was before.
    Returns,
    /// The same seed and plan lead to the same run, which does not use the operating system's time or random numbers.
    Repeatable,
}

impl Property {
    /// Its name in docs/simulator.md.
    pub fn letter(self) -> &'static str {
        match self {
            Self::Converges => "O1",
            Self::SameEnd => "O2",
            Self::Counted => "O3",
            Self::Steady => "O4",
            Self::Pure => "O5",
            Self::NoOrphans => "O7",
            Self::NoForeignHarm => "O8",
            Self::Monotone => "O9",
            Self::Bounded => "O10",
            Self::SafeOnTheWay => "O11",
            Self::Isolated => "O12",
            Self::Returns => "O13",
            Self::Repeatable => "repeatable",
        }
    }
}

/// A property that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The property.
    pub property: Property,
    /// What happened last before this was seen.
    pub step: Option<Step>,
    /// What was found instead.
    pub what: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?}): {}", self.property.letter(), self.property, self.what.trim_end())?;
        match &self.step {
            Some(step) => write!(f, "\n  at {}", step.to_string().trim_start()),
            None => Ok(()),
        }
    }
}

/// How often the hosts changed an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) created: u32,
    pub(super) deleted: u32,
    pub(super) changed: u32,
}

/// The objects of the host's own, and what is about hosts.
fn is_own(reference: &ObjectRef) -> bool {
    reference.api_version.starts_with("pintle.dev/")
        || matches!(reference.kind.as_str(), "Lease" | "Event" | "CustomResourceDefinition" | "Namespace")
        || reference.namespace.as_deref() == Some(super::hosts::NAMESPACE)
}

/// What hosts changed: the request, the object before it and after it.
fn changes(records: &[Record]) -> impl Iterator<Item = (&Record, ObjectRef)> {
    records.iter().filter(|record| is_host(&record.seen.client) && record.changed()).filter_map(|record| {
        let object = record.after.as_ref().or(record.before.as_ref())?;
        let reference = pintle_core::object::reference(object);
        (!is_own(&reference)).then_some((record, reference))
    })
}

/// The kinds that Reconcilers are for: apiVersion and kind.
fn root_kinds(snapshot: &Snapshot) -> BTreeSet<(String, String)> {
    snapshot
        .objects
        .iter()
        .filter(|(reference, _)| reference.kind == "Reconciler")
        .filter_map(|(_, object)| {
            let of = &object["spec"]["for"];
            Some((of["apiVersion"].as_str()?.to_owned(), of["kind"].as_str()?.to_owned()))
        })
        .collect()
}

/// The roots that there are.
pub(super) fn roots(snapshot: &Snapshot) -> Vec<ObjectRef> {
    let kinds = root_kinds(snapshot);
    let is_root =
        |reference: &&ObjectRef| kinds.contains(&(reference.api_version.clone(), reference.kind.clone()));
    snapshot.objects.keys().filter(is_root).cloned().collect()
}

/// The part of the end state that all runs of one scenario have in common: the objects without uids, versions and times, and without the
/// bytes of modules, which only their author writes.
pub(super) fn masked(world: &World) -> BTreeMap<ObjectRef, Value> {
    let snapshot = world.server.snapshot();
    let named = |object: &Value| {
        let reference = pintle_core::object::reference(object);
        (uid(object).to_owned(), format!("uid of {} {}", reference.kind, reference.name))
    };
    // What is gone by now may still be named.
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
    });
    kept.map(|(reference, object)| {
        let mut object = Value::clone(object);
        let generation = at(&object, &["metadata", "generation"]).cloned();
        // How often something was changed on the way may differ; that the last change was seen may not.
        let is_last = |observed: &mut Value| *observed = (generation.as_ref() == Some(observed)).into();
        if let Some(observed) = object.pointer_mut("/status/observedGeneration") {
            is_last(observed);
        }
        let conditions = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
        let observed = conditions.into_iter().flatten().filter_map(|one| one.get_mut("observedGeneration"));
        observed.for_each(is_last);
        if object["spec"]["suspend"] == true
            && let Some(status) = object.pointer_mut("/status").and_then(Value::as_object_mut)
        {
            // While it rests it does not say that kinds have no children any more.
            status.remove("childKinds");
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
            // What only held what differs is as good as not there.
            map.retain(|key, value| {
                !(matches!(key.as_str(), "annotations" | "status")
                    && value.as_object().is_some_and(serde_json::Map::is_empty))
            });
        }
        Value::Array(items) => {
            items.iter_mut().for_each(|item| mask(item, uids));
        }
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

/// Whether a text is a point in time, as a guest stamps it into its status. When something was done depends on the faults before it.
fn is_time(text: &str) -> bool {
    let begins_as_one = text.as_bytes().get(..5).is_some_and(|start| start.ends_with(b"-"));
    begins_as_one && text.contains('T') && text.parse::<jiff::Timestamp>().is_ok()
}

/// O2, and O13 if something was changed and put back.
pub(super) fn same_end(
    world: &World,
    plan: &Plan,
    end: &BTreeMap<ObjectRef, Value>,
    expected: &BTreeMap<ObjectRef, Value>,
) -> Result<(), Broken> {
    let churns = plan.any(|fault| matches!(fault, Fault::Write(_, OnWrite::Churn)));
    let property = if churns { Property::Returns } else { Property::SameEnd };
    let broken = |what: String| {
        let step = world.script().steps.last().cloned();
        Err(Broken { property, step, what })
    };
    let names: BTreeSet<&ObjectRef> = end.keys().chain(expected.keys()).collect();
    for name in names {
        match (end.get(name), expected.get(name)) {
            (Some(found), Some(expected)) => {
                let mut lines = crate::scenario::differences(expected, found);
                lines.extend(
                    crate::scenario::differences(found, expected)
                        .into_iter()
                        .map(|line| format!("the other way round: {line}")),
                );
                let may_differ = plan.any(Fault::meddles) || plan.any(forgets);
                if found != expected && !(may_differ && only_digest(found, &lines)) {
                    return broken(format!("{name} differs:\n  {}", lines.join("\n  ")));
                }
            }
            (Some(_), None) => return broken(format!("{name} is there, and should not be")),
            (None, Some(_)) => return broken(format!("{name} is not there")),
            (None, None) => {}
        }
    }
    Ok(())
}

/// Whether an object differs only in the name of the module that last changed something. That name depends on what had to be changed, and a
/// host that ends between a child and the status loses it. That some module did so is in the status in any case.
fn only_digest(found: &Value, lines: &[String]) -> bool {
    at(found, &["status", "pintle", "moduleDigest"]).is_some()
        && lines.iter().all(|line| line.contains("moduleDigest"))
}

/// Whether after a fault another host goes on, or the same host in another term, which remembers nothing.
fn forgets(fault: &Fault) -> bool {
    fault.crashes() || matches!(fault, Fault::Rival | Fault::Write(_, OnWrite::Partition))
}

/// The numbers by which the run is judged.
pub(super) fn evidence(world: &World, end: BTreeMap<ObjectRef, Value>) -> Evidence {
    let mut counts: BTreeMap<ObjectRef, Counts> = BTreeMap::new();
    world.with_records(|records| {
        for (record, mut reference) in changes(records) {
            // A Pod of a Deployment has another name in every run: of those, how many went is what counts.
            if reference.kind == "Pod" {
                reference.name.clear();
            }
            let count = counts.entry(reference).or_default();
            match (&record.before, &record.after) {
                (None, _) => count.created += 1,
                (_, None) => count.deleted += 1,
                _ if record.seen.verb == Verb::Delete => count.deleted += 1,
                _ => count.changed += 1,
            }
        }
    });
    let requests = world.script().requests;
    Evidence { end, counts, requests, delays: delays(world), forced: 0 }
}

/// O3 and O10.
pub(super) fn counted(
    world: &World,
    evidence: &Evidence,
    plan: &Plan,
    reference: &Reference,
) -> Result<(), Broken> {
    let expected = &reference.outcome.evidence;
    let faults = u32::try_from(plan.0.len()).unwrap_or(u32::MAX);
    let broken = |property, what| {
        let step = world.script().steps.last().cloned();
        Err(Broken { property, step, what })
    };
    // What somebody undid is done again, once.
    let meddled = u32::try_from(plan.0.iter().filter(|fault| fault.meddles()).count()).unwrap_or(u32::MAX);
    for (object, found) in &evidence.counts {
        let expected = expected.counts.get(object).copied().unwrap_or_default();
        if found.created > expected.created + meddled {
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

/// O8, O9 and O11, request by request.
pub(super) fn at_every_step(world: &World, plan: &Plan, reference: Option<&Reference>) -> Option<Broken> {
    let snapshot = world.server.snapshot();
    let roots = root_kinds(&snapshot);
    let found = world.with_records(|records| {
        // Also those of Reconcilers that are gone by the end.
        let mut roots = roots;
        for object in records.iter().filter(|record| record.seen.resource == "reconcilers") {
            let of = object.after.as_ref().map(|object| &object["spec"]["for"]);
            if let Some((version, kind)) = of.and_then(|of| Some((of["apiVersion"].as_str()?, of["kind"].as_str()?))) {
                roots.insert((version.to_owned(), kind.to_owned()));
            }
        }
        let grants = grants(records, &snapshot);
        let mut made: BTreeSet<String> = BTreeSet::new();
        let mut generations: BTreeMap<String, i64> = BTreeMap::new();
        for (record, reference_of) in changes(records) {
            let wrong = |property, what: String| Some((record.seen.number, property, what));
            let is_root = roots.contains(&(reference_of.api_version.clone(), reference_of.kind.clone()));
            match (&record.before, &record.after) {
                (None, Some(after)) => {
                    made.insert(uid(after).to_owned());
                }
                (Some(before), after) if is_root => {
                    let Some(after) = after else { continue };
                    if before["spec"] != after["spec"] {
                        return wrong(Property::NoForeignHarm, format!("the spec of {reference_of} was changed"));
                    }
                    let number = |path: &[&str]| at(after, path).and_then(Value::as_i64);
                    let (Some(observed), Some(generation)) =
                        (number(&["status", "observedGeneration"]), number(&["metadata", "generation"]))
                    else {
                        continue;
                    };
                    let last = generations.entry(uid(after).to_owned()).or_insert(observed);
                    if observed > generation || observed < *last {
                        let what = format!(
                            "the status of {reference_of} speaks of generation {observed}; it is {generation}, and was at {last}"
                        );
                        return wrong(Property::Monotone, what);
                    }
                    *last = observed;
                }
                (Some(before), after) => {
                    let adoptable = at(before, &["metadata", "annotations", names::ANNOTATION_ADOPT]).is_some();
                    if !made.contains(uid(before)) && grants.iter().any(|grant| grant.allows(record)) {
                        continue;
                    }
                    if !made.contains(uid(before)) && !adoptable {
                        let verb = record.seen.verb;
                        let what = format!("{verb:?} of {reference_of}, which no host made");
                        return wrong(Property::NoForeignHarm, what);
                    }
                    made.insert(uid(before).to_owned());
                    let wanted = reference.is_some_and(|reference| {
                        let evidence = &reference.outcome.evidence;
                        evidence.end.contains_key(&reference_of)
                            && evidence.counts.get(&reference_of).is_none_or(|counts| counts.deleted == 0)
                    });
                    if after.is_none() && wanted && !plan.any(Fault::meddles) {
                        let what = format!("{reference_of} was deleted, and belongs to the end");
                        return wrong(Property::SafeOnTheWay, what);
                    }
                }
                (None, None) => {}
            }
        }
        None
    });
    let (number, property, what) = found?;
    Some(Broken { property, step: world.step_of(number), what })
}

/// What a Reconciler may do to objects that it did not make.
struct Grant {
    manager: String,
    /// The kinds that it may patch, as apiVersion and kind, with the fields.
    patches: Vec<(String, String, Vec<Vec<String>>)>,
    evicts: bool,
}

/// What the Reconcilers have granted at any time of the run.
fn grants(records: &[Record], snapshot: &Snapshot) -> Vec<Grant> {
    let texts = |value: &Value| -> Vec<Vec<String>> {
        let texts = value.as_array().into_iter().flatten().filter_map(Value::as_str);
        texts.map(|path| path.split('.').map(Into::into).collect()).collect()
    };
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let of_reconcilers = records.iter().filter(|record| record.seen.resource == "reconcilers");
    let shown = of_reconcilers.filter_map(|record| record.after.as_ref().or(record.before.as_ref()));
    let there = snapshot.objects.iter().filter(|(reference, _)| reference.kind == "Reconciler");
    let shown = shown.chain(there.map(|(_, object)| object));
    let news = shown.filter(|object| seen.insert(object["spec"].to_string()));
    news.map(|object| {
        let name = at(object, &["metadata", "name"]).and_then(Value::as_str).unwrap_or_default();
        let manager = at(object, &["spec", "fieldManager"]).and_then(Value::as_str);
        let granted = &object["spec"]["grants"];
        let patch = |grant: &Value| {
            let text = |key: &str| grant[key].as_str().unwrap_or_default().to_owned();
            (text("apiVersion"), text("kind"), texts(&grant["fields"]))
        };
        Grant {
            manager: manager.map_or_else(|| format!("pintle-{name}"), Into::into),
            patches: granted["patches"].as_array().into_iter().flatten().map(patch).collect(),
            evicts: granted["evictions"] == true || granted["podDeletions"] == true,
        }
    })
    .collect()
}

impl Grant {
    /// Whether the grants allow what a request did to an object.
    fn allows(&self, record: &Record) -> bool {
        let Some(before) = &record.before else { return false };
        if record.seen.resource == "pods" {
            return self.evicts
                && (record.seen.verb == Verb::Delete
                    || record.seen.subresource.as_deref() == Some("eviction"));
        }
        let of_root = record.seen.manager.as_ref().and_then(|manager| manager.strip_prefix(&self.manager));
        let (Some(after), true) = (&record.after, of_root.is_some_and(|rest| rest.starts_with('.'))) else {
            return false;
        };
        let mut changed = Vec::new();
        differing(before, after, &mut Vec::new(), &mut changed);
        self.patches.iter().any(|(api_version, kind, fields)| {
            before["apiVersion"] == api_version.as_str()
                && before["kind"] == kind.as_str()
                && changed.iter().all(|path| fields.iter().any(|field| path.starts_with(field)))
        })
    }
}

/// Where two objects differ, apart from the metadata that the API server itself sets.
fn differing(one: &Value, other: &Value, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    const KEPT: [&str; 3] = ["managedFields", "resourceVersion", "generation"];
    if one == other {
        return;
    }
    let nothing = serde_json::Map::new();
    // A map that is there on one side alone differs in what is in it.
    let (one, other) = match (one, other) {
        (Value::Object(one), Value::Object(other)) => (one, other),
        (Value::Object(one), Value::Null) => (one, &nothing),
        (Value::Null, Value::Object(other)) => (&nothing, other),
        _ => return found.push(path.clone()),
    };
    let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    for key in keys {
        if path.as_slice() == ["metadata"] && KEPT.contains(&key.as_str()) {
            continue;
        }
        path.push(key.clone());
        differing(one.get(key).unwrap_or(&Value::Null), other.get(key).unwrap_or(&Value::Null), path, found);
        path.pop();
    }
}

/// How much later one root may be because another one has trouble: a pass, and the time for which a status write may be held back.
const DELAY_MAX: Duration = Duration::from_secs(2);

/// How long it took until the status of each root was about what somebody wanted of it, in the order in which it was wanted. None if it
/// never was, because something else was wanted, or the root was deleted.
fn delays(world: &World) -> BTreeMap<ObjectRef, Vec<Option<Duration>>> {
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
        for asked in script.asked.iter().filter(|asked| roots.contains(&asked.object)) {
            let Asked { at, object, uid, generation } = asked;
            let told = told.get(uid.as_str()).into_iter().flatten();
            let first = told.into_iter().find(|(_, observed)| observed >= generation);
            let delay = first.map(|(time, _)| time.saturating_sub(*at));
            delays.entry(object.clone()).or_default().push(delay);
        }
        delays
    })
}

/// The roots that the faults of a plan may concern; none means all of them.
fn troubled(world: &World, plan: &Plan) -> Option<BTreeSet<ObjectRef>> {
    let script = world.script();
    if plan.0.iter().any(|fault| fault.reach() == Reach::Everybody) {
        return None;
    }
    let said = script.troubled.clone();
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

/// The root that a request is about.
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
pub(super) fn isolated(
    world: &World,
    evidence: &Evidence,
    plan: &Plan,
    reference: &Reference,
) -> Result<(), Broken> {
    let Some(troubled) = troubled(world, plan) else { return Ok(()) };
    for (root, expected) in &reference.outcome.evidence.delays {
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
                return Err(Broken { property: Property::Isolated, step: None, what });
            }
        }
    }
    Ok(())
}

/// The objects that are left of roots that are gone.
pub(super) fn orphans(snapshot: &Snapshot) -> Vec<ObjectRef> {
    let there: BTreeSet<&str> = snapshot.objects.values().map(|object| uid(object)).collect();
    let is_orphan = |object: &Value| {
        let root = at(object, &["metadata", "labels", names::LABEL_ROOT]).and_then(Value::as_str);
        root.is_some_and(|root| !there.contains(root))
    };
    snapshot
        .objects
        .iter()
        .filter(|(_, object)| is_orphan(object))
        .map(|(reference, _)| reference.clone())
        .collect()
}
