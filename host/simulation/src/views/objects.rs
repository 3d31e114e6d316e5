//! The stored objects of a run.

use pintle_wit::ObjectRef;
use serde_json::{Value, json};

use super::{NAMESPACE, RECORD};
use crate::acts::reference;

/// The names of Llamas, and of Pods.
pub(super) const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// A Llama is grown that weighs more, as no user lets one weigh. No write through the view changes its measures.
pub(super) const GROWN: u64 = 300;

/// The label that some objects have, with its value.
pub(super) const LABEL: (&str, &str) = ("tier", "gold");

/// The stored object with this name.
pub(super) fn record(name: &str) -> ObjectRef {
    reference(RECORD.0, RECORD.1, Some(NAMESPACE), name)
}

/// A stored object, with a field that the view does not know.
pub(super) fn new_record(name: &str, amount: u64) -> Value {
    let (api_version, kind) = RECORD;
    json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE, "annotations": {"owner.example.com/note": "kept"}},
        "spec": {"weight": amount, "height": amount + 100, "colour": "white"},
    })
}

/// What a Llama owns, by its name.
pub(super) fn owned(name: &str) -> ObjectRef {
    reference("v1", "ConfigMap", Some(NAMESPACE), name)
}

/// Whether an object is one that Llamas own.
pub(super) fn is_owned(object: &Value) -> bool {
    object["kind"] == "ConfigMap"
        && object["metadata"]["namespace"] == NAMESPACE
        && owners(object).next().is_some()
}

/// The owner references of an object.
pub(super) fn owners(object: &Value) -> impl Iterator<Item = &Value> {
    object["metadata"]["ownerReferences"].as_array().into_iter().flatten()
}

/// An owner reference to a Llama.
pub(super) fn owner_reference(llama: &Value, blocks: bool) -> Value {
    json!({
        "apiVersion": llama["apiVersion"], "kind": llama["kind"], "name": llama["metadata"]["name"],
        "uid": llama["metadata"]["uid"], "blockOwnerDeletion": blocks,
    })
}
