//! What an object says of itself in its conditions.

use pintle_core::conditions::{READY, STALLED};
use pintle_wit::{Condition, ConditionStatus};
use serde_json::Value;

/// Whether an object is Ready, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Readiness {
    /// The status of its condition Ready.
    pub(super) status: ConditionStatus,
    /// The reason; empty where no host has given one for the object as it is now.
    pub(super) reason: String,
    /// The message.
    pub(super) message: String,
    /// Since when it is so (RFC 3339); empty where that is not known.
    pub(super) since: String,
    /// Whether only a change can help.
    pub(super) stalled: bool,
    /// Whether it says anything of itself.
    pub(super) told: bool,
}

impl Readiness {
    /// Reads the conditions of an object. A condition about an earlier generation says nothing of the object as it is now.
    pub(super) fn of(conditions: &[Condition], generation: Option<i64>) -> Self {
        Self::said_by("host", conditions, generation)
    }

    /// The same of a View, of which the gateway says it.
    pub(super) fn of_view(conditions: &[Condition], generation: Option<i64>) -> Self {
        Self::said_by("gateway", conditions, generation)
    }

    fn said_by(who: &str, conditions: &[Condition], generation: Option<i64>) -> Self {
        let find = |name: &str| conditions.iter().find(|condition| condition.r#type == name);
        let Some(ready) = find(READY) else {
            return Self { message: format!("no {who} has said anything of it yet"), ..Self::default() };
        };
        let said = Self {
            status: ready.status,
            reason: ready.reason.clone(),
            message: ready.message.clone(),
            since: ready.last_transition_time.clone(),
            stalled: find(STALLED).is_some_and(|stalled| stalled.status == ConditionStatus::True),
            told: true,
        };
        let is_older = |now: &i64| ready.observed_generation.is_some_and(|seen| seen < *now);
        match generation.filter(is_older) {
            Some(now) => Self {
                message: format!("the {who} has not looked at generation {now} yet; before: {}", said.why()),
                told: true,
                ..Self::default()
            },
            None => said,
        }
    }

    pub(super) fn is_ready(&self) -> bool {
        self.status == ConditionStatus::True
    }

    /// Reason and message in one line.
    pub(super) fn why(&self) -> String {
        match (self.reason.as_str(), self.message.as_str()) {
            ("", message) => message.into(),
            (reason, "") => reason.into(),
            (reason, message) => format!("{reason}: {message}"),
        }
    }
}

/// The conditions in the status of any object. What is no condition is passed over: the status is a guest's and its CRD's.
pub(super) fn conditions(object: &Value) -> Vec<Condition> {
    let all = object.pointer("/status/conditions").and_then(Value::as_array);
    all.into_iter().flatten().filter_map(|condition| serde_json::from_value(condition.clone()).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(object: &Value) -> Readiness {
        Readiness::of(&conditions(object), object["metadata"]["generation"].as_i64())
    }

    fn root(generation: i64, status: &str) -> Value {
        let ready = json!({"type": "Ready", "status": status, "reason": "Forbidden", "message": "m",
            "lastTransitionTime": "2000-01-01T00:00:00Z", "observedGeneration": 2});
        json!({"metadata": {"generation": generation}, "status": {"conditions": [ready, {"type": 1}]}})
    }

    #[test]
    fn ready_is_what_the_condition_says_of_this_generation() {
        assert!(read(&root(2, "True")).is_ready());
        let not = read(&root(2, "False"));
        assert!(!not.is_ready() && not.why() == "Forbidden: m", "{not:?}");
        let outdated = read(&root(3, "True"));
        assert_eq!(outdated.status, ConditionStatus::Unknown);
        assert_eq!(outdated.why(), "the host has not looked at generation 3 yet; before: Forbidden: m");
        assert!(outdated.told && !outdated.stalled && outdated.since.is_empty(), "{outdated:?}");
    }

    #[test]
    fn an_object_without_conditions_says_so() {
        let silent = read(&json!({}));
        assert!(!silent.told && silent.why() == "no host has said anything of it yet", "{silent:?}");
        assert_eq!(Readiness::of_view(&[], None).why(), "no gateway has said anything of it yet");
    }
}
