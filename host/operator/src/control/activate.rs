//! Putting in force what was decided: from a verdict to the binding that passes run on.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use pintle_api as api;
use pintle_core::{Binding, Config, Duty, KindInfo, Priority, reasons};
use pintle_runtime::clock;
use pintle_wit::{Event, EventType, Kind, Manifest};
use tracing::info;

use super::{CLARITY_PATIENCE, Verdicts, at_once, kinds, resting, working};
use crate::{
    bind::{self, InForce, Remainder, Verdict},
    policy::{Active, Form},
    state::{Shared, State, own},
    store::{Root, RootKey},
    watch::WatchState,
};

/// Puts in force what was decided, once the watches of its children have listed what is there, or have failed to.
/// Those in `waiting` go on with the module and config that they had. Returns whether others wait for a watch, or for clarity.
pub(super) async fn activate(shared: &Arc<Shared>, verdicts: &Verdicts, waiting: &BTreeSet<String>) -> bool {
    let (mut swaps, mut unsettled) = (Vec::new(), false);
    {
        let mut state = shared.state();
        end(shared, &mut state, verdicts);
        for (name, remainder) in resting(verdicts) {
            let_go_of_roots(shared, &mut state, name, remainder);
        }
        for (name, in_force) in working(verdicts) {
            // One of the same name that came since is looked at in the next round.
            if state.own.reconcilers.get(name).is_none_or(|object| bind::uid(object) != in_force.uid) {
                continue;
            }
            let frame = if waiting.contains(name) { None } else { frame(&state, name, in_force) };
            match frame {
                Some(frame) => swaps.extend(put_in_force(shared, &mut state, name, in_force, frame)),
                None => {
                    unsettled |= !waiting.contains(name);
                    renew_alone(&mut state, name);
                }
            }
        }
    }
    shared.work.notify_one();
    at_once(swaps.into_iter().map(|swap| tell(shared, swap))).await;
    unsettled
}

/// Publishes an Event about a swap.
async fn tell(shared: &Shared, Swap { reconciler, uid, module }: Swap) {
    let message = format!("module {module} is in force");
    let event = Event { r#type: EventType::Normal, reason: reasons::MODULE_IN_FORCE.into(), message };
    let (about, related) = (own("Reconciler", &reconciler), own("Module", &module));
    shared.recorder.emit(&about, &uid, Some(&related), &[event]).await;
}

/// A module that came into force, which is worth an Event.
struct Swap {
    reconciler: String,
    uid: String,
    module: String,
}

/// Ends what is no longer to be worked on.
fn end(shared: &Shared, state: &mut State, verdicts: &Verdicts) {
    let goes_on =
        |name: &String| matches!(verdicts.get(name), Some(Verdict::Work(_) | Verdict::Rest(_, Some(_))));
    let ended: Vec<String> =
        state.bindings.lanes().map(|(name, _)| name).filter(|name| !goes_on(name)).cloned().collect();
    for name in ended {
        state.bindings.remove(&name);
        state.queue.remove(&name);
        shared.metrics.forget(&name);
        shared.budget.forget(&name);
    }
}

/// Has the roots of a Reconciler without a module let go when they are deleted.
fn let_go_of_roots(shared: &Shared, state: &mut State, name: &String, remainder: &Remainder) {
    // One of the same name that came since is looked at in the next round.
    let object = state.own.reconcilers.get(name).filter(|object| bind::uid(object) == remainder.uid);
    let Some(object) = object else { return };
    let before = state.bindings.decided(name, &remainder.uid);
    if before.is_some_and(|active| is_as_remainder(active, object, remainder)) {
        return;
    }
    let binding = binding_without_module(shared, name, object, remainder);
    let active = Active::new(object, binding, None, remainder.resource.clone());
    info!(reconciler = name, duty = ?remainder.duty, "Without a module: roots that go are let go");
    state.bindings.put(name, active);
    enqueue_all(state, name);
}

/// Puts a module and config in force, where they are not. Returns the swap, where somebody should hear of it.
fn put_in_force(
    shared: &Shared,
    state: &mut State,
    name: &String,
    in_force: &InForce,
    frame: Frame,
) -> Option<Swap> {
    let object = state.own.reconcilers.get(name)?;
    let before = state.bindings.decided(name, &in_force.uid);
    if before.is_some_and(|active| is_as(active, object, in_force, &frame)) {
        return None;
    }
    let digest = &in_force.active.digest;
    // A host that just started may have cleaned up without a module until now.
    let swapped = before.is_some_and(|before| before.guest.is_some() && before.binding.digest != *digest);
    let recorded_module = object.status.as_ref().and_then(|status| status.active.as_ref());
    let is_news = recorded_module.is_none_or(|active| active.digest != *digest);
    let binding = binding(shared, name, object, in_force, frame);
    // A host that has just started goes on with what the one before has put in force.
    let is_another = match before.filter(|before| before.guest.is_some()) {
        Some(before) => !before.binding.runs_as(&binding),
        None => recorded_module.is_none_or(|active| !active.is_same(&in_force.active)),
    };
    let (guest, resource) = (Some(in_force.guest.clone()), in_force.resource.clone());
    let active = Active::new(object, binding, guest, resource);
    if is_another {
        state.roots.swapped(&in_force.resource.kind);
    }
    state.bindings.put(name, active);
    // What failed under the old module, grants or config is not to wait out a back-off that it earned there.
    let roots = enqueue_all(state, name);
    info!(reconciler = name, module = in_force.active.module, roots, swapped, "In force");
    state.counts_changed.insert(name.clone());
    if swapped && shared.cluster.hold().term().is_some() {
        shared.metrics.swapped(name);
    }
    (swapped || is_news).then(|| Swap {
        reconciler: name.clone(),
        uid: in_force.uid.clone(),
        module: in_force.active.module.clone(),
    })
}

/// Has every root of a Reconciler looked at, without the back-off that it may have earned. Returns how many there are.
fn enqueue_all(state: &mut State, name: &String) -> usize {
    let Some(kind) = state.bindings.kind_of(name).cloned() else { return 0 };
    let roots: Vec<RootKey> = state.roots.of_kind(&kind).map(Root::key).collect();
    for key in &roots {
        state.enqueue(&kind, key, Priority::Background);
    }
    state.queue.hurry(name);
    roots.len()
}

/// While a module and config wait for their turn, what an administrator allows does not: the roots are looked at under the old ones.
pub(crate) fn renew_alone(state: &mut State, name: &String) {
    let Some(object) = state.own.reconcilers.get(name) else { return };
    if state.bindings.renew(name, object) {
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
fn frame(state: &State, name: &str, in_force: &InForce) -> Option<Frame> {
    let before = state.bindings.decided(name, &in_force.uid);
    let is_late = |since: Duration| clock::monotonic().saturating_sub(since) >= CLARITY_PATIENCE;
    let manifest = in_force.guest.manifest();
    let others = kinds::other_kinds(&state.own.reconcilers.get(name)?.spec.grants, manifest);
    // Of a kind that stays unclear nothing is shown, and nobody else waits for it: see `Work::answer`.
    let is_unclear = |kind: &Kind| state.served.unclear_since(kind).is_some_and(|since| !is_late(since));
    if before.is_none() && others.iter().any(is_unclear) {
        return None;
    }
    let kinds = manifest.children.iter().map(pintle_wit::ChildKind::kind).chain(others);
    let mut infos = BTreeMap::new();
    for kind in kinds {
        if let Some(resource) = state.served.get(&kind) {
            infos.insert(kind, resource.info());
        }
    }
    let settles = |kind: &Kind| {
        let mut watches = state.watches.iter().filter(|(key, _)| {
            key.kind == *kind && (key.brings_children() || key.brings_needs() && before.is_none())
        });
        watches.all(|(_, watch)| {
            watch.state != WatchState::Starting || before.is_none() && is_late(watch.started)
        })
    };
    if !infos.keys().all(settles) {
        return None;
    }
    Some(Frame {
        field_manager: state.readings.get(name)?.manager.clone(),
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
        grants: object.spec.grants.clone(),
        limits: object.spec.limits,
        config: in_force.active.config.clone().into(),
        digest: in_force.active.digest.clone(),
        manifest: in_force.guest.manifest().clone(),
        kinds: frame.kinds,
        status: in_force.status.clone(),
        key: shared.key.clone(),
        duty: Duty::Full,
        watched_namespaces: frame.watched_namespaces,
    }
}

/// What holds for the passes of a Reconciler that has no module to call.
fn binding_without_module(
    shared: &Shared,
    name: &str,
    object: &api::Reconciler,
    remainder: &Remainder,
) -> Binding {
    Binding {
        reconciler: name.into(),
        uid: remainder.uid.clone(),
        generation: Form::of(object).generation(),
        field_manager: object.spec.manager(),
        grants: object.spec.grants.clone(),
        limits: object.spec.limits,
        config: Config::default(),
        digest: String::new(),
        manifest: Manifest { reconciles: remainder.resource.kind.clone(), ..Manifest::default() },
        kinds: BTreeMap::new(),
        status: remainder.status.clone(),
        key: shared.key.clone(),
        duty: remainder.duty,
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
fn is_as_remainder(active: &Active, object: &api::Reconciler, remainder: &Remainder) -> bool {
    active.queued_for == Form::of(object)
        && active.guest.is_none()
        && active.binding.duty == remainder.duty
        && active.binding.status == remainder.status
}
