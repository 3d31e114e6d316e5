//! What is compared: how a scenario's objects are, what a plan says of them, and what happened to them.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::ensure;
use base64::prelude::*;
use pintle_core::{
    plan::{Change, PlannedRoot},
    request,
};
use pintle_wit::ObjectRef;
use serde_json::{Map, Value, json};

/// What a scenario's objects are, by their names: what somebody set, and what our own manager owns.
pub(super) type Snapshot = BTreeMap<ObjectRef, Value>;

/// An object without what controllers and the API server write.
pub(super) fn essence(found: &Value) -> Value {
    let mut essence = found.clone();
    let managed =
        essence.pointer("/metadata/managedFields").and_then(Value::as_array).cloned().unwrap_or_default();
    let applied: Map<String, Value> = managed
        .iter()
        .filter(|entry| entry["operation"] == "Apply")
        .map(|entry| (entry["manager"].to_string(), entry["fieldsV1"].clone()))
        .collect();
    if let Some(fields) = essence.as_object_mut() {
        fields.remove("status");
        fields.insert("applied".into(), applied.into());
    }
    if let Some(metadata) = essence.get_mut("metadata").and_then(Value::as_object_mut) {
        for key in ["resourceVersion", "generation", "managedFields"] {
            metadata.remove(key);
        }
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove("deployment.kubernetes.io/revision");
        }
    }
    essence
}

pub(super) fn own_status(root: &Value) -> (Option<Value>, Vec<Value>) {
    let conditions =
        root.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let hosts = ["Ready", "Reconciling", "Stalled"];
    let guests =
        conditions.into_iter().filter(|condition| !hosts.iter().any(|name| condition["type"] == *name));
    let said = guests.map(|condition| {
        json!([condition["type"], condition["status"], condition["reason"], condition["message"]])
    });
    (root.get("status").and_then(request::own_status), said.collect())
}

/// What a plan says, each in a few words.
pub(super) fn changes(planned: &[PlannedRoot], adopt_is_update: bool) -> BTreeSet<String> {
    let all = planned.iter().flat_map(|root| root.children.iter().chain(&root.patches));
    all.filter(|child| child.change.writes())
        .map(|child| {
            let word = match child.change {
                Change::Adopt if adopt_is_update => "update",
                change => change.word(),
            };
            format!("{word} {} {}", child.reference.kind, child.reference.name)
        })
        .collect()
}

/// What happened between two looks, in the same words.
pub(super) fn happened(before: &Snapshot, after: &Snapshot) -> BTreeSet<String> {
    let all: BTreeSet<&ObjectRef> = before.keys().chain(after.keys()).collect();
    all.into_iter()
        .filter_map(|reference| {
            let word = match (before.get(reference), after.get(reference)) {
                (None, Some(_)) => "create",
                (Some(_), None) => "delete",
                (Some(old), Some(new)) if old != new => "update",
                _ => return None,
            };
            Some(format!("{word} {} {}", reference.kind, reference.name))
        })
        .collect()
}

/// What nobody is to read of a root of this repository's guests.
pub(super) fn secrets_of(root: &Value) -> Vec<&str> {
    root.pointer("/spec/source/secretKey").and_then(Value::as_str).into_iter().collect()
}

/// Fails if a text has one of the secrets.
pub(super) fn has_none_of(secrets: &[&str], what: &str, text: &str) -> anyhow::Result<()> {
    for secret in secrets {
        for form in [(*secret).to_owned(), BASE64_STANDARD.encode(secret)] {
            ensure!(!text.contains(&form), "{what} has the secret {form}: {text}");
        }
    }
    Ok(())
}
