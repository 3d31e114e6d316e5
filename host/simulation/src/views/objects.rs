//! The stored objects of a run.

use pintle_wit::ObjectRef;
use serde_json::{Value, json};

use super::{NAMESPACE, RECORD};

/// The names of Llamas, and of Pods.
pub(super) const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// The label that some objects have, with its value.
pub(super) const LABEL: (&str, &str) = ("tier", "gold");

/// The stored object with this name.
pub(super) fn record(name: &str) -> ObjectRef {
    let (api_version, kind) = RECORD;
    ObjectRef {
        api_version: api_version.into(),
        kind: kind.into(),
        namespace: Some(NAMESPACE.into()),
        name: name.into(),
    }
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
