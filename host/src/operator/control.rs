//! The control loop: from Modules, Reconcilers and CRDs to watches, bindings and their statuses. It looks at everything and makes it
//! so, whenever something changed; which event it was does not matter.

mod follow;
mod kinds;
mod pace;
mod statuses;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use pintle_core::{Binding, Duty, Priority};
use pintle_wit::{Event, EventType, Kind, Manifest};
use serde_json::Value;
use tracing::{info, warn};

use super::{
    Active, Shared, State,
    bind::{self, InForce, Left, Verdict, World},
    load,
    metrics::Metric,
    own,
    store::{Root, RootKey},
    watch::WatchState,
};
use crate::{api, clock};
use follow::{follow, follow_crds, put};
use kinds::{child_kinds, claim_watches, resolve_kinds};
use statuses::{hold_reconcilers, write_statuses, write_widened};

/// Events come in bursts; the loop looks once for all that arrive within this time.
const GATHER: Duration = Duration::from_millis(20);
/// When what went wrong in a round is tried again.
const ROUND_RETRY: Duration = Duration::from_secs(1);

/// What the loop remembers from round to round.
#[derive(Default)]
struct Loop {
    /// The term of leadership that the rest is from.
    term: Option<u64>,
    /// What is in force, by Reconciler: ahead of the status that says so.
    in_force: BTreeMap<String, api::ActiveModule>,
    /// How children are read, by Reconciler: the field manager and the observed kinds.
    readings: BTreeMap<String, (String, BTreeSet<Kind>)>,
    /// How often their counts may be written.
    counts_written: BTreeMap<String, pace::Pace>,
    /// Modules of which there was nothing to write, as they were then.
    settled: BTreeMap<String, statuses::Settled>,
    configs: bind::Configs,
}

pub(crate) async fn run(shared: Arc<Shared>) {
    let modules = shared.spawner.spawn(follow::<api::Module>(
        Arc::clone(&shared),
        |state, name, object| {
            put(&mut state.modules, name, object);
        },
        |own| &mut own.modules,
    ));
    let reconcilers = shared.spawner.spawn(follow::<api::Reconciler>(
        Arc::clone(&shared),
        |state, name, object| {
            put(&mut state.reconcilers, name, object);
        },
        |own| &mut own.reconcilers,
    ));
    let crds = shared.spawner.spawn(follow_crds(Arc::clone(&shared)));
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

/// One look at everything. Returns when to look again although nothing changed.
async fn round(shared: &Arc<Shared>, memory: &mut Loop) -> Option<Duration> {
    let now = clock::monotonic();
    let term = shared.cluster.hold().term();
    if term.is_none() || term != memory.term {
        // What the statuses say is what whoever led before made of it.
        *memory = Loop { term, readings: std::mem::take(&mut memory.readings), ..Loop::default() };
    }
    let verdicts = decide(shared, memory)?;
    let mut again = begin_loads(shared, now);
    let mut sooner = |at: Duration| again = Some(again.map_or(at, |before| before.min(at)));
    if let Some(at) = resolve_kinds(shared, &verdicts).await {
        sooner(at);
    }
    // The kinds that may have children are written down before the first child of a kind can be made.
    let widened = child_kinds(shared, &verdicts);
    let mut waiting = BTreeSet::new();
    // A standby writes nothing, and neither will its passes.
    for (name, kinds) in widened.iter().filter(|_| term.is_some()) {
        if let Err(error) = write_widened(shared, name, kinds).await {
            warn!(reconciler = name, %error, "The child kinds of a Reconciler cannot be written; its work waits");
            waiting.insert(name.clone());
        }
    }
    let unheld = if term.is_some() { hold_reconcilers(shared, &verdicts).await } else { Vec::new() };
    for (name, error) in unheld {
        warn!(reconciler = name, %error, "The finalizer of a Reconciler stays as it is; its work waits");
        waiting.insert(name);
    }
    if !waiting.is_empty() {
        sooner(ROUND_RETRY);
    }
    claim_watches(shared, memory, &verdicts, &widened);
    activate(shared, memory, &verdicts, &waiting).await;
    let Some(term) = term else { return again };
    shared.begin_term(term, &waiting);
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
        configs: &memory.configs,
        now: clock::now(),
    };
    let mut verdicts = BTreeMap::new();
    for (name, object) in &state.reconcilers {
        if object.metadata.deletion_timestamp.is_some() && !bind::may_hold_roots(object) {
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
    let gone: Vec<String> =
        state.loads.keys().filter(|name| !state.modules.contains_key(*name)).cloned().collect();
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

/// Puts in force what was decided, once the watches of its children have listed what is there, or have failed to.
/// Those in `waiting` go on with what they had.
async fn activate(shared: &Arc<Shared>, memory: &Loop, verdicts: &Verdicts, waiting: &BTreeSet<String>) {
    let mut told = Vec::new();
    {
        let mut state = shared.state();
        let ended: Vec<String> = state
            .active
            .keys()
            .filter(|name| !matches!(verdicts.get(*name), Some(Verdict::Work(_) | Verdict::Rest(_, Some(_)))))
            .cloned()
            .collect();
        for name in ended {
            state.active.remove(&name);
            state.queue.remove_lane(&name);
            state.waiting.retain(|(lane, _), _| *lane != name);
            shared.metrics.forget(&name);
        }
        for (name, left) in resting(verdicts) {
            let Some(object) = state.reconcilers.get(name) else { continue };
            let binding = binding_without_module(shared, name, object, left);
            if state.active.get(name).is_some_and(|before| same(&before.binding, &binding)) {
                continue;
            }
            let namespaces = object.spec.namespaces.clone();
            let active = Active {
                binding: Arc::new(binding),
                module: None,
                resource: left.resource.clone(),
                namespaces,
                account: object.spec.account_rule(),
            };
            state.active.insert(name.clone(), active);
            let kind = left.resource.kind.clone();
            let roots: Vec<RootKey> = state.roots.of_kind(&kind).map(Root::key).collect();
            info!(reconciler = name, duty = ?left.duty, "Without a module: roots that go are let go");
            for key in roots {
                state.enqueue(&kind, &key, Priority::Background);
            }
            state.queue.hurry(name);
        }
        for (name, in_force) in working(verdicts).filter(|(name, _)| !waiting.contains(*name)) {
            let Some(binding) = binding(shared, &state, memory, name, in_force) else { continue };
            let before = state.active.get(name);
            let Some(spec) = state.reconcilers.get(name).map(|object| &object.spec) else { continue };
            let (namespaces, account) = (spec.namespaces.clone(), spec.account_rule());
            if before.is_some_and(|before| same(&before.binding, &binding) && before.namespaces == namespaces)
            {
                continue;
            }
            // A host that just started may have cleaned up without a module until now.
            let swapped = before
                .is_some_and(|before| before.module.is_some() && before.binding.digest != binding.digest);
            let recorded =
                state.reconcilers.get(name).and_then(|object| object.status.as_ref()?.active.as_ref());
            let is_news = recorded.is_none_or(|active| active.digest != binding.digest);
            let active = Active {
                binding: Arc::new(binding),
                module: Some(in_force.module.clone()),
                resource: in_force.resource.clone(),
                namespaces,
                account,
            };
            state.active.insert(name.clone(), active);
            let kind = in_force.resource.kind.clone();
            let roots: Vec<RootKey> = state.roots.of_kind(&kind).map(Root::key).collect();
            info!(
                reconciler = name,
                module = in_force.active.module,
                roots = roots.len(),
                swapped,
                "In force"
            );
            for key in roots {
                state.enqueue(&kind, &key, Priority::Background);
            }
            // What failed under the old module, grants or config is not to wait out a back-off that it earned there.
            state.queue.hurry(name);
            state.counts_changed.insert(name.clone());
            if swapped && shared.cluster.hold().term().is_some() {
                shared.metrics.count(Metric::Swaps, &[name]);
            }
            let uid = state
                .reconcilers
                .get(name)
                .and_then(|object| object.metadata.uid.clone())
                .unwrap_or_default();
            if swapped || is_news {
                told.push((name.clone(), uid, in_force.active.module.clone()));
            }
        }
    }
    shared.work.notify_one();
    for (name, uid, module) in told {
        let message = format!("module {module} is in force");
        let event = Event { r#type: EventType::Normal, reason: "ModuleInForce".into(), message };
        shared.recorder.emit(&own("Reconciler", &name), &uid, Some(&own("Module", &module)), &[event]).await;
    }
}

/// What holds for the passes of a Reconciler; nothing while a watch of its children has not settled.
fn binding(shared: &Shared, state: &State, memory: &Loop, name: &str, in_force: &InForce) -> Option<Binding> {
    let object = state.reconcilers.get(name)?;
    let before = state.active.get(name);
    let manifest = in_force.module.manifest();
    let others = kinds::other_kinds(in_force);
    if others.iter().any(|kind| state.unclear.contains(kind)) {
        // What is not known to be missing must not be shown as absent.
        return None;
    }
    let kinds = manifest.children.iter().map(pintle_wit::ChildKind::kind).chain(others);
    let mut infos = BTreeMap::new();
    for kind in kinds {
        if let Some(resource) = state.resources.get(&kind) {
            infos.insert(kind, resource.info());
        }
    }
    let settles = |kind: &Kind| {
        let mut watches = state.watches.iter().filter(|(key, _)| {
            key.kind == *kind && (key.brings_children() || key.needs.is_some() && before.is_none())
        });
        watches.all(|(_, watch)| watch.state != WatchState::Starting)
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
        duty: Duty::Full,
        watched_namespaces: kinds::watched_namespaces(state, name),
    })
}

/// What holds for the passes of a Reconciler that has no module to call.
fn binding_without_module(shared: &Shared, name: &str, object: &api::Reconciler, left: &Left) -> Binding {
    Binding {
        reconciler: name.into(),
        generation: object.metadata.generation.unwrap_or(0),
        field_manager: object.spec.manager(name),
        grants: object.spec.grants.clone(),
        limits: object.spec.limits,
        config: Value::Null,
        digest: String::new(),
        manifest: Manifest { reconciles: left.resource.kind.clone(), ..Manifest::default() },
        kinds: BTreeMap::new(),
        status: left.status.clone(),
        key: shared.key.clone(),
        duty: left.duty,
        watched_namespaces: BTreeSet::new(),
    }
}

fn same(a: &Binding, b: &Binding) -> bool {
    a.generation == b.generation
        && a.duty == b.duty
        && a.digest == b.digest
        && a.config == b.config
        && a.field_manager == b.field_manager
        && a.kinds == b.kinds
        && a.watched_namespaces == b.watched_namespaces
        && a.status == b.status
}

fn working(verdicts: &Verdicts) -> impl Iterator<Item = (&String, &InForce)> {
    verdicts.iter().filter_map(|(name, verdict)| match verdict {
        Verdict::Work(in_force) => Some((name, in_force.as_ref())),
        Verdict::Rest(..) => None,
    })
}

/// Reconcilers that rest, and of whose roots some may have finalizers of ours.
fn resting(verdicts: &Verdicts) -> impl Iterator<Item = (&String, &Left)> {
    verdicts.iter().filter_map(|(name, verdict)| match verdict {
        Verdict::Rest(_, Some(left)) => Some((name, left.as_ref())),
        _ => None,
    })
}
