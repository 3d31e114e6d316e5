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

use pintle_api as api;
use pintle_core::{Binding, Config, Duty, KindInfo, Priority};
use pintle_runtime::clock;
use pintle_wit::{Event, EventType, Kind, Manifest};
use tracing::{info, warn};

use super::{
    Shared, State,
    bind::{self, InForce, Left, Verdict, World},
    configs::Configs,
    load::{self, Load, Need},
    metrics::Metric,
    own, own_status,
    policy::{self, Active, Form},
    store::{Root, RootKey},
    watch::WatchState,
};
use follow::{follow, follow_crds, put};
use kinds::{child_kinds, claim_watches, keep_what_is_left, resolve_kinds};
use statuses::{hold_reconcilers, write_statuses, write_widened};

/// Events come in bursts; the loop looks once for all that arrive within this time.
const GATHER: Duration = Duration::from_millis(20);
/// How long a Reconciler that has nothing in force waits until it is clear how the API server serves its kinds, and for their first lists:
/// longer than a request may take. Then it begins without what does not come, which its roots say where they need it.
const CLARITY_PATIENCE: Duration = Duration::from_secs(15);
/// When what went wrong in a round is tried again.
const ROUND_RETRY: Duration = Duration::from_secs(1);

/// What the loop remembers from round to round.
#[derive(Default)]
struct Loop {
    /// The term of leadership that the rest is from.
    term: Option<u64>,
    /// What is in force, by Reconciler: ahead of the status that says so.
    in_force: BTreeMap<String, api::ActiveModule>,
    /// The uids of the Reconcilers that this is of: another may have taken the name.
    uids: BTreeMap<String, String>,
    /// How children are read, by Reconciler: the field manager and the observed kinds.
    readings: BTreeMap<String, (String, BTreeSet<Kind>)>,
    /// Kinds of which children are left that no watch shows, by Reconciler, and when that was found out last.
    left: BTreeMap<(String, Kind), Duration>,
    /// How often their counts may be written.
    counts_written: BTreeMap<String, pace::Pace>,
    /// Modules of which there was nothing to write, as they were then.
    settled: BTreeMap<String, statuses::Settled>,
    configs: Arc<Configs>,
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
        *memory = Loop {
            term,
            readings: std::mem::take(&mut memory.readings),
            configs: Arc::clone(&memory.configs),
            ..Loop::default()
        };
    }
    check_configs(shared, memory).await;
    let verdicts = decide(shared, memory)?;
    let mut again = begin_loads(shared, memory, now);
    let mut sooner = |at: Duration| again = Some(again.map_or(at, |before| before.min(at)));
    if let Some(at) = resolve_kinds(shared, &verdicts).await {
        sooner(at);
    }
    // The kinds that may have children are written down before the first child of a kind can be made.
    let mut widened = child_kinds(shared, &verdicts);
    // A standby writes nothing, and so forgets nothing.
    if term.is_some()
        && let Some(at) = keep_what_is_left(shared, memory, &mut widened).await
    {
        sooner(at);
    }
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
    if let Some(at) = claim_watches(shared, memory, &verdicts, &widened) {
        sooner(at);
    }
    if activate(shared, memory, &verdicts, &waiting).await {
        sooner(ROUND_RETRY);
    }
    let Some(term) = term else { return again };
    shared.begin_term(term, &waiting);
    if let Some(at) = write_statuses(shared, memory, &verdicts, &widened).await {
        sooner(at);
    }
    again
}

type Verdicts = BTreeMap<String, Verdict>;

fn world<'a>(state: &'a State, configs: &'a Configs) -> World<'a> {
    World {
        modules: &state.modules,
        loads: &state.loads,
        reconcilers: &state.reconcilers,
        crds: &state.crds,
        configs,
        now: clock::now(),
    }
}

/// Has configs looked at that have not been: what a guest's schema makes of one takes its time, and is not done under the lock.
async fn check_configs(shared: &Arc<Shared>, memory: &Loop) {
    let due = {
        let state = shared.state();
        memory.configs.due(&world(&state, &memory.configs))
    };
    memory.configs.check(shared, due).await;
}

fn decide(shared: &Shared, memory: &mut Loop) -> Option<Verdicts> {
    let state = shared.state();
    if !(state.own.modules && state.own.reconcilers && state.own.crds) {
        return None;
    }
    let Loop { in_force, uids, configs, .. } = memory;
    in_force.retain(|name, _| {
        state.reconcilers.get(name).is_some_and(|object| uids.get(name) == Some(&bind::uid(object)))
    });
    *uids = state.reconcilers.iter().map(|(name, object)| (name.clone(), bind::uid(object))).collect();
    let world = world(&state, configs);
    let mut verdicts = BTreeMap::new();
    for (name, object) in &state.reconcilers {
        if object.metadata.deletion_timestamp.is_some() && !bind::may_hold_roots(object) {
            continue;
        }
        let status = || object.status.as_ref().and_then(|status| status.active.clone());
        let before = in_force.get(name).cloned().or_else(status);
        let verdict = bind::decide(&world, name, before.as_ref());
        if let Verdict::Work(now) = &verdict {
            in_force.insert(name.clone(), now.active.clone());
        } else if let Some(before) = before {
            // What rests keeps what was in force, for the time after.
            in_force.insert(name.clone(), before);
        }
        verdicts.insert(name.clone(), verdict);
    }
    Some(verdicts)
}

/// Begins to load what is not as far as it should be, what somebody uses first, and lets go of what nobody does.
fn begin_loads(shared: &Arc<Shared>, memory: &Loop, now: Duration) -> Option<Duration> {
    let mut state = shared.state();
    let State { modules, loads, reconcilers, .. } = &mut *state;
    loads.retain(|name, _| modules.contains_key(name));
    let users = statuses::users(reconcilers, &memory.in_force);
    let need = |name: &String, module: &api::Module| match () {
        () if users.contains_key(name) => Need::Loaded,
        () if own_status::was_checked(module) => Need::Verified,
        () => Need::Checked,
    };
    let mut due: Vec<(Need, String, String, api::ModuleSpec)> = modules
        .iter()
        .map(|(name, module)| {
            (need(name, module), name, module.metadata.uid.clone().unwrap_or_default(), module)
        })
        .filter(|(need, name, uid, _)| Load::is_due(loads.get(*name), uid, *need, now))
        .map(|(need, name, uid, module)| (need, name.clone(), uid, module.spec.clone()))
        .collect();
    due.sort_by_key(|(need, ..)| std::cmp::Reverse(*need));
    let with_need = loads.iter_mut().filter_map(|(name, load)| Some((load, need(name, modules.get(name)?))));
    let gone = load::let_go(with_need, now);
    let retry = loads.values().filter_map(Load::retries_at).min();
    if let Some(compilers) = &shared.compilers {
        let digest = |name: &&String| modules.get(*name)?.spec.digest.parse().ok();
        compilers.uses(|| users.keys().filter_map(digest).collect());
    }
    drop(state);
    drop(gone);
    for (need, name, uid, spec) in due {
        load::begin(shared, &name, &uid, spec, need);
    }
    retry.map(|at| at.saturating_sub(now))
}

/// Puts in force what was decided, once the watches of its children have listed what is there, or have failed to.
/// Those in `waiting` go on with the module and config that they had. Returns whether others wait for a watch, or for clarity.
async fn activate(
    shared: &Arc<Shared>,
    memory: &Loop,
    verdicts: &Verdicts,
    waiting: &BTreeSet<String>,
) -> bool {
    let (mut told, mut unsettled) = (Vec::new(), false);
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
            shared.budget.forget(&name);
        }
        for (name, left) in resting(verdicts) {
            // One of the same name that came since is looked at in the next round.
            let object = state.reconcilers.get(name).filter(|object| bind::uid(object) == left.uid);
            let Some(object) = object else { continue };
            let before = state.active.get(name).filter(|active| active.is_of(object));
            if before.is_some_and(|active| is_left(active, object, left)) {
                continue;
            }
            let binding = binding_without_module(shared, name, object, left);
            let active = Active::new(object, binding, None, left.resource.clone());
            info!(reconciler = name, duty = ?left.duty, "Without a module: roots that go are let go");
            state.active.insert(name.clone(), active);
            enqueue_all(&mut state, name);
        }
        for (name, in_force) in working(verdicts) {
            let object = state.reconcilers.get(name).filter(|object| bind::uid(object) == in_force.uid);
            let Some(object) = object else { continue };
            let before = state.active.get(name).filter(|active| active.is_of(object));
            let frame = if waiting.contains(name) { None } else { frame(&state, memory, name, in_force) };
            let Some(frame) = frame else {
                unsettled |= !waiting.contains(name);
                renew_alone(&mut state, name);
                continue;
            };
            if before.is_some_and(|active| is_as(active, object, in_force, &frame)) {
                continue;
            }
            let digest = &in_force.active.digest;
            // A host that just started may have cleaned up without a module until now.
            let swapped =
                before.is_some_and(|before| before.module.is_some() && before.binding.digest != *digest);
            let recorded = object.status.as_ref().and_then(|status| status.active.as_ref());
            let is_news = recorded.is_none_or(|active| active.digest != *digest);
            let uid = in_force.uid.clone();
            let binding = binding(shared, name, object, in_force, frame);
            let (module, resource) = (Some(in_force.module.clone()), in_force.resource.clone());
            let active = Active::new(object, binding, module, resource);
            state.active.insert(name.clone(), active);
            // What failed under the old module, grants or config is not to wait out a back-off that it earned there.
            let roots = enqueue_all(&mut state, name);
            info!(reconciler = name, module = in_force.active.module, roots, swapped, "In force");
            state.counts_changed.insert(name.clone());
            if swapped && shared.cluster.hold().term().is_some() {
                shared.metrics.count(Metric::Swaps, &[name]);
            }
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
    unsettled
}

/// Has every root of a Reconciler looked at, without the back-off that it may have earned. Returns how many there are.
fn enqueue_all(state: &mut State, name: &String) -> usize {
    let Some(active) = state.active.get(name) else { return 0 };
    let kind = active.binding.root_kind();
    let roots: Vec<RootKey> = state.roots.of_kind(&kind).map(Root::key).collect();
    for key in &roots {
        state.enqueue(&kind, key, Priority::Background);
    }
    state.queue.hurry(name);
    roots.len()
}

/// While a module and config wait for their turn, what an administrator allows does not: the roots are looked at under the old ones.
pub(super) fn renew_alone(state: &mut State, name: &String) {
    let Some(object) = state.reconcilers.get(name) else { return };
    let form = Form::of(object);
    let Some(active) = state.active.get_mut(name).filter(|active| active.is_of(object)) else { return };
    active.renew(object);
    if active.queued_for != form {
        active.queued_for = form;
        info!(reconciler = name, "Its grants and limits are in force; its module and config wait");
        enqueue_all(state, name);
    }
}

/// What a binding has besides the Reconciler, the module and the config.
struct Frame {
    field_manager: String,
    kinds: BTreeMap<Kind, KindInfo>,
    watched_namespaces: BTreeSet<String>,
}

/// That, for a Reconciler; nothing while a watch of its children has not settled.
fn frame(state: &State, memory: &Loop, name: &str, in_force: &InForce) -> Option<Frame> {
    let before = state.active.get(name).filter(|active| active.binding.uid == in_force.uid);
    let is_late = |since: Duration| clock::monotonic().saturating_sub(since) >= CLARITY_PATIENCE;
    let manifest = in_force.module.manifest();
    let others = kinds::other_kinds(&state.reconcilers.get(name)?.spec.grants, manifest);
    // Of a kind that stays unclear nothing is shown, and nobody else waits for it: see `Work::answer`.
    let is_unclear = |kind: &Kind| state.unclear.get(kind).is_some_and(|since| !is_late(*since));
    if before.is_none() && others.iter().any(is_unclear) {
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
        watches.all(|(_, watch)| {
            watch.state != WatchState::Starting || before.is_none() && is_late(watch.started)
        })
    };
    if !infos.keys().all(settles) {
        return None;
    }
    Some(Frame {
        field_manager: memory.readings.get(name).map(|(manager, _)| manager.clone())?,
        kinds: infos,
        watched_namespaces: kinds::watched_namespaces(state, name),
    })
}

/// What holds for the passes of a Reconciler. A manifest may be long, so it is made only where it is another one than before.
fn binding(
    shared: &Shared,
    name: &str,
    object: &api::Reconciler,
    in_force: &InForce,
    frame: Frame,
) -> Binding {
    Binding {
        reconciler: name.into(),
        uid: in_force.uid.clone(),
        generation: Form::of(object).generation(),
        field_manager: frame.field_manager,
        grants: policy::grants(object),
        limits: object.spec.limits,
        config: in_force.active.config.clone().into(),
        digest: in_force.active.digest.clone(),
        manifest: in_force.module.manifest().clone(),
        kinds: frame.kinds,
        status: in_force.status.clone(),
        key: shared.key.clone(),
        duty: Duty::Full,
        watched_namespaces: frame.watched_namespaces,
    }
}

/// What holds for the passes of a Reconciler that has no module to call.
fn binding_without_module(shared: &Shared, name: &str, object: &api::Reconciler, left: &Left) -> Binding {
    Binding {
        reconciler: name.into(),
        uid: left.uid.clone(),
        generation: Form::of(object).generation(),
        field_manager: object.spec.manager(name),
        grants: policy::grants(object),
        limits: object.spec.limits,
        config: Config::default(),
        digest: String::new(),
        manifest: Manifest { reconciles: left.resource.kind.clone(), ..Manifest::default() },
        kinds: BTreeMap::new(),
        status: left.status.clone(),
        key: shared.key.clone(),
        duty: left.duty,
        watched_namespaces: BTreeSet::new(),
    }
}

/// Whether what is in force for this very Reconciler is this already, and all roots were queued for it.
fn is_as(active: &Active, object: &api::Reconciler, in_force: &InForce, frame: &Frame) -> bool {
    let binding = &active.binding;
    active.queued_for == Form::of(object)
        && binding.duty == Duty::Full
        && binding.digest == in_force.active.digest
        && *binding.config.value() == in_force.active.config
        && binding.field_manager == frame.field_manager
        && binding.kinds == frame.kinds
        && binding.watched_namespaces == frame.watched_namespaces
        && binding.status == in_force.status
}

/// The same of one without a module.
fn is_left(active: &Active, object: &api::Reconciler, left: &Left) -> bool {
    active.queued_for == Form::of(object)
        && active.module.is_none()
        && active.binding.duty == left.duty
        && active.binding.status == left.status
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
