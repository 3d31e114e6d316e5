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
    if object::is_deleting(live) {
        return Ready::Waiting("is being deleted".into());
    }
    let kind = object::kind(live);
    let observed = object::at(live, &["status", "observedGeneration"]).and_then(Value::as_i64);
    if let (Some(generation), Some(observed)) = (object::generation(live), observed)
        && observed != generation
    {
        return Ready::Waiting(format!("generation {generation} is not observed yet, but {observed}"));
    }
    if let Some(abnormal) = conditions(live).find_map(abnormal) {
        return abnormal;
    }
    match (kind.group(), kind.kind.as_str()) {
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet") if observed.is_none() => {
            Ready::Waiting("no controller has seen it yet".into())
        }
        ("apps", "Deployment") => deployment(live),
        ("apps", "ReplicaSet") => replica_set(live),
        ("apps", "StatefulSet") => stateful_set(live),
        ("apps", "DaemonSet") => daemon_set(live),
        ("", "Pod") => pod(live),
        ("batch", "Job") => job(live),
        ("", "PersistentVolumeClaim") => phase(live, "Bound"),
        ("", "Service") => service(live),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(live),
        _ => by_condition(live),
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

fn conditions(live: &Value) -> impl Iterator<Item = &Value> {
    object::at(live, &["status", "conditions"]).and_then(Value::as_array).into_iter().flatten()
}

fn condition<'a>(live: &'a Value, wanted: &str) -> Option<&'a Value> {
    conditions(live).find(|condition| object::text(condition, &["type"]) == Some(wanted))
}

/// What a condition that stands above the rule of every kind says.
fn abnormal(condition: &Value) -> Option<Ready> {
    let holds = is(Some(condition), ConditionStatus::True);
    match object::text(condition, &["type"]) {
        Some("Reconciling") if holds => Some(Ready::Waiting(said(Some(condition), "it is reconciling"))),
        Some("Stalled") if holds => Some(Ready::Failed(said(Some(condition), "it is stalled"))),
        _ => None,
    }
}

fn is(condition: Option<&Value>, status: ConditionStatus) -> bool {
    condition.and_then(|condition| object::text(condition, &["status"])) == Some(status.as_str())
}

fn said(condition: Option<&Value>, otherwise: &str) -> String {
    let message = condition.and_then(|condition| object::text(condition, &["message"])).unwrap_or_default();
    if message.is_empty() { otherwise.into() } else { message.into() }
}

fn replicas(live: &Value) -> i64 {
    object::at(live, &["spec", "replicas"]).and_then(Value::as_i64).unwrap_or(1)
}

/// Waits while a count in the status is too small. The message has the count that is waited for, and not how far it is: otherwise every Pod
/// that starts would cause a write of the root's status, and the child itself shows how far it is.
fn too_few(live: &Value, field: &str, want: i64, what: &str) -> Option<Ready> {
    let waits = number(live, &["status", field]) < want;
    waits.then(|| Ready::Waiting(format!("fewer than {want} Pods are {what}")))
}

fn too_many(live: &Value, want: i64) -> Option<Ready> {
    let waits = number(live, &["status", "replicas"]) > want;
    waits.then(|| Ready::Waiting(format!("more than {want} Pods are still there")))
}

/// kstatus reads its conditions Available and Progressing besides. The controller computes them from these counts; only a paused Deployment
/// whose Pods all run differs, and it serves.
fn deployment(live: &Value) -> Ready {
    let progressing = condition(live, "Progressing");
    if progressing.and_then(|condition| object::text(condition, &["reason"]))
        == Some("ProgressDeadlineExceeded")
    {
        return Ready::Failed(said(progressing, "the progress deadline is exceeded"));
    }
    let want = replicas(live);
    too_few(live, "updatedReplicas", want, "updated")
        .or_else(|| too_many(live, want))
        .or_else(|| too_few(live, "availableReplicas", want, "available"))
        .unwrap_or_default()
}

fn replica_set(live: &Value) -> Ready {
    let failure = condition(live, "ReplicaFailure");
    if is(failure, ConditionStatus::True) {
        return Ready::Waiting(said(failure, "its Pods cannot be created or deleted"));
    }
    let want = replicas(live);
    too_few(live, "fullyLabeledReplicas", want, "labelled as its template says")
        .or_else(|| too_few(live, "availableReplicas", want, "available"))
        .or_else(|| too_many(live, want))
        .unwrap_or_default()
}

/// With `OnDelete`, kstatus takes it as ready at once. But that says only who replaces the old Pods, and a later stage needs Pods.
fn stateful_set(live: &Value) -> Ready {
    let on_delete = object::text(live, &["spec", "updateStrategy", "type"]) == Some("OnDelete");
    let partition = number(live, &["spec", "updateStrategy", "rollingUpdate", "partition"]);
    let want = replicas(live);
    let rollout = if on_delete { 0 } else { want.saturating_sub(partition) };
    too_few(live, "readyReplicas", want, "ready")
        .or_else(|| too_many(live, want))
        .or_else(|| too_few(live, "updatedReplicas", rollout, "updated"))
        .unwrap_or_default()
}

fn daemon_set(live: &Value) -> Ready {
    let want = number(live, &["status", "desiredNumberScheduled"]);
    too_few(live, "updatedNumberScheduled", want, "updated")
        .or_else(|| too_few(live, "numberAvailable", want, "available"))
        .unwrap_or_default()
}

/// kstatus takes a Pod that failed as current, because nothing more comes of it: whoever waits for it waits in vain. It takes one that fits
/// on no node as failed after 15 s. But a node may come.
fn pod(live: &Value) -> Ready {
    let (ready, schedule) = (condition(live, "Ready"), condition(live, "PodScheduled"));
    match object::text(live, &["status", "phase"]) {
        Some("Succeeded") => Ready::Yes,
        Some("Failed") => Ready::Failed("the Pod failed".into()),
        _ if is(ready, ConditionStatus::True) => Ready::Yes,
        _ if is(schedule, ConditionStatus::False) => {
            Ready::Waiting(said(schedule, "the Pod is not scheduled"))
        }
        _ => match crash_loops(live).as_slice() {
            [] => Ready::Waiting(said(ready, "the Pod is not ready")),
            names => Ready::Failed(format!("containers crash again and again: {}", names.join(", "))),
        },
    }
}

fn crash_loops(live: &Value) -> Vec<&str> {
    let containers = object::at(live, &["status", "containerStatuses"]).and_then(Value::as_array);
    let crashes = |container: &&Value| {
        object::text(container, &["state", "waiting", "reason"]) == Some("CrashLoopBackOff")
    };
    let crashing = containers.into_iter().flatten().filter(crashes);
    crashing.filter_map(|container| object::text(container, &["name"])).collect()
}

/// A Job that has started is ready, between two tries too.
fn job(live: &Value) -> Ready {
    let failed = condition(live, "Failed");
    if is(failed, ConditionStatus::True) {
        let (count, why) = (number(live, &["status", "failed"]), said(failed, "no reason is given"));
        return Ready::Failed(format!("the Job failed, and {count} of its Pods: {why}"));
    }
    let rests = ["Complete", "Suspended"].iter().any(|name| is(condition(live, name), ConditionStatus::True));
    if rests || object::text(live, &["status", "startTime"]).is_some() {
        Ready::Yes
    } else {
        Ready::Waiting("the Job has not started".into())
    }
}

fn phase(live: &Value, wanted: &str) -> Ready {
    match object::text(live, &["status", "phase"]) {
        Some(phase) if phase == wanted => Ready::Yes,
        phase => Ready::Waiting(format!("its phase is {}, not {wanted}", phase.unwrap_or("unknown"))),
    }
}

/// kstatus waits for the cluster's own address only. But who asks for a load balancer wants its address.
fn service(live: &Value) -> Ready {
    let balanced = object::text(live, &["spec", "type"]) == Some("LoadBalancer");
    let ingress = object::at(live, &["status", "loadBalancer", "ingress"]).and_then(Value::as_array);
    if balanced && ingress.is_none_or(Vec::is_empty) {
        return Ready::Waiting("the load balancer has no address yet".into());
    }
    Ready::Yes
}

fn definition(live: &Value) -> Ready {
    let (names, service) = (condition(live, "NamesAccepted"), condition(live, "Established"));
    if is(names, ConditionStatus::False) {
        return Ready::Failed(said(names, "its names are not accepted"));
    }
    if is(service, ConditionStatus::True) {
        return Ready::Yes;
    }
    let reason = service.and_then(|condition| object::text(condition, &["reason"]));
    if is(service, ConditionStatus::False) && reason != Some("Installing") {
        return Ready::Failed(said(service, "it is not established"));
    }
    Ready::Waiting("it is not established yet".into())
}

fn by_condition(live: &Value) -> Ready {
    let ready = condition(live, "Ready");
    if ready.is_some() && !is(ready, ConditionStatus::True) {
        return Ready::Waiting(said(ready, "it is not Ready"));
    }
    Ready::Yes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const STATES: &str = include_str!("readiness/states.txt");

    #[test]
    fn the_readiness_of_every_kind_in_every_state_is_as_the_table_says() {
        let rows = STATES.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let mut wrong = Vec::new();
        for row in rows {
            let cells: Vec<&str> = row.splitn(3, " | ").collect();
            let [kind, want, object] = cells[..] else { panic!("{row}") };
            let (api_version, kind) = kind.split_once(' ').unwrap();
            let mut live = json!({"apiVersion": api_version, "kind": kind, "metadata": {"generation": 2}});
            let object: Value = serde_json::from_str(object).unwrap_or_else(|error| panic!("{error}: {row}"));
            live.as_object_mut().unwrap().extend(object.as_object().unwrap().clone());
            let want = match want.split_once(": ") {
                None if want == "ready" => Ready::Yes,
                Some(("waits", why)) => Ready::Waiting(why.into()),
                Some(("failed", why)) => Ready::Failed(why.into()),
                _ => panic!("{row}"),
            };
            let found = of(&live);
            if found != want {
                wrong.push(format!("{row}\n  is {found:?}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
