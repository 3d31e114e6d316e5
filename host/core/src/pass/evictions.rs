//! Evictions and deletions of Pods that the guest asks for.
//!
//! The status names the Pods before the first one is evicted, in the same write as the guest's own status fields. Each eviction carries
//! the Pod's uid, so that a second one does nothing: a host that is killed in between neither repeats an eviction nor forgets one.

use std::{collections::BTreeSet, time::Duration};

use jiff::{SignedDuration, Timestamp};
use pintle_wit::{Event, EventType, Eviction, EvictionMode, Evictions};
use serde_json::Value;

use super::{
    ApiError, EvictionWrite, Pass, Step,
    answer::Answer,
    doubt,
    flow::{Awaited, Flow},
    recorded,
};
use crate::{object, reasons};

/// How long an eviction waits for a replacement that nobody creates, for instance because the workload was scaled down.
const PATIENCE: SignedDuration = SignedDuration::from_secs(60);
/// How soon a waiting eviction is looked at again although no change was seen.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// The most uids that a status names: those of ten answers with the default limit of 100.
const UIDS_MAX: usize = 1000;

/// What is remembered of a root's evictions.
#[derive(Clone, Debug, Default)]
pub(super) struct Evicted {
    /// The uids whose eviction the API server accepted, for as long as the guest still names them.
    done: BTreeSet<String>,
    /// Why an eviction is blocked: reason and message.
    blocked: Option<(String, String)>,
    /// Since when only a replacement has been missing.
    lacking: Option<Timestamp>,
}

impl Evicted {
    pub(super) fn bytes(&self) -> usize {
        self.done.iter().map(|uid| size_of::<String>() + uid.len()).sum::<usize>()
    }
}

impl Pass {
    pub(super) fn evictions(&self) -> Option<&Evictions> {
        self.answer.as_ref().filter(|_| self.failure.is_none())?.allowed.evictions()
    }

    /// The uids that the root's status names.
    pub(super) fn recorded_evictions(&self) -> Vec<String> {
        recorded::evicting(&self.root)
    }

    /// The uids that the status must name: those of the answer. If Pods are evicted one at a time, earlier uids stay too, so that
    /// their replacements can be counted.
    pub(super) fn evicting(&self) -> Vec<String> {
        let recorded = self.recorded_evictions();
        if self.answer.is_none() || self.failure.is_some() {
            // The status of the last answer may not be written yet.
            let named = self.memory.memo.as_ref().is_none_or(|memo| memo.evicts);
            return if named { recorded } else { Vec::new() };
        }
        let Some(evictions) = self.evictions() else { return Vec::new() };
        let mut uids: Vec<String> = if evictions.one_at_a_time { recorded } else { Vec::new() };
        for pod in &evictions.pods {
            if !uids.contains(&pod.uid) {
                uids.push(pod.uid.clone());
            }
        }
        uids.drain(..uids.len().saturating_sub(UIDS_MAX));
        uids
    }

    /// The Pods whose eviction was not accepted yet.
    fn open_evictions(&self) -> Vec<Eviction> {
        let pods = self.evictions().map_or(&[][..], |evictions| &evictions.pods);
        pods.iter().filter(|pod| !self.memory.evicted.done.contains(&pod.uid)).cloned().collect()
    }

    /// Whether there are evictions to do, so that the status that names them must be written now.
    pub(super) fn has_open_evictions(&self) -> bool {
        !self.open_evictions().is_empty()
    }

    /// Why evictions are blocked, for the status.
    pub(super) fn eviction_blocker(&self) -> Option<(String, String)> {
        let open = self.open_evictions();
        let first = open.first()?;
        match (&self.memory.evicted.blocked, self.replacement_missing()) {
            (_, Some(what)) => Some((
                reasons::EVICTION_WAITING.into(),
                format!("Pod {} is to be evicted, and waits: {what}", first.name),
            )),
            (blocked, None) => blocked.clone(),
        }
    }

    /// Evicts the Pods that may be evicted now. The status was written before.
    pub(super) fn evict(&mut self) -> Flow {
        self.forget_evicted();
        let mut open = self.open_evictions();
        if open.is_empty() {
            return Flow::Done;
        }
        let rest_is_done = self.answer.as_ref().is_some_and(Answer::is_complete);
        if self.unsure.is_some() || !self.refused_patches.is_empty() || !rest_is_done {
            return Flow::Done;
        }
        // Until all of them are gone, every pass calls the guest.
        self.memory.memo = None;
        if self.replacement_missing().is_some() {
            self.wake.after(LOOK_AGAIN);
            return Flow::Done;
        }
        let (one_at_a_time, mode) = self
            .evictions()
            .map_or((false, EvictionMode::Evict), |evictions| (evictions.one_at_a_time, evictions.mode));
        if one_at_a_time {
            open.truncate(1);
        }
        let namespace = object::namespace(&self.root);
        let writes = open.iter().map(|pod| EvictionWrite::of(pod, namespace, mode)).collect();
        self.ask_for(Awaited::Evictions(open), Step::Evict(writes))
    }

    fn forget_evicted(&mut self) {
        if self.answer.is_none() || self.failure.is_some() {
            return;
        }
        let named: BTreeSet<String> = self.evictions().map_or_else(BTreeSet::new, |evictions| {
            evictions.pods.iter().map(|pod| pod.uid.clone()).collect()
        });
        let evicted = &mut self.memory.evicted;
        evicted.done.retain(|uid| named.contains(uid));
        if named.is_empty() {
            *evicted = Evicted::default();
        }
    }

    pub(super) fn evicted(&mut self, pods: Vec<Eviction>, results: Vec<Result<(), ApiError>>) -> Flow {
        let blocked_before = self.memory.evicted.blocked.take();
        for (pod, result) in pods.into_iter().zip(results) {
            let error = match result {
                Ok(()) => {
                    self.counts.evicted += 1;
                    self.memory.evicted.done.insert(pod.uid);
                    continue;
                }
                // The Pod is gone, or a successor has its name.
                Err(error) if error.code == 404 || error.is_uid_mismatch() || error.is_precondition() => {
                    self.memory.evicted.done.insert(pod.uid);
                    continue;
                }
                Err(error) => error,
            };
            let reason = match error.code {
                429 => reasons::EVICTION_BLOCKED,
                _ if error.is_refusal() => reasons::EVICTION_REFUSED,
                _ => {
                    doubt(&mut self.unsure, error);
                    continue;
                }
            };
            let causes =
                error.causes.iter().map(|cause| cause.message.as_str()).filter(|text| !text.is_empty());
            let causes: Vec<&str> = causes.collect();
            let causes = if causes.is_empty() { String::new() } else { format!(" ({})", causes.join("; ")) };
            let message = format!("Pod {}: {}{causes}", pod.name, error.message);
            self.eviction_failed = true;
            self.wake.retry(error.leave_alone().unwrap_or_default());
            self.memory.evicted.blocked.get_or_insert((reason.into(), message));
        }
        self.memory.evicted.lacking = None;
        if self.memory.evicted.blocked == blocked_before {
            return Flow::Done;
        }
        if let Some((reason, message)) = &self.memory.evicted.blocked {
            let message = crate::text::note(message);
            self.events.push(Event { r#type: EventType::Warning, reason: reason.clone(), message });
        }
        // The status that was written a moment ago does not contain it.
        self.write_status_of_evictions()
    }

    /// Why an eviction must be retried: reason and message of the error with which the pass ends.
    pub(super) fn eviction_error(&self) -> Option<(String, String)> {
        self.memory.evicted.blocked.clone().filter(|_| self.eviction_failed)
    }

    /// What the next eviction waits for, if Pods are evicted one at a time. It does not wait for ever for a Pod that nobody creates.
    fn replacement_missing(&self) -> Option<String> {
        let waited = |since: Timestamp| self.now.duration_since(since) >= PATIENCE;
        match self.lack()? {
            Lack::Pod(what) => Some(what),
            Lack::Replacement(_) if self.memory.evicted.lacking.is_some_and(waited) => None,
            Lack::Replacement(what) => Some(what),
        }
    }

    /// Notes since when only a replacement has been missing.
    pub(super) fn note_lacking(&mut self) {
        let lacks = matches!(self.lack(), Some(Lack::Replacement(_)));
        let since = self.memory.evicted.lacking;
        self.memory.evicted.lacking = lacks.then(|| since.unwrap_or(self.now));
    }

    /// What is missing, as far as the needs show the Pods. Pods evicted before must be gone, and as many others must exist and be ready.
    fn lack(&self) -> Option<Lack> {
        let evictions = self.evictions().filter(|evictions| evictions.one_at_a_time)?;
        let recorded = self.evicting();
        let pods = self.shown_pods();
        let name = |pod: &Value| format!("Pod {}", object::name(pod));
        let is_open = |uid: &str| evictions.pods.iter().any(|pod| pod.uid == uid);
        let is_done = |uid: &str| self.memory.evicted.done.contains(uid);
        if let Some(pod) = pods.iter().find(|pod| object::is_deleting(pod) || is_done(object::uid(pod))) {
            return Some(Lack::Pod(format!("{} is going", name(pod))));
        }
        let others = || pods.iter().filter(|pod| !is_open(object::uid(pod)));
        if let Some(pod) = others().find(|pod| !is_ready(pod)) {
            return Some(Lack::Pod(format!("{} is not ready", name(pod))));
        }
        let is_shown = |uid: &str| pods.iter().any(|pod| object::uid(pod) == uid);
        let gone = recorded.iter().filter(|uid| !is_shown(uid)).count();
        let replaced = others().filter(|pod| !recorded.iter().any(|uid| uid == object::uid(pod))).count();
        let what = || format!("{replaced} of {gone} replacements are there");
        (replaced < gone).then(|| Lack::Replacement(what()))
    }

    fn shown_pods(&self) -> Vec<&Value> {
        let mut seen = BTreeSet::new();
        let objects = self.needs.answers.iter().flat_map(|answer| &answer.objects);
        objects
            .filter(|one| {
                object::text(one, &["apiVersion"]) == Some("v1")
                    && object::text(one, &["kind"]) == Some("Pod")
            })
            .filter(|pod| !is_over(pod) && seen.insert(object::uid(pod)))
            .collect()
    }
}

/// Whether a Pod has terminated. Such a Pod replaces no other, and never becomes ready.
fn is_over(pod: &Value) -> bool {
    matches!(object::text(pod, &["status", "phase"]), Some("Succeeded" | "Failed"))
}

/// What an eviction waits for.
enum Lack {
    /// For a Pod that exists: it is being deleted, or is not ready.
    Pod(String),
    /// For a Pod that does not exist yet.
    Replacement(String),
}

fn is_ready(pod: &Value) -> bool {
    let conditions = object::at(pod, &["status", "conditions"]).and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| {
        object::text(condition, &["type"]) == Some("Ready")
            && object::text(condition, &["status"]) == Some("True")
    })
}
