//! What the API server refuses of a CRD, in its own words: names, the rules of structural schemas, and the keys of lists.
//!
//! Of rules of CEL, the syntax and the fields that they name are looked at. The types of their operands and their cost are not.

use pintle_core::view::status::fault::{NO_FIELD, forbidden, required};
use pintle_wit::{Cause, syntax};
use serde_json::{Value, json};

use crate::{
    cause::{invalid, not_supported},
    structural::{Structural, expression},
};

const PRESERVES: &str = "x-kubernetes-preserve-unknown-fields";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
const LIST_TYPE: &str = "x-kubernetes-list-type";
const LIST_KEYS: &str = "x-kubernetes-list-map-keys";
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
    (LIST_KEYS, "empty"),
    (LIST_TYPE, "undefined"),
    ("x-kubernetes-map-type", "undefined"),
    (PRESERVES, "false"),
    (RULES, "empty"),
];

/// What is wrong with the names, schemas, columns and subresources of a CRD.
pub fn crd(crd: &Value) -> Vec<Cause> {
    let mut found = Vec::new();
    names(crd, &mut found);
    let versions = crd.pointer("/spec/versions").and_then(Value::as_array);
    for (index, version) in versions.into_iter().flatten().enumerate() {
        let path = format!("spec.versions[{index}]");
        let schema = version.pointer("/schema/openAPIV3Schema").unwrap_or(&Value::Null);
        let root = format!("{path}.schema.openAPIV3Schema");
        place(schema, &root, "at the root", &mut found);
        validations(schema, &root, &mut found);
        let mut json_path = |place: &str, value: &Value, prefix: &str| {
            let Some(text) = value.as_str() else { return };
            let detail = if !text.starts_with(prefix) {
                format!("should be a json path that begins with {prefix}")
            } else if !is_json_path(text) {
                // The API server would take it, and show none of the columns.
                "is no JSON path: a bracket or a quote is not closed".into()
            } else {
                return;
            };
            found.push(invalid(&format!("{path}.{place}"), value, &detail));
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

fn names(crd: &Value, found: &mut Vec<Cause>) {
    const LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end \
                         with an alphanumeric character";
    let spec = &crd["spec"];
    let names = &spec["names"];
    let mut label = |place: String, value: &Value| {
        if value.as_str().is_some_and(|text| !syntax::is_rfc_1035_label(text)) {
            found.push(invalid(&place, value, LABEL));
        }
    };
    for one in ["plural", "singular"] {
        label(format!("spec.names.{one}"), &names[one]);
    }
    for several in ["shortNames", "categories"] {
        for (index, name) in names[several].as_array().into_iter().flatten().enumerate() {
            label(format!("spec.names.{several}[{index}]"), name);
        }
    }
    for (index, version) in spec["versions"].as_array().into_iter().flatten().enumerate() {
        label(format!("spec.versions[{index}].name"), &version["name"]);
    }
    if let (Some(plural), Some(group)) = (names["plural"].as_str(), spec["group"].as_str()) {
        if !syntax::is_subdomain(group) || !group.contains('.') {
            found.push(invalid("spec.group", &spec["group"], "should be a domain with at least one dot"));
        }
        let name = &crd["metadata"]["name"];
        if *name != format!("{plural}.{group}") {
            found.push(invalid("metadata.name", name, r#"must be spec.names.plural+"."+spec.group"#));
        }
    }
}

/// Whether the brackets and quotes of a JSON path are closed.
fn is_json_path(text: &str) -> bool {
    let (mut open, mut quote, mut before) = (Vec::new(), None, ' ');
    for letter in text.chars() {
        match (quote, letter) {
            (Some(_), _) if before == '\\' => {}
            (Some(end), _) if letter == end => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(letter),
            (None, '[') => open.push(']'),
            (None, '(') => open.push(')'),
            (None, ']' | ')') if open.pop() != Some(letter) => return false,
            _ => {}
        }
        before = letter;
    }
    open.is_empty() && quote.is_none()
}

/// What is wrong with how the items of a list are told apart.
fn list(schema: &Value, path: &str, found: &mut Vec<Cause>) {
    let at = |place: &str| format!("{path}.{place}");
    let (kind, keys) = (&schema[LIST_TYPE], schema[LIST_KEYS].as_array());
    if !kind.is_null() && schema["type"] != "array" {
        let why = format!("must be array if {LIST_TYPE} is specified");
        found.push(invalid(&at("type"), &schema["type"], &why));
    }
    let is_empty = keys.is_none_or(Vec::is_empty);
    if kind != "map" {
        if !is_empty {
            found.push(required(&at(LIST_TYPE), &format!("must be map if {LIST_KEYS} is non-empty")));
        }
        return;
    }
    if is_empty {
        found.push(required(&at(LIST_KEYS), &format!("must not be empty if {LIST_TYPE} is map")));
    }
    let items = &schema["items"];
    if !items.is_null() && items["type"] != "object" {
        let why = format!("must be object if parent array's {LIST_TYPE} is map");
        return found.push(invalid(&at("items.type"), &items["type"], &why));
    }
    for key in keys.into_iter().flatten().filter_map(Value::as_str) {
        let field = &items["properties"][key];
        if field.is_null() {
            let why = "entries must all be names of item properties";
            found.push(invalid(&at(LIST_KEYS), &schema[LIST_KEYS], why));
            continue;
        }
        let is_required =
            items["required"].as_array().is_some_and(|required| required.iter().any(|one| one == key));
        if !is_required && field["default"].is_null() {
            let why = format!(
                "this property is in {LIST_KEYS}, so it must have a default or be a required property"
            );
            found.push(required(&at(&format!("items.properties[{key}].default")), &why));
        }
    }
}

/// What is wrong with the rules of a CRD alone: those that do not compile.
pub fn rules(crd: &Value) -> Vec<Cause> {
    let mut found = Vec::new();
    let versions = crd.pointer("/spec/versions").and_then(Value::as_array);
    for (index, version) in versions.into_iter().flatten().enumerate() {
        let schema = version.pointer("/schema/openAPIV3Schema").unwrap_or(&Value::Null);
        validations(schema, &format!("spec.versions[{index}].schema.openAPIV3Schema"), &mut found);
    }
    found
}

/// What is wrong with the schema of a guest's config. It stands within an object.
pub fn config(schema: &Value) -> Vec<Cause> {
    let mut found = Vec::new();
    place(schema, "configSchema", OF_FIELD, &mut found);
    validations(schema, "configSchema", &mut found);
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

/// Where the schema of a field stands.
const OF_FIELD: &str = "for specified object fields";

/// The schemas right below a schema, each with its step and with where it stands.
fn below(schema: &Value) -> impl Iterator<Item = (String, &'static str, &Value)> {
    let items = schema.get("items").filter(|items| !items.is_null() && !items.is_array());
    let items = items.map(|items| ("items".to_owned(), "for specified array items", items));
    let has_fields = fields(schema).next().is_some();
    let more = schema.get("additionalProperties");
    let more = more.filter(|more| !has_fields && !more.is_null() && !more.is_boolean());
    let more = more.map(|more| ("additionalProperties".to_owned(), OF_FIELD, more));
    let fields = fields(schema).map(|(step, field)| (step, OF_FIELD, field));
    items.into_iter().chain(fields).chain(more)
}

/// Looks at the rules of a place and of those below it.
fn validations(schema: &Value, path: &str, found: &mut Vec<Cause>) {
    for (step, _, within) in below(schema) {
        validations(within, &format!("{path}.{step}"), found);
    }
    for (index, rule) in schema[RULES].as_array().into_iter().flatten().enumerate() {
        for keyword in ["rule", "messageExpression"] {
            let text = rule[keyword].as_str();
            let fault = text.and_then(|text| expression::fault(text, schema, says(rule, "optionalOldSelf")));
            found.extend(fault.map(|why| {
                let place = format!("{path}.{RULES}[{index}].{keyword}");
                invalid(&place, &rule[keyword], &format!("compilation failed: {why}"))
            }));
        }
    }
}

/// Looks at the schema of a place and of those below it, except for the rules. `role` says where it stands.
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
        Value::Array(_) => {
            found.push(forbidden(&at("items"), "items must be a schema object and not an array"));
        }
        _ => {}
    }
    let more = &schema["additionalProperties"];
    if has_fields && !more.is_null() && *more != true {
        let why = "additionalProperties and properties are mutual exclusive";
        found.push(forbidden(&at("additionalProperties"), why));
    }
    for (step, role, within) in below(schema) {
        place(within, &at(&step), role, found);
    }
    list(schema, path, found);
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
