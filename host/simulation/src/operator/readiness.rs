//! What the conditions of an object say of whether it is ready.

use pintle_core::{conditions::READY, object, reasons};
use pintle_schema::fit::Kinds;
use pintle_wit::{Kind, ObjectRef};
use serde_json::Value;

/// Children are of kinds that the simulator serves neither as built-in kinds nor by a CRD.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the simulator does not know {}", .kinds.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
pub struct UnknownKinds {
    kinds: Vec<Kind>,
}

fn condition<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().find(|condition| condition["type"] == name)
}

/// Whether a condition is True.
pub(super) fn is_true(object: &Value, name: &str) -> bool {
    condition(object, name).is_some_and(|condition| condition["status"] == "True")
}

/// The reason and the message of a condition Ready that is not True.
pub(super) fn unready(object: &Value) -> Option<String> {
    let ready = condition(object, READY).filter(|_| !is_true(object, READY))?;
    let text = |field: &str| ready[field].as_str().unwrap_or_default();
    Some(format!("{}: {}", text("reason"), text("message")))
}

/// Checks that a Reconciler is ready. `served` are the kinds that the simulator has.
pub(super) fn bound(reference: &ObjectRef, reconciler: &Value, served: &Kinds) -> anyhow::Result<()> {
    if is_true(reconciler, READY) {
        return Ok(());
    }
    let kinds = unknown_kinds(reconciler, served);
    let reason = condition(reconciler, READY).and_then(|ready| object::text(ready, &["reason"]));
    if reason == Some(reasons::CHILD_KIND_MISSING) && !kinds.is_empty() {
        return Err(UnknownKinds { kinds }.into());
    }
    let why = unready(reconciler).unwrap_or_else(|| "the host says nothing of it".into());
    anyhow::bail!("{reference} does not become ready: {why}")
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
        let said = |reason: &str| {
            let reconciler = json!({
                "apiVersion": "pintle.dev/v1alpha1", "kind": "Reconciler", "metadata": {"name": "web"},
                "spec": {"grants": {"children": [
                    {"apiVersion": "v1", "kinds": ["ConfigMap", "LimitRange"]}, {"apiVersion": "a.io/v1", "kinds": ["A"]},
                ]}},
                "status": {"conditions": [{"type": "Ready", "status": "False", "reason": reason, "message": "why"}]},
            });
            bound(&object::reference(&reconciler), &reconciler, &Kinds::default()).unwrap_err().to_string()
        };
        assert_eq!(said(reasons::CHILD_KIND_MISSING), "the simulator does not know v1 LimitRange, a.io/v1 A");
        assert_eq!(said("Other"), "Reconciler web does not become ready: Other: why");
    }
}
