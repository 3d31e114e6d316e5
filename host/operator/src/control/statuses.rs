//! Writes the statuses, finalizers and Events of the host's own objects.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures::future::join_all;
use kube::api::ObjectMeta;
use pintle_api::{self as api, ModuleUser};
use pintle_core::{ApiError, Duty, conditions, reasons, reconciler};
use pintle_kubernetes::{Resource, builtin};
use pintle_runtime::clock;
use pintle_wit::{Condition, ConditionStatus, Event, EventType, Kind, names};
use tracing::warn;

use super::{Loop, ROUND_RETRY, TELL_WITHIN, Verdicts, at_once, kinds, pace::Pace, users::Users};
use crate::{
    bind::{self, Remainder, Verdict},
    load::Progress,
    own_status::{self, Findings},
    state::{Shared, State, own},
    store::{Tally, since_swap},
    watch::{Purpose, WatchKey, WatchState},
};

pub(super) fn reconciler_resource() -> Resource {
    builtin("pintle.dev/v1alpha1", "Reconciler", "reconcilers", false)
}

pub(super) fn module_resource() -> Resource {
    builtin("pintle.dev/v1alpha1", "Module", "modules", false)
}

/// Writes the kinds of children into the status of a Reconciler, if there are new ones.
pub(super) async fn write_widened(shared: &Shared, name: &str, kinds: &[Kind]) -> Result<(), ApiError> {
    let (version, status) = {
        let state = shared.state();
        let Some(object) = state.own.reconcilers.get(name) else { return Ok(()) };
        let mut status = object.status.clone().unwrap_or_default();
        if kinds.iter().all(|kind| status.child_kinds.contains(kind)) {
            return Ok(());
        }
        status.child_kinds = kinds.to_vec();
        (version_of(&object.metadata), status)
    };
    write_reconciler(shared, name, &version, status).await
}

/// Writes the status of a Reconciler that was read in this version. If it has another version by now, a watch event will bring that
/// version, and the loop looks again.
async fn write_reconciler(
    shared: &Shared,
    name: &str,
    version: &str,
    status: api::ReconcilerStatus,
) -> Result<(), ApiError> {
    let value = serde_json::to_value(&status).unwrap_or_default();
    let now = shared.cluster.write_own_status(&reconciler_resource(), name, version, &value).await?;
    if let Some(object) = as_read(&mut shared.state().own.reconcilers, name, version) {
        object.metadata.resource_version = Some(now);
        object.status = Some(status);
    }
    Ok(())
}

/// One of the host's own objects, if the cache still has it in this version. A watch event may have brought a newer one during the write.
fn as_read<'a, K: kube::Resource>(
    objects: &'a mut BTreeMap<String, K>,
    name: &str,
    version: &str,
) -> Option<&'a mut K> {
    objects.get_mut(name).filter(|object| version_of(object.meta()) == version)
}

fn version_of(metadata: &ObjectMeta) -> String {
    metadata.resource_version.clone().unwrap_or_default()
}

/// Writes the statuses and finalizers of the host's own objects that differ from the wanted ones.
pub(super) async fn write_statuses(
    shared: &Shared,
    memory: &mut Loop,
    verdicts: &Verdicts,
    child_kinds: &BTreeMap<String, Vec<Kind>>,
) -> Option<Duration> {
    let (mut again, mut due) = (None::<Duration>, Vec::new());
    let now = clock::monotonic();
    memory.counts_written.retain(|name, _| verdicts.contains_key(name));
    for (name, verdict) in verdicts {
        // Before counting, so that later changes wake the loop again.
        shared.state().counts_changed.remove(name);
        let Some((object, status)) = reconciler_status(shared, memory, name, verdict, child_kinds) else {
            continue;
        };
        let before = object.status.clone().unwrap_or_default();
        if before == status || is_only_starting(&object, &before, &status) {
            continue;
        }
        let only_counts = own_status::differ_in_roots_alone(&before, &status);
        let pace = memory.counts_written.entry(name.clone()).or_insert_with(|| Pace::new(now));
        let wait = pace.wait(now, status.is_moving());
        if only_counts && !wait.is_zero() {
            // Until then the counts stay marked as changed, so that no further change wakes the loop.
            shared.state().counts_changed.insert(name.clone());
            again = Some(again.map_or(wait, |before| before.min(wait)));
            continue;
        }
        due.push(async move {
            let version = version_of(&object.metadata);
            let written = write_reconciler(shared, name, &version, status.clone()).await;
            if written.is_ok() {
                let uid = object.metadata.uid.as_deref();
                tell(shared, "Reconciler", name, uid, &before.conditions, &status.conditions).await;
            }
            (name, written)
        });
    }
    for written in at_once(due).await {
        match written {
            Ok((name, Ok(()))) => {
                if let Some(pace) = memory.counts_written.get_mut(name) {
                    pace.wrote(now);
                }
                continue;
            }
            Ok((_, Err(error))) if error.code == 404 => continue,
            Ok((name, Err(error))) if error.code != 409 => {
                warn!(reconciler = name, %error, "The status of a Reconciler cannot be written")
            }
            // A watch event brings what it is now.
            Ok(_) | Err(_) => {}
        }
        again = Some(again.map_or(ROUND_RETRY, |before| before.min(ROUND_RETRY)));
    }
    if let Some(at) = write_modules(shared, memory).await {
        again = Some(again.map_or(at, |before| before.min(at)));
    }
    again
}

/// Whether a status says only that a host is starting, and the Reconciler had another status before. It will have that one again in a
/// moment, so a restart need not be reported.
pub(super) fn is_only_starting(
    object: &api::Reconciler,
    before: &api::ReconcilerStatus,
    after: &api::ReconcilerStatus,
) -> bool {
    let passing = |status: &api::ReconcilerStatus| {
        conditions::find(&status.conditions, conditions::READY).map(|ready| is_passing(&ready.reason))
    };
    passing(after) == Some(true)
        && passing(before) == Some(false)
        && before.observed_generation == object.metadata.generation
}

/// Reasons that end by themselves within moments.
pub(super) fn is_passing(reason: &str) -> bool {
    matches!(reason, reasons::PROGRESSING | reasons::LOADING | reasons::MODULE_LOADING)
}

pub(super) fn reconciler_status(
    shared: &Shared,
    memory: &Loop,
    name: &str,
    verdict: &Verdict,
    child_kinds: &BTreeMap<String, Vec<Kind>>,
) -> Option<(api::Reconciler, api::ReconcilerStatus)> {
    let state = shared.state();
    let object = state.own.reconcilers.get(name)?.clone();
    let recorded_kinds =
        || object.status.as_ref().map(|status| status.child_kinds.clone()).unwrap_or_default();
    let kinds_of = child_kinds.get(name).cloned().unwrap_or_else(recorded_kinds);
    let mut findings = Findings {
        child_kinds: kinds_of.clone(),
        missing: Vec::new(),
        failing: Vec::new(),
        starting: Vec::new(),
        unwatched: Vec::new(),
        watched_namespaces: BTreeSet::new(),
        unwatched_needs: Vec::new(),
        watched_needs: BTreeSet::new(),
        roots: api::RootCounts::default(),
        lists_roots: true,
        active_roots: None,
        failures: None,
    };
    let in_force = match verdict {
        Verdict::Rest(failure, _) => Err(failure),
        Verdict::Work(in_force) => {
            findings.missing = kinds_of.iter().filter(|kind| !state.served.has(kind)).cloned().collect();
            let granted =
                |kind: &&Kind| object.spec.grants.allows_child(kind) && !reconciler::is_watchable(kind);
            findings.unwatched = kinds_of.iter().filter(granted).cloned().collect();
            findings.watched_namespaces = kinds::watched_namespaces(&state, name);
            let needs = in_force.guest.manifest().needs.iter();
            let needs = needs.map(|need| Kind::new(&need.api_version, &need.kind));
            let granted = |kind: &Kind| {
                let mut grants = object.spec.grants.needs.iter();
                grants.any(|one| one.api_version == kind.api_version && one.kinds.contains(&kind.kind))
            };
            findings.unwatched_needs =
                needs.filter(|kind| !reconciler::is_watchable(kind) && granted(kind)).collect();
            findings.watched_needs = kinds::watched_needs(&state, name);
            for (key, watch) in state.watches.iter().filter(|(_, watch)| watch.claims.contains(name)) {
                match &watch.state {
                    WatchState::Failing(message) => {
                        findings.lists_roots &= watch.listed || key.purpose != Purpose::Roots;
                        findings.failing.push((key.clone(), message.clone()));
                    }
                    WatchState::Starting => findings.starting.push(key.kind.clone()),
                    WatchState::Synced => {}
                }
            }
            let recorded_roots = object.status.as_ref().and_then(|status| status.roots);
            let (kind, namespaces) = (&in_force.resource.kind, &object.spec.namespaces);
            // The host has just started. Objects that it has not listed yet are not gone, and what it has not looked at is unchanged.
            let begins = !findings.lists_roots
                || findings.starting.contains(kind)
                || state.roots.any_unjudged(kind, namespaces);
            let Tally { roots, active } = state.roots.tally(kind, namespaces);
            findings.roots = match recorded_roots {
                Some(recorded) if begins && recorded.total > 0 => recorded,
                _ => roots,
            };
            let recorded = memory.recorded.get(name).filter(|recorded| recorded.is_same(&in_force.active));
            let recorded = recorded.and_then(|recorded| recorded.roots);
            let is_in_force = state.bindings.decided(name, &in_force.uid).is_some_and(|now| {
                now.binding.digest == in_force.active.digest
                    && *now.binding.config.value() == in_force.active.config
            });
            findings.active_roots = match recorded {
                Some(recorded) if begins => Some(recorded),
                Some(recorded) => Some(since_swap(recorded, active)),
                None if is_in_force => Some(active),
                // It waits for its watches, and the roots are reconciled with what was in force before.
                None => Some(api::ActiveRoots::default()),
            };
            findings.failures = (!begins).then(|| state.roots.failures(kind, namespaces));
            let roots = findings.roots;
            let other = roots.total.saturating_sub(roots.ready + roots.failing);
            shared.metrics.count_roots(name, [roots.ready, roots.failing, other]);
            Ok(in_force.as_ref())
        }
    };
    let status =
        own_status::of_reconciler(&object, in_force, memory.in_force.get(name), &findings, clock::now());
    Some((object, status))
}

/// Everything that decides what to write for a Module. While it stays the same, and nothing had to be written before, nothing has to be
/// written now.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Settled {
    version: Option<String>,
    users: BTreeMap<ModuleUser, Vec<usize>>,
    in_use: Option<bool>,
    progress: String,
}

impl Settled {
    fn of(
        object: &api::Module,
        progress: Option<&Progress>,
        users: &BTreeMap<ModuleUser, Vec<usize>>,
        in_use: Option<bool>,
    ) -> Self {
        let progress = match progress {
            Some(Progress::Loaded(module, _)) => module.digest().to_string(),
            Some(Progress::Checked(Some(facts))) => facts.digest.to_string(),
            Some(Progress::Checked(None)) => "Checked".into(),
            Some(Progress::Refused(failure) | Progress::NotYet(failure, _)) => failure.to_string(),
            Some(Progress::Loading) => "Loading".into(),
            None => String::new(),
        };
        Self { version: object.metadata.resource_version.clone(), users: users.clone(), in_use, progress }
    }
}

/// A Module for which something has to be written.
struct PendingWrite {
    name: String,
    object: api::Module,
    status: Option<api::ModuleStatus>,
    finalizers: Option<Vec<String>>,
}

/// The Modules for which something has to be written. A cluster has many of them, with long manifests, and nearly all stay unchanged.
fn due_modules(shared: &Shared, memory: &mut Loop) -> Vec<PendingWrite> {
    let state = shared.state();
    let users = Users::of(&state.own, &memory.in_force);
    memory.settled.retain(|name, _| state.own.modules.contains_key(name));
    let mut due = Vec::new();
    for (name, object) in &state.own.modules {
        let of_module = users.of_module(name, object);
        let in_use = users.is_in_use(&of_module);
        let load = state.loads.get(name);
        let load = load.filter(|load| object.metadata.uid.as_deref() == Some(load.uid.as_str()));
        let progress = load.map(|load| &load.progress);
        let now = Settled::of(object, progress, &of_module, in_use);
        if memory.settled.get(name) == Some(&now) {
            continue;
        }
        let status = own_status::of_module(object, progress, &of_module, clock::now());
        let status = (object.status.as_ref() != Some(&status)).then_some(status);
        let finalizers = finalizers(object, in_use);
        if status.is_none() && finalizers.is_none() {
            memory.settled.insert(name.clone(), now);
        } else {
            memory.settled.remove(name);
            due.push(PendingWrite { name: name.clone(), object: object.clone(), status, finalizers });
        }
    }
    due
}

pub(super) async fn write_modules(shared: &Shared, memory: &mut Loop) -> Option<Duration> {
    let due = due_modules(shared, memory);
    let written = at_once(due.into_iter().map(|due| write_module(shared, due))).await;
    written.iter().any(|written| !matches!(written, Ok(true))).then_some(ROUND_RETRY)
}

/// Writes what a Module is due. Whether nothing of it is left.
async fn write_module(shared: &Shared, due: PendingWrite) -> bool {
    let PendingWrite { name, object, status, finalizers } = due;
    let (mut version, mut is_done) = (version_of(&object.metadata), true);
    if let Some(status) = status {
        let value = serde_json::to_value(&status).unwrap_or_default();
        match shared.cluster.write_own_status(&module_resource(), &name, &version, &value).await {
            Ok(now) => {
                let before = object.status.as_ref().map_or(&[][..], |status| &status.conditions);
                let uid = object.metadata.uid.as_deref();
                tell(shared, "Module", &name, uid, before, &status.conditions).await;
                tell_in_use(shared, &name, uid, before, &status.conditions).await;
                if let Some(object) = as_read(&mut shared.state().own.modules, &name, &version) {
                    object.metadata.resource_version = Some(now.clone());
                    object.status = Some(status);
                }
                version = now;
            }
            Err(error) if error.code == 404 => return true,
            // A watch event will bring its present version.
            Err(error) if error.code == 409 => return false,
            Err(error) => {
                warn!(module = name, %error, "The status of a Module cannot be written");
                is_done = false;
            }
        }
    }
    if let Some(finalizers) = finalizers {
        match shared.cluster.set_finalizers(&module_resource(), &name, &version, &finalizers).await {
            Ok(now) => {
                if let Some(object) = as_read(&mut shared.state().own.modules, &name, &version) {
                    object.metadata.resource_version = Some(now);
                    object.metadata.finalizers = Some(finalizers);
                }
            }
            Err(error) => {
                if !matches!(error.code, 404 | 409 | 422) {
                    warn!(module = name, %error, "The finalizer of a Module cannot be written");
                }
                is_done = false;
            }
        }
    }
    is_done
}

/// Publishes an Event about a Module that somebody deletes while Reconcilers or Views use it.
async fn tell_in_use(
    shared: &Shared,
    name: &str,
    uid: Option<&str>,
    before: &[Condition],
    after: &[Condition],
) {
    let in_use = |conditions: &[Condition]| conditions::find(conditions, reasons::IN_USE).cloned();
    let Some(condition) =
        in_use(after).filter(|now| in_use(before).is_none_or(|was| was.message != now.message))
    else {
        return;
    };
    let event = Event { r#type: EventType::Warning, reason: condition.reason, message: condition.message };
    shared.recorder.emit(&own("Module", name), uid.unwrap_or_default(), None, &[event]).await;
}

/// The finalizers that a Module should have, if they differ from those that it has. Ours is set while somebody uses the Module, so that a
/// module in force cannot be deleted; while it is not known whether somebody does, it stays as it is.
pub(super) fn finalizers(object: &api::Module, in_use: Option<bool>) -> Option<Vec<String>> {
    let now = object.metadata.finalizers.clone().unwrap_or_default();
    let has = now.iter().any(|name| name == names::FINALIZER_IN_USE);
    match (has, in_use?, object.metadata.deletion_timestamp.is_some()) {
        (false, true, false) => Some(now.into_iter().chain([names::FINALIZER_IN_USE.to_owned()]).collect()),
        (true, false, _) => Some(now.into_iter().filter(|name| name != names::FINALIZER_IN_USE).collect()),
        _ => None,
    }
}

/// Writes our finalizers on Reconcilers, and removes them. One is for those whose roots may get finalizers: it is there before the first
/// root gets one, until no root has one any more. Without it, roots could be left that nobody works on and that cannot be deleted. The
/// other one is for all that work, until their roots are told that nobody reconciles them. Returns the Reconcilers for which that failed.
pub(super) async fn hold_reconcilers(
    shared: &Shared,
    memory: &mut Loop,
    verdicts: &Verdicts,
) -> Vec<(String, ApiError)> {
    let now = clock::monotonic();
    let telling = verdicts.iter().filter(|(_, verdict)| releases(verdict).is_some());
    memory.telling =
        telling.map(|(name, _)| (name.clone(), memory.telling.get(name).copied().unwrap_or(now))).collect();
    let due: Vec<(String, String, Vec<String>, Option<Resource>)> = {
        let state = shared.state();
        verdicts
            .iter()
            .filter_map(|(name, verdict)| {
                let object = state.own.reconcilers.get(name)?;
                let is_late = memory.telling.get(name).is_some_and(|since| now >= *since + TELL_WITHIN);
                let (has, told) = (bind::may_hold_roots(object), bind::tells_roots(object));
                let wanted = holds_roots(&state, object, verdict).unwrap_or(has);
                let tells = tells_roots(&state, object, verdict, is_late);
                let mut finalizers = object.metadata.finalizers.clone().unwrap_or_default();
                let ours = [names::FINALIZER_ROOTS, names::FINALIZER_STATUSES];
                finalizers.retain(|name| !ours.contains(&name.as_str()));
                finalizers.extend(wanted.then(|| names::FINALIZER_ROOTS.to_owned()));
                finalizers.extend(tells.then(|| names::FINALIZER_STATUSES.to_owned()));
                let version = version_of(&object.metadata);
                let roots = match verdict {
                    Verdict::Work(in_force) => Some(&in_force.resource),
                    Verdict::Rest(_, remainder) => remainder.as_ref().map(|remainder| &remainder.resource),
                };
                let roots = roots.filter(|_| has && !wanted).cloned();
                let is_due = (has, told) != (wanted, tells);
                is_due.then(|| (name.clone(), version, finalizers, roots))
            })
            .collect()
    };
    let held = due.into_iter().map(|(name, version, finalizers, roots)| async move {
        let held = hold_reconciler(shared, &name, &version, finalizers, roots.as_ref()).await;
        held.err().map(|error| (name, error))
    });
    join_all(held).await.into_iter().flatten().collect()
}

async fn hold_reconciler(
    shared: &Shared,
    name: &str,
    version: &str,
    finalizers: Vec<String>,
    roots: Option<&Resource>,
) -> Result<(), ApiError> {
    // Without the Reconciler nobody would remove the finalizers of its roots, so an outdated cache is no proof that there are none.
    if let Some(roots) = roots
        && shared.cluster.any_has_finalizer(roots, &[names::FINALIZER_GUEST]).await?
    {
        return Err(roots_are_held());
    }
    match shared.cluster.set_finalizers(&reconciler_resource(), name, version, &finalizers).await {
        Ok(now) => {
            if let Some(object) = as_read(&mut shared.state().own.reconcilers, name, version) {
                object.metadata.resource_version = Some(now);
                object.metadata.finalizers = Some(finalizers);
            }
            Ok(())
        }
        Err(error) if error.code == 404 => Ok(()),
        Err(error) => Err(error),
    }
}

fn roots_are_held() -> ApiError {
    let message = "its roots have finalizers that their watch has not shown yet".into();
    ApiError { reason: reasons::ROOTS_HELD.into(), message, ..ApiError::default() }
}

/// Whether a Reconciler should have our finalizer; none while that is not known.
fn holds_roots(state: &State, object: &api::Reconciler, verdict: &Verdict) -> Option<bool> {
    let is_deleting = object.metadata.deletion_timestamp.is_some();
    match verdict {
        Verdict::Work(in_force) if in_force.guest.manifest().finalizer => Some(true),
        _ if !bind::may_hold_roots(object) => Some(false),
        // It may work again later, and its roots may be deleted meanwhile.
        Verdict::Rest(..) if !is_deleting => Some(true),
        _ => {
            let kind = &object.spec.r#for;
            if !state.own.crds.values().any(|crd| crd.group == kind.group() && crd.kind == kind.kind) {
                // All roots were deleted with their CRD.
                return Some(false);
            }
            let watch = state.watches.get(&WatchKey::roots(kind));
            let synced = watch.is_some_and(|watch| watch.state == WatchState::Synced);
            synced.then(|| state.roots.any_held(kind))
        }
    }
}

/// What a Reconciler that is being deleted still does for its roots.
fn releases(verdict: &Verdict) -> Option<&Remainder> {
    match verdict {
        Verdict::Rest(_, Some(remainder)) if remainder.duty == Duty::Release => Some(remainder.as_ref()),
        _ => None,
    }
}

/// Whether a Reconciler should have our finalizer that stands for the statuses of its roots.
fn tells_roots(state: &State, object: &api::Reconciler, verdict: &Verdict, is_late: bool) -> bool {
    let (has, spec) = (bind::tells_roots(object), &object.spec);
    match (verdict, releases(verdict)) {
        (Verdict::Work(_), _) => true,
        (_, Some(remainder)) => {
            let can_say = !remainder.status.lacks().iter().any(|field| field == "conditions");
            let watch = state.watches.get(&WatchKey::roots(&spec.r#for));
            let is_listed = watch.is_some_and(|watch| watch.state == WatchState::Synced);
            let is_left = || !is_listed || state.roots.any_untold(&spec.r#for, &spec.namespaces);
            has && can_say && !is_late && is_left()
        }
        _ => has && object.metadata.deletion_timestamp.is_none(),
    }
}

/// Publishes an Event if the condition `Ready` of one of the host's own objects changed, or has another reason that is worth an Event.
pub(super) async fn tell(
    shared: &Shared,
    kind: &str,
    name: &str,
    uid: Option<&str>,
    before: &[Condition],
    after: &[Condition],
) {
    let Some(now) = conditions::find(after, conditions::READY) else { return };
    let before = conditions::find(before, conditions::READY);
    let changed = before.is_none_or(|before| before.status != now.status || before.reason != now.reason);
    // The Event that a Reconciler works for the first time names its module.
    let first = kind == "Reconciler" && before.is_none_or(|before| is_passing(&before.reason));
    if !changed || is_passing(&now.reason) || first && now.status == ConditionStatus::True {
        return;
    }
    let is_ready = now.status == ConditionStatus::True;
    let event = Event {
        r#type: if is_ready { EventType::Normal } else { EventType::Warning },
        reason: if is_ready { reasons::READY.into() } else { now.reason.clone() },
        message: now.message.clone(),
    };
    shared.recorder.emit(&own(kind, name), uid.unwrap_or_default(), None, &[event]).await;
}
