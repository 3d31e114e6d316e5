//! StatefulSets and DaemonSets become ready in one step, without Pods: what a guest sees of them is their status.

use serde_json::{Value, json};

use super::{ControllerAction, deployments::number, deployments::status_step, is_deleting, of_kind, text};
use crate::store::Store;

pub(super) fn steps(store: &Store) -> impl Iterator<Item = ControllerAction> {
    let live = |resource| of_kind(store, "apps", resource).filter(|(_, set)| !is_deleting(set));
    let stateful = live("statefulsets")
        .filter_map(|(key, set)| status_step("statefulset-controller", key, set, stateful_status(set)));
    let daemons = live("daemonsets")
        .filter_map(|(key, set)| status_step("daemonset-controller", key, set, daemon_status(set)));
    stateful.chain(daemons)
}

/// The status of a StatefulSet whose Pods all run the newest revision.
fn stateful_status(set: &Value) -> Value {
    let replicas = number(set, "/spec/replicas");
    let generation = number(set, "/metadata/generation");
    let revision = format!("{}-{generation}", text(set, "/metadata/name"));
    let mut status = json!({
        "observedGeneration": generation, "replicas": replicas, "collisionCount": 0, "availableReplicas": replicas,
        "currentRevision": revision, "updateRevision": revision,
    });
    if replicas > 0 {
        for count in ["readyReplicas", "currentReplicas", "updatedReplicas"] {
            status[count] = replicas.into();
        }
    }
    status
}

/// The status of a DaemonSet whose Pod runs on the only node.
fn daemon_status(set: &Value) -> Value {
    json!({
        "observedGeneration": number(set, "/metadata/generation"), "currentNumberScheduled": 1,
        "desiredNumberScheduled": 1, "updatedNumberScheduled": 1, "numberMisscheduled": 0, "numberReady": 1,
        "numberAvailable": 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_as_large_as_its_spec_says_and_observed() {
        let set = json!({"metadata": {"name": "web", "generation": 3}, "spec": {"replicas": 2}});
        let status = stateful_status(&set);
        assert_eq!((&status["readyReplicas"], &status["observedGeneration"]), (&json!(2), &json!(3)));
        assert_eq!(status["currentRevision"], status["updateRevision"]);
        let none =
            stateful_status(&json!({"metadata": {"name": "web", "generation": 1}, "spec": {"replicas": 0}}));
        assert_eq!(none.get("readyReplicas"), None, "as the API server leaves out a zero");
        assert_eq!(daemon_status(&set)["numberAvailable"], 1);
    }
}
