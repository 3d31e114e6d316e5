//! Computes the statuses of Modules and Reconcilers, without I/O. The control loop writes them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use pintle_api::{self as api, ModuleStatus, ModuleUser, ReconcilerStatus, RootCounts};
use pintle_core::{
    StatusSchema,
    conditions::{self, Blocker},
    pass, reasons,
};
use pintle_wit::{Condition, ConditionStatus, Failure, GuestCondition, Kind, ObjectRef};

use super::{
    bind::{self, InForce},
    load::{Facts, Progress},
    store::{Failures, RootKey},
    watch::WatchKey,
};

/// The steps that a module takes, in order. Each is a condition.
const STEPS: [&str; 3] = [reasons::FETCHED, reasons::VERIFIED, reasons::COMPILED];

/// The status of a Module. `users` are the Reconcilers and Views that use it, each with the places of its history that have it, if nothing
/// else does.
pub(crate) fn of_module(
    object: &api::Module,
    progress: Option<&Progress>,
    users: &BTreeMap<ModuleUser, Vec<usize>>,
    now: Timestamp,
) -> ModuleStatus {
    let before = object.status.clone().unwrap_or_default();
    let generation = object.metadata.generation;
    let used_by: Vec<String> = users.keys().map(ToString::to_string).collect();
    let mut status = ModuleStatus { observed_generation: generation, used_by, ..ModuleStatus::default() };
    // How many steps were completed, and why the next one was not.
    let (taken, failure) = match progress {
        Some(Progress::Loaded(module, _)) => {
            found(&mut status, &before, &Facts::of(module));
            (STEPS.len(), None)
        }
        Some(Progress::Checked(Some(facts))) => {
            found(&mut status, &before, facts);
            (STEPS.len(), None)
        }
        // It says so already.
        Some(Progress::Checked(None)) => {
            status = ModuleStatus { used_by: status.used_by, ..before.clone() };
            status.observed_generation = generation;
            (STEPS.len(), None)
        }
        Some(Progress::NotYet(failure, _) | Progress::Refused(failure)) => {
            (steps_before(failure), Some(failure.clone()))
        }
        // Earlier results stay until there are new ones, because a host that restarts loads everything anew.
        Some(Progress::Loading) | None
            if before.observed_generation == generation && !before.conditions.is_empty() =>
        {
            return ModuleStatus { used_by: status.used_by, ..before };
        }
        Some(Progress::Loading) | None => {
            (0, Some(Failure::transient(reasons::LOADING, "the module is being loaded")))
        }
    };
    let step = |(index, name): (usize, &&str)| match (&failure, index.cmp(&taken)) {
        (_, std::cmp::Ordering::Less) => condition(name, ConditionStatus::True, reasons::SUCCEEDED, ""),
        (Some(failure), std::cmp::Ordering::Equal) => {
            condition(name, ConditionStatus::False, &failure.reason, &bind::said(failure))
        }
        _ => condition(name, ConditionStatus::Unknown, reasons::WAITING, "an earlier step is not done"),
    };
    let mut steps: Vec<GuestCondition> = STEPS.iter().enumerate().map(step).collect();
    if object.metadata.deletion_timestamp.is_some()
        && let Some(first) = users.keys().next()
    {
        let module = object.metadata.name.as_deref().unwrap_or_default();
        let message = format!(
            "the Module goes when no Reconciler or View uses it any more: {}",
            way_out(module, users)
        );
        // Reconcilers come first.
        let reason = match first {
            ModuleUser::Reconciler(_) => reasons::USED_BY_RECONCILER,
            ModuleUser::View(_) => reasons::USED_BY_VIEW,
        };
        steps.push(condition(reasons::IN_USE, ConditionStatus::True, reason, &message));
    }
    let blockers: Vec<Blocker> = failure.iter().map(blocker).collect();
    status.conditions = conditions::compute(&blockers, &steps, generation, &before.conditions, now);
    if failure.is_none() {
        say(&mut status.conditions, "the module can be put in force");
    }
    status
}

/// What frees a Module. A history is left as it is but for the places of the Module, if these have it still.
fn way_out(module: &str, users: &BTreeMap<ModuleUser, Vec<usize>>) -> String {
    let present = users.iter().filter(|(_, places)| places.is_empty()).map(|(user, _)| user.to_string());
    let present = Vec::from_iter(present).join(", ");
    let swap = (!present.is_empty()).then(|| format!("swap {present} to another module"));
    let past = users.iter().filter(|(_, places)| !places.is_empty());
    let forget = past.map(|(user, places)| {
        let removal = |place: &usize| {
            let path = format!("/status/history/{place}");
            format!(
                r#"{{"op":"test","path":"{path}/module","value":"{module}"}},{{"op":"remove","path":"{path}"}}"#
            )
        };
        // The last one first: a removal moves what is behind it.
        let patch = Vec::from_iter(places.iter().rev().map(removal)).join(",");
        format!(
            "let the history of {user} forget it: kubectl patch reconciler {user} --subresource=status --type=json -p '[{patch}]'"
        )
    });
    Vec::from_iter(swap.into_iter().chain(forget)).join("; ")
}

fn found(status: &mut ModuleStatus, before: &ModuleStatus, facts: &Facts) {
    status.size = Some(facts.size_bytes as u64);
    status.contract = Some(facts.interfaces.join(", "));
    status.manifest.clone_from(&facts.manifest);
    // Every host takes a different time to compile. The time of the first one is as good as that of any other.
    let milliseconds = facts.compile_duration.as_millis() as u64;
    status.compile_milliseconds = before.compile_milliseconds.or(Some(milliseconds));
    status.checked_by = Some(HOST_VERSION.into());
}

/// The version of this host.
const HOST_VERSION: &str = env!("CARGO_PKG_VERSION");

/// Whether a Module's status says that this version of the host has compiled it and asked it for its manifest.
pub(crate) fn was_checked(object: &api::Module) -> bool {
    object.status.as_ref().is_some_and(|status| {
        let ready = |condition: &Condition| {
            condition.r#type == conditions::READY && condition.status == ConditionStatus::True
        };
        status.checked_by.as_deref() == Some(HOST_VERSION)
            && status.observed_generation == object.metadata.generation
            && status.manifest.is_some()
            && status.conditions.iter().any(ready)
    })
}

/// How far a module has got that failed with this reason. The steps before were fine.
fn steps_before(failure: &Failure) -> usize {
    use reasons as r;
    match failure.reason.as_str() {
        source if source.starts_with("Source") => 0,
        r::MODULE_TOO_LARGE | r::DIGEST_MISMATCH => 1,
        r::NOT_WASM | r::CORE_MODULE | r::INVALID_WASM | r::IMPORTS | r::MISSING_EXPORT | r::WRONG_TYPE => 2,
        r::COMPILE_TOO_EXPENSIVE | r::COMPILER_FAILED => 2,
        _ => STEPS.len(),
    }
}

/// The parts of a Reconciler's status besides what is in force.
pub(crate) struct Findings {
    /// Kinds that may have live children.
    pub(crate) child_kinds: Vec<Kind>,
    /// Kinds of children that the API server does not serve.
    pub(crate) missing: Vec<Kind>,
    /// Watches that fail, or that have not listed everything yet.
    pub(crate) failing: Vec<(WatchKey, String)>,
    pub(crate) starting: Vec<Kind>,
    /// Kinds of children whose drift the host does not see.
    pub(crate) unwatched: Vec<Kind>,
    /// The namespaces in which the host sees their drift nevertheless.
    pub(crate) watched_namespaces: BTreeSet<String>,
    /// Kinds that the guest may ask to see, but whose changes the host does not see.
    pub(crate) unwatched_needs: Vec<Kind>,
    /// The namespaces in which the host sees these changes nevertheless.
    pub(crate) watched_needs: BTreeSet<String>,
    pub(crate) roots: RootCounts,
    /// Whether the watch of the roots has listed them, or may still.
    pub(crate) lists_roots: bool,
    /// How far the roots have got with what is in force.
    pub(crate) active_roots: Option<api::ActiveRoots>,
    /// The roots that fail; `None` while the host has not looked at all of them.
    pub(crate) failures: Option<Failures>,
}

/// The status of a Reconciler.
pub(crate) fn of_reconciler(
    object: &api::Reconciler,
    in_force: Result<&InForce, &Failure>,
    active: Option<&api::ActiveModule>,
    findings: &Findings,
    now: Timestamp,
) -> ReconcilerStatus {
    let before = object.status.clone().unwrap_or_default();
    let mut blockers = Vec::new();
    let mut extra = Vec::new();
    match in_force {
        Err(failure) => blockers.push(blocker(failure)),
        Ok(in_force) => {
            if let Some(candidate) = &in_force.candidate {
                let message =
                    format!("{}; module {} keeps working", candidate.message, in_force.active.module);
                let terminal = in_force.candidate_stalled;
                blockers.push(Blocker { reason: candidate.reason.clone(), message, terminal });
            }
            schema_findings(&in_force.status, &mut extra);
        }
    }
    let mut wait = |reason: &str, message: String| {
        blockers.push(Blocker { reason: reason.into(), message, terminal: false })
    };
    for kind in &findings.missing {
        wait(
            reasons::CHILD_KIND_MISSING,
            format!("the API server does not serve children of kind {kind}; install its CRD"),
        );
    }
    for (watch, error) in &findings.failing {
        let hint = match &watch.namespace {
            _ if !error.contains("is forbidden") => String::new(),
            Some(namespace) => {
                format!(
                    "; apply the namespace's role: kubectl apply -n {namespace} -f deploy/namespace/secrets.yaml"
                )
            }
            None => format!("; {}", object.role_hint()),
        };
        wait(reasons::WATCH_FAILING, format!("{watch} cannot be watched: {error}{hint}"));
    }
    if !findings.starting.is_empty() {
        let kinds: Vec<String> = findings.starting.iter().map(ToString::to_string).collect();
        wait(reasons::PROGRESSING, format!("not listed yet: {}", kinds.join(", ")));
    }
    if in_force.is_ok() {
        let drift = unseen(object, &findings.unwatched, &findings.watched_namespaces).map(|kinds| {
            let message = format!(
                "the host may not watch {kinds}: what others change there is put right when the root changes, not at once"
            );
            condition(reasons::DRIFT_UNWATCHED, ConditionStatus::True, reasons::KIND_NOT_WATCHED, &message)
        });
        let needs = unseen(object, &findings.unwatched_needs, &findings.watched_needs).map(|kinds| {
            let message = format!(
                "the host may not watch {kinds}: a change of one that the guest asks to see is noticed with the next pass over the \
                 root, not at once; where spec.watchSecretsIn names the namespace it is"
            );
            condition(reasons::NEEDS_UNWATCHED, ConditionStatus::True, reasons::KIND_NOT_WATCHED, &message)
        });
        extra.extend(match &findings.failures {
            _ if !findings.lists_roots => {
                let (status, reason) = (ConditionStatus::Unknown, reasons::WATCH_FAILING);
                Some(condition(reasons::ROOTS_READY, status, reason, "the host cannot list the roots"))
            }
            Some(failures) => Some(roots_ready(object, findings.roots, failures)),
            // What the host before has found holds until then.
            None => conditions::find(&before.conditions, reasons::ROOTS_READY)
                .map(|known| condition(reasons::ROOTS_READY, known.status, &known.reason, &known.message)),
        });
        extra.extend(drift.into_iter().chain(needs));
    }
    let mut conditions =
        conditions::compute(&blockers, &extra, object.metadata.generation, &before.conditions, now);
    if let (Ok(in_force), true) = (in_force, blockers.is_empty()) {
        say(&mut conditions, &format!("module {} is in force", in_force.active.module));
    }
    ReconcilerStatus {
        observed_generation: object.metadata.generation,
        active: active.map(|active| api::ActiveModule { roots: findings.active_roots, ..active.clone() }),
        history: active.map_or_else(|| before.history.clone(), |active| before.history_with(active)),
        candidate: in_force.ok().and_then(|in_force| in_force.candidate.clone()),
        child_kinds: findings.child_kinds.clone(),
        // While nothing is in force, or none can be listed, nobody counts them.
        roots: (in_force.is_ok() && (findings.lists_roots || findings.roots.total > 0))
            .then_some(findings.roots),
        conditions,
    }
}

/// Whether two statuses differ in nothing but what they say of the roots, which may change with every pass.
pub(crate) fn differ_in_roots_alone(one: &ReconcilerStatus, other: &ReconcilerStatus) -> bool {
    let without_roots = |status: &ReconcilerStatus| {
        let active = status.active.clone().map(|active| api::ActiveModule { roots: None, ..active });
        let mut status = ReconcilerStatus { roots: None, active, ..status.clone() };
        status.conditions.retain(|condition| condition.r#type != reasons::ROOTS_READY);
        status
    };
    without_roots(one) == without_roots(other)
}

/// Whether the roots are ready, and which of them fail and why.
fn roots_ready(object: &api::Reconciler, roots: RootCounts, failures: &Failures) -> GuestCondition {
    let RootCounts { total, ready, failing } = roots;
    let condition =
        |status, reason: &str, message: &str| condition(reasons::ROOTS_READY, status, reason, message);
    let Failures { first, reasons } = failures;
    let Some((commonest, _)) = reasons.first().filter(|_| failing > 0) else {
        return if ready == total {
            condition(
                ConditionStatus::True,
                reasons::SUCCEEDED,
                &format!("{total} of {total} roots are ready"),
            )
        } else {
            let message = format!("{ready} of {total} roots are ready, and none fails");
            condition(ConditionStatus::False, reasons::PROGRESSING, &message)
        };
    };
    let counts: Vec<String> = reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    let named: Vec<String> =
        first.iter().map(|(key, cause)| format!("{key}: {}: {}", cause.reason, cause.message)).collect();
    let more = (failing as usize).saturating_sub(named.len());
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let hint = if reasons.iter().any(|(reason, _)| **reason == *reasons::FORBIDDEN) {
        format!("; {}", object.role_hint())
    } else {
        String::new()
    };
    // A cause has no command.
    let trapped = first.iter().find(|(_, cause)| *cause.reason == *reasons::TRAP);
    let recording = trapped.map_or_else(String::new, |(key, _)| {
        let (RootKey { namespace, name }, Kind { api_version, kind }) =
            (key.clone(), object.spec.r#for.clone());
        pass::recording(&ObjectRef { api_version, kind, namespace, name })
    });
    let message = format!(
        "{failing} of {total} roots fail ({}): {}{more}{recording}{hint}",
        counts.join(", "),
        named.join("; ")
    );
    condition(ConditionStatus::False, commonest, &conditions::message(&message))
}

/// The kinds whose changes the host does not see, and the namespaces in which it sees them; none if it sees them in every namespace of
/// the Reconciler.
fn unseen(object: &api::Reconciler, kinds: &[Kind], watched: &BTreeSet<String>) -> Option<String> {
    let all_watched = matches!(&object.spec.namespaces, api::Namespaces::Listed(names)
        if names.iter().all(|name| watched.contains(name)));
    if kinds.is_empty() || all_watched {
        return None;
    }
    let kinds: Vec<String> = kinds.iter().map(ToString::to_string).collect();
    let except: Vec<&str> = watched.iter().map(String::as_str).collect();
    let but = if except.is_empty() { String::new() } else { format!(" but in {}", except.join(", ")) };
    Some(format!("{}{but}", kinds.join(", ")))
}

fn schema_findings(status: &StatusSchema, extra: &mut Vec<GuestCondition>) {
    if matches!(status, StatusSchema::Nothing) {
        let message = "the CRD has no status subresource: nothing but Events can be said of its objects";
        extra.push(condition(
            reasons::STATUS_SUBRESOURCE_MISSING,
            ConditionStatus::True,
            reasons::NO_SUBRESOURCE,
            message,
        ));
    } else if !status.lacks().is_empty() {
        let message = format!(
            "the CRD's status does not declare {}; that part is not written",
            status.lacks().join(", ")
        );
        extra.push(condition(
            reasons::STATUS_SCHEMA_INCOMPLETE,
            ConditionStatus::True,
            reasons::FIELDS_UNDECLARED,
            &message,
        ));
    }
}

fn blocker(failure: &Failure) -> Blocker {
    Blocker {
        reason: failure.reason.clone(),
        message: conditions::message(&bind::said(failure)),
        terminal: !failure.retry,
    }
}

fn condition(name: &str, status: ConditionStatus, reason: &str, message: &str) -> GuestCondition {
    GuestCondition {
        r#type: name.into(),
        status,
        reason: reason.into(),
        message: message.into(),
        blocks_ready: false,
    }
}

/// The message of a Ready that is True, in words that fit the object.
fn say(conditions: &mut [Condition], message: &str) {
    for condition in conditions.iter_mut().filter(|condition| condition.r#type == conditions::READY) {
        condition.message = message.into();
    }
}

#[cfg(test)]
mod tests;
