//! The control loop: from Modules, Reconcilers, Views and CRDs to watches, bindings and their statuses. It looks at everything and makes it
//! so, whenever something changed; which event it was does not matter.

pub(crate) mod activate;
mod follow;
mod kinds;
mod pace;
mod statuses;
mod users;
mod watches;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures::future::{JoinAll, join_all};
use pintle_api as api;
use pintle_kubernetes::REQUEST_TIMEOUT;
use pintle_runtime::clock;
use pintle_wit::Kind;
use tokio::time::{Timeout, timeout};
use tracing::warn;

use super::{
    bind::{self, InForce, Remainder, Verdict, World},
    configs::Configs,
    load::{self, Load, Need},
    own_status,
    state::{Shared, State},
};
use activate::activate;
use follow::{follow, follow_crds, put};
use kinds::{child_kinds, keep_what_is_left, resolve_kinds};
use statuses::{hold_reconcilers, write_statuses, write_widened};
use users::Users;
use watches::claim_watches;

/// Events come in bursts; the loop looks once for all that arrive within this time.
const GATHER: Duration = Duration::from_millis(20);
/// How long a Reconciler that has nothing in force waits until it is clear how the API server serves its kinds, and for their first lists:
/// longer than a request may take. Then it begins without what does not come, which its roots say where they need it.
const CLARITY_PATIENCE: Duration = Duration::from_secs(15);
/// How long the roots of a Reconciler that is deleted are told that nobody reconciles them any more, before it goes: some thousand
/// statuses, and about as long as people wait for `kubectl delete`.
const TELL_WITHIN: Duration = Duration::from_secs(30);
/// When what went wrong in a round is tried again.
const ROUND_RETRY: Duration = Duration::from_secs(1);

/// What the loop remembers from round to round.
#[derive(Default)]
struct Loop {
    /// The term of leadership that the rest is from.
    term: Option<u64>,
    /// What is in force, by Reconciler: ahead of the status that says so.
    in_force: BTreeMap<String, api::ActiveModule>,
    /// What the host before, or this one before its term, has published of what is in force.
    recorded: BTreeMap<String, api::ActiveModule>,
    /// The uids of the Reconcilers that this is of: another may have taken the name.
    uids: BTreeMap<String, String>,
    /// Kinds of which children are left that no watch shows, by Reconciler, and when that was found out last.
    left: BTreeMap<(String, Kind), Duration>,
    /// Reconcilers that are being deleted and tell their roots, and since when.
    telling: BTreeMap<String, Duration>,
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
            put(&mut state.own.modules, name, object);
        },
        |listed| &mut listed.modules,
    ));
    let reconcilers = shared.spawner.spawn(follow::<api::Reconciler>(
        Arc::clone(&shared),
        |state, name, object| {
            put(&mut state.own.reconcilers, name, object);
        },
        |listed| &mut listed.reconcilers,
    ));
    let views = shared.spawner.spawn(follow::<api::View>(
        Arc::clone(&shared),
        |state, name, object| {
            let modules = object.map(|object| object.modules().into_iter().map(Into::into).collect());
            put(&mut state.own.views, name, modules);
        },
        |listed| &mut listed.views,
    ));
    let crds = shared.spawner.spawn(follow_crds(Arc::clone(&shared)));
    let mut memory = Loop::default();
    while !shared.is_stopping() {
        let notified = shared.control.notified();
        let again = round(&shared, &mut memory).await;
        match again {
            Some(after) => {
                let _ = timeout(after, notified).await;
            }
            None => notified.await,
        }
        tokio::time::sleep(GATHER).await;
    }
    for task in [modules, reconcilers, views, crds] {
        task.abort();
    }
}

/// One look at everything. Returns when to look again although nothing changed.
async fn round(shared: &Arc<Shared>, memory: &mut Loop) -> Option<Duration> {
    let now = clock::monotonic();
    let term = shared.cluster.hold().term();
    if term.is_none() || term != memory.term {
        // What the statuses say is what whoever led before made of it.
        *memory = Loop { term, configs: Arc::clone(&memory.configs), ..Loop::default() };
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
    let writes = widened.iter().filter(|_| term.is_some());
    let written = join_all(writes.map(|(name, kinds)| write_widened(shared, name, kinds))).await;
    for (name, written) in widened.keys().zip(written) {
        if let Err(error) = written {
            warn!(reconciler = name, %error, "The child kinds of a Reconciler cannot be written; its work waits");
            waiting.insert(name.clone());
        }
    }
    let unheld = if term.is_some() { hold_reconcilers(shared, memory, &verdicts).await } else { Vec::new() };
    let ends = memory.telling.values().filter_map(|since| (*since + TELL_WITHIN).checked_sub(now));
    if let Some(at) = ends.filter(|left| !left.is_zero()).min() {
        sooner(at);
    }
    for (name, error) in unheld {
        warn!(reconciler = name, %error, "The finalizer of a Reconciler stays as it is; its work waits");
        waiting.insert(name);
    }
    if !waiting.is_empty() {
        sooner(ROUND_RETRY);
    }
    if let Some(at) = claim_watches(shared, &verdicts, &widened) {
        sooner(at);
    }
    if activate(shared, &verdicts, &waiting).await {
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

/// Does all of these at the same time, and gives up those that take longer than one request may: what hangs holds up nothing else.
fn at_once<F: Future>(all: impl IntoIterator<Item = F>) -> JoinAll<Timeout<F>> {
    join_all(all.into_iter().map(|one| timeout(REQUEST_TIMEOUT, one)))
}

fn world<'a>(state: &'a State, configs: &'a Configs) -> World<'a> {
    World {
        modules: &state.own.modules,
        loads: &state.loads,
        reconcilers: &state.own.reconcilers,
        crds: &state.own.crds,
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
    if !(state.own.listed.modules && state.own.listed.reconcilers && state.own.listed.crds) {
        return None;
    }
    let Loop { in_force, recorded, uids, configs, .. } = memory;
    in_force.retain(|name, _| {
        state.own.reconcilers.get(name).is_some_and(|object| uids.get(name) == Some(&bind::uid(object)))
    });
    recorded.retain(|name, _| in_force.contains_key(name));
    *uids = state.own.reconcilers.iter().map(|(name, object)| (name.clone(), bind::uid(object))).collect();
    let world = world(&state, configs);
    let mut verdicts = BTreeMap::new();
    for (name, object) in &state.own.reconcilers {
        let is_held = bind::may_hold_roots(object) || bind::tells_roots(object);
        if object.metadata.deletion_timestamp.is_some() && !is_held {
            continue;
        }
        let before = in_force.get(name).cloned().or_else(|| {
            let published = object.status.as_ref().and_then(|status| status.active.clone())?;
            recorded.insert(name.clone(), published.clone());
            Some(api::ActiveModule { roots: None, ..published })
        });
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
    let State { own, loads, .. } = &mut *state;
    let users = Users::of(own, &memory.in_force);
    let modules = &own.modules;
    loads.retain(|name, _| modules.contains_key(name));
    let need = |name: &String, module: &api::Module| match () {
        () if users.calls(name) => Need::Loaded,
        () if own_status::was_checked(module) => Need::Verified,
        () => Need::Checked,
    };
    let mut due: Vec<(Need, bool, String, String, api::ModuleSpec)> = modules
        .iter()
        .map(|(name, module)| {
            (need(name, module), name, module.metadata.uid.clone().unwrap_or_default(), module)
        })
        .filter(|(need, name, uid, _)| Load::is_due(loads.get(*name), uid, *need, now))
        .map(|(need, name, uid, module)| (need, users.has(name), name.clone(), uid, module.spec.clone()))
        .collect();
    due.sort_by_key(|(need, is_used, ..)| std::cmp::Reverse((*need, *is_used)));
    let with_need = loads.iter_mut().filter_map(|(name, load)| Some((load, need(name, modules.get(name)?))));
    let gone = load::let_go(with_need, now);
    let retry = loads.values().filter_map(Load::retries_at).min();
    drop(state);
    drop(gone);
    for (need, _, name, uid, spec) in due {
        load::begin(shared, &name, &uid, spec, need);
    }
    retry.map(|at| at.saturating_sub(now))
}

fn working(verdicts: &Verdicts) -> impl Iterator<Item = (&String, &InForce)> {
    verdicts.iter().filter_map(|(name, verdict)| match verdict {
        Verdict::Work(in_force) => Some((name, in_force.as_ref())),
        Verdict::Rest(..) => None,
    })
}

/// Reconcilers that rest, and of whose roots some may have finalizers of ours.
fn resting(verdicts: &Verdicts) -> impl Iterator<Item = (&String, &Remainder)> {
    verdicts.iter().filter_map(|(name, verdict)| match verdict {
        Verdict::Rest(_, Some(remainder)) => Some((name, remainder.as_ref())),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
