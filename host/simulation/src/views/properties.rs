//! The properties that must hold in every run of the gateway. Their codes are those of docs/simulator.md.

use std::{collections::BTreeMap, fmt};

use pintle_simulator::{Record, Verb};
use serde_json::Value;

use super::{
    Broken, MODULES, NAMESPACE, collection,
    gateways::{Answer, Content, Request},
    informer::Informer,
    ledger::{Ledger, Version, can_be_shown, exchanged, expected_as, shown, without_uid},
    objects::{GROWN, LABEL, owners},
    script::is_gateway,
    world::{Evidence, Sighting, Told, World, Written, view},
};

/// A property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Property {
    /// G1: what clients are shown, and what informers believe in the end, is what the guest shows of what is stored.
    Believed,
    /// G2: no object is 404 that was there during the whole request.
    Found,
    /// G3: nothing is stored beyond the declared paths, and nothing changes that a rule of the schema keeps.
    Declared,
    /// G4: a uid that is shown is never that of a stored object, and is one for each of them.
    Uids,
    /// G5: a write does what its answer says.
    Answered,
    /// G6: what names an object as its owner goes after it, and nobody is told that it stays.
    Cascades,
    /// The gateways come to be ready, and the clients get answers.
    Serves,
    /// The same seed and plan lead to the same run, which does not use the operating system's time or random numbers.
    Repeatable,
}

impl fmt::Display for Property {
    /// Its code in docs/simulator.md.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Believed => "G1",
            Self::Found => "G2",
            Self::Declared => "G3",
            Self::Uids => "G4",
            Self::Answered => "G5",
            Self::Cascades => "G6",
            Self::Serves => "serves",
            Self::Repeatable => "repeatable",
        })
    }
}

/// Judges what happened on the way.
pub(super) fn on_the_way(ledger: &Ledger, evidence: &Evidence, records: &[Record]) -> Result<(), Broken> {
    // What is worst comes first: one mistake may break several.
    records.iter().filter(|record| is_gateway(&record.seen.client)).try_for_each(declared)?;
    evidence.writes.iter().try_for_each(|written| answered(ledger, written, records))?;
    let mut uids = Uids::default();
    evidence.sightings.iter().try_for_each(|sighting| uids.judge(ledger, sighting))?;
    cascades(ledger, &evidence.writes, &uids)?;
    for missed in &evidence.misses {
        let path = missed.path.split('?').next().unwrap_or_default();
        let named = ["llamas", "farmpods"].into_iter().find_map(|plural| {
            Some((plural, path.strip_prefix(&collection(plural))?.trim_start_matches('/')))
        });
        let Some((plural, name)) = named else { continue };
        let stored = if plural == "farmpods" { name.trim_start_matches("farm-") } else { name };
        if name.is_empty() || ledger.was_there(plural, stored, missed.versions) {
            let what = format!("{} {path} was answered with 404, and the object was there", missed.method);
            return Err(Broken::at(Property::Found, missed.at, what));
        }
    }
    evidence.sightings.iter().try_for_each(|sighting| is_shown(ledger, sighting))
}

/// Whether what Llamas owned went after them.
fn cascades(ledger: &Ledger, writes: &[Written], uids: &Uids) -> Result<(), Broken> {
    for written in writes {
        let is_done = written.answer.as_ref().is_some_and(|(code, _)| *code < 300);
        if written.request.method == "DELETE" && is_done && written.wanted["propagationPolicy"] == "Orphan" {
            let what = format!("{} was answered with success, and orphans nothing", written_as(written));
            return Err(Broken::at(Property::Cascades, written.at, what));
        }
    }
    let left = ledger.uids_left();
    for (name, object) in ledger.owned_left() {
        let is_there = |owner: &Value| {
            let stored = owner["uid"].as_str().and_then(|uid| uids.by_shown.get(uid));
            stored.is_some_and(|stored| left.contains(stored.as_str()))
        };
        if !owners(object).all(is_there) {
            let references = &object["metadata"]["ownerReferences"];
            let what = format!("in the end {name} names an owner that is gone: {references}");
            return Err(Broken::new(Property::Cascades, what));
        }
    }
    Ok(())
}

/// The uids that were shown.
#[derive(Default)]
struct Uids {
    /// The uid that is shown, by the stored one.
    by_stored: BTreeMap<String, String>,
    /// The stored one, by the one that is shown.
    by_shown: BTreeMap<String, String>,
}

impl Uids {
    fn judge(&mut self, ledger: &Ledger, sighting: &Sighting) -> Result<(), Broken> {
        let metadata = &sighting.object["metadata"];
        let uid = metadata["uid"].as_str().unwrap_or_default().to_owned();
        let broken = |what: &str| {
            let what = format!("{} {} is shown with uid {uid}: {what}", sighting.plural, metadata["name"]);
            Err(Broken::at(Property::Uids, sighting.at, what))
        };
        if uid.is_empty() {
            return broken("it has none");
        }
        if ledger.has_uid(&uid) {
            return broken("a stored object has it");
        }
        let revision = Version::of(&sighting.object).and_then(|version| ledger.at(version.stored));
        let Some(stored) = revision.and_then(|revision| revision.after["metadata"]["uid"].as_str()) else {
            return Ok(());
        };
        if self.by_stored.entry(stored.to_owned()).or_insert_with(|| uid.clone()) != &uid {
            return broken("another one was shown of the same stored object");
        }
        if self.by_shown.entry(uid.clone()).or_insert_with(|| stored.to_owned()) != stored {
            return broken("it was shown of another stored object");
        }
        Ok(())
    }
}

/// Whether what somebody was shown is what the guest in force showed of a stored object.
fn is_shown(ledger: &Ledger, sighting: &Sighting) -> Result<(), Broken> {
    let Sighting { at, plural, object, how } = sighting;
    let is_gone = *how == Told::Gone;
    let broken = |what: String| Err(Broken::at(Property::Believed, *at, what));
    let name = &object["metadata"]["name"];
    let Some(version) = Version::of(object) else {
        return broken(format!("{plural} {name} is shown at a version without an epoch"));
    };
    let Some(revision) = ledger.at(version.stored) else {
        return broken(format!(
            "{plural} {name} is shown at version {}, which nothing ever had",
            version.stored
        ));
    };
    let modules: Vec<&str> = ledger.modules(plural, version.epoch).collect();
    if modules.is_empty() {
        return broken(format!(
            "{plural} {name} is shown in epoch {}, which no View ever had",
            version.epoch
        ));
    }
    // That something no longer has a label is shown as it was before, with the version of the change.
    let is_selected = |object: &Value| object["metadata"]["labels"][LABEL.0] == LABEL.1;
    let before =
        revision.before.as_deref().filter(|before| is_selected(before) && !is_selected(&revision.after));
    let has_left = !revision.gone && before.is_some();
    let is_partial = object["kind"] == "PartialObjectMetadata";
    let as_shown = |state: &Value| -> Vec<Value> {
        let shown = modules.iter().map(|module| shown(plural, state, version.epoch, module));
        shown.map(|shown| expected_as(object, shown)).collect()
    };
    // To a client of whole objects, one that cannot be shown is as good as gone.
    let is_left_out = |shown: &Value| !is_partial && !can_be_shown(&shown["spec"]);
    let mut expected = as_shown(&revision.after);
    let may_be_left_out = expected.iter().any(is_left_out);
    if is_gone != (revision.gone || (has_left || may_be_left_out) && is_gone) {
        let how = if is_gone { "gone" } else { "there" };
        return broken(format!(
            "{plural} {name} is shown as {how} at version {}, where it is not",
            version.stored
        ));
    }
    if let Some(before) = before.filter(|_| is_gone && has_left) {
        let mut before = before.clone();
        before["metadata"]["resourceVersion"] = version.stored.to_string().into();
        expected.extend(as_shown(&before));
    }
    let found = without_uid(object);
    if *how == Told::Present {
        expected.retain(|expected| !is_left_out(expected));
    } else if found.get("spec").is_none() {
        // That it is gone, or written, is told although the guest cannot show it.
        expected
            .iter_mut()
            .filter_map(Value::as_object_mut)
            .for_each(|expected| drop(expected.remove("spec")));
    }
    if expected.contains(&found) {
        return Ok(());
    }
    let (expected, module) = (expected.first().unwrap_or(&Value::Null), modules.join(" or "));
    broken(format!("{plural} {name} is shown as\n    {found}\n  and {module} shows\n    {expected}"))
}

/// Whether a write of a gateway changed nothing that it must not.
fn declared(record: &Record) -> Result<(), Broken> {
    let seen = &record.seen;
    if !matches!(seen.resource.as_str(), "llamarecords" | "pods") || !record.changed() {
        return Ok(());
    }
    let broken = |what: String| {
        let name = seen.name.as_deref().unwrap_or_default();
        let what = format!("{} {:?} {} {name}: {what}", seen.client, seen.verb, seen.resource);
        Err(Broken::new(Property::Declared, what))
    };
    if seen.resource == "pods" {
        return broken("FarmPods are read-only".into());
    }
    if seen.verb == Verb::Delete {
        return Ok(());
    }
    if let (Some(before), Some(after)) = (&record.before, &record.after) {
        let is_grown = before["spec"]["weight"].as_f64().is_some_and(|weight| weight > GROWN as f64);
        let is_kept = |field: &&str| before["spec"][*field] == after["spec"][*field];
        if is_grown && !["weight", "height"].iter().all(is_kept) {
            return broken(format!("a grown Llama changed from\n    {before}\n  into\n    {after}"));
        }
    }
    let Some(after) = record.after.as_deref().map(undeclared) else { return Ok(()) };
    let Some(before) = record.before.as_deref() else {
        // What is created has the declared fields alone.
        let more = after["spec"].as_object().is_some_and(|spec| !spec.is_empty());
        let metadata = ["annotations", "finalizers"].iter().any(|key| after["metadata"].get(*key).is_some());
        let more = more || metadata || after.get("status").is_some();
        return if more { broken(format!("it was created with {after}")) } else { Ok(()) };
    };
    let before = undeclared(before);
    if before != after {
        return broken(format!("it changed\n    {before}\n  into\n    {after}"));
    }
    Ok(())
}

/// What a gateway must not change of a stored object.
fn undeclared(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(spec) = object["spec"].as_object_mut() {
        spec.retain(|key, _| !matches!(key.as_str(), "weight" | "height"));
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for key in ["labels", "ownerReferences", "managedFields", "resourceVersion", "generation"] {
            metadata.remove(key);
        }
        let mut empty = Vec::new();
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.retain(|key, _| !key.starts_with("pintle.dev/last-applied."));
            empty.extend(annotations.is_empty().then_some("annotations"));
        }
        // Those of the garbage collector are the stored object's own.
        if let Some(finalizers) = metadata.get_mut("finalizers").and_then(Value::as_array_mut) {
            finalizers.retain(|one| one == "orphan" || one == "foregroundDeletion");
            empty.extend(finalizers.is_empty().then_some("finalizers"));
        }
        empty.into_iter().for_each(|key| drop(metadata.remove(key)));
    }
    object
}

/// Whether a write did what its answer says.
fn answered(ledger: &Ledger, written: &Written, records: &[Record]) -> Result<(), Broken> {
    let Some((code, body)) = &written.answer else { return Ok(()) };
    let request = &written.request;
    let broken = |what: String| {
        let what = format!("{} ({}) was answered with {code}: {what}", written_as(written), request.agent);
        Err(Broken::at(Property::Answered, written.at, what))
    };
    if request.method == "DELETE" {
        let path = request.path.strip_prefix(&collection("llamas")).unwrap_or_default();
        let name = path.trim_start_matches('/');
        let is_done = name.is_empty() || ledger.was_deleted("llamas", name, written.versions);
        if *code >= 300 {
            return Ok(());
        }
        let wanted = written.wanted["preconditions"]["uid"].as_str();
        if wanted.is_some_and(|uid| body["details"]["uid"] != uid) {
            return broken(format!(
                "it was to delete another object than the one with uid {}",
                body["details"]["uid"]
            ));
        }
        let version = written.wanted["preconditions"]["resourceVersion"].as_str().and_then(Version::read);
        return match version {
            _ if !is_done => broken("nobody deleted it".into()),
            Some(version) if ledger.was_changed(name, (version.stored, written.versions.1)) => {
                broken(format!("it had changed since version {}", version.stored))
            }
            _ => Ok(()),
        };
    }
    let mut own = records.iter().filter(|record| {
        is_gateway(&record.seen.client) && record.seen.manager.as_deref() == Some(request.agent.as_str())
    });
    // 504 says that it may have been carried out.
    let must_not_change = *code >= 400 && *code != 504 || request.is_dry_run();
    if must_not_change && let Some(record) = own.clone().find(|record| record.changed()) {
        return broken(format!("it changed something at version {}", record.version));
    }
    if *code >= 300 {
        return Ok(());
    }
    let Some(done) = own.rfind(|record| record.code < 300 && !record.by_fault) else {
        return broken("nothing was written".into());
    };
    // What cannot be shown is answered without a spec.
    let said = body["spec"].as_object();
    let is_said = said.is_none_or(|said| {
        let asked = written.wanted["spec"].as_object();
        asked.into_iter().flatten().all(|(field, value)| said.get(field) == Some(value))
    });
    if !is_said {
        return broken(format!("what is shown is {}", body["spec"]));
    }
    if request.is_dry_run() {
        return Ok(());
    }
    let (Some(after), Some(version)) = (done.after.as_deref(), Version::of(body)) else {
        return broken("nothing was stored, or the answer has no version".into());
    };
    if request.method == "PUT"
        && let Some(sent) = Version::of(&written.wanted)
    {
        if sent.epoch != version.epoch {
            return broken(format!(
                "it was written in epoch {} and is shown in {}",
                sent.epoch, version.epoch
            ));
        }
        let replaced = done.before.as_ref().map(|before| &before["metadata"]["resourceVersion"]);
        if replaced.and_then(Value::as_str) != Some(sent.stored.to_string().as_str()) {
            return broken(format!("it was written over version {} and replaced {replaced:?}", sent.stored));
        }
    }
    let is_asked = ledger.modules("llamas", version.epoch).any(|module| {
        let asked = exchanged(&written.wanted["spec"], module == MODULES[1]);
        asked.as_object().into_iter().flatten().all(|(field, value)| after["spec"][field] == *value)
    });
    if !is_asked && written.wanted.get("spec").is_some() {
        return broken(format!("what is stored is {}", after["spec"]));
    }
    Ok(())
}

fn written_as(written: &Written) -> String {
    format!("{} {} {}", written.request.method, written.request.path, written.wanted)
}

/// Judges whether a list in the end warns of what it leaves out, and of nothing else.
pub(super) async fn is_told_what_is_left_out(world: &World) -> Result<(), Broken> {
    let stored = world.server.snapshot();
    let is_stored =
        |object: &&Value| object["kind"] == "LlamaRecord" && object["metadata"]["namespace"] == NAMESPACE;
    let stored = stored.objects.values().map(AsRef::as_ref).filter(is_stored).count();
    let Ok(Answer { warns, content: Content::Whole(list), .. }) =
        world.send(Request::get(collection("llamas"))).await
    else {
        return Ok(());
    };
    let shown = list["items"].as_array().map_or(0, Vec::len);
    if warns != (shown < stored) {
        let what =
            format!("in the end a list has {shown} of {stored} Llamas, and whether it warns is {warns}");
        return Err(Broken::new(Property::Believed, what));
    }
    Ok(())
}

/// Judges what an informer believes in the end.
pub(super) fn in_the_end(world: &World, informer: &Informer) -> Result<(), Broken> {
    let Informer { name, plural, selects, metadata_only, .. } = informer;
    let of = world.server.object(&view(plural)).unwrap_or_default();
    let active = &of["status"]["active"];
    let (Some(epoch), Some(module)) = (active["epoch"].as_u64(), active["module"].as_str()) else {
        return Err(Broken::new(
            Property::Serves,
            format!("View {plural} has nothing in force: {}", of["status"]),
        ));
    };
    let kind = if *plural == "llamas" { "LlamaRecord" } else { "Pod" };
    let snapshot = world.server.snapshot();
    let stored = snapshot.objects.values().filter(|object| {
        object["kind"] == kind
            && object["metadata"]["namespace"] == NAMESPACE
            && selects.is_none_or(|(label, value)| object["metadata"]["labels"][label] == value)
    });
    let expected: BTreeMap<String, Value> = stored
        .map(|object| shown(plural, object, epoch, module))
        .filter(|object| *metadata_only || can_be_shown(&object["spec"]))
        .map(|object| (object["metadata"]["name"].as_str().unwrap_or_default().to_owned(), object))
        .collect();
    let believed = informer.believed();
    let broken =
        |what: String| Err(Broken::new(Property::Believed, format!("in the end informer {name} {what}")));
    for (key, object) in &*believed {
        let Some(expected) = expected.get(key) else {
            return broken(format!("believes in {plural} {key}, which is gone"));
        };
        let (found, expected) = (without_uid(object), expected_as(object, expected.clone()));
        if found != expected {
            return broken(format!("believes\n    {found}\n  and {module} shows\n    {expected}"));
        }
    }
    match expected.keys().find(|key| !believed.contains_key(*key)) {
        Some(key) => broken(format!("does not know {plural} {key}")),
        None => Ok(()),
    }
}
