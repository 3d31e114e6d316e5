//! The kinds of children: how the API server serves them, which may have live objects, and the watches that follow from both.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures::future::join_all;
use pintle_core::{
    object,
    reconciler::{self, Grants},
};
use pintle_kubernetes::Resource;
use pintle_runtime::clock;
use pintle_wit::{Kind, Manifest, names};
use tracing::{info, warn};

use super::{GATHER, Loop, ROUND_RETRY, Verdicts, working};
use crate::{
    bind::InForce,
    state::{Shared, State},
    watch::{self, WatchKey, WatchState},
};

/// Of how many kinds that a Reconciler's status names live objects are looked for: those of four manifests that declare as many as they
/// may.
const RECORDED_KINDS_MAX: usize = 4 * pintle_wit::manifest_limits::KINDS;

/// The kinds of children of a Reconciler: those that its guest declares and its administrator grants, and those that may have been left
/// by the guest before. What is not granted is no question to the API server and no watch.
pub(super) fn kinds_of(state: &State, name: &str, in_force: &InForce) -> BTreeSet<Kind> {
    let Some(object) = state.own.reconcilers.get(name) else { return BTreeSet::new() };
    let recorded = object.status.as_ref().map_or(&[][..], |status| &status.child_kinds);
    kinds_in_use(&object.spec.grants, in_force.guest.manifest(), recorded)
}

fn kinds_in_use(grants: &Grants, manifest: &Manifest, recorded: &[Kind]) -> BTreeSet<Kind> {
    let declared = manifest.children.iter().map(pintle_wit::ChildKind::kind);
    let granted = declared.filter(|kind| grants.allows_child(kind));
    // Whoever may write the status may write anything there.
    let recorded = recorded.iter().filter(|kind| object::is_kind(kind)).take(RECORDED_KINDS_MAX);
    granted.chain(recorded.cloned()).collect()
}

/// The kinds of objects that a guest may ask to see, patch, or have go: declared and granted.
pub(super) fn other_kinds(grants: &Grants, manifest: &Manifest) -> BTreeSet<Kind> {
    let evicts = (manifest.evictions && grants.allows_evictions()).then(|| Kind::new("v1", "Pod"));
    let needs = needs_of(grants, manifest).map(|(kind, _)| kind);
    needs.chain(patches_of(grants, manifest)).chain(evicts).collect()
}

/// The kinds that a guest may ask to see, with their indexes.
pub(super) fn needs_of<'a>(
    grants: &'a Grants,
    manifest: &'a Manifest,
) -> impl Iterator<Item = (Kind, &'a [String])> {
    let needs = manifest.needs.iter();
    let needs = needs.map(|need| (Kind::new(&need.api_version, &need.kind), need.indexes.as_slice()));
    needs.filter(|(kind, _)| grants.allows_need(kind))
}

/// The kinds that a guest may patch.
pub(super) fn patches_of<'a>(grants: &'a Grants, manifest: &'a Manifest) -> impl Iterator<Item = Kind> {
    let patches = manifest.patches.iter().map(|patch| Kind::new(&patch.api_version, &patch.kind));
    patches.filter(|kind| grants.allows_patch(kind))
}

/// Finds out how the API server serves the kinds that are in use.
pub(super) async fn resolve_kinds(shared: &Shared, verdicts: &Verdicts) -> Option<Duration> {
    let now = clock::monotonic();
    let unknown: BTreeSet<Kind> = {
        let mut state = shared.state();
        let all = working(verdicts).flat_map(|(name, in_force)| {
            let grants = state.own.reconcilers.get(name).map(|object| &object.spec.grants);
            let others =
                grants.map(|grants| other_kinds(grants, in_force.guest.manifest())).unwrap_or_default();
            kinds_of(&state, name, in_force).into_iter().chain(others)
        });
        let wanted: BTreeSet<Kind> = all.collect();
        for kind in &wanted {
            let crd = state
                .own
                .crds
                .values()
                .find(|crd| crd.group == kind.group() && crd.kind == kind.kind && crd.established);
            if let Some(crd) = crd.filter(|crd| crd.versions.contains_key(kind.version())) {
                let resource =
                    Resource { kind: kind.clone(), plural: crd.plural.clone(), namespaced: crd.namespaced };
                state.served.learn(resource);
            }
        }
        state.served.due(wanted, now)
    };
    discover(shared, unknown, now).await;
    let asks_at = shared.state().served.asks_at();
    asks_at.map(|at| at.saturating_sub(clock::monotonic()).max(GATHER))
}

/// Asks the API server about kinds, all at the same time: an aggregated API that hangs may have several of them.
pub(super) async fn discover(shared: &Shared, kinds: BTreeSet<Kind>, now: Duration) {
    let asked = kinds.into_iter().map(|kind| async move { (shared.cluster.discover(&kind).await, kind) });
    for (found, kind) in join_all(asked).await {
        let served = &mut shared.state().served;
        match found {
            Ok(found) => served.answered(kind, found, now),
            Err(error) => {
                warn!(%kind, %error, "The API server did not say how it serves a kind");
                served.not_answered(kind, now);
            }
        }
    }
}

/// Every kind that may have live children, by Reconciler: what is declared, and what was, until nothing is left of it.
pub(super) fn child_kinds(shared: &Shared, verdicts: &Verdicts) -> BTreeMap<String, Vec<Kind>> {
    let state = shared.state();
    let keep = |name: &str, in_force: &InForce, kind: &Kind| {
        let granted =
            state.own.reconcilers.get(name).is_some_and(|object| object.spec.grants.allows_child(kind));
        let declared =
            granted && in_force.guest.manifest().children.iter().any(|child| child.kind() == *kind);
        let synced = state.watches.iter().any(|(key, watch)| {
            key.kind == *kind && key.brings_children() && watch.state == WatchState::Synced
        });
        let may_be_left = if reconciler::is_watchable(kind) {
            !synced
        } else {
            !declared && state.roots.any_unwatched(&in_force.resource.kind, &kind.kind)
        };
        declared || may_be_left || state.children.any_of(kind, name)
    };
    working(verdicts)
        .map(|(name, in_force)| {
            let kinds =
                kinds_of(&state, name, in_force).into_iter().filter(|kind| keep(name, in_force, kind));
            (name.clone(), kinds.collect())
        })
        .collect()
}

/// Keeps the kinds that would be forgotten while there are children of them: that there are none must not be the word of a watch that is
/// behind. What is forgotten is watched no more, and a child that is not wanted any more would stay. Returns when to look again.
pub(super) async fn keep_what_is_left(
    shared: &Shared,
    memory: &mut Loop,
    kinds: &mut BTreeMap<String, Vec<Kind>>,
) -> Option<Duration> {
    let now = clock::monotonic();
    let dropped: Vec<(String, Kind, Option<Resource>)> = {
        let state = shared.state();
        let dropped = kinds.iter().flat_map(|(name, kept)| {
            let status = state.own.reconcilers.get(name).and_then(|object| object.status.as_ref());
            let recorded = status.into_iter().flat_map(|status| &status.child_kinds);
            // Of kinds that are not watched, the roots' own statuses say what is left.
            let is_dropped = |kind: &&Kind| !kept.contains(kind) && reconciler::is_watchable(kind);
            let dropped = recorded.filter(is_dropped).filter(|kind| object::is_kind(kind));
            dropped.map(|kind| (name.clone(), kind.clone(), state.served.get(kind).cloned()))
        });
        dropped.collect()
    };
    memory.left.retain(|(name, kind), _| dropped.iter().any(|(other, one, _)| other == name && one == kind));
    // What is not served any more went with its CRD: its watch had listed it.
    let served = dropped.into_iter().filter_map(|(name, kind, resource)| Some(((name, kind), resource?)));
    let asked = served.map(|(key, resource)| {
        let asked_at = memory.left.get(&key);
        let is_due = asked_at.is_none_or(|asked_at| now.saturating_sub(*asked_at) >= ROUND_RETRY);
        async move {
            if !is_due {
                return (key, None);
            }
            let left = shared.cluster.any_has_label(&resource, names::LABEL_RECONCILER, &key.0).await;
            (key, Some(left))
        }
    });
    for (key, left) in join_all(asked).await {
        match &left {
            Some(Ok(false)) => {
                memory.left.remove(&key);
                continue;
            }
            Some(Ok(true)) => {
                info!(reconciler = key.0, kind = %key.1, "Its watch does not show its children yet")
            }
            Some(Err(error)) => {
                warn!(reconciler = key.0, kind = %key.1, %error, "Not known whether children are left")
            }
            None => {}
        }
        if left.is_some() {
            memory.left.insert(key.clone(), now);
        }
        kinds.entry(key.0).or_default().push(key.1);
    }
    (!memory.left.is_empty()).then_some(ROUND_RETRY)
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
        key.brings_needs() && watch.listed && watch.claims.contains(name)
    };
    state.watches.iter().filter(of_needs).filter_map(|(key, _)| key.namespace.clone()).collect()
}

#[cfg(test)]
mod tests {
    use pintle_core::reconciler::{KindGrant, NeedGrant, NeedScope, PatchGrant};
    use pintle_wit::{ChildKind, NeedKind, PatchKind};

    use super::*;

    fn kinds(names: &[(&str, &str)]) -> BTreeSet<Kind> {
        names.iter().map(|(api_version, kind)| Kind::new(*api_version, *kind)).collect()
    }

    #[test]
    fn what_is_declared_and_not_granted_is_neither_looked_up_nor_watched() {
        let manifest = Manifest {
            children: vec![ChildKind::new("v1", "ConfigMap"), ChildKind::new("apps/v1", "Deployment")],
            needs: vec![
                NeedKind::new("v1", "Pod").indexed_by("spec.nodeName"),
                NeedKind::new("v1", "Service"),
                NeedKind::new("v1", "Secret"),
            ],
            patches: vec![
                PatchKind::new("apps/v1", "DaemonSet", &["spec"]),
                PatchKind::new("apps/v1", "StatefulSet", &["spec"]),
            ],
            evictions: true,
            ..Manifest::default()
        };
        let nothing = Grants::default();
        assert!(kinds_in_use(&nothing, &manifest, &[]).is_empty());
        assert!(other_kinds(&nothing, &manifest).is_empty());
        let secrets = |names: &[&str]| NeedGrant {
            api_version: "v1".into(),
            kinds: vec!["Secret".into(), "Service".into()],
            scope: NeedScope::Namespace,
            names: names.iter().map(|name| (*name).into()).collect(),
        };
        let mut grants = Grants {
            children: vec![KindGrant {
                api_version: "apps/v1".into(),
                kinds: vec!["Deployment".into(), "ReplicaSet".into()],
                namespaces: vec![],
            }],
            needs: vec![secrets(&[])],
            patches: vec![PatchGrant {
                api_version: "apps/v1".into(),
                kind: "StatefulSet".into(),
                fields: vec!["spec".into()],
                force: false,
            }],
            ..Grants::default()
        };
        assert_eq!(kinds_in_use(&grants, &manifest, &[]), kinds(&[("apps/v1", "Deployment")]));
        let granted = kinds(&[("v1", "Service"), ("apps/v1", "StatefulSet")]);
        assert_eq!(other_kinds(&grants, &manifest), granted, "Secrets are granted by name alone");
        grants.needs = vec![secrets(&["keys"])];
        grants.pod_deletions = true;
        let granted =
            kinds(&[("v1", "Service"), ("v1", "Secret"), ("v1", "Pod"), ("apps/v1", "StatefulSet")]);
        assert_eq!(other_kinds(&grants, &manifest), granted);
        let indexes: Vec<String> =
            needs_of(&grants, &manifest).flat_map(|(_, indexes)| indexes.to_vec()).collect();
        assert!(indexes.is_empty(), "Pods may go, and are not shown: {indexes:?}");
    }

    #[test]
    fn what_may_have_live_objects_stays_in_use_and_what_is_no_kind_does_not() {
        let recorded = [
            Kind::new("v1", "ConfigMap"),
            Kind::new("../../apis", "ConfigMap"),
            Kind::new("v1", "a/b?c"),
            Kind::new("v1", "A".repeat(10 << 10)),
        ];
        let used = kinds_in_use(&Grants::default(), &Manifest::default(), &recorded);
        assert_eq!(used, kinds(&[("v1", "ConfigMap")]));
    }
}
