//! [`Ready`]: whether an object is ready, by the rules that Kubernetes tools share (kstatus).

use pintle_wit::ConditionStatus;
use serde_json::Value;

use crate::object;

/// Whether an object is ready, and if not, what it waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ready {
    /// It is ready.
    #[default]
    Yes,
    /// It is not ready yet.
    Waiting(String),
    /// It will not become ready by itself.
    Failed(String),
}

/// Whether a live object is ready by the rule of its kind. An object of a kind without a rule, and without conditions that say otherwise,
/// is ready once the API server has accepted it.
pub fn of(live: &Value) -> Ready {
    let kind = object::kind(live);
    let observed = object::at(live, &["status", "observedGeneration"]).and_then(Value::as_i64);
    if let (Some(generation), Some(observed)) = (object::generation(live), observed)
        && observed < generation
    {
        return Ready::Waiting(format!("generation {generation} is not observed yet"));
    }
    match (kind.group(), kind.kind.as_str()) {
        ("apps", "Deployment") => deployment(live, observed),
        ("apps", "ReplicaSet") => replicas(live, observed, "readyReplicas", "ready"),
        ("apps", "StatefulSet") => stateful_set(live, observed),
        ("apps", "DaemonSet") => daemon_set(live, observed),
        ("", "Pod") => pod(live),
        ("batch", "Job") => job(live),
        ("", "PersistentVolumeClaim") => phase(live, "Bound"),
        ("", "Service") => service(live),
        _ => by_conditions(live),
    }
}

/// Whether the readiness of a kind depends on its status. For other kinds the metadata is enough.
pub fn needs_status(kind: &pintle_wit::Kind) -> bool {
    const WITHOUT: [(&str, &str); 10] = [
        ("", "ConfigMap"),
        ("", "Secret"),
        ("", "ServiceAccount"),
        ("", "LimitRange"),
        ("", "Endpoints"),
        ("networking.k8s.io", "NetworkPolicy"),
        ("networking.k8s.io", "Ingress"),
        ("rbac.authorization.k8s.io", "Role"),
        ("rbac.authorization.k8s.io", "RoleBinding"),
        ("discovery.k8s.io", "EndpointSlice"),
    ];
    !WITHOUT.contains(&(kind.group(), kind.kind.as_str()))
}

fn number(live: &Value, path: &[&str]) -> i64 {
    object::at(live, path).and_then(Value::as_i64).unwrap_or(0)
}

fn condition<'a>(live: &'a Value, wanted: &str) -> Option<&'a Value> {
    object::at(live, &["status", "conditions"])?
        .as_array()?
        .iter()
        .find(|condition| object::text(condition, &["type"]) == Some(wanted))
}

fn is(condition: Option<&Value>, status: ConditionStatus) -> bool {
    condition.and_then(|condition| object::text(condition, &["status"])) == Some(status.as_str())
}

fn said(condition: Option<&Value>, otherwise: &str) -> String {
    let message = condition.and_then(|condition| object::text(condition, &["message"])).unwrap_or_default();
    if message.is_empty() { otherwise.into() } else { message.into() }
}

/// The message does not contain the count: otherwise every Pod that starts would cause a write of the root's status, and the child itself
/// shows the count.
fn waiting_for(what: &str, want: i64) -> Ready {
    Ready::Waiting(format!("not all of its {want} replicas are {what}"))
}

fn not_seen() -> Ready {
    Ready::Waiting("no controller has seen it yet".into())
}

fn deployment(live: &Value, observed: Option<i64>) -> Ready {
    let progressing = condition(live, "Progressing");
    if progressing.and_then(|condition| object::text(condition, &["reason"]))
        == Some("ProgressDeadlineExceeded")
    {
        return Ready::Failed(said(progressing, "the progress deadline is exceeded"));
    }
    if observed.is_none() {
        return not_seen();
    }
    let want = object::at(live, &["spec", "replicas"]).and_then(Value::as_i64).unwrap_or(1);
    let status = |key: &str| number(live, &["status", key]);
    if status("updatedReplicas") < want {
        return waiting_for("updated", want);
    }
    if status("replicas") > status("updatedReplicas") {
        return Ready::Waiting("old replicas are still there".into());
    }
    if status("availableReplicas") < want {
        return waiting_for("available", want);
    }
    Ready::Yes
}

fn replicas(live: &Value, observed: Option<i64>, field: &str, what: &str) -> Ready {
    if observed.is_none() {
        return not_seen();
    }
    let want = object::at(live, &["spec", "replicas"]).and_then(Value::as_i64).unwrap_or(1);
    let have = number(live, &["status", field]);
    if have < want { waiting_for(what, want) } else { Ready::Yes }
}

fn stateful_set(live: &Value, observed: Option<i64>) -> Ready {
    match replicas(live, observed, "readyReplicas", "ready") {
        Ready::Yes => {}
        waiting => return waiting,
    }
    let on_delete = object::text(live, &["spec", "updateStrategy", "type"]) == Some("OnDelete");
    let revisions = (
        object::text(live, &["status", "currentRevision"]),
        object::text(live, &["status", "updateRevision"]),
    );
    if !on_delete && revisions.0 != revisions.1 {
        let want = number(live, &["status", "replicas"]);
        return waiting_for("updated", want);
    }
    Ready::Yes
}

fn daemon_set(live: &Value, observed: Option<i64>) -> Ready {
    if observed.is_none() {
        return not_seen();
    }
    let want = number(live, &["status", "desiredNumberScheduled"]);
    for (field, what) in [("updatedNumberScheduled", "updated"), ("numberAvailable", "available")] {
        let have = number(live, &["status", field]);
        if have < want {
            return waiting_for(what, want);
        }
    }
    Ready::Yes
}

fn pod(live: &Value) -> Ready {
    match object::text(live, &["status", "phase"]) {
        Some("Succeeded") => Ready::Yes,
        Some("Failed") => Ready::Failed("the Pod failed".into()),
        _ if is(condition(live, "Ready"), ConditionStatus::True) => Ready::Yes,
        _ => Ready::Waiting(said(condition(live, "Ready"), "the Pod is not ready")),
    }
}

fn job(live: &Value) -> Ready {
    let failed = condition(live, "Failed");
    if is(failed, ConditionStatus::True) {
        return Ready::Failed(said(failed, "the Job failed"));
    }
    if is(condition(live, "Complete"), ConditionStatus::True) || number(live, &["status", "active"]) > 0 {
        return Ready::Yes;
    }
    Ready::Waiting("the Job has not started".into())
}

fn phase(live: &Value, wanted: &str) -> Ready {
    match object::text(live, &["status", "phase"]) {
        Some(phase) if phase == wanted => Ready::Yes,
        phase => Ready::Waiting(format!("its phase is {}, not {wanted}", phase.unwrap_or("unknown"))),
    }
}

fn service(live: &Value) -> Ready {
    let balanced = object::text(live, &["spec", "type"]) == Some("LoadBalancer");
    let ingress = object::at(live, &["status", "loadBalancer", "ingress"]).and_then(Value::as_array);
    if balanced && ingress.is_none_or(Vec::is_empty) {
        return Ready::Waiting("the load balancer has no address yet".into());
    }
    Ready::Yes
}

fn by_conditions(live: &Value) -> Ready {
    let stalled = condition(live, "Stalled");
    if is(stalled, ConditionStatus::True) {
        return Ready::Failed(said(stalled, "it is stalled"));
    }
    let reconciling = condition(live, "Reconciling");
    if is(reconciling, ConditionStatus::True) {
        return Ready::Waiting(said(reconciling, "it is reconciling"));
    }
    let ready = condition(live, "Ready");
    if ready.is_some() && !is(ready, ConditionStatus::True) {
        return Ready::Waiting(said(ready, "it is not Ready"));
    }
    Ready::Yes
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn deployment_with(status: Value) -> Ready {
        of(
            &json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"generation": 2}, "spec": {"replicas": 3}, "status": status}),
        )
    }

    #[test]
    fn a_deployment_is_ready_when_every_replica_is_updated_and_available() {
        let full =
            json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3});
        assert_eq!(deployment_with(full), Ready::Yes);
        assert_eq!(deployment_with(json!({})), not_seen());
        for (status, text) in [
            (
                json!({"observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3}),
                "generation 2",
            ),
            (
                json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 1, "availableReplicas": 3}),
                "not all of its 3 replicas are updated",
            ),
            (
                json!({"observedGeneration": 2, "replicas": 4, "updatedReplicas": 3, "availableReplicas": 4}),
                "old replicas",
            ),
            (
                json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 2}),
                "not all of its 3 replicas are available",
            ),
        ] {
            match deployment_with(status) {
                Ready::Waiting(message) => assert!(message.contains(text), "{message}"),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_rollout_that_ran_out_of_time_has_failed() {
        let status = json!({"conditions": [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "m"}]});
        assert_eq!(deployment_with(status), Ready::Failed("m".into()));
    }

    #[test]
    fn a_kind_without_a_rule_is_ready_once_accepted_unless_its_conditions_say_otherwise() {
        assert_eq!(of(&json!({"apiVersion": "v1", "kind": "ConfigMap"})), Ready::Yes);
        let custom = |kind: &str, status: &str| {
            of(
                &json!({"apiVersion": "x/v1", "kind": "X", "status": {"conditions": [{"type": kind, "status": status, "message": "m"}]}}),
            )
        };
        assert_eq!(custom("Ready", "True"), Ready::Yes);
        assert_eq!(custom("Ready", "False"), Ready::Waiting("m".into()));
        assert_eq!(custom("Reconciling", "True"), Ready::Waiting("m".into()));
        assert_eq!(custom("Stalled", "True"), Ready::Failed("m".into()));
    }
}
