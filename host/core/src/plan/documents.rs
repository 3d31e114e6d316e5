//! The documents that say what an answer would change. The command line prints them and the console sends them, so they are the same.

use pintle_wit::{Condition, Failure, Kind, ObjectRef};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What would become of a root.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedRoot {
    /// The root.
    pub root: RootRef,
    /// In one word.
    pub verdict: Verdict,
    /// Why there would be no answer, or why it could not be carried out.
    pub failure: Option<Problem>,
    /// Whether the root fails now, for whatever reason. Absent where nothing says so.
    pub fails_now: Option<bool>,
    /// Whether the guest has given an answer that may be carried out, and only what it would change may not be known.
    pub has_answer: bool,
    /// What could not be known.
    pub unknown: Vec<Unknown>,
    /// What stands against the root's children now. A swap forgets it, and the API server may say it again.
    pub standing_refusals: Vec<Standing>,
    /// Why nothing would be done, whatever the guest says.
    pub note: Option<String>,
    /// The children of the answer, and those that it no longer has.
    pub children: Vec<ChildChange>,
    /// The objects that the answer patches.
    pub patches: Vec<ChildChange>,
    /// The Pods that would be evicted.
    pub evictions: Vec<ObjectRef>,
    /// The guest's status fields and conditions that would change, and the root's finalizers.
    pub status: Option<StatusChanges>,
}

/// A root, by its names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RootRef {
    /// Group and version of its kind.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

impl PlannedRoot {
    /// Whether the root would fail, and does not fail now.
    pub fn fails_newly(&self) -> bool {
        self.failure.is_some() && self.fails_now != Some(true)
    }
}

impl RootRef {
    /// The names of a live root.
    pub fn of(root: &Value) -> Self {
        let ObjectRef { api_version, kind, namespace, name } = crate::object::reference(root);
        Self { api_version, kind, namespace, name, uid: crate::object::uid(root).into() }
    }

    /// The same names without the uid.
    pub fn reference(&self) -> ObjectRef {
        ObjectRef {
            api_version: self.api_version.clone(),
            kind: self.kind.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }
}

/// What would become of a root, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// Nothing would change.
    Unchanged,
    /// Something would.
    Changed,
    /// There would be no answer that may be carried out.
    Fails,
    /// It cannot be told.
    Unknown,
}

/// Why something would fail.
// The console's API has a Problem of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Failure")]
pub struct Problem {
    /// One word in CamelCase.
    pub reason: String,
    /// For a person.
    pub message: String,
    /// The field at fault.
    pub path: Option<String>,
}

impl Problem {
    /// The message behind the path.
    pub fn with_path(&self) -> String {
        let at = self.path.as_ref().map_or_else(String::new, |path| format!("{path}: "));
        format!("{at}{}", self.message)
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        Self { reason: failure.reason, message: failure.message, path: failure.path }
    }
}

/// Something that could not be known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Unknown {
    /// What.
    pub what: String,
    /// Why not.
    pub why: String,
}

/// What the root's Ready says of a refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Standing {
    /// The reason.
    pub reason: String,
    /// The message.
    pub message: String,
}

/// What would become of an object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChildChange {
    /// The object.
    pub reference: ObjectRef,
    /// In one word.
    pub change: Change,
    /// Why, where the word does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The fields that differ.
    pub fields: Vec<FieldChange>,
    /// How many Pods there are of a workload that would be deleted or whose Pod template would change.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pods: usize,
    /// The same as a unified diff of YAML, with a word in the place of what nobody is to read.
    pub diff: String,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// What would become of an object, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// It would be made.
    Create,
    /// It would be changed.
    Update,
    /// It would be deleted.
    Delete,
    /// It would stay as it is.
    Unchanged,
    /// It cannot be told.
    Unknown,
    /// It would become the root's, and be changed.
    Adopt,
    /// It is somebody else's, and would stay so.
    Conflict,
}

impl Change {
    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Unchanged => "unchanged",
            Self::Unknown => "unknown",
            Self::Adopt => "adopt",
            Self::Conflict => "conflict",
        }
    }

    /// Whether something would be written.
    pub fn writes(self) -> bool {
        matches!(self, Self::Create | Self::Update | Self::Delete | Self::Adopt)
    }
}

/// A field that differs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FieldChange {
    /// The field: `spec.template.spec.containers[name=web].image`.
    pub path: String,
    /// Its value now; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Value>,
    /// Its value then; absent where it goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Value>,
}

/// What would change in a root.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusChanges {
    /// The fields.
    pub changes: Vec<FieldChange>,
}

/// What a plan comes to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// The Reconciler.
    pub reconciler: String,
    /// The module that was asked.
    pub module: ModuleName,
    /// The module in force.
    pub in_force: Option<ModuleName>,
    /// How many roots there are.
    pub roots: Roots,
    /// How many of the roots that would fail would be changed all the same, or may be, by what of their answer can be carried out.
    pub partial: usize,
    /// What would change, by kind and path, the most frequent first.
    pub changes: Vec<SummaryLine>,
    /// The objects that would be deleted, 1000 at most. Pods that would be evicted are not among them.
    pub deletions: Vec<ObjectRef>,
    /// How many objects would be deleted.
    pub deletion_count: usize,
    /// How many Pods would be replaced, because the Pod template of their workload would change, or because they would be evicted.
    pub restarts: usize,
    /// How many Pods would end, because their workload would be deleted.
    pub stops: usize,
    /// The kinds that the module uses and the one in force does not, with what the host must be allowed to do with them.
    pub new_kinds: Vec<KindRights>,
    /// The command that lets the host do that; none where it may already.
    pub role_command: Option<String>,
    /// What was cut.
    pub limits: Limits,
    /// How long it took.
    pub seconds: f64,
}

impl Summary {
    /// Whether the host lacks a right that the module needs, as far as that is known.
    pub fn lacks_rights(&self) -> bool {
        self.new_kinds.iter().flat_map(|new| &new.missing).any(|missing| !missing.is_empty())
    }

    /// Whether something would change. `None` if that cannot be told.
    pub fn would_change(&self) -> Option<bool> {
        let Roots { changed, newly_failing, unknown, .. } = self.roots;
        if changed + newly_failing + self.partial > 0 {
            Some(true)
        } else if unknown > 0 {
            None
        } else {
            Some(false)
        }
    }
}

/// A module, by name and digest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModuleName {
    /// Its name, or that of its file.
    pub name: String,
    /// Its digest.
    pub digest: String,
}

/// How many roots there are. Each is one of `unchanged`, `changed`, `fails` and `unknown`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Roots {
    /// All that were looked at.
    pub total: usize,
    /// Those that stay as they are.
    pub unchanged: usize,
    /// Those that would change.
    pub changed: usize,
    /// Those that would fail, also where a part of their answer can be carried out.
    pub fails: usize,
    /// Those among them that do not fail now.
    pub newly_failing: usize,
    /// Those of which it cannot be told.
    pub unknown: usize,
}

/// What would change in several roots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SummaryLine {
    /// The kind of the objects.
    pub kind: String,
    /// The field; empty where whole objects come or go.
    pub path: String,
    /// What becomes of it.
    pub change: Change,
    /// In how many objects.
    pub count: usize,
    /// One of them.
    pub example: Example,
}

/// One of several objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Example {
    /// Its namespace.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

/// A kind, and what the host must be allowed to do with its objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KindRights {
    /// Group and version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The verbs of Kubernetes' RBAC.
    pub verbs: Vec<String>,
    /// Those that the host may not use, as the API server says; null where that is not known.
    pub missing: Option<Vec<String>>,
    /// Whether the Reconciler grants it. If not, answers with it would be refused.
    pub granted: bool,
}

/// What a plan left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Whether there were more kinds and paths than are listed, or more roots than the console sends.
    pub truncated: bool,
}

/// The module that a root was put before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JudgedModule {
    /// Its name, or that of its file.
    pub name: String,
    /// Its digest.
    pub digest: String,
    /// Whether it is the one in force.
    pub in_force: bool,
}

/// A root's request and answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Inspected {
    /// The Reconciler.
    pub reconciler: String,
    /// The module that was asked.
    pub module: JudgedModule,
    /// When.
    pub as_of: String,
    /// The request of the last call; none where the guest is not asked.
    pub request: Option<Value>,
    /// The answer after the gate, without what the host adds to children.
    pub answer: Option<Value>,
    /// Why there is none.
    pub failure: Option<Problem>,
    /// Why nothing would be done, whatever the guest says.
    pub note: Option<String>,
    /// The root's condition Ready.
    pub ready: Option<Condition>,
    /// The children, wanted and live.
    pub children: Vec<InspectedChild>,
    /// What could not be known.
    pub unknown: Vec<Unknown>,
    /// Whether a word stands in the place of what nobody is to read: values of Secrets, and what a view or a CRD marks.
    pub secrets_replaced: bool,
}

/// A child, wanted and live.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InspectedChild {
    /// What becomes of it.
    #[serde(flatten)]
    pub change: ChildChange,
    /// As the answer has it.
    pub wanted: Option<Value>,
    /// As it is, without managed fields.
    pub live: Option<Value>,
}

impl KindRights {
    /// One kind with these verbs.
    pub fn of(kind: &Kind, verbs: &[&str], granted: bool) -> Self {
        Self {
            api_version: kind.api_version.clone(),
            kind: kind.kind.clone(),
            verbs: verbs.iter().map(|verb| (*verb).into()).collect(),
            missing: None,
            granted,
        }
    }
}
