//! Decides, without I/O, what each View serves, and what its status says.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use pintle_api::{ActiveView, CandidateModule, View, ViewSpec, ViewStatus};
use pintle_core::{
    conditions::{self, Blocker, READY},
    reasons,
    view::{Access, Backing, Epoch, Served, Verb, document::may_be_served, rights, table::Columns},
};
use pintle_engine::{Module, Views};
use pintle_schema::structural::Structural;
use pintle_wit::{
    Condition, ConditionStatus, Failure, Kind,
    views::{Shown, ViewManifest},
};
use serde_json::Value;

use crate::show::InForce;

/// For how long a gateway that cannot load what others have put into force leaves it at what they say. Most loads that fail in passing succeed
/// within that.
const CONTRADICTED_AFTER: SignedDuration = SignedDuration::from_secs(30);

/// The minor version of Kubernetes 1 that has constrained impersonation (KEP-5284) by default. 1.35 has it behind a feature gate of alpha,
/// of which only the metrics of the API server tell.
const IMPERSONATES_SINCE: u32 = 36;

/// What the decision is made from.
#[derive(Debug, Default)]
pub(crate) struct World {
    pub(crate) views: BTreeMap<String, View>,
    /// The Modules that Views name, by name.
    pub(crate) modules: BTreeMap<String, ModuleState>,
    /// The backing kinds, as far as the API server was asked.
    pub(crate) kinds: BTreeMap<Kind, KindState>,
    /// The APIServices, by name.
    pub(crate) services: BTreeMap<String, ApiService>,
    /// Whether configs fit, by the digest of a module and the config as text.
    pub(crate) configs: BTreeMap<(String, String), Result<(), Failure>>,
    /// Whether what views show can be evaluated, by the digest of a module and the name of a view.
    pub(crate) shown: BTreeMap<(String, String), Result<(), Failure>>,
    /// The gateway's own Service: its namespace and name.
    pub(crate) own: (String, String),
    /// The version of an API server that lets nobody ask as the caller. None: it does, or has not said its version.
    pub(crate) too_old: Option<String>,
}

/// How far a Module is.
#[derive(Clone, Debug)]
pub(crate) enum ModuleState {
    Loading,
    NotYet(Failure),
    Refused(Failure),
    Loaded(Module),
}

/// How the API server serves a kind.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum KindState {
    Missing,
    Unknown(String),
    Found(Backing),
}

/// What matters of an APIService.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ApiService {
    pub(crate) group: String,
    pub(crate) version: String,
    /// The Service that it leads to: namespace and name. None: the API server serves it itself.
    pub(crate) service: Option<(String, String)>,
    /// Why it is not available, if it is not.
    pub(crate) unavailable: Option<String>,
    /// The certificates that it trusts, in PEM.
    pub(crate) trusts: String,
    /// The hash of what its group served when a gateway touched it last.
    pub(crate) discovery: Option<String>,
    /// The version that was read.
    pub(crate) resource_version: Option<String>,
}

/// What is decided about a View.
#[derive(Debug)]
pub(crate) struct Decision {
    /// What its status should be. None: it stays as it is, since this gateway knows too little yet.
    pub(crate) status: Option<ViewStatus>,
    /// What is served.
    pub(crate) serving: Option<Serving>,
}

/// What a View serves.
#[derive(Clone, Debug)]
pub(crate) struct Serving {
    pub(crate) served: Served,
    pub(crate) active: ActiveView,
    /// What is called; or why nothing is.
    pub(crate) in_force: Result<InForce, String>,
    /// Why nothing is answered at all.
    pub(crate) closed: Option<String>,
}

/// A module that can come into force.
struct Candidate {
    views: Views,
    served: Served,
}

/// Decides about a View.
pub(crate) fn decide(world: &World, name: &str, now: Timestamp) -> Decision {
    let Some(view) = world.views.get(name) else { return Decision { status: None, serving: None } };
    let before = view.status.clone().unwrap_or_default();
    if view.metadata.deletion_timestamp.is_some() {
        return goes(world, view, before, now);
    }
    if view.spec.suspend {
        let failure =
            Failure::terminal(reasons::SUSPENDED, "spec.suspend is set: every request is answered with 503");
        return rests(world, view, before, failure, now);
    }
    match candidate(world, view) {
        Ok(candidate) => comes_into_force(world, view, before, candidate, now),
        Err(failure) => keeps(world, view, before, failure, now),
    }
}

/// A View that is deleted serves nothing, as if it were gone, while somebody's finalizer holds it.
fn goes(world: &World, view: &View, before: ViewStatus, now: Timestamp) -> Decision {
    let failure = Failure::transient(reasons::DELETING, "it is being deleted: nothing is served any more");
    Decision { serving: None, ..rests(world, view, before, failure, now) }
}

/// The wanted module is in force from now on, if it was not.
fn comes_into_force(
    world: &World,
    view: &View,
    before: ViewStatus,
    candidate: Candidate,
    now: Timestamp,
) -> Decision {
    let Candidate { views, served } = candidate;
    let (spec, digest) = (&view.spec, views.digest().to_string());
    let is_same = |active: &ActiveView| {
        active.digest == digest
            && active.config == spec.config
            && before.served.as_ref().is_some_and(|known| is_shown_alike(known, &served))
    };
    let (epoch, since) = match &before.active {
        Some(active) if is_same(active) => (active.epoch, active.since.clone()),
        Some(active) => (active.epoch.next(), conditions::time(now)),
        None => (Epoch::first(view.metadata.uid.as_deref().unwrap_or_default()), conditions::time(now)),
    };
    let active =
        ActiveView { module: spec.module.clone(), digest, config: spec.config.clone(), epoch, since };
    let in_force = InForce { views, view: spec.view.clone(), config: spec.config.clone() };
    let status = ViewStatus {
        observed_generation: view.metadata.generation,
        active: Some(active.clone()),
        candidate: None,
        conditions: all_conditions(world, view, &served, None, &before, now),
        served: Some(served.clone()),
    };
    Decision {
        status: Some(status),
        serving: Some(Serving { served, active, in_force: Ok(in_force), closed: None }),
    }
}

/// The wanted module cannot come into force: what was in force stays.
fn keeps(world: &World, view: &View, before: ViewStatus, failure: Failure, now: Timestamp) -> Decision {
    let (Some(active), Some(served)) = (before.active.clone(), before.served.clone()) else {
        return rests(world, view, before, failure, now);
    };
    let is_what_is_wanted = active.module == view.spec.module && active.config == view.spec.config;
    let (in_force, is_loading) = match world.modules.get(&active.module) {
        Some(ModuleState::Loaded(module)) if module.digest().to_string() == active.digest => {
            let views = module.views().filter(|views| views.manifest().view(&view.spec.view).is_some());
            let gone = || format!("Module {} has no view {}", active.module, view.spec.view);
            let config = active.config.clone();
            (
                views.map(|views| InForce { views, view: view.spec.view.clone(), config }).ok_or_else(gone),
                false,
            )
        }
        Some(ModuleState::Loading) => (Err(format!("Module {} is being loaded", active.module)), true),
        Some(ModuleState::NotYet(failure) | ModuleState::Refused(failure)) => {
            (Err(format!("Module {} cannot be loaded: {}", active.module, failure.message)), false)
        }
        Some(ModuleState::Loaded(_)) => {
            (Err(format!("Module {} has other bytes than were in force", active.module)), false)
        }
        None => (Err(format!("there is no Module {}", active.module)), false),
    };
    let works = in_force.is_ok();
    let serving = Serving { served: served.clone(), active: active.clone(), in_force, closed: None };
    // That this gateway is still loading, or alone cannot load, what others have put into force, is nothing to tell of the View. If it lasts,
    // it is told, but not against those who have just said otherwise: each would write the View as soon as the other has.
    let is_passing = failure.retry && (works || is_ready_since_lately(&before, now));
    if is_loading || is_what_is_wanted && is_passing {
        return Decision { status: None, serving: Some(serving) };
    }
    let candidate = CandidateModule {
        module: view.spec.module.clone(),
        reason: failure.reason.clone(),
        message: said(&failure),
    };
    let status = ViewStatus {
        observed_generation: view.metadata.generation,
        candidate: Some(candidate),
        conditions: all_conditions(world, view, &served, Some(&failure), &before, now),
        ..before
    };
    Decision { status: Some(status), serving: Some(serving) }
}

/// Whether somebody has said within [`CONTRADICTED_AFTER`] that the View is ready.
fn is_ready_since_lately(status: &ViewStatus, now: Timestamp) -> bool {
    status.conditions.iter().filter(|one| one.r#type == READY && one.status == ConditionStatus::True).any(
        |ready| {
            let since = ready.last_transition_time.parse::<Timestamp>();
            since.is_ok_and(|since| now.duration_since(since) < CONTRADICTED_AFTER)
        },
    )
}

/// Nothing is answered. What is known of the resource is still served to discovery, so that nothing disappears from it.
fn rests(world: &World, view: &View, before: ViewStatus, failure: Failure, now: Timestamp) -> Decision {
    let serving = before.served.clone().zip(before.active.clone()).map(|(served, active)| Serving {
        served,
        active,
        in_force: Err(said(&failure)),
        closed: Some(said(&failure)),
    });
    if failure.reason == reasons::MODULE_LOADING {
        return Decision { status: None, serving };
    }
    let served = before.served.clone().unwrap_or_default();
    let status = ViewStatus {
        observed_generation: view.metadata.generation,
        conditions: all_conditions(world, view, &served, Some(&failure), &before, now),
        ..before
    };
    Decision { status: Some(status), serving }
}

fn said(failure: &Failure) -> String {
    match &failure.path {
        Some(path) => format!("{path}: {}", failure.message),
        None => failure.message.clone(),
    }
}

/// Whether equal stored objects are shown alike, apart from what the guest computes.
fn is_shown_alike(a: &Served, b: &Served) -> bool {
    Served { verbs: Vec::new(), ..a.clone() } == Served { verbs: Vec::new(), ..b.clone() }
}

/// The wanted module, if it can come into force.
fn candidate(world: &World, view: &View) -> Result<Candidate, Failure> {
    let spec = &view.spec;
    let views = loaded_views(world, spec)?;
    let manifest = views.manifest().view(&spec.view).ok_or_else(|| {
        let names: Vec<&str> = views.manifest().views.iter().map(|view| view.name.as_str()).collect();
        let message =
            format!("Module {} has no view {}; it has: {}", spec.module, spec.view, names.join(", "));
        Failure::terminal(reasons::VIEW_MISSING, message).at("spec.view")
    })?;
    let key = (views.digest().to_string(), spec.config.to_string());
    match world.configs.get(&key) {
        Some(outcome) => outcome.clone()?,
        None => {
            let message = "the config is being checked against the schema of the module";
            return Err(Failure::transient(reasons::MODULE_LOADING, message).at("spec.config"));
        }
    }
    let path = spec.serve.rest.as_ref().map(|rest| rest.path.as_str());
    may_be_served(path, manifest, spec.access)?;
    can_act_as_caller(world, spec)?;
    let verbs = Verb::of_view(&spec.verbs, manifest)?;
    rights::may_be_shown(&manifest.backing, manifest.is_writable())?;
    is_group_free(world, manifest)?;
    let backing = match world.kinds.get(&manifest.backing) {
        Some(KindState::Found(backing)) => backing.clone(),
        Some(KindState::Missing) => {
            let message = format!(
                "the API server does not serve {}, which the view shows; apply its CRD",
                manifest.backing
            );
            return Err(Failure::transient(reasons::BACKING_KIND_MISSING, message).at("spec.view"));
        }
        Some(KindState::Unknown(why)) => {
            let message = format!("it is not known how the API server serves {}: {why}", manifest.backing);
            return Err(Failure::transient(reasons::BACKING_KIND_MISSING, message).at("spec.view"));
        }
        None => {
            let message = format!("the API server is being asked how it serves {}", manifest.backing);
            return Err(Failure::transient(reasons::MODULE_LOADING, message).at("spec.view"));
        }
    };
    let served = Served::of(manifest, backing, verbs);
    let served = match path {
        Some(path) => served.at_path(path),
        None => served,
    };
    is_first(world, view, &served)?;
    match world.shown.get(&(views.digest().to_string(), spec.view.clone())) {
        Some(outcome) => outcome.clone()?,
        None => {
            let message = "the schema and the columns of the view are being checked";
            return Err(Failure::transient(reasons::MODULE_LOADING, message).at("spec.view"));
        }
    }
    Ok(Candidate { views, served })
}

/// Whether requests to the backing kind are made in the caller's name. Documents are read with the caller's own token.
pub(crate) fn acts_as_caller(spec: &ViewSpec) -> bool {
    spec.access == Access::ViewAndBacking && spec.serve.rest.is_none()
}

/// The version of an API server, if it has no constrained impersonation by default.
pub(crate) fn too_old(major: &str, minor: &str) -> Option<String> {
    // Some providers write 35+.
    let number = minor.trim_end_matches('+').parse::<u32>().ok()?;
    (major == "1" && number < IMPERSONATES_SINCE).then(|| format!("{major}.{number}"))
}

/// Otherwise each request of a caller would be refused, with a word of rights that nobody lacks.
fn can_act_as_caller(world: &World, spec: &ViewSpec) -> Result<(), Failure> {
    let Some(version) = world.too_old.as_ref().filter(|_| acts_as_caller(spec)) else { return Ok(()) };
    let message = format!(
        "under ViewAndBacking the gateway asks as the caller, by constrained impersonation, which Kubernetes {version} does not have \
         by default: upgrade to 1.{IMPERSONATES_SINCE}, or set access View, where rights on the view are enough"
    );
    Err(Failure::terminal(reasons::IMPERSONATION_UNAVAILABLE, message).at("spec.access"))
}

/// Whether what a view shows can be evaluated. It may take long, since the schema comes from a guest; the answer is the same for ever.
pub(crate) fn can_be_shown(manifest: &ViewManifest) -> Result<(), Failure> {
    let invalid = |message: String| Failure::terminal(reasons::VIEW_INVALID, message).at("spec.view");
    Structural::compile(manifest.schema().unwrap_or(&Value::Null))
        .map_err(|error| invalid(format!("the schema cannot be evaluated: {error}")))?;
    let columns = manifest.shown.as_ref().map(|shown| shown.columns.as_slice()).unwrap_or_default();
    Columns::new(columns).map_err(|bad| invalid(format!("column {}: {}", bad.index, bad.message)))?;
    Ok(())
}

fn loaded_views(world: &World, spec: &ViewSpec) -> Result<Views, Failure> {
    let name = &spec.module;
    let failure = match world.modules.get(name) {
        Some(ModuleState::Loaded(module)) => {
            return module.views().ok_or_else(|| {
                let message = format!("Module {name} serves no views");
                Failure::terminal(reasons::VIEW_MISSING, message).at("spec.module")
            });
        }
        Some(ModuleState::Loading) => {
            Failure::transient(reasons::MODULE_LOADING, format!("Module {name} is being loaded"))
        }
        Some(ModuleState::NotYet(failure)) => Failure::transient(
            reasons::MODULE_NOT_READY,
            format!("Module {name} cannot be loaded yet: {failure}"),
        ),
        Some(ModuleState::Refused(failure)) => {
            Failure::terminal(reasons::MODULE_NOT_READY, format!("Module {name} cannot be loaded: {failure}"))
        }
        None => {
            let message = format!("there is no Module {name}; push it with: pintle push {name} FILE");
            Failure::transient(reasons::MODULE_MISSING, message)
        }
    };
    Err(failure.at("spec.module"))
}

/// Nobody else serves the group, and the backing kind is the API server's own.
fn is_group_free(world: &World, manifest: &ViewManifest) -> Result<(), Failure> {
    let is_ours = |service: &ApiService| service.service.as_ref() == Some(&world.own);
    let (shown, backing) = (manifest.shown.as_ref().map(Shown::kind), &manifest.backing);
    if let Some(shown) = shown
        && let Some((name, taken)) =
            world.services.iter().find(|(_, service)| service.group == shown.group() && !is_ours(service))
    {
        let by = match &taken.service {
            Some((namespace, service)) => format!("Service {namespace}/{service}"),
            None => "the API server or a CRD".to_owned(),
        };
        let message = format!("group {} is served by {by} (APIService {name})", shown.group());
        return Err(Failure::terminal(reasons::GROUP_TAKEN, message).at("spec.view"));
    }
    let of_backing = world
        .services
        .values()
        .find(|service| service.group == backing.group() && service.version == backing.version());
    if let Some((namespace, service)) = of_backing.and_then(|service| service.service.as_ref()) {
        let message = format!(
            "the backing kind {backing} is one of an aggregated API: Service {namespace}/{service} serves it"
        );
        return Err(Failure::terminal(reasons::BACKING_FORBIDDEN, message).at("spec.view"));
    }
    Ok(())
}

/// Of two Views of one resource the older serves it. Two versions of a resource show the same objects.
fn is_first(world: &World, view: &View, served: &Served) -> Result<(), Failure> {
    let age = |view: &View| {
        (view.metadata.creation_timestamp.clone().map(|time| time.0), view.metadata.name.clone())
    };
    let older = world.views.values().filter(|other| {
        other.metadata.name != view.metadata.name
            && other.metadata.deletion_timestamp.is_none()
            && age(other) < age(view)
    });
    for other in older {
        let Some(theirs) = other.status.as_ref().and_then(|status| status.served.as_ref()) else { continue };
        if theirs.is_of_documents() != served.is_of_documents()
            || theirs.group() != served.group()
            || theirs.plural != served.plural
        {
            continue;
        }
        let name = other.metadata.name.as_deref().unwrap_or_default();
        if served.is_of_documents() {
            let message = format!("View {name} is older and serves /{} already", served.rest);
            return Err(Failure::terminal(reasons::RESOURCE_TAKEN, message).at("spec.serve.rest.path"));
        }
        if theirs.version() == served.version() {
            let message = format!(
                "View {name} is older and serves {} {} already",
                served.qualified(),
                served.version()
            );
            return Err(Failure::terminal(reasons::RESOURCE_TAKEN, message).at("spec.view"));
        }
        if theirs.backing.kind != served.backing.kind
            || theirs.selector != served.selector
            || theirs.prefix != served.prefix
        {
            let message = format!(
                "View {name} serves version {} of {} over another backing kind, selector or prefix",
                theirs.version(),
                served.qualified()
            );
            return Err(Failure::terminal(reasons::VERSIONS_DIFFER, message).at("spec.view"));
        }
    }
    Ok(())
}

/// Ready and its companions, and whether the API server sends requests.
fn all_conditions(
    world: &World,
    view: &View,
    served: &Served,
    failure: Option<&Failure>,
    before: &ViewStatus,
    now: Timestamp,
) -> Vec<Condition> {
    let generation = view.metadata.generation;
    let before = before.conditions.as_slice();
    let blockers: Vec<Blocker> = failure
        .into_iter()
        .map(|failure| Blocker {
            reason: failure.reason.clone(),
            message: conditions::message(&said(failure)),
            terminal: !failure.retry,
        })
        .collect();
    let mut all = conditions::compute(&blockers, &[], generation, before, now);
    if let Some(ready) = all
        .iter_mut()
        .find(|condition| condition.r#type == READY && condition.status == ConditionStatus::True)
    {
        ready.reason = reasons::SERVING.into();
        ready.message = match served.is_of_documents() {
            true => format!("/{} is served over {}", served.rest, served.backing.kind()),
            false => {
                format!(
                    "{} {} is served over {}",
                    served.qualified(),
                    served.version(),
                    served.backing.kind()
                )
            }
        };
    }
    if !served.api_version.is_empty() {
        let (status, reason, message) = registered(world, view, served);
        let known = conditions::find(before, reasons::REGISTERED);
        all.push(condition(reasons::REGISTERED, (status, reason, message), known, generation, now));
    }
    all.sort_by(|a, b| a.r#type.cmp(&b.r#type));
    all
}

/// What gives the gateway the rights that a View needs, and makes its APIService: a command to paste.
fn apply_the_rights(view: &View) -> String {
    let modules = Vec::from_iter(view.modules()).join(" ");
    format!("kubectl get view {} -o yaml | pintle rbac {modules} -f - | kubectl apply -f -", view.name_any())
}

/// A condition, and since when it has its status.
fn condition(
    r#type: &str,
    (status, reason, message): (ConditionStatus, &str, String),
    known: Option<&Condition>,
    generation: Option<i64>,
    now: Timestamp,
) -> Condition {
    let same = known.filter(|known| known.status == status);
    let since = same.map_or_else(|| conditions::time(now), |known| known.last_transition_time.clone());
    Condition {
        r#type: r#type.to_owned(),
        status,
        observed_generation: generation,
        last_transition_time: since,
        reason: reason.to_owned(),
        message,
    }
}

fn registered(world: &World, view: &View, served: &Served) -> (ConditionStatus, &'static str, String) {
    let name = served.api_service();
    match world.services.get(&name) {
        None => {
            let message = format!("there is no APIService {name}; apply it: {}", apply_the_rights(view));
            (ConditionStatus::False, reasons::API_SERVICE_MISSING, message)
        }
        Some(service) if service.service.as_ref() != Some(&world.own) => {
            let message =
                format!("APIService {name} does not lead to Service {}/{}", world.own.0, world.own.1);
            (ConditionStatus::False, reasons::API_SERVICE_ELSEWHERE, message)
        }
        Some(ApiService { unavailable: Some(why), .. }) => {
            let message = format!("APIService {name} is not available: {why}");
            (ConditionStatus::False, reasons::API_SERVICE_UNAVAILABLE, conditions::message(&message))
        }
        Some(_) => {
            let message = format!("APIService {name} leads to the gateway");
            (ConditionStatus::True, reasons::REGISTERED_AND_AVAILABLE, message)
        }
    }
}

#[cfg(test)]
mod tests;
