//! [`Rollout`]: how far a Deployment has rolled out, for the status of a guest that has one.

use serde_json::Value;

use crate::{GuestCondition, Refusal};

/// How far a Deployment has rolled out, according to its status. Most guests with a Deployment put this into their own status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rollout {
    /// How many Pods are wanted.
    pub wanted: i64,
    /// How many Pods there are, old ones included.
    pub replicas: i64,
    /// How many Pods have the newest template.
    pub updated: i64,
    /// How many Pods are ready.
    pub ready: i64,
    /// How many Pods have been ready for long enough to count.
    pub available: i64,
    /// Whether there is a Deployment at all.
    pub exists: bool,
    /// Whether the counts describe the Deployment's newest spec.
    pub current: bool,
    /// Why the Deployment makes no progress, if it says so: reason and message.
    pub failure: Option<(String, String)>,
}

impl Rollout {
    /// Reads an observed Deployment. Without one, all counts are 0.
    pub fn of(deployment: Option<&Value>) -> Self {
        let Some(deployment) = deployment else { return Self::default() };
        let (spec, status) = (&deployment["spec"], &deployment["status"]);
        let count = |name: &str| status[name].as_i64().unwrap_or(0);
        Self {
            wanted: spec["replicas"].as_i64().unwrap_or(1),
            replicas: count("replicas"),
            updated: count("updatedReplicas"),
            ready: count("readyReplicas"),
            available: count("availableReplicas"),
            exists: true,
            current: status["observedGeneration"].as_i64() >= deployment["metadata"]["generation"].as_i64(),
            failure: failure(&status["conditions"]),
        }
    }

    /// Whether every wanted Pod exists, has the newest template and is available, and no old one is left.
    pub fn is_complete(&self) -> bool {
        self.current
            && self.updated == self.wanted
            && self.replicas == self.wanted
            && self.available == self.wanted
    }

    /// The condition `Progressing`: True until the rollout is complete.
    pub fn progressing(&self) -> GuestCondition {
        if self.is_complete() {
            return GuestCondition::new(
                "Progressing",
                false,
                "RolloutComplete",
                "every replica is up to date and available",
            );
        }
        let message = if !self.exists {
            "the Deployment does not exist yet".to_owned()
        } else if self.current {
            format!(
                "{} of {} replicas are up to date, {} available, {} in all",
                self.updated, self.wanted, self.available, self.replicas
            )
        } else {
            "the newest form of the Deployment has not been taken up yet".to_owned()
        };
        GuestCondition::new("Progressing", true, "RollingOut", message)
    }

    /// The condition `Degraded`, for a guest whose child was refused: True, with the message of the API server. A message about a Secret is
    /// left out, because it may repeat the Secret's content.
    pub fn degraded_by(refusal: &Refusal) -> GuestCondition {
        let Refusal { child, reason, message, .. } = refusal;
        let reason = if reason.is_empty() { "ChildRefused" } else { reason };
        let message = match child.kind.as_str() {
            "Secret" => format!("Secret {} was refused", child.name),
            kind => format!("{kind} {} was refused: {message}", child.name),
        };
        GuestCondition::new("Degraded", true, reason, message)
    }

    /// The condition `Degraded`: True if the Deployment says that it makes no progress, or has lost Pods that it had.
    pub fn degraded(&self) -> GuestCondition {
        match &self.failure {
            Some((reason, message)) => GuestCondition::new("Degraded", true, reason, message),
            None => GuestCondition::new("Degraded", false, "AsExpected", ""),
        }
    }
}

/// The reason and the message of the condition which shows that a Deployment makes no progress by itself.
fn failure(conditions: &Value) -> Option<(String, String)> {
    let conditions = conditions.as_array()?;
    let find = |kind: &str| conditions.iter().find(|condition| condition["type"] == kind);
    let is = |condition: &&Value, status: &str| condition["status"] == status;
    // During a rollout some Pods are unavailable as well. Only after a complete rollout does that mean that Pods were lost.
    let complete =
        || find("Progressing").is_some_and(|condition| condition["reason"] == "NewReplicaSetAvailable");
    let condition = find("ReplicaFailure")
        .filter(|condition| is(condition, "True"))
        .or_else(|| find("Progressing").filter(|condition| is(condition, "False")))
        .or_else(|| find("Available").filter(|condition| is(condition, "False") && complete()))?;
    let text = |field: &str, default: &str| {
        condition[field].as_str().filter(|text| !text.is_empty()).unwrap_or(default).to_owned()
    };
    Some((text("reason", "DeploymentFailed"), text("message", "")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ConditionStatus, json};

    fn deployment(status: Value) -> Value {
        json!({"metadata": {"generation": 2}, "spec": {"replicas": 3}, "status": status})
    }

    #[test]
    fn without_a_deployment_a_rollout_is_under_way() {
        let rollout = Rollout::of(None);
        assert!(!rollout.is_complete());
        assert_eq!(rollout.progressing().status, ConditionStatus::True);
        assert_eq!(rollout.progressing().message, "the Deployment does not exist yet");
        assert_eq!(rollout.degraded().status, ConditionStatus::False);
    }

    #[test]
    fn counts_of_an_older_generation_complete_nothing() {
        let counts = json!({"observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3});
        let mut deployment = deployment(counts);
        assert!(!Rollout::of(Some(&deployment)).is_complete());
        deployment["status"]["observedGeneration"] = json!(2);
        assert!(Rollout::of(Some(&deployment)).is_complete());
        assert_eq!(Rollout::of(Some(&deployment)).progressing().reason, "RolloutComplete");
    }

    #[test]
    fn an_old_pod_that_is_left_keeps_the_rollout_going() {
        let counts = json!({"observedGeneration": 2, "replicas": 4, "updatedReplicas": 3, "readyReplicas": 4, "availableReplicas": 4});
        let rollout = Rollout::of(Some(&deployment(counts)));
        assert_eq!(rollout.progressing().message, "3 of 3 replicas are up to date, 4 available, 4 in all");
    }

    #[test]
    fn a_refused_child_is_degraded_and_a_refused_secret_is_not_quoted() {
        let refusal = |kind: &str| Refusal {
            child: crate::ObjectRef { kind: kind.to_owned(), name: "web".to_owned(), ..Default::default() },
            code: 409,
            reason: Refusal::ADOPTION_CONFLICT.to_owned(),
            message: "it is somebody else's".to_owned(),
            causes: Vec::new(),
        };
        let degraded = Rollout::degraded_by(&refusal("Service"));
        assert_eq!(
            degraded,
            GuestCondition::new(
                "Degraded",
                true,
                "AdoptionConflict",
                "Service web was refused: it is somebody else's"
            )
        );
        assert_eq!(Rollout::degraded_by(&refusal("Secret")).message, "Secret web was refused");
    }

    #[test]
    fn a_deadline_that_passed_is_degraded_in_the_deployments_words() {
        let conditions = json!([
            {"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable", "message": "few"},
            {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "timed out"},
        ]);
        let degraded =
            Rollout::of(Some(&deployment(json!({"observedGeneration": 2, "conditions": conditions}))))
                .degraded();
        assert_eq!(
            (degraded.status, degraded.reason.as_str()),
            (ConditionStatus::True, "ProgressDeadlineExceeded")
        );
        assert_eq!(degraded.message, "timed out");
    }

    #[test]
    fn being_short_of_pods_is_a_loss_only_after_the_rollout() {
        let with = |reason: &str| {
            let conditions = json!([
                {"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable", "message": "few"},
                {"type": "Progressing", "status": "True", "reason": reason},
            ]);
            Rollout::of(Some(&deployment(json!({"observedGeneration": 2, "conditions": conditions}))))
                .degraded()
                .status
        };
        assert_eq!(with("ReplicaSetUpdated"), ConditionStatus::False);
        assert_eq!(with("NewReplicaSetAvailable"), ConditionStatus::True);
    }
}
