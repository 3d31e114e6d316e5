//! PodDisruptionBudgets: how many of their Pods may be evicted.

use std::collections::BTreeMap;

use pintle_core::object::{is_deleting, name, uid};
use serde_json::{Map, Value, json};

use super::{ControllerAction, by_uid, controller, live, number, of_kind, status_step};
use crate::{selector::selects, store::Store, verbs::is_ready};

pub(super) fn steps(store: &Store) -> impl Iterator<Item = ControllerAction> {
    live(store, "policy", "poddisruptionbudgets")
        .filter_map(|budget| status_step("disruption-controller", budget, status(store, budget)))
}

fn status(store: &Store, budget: &Value) -> Value {
    let spec = &budget["spec"];
    let pods: Vec<&Value> = of_kind(store, "", "pods")
        .map(|(_, pod)| &**pod)
        .filter(|pod| pod["metadata"]["namespace"] == budget["metadata"]["namespace"])
        .filter(|pod| selects(&spec["selector"], &pod["metadata"]["labels"]))
        .collect();
    // An evicted Pod counts as gone until it is deleted.
    let disrupted: Map<String, Value> = budget["status"]["disruptedPods"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(of, _)| pods.iter().any(|pod| name(pod) == of.as_str() && !is_deleting(pod)))
        .map(|(of, time)| (of.clone(), time.clone()))
        .collect();
    let is_healthy = |pod: &&Value| is_ready(pod) && !is_deleting(pod) && !disrupted.contains_key(name(pod));
    let healthy = pods.iter().copied().filter(is_healthy).count() as i64;
    let wanted = wanted(store, &pods);
    let (expected, desired) = match (&spec["maxUnavailable"], &spec["minAvailable"]) {
        (Value::Null, Value::Null) => (0, 0),
        (Value::Null, Value::Number(least)) => (pods.len() as i64, least.as_i64().unwrap_or(0)),
        (Value::Null, least) => (wanted, portion(least, wanted)),
        (most, _) => (wanted, (wanted - portion(most, wanted)).max(0)),
    };
    let allowed = if expected > 0 { (healthy - desired).max(0) } else { 0 };
    let (is, reason) = if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    let generation = &budget["metadata"]["generation"];
    // The time of the condition is that of the budget, because steps have no time.
    let time = &budget["metadata"]["creationTimestamp"];
    let mut status = json!({
        "currentHealthy": healthy, "desiredHealthy": desired, "disruptionsAllowed": allowed, "expectedPods": expected,
        "observedGeneration": generation, "conditions": [{
            "type": "DisruptionAllowed", "status": is, "reason": reason,
            "observedGeneration": generation, "lastTransitionTime": time,
        }],
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
        scales.insert(uid(owner), number(owner, "/spec/replicas"));
    }
    scales.values().sum()
}

/// A number, or a percentage of another number, rounded up.
fn portion(value: &Value, of: i64) -> i64 {
    match value.as_str() {
        Some(text) => (text.trim_end_matches('%').parse::<i64>().unwrap_or(0) * of + 99) / 100,
        None => value.as_i64().unwrap_or(0),
    }
}
