//! Deployments make ReplicaSets, ReplicaSets make Pods, and Pods become ready, each in steps.

use serde_json::{Value, json};

use super::{ControllerAction, controller, is_deleting, of_kind, reference, text};
use crate::{
    Act, Cascade,
    store::{Key, Store},
};

const DEPLOYMENTS: &str = "deployment-controller";
const REPLICA_SETS: &str = "replicaset-controller";
const KUBELET: &str = "kubelet";
const REVISION: &str = "deployment.kubernetes.io/revision";

pub(super) fn steps(store: &Store) -> impl Iterator<Item = ControllerAction> {
    pods(store).chain(replica_sets(store)).chain(deployments(store))
}

/// A Pod is scheduled, becomes ready, and stops when it is deleted.
fn pods(store: &Store) -> impl Iterator<Item = ControllerAction> {
    of_kind(store, "", "pods").filter_map(|(key, pod)| {
        let target = reference(key, pod);
        if is_deleting(pod) {
            let held =
                pod["metadata"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
            return (!held).then_some(ControllerAction::EndPod(target));
        }
        if text(pod, "/spec/nodeName").is_empty() {
            if !fits_the_node(pod) {
                return None;
            }
            let patch = json!({"spec": {"nodeName": "node"}});
            return Some(ControllerAction::Act("scheduler", Act::Merge { target, subresource: None, patch }));
        }
        if text(pod, "/status/phase") == "Running" {
            return None;
        }
        let started = &pod["metadata"]["creationTimestamp"];
        let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": started});
        let conditions: Vec<Value> =
            ["PodScheduled", "Initialized", "ContainersReady", "Ready"].map(condition).into();
        let patch = json!({"status": {"phase": "Running", "conditions": conditions, "startTime": started}});
        Some(ControllerAction::Act(KUBELET, Act::Merge { target, subresource: Some("status".into()), patch }))
    })
}

/// Whether the only node has the labels that a Pod asks for.
fn fits_the_node(pod: &Value) -> bool {
    const LABELS: [(&str, &str); 3] =
        [("kubernetes.io/arch", "amd64"), ("kubernetes.io/hostname", "node"), ("kubernetes.io/os", "linux")];
    let mut wanted = pod["spec"]["nodeSelector"].as_object().into_iter().flatten();
    wanted.all(|(key, value)| LABELS.iter().any(|label| label.0 == key && value == label.1))
}

pub(super) fn is_ready(pod: &Value) -> bool {
    !is_deleting(pod) && crate::verbs::is_ready(pod)
}

fn owned<'a>(
    store: &'a Store,
    group: &'a str,
    resource: &'a str,
    owner: &'a Value,
) -> Vec<(&'a Key, &'a Value)> {
    let uid = text(owner, "/metadata/uid");
    of_kind(store, group, resource)
        .filter(|(_, object)| controller(object) == Some(uid))
        .map(|(key, object)| (key, object.as_ref()))
        .collect()
}

fn owner_reference(owner: &Value) -> Value {
    json!([{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    }])
}

pub(super) fn number(value: &Value, pointer: &str) -> i64 {
    value.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

fn replica_sets(store: &Store) -> impl Iterator<Item = ControllerAction> {
    of_kind(store, "apps", "replicasets").filter(|(_, set)| !is_deleting(set)).filter_map(|(key, set)| {
        let pods: Vec<(&Key, &Value)> =
            owned(store, "", "pods", set).into_iter().filter(|(_, pod)| !is_deleting(pod)).collect();
        let (wanted, found) = (number(set, "/spec/replicas"), i64::try_from(pods.len()).unwrap_or(i64::MAX));
        if found < wanted {
            let mut pod = set["spec"]["template"].clone();
            pod["apiVersion"] = "v1".into();
            pod["kind"] = "Pod".into();
            pod["metadata"]["generateName"] = format!("{}-", key.name).into();
            pod["metadata"]["namespace"] = key.namespace.as_str().into();
            pod["metadata"]["ownerReferences"] = owner_reference(set);
            return Some(ControllerAction::Act(REPLICA_SETS, Act::Create(pod)));
        }
        if found > wanted {
            // Pods that are not ready go first.
            let (key, pod) = pods.iter().min_by_key(|(key, pod)| (is_ready(pod), &key.name))?;
            let target = reference(key, pod);
            return Some(ControllerAction::Act(
                REPLICA_SETS,
                Act::Delete { target, cascade: Cascade::Background },
            ));
        }
        let ready = pods.iter().filter(|(_, pod)| is_ready(pod)).count();
        let mut status = json!({"replicas": found, "observedGeneration": set["metadata"]["generation"]});
        if found > 0 {
            status["fullyLabeledReplicas"] = found.into();
        }
        if ready > 0 {
            status["readyReplicas"] = ready.into();
            status["availableReplicas"] = ready.into();
        }
        status_step(REPLICA_SETS, key, set, status)
    })
}

/// Writes a status if it differs.
pub(super) fn status_step(
    actor: &'static str,
    key: &Key,
    object: &Value,
    status: Value,
) -> Option<ControllerAction> {
    if object["status"] == status {
        return None;
    }
    let target = reference(key, object);
    let patch = json!([{"op": "add", "path": "/status", "value": status}]);
    Some(ControllerAction::Act(actor, Act::JsonPatch { target, subresource: Some("status".into()), patch }))
}

fn deployments(store: &Store) -> impl Iterator<Item = ControllerAction> {
    of_kind(store, "apps", "deployments")
        .filter(|(_, deployment)| !is_deleting(deployment))
        .filter_map(|(key, deployment)| roll_out(store, key, deployment))
}

fn roll_out(store: &Store, key: &Key, deployment: &Value) -> Option<ControllerAction> {
    let sets = owned(store, "apps", "replicasets", deployment);
    let hash = hash(&deployment["spec"]["template"]);
    let current = |set: &Value| text(set, "/metadata/labels/pod-template-hash") == hash;
    let revision = |object: &Value| {
        object["metadata"]["annotations"][REVISION]
            .as_str()
            .and_then(|text| text.parse::<u64>().ok())
            .unwrap_or(0)
    };
    let latest = sets.iter().map(|(_, set)| revision(set)).max().unwrap_or(0);
    let scale = |(key, set): &(&Key, &Value), replicas: i64| {
        let patch = json!({"spec": {"replicas": replicas}});
        Some(ControllerAction::Act(
            DEPLOYMENTS,
            Act::Merge { target: reference(key, set), subresource: None, patch },
        ))
    };
    // A Deployment's revision is written through its status, so that it does not change the generation.
    let annotate = |key: &Key, object: &Value, revision: u64| {
        let patch = json!({"metadata": {"annotations": {REVISION: revision.to_string()}}});
        let subresource = (object["kind"] == "Deployment").then(|| "status".into());
        Some(ControllerAction::Act(
            DEPLOYMENTS,
            Act::Merge { target: reference(key, object), subresource, patch },
        ))
    };
    let Some(new) = sets.iter().find(|(_, set)| current(set)) else {
        let recreates = deployment["spec"]["strategy"]["type"] == "Recreate";
        if recreates && let Some(step) = shrink_all(store, &sets, &scale) {
            return step;
        }
        return Some(ControllerAction::Act(
            DEPLOYMENTS,
            Act::Create(replica_set(key, deployment, &hash, latest + 1)),
        ));
    };
    if revision(new.1) < latest {
        return annotate(new.0, new.1, latest + 1);
    }
    if revision(deployment) != revision(new.1) {
        // Through the status, as the controller does it: a change of only the annotations would change the generation.
        let patch = json!({"metadata": {"annotations": {REVISION: revision(new.1).to_string()}}});
        let (target, subresource) = (reference(key, deployment), Some("status".into()));
        return Some(ControllerAction::Act(DEPLOYMENTS, Act::Merge { target, subresource, patch }));
    }
    let old: Vec<(&Key, &Value)> = sets.iter().filter(|(_, set)| !current(set)).copied().collect();
    let desired = number(deployment, "/spec/replicas");
    let replicas = |set: &Value| number(set, "/spec/replicas");
    let available = |set: &Value| number(set, "/status/availableReplicas");
    let of_old: i64 = old.iter().map(|(_, set)| replicas(set)).sum();
    let rolling = &deployment["spec"]["strategy"]["rollingUpdate"];
    let (surge, unavailable) = match portion(&rolling["maxSurge"], desired, true) {
        0 => (0, portion(&rolling["maxUnavailable"], desired, false).max(1)),
        surge => (surge, portion(&rolling["maxUnavailable"], desired, false)),
    };
    let newest = replicas(new.1);
    let room = if rolling.is_null() { desired } else { (desired + surge - of_old).min(desired) };
    if newest > desired || newest < room {
        return scale(new, if newest > desired { desired } else { room });
    }
    let all_available: i64 = sets.iter().map(|(_, set)| available(set)).sum();
    for (key, set) in &old {
        let spare = if rolling.is_null() { replicas(set) } else { all_available - (desired - unavailable) };
        let unready = replicas(set) - available(set);
        let cut = spare.max(unready).min(replicas(set));
        if cut > 0 {
            return scale(&(*key, *set), replicas(set) - cut);
        }
    }
    status_step(DEPLOYMENTS, key, deployment, status(deployment, &sets, new.1))
}

/// With the strategy Recreate, the old Pods go before new ones are created.
fn shrink_all(
    store: &Store,
    sets: &[(&Key, &Value)],
    scale: &impl Fn(&(&Key, &Value), i64) -> Option<ControllerAction>,
) -> Option<Option<ControllerAction>> {
    if let Some(set) = sets.iter().find(|(_, set)| number(set, "/spec/replicas") > 0) {
        return Some(scale(set, 0));
    }
    let left = sets.iter().any(|(_, set)| !owned(store, "", "pods", set).is_empty());
    left.then_some(None)
}

fn status(deployment: &Value, sets: &[(&Key, &Value)], new: &Value) -> Value {
    let sum = |field: &str| -> i64 { sets.iter().map(|(_, set)| number(set, field)).sum() };
    let (replicas, available) = (sum("/status/replicas"), sum("/status/availableReplicas"));
    let (desired, updated) = (number(deployment, "/spec/replicas"), number(new, "/status/replicas"));
    let mut status = json!({"observedGeneration": deployment["metadata"]["generation"]});
    let counts = [
        ("replicas", replicas),
        ("updatedReplicas", updated),
        ("readyReplicas", sum("/status/readyReplicas")),
        ("availableReplicas", available),
        ("unavailableReplicas", (desired.max(replicas) - available).max(0)),
    ];
    for (field, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        status[field] = count.into();
    }
    let rolling = &deployment["spec"]["strategy"]["rollingUpdate"];
    let least =
        desired - if rolling.is_null() { 0 } else { portion(&rolling["maxUnavailable"], desired, false) };
    let is_available = available >= least;
    let is_complete = updated == desired && replicas == desired && available == desired;
    let known = deployment["status"]["conditions"].as_array().cloned().unwrap_or_default();
    // The time of the condition is that of the Deployment, because steps have no time.
    let made = &deployment["metadata"]["creationTimestamp"];
    let condition = |kind: &str, is: bool, reason: &str, message: &str| {
        let value = if is { "True" } else { "False" };
        let same =
            known.iter().find(|one| one["type"] == kind && one["status"] == value && one["reason"] == reason);
        same.cloned().unwrap_or_else(|| {
            json!({"type": kind, "status": value, "reason": reason, "message": message,
                   "lastTransitionTime": made, "lastUpdateTime": made})
        })
    };
    let available = match is_available {
        true => ("MinimumReplicasAvailable", "Deployment has minimum availability."),
        false => ("MinimumReplicasUnavailable", "Deployment does not have minimum availability."),
    };
    let progress = match is_complete {
        true => ("NewReplicaSetAvailable", "ReplicaSet has successfully progressed."),
        false => ("ReplicaSetUpdated", "ReplicaSet is progressing."),
    };
    status["conditions"] = json!([
        condition("Available", is_available, available.0, available.1),
        condition("Progressing", true, progress.0, progress.1),
    ]);
    status
}

fn replica_set(key: &Key, deployment: &Value, hash: &str, revision: u64) -> Value {
    let spec = &deployment["spec"];
    let mut template = spec["template"].clone();
    template["metadata"]["labels"]["pod-template-hash"] = hash.into();
    let mut selector = spec["selector"].clone();
    selector["matchLabels"]["pod-template-hash"] = hash.into();
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {
            "name": format!("{}-{hash}", key.name), "namespace": key.namespace,
            "labels": template["metadata"]["labels"], "ownerReferences": owner_reference(deployment),
            "annotations": {REVISION: revision.to_string()},
        },
        "spec": {"replicas": 0, "selector": selector, "template": template},
    })
}

/// A number, or a percentage of another number.
pub(super) fn portion(value: &Value, of: i64, up: bool) -> i64 {
    match value {
        Value::String(text) => {
            let percent: i64 = text.trim_end_matches('%').parse().unwrap_or(0);
            (percent * of + if up { 99 } else { 0 }) / 100
        }
        other => other.as_i64().unwrap_or(0),
    }
}

/// A hash of a template (FNV-1a over its JSON), in letters that spell no words.
fn hash(template: &Value) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let start = 0xcbf2_9ce4_8422_2325_u64;
    let mut hash = template
        .to_string()
        .bytes()
        .fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    (0..10)
        .map(|_| {
            let letter = LETTERS[usize::try_from(hash % 27).unwrap_or(0)];
            hash /= 27;
            char::from(letter)
        })
        .collect()
}
