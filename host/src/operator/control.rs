//! The control loop: from Modules, Reconcilers and CRDs to watches, bindings and their statuses. It looks at everything and makes it
//! so, whenever something changed; which event it was does not matter.

use std::{collections::{BTreeMap, BTreeSet}, sync::Arc, time::Duration};

use futures::StreamExt;
use kube::{Api, runtime::{WatchStreamExt, watcher}};
use pintle_core::{Binding, Priority, StatusSchema, readiness, reconciler};
use pintle_wit::{Condition, ConditionStatus, Event, EventType, Kind, names};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tracing::{error, info, warn};

use super::{
    Active, CrdInfo, Shared, State, bind::{self, InForce, Verdict, World}, load, metrics::{ControllerLabels, RootLabels}, own,
    own_status::{self, Findings}, store::RootKey, watch::{self, Role, WatchKey, WatchState},
};
use crate::{api, clock, kubernetes::{Resource, builtin}};

/// Events come in bursts; the loop looks once for all that arrive within this time.
const GATHER: Duration = Duration::from_millis(20);
/// How often the root counts of a Reconciler are written at most.
const COUNTS_EVERY: Duration = Duration::from_secs(2);
/// When the API server is asked again about a kind that it did not serve. A CRD's arrival is seen by watch; this is for aggregated
/// APIs.
const MISSING_RETRY: Duration = Duration::from_secs(30);
/// When what went wrong in a round is tried again.
const ROUND_RETRY: Duration = Duration::from_secs(1);

/// What the loop remembers from round to round.
#[derive(Default)]
struct Loop {
    /// What is in force, by Reconciler: ahead of the status that says so.
    in_force: BTreeMap<String, api::ActiveModule>,
    /// How children are read, by Reconciler: the field manager and the observed kinds.
    readings: BTreeMap<String, (String, BTreeSet<Kind>)>,
    counts_written: BTreeMap<String, Duration>,
}

pub(crate) async fn run(shared: Arc<Shared>) {
    let modules = tokio::spawn(follow::<api::Module>(Arc::clone(&shared), |state, name, object| {
        put(&mut state.modules, name, object);
    }, |own| &mut own.modules));
    let reconcilers = tokio::spawn(follow::<api::Reconciler>(Arc::clone(&shared), |state, name, object| {
        put(&mut state.reconcilers, name, object);
    }, |own| &mut own.reconcilers));
    let crds = tokio::spawn(follow_crds(Arc::clone(&shared)));
    let mut memory = Loop::default();
    while !shared.is_stopping() {
        let notified = shared.control.notified();
        let again = round(&shared, &mut memory).await;
        match again {
            Some(after) => {
                let _ = tokio::time::timeout(after, notified).await;
            }
            None => notified.await,
        }
        tokio::time::sleep(GATHER).await;
    }
    for task in [modules, reconcilers, crds] {
        task.abort();
    }
}

fn put<T>(map: &mut BTreeMap<String, T>, name: &str, object: Option<T>) {
    match object {
        Some(object) => map.insert(name.into(), object),
        None => map.remove(name),
    };
}

/// Keeps the host's own objects of one kind up to date.
async fn follow<K>(shared: Arc<Shared>, put: fn(&mut State, &str, Option<K>), seen: fn(&mut super::OwnWatches) -> &mut bool)
where
    K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
{
    let api: Api<K> = Api::all(shared.cluster.client());
    let mut stream = std::pin::pin!(watcher(api, watcher::Config::default()).default_backoff());
    let mut listed: BTreeMap<String, K> = BTreeMap::new();
    let mut known: BTreeSet<String> = BTreeSet::new();
    let name = |object: &K| object.meta().name.clone().unwrap_or_default();
    while let Some(event) = stream.next().await {
        let mut state = shared.state();
        match event {
            Ok(watcher::Event::Init) => listed.clear(),
            Ok(watcher::Event::InitApply(object)) => {
                listed.insert(name(&object), object);
            }
            Ok(watcher::Event::InitDone) => {
                for gone in known.iter().filter(|name| !listed.contains_key(*name)) {
                    put(&mut state, gone, None);
                }
                known = listed.keys().cloned().collect();
                for (name, object) in std::mem::take(&mut listed) {
                    put(&mut state, &name, Some(object));
                }
                *seen(&mut state.own) = true;
                state.own.error = None;
            }
            Ok(watcher::Event::Apply(object)) => {
                known.insert(name(&object));
                put(&mut state, &name(&object), Some(object));
            }
            Ok(watcher::Event::Delete(object)) => {
                known.remove(&name(&object));
                put(&mut state, &name(&object), None);
            }
            Err(failed) => {
                let kind = K::kind(&());
                let message = match &failed {
                    watcher::Error::InitialListFailed(kube::Error::Api(status)) | watcher::Error::WatchFailed(kube::Error::Api(status)) => match status.code {
                        404 => format!("the CRD of {kind} is missing; apply deploy/install.yaml, or the output of: pintle crds"),
                        403 => format!("{kind}s may not be listed or watched; apply deploy/install.yaml: {}", status.message),
                        _ => status.message.clone(),
                    },
                    other => other.to_string(),
                };
                if state.own.error.as_ref() != Some(&message) {
                    error!(kind = %kind, error = message, "The host's own resources cannot be watched");
                }
                state.own.error = Some(message);
                continue;
            }
        }
        drop(state);
        shared.control.notify_one();
    }
}

async fn follow_crds(shared: Arc<Shared>) {
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition as Crd;
    follow::<Crd>(shared, |state, name, object| {
        let info = object.as_ref().and_then(crd_info);
        let group_kind = info.as_ref().or(state.crds.get(name)).map(|info| (info.group.clone(), info.kind.clone()));
        if state.crds.get(name) == info.as_ref() {
            return;
        }
        if let Some((group, kind)) = group_kind {
            let same = |found: &Kind| found.group() == group && found.kind == kind;
            state.resources.retain(|found, _| !same(found));
            state.missing.retain(|found, _| !same(found));
        }
        put(&mut state.crds, name, info);
    }, |own| &mut own.crds)
    .await;
}

fn crd_info(crd: &k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition) -> Option<CrdInfo> {
    let value = serde_json::to_value(&crd.spec.versions).ok()?;
    let versions = value.as_array()?.iter().filter(|version| version.get("served").and_then(Value::as_bool) == Some(true));
    let versions = versions.filter_map(|version| Some((version.get("name")?.as_str()?.to_owned(), StatusSchema::of_crd_version(version))));
    let conditions = crd.status.iter().filter_map(|status| status.conditions.as_ref()).flatten();
    Some(CrdInfo {
        group: crd.spec.group.clone(),
        kind: crd.spec.names.kind.clone(),
        plural: crd.spec.names.plural.clone(),
        namespaced: crd.spec.scope == "Namespaced",
        established: conditions.into_iter().any(|condition| condition.type_ == "Established" && condition.status == "True"),
        versions: versions.collect(),
    })
}

/// One look at everything. Returns when to look again although nothing changed.
async fn round(shared: &Arc<Shared>, memory: &mut Loop) -> Option<Duration> {
    let now = clock::monotonic();
    let Some(verdicts) = decide(shared, memory) else { return None };
    let mut again = begin_loads(shared, now);
    let mut sooner = |at: Duration| again = Some(again.map_or(at, |before| before.min(at)));
    if let Some(at) = resolve_kinds(shared, &verdicts).await {
        sooner(at);
    }
    // The kinds that may have children are written down before the first child of a kind can be made.
    let widened = child_kinds(shared, &verdicts);
    for (name, kinds) in &widened {
        if let Err(error) = write_widened(shared, name, kinds).await {
            warn!(reconciler = name, %error, "The child kinds of a Reconciler cannot be written; its work waits");
            sooner(ROUND_RETRY);
            return again;
        }
    }
    claim_watches(shared, memory, &verdicts, &widened);
    activate(shared, memory, &verdicts).await;
    if let Some(at) = write_statuses(shared, memory, &verdicts, &widened).await {
        sooner(at);
    }
    again
}

type Verdicts = BTreeMap<String, Verdict>;

fn decide(shared: &Shared, memory: &mut Loop) -> Option<Verdicts> {
    let state = shared.state();
    if !(state.own.modules && state.own.reconcilers && state.own.crds) {
        return None;
    }
    memory.in_force.retain(|name, _| state.reconcilers.contains_key(name));
    let world = World {
        modules: &state.modules,
        loads: &state.loads,
        reconcilers: &state.reconcilers,
        crds: &state.crds,
        now: clock::now(),
    };
    let mut verdicts = BTreeMap::new();
    for (name, object) in &state.reconcilers {
        if object.metadata.deletion_timestamp.is_some() {
            continue;
        }
        let status = || object.status.as_ref().and_then(|status| status.active.clone());
        let before = memory.in_force.get(name).cloned().or_else(status);
        let verdict = bind::decide(&world, name, before.as_ref());
        if let Verdict::Work(in_force) = &verdict {
            memory.in_force.insert(name.clone(), in_force.active.clone());
        } else if let Some(before) = before {
            // What rests keeps what was in force, for the time after.
            memory.in_force.insert(name.clone(), before);
        }
        verdicts.insert(name.clone(), verdict);
    }
    Some(verdicts)
}

fn begin_loads(shared: &Arc<Shared>, now: Duration) -> Option<Duration> {
    let mut state = shared.state();
    let gone: Vec<String> = state.loads.keys().filter(|name| !state.modules.contains_key(*name)).cloned().collect();
    for name in gone {
        state.loads.remove(&name);
    }
    let due: Vec<(String, String, api::ModuleSpec)> = state
        .modules
        .iter()
        .map(|(name, module)| (name, module.metadata.uid.clone().unwrap_or_default(), module))
        .filter(|(name, uid, _)| load::Load::is_due(state.loads.get(*name), uid, now))
        .map(|(name, uid, module)| (name.clone(), uid, module.spec.clone()))
        .collect();
    let retry = state.loads.values().filter_map(load::Load::retries_at).min();
    drop(state);
    for (name, uid, spec) in due {
        load::begin(shared, &name, &uid, spec);
    }
    retry.map(|at| at.saturating_sub(now))
}

/// The kinds of children of a Reconciler: those that its guest declares, and those that may have been left by the one before.
fn kinds_of(state: &State, name: &str, in_force: &InForce) -> BTreeSet<Kind> {
    let declared = in_force.module.manifest().children.iter().map(pintle_wit::ChildKind::kind);
    let status = state.reconcilers.get(name).and_then(|object| object.status.as_ref());
    let recorded = status.into_iter().flat_map(|status| status.child_kinds.iter().cloned());
    declared.chain(recorded).collect()
}

fn working(verdicts: &Verdicts) -> impl Iterator<Item = (&String, &InForce)> {
    verdicts.iter().filter_map(|(name, verdict)| match verdict {
        Verdict::Work(in_force) => Some((name, in_force.as_ref())),
        Verdict::Rest(_) => None,
    })
}

/// Finds out how the API server serves the kinds that are in use.
async fn resolve_kinds(shared: &Shared, verdicts: &Verdicts) -> Option<Duration> {
    let now = clock::monotonic();
    let unknown: BTreeSet<Kind> = {
        let mut state = shared.state();
        let wanted: BTreeSet<Kind> = working(verdicts).flat_map(|(name, in_force)| kinds_of(&state, name, in_force)).collect();
        for kind in &wanted {
            let crd = state.crds.values().find(|crd| crd.group == kind.group() && crd.kind == kind.kind && crd.established);
            if let Some(crd) = crd.filter(|crd| crd.versions.contains_key(kind.version())) {
                let resource = Resource { kind: kind.clone(), plural: crd.plural.clone(), namespaced: crd.namespaced };
                state.resources.insert(kind.clone(), resource);
            }
        }
        let is_open = |kind: &Kind| !state.resources.contains_key(kind) && state.missing.get(kind).is_none_or(|at| *at <= now);
        wanted.into_iter().filter(is_open).collect()
    };
    for kind in unknown {
        let found = shared.cluster.discover(&kind).await;
        let mut state = shared.state();
        match found {
            Ok(Some(resource)) => {
                state.missing.remove(&kind);
                state.resources.insert(kind, resource);
            }
            Ok(None) => {
                state.missing.insert(kind, now + MISSING_RETRY);
            }
            Err(error) => {
                warn!(%kind, %error, "The API server did not say how it serves a kind");
                state.missing.insert(kind, now + ROUND_RETRY);
            }
        }
    }
    let state = shared.state();
    state.missing.values().min().map(|at| at.saturating_sub(clock::monotonic()).max(GATHER))
}

/// Every kind that may have live children, by Reconciler: what is declared, and what was, until nothing is left of it.
fn child_kinds(shared: &Shared, verdicts: &Verdicts) -> BTreeMap<String, Vec<Kind>> {
    let state = shared.state();
    let keep = |name: &str, in_force: &InForce, kind: &Kind| {
        let declared = in_force.module.manifest().children.iter().any(|child| child.kind() == *kind);
        let synced = state.watches.iter().any(|(key, (_, watch))| {
            key.kind == *kind && key.role != Role::Roots && *watch == WatchState::Synced
        });
        let left = if reconciler::is_watchable(kind) {
            !synced || state.children.any_of(kind, name)
        } else {
            state.roots.of_kind(&in_force.resource.kind).any(|(_, root)| {
                let recorded = root.object.pointer("/status/pintle/unwatched").and_then(Value::as_array);
                recorded.is_some_and(|recorded| recorded.iter().any(|entry| {
                    entry.get("kind").and_then(Value::as_str) == Some(kind.kind.as_str())
                }))
            })
        };
        declared || left
    };
    working(verdicts)
        .map(|(name, in_force)| {
            let kinds = kinds_of(&state, name, in_force).into_iter().filter(|kind| keep(name, in_force, kind));
            (name.clone(), kinds.collect())
        })
        .collect()
}

fn reconciler_resource() -> Resource {
    builtin("pintle.dev/v1alpha1", "Reconciler", "reconcilers", false)
}

fn module_resource() -> Resource {
    builtin("pintle.dev/v1alpha1", "Module", "modules", false)
}

/// Writes the child kinds of a Reconciler when there are new ones.
async fn write_widened(shared: &Shared, name: &str, kinds: &[Kind]) -> Result<(), pintle_core::ApiError> {
    let status = {
        let state = shared.state();
        let mut status = state.reconcilers.get(name).and_then(|object| object.status.clone()).unwrap_or_default();
        if kinds.iter().all(|kind| status.child_kinds.contains(kind)) {
            return Ok(());
        }
        status.child_kinds = kinds.to_vec();
        status
    };
    write_reconciler(shared, name, status).await
}

async fn write_reconciler(shared: &Shared, name: &str, status: api::ReconcilerStatus) -> Result<(), pintle_core::ApiError> {
    let value = serde_json::to_value(&status).unwrap_or_default();
    shared.cluster.write_own_status(&reconciler_resource(), name, &value).await?;
    if let Some(object) = shared.state().reconcilers.get_mut(name) {
        object.status = Some(status);
    }
    Ok(())
}

/// Starts the watches that are wanted and ends those that nobody claims any more.
fn claim_watches(shared: &Arc<Shared>, memory: &mut Loop, verdicts: &Verdicts, child_kinds: &BTreeMap<String, Vec<Kind>>) {
    let mut readings = BTreeMap::new();
    let mut wanted: BTreeMap<WatchKey, Resource> = BTreeMap::new();
    let mut state = shared.state();
    let observed: BTreeSet<Kind> = working(verdicts)
        .flat_map(|(_, in_force)| in_force.module.manifest().children.iter().filter(|child| child.observe))
        .map(pintle_wit::ChildKind::kind)
        .collect();
    for (name, in_force) in working(verdicts) {
        wanted.insert(WatchKey { kind: in_force.resource.kind.clone(), role: Role::Roots }, in_force.resource.clone());
        let manager = state.reconcilers.get(name).map_or_else(String::new, |object| object.spec.manager(name));
        let mine = in_force.module.manifest().children.iter().filter(|child| child.observe).map(pintle_wit::ChildKind::kind);
        readings.insert(name.clone(), (manager, mine.collect::<BTreeSet<Kind>>()));
        for kind in child_kinds.get(name).into_iter().flatten().filter(|kind| reconciler::is_watchable(kind)) {
            let Some(resource) = state.resources.get(kind) else { continue };
            let whole = readiness::needs_status(kind) || observed.contains(kind);
            let role = if whole { Role::Children } else { Role::ChildrenMetadata };
            wanted.insert(WatchKey { kind: kind.clone(), role }, resource.clone());
        }
    }
    // Children are read by the eyes of their Reconciler; where those changed, they are read anew.
    let changed: BTreeSet<&String> =
        readings.iter().filter(|(name, reading)| memory.readings.get(*name) != Some(reading)).map(|(name, _)| name).collect();
    let reread: BTreeSet<Kind> = changed.iter().flat_map(|name| child_kinds.get(*name).into_iter().flatten().cloned()).collect();
    let ended: Vec<WatchKey> = state
        .watches
        .keys()
        .filter(|key| !wanted.contains_key(key) || key.role != Role::Roots && reread.contains(&key.kind))
        .cloned()
        .collect();
    for key in ended {
        state.watches.remove(&key);
        if key.role == Role::Roots {
            state.roots.remove_kind(&key.kind);
        } else if !wanted.keys().any(|other| other.kind == key.kind && other.role != Role::Roots) {
            state.children.remove_kind(&key.kind);
        }
    }
    state.readings = readings.clone();
    let new: Vec<(WatchKey, Resource)> =
        wanted.into_iter().filter(|(key, _)| !state.watches.contains_key(key)).collect();
    for (key, resource) in new {
        info!(kind = %key.kind, role = ?key.role, "Starting a watch");
        let watch = watch::start(Arc::clone(shared), key.clone(), &resource);
        state.watches.insert(key, (watch, WatchState::Starting));
    }
    drop(state);
    memory.readings = readings;
}

/// Puts in force what was decided, once the watches of its children have listed what is there, or have failed to.
async fn activate(shared: &Arc<Shared>, memory: &Loop, verdicts: &Verdicts) {
    let mut told = Vec::new();
    {
        let mut state = shared.state();
        let ended: Vec<String> =
            state.active.keys().filter(|name| !matches!(verdicts.get(*name), Some(Verdict::Work(_)))).cloned().collect();
        for name in ended {
            state.active.remove(&name);
            state.queue.remove_lane(&name);
            shared.metrics.forget(&name);
        }
        for (name, in_force) in working(verdicts) {
            let Some(binding) = binding(shared, &state, memory, name, in_force) else { continue };
            let before = state.active.get(name);
            let namespaces = state.reconcilers.get(name).map(|object| object.spec.namespaces.clone()).unwrap_or_default();
            if before.is_some_and(|before| same(&before.binding, &binding) && before.namespaces == namespaces) {
                continue;
            }
            let swapped = before.is_some_and(|before| before.binding.digest != binding.digest);
            let recorded = state.reconcilers.get(name).and_then(|object| object.status.as_ref()?.active.as_ref());
            let is_news = recorded.is_none_or(|active| active.digest != binding.digest);
            let active = Active {
                binding: Arc::new(binding),
                module: in_force.module.clone(),
                resource: in_force.resource.clone(),
                namespaces,
            };
            state.active.insert(name.clone(), active);
            let kind = in_force.resource.kind.clone();
            let roots: Vec<RootKey> = state.roots.of_kind(&kind).map(|(key, _)| key.clone()).collect();
            info!(reconciler = name, module = in_force.active.module, roots = roots.len(), swapped, "In force");
            for key in roots {
                state.enqueue(&kind, &key, Priority::Background);
            }
            state.counts_changed.insert(name.clone());
            if swapped {
                shared.metrics.swaps.get_or_create(&ControllerLabels { controller: name.clone() }).inc();
            }
            let uid = state.reconcilers.get(name).and_then(|object| object.metadata.uid.clone()).unwrap_or_default();
            if swapped || is_news {
                told.push((name.clone(), uid, format!("module {} is in force", in_force.active.module)));
            }
        }
    }
    shared.work.notify_one();
    for (name, uid, message) in told {
        let event = Event { r#type: EventType::Normal, reason: "ModuleInForce".into(), message };
        shared.recorder.emit(&own("Reconciler", &name), &uid, &[event]).await;
    }
}

/// What holds for the passes of a Reconciler; nothing while a watch of its children has not settled.
fn binding(shared: &Shared, state: &State, memory: &Loop, name: &str, in_force: &InForce) -> Option<Binding> {
    let object = state.reconcilers.get(name)?;
    let manifest = in_force.module.manifest();
    let kinds = manifest.children.iter().map(pintle_wit::ChildKind::kind);
    let mut infos = BTreeMap::new();
    for kind in kinds {
        if let Some(resource) = state.resources.get(&kind) {
            infos.insert(kind, resource.info());
        }
    }
    let settles = |kind: &Kind| {
        let mut watches = state.watches.iter().filter(|(key, _)| key.kind == *kind && key.role != Role::Roots);
        watches.all(|(_, (_, watch))| *watch != WatchState::Starting)
    };
    if !infos.keys().all(settles) {
        return None;
    }
    Some(Binding {
        reconciler: name.into(),
        generation: object.metadata.generation.unwrap_or(0),
        field_manager: memory.readings.get(name).map(|(manager, _)| manager.clone())?,
        grants: object.spec.grants.clone(),
        limits: object.spec.limits,
        config: in_force.active.config.clone(),
        digest: in_force.active.digest.clone(),
        manifest: manifest.clone(),
        kinds: infos,
        status: in_force.status.clone(),
        key: shared.key.clone(),
    })
}

fn same(a: &Binding, b: &Binding) -> bool {
    a.generation == b.generation
        && a.digest == b.digest
        && a.config == b.config
        && a.field_manager == b.field_manager
        && a.kinds == b.kinds
        && a.status == b.status
}

/// Writes the statuses and finalizers of the host's own objects where they differ.
async fn write_statuses(
    shared: &Shared,
    memory: &mut Loop,
    verdicts: &Verdicts,
    child_kinds: &BTreeMap<String, Vec<Kind>>,
) -> Option<Duration> {
    let mut again: Option<Duration> = None;
    let now = clock::monotonic();
    for (name, verdict) in verdicts {
        let Some((object, status)) = reconciler_status(shared, memory, name, verdict, child_kinds) else { continue };
        let before = object.status.clone().unwrap_or_default();
        if before == status || is_only_starting(&object, &before, &status) {
            continue;
        }
        let only_counts = api::ReconcilerStatus { roots: before.roots, ..status.clone() } == before;
        let written = memory.counts_written.get(name).copied();
        if let Some(wait) = written.map(|at| (at + COUNTS_EVERY).saturating_sub(now)).filter(|wait| only_counts && !wait.is_zero()) {
            again = Some(again.map_or(wait, |before| before.min(wait)));
            continue;
        }
        match write_reconciler(shared, name, status.clone()).await {
            Ok(()) => {
                memory.counts_written.insert(name.clone(), now);
                tell(shared, "Reconciler", name, object.metadata.uid.as_deref(), &before.conditions, &status.conditions).await;
            }
            Err(error) if error.code == 404 => {}
            Err(error) => {
                warn!(reconciler = name, %error, "The status of a Reconciler cannot be written");
                again = Some(again.map_or(ROUND_RETRY, |before| before.min(ROUND_RETRY)));
            }
        }
    }
    if let Some(at) = write_modules(shared, memory).await {
        again = Some(again.map_or(at, |before| before.min(at)));
    }
    again
}

/// Whether a status says no more than that a host is starting, about a Reconciler that was Ready: it will be again in a moment, and
/// nobody needs to be told of a restart.
fn is_only_starting(object: &api::Reconciler, before: &api::ReconcilerStatus, after: &api::ReconcilerStatus) -> bool {
    let starting = ready(&after.conditions).is_some_and(|ready| is_passing(&ready.reason));
    let was_ready = ready(&before.conditions).is_some_and(|ready| ready.status == ConditionStatus::True);
    starting && was_ready && before.observed_generation == object.metadata.generation
}

fn ready(conditions: &[Condition]) -> Option<&Condition> {
    conditions.iter().find(|condition| condition.r#type == pintle_core::conditions::READY)
}

/// Reasons that pass by themselves within moments.
fn is_passing(reason: &str) -> bool {
    matches!(reason, "Progressing" | "Loading" | "ModuleLoading")
}

fn reconciler_status(
    shared: &Shared,
    memory: &Loop,
    name: &str,
    verdict: &Verdict,
    child_kinds: &BTreeMap<String, Vec<Kind>>,
) -> Option<(api::Reconciler, api::ReconcilerStatus)> {
    let mut state = shared.state();
    state.counts_changed.remove(name);
    let object = state.reconcilers.get(name)?.clone();
    let recorded = || object.status.as_ref().map(|status| status.child_kinds.clone()).unwrap_or_default();
    let kinds = child_kinds.get(name).cloned().unwrap_or_else(recorded);
    let mut findings = Findings {
        child_kinds: kinds.clone(),
        missing: Vec::new(),
        failing: Vec::new(),
        starting: Vec::new(),
        unwatched: Vec::new(),
        roots: api::RootCounts::default(),
    };
    let in_force = match verdict {
        Verdict::Rest(failure) => Err(failure),
        Verdict::Work(in_force) => {
            findings.missing = kinds.iter().filter(|kind| !state.resources.contains_key(*kind)).cloned().collect();
            let granted = |kind: &&Kind| object.spec.grants.allows_child(kind) && !reconciler::is_watchable(kind);
            findings.unwatched = kinds.iter().filter(granted).cloned().collect();
            for (key, (_, watch)) in &state.watches {
                let mine = if key.role == Role::Roots { key.kind == in_force.resource.kind } else { kinds.contains(&key.kind) };
                match watch {
                    WatchState::Failing(message) if mine => findings.failing.push((key.kind.clone(), message.clone())),
                    WatchState::Starting if mine => findings.starting.push(key.kind.clone()),
                    _ => {}
                }
            }
            findings.roots = counts(&state, &in_force.resource.kind, &object.spec.namespaces);
            let gauge = |label: &'static str, value: u32| {
                let labels = RootLabels { controller: name.to_owned(), state: label };
                shared.metrics.roots.get_or_create(&labels).set(value.into());
            };
            let roots = findings.roots;
            gauge("ready", roots.ready);
            gauge("failing", roots.failing);
            gauge("other", roots.total.saturating_sub(roots.ready + roots.failing));
            Ok(in_force.as_ref())
        }
    };
    let lane = name.to_owned();
    let labels = ControllerLabels { controller: lane.clone() };
    shared.metrics.queue_depth.get_or_create(&labels).set(i64::try_from(state.queue.depth(&lane)).unwrap_or(i64::MAX));
    shared.metrics.backing_off.get_or_create(&labels).set(i64::try_from(state.queue.backing_off(&lane)).unwrap_or(i64::MAX));
    let status = own_status::of_reconciler(&object, in_force, memory.in_force.get(name), &findings, clock::now());
    Some((object, status))
}

fn counts(state: &State, kind: &Kind, namespaces: &api::Namespaces) -> api::RootCounts {
    let mut counts = api::RootCounts::default();
    for (_, root) in state.roots.of_kind(kind).filter(|(key, _)| namespaces.includes(key.namespace.as_deref())) {
        counts.total += 1;
        counts.ready += u32::from(root.is_ready());
        counts.failing += u32::from(root.failing);
    }
    counts
}

async fn write_modules(shared: &Shared, memory: &Loop) -> Option<Duration> {
    let mut again = None;
    let (modules, loads, used) = {
        let state = shared.state();
        let wanted = state.reconcilers.values().map(|object| object.spec.module.clone());
        let used: BTreeSet<String> = wanted.chain(memory.in_force.values().map(|active| active.module.clone())).collect();
        (state.modules.clone(), state.loads.clone(), used)
    };
    for (name, object) in modules {
        let progress = loads.get(&name).filter(|load| object.metadata.uid.as_deref() == Some(load.uid.as_str())).map(|load| &load.progress);
        let before = object.status.clone().unwrap_or_default();
        let status = own_status::of_module(&object, progress, clock::now());
        if status != before {
            let value = serde_json::to_value(&status).unwrap_or_default();
            match shared.cluster.write_own_status(&module_resource(), &name, &value).await {
                Ok(()) => {
                    tell(shared, "Module", &name, object.metadata.uid.as_deref(), &before.conditions, &status.conditions).await;
                    if let Some(object) = shared.state().modules.get_mut(&name) {
                        object.status = Some(status);
                    }
                }
                Err(error) if error.code == 404 => continue,
                Err(error) => {
                    warn!(module = name, %error, "The status of a Module cannot be written");
                    again = Some(ROUND_RETRY);
                }
            }
        }
        if let Some(finalizers) = finalizers(&object, used.contains(&name)) {
            let version = object.metadata.resource_version.as_deref().unwrap_or_default();
            // Written on the version that was read; when that is no longer the newest, the newest is on its way here.
            match shared.cluster.set_finalizers(&module_resource(), &name, version, &finalizers).await {
                Ok(()) => {}
                Err(error) if matches!(error.code, 404 | 409 | 422) => again = Some(ROUND_RETRY),
                Err(error) => {
                    warn!(module = name, %error, "The finalizer of a Module cannot be written");
                    again = Some(ROUND_RETRY);
                }
            }
        }
    }
    again
}

/// The finalizers that a Module should have, where they are others than it has: ours while a Reconciler uses it, so that what is in
/// force cannot be deleted.
fn finalizers(object: &api::Module, used: bool) -> Option<Vec<String>> {
    let now = object.metadata.finalizers.clone().unwrap_or_default();
    let has = now.iter().any(|name| name == names::FINALIZER_IN_USE);
    match (has, used, object.metadata.deletion_timestamp.is_some()) {
        (false, true, false) => Some(now.into_iter().chain([names::FINALIZER_IN_USE.to_owned()]).collect()),
        (true, false, _) => Some(now.into_iter().filter(|name| name != names::FINALIZER_IN_USE).collect()),
        _ => None,
    }
}

/// Publishes an Event when the Ready of one of the host's own objects turned, or gave another reason that is worth one.
async fn tell(
    shared: &Shared,
    kind: &str,
    name: &str,
    uid: Option<&str>,
    before: &[Condition],
    after: &[Condition],
) {
    let Some(now) = ready(after) else { return };
    let before = ready(before);
    let changed = before.is_none_or(|before| before.status != now.status || before.reason != now.reason);
    // That a Reconciler works for the first time is told with its module.
    let first = kind == "Reconciler" && before.is_none_or(|before| is_passing(&before.reason));
    if !changed || is_passing(&now.reason) || first && now.status == ConditionStatus::True {
        return;
    }
    let is_ready = now.status == ConditionStatus::True;
    let event = Event {
        r#type: if is_ready { EventType::Normal } else { EventType::Warning },
        reason: if is_ready { "Ready".into() } else { now.reason.clone() },
        message: now.message.clone(),
    };
    shared.recorder.emit(&own(kind, name), uid.unwrap_or_default(), &[event]).await;
}
