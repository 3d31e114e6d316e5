//! Checks whether a config fits the schema in a guest's manifest.
//!
//! The schema comes from a guest, so it is checked once, when its module is loaded. [`ConfigSchema::compile`] walks it, replaces each
//! `$ref` by the schema that it names, and refuses by name what is too large or what it cannot bound. The result is a tree, and
//! [`ConfigSchema::check`] counts its steps. So neither can take more time or memory than the limits here say. Still, call neither under a
//! lock or on a thread of the runtime: the worst schema takes about a second.

mod at;
mod check;
mod compile;

use std::sync::Arc;

use pintle_core::reconciler;
use pintle_wit::{Failure, Manifest, reasons, views::ViewsManifest};
use serde_json::{Map, Value};

use compile::Schema;

/// The most schemas, values of `enum` and names in total, each counted as often as a `$ref` leads to it: about a hundred times what the
/// sample guests have.
pub const NODES_MAX: usize = 10_000;
/// The most bytes of names and values of `enum` in total, counted in the same way: as many as in a whole manifest.
pub const BYTES_MAX: usize = 1 << 20;
/// The most different patterns.
pub const PATTERNS_MAX: usize = 100;
/// The size of a compiled pattern, in bytes. This is enough for about 2,000 characters of source.
pub const PATTERN_BYTES_MAX: usize = 64 << 10;
/// The deepest nesting of schemas, where a `$ref` counts as one level. The contract has 64 levels of JSON, and a schema takes two.
pub const DEPTH_MAX: usize = 64;
/// The most steps for the check of one config. A step takes about 50 ns. A config of a hundred fields takes a few thousand.
pub const STEPS_MAX: u64 = 10_000_000;

/// The compiled schema of a guest's config. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ConfigSchema(Arc<Compiled>);

#[derive(Debug)]
struct Compiled {
    /// None if the guest takes no config.
    root: Option<Schema>,
    patterns: Vec<String>,
    /// Whether any rule depends on which fields or items other rules have evaluated.
    unevaluated: bool,
}

/// Why a schema is refused.
#[derive(Clone, Debug)]
pub struct Refused {
    /// `ConfigSchemaInvalid`, with the path in the manifest.
    pub failure: Failure,
    /// The limit that the schema exceeds, if it exceeds one.
    pub excess: Option<Excess>,
}

/// A limit that a schema can exceed.
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

/// Checks whether this host can run a guest with this manifest and its schema.
///
/// # Errors
/// As [`reconciler::supports`] and [`ConfigSchema::compile`].
pub fn supports(manifest: &Manifest) -> Result<ConfigSchema, Refused> {
    reconciler::supports(manifest)?;
    ConfigSchema::compile(manifest.config_schema.as_ref())
}

/// Checks whether this host can serve the views of a guest with this manifest and its schema.
///
/// # Errors
/// As [`ConfigSchema::compile`].
pub fn supports_views(manifest: &ViewsManifest) -> Result<ConfigSchema, Refused> {
    ConfigSchema::compile(manifest.config_schema.as_ref())
}

impl ConfigSchema {
    /// Compiles the schema that a manifest has, or none. The time is bounded by the limits above, whatever the schema says.
    ///
    /// # Errors
    /// `ConfigSchemaInvalid`, with the path: `configSchema.properties.suffix.$ref`.
    pub fn compile(schema: Option<&Value>) -> Result<Self, Refused> {
        let compiled = match schema {
            None => Compiled { root: None, patterns: Vec::new(), unevaluated: false },
            Some(schema) => {
                let walk = compile::Walk::new(schema);
                let (root, patterns, unevaluated) = walk.run()?;
                Compiled { root: Some(root), patterns, unevaluated }
            }
        };
        Ok(Self(Arc::new(compiled)))
    }

    /// Whether the guest takes no config, so that there is nothing to check.
    pub fn takes_none(&self) -> bool {
        self.0.root.is_none()
    }

    /// Checks a Reconciler's config.
    ///
    /// # Errors
    /// `ConfigInvalid`, with the path of the first field at fault: `spec.config.domainSuffix`. `ConfigTooExpensive` if the check needs more
    /// steps than [`STEPS_MAX`].
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

/// The error for a config of a guest that takes none. It names the first field, so that the user knows what to remove.
fn takes_none(config: &Value) -> Failure {
    let path = match config.as_object().and_then(|fields| fields.keys().next()) {
        Some(name) => at::At::root("spec.config").field(name).path(),
        None => "spec.config".into(),
    };
    Failure::terminal(reasons::CONFIG_INVALID, "this guest takes no config; remove it").at(path)
}

#[cfg(test)]
mod tests;
