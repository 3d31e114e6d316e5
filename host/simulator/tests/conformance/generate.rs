//! Sequences of requests, each from its seed.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    backend::Request,
    objects::{KINDS, Kind},
};

/// The names that objects have: few, so that requests meet.
pub(crate) const NAMES: [&str; 2] = ["a", "b"];

const REQUESTS_MAX: usize = 50;

/// A sequence of numbers that a seed determines (xorshift*).
pub(crate) struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        let mut dice = Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        (0..4).for_each(|_| {
            dice.next();
        });
        dice
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound).unwrap()).unwrap()
    }

    pub(crate) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }
}

/// A request whose uids and versions are filled in by what was seen: `$uid` and `$version` in its body.
#[derive(Clone)]
pub(crate) struct RequestTemplate {
    kind: &'static Kind,
    name: &'static str,
    method: &'static str,
    /// What follows the path of the object or, where `on_object` is not set, of the collection.
    tail: String,
    on_object: bool,
    content_type: &'static str,
    body: Value,
}

impl std::fmt::Display for RequestTemplate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = if self.on_object { self.name } else { "" };
        write!(f, "{} {}/{name}{} {}", self.method, self.kind.plural, self.tail, self.body)
    }
}

/// The uid and version under which each object was last seen.
#[derive(Default)]
pub(crate) struct KnownVersions(BTreeMap<(String, String), (String, String)>);

impl KnownVersions {
    pub(crate) fn saw(&mut self, step: &RequestTemplate, body: &Value) {
        let metadata = &body["metadata"];
        if let (Some(uid), Some(version)) = (metadata["uid"].as_str(), metadata["resourceVersion"].as_str()) {
            let name = metadata["name"].as_str().unwrap_or_default();
            self.0.insert((step.kind.plural.into(), name.into()), (uid.into(), version.into()));
        }
    }
}

impl RequestTemplate {
    pub(crate) fn request(&self, namespace: &str, seen: &KnownVersions) -> Request {
        let mut uri = self.kind.path(namespace);
        if self.on_object {
            uri.push_str(&format!("/{}", self.name));
        }
        uri.push_str(&self.tail);
        let known = seen.0.get(&(self.kind.plural.into(), self.name.into()));
        let (uid, version) = known.cloned().unwrap_or_else(|| ("no-uid".into(), "1".into()));
        Request {
            method: self.method,
            uri,
            content_type: self.content_type,
            body: filled(&self.body, &uid, &version),
        }
    }
}

fn filled(value: &Value, uid: &str, version: &str) -> Value {
    match value {
        Value::String(text) if text == "$uid" => uid.into(),
        Value::String(text) if text == "$version" => version.into(),
        Value::Array(items) => items.iter().map(|item| filled(item, uid, version)).collect(),
        Value::Object(fields) => Value::Object(
            fields.iter().map(|(name, value)| (name.clone(), filled(value, uid, version))).collect(),
        ),
        other => other.clone(),
    }
}

/// The sequence of a seed.
pub(crate) fn sequence(seed: u64) -> Vec<RequestTemplate> {
    let mut dice = Dice::new(seed + 1);
    // Two kinds a sequence, so that requests are about the same objects.
    let kinds = [&KINDS[dice.below(KINDS.len())], &KINDS[dice.below(KINDS.len())]];
    let length = 20 + dice.below(REQUESTS_MAX - 19);
    (0..length).map(|_| step(kinds[dice.below(2)], &mut dice)).collect()
}

fn step(kind: &'static Kind, dice: &mut Dice) -> RequestTemplate {
    const JSON: &str = "application/json";
    const MERGE: &str = "application/merge-patch+json";
    let name = NAMES[dice.below(NAMES.len())];
    let manager = dice.pick(&["one", "two"]);
    let made = |method, tail: String, on_object, content_type, body| RequestTemplate {
        kind,
        name,
        method,
        tail,
        on_object,
        content_type,
        body,
    };
    let by = |manager: &str| format!("?fieldManager={manager}");
    match dice.below(100) {
        0..36 => {
            let mut body = kind.object(name, dice);
            let mut force = dice.one_in(2);
            match dice.below(12) {
                0 | 1 => {
                    body["metadata"]["resourceVersion"] = "1".into();
                    force = false;
                }
                2 | 3 => body["metadata"]["uid"] = "$uid".into(),
                4 => body["metadata"]["resourceVersion"] = "$version".into(),
                5 if dice.one_in(3) => body["metadata"]["uid"] = "no-uid".into(),
                _ => {}
            }
            let tail = format!("?fieldManager={manager}&force={force}");
            made("PATCH", tail, true, "application/apply-patch+yaml", body)
        }
        36..46 => made("POST", by(manager), false, JSON, kind.object(name, dice)),
        46..56 => {
            let mut body = kind.object(name, dice);
            match dice.below(6) {
                0..3 => body["metadata"]["resourceVersion"] = "$version".into(),
                3 => body["metadata"]["resourceVersion"] = "1".into(),
                4 => body["metadata"]["uid"] = "$uid".into(),
                _ => {}
            }
            made("PUT", by(manager), true, JSON, body)
        }
        56..70 => made("PATCH", by(manager), true, MERGE, partial(kind, name, dice)),
        70..75 => made("PATCH", by(manager), true, "application/json-patch+json", operations(dice)),
        75..82 => {
            let status = kind.status(dice);
            if dice.one_in(2) {
                let body = json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": {"name": name}, "status": status});
                let tail = format!("/status?fieldManager={manager}&force=true");
                return made("PATCH", tail, true, "application/apply-patch+yaml", body);
            }
            let mut body = json!({"status": status});
            if dice.one_in(4) {
                body["metadata"] = json!({"labels": {"via": "status"}, "annotations": {"via": "status"}});
            }
            made("PATCH", format!("/status?fieldManager={manager}"), true, MERGE, body)
        }
        82..91 => {
            let body = match dice.below(6) {
                0 => json!({"preconditions": {"uid": "$uid"}}),
                1 => json!({"preconditions": {"uid": "no-uid"}}),
                2 => {
                    json!({"preconditions": {"uid": "$uid", "resourceVersion": "$version"}, "propagationPolicy": "Background"})
                }
                3 => json!({"preconditions": {"resourceVersion": "1"}}),
                4 => json!({"propagationPolicy": "Background"}),
                _ => Value::Null,
            };
            made("DELETE", String::new(), true, JSON, body)
        }
        91..96 => made("GET", String::new(), true, JSON, Value::Null),
        _ => {
            let tail = dice.pick(&[
                "",
                "?labelSelector=app%3Dx",
                "?labelSelector=tier",
                "?labelSelector=app!=x",
                "?fieldSelector=metadata.name%3Da",
            ]);
            made("GET", tail.into(), false, JSON, Value::Null)
        }
    }
}

/// A part of an object, with something taken away now and then.
fn partial(kind: &Kind, name: &str, dice: &mut Dice) -> Value {
    let whole = kind.object(name, dice);
    let mut patch = json!({});
    match dice.below(6) {
        0 => patch["metadata"] = json!({"labels": {"app": dice.pick(&["x", "z"])}}),
        1 => patch["metadata"] = json!({"labels": null}),
        2 => patch["metadata"] = json!({"finalizers": dice.one_in(2).then(|| json!(["example.com/hold"]))}),
        3 => patch["metadata"] = json!({"annotations": {"note": dice.pick(&["x", "z"])}}),
        _ => {
            for field in ["data", "spec", "type", "immutable"] {
                if let Some(value) = whole.get(field) {
                    patch[field] = value.clone();
                }
            }
        }
    }
    if dice.one_in(6) {
        patch["metadata"]["resourceVersion"] = dice.pick(&["$version", "1"]).into();
    }
    patch
}

fn operations(dice: &mut Dice) -> Value {
    match dice.below(5) {
        0 => json!([{"op": "add", "path": "/metadata/labels", "value": {"app": dice.pick(&["x", "q"])}}]),
        1 => json!([{"op": "test", "path": "/metadata/resourceVersion", "value": "$version"},
                    {"op": "add", "path": "/metadata/annotations", "value": {"patched": "yes"}}]),
        2 => json!([{"op": "remove", "path": "/metadata/finalizers"}]),
        3 => json!([{"op": "test", "path": "/metadata/uid", "value": "no-uid"}]),
        _ => json!([{"op": "replace", "path": "/metadata/resourceVersion", "value": "$version"},
                    {"op": "replace", "path": "/metadata/managedFields", "value": [{}]}]),
    }
}
