//! A guest's config.

use std::sync::Arc;

use serde_json::Value;

use crate::desired::hash_parts;

/// A config, and its hash: it is compared far more often than it changes. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Config {
    value: Arc<Value>,
    hash: [u8; 32],
}

impl Config {
    /// What the guest is given.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The hash of that.
    pub fn hash(&self) -> &[u8; 32] {
        &self.hash
    }
}

impl From<Value> for Config {
    fn from(value: Value) -> Self {
        // It has string keys alone, so that writing it as JSON cannot fail.
        let hash = hash_parts(&[&serde_json::to_vec(&value).unwrap_or_default()]);
        Self { value: Arc::new(value), hash }
    }
}

impl Default for Config {
    fn default() -> Self {
        Value::Null.into()
    }
}

impl PartialEq for Config {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
    }
}
