//! Evictions on both. Pods are filled in by admission on a real API server, so that only what is answered is compared, and what
//! becomes of the budget.

use serde_json::{Value, json};

use crate::{
    backend::{Backend, Request},
    normal::Numbers,
};

const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json";

fn steps(namespace: &str) -> Vec<Request> {
    let core = format!("/api/v1/namespaces/{namespace}");
    let budgets = format!("/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets");
    let made = |method: &'static str, uri: String, content_type: &'static str, body: Value| Request {
        method,
        uri,
        content_type,
        body,
    };
    let pod = |name: &str| {
        let spec =
            json!({"containers": [{"name": "main", "image": "web"}], "automountServiceAccountToken": false});
        let body = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "x"}}, "spec": spec});
        made("POST", format!("{core}/pods"), JSON, body)
    };
    let runs = |name: &str, ready: &str| {
        let status = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]});
        made("PATCH", format!("{core}/pods/{name}/status"), MERGE, json!({"status": status}))
    };
    let evict_with = |name: &str, named: &str, options: Value| {
        let body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": named}, "deleteOptions": options});
        made("POST", format!("{core}/pods/{name}/eviction"), JSON, body)
    };
    let evict = |name: &str| evict_with(name, name, json!({}));
    let budget = |name: &str| {
        let spec = json!({"minAvailable": 2, "selector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["x"]}]}});
        made(
            "POST",
            budgets.clone(),
            JSON,
            json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec}),
        )
    };
    let allows = |disruptions: u32| {
        let status = json!({"observedGeneration": 1, "disruptionsAllowed": disruptions, "desiredHealthy": 2, "currentHealthy": 2, "expectedPods": 2});
        made("PATCH", format!("{budgets}/first/status"), MERGE, json!({"status": status}))
    };
    vec![
        made(
            "POST",
            format!("{core}/serviceaccounts"),
            JSON,
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}),
        ),
        pod("a"),
        pod("b"),
        pod("c"),
        evict("nobody"),
        evict_with("a", "b", json!({})),
        evict_with("a", "a", json!({"preconditions": {"uid": "no-uid"}})),
        runs("a", "True"),
        runs("b", "True"),
        budget("first"),
        // Nobody has looked at the budget yet.
        evict("a"),
        allows(0),
        evict("a"),
        allows(1),
        evict("a"),
        made("GET", format!("{core}/pods/a"), JSON, Value::Null),
        made("GET", format!("{budgets}/first"), JSON, Value::Null),
        evict("b"),
        // One that is not ready counts for nothing while there are enough.
        runs("b", "False"),
        evict("b"),
        // One that does not run yet has no budget.
        evict("c"),
        pod("d"),
        runs("d", "True"),
        budget("second"),
        evict("d"),
        made("DELETE", format!("{budgets}/second"), JSON, Value::Null),
        made("PATCH", format!("{budgets}/first"), MERGE, json!({"spec": {"minAvailable": 1}})),
        evict("d"),
    ]
}

/// What of an answer is compared.
fn told(code: u16, body: &Value) -> Value {
    match body["kind"].as_str() {
        Some("Status") => {
            let mut told = Numbers::default().normal(body.clone());
            told["retryAfterSeconds"] = body["details"]["retryAfterSeconds"].clone();
            json!([code, told])
        }
        Some("PodDisruptionBudget") => {
            let disrupted = body["status"]["disruptedPods"].as_object();
            let disrupted: Vec<&String> = disrupted.into_iter().flatten().map(|(name, _)| name).collect();
            json!([
                code,
                body["spec"],
                body["status"]["disruptionsAllowed"],
                body["status"]["currentHealthy"],
                disrupted
            ])
        }
        kind => json!([code, kind]),
    }
}

/// Whether both answer the same.
pub(crate) async fn compare(
    real: &impl Backend,
    simulated: &impl Backend,
    namespace: &str,
) -> anyhow::Result<bool> {
    let mut same = true;
    let steps = steps(namespace);
    for (index, step) in steps.iter().enumerate() {
        let (code, body) = real.send(step).await?;
        let expected = told(code, &body);
        let (code, body) = simulated.send(step).await?;
        let found = told(code, &body);
        if found != expected {
            same = false;
            println!(
                "evictions, request {index}, {} {}:\n  real      {expected}\n  simulated {found}",
                step.method, step.uri
            );
        }
    }
    println!("{} requests about evictions compared", steps.len());
    Ok(same)
}
