//! What two answers have in common although nothing in them is the same: numbers by first appearance.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// What was handed out so far, by kind of thing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers(BTreeMap<&'static str, BTreeMap<String, usize>>);

impl Numbers {
    fn number(&mut self, what: &'static str, value: &str) -> Value {
        let known = self.0.entry(what).or_default();
        let next = known.len() + 1;
        format!("{what}-{}", known.entry(value.into()).or_insert(next)).into()
    }

    /// An answer as it is compared.
    pub(crate) fn normal(&mut self, mut body: Value) -> Value {
        match body["kind"].as_str() {
            Some("Status") => self.status(&body),
            Some(kind) if kind.ends_with("List") => {
                let items = body["items"].take();
                let items = items.as_array().cloned().unwrap_or_default();
                let items: Vec<Value> = items.into_iter().map(|item| self.object(item)).collect();
                json!({"kind": body["kind"], "apiVersion": body["apiVersion"], "items": items})
            }
            _ => self.object(body),
        }
    }

    fn status(&mut self, body: &Value) -> Value {
        if body["status"] == "Success" {
            let uid = body["details"]["uid"].as_str().map(|uid| self.number("uid", uid));
            return json!({"status": "Success", "uid": uid, "name": body["details"]["name"]});
        }
        let mut causes: Vec<String> = body["details"]["causes"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|cause| {
                let text = |field: &str| cause[field].as_str().unwrap_or_default().to_owned();
                format!("{} {}", text("reason"), text("field"))
            })
            .collect();
        causes.sort();
        causes.dedup();
        json!({"code": body["code"], "reason": body["reason"], "causes": causes})
    }

    pub(crate) fn object(&mut self, mut object: Value) -> Value {
        let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return object };
        for (field, what) in [("uid", "uid"), ("resourceVersion", "version")] {
            if let Some(Value::String(text)) = metadata.get(field) {
                let number = self.number(what, &text.clone());
                metadata.insert(field.into(), number);
            }
        }
        metadata.remove("namespace");
        for field in ["creationTimestamp", "deletionTimestamp"] {
            if metadata.get(field).is_some_and(Value::is_string) {
                metadata.insert(field.into(), "time".into());
            }
        }
        if let Some(entries) = metadata.get_mut("managedFields").and_then(Value::as_array_mut) {
            for entry in entries.iter_mut() {
                entry["time"] = "time".into();
            }
            entries.sort_by_key(|entry| {
                ["operation", "manager", "apiVersion", "subresource"].map(|field| entry[field].to_string())
            });
        }
        if object["spec"].get("clusterIP").is_some() {
            let address = object["spec"]["clusterIP"].as_str().unwrap_or_default().to_owned();
            if address.starts_with("10.96.") {
                let number = self.number("address", &address);
                object["spec"]["clusterIP"] = number.clone();
                object["spec"]["clusterIPs"] = json!([number]);
            }
            for port in object["spec"]["ports"].as_array_mut().into_iter().flatten() {
                if let Some(number) = port.get("nodePort").and_then(Value::as_u64) {
                    port["nodePort"] = self.number("port", &number.to_string());
                }
            }
        }
        object
    }
}

/// The events of a namespace, by kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Events(BTreeMap<String, Vec<Value>>);

impl Events {
    pub(crate) fn add(&mut self, kind: &str, event: Value) {
        self.0.entry(kind.into()).or_default().push(event);
    }

    /// Whether there is one of this kind.
    pub(crate) fn include(&self, kind: &str) -> bool {
        self.0.contains_key(kind)
    }

    pub(crate) fn count(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    fn normal(&self) -> Vec<(String, Value)> {
        let mut numbers = Numbers::default();
        let all =
            self.0.iter().flat_map(|(kind, events)| events.iter().map(move |event| (kind.clone(), event)));
        all.map(|(kind, event)| {
            let object = numbers.object(event["object"].clone());
            (kind, json!({"type": event["type"], "object": object}))
        })
        .collect()
    }

    /// The first event that is not the same.
    pub(crate) fn difference(&self, real: &Self) -> Option<String> {
        let (simulated, real) = (self.normal(), real.normal());
        let longest = simulated.len().max(real.len());
        let at = (0..longest).find(|&index| simulated.get(index) != real.get(index))?;
        let shown = |events: &[(String, Value)]| {
            events.get(at).map_or("none".into(), |(kind, event)| format!("{kind} {event}"))
        };
        Some(format!("event {at}\n  real      {}\n  simulated {}", shown(&real), shown(&simulated)))
    }
}
