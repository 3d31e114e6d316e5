//! Reads the parts of a request that are the same for every guest. The host writes them, so a guest need not report errors in them. Derived
//! readers, which handle every error, would add ten kilobytes to every guest.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    Cause, FieldEquals, Host, LabelSelector, Need, NeedAnswer, ObjectRef, ObjectsNeed, Refusal, Select,
    SelectorOperator, SelectorRequirement,
};

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
            namespace: optional_text(child, "namespace"),
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

pub(crate) fn need_answer(mut answer: Value) -> NeedAnswer {
    NeedAnswer {
        need: need(take(&mut answer, "need")),
        objects: list(take(&mut answer, "objects"), |object| object),
        time: optional_text(&mut answer, "time"),
        reached: answer["reached"].as_bool(),
    }
}

fn need(mut need: Value) -> Need {
    if need.get("deadline").is_some() {
        return Need::Deadline(text(&mut need, "deadline"));
    }
    if let Some(clock) = need.get("clock") {
        return Need::Clock { step_seconds: number(clock, "stepSeconds") };
    }
    let mut objects = take(&mut need, "objects");
    Need::Objects(ObjectsNeed {
        api_version: text(&mut objects, "apiVersion"),
        kind: text(&mut objects, "kind"),
        namespace: optional_text(&mut objects, "namespace"),
        select: select(take(&mut objects, "select")),
        fields: list(take(&mut objects, "fields"), string),
        settle_milliseconds: number(&objects, "settleMilliseconds"),
    })
}

fn select(mut select: Value) -> Select {
    if select.get("name").is_some() {
        return Select::Name(text(&mut select, "name"));
    }
    let mut field = take(&mut select, "field");
    if !field.is_null() {
        return Select::Field(FieldEquals {
            path: text(&mut field, "path"),
            equals: text(&mut field, "equals"),
        });
    }
    let mut labels = take(&mut select, "labels");
    let match_labels = match take(&mut labels, "matchLabels") {
        Value::Object(pairs) => pairs.into_iter().map(|(key, value)| (key, string(value))).collect(),
        _ => BTreeMap::new(),
    };
    let match_expressions = list(take(&mut labels, "matchExpressions"), |mut requirement| {
        let operator = match requirement["operator"].as_str() {
            Some("In") => SelectorOperator::In,
            Some("NotIn") => SelectorOperator::NotIn,
            Some("Exists") => SelectorOperator::Exists,
            _ => SelectorOperator::DoesNotExist,
        };
        SelectorRequirement {
            key: text(&mut requirement, "key"),
            operator,
            values: list(take(&mut requirement, "values"), string),
        }
    });
    Select::Labels(LabelSelector { match_labels, match_expressions })
}

fn number(object: &Value, field: &str) -> u32 {
    object[field].as_u64().and_then(|number| u32::try_from(number).ok()).unwrap_or_default()
}

fn optional_text(object: &mut Value, field: &str) -> Option<String> {
    object.get(field).is_some().then(|| text(object, field))
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

    /// Every field is set, so that the test fails if the contract gains a field that this module does not know.
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

    /// Every kind of need and of selection, with every field set.
    #[test]
    fn an_answer_to_a_need_is_read_as_the_contract_writes_it() {
        let labels = LabelSelector {
            match_labels: BTreeMap::from([("app".into(), "web".into())]),
            match_expressions: [
                SelectorOperator::In,
                SelectorOperator::NotIn,
                SelectorOperator::Exists,
                SelectorOperator::DoesNotExist,
            ]
            .map(|operator| SelectorRequirement { key: "tier".into(), operator, values: vec!["a".into()] })
            .to_vec(),
        };
        let objects = |need: ObjectsNeed| Need::Objects(need);
        let needs = [
            objects(ObjectsNeed::named("v1", "ConfigMap", "a").with_fields(&["data"]).settled_for(2000)),
            objects(ObjectsNeed::labelled("v1", "Pod", labels).in_all_namespaces()),
            objects(ObjectsNeed::indexed("v1", "Pod", "spec.nodeName", "node-1")),
            Need::Clock { step_seconds: 60 },
            Need::Deadline("2000-01-01T00:00:00Z".into()),
        ];
        for need in needs {
            let written = NeedAnswer {
                need,
                objects: vec![json!({"kind": "Pod"})],
                time: Some("2000-01-01T00:00:00Z".into()),
                reached: Some(true),
            };
            assert_eq!(need_answer(serde_json::to_value(&written).unwrap()), written);
            let bare = NeedAnswer { objects: Vec::new(), time: None, reached: None, ..written };
            assert_eq!(need_answer(serde_json::to_value(&bare).unwrap()), bare);
        }
    }

    #[test]
    fn a_host_is_read_as_the_contract_writes_it() {
        let written = Host { capabilities: vec!["children".into(), "status".into()] };
        assert_eq!(host(serde_json::to_value(&written).unwrap()), written);
        assert_eq!(host(Value::Null), Host::default());
    }
}
