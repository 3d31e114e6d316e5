//! Whether the schemas that the simulator carries are those that the API server serves. To carry another one, put its name into the file.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::backend::Real;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../schema/src/builtin.json");

const DOCUMENTS: [&str; 10] = [
    "api/v1",
    "apis/apiextensions.k8s.io/v1",
    "apis/apps/v1",
    "apis/autoscaling/v2",
    "apis/batch/v1",
    "apis/coordination.k8s.io/v1",
    "apis/events.k8s.io/v1",
    "apis/networking.k8s.io/v1",
    "apis/policy/v1",
    "apis/rbac.authorization.k8s.io/v1",
];

/// Compares them, or rewrites the file where that was asked for.
pub(crate) async fn compare(real: &Real) -> anyhow::Result<bool> {
    let mut all = Map::new();
    for document in DOCUMENTS {
        // The API server collects them while it already answers.
        let served = real.get_eventually(&format!("/openapi/v3/{document}")).await?;
        if let Some(Value::Object(schemas)) = served.pointer("/components/schemas").cloned() {
            all.extend(schemas);
        }
    }
    let found = std::fs::read_to_string(FILE)?;
    let carried: Map<String, Value> = serde_json::from_str(&found)?;
    let mut needed = BTreeMap::new();
    for name in carried.keys() {
        take(name, &all, &mut needed);
    }
    let lines: Vec<String> = needed.iter().map(|(name, schema)| format!("{name:?}: {schema}")).collect();
    let text = format!("{{\n{}\n}}\n", lines.join(",\n"));
    if found == text {
        println!("{} schemas are the API server's", needed.len());
        return Ok(true);
    }
    if std::env::var_os("PINTLE_CONFORMANCE_UPDATE").is_some_and(|value| value == "1") {
        std::fs::write(FILE, text)?;
        println!("{FILE} is rewritten");
        return Ok(true);
    }
    println!("{FILE} is not what the API server serves: PINTLE_CONFORMANCE_UPDATE=1 rewrites it");
    Ok(false)
}

fn take(name: &str, all: &Map<String, Value>, needed: &mut BTreeMap<String, Value>) {
    if needed.contains_key(name) {
        return;
    }
    let Some(schema) = all.get(name) else { return };
    let schema = reduced(schema);
    needed.insert(name.into(), schema.clone());
    references(&schema, &mut |name| take(name, all, needed));
}

fn references(node: &Value, visit: &mut dyn FnMut(&str)) {
    match node {
        Value::Object(fields) => {
            if let Some(Value::String(name)) = fields.get("$ref") {
                visit(name);
            }
            fields.values().for_each(|within| references(within, visit));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, visit)),
        _ => {}
    }
}

/// A schema without words, and without what only other ways of patching need.
fn reduced(node: &Value) -> Value {
    const LEFT_OUT: [&str; 5] = [
        "description",
        "x-kubernetes-group-version-kind",
        "x-kubernetes-patch-merge-key",
        "x-kubernetes-patch-strategy",
        "x-kubernetes-unions",
    ];
    match node {
        Value::Object(fields) => {
            let mut kept = Map::new();
            for (keyword, value) in fields {
                match (keyword.as_str(), value) {
                    (keyword, _) if LEFT_OUT.contains(&keyword) => {}
                    ("allOf", Value::Array(all)) => {
                        if let Some(Value::Object(one)) = all.first().map(reduced) {
                            kept.extend(one);
                        }
                    }
                    ("default", value) if value == "" || value.as_object().is_some_and(Map::is_empty) => {}
                    ("properties", Value::Object(properties)) => {
                        let reduced = properties.iter().map(|(name, schema)| (name.clone(), reduced(schema)));
                        kept.insert("properties".into(), Value::Object(reduced.collect()));
                    }
                    ("$ref", Value::String(reference)) => {
                        let name = reference.rsplit('/').next().unwrap_or_default();
                        kept.insert("$ref".into(), name.into());
                    }
                    (keyword, value) => {
                        kept.insert(keyword.into(), reduced(value));
                    }
                }
            }
            Value::Object(kept)
        }
        Value::Array(items) => Value::Array(items.iter().map(reduced).collect()),
        other => other.clone(),
    }
}
