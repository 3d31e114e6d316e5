//! Makes values that a schema allows, to find what a guest does not expect of them: fields that are absent or that nobody declares, long
//! lists, numbers at their limits, letters of any language.
//!
//! What is made depends on nothing but the seed of the runner. A value that breaks something shrinks: optional fields go, lists get
//! shorter, numbers and texts get plain.

mod scalar;

pub use scalar::{hard, is_hard};

use std::collections::BTreeSet;

use proptest::{
    collection::vec,
    option,
    sample::select,
    strategy::{Just, NewTree, Strategy, ValueTree},
    test_runner::{Reason, TestRunner},
};
use serde_json::{Map, Value};

use crate::shape::{List, Shape};

/// The fields of an object that are not in its schema: they are the same for every kind.
const OF_EVERY_OBJECT: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The name of a field that no schema declares.
const UNDECLARED: &str = "addedLater";

/// How many fields or items deep values are made before only what is required is left.
const DEPTH_MAX: usize = 7;
/// The most items of a list that is not in another one. Most lists are short.
const LONG: usize = 80;
const SHORT: usize = 4;

/// The values of a place in an object.
#[derive(Clone, Debug)]
pub struct Values<'a> {
    shape: Shape<'a>,
    scope: Scope<'a>,
    /// Fields that are there although the schema does not require them.
    always: &'a [&'a str],
    /// Whether fields are made that nobody declares.
    has_undeclared: bool,
    depth: usize,
    is_in_list: bool,
}

/// Which fields below a place are wanted.
#[derive(Clone, Debug)]
enum Scope<'a> {
    /// Every one.
    Whole,
    /// Those at these paths, and what is required beside them.
    At(Vec<&'a [String]>),
}

/// A tree that shrinks a value.
type Tree<'a, T> = Box<dyn ValueTree<Value = T> + 'a>;

impl<'a> Values<'a> {
    /// The objects of a schema, without `apiVersion`, `kind` and `metadata`. Of the optional fields, those at or below `paths` are made;
    /// the fields in `always` are made even where the schema does not require them. Now and then there is a field that nobody declares, as
    /// in an object of a later version of the kind.
    pub fn of_objects(shape: Shape<'a>, paths: &'a [Vec<String>], always: &'a [&'a str]) -> Self {
        let scope = Scope::At(paths.iter().map(Vec::as_slice).collect());
        Self { shape, scope, always, has_undeclared: true, depth: 0, is_in_list: false }
    }

    /// The objects of a schema with any of the fields that it declares, but without `apiVersion`, `kind` and `metadata`.
    pub fn of_whole_objects(shape: Shape<'a>) -> Self {
        Self { shape, scope: Scope::Whole, always: &[], has_undeclared: false, depth: 0, is_in_list: false }
    }

    fn below(&self, shape: Shape<'a>, scope: Scope<'a>, is_in_list: bool) -> Self {
        let (depth, is_in_list) = (self.depth + 1, self.is_in_list || is_in_list);
        Self { shape, scope, always: &[], depth, is_in_list, ..self.clone() }
    }

    /// The field of this name: how likely it is there. None if it is not to be made.
    fn field(&self, name: &str, shape: Shape<'a>, likely: f64) -> Option<Field<'a>> {
        let is_given =
            self.is_required(name) || shape.get("default").is_some() || self.always.contains(&name);
        let (scope, likely) = match &self.scope {
            Scope::Whole => (Scope::Whole, likely),
            Scope::At(paths) => {
                let matching = paths.iter().filter_map(|path| path.split_first());
                let below: Vec<&[String]> =
                    matching.filter(|(first, _)| *first == name).map(|(_, rest)| rest).collect();
                if below.is_empty() && !is_given {
                    return None;
                }
                match below.iter().any(|rest| rest.is_empty()) {
                    true => (Scope::Whole, 0.9),
                    false => (Scope::At(below), 0.9),
                }
            }
        };
        let likely = if is_given { None } else { Some(likely) };
        let is_possible = likely.is_none() || self.depth < DEPTH_MAX;
        is_possible.then(|| Field { likely, values: self.below(shape, scope, false) })
    }

    fn is_required(&self, name: &str) -> bool {
        let required = self.shape.get("required").and_then(Value::as_array);
        required.into_iter().flatten().any(|one| one == name)
    }

    fn object(&self, runner: &mut TestRunner) -> NewTree<Self> {
        let is_reserved = |name: &str| self.depth == 0 && OF_EVERY_OBJECT.contains(&name);
        let declared: Vec<_> = self.shape.fields().filter(|(name, _)| !is_reserved(name)).collect();
        // Of a kind with many fields an object has but a few, so that what breaks stays readable.
        let few = (4.0 / declared.len().max(1) as f64).clamp(0.1, 0.5);
        let likely = if self.depth < 3 { few } else { few / 2.0 };
        let (names, fields): (Vec<String>, Vec<Field<'a>>) = declared
            .into_iter()
            .filter_map(|(name, shape)| Some((name.clone(), self.field(name, shape, likely)?)))
            .unzip();
        let is_declared_only = self.shape.get("additionalProperties").is_none() && !names.is_empty();
        let has_undeclared = self.has_undeclared
            && is_declared_only
            && matches!(self.scope, Scope::Whole)
            && self.depth < DEPTH_MAX
            && scalar::one_in(runner, 8);
        let undeclared = vec(scalar::anything(), 0..=usize::from(has_undeclared));
        let entries = vec((scalar::key(), self.entry()), 0..=self.entries());
        let whole = (fields, undeclared, entries).prop_map(move |(values, undeclared, entries)| {
            let fields = names.iter().cloned().zip(values).filter_map(|(name, value)| Some((name, value?)));
            let undeclared = undeclared.into_iter().map(|value| (UNDECLARED.to_owned(), value));
            Value::Object(entries.into_iter().chain(undeclared).chain(fields).collect::<Map<_, _>>())
        });
        tree(&whole, runner)
    }

    /// How many fields an object may have whose names the schema leaves open.
    fn entries(&self) -> usize {
        let is_open = match self.shape.get("additionalProperties") {
            Some(additional) => additional != &Value::Bool(false),
            None => self.shape.is_open() && self.shape.fields().next().is_none(),
        };
        if is_open && self.depth < DEPTH_MAX && matches!(self.scope, Scope::Whole) { SHORT } else { 0 }
    }

    /// A field whose name the schema leaves open.
    fn entry(&self) -> Self {
        let shape = self.shape.member("").unwrap_or(self.shape);
        self.below(shape, Scope::Whole, true)
    }

    fn list(&self, runner: &mut TestRunner) -> NewTree<Self> {
        let limit = |keyword| self.shape.get(keyword).and_then(Value::as_u64);
        let least = limit("minItems").and_then(|items| usize::try_from(items).ok()).unwrap_or(0);
        let is_long = !self.is_in_list && scalar::one_in(runner, 10);
        let most = match (self.depth < DEPTH_MAX, is_long) {
            (false, _) => least,
            (true, true) => LONG,
            (true, false) => SHORT,
        };
        let most = limit("maxItems").and_then(|items| usize::try_from(items).ok()).unwrap_or(most).min(most);
        let keys: Option<Vec<String>> = match self.shape.list() {
            List::Atomic if self.shape.get("uniqueItems") != Some(&Value::Bool(true)) => None,
            List::Atomic | List::Set => Some(Vec::new()),
            List::Map(keys) => Some(keys.into_iter().map(ToOwned::to_owned).collect()),
        };
        let items = self.below(self.shape.items(), Scope::Whole, true);
        let list = vec(items, least..=most.max(least)).prop_map(move |items| {
            Value::Array(match &keys {
                None => items,
                Some(keys) => distinct(items, keys),
            })
        });
        tree(&list, runner)
    }
}

/// The items without those that equal an earlier one, or have its keys.
fn distinct(items: Vec<Value>, keys: &[String]) -> Vec<Value> {
    let mut seen = BTreeSet::new();
    let identity = |item: &Value| match keys {
        [] => item.to_string(),
        keys => {
            keys.iter().map(|key| item.get(key).map(Value::to_string).unwrap_or_default() + "/").collect()
        }
    };
    items.into_iter().filter(|item| seen.insert(identity(item))).collect()
}

impl<'a> Strategy for Values<'a> {
    type Tree = Tree<'a, Value>;
    type Value = Value;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        let shape = self.shape;
        if shape.get("nullable") == Some(&Value::Bool(true)) && scalar::one_in(runner, 6) {
            return tree(&Just(Value::Null), runner);
        }
        if let Some(Value::Array(values)) = shape.get("enum")
            && !values.is_empty()
        {
            return tree(&select(values.clone()), runner);
        }
        match shape.type_name() {
            _ if shape.is_int_or_string() => tree(&scalar::int_or_string(), runner),
            _ if shape.is_quantity() => tree(&scalar::quantity(), runner),
            Some("object") => self.object(runner),
            Some("array") => self.list(runner),
            Some("string") => tree(&scalar::text(shape), runner),
            Some("integer") => tree(&scalar::integer(shape), runner),
            Some("number") => tree(&scalar::number(shape), runner),
            Some("boolean") => tree(&scalar::boolean(), runner),
            _ if shape.fields().next().is_some() => self.object(runner),
            _ => tree(&scalar::anything(), runner),
        }
    }
}

fn tree<'a, T, S>(strategy: &S, runner: &mut TestRunner) -> Result<Tree<'a, T>, Reason>
where
    S: Strategy<Value = T, Tree: 'a>,
{
    Ok(Box::new(strategy.new_tree(runner)?))
}

/// A field of an object.
#[derive(Clone, Debug)]
struct Field<'a> {
    /// How likely it is there; none if it always is.
    likely: Option<f64>,
    values: Values<'a>,
}

impl<'a> Strategy for Field<'a> {
    type Tree = Tree<'a, Option<Value>>;
    type Value = Option<Value>;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        let values = self.values.clone();
        match self.likely {
            None => tree(&values.prop_map(Some), runner),
            Some(likely) => tree(&option::weighted(likely, values), runner),
        }
    }
}

/// The metadata of objects, as guests see them: a name, a namespace where the kind has them, and sometimes labels, annotations and times.
pub fn metadata(is_namespaced: bool) -> impl Strategy<Value = Map<String, Value>> {
    let optional = (
        option::weighted(0.4, scalar::strings()),
        option::weighted(0.3, scalar::strings()),
        option::weighted(0.1, Just("2000-01-02T00:00:00Z")),
    );
    (scalar::name(), optional).prop_map(move |(name, (labels, annotations, deletion))| {
        let mut metadata = Map::new();
        metadata.insert("name".into(), name.into());
        metadata.extend(is_namespaced.then(|| ("namespace".into(), "default".into())));
        metadata.insert("creationTimestamp".into(), "2000-01-01T00:00:00Z".into());
        metadata.extend(labels.map(|labels| ("labels".into(), labels)));
        metadata.extend(annotations.map(|annotations| ("annotations".into(), annotations)));
        metadata.extend(deletion.map(|time| ("deletionTimestamp".into(), time.into())));
        metadata
    })
}

#[cfg(test)]
mod tests;
