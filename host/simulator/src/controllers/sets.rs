//! StatefulSets and DaemonSets become ready in one step, without Pods: what a guest sees of them is their status.

use pintle_core::object::generation;
use serde_json::{Value, json};

use super::{ControllerAction, live, status_step};
use crate::store::Store;

pub(super) fn steps(store: &Store) -> impl Iterator<Item = ControllerAction> {
    let stateful = live(store, "apps", "statefulsets")
        .filter_map(|set| status_step("statefulset-controller", set, stateful_status(set)));
    let daemons = live(store, "apps", "daemonsets")
        .filter_map(|set| status_step("daemonset-controller", set, daemon_status(set)));
    stateful.chain(daemons)
}

/// The status of a StatefulSet whose Pods all run the newest revision.
fn stateful_status(set: &Value) -> Value {
    let replicas = set["spec"]["replicas"].as_i64().unwrap_or(1);
    json!({
        "observedGeneration": generation(set), "replicas": replicas, "availableReplicas": replicas,
        "readyReplicas": replicas, "currentReplicas": replicas, "updatedReplicas": replicas,
        "currentRevision": "newest", "updateRevision": "newest",
    })
}

/// The status of a DaemonSet whose Pod runs on the only node.
fn daemon_status(set: &Value) -> Value {
    json!({
        "observedGeneration": generation(set), "currentNumberScheduled": 1, "desiredNumberScheduled": 1,
        "updatedNumberScheduled": 1, "numberMisscheduled": 0, "numberReady": 1, "numberAvailable": 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_as_large_as_its_spec_says_and_observed() {
        let set = json!({"metadata": {"generation": 3}, "spec": {"replicas": 2}});
        let status = stateful_status(&set);
        assert_eq!((&status["readyReplicas"], &status["observedGeneration"]), (&json!(2), &json!(3)));
        assert_eq!(status["currentRevision"], status["updateRevision"]);
        assert_eq!(daemon_status(&set)["numberAvailable"], 1);
    }
}
