//! Compiles a guest's schema into a tree of rules.

use std::collections::BTreeMap;

use pintle_wit::{Failure, reasons};
use serde_json::{Map, Number, Value};

use super::{BYTES_MAX, DEPTH_MAX, Excess, NODES_MAX, PATTERNS_MAX, Refused, at::At};
use crate::pattern;

/// The most keywords of one schema. There are 60 of them.
const KEYWORDS_MAX: usize = 100;

/// The rules for a value. All of them must hold. The rules of `unevaluatedProperties` and `unevaluatedItems` come last.
#[derive(Debug, Default)]
pub(super) struct Schema(pub(super) Vec<Rule>);

/// A rule. It holds for every value of a type that it is not about.
#[derive(Debug)]
pub(super) enum Rule {
    Never,
    Type(Vec<Type>),
    Enum(Vec<Value>),
    Bound(Bound, Number),
    MultipleOf(Number),
    Length(Range),
    /// The index in the list of patterns.
    Pattern(usize),
    Items {
        prefix: Vec<Schema>,
        rest: Option<Box<Schema>>,
    },
    Contains(Box<Schema>, Range),
    ItemCount(Range),
    UniqueItems,
    Properties {
        named: BTreeMap<String, Schema>,
        patterns: Vec<(usize, Schema)>,
        others: Option<Box<Schema>>,
    },
    PropertyNames(Box<Schema>),
    PropertyCount(Range),
    Required(Vec<String>),
    DependentRequired(BTreeMap<String, Vec<String>>),
    DependentSchemas(BTreeMap<String, Schema>),
    AllOf(Vec<Schema>),
    AnyOf(Vec<Schema>),
    OneOf(Vec<Schema>),
    Not(Box<Schema>),
    If {
        condition: Box<Schema>,
        then: Option<Box<Schema>>,
        otherwise: Option<Box<Schema>>,
    },
    UnevaluatedItems(Box<Schema>),
    UnevaluatedProperties(Box<Schema>),
}

impl Schema {
    pub(super) fn is_never(&self) -> bool {
        matches!(self.0.as_slice(), [Rule::Never])
    }
}

/// A type of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

/// What a number is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    Minimum,
    Maximum,
    ExclusiveMinimum,
    ExclusiveMaximum,
}

/// An inclusive range for a number of things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) min: u64,
    pub(super) max: Option<u64>,
}

impl Range {
    pub(super) fn includes(self, count: u64) -> bool {
        count >= self.min && self.max.is_none_or(|max| count <= max)
    }
}

/// Keywords of other drafts, or of schemas in several documents. They are refused, because a schema without them would accept more than its
/// author meant.
const REFUSED: [(&str, &str); 9] = [
    ("$dynamicRef", "a dynamic reference is not taken: write a $ref to #/$defs/NAME"),
    ("$dynamicAnchor", "an anchor is not taken: write the schema below $defs"),
    ("$recursiveRef", "a recursive schema is not taken"),
    ("$recursiveAnchor", "a recursive schema is not taken"),
    ("$anchor", "an anchor is not taken: write the schema below $defs"),
    ("$vocabulary", "other vocabularies are not taken"),
    ("$id", "a schema within the schema has no $id of its own"),
    ("dependencies", "draft 2020-12 has dependentRequired and dependentSchemas instead"),
    ("additionalItems", "draft 2020-12 has items, after prefixItems, instead"),
];

/// Reads a schema. It counts everything before it goes on, so that no schema costs more than the limits.
pub(super) struct Walk<'s> {
    root: &'s Value,
    nodes: usize,
    bytes: usize,
    patterns: Vec<String>,
    known: BTreeMap<&'s str, usize>,
    /// The names below `$defs` that are being read.
    within: Vec<String>,
    unevaluated: bool,
}

type Read<T> = Result<T, Refused>;

fn refuse<T>(at: &At<'_>, message: impl Into<String>) -> Read<T> {
    Err(Failure::terminal(reasons::CONFIG_SCHEMA_INVALID, message).at(at.path()).into())
}

fn too_much<T>(at: &At<'_>, excess: Excess, message: String) -> Read<T> {
    let failure = Failure::terminal(reasons::CONFIG_SCHEMA_INVALID, message).at(at.path());
    Err(Refused { failure, excess: Some(excess) })
}

impl<'s> Walk<'s> {
    pub(super) fn new(root: &'s Value) -> Self {
        Self {
            root,
            nodes: 0,
            bytes: 0,
            patterns: Vec::new(),
            known: BTreeMap::new(),
            within: Vec::new(),
            unevaluated: false,
        }
    }

    /// Returns the rules, the patterns that they use, and whether a rule is about unevaluated fields or items.
    pub(super) fn run(mut self) -> Read<(Schema, Vec<String>, bool)> {
        let root = self.root;
        let schema = self.schema(root, &At::root("configSchema"), 0)?;
        Ok((schema, self.patterns, self.unevaluated))
    }

    /// Counts one more schema, value or name of this many bytes.
    fn count(&mut self, at: &At<'_>, bytes: usize) -> Read<()> {
        self.nodes += 1;
        self.bytes += bytes;
        if self.nodes > NODES_MAX {
            let message = format!(
                "with what each $ref stands for, there are more than {NODES_MAX} schemas, names and values of enum"
            );
            return too_much(at, Excess::Nodes, message);
        }
        if self.bytes > BYTES_MAX {
            let message = format!(
                "with what each $ref stands for, names and values of enum have more than {} KiB",
                BYTES_MAX >> 10
            );
            return too_much(at, Excess::Bytes, message);
        }
        Ok(())
    }

    fn schema(&mut self, value: &'s Value, at: &At<'_>, depth: usize) -> Read<Schema> {
        self.count(at, 0)?;
        if depth > DEPTH_MAX {
            let message = format!("schemas lie within one another more than {DEPTH_MAX} levels deep");
            return too_much(at, Excess::Depth, message);
        }
        let fields = match value {
            Value::Bool(true) => return Ok(Schema::default()),
            Value::Bool(false) => return Ok(Schema(vec![Rule::Never])),
            Value::Object(fields) => fields,
            _ => return refuse(at, "a schema is an object, true or false"),
        };
        if fields.len() > KEYWORDS_MAX {
            return refuse(at, format!("a schema has at most {KEYWORDS_MAX} keywords"));
        }
        for (keyword, message) in REFUSED {
            // The $id of the whole schema is only its name, and nothing refers to it.
            if fields.contains_key(keyword) && (keyword != "$id" || depth > 0) {
                return refuse(&at.field(keyword), message);
            }
        }
        let mut reader = Reader { walk: self, fields, at, depth, rules: Vec::new() };
        reader.of_any_type()?;
        reader.of_scalars()?;
        reader.of_arrays()?;
        reader.of_objects()?;
        reader.of_others()?;
        Ok(Schema(reader.rules))
    }

    /// The schema that a `$ref` names.
    fn referred(&mut self, reference: &'s str, at: &At<'_>, depth: usize) -> Read<Schema> {
        if reference == "#" {
            return refuse(at, "the schema refers to itself: a recursive schema is not taken");
        }
        let name = ["#/$defs/", "#/definitions/"].iter().find_map(|prefix| reference.strip_prefix(prefix));
        let Some(name) = name.filter(|name| !name.contains('/')) else {
            return refuse(at, "of references only those to #/$defs/NAME and #/definitions/NAME are taken");
        };
        let of = if reference.starts_with("#/$defs/") { "$defs" } else { "definitions" };
        let name = unescaped(name);
        let found = self.root.get(of).and_then(|definitions| definitions.get(&name));
        let Some(found) = found else {
            return refuse(at, format!("the schema has no {of} of that name"));
        };
        let key = format!("{of}/{name}");
        if self.within.contains(&key) {
            return refuse(at, "the schema refers to itself: a recursive schema is not taken");
        }
        self.within.push(key);
        let schema = self.schema(found, at, depth + 1);
        self.within.pop();
        schema
    }

    /// The index of a pattern in the list of all patterns.
    fn pattern(&mut self, source: &'s str, at: &At<'_>) -> Read<usize> {
        self.count(at, source.len())?;
        if let Some(known) = self.known.get(source) {
            return Ok(*known);
        }
        if self.patterns.len() == PATTERNS_MAX {
            let message = format!("there are more than {PATTERNS_MAX} different patterns");
            return too_much(at, Excess::Patterns, message);
        }
        match pattern::compile_ecma(source) {
            // Patterns are compiled again for each config: to keep them would take more memory than the module.
            Ok(_) => {}
            Err(pattern::Refused::TooLarge) => {
                let message = format!(
                    "the pattern has more than {} KiB when it is compiled",
                    super::PATTERN_BYTES_MAX >> 10
                );
                return too_much(at, Excess::PatternBytes, message);
            }
            Err(pattern::Refused::Unknown) => {
                let message = "it is no regular expression, or one with look-around or back-references, which are not taken";
                return refuse(at, message);
            }
        }
        let place = self.patterns.len();
        self.patterns.push(source.to_owned());
        self.known.insert(source, place);
        Ok(place)
    }

    /// A value to compare with, counted.
    fn value(&mut self, value: &'s Value, at: &At<'_>) -> Read<Value> {
        self.count_value(value, at)?;
        Ok(value.clone())
    }

    fn count_value(&mut self, value: &Value, at: &At<'_>) -> Read<()> {
        match value {
            Value::String(text) => self.count(at, text.len()),
            Value::Array(items) => {
                self.count(at, 0)?;
                items.iter().try_for_each(|item| self.count_value(item, at))
            }
            Value::Object(fields) => {
                self.count(at, 0)?;
                fields.iter().try_for_each(|(name, value)| {
                    self.bytes += name.len();
                    self.count_value(value, at)
                })
            }
            _ => self.count(at, 0),
        }
    }
}

/// The keywords of one schema.
struct Reader<'w, 's> {
    walk: &'w mut Walk<'s>,
    fields: &'s Map<String, Value>,
    at: &'w At<'w>,
    depth: usize,
    rules: Vec<Rule>,
}

impl<'s> Reader<'_, 's> {
    fn of_any_type(&mut self) -> Read<()> {
        let at = self.at.field("type");
        match self.fields.get("type") {
            None => {}
            Some(Value::String(name)) => {
                let ty = self.ty(name, &at)?;
                self.rules.push(Rule::Type(vec![ty]));
            }
            Some(Value::Array(names)) if !names.is_empty() => {
                let mut types = Vec::new();
                for (index, name) in names.iter().enumerate() {
                    let ty = self.ty(name.as_str().unwrap_or_default(), &at.index(index))?;
                    if !types.contains(&ty) {
                        types.push(ty);
                    }
                }
                self.rules.push(Rule::Type(types));
            }
            Some(_) => return refuse(&at, "type is the name of a type, or a list of names"),
        }
        if let Some(values) = self.fields.get("enum") {
            let at = self.at.field("enum");
            let Value::Array(values) = values else { return refuse(&at, "enum is a list of values") };
            let read =
                values.iter().enumerate().map(|(index, value)| self.walk.value(value, &at.index(index)));
            let values = read.collect::<Read<Vec<Value>>>()?;
            self.rules.push(Rule::Enum(values));
        }
        if let Some(value) = self.fields.get("const") {
            let value = self.walk.value(value, &self.at.field("const"))?;
            self.rules.push(Rule::Enum(vec![value]));
        }
        Ok(())
    }

    fn ty(&mut self, name: &str, at: &At<'_>) -> Read<Type> {
        // Counted, because a list of them can have any length.
        self.walk.count(at, 0)?;
        Ok(match name {
            "null" => Type::Null,
            "boolean" => Type::Boolean,
            "integer" => Type::Integer,
            "number" => Type::Number,
            "string" => Type::String,
            "array" => Type::Array,
            "object" => Type::Object,
            _ => return refuse(at, "a type is null, boolean, integer, number, string, array or object"),
        })
    }

    fn of_scalars(&mut self) -> Read<()> {
        let bounds = [
            ("minimum", Bound::Minimum),
            ("maximum", Bound::Maximum),
            ("exclusiveMinimum", Bound::ExclusiveMinimum),
            ("exclusiveMaximum", Bound::ExclusiveMaximum),
        ];
        for (keyword, bound) in bounds {
            match self.fields.get(keyword) {
                None => {}
                Some(Value::Number(limit)) => self.rules.push(Rule::Bound(bound, limit.clone())),
                Some(_) => return refuse(&self.at.field(keyword), "a bound is a number"),
            }
        }
        match self.fields.get("multipleOf") {
            None => {}
            Some(Value::Number(of)) if of.as_f64().is_some_and(|of| of > 0.0) => {
                self.rules.push(Rule::MultipleOf(of.clone()));
            }
            Some(_) => return refuse(&self.at.field("multipleOf"), "multipleOf is a number above 0"),
        }
        if let Some(range) = self.range("minLength", "maxLength")? {
            self.rules.push(Rule::Length(range));
        }
        if let Some(source) = self.fields.get("pattern") {
            let at = self.at.field("pattern");
            let Some(source) = source.as_str() else { return refuse(&at, "a pattern is a string") };
            let pattern = self.walk.pattern(source, &at)?;
            self.rules.push(Rule::Pattern(pattern));
        }
        Ok(())
    }

    fn of_arrays(&mut self) -> Read<()> {
        if let Some(range) = self.range("minItems", "maxItems")? {
            self.rules.push(Rule::ItemCount(range));
        }
        if self.fields.get("uniqueItems") == Some(&Value::Bool(true)) {
            self.rules.push(Rule::UniqueItems);
        }
        let prefix = self.schemas("prefixItems")?;
        let rest = match self.fields.get("items") {
            Some(Value::Array(_)) => {
                return refuse(
                    &self.at.field("items"),
                    "draft 2020-12 has prefixItems for a list of schemas",
                );
            }
            _ => self.below("items")?,
        };
        if prefix.is_some() || rest.is_some() {
            self.rules.push(Rule::Items { prefix: prefix.unwrap_or_default(), rest });
        }
        if let Some(contains) = self.below("contains")? {
            let counts = self.range("minContains", "maxContains")?;
            let min =
                if self.fields.contains_key("minContains") { counts.map_or(1, |range| range.min) } else { 1 };
            let range = Range { min, max: counts.and_then(|range| range.max) };
            self.rules.push(Rule::Contains(contains, range));
        }
        Ok(())
    }

    fn of_objects(&mut self) -> Read<()> {
        if let Some(range) = self.range("minProperties", "maxProperties")? {
            self.rules.push(Rule::PropertyCount(range));
        }
        if let Some(names) = self.fields.get("required") {
            let names = self.names(names, &self.at.field("required"))?;
            self.rules.push(Rule::Required(names));
        }
        let named = self.schemas_by_name("properties")?.unwrap_or_default();
        let mut patterns = Vec::new();
        let at = self.at.field("patternProperties");
        for (source, value) in self.map("patternProperties")?.into_iter().flatten() {
            let at = at.field(source);
            let pattern = self.walk.pattern(source, &at)?;
            patterns.push((pattern, self.walk.schema(value, &at, self.depth + 1)?));
        }
        let others = self.below("additionalProperties")?;
        if !named.is_empty() || !patterns.is_empty() || others.is_some() {
            self.rules.push(Rule::Properties { named, patterns, others });
        }
        if let Some(names) = self.below("propertyNames")? {
            self.rules.push(Rule::PropertyNames(names));
        }
        let mut required = BTreeMap::new();
        let at = self.at.field("dependentRequired");
        for (name, names) in self.map("dependentRequired")?.into_iter().flatten() {
            let at = at.field(name);
            self.walk.count(&at, name.len())?;
            required.insert(name.clone(), self.names(names, &at)?);
        }
        if !required.is_empty() {
            self.rules.push(Rule::DependentRequired(required));
        }
        if let Some(schemas) = self.schemas_by_name("dependentSchemas")? {
            self.rules.push(Rule::DependentSchemas(schemas));
        }
        Ok(())
    }

    fn of_others(&mut self) -> Read<()> {
        let mut all = self.schemas("allOf")?.unwrap_or_default();
        if let Some(reference) = self.fields.get("$ref") {
            let at = self.at.field("$ref");
            let Some(reference) = reference.as_str() else { return refuse(&at, "a $ref is a string") };
            // Beside other keywords it is one more schema that must hold.
            all.push(self.walk.referred(reference, &at, self.depth)?);
        }
        if !all.is_empty() {
            self.rules.push(Rule::AllOf(all));
        }
        if let Some(any) = self.schemas("anyOf")? {
            self.rules.push(Rule::AnyOf(any));
        }
        if let Some(one) = self.schemas("oneOf")? {
            self.rules.push(Rule::OneOf(one));
        }
        if let Some(not) = self.below("not")? {
            self.rules.push(Rule::Not(not));
        }
        if let Some(condition) = self.below("if")? {
            let (then, otherwise) = (self.below("then")?, self.below("else")?);
            self.rules.push(Rule::If { condition, then, otherwise });
        }
        if let Some(items) = self.below("unevaluatedItems")? {
            self.walk.unevaluated = true;
            self.rules.push(Rule::UnevaluatedItems(items));
        }
        if let Some(properties) = self.below("unevaluatedProperties")? {
            self.walk.unevaluated = true;
            self.rules.push(Rule::UnevaluatedProperties(properties));
        }
        Ok(())
    }

    fn below(&mut self, keyword: &str) -> Read<Option<Box<Schema>>> {
        let Some(value) = self.fields.get(keyword) else { return Ok(None) };
        let schema = self.walk.schema(value, &self.at.field(keyword), self.depth + 1)?;
        Ok(Some(Box::new(schema)))
    }

    fn schemas(&mut self, keyword: &str) -> Read<Option<Vec<Schema>>> {
        let at = self.at.field(keyword);
        match self.fields.get(keyword) {
            None => Ok(None),
            Some(Value::Array(values)) if !values.is_empty() => {
                let mut schemas = Vec::new();
                for (index, value) in values.iter().enumerate() {
                    schemas.push(self.walk.schema(value, &at.index(index), self.depth + 1)?);
                }
                Ok(Some(schemas))
            }
            Some(_) => refuse(&at, "a list of at least one schema is wanted"),
        }
    }

    fn map(&self, keyword: &str) -> Read<Option<&'s Map<String, Value>>> {
        match self.fields.get(keyword) {
            None => Ok(None),
            Some(Value::Object(fields)) => Ok(Some(fields)),
            Some(_) => refuse(&self.at.field(keyword), "an object is wanted"),
        }
    }

    fn schemas_by_name(&mut self, keyword: &str) -> Read<Option<BTreeMap<String, Schema>>> {
        let Some(fields) = self.map(keyword)? else { return Ok(None) };
        let at = self.at.field(keyword);
        let mut schemas = BTreeMap::new();
        for (name, value) in fields {
            let at = at.field(name);
            self.walk.bytes += name.len();
            schemas.insert(name.clone(), self.walk.schema(value, &at, self.depth + 1)?);
        }
        Ok(Some(schemas))
    }

    fn names(&mut self, names: &'s Value, at: &At<'_>) -> Read<Vec<String>> {
        let Value::Array(names) = names else { return refuse(at, "a list of names is wanted") };
        let mut read = Vec::new();
        for (index, name) in names.iter().enumerate() {
            let at = at.index(index);
            let Some(name) = name.as_str() else { return refuse(&at, "a name is a string") };
            self.walk.count(&at, name.len())?;
            read.push(name.to_owned());
        }
        Ok(read)
    }

    fn range(&self, min: &str, max: &str) -> Read<Option<Range>> {
        let read = |keyword: &str| match self.fields.get(keyword) {
            None => Ok(None),
            // 2.0 is an integer as well.
            Some(Value::Number(number)) if number.as_f64().is_some_and(|n| n >= 0.0 && n.fract() == 0.0) => {
                Ok(Some(number.as_u64().unwrap_or_else(|| number.as_f64().unwrap_or_default() as u64)))
            }
            Some(_) => refuse(&self.at.field(keyword), "a whole number that is not negative is wanted"),
        };
        let (min, max) = (read(min)?, read(max)?);
        Ok((min.is_some() || max.is_some()).then(|| Range { min: min.unwrap_or(0), max }))
    }
}

/// A step of a JSON pointer in a URI.
fn unescaped(step: &str) -> String {
    let mut bytes = Vec::with_capacity(step.len());
    let mut rest = step.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.filter(|_| *first == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).replace("~1", "/").replace("~0", "~")
}
