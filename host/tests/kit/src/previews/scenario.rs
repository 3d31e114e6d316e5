//! The scenarios as they stand in scenarios.yaml.

use std::collections::BTreeSet;

use pintle_core::plan::Verdict;
use pintle_wit::{Kind, ObjectRef};
use serde::Deserialize;
use serde_json::Value;

/// A scenario as it stands in the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Scenario {
    pub(super) name: String,
    /// The whole answer of a guest.
    pub(super) before: Option<Value>,
    /// The answer of the other module; without it that one fails, or is this repository's guest.
    pub(super) after: Option<Value>,
    pub(super) fails: Option<Value>,
    /// A guest of this repository.
    pub(super) guest: Option<String>,
    pub(super) r#for: Option<Kind>,
    pub(super) grants: Option<Value>,
    /// The other module has other bytes.
    #[serde(default)]
    pub(super) padded: bool,
    #[serde(default)]
    pub(super) config: Value,
    pub(super) then: Option<Value>,
    #[serde(default)]
    pub(super) roots: Vec<Value>,
    #[serde(default)]
    pub(super) beside: Vec<Value>,
    #[serde(default)]
    pub(super) edits: Vec<Edit>,
    /// What must be planned, and what must happen: `update ConfigMap a`.
    pub(super) changes: BTreeSet<String>,
    /// Fields that the plan must name.
    #[serde(default)]
    pub(super) paths: Vec<String>,
    /// The fields of the status that the plan must name. Not compared for a guest of this repository, whose status follows its children.
    #[serde(default)]
    pub(super) status: BTreeSet<String>,
    pub(super) verdict: Option<Verdict>,
    /// What must not stand anywhere in a plan.
    #[serde(default)]
    pub(super) never: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Edit {
    pub(super) object: ObjectRef,
    pub(super) patch: Option<Value>,
    pub(super) create: Option<Value>,
    #[serde(default)]
    pub(super) adopt: bool,
    #[serde(default)]
    pub(super) delete: bool,
}
