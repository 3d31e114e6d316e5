//! The kinds of children: how the API server serves them, which may have live objects, and the watches that follow from both.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use pintle_core::{readiness, reconciler};
use pintle_wit::Kind;
use tracing::{info, warn};

use super::{GATHER, Loop, ROUND_RETRY, Verdicts, resting, working};
use crate::{
    clock,
    kubernetes::Resource,
    operator::{
        Shared, State,
        bind::InForce,
        needs::Wanted,
        watch::{self, Projection, WatchKey, WatchState},
    },
};

/// When the API server is asked again about a kind that it did not serve. A CRD's arrival is seen by watch; this is for aggregated
/// APIs.
const MISSING_RETRY: Duration = Duration::from_secs(30);

/// The kinds of children of a Reconciler: those that its guest declares, and those that may have been left by the one before.
pub(super) fn kinds_of(state: &State, name: &str, in_force: &InForce) -> BTreeSet<Kind> {
    let declared = in_force.module.manifest().children.iter().map(pintle_wit::ChildKind::kind);
    let status = state.reconcilers.get(name).and_then(|object| object.status.as_ref());
    let recorded = status.into_iter().flat_map(|status| status.child_kinds.iter().cloned());
    declared.chain(recorded).collect()
}

/// The kinds of objects that a guest asks to see, patches, or has go.
pub(super) fn other_kinds(in_force: &InForce) -> BTreeSet<Kind> {
    let manifest = in_force.module.manifest();
    let needs = manifest.needs.iter().map(|need| Kind::new(&need.api_version, &need.kind));
    let patches = manifest.patches.iter().map(|patch| Kind::new(&patch.api_version, &patch.kind));
    let evicts = manifest.evictions.then(|| Kind::new("v1", "Pod"));
    needs.chain(patches).chain(evicts).collect()
}

/// Finds out how the API server serves the kinds that are in use.
pub(super) async fn resolve_kinds(shared: &Shared, verdicts: &Verdicts) -> Option<Duration> {
    let now = clock::monotonic();
    let unknown: BTreeSet<Kind> = {
        let mut state = shared.state();
        let all = working(verdicts).flat_map(|(name, in_force)| {
            kinds_of(&state, name, in_force).into_iter().chain(other_kinds(in_force))
        });
        let wanted: BTreeSet<Kind> = all.collect();
        for kind in &wanted {
            let crd = state
                .crds
                .values()
                .find(|crd| crd.group == kind.group() && crd.kind == kind.kind && crd.established);
            if let Some(crd) = crd.filter(|crd| crd.versions.contains_key(kind.version())) {
                let resource =
                    Resource { kind: kind.clone(), plural: crd.plural.clone(), namespaced: crd.namespaced };
                state.resources.insert(kind.clone(), resource);
            }
        }
        let is_open = |kind: &Kind| {
            !state.resources.contains_key(kind) && state.missing.get(kind).is_none_or(|at| *at <= now)
        };
        wanted.into_iter().filter(is_open).collect()
    };
    for kind in unknown {
        let found = shared.cluster.discover(&kind).await;
        let mut state = shared.state();
        state.unclear.remove(&kind);
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
                state.unclear.insert(kind.clone());
                state.missing.insert(kind, now + ROUND_RETRY);
            }
        }
    }
    let state = shared.state();
    state.missing.values().min().map(|at| at.saturating_sub(clock::monotonic()).max(GATHER))
}

/// Every kind that may have live children, by Reconciler: what is declared, and what was, until nothing is left of it.
pub(super) fn child_kinds(shared: &Shared, verdicts: &Verdicts) -> BTreeMap<String, Vec<Kind>> {
    let state = shared.state();
    let keep = |name: &str, in_force: &InForce, kind: &Kind| {
        let declared = in_force.module.manifest().children.iter().any(|child| child.kind() == *kind);
        let synced = state.watches.iter().any(|(key, watch)| {
            key.kind == *kind && key.brings_children() && watch.state == WatchState::Synced
        });
        let left = if reconciler::is_watchable(kind) {
            !synced || state.children.any_of(kind, name)
        } else {
            state.roots.any_unwatched(&in_force.resource.kind, &kind.kind)
                || state.children.any_of(kind, name)
        };
        declared || left
    };
    working(verdicts)
        .map(|(name, in_force)| {
            let kinds =
                kinds_of(&state, name, in_force).into_iter().filter(|kind| keep(name, in_force, kind));
            (name.clone(), kinds.collect())
        })
        .collect()
}

/// The namespaces in which the Secrets of a Reconciler's roots are watched: those that it lists, once a watch has shown what is there.
/// One that fails for a while afterwards is like any other watch that does.
pub(super) fn watched_namespaces(state: &State, name: &str) -> BTreeSet<String> {
    let mut namespaces = BTreeSet::new();
    for (key, watch) in &state.watches {
        if key.brings_children() && watch.listed && watch.claims.contains(name) {
            namespaces.extend(key.namespace.clone());
        }
    }
    namespaces
}

/// The namespaces in which changes are seen of objects that guests ask to see and that are watched nowhere else.
pub(super) fn watched_needs(state: &State, name: &str) -> BTreeSet<String> {
    let of_needs = |(key, watch): &(&WatchKey, &watch::Watch)| {
        key.needs.is_some() && watch.listed && watch.claims.contains(name)
    };
    state.watches.iter().filter(of_needs).filter_map(|(key, _)| key.namespace.clone()).collect()
}

/// Starts the watches that are wanted and ends those that nobody claims any more.
pub(super) fn claim_watches(
    shared: &Arc<Shared>,
    memory: &mut Loop,
    verdicts: &Verdicts,
    child_kinds: &BTreeMap<String, Vec<Kind>>,
) {
    let mut readings = BTreeMap::new();
    let mut wanted: BTreeMap<WatchKey, (Resource, BTreeSet<String>)> = BTreeMap::new();
    let mut state = shared.state();
    let observed: BTreeSet<Kind> = working(verdicts)
        .flat_map(|(_, in_force)| in_force.module.manifest().children.iter().filter(|child| child.observe))
        .map(pintle_wit::ChildKind::kind)
        .collect();
    for (name, left) in resting(verdicts) {
        let key = WatchKey::roots(&left.resource.kind);
        wanted.insert(key, (left.resource.clone(), BTreeSet::from([name.clone()])));
    }
    // One index serves all who declare it.
    let mut paths: BTreeMap<Kind, BTreeSet<String>> = BTreeMap::new();
    for need in working(verdicts).flat_map(|(_, in_force)| &in_force.module.manifest().needs) {
        let of_kind = paths.entry(Kind::new(&need.api_version, &need.kind)).or_default();
        of_kind.extend(need.indexes.iter().cloned());
    }
    // What a root has patched is followed as if its guest had asked to see it.
    for patch in working(verdicts).flat_map(|(_, in_force)| &in_force.module.manifest().patches) {
        paths.entry(Kind::new(&patch.api_version, &patch.kind)).or_default();
    }
    let needed: BTreeMap<Kind, Wanted> =
        paths.into_iter().map(|(kind, paths)| (kind.clone(), state.needed.wanted(&kind, paths))).collect();
    for (name, in_force) in working(verdicts) {
        let mut claim = |key: WatchKey, resource: &Resource| {
            let (_, claims) = wanted.entry(key).or_insert_with(|| (resource.clone(), BTreeSet::new()));
            claims.insert(name.clone());
        };
        claim(WatchKey::roots(&in_force.resource.kind), &in_force.resource);
        let manager =
            state.reconcilers.get(name).map_or_else(String::new, |object| object.spec.manager(name));
        let mine = in_force
            .module
            .manifest()
            .children
            .iter()
            .filter(|child| child.observe)
            .map(pintle_wit::ChildKind::kind);
        readings.insert(name.clone(), (manager, mine.collect::<BTreeSet<Kind>>()));
        let namespaces = state.reconcilers.get(name).map(|object| &object.spec.watch_secrets_in);
        let manifest = in_force.module.manifest();
        let needs = manifest.needs.iter().map(|need| Kind::new(&need.api_version, &need.kind));
        let patches = manifest.patches.iter().map(|patch| Kind::new(&patch.api_version, &patch.kind));
        for kind in needs.chain(patches) {
            let (Some(resource), Some(wanted)) = (state.resources.get(&kind), needed.get(&kind)) else {
                continue;
            };
            if reconciler::is_watchable(&kind) {
                claim(WatchKey::needs(&kind, None, *wanted), resource);
            } else {
                // Their metadata tells that there is news; what it is, is read live.
                let metadata = Wanted { whole: false, ..*wanted };
                for namespace in namespaces.into_iter().flatten() {
                    claim(WatchKey::needs(&kind, Some(namespace), metadata), resource);
                }
            }
        }
        for kind in child_kinds.get(name).into_iter().flatten() {
            let Some(resource) = state.resources.get(kind) else { continue };
            if reconciler::is_watchable(kind) {
                let whole = readiness::needs_status(kind) || observed.contains(kind);
                let projection = if whole { Projection::Whole } else { Projection::Metadata };
                claim(WatchKey::children(kind, None, projection), resource);
            } else {
                for namespace in namespaces.into_iter().flatten() {
                    claim(WatchKey::children(kind, Some(namespace), Projection::Metadata), resource);
                }
            }
        }
    }
    // Children are read by the eyes of their Reconciler; where those changed, they are read anew.
    let changed: BTreeSet<&String> = readings
        .iter()
        .filter(|(name, reading)| memory.readings.get(*name) != Some(reading))
        .map(|(name, _)| name)
        .collect();
    let reread: BTreeSet<Kind> =
        changed.iter().flat_map(|name| child_kinds.get(*name).into_iter().flatten().cloned()).collect();
    let ended: Vec<WatchKey> = state
        .watches
        .keys()
        .filter(|key| !wanted.contains_key(key) || key.brings_children() && reread.contains(&key.kind))
        .cloned()
        .collect();
    for key in ended {
        state.watches.remove(&key);
        let same = |other: &WatchKey| {
            other.kind == key.kind
                && other.namespace == key.namespace
                && other.label == key.label
                && other.needs.is_some() == key.needs.is_some()
        };
        if wanted.keys().any(same) {
            continue;
        }
        if key.needs.is_some() {
            state.needed.remove_kind(&key.kind);
        } else if key.brings_children() {
            state.children.remove_kind(&key.kind, key.namespace.as_deref());
        } else {
            state.roots.remove_kind(&key.kind);
        }
    }
    state.readings = readings.clone();
    for (key, (resource, claims)) in wanted {
        if let Some(watch) = state.watches.get_mut(&key) {
            watch.claims = claims;
            continue;
        }
        info!(watch = %key, projection = ?key.projection, "Starting a watch");
        let watch = watch::start(Arc::clone(shared), key.clone(), &resource, claims);
        state.watches.insert(key, watch);
    }
    drop(state);
    memory.readings = readings;
}
