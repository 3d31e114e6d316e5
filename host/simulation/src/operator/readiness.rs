//! What the condition Ready of an object says.

use pintle_core::{conditions::READY, object, reasons};
use pintle_schema::fit::Kinds;
use pintle_wit::{Kind, ObjectRef};
use serde_json::Value;

/// The condition Ready.
pub(super) fn ready(object: &Value) -> Option<&Value> {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().find(|condition| condition["type"] == READY)
}

/// Why a Reconciler does not become ready.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotReady {
    /// Children are of kinds that the simulator does not serve: neither as built-in kinds nor by a CRD.
    #[error("the simulator does not know {}", kinds.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    UnknownKinds {
        /// The kinds.
        kinds: Vec<Kind>,
    },
    /// What the host says of it.
    #[error("{reference} does not become ready: {why}")]
    Said {
        /// The Reconciler.
        reference: ObjectRef,
        /// The reason and the message of its condition Ready.
        why: String,
    },
}

impl NotReady {
    /// `served` are the kinds that the simulator has.
    pub(super) fn new(reference: &ObjectRef, reconciler: &Value, served: &Kinds) -> Self {
        let text = |field: &str| ready(reconciler).and_then(|ready| object::text(ready, &[field]));
        let kinds = unknown_kinds(reconciler, served);
        if text("reason") == Some(reasons::CHILD_KIND_MISSING) && !kinds.is_empty() {
            return Self::UnknownKinds { kinds };
        }
        let why = match (text("reason"), text("message")) {
            (Some(reason), Some(message)) => format!("{reason}: {message}"),
            _ => "the host says nothing of it".into(),
        };
        Self::Said { reference: reference.clone(), why }
    }
}

/// The kinds of children that a Reconciler grants and that are not served.
fn unknown_kinds(reconciler: &Value, served: &Kinds) -> Vec<Kind> {
    let grants = reconciler.pointer("/spec/grants/children").and_then(Value::as_array);
    let kinds = grants.into_iter().flatten().flat_map(|grant| {
        let api_version = grant["apiVersion"].as_str().unwrap_or_default();
        let kinds = grant["kinds"].as_array().into_iter().flatten().filter_map(Value::as_str);
        kinds.map(move |kind| Kind::new(api_version, kind))
    });
    kinds.filter(|kind| !served.has(kind)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reconciler_that_is_not_ready_is_told_in_one_sentence() {
        let reconciler = |reason: &str| {
            json!({
                "apiVersion": "pintle.dev/v1alpha1", "kind": "Reconciler", "metadata": {"name": "web"},
                "spec": {"grants": {"children": [
                    {"apiVersion": "v1", "kinds": ["ConfigMap", "LimitRange"]}, {"apiVersion": "a.io/v1", "kinds": ["A"]},
                ]}},
                "status": {"conditions": [{"type": "Ready", "status": "False", "reason": reason, "message": "why"}]},
            })
        };
        let said =
            |object: &Value| NotReady::new(&object::reference(object), object, &Kinds::default()).to_string();
        assert_eq!(
            said(&reconciler(reasons::CHILD_KIND_MISSING)),
            "the simulator does not know v1 LimitRange, a.io/v1 A"
        );
        assert_eq!(said(&reconciler("Other")), "Reconciler web does not become ready: Other: why");
    }
}
