//! The eviction of a Pod: a deletion that PodDisruptionBudgets may forbid.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Context, Done, delete, target};
use crate::{
    Failure,
    failure::cause,
    faults::Verb,
    request::{Path, Request},
    selector::selects,
    store::Key,
};

const REFUSED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

pub(super) fn evict(context: &mut Context<'_>, request: &Request) -> Result<Done, Failure> {
    let path = Path { subresource: None, ..request.path.clone() };
    let deletion =
        Request { verb: Verb::Delete, path, body: request.body["deleteOptions"].clone(), ..request.clone() };
    let (served, key) = target(context.store, &deletion)?;
    if request.body["metadata"]["name"].as_str() != Some(&key.name) {
        return Err(Failure::bad_request("name in URL does not match name in Eviction object"));
    }
    let pod =
        context.store.get(&key).cloned().ok_or_else(|| Failure::not_found(&served.qualified(), &key.name))?;
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    let is_going = pod["metadata"].get("deletionTimestamp").is_some();
    if !is_going && !matches!(phase, "Pending" | "Succeeded" | "Failed" | "") {
        allowed(context, &key, &pod)?;
    }
    let done = delete::delete(context, &deletion)?;
    let body =
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    Ok(Done { code: 201, body, ..done })
}

/// Takes one of the disruptions that the Pod's budget allows.
fn allowed(context: &mut Context<'_>, pod_key: &Key, pod: &Value) -> Result<(), Failure> {
    let is_its = |key: &Key, budget: &Value| {
        key.resource == "poddisruptionbudgets"
            && key.namespace == pod_key.namespace
            && selects(&budget["spec"]["selector"], &pod["metadata"]["labels"])
    };
    let mut budgets = context.store.objects().iter().filter(|(key, budget)| is_its(key, budget));
    let Some((key, budget)) = budgets.next() else { return Ok(()) };
    if budgets.next().is_some() {
        let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        return Err(Failure::new(500, "", message));
    }
    let (key, budget) = (key.clone(), Arc::clone(budget));
    let number = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
    if !is_ready(pod) {
        let always = budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow";
        let is_full = number("currentHealthy") >= number("desiredHealthy") && number("desiredHealthy") > 0;
        if always || is_full {
            return Ok(());
        }
    }
    let refused = |why: String, retry_after_seconds: Option<u32>| Failure {
        causes: vec![cause("", "DisruptionBudget", why)],
        retry_after_seconds,
        ..Failure::new(429, "TooManyRequests", REFUSED)
    };
    if number("observedGeneration") < budget["metadata"]["generation"].as_i64().unwrap_or(0) {
        let why = format!("The disruption budget {} is still being processed by the server.", key.name);
        return Err(refused(why, Some(10)));
    }
    if number("disruptionsAllowed") < 1 {
        let why = format!(
            "The disruption budget {} needs {} healthy pods and has {} currently",
            key.name,
            number("desiredHealthy"),
            number("currentHealthy")
        );
        return Err(refused(why, None));
    }
    let mut next = Value::clone(&budget);
    next["status"]["disruptionsAllowed"] = (number("disruptionsAllowed") - 1).into();
    next["status"]["disruptedPods"][&pod_key.name] = context.time().into();
    context.store.put(key, next);
    Ok(())
}

pub(crate) fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    conditions.iter().any(|one| one["type"] == "Ready" && one["status"] == "True")
}
