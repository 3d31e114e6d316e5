//! The file format.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use pintle_offline::documents;
use pintle_preview::{ModuleChoice, PlanRequest};
use pintle_wit::ObjectRef;
use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

use super::short;

/// A scenario, as in its file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Scenario {
    /// What it shows, in a sentence.
    pub about: String,
    /// It runs only on one backend.
    pub only: Option<Only>,
    /// Faults that no run of it on the simulator has.
    pub without: Option<Without>,
    /// Nothing else runs at the same time, because it changes what all scenarios share.
    #[serde(default)]
    pub alone: bool,
    /// Custom kinds of its own, by name. Each is served as `acceptance.pintle.dev/v1`.
    #[serde(default)]
    pub kinds: BTreeMap<String, CustomKind>,
    /// Modules by name. Those that no `push` step names exist from the start.
    #[serde(default)]
    pub modules: BTreeMap<String, ModuleFile>,
    /// The objects that exist from the start.
    #[serde(default)]
    pub objects: Vec<Value>,
    /// What happens.
    pub steps: Vec<ScenarioStep>,
    /// Requests that the API server refuses to the host with 403, as `verb resource`. The RBAC test allows these only in this scenario.
    #[serde(default)]
    pub forbidden: Vec<String>,
}

/// A scenario that only one backend can run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Only {
    /// The backend.
    pub on: OnlyOn,
    /// Why the others cannot run it.
    pub because: String,
}

/// Faults that no plan for the scenario has, because its steps expect something that these faults prevent: for instance, that the root is
/// still the same object.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Without {
    /// The faults, by their words in plans: `recreate`.
    pub faults: Vec<String>,
    /// What the steps expect.
    pub because: String,
}

/// The backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnlyOn {
    /// A real control plane.
    Real,
    /// The API server in memory, without faults.
    Simulator,
}

/// How much of the host's status a custom kind declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CustomKind {
    /// All of it, as CRDs that we generate.
    HostStatus,
    /// None of it, only the guest's field `size`.
    NoHostStatus,
    /// All of it, but its conditions are a list that every writer replaces completely.
    AtomicConditions,
    /// There is no status subresource.
    NoStatus,
    /// All of it, and its objects are cluster-scoped.
    ClusterScope,
}

/// The bytes of a module. One of the first four fields is set.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ModuleFile {
    /// A guest of this repository, as built by `cargo xtask guests`: `darkroom`, or `darkroom-next`, a later version.
    pub guest: Option<String>,
    /// A guest that misbehaves.
    pub fixture: Option<Fixture>,
    /// A guest that always returns this answer.
    pub answers: Option<Value>,
    /// Bytes that are not a guest.
    pub bytes: Option<Bytes>,
    /// For `fixture` and `answers`: the custom kind that it reconciles.
    pub reconciles: Option<String>,
    /// For `fixture` and `answers`: its kinds of children, as `v1/ConfigMap`.
    pub children: Vec<String>,
    /// For `fixture` and `answers`: its manifest declares a finalizer.
    pub finalizer: bool,
    /// The kinds of `children` that it observes.
    pub observes: Vec<String>,
    /// For `fixture` and `answers`: further fields of its manifest, for instance `patches`.
    pub manifest: serde_json::Map<String, Value>,
    /// The bytes end with a section without a meaning, so that they are another module with the same answers.
    pub padded: bool,
    /// The digest in its Module, if it is not that of the bytes.
    pub digest: Option<String>,
    /// A Reconciler of the module's name exists from the start, made after `objects`. It is for `reconciles`, which is then a custom kind
    /// without being named in `kinds`; it grants `children`, and its spec has these fields besides or instead.
    pub reconciler: Option<serde_json::Map<String, Value>>,
    /// For `reconciler`: the names of roots that exist from the start. Their spec is empty.
    pub roots: Vec<String>,
}

impl ModuleFile {
    /// The bytes of a guest of this repository.
    pub fn of_guest(name: &str) -> Self {
        Self { guest: Some(name.into()), ..Self::default() }
    }
}

/// The ways in which a guest can misbehave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "each says it")]
pub enum Fixture {
    Traps,
    Loops,
    Allocates,
    Recurses,
    Returns8MiB,
    OutOfBounds,
    BrokenJson,
    ImportsWasi,
    WithoutReconcile,
    CompileBomb,
    AsksAnew,
    Fails,
}

/// Bytes that are not a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Bytes {
    /// A sentence.
    #[serde(rename = "text")]
    Text,
    /// No bytes.
    #[serde(rename = "empty")]
    Empty,
    /// A core module of WebAssembly.
    #[serde(rename = "core")]
    Core,
    /// More bytes than a module may have.
    #[serde(rename = "20MB")]
    TooMany,
}

/// One action, and what is expected of it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ScenarioStep {
    /// What the step is about.
    pub name: String,
    /// Applies objects, as kubectl does.
    #[serde(default)]
    pub apply: Vec<Value>,
    /// Changes an object by a JSON merge patch.
    pub patch: Option<Edit>,
    /// Deletes an object.
    pub delete: Option<Deletion>,
    /// Uploads a module of `modules`.
    pub push: Option<String>,
    /// Names another module in a Reconciler.
    pub swap: Option<Swap>,
    /// What a plan says before the swap, or before a patch of a Reconciler.
    pub plan: Option<PlanExpectation>,
    /// Changes a child without the host, by a JSON merge patch.
    #[serde(rename = "edit-child")]
    pub edit_child: Option<Edit>,
    /// Stops the host.
    #[serde(rename = "stop-host")]
    pub stop_host: Option<Stop>,
    /// Starts the host that was stopped.
    #[serde(rename = "start-host")]
    pub start_host: Option<bool>,
    /// Lets time pass.
    #[serde(default, deserialize_with = "some_duration")]
    pub advance: Option<Duration>,
    /// The API server must refuse the apply, with a message that contains this.
    pub refused: Option<String>,
    /// What must hold afterwards.
    #[serde(default)]
    pub expect: Vec<Expectation>,
    /// How soon it must hold.
    #[serde(default = "within", deserialize_with = "duration")]
    pub within: Duration,
    /// For how long it must hold then.
    #[serde(default, deserialize_with = "some_duration")]
    pub holds_for: Option<Duration>,
    /// How many mutating calls the host may have made since the step began.
    pub mutating_calls: Option<Calls>,
    /// The users that made the host's successful mutating calls since the step began, by resource: all of these and no others. `host`
    /// stands for the host itself.
    #[serde(default)]
    pub made_as: BTreeMap<String, BTreeSet<String>>,
}

/// A number of the host's calls: all of them, or by resource.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Calls {
    /// All of them.
    All(usize),
    /// By resource, as `configmaps` or `darkrooms/status`. Other resources are not counted.
    Of(BTreeMap<String, usize>),
}

/// A change of an object.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// Which object: `apps/v1/Deployment/web`, or field by field. Without a namespace, it is in `$NS`.
    #[serde(deserialize_with = "short::object")]
    pub object: ObjectRef,
    /// The JSON merge patch.
    pub patch: Value,
}

/// A deletion.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Deletion {
    /// Which object: `apps/v1/Deployment/web`, or field by field. Without a namespace, it is in `$NS`.
    #[serde(deserialize_with = "short::object")]
    pub object: ObjectRef,
    /// What happens to the objects that it owns.
    #[serde(default)]
    pub cascade: Cascade,
}

/// What happens to the objects that a deleted object owns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cascade {
    /// They are deleted after their owner.
    #[default]
    Background,
    /// They are deleted before their owner.
    Foreground,
    /// They stay.
    Orphan,
}

/// Another module for a Reconciler.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Swap {
    /// The Reconciler.
    pub reconciler: String,
    /// The Module.
    pub module: String,
}

/// What a plan of a swap says. The swap must then do exactly that, and afterwards every root must be one that can be recorded as a golden
/// case.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanExpectation {
    /// Everything that becomes of children and of patched objects: `update ConfigMap photos`.
    pub says: BTreeSet<String>,
    /// Some of the fields that differ in them: `data.PORT`.
    #[serde(default)]
    pub fields: BTreeSet<String>,
    /// Everything that changes in the guest's status: `status.size`. It is compared only for a module that always answers the same. The
    /// status of others follows their children.
    #[serde(default)]
    pub status: BTreeSet<String>,
    /// The roots fail with the module.
    #[serde(default)]
    pub fails: bool,
    /// Texts that nothing shows: neither the plan, nor an inspection of a root, nor its case.
    #[serde(default)]
    pub never: BTreeSet<String>,
}

/// How the host is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stop {
    /// It is asked to stop, and may finish its work.
    Gracefully,
    /// It is killed.
    Killed,
}

/// What must hold for an object. Several expectations may be combined.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Expectation {
    /// Which object: `apps/v1/Deployment/web`, or field by field. Without a namespace, it is in `$NS`.
    #[serde(deserialize_with = "short::object")]
    pub object: ObjectRef,
    /// It has these fields. `null` stands for an absent field, and a list must have exactly these items.
    pub matches: Option<Value>,
    /// It does not exist.
    #[serde(default)]
    pub absent: bool,
    /// An Event about it has this reason.
    pub event: Option<String>,
    /// It has this condition.
    #[serde(default, deserialize_with = "short::some_condition")]
    pub condition: Option<ConditionIs>,
    /// Whether it is the object that existed when the step began, or another one.
    pub uid: Option<UidIs>,
}

/// A condition of an object: `Ready=True`, with a reason `Ready=False GuestTrapped`, or field by field.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConditionIs {
    /// Its type.
    pub r#type: String,
    /// Its status.
    pub status: String,
    /// Its reason.
    pub reason: Option<String>,
    /// A text that its message contains.
    pub message: Option<String>,
}

/// Whether an object is still the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UidIs {
    /// It is the object that existed when the step began.
    Same,
    /// It is another one.
    New,
}

impl Scenario {
    /// Reads a scenario. `file` is its name in messages.
    ///
    /// # Errors
    /// With the file and the place, if the text is not a scenario.
    pub fn read(file: &str, text: &str) -> anyhow::Result<Self> {
        let mut scenario: Self = documents::parse_one(file, text)?;
        scenario.add_bindings();
        scenario.check().map_err(|what| anyhow::anyhow!("{file}: {what}"))?;
        Ok(scenario)
    }

    /// Whether a step stops the host. Then nothing may run at the same time.
    pub fn is_alone(&self) -> bool {
        self.alone || self.steps.iter().any(|step| step.stop_host.is_some())
    }

    /// Whether the last expectation about a root's condition Ready is that it is not True.
    pub fn expects_unready(&self, root: &ObjectRef) -> bool {
        let expected = self.steps.iter().flat_map(|step| &step.expect);
        let is_it = |object: &ObjectRef| object.kind() == root.kind() && object.name == root.name;
        let about_it = expected.filter(|expected| is_it(&expected.object));
        about_it.filter_map(Expectation::expects_ready).next_back() == Some(false)
    }

    fn check(&self) -> Result<(), String> {
        if self.only.as_ref().is_some_and(|only| only.because.trim().is_empty()) {
            return Err("only needs a reason: because".into());
        }
        if self.without.as_ref().is_some_and(|without| without.because.trim().is_empty()) {
            return Err("without needs a reason: because".into());
        }
        for (name, module) in &self.modules {
            let sources = [
                module.guest.is_some(),
                module.fixture.is_some(),
                module.answers.is_some(),
                module.bytes.is_some(),
            ];
            if sources.iter().filter(|given| **given).count() != 1 {
                return Err(format!("modules.{name}: one of guest, fixture, answers and bytes is needed"));
            }
            let is_for_a_kind =
                module.fixture.is_some() || module.answers.is_some() || module.reconciler.is_some();
            if is_for_a_kind && module.reconciles.is_none() {
                return Err(format!("modules.{name}: reconciles is needed"));
            }
            if !module.roots.is_empty() && module.reconciler.is_none() {
                return Err(format!("modules.{name}: roots need a reconciler"));
            }
        }
        for (index, step) in self.steps.iter().enumerate() {
            step.check(self).map_err(|what| format!("steps[{index}] ({}): {what}", step.name))?;
        }
        Ok(())
    }
}

impl Expectation {
    /// Whether this expects the object to be Ready, if it says anything about it.
    fn expects_ready(&self) -> Option<bool> {
        let is = |name: &str, status: &str| match name {
            "Ready" => Some(status == "True"),
            "Stalled" if status == "True" => Some(false),
            _ => None,
        };
        let listed = self.matches.as_ref().and_then(|matches| matches.pointer("/status/conditions"));
        let mut listed = listed.and_then(Value::as_array).into_iter().flatten();
        let condition = self.condition.as_ref().and_then(|one| is(&one.r#type, &one.status));
        condition.or_else(|| listed.find_map(|one| is(one["type"].as_str()?, one["status"].as_str()?)))
    }
}

impl ScenarioStep {
    /// The request for a plan of the step's swap, or of its patch of a Reconciler.
    pub(super) fn plan_request(&self) -> Option<PlanRequest> {
        if let Some(swap) = &self.swap {
            return Some(PlanRequest {
                reconciler: swap.reconciler.clone(),
                module: Some(ModuleChoice::Named(swap.module.clone())),
                ..PlanRequest::default()
            });
        }
        let edit = self.patch.as_ref().filter(|edit| edit.object.kind == "Reconciler")?;
        let module = edit.patch.pointer("/spec/module").and_then(Value::as_str);
        Some(PlanRequest {
            reconciler: edit.object.name.clone(),
            module: module.map(|name| ModuleChoice::Named(name.into())),
            config: edit.patch.pointer("/spec/config").cloned(),
            ..PlanRequest::default()
        })
    }

    fn check(&self, scenario: &Scenario) -> Result<(), String> {
        let actions = [
            !self.apply.is_empty(),
            self.patch.is_some(),
            self.delete.is_some(),
            self.push.is_some(),
            self.swap.is_some(),
            self.edit_child.is_some(),
            self.stop_host.is_some(),
            self.start_host.is_some(),
            self.advance.is_some(),
        ];
        if actions.iter().filter(|given| **given).count() > 1 {
            return Err("a step does one thing; make it two steps".into());
        }
        if self.refused.is_some() && self.apply.is_empty() && self.patch.is_none() {
            return Err("refused is about apply and patch".into());
        }
        if self.plan.is_some() && self.plan_request().is_none() {
            return Err("plan is about swap, and about patch of a Reconciler".into());
        }
        if let Some(name) = self.push.as_ref().filter(|name| !scenario.modules.contains_key(*name)) {
            return Err(format!("push: modules has no {name}"));
        }
        for (index, expected) in self.expect.iter().enumerate() {
            let says = expected.matches.is_some()
                || expected.absent
                || expected.event.is_some()
                || expected.condition.is_some()
                || expected.uid.is_some();
            if !says {
                return Err(format!(
                    "expect[{index}]: one of matches, absent, event, condition and uid is needed"
                ));
            }
        }
        Ok(())
    }
}

fn within() -> Duration {
    Duration::from_secs(30)
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    let read = || {
        let (number, unit) = text.split_at(text.find(|letter: char| !letter.is_ascii_digit())?);
        let milliseconds = match unit {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            _ => return None,
        };
        Some(Duration::from_millis(number.parse::<u64>().ok()?.saturating_mul(milliseconds)))
    };
    let wanted = "a duration: 500ms, 30s, 2m";
    read().ok_or_else(|| de::Error::invalid_value(de::Unexpected::Str(&text), &wanted))
}

fn some_duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    duration(deserializer).map(Some)
}

#[cfg(test)]
mod tests;
