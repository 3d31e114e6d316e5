//! Checks values against the types and bounds of a schema, in the words of the API server.
//!
//! Messages have a path with dots alone (`spec.labels.app`), as the API server writes it here, although it writes `spec.labels[app]` for
//! rules and duplicates.

use pintle_core::{
    number,
    view::status::fault::{required, too_long},
};
use pintle_wit::Cause;
use serde_json::{Number, Value};

use super::{
    format::Format,
    found::{Counted, Found},
    node::{Additional, Node},
    patterns,
};
use crate::cause::{float, invalid, not_supported, quoted, too_many, type_invalid};

/// Finds what a schema forbids in a value, without its rules. What has not changed since `old` is not looked at.
pub(super) fn check(
    node: &Node,
    value: &Value,
    old: Option<&Value>,
    path: &str,
    found: &mut Found,
) -> Counted {
    found.look_at(path)?;
    if let Some(old) = old {
        found.read(value)?;
        if old == value {
            return Ok(());
        }
    }
    of_type(node, value, path, found)?;
    if !value.is_null() {
        compose(node, value, old, path, found)?;
        match value {
            Value::String(text) => of_text(node, value, text, path, found)?,
            Value::Number(number) => of_number(node, number, path, found)?,
            Value::Array(items) => of_list(node, items, old, path, found)?,
            _ => {}
        }
    }
    if let Some(allowed) = &node.words.allowed
        && !is_among(allowed, value, found)?
    {
        found.push(not_supported(path, value, allowed))?;
    }
    match value {
        Value::Object(fields) => of_map(node, fields, old, path, found),
        _ => Ok(()),
    }
}

fn is_among(allowed: &[Value], value: &Value, found: &mut Found) -> Counted<bool> {
    for one in allowed {
        found.read(value)?;
        if is_same(one, value) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The steps for each byte that a pattern is matched with. A pattern of the largest size takes about a microsecond for it.
const STEPS_A_BYTE: usize = 16;

/// Above it the API server takes a double for no integer, although it has no fraction.
const WHOLE_MAX: f64 = 9_007_199_254_740_991.0;

/// Whether two values are the same, if 1 and 1.0 are.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => number::is_same(one, other),
        _ => one == other,
    }
}

fn wrong(value: &Value, path: &str, why: &str) -> Cause {
    invalid(path, value, &format!("{path} in body {why}"))
}

/// The type of a value, and the format of its numbers, as messages name them.
fn noun(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::Number(number) if number.as_i64().is_some() => ("integer", "int64"),
        Value::Number(_) => ("number", "float64"),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

fn of_type(node: &Node, value: &Value, path: &str, found: &mut Found) -> Counted {
    let types = node.types();
    let has = |name: &str| types.contains(&name);
    let mut mismatch = |wanted: &str, is: &str| {
        found.push(type_invalid(
            path,
            is,
            &format!("{path} in body must be of type {wanted}: {}", quoted(is)),
        ))
    };
    let (is, its_format) = noun(value);
    if value.is_null() {
        let may_be = types.is_empty() || node.words.nullable;
        return if may_be { Ok(()) } else { mismatch(&types.join(","), is) };
    }
    let is_whole = value.as_f64().is_some_and(|number| number.fract() == 0.0 && number.abs() <= WHOLE_MAX);
    let fits = types.is_empty()
        || has(is)
        || is == "number" && is_whole && has("integer")
        || is == "integer" && has("number");
    let is_listed = matches!(value, Value::String(_) | Value::Array(_));
    match node.format {
        // The API server says nothing of lists where a text of a format belongs.
        Some(_) if is_listed && !has("number") && !has("integer") => Ok(()),
        Some(format) if !is_listed && (!fits || types.is_empty()) => mismatch(format.name(), its_format),
        _ if !fits => mismatch(&types.join(","), is),
        _ => Ok(()),
    }
}

fn of_text(node: &Node, value: &Value, text: &str, path: &str, found: &mut Found) -> Counted {
    found.read(value)?;
    let words = &node.words;
    let length = text.chars().count() as u64;
    if let Some(most) = words.max_length.filter(|most| length > *most) {
        found.push(too_long(path, most))?;
    } else if let Some(least) = words.min_length.filter(|least| length < *least) {
        found.push(wrong(value, path, &format!("should be at least {least} chars long")))?;
    } else if let Some(pattern) = &node.pattern {
        found.spend(text.len().saturating_mul(STEPS_A_BYTE))?;
        if !patterns::with(pattern, |pattern| pattern.is_match(text)).unwrap_or_default() {
            found.push(wrong(value, path, &format!("should match '{pattern}'")))?;
        }
    }
    if let Some(format) = node.format.filter(|format| !format.has(text)) {
        let why = format!("{path} in body must be of type {}: {}", format.name(), quoted(text));
        found.push(type_invalid(path, text, &why))?;
    }
    Ok(())
}

/// A bound as it counts for a value: whole for whole numbers.
fn bound(bound: f64, value: &Value) -> f64 {
    if value.is_f64() { bound } else { bound.trunc() }
}

/// Whether a number is one of its type and format.
fn is_in_range(node: &Node, value: &Number, given: f64) -> bool {
    let is_integer = !node.words.int_or_string && node.words.type_name.as_deref() == Some("integer");
    match node.format {
        _ if is_integer && number::stored(value).as_i64().is_none() => false,
        Some(Format::Int32) => (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&given),
        Some(Format::Float) => given.abs() <= f64::from(f32::MAX),
        _ => true,
    }
}

fn of_number(node: &Node, number: &Number, path: &str, found: &mut Found) -> Counted {
    let (words, value, Some(given)) = (&node.words, &Value::from(number.clone()), number.as_f64()) else {
        return Ok(());
    };
    if !is_in_range(node, number, given) {
        let type_name = words.type_name.as_deref().unwrap_or_default();
        let of = match node.format {
            Some(format) => format!("with format {}", format.name()),
            None => "(default format)".into(),
        };
        let why = format!("Checked value must be of type {type_name} {of} in {path}");
        found.push(invalid("", &"".into(), &why))?;
    }
    let bound = |keyword: Option<f64>| keyword.map(|given| bound(given, value));
    let mut should = |what: &str, than: f64| {
        let than = if value.is_f64() { float(than) } else { than.to_string() };
        found.push(wrong(value, path, &format!("should be {what} {than}")))
    };
    match bound(words.multiple_of) {
        Some(step) if step > 0.0 && (given / step).fract() != 0.0 => should("a multiple of", step)?,
        _ => {}
    }
    match bound(words.minimum) {
        Some(least) if words.exclusive_minimum && given <= least => should("greater than", least)?,
        Some(least) if given < least => should("greater than or equal to", least)?,
        _ => {}
    }
    match bound(words.maximum) {
        Some(most) if words.exclusive_maximum && given >= most => should("less than", most)?,
        Some(most) if given > most => should("less than or equal to", most)?,
        _ => {}
    }
    if bound(words.multiple_of).is_some_and(|step| step <= 0.0) {
        let why = format!("factor MultipleOf declared for {path} must be positive: 0");
        found.push(invalid(path, &0.into(), &why))?;
    }
    Ok(())
}

fn of_list(node: &Node, items: &[Value], old: Option<&Value>, path: &str, found: &mut Found) -> Counted {
    if let Some(member) = &node.items {
        let olds = node.old_items(old, items, found)?;
        for (index, (item, old)) in items.iter().zip(olds).enumerate() {
            check(member, item, old, &format!("{path}[{index}]"), found)?;
        }
    }
    let size = items.len();
    if let Some(least) = node.words.min_items.filter(|least| (size as u64) < *least) {
        found.push(wrong(&size.into(), path, &format!("should have at least {least} items")))?;
    }
    if let Some(most) = node.words.max_items.filter(|most| size as u64 > *most) {
        found.push(too_many(path, size, most))?;
    }
    Ok(())
}

fn of_map(
    node: &Node,
    fields: &serde_json::Map<String, Value>,
    old: Option<&Value>,
    path: &str,
    found: &mut Found,
) -> Counted {
    found.spend(node.properties.len() + node.words.required.len())?;
    let size = fields.len();
    if let Some(least) = node.words.min_properties.filter(|least| (size as u64) < *least) {
        found.push(wrong(&size.into(), path, &format!("should have at least {least} properties")))?;
    }
    if let Some(most) = node.words.max_properties.filter(|most| size as u64 > *most) {
        found.push(too_many(path, size, most))?;
    }
    let at = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    let old = |name: &str| old.and_then(|old| old.get(name));
    if let Some(Additional::Of(member)) = &node.additional {
        for (name, value) in fields.iter().filter(|(name, _)| !node.properties.contains_key(*name)) {
            check(member, value, old(name), &at(name), found)?;
        }
    }
    for (name, member) in &node.properties {
        if let Some(value) = fields.get(name) {
            check(member, value, old(name), &at(name), found)?;
        }
    }
    let mut missing = node.words.required.iter().filter(|name| !fields.contains_key(*name));
    missing.try_for_each(|name| found.push(required(&at(name), "")))
}

/// Checks the schemas that are combined for one value.
fn compose(node: &Node, value: &Value, old: Option<&Value>, path: &str, found: &mut Found) -> Counted {
    // Each is checked once: what is within it is checked again with it.
    let each = |branches: &[Node], found: &mut Found| -> Counted<Vec<Vec<Cause>>> {
        let misfits = |branch| found.aside(|found| check(branch, value, old, path, found));
        branches.iter().map(misfits).collect()
    };
    // An error about the whole value has no field. Its path is in the message.
    let whole = |why: &str| invalid("", &"".into(), &format!("{} {why}", quoted(path)));
    // The errors of the first schema are reported as well.
    let mut told = Vec::new();
    let any = each(&node.any_of, found)?;
    if !any.is_empty() && !any.iter().any(Vec::is_empty) {
        found.push(whole("must validate at least one schema (anyOf)"))?;
        told.extend(any.into_iter().next());
    }
    let one = each(&node.one_of, found)?;
    match one.iter().filter(|causes| causes.is_empty()).count() {
        0 if !one.is_empty() => {
            found.push(whole("must validate one and only one schema (oneOf). Found none valid"))?;
            told.extend(one.into_iter().next());
        }
        0 | 1 => {}
        several => found.push(whole(&format!(
            "must validate one and only one schema (oneOf). Found {several} valid alternatives"
        )))?,
    }
    found.causes.extend(told.into_iter().flatten());
    let all = each(&node.all_of, found)?;
    let broken = all.iter().filter(|causes| !causes.is_empty()).count();
    found.causes.extend(all.into_iter().flatten());
    match broken {
        0 => {}
        all if all == node.all_of.len() => {
            found.push(whole("must validate all the schemas (allOf). None validated"))?;
        }
        _ => found.push(whole("must validate all the schemas (allOf)"))?,
    }
    if let Some(not) = &node.not
        && found.aside(|found| check(not, value, old, path, found))?.is_empty()
    {
        found.push(whole("must not validate the schema (not)"))?;
    }
    Ok(())
}
