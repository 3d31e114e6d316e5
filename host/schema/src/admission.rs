//! What the API server refuses of a CRD: the rules of structural schemas, in its own words.
//!
//! Of rules of CEL, the syntax and the fields that they name are looked at. The types of their operands and their cost are not.

use pintle_core::view::status::fault::{NO_FIELD, forbidden, required};
use pintle_wit::Cause;
use serde_json::{Value, json};

use crate::{
    cause::{invalid, not_supported},
    structural::{Structural, expression},
};

const PRESERVES: &str = "x-kubernetes-preserve-unknown-fields";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
const RULES: &str = "x-kubernetes-validations";
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const JUNCTORS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

const NOT_SUPPORTED: [&str; 6] =
    ["$ref", "additionalItems", "definitions", "dependencies", "id", "patternProperties"];

/// Keywords that may not stand within `allOf`, `anyOf`, `oneOf` and `not`, and what they must be there.
const OUTSIDE: [(&str, &str); 13] = [
    ("additionalProperties", "undefined"),
    ("default", "undefined"),
    ("description", "empty"),
    ("x-kubernetes-embedded-resource", "false"),
    (INT_OR_STRING, "false"),
    ("nullable", "false"),
    ("title", "empty"),
    ("type", "empty"),
    ("x-kubernetes-list-map-keys", "empty"),
    ("x-kubernetes-list-type", "undefined"),
    ("x-kubernetes-map-type", "undefined"),
    (PRESERVES, "false"),
    (RULES, "empty"),
];

/// What is wrong with the schemas, columns and subresources of a CRD.
pub fn crd(crd: &Value) -> Vec<Cause> {
    let mut found = Vec::new();
    let versions = crd.pointer("/spec/versions").and_then(Value::as_array);
    for (index, version) in versions.into_iter().flatten().enumerate() {
        let path = format!("spec.versions[{index}]");
        let schema = version.pointer("/schema/openAPIV3Schema").unwrap_or(&Value::Null);
        place(schema, &format!("{path}.schema.openAPIV3Schema"), "at the root", &mut found);
        let mut json_path = |place: &str, value: &Value, prefix: &str| {
            if value.as_str().is_some_and(|value| !value.starts_with(prefix)) {
                let detail = format!("should be a json path that begins with {prefix}");
                found.push(invalid(&format!("{path}.{place}"), value, &detail));
            }
        };
        let columns = version["additionalPrinterColumns"].as_array();
        for (index, column) in columns.into_iter().flatten().enumerate() {
            json_path(&format!("additionalPrinterColumns[{index}].jsonPath"), &column["jsonPath"], ".");
        }
        for (name, prefix) in [("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")] {
            json_path(&format!("subresources.scale.{name}"), &version["subresources"]["scale"][name], prefix);
        }
    }
    found
}

/// What is wrong with the rules of a CRD: those that do not compile.
pub fn rules(definition: &Value) -> Vec<Cause> {
    let is_of_rule = |cause: &Cause| cause.field.contains(&format!(".{RULES}["));
    crd(definition).into_iter().filter(is_of_rule).collect()
}

/// What is wrong with the schema of a guest's config. It stands within an object.
pub fn config(schema: &Value) -> Vec<Cause> {
    let mut found = Vec::new();
    place(schema, "configSchema", "for specified object fields", &mut found);
    found
}

fn says(schema: &Value, keyword: &str) -> bool {
    schema[keyword] == true
}

/// The schemas of the fields that a schema declares.
fn fields(schema: &Value) -> impl Iterator<Item = (String, &Value)> {
    let fields = schema["properties"].as_object().into_iter().flatten();
    fields.map(|(name, field)| (format!("properties[{name}]"), field))
}

/// Looks at the schema of a place and of those below it. `role` says where it stands.
fn place(schema: &Value, path: &str, role: &str, found: &mut Vec<Cause>) {
    let at = |keyword: &str| format!("{path}.{keyword}");
    let kind = &schema["type"];
    let has_fields = fields(schema).next().is_some();
    match kind.as_str() {
        None if kind.is_null() && (says(schema, PRESERVES) || says(schema, INT_OR_STRING)) => {}
        None if kind.is_null() => found.push(required(&at("type"), &format!("must not be empty {role}"))),
        Some(kind) if TYPES.contains(&kind) => {}
        _ => found.push(not_supported(&at("type"), kind, &TYPES.map(Value::from))),
    }
    for keyword in NOT_SUPPORTED.into_iter().filter(|keyword| !schema[*keyword].is_null()) {
        found.push(forbidden(&at(keyword), &format!("{keyword} is not supported")));
    }
    if says(schema, "uniqueItems") {
        let why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        found.push(forbidden(&at("uniqueItems"), why));
    }
    match &schema["items"] {
        Value::Null if kind == "array" => found.push(required(&at("items"), "must be specified")),
        Value::Null => {}
        Value::Array(_) => {
            found.push(forbidden(&at("items"), "items must be a schema object and not an array"));
        }
        items => place(items, &at("items"), "for specified array items", found),
    }
    for (name, field) in fields(schema) {
        place(field, &at(&name), "for specified object fields", found);
    }
    match &schema["additionalProperties"] {
        Value::Null => {}
        more if has_fields && *more != true => {
            let why = "additionalProperties and properties are mutual exclusive";
            found.push(forbidden(&at("additionalProperties"), why));
        }
        Value::Bool(_) => {}
        more => place(more, &at("additionalProperties"), "for specified object fields", found),
    }
    for (index, rule) in schema[RULES].as_array().into_iter().flatten().enumerate() {
        for keyword in ["rule", "messageExpression"] {
            let text = rule[keyword].as_str();
            let fault = text.and_then(|text| expression::fault(text, schema, says(rule, "optionalOldSelf")));
            found.extend(fault.map(|why| {
                let place = format!("{}[{index}].{keyword}", at(RULES));
                invalid(&place, &rule[keyword], &format!("compilation failed: {why}"))
            }));
        }
    }
    junctors(schema, schema, path, path, found);
    default(schema, &at("default"), found);
}

/// Looks at the schemas that are combined at a place: nothing is declared within them, and all that they are about is declared outside.
fn junctors(schema: &Value, declared: &Value, path: &str, outside: &str, found: &mut Vec<Cause>) {
    let either = json!([{"type": "integer"}, {"type": "string"}]);
    for junctor in
        JUNCTORS.into_iter().filter(|junctor| schema[*junctor] != either || !says(declared, INT_OR_STRING))
    {
        for (index, branch) in schema[junctor].as_array().into_iter().flatten().enumerate() {
            nested(branch, declared, &format!("{path}.{junctor}[{index}]"), outside, found);
        }
    }
    nested(&schema["not"], declared, &format!("{path}.not"), outside, found);
}

fn nested(schema: &Value, declared: &Value, path: &str, outside: &str, found: &mut Vec<Cause>) {
    if schema.is_null() {
        return;
    }
    for (keyword, word) in OUTSIDE.into_iter().filter(|(keyword, _)| !schema[*keyword].is_null()) {
        found.push(forbidden(&format!("{path}.{keyword}"), &format!("must be {word} to be structural")));
    }
    let items = schema.get("items").map(|items| ("items".to_owned(), items));
    for (step, below) in fields(schema).chain(items) {
        let member = match step.strip_prefix("properties[").and_then(|name| name.strip_suffix(']')) {
            Some(name) => &declared["properties"][name],
            None => &declared["items"],
        };
        let (path, outside) = (format!("{path}.{step}"), format!("{outside}.{step}"));
        match member {
            Value::Null => found.push(required(&outside, &format!("because it is defined in {path}"))),
            member => nested(below, member, &path, &outside, found),
        }
    }
    junctors(schema, declared, path, outside, found);
}

/// Looks at whether a default fits its own schema.
fn default(schema: &Value, path: &str, found: &mut Vec<Cause>) {
    let default = &schema["default"];
    if default.is_null() {
        return;
    }
    let Ok(structural) = Structural::of_crd(schema) else { return };
    if !structural.prune(&mut default.clone()).is_empty() {
        found.push(invalid(path, default, "must not have unknown fields"));
    }
    found.extend(structural.validate(default, None).into_iter().map(|cause| match cause.field.as_str() {
        "" | NO_FIELD => Cause { field: path.to_owned(), ..cause },
        field => Cause { field: format!("{path}.{field}"), ..cause },
    }));
}

#[cfg(test)]
mod tests;
