//! Objects of custom kinds: fields that their schema does not have are pruned, and what it forbids is refused.

use std::{cell::RefCell, collections::HashMap};

use pintle_wit::Cause;
use serde_json::{Map, Value};

use pintle_schema::shape::Shape;

use crate::failure::cause;

/// A value without the fields that its schema does not have.
pub(crate) fn pruned(shape: Shape<'_>, value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter_map(|(name, within)| {
                shape.member(name).map(|member| (name.clone(), pruned(member, within)))
            });
            Value::Object(kept.collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| pruned(shape.items(), item)).collect()),
        other => other.clone(),
    }
}

/// Everything in a value that its schema forbids, without its CEL rules.
pub(crate) fn misfits(shape: Shape<'_>, value: &Value) -> Vec<Cause> {
    let mut found = Vec::new();
    check(shape, value, "", &mut found);
    found
}

fn check(shape: Shape<'_>, value: &Value, path: &str, found: &mut Vec<Cause>) {
    if value.is_null() && has(shape, "nullable") {
        return;
    }
    let fits = match shape.type_name() {
        _ if shape.is_int_or_string() => value.is_string() || value.is_i64() || value.is_u64(),
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0)
        }
        Some("number") => value.is_number(),
        _ => true,
    };
    if !fits {
        let expected = shape.type_name().unwrap_or("integer or string");
        let message = format!("Invalid value: {value}: {path} in body must be of type {expected}");
        return found.push(cause(path, "FieldValueTypeInvalid", message));
    }
    if let Some(allowed) = shape.get("enum").and_then(Value::as_array)
        && !allowed.contains(value)
    {
        let allowed: Vec<String> = allowed.iter().map(Value::to_string).collect();
        let message = format!("Unsupported value: {value}: supported values: {}", allowed.join(", "));
        found.push(cause(path, "FieldValueNotSupported", message));
    }
    check_number(shape, value, path, found);
    check_size(shape, value, path, found);
    check_text(shape, value, path, found);
    check_members(shape, value, path, found);
    compose(shape, value, path, found);
}

/// Whether a boolean keyword of a schema is true.
fn has(shape: Shape<'_>, keyword: &str) -> bool {
    shape.get(keyword) == Some(&Value::Bool(true))
}

fn invalid(value: &Value, path: &str, why: &str) -> Cause {
    let shown = if value.is_object() { Value::from("object").to_string() } else { value.to_string() };
    cause(path, "FieldValueInvalid", format!("Invalid value: {shown}: {path} in body {why}"))
}

fn check_number(shape: Shape<'_>, value: &Value, path: &str, found: &mut Vec<Cause>) {
    let mut wrong = |why: String| found.push(invalid(value, path, &why));
    let number = |keyword: &str| shape.get(keyword).and_then(Value::as_f64);
    if let Some(given) = value.as_f64() {
        let (least, most) = (number("minimum"), number("maximum"));
        let (over, under) = (has(shape, "exclusiveMinimum"), has(shape, "exclusiveMaximum"));
        match least {
            Some(least) if over && given <= least => wrong(format!("should be greater than {least}")),
            Some(least) if given < least => wrong(format!("should be greater than or equal to {least}")),
            _ => {}
        }
        match most {
            Some(most) if under && given >= most => wrong(format!("should be less than {most}")),
            Some(most) if given > most => wrong(format!("should be less than or equal to {most}")),
            _ => {}
        }
        if let Some(step) = number("multipleOf").filter(|step| (given / step).fract() != 0.0) {
            wrong(format!("should be a multiple of {step}"));
        }
    }
}

fn check_size(shape: Shape<'_>, value: &Value, path: &str, found: &mut Vec<Cause>) {
    let size = match value {
        Value::String(text) => Some((text.chars().count(), "Length", "be at least", "chars long")),
        Value::Array(items) => Some((items.len(), "Items", "have at least", "items")),
        Value::Object(fields) => Some((fields.len(), "Properties", "have at least", "properties")),
        _ => None,
    };
    if let Some((size, what, verb, unit)) = size {
        let bound = |keyword: &str| {
            shape.get(keyword).and_then(Value::as_u64).and_then(|bound| usize::try_from(bound).ok())
        };
        if let Some(least) = bound(&format!("min{what}")).filter(|least| size < *least) {
            found.push(invalid(value, path, &format!("should {verb} {least} {unit}")));
        }
        if let Some(most) = bound(&format!("max{what}")).filter(|most| size > *most) {
            let (reason, message) = match value {
                Value::String(_) => {
                    ("FieldValueTooLong", format!("Too long: may not be more than {most} bytes"))
                }
                Value::Array(_) => {
                    ("FieldValueTooMany", format!("Too many: {size}: must have at most {most} items"))
                }
                _ => ("FieldValueTooMany", format!("Too many: {size}: must have at most {most} properties")),
            };
            found.push(cause(path, reason, message));
        }
    }
}

fn check_text(shape: Shape<'_>, value: &Value, path: &str, found: &mut Vec<Cause>) {
    if let (Some(pattern), Some(text)) = (shape.get("pattern").and_then(Value::as_str), value.as_str())
        && is_match(pattern, text) == Some(false)
    {
        found.push(invalid(value, path, &format!("should match '{pattern}'")));
    }
    if let (Some("date-time"), Some(text)) = (shape.get("format").and_then(Value::as_str), value.as_str())
        && !is_date_time(text)
    {
        let message = format!("Invalid value: {value}: {path} in body must be of type date-time: {value}");
        found.push(cause(path, "FieldValueTypeInvalid", message));
    }
}

fn check_members(shape: Shape<'_>, value: &Value, path: &str, found: &mut Vec<Cause>) {
    match value {
        Value::Object(fields) => {
            let at = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            for name in shape
                .get("required")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
            {
                if !fields.contains_key(name) {
                    found.push(cause(&at(name), "FieldValueRequired", "Required value"));
                }
            }
            for (name, within) in fields {
                // Metadata has its own rules.
                if path.is_empty() && name == "metadata" {
                    continue;
                }
                if let Some(member) = shape.member(name) {
                    check(member, within, &at(name), found);
                }
            }
        }
        Value::Array(items) => {
            let mut steps = std::collections::BTreeSet::new();
            for (index, item) in items.iter().enumerate() {
                let at = format!("{path}[{index}]");
                if let Some(step) = shape.item_step(item)
                    && !steps.insert(step)
                {
                    found.push(cause(&at, "FieldValueDuplicate", format!("Duplicate value: {item}")));
                }
                check(shape.items(), item, &at, found);
            }
        }
        _ => {}
    }
}

/// Checks the schemas that are combined for one value.
fn compose(shape: Shape<'_>, value: &Value, path: &str, found: &mut Vec<Cause>) {
    let misfits = |node: &Value| {
        let mut found = Vec::new();
        check(shape.at(node), value, path, &mut found);
        found
    };
    let branches =
        |keyword: &str| shape.get(keyword).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    // An error in the whole value has no field. Its path is in the message.
    let mut wrong = |why: &str| {
        found.push(cause("<nil>", "FieldValueInvalid", format!("Invalid value: \"\": {path:?} {why}")))
    };
    let fitting = |keyword: &str| branches(keyword).iter().filter(|node| misfits(node).is_empty()).count();
    if !branches("anyOf").is_empty() && fitting("anyOf") == 0 {
        wrong("must validate at least one schema (anyOf)");
    }
    match fitting("oneOf") {
        1 => {}
        0 if branches("oneOf").is_empty() => {}
        0 => wrong("must validate one and only one schema (oneOf). Found none valid"),
        several => {
            wrong(&format!(
                "must validate one and only one schema (oneOf). Found {several} valid alternatives"
            ));
        }
    }
    if fitting("allOf") < branches("allOf").len() {
        wrong("must validate all the schemas (allOf)");
    }
    if shape.get("not").is_some_and(|node| misfits(node).is_empty()) {
        wrong("must not validate the schema (not)");
    }
    // The errors of the first branch are reported as well.
    let told = ["anyOf", "oneOf"]
        .into_iter()
        .filter(|keyword| fitting(keyword) == 0)
        .filter_map(|keyword| branches(keyword).first());
    let told = told.chain(branches("allOf"));
    found.extend(told.flat_map(&misfits).collect::<Vec<_>>());
}

/// Whether a text matches a pattern; `None` if the pattern is not valid. Patterns are few and come from CRDs, so each thread compiles each
/// of them only once.
fn is_match(pattern: &str, text: &str) -> Option<bool> {
    thread_local! {
        static READ: RefCell<HashMap<String, Option<regex::Regex>>> = RefCell::default();
    }
    READ.with_borrow_mut(|read| {
        let read = read.entry(pattern.to_owned()).or_insert_with(|| regex::Regex::new(pattern).ok());
        Some(read.as_ref()?.is_match(text))
    })
}

fn is_date_time(text: &str) -> bool {
    let time = |rest: &str| {
        const TIME: &str = r"^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})$";
        is_match(TIME, rest) == Some(true)
    };
    let text = text.to_ascii_lowercase();
    text.split_once('t').is_some_and(|(date, rest)| {
        date.len() == 10 && date.parse::<jiff::civil::Date>().is_ok() && time(rest)
    })
}

/// Keywords of schemas that are checked, or that do not affect what is stored.
const KEYWORDS: [&str; 34] = [
    "additionalProperties",
    "allOf",
    "anyOf",
    "default",
    "description",
    "enum",
    "example",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "externalDocs",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "nullable",
    "oneOf",
    "pattern",
    "properties",
    "required",
    "title",
    "type",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
];

/// Formats of text that the API server checks and the simulator does not.
const FORMATS: [&str; 24] = [
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "datetime",
    "duration",
    "email",
    "hexcolor",
    "hostname",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8s-long-name",
    "k8s-short-name",
    "mac",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
];

/// What a CRD declares, and the API server observes, but the simulator does not model.
pub(crate) fn not_modelled(crd: &Value) -> Option<String> {
    let spec = &crd["spec"];
    if spec["conversion"]["strategy"] == "Webhook" {
        return Some("conversion by a webhook".into());
    }
    let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    if versions.iter().filter(|version| version["served"] == true).count() > 1 {
        return Some("more than one served version of a kind".into());
    }
    let mut schemas = versions.iter().filter_map(|version| version.pointer("/schema/openAPIV3Schema"));
    schemas.find_map(|schema| beyond(schema, "", false, false))
}

fn beyond(schema: &Value, path: &str, in_items: bool, in_map: bool) -> Option<String> {
    let at = if path.is_empty() { "the schema" } else { path };
    for (keyword, value) in schema.as_object()? {
        let known = KEYWORDS.contains(&keyword.as_str()) || keyword == "x-kubernetes-validations";
        // A keyword that is false or null has no effect.
        let is_set = !matches!(value, Value::Null | Value::Bool(false));
        if !known && is_set {
            return Some(format!("{keyword} in {at} of a CRD"));
        }
    }
    if let Some(format) = schema["format"].as_str().filter(|format| FORMATS.contains(format)) {
        return Some(format!("the format {format} in {at} of a CRD"));
    }
    if let Some(pattern) = schema["pattern"].as_str().filter(|pattern| regex::Regex::new(pattern).is_err()) {
        return Some(format!("the pattern {pattern:?} in {at} of a CRD"));
    }
    if let Some(why) = crate::rules::not_modelled(schema, in_items, in_map) {
        return Some(why);
    }
    let properties = schema["properties"].as_object().into_iter().flatten();
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    let mut within = properties.filter_map(|(name, schema)| beyond(schema, &below(name), in_items, in_map));
    within
        .next()
        .or_else(|| beyond(&schema["items"], &format!("{path}[]"), true, in_map))
        .or_else(|| beyond(&schema["additionalProperties"], &format!("{path}.*"), in_items, true))
        .or_else(|| {
            let branches =
                ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|keyword| schema[keyword].as_array());
            let mut branches = branches.flatten().chain(schema.get("not"));
            branches.find_map(|branch| beyond(branch, path, in_items, in_map))
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({"type": "object", "properties": {
            "spec": {"type": "object", "required": ["size"], "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 5},
                "color": {"type": "string", "enum": ["red", "blue"]},
                "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 3},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }},
        }})
    }

    #[test]
    fn what_the_schema_does_not_have_is_cut_away() {
        let schema = schema();
        let object = json!({"spec": {"size": 1, "nope": 2, "free": {"any": {"thing": 1}}}, "other": 1});
        let kept = pruned(Shape::new(&Value::Null, &schema), &object);
        assert_eq!(kept, json!({"spec": {"size": 1, "free": {"any": {"thing": 1}}}}));
    }

    #[test]
    fn what_a_crd_asks_for_and_nobody_looks_at_is_named() {
        let crd = |node: Value| {
            json!({"spec": {"versions": [{"name": "v1", "served": true, "schema": {"openAPIV3Schema":
            {"type": "object", "properties": {"spec": {"type": "object", "properties": {"x": node}}}}}}]}})
        };
        for fine in [
            schema(),
            json!({"type": "string", "format": "date-time"}),
            json!({"oneOf": [{"required": ["a"]}]}),
        ] {
            assert_eq!(not_modelled(&crd(fine)), None);
        }
        for (node, what) in [
            (
                json!({"type": "object", "x-kubernetes-embedded-resource": true}),
                "x-kubernetes-embedded-resource in spec.x of a CRD",
            ),
            (
                json!({"type": "array", "items": {"type": "string", "format": "ipv4"}}),
                "the format ipv4 in spec.x[] of a CRD",
            ),
            (json!({"type": "string", "pattern": "(?=a)"}), "the pattern \"(?=a)\" in spec.x of a CRD"),
            (json!({"not": {"dependencies": {}}}), "dependencies in spec.x of a CRD"),
        ] {
            assert_eq!(not_modelled(&crd(node)).as_deref(), Some(what));
        }
        let mut two = crd(json!({}));
        two["spec"]["versions"] = json!([{"name": "v1", "served": true}, {"name": "v2", "served": true}]);
        assert!(not_modelled(&two).is_some());
        assert!(not_modelled(&json!({"spec": {"conversion": {"strategy": "Webhook"}}})).is_some());
    }

    #[test]
    fn several_schemas_of_one_place_all_count() {
        let schema = json!({"type": "object", "properties": {"a": {}, "b": {}, "c": {}},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}], "not": {"required": ["c"]}});
        let fits = |value: Value| misfits(Shape::new(&Value::Null, &schema), &value).is_empty();
        assert!(fits(json!({"a": 1})) && fits(json!({"b": 1})));
        assert!(!fits(json!({})) && !fits(json!({"a": 1, "b": 1})) && !fits(json!({"a": 1, "c": 1})));
    }

    #[test]
    fn a_time_is_one_of_rfc_3339() {
        for (text, is) in [
            ("2026-01-01T00:00:00Z", true),
            ("2026-01-01t00:00:00.5+01:00", true),
            ("2026-01-01", false),
            ("2026-13-01T00:00:00Z", false),
            ("2026-01-01T24:00:00Z", false),
        ] {
            assert_eq!(is_date_time(text), is, "{text}");
        }
    }

    #[test]
    fn what_the_schema_forbids_is_named_by_its_path() {
        let schema = schema();
        for (spec, path) in [
            (json!({}), "spec.size"),
            (json!({"size": 9}), "spec.size"),
            (json!({"size": "x"}), "spec.size"),
            (json!({"size": 1, "color": "green"}), "spec.color"),
            (json!({"size": 1, "name": "X"}), "spec.name"),
            (json!({"size": 1, "name": "long"}), "spec.name"),
        ] {
            let causes = misfits(Shape::new(&Value::Null, &schema), &json!({"spec": spec}));
            assert_eq!(causes.first().map(|cause| cause.field.as_str()), Some(path), "{spec}");
        }
        assert!(misfits(Shape::new(&Value::Null, &schema), &json!({"spec": {"size": 2}})).is_empty());
    }
}
