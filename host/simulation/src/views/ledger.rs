//! [`Ledger`]: everything that was ever stored in a run, and what a sound gateway shows of it. It shares no code with the gateway.

use std::collections::{BTreeMap, BTreeSet};

use pintle_simulator::{ApiServer, Revision};
use pintle_wit::names::ANNOTATION_SUSPEND;
use serde_json::{Map, Value, json};

use super::{MODULES, NAMESPACE, objects::is_owned};

/// The digits of an epoch at the end of a version.
const EPOCH_DIGITS: usize = 6;

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
const LAST_APPLIED_OF_VIEWS: &str = "pintle.dev/last-applied.";

/// The finalizers of the garbage collector, and under which names records have those of Llamas: with the first digits of the sha256 of
/// `farm.example.com/llamas`.
pub(super) const COLLECTORS: [(&str, &str); 2] =
    [("foregroundDeletion", "pintle.dev/foreground.2a142a35e3"), ("orphan", "pintle.dev/orphan.2a142a35e3")];

/// Everything that was ever stored.
pub(super) struct Ledger {
    by_version: BTreeMap<u64, Revision>,
    /// The versions at which an object with this plural and name came or changed (true) or went (false).
    by_name: BTreeMap<(&'static str, String), Vec<(u64, bool)>>,
    /// The modules that were in force in an epoch of a View.
    modules: BTreeMap<(String, u64), BTreeSet<String>>,
    /// Every uid that a stored object ever had.
    uids: BTreeSet<String>,
    /// The versions at which what Llamas own came, changed or went, by its name.
    owned: BTreeMap<String, Vec<u64>>,
    /// The versions at which the View of Llamas came or changed, and whether it was to stay.
    view: Vec<(u64, bool)>,
}

/// A stored object, from its creation to its end.
pub(super) struct Life<'a> {
    pub(super) name: String,
    pub(super) uid: &'a str,
    /// The version at which its deletion began.
    pub(super) begun: Option<u64>,
    /// The version at which it was gone.
    pub(super) gone: Option<u64>,
    revisions: Vec<&'a Revision>,
}

impl Life<'_> {
    /// As it was at a version, if it was there.
    pub(super) fn at(&self, version: u64) -> Option<&Value> {
        let last = self.revisions.iter().rev().find(|revision| revision.version <= version)?;
        (!last.gone).then_some(&last.after)
    }
}

/// A version that was shown: the stored object's, and the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version {
    pub(super) stored: u64,
    pub(super) epoch: u64,
}

impl Version {
    pub(super) fn read(text: &str) -> Option<Self> {
        let (stored, epoch) = text.split_at_checked(text.len().checked_sub(EPOCH_DIGITS)?)?;
        Some(Self { stored: stored.parse().ok()?, epoch: epoch.parse().ok()? })
    }

    pub(super) fn of(object: &Value) -> Option<Self> {
        Self::read(object["metadata"]["resourceVersion"].as_str()?)
    }
}

/// Whether an object is gone, or is being deleted.
fn is_going(revision: &Revision) -> bool {
    revision.gone || revision.after["metadata"].get("deletionTimestamp").is_some()
}

fn without_finalizers(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|key, _| !["finalizers", "managedFields", "resourceVersion"].contains(&key.as_str()));
    }
    object
}

/// The plural of the view of a stored kind.
fn plural_of(kind: &Value) -> Option<&'static str> {
    match kind.as_str()? {
        "LlamaRecord" => Some("llamas"),
        "Pod" => Some("farmpods"),
        _ => None,
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

impl Ledger {
    pub(super) fn of(server: &ApiServer) -> Self {
        let mut ledger = Self {
            by_version: BTreeMap::new(),
            by_name: BTreeMap::new(),
            modules: BTreeMap::new(),
            uids: BTreeSet::new(),
            owned: BTreeMap::new(),
            view: Vec::new(),
        };
        for revision in server.history() {
            let object = &revision.after;
            ledger.uids.insert(text(&object["metadata"]["uid"]));
            if is_owned(object) || revision.before.as_deref().is_some_and(is_owned) {
                ledger.owned.entry(text(&object["metadata"]["name"])).or_default().push(revision.version);
            }
            if object["kind"] == "View" {
                if object["metadata"]["name"] == "llamas" {
                    ledger.view.push((revision.version, !is_going(&revision)));
                }
                let active = &object["status"]["active"];
                if let Some(epoch) = active["epoch"].as_u64() {
                    let known = ledger.modules.entry((text(&object["metadata"]["name"]), epoch)).or_default();
                    known.insert(text(&active["module"]));
                }
            }
            if let Some(plural) = plural_of(&object["kind"])
                && object["metadata"]["namespace"] == NAMESPACE
            {
                let name = (plural, text(&object["metadata"]["name"]));
                ledger.by_name.entry(name).or_default().push((revision.version, !revision.gone));
            }
            ledger.by_version.insert(revision.version, revision);
        }
        ledger
    }

    /// The change that made this version.
    pub(super) fn at(&self, version: u64) -> Option<&Revision> {
        self.by_version.get(&version)
    }

    /// The Llama that was stored under this name with this uid.
    pub(super) fn life<'a>(&'a self, name: &str, uid: &'a str) -> Life<'a> {
        let changes = self.by_name.get(&("llamas", name.to_owned())).into_iter().flatten();
        let revisions: Vec<&Revision> = changes
            .filter_map(|(version, _)| self.at(*version))
            .filter(|revision| revision.after["metadata"]["uid"] == uid)
            .collect();
        let begun = revisions.iter().find(|revision| is_going(revision)).map(|revision| revision.version);
        let gone = revisions.iter().find(|revision| revision.gone).map(|revision| revision.version);
        Life { name: name.to_owned(), uid, begun, gone, revisions }
    }

    /// The Llamas that were stored at a version.
    pub(super) fn llamas_at(&self, version: u64) -> Vec<Life<'_>> {
        let names = self.by_name.keys().filter(|(plural, _)| *plural == "llamas");
        let there = names.filter_map(|(plural, name)| {
            let changes = self.by_name.get(&(plural, name.clone()))?;
            let (last, is_there) = changes.iter().rev().find(|(changed, _)| *changed <= version)?;
            let uid = self.at(*last).filter(|_| *is_there)?.after["metadata"]["uid"].as_str()?;
            Some(self.life(name, uid))
        });
        there.collect()
    }

    /// What Llamas owned at a version, by name.
    pub(super) fn owned_at(&self, version: u64) -> Vec<(String, &Value)> {
        let names = self.owned.keys().cloned();
        let there = names.filter_map(|name| {
            let (object, is_there) = self.owned_until(&name, version)?;
            (is_there && is_owned(object)).then_some((name, object))
        });
        there.collect()
    }

    /// What Llamas own or owned, as it was last at a version, and whether it was still there.
    pub(super) fn owned_until(&self, name: &str, version: u64) -> Option<(&Value, bool)> {
        let last = self.owned.get(name)?.iter().rev().find(|changed| **changed <= version)?;
        self.at(*last).map(|revision| (&*revision.after, !revision.gone))
    }

    /// Whether the View of Llamas was being deleted, or gone, at some time between two versions.
    pub(super) fn is_without_view(&self, versions: (u64, u64)) -> bool {
        let (from, to) = versions;
        let at_first = self.view.iter().rev().find(|(version, _)| *version <= from);
        let within = self.view.iter().filter(|(version, _)| *version > from && *version <= to);
        at_first.into_iter().chain(within).any(|(_, stays)| !stays)
    }

    /// Whether more than the finalizers of a Llama changed between two versions, before its deletion began.
    pub(super) fn was_changed(&self, name: &str, versions: (u64, u64)) -> bool {
        let (from, to) = versions;
        let changes = self.by_name.get(&("llamas", name.to_owned())).into_iter().flatten();
        let within = changes.map(|(version, _)| *version).filter(|version| *version > from && *version <= to);
        let mut revisions =
            within.filter_map(|version| self.at(version)).take_while(|revision| !is_going(revision));
        revisions.any(|revision| {
            revision.before.as_deref().map(without_finalizers) != Some(without_finalizers(&revision.after))
        })
    }

    pub(super) fn has_uid(&self, uid: &str) -> bool {
        self.uids.contains(uid)
    }

    /// The modules that were in force in an epoch.
    pub(super) fn modules(&self, plural: &str, epoch: u64) -> impl Iterator<Item = &str> {
        self.modules.get(&(plural.to_owned(), epoch)).into_iter().flatten().map(String::as_str)
    }

    /// Whether an object was there from one version to another, both included.
    pub(super) fn was_there(&self, plural: &'static str, name: &str, versions: (u64, u64)) -> bool {
        let (from, to) = versions;
        let Some(changes) = self.by_name.get(&(plural, name.to_owned())) else { return false };
        let before = changes.iter().rev().find(|(version, _)| *version <= from).is_some_and(|(_, is)| *is);
        before && !changes.iter().any(|(version, is)| *version > from && *version <= to && !is)
    }

    /// Whether somebody deleted an object between two versions, or had before and it only waited to go.
    pub(super) fn was_deleted(&self, plural: &'static str, name: &str, versions: (u64, u64)) -> bool {
        let (from, to) = versions;
        let changes = self.by_name.get(&(plural, name.to_owned())).map(Vec::as_slice).unwrap_or_default();
        let is_within = |version: u64| version > from && version <= to;
        let at_end = changes.iter().rev().find(|(version, _)| *version <= to);
        let is_going = at_end.and_then(|(version, is)| Some((self.at(*version)?, is)));
        is_going
            .is_none_or(|(revision, is)| !is || revision.after["metadata"].get("deletionTimestamp").is_some())
            || changes.iter().any(|(version, is)| is_within(*version) && !is)
    }
}

/// What a sound gateway shows of a stored object, without the uid.
pub(super) fn shown(plural: &str, stored: &Value, epoch: u64, module: &str) -> Value {
    let is_llama = plural == "llamas";
    let from = &stored["metadata"];
    let mut metadata = Map::new();
    for key in [
        "namespace",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "labels",
    ] {
        if let Some(value) = from.get(key) {
            metadata.insert(key.into(), value.clone());
        }
    }
    let prefix = if is_llama { "" } else { "farm-" };
    for key in ["name", "generateName"] {
        if let Some(name) = from[key].as_str() {
            metadata.insert(key.into(), format!("{prefix}{name}").into());
        }
    }
    metadata.insert("resourceVersion".into(), format!("{}{epoch:06}", text(&from["resourceVersion"])).into());
    let annotations = from["annotations"].as_object().into_iter().flatten().filter_map(|(key, value)| {
        let key = match key.as_str() {
            LAST_APPLIED => return None,
            key if is_llama && key.starts_with(LAST_APPLIED_OF_VIEWS) => LAST_APPLIED,
            // The View of Llamas shows no other.
            key if is_llama && key != ANNOTATION_SUSPEND => return None,
            key => key,
        };
        Some((key.to_owned(), value.clone()))
    });
    let annotations: Map<String, Value> = annotations.collect();
    if !annotations.is_empty() {
        metadata.insert("annotations".into(), annotations.into());
    }
    if is_llama {
        let finalizers = from["finalizers"].as_array().into_iter().flatten();
        let shown = |one: &Value| match COLLECTORS.iter().find(|(_, stored)| one == stored) {
            Some((collectors, _)) => Some(Value::from(*collectors)),
            None => (!COLLECTORS.iter().any(|(collectors, _)| one == collectors)).then(|| one.clone()),
        };
        let finalizers: Vec<Value> = finalizers.filter_map(shown).collect();
        if !finalizers.is_empty() {
            metadata.insert("finalizers".into(), json!(finalizers));
        }
        if let Some(owners) = from.get("ownerReferences") {
            metadata.insert("ownerReferences".into(), owners.clone());
        }
    }
    let kind = if is_llama { "Llama" } else { "FarmPod" };
    json!({"apiVersion": "farm.example.com/v1alpha", "kind": kind, "metadata": metadata, "spec": spec(plural, stored, module)})
}

/// The spec that a module shows. The second module shows the weight as the height, and the other way round; and a hundred containers more.
fn spec(plural: &str, stored: &Value, module: &str) -> Value {
    let is_other = module == MODULES[1];
    if plural == "farmpods" {
        let containers = stored["spec"]["containers"].as_array().map_or(0, Vec::len);
        return json!({"containers": containers + if is_other { 100 } else { 0 }});
    }
    exchanged(&json!({"weight": stored["spec"]["weight"], "height": stored["spec"]["height"]}), is_other)
}

/// Whether a guest can show an object with this spec. It fails over one Llama in ten, by its weight as it would be shown.
pub(super) fn can_be_shown(spec: &Value) -> bool {
    spec["weight"].as_u64().is_none_or(|weight| weight % 10 != 7)
}

/// A spec of a Llama with its measures exchanged, if they are to be.
pub(super) fn exchanged(spec: &Value, is_other: bool) -> Value {
    let mut spec = spec.clone();
    if let Some(fields) = spec.as_object_mut().filter(|_| is_other) {
        let (weight, height) = (fields.remove("weight"), fields.remove("height"));
        fields.extend(weight.map(|weight| ("height".to_owned(), weight)));
        fields.extend(height.map(|height| ("weight".to_owned(), height)));
    }
    spec
}

/// An object without its uid, of which only the metadata are known or all of it.
pub(super) fn without_uid(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("uid");
    }
    if object["kind"] == "PartialObjectMetadata" {
        object = json!({"metadata": object["metadata"]});
    }
    object
}

/// The same of what is expected, where only the metadata are shown.
pub(super) fn expected_as(shown: &Value, expected: Value) -> Value {
    if shown["kind"] == "PartialObjectMetadata" {
        return json!({"metadata": expected["metadata"]});
    }
    expected
}
