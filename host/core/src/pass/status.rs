//! The root's status: when it is written, and what it says.

use std::time::Duration;

use pintle_wit::{Condition, ConditionStatus, Failure, GuestCondition, HostStatus, ObjectRef, PintleStatus};
use serde_json::{Map, Value, json};

use super::{
    ApiError, Duty, Pass, StatusWrite, Step,
    blockers::Blockers,
    comparison::{is_leftover, shows},
    doubt,
    flow::{Awaited, Flow, Phase},
    key::Key,
    recorded,
};
use crate::{
    conditions::{self, Blocker},
    managed, object,
    observed::status_conditions,
    reasons,
    request::HOST_STATUS,
    status::StatusSchema,
};

/// How long after a status write the next one is held back, if it only rolls up the statuses of children. During a rollout of three
/// Pods the Deployment's status changes about six times within a second.
const MERGE: Duration = Duration::from_millis(250);

/// The status that a pass wants to write, and whether it must be written.
struct DueStatus {
    blockers: Blockers,
    /// The pass changed children, or the guest's status.
    did_change: bool,
    status: Value,
    /// The status differs from the present one.
    is_news: bool,
}

impl Pass {
    /// Names these children in the status before they are created, so that a host that dies in between knows where to look.
    pub(super) fn record(&mut self, children: &[ObjectRef]) -> Flow {
        self.records.children.extend(children.iter().cloned());
        let status = self.status_on_the_way();
        let shown = json!({"status": status, "metadata": {"namespace": object::namespace(&self.root)}});
        let named = recorded::unwatched(&shown);
        if matches!(self.binding.status, StatusSchema::Nothing)
            || !children.iter().all(|child| named.contains(child))
        {
            // The CRD has no place for it. The condition `StatusSchemaIncomplete` of the Reconciler reports that.
            return Flow::Again;
        }
        self.records.written = true;
        self.counts.status_writes += 1;
        self.ask_for(Awaited::Record, self.status_write(status))
    }

    /// Objects were named in the status. Otherwise nothing may be written, or nobody would know where to look.
    pub(super) fn record_written(&mut self, result: Result<(), ApiError>) -> Flow {
        match result {
            Ok(()) => {
                self.memory.wrote_root = true;
                Flow::Again
            }
            Err(error) if self.is_of_old_root(&error) => self.outdated(),
            Err(error) => self.give_up(error),
        }
    }

    fn status_write(&self, status: Value) -> Step {
        let write = StatusWrite::of(&self.root, status, &self.binding.field_manager);
        Step::WriteStatus(if self.is_root_unproven() { write.onto_this_version(&self.root) } else { write })
    }

    /// Whether a status was refused because the root has another version by now.
    fn is_of_old_root(&self, error: &ApiError) -> bool {
        error.code == 409 && !error.is_uid_mismatch() && self.is_root_unproven()
    }

    /// The status while the answer is being carried out.
    fn status_on_the_way(&self) -> Value {
        let blocker = Blocker {
            reason: reasons::PROGRESSING.into(),
            message: "the children are being applied".into(),
            terminal: false,
        };
        let (fields, guest) = self.last_guest_status();
        self.status(fields, &guest, &[blocker], None)
    }

    /// Writes the status once more, with the result of the evictions.
    pub(super) fn write_status_of_evictions(&mut self) -> Flow {
        let status = self.due_status().status;
        if matches!(self.binding.status, StatusSchema::Nothing) {
            return Flow::Done;
        }
        self.counts.status_writes += 1;
        self.ask_for(Awaited::StatusOfEvictions, self.status_write(status))
    }

    pub(super) fn status_of_evictions_written(&mut self, result: Result<(), ApiError>) -> Flow {
        match result {
            Ok(()) => self.memory.wrote_root = true,
            Err(error) if self.is_of_old_root(&error) => return self.outdated(),
            Err(error) => {
                doubt(&mut self.unsure, error);
                self.ready = false;
            }
        }
        Flow::Done
    }

    /// Writes the status, if it differs from the present one. Works out the Events too, which are published once it is written.
    pub(super) fn write_status(&mut self) -> Flow {
        if self.binding.duty == Duty::Release {
            return self.write_last_status();
        }
        self.note_lacking();
        if self.is_root_unconfirmed() && self.due_status().is_news {
            return self.read_root();
        }
        let mut slowed = self.charge_children() | self.charge_asking();
        let mut due = self.due_status();
        let mut events = self.events_about(&due.blockers, due.did_change);
        events.extend(self.ignored_event());
        if due.is_news {
            if let Some(wait) = self.merged_for().filter(|_| events.is_empty() && !slowed) {
                self.wake.after(wait);
                return Flow::To(Phase::Over);
            }
            if self.charge_status(&due.status) {
                slowed = true;
                due = self.due_status();
            }
        }
        events.extend(self.slowed_event().filter(|_| slowed));
        self.events = events;
        if !due.is_news {
            self.note_reported();
            return Flow::Done;
        }
        self.ask_for(Awaited::Status, self.status_write(due.status))
    }

    /// Writes that nobody reconciles the root any more, if the status can say so. A root that is being deleted needs no status.
    fn write_last_status(&mut self) -> Flow {
        let status = self.last_status();
        if object::is_deleting(&self.root) || status.get("conditions").is_none() || !self.differs(&status) {
            return Flow::To(Phase::Over);
        }
        if self.is_root_unconfirmed() {
            return self.read_root();
        }
        self.ask_for(Awaited::Status, self.status_write(status))
    }

    /// The present status as far as it is ours, with the condition that nobody reconciles the root any more.
    fn last_status(&self) -> Value {
        let (mut status, _) = self.last_guest_status();
        for key in HOST_STATUS.into_iter().filter(|key| self.owns_field(key)) {
            if let Some(value) = object::at(&self.root, &["status", key]) {
                status.insert(key.into(), value.clone());
            }
        }
        let before = self.root.get("status").map(status_conditions).unwrap_or_default();
        let of_guest = |condition: &&Condition| {
            !conditions::HOST_CONDITIONS.contains(&condition.r#type.as_str())
                && self.owns_condition(condition)
        };
        let guest = before.iter().filter(of_guest).cloned().collect();
        let conditions = conditions::not_reconciled(&self.binding.reconciler, guest, &before, self.now);
        // Plain data with string keys: it can be written as JSON.
        status.insert("conditions".into(), serde_json::to_value(conditions).unwrap_or_default());
        self.binding.status.prune(Value::Object(status))
    }

    pub(super) fn status_written(&mut self, result: Result<(), ApiError>) -> Flow {
        match result {
            Ok(()) => {
                self.memory.written = Some(self.now);
                self.memory.wrote_root = true;
                self.note_reported();
                self.counts.status_writes += 1;
                return Flow::Done;
            }
            // The root is gone, or another root has taken its name, so no status is left to write.
            Err(error) if error.code == 404 || error.is_uid_mismatch() => return Flow::To(Phase::Over),
            Err(error) if self.is_of_old_root(&error) => {
                self.memory.unreported |= self.counts.changed_children();
                return self.outdated();
            }
            // Only another status can be accepted: the present one, with a message about what is wrong with the new one.
            Err(error) if error.is_refusal() && !error.depends_on_others() && self.failure.is_none() => {
                let what = if error.is_too_large() {
                    "a root as large as this has no room for a status"
                } else {
                    "the API server does not take the guest's status"
                };
                let message = format!("{what}: {}", error.message);
                return self.fail(Failure::terminal(reasons::STATUS_REFUSED, message));
            }
            Err(error) => {
                self.memory.memo = None;
                self.memory.unreported |= self.counts.changed_children();
                // No status reaches such a root, so that the Events alone tell of the failure.
                if !error.is_too_large() {
                    doubt(&mut self.unsure, error);
                }
                self.ready = false;
            }
        }
        self.counts.status_writes += 1;
        Flow::To(Phase::Events)
    }

    /// Works out the status, and whether it must be written.
    fn due_status(&mut self) -> DueStatus {
        let blockers = self.blockers();
        let (fields, guest) = self.guest_status();
        let status_changed = self.failure.is_none() && self.fields_differ(&fields);
        let did_change = self.counts.changed_children() || status_changed;
        let changed_by = (did_change || self.is_to_be_made_up_for()).then_some(self.binding.digest.as_str());
        let status = self.status(fields, &guest, &blockers, changed_by);
        self.ready = blockers.is_empty();
        let writable = !matches!(self.binding.status, StatusSchema::Nothing)
            && status.as_object().is_some_and(|s| !s.is_empty());
        let is_news = writable && (self.records.written || self.differs(&status));
        DueStatus { blockers, did_change, status, is_news }
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
        self.memory.unreported || names_none && (is_there() || self.has_patches_in_force())
    }

    /// Whether there was a pass over the root before, as far as this host or the root's status shows.
    pub(super) fn was_answered(&self) -> bool {
        self.freshness.had_a_pass || self.status_entry().is_some()
    }

    fn is_certain(&self) -> bool {
        self.failure.is_none() && self.unsure.is_none()
    }

    /// The status was written, and names the module that changed something last.
    fn note_reported(&mut self) {
        if self.answer.is_some() && self.is_certain() {
            self.memory.unreported = false;
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
            || self.records.written
            || self.counts.changed_children()
            || self.is_to_be_made_up_for()
            || self.has_open_evictions()
            || self.ready && !was_ready(&self.root);
        let since = Duration::try_from(self.now.duration_since(written)).ok()?;
        MERGE.checked_sub(since).filter(|left| !waits && !left.is_zero())
    }

    /// The guest's fields and conditions: those of this pass's answer, or those of the remembered answer. If the guest failed, the
    /// last ones as the root shows them, because fields that an apply leaves out would be removed.
    pub(super) fn guest_status(&self) -> (Map<String, Value>, Vec<GuestCondition>) {
        if self.failure.is_none() {
            if let Some(answer) = &self.answer {
                return (answer.allowed.status().clone(), answer.allowed.conditions().to_vec());
            }
            if let Some(memo) = &self.memory.memo {
                return memo.guest_status();
            }
        }
        self.last_guest_status()
    }

    pub(super) fn last_guest_status(&self) -> (Map<String, Value>, Vec<GuestCondition>) {
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
        // A child in the root's own namespace has a shorter entry.
        let has_namespace = object::namespace(&self.root).is_some();
        let unwatched = self.children_to_record().into_iter();
        let unwatched = unwatched
            .map(|child| ObjectRef { namespace: child.namespace.filter(|_| !has_namespace), ..child });
        let host = HostStatus {
            observed_generation: if undecided { observed } else { generation },
            conditions: conditions::compute(blockers, guest, generation, &before, self.now),
            pintle: Some(PintleStatus {
                module_digest: changed_by.or(recorded_digest).map(Into::into),
                unwatched: unwatched.collect(),
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

    /// Whether the present status differs from this one: a field differs, or the last write had a field that this one leaves out.
    fn differs(&self, status: &Value) -> bool {
        let nothing = Value::Object(Map::new());
        let observed = self.root.get("status").unwrap_or(&nothing);
        let entry = self.status_entry().and_then(|entry| entry.get("f:status"));
        entry.is_some_and(|entry| is_leftover(entry, observed, status)) || !shows(observed, status)
    }

    /// The same for the guest's fields only.
    pub(super) fn fields_differ(&self, fields: &Map<String, Value>) -> bool {
        let mut entry = self.status_entry().and_then(|entry| entry.get("f:status")).cloned();
        if let Some(entry) = entry.as_mut().and_then(Value::as_object_mut) {
            entry.retain(|key, _| !HOST_STATUS.iter().any(|field| key.strip_prefix("f:") == Some(field)));
        }
        let (nothing, fields) = (Value::Object(Map::new()), Value::Object(fields.clone()));
        let observed = self.root.get("status").unwrap_or(&nothing);
        let kept = entry.filter(|entry| entry.as_object().is_some_and(|fields| !fields.is_empty()));
        kept.is_some_and(|entry| is_leftover(&entry, observed, &fields)) || !shows(observed, &fields)
    }
}

/// Whether the root's status says that it is ready.
fn was_ready(root: &Value) -> bool {
    let before = root.get("status").map(status_conditions).unwrap_or_default();
    before.iter().any(|ready| ready.r#type == conditions::READY && ready.status == ConditionStatus::True)
}
