//! The content of the status and of the events.

use std::time::Duration;

use pintle_wit::{
    Condition, ConditionStatus, Event, EventType, GuestCondition, HostStatus, ObjectRef, PintleStatus,
    UnwatchedChild,
};
use serde_json::{Map, Value, json};

use super::{
    Blockers, Key, Pass, Phase, StatusWrite, Step, adoption::Before, api_error::is_word,
    children::ChildState, recorded,
};
use crate::{
    conditions::{self, Blocker},
    managed, object,
    observed::{Observed, status_conditions},
    readiness::{self, Ready},
    reasons,
    request::HOST_STATUS,
    status::StatusSchema,
};

/// How long after a status write the next one is held back, if it only rolls up the statuses of children. During a rollout of three
/// Pods the Deployment's status changes about six times within a second.
const MERGE: Duration = Duration::from_millis(250);

/// The status that a pass wants to write, and whether it must be written.
struct Said {
    blockers: Blockers,
    /// The pass changed children, or the guest's status.
    did_change: bool,
    status: Value,
    /// The status differs from the present one.
    is_news: bool,
}

impl Pass {
    /// Names these children in the status before they are created, so that a host that dies in between knows where to look.
    pub(super) fn record(&mut self, children: &[ObjectRef]) -> Step {
        self.recorded_now.extend(children.iter().cloned());
        let status = self.status_on_the_way();
        let shown = json!({"status": status, "metadata": {"namespace": object::namespace(&self.root)}});
        let named = |child: &ObjectRef| {
            recorded::unwatched(&shown).contains(child) || recorded::inventory(&shown).contains(child)
        };
        if matches!(self.binding.status, StatusSchema::Nothing) || !children.iter().all(named) {
            // The CRD has no place for it. The condition `StatusSchemaIncomplete` of the Reconciler reports that.
            return self.apply_children();
        }
        self.recorded = true;
        self.counts.status_writes += 1;
        self.phase = Phase::Recording;
        Step::WriteStatus(StatusWrite::of(&self.root, status, &self.binding.field_manager))
    }

    /// Names in the status the patches that must be removed in the end, before they are applied. The gate has checked that the CRD has a
    /// place for them.
    pub(super) fn record_patches(&mut self) -> Step {
        let status = self.status_on_the_way();
        self.recorded = true;
        self.counts.status_writes += 1;
        self.phase = Phase::RecordingPatches;
        Step::WriteStatus(StatusWrite::of(&self.root, status, &self.binding.field_manager))
    }

    /// The status while the answer is being carried out.
    fn status_on_the_way(&self) -> Value {
        let blocker = Blocker {
            reason: reasons::PROGRESSING.into(),
            message: "the children are being applied".into(),
            terminal: false,
        };
        let (fields, guest) = self.last_words();
        self.status(fields, &guest, &[blocker], None)
    }

    /// Writes the status once more, with the result of the evictions.
    pub(super) fn write_status_again(&mut self, events: Vec<Event>) -> Step {
        let status = self.said().status;
        if matches!(self.binding.status, StatusSchema::Nothing) {
            return self.emit(events);
        }
        self.counts.status_writes += 1;
        self.phase = Phase::WritingStatusAgain(events);
        Step::WriteStatus(StatusWrite::of(&self.root, status, &self.binding.field_manager))
    }

    /// Writes the status, if it differs from the present one. Evictions and events follow.
    pub(super) fn write_status(&mut self) -> Step {
        self.note_lacking();
        if self.is_to_look_first() && self.said().is_news {
            return self.read_root(Before::Status);
        }
        let mut slowed = self.charge_children() | self.charge_asking();
        let mut said = self.said();
        let mut events = self.events(&said.blockers, said.did_change);
        events.extend(self.ignored_event());
        if said.is_news {
            if let Some(wait) = self.merged_for().filter(|_| events.is_empty() && !slowed) {
                self.again = Some(wait);
                return self.over();
            }
            if self.charge_status() {
                slowed = true;
                said = self.said();
            }
        }
        events.extend(self.slowed_event().filter(|_| slowed));
        if !said.is_news {
            self.told();
            return self.evict(events);
        }
        self.phase = Phase::WritingStatus(events);
        Step::WriteStatus(StatusWrite::of(&self.root, said.status, &self.binding.field_manager))
    }

    /// Works out the status, and whether it must be written.
    fn said(&mut self) -> Said {
        let blockers = self.blockers();
        let (fields, guest) = self.words();
        let status_changed = self.failure.is_none() && self.fields_differ(&fields);
        let did_change = self.counts.changed_children() || status_changed;
        let changed_by = (did_change || self.is_to_be_made_up_for()).then_some(self.binding.digest.as_str());
        let status = self.status(fields, &guest, &blockers, changed_by);
        self.ready = blockers.is_empty();
        let writable = !matches!(self.binding.status, StatusSchema::Nothing)
            && status.as_object().is_some_and(|s| !s.is_empty());
        let is_news = writable && (self.recorded || self.differs(&status));
        Said { blockers, did_change, status, is_news }
    }

    /// Whether an earlier pass changed something, or may have, and the status does not name the module that did it. Either a reply or
    /// the status write was lost, or this host or the host before it ended in between. All that a host that ended leaves is children and
    /// patches that are as they should be, and a status that names no module. If that status names an older module, it keeps naming it
    /// until something changes again.
    fn is_to_be_made_up_for(&self) -> bool {
        let Some(answer) = self.answer.as_ref().filter(|_| self.is_certain()) else { return false };
        let is_there = || {
            let children = answer.allowed.children().iter();
            let mut live = children.filter_map(|child| self.live.get(&Key::from(child.reference())));
            live.any(|child| self.owns(child))
        };
        let names_none = object::at(&self.root, &["status", "pintle", "moduleDigest"]).is_none();
        self.memory.untold || names_none && (is_there() || self.has_patches_in_force())
    }

    /// Whether there was a pass over the root before, as far as this host or the root's status shows.
    pub(super) fn was_answered(&self) -> bool {
        self.had_a_pass || self.status_entry().is_some()
    }

    fn is_certain(&self) -> bool {
        self.failure.is_none() && self.unsure.is_none()
    }

    /// The status was written, and names the module that changed something last.
    pub(super) fn told(&mut self) {
        if self.answer.is_some() && self.is_certain() {
            self.memory.untold = false;
        }
    }

    /// How long the status of this pass may wait, so that later changes are written together with it. A status that only rolls up the
    /// statuses of children may wait if a status was written a moment ago. A status that somebody waits for may not: the result of an
    /// edit, a write or a failure, and that the root is ready.
    fn merged_for(&self) -> Option<Duration> {
        let written = self.memory.written?;
        let waits = self.edited
            || self.failure.is_some()
            || self.unsure.is_some()
            || self.recorded
            || self.counts.changed_children()
            || self.has_open_evictions()
            || self.ready && !was_ready(&self.root);
        let since = Duration::try_from(self.now.duration_since(written)).ok()?;
        MERGE.checked_sub(since).filter(|left| !waits && !left.is_zero())
    }

    /// The guest's fields and conditions: those of this pass's answer, or those of the remembered answer. If the guest failed, the
    /// last ones as the root shows them, because fields that an apply leaves out would be removed.
    fn words(&self) -> (Map<String, Value>, Vec<GuestCondition>) {
        if self.failure.is_none() {
            if let Some(answer) = &self.answer {
                return (answer.allowed.status().clone(), answer.allowed.conditions().to_vec());
            }
            if let Some(memo) = &self.memory.memo {
                return memo.words();
            }
        }
        self.last_words()
    }

    fn last_words(&self) -> (Map<String, Value>, Vec<GuestCondition>) {
        let observed = self.root.get("status").map(status_conditions).unwrap_or_default();
        let guest = observed
            .into_iter()
            .filter(|condition| {
                !conditions::HOST_CONDITIONS.contains(&condition.r#type.as_str())
                    && self.owns_condition(condition)
            })
            .map(|condition| GuestCondition {
                r#type: condition.r#type,
                status: condition.status,
                reason: condition.reason,
                message: condition.message,
                blocks_ready: false,
            })
            .collect();
        let mut fields = self.root.get("status").and_then(Value::as_object).cloned().unwrap_or_default();
        fields.retain(|key, _| !HOST_STATUS.contains(&key.as_str()) && self.owns_field(key));
        (fields, guest)
    }

    /// Whether we wrote a status field of the root. If we sent a field of somebody else again, we would take it over. A root without
    /// managed fields comes from a file.
    fn owns_field(&self, key: &str) -> bool {
        match self.status_entry() {
            Some(entry) => {
                entry.get("f:status").is_some_and(|status| status.get(format!("f:{key}")).is_some())
            }
            None => object::at(&self.root, &["metadata", "managedFields"]).is_none(),
        }
    }

    /// Whether we wrote a condition of the root. Others may have conditions in the same list.
    fn owns_condition(&self, condition: &Condition) -> bool {
        let Some(entry) = self.status_entry() else { return false };
        let key = format!("k:{{\"type\":{}}}", Value::from(condition.r#type.as_str()));
        let list = entry.get("f:status").and_then(|status| status.get("f:conditions"));
        list.is_some_and(|list| {
            list.as_object().is_none_or(|parts| parts.is_empty() || parts.contains_key(&key))
        })
    }

    fn status_entry(&self) -> Option<&Value> {
        managed::entry(&self.root, &self.binding.field_manager, Some("status"))
    }

    /// The whole status as it is sent: the guest's fields and the host's, as far as the CRD declares them.
    fn status(
        &self,
        fields: Map<String, Value>,
        guest: &[GuestCondition],
        blockers: &[Blocker],
        changed_by: Option<&str>,
    ) -> Value {
        let before = self.root.get("status").map(status_conditions).unwrap_or_default();
        let generation = object::generation(&self.root);
        let recorded_digest = object::text(&self.root, &["status", "pintle", "moduleDigest"]);
        // After a failure that a retry may end, nothing is known about this generation yet.
        let undecided = self.failure.as_ref().is_some_and(|failure| failure.retry);
        let observed = object::at(&self.root, &["status", "observedGeneration"]).and_then(Value::as_i64);
        // A child in the root's own namespace has an owner reference as proof, and a shorter entry.
        let namespace = object::namespace(&self.root);
        let (unwatched, inventory): (Vec<ObjectRef>, Vec<ObjectRef>) = self
            .recorded()
            .into_iter()
            .partition(|child| namespace.is_some() && child.namespace.as_deref() == namespace);
        let host = HostStatus {
            observed_generation: if undecided { observed } else { generation },
            conditions: conditions::compute(blockers, guest, generation, &before, self.now),
            pintle: Some(PintleStatus {
                module_digest: changed_by.or(recorded_digest).map(Into::into),
                unwatched: unwatched.iter().map(unwatched_child).collect(),
                inventory,
                patched: self.patched(),
                evicting: self.evicting(),
            }),
        };
        let mut status = fields;
        if let Ok(Value::Object(host)) = serde_json::to_value(host) {
            status.extend(
                self.binding.status.prune(Value::Object(host)).as_object().cloned().unwrap_or_default(),
            );
        }
        Value::Object(status)
    }

    /// Whether a child must be named in the status before it is created, because no watch shows it or no garbage collector deletes it.
    pub(super) fn is_recorded(&self, child: &ObjectRef) -> bool {
        !self.binding.watches(child) || self.is_elsewhere(child)
    }

    /// The children that the status must name and that exist, may exist, or are about to be created.
    fn recorded(&self) -> Vec<ObjectRef> {
        let wanted = self.answer.as_ref().map_or(&[][..], |answer| answer.allowed.children());
        let wanted = wanted.iter().map(|child| child.reference()).filter(|child| self.is_recorded(child));
        let is_ours =
            |entry: &ObjectRef| self.live.get(&Key::from(entry)).is_some_and(|child| self.owns(child));
        // An entry is dropped once the object was read and does not exist, or belongs to somebody else.
        let recorded = self.recorded_children().into_iter();
        let recorded = recorded.filter(|entry| !self.memory.read.contains(entry) || is_ours(entry));
        let mut all: Vec<ObjectRef> =
            recorded.chain(wanted.cloned()).chain(self.recorded_now.iter().cloned()).collect();
        if self
            .answer
            .as_ref()
            .is_some_and(|answer| answer.states.iter().all(|state| matches!(state, ChildState::Accepted)))
        {
            // Every wanted child exists, so entries of an earlier answer in this pass that were never created can be dropped.
            all.retain(|entry| {
                is_ours(entry) || !self.memory.read.contains(entry) && !self.recorded_now.contains(entry)
            });
        }
        all.sort();
        all.dedup();
        all
    }

    /// Why the root is not ready, the most important reason first: no answer, an uncertain write, refusals, waiting children or stages,
    /// children left to prune, children that are not ready, and the guest's own conditions.
    fn blockers(&self) -> Blockers {
        let mut blockers = Vec::new();
        let mut add = |reason: &str, message: String, terminal: bool| {
            blockers.push(Blocker {
                reason: reason.into(),
                message: conditions::message(&message),
                terminal,
            });
        };
        if let Some(failure) = &self.failure {
            let at = failure.path.as_ref().map_or_else(String::new, |path| format!("{path}: "));
            let way_out = if object::is_deleting(&self.root) { self.way_out() } else { String::new() };
            let message = format!("{at}{}{way_out}", failure.message);
            add(&word(&failure.reason, reasons::GUEST_FAILED), message, !failure.retry);
            return blockers;
        }
        if let Some(message) = self.slowed() {
            add(reasons::THROTTLED, message, false);
        }
        if let Some(error) = &self.unsure {
            add(&error.reason_word(), error.to_string(), false);
        }
        for standing in self.memory.blocking(self.answer.as_ref().map(|answer| &answer.allowed)) {
            let refusal = &standing.refusal;
            let message = match refusal.reason.as_str() {
                reasons::ADOPTION_CONFLICT => refusal.message.clone(),
                _ if standing.immutable => format!(
                    "{0}: {1}; what is there cannot become this: delete {0}, and it is made anew, or let the guest name it otherwise",
                    refusal.child, refusal.message
                ),
                _ => format!("{}: {}", refusal.child, refusal.message),
            };
            add(&word(&refusal.reason, reasons::CHILD_REFUSED), message, !standing.retry);
        }
        for (reference, error) in &self.patches_refused {
            let message = match error.code {
                404 if error.reason == reasons::PATCH_TARGET_MISSING => error.message.clone(),
                _ => format!("the patch of {reference} is refused: {error}"),
            };
            let reason = if error.code == 409 { reasons::PATCH_CONFLICT.into() } else { error.reason_word() };
            add(&word(&reason, reasons::PATCH_REFUSED), message, !error.depends_on_others());
        }
        blockers.extend(self.eviction_blocker());
        blockers.extend(self.label_blocker());
        let mut add = |reason: &str, message: String, terminal: bool| {
            blockers.push(Blocker {
                reason: reason.into(),
                message: conditions::message(&message),
                terminal,
            });
        };
        if let Some(answer) = &self.answer {
            for state in &answer.states {
                if let ChildState::Held(message) = state {
                    add(reasons::CHILD_HELD, message.clone(), false);
                }
            }
        }
        if let Some(message) = self.stage_waiting() {
            add(reasons::STAGE_WAITING, message, false);
        }
        if self.answer.is_some() || self.memory.memo.is_some() {
            let wanted = self.wanted();
            let is_wanted = |key: &Key| match (&self.answer, &self.memory.memo) {
                (None, Some(memo)) => memo.wants(key),
                _ => wanted.contains(key),
            };
            let left = self.live.iter().filter(|(key, child)| self.owns(child) && !is_wanted(key));
            for (_, child) in left {
                let doing =
                    if child.deleting { "is being deleted" } else { "is no longer wanted and still there" };
                add(reasons::PRUNING, format!("{} {doing}", child.reference), false);
            }
        }
        if object::is_deleting(&self.root) {
            add(reasons::DELETING, "the guest has not finished cleaning up".into(), false);
        }
        let mut waiting = Vec::new();
        for (reference, ready) in self.readiness() {
            match ready {
                Ready::Yes => {}
                Ready::Waiting(message) | Ready::Failed(message) => {
                    waiting.push(format!("{reference}: {message}"))
                }
            }
        }
        if !waiting.is_empty() {
            add(reasons::CHILD_NOT_READY, waiting.join("; "), false);
        }
        for condition in self.words().1.iter().filter(|condition| condition.blocks_ready) {
            add(&condition.reason, condition.message.clone(), false);
        }
        blockers
    }

    /// A hint how an administrator releases a root whose guest cannot finish.
    fn way_out(&self) -> String {
        let reference = object::reference(&self.root);
        let place = reference.namespace.map_or_else(String::new, |namespace| format!(" -n {namespace}"));
        format!(
            "; to let the root go without its guest: kubectl annotate{place} {} {} pintle.dev/release=true",
            reference.kind.to_lowercase(),
            reference.name
        )
    }

    /// Every wanted child that exists, and whether it is ready.
    fn readiness(&self) -> Vec<(ObjectRef, Ready)> {
        let owned = |child: &&Observed| self.owns(child);
        let ready = |child: &Observed, rule| (child.reference.clone(), readiness::of_child(child, rule));
        match (&self.answer, &self.memory.memo) {
            (Some(answer), _) => {
                let wanted = answer.allowed.children().iter();
                wanted
                    .filter_map(|child| {
                        let live = self.live.get(&Key::from(child.reference())).filter(owned)?;
                        Some(ready(live, child.readiness()))
                    })
                    .collect()
            }
            (None, Some(memo)) => {
                let wanted = memo.wanted(None, self.live.iter()).into_iter();
                wanted.filter(|(live, _)| owned(live)).map(|(live, rule)| ready(live, rule)).collect()
            }
            (None, None) => Vec::new(),
        }
    }

    /// Whether the present status differs from this one: a field differs, or the last write had a field that this one leaves out.
    fn differs(&self, status: &Value) -> bool {
        let nothing = Value::Object(Map::new());
        let observed = self.root.get("status").unwrap_or(&nothing);
        let entry = self.status_entry().and_then(|entry| entry.get("f:status"));
        entry.is_some_and(|entry| is_leftover(entry, observed, status)) || !shows(observed, status)
    }

    /// The same for the guest's fields only.
    fn fields_differ(&self, fields: &Map<String, Value>) -> bool {
        let mut entry = self.status_entry().and_then(|entry| entry.get("f:status")).cloned();
        if let Some(entry) = entry.as_mut().and_then(Value::as_object_mut) {
            entry.retain(|key, _| !HOST_STATUS.iter().any(|field| key.strip_prefix("f:") == Some(field)));
        }
        let (nothing, fields) = (Value::Object(Map::new()), Value::Object(fields.clone()));
        let observed = self.root.get("status").unwrap_or(&nothing);
        let kept = entry.filter(|entry| entry.as_object().is_some_and(|fields| !fields.is_empty()));
        kept.is_some_and(|entry| is_leftover(&entry, observed, &fields)) || !shows(observed, &fields)
    }

    /// The guest's events, if the pass changed something, and the host's own events if the root began or ceased to fail.
    fn events(&mut self, blockers: &[Blocker], did_change: bool) -> Vec<Event> {
        let events = match &self.answer {
            Some(answer) if did_change && self.failure.is_none() => answer.allowed.events().to_vec(),
            _ => Vec::new(),
        };
        let mut events = self.few_enough(events);
        let before = self.root.get("status").map(status_conditions).unwrap_or_default();
        let find = |name: &str| before.iter().find(|condition| condition.r#type == name);
        let worth = |blocker: &&Blocker| {
            blocker.terminal
                || blocker.reason != reasons::CHILD_NOT_READY && blocker.reason != reasons::PRUNING
        };
        let refused = self.failure.is_some()
            || !self.memory.unlabelled.is_empty()
            || !self.patches_refused.is_empty()
            || !self.memory.blocking(self.answer.as_ref().map(|answer| &answer.allowed)).is_empty();
        if !refused {
            self.memory.warned = None;
        }
        let first = blockers.iter().find(|blocker| blocker.reason != reasons::THROTTLED);
        if let Some(blocker) = first.filter(|_| refused).filter(worth) {
            let told = find(conditions::READY).is_some_and(|ready| {
                ready.status == ConditionStatus::False
                    && ready.reason == blocker.reason
                    && ready.message == blocker.message
            });
            let warning = Some(Box::new((blocker.reason.clone(), blocker.message.clone())));
            let warned = std::mem::replace(&mut self.memory.warned, warning.clone());
            if !told && warned != warning {
                let message = crate::gate::clean(&blocker.message, 1024);
                // A user asked for this.
                let is_wanted = blocker.reason == reasons::SUSPENDED;
                let r#type = if is_wanted { EventType::Normal } else { EventType::Warning };
                events.push(Event { r#type, reason: blocker.reason.clone(), message });
            }
        } else if blockers.is_empty()
            && find(conditions::STALLED).is_some_and(|stalled| stalled.status == ConditionStatus::True)
        {
            let message = "the root is ready again".into();
            events.push(Event { r#type: EventType::Normal, reason: reasons::RECOVERED.into(), message });
        }
        events
    }
}

/// Whether the root's status says that it is ready.
fn was_ready(root: &Value) -> bool {
    let before = root.get("status").map(status_conditions).unwrap_or_default();
    before.iter().any(|ready| ready.r#type == conditions::READY && ready.status == ConditionStatus::True)
}

fn unwatched_child(reference: &ObjectRef) -> UnwatchedChild {
    UnwatchedChild {
        api_version: reference.api_version.clone(),
        kind: reference.kind.clone(),
        name: reference.name.clone(),
    }
}

/// Whether the last write set something that this one leaves out. A field that we own as a whole (an atomic list or map) has no parts
/// in the managed fields entry, so its value is compared.
fn is_leftover(entry: &Value, observed: &Value, sent: &Value) -> bool {
    !managed::owns_nothing_beyond(entry, sent) || has_stale_part(entry, observed, sent)
}

fn has_stale_part(entry: &Value, observed: &Value, sent: &Value) -> bool {
    let Some(owned) = entry.as_object() else { return false };
    if owned.is_empty() {
        let is_whole = matches!(
            (observed, sent),
            (Value::Object(_), Value::Object(_)) | (Value::Array(_), Value::Array(_))
        );
        return is_whole && !is_same(observed, sent);
    }
    let fields = owned.iter().filter_map(|(key, below)| Some((key.strip_prefix("f:")?, below)));
    fields.into_iter().any(|(name, below)| match (observed.get(name), sent.get(name)) {
        (Some(observed), Some(sent)) => has_stale_part(below, observed, sent),
        _ => false,
    })
}

/// Whether two values are the same JSON to every reader: 1.0 is 1, and a field that is null may be left out.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(a), Value::Object(b)) => {
            let within = |a: &Map<String, Value>, b: &Map<String, Value>| {
                a.iter().all(|(key, value)| b.get(key).map_or(value.is_null(), |other| is_same(value, other)))
            };
            within(a, b) && within(b, a)
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        _ => one == other,
    }
}

/// Whether `observed` shows everything in `sent`. Conditions are compared by type, and conditions of others do not count.
pub(super) fn shows(observed: &Value, sent: &Value) -> bool {
    match (observed, sent) {
        (Value::Object(observed), Value::Object(sent)) => sent.iter().all(|(key, value)| {
            observed.get(key).map_or(value.is_null() || is_empty(value), |observed| {
                match (key.as_str(), observed, value) {
                    ("conditions", Value::Array(observed), Value::Array(sent)) => {
                        sent.iter().all(|condition| observed.iter().any(|other| shows(other, condition)))
                    }
                    _ => shows(observed, value),
                }
            })
        }),
        _ => is_same(observed, sent),
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty)
}

/// A reason that the API accepts: one CamelCase word, or else the fallback.
fn word(reason: &str, otherwise: &str) -> String {
    if is_word(reason) { reason.into() } else { otherwise.into() }
}
