//! One place of a structural schema: what schemars says of a type, in the form that a CRD takes.

use std::{collections::BTreeSet, mem};

use serde_json::{Map, Value, json, map::Entry};

const PRESERVES: &str = "x-kubernetes-preserve-unknown-fields";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
const SCALARS: [&str; 4] = ["boolean", "integer", "number", "string"];

/// Keywords that the API server does not know, or that say nothing to it.
const WITHOUT_USE: [&str; 9] = [
    "$schema",
    "additionalItems",
    "components",
    "deprecated",
    "examples",
    "nullable",
    "readOnly",
    "title",
    "writeOnly",
];

/// Formats of Rust's types that the API server does not know. It knows a `duration`, but another one: `1h30m`, and not `PT1H30M`.
const FORMATS_OF_RUST: [&str; 9] = [
    "duration",
    "int",
    "int128",
    "int16",
    "int8",
    "ip",
    "partial-date-time",
    "partial-time",
    "zoned-date-time",
];

type Fields = Map<String, Value>;

/// Makes the schema of a place structural, and those of all places below it.
pub(super) fn place(schema: &mut Value, is_view: bool) {
    if !schema.is_object() {
        *schema = json!({});
    }
    let Some(object) = schema.as_object_mut() else { return };
    combine(object);
    clean(object, is_view);
    if object.contains_key("$ref") {
        // A type within itself has no end.
        take_any(object);
    }
    if says(object, "x-kubernetes-embedded-resource") {
        object.insert("type".into(), "object".into());
    }
    map(object);
    let is_set = object.remove("uniqueItems") == Some(Value::Bool(true));
    if type_of(object) == "array" {
        list(object);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(below) = object.get_mut(key) {
            place(below, is_view);
        }
    }
    for below in
        object.get_mut("properties").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut)
    {
        place(below, is_view);
    }
    let of_scalars = object.get("items").and_then(|items| items.get("type")).and_then(Value::as_str);
    if is_set && of_scalars.is_some_and(|of| SCALARS.contains(&of)) {
        object.entry("x-kubernetes-list-type").or_insert_with(|| "set".into());
    }
    if type_of(object).is_empty() && !says(object, INT_OR_STRING) {
        object.insert(PRESERVES.into(), true.into());
    }
}

fn says(object: &Fields, key: &str) -> bool {
    object.get(key) == Some(&Value::Bool(true))
}

fn type_of(object: &Fields) -> &str {
    object.get("type").and_then(Value::as_str).unwrap_or_default()
}

/// Makes of a place one that takes any value.
fn take_any(object: &mut Fields) {
    object.retain(|key, _| key == "description" || key == "default" || key.starts_with("x-"));
    object.insert(PRESERVES.into(), true.into());
}

/// Moves to the place itself what the branches of `anyOf`, `oneOf` and `allOf` declare, because a structural schema declares nothing within
/// them. Branches of objects keep what tells them apart.
fn combine(object: &mut Fields) {
    for junctor in ["anyOf", "oneOf", "allOf"] {
        while let Some(Value::Array(branches)) = object.remove(junctor) {
            let branches = branches.into_iter().filter_map(|branch| match branch {
                Value::Object(branch) if branch.get("enum") != Some(&json!([null])) => Some(branch),
                _ => None,
            });
            let mut branches: Vec<Fields> = branches.collect();
            match branches.as_mut_slice() {
                [] => {}
                // What an Option is beside null. It may have branches of its own.
                [only] => {
                    for (key, value) in mem::take(only) {
                        object.entry(key).or_insert(value);
                    }
                }
                several => {
                    if several.iter().any(declares) {
                        several.iter_mut().for_each(combine);
                        join(object, junctor, branches);
                    } else {
                        object.insert(junctor.into(), branches.into_iter().map(Value::Object).collect());
                    }
                    break;
                }
            }
        }
    }
}

/// Whether a branch says of what type a value is.
fn declares(branch: &Fields) -> bool {
    let within =
        ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|junctor| branch.get(junctor)?.as_array());
    branch.contains_key("type")
        || branch.contains_key("$ref")
        || within.flatten().filter_map(Value::as_object).any(declares)
}

fn join(object: &mut Fields, junctor: &str, branches: Vec<Fields>) {
    // A branch without a type is about values of the place's.
    let kind = |branch: &Fields| match type_of(branch) {
        "" if !says(branch, PRESERVES) => type_of(object).to_owned(),
        kind => kind.to_owned(),
    };
    let types: BTreeSet<String> = branches.iter().map(kind).collect();
    let types: Vec<&str> = types.iter().map(String::as_str).collect();
    match types.as_slice() {
        ["object"] => {
            let conditions = branches.into_iter().map(|branch| declare(object, branch)).collect();
            object.insert("type".into(), "object".into());
            object.insert(junctor.into(), Value::Array(conditions));
        }
        ["integer", "string"] => {
            object.insert(INT_OR_STRING.into(), true.into());
        }
        [one] if SCALARS.contains(one) => {
            object.insert("type".into(), (*one).into());
            let allowed = branches.iter().map(|branch| branch.get("enum").and_then(Value::as_array));
            if let Some(allowed) = allowed.collect::<Option<Vec<_>>>() {
                object.insert("enum".into(), allowed.into_iter().flatten().cloned().collect());
            }
        }
        _ => take_any(object),
    }
}

/// Declares the fields of a branch at the place itself. Returns what tells the branch apart: the fields that it requires, and those of
/// which it allows only some values.
fn declare(object: &mut Fields, mut branch: Fields) -> Value {
    let mut condition = Map::new();
    let mut told = Map::new();
    if let Some(Value::Object(fields)) = branch.remove("properties") {
        let declared = object.entry("properties").or_insert_with(|| json!({}));
        for (name, schema) in fields {
            if let Some(allowed) = schema.get("enum") {
                told.insert(name.clone(), json!({"enum": allowed}));
            }
            if let Some(declared) = declared.as_object_mut() {
                unite(declared, name, schema);
            }
        }
    }
    if !told.is_empty() {
        condition.insert("properties".into(), told.into());
    }
    if says(&branch, PRESERVES) || branch.get("additionalProperties").is_some_and(|more| *more != false) {
        object.insert(PRESERVES.into(), true.into());
    }
    for key in ["required", "anyOf", "oneOf", "allOf", "not"] {
        condition.extend(branch.remove(key).map(|value| (key.to_owned(), value)));
    }
    condition.into()
}

/// Declares a field that another branch may have declared: with the values of both, or else as one that takes any value.
fn unite(declared: &mut Fields, name: String, schema: Value) {
    let mut taken = match declared.entry(name) {
        Entry::Vacant(free) => {
            free.insert(schema);
            return;
        }
        Entry::Occupied(taken) => taken,
    };
    let known = taken.get_mut();
    let bare = |schema: &Value| {
        let mut schema = schema.clone();
        if let Some(schema) = schema.as_object_mut() {
            schema.remove("description");
        }
        schema
    };
    if let (Some(Value::Array(values)), Some(Value::Array(more))) =
        (known.get_mut("enum"), schema.get("enum"))
    {
        for value in more {
            if !values.contains(value) {
                values.push(value.clone());
            }
        }
    } else if *known == json!({}) {
        *known = schema;
    } else if bare(known) != bare(&schema) {
        *known = json!({});
    }
}

/// Removes what the API server does not accept, or what says nothing: `nullable` and null for optional fields (an absent field is simply not
/// required), annotations of JSON Schema, and formats that are only Rust's.
fn clean(object: &mut Fields, is_view: bool) {
    let is_write_only = is_view && says(object, "writeOnly");
    let is_read_only = is_view && says(object, "readOnly");
    for key in WITHOUT_USE {
        object.remove(key);
    }
    if is_read_only {
        object.insert("readOnly".into(), true.into());
        object.remove("default");
    }
    if is_write_only {
        object.insert("writeOnly".into(), true.into());
        object.insert("nullable".into(), true.into());
    } else if let Some(Value::Array(allowed)) = object.get_mut("enum") {
        allowed.retain(|value| !value.is_null());
        if allowed.is_empty() {
            // The flattened name of an enum's variant, whose value is null.
            object.remove("enum");
            object.insert("nullable".into(), true.into());
        }
    }
    match object.get_mut("default") {
        Some(Value::Null) => drop(object.remove("default")),
        Some(default) => drop_nulls(default),
        None => {}
    }
    let format = object.get("format").and_then(Value::as_str);
    if format.is_some_and(|format| format.starts_with("uint") || FORMATS_OF_RUST.contains(&format)) {
        object.remove("format");
    }
}

/// Leaves out the fields of a default that are null, as an Option is that is None: the API server refuses such a default.
fn drop_nulls(default: &mut Value) {
    match default {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// The fields that `properties` does not name. The API server takes a schema of theirs only where there are no `properties`, and removes
/// what is within them if the schema is empty.
fn map(object: &mut Fields) {
    if let Some(Value::Object(patterns)) = object.remove("patternProperties")
        && let Some((_, value)) = patterns.into_iter().next()
    {
        object.insert("additionalProperties".into(), value);
    }
    let is_named =
        object.get("properties").and_then(Value::as_object).is_some_and(|fields| !fields.is_empty());
    let is_any = |more: &Value| *more == true || *more == json!({});
    match object.get("additionalProperties") {
        Some(Value::Bool(false)) => drop(object.remove("additionalProperties")),
        Some(more) if is_named || is_any(more) => {
            object.remove("additionalProperties");
            object.insert(PRESERVES.into(), true.into());
        }
        _ => {}
    }
    if says(object, "x-kubernetes-embedded-resource") && !is_named {
        object.insert(PRESERVES.into(), true.into());
    }
}

/// The API server takes one schema for all items. Those of a tuple may differ.
fn list(object: &mut Fields) {
    let items = match object.remove("items") {
        Some(Value::Array(each)) => {
            let is_one = each.windows(2).all(|pair| pair[0] == pair[1]);
            each.into_iter().next().filter(|_| is_one)
        }
        items => items,
    };
    object.insert("items".into(), items.unwrap_or_else(|| json!({})));
}
