//! What Reconcilers allow the hosts to do to objects that no host made. This is read from the objects alone, without the host's own code.

use std::collections::BTreeSet;

use pintle_simulator::{Record, Snapshot, Verb};
use serde_json::Value;

/// What a Reconciler may do to objects that no host made.
pub(super) struct Grant {
    /// How the field managers of its roots' patches begin.
    manager: String,
    patches: Vec<Patch>,
    evicts: bool,
}

/// What it may patch.
struct Patch {
    api_version: String,
    kind: String,
    fields: Vec<Vec<String>>,
    force: bool,
}

/// What the Reconcilers granted at any time of the run.
pub(super) fn grants(records: &[Record], snapshot: &Snapshot) -> Vec<Grant> {
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
        let kind = object["spec"]["for"]["kind"].as_str().unwrap_or_default();
        let granted = &object["spec"]["grants"];
        let patch = |grant: &Value| {
            let text = |key: &str| grant[key].as_str().unwrap_or_default().to_owned();
            let (fields, force) = (texts(&grant["fields"]), grant["force"] == true);
            Patch { api_version: text("apiVersion"), kind: text("kind"), fields, force }
        };
        Grant {
            manager: format!("pintle-{kind}-"),
            patches: granted["patches"].as_array().into_iter().flatten().map(patch).collect(),
            evicts: granted["evictions"] == true || granted["podDeletions"] == true,
        }
    })
    .collect()
}

impl Grant {
    /// Whether the grants allow what a request did to an object.
    pub(super) fn allows(&self, record: &Record) -> bool {
        let Some(before) = &record.before else { return false };
        if record.seen.resource == "pods" {
            return self.evicts
                && (record.seen.verb == Verb::Delete
                    || record.seen.subresource.as_deref() == Some("eviction"));
        }
        let is_of_root =
            record.seen.manager.as_ref().is_some_and(|manager| manager.starts_with(&self.manager));
        let (Some(after), true) = (&record.after, is_of_root) else { return false };
        let mut changed = Vec::new();
        differing(before, after, &mut Vec::new(), &mut changed);
        self.patches.iter().any(|Patch { api_version, kind, fields, force }| {
            before["apiVersion"] == api_version.as_str()
                && before["kind"] == kind.as_str()
                && (*force || !record.seen.force)
                && changed.iter().all(|path| fields.iter().any(|field| path.starts_with(field)))
        })
    }
}

/// The paths at which two objects differ, without the metadata that the API server itself sets.
fn differing(one: &Value, other: &Value, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    const KEPT: [&str; 3] = ["managedFields", "resourceVersion", "generation"];
    if one == other {
        return;
    }
    let nothing = serde_json::Map::new();
    // A map that only one object has differs in each of its fields.
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
