//! PodDisruptionBudgets: how many of their Pods may be evicted.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    ControllerAction, by_uid, controller,
    deployments::{is_ready, number, portion, status_step},
    is_deleting, of_kind, text,
};
use crate::{
    store::{Key, Store},
    verbs::selects,
};

const CONTROLLER: &str = "disruption-controller";

pub(super) fn steps(store: &Store) -> impl Iterator<Item = ControllerAction> {
    of_kind(store, "policy", "poddisruptionbudgets")
        .filter(|(_, budget)| !is_deleting(budget))
        .filter_map(|(key, budget)| status_step(CONTROLLER, key, budget, status(store, key, budget)))
}

fn status(store: &Store, key: &Key, budget: &Value) -> Value {
    let spec = &budget["spec"];
    let pods: Vec<&Value> = of_kind(store, "", "pods")
        .filter(|(pod, _)| pod.namespace == key.namespace)
        .filter(|(_, pod)| selects(&spec["selector"], &pod["metadata"]["labels"]))
        .map(|(_, pod)| pod.as_ref())
        .collect();
    // An evicted Pod counts as gone until it is deleted.
    let disrupted: serde_json::Map<String, Value> = budget["status"]["disruptedPods"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| pods.iter().any(|pod| text(pod, "/metadata/name") == *name && !is_deleting(pod)))
        .map(|(name, time)| (name.clone(), time.clone()))
        .collect();
    let healthy =
        pods.iter().filter(|pod| is_ready(pod) && !disrupted.contains_key(text(pod, "/metadata/name")));
    let healthy = i64::try_from(healthy.count()).unwrap_or(i64::MAX);
    let (expected, desired) = match (&spec["maxUnavailable"], &spec["minAvailable"]) {
        (Value::Null, Value::Null) => (0, 0),
        (Value::Null, Value::Number(least)) => {
            (i64::try_from(pods.len()).unwrap_or(i64::MAX), least.as_i64().unwrap_or(0))
        }
        (Value::Null, least) => {
            let wanted = wanted(store, &pods);
            (wanted, portion(least, wanted, true))
        }
        (most, _) => {
            let wanted = wanted(store, &pods);
            (wanted, (wanted - portion(most, wanted, true)).max(0))
        }
    };
    let allowed = if expected > 0 { (healthy - desired).max(0) } else { 0 };
    let (is, reason) = if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    let mut known = budget["status"]["conditions"].as_array().into_iter().flatten();
    let generation = &budget["metadata"]["generation"];
    let same = known.find(|one| one["status"] == is && one["observedGeneration"] == *generation).cloned();
    let condition = same.unwrap_or_else(|| {
        json!({"type": "DisruptionAllowed", "status": is, "reason": reason, "message": "", "observedGeneration": generation,
               // The time of the condition is that of the budget, because steps have no time.
               "lastTransitionTime": budget["metadata"]["creationTimestamp"]})
    });
    let mut status = json!({
        "currentHealthy": healthy, "desiredHealthy": desired, "disruptionsAllowed": allowed, "expectedPods": expected,
        "observedGeneration": generation, "conditions": [condition],
    });
    if !disrupted.is_empty() {
        status["disruptedPods"] = disrupted.into();
    }
    status
}

/// How many Pods the controllers of these Pods want.
fn wanted(store: &Store, pods: &[&Value]) -> i64 {
    let by_uid = by_uid(store);
    let mut scales: BTreeMap<&str, i64> = BTreeMap::new();
    for pod in pods {
        let Some((_, owner)) = controller(pod).and_then(|uid| by_uid.get(uid)) else { continue };
        let owner = controller(owner).and_then(|uid| by_uid.get(uid)).map_or(*owner, |(_, above)| *above);
        scales.insert(text(owner, "/metadata/uid"), number(owner, "/spec/replicas"));
    }
    scales.values().sum()
}
