//! The host's own custom resources: `Module`, `Reconciler` and `View` of group `pintle.dev`, all of cluster scope.

#![allow(unreachable_pub, reason = "KubeSchema writes each struct once more, inside a block of its own")]

mod layout;
mod user;
mod view;

pub use layout::{ModuleObjects, module_objects};
pub use user::ModuleUser;
pub use view::{ActiveView, Aggregated, Rest, Serve, View, ViewSpec, ViewStatus};

use kube::{CustomResource, KubeSchema};
use pintle_core::{
    account::{Account, AccountRule},
    desired::{hash_parts, hex},
    reasons,
    reconciler::{Grants, Limits},
};
use pintle_wit::{Condition, Failure, Kind};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// The namespace that the host lives in.
pub const NAMESPACE: &str = "pintle-system";

/// The Service in that namespace that leads to the gateway.
pub const GATEWAY_SERVICE: &str = "pintle-gateway";

/// The longest name of a field manager, in bytes.
const MANAGER_BYTES_MAX: usize = 128;

/// One immutable guest binary, known by its digest.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "pintle.dev",
    version = "v1alpha1",
    kind = "Module",
    status = "ModuleStatus",
    shortname = "pmod",
    category = "pintle",
    doc = "One immutable guest binary, known by its digest.",
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type=='Ready')].status"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.conditions[?(@.type=='Ready')].reason"),
    printcolumn(name = "Guest", type_ = "string", json_path = ".status.manifest.name"),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.manifest.version"),
    printcolumn(name = "Used-By", type_ = "string", json_path = ".status.usedBy[*]"),
    printcolumn(name = "Size", type_ = "integer", json_path = ".status.size", priority = 1),
    printcolumn(name = "Digest", type_ = "string", json_path = ".spec.digest", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.spec == oldSelf.spec").message("a Module is immutable: push the new bytes under another name, and swap")
)]
#[serde(rename_all = "camelCase")]
pub struct ModuleSpec {
    /// The digest of the bytes: `sha256:` and 64 hex digits. They are checked against it at every load.
    #[schemars(regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    pub digest: String,
    /// Where the bytes are.
    pub source: ModuleSource,
}

/// Where a module's bytes are. Exactly one of its fields is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.configMap)").message("a source is needed: configMap"))]
pub struct ModuleSource {
    /// In a ConfigMap, or in several when they are large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map: Option<ConfigMapSource>,
}

/// Bytes in the `binaryData` of ConfigMaps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMapSource {
    /// The namespace of the ConfigMap; the host may read those in its own.
    pub namespace: String,
    /// The name of the ConfigMap. Further parts are in `<name>.1`, `<name>.2`, and so on.
    pub name: String,
    /// The key that holds the bytes.
    pub key: String,
    /// How many ConfigMaps the bytes are spread over: one holds at most 1 MiB.
    #[serde(default = "one_part", skip_serializing_if = "is_one_part")]
    #[schemars(range(min = 1, max = 64))]
    pub parts: u32,
}

fn one_part() -> u32 {
    1
}

fn is_one_part(parts: &u32) -> bool {
    *parts == 1
}

impl ConfigMapSource {
    /// The names of the ConfigMaps, in the order of their bytes.
    pub fn names(&self) -> Vec<String> {
        (0..self.parts)
            .map(|part| if part == 0 { self.name.clone() } else { format!("{}.{part}", self.name) })
            .collect()
    }
}

/// What the host found out about a module.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModuleStatus {
    /// The generation that the status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The size of the bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The contract that the component exports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<String>,
    /// What the guest declares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub manifest: Option<Value>,
    /// How long compiling took, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compile_milliseconds: Option<u64>,
    /// The version of the host that compiled the module and asked it for its manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_by: Option<String>,
    /// The Reconcilers and Views that want the module or have it in force, and the Reconcilers that have it in their history; a View as
    /// `view/` and its name. While there are any, the Module cannot go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used_by: Vec<String>,
    /// Fetched, Verified, Compiled and Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

/// The binding of one kind of custom resource to a module, with what its guest may do.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "pintle.dev",
    version = "v1alpha1",
    kind = "Reconciler",
    status = "ReconcilerStatus",
    shortname = "prec",
    category = "pintle",
    doc = "The binding of one kind of custom resource to a module, with what its guest may do.",
    printcolumn(name = "Kind", type_ = "string", json_path = ".spec.for.kind"),
    printcolumn(name = "Module", type_ = "string", json_path = ".status.active.module"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type=='Ready')].status"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.conditions[?(@.type=='Ready')].reason"),
    printcolumn(name = "Roots", type_ = "integer", json_path = ".status.roots.total"),
    printcolumn(name = "Failing", type_ = "integer", json_path = ".status.roots.failing"),
    printcolumn(name = "Roots-Reason", type_ = "string", json_path = ".status.conditions[?(@.type=='RootsReady')].reason"),
    printcolumn(name = "Wanted", type_ = "string", json_path = ".spec.module", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("size(self.metadata.name) <= 63").message("a Reconciler's name becomes a label on every child, so it has at most 63 characters")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.fieldManager) == has(oldSelf.fieldManager) && (!has(self.fieldManager) || self.fieldManager == oldSelf.fieldManager)")
        .message("fieldManager is immutable: under another name every field that was set would be left behind")
)]
pub struct ReconcilerSpec {
    /// The kind of custom resource that is reconciled: the kind of the roots.
    #[x_kube(validation = Rule::new("self == oldSelf").message("for is immutable: make another Reconciler"))]
    pub r#for: Kind,
    /// The Module that is wanted. It comes into force when it is ready; until then the one before stays.
    #[schemars(length(min = 1))]
    pub module: String,
    /// The namespaces whose roots are reconciled: `All`, or a list.
    #[serde(default)]
    pub namespaces: Namespaces,
    /// Namespaces in which Secrets that are children are watched, so that what others change there is put right at once. The host
    /// must be allowed to list and watch Secrets there: kubectl apply -n NAMESPACE -f deploy/namespace/secrets.yaml
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watch_secrets_in: Vec<String>,
    /// What the guest may do.
    #[serde(default)]
    pub grants: Grants,
    /// The limits of the guest's calls and answers.
    #[serde(default)]
    pub limits: Limits,
    /// How a new module comes into force.
    #[serde(default)]
    pub rollout: Rollout,
    /// The account that children are read and written as; the host's own when left out. The status of roots and Events stay the host's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<ServiceAccountRef>,
    /// The field manager of children and statuses; default `pintle-<kind>.<group>` of `for`, so that another Reconciler for the kind
    /// takes over what this one has set. It may not be shared with a Reconciler for another kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub field_manager: Option<String>,
    /// The guest's config, as its module's manifest has the schema of.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    #[schemars(schema_with = "any_object")]
    pub config: Value,
    /// Stop working, and leave everything as it is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,
}

/// The namespaces whose roots are reconciled.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Namespaces {
    /// Every namespace.
    #[default]
    All,
    /// These.
    Listed(Vec<String>),
    /// Neither: refused when the Reconciler is looked at. A schema cannot say "a string or a list", and an object that could not
    /// be read at all would hide every other one from the watch.
    Invalid(Value),
}

impl Serialize for Namespaces {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::All => serializer.serialize_str("All"),
            Self::Listed(names) => names.serialize(serializer),
            Self::Invalid(value) => value.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Namespaces {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        if value == "All" {
            return Ok(Self::All);
        }
        Ok(match serde_json::from_value::<Vec<String>>(value.clone()) {
            Ok(names) if !names.is_empty() => Self::Listed(names),
            _ => Self::Invalid(value),
        })
    }
}

impl schemars::JsonSchema for Namespaces {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Namespaces".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"x-kubernetes-preserve-unknown-fields": true})
    }
}

impl Namespaces {
    /// Whether roots of this namespace are reconciled.
    pub fn includes(&self, namespace: Option<&str>) -> bool {
        match self {
            Self::All => true,
            Self::Listed(names) => {
                namespace.is_some_and(|namespace| names.iter().any(|name| name == namespace))
            }
            Self::Invalid(_) => false,
        }
    }
}

/// How a new module comes into force.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rollout {
    /// Immediate: for all roots at once, as soon as it is ready.
    #[serde(default)]
    pub strategy: RolloutStrategy,
}

/// The ways in which a new module can come into force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub enum RolloutStrategy {
    /// For all roots at once.
    #[default]
    Immediate,
}

/// A ServiceAccount: by namespace and name, or by a field of the root.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.fromRoot) ? !has(self.__namespace__) && !has(self.name) : has(self.__namespace__) && has(self.name)")
    .message("a service account is named by namespace and name, or by fromRoot"))]
pub struct ServiceAccountRef {
    /// Its namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub namespace: Option<String>,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub name: Option<String>,
    /// The field of the root that names it, in the root's namespace: `spec.serviceAccountName`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub from_root: Option<String>,
}

impl ServiceAccountRef {
    /// The rule that this says.
    ///
    /// # Errors
    /// `SpecInvalid`, when it says none, or two.
    pub fn rule(&self) -> Result<AccountRule, Failure> {
        let invalid =
            |message: String| Failure::terminal(reasons::SPEC_INVALID, message).at("spec.serviceAccount");
        match (self.namespace.as_deref(), self.name.as_deref(), self.from_root.as_deref()) {
            (Some(namespace), Some(name), None) => {
                let account = Account::new(namespace, name).map_err(|wrong| invalid(wrong.to_string()))?;
                Ok(AccountRule::Named(account))
            }
            (None, None, Some(path)) if !path.is_empty() => Ok(AccountRule::FromRoot(path.into())),
            _ => Err(invalid("a service account is named by namespace and name, or by fromRoot".into())),
        }
    }
}

impl ReconcilerSpec {
    /// The field manager of children and statuses. By default it is that of the kind in any version, so that another Reconciler for the
    /// kind takes over what the one before has set. It has a dot, and that of a root's patches has none.
    pub fn manager(&self) -> String {
        if let Some(manager) = &self.field_manager {
            return manager.clone();
        }
        let kind = &self.r#for;
        let name = format!("pintle-{}.{}", kind.kind.to_lowercase(), kind.group());
        if name.len() <= MANAGER_BYTES_MAX {
            return name;
        }
        let mut hash = hex(&hash_parts(&[name.as_bytes()]));
        hash.truncate(32);
        format!("{}-{hash}", name.get(..MANAGER_BYTES_MAX - 1 - hash.len()).unwrap_or_default())
    }

    /// As whom children are read and written; nothing means as the host.
    ///
    /// # Errors
    /// `SpecInvalid`, when the account is not named as it must be.
    pub fn account_rule(&self) -> Result<Option<AccountRule>, Failure> {
        self.service_account.as_ref().map(ServiceAccountRef::rule).transpose()
    }

    /// Whether this host can do what the Reconciler asks for. What it cannot is refused by name, never passed over.
    ///
    /// # Errors
    /// `SpecInvalid` for what the schema cannot rule out, with the field's path.
    pub fn supported(&self) -> Result<(), Failure> {
        if let Namespaces::Invalid(value) = &self.namespaces {
            let message = format!("namespaces is All, or a list of at least one name, not {value}");
            return Err(Failure::terminal(reasons::SPEC_INVALID, message).at("spec.namespaces"));
        }
        self.account_rule().map(|_| ())
    }
}

/// What the host made of a Reconciler.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReconcilerStatus {
    /// The generation that the status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What is in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<ActiveModule>,
    /// The modules and configs that were in force before, each pair once, the latest first: the last ten, as long as the configs of
    /// spec, active and history have 1.25 MiB together. Their Modules count as in use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<ActiveModule>,
    /// What is wanted and not in force yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<CandidateModule>,
    /// Every kind that may have live children.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub child_kinds: Vec<Kind>,
    /// How the roots are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roots: Option<RootCounts>,
    /// Ready, and what else is to be said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

/// How many modules and configs a history has.
const HISTORY_MAX: usize = 10;

/// How long the configs of a Reconciler may be together, in bytes of JSON: an object has 1.5 MiB at most.
const CONFIG_BYTES_MAX: usize = 1280 << 10;

impl ReconcilerStatus {
    /// The history once this is in force.
    pub fn history_with(&self, now: &ActiveModule) -> Vec<ActiveModule> {
        let mut history = self.history.clone();
        let Some(before) = self.active.as_ref().filter(|before| !before.is_same_pair(now)) else {
            return history;
        };
        history.retain(|known| !known.is_same_pair(before) && !known.is_same_pair(now));
        history.insert(0, ActiveModule { roots: None, ..before.clone() });
        // What is in force is in spec and status. A status that does not fit could not be written at all.
        let mut bytes = 2 * now.config.to_string().len();
        let fits = history.iter().take(HISTORY_MAX).take_while(|known| {
            bytes += known.config.to_string().len();
            bytes <= CONFIG_BYTES_MAX
        });
        let kept = fits.count();
        history.truncate(kept);
        history
    }

    /// Whether some roots are still to be reconciled with the module and config in force.
    pub fn is_moving(&self) -> bool {
        let active = self.active.as_ref().and_then(|active| active.roots);
        active.zip(self.roots).is_some_and(|(active, roots)| active.reconciled < roots.total)
    }
}

/// The module and config in force.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActiveModule {
    /// The Module's name.
    pub module: String,
    /// Its digest.
    pub digest: String,
    /// The config in force with it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    #[schemars(schema_with = "any_object")]
    pub config: Value,
    /// Since when (RFC 3339).
    #[schemars(extend("format" = "date-time"))]
    pub since: String,
    /// How far the roots have got with it; nothing in a history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roots: Option<ActiveRoots>,
}

impl ActiveModule {
    /// Whether both came into force as one: the same module and config, at the same time.
    pub fn is_same(&self, other: &Self) -> bool {
        self.is_same_pair(other) && self.since == other.since
    }

    /// Whether both are of the same module and config, at whatever time.
    pub fn is_same_pair(&self, other: &Self) -> bool {
        let Self { module, digest, config, since: _, roots: _ } = self;
        *module == other.module && *digest == other.digest && *config == other.config
    }
}

/// How far the roots have got with the module and config in force. While they are being reconciled it is written at most once a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActiveRoots {
    /// Roots that were reconciled with it, whether that worked or not. All of them, when this is `status.roots.total`.
    pub reconciled: u32,
    /// Roots that were there before it, and whose children or patches it changed. After a restart of the host it may be too low.
    pub changed: u32,
    /// Roots whose last pass with it ended with an error or a refusal.
    pub failing: u32,
    /// Those of them that were there before it and did not fail then, or only because the one before it had broken them.
    pub newly_failing: u32,
}

/// A module that is wanted and not in force.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct CandidateModule {
    /// The Module's name.
    pub module: String,
    /// Why it is not in force, in one CamelCase word.
    pub reason: String,
    /// Why it is not in force, for a person.
    pub message: String,
}

/// How many roots there are, and how they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct RootCounts {
    /// All of them.
    pub total: u32,
    /// Those whose Ready is True.
    pub ready: u32,
    /// Those whose last pass ended with an error or a refusal.
    pub failing: u32,
}

fn any_object(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// The manifest as a Module's status shows it. The API server allows no `$schema` or such to be pruned: the field is open.
pub fn manifest_value(manifest: &impl Serialize) -> Option<Value> {
    serde_json::to_value(manifest).ok()
}

/// The host's CRDs, in the order in which they are applied.
pub fn crds() -> Vec<Value> {
    use kube::CustomResourceExt;
    let crds = [Module::crd(), Reconciler::crd(), View::crd()];
    let mut crds: Vec<Value> = crds.into_iter().flat_map(serde_json::to_value).collect();
    crds.iter_mut().for_each(without_rust_formats);
    crds
}

/// The API server warns of formats that it does not know; Rust's unsigned integers have such.
fn without_rust_formats(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.get("format").and_then(Value::as_str).is_some_and(|format| format.starts_with("uint")) {
                fields.remove("format");
            }
            fields.values_mut().for_each(without_rust_formats);
        }
        Value::Array(items) => items.iter_mut().for_each(without_rust_formats),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn namespaces_are_all_or_a_list() {
        let read = |value: Value| serde_json::from_value::<Namespaces>(value);
        assert_eq!(read(json!("All")).unwrap(), Namespaces::All);
        assert_eq!(read(json!(["a"])).unwrap(), Namespaces::Listed(vec!["a".into()]));
        for wrong in [json!("Some"), json!([]), json!([1]), json!({})] {
            assert_eq!(read(wrong.clone()).unwrap(), Namespaces::Invalid(wrong));
        }
        assert_eq!(serde_json::to_value(Namespaces::All).unwrap(), json!("All"));
        assert!(Namespaces::Listed(vec!["a".into()]).includes(Some("a")));
        assert!(!Namespaces::Listed(vec!["a".into()]).includes(Some("b")));
    }

    #[test]
    fn the_field_manager_is_that_of_the_kind_in_any_version() {
        let manager = |api_version: &str, kind: &str, more: Value| {
            let mut spec = json!({"for": {"apiVersion": api_version, "kind": kind}, "module": "m"});
            spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            serde_json::from_value::<ReconcilerSpec>(spec).unwrap().manager()
        };
        assert_eq!(manager("my.domain/v1", "WebServer", json!({})), "pintle-webserver.my.domain");
        assert_eq!(manager("my.domain/v2", "WebServer", json!({})), "pintle-webserver.my.domain");
        assert_eq!(manager("my.domain/v1", "WebServer", json!({"fieldManager": "mine"})), "mine");
        let group = |bytes: usize| format!("{}.example", "g".repeat(bytes - ".example".len()));
        let (fits, kind) = (128 - "pintle-shop.".len(), "Shop");
        assert_eq!(
            manager(&format!("{}/v1", group(fits)), kind, json!({})),
            format!("pintle-shop.{}", group(fits))
        );
        let long =
            [group(fits + 1), group(fits + 2)].map(|group| manager(&format!("{group}/v1"), kind, json!({})));
        assert_ne!(long[0], long[1], "what is cut off is in the hash");
        for manager in long {
            assert_eq!(manager.len(), 128, "{manager}");
            assert!(manager.starts_with("pintle-shop."), "{manager}: no root's patches have that");
        }
    }

    #[test]
    fn a_history_has_each_pair_of_module_and_config_once_and_is_bounded() {
        let pair = |module: &str, config: Value| ActiveModule {
            module: module.into(),
            config,
            roots: Some(ActiveRoots::default()),
            ..ActiveModule::default()
        };
        let mut status = ReconcilerStatus::default();
        let mut swap = |module: &str, config: Value| {
            let now = pair(module, config);
            status.history = status.history_with(&now);
            status.active = Some(now);
            assert!(status.history.iter().all(|known| known.roots.is_none()));
            status.history.iter().map(|known| known.module.clone()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(swap("a", json!({})), "");
        assert_eq!(swap("a", json!({})), "", "a restart of the host is no swap");
        assert_eq!(swap("a", json!({"b": 1})), "a", "another config is another pair");
        assert_eq!(swap("b", json!({})), "a a");
        assert_eq!(swap("a", json!({"b": 1})), "b a", "what is in force again is not before itself");
        for number in 0..10 {
            swap(&format!("m{number}"), json!({}));
        }
        assert_eq!(swap("c", json!({})), "m9 m8 m7 m6 m5 m4 m3 m2 m1 m0");
        let long = json!({"text": "x".repeat(400 << 10)});
        swap("long", long.clone());
        swap("longer", long.clone());
        assert_eq!(swap("longest", long), "longer", "three configs of this length fit");
        assert_eq!(swap("d", json!({})), "longest longer", "there is more room beside a short config");
        let text = "x".repeat(620 << 10);
        assert_eq!(swap("huge", json!({"text": text})), "d", "what fits beside it twice");
    }

    #[test]
    fn what_this_host_cannot_do_is_refused_with_the_fields_path() {
        let spec = |extra: Value| {
            let mut spec = json!({"for": {"apiVersion": "x/v1", "kind": "X"}, "module": "m"});
            spec.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            serde_json::from_value::<ReconcilerSpec>(spec)
                .unwrap()
                .supported()
                .map_err(|f| (f.reason, f.path.unwrap()))
        };
        assert_eq!(spec(json!({})), Ok(()));
        for account in [json!({"name": "a", "namespace": "b"}), json!({"fromRoot": "spec.account"})] {
            assert_eq!(spec(json!({"serviceAccount": account})), Ok(()));
        }
        for account in [
            json!({}),
            json!({"name": "a"}),
            json!({"name": "", "namespace": "b"}),
            json!({"name": "a", "namespace": "b:c"}),
            json!({"fromRoot": ""}),
            json!({"name": "a", "namespace": "b", "fromRoot": "spec.account"}),
        ] {
            let invalid = Err(("SpecInvalid".to_owned(), "spec.serviceAccount".to_owned()));
            assert_eq!(spec(json!({"serviceAccount": account.clone()})), invalid, "{account}");
        }
        let grants = json!({"evictions": true, "podDeletions": true, "needs": [{"apiVersion": "v1", "kinds": ["Pod"]}],
            "patches": [{"apiVersion": "apps/v1", "kind": "Deployment", "fields": ["spec.replicas"], "force": true}]});
        assert_eq!(spec(json!({"grants": grants})), Ok(()));
    }
}
