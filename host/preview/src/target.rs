//! [`Target`]: what the roots are put before. The Reconciler with a module, as a host would put them in force.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures::{StreamExt, TryStreamExt, stream};
use pintle_api as api;
use pintle_core::{
    Binding, Duty, KindInfo, SealingKey, StatusSchema,
    account::AccountRule,
    object,
    plan::{JudgedModule, Marks, ModuleName, Unknown},
    reasons,
};
use pintle_engine::{CallLimits, Guest};
use pintle_kubernetes::{Cluster, Resource, builtin};
use pintle_offline::setting::call_limits;
use pintle_runtime::clock;
use pintle_schema::{config_schema, fit::Kinds, openapi::CrdVersion};
use pintle_wit::{ChildKind, Failure, Kind, Manifest, views::Document};
use serde_json::Value;

use crate::{
    Caller, ModuleChoice, Preview, PreviewError,
    children::KINDS_AT_ONCE,
    reader::{Reader, reference},
};

/// A Reconciler with a module, as a host would put them in force.
pub(crate) struct Target {
    pub(crate) reconciler: api::Reconciler,
    pub(crate) name: String,
    pub(crate) binding: Arc<Binding>,
    pub(crate) guest: Guest,
    pub(crate) limits: CallLimits,
    pub(crate) resource: Resource,
    pub(crate) judged: JudgedModule,
    pub(crate) in_force: Option<ModuleName>,
    /// The manifest of the module in force, as its Module says it.
    pub(crate) before: Option<Manifest>,
    /// The account that roots are worked on with, or why there is none.
    pub(crate) account: Result<Option<AccountRule>, Failure>,
    /// What is not known for any root.
    pub(crate) unknown: Vec<Unknown>,
    /// The fields that nobody is to read.
    pub(crate) marks: Marks,
    /// What children and patches are to fit.
    pub(crate) schemas: Kinds,
}

/// The Reconciler that works on roots of a kind: the oldest one, as in a host.
pub(crate) async fn reconciler_of(reader: &Reader, kind: &Kind) -> Result<api::Reconciler, PreviewError> {
    let mut found: Vec<api::Reconciler> = reader.all_own().await?;
    found.retain(|reconciler| {
        let wanted = &reconciler.spec.r#for;
        wanted.kind == kind.kind && wanted.group() == kind.group()
    });
    let age = |reconciler: &api::Reconciler| {
        (reconciler.metadata.creation_timestamp.clone().map(|time| time.0), reconciler.metadata.name.clone())
    };
    let oldest = found.into_iter().min_by_key(age);
    oldest.ok_or_else(|| PreviewError::NotFound(format!("no Reconciler is for {kind}")))
}

impl Preview {
    /// Puts a Reconciler together with a module and a config. Without them it has those in force.
    pub(crate) async fn target(
        &self,
        caller: &Caller,
        reader: &Reader,
        reconciler: api::Reconciler,
        choice: Option<ModuleChoice>,
        config: Option<Value>,
    ) -> Result<Target, PreviewError> {
        let name = reconciler.metadata.name.clone().unwrap_or_default();
        let spec = &reconciler.spec;
        let active = reconciler.status.as_ref().and_then(|status| status.active.clone());
        let config = config.unwrap_or_else(|| match (&choice, &active) {
            (None, Some(active)) => active.config.clone(),
            _ => spec.config.clone(),
        });
        let choice = choice.unwrap_or_else(|| {
            let module = active.as_ref().map_or(&spec.module, |active| &active.module);
            ModuleChoice::Named(module.clone())
        });
        let modules = Cluster::new(caller.modules.clone());
        let (module_name, module) = self.module(reader, &modules, choice).await?;
        let guest = module.guest().ok_or_else(|| {
            let message = format!("module {module_name} serves views and reconciles nothing");
            Failure::terminal(reasons::KIND_MISMATCH, message).at("spec.module")
        })?;
        may_come_into_force(&module_name, &guest, spec, &config)?;
        let manifest = guest.manifest().clone();
        let RootKind { resource, status, schema, unknown } = root_kind(reader, &spec.r#for).await?;
        let mut marks = Marks::default();
        marks.add_schema(&spec.r#for, &schema);
        let own = module.views();
        own.iter().flat_map(|views| &views.manifest().views).for_each(|view| marks.add_view(view));
        add_served(reader, &mut marks).await;
        let kinds = served(reader, &manifest, spec).await?;
        let schemas = schemas(reader, &kinds).await;
        let digest = guest.digest().to_string();
        let in_force = active.as_ref();
        let judged = JudgedModule {
            name: module_name,
            digest: digest.clone(),
            in_force: in_force.is_some_and(|active| active.digest == digest && active.config == config),
        };
        let before = match in_force {
            Some(active) => reader.own(&active.module).await.ok().and_then(manifest_of),
            None => None,
        };
        let limits = call_limits(&spec.limits);
        let binding = Binding {
            uid: reconciler.metadata.uid.clone().unwrap_or_default(),
            generation: reconciler.metadata.generation.unwrap_or(0),
            field_manager: spec.manager(),
            grants: spec.grants.clone(),
            limits: spec.limits,
            config: config.into(),
            digest,
            manifest,
            kinds,
            status,
            // Nobody but the host knows its key. Secrets are compared by their values.
            key: SealingKey::new(random()?),
            duty: Duty::Full,
            watched_namespaces: BTreeSet::new(),
            reconciler: name.clone(),
        };
        Ok(Target {
            limits: CallLimits {
                memory_bytes: limits.memory_bytes.min(self.engine.memory_bytes_max()),
                ..limits
            },
            account: spec.account_rule(),
            in_force: in_force
                .map(|active| ModuleName { name: active.module.clone(), digest: active.digest.clone() }),
            name,
            binding: Arc::new(binding),
            guest,
            resource,
            judged,
            before,
            unknown,
            marks,
            schemas,
            reconciler,
        })
    }
}

/// Adds what the Views that there are mark. Who may not list them still has those of the module.
async fn add_served(reader: &Reader, marks: &mut Marks) {
    let views: Vec<api::View> = reader.all_own().await.unwrap_or_default();
    for served in views.into_iter().filter_map(|view| view.status?.served) {
        let backing = Kind::new(&served.backing.api_version, &served.backing.kind);
        let document =
            (!served.rest.is_empty()).then(|| Document { schema: Value::Null, paths: served.paths.clone() });
        marks.add_shown(&backing, &served.schema, document.as_ref(), &served.writes);
    }
}

impl Target {
    /// The kinds whose objects may be children now.
    pub(crate) fn child_kinds(&self) -> BTreeSet<Kind> {
        let live = self.reconciler.status.iter().flat_map(|status| status.child_kinds.iter().cloned());
        let wanted = self.binding.manifest.children.iter().map(ChildKind::kind);
        let before = self.before.iter().flat_map(|manifest| manifest.children.iter().map(ChildKind::kind));
        live.chain(wanted).chain(before).collect()
    }

    /// Whether the guest is shown children of this kind.
    pub(crate) fn observes(&self, kind: &Kind) -> bool {
        let mut kinds = self.binding.manifest.children.iter();
        kinds.any(|child| child.observe && child.kind == kind.kind && child.kind().group() == kind.group())
    }
}

/// 32 random bytes.
pub(crate) fn random() -> Result<[u8; 32], PreviewError> {
    clock::random().map_err(|error| PreviewError::Unavailable(format!("no random numbers: {error}")))
}

fn manifest_of(module: api::Module) -> Option<Manifest> {
    serde_json::from_value(module.status?.manifest?).ok()
}

/// What a host asks of a module and a config before it puts them in force.
fn may_come_into_force(
    name: &str,
    guest: &Guest,
    spec: &api::ReconcilerSpec,
    config: &Value,
) -> Result<(), Failure> {
    spec.supported()?;
    let manifest = guest.manifest();
    if manifest.reconciles != spec.r#for {
        let message = format!("module {name} reconciles {}, not {}", manifest.reconciles, spec.r#for);
        return Err(Failure::terminal(reasons::KIND_MISMATCH, message).at("spec.module"));
    }
    config_schema::supports(manifest)?.check(config)
}

/// The kinds that the gate has to know, as far as they are served: see `frame` of the operator.
async fn served(
    reader: &Reader,
    manifest: &Manifest,
    spec: &api::ReconcilerSpec,
) -> Result<BTreeMap<Kind, KindInfo>, PreviewError> {
    let grants = &spec.grants;
    let children = manifest.children.iter().map(ChildKind::kind);
    let needs = manifest.needs.iter().map(|need| Kind::new(&need.api_version, &need.kind));
    let needs = needs.filter(|kind| grants.allows_need(kind));
    let patches = manifest.patches.iter().map(|patch| Kind::new(&patch.api_version, &patch.kind));
    let patches = patches.filter(|kind| grants.allows_patch(kind));
    let evicts = (manifest.evictions && grants.allows_evictions()).then(|| Kind::new("v1", "Pod"));
    let all: BTreeSet<Kind> = children.chain(needs).chain(patches).chain(evicts).collect();
    let found: Vec<Option<(Kind, KindInfo)>> = stream::iter(all)
        .map(|kind| async move {
            let found = reader.resource(&kind).await;
            let found = found.map_err(|error| PreviewError::of(&format!("kind {kind}"), &error))?;
            Ok::<_, PreviewError>(found.map(|resource| (kind, resource.info())))
        })
        .buffered(KINDS_AT_ONCE)
        .try_collect()
        .await?;
    Ok(found.into_iter().flatten().collect())
}

/// The schemas of Kubernetes, and those of these kinds whose CRDs the user may read.
async fn schemas(reader: &Reader, kinds: &BTreeMap<Kind, KindInfo>) -> Kinds {
    let builtin = Kinds::default();
    let custom: Vec<Kind> = kinds.keys().filter(|kind| !builtin.has(kind)).cloned().collect();
    let crds: Vec<Option<Value>> = stream::iter(custom)
        .map(|kind| async move {
            let resource = reader.resource(&kind).await.ok()??;
            crd(reader, &resource).await.ok()?
        })
        .buffered(KINDS_AT_ONCE)
        .collect()
        .await;
    Kinds::with_crds(crds.iter().flatten())
}

/// How the API server serves the roots.
struct RootKind {
    resource: Resource,
    /// What their status may say.
    status: StatusSchema,
    /// Their schema, as far as it can be read.
    schema: Value,
    /// What cannot.
    unknown: Vec<Unknown>,
}

/// How the API server serves the roots: by the CRD, or by the published schema where the user may not read the CRD.
async fn root_kind(reader: &Reader, kind: &Kind) -> Result<RootKind, PreviewError> {
    let found =
        reader.resource(kind).await.map_err(|error| PreviewError::of(&format!("kind {kind}"), &error))?;
    let resource = found.ok_or_else(|| {
        let message = format!("the API server does not serve {kind}");
        Failure::transient(reasons::KIND_MISSING, message).at("spec.for")
    })?;
    let why = match crd(reader, &resource).await {
        Ok(Some(crd)) => {
            let version = CrdVersion::of(&crd, &kind.api_version).map(|version| version.version);
            let status = version.as_ref().map_or(StatusSchema::Anything, StatusSchema::of_crd_version);
            let schema = version.as_ref().and_then(|version| version.pointer("/schema/openAPIV3Schema"));
            let schema = schema.cloned().unwrap_or_default();
            return Ok(RootKind { resource, status, schema, unknown: Vec::new() });
        }
        Ok(None) => "it has no CRD".to_owned(),
        Err(error) => error.to_string(),
    };
    let path = format!("/openapi/v3/apis/{}", kind.api_version);
    if let Ok(Some(published)) = reader.cluster().document(&path).await
        && let Some(status) = published_status(&published, &resource)
    {
        let schema = published_schema(&published, &resource).cloned().unwrap_or_default();
        return Ok(RootKind { resource, status, schema, unknown: Vec::new() });
    }
    let unknown = Unknown { what: format!("the status fields that the CRD of {} declares", kind.kind), why };
    Ok(RootKind { resource, status: StatusSchema::Anything, schema: Value::Null, unknown: vec![unknown] })
}

/// The CRD of a kind.
pub(crate) async fn crd(
    reader: &Reader,
    resource: &Resource,
) -> Result<Option<Value>, pintle_core::ApiError> {
    let crds =
        builtin("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", false);
    let name = format!("{}.{}", resource.plural, resource.kind.group());
    reader.get(&crds, &reference(&crds.kind, None, &name)).await
}

/// The published schema of a kind.
fn published_schema<'a>(published: &'a Value, resource: &Resource) -> Option<&'a Value> {
    let kind = &resource.kind;
    let schemas = object::at(published, &["components", "schemas"])?.as_object()?;
    let is_it = |schema: &&Value| {
        let names = schema.get("x-kubernetes-group-version-kind").and_then(Value::as_array);
        names.into_iter().flatten().any(|name| {
            let is = |key: &str, wanted: &str| object::text(name, &[key]) == Some(wanted);
            is("group", kind.group()) && is("version", kind.version()) && is("kind", &kind.kind)
        })
    };
    schemas.values().find(is_it)
}

/// What the published schema of a group says of the status of a kind.
fn published_status(published: &Value, resource: &Resource) -> Option<StatusSchema> {
    let ending = format!("/{}/{{name}}/status", resource.plural);
    let paths = published.get("paths")?.as_object()?;
    if !paths.keys().any(|path| path.ends_with(&ending)) {
        return Some(StatusSchema::Nothing);
    }
    let schema = published_schema(published, resource)?;
    let version = serde_json::json!({"subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema}});
    Some(StatusSchema::of_crd_version(&version))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_published_schema_says_what_a_status_declares() {
        let resource = Resource {
            kind: Kind::new("g.example.com/v1", "Thing"),
            plural: "things".into(),
            namespaced: true,
        };
        let mut published = json!({
            "paths": {"/apis/g.example.com/v1/namespaces/{namespace}/things/{name}": {},
                "/apis/g.example.com/v1/namespaces/{namespace}/things/{name}/status": {}},
            "components": {"schemas": {"com.example.g.v1.Thing": {
                "x-kubernetes-group-version-kind": [{"group": "g.example.com", "version": "v1", "kind": "Thing"}],
                "properties": {"status": {"type": "object", "properties": {"url": {"type": "string"}}}}}}},
        });
        let declared =
            StatusSchema::Declared(json!({"type": "object", "properties": {"url": {"type": "string"}}}));
        assert_eq!(published_status(&published, &resource), Some(declared));
        published["paths"] = json!({"/apis/g.example.com/v1/namespaces/{namespace}/things/{name}": {}});
        assert_eq!(published_status(&published, &resource), Some(StatusSchema::Nothing));
        assert_eq!(published_status(&json!({}), &resource), None);
    }
}
