//! What requests can ask for besides what they do: dry runs, field validation, versions of lists, initial events, metadata alone. And
//! the exact words about objects of a custom kind that do not fit. These requests run in order on both.

use anyhow::ensure;
use serde_json::{Value, json};

use crate::{
    backend::{Backend, EventStream, Reply, Request, warnings},
    normal::Numbers,
};

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// The annotation of a change that a watch is to show last.
const MARK: &str = "conformance.pintle.dev/mark";

fn made(method: &'static str, uri: impl Into<String>, content_type: &'static str, body: Value) -> Request {
    Request { method, uri: uri.into(), content_type, body }
}

fn get(uri: impl Into<String>) -> Request {
    made("GET", uri, JSON, Value::Null)
}

fn map(name: &str, color: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"color": color}}, "data": {"a": "1"}})
}

fn widget(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "conformance.pintle.dev/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

/// Writes that must change nothing, or that have fields that nobody knows.
fn writes(maps: &str, widgets: &str) -> Vec<Request> {
    let mut odd = widget(
        "w",
        json!({"size": 1, "nope": 1, "ports": [{"port": 1, "prot": 1}], "exact": {"template": {"apiVersion": "v1", "kind": "X", "metadata": {"nmae": 1}}}}),
    );
    odd["metadata"]["odd"] = 1.into();
    let mut odd_map = map("odd", "red");
    odd_map["dta"] = json!({});
    odd_map["metadata"]["odd"] = 1.into();
    let twice = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"twice"},"data":{"a":"1","a":"2"},"data2":1}"#;
    let put = |value: &str| {
        let mut object = map("a", "red");
        object["data"]["a"] = value.into();
        object
    };
    let mut steps = vec![
        made("POST", format!("{maps}?dryRun=All"), JSON, map("a", "red")),
        get(format!("{maps}/a")),
        made("POST", maps, JSON, map("a", "red")),
        made("POST", format!("{maps}?dryRun=All"), JSON, map("a", "red")),
        made("PUT", format!("{maps}/a?dryRun=All"), JSON, put("2")),
        made("PATCH", format!("{maps}/a?dryRun=All"), MERGE, json!({"data": {"a": "3"}})),
        made("PATCH", format!("{maps}/a?dryRun=All&fieldManager=x&force=true"), APPLY, put("4")),
        made("PATCH", format!("{maps}/new?dryRun=All&fieldManager=x"), APPLY, map("new", "red")),
        made("DELETE", format!("{maps}/a?dryRun=All"), JSON, Value::Null),
        made(
            "DELETE",
            format!("{maps}/a"),
            JSON,
            json!({"dryRun": ["All"], "propagationPolicy": "Foreground"}),
        ),
        made("DELETE", format!("{maps}?dryRun=All"), JSON, Value::Null),
        get(format!("{maps}/a")),
        get(format!("{maps}/new")),
        made("PATCH", format!("{maps}/a"), MERGE, json!({"metadata": {"uid": "no-uid"}})),
        made("PATCH", format!("{maps}/a"), MERGE, json!({"metadata": {"resourceVersion": "1"}})),
    ];
    for parameters in ["dryRun=some", "fieldValidation=strict"] {
        steps.push(made("POST", format!("{maps}?{parameters}"), JSON, map("b", "red")));
        steps.push(made("PUT", format!("{maps}/a?{parameters}"), JSON, put("5")));
        steps.push(made("PATCH", format!("{maps}/a?{parameters}"), MERGE, json!({})));
    }
    for validation in ["Strict", "Warn", "Ignore"] {
        let with = |uri: &str| format!("{uri}?dryRun=All&fieldValidation={validation}");
        steps.push(made("POST", with(widgets), JSON, odd.clone()));
        steps.push(made("POST", with(maps), JSON, odd_map.clone()));
        steps.push(made("POST", with(maps), JSON, twice.into()));
        steps.push(made("PATCH", with(&format!("{maps}/a")), MERGE, json!({"dta": {"a": "b"}})));
        let add = json!([{"op": "add", "path": "/dta", "value": {}}]);
        steps.push(made("PATCH", with(&format!("{maps}/a")), "application/json-patch+json", add));
    }
    steps
}

/// Objects of the custom kind, most of which do not fit.
fn words(widgets: &str) -> Vec<Request> {
    let exact = [
        json!({"text": "a"}),
        json!({"text": "abcd"}),
        json!({"text": "A1"}),
        json!({"text": 1}),
        json!({"text": null}),
        json!({"share": 0.5}),
        json!({"share": 0}),
        json!({"share": 0.7}),
        json!({"share": 2_000_000}),
        json!({"share": 2_000_000.5}),
        json!({"share": "much"}),
        json!({"small": 3_000_000_000_i64}),
        json!({"small": 1.5}),
        json!({"small": true}),
        json!({"small": 2.0}),
        json!({"day": "today"}),
        json!({"day": 1}),
        json!({"bytes": "?"}),
        json!({"address": "::1"}),
        json!({"level": 3}),
        json!({"level": 1.0}),
        json!({"nothing": null}),
        json!({"nothing": "b"}),
        json!({"pair": [1]}),
        json!({"pair": [1, 2, 3]}),
        json!({"pair": [1, null]}),
        json!({"pair": {"a": 1}}),
        json!({"map": {}}),
        json!({"map": {"a": 1, "b": 1, "c": 1}}),
        json!({"map": {"a.b/c": 0}}),
        json!({"map": {"a.b/c": "x"}}),
        json!({"map": {"a": null, "b": 1}}),
        json!({"parts": [{"name": "a"}, {"name": "a", "weight": 1}, {"name": "a"}]}),
        json!({"parts": [{"weight": 1}]}),
        json!({"parts": ["a"]}),
        json!({"once": "never"}),
        json!({"all": {}}),
        json!({"all": {"a": 0}}),
        json!({"all": {"a": 0, "b": 2}}),
        json!({"all": {"a": 1}}),
        json!({"lookup": {"y": 1}}),
        json!({"lookup": {"x": 0}}),
        json!({"template": {}}),
        json!({"template": {"apiVersion": "", "kind": "x_y", "metadata": {}}}),
        json!({"template": {"apiVersion": "a/b/c", "kind": "X"}}),
        json!({"template": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "a", "nmae": 1}, "spec": {"a": "x", "b": 1}}}),
        json!("none"),
    ];
    let mut steps: Vec<Request> = exact
        .into_iter()
        .map(|exact| {
            made(
                "POST",
                format!("{widgets}?dryRun=All"),
                JSON,
                widget("w", json!({"size": 1, "exact": exact})),
            )
        })
        .collect();
    let others = [
        json!({"size": 10, "color": "green"}),
        json!({"size": 0, "color": "red"}),
        json!({"size": 1, "tags": ["reserved", "a", "a"]}),
        json!({"size": 1, "either": true}),
        json!({"size": 1, "one": {}}),
        json!({"size": 9, "nested": {"level": 4}}),
        json!({"size": "x", "tags": ["much too long"]}),
        Value::Null,
    ];
    steps.extend(others.map(|spec| made("POST", format!("{widgets}?dryRun=All"), JSON, widget("w", spec))));
    // What was there before is forgiven, except where a rule is about the change.
    let weights =
        |first: f64, second: f64| json!([{"name": "a", "weight": first}, {"name": "b", "weight": second}]);
    let first = json!({"size": 1, "exact": {"parts": weights(1.5, 2.0), "once": "first"}});
    steps.push(made("POST", widgets, JSON, widget("w", first)));
    for exact in [
        json!({"parts": weights(1.0, 2.0)}),
        json!({"parts": [{"name": "b", "weight": 1.5}, {"name": "a", "weight": 1.5}]}),
        json!({"once": "second"}),
        json!({"once": "first"}),
    ] {
        let patch = json!({"spec": {"exact": exact}});
        steps.push(made("PATCH", format!("{widgets}/w?dryRun=All"), MERGE, patch));
    }
    steps
}

/// Lists, watches and deletions of many.
fn many(maps: &str) -> Vec<Request> {
    let mut steps: Vec<Request> = [("b", "blue"), ("c", "blue"), ("d", "red")]
        .into_iter()
        .map(|(name, color)| made("POST", maps, JSON, map(name, color)))
        .collect();
    for parameters in [
        "limit=2",
        "resourceVersionMatch=Exact",
        "resourceVersionMatch=Exact&resourceVersion=0",
        "resourceVersionMatch=Newest&resourceVersion=1",
        "resourceVersionMatch=NotOlderThan&resourceVersion=1",
        "sendInitialEvents=true",
        "resourceVersion=x",
        "continue=x",
        "fieldSelector=metadata.name%3Dnone",
        "labelSelector=color%3Dblue&fieldSelector=metadata.name%3Dc",
        "watch=true&resourceVersionMatch=NotOlderThan",
        "watch=true&sendInitialEvents=true",
        "watch=true&sendInitialEvents=true&resourceVersionMatch=Exact",
        "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&labelSelector=color",
        "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&labelSelector=color&allowWatchBookmarks=true",
        "watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
        "watch=true&labelSelector=color%3Dblue",
        "watch=true&fieldSelector=metadata.name%3Dnone&timeoutSeconds=1",
    ] {
        steps.push(get(format!("{maps}?{parameters}")));
    }
    steps.push(made(
        "PATCH",
        format!("{maps}/c"),
        MERGE,
        json!({"metadata": {"finalizers": ["example.com/hold"]}}),
    ));
    steps.push(made(
        "DELETE",
        format!("{maps}?labelSelector=color%3Dblue"),
        JSON,
        json!({"preconditions": {"uid": "no-uid"}}),
    ));
    steps.push(made("DELETE", format!("{maps}?labelSelector=color%3Dblue"), JSON, Value::Null));
    steps.push(get(format!("{maps}?labelSelector=color")));
    steps.push(made("PATCH", format!("{maps}/c"), MERGE, json!({"metadata": {"finalizers": null}})));
    steps.push(made("DELETE", "/api/v1/namespaces", JSON, Value::Null));
    steps.push(get(format!("{maps}?labelSelector=color")));
    let generated = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "made-"}});
    steps.push(made("POST", format!("{maps}?dryRun=All"), JSON, generated));
    steps
}

/// Who may do what, where everybody is an administrator.
fn reviews() -> Vec<Request> {
    let review = |group: &str, kind: &str, resource: &str, spec: Value| {
        let body = json!({"apiVersion": format!("{group}/v1"), "kind": kind, "spec": spec});
        made("POST", format!("/apis/{group}/v1/{resource}"), JSON, body)
    };
    let access =
        |spec: Value| review("authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews", spec);
    let own = |spec: Value| {
        review("authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews", spec)
    };
    let attributes = json!({"verb": "list", "resource": "configmaps"});
    vec![
        access(json!({"user": "jane", "groups": ["system:masters"], "resourceAttributes": attributes})),
        access(
            json!({"user": "jane", "groups": ["system:masters"], "nonResourceAttributes": {"verb": "get", "path": "/"}}),
        ),
        access(json!({"user": "jane"})),
        access(json!({"resourceAttributes": attributes})),
        own(json!({"resourceAttributes": attributes})),
        own(json!({})),
        review("authentication.k8s.io", "TokenReview", "tokenreviews", json!({"token": "nobody's"})),
    ]
}

/// What of an answer is compared.
fn told(reply: Reply) -> Value {
    let Reply { code, body, mut warnings } = reply;
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
    step: &Request,
    accept: &str,
    maps: &str,
    mark: &str,
) -> anyhow::Result<Reply> {
    let asks_for = |parameter: &str| step.uri.contains(parameter);
    let response = backend.begin(step, accept).await?;
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
    let change = json!({"metadata": {"annotations": {MARK: mark}}});
    let (code, body) = backend.send(&made("PATCH", format!("{maps}/{name}"), MERGE, change)).await?;
    ensure!(code == 200, "{body}");
    events.extend(
        stream.read_until("the watch shows a change", |event| annotation(event, MARK) == mark).await?,
    );
    Ok(Reply { code: 200, body: events.into(), warnings })
}

/// Whether both answer the same.
pub(crate) async fn compare(
    real: &impl Backend,
    simulated: &impl Backend,
    namespace: &str,
) -> anyhow::Result<bool> {
    let maps = format!("/api/v1/namespaces/{namespace}/configmaps");
    let widgets = format!("/apis/conformance.pintle.dev/v1/namespaces/{namespace}/widgets");
    // A real cluster has a map in each namespace, which controllers make.
    let mut steps: Vec<(Request, &str)> = Vec::new();
    let all = [writes(&maps, &widgets), words(&widgets), many(&maps), reviews()];
    steps.extend(all.into_iter().flatten().map(|step| (step, JSON)));
    let alone = format!("{maps}?fieldSelector=metadata.name%3Da");
    steps.push((get(format!("{maps}/a")), METADATA));
    steps.push((get(&alone), METADATA_LIST));
    steps.push((get(format!("{alone}&watch=true")), METADATA));
    let mut same = true;
    let count = steps.len();
    for (index, (step, accept)) in steps.into_iter().enumerate() {
        let mark = index.to_string();
        let expected = told(answer(real, &step, accept, &maps, &mark).await?);
        let found = told(answer(simulated, &step, accept, &maps, &mark).await?);
        if found != expected {
            same = false;
            println!(
                "parameters, request {index}, {} {} {}:\n  real      {expected}\n  simulated {found}",
                step.method, step.uri, step.body
            );
        }
    }
    println!("{count} requests about parameters and words compared");
    Ok(same)
}
