//! Checks a config against the rules. Every look at a value costs a step, and the number of steps is limited.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
};

use pintle_wit::{Failure, reasons};
use regex::Regex;
use serde_json::{Map, Number, Value};

use super::{
    STEPS_MAX,
    at::{At, shortened},
    compile::{Bound, Range, Rule, Schema, Type},
};
use crate::pattern;

/// The steps for each byte that a pattern is matched with. A pattern of the largest size takes about a microsecond for it.
const STEPS_A_BYTE: u64 = 16;
/// The longest message, and the longest value or name in a message, in characters.
const MESSAGE_MAX: usize = 400;
const SHOWN_MAX: usize = 80;
/// The most values of an `enum`, or names, in a message.
const LISTED_MAX: usize = 12;

pub(super) fn check(
    schema: &Schema,
    patterns: &[String],
    unevaluated: bool,
    config: &Value,
) -> Result<(), Failure> {
    let mut check = Check { left: STEPS_MAX, patterns, compiled: BTreeMap::new(), unevaluated, quiet: false };
    let stop = match check.apply(schema, config, &At::root("spec.config"), &mut Evaluated::default()) {
        Ok(()) => return Ok(()),
        Err(stop) => stop,
    };
    Err(match stop {
        Stop::Misfit(path, message) => {
            Failure::terminal(reasons::CONFIG_INVALID, shortened(message, MESSAGE_MAX)).at(path)
        }
        Stop::OutOfSteps => {
            let message = format!(
                "checking it against the guest's schema takes more than {STEPS_MAX} steps; make the config smaller, or the schema simpler"
            );
            Failure::terminal(reasons::CONFIG_TOO_EXPENSIVE, message).at("spec.config")
        }
    })
}

/// Why a check ends early.
enum Stop {
    /// The value at this path violates a rule.
    Misfit(String, String),
    OutOfSteps,
}

type Kept = Result<(), Stop>;

/// The fields and items of a value that schemas have evaluated, for the rules about unevaluated ones.
#[derive(Debug, Default)]
struct Evaluated<'c> {
    properties: BTreeSet<&'c str>,
    items: BTreeSet<usize>,
}

impl Evaluated<'_> {
    fn len(&self) -> u64 {
        (self.properties.len() + self.items.len()) as u64
    }
}

struct Check<'s> {
    left: u64,
    patterns: &'s [String],
    compiled: BTreeMap<usize, Option<Regex>>,
    unevaluated: bool,
    /// Whether only the existence of a misfit matters, not its message.
    quiet: bool,
}

impl<'s> Check<'s> {
    fn spend(&mut self, steps: u64) -> Kept {
        match self.left.checked_sub(steps) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = 0;
                Err(Stop::OutOfSteps)
            }
        }
    }

    fn misfit(&self, at: &At<'_>, message: impl FnOnce() -> String) -> Kept {
        Err(match self.quiet {
            true => Stop::Misfit(String::new(), String::new()),
            false => Stop::Misfit(at.path(), message()),
        })
    }

    fn apply<'c>(
        &mut self,
        schema: &Schema,
        value: &'c Value,
        at: &At<'_>,
        seen: &mut Evaluated<'c>,
    ) -> Kept {
        self.spend(1 + schema.0.len() as u64)?;
        for rule in &schema.0 {
            match value {
                Value::Array(items) => self.of_array(rule, items, at, seen)?,
                Value::Object(fields) => self.of_object(rule, fields, at, seen)?,
                Value::String(text) => self.of_string(rule, text, at)?,
                Value::Number(number) => self.of_number(rule, number, at)?,
                _ => {}
            }
            self.of_any(rule, value, at, seen)?;
        }
        Ok(())
    }

    /// Whether a value fits a schema. If so, what the schema has evaluated counts.
    fn holds<'c>(
        &mut self,
        schema: &Schema,
        value: &'c Value,
        at: &At<'_>,
        seen: &mut Evaluated<'c>,
    ) -> Result<bool, Stop> {
        let before = std::mem::replace(&mut self.quiet, true);
        let mut looked_at = Evaluated::default();
        let kept = self.apply(schema, value, at, &mut looked_at);
        self.quiet = before;
        match kept {
            Ok(()) => {
                self.spend(looked_at.len())?;
                seen.properties.append(&mut looked_at.properties);
                seen.items.append(&mut looked_at.items);
                Ok(true)
            }
            Err(Stop::Misfit(..)) => Ok(false),
            Err(stop) => Err(stop),
        }
    }

    fn of_any<'c>(&mut self, rule: &Rule, value: &'c Value, at: &At<'_>, seen: &mut Evaluated<'c>) -> Kept {
        match rule {
            Rule::Never => self.misfit(at, || "nothing is taken here".into()),
            Rule::Type(types) if !types.iter().any(|ty| is_of(*ty, value)) => self.misfit(at, || {
                let types: Vec<&str> = types.iter().map(|ty| called(*ty)).collect();
                format!("{} is not {}", shown(value), types.join(" or "))
            }),
            Rule::Enum(values) => {
                for wanted in values {
                    if self.equal(wanted, value)? {
                        return Ok(());
                    }
                }
                self.misfit(at, || {
                    format!("{} is none of {}", shown(value), listed(values.iter().map(shown), values.len()))
                })
            }
            Rule::AllOf(schemas) => schemas.iter().try_for_each(|schema| self.apply(schema, value, at, seen)),
            Rule::AnyOf(schemas) => {
                let mut any = false;
                for schema in schemas {
                    any |= self.holds(schema, value, at, seen)?;
                    if any && !self.unevaluated {
                        break;
                    }
                }
                if any { Ok(()) } else { self.none_of(schemas, value, at) }
            }
            Rule::OneOf(schemas) => {
                let mut held = 0_u32;
                for schema in schemas {
                    held += u32::from(self.holds(schema, value, at, seen)?);
                    if held > 1 {
                        return self.misfit(at, || {
                            format!("{} fits more than one of the schemas of oneOf", shown(value))
                        });
                    }
                }
                if held == 1 { Ok(()) } else { self.none_of(schemas, value, at) }
            }
            Rule::Not(schema) => match self.holds(schema, value, at, &mut Evaluated::default())? {
                true => self.misfit(at, || format!("{} is what the schema says it is not", shown(value))),
                false => Ok(()),
            },
            Rule::DependentSchemas(schemas) => {
                let Value::Object(fields) = value else { return Ok(()) };
                self.spend(schemas.len() as u64)?;
                let mut there = schemas.iter().filter(|(name, _)| fields.contains_key(*name));
                there.try_for_each(|(_, schema)| self.apply(schema, value, at, seen))
            }
            Rule::If { condition, then, otherwise } => {
                let branch = if self.holds(condition, value, at, seen)? { then } else { otherwise };
                branch.iter().try_for_each(|schema| self.apply(schema, value, at, seen))
            }
            _ => Ok(()),
        }
    }

    /// The value fits none of these schemas. If the user can have meant only one of them, the error is the one of that schema.
    fn none_of(&mut self, schemas: &[Schema], value: &Value, at: &At<'_>) -> Kept {
        let is_null =
            |schema: &&Schema| matches!(schema.0.as_slice(), [Rule::Type(types)] if types == &[Type::Null]);
        let mut meant = schemas.iter().filter(|schema| !is_null(schema));
        if let (false, false, Some(only), None) = (self.quiet, value.is_null(), meant.next(), meant.next()) {
            self.apply(only, value, at, &mut Evaluated::default())?;
        }
        self.misfit(at, || {
            format!("{} fits none of the {} schemas that it may fit", shown(value), schemas.len())
        })
    }

    fn of_number(&mut self, rule: &Rule, number: &Number, at: &At<'_>) -> Kept {
        match rule {
            Rule::Bound(bound, limit) => {
                let (kept, word) = match (bound, compare(number, limit)) {
                    (Bound::Minimum, order) => (order != Ordering::Less, "less than"),
                    (Bound::Maximum, order) => (order != Ordering::Greater, "more than"),
                    (Bound::ExclusiveMinimum, order) => (order == Ordering::Greater, "not more than"),
                    (Bound::ExclusiveMaximum, order) => (order == Ordering::Less, "not less than"),
                };
                if kept { Ok(()) } else { self.misfit(at, || format!("{number} is {word} {limit}")) }
            }
            Rule::MultipleOf(of) if !is_multiple(number, of) => {
                self.misfit(at, || format!("{number} is no multiple of {of}"))
            }
            _ => Ok(()),
        }
    }

    fn of_string(&mut self, rule: &Rule, text: &str, at: &At<'_>) -> Kept {
        match rule {
            Rule::Length(range) => {
                self.spend(text.len() as u64 / STEPS_A_BYTE)?;
                self.in_range(text.chars().count(), *range, "characters", at)
            }
            Rule::Pattern(pattern) => match self.matches(*pattern, text)? {
                true => Ok(()),
                false => {
                    let source = self.patterns.get(*pattern).cloned().unwrap_or_default();
                    self.misfit(at, || {
                        format!(
                            "{:?} does not match {}",
                            shortened(text.into(), SHOWN_MAX),
                            shortened(source, MESSAGE_MAX / 2)
                        )
                    })
                }
            },
            _ => Ok(()),
        }
    }

    fn of_array<'c>(
        &mut self,
        rule: &Rule,
        items: &'c [Value],
        at: &At<'_>,
        seen: &mut Evaluated<'c>,
    ) -> Kept {
        let unevaluated = self.unevaluated;
        let mut saw = |index: usize| {
            if unevaluated {
                seen.items.insert(index);
            }
        };
        match rule {
            Rule::ItemCount(range) => self.in_range(items.len(), *range, "items", at),
            Rule::UniqueItems => {
                let mut known = BTreeSet::new();
                for (index, item) in items.iter().enumerate() {
                    let mut text = String::new();
                    self.canonical(item, &mut text)?;
                    if !known.insert(text) {
                        return self.misfit(&at.index(index), || format!("{} stands twice", shown(item)));
                    }
                }
                Ok(())
            }
            Rule::Items { prefix, rest } => {
                for (index, item) in items.iter().enumerate() {
                    let Some(schema) = prefix.get(index).or(rest.as_deref()) else { break };
                    self.apply(schema, item, &at.index(index), &mut Evaluated::default())?;
                    saw(index);
                }
                Ok(())
            }
            Rule::Contains(schema, range) => {
                let mut found = 0;
                for (index, item) in items.iter().enumerate() {
                    if self.holds(schema, item, at, &mut Evaluated::default())? {
                        found += 1;
                        saw(index);
                    }
                }
                self.in_range(found, *range, "items of the kind that it must contain", at)
            }
            Rule::UnevaluatedItems(schema) => {
                for (index, item) in items.iter().enumerate() {
                    self.spend(1)?;
                    if seen.items.insert(index) {
                        self.apply(schema, item, &at.index(index), &mut Evaluated::default())?;
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn of_object<'c>(
        &mut self,
        rule: &Rule,
        fields: &'c Map<String, Value>,
        at: &At<'_>,
        seen: &mut Evaluated<'c>,
    ) -> Kept {
        match rule {
            Rule::PropertyCount(range) => self.in_range(fields.len(), *range, "fields", at),
            Rule::Required(names) => self.all_there(names, fields, at),
            Rule::DependentRequired(required) => {
                self.spend(required.len() as u64)?;
                let mut there = required.iter().filter(|(name, _)| fields.contains_key(*name));
                there.try_for_each(|(_, names)| self.all_there(names, fields, at))
            }
            Rule::Properties { named, patterns, others } => {
                for (name, value) in fields {
                    self.spend(1)?;
                    let at_field = at.field(name);
                    let mut known = false;
                    if let Some(schema) = named.get(name) {
                        known = true;
                        self.apply(schema, value, &at_field, &mut Evaluated::default())?;
                    }
                    for (pattern, schema) in patterns {
                        if self.matches(*pattern, name)? {
                            known = true;
                            self.apply(schema, value, &at_field, &mut Evaluated::default())?;
                        }
                    }
                    match others {
                        _ if known => {}
                        Some(schema) if schema.is_never() => {
                            return self.unknown_field(name, named, patterns.is_empty(), at);
                        }
                        Some(schema) => self.apply(schema, value, &at_field, &mut Evaluated::default())?,
                        None => continue,
                    }
                    if self.unevaluated {
                        seen.properties.insert(name);
                    }
                }
                Ok(())
            }
            Rule::PropertyNames(schema) => {
                for name in fields.keys() {
                    let value = Value::String(name.clone());
                    self.apply(schema, &value, &at.field(name), &mut Evaluated::default())?;
                }
                Ok(())
            }
            Rule::UnevaluatedProperties(schema) => {
                for (name, value) in fields {
                    self.spend(1)?;
                    if !seen.properties.insert(name) {
                        continue;
                    }
                    if schema.is_never() {
                        return self.unknown_field(name, &BTreeMap::new(), false, at);
                    }
                    self.apply(schema, value, &at.field(name), &mut Evaluated::default())?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The error for a field that no schema has. `is_only` says that `known` has all allowed fields.
    fn unknown_field(
        &mut self,
        name: &str,
        known: &BTreeMap<String, Schema>,
        is_only: bool,
        at: &At<'_>,
    ) -> Kept {
        // A guest that takes no config has a schema without fields. So the field itself must go.
        if is_only && known.is_empty() && at.is_root() {
            return self.misfit(&at.field(name), || "this guest takes no config; remove it".into());
        }
        self.misfit(at, || {
            let name = shortened(name.into(), SHOWN_MAX);
            match known.is_empty() {
                true => format!("the guest knows no field {name:?}"),
                false => {
                    let names =
                        listed(known.keys().map(|name| shortened(name.clone(), SHOWN_MAX)), known.len());
                    format!("the guest knows no field {name:?}, only {names}")
                }
            }
        })
    }

    fn all_there(&mut self, names: &[String], fields: &Map<String, Value>, at: &At<'_>) -> Kept {
        self.spend(names.len() as u64)?;
        match names.iter().find(|name| !fields.contains_key(*name)) {
            None => Ok(()),
            Some(name) => {
                self.misfit(at, || format!("field {:?} is missing", shortened(name.clone(), SHOWN_MAX)))
            }
        }
    }

    fn in_range(&mut self, count: usize, range: Range, what: &str, at: &At<'_>) -> Kept {
        if range.includes(count as u64) {
            return Ok(());
        }
        self.misfit(at, || {
            let max = range.max.map_or_else(String::new, |max| format!(" and at most {max}"));
            format!("{count} {what}, where at least {}{max} are wanted", range.min)
        })
    }

    fn matches(&mut self, pattern: usize, text: &str) -> Result<bool, Stop> {
        self.spend(1 + text.len() as u64 * STEPS_A_BYTE)?;
        let patterns = self.patterns;
        let compiled = self.compiled.entry(pattern).or_insert_with(|| {
            // The pattern compiles, because it compiled with the schema.
            patterns.get(pattern).and_then(|source| pattern::compile_ecma(source).ok())
        });
        Ok(compiled.as_ref().is_some_and(|regex| regex.is_match(text)))
    }

    fn equal(&mut self, a: &Value, b: &Value) -> Result<bool, Stop> {
        self.spend(1)?;
        Ok(match (a, b) {
            (Value::Number(a), Value::Number(b)) => compare(a, b) == Ordering::Equal,
            (Value::String(a), Value::String(b)) => {
                self.spend(a.len().min(b.len()) as u64 / STEPS_A_BYTE)?;
                a == b
            }
            (Value::Array(a), Value::Array(b)) => {
                if a.len() != b.len() {
                    return Ok(false);
                }
                for (a, b) in a.iter().zip(b) {
                    if !self.equal(a, b)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Value::Object(a), Value::Object(b)) => {
                if a.len() != b.len() {
                    return Ok(false);
                }
                for (name, a) in a {
                    let Some(b) = b.get(name) else { return Ok(false) };
                    if !self.equal(a, b)? {
                        return Ok(false);
                    }
                }
                true
            }
            (a, b) => a == b,
        })
    }

    /// A value as text. Two texts are the same exactly if the values are equal.
    fn canonical(&mut self, value: &Value, text: &mut String) -> Kept {
        self.spend(1)?;
        match value {
            Value::Null => text.push_str("null"),
            Value::Bool(yes) => text.push_str(if *yes { "true" } else { "false" }),
            Value::Number(number) => text.push_str(&match whole(number) {
                Some(whole) => whole.to_string(),
                None => number.to_string(),
            }),
            Value::String(string) => {
                self.spend(string.len() as u64 / STEPS_A_BYTE)?;
                text.push_str(&format!("{string:?}"));
            }
            Value::Array(items) => {
                text.push('[');
                for item in items {
                    self.canonical(item, text)?;
                    text.push(',');
                }
                text.push(']');
            }
            Value::Object(fields) => {
                let sorted: BTreeMap<&String, &Value> = fields.iter().collect();
                text.push('{');
                for (name, value) in sorted {
                    self.spend(name.len() as u64 / STEPS_A_BYTE)?;
                    text.push_str(&format!("{name:?}:"));
                    self.canonical(value, text)?;
                    text.push(',');
                }
                text.push('}');
            }
        }
        Ok(())
    }
}

fn is_of(ty: Type, value: &Value) -> bool {
    match (ty, value) {
        (Type::Null, Value::Null)
        | (Type::Boolean, Value::Bool(_))
        | (Type::Number, Value::Number(_))
        | (Type::String, Value::String(_))
        | (Type::Array, Value::Array(_))
        | (Type::Object, Value::Object(_)) => true,
        (Type::Integer, Value::Number(number)) => {
            !number.is_f64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        _ => false,
    }
}

fn called(ty: Type) -> &'static str {
    match ty {
        Type::Null => "null",
        Type::Boolean => "true or false",
        Type::Integer => "a whole number",
        Type::Number => "a number",
        Type::String => "a string",
        Type::Array => "a list",
        Type::Object => "an object",
    }
}

/// A number without a fraction, if a double holds it exactly.
fn whole(number: &Number) -> Option<i128> {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    match (number.as_i64(), number.as_u64(), number.as_f64()) {
        (Some(number), ..) => Some(number.into()),
        (_, Some(number), _) => Some(number.into()),
        (.., Some(number)) if number.fract() == 0.0 && number.abs() <= EXACT_MAX => Some(number as i128),
        _ => None,
    }
}

fn compare(a: &Number, b: &Number) -> Ordering {
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        // A number in JSON is neither infinite nor NaN.
        _ => a.as_f64().partial_cmp(&b.as_f64()).unwrap_or(Ordering::Equal),
    }
}

fn is_multiple(number: &Number, of: &Number) -> bool {
    if let (Some(number), Some(of)) = (whole(number), whole(of)) {
        return number.checked_rem(of) == Some(0);
    }
    let (Some(number), Some(of)) = (number.as_f64(), of.as_f64()) else { return false };
    let times = number / of;
    // 0.3 is a multiple of 0.1, although neither is exact as a double.
    (times - times.round()).abs() <= 1e-9 * times.abs().max(1.0)
}

/// A value in a message.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => {
            format!("{:?}", shortened(text.chars().take(SHOWN_MAX + 1).collect(), SHOWN_MAX))
        }
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "an object".into(),
        scalar => scalar.to_string(),
    }
}

fn listed(names: impl Iterator<Item = String>, all: usize) -> String {
    let mut names: Vec<String> = names.take(LISTED_MAX).collect();
    if all > names.len() {
        names.push(format!("{} more", all - names.len()));
    }
    names.join(", ")
}
