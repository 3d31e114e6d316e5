//! Deployments make ReplicaSets, ReplicaSets make Pods, and Pods become ready, each in steps. A rollout first makes all new Pods, and takes
//! the old ones away when those are ready, whatever the strategy is. Its revision is the number of ReplicaSets.

use std::hash::{DefaultHasher, Hash, Hasher};

use pintle_core::object::{finalizers, is_deleting, name, uid};
use serde_json::{Value, json};

use super::{ControllerAction, controller, delete, live, merge, number, of_kind, status_step, text};
use crate::{Act, Cascade, store::Store, verbs::is_ready};

const DEPLOYMENTS: &str = "deployment-controller";
const REPLICA_SETS: &str = "replicaset-controller";
const REVISION: &str = "deployment.kubernetes.io/revision";
const HASH: &str = "pod-template-hash";

pub(super) fn steps(store: &Store) -> impl Iterator<Item = ControllerAction> {
    pods(store)
        .chain(live(store, "apps", "replicasets").filter_map(|set| replicate(store, set)))
        .chain(live(store, "apps", "deployments").filter_map(|deployment| roll_out(store, deployment)))
}

/// A Pod is scheduled, becomes ready, and stops when it is deleted.
fn pods(store: &Store) -> impl Iterator<Item = ControllerAction> {
    of_kind(store, "", "pods").filter_map(|(key, pod)| {
        if is_deleting(pod) {
            let is_held = finalizers(pod).next().is_some();
            return (!is_held).then(|| ControllerAction::Remove(key.clone()));
        }
        if text(pod, "/spec/nodeName").is_empty() {
            let patch = json!({"spec": {"nodeName": "node"}});
            return fits_the_node(pod).then(|| merge("scheduler", pod, None, patch));
        }
        if text(pod, "/status/phase") == "Running" {
            return None;
        }
        let started = &pod["metadata"]["creationTimestamp"];
        let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": started});
        let conditions = ["PodScheduled", "Initialized", "ContainersReady", "Ready"].map(condition);
        let status = json!({"phase": "Running", "conditions": conditions, "startTime": started});
        Some(merge("kubelet", pod, Some("status"), json!({"status": status})))
    })
}

/// Whether the only node has the labels that a Pod asks for.
fn fits_the_node(pod: &Value) -> bool {
    const LABELS: [(&str, &str); 3] =
        [("kubernetes.io/arch", "amd64"), ("kubernetes.io/hostname", "node"), ("kubernetes.io/os", "linux")];
    let mut wanted = pod["spec"]["nodeSelector"].as_object().into_iter().flatten();
    wanted.all(|(key, value)| LABELS.iter().any(|label| label.0 == key && value == label.1))
}

/// What an object controls, of a kind.
fn owned<'a>(store: &'a Store, group: &'a str, resource: &'a str, owner: &Value) -> Vec<&'a Value> {
    let objects = of_kind(store, group, resource).map(|(_, object)| &**object);
    objects.filter(|object| controller(object) == Some(uid(owner))).collect()
}

fn owner_reference(owner: &Value) -> Value {
    json!([{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    }])
}

fn replicate(store: &Store, set: &Value) -> Option<ControllerAction> {
    let mut pods = owned(store, "", "pods", set);
    pods.retain(|pod| !is_deleting(pod));
    let (wanted, found) = (number(set, "/spec/replicas"), pods.len() as i64);
    if found < wanted {
        let mut pod = set["spec"]["template"].clone();
        pod["apiVersion"] = "v1".into();
        pod["kind"] = "Pod".into();
        pod["metadata"]["generateName"] = format!("{}-", name(set)).into();
        pod["metadata"]["namespace"] = set["metadata"]["namespace"].clone();
        pod["metadata"]["ownerReferences"] = owner_reference(set);
        return Some(ControllerAction::Act(REPLICA_SETS, Act::Create(pod)));
    }
    if found > wanted {
        // Pods that are not ready go first.
        let pod = pods.into_iter().min_by_key(|pod| (is_ready(pod), name(pod)))?;
        return Some(delete(REPLICA_SETS, pod, Cascade::Background));
    }
    let ready = pods.iter().filter(|pod| is_ready(pod)).count();
    let status = json!({
        "replicas": found, "fullyLabeledReplicas": found, "readyReplicas": ready, "availableReplicas": ready,
        "observedGeneration": set["metadata"]["generation"],
    });
    status_step(REPLICA_SETS, set, status)
}

fn roll_out(store: &Store, deployment: &Value) -> Option<ControllerAction> {
    let sets = owned(store, "apps", "replicasets", deployment);
    let hash = hash(&deployment["spec"]["template"]);
    let is_new = |set: &Value| set["metadata"]["labels"][HASH] == hash;
    let Some(new) = sets.iter().find(|set| is_new(set)) else {
        return Some(ControllerAction::Act(DEPLOYMENTS, Act::Create(replica_set(deployment, &hash))));
    };
    let revision = sets.len().to_string();
    if deployment["metadata"]["annotations"][REVISION] != revision {
        // Through the status, as the controller does it: a change of only the annotations would change the generation.
        let patch = json!({"metadata": {"annotations": {REVISION: revision}}});
        return Some(merge(DEPLOYMENTS, deployment, Some("status"), patch));
    }
    let scaled =
        |set: &Value, replicas: i64| merge(DEPLOYMENTS, set, None, json!({"spec": {"replicas": replicas}}));
    let desired = number(deployment, "/spec/replicas");
    if number(new, "/spec/replicas") != desired {
        return Some(scaled(new, desired));
    }
    let old = sets.iter().find(|set| !is_new(set) && number(set, "/spec/replicas") > 0);
    if let Some(old) = old
        && number(new, "/status/availableReplicas") >= desired
    {
        return Some(scaled(old, 0));
    }
    status_step(DEPLOYMENTS, deployment, status(deployment, &sets, new))
}

fn status(deployment: &Value, sets: &[&Value], new: &Value) -> Value {
    let sum = |field: &str| -> i64 { sets.iter().map(|set| number(set, field)).sum() };
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
    // The time of a condition is that of the Deployment, because steps have no time.
    let made = &deployment["metadata"]["creationTimestamp"];
    let condition = |kind: &str, is: &str, reason: &str, message: &str| {
        json!({"type": kind, "status": is, "reason": reason, "message": message,
               "lastTransitionTime": made, "lastUpdateTime": made})
    };
    let (is, reason, message) = if available >= desired {
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    };
    let (progress, so_far) = if [replicas, updated, available] == [desired; 3] {
        ("NewReplicaSetAvailable", "ReplicaSet has successfully progressed.")
    } else {
        ("ReplicaSetUpdated", "ReplicaSet is progressing.")
    };
    status["conditions"] = json!([
        condition("Available", is, reason, message),
        condition("Progressing", "True", progress, so_far),
    ]);
    status
}

fn replica_set(deployment: &Value, hash: &str) -> Value {
    let spec = &deployment["spec"];
    let mut template = spec["template"].clone();
    template["metadata"]["labels"][HASH] = hash.into();
    let mut selector = spec["selector"].clone();
    selector["matchLabels"][HASH] = hash.into();
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {
            "name": format!("{}-{hash}", name(deployment)), "namespace": deployment["metadata"]["namespace"],
            "labels": template["metadata"]["labels"], "ownerReferences": owner_reference(deployment),
        },
        "spec": {"replicas": 0, "selector": selector, "template": template},
    })
}

fn hash(template: &Value) -> String {
    let mut hasher = DefaultHasher::new();
    template.to_string().hash(&mut hasher);
    format!("{:08x}", hasher.finish() as u32)
}
