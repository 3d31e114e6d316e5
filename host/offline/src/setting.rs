//! What a run is about: the documents told apart by kind.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use pintle_api::{self as api, ReconcilerSpec};
use pintle_core::{
    Binding, Duty, KindInfo, SealingKey, StatusSchema, desired, object, reasons,
    reconciler::{self, Grants, Limits},
    violations::Violations,
};
use pintle_engine::{CallLimits, Guest};
use pintle_schema::{
    admission,
    config_schema::{self, ConfigSchema},
    fit::Kinds,
    openapi::CrdVersion,
};
use pintle_wit::{ChildKind, Failure, Kind, Manifest, names};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{cluster::CaseRefusal, documents::Document};

/// The clock of a run that names no other time.
pub const NOW: &str = "2000-01-01T00:00:00Z";

/// What a run is about.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The root, as an API server would hand it out.
    pub root: Value,
    /// The objects: the root's children, what stands in their way, and what answers needs.
    pub observed: Vec<Value>,
    /// What the API server refuses.
    pub refusals: Vec<CaseRefusal>,
    /// The clock.
    pub now: Timestamp,
    /// Documents that play no part.
    pub unused: Vec<String>,
    /// The reconciler.
    pub binding: Arc<Binding>,
    /// What each call may use.
    pub call_limits: CallLimits,
    /// The schemas of the kinds of children, as far as they are known.
    pub kinds: Kinds,
    /// The schema of the root's kind, if its CRD is known.
    pub schema: Option<Value>,
}

/// Why there is nothing to run.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    /// The files are not what a run needs.
    #[error("{0}")]
    Documents(String),
    /// The API server or the host would refuse one of them.
    #[error("{source_name}: {failure}")]
    Refused {
        /// Where it was read.
        source_name: String,
        /// Why.
        failure: Failure,
    },
}

impl Setting {
    /// Tells documents apart by kind: the root (exactly one of the kind that the manifest reconciles), at most one Reconciler, the
    /// CRD of the root's kind, and observed objects.
    ///
    /// # Errors
    /// When there is no root or more than one, or a document would not be accepted.
    pub fn new(
        guest: &Guest,
        documents: Vec<Document>,
        refusals: Vec<CaseRefusal>,
        now: Timestamp,
    ) -> Result<Self, SettingError> {
        let manifest = guest.manifest();
        let parts = Parts::of(manifest, documents)?;
        let refused = |source: &str| {
            let source_name = source.to_owned();
            move |failure| SettingError::Refused { source_name, failure }
        };
        let mut root = parts.root.value;
        let crd = crd_of(&parts.crds, &manifest.reconciles);
        if let Some(crd) = &crd {
            crd.admit(&mut root).map_err(refused(&parts.root.source))?;
        }
        let namespaced = crd.as_ref().is_none_or(|crd| crd.namespaced);
        complete_root(&mut root, namespaced, now);
        if manifest.finalizer && object::is_deleting(&root) {
            // It is there because of the guest's finalizer, or it would be gone.
            root["metadata"]["finalizers"] = json!([names::FINALIZER_GUEST]);
        }

        let schema = config_schema::supports(manifest).map_err(refused("the manifest"))?;
        let of_reconciler = parts.reconciler.as_ref().map(|document| &document.value);
        let name = of_reconciler.map_or(manifest.name.as_str(), object::name).to_owned();
        let spec = match &parts.reconciler {
            Some(document) => {
                read_reconciler(manifest, &schema, document).map_err(refused(&document.source))?
            }
            None => default_spec(manifest),
        };
        if !spec.namespaces.includes(object::namespace(&root)) && namespaced {
            let namespace = object::namespace(&root).unwrap_or_default();
            return Err(SettingError::Documents(format!(
                "Reconciler {name} leaves out namespace {namespace}, which the {} is in",
                manifest.reconciles.kind
            )));
        }
        let binding = Binding {
            field_manager: spec.manager(),
            generation: of_reconciler.and_then(object::generation).unwrap_or(1),
            config: spec.config.clone().into(),
            // Of a run on files there is one Reconciler alone.
            uid: String::new(),
            digest: guest.digest().to_string(),
            manifest: manifest.clone(),
            kinds: kinds(manifest, &spec.grants, &parts.crds),
            status: crd
                .as_ref()
                .map_or(StatusSchema::Anything, |crd| StatusSchema::of_crd_version(&crd.version)),
            // Nobody sees the hashes of a run on files.
            key: SealingKey::new([0; 32]),
            duty: Duty::Full,
            watched_namespaces: BTreeSet::new(),
            grants: spec.grants,
            limits: spec.limits,
            reconciler: name,
        };
        let (observed, unused) = observed(&mut root, &binding, parts.others);
        let call_limits = call_limits(&binding.limits);
        let kinds = Kinds::with_crds(&parts.crds);
        let schema = crd.and_then(|crd| crd.version.pointer("/schema/openAPIV3Schema").cloned());
        let binding = Arc::new(binding);
        Ok(Self { root, observed, refusals, now, unused, binding, call_limits, kinds, schema })
    }
}

/// The documents by the part that they play.
struct Parts {
    root: Document,
    reconciler: Option<Document>,
    crds: Vec<Value>,
    others: Vec<Document>,
}

impl Parts {
    fn of(manifest: &Manifest, documents: Vec<Document>) -> Result<Self, SettingError> {
        let (mut roots, mut reconcilers) = (Vec::new(), Vec::new());
        let (mut crds, mut others) = (Vec::new(), Vec::new());
        for document in documents {
            let kind = object::kind(&document.value);
            if kind == manifest.reconciles && (!is_needed(manifest, &kind) || roots.is_empty()) {
                roots.push(document);
            } else if is_reconciler(&document) {
                reconcilers.push(document);
            } else if document.is_crd() {
                crds.push(document.value);
            } else {
                others.push(document);
            }
        }
        let error = |message: String| Err(SettingError::Documents(message));
        let Kind { api_version, kind } = &manifest.reconciles;
        if reconcilers.len() > 1 {
            return error(format!("{} Reconcilers in the files, there may be one", reconcilers.len()));
        }
        let mut roots = roots.into_iter();
        match (roots.next(), roots.next()) {
            (Some(root), None) if !object::name(&root.value).is_empty() => {
                Ok(Self { root, reconciler: reconcilers.pop(), crds, others })
            }
            (Some(root), None) => error(format!("{}: the {kind} has no metadata.name", root.source)),
            (Some(first), Some(second)) => error(format!(
                "two objects of kind {kind}, in {} and {}; a run is about one",
                first.source, second.source
            )),
            (None, _) => error(format!(
                "no {kind} ({api_version}) in the files, which guest {} reconciles",
                manifest.name
            )),
        }
    }
}

/// The version of a CRD that the objects of a kind are of.
pub(crate) fn crd_of<'a>(crds: impl IntoIterator<Item = &'a Value>, kind: &Kind) -> Option<CrdVersion> {
    let is_of = |crd: &&Value| object::text(crd, &["spec", "names", "kind"]) == Some(kind.kind.as_str());
    crds.into_iter().filter(is_of).find_map(|crd| CrdVersion::of(crd, &kind.api_version))
}

/// The documents of a run, and CRDs that stand beside them: these count unless a document is the CRD of the guest's kind.
pub fn with_crds(manifest: &Manifest, mut documents: Vec<Document>, beside: &[Document]) -> Vec<Document> {
    let crds = documents.iter().filter(|document| document.is_crd()).map(|document| &document.value);
    if crd_of(crds, &manifest.reconciles).is_none() {
        documents.extend(beside.iter().filter(|document| document.is_crd()).cloned());
    }
    documents
}

/// Whether the rules of the CRDs among these documents compile. A cluster would not have the CRD otherwise.
///
/// # Errors
/// The first CRD with such rules.
pub fn check_rules(documents: &[Document]) -> Result<(), SettingError> {
    for Document { source, value } in documents.iter().filter(|document| document.is_crd()) {
        let mut violations = Violations::default();
        for cause in admission::rules(value) {
            violations.add(reasons::INVALID, cause.field, cause.message);
        }
        let refused = |found: Violations| SettingError::Refused {
            source_name: source.clone(),
            failure: found.failure(),
        };
        violations.into_result().map_err(refused)?;
    }
    Ok(())
}

/// Whether the guest may ask to see, patch or evict what is of this kind.
fn is_needed(manifest: &Manifest, kind: &Kind) -> bool {
    let is = |api_version: &str, name: &str| {
        Kind::new(api_version, "").group() == kind.group() && name == kind.kind
    };
    manifest.needs.iter().any(|need| is(&need.api_version, &need.kind))
        || manifest.patches.iter().any(|patch| is(&patch.api_version, &patch.kind))
        || manifest.evictions && is("v1", "Pod")
}

/// The spec of one of the host's own objects in a file, with its defaults, as the API server would take it.
///
/// # Errors
/// `Invalid`, when its CRD does not let it in.
pub fn spec_of<Spec: DeserializeOwned>(document: &Document, kind: &str) -> Result<Spec, Failure> {
    let invalid = |message: String| Failure::terminal(reasons::INVALID, message);
    let mut value = document.value.clone();
    let api_version = object::kind(&value).api_version;
    let version = crd_of(&api::crds(), &Kind::new(&api_version, kind)).ok_or_else(|| {
        invalid(format!("this version of Pintle knows no {kind} of {api_version}")).at("apiVersion")
    })?;
    version.admit(&mut value)?;
    let spec = value.get_mut("spec").map(Value::take).unwrap_or_default();
    serde_json::from_value(spec).map_err(|error| invalid(error.to_string()).at("spec"))
}

fn read_reconciler(
    manifest: &Manifest,
    schema: &ConfigSchema,
    document: &Document,
) -> Result<ReconcilerSpec, Failure> {
    let spec: ReconcilerSpec = spec_of(document, "Reconciler")?;
    spec.supported()?;
    if spec.r#for != manifest.reconciles {
        let message = format!(
            "the Reconciler is for {}, and guest {} reconciles {}",
            spec.r#for, manifest.name, manifest.reconciles
        );
        return Err(Failure::terminal(reasons::KIND_MISMATCH, message).at("spec.for"));
    }
    schema.check(&spec.config)?;
    Ok(spec)
}

/// What a host holds against the Reconcilers among these documents: that it would not put a module with this manifest in force, or else
/// everything that the manifest declares and the Reconciler does not grant.
pub fn held_against_reconcilers(manifest: &Manifest, documents: &[Document]) -> Vec<Failure> {
    let held_against = |document: &Document| {
        let spec =
            config_schema::supports(manifest).and_then(|schema| read_reconciler(manifest, &schema, document));
        match spec {
            Ok(spec) => spec.grants.missing(manifest, object::name(&document.value)),
            Err(failure) => vec![failure],
        }
    };
    documents.iter().filter(|document| is_reconciler(document)).flat_map(held_against).collect()
}

fn is_reconciler(document: &Document) -> bool {
    let kind = object::kind(&document.value);
    kind.group() == names::DOMAIN && kind.kind == "Reconciler"
}

/// Without a Reconciler: the default config and limits, and the grants that the manifest declares.
pub fn default_spec(manifest: &Manifest) -> ReconcilerSpec {
    ReconcilerSpec {
        r#for: manifest.reconciles.clone(),
        module: manifest.name.clone(),
        namespaces: api::Namespaces::All,
        watch_secrets_in: Vec::new(),
        grants: Grants::as_declared(manifest),
        limits: Limits::default(),
        rollout: api::Rollout::default(),
        service_account: None,
        field_manager: None,
        config: Value::Null,
        suspend: false,
    }
}

/// The limits of calls. The fuel grows with the time that the Reconciler gives.
pub fn call_limits(limits: &Limits) -> CallLimits {
    let defaults = CallLimits::default();
    let share = u64::from(limits.timeout_milliseconds);
    let default_share = u64::from(Limits::default().timeout_milliseconds);
    CallLimits {
        fuel: defaults.fuel.saturating_mul(share) / default_share,
        timeout: Duration::from_millis(share),
        memory_bytes: limits.memory_mebibytes as usize * 1024 * 1024,
        response: limits.response(),
    }
}

/// Kinds of Kubernetes itself that are of cluster scope and that a guest may name. The gate forbids most of them by name.
const CLUSTER_SCOPED: [(&str, &str); 4] =
    [("", "Namespace"), ("", "Node"), ("", "PersistentVolume"), ("networking.k8s.io", "IngressClass")];

/// Whether a kind is one of Kubernetes itself whose objects live in no namespace.
pub(super) fn is_cluster_scoped(kind: &Kind) -> bool {
    CLUSTER_SCOPED.contains(&(kind.group(), kind.kind.as_str()))
}

fn kinds(manifest: &Manifest, grants: &Grants, crds: &[Value]) -> BTreeMap<Kind, KindInfo> {
    let granted = grants
        .children
        .iter()
        .flat_map(|grant| grant.kinds.iter().map(|kind| Kind::new(&grant.api_version, kind)));
    let declared = manifest.children.iter().map(ChildKind::kind);
    let needed = manifest.needs.iter().map(|need| Kind::new(&need.api_version, &need.kind));
    let patched = manifest.patches.iter().map(|patch| Kind::new(&patch.api_version, &patch.kind));
    declared
        .chain(granted)
        .chain(needed)
        .chain(patched)
        .map(|kind| {
            let crd = crd_of(crds, &kind);
            let namespaced = crd.map_or(!is_cluster_scoped(&kind), |crd| crd.namespaced);
            (kind, KindInfo { namespaced })
        })
        .collect()
}

/// What an API server adds to an object, and the fixed uid and generation of a root that has none.
fn complete_root(root: &mut Value, namespaced: bool, now: Timestamp) {
    let uid = uid(root);
    if namespaced {
        add(root, "namespace", "default".into());
    }
    add(root, "uid", uid.into());
    add(root, "generation", 1.into());
    add(root, "resourceVersion", "1".into());
    add(root, "creationTimestamp", pintle_core::conditions::time(now).into());
}

/// Sets something in the metadata of an object, unless it is there.
fn add(object: &mut Value, key: &str, value: Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.entry(key).or_insert(value);
    }
}

/// A uid that depends on nothing but the object's names.
pub(super) fn uid(object: &Value) -> String {
    let reference = object::reference(object).to_string();
    let hex = desired::hex(&desired::hash_parts(&[reference.as_bytes()]));
    format!("00000000-0000-4000-8000-{}", hex.get(..12).unwrap_or_default())
}

/// The objects besides the root as they stand in the cluster, and what plays no part. A child that says nothing of its owners is the root's
/// own; one that does, if only by an empty list, is taken at its word. What lies in another namespace than the root is none of its children.
fn observed(root: &mut Value, binding: &Binding, documents: Vec<Document>) -> (Vec<Value>, Vec<String>) {
    let manifest = &binding.manifest;
    let (mut objects, mut unused) = (Vec::new(), Vec::new());
    for Document { source, value: mut live } in documents {
        let (kind, at) = (object::kind(&live), object::reference(&live));
        let mut children = manifest.children.iter().map(ChildKind::kind);
        let is_child = children.any(|child| child.group() == kind.group() && child.kind == kind.kind);
        let is_needed = is_needed(manifest, &kind);
        let is_namespaced = is_child || binding.kinds.get(&kind).is_none_or(|info| info.namespaced);
        if !is_child && !is_needed {
            unused.push(format!(
                "{source}: {at} plays no part: guest {} has no children of its kind, and does not ask to see it",
                manifest.name
            ));
            continue;
        }
        if object::name(&live).is_empty() {
            unused.push(format!("{source}: the object has no metadata.name"));
            continue;
        }
        if let Some(namespace) = object::namespace(root).filter(|_| is_namespaced) {
            add(&mut live, "namespace", namespace.into());
        }
        let uid = uid(&live);
        add(&mut live, "uid", uid.into());
        add(&mut live, "resourceVersion", "1".into());
        if is_child && object::namespace(&live) == object::namespace(root) {
            adopt(root, binding, &mut live);
        } else if !is_needed {
            unused.push(format!("{source}: {at} plays no part: it is not in the root's namespace"));
            continue;
        }
        objects.push(live);
    }
    (objects, unused)
}

fn adopt(root: &mut Value, binding: &Binding, live: &mut Value) {
    let owner = object::reference(root);
    let reference = object::reference(live);
    let Some(metadata) = live.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    if metadata.contains_key("ownerReferences") {
        return;
    }
    metadata.insert(
        "ownerReferences".into(),
        json!([{
            "apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": object::uid(root),
            "controller": true, "blockOwnerDeletion": true,
        }]),
    );
    let labels = metadata.entry("labels").or_insert_with(|| Value::Object(Map::new()));
    if let Some(labels) = labels.as_object_mut() {
        labels.insert(names::LABEL_RECONCILER.into(), binding.reconciler.as_str().into());
        labels.insert(names::LABEL_ROOT.into(), object::uid(root).into());
    }
    if !reconciler::is_watchable(&reference.kind()) {
        // A host knows of such a child because the root's status names it.
        let entry =
            json!({"apiVersion": reference.api_version, "kind": reference.kind, "name": reference.name});
        let list = &mut root["status"]["pintle"]["unwatched"];
        match list.as_array_mut() {
            Some(entries) if entries.contains(&entry) => {}
            Some(entries) => entries.push(entry),
            None => *list = json!([entry]),
        }
    }
}
