//! Requests in order, as text: `requests/*.txt`. Both must answer each in the same way.
//!
//! A line is `METHOD PATH BODY`, of a PATCH `METHOD PATH FORM BODY` with `merge`, `json` or `apply` as its form, and of a GET `METHOD PATH
//! ACCEPT`. `NAME = VALUE` makes a mark, with which a path or a body may begin; what follows it in a body stands in place of its `<>`.

use std::collections::BTreeMap;

use anyhow::ensure;
use serde_json::{Value, json};

use crate::{
    backend::{Backend, EventStream, Reply, Request, warnings},
    normal::Numbers,
};

/// What of an answer is compared.
type Extract = fn(Reply) -> Value;

/// Each file, with what of an answer is compared. It has a namespace of its name.
pub(crate) const FILES: [(&str, &str, Extract); 2] = [
    ("evictions", include_str!("requests/evictions.txt"), outline),
    ("parameters", include_str!("requests/parameters.txt"), whole),
];

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";

/// The annotation of a change that a watch is to show last.
const MARK: &str = "conformance.pintle.dev/mark";

/// The requests of a text, each with the form of an answer that it accepts.
fn read(text: &'static str, namespace: &str) -> Vec<(Request, String)> {
    let mut marks = BTreeMap::new();
    let mut requests = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.split_once(" = ") {
            Some((name, value)) if !name.contains(' ') => {
                marks.insert(name, value);
            }
            _ => requests.push(request(line, &marks, namespace)),
        }
    }
    requests
}

fn request(line: &'static str, marks: &BTreeMap<&str, &str>, namespace: &str) -> (Request, String) {
    let mut words = line.splitn(3, ' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let rest = words.next().unwrap_or_default();
    let (head, tail) = path.split_at(path.find(['/', '?']).unwrap_or(path.len()));
    let uri = format!("{}{tail}", marks.get(head).unwrap_or(&head)).replace("NAMESPACE", namespace);
    let (content_type, rest) = match rest.split_once(' ') {
        Some(("merge", rest)) => (MERGE, rest),
        Some(("json", rest)) => ("application/json-patch+json", rest),
        Some(("apply", rest)) => ("application/apply-patch+yaml", rest),
        _ => (JSON, rest),
    };
    let (word, hole) = rest.split_once(' ').unwrap_or((rest, ""));
    let text = marks.get(word).map_or_else(|| rest.to_owned(), |mark| mark.replace("<>", hole));
    let (accept, body) = match method {
        _ if text.is_empty() => (JSON.to_owned(), Value::Null),
        "GET" => (text, Value::Null),
        _ => (JSON.to_owned(), text.into()),
    };
    (Request { method, uri, content_type, body }, accept)
}

/// The outline of an answer: Pods are filled in by admission on a real API server.
fn outline(Reply { code, body, .. }: Reply) -> Value {
    match body["kind"].as_str() {
        Some("Status") => {
            let mut told = Numbers::default().normal(body.clone());
            told["retryAfterSeconds"] = body["details"]["retryAfterSeconds"].clone();
            json!([code, told])
        }
        Some("PodDisruptionBudget") => {
            let status = &body["status"];
            let disrupted = status["disruptedPods"].as_object();
            let disrupted: Vec<&String> = disrupted.into_iter().flatten().map(|(name, _)| name).collect();
            json!([code, body["spec"], status["disruptionsAllowed"], status["currentHealthy"], disrupted])
        }
        kind => json!([code, kind]),
    }
}

/// An answer but for what is handed out at random.
fn whole(Reply { code, body, mut warnings }: Reply) -> Value {
    warnings.sort();
    let of = |object: &Value| {
        let annotations = &object["metadata"]["annotations"];
        json!([object["kind"], object["metadata"]["name"], annotations["k8s.io/initial-events-end"]])
    };
    let shown = match body["kind"].as_str() {
        Some("Status") if body["status"] == "Success" => Numbers::default().normal(body.clone()),
        Some("Status") => {
            let mut causes = body["details"]["causes"].as_array().cloned().unwrap_or_default();
            for cause in causes.iter_mut().filter(|cause| cause["field"] == "patch") {
                // The patched object itself has uids and times.
                let words = cause["message"].as_str().unwrap_or_default();
                cause["message"] = words.rsplit("}\": ").next().into();
            }
            let mut causes: Vec<String> = causes.iter().map(Value::to_string).collect();
            causes.sort();
            causes.dedup();
            json!([
                body["reason"],
                first_words(&body["message"]),
                causes,
                body["details"]["retryAfterSeconds"]
            ])
        }
        Some(kind) if kind.ends_with("Review") => {
            json!([kind, body["status"]["allowed"], body["status"]["authenticated"], body["status"]["error"]])
        }
        Some(kind) if kind.ends_with("List") => {
            let items: Vec<Value> = body["items"].as_array().into_iter().flatten().map(of).collect();
            let metadata = &body["metadata"];
            json!([kind, items, metadata["continue"].is_string(), metadata["remainingItemCount"]])
        }
        Some(_) => {
            let mut object = Numbers::default().object(body.clone());
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            if let Some(prefix) = object["metadata"]["generateName"].as_str() {
                object["metadata"]["name"] = json!([prefix, name.starts_with(prefix), name.len()]);
            }
            object
        }
        None => match body.as_array() {
            None => body.clone(),
            Some(events) => {
                // When a plain bookmark comes is open.
                let is_told = |event: &&Value| {
                    event["type"] != "BOOKMARK" || event["object"]["metadata"].get("annotations").is_some()
                };
                let told = events.iter().filter(is_told);
                told.map(|event| json!([event["type"], of(&event["object"])])).collect()
            }
        },
    };
    json!({"code": code, "warnings": warnings, "body": shown})
}

/// A message without what is compared as causes, or differs: uids, and tokens.
fn first_words(message: &Value) -> String {
    let message = message.as_str().unwrap_or_default();
    let ends = [" is invalid: ", "Operation cannot be fulfilled on ", "continue key is not valid"];
    let end = ends.iter().find_map(|end| Some(message.find(end)? + end.len()));
    message.get(..end.unwrap_or(message.len())).unwrap_or_default().to_owned()
}

/// What a request is answered. A watch that would go on for long is read up to a change that is made while it is open: whatever it has to
/// send by itself comes before that.
async fn answer(
    backend: &impl Backend,
    request: &Request,
    accept: &str,
    namespace: &str,
    mark: &str,
) -> anyhow::Result<Reply> {
    let asks_for = |parameter: &str| request.uri.contains(parameter);
    let response = backend.begin(request, accept).await?;
    if !asks_for("watch=true") || asks_for("timeoutSeconds") || response.status() != 200 {
        return Reply::read(response).await;
    }
    let warnings = warnings(&response);
    let mut stream = EventStream::new(response.into_body());
    let annotation = |event: &Value, name: &str| event["object"]["metadata"]["annotations"][name].clone();
    let mut events = Vec::new();
    if asks_for("sendInitialEvents=true") && asks_for("allowWatchBookmarks=true") {
        // It comes by itself, but maybe later than a change.
        let is_last = |event: &Value| annotation(event, "k8s.io/initial-events-end").is_string();
        events = stream.read_until("a bookmark ends the initial events", is_last).await?;
    }
    let name = if asks_for("metadata.name%3Da") { "a" } else { "b" };
    let change = Request {
        method: "PATCH",
        uri: format!("/api/v1/namespaces/{namespace}/configmaps/{name}"),
        content_type: MERGE,
        body: json!({"metadata": {"annotations": {MARK: mark}}}),
    };
    let (code, body) = backend.send(&change).await?;
    ensure!(code == 200, "{body}");
    events.extend(
        stream.read_until("the watch shows a change", |event| annotation(event, MARK) == mark).await?,
    );
    Ok(Reply { code: 200, body: events.into(), warnings })
}

/// Whether both answer the requests of a file in the same way.
pub(crate) async fn compare(
    real: &impl Backend,
    simulated: &impl Backend,
    name: &str,
    text: &'static str,
    told: fn(Reply) -> Value,
) -> anyhow::Result<bool> {
    let mut same = true;
    let requests = read(text, name);
    for (index, (request, accept)) in requests.iter().enumerate() {
        let mark = index.to_string();
        let expected = told(answer(real, request, accept, name, &mark).await?);
        let found = told(answer(simulated, request, accept, name, &mark).await?);
        if found != expected {
            same = false;
            println!(
                "{name}, request {index}, {} {} {}:\n  real      {expected}\n  simulated {found}",
                request.method, request.uri, request.body
            );
        }
    }
    println!("{} requests about {name} compared", requests.len());
    Ok(same)
}
