//! Whether a config fits the schema that a guest's manifest has for it.
//!
//! The schema comes from a guest, so it is judged once, when its module is loaded: [`ConfigSchema::compile`] walks it, puts what a
//! `$ref` names in the place of the `$ref`, and refuses by name what is too large and what it does not know how to bound. What is left
//! is a tree, and [`ConfigSchema::check`] counts its steps: neither can take more time or memory than the limits here say. Neither
//! belongs under a lock or on a thread of the runtime all the same: the worst schema takes about a second.

mod at;
mod check;
mod compile;
mod pattern;

use std::sync::Arc;

use pintle_core::reconciler;
use pintle_wit::{Failure, Manifest, reasons};
use serde_json::{Map, Value};

use compile::Schema;

/// How many schemas, values of `enum` and names there may be in all, each counted as often as a `$ref` leads to it: some hundred
/// times what the sample guests have.
pub const NODES_MAX: usize = 10_000;
/// How many bytes of names and values of `enum` there may be in all, counted in the same way: as many as in a whole manifest.
pub const BYTES_MAX: usize = 1 << 20;
/// How many different patterns there may be.
pub const PATTERNS_MAX: usize = 100;
/// The size of a compiled pattern, in bytes: some 2,000 characters as they stand.
pub const PATTERN_BYTES_MAX: usize = 64 << 10;
/// How deep schemas may lie within one another, a `$ref` counted as one level. The contract has 64 levels of JSON, and a schema takes two.
pub const DEPTH_MAX: usize = 64;
/// How many steps checking one config may take; one is some 50 ns. A config of a hundred fields takes a few thousand.
pub const STEPS_MAX: u64 = 10_000_000;

/// The schema of a guest's config, judged and ready. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ConfigSchema(Arc<Compiled>);

#[derive(Debug)]
struct Compiled {
    /// None for a guest that takes no config.
    root: Option<Schema>,
    patterns: Vec<String>,
    /// Whether any schema asks which fields or items others have looked at.
    unevaluated: bool,
}

/// Why a schema is not taken.
#[derive(Clone, Debug)]
pub struct Refused {
    /// `ConfigSchemaInvalid`, with the path in the manifest.
    pub failure: Failure,
    /// What there is too much of, where it is that.
    pub excess: Option<Excess>,
}

/// What a schema may have too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// See [`NODES_MAX`].
    Nodes,
    /// See [`BYTES_MAX`].
    Bytes,
    /// See [`DEPTH_MAX`].
    Depth,
    /// See [`PATTERNS_MAX`].
    Patterns,
    /// See [`PATTERN_BYTES_MAX`].
    PatternBytes,
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        refused.failure
    }
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self { failure, excess: None }
    }
}

/// Whether this host can run a guest with this manifest, its schema included.
///
/// # Errors
/// As [`reconciler::supports`] and [`ConfigSchema::compile`].
pub fn supports(manifest: &Manifest) -> Result<ConfigSchema, Refused> {
    reconciler::supports(manifest)?;
    ConfigSchema::compile(manifest)
}

impl ConfigSchema {
    /// Judges the schema of a manifest. Takes time in proportion to what it has and to the limits above, whatever it says.
    ///
    /// # Errors
    /// `ConfigSchemaInvalid`, with the path: `configSchema.properties.suffix.$ref`.
    pub fn compile(manifest: &Manifest) -> Result<Self, Refused> {
        let compiled = match &manifest.config_schema {
            None => Compiled { root: None, patterns: Vec::new(), unevaluated: false },
            Some(schema) => {
                let walk = compile::Walk::new(schema);
                let (root, patterns, unevaluated) = walk.run()?;
                Compiled { root: Some(root), patterns, unevaluated }
            }
        };
        Ok(Self(Arc::new(compiled)))
    }

    /// Whether there is nothing to look at: the guest takes no config.
    pub fn takes_none(&self) -> bool {
        self.0.root.is_none()
    }

    /// Checks a Reconciler's config.
    ///
    /// # Errors
    /// `ConfigInvalid`, with the path of the first field at fault: `spec.config.domainSuffix`; `ConfigTooExpensive` where that cannot be
    /// said within [`STEPS_MAX`].
    pub fn check(&self, config: &Value) -> Result<(), Failure> {
        let Compiled { root, patterns, unevaluated } = &*self.0;
        let is_empty = config.is_null() || config.as_object().is_some_and(Map::is_empty);
        let Some(root) = root else {
            return if is_empty { Ok(()) } else { Err(takes_none(config)) };
        };
        let nothing = Value::Object(Map::new());
        let config = if config.is_null() { &nothing } else { config };
        check::check(root, patterns, *unevaluated, config)
    }
}

/// What is wrong with a config of a guest that takes none: its first field, so that somebody finds what is to go.
fn takes_none(config: &Value) -> Failure {
    let path = match config.as_object().and_then(|fields| fields.keys().next()) {
        Some(name) => at::At::root("spec.config").field(name).path(),
        None => "spec.config".into(),
    };
    Failure::terminal(reasons::CONFIG_INVALID, "this guest takes no config; remove it").at(path)
}

#[cfg(test)]
mod tests;
