//! Reads the parts of a request that are the same for every guest. The host writes them, so nothing can be wrong that a guest should
//! say something about; derived readers, which prepare for everything, would add ten kilobytes to every guest.

use serde_json::Value;

use crate::{Cause, Host, ObjectRef, Refusal};

/// Reads a list that may be absent.
pub(crate) fn list<T>(value: Value, item: impl FnMut(Value) -> T) -> Vec<T> {
    match value {
        Value::Array(items) => items.into_iter().map(item).collect(),
        _ => Vec::new(),
    }
}

pub(crate) fn refusal(mut refusal: Value) -> Refusal {
    let child = &mut refusal["child"];
    Refusal {
        child: ObjectRef {
            api_version: text(child, "apiVersion"),
            kind: text(child, "kind"),
            namespace: child.get("namespace").is_some().then(|| text(child, "namespace")),
            name: text(child, "name"),
        },
        code: refusal["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or_default(),
        reason: text(&mut refusal, "reason"),
        message: text(&mut refusal, "message"),
        causes: list(take(&mut refusal, "causes"), |mut cause| Cause {
            field: text(&mut cause, "field"),
            reason: text(&mut cause, "reason"),
            message: text(&mut cause, "message"),
        }),
    }
}

pub(crate) fn host(mut host: Value) -> Host {
    Host { capabilities: list(take(&mut host, "capabilities"), string) }
}

fn take(object: &mut Value, field: &str) -> Value {
    object.get_mut(field).map(Value::take).unwrap_or_default()
}

fn text(object: &mut Value, field: &str) -> String {
    string(take(object, field))
}

fn string(value: Value) -> String {
    match value {
        Value::String(text) => text,
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    /// Every field is set, so that a field that the contract gains and this module does not know fails the test.
    #[test]
    fn a_refusal_is_read_as_the_contract_writes_it() {
        let written = Refusal {
            child: ObjectRef {
                api_version: "v1".into(),
                kind: "Service".into(),
                namespace: Some("blog".into()),
                name: "web".into(),
            },
            code: 422,
            reason: "Invalid".into(),
            message: "Service \"web\" is invalid".into(),
            causes: vec![Cause {
                field: "spec".into(),
                reason: "FieldValueInvalid".into(),
                message: "no".into(),
            }],
        };
        assert_eq!(refusal(serde_json::to_value(&written).unwrap()), written);
        let bare = json!({"child": {"apiVersion": "v1", "kind": "Node", "name": "a"}, "code": 403});
        assert_eq!(refusal(bare.clone()), serde_json::from_value(bare).unwrap());
    }

    #[test]
    fn a_host_is_read_as_the_contract_writes_it() {
        let written = Host { capabilities: vec!["children".into(), "status".into()] };
        assert_eq!(host(serde_json::to_value(&written).unwrap()), written);
        assert_eq!(host(Value::Null), Host::default());
    }
}
