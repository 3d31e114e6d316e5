//! Structural schemas: what the API server does with an object of a custom kind by the schema of its CRD.
//!
//! A write takes these steps, in this order:
//!
//! 1. [`prune`](Structural::prune) removes the fields that the schema does not have, and nulls where none may be;
//! 2. [`default`](Structural::default) sets the defaults;
//! 3. [`validate`](Structural::validate) checks types, bounds, formats, lists and embedded objects, and evaluates the CEL rules.
//!
//! The schema may be that of a whole object, as in a CRD, or leave out apiVersion, kind and metadata, as that of a view does: these
//! fields are those of every object, so they are never pruned.
//!
//! The reasons and messages are the API server's own. These differ from it:
//!
//! * Rules see fields with the formats `date-time`, `byte` and `duration` as text.
//! * The cost of rules is estimated before they are evaluated, so a rule can be refused that would have turned out cheap.
//! * Of several combined schemas (`anyOf`, `oneOf`) that do not fit, the errors of the first are told.
//! * Embedded objects whose metadata cannot be read are refused when they are validated, and not when they are decoded. Their metadata is
//!   checked for its types alone.
//! * A bound of whole numbers that has a fraction is cut to a whole number, and is not an error.
//!
//! Guests are hostile, so a guest's schema is held to the bounds below, and its defaults and a validation with it count their steps. Its
//! bytes and its depth are those of a manifest, which has no `$ref` here to grow by.

mod cost;
mod defaults;
mod embedded;
pub(crate) mod expression;
pub(crate) mod format;
mod found;
mod lists;
mod node;
mod patterns;
mod prune;
mod rule;
mod rules;
mod values;

use std::{collections::BTreeSet, fmt, sync::Arc};

use pintle_wit::Cause;
use serde_json::Value;

use self::{
    found::{Counted, Found, OutOfSteps},
    node::{Node, Walk},
};
use crate::{cause::invalid_null, nearest::did_you_mean};

/// The most schemas, names, values of `enum` and rules, whose text counts too: about a hundred times what the sample guests have.
const NODES_MAX: usize = 10_000;
/// The most different patterns.
const PATTERNS_MAX: usize = 100;
/// The size of a compiled pattern, in bytes. This is enough for about 2,000 characters of source.
const PATTERN_BYTES_MAX: usize = 64 << 10;
/// The most steps for the defaults of one object, or a validation of it. A step takes about 50 ns. An object of a hundred fields takes a
/// few thousand.
pub(crate) const STEPS_MAX: u64 = 10_000_000;

/// A compiled schema. A clone is the same schema.
#[derive(Clone, Debug)]
pub struct Structural {
    root: Arc<Node>,
    bounds: Bounds,
}

/// How much a schema may have in it, and how many steps its defaults, and a validation with it, may take.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    nodes: usize,
    patterns: usize,
    pattern_bytes: usize,
    steps: u64,
}

impl Bounds {
    const GUEST: Self =
        Self { nodes: NODES_MAX, patterns: PATTERNS_MAX, pattern_bytes: PATTERN_BYTES_MAX, steps: STEPS_MAX };
    /// A pattern may be as large as the `regex` crate has it.
    const NONE: Self =
        Self { nodes: usize::MAX, patterns: usize::MAX, pattern_bytes: 10 << 20, steps: u64::MAX };
}

/// Something in a schema that the API server observes and this program does not, with its place; or a bound that it exceeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// What it is, and where.
    pub what: String,
    /// Whether it is a bound that is exceeded.
    pub is_excess: bool,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Unsupported {}

/// After an error of one of these reasons, the API server does not evaluate the rules.
const BLOCKING: [&str; 5] = [
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
];

const NOT_CHECKED: &str = "some validation rules were not checked because the object was invalid; correct the existing errors to complete \
                           validation";

impl Structural {
    /// Compiles the schema of a guest, which the bounds above hold for.
    ///
    /// # Errors
    /// The schema has a keyword, a format, a pattern or a rule that is not evaluated here, or more than a guest may have.
    pub fn compile(schema: &Value) -> Result<Self, Unsupported> {
        Self::within(Bounds::GUEST, schema)
    }

    /// Compiles the `openAPIV3Schema` of a CRD, which an administrator has applied.
    ///
    /// # Errors
    /// As [`Self::compile`], without bounds.
    pub fn of_crd(schema: &Value) -> Result<Self, Unsupported> {
        Self::within(Bounds::NONE, schema)
    }

    fn within(bounds: Bounds, schema: &Value) -> Result<Self, Unsupported> {
        let mut root = Walk::new(bounds).node(schema, "")?;
        prune_defaults(&mut root);
        Ok(Self { root: Arc::new(root), bounds })
    }

    /// Whether a rule compares an object with what it was before.
    pub fn has_transition_rules(&self) -> bool {
        self.root.has_transitions
    }

    /// Removes the fields that the schema does not have, and returns their paths, sorted: `spec.ports[0].nmae`. Those in the
    /// metadata of embedded objects come last. A field that is null
    /// although it is not nullable is removed as well, unless it has a default. The object's own metadata stays as it is.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        prune::root(&self.root, object)
    }

    /// `; did you mean replicas?` for a field that [`Self::prune`] has removed, or nothing.
    pub fn did_you_mean(&self, path: &str) -> String {
        let (within, name) = path.rsplit_once('.').unwrap_or(("", path));
        let mut steps = within.split(['.', '[']).filter(|step| !step.is_empty());
        let node = steps.try_fold(&*self.root, |node, step| {
            if step.ends_with(']') { node.items.as_deref() } else { node.field(step) }
        });
        let known = node.into_iter().flat_map(|node| node.properties.keys());
        did_you_mean(name, known.map(String::as_str))
    }

    /// Sets the defaults of the fields that the object leaves out, also within defaults.
    ///
    /// # Errors
    /// When a guest's schema has so many of them for the object that it would become too large. Not all are set then. A CRD has no bounds.
    pub fn default(&self, object: &mut Value) -> Result<(), Cause> {
        let mut found = Found::new(Vec::new(), self.bounds.steps);
        let set = defaults::set(&self.root, object, &mut found);
        set.map_err(|OutOfSteps| out_of_steps("setting the defaults of the schema"))
    }

    /// Sets the defaults of an object, and finds what [`Self::validate_after`] does then. When there are too many defaults, that is the one
    /// cause.
    pub fn admit(&self, found: Vec<Cause>, object: &mut Value, old: Option<&Value>) -> Vec<Cause> {
        match self.default(object) {
            Ok(()) => self.validate_after(found, object, old),
            Err(cause) => vec![cause],
        }
    }

    /// Everything in an object that its schema forbids, compared with the object as it was before, if it was. What has not changed is not
    /// held against an object, except by rules about the change.
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<Cause> {
        self.validate_after(Vec::new(), object, old)
    }

    /// The same for an object in which other errors were found, for instance in its metadata. They come first in the result. If the values
    /// of an object do not fit, its rules are not evaluated.
    pub fn validate_after(&self, found: Vec<Cause>, object: &Value, old: Option<&Value>) -> Vec<Cause> {
        let found = self.find(found, object, old);
        found.unwrap_or_else(|OutOfSteps| vec![out_of_steps("checking it against the schema")])
    }

    /// The same, where too many steps are no cause.
    pub(crate) fn find(&self, found: Vec<Cause>, object: &Value, old: Option<&Value>) -> Counted<Vec<Cause>> {
        let mut found = Found::new(found, self.bounds.steps);
        self.check(object, old, &mut found)?;
        let mut once = BTreeSet::new();
        let is_new =
            |cause: &Cause| once.insert((cause.field.clone(), cause.reason.clone(), cause.message.clone()));
        Ok(found.causes.into_iter().filter(is_new).collect())
    }

    fn check(&self, object: &Value, old: Option<&Value>, found: &mut Found) -> Counted {
        patterns::within(self.bounds, || values::check(&self.root, object, old, "", found))?;
        found.causes.extend(embedded::misfits(&self.root, object));
        let were_distinct = match old {
            Some(old) => found.aside(|found| lists::check(&self.root, old, "", found))?.is_empty(),
            None => true,
        };
        if were_distinct {
            lists::check(&self.root, object, "", found)?;
        }
        if !self.root.has_rules {
            return Ok(());
        }
        match found.causes.iter().any(|cause| BLOCKING.contains(&cause.reason.as_str())) {
            true => found.push(invalid_null(NOT_CHECKED)),
            false => patterns::within(self.bounds, || rules::check(&self.root, object, old, found)),
        }
    }
}

fn out_of_steps(doing: &str) -> Cause {
    invalid_null(&format!(
        "{doing} takes more than {STEPS_MAX} steps; make the object smaller, or the schema simpler"
    ))
}

/// Defaults have no unknown fields either.
fn prune_defaults(node: &mut Node) {
    if let Some(mut default) = node.default.take() {
        prune::value(node, &mut default);
        node.default = Some(default);
    }
    node.properties.values_mut().for_each(prune_defaults);
    if let Some(node::Additional::Of(member)) = &mut node.additional {
        prune_defaults(member);
    }
    if let Some(member) = &mut node.items {
        prune_defaults(member);
    }
}

#[cfg(test)]
mod tests;
