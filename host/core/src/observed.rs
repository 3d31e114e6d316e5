//! [`Observed`]: the part of a live child with which passes work.

mod kept;

use pintle_wit::{Condition, ConditionStatus, Kind, ObjectRef, Readiness, bounded, names};
use serde_json::Value;

use crate::{
    desired, managed, object,
    readiness::{self, Ready},
    text,
};
pub use kept::{Kept, Names, Uid};

/// The longest kind and name of a controller, in bytes: a kind has 63 and a name 253.
const CONTROLLER_NAME_BYTES_MAX: usize = 320;

/// The longest uid of a controller, and the longest annotation of ours, in bytes. Whoever may write the object may write longer ones, which
/// are none.
const TEXT_BYTES_MAX: usize = 256;

/// A child as it was last seen: a small fixed part, and the object itself only if the guest wants to observe it. Passes work with this
/// form. Between passes a child is stored as [`Kept`].
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// Its name.
    pub reference: ObjectRef,
    /// Its uid.
    pub uid: String,
    /// Its resourceVersion.
    pub resource_version: String,
    /// The uid of its controller, as its owner references say.
    pub controller: Option<String>,
    /// Kind and name of its controller, for people.
    pub controller_name: Option<String>,
    /// The uid in its label `pintle.dev/root`. It says where to look and proves nothing.
    pub root_label: Option<String>,
    /// The name in its label `pintle.dev/reconciler`.
    pub reconciler_label: Option<String>,
    /// Its annotation `pintle.dev/desired`.
    pub desired: Option<String>,
    /// Its annotation `pintle.dev/adopt`.
    pub adopt: Option<String>,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Our entry of its managed fields, as [`managed::with_values`] gives it, until a pass has judged it. After that, the hash and the
    /// verdict are enough.
    pub entry: Option<Value>,
    /// The hash of that entry.
    pub entry_hash: [u8; 32],
    /// The field manager that wrote it last, if it is not ours.
    pub last_writer: Option<String>,
    /// The verdict: a pass found that the entry with this hash covers every leaf of the object whose hash is in `desired`.
    pub covered: bool,
    /// Whether our entry owns its label `pintle.dev/root`, so that nobody but us has set it.
    pub owns_root_label: bool,
    /// Whether our entry owns its number of replicas.
    pub owns_replicas: bool,
    /// The field manager that has set its number of replicas through the subresource `scale`.
    pub scaler: Option<String>,
    /// Whether it is ready by the rule of its kind.
    pub ready: Ready,
    /// Its conditions, for a readiness rule that names one.
    pub conditions: Vec<(String, ConditionStatus, String)>,
    /// The object as a guest sees it, if the guest observes its kind.
    pub object: Option<Value>,
}

impl Observed {
    /// Reduces a live object. `observe` keeps what a guest would see of it.
    pub fn of(live: &Value, manager: &str, observe: bool) -> Self {
        let label = |key: &str| object::text(live, &["metadata", "labels", key]).map(Into::into);
        let annotation = |key: &str| {
            let text = object::text(live, &["metadata", "annotations", key]);
            text.filter(|text| text.len() <= TEXT_BYTES_MAX).map(Into::into)
        };
        let owned = managed::entry(live, manager, None);
        let labels = owned.and_then(|owned| object::at(owned, &["f:metadata", "f:labels"]));
        let entry = owned.map(|owned| managed::with_values(owned, live));
        Self {
            reference: object::reference(live),
            uid: object::uid(live).into(),
            resource_version: object::text(live, &["metadata", "resourceVersion"]).unwrap_or_default().into(),
            controller: controller(live).map(|uid| bounded(uid, TEXT_BYTES_MAX)),
            controller_name: controller_name(live),
            root_label: label(names::LABEL_ROOT),
            reconciler_label: label(names::LABEL_RECONCILER),
            desired: annotation(names::ANNOTATION_DESIRED),
            adopt: annotation(names::ANNOTATION_ADOPT),
            deleting: object::is_deleting(live),
            entry_hash: desired::hash_parts(&[&entry.as_ref().map(desired::canonical).unwrap_or_default()]),
            covered: false,
            owns_root_label: labels
                .is_some_and(|labels| labels.get(format!("f:{}", names::LABEL_ROOT)).is_some()),
            owns_replicas: owned.is_some_and(managed::owns_replicas),
            scaler: managed::scaler(live).map(Into::into),
            entry,
            last_writer: managed::last_writer(live, manager).map(Into::into),
            ready: readiness::of(live),
            conditions: conditions(live),
            object: observe.then(|| crate::request::project(live)),
        }
    }

    /// Keeps only the metadata: enough of an object that somebody has given our labels, and that no root has.
    #[must_use]
    pub fn without_content(self) -> Self {
        Self { entry: None, object: None, conditions: Vec::new(), ready: Ready::default(), ..self }
    }

    /// Whether this object is provably a child of the root with this uid. Its controller is the proof, not its labels.
    pub fn is_owned_by(&self, root_uid: &str) -> bool {
        self.controller.as_deref() == Some(root_uid)
    }

    /// Whether this object has no controller and carries the root's uid in a label that our own apply set: it was made for this root, and
    /// somebody has removed its owner reference. This is no proof for a deletion.
    pub fn is_labelled_by(&self, root_uid: &str) -> bool {
        self.controller.is_none() && self.owns_root_label && self.root_label.as_deref() == Some(root_uid)
    }

    /// Whether our entry covers every leaf of `sent`, so that nobody took a field from us since. The object must carry the hash of `sent`.
    pub fn covers(&self, sent: &Value) -> bool {
        self.covered || self.entry.as_ref().is_some_and(|entry| managed::covers(entry, sent))
    }

    /// Whether it is ready: by the guest's rule if it gave one, otherwise by the rule of its kind. A child that has failed by the rule of its
    /// kind does not get the condition that the guest waits for.
    pub fn readiness(&self, rule: Option<&Readiness>) -> Ready {
        if self.deleting {
            return Ready::Waiting("is being deleted".into());
        }
        match rule {
            None => self.ready.clone(),
            Some(Readiness::Accepted) => Ready::Yes,
            Some(Readiness::Decided { ready: true, .. }) => Ready::Yes,
            Some(Readiness::Decided { message, .. }) if message.is_empty() => {
                Ready::Waiting("is not ready".into())
            }
            Some(Readiness::Decided { message, .. }) => Ready::Waiting(message.clone()),
            Some(Readiness::Condition { r#type, status }) => {
                match self.conditions.iter().find(|(name, ..)| name == r#type) {
                    Some((_, found, _)) if found == status => Ready::Yes,
                    _ if matches!(self.ready, Ready::Failed(_)) => self.ready.clone(),
                    Some((.., message)) if !message.is_empty() => {
                        Ready::Waiting(format!("condition {type} is not {}: {message}", status.as_str()))
                    }
                    _ => Ready::Waiting(format!("condition {type} is not {}", status.as_str())),
                }
            }
        }
    }

    /// Keeps the verdict of a pass in place of the entry.
    pub fn judge(&mut self, covered: bool) {
        self.covered = covered;
        if covered {
            self.entry = None;
        }
    }

    /// Takes over the verdict from an earlier state of the same object, if neither the entry nor the desired hash has changed since.
    pub fn inherit(&mut self, earlier: &Self) {
        if earlier.covered
            && self.uid == earlier.uid
            && self.entry_hash == earlier.entry_hash
            && self.desired == earlier.desired
        {
            self.judge(true);
        }
    }

    /// Whether this state differs from `other` in anything but the version.
    pub fn differs_from(&self, other: &Self) -> bool {
        // The uid of its controller tells whether its name is another.
        let Self { resource_version: _, entry: _, covered: _, controller_name: _, .. } = self;
        self.reference != other.reference
            || self.uid != other.uid
            || self.controller != other.controller
            || self.root_label != other.root_label
            || self.reconciler_label != other.reconciler_label
            || self.desired != other.desired
            || self.adopt != other.adopt
            || self.deleting != other.deleting
            || self.entry_hash != other.entry_hash
            || self.ready != other.ready
            || self.conditions != other.conditions
            || self.object != other.object
    }

    /// Whether somebody who may write the object has allowed the root to adopt it.
    pub fn may_be_adopted_by(&self, root_uid: &str) -> bool {
        self.controller.is_none() && self.adopt.as_deref() == Some(root_uid)
    }

    /// Whether this is a later state of the same object than `other`, or another object. Versions of one kind can be compared as numbers
    /// (KEP 5504); one that is no number counts as new.
    pub fn is_newer_than(&self, other: &Self) -> bool {
        match (self.resource_version.parse::<u64>(), other.resource_version.parse::<u64>()) {
            (Ok(mine), Ok(others)) => mine >= others,
            _ => true,
        }
    }
}

/// Whether an object's controller is of this kind, in any version.
pub fn is_controlled_by(live: &Value, kind: &Kind) -> bool {
    controller_reference(live).is_some_and(|owner| {
        let text = |key: &str| object::text(owner, &[key]).unwrap_or_default();
        let named = Kind::new(text("apiVersion"), text("kind"));
        named.kind == kind.kind && named.group() == kind.group()
    })
}

/// The uid of an object's controller.
pub fn controller(live: &Value) -> Option<&str> {
    object::text(controller_reference(live)?, &["uid"])
}

/// Kind and name of an object's controller. Whoever writes the object chooses both.
fn controller_name(live: &Value) -> Option<String> {
    let owner = controller_reference(live)?;
    let (kind, name) = (object::text(owner, &["kind"])?, object::text(owner, &["name"])?);
    Some(text::clean(&format!("{kind} {name}"), CONTROLLER_NAME_BYTES_MAX))
}

fn controller_reference(live: &Value) -> Option<&Value> {
    let owners = object::at(live, &["metadata", "ownerReferences"])?.as_array()?;
    owners.iter().find(|owner| owner.get("controller").and_then(Value::as_bool) == Some(true))
}

fn conditions(live: &Value) -> Vec<(String, ConditionStatus, String)> {
    let found = object::at(live, &["status", "conditions"]).and_then(Value::as_array);
    found
        .into_iter()
        .flatten()
        .filter_map(|condition| {
            let text = |key: &str| object::text(condition, &[key]);
            let status = condition_status(text("status")?);
            Some((text("type")?.to_owned(), status, text("message").unwrap_or_default().to_owned()))
        })
        .collect()
}

/// The conditions in a status, as far as they can be read.
pub fn status_conditions(status: &Value) -> Vec<Condition> {
    let found = status.get("conditions").and_then(Value::as_array);
    found.into_iter().flatten().filter_map(status_condition).collect()
}

/// A condition whose missing fields read as empty, since a CRD need not declare every field.
fn status_condition(condition: &Value) -> Option<Condition> {
    let text = |key: &str| object::text(condition, &[key]);
    Some(Condition {
        r#type: text("type")?.into(),
        status: condition_status(text("status")?),
        observed_generation: condition.get("observedGeneration").and_then(Value::as_i64),
        last_transition_time: text("lastTransitionTime").unwrap_or_default().into(),
        reason: text("reason").unwrap_or_default().into(),
        message: text("message").unwrap_or_default().into(),
    })
}

/// The status that a word says; unknown for every word that is none.
pub fn condition_status(text: &str) -> ConditionStatus {
    match text {
        "True" => ConditionStatus::True,
        "False" => ConditionStatus::False,
        _ => ConditionStatus::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_guests_rule_stands_above_the_rule_of_the_kind() {
        let live = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"uid": "u"}, "status":
            {"conditions": [{"type": "Available", "status": "True"}]}});
        let child = Observed::of(&live, "m", false);
        assert_ne!(child.readiness(None), Ready::Yes);
        assert_eq!(child.readiness(Some(&Readiness::Accepted)), Ready::Yes);
        let available = |status| Readiness::Condition { r#type: "Available".into(), status };
        assert_eq!(child.readiness(Some(&available(ConditionStatus::True))), Ready::Yes);
        assert_ne!(child.readiness(Some(&available(ConditionStatus::False))), Ready::Yes);
        let decided = Readiness::Decided { ready: false, message: "m".into() };
        assert_eq!(child.readiness(Some(&decided)), Ready::Waiting("m".into()));
    }

    #[test]
    fn a_job_that_failed_has_failed_although_the_guest_waits_for_another_condition() {
        let live = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"uid": "u"}, "status":
            {"failed": 4, "conditions": [{"type": "Failed", "status": "True", "message": "m"}]}});
        let child = Observed::of(&live, "m", false);
        let waits = |name: &str| {
            child
                .readiness(Some(&Readiness::Condition { r#type: name.into(), status: ConditionStatus::True }))
        };
        assert_eq!(waits("Complete"), Ready::Failed("the Job failed, and 4 of its Pods: m".into()));
        assert_eq!(waits("Failed"), Ready::Yes);
    }
}
