//! A compiled schema: a tree with a node for each place of an object.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    Bounds, Unsupported,
    format::Format,
    found::{Counted, Found},
    lists,
    rule::Rule,
};
use crate::pattern;

/// The keywords of one place, as they stand in the schema.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Keywords {
    #[serde(rename = "type")]
    pub(super) type_name: Option<String>,
    format: Option<String>,
    pub(super) nullable: bool,
    pub(super) required: Vec<String>,
    #[serde(rename = "enum")]
    pub(super) allowed: Option<Vec<Value>>,
    pub(super) minimum: Option<f64>,
    pub(super) maximum: Option<f64>,
    pub(super) exclusive_minimum: bool,
    pub(super) exclusive_maximum: bool,
    pub(super) multiple_of: Option<f64>,
    pub(super) min_length: Option<u64>,
    pub(super) max_length: Option<u64>,
    pub(super) min_items: Option<u64>,
    pub(super) max_items: Option<u64>,
    pub(super) min_properties: Option<u64>,
    pub(super) max_properties: Option<u64>,
    pattern: Option<String>,
    default: Option<Value>,
    properties: BTreeMap<String, Value>,
    additional_properties: Option<Value>,
    items: Option<Value>,
    all_of: Vec<Value>,
    any_of: Vec<Value>,
    one_of: Vec<Value>,
    not: Option<Value>,
    #[serde(rename = "x-kubernetes-int-or-string")]
    pub(super) int_or_string: bool,
    #[serde(rename = "x-kubernetes-preserve-unknown-fields")]
    pub(super) preserves_unknown: bool,
    #[serde(rename = "x-kubernetes-embedded-resource")]
    pub(super) is_embedded: bool,
    #[serde(rename = "x-kubernetes-list-type")]
    list_type: Option<String>,
    #[serde(rename = "x-kubernetes-list-map-keys")]
    list_keys: Vec<String>,
    #[serde(rename = "x-kubernetes-validations")]
    rules: Vec<Value>,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

/// Keywords that do not affect what the API server does with an object.
const WITHOUT_EFFECT: [&str; 10] = [
    "deprecated",
    "description",
    "example",
    "examples",
    "externalDocs",
    "readOnly",
    "title",
    "writeOnly",
    "x-kubernetes-map-type",
    "$schema",
];

/// The letters of a rule that count as a schema.
const RULE_BYTES_A_NODE: usize = 4;

/// The fields of a map that `properties` does not name.
#[derive(Debug)]
pub(super) enum Additional {
    Any,
    Of(Box<Node>),
}

/// What the items of a list have in common.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum List {
    Atomic,
    Set,
    /// Items are told apart by these fields.
    Map(Vec<String>),
}

/// The schema of one place.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) words: Keywords,
    pub(super) format: Option<Format>,
    pub(super) pattern: Option<String>,
    pub(super) default: Option<Value>,
    pub(super) properties: BTreeMap<String, Node>,
    pub(super) additional: Option<Additional>,
    pub(super) items: Option<Box<Node>>,
    pub(super) list: List,
    pub(super) all_of: Vec<Node>,
    pub(super) any_of: Vec<Node>,
    pub(super) one_of: Vec<Node>,
    pub(super) not: Option<Box<Node>>,
    pub(super) rules: Vec<Rule>,
    /// Whether this place or one below it has rules.
    pub(super) has_rules: bool,
    /// Whether this place or one below it has rules about the old value.
    pub(super) has_transitions: bool,
}

/// Compiles the places of a schema, and counts what they have in them.
pub(super) struct Walk {
    bounds: Bounds,
    nodes: usize,
    patterns: BTreeSet<String>,
}

impl Walk {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self { bounds, nodes: 0, patterns: BTreeSet::new() }
    }

    /// Compiles the schema of the place at `path`.
    pub(super) fn node(&mut self, schema: &Value, path: &str) -> Result<Node, Unsupported> {
        let place = Place(path);
        let mut words = keywords(schema, path)?;
        self.count(&words, &place)?;
        let format = match words.format.as_deref() {
            Some(name) => Format::of(name, words.type_name.as_deref())
                .map_err(|()| place.unsupported(&format!("the format {name}")))?,
            None => None,
        };
        let pattern = words.pattern.take();
        if let Some(pattern) = &pattern {
            self.pattern(pattern, &place)?;
        }
        let mut properties = BTreeMap::new();
        for (name, schema) in std::mem::take(&mut words.properties) {
            let node = self.node(&schema, &below(path, &name))?;
            properties.insert(name, node);
        }
        let additional = match words.additional_properties.take() {
            None | Some(Value::Bool(false)) => None,
            Some(Value::Bool(true)) => Some(Additional::Any),
            Some(schema) => Some(Additional::Of(Box::new(self.node(&schema, &format!("{path}.*"))?))),
        };
        let list = match words.list_type.as_deref() {
            Some("set") => List::Set,
            Some("map") => List::Map(std::mem::take(&mut words.list_keys)),
            _ => List::Atomic,
        };
        let rules: Result<Vec<Rule>, _> = words.rules.iter().map(Rule::compile).collect();
        let mut node = Node {
            format,
            pattern,
            default: words.default.take(),
            properties,
            additional,
            items: self.one(words.items.take(), &format!("{path}[]"))?,
            list,
            all_of: self.several(std::mem::take(&mut words.all_of), path)?,
            any_of: self.several(std::mem::take(&mut words.any_of), path)?,
            one_of: self.several(std::mem::take(&mut words.one_of), path)?,
            not: self.one(words.not.take(), path)?,
            rules: rules.map_err(|why| place.unsupported(&why))?,
            has_rules: false,
            has_transitions: false,
            words,
        };
        node.has_rules = !node.rules.is_empty() || node.below().any(|node| node.has_rules);
        node.has_transitions =
            node.rules.iter().any(|rule| rule.is_transition) || node.below().any(|node| node.has_transitions);
        Ok(node)
    }

    fn one(&mut self, schema: Option<Value>, path: &str) -> Result<Option<Box<Node>>, Unsupported> {
        schema.map(|schema| self.node(&schema, path).map(Box::new)).transpose()
    }

    fn several(&mut self, schemas: Vec<Value>, path: &str) -> Result<Vec<Node>, Unsupported> {
        schemas.iter().map(|schema| self.node(schema, path)).collect()
    }

    /// Counts a schema, before anything is made of what it has in it. The text of a rule takes about as long to compile as a schema for
    /// every few letters.
    fn count(&mut self, words: &Keywords, place: &Place<'_>) -> Result<(), Unsupported> {
        let values = words.allowed.as_ref().map_or(0, Vec::len);
        let rules: usize =
            words.rules.iter().map(|rule| 1 + rule.to_string().len() / RULE_BYTES_A_NODE).sum();
        self.nodes += 1 + values + words.required.len() + words.list_keys.len() + rules;
        if self.nodes > self.bounds.nodes {
            let most = self.bounds.nodes;
            return Err(place.excess(&format!("more than {most} schemas, names, values of enum and rules")));
        }
        Ok(())
    }

    /// Looks at a pattern once. It is compiled again for each validation.
    fn pattern(&mut self, text: &str, place: &Place<'_>) -> Result<(), Unsupported> {
        if !self.patterns.insert(text.to_owned()) {
            return Ok(());
        }
        let Bounds { patterns, pattern_bytes, .. } = self.bounds;
        if self.patterns.len() > patterns {
            return Err(place.excess(&format!("more than {patterns} different patterns")));
        }
        match pattern::compile(text, pattern_bytes) {
            Ok(_) => Ok(()),
            Err(pattern::Refused::TooLarge) => {
                let most = pattern_bytes >> 10;
                Err(place.excess(&format!("a pattern of more than {most} KiB when it is compiled")))
            }
            Err(pattern::Refused::Unknown) => Err(place.unsupported(&format!("the pattern {text:?}"))),
        }
    }
}

impl Node {
    /// The schemas whose rules apply within values of this one.
    fn below(&self) -> impl Iterator<Item = &Self> {
        let additional = match &self.additional {
            Some(Additional::Of(node)) => Some(node),
            _ => None,
        };
        let boxed = additional.into_iter().chain(&self.items).map(|node| &**node);
        self.properties.values().chain(&self.all_of).chain(boxed)
    }

    /// The schema of a field, declared or not.
    pub(super) fn field(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or(match &self.additional {
            Some(Additional::Of(node)) => Some(node),
            _ => None,
        })
    }

    /// The types that a value may have; none if any will do.
    pub(super) fn types(&self) -> Vec<&str> {
        match self.words.int_or_string {
            true => vec!["integer", "string"],
            false => self.words.type_name.as_deref().into_iter().collect(),
        }
    }

    /// The items of an older list with the same keys as these, in their order.
    pub(super) fn old_items<'a>(
        &self,
        old: Option<&'a Value>,
        items: &[Value],
        found: &mut Found,
    ) -> Counted<Vec<Option<&'a Value>>> {
        let (List::Map(keys), Some(Value::Array(olds))) = (&self.list, old) else {
            return Ok(vec![None; items.len()]);
        };
        found.spend(keys.len().saturating_mul(items.len() + olds.len()))?;
        // Of several with the same keys, the first counts.
        let by_keys: BTreeMap<String, &Value> =
            olds.iter().rev().map(|old| (lists::key(keys, old).to_string(), old)).collect();
        Ok(items.iter().map(|item| by_keys.get(&lists::key(keys, item).to_string()).copied()).collect())
    }
}

/// The keywords of one place. Null counts as absent, as when the API server reads a CRD.
fn keywords(schema: &Value, path: &str) -> Result<Keywords, Unsupported> {
    let place = Place(path);
    let given: Map<String, Value> = match schema {
        Value::Null => Map::new(),
        Value::Object(given) => given.clone().into_iter().filter(|(_, value)| !value.is_null()).collect(),
        _ => return Err(place.unsupported("a schema that is not an object")),
    };
    let words: Keywords = serde_json::from_value(Value::Object(given))
        .map_err(|error| place.unsupported(&format!("a keyword that cannot be read ({error})")))?;
    // A keyword that is false has no effect.
    let mut others = words.others.iter().filter(|(_, value)| **value != Value::Bool(false));
    match others.find(|(keyword, _)| !WITHOUT_EFFECT.contains(&keyword.as_str())) {
        Some((keyword, _)) => Err(place.unsupported(keyword)),
        None => Ok(words),
    }
}

fn below(path: &str, name: &str) -> String {
    if path.is_empty() { name.into() } else { format!("{path}.{name}") }
}

struct Place<'a>(&'a str);

impl Place<'_> {
    fn unsupported(&self, what: &str) -> Unsupported {
        let what = match self.0 {
            "" => format!("{what} in the schema"),
            path => format!("{what} in {path} of the schema"),
        };
        Unsupported { what, is_excess: false }
    }

    fn excess(&self, what: &str) -> Unsupported {
        Unsupported { is_excess: true, ..self.unsupported(what) }
    }
}
