//! Decides, without I/O, which module and config are in force for a Reconciler, or why none is.

use std::collections::BTreeMap;

use jiff::Timestamp;
use pintle_api as api;
use pintle_core::{Duty, StatusSchema, conditions, reasons};
use pintle_engine::Guest;
use pintle_kubernetes::Resource;
use pintle_wit::{Failure, names};

use super::{
    configs::Configs,
    load::{Load, LoadedGuest, Progress},
    state::CrdInfo,
};

/// The input of the decision.
pub(crate) struct World<'a> {
    pub(crate) modules: &'a BTreeMap<String, api::Module>,
    pub(crate) loads: &'a BTreeMap<String, Load>,
    pub(crate) reconcilers: &'a BTreeMap<String, api::Reconciler>,
    pub(crate) crds: &'a BTreeMap<String, CrdInfo>,
    pub(crate) configs: &'a Configs,
    pub(crate) now: Timestamp,
}

/// The decision for a Reconciler.
#[derive(Clone)]
pub(crate) enum Verdict {
    /// Work with this module and config.
    Work(Box<InForce>),
    /// Rest, for this reason. What remains to be done is for roots that have finalizers of ours.
    Rest(Failure, Option<Box<Remainder>>),
}

/// What a Reconciler does without a module.
#[derive(Clone)]
pub(crate) struct Remainder {
    /// The Reconciler's.
    pub(crate) uid: String,
    pub(crate) duty: Duty,
    pub(crate) resource: Resource,
    pub(crate) status: StatusSchema,
}

/// The module and config in force.
#[derive(Clone)]
pub(crate) struct InForce {
    /// The uid of the Reconciler that this was decided for.
    pub(crate) uid: String,
    pub(crate) active: api::ActiveModule,
    pub(crate) guest: Guest,
    pub(crate) resource: Resource,
    pub(crate) status: StatusSchema,
    /// The module and config that are wanted instead, and why they are not in force.
    pub(crate) candidate: Option<api::CandidateModule>,
    /// Only a change can bring the candidate into force. Waiting is not enough, because it is not being fetched or loaded.
    pub(crate) candidate_stalled: bool,
}

/// Decides for the Reconciler `name`. `before` is the module and config that were in force until now.
pub(crate) fn decide(world: &World<'_>, name: &str, before: Option<&api::ActiveModule>) -> Verdict {
    match try_decide(world, name, before) {
        Ok(in_force) => Verdict::Work(Box::new(in_force)),
        Err(failure) => Verdict::Rest(failure, remainder(world, name).map(Box::new)),
    }
}

/// What remains to be done for a Reconciler that rests, if its roots may have finalizers of ours: it must be possible to delete these
/// roots without a module. Before one goes that nobody succeeds, its roots are told.
fn remainder(world: &World<'_>, name: &str) -> Option<Remainder> {
    let reconciler = world.reconcilers.get(name)?;
    let is_going = reconciler.metadata.deletion_timestamp.is_some();
    let tells = is_going && tells_roots(reconciler) && !has_successor(world, reconciler);
    if !tells && !may_hold_roots(reconciler) {
        return None;
    }
    is_first(world, name, reconciler).ok()?;
    let duty = if is_going { Duty::Release } else { Duty::CleanUp };
    let (resource, status) = root_kind(world, &reconciler.spec).ok()?;
    Some(Remainder { uid: uid(reconciler), duty, resource, status })
}

/// A Reconciler's uid.
pub(crate) fn uid(reconciler: &api::Reconciler) -> String {
    reconciler.metadata.uid.clone().unwrap_or_default()
}

/// Whether roots of a Reconciler may have finalizers of ours. Our finalizer on the Reconciler says so: it is written before the first
/// one on a root.
pub(crate) fn may_hold_roots(reconciler: &api::Reconciler) -> bool {
    has_finalizer(reconciler, names::FINALIZER_ROOTS)
}

/// Whether a Reconciler has worked, so that its roots are told when it goes. Our other finalizer on it says so.
pub(crate) fn tells_roots(reconciler: &api::Reconciler) -> bool {
    has_finalizer(reconciler, names::FINALIZER_STATUSES)
}

fn has_finalizer(reconciler: &api::Reconciler, finalizer: &str) -> bool {
    let finalizers = reconciler.metadata.finalizers.as_deref().unwrap_or_default();
    finalizers.iter().any(|name| name == finalizer)
}

/// Whether another Reconciler takes over when this one is gone: the roots have nothing to be told then.
fn has_successor(world: &World<'_>, reconciler: &api::Reconciler) -> bool {
    let kind = &reconciler.spec.r#for;
    world.reconcilers.values().any(|other| {
        let of = &other.spec.r#for;
        let is_there = other.metadata.deletion_timestamp.is_none() && !other.spec.suspend;
        is_there && of.kind == kind.kind && of.group() == kind.group()
    })
}

fn try_decide(world: &World<'_>, name: &str, before: Option<&api::ActiveModule>) -> Result<InForce, Failure> {
    let Some(reconciler) = world.reconcilers.get(name) else {
        return Err(Failure::transient(reasons::NOT_FOUND, "there is no such Reconciler"));
    };
    let spec = &reconciler.spec;
    if reconciler.metadata.deletion_timestamp.is_some() {
        return Err(Failure::transient(reasons::DELETING, "its roots are let go; their children stay"));
    }
    if spec.suspend {
        return Err(Failure::terminal(
            reasons::SUSPENDED,
            "spec.suspend is set: children and statuses stay as they are",
        ));
    }
    spec.supported()?;
    is_first(world, name, reconciler)?;
    let mut candidate_stalled = false;
    let (active, guest, candidate) = match ready_guest(world, &spec.module, reconciler, before) {
        Ok(guest) => {
            let digest = guest.digest().to_string();
            let same = |active: &&api::ActiveModule| {
                active.module == spec.module && active.digest == digest && active.config == spec.config
            };
            let since = before
                .filter(same)
                .map_or_else(|| conditions::time(world.now), |active| active.since.clone());
            (
                api::ActiveModule {
                    module: spec.module.clone(),
                    digest,
                    config: spec.config.clone(),
                    since,
                    roots: None,
                },
                guest,
                None,
            )
        }
        Err(failure) => {
            if let Some(active) = before.filter(|active| is_loading(world, &active.module)) {
                // The host has just started. It matters more that the last module works than what is wrong with the wanted one.
                let message = format!("Module {}, which was in force, is being loaded", active.module);
                return Err(Failure::transient(reasons::MODULE_LOADING, message).at("spec.module"));
            }
            let Some((active, guest)) = before.and_then(|active| last_good(world, active, spec)) else {
                return Err(failure);
            };
            candidate_stalled = !failure.retry;
            let candidate = api::CandidateModule {
                module: spec.module.clone(),
                reason: failure.reason.clone(),
                message: said(&failure),
            };
            (active.clone(), guest, Some(candidate))
        }
    };
    let (resource, status) = root_kind(world, spec)?;
    Ok(InForce { uid: uid(reconciler), active, guest, resource, status, candidate, candidate_stalled })
}

/// The text of a failure for a message, with its path.
pub(crate) fn said(failure: &Failure) -> String {
    match &failure.path {
        Some(path) => format!("{path}: {}", failure.message),
        None => failure.message.clone(),
    }
}

/// If two Reconcilers are for the same kind, or have the same field manager, the older one works. The other one takes over when the older
/// one is deleted.
fn is_first(world: &World<'_>, name: &str, reconciler: &api::Reconciler) -> Result<(), Failure> {
    let age = |reconciler: &api::Reconciler| {
        (reconciler.metadata.creation_timestamp.clone().map(|time| time.0), reconciler.metadata.name.clone())
    };
    let older = world.reconcilers.iter().filter(|(other, found)| {
        let is_there = found.metadata.deletion_timestamp.is_none() || may_hold_roots(found);
        *other != name && is_there && age(found) < age(reconciler)
    });
    for (other, found) in older {
        let (mine, theirs) = (&reconciler.spec.r#for, &found.spec.r#for);
        if mine.kind == theirs.kind && mine.group() == theirs.group() {
            let message = format!(
                "Reconciler {other} is older and already reconciles {theirs}; this one takes over when it is deleted"
            );
            return Err(Failure::terminal(reasons::KIND_TAKEN, message).at("spec.for"));
        }
        let manager = reconciler.spec.manager();
        if manager == found.spec.manager() {
            let message = format!(
                "Reconciler {other} already writes as field manager {manager}; two would undo each other's fields"
            );
            return Err(Failure::terminal(reasons::FIELD_MANAGER_TAKEN, message).at("spec.fieldManager"));
        }
    }
    Ok(())
}

/// The guest of the wanted module, if it can come into force: it is loaded, is for this kind, and accepts the config.
fn ready_guest(
    world: &World<'_>,
    name: &str,
    reconciler: &api::Reconciler,
    before: Option<&api::ActiveModule>,
) -> Result<Guest, Failure> {
    let LoadedGuest { guest, .. } = loaded_guest(world, name, reconciler)?;
    let spec = &reconciler.spec;
    match world.configs.outcome(reconciler, &guest.digest()) {
        Some(outcome) => outcome?,
        // The config was checked before it came into force.
        None if before.is_some_and(|active| {
            active.module == *name
                && active.config == spec.config
                && active.digest == guest.digest().to_string()
        }) => {}
        None => {
            let message = format!("the config is being checked against the schema of Module {name}");
            return Err(Failure::transient(reasons::MODULE_LOADING, message).at("spec.config"));
        }
    }
    Ok(guest.clone())
}

/// The guest of the wanted module, if it is loaded and for this kind.
pub(crate) fn loaded_guest<'a>(
    world: &World<'a>,
    name: &str,
    reconciler: &api::Reconciler,
) -> Result<&'a LoadedGuest, Failure> {
    let (at, wanted) = ("spec.module", &reconciler.spec.r#for);
    let Some(object) = world.modules.get(name) else {
        let message = format!("there is no Module {name}; push it with: pintle push {name} FILE");
        return Err(Failure::transient(reasons::MODULE_MISSING, message).at(at));
    };
    let load = world.loads.get(name).filter(|load| object.metadata.uid.as_deref() == Some(load.uid.as_str()));
    let loaded = match load.map(|load| &load.progress) {
        Some(Progress::Loaded(_, Some(loaded))) => loaded,
        Some(Progress::Loaded(_, None)) => {
            let message = format!(
                "Module {name} serves views and reconciles nothing; name one that reconciles {wanted}"
            );
            return Err(Failure::terminal(reasons::KIND_MISMATCH, message).at(at));
        }
        Some(Progress::Refused(failure)) => {
            let message = format!("Module {name} cannot be loaded: {failure}");
            return Err(Failure::terminal(reasons::MODULE_NOT_READY, message).at(at));
        }
        Some(Progress::NotYet(failure, _)) => {
            let message = format!("Module {name} cannot be loaded yet: {failure}");
            return Err(Failure::transient(reasons::MODULE_NOT_READY, message).at(at));
        }
        Some(Progress::Loading | Progress::Checked(_)) | None => {
            return Err(Failure::transient(
                reasons::MODULE_LOADING,
                format!("Module {name} is being loaded"),
            )
            .at(at));
        }
    };
    let reconciles = &loaded.guest.manifest().reconciles;
    if reconciles != wanted {
        let message = format!("Module {name} reconciles {reconciles}, not {wanted}");
        return Err(Failure::terminal(reasons::KIND_MISMATCH, message).at(at));
    }
    Ok(loaded)
}

/// Whether it is still unknown if a module can be loaded.
fn is_loading(world: &World<'_>, name: &str) -> bool {
    let progress = world.loads.get(name).map(|load| &load.progress);
    world.modules.contains_key(name)
        && matches!(progress, None | Some(Progress::Loading | Progress::Checked(_)))
}

/// The module and config that were in force, if the Module still exists with the same bytes.
fn last_good<'a>(
    world: &World<'_>,
    active: &'a api::ActiveModule,
    spec: &api::ReconcilerSpec,
) -> Option<(&'a api::ActiveModule, Guest)> {
    match &world.loads.get(&active.module)?.progress {
        Progress::Loaded(_, Some(LoadedGuest { guest, .. }))
            if guest.digest().to_string() == active.digest && guest.manifest().reconciles == spec.r#for =>
        {
            Some((active, guest.clone()))
        }
        _ => None,
    }
}

/// How the API server serves the roots, and what their status may say.
fn root_kind(world: &World<'_>, spec: &api::ReconcilerSpec) -> Result<(Resource, StatusSchema), Failure> {
    let wanted = &spec.r#for;
    let missing = |message: String| Failure::transient(reasons::KIND_MISSING, message).at("spec.for");
    let found = world.crds.values().find(|crd| crd.group == wanted.group() && crd.kind == wanted.kind);
    let Some(crd) = found else {
        return Err(missing(format!(
            "the API server does not serve {wanted}; apply its CRD (pintle crds DIR prints a guest's)"
        )));
    };
    let Some(status) = crd.versions.get(wanted.version()).filter(|_| crd.established) else {
        let served: Vec<&str> = crd.versions.keys().map(String::as_str).collect();
        return Err(missing(format!(
            "the CRD of {} does not serve version {}, only {}",
            wanted.kind,
            wanted.version(),
            served.join(", ")
        )));
    };
    if !crd.namespaced && spec.namespaces != api::Namespaces::All {
        let message = format!("{wanted} is of cluster scope, so that its objects are in no namespace");
        return Err(Failure::terminal(reasons::SPEC_INVALID, message).at("spec.namespaces"));
    }
    let resource = Resource { kind: wanted.clone(), plural: crd.plural.clone(), namespaced: crd.namespaced };
    Ok((resource, status.clone()))
}

#[cfg(test)]
mod tests;
