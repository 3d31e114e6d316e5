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

/// The finalizers of the garbage collector. No view shows them.
const COLLECTORS: [&str; 2] = ["foregroundDeletion", "orphan"];

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
        };
        for revision in server.history() {
            let object = &revision.after;
            ledger.uids.insert(text(&object["metadata"]["uid"]));
            if is_owned(object) || revision.before.as_deref().is_some_and(is_owned) {
                ledger.owned.entry(text(&object["metadata"]["name"])).or_default().push(revision.version);
            }
            if object["kind"] == "View" {
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

    /// The uids of the stored Llamas that there are in the end.
    pub(super) fn uids_left(&self) -> BTreeSet<&str> {
        let llamas = self.by_name.iter().filter(|((plural, _), _)| *plural == "llamas");
        let left = llamas.filter_map(|(_, changes)| {
            let (last, is_there) = changes.last()?;
            self.at(*last).filter(|_| *is_there)?.after["metadata"]["uid"].as_str()
        });
        left.collect()
    }

    /// What Llamas own in the end, by name.
    pub(super) fn owned_left(&self) -> impl Iterator<Item = (&String, &Value)> {
        let last = self.owned.iter().filter_map(|(name, changes)| Some((name, self.at(*changes.last()?)?)));
        let left = last.filter(|(_, revision)| !revision.gone && is_owned(&revision.after));
        left.map(|(name, revision)| (name, &*revision.after))
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
        let is_shown = |one: &&Value| !COLLECTORS.iter().any(|collectors| *one == collectors);
        let finalizers: Vec<Value> = finalizers.filter(is_shown).cloned().collect();
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
