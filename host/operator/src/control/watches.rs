//! Which watches the Reconcilers want, and starting and ending them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use pintle_api as api;
use pintle_core::{object, readiness, reconciler};
use pintle_kubernetes::{Projection, Resource};
use pintle_runtime::clock;
use pintle_wit::Kind;
use tracing::info;

use super::{
    Verdicts,
    kinds::{needs_of, patches_of},
    resting, working,
};
use crate::{
    bind::InForce,
    limits,
    needs::Wanted,
    state::{Reading, Shared, State},
    watch::{self, Purpose, WatchKey},
};

/// Starts the watches that are wanted and ends those that nobody claims any more. Returns when to look again although nothing changed.
pub(super) fn claim_watches(
    shared: &Arc<Shared>,
    verdicts: &Verdicts,
    child_kinds: &BTreeMap<String, Vec<Kind>>,
) -> Option<Duration> {
    let mut state = shared.state();
    let (rounds, again) = rounds_of_needs(shared, &mut state, verdicts);
    let wanted = wanted(&state, verdicts, child_kinds, &rounds);
    let readings = readings(&state, verdicts);
    end_others(&mut state, &wanted, &readings, child_kinds);
    state.readings = readings;
    for (key, (resource, claims)) in wanted.0 {
        if let Some(watch) = state.watches.get_mut(&key) {
            watch.claims = claims;
            continue;
        }
        info!(watch = %key, projection = ?key.projection, "Starting a watch");
        let (sink, client) = (Arc::clone(shared), shared.cluster.client());
        let watch = watch::start(sink, &shared.spawner, client, key.clone(), &resource, claims);
        state.watches.insert(key, watch);
    }
    again
}

/// The watches that are wanted, and the Reconcilers that want each.
#[derive(Default)]
struct Claims(BTreeMap<WatchKey, (Resource, BTreeSet<String>)>);

impl Claims {
    fn add(&mut self, name: &str, key: WatchKey, resource: &Resource) {
        let (_, claims) = self.0.entry(key).or_insert_with(|| (resource.clone(), BTreeSet::new()));
        claims.insert(name.to_owned());
    }
}

/// What the watches of needs have to bring, by kind, and when to look again.
fn rounds_of_needs(
    shared: &Shared,
    state: &mut State,
    verdicts: &Verdicts,
) -> (BTreeMap<Kind, Wanted>, Option<Duration>) {
    let roots: BTreeSet<Kind> =
        working(verdicts).map(|(_, in_force)| in_force.guest.manifest().reconciles.clone()).collect();
    state.needed.keep_kinds_of_roots(&roots);
    // One index serves all who declare it.
    let mut paths: BTreeMap<Kind, BTreeSet<String>> = BTreeMap::new();
    for (name, in_force) in working(verdicts) {
        let (manifest, Some(object)) = (in_force.guest.manifest(), state.own.reconcilers.get(name)) else {
            continue;
        };
        let grants = &object.spec.grants;
        for (kind, indexes) in needs_of(grants, manifest) {
            paths.entry(kind).or_default().extend(indexes.iter().cloned());
        }
        // What a root has patched is followed as if its guest had asked to see it.
        for kind in patches_of(grants, manifest) {
            paths.entry(kind).or_default();
        }
    }
    let (mut rounds, mut again) = (BTreeMap::new(), None);
    for (kind, paths) in paths {
        let (wanted, due) = state.needed.wanted(&kind, paths, clock::monotonic());
        rounds.insert(kind, wanted);
        if let Some(due) = due {
            again = again.into_iter().chain([due.after]).min();
            if due.is_put_off {
                // Nobody in particular is to blame: all who ask for the kind share its list.
                shared.metrics.limit_hit("", limits::RELISTS);
            }
        }
    }
    (rounds, again)
}

fn wanted(
    state: &State,
    verdicts: &Verdicts,
    child_kinds: &BTreeMap<String, Vec<Kind>>,
    rounds: &BTreeMap<Kind, Wanted>,
) -> Claims {
    let mut claims = Claims::default();
    for (name, remainder) in resting(verdicts) {
        claims.add(name, WatchKey::roots(&remainder.resource.kind), &remainder.resource);
    }
    let observed: BTreeSet<Kind> =
        working(verdicts).flat_map(|(_, in_force)| observed_kinds(in_force)).collect();
    for (name, in_force) in working(verdicts) {
        claims.add(name, WatchKey::roots(&in_force.resource.kind), &in_force.resource);
        let Some(object) = state.own.reconcilers.get(name) else { continue };
        // They become a part of a path.
        let named = object.spec.watch_secrets_in.iter();
        let namespaces: Vec<&String> = named.filter(|namespace| object::is_namespace(namespace)).collect();
        claim_needs(&mut claims, state, name, object, in_force, &namespaces, rounds);
        for kind in child_kinds.get(name).into_iter().flatten() {
            let Some(resource) = state.served.get(kind) else { continue };
            if reconciler::is_watchable(kind) {
                let whole = readiness::needs_status(kind) || observed.contains(kind);
                let projection = if whole { Projection::Whole } else { Projection::Metadata };
                claims.add(name, WatchKey::children(kind, None, projection), resource);
            } else {
                for namespace in &namespaces {
                    let key = WatchKey::children(kind, Some(namespace), Projection::Metadata);
                    claims.add(name, key, resource);
                }
            }
        }
    }
    claims
}

fn claim_needs(
    claims: &mut Claims,
    state: &State,
    name: &str,
    object: &api::Reconciler,
    in_force: &InForce,
    namespaces: &[&String],
    rounds: &BTreeMap<Kind, Wanted>,
) {
    let (grants, manifest) = (&object.spec.grants, in_force.guest.manifest());
    let needs = needs_of(grants, manifest).map(|(kind, _)| kind);
    for kind in needs.chain(patches_of(grants, manifest)) {
        let (Some(resource), Some(wanted)) = (state.served.get(&kind), rounds.get(&kind)) else {
            continue;
        };
        if reconciler::is_watchable(&kind) {
            claims.add(name, WatchKey::needs(&kind, None, *wanted), resource);
        } else {
            // Their metadata tells that there is news; what it is, is read live.
            let metadata = Wanted { whole: false, ..*wanted };
            for namespace in namespaces {
                claims.add(name, WatchKey::needs(&kind, Some(namespace), metadata), resource);
            }
        }
    }
}

fn observed_kinds(in_force: &InForce) -> impl Iterator<Item = Kind> {
    let children = in_force.guest.manifest().children.iter();
    children.filter(|child| child.observe).map(pintle_wit::ChildKind::kind)
}

/// How the children of each Reconciler are read.
fn readings(state: &State, verdicts: &Verdicts) -> BTreeMap<String, Reading> {
    let reading = |(name, in_force): (&String, &InForce)| {
        let object = state.own.reconcilers.get(name);
        let manager = object.map_or_else(String::new, |object| object.spec.manager());
        let root_kind = in_force.resource.kind.clone();
        (name.clone(), Reading { root_kind, manager, observed: observed_kinds(in_force).collect() })
    };
    working(verdicts).map(reading).collect()
}

/// Ends the watches that are not wanted, and those of children that are read otherwise from now on, which begin anew.
fn end_others(
    state: &mut State,
    wanted: &Claims,
    readings: &BTreeMap<String, Reading>,
    child_kinds: &BTreeMap<String, Vec<Kind>>,
) {
    let changed = readings.iter().filter(|(name, reading)| state.readings.get(*name) != Some(reading));
    let reread: BTreeSet<&Kind> =
        changed.flat_map(|(name, _)| child_kinds.get(name).into_iter().flatten()).collect();
    let is_over =
        |key: &&WatchKey| !wanted.0.contains_key(key) || key.brings_children() && reread.contains(&key.kind);
    let ended: Vec<WatchKey> = state.watches.keys().filter(is_over).cloned().collect();
    for key in ended {
        state.watches.remove(&key);
        let takes_its_place = |other: &WatchKey| {
            other.kind == key.kind && other.namespace == key.namespace && other.purpose.is_like(key.purpose)
        };
        if wanted.0.keys().any(takes_its_place) {
            continue;
        }
        match key.purpose {
            Purpose::Roots => state.roots.remove_kind(&key.kind),
            Purpose::Children => state.children.remove_kind(&key.kind, key.namespace.as_deref()),
            Purpose::Needs { .. } => state.needed.remove_kind(&key.kind),
        }
    }
}
