//! Hosts and guests that are broken in a known way. The suite must catch every one, or it proves nothing of those that it passes.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use pintle_engine::CallLimits;
use pintle_simulation::{Seam, Seams, Sent};
use serde_json::{Value, json};

/// A broken host or guest.
pub(crate) struct Animal {
    /// Its name.
    pub(crate) name: &'static str,
    /// What is wrong with it.
    pub(crate) about: &'static str,
    /// The scenario in which it is looked for.
    pub(crate) scenario: &'static str,
    /// Makes the seam that breaks it.
    pub(crate) seams: fn() -> Arc<dyn Seam>,
}

impl Animal {
    pub(crate) fn seams(&self) -> Seams {
        let make = self.seams;
        Arc::new(move || make())
    }
}

/// A seam made of functions, with a count and what it remembers.
#[derive(Default)]
struct Broken {
    request: Option<fn(&Broken, &mut Sent) -> Option<Value>>,
    reply: Option<fn(&Broken, &Sent, &mut u16, &mut Value)>,
    event: Option<fn(&Broken, &str, &mut Value) -> bool>,
    question: Option<fn(&Broken, &mut Value)>,
    answer: Option<fn(&Broken, &Value, &mut Value)>,
    limits: Option<fn(&mut CallLimits)>,
    count: AtomicU32,
    memory: Mutex<BTreeMap<String, Value>>,
}

impl Broken {
    fn count(&self) -> u32 {
        self.count.fetch_add(1, Ordering::Relaxed)
    }

    fn remember(&self, key: &str, value: Value) -> Option<Value> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).insert(key.into(), value)
    }

    fn recall(&self, key: &str) -> Option<Value> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }
}

impl Seam for Broken {
    fn request(&self, request: &mut Sent) -> Option<Value> {
        self.request.and_then(|change| change(self, request))
    }

    fn reply(&self, request: &Sent, code: &mut u16, body: &mut Value) {
        if let Some(change) = self.reply {
            change(self, request, code, body);
        }
    }

    fn event(&self, path: &str, event: &mut Value) -> bool {
        self.event.is_none_or(|change| change(self, path, event))
    }

    fn question(&self, request: &mut Value) {
        if let Some(change) = self.question {
            change(self, request);
        }
    }

    fn limits(&self, limits: &mut CallLimits) {
        if let Some(change) = self.limits {
            change(limits);
        }
    }

    fn answer(&self, request: &Value, answer: &mut Value) {
        if let Some(change) = self.answer {
            change(self, request, answer);
        }
    }
}

fn requests(change: fn(&Broken, &mut Sent) -> Option<Value>) -> Arc<dyn Seam> {
    Arc::new(Broken { request: Some(change), ..Broken::default() })
}

fn replies(change: fn(&Broken, &Sent, &mut u16, &mut Value)) -> Arc<dyn Seam> {
    Arc::new(Broken { reply: Some(change), ..Broken::default() })
}

fn events(change: fn(&Broken, &str, &mut Value) -> bool) -> Arc<dyn Seam> {
    Arc::new(Broken { event: Some(change), ..Broken::default() })
}

fn answers(change: fn(&Broken, &Value, &mut Value)) -> Arc<dyn Seam> {
    Arc::new(Broken { answer: Some(change), ..Broken::default() })
}

/// The object's path, without subresource and query.
fn object_path(path: &str) -> &str {
    path.split('?').next().unwrap_or_default()
}

fn is_status(sent: &Sent) -> bool {
    object_path(&sent.path).ends_with("/status")
}

fn is_apply(sent: &Sent) -> bool {
    sent.method == "PATCH" && sent.path.contains("force=")
}

/// An apply of a child.
fn is_child(sent: &Sent) -> bool {
    is_apply(sent) && sent.body.pointer("/metadata/labels/pintle.dev~1root").is_some()
}

/// The write of a root's status, not that of the host's own objects.
fn is_root_status(sent: &Sent) -> bool {
    is_apply(sent) && is_status(sent) && !sent.path.contains("/pintle.dev/")
}

fn is_child_watch(path: &str) -> bool {
    path.contains("labelSelector=")
}

/// The first ConfigMap's data among the children of an answer.
fn data(answer: &mut Value) -> Option<&mut Value> {
    let children = answer["children"].as_array_mut()?;
    let child = children.iter_mut().find(|child| child["object"]["kind"] == "ConfigMap")?;
    Some(&mut child["object"]["data"])
}

/// A reply as if a write had been carried out.
fn pretend(sent: &Sent, code: &mut u16, body: &mut Value) {
    *code = 200;
    *body = sent.body.clone();
    body["metadata"]["uid"] = "swallowed".into();
    body["metadata"]["resourceVersion"] = "1".into();
}

/// The items of a list.
fn items(body: &mut Value) -> impl Iterator<Item = &mut Value> {
    body.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten()
}

fn without_status(object: &mut Value) {
    if let Some(object) = object.as_object_mut() {
        object.remove("status");
    }
}

/// Makes the root that a label names the owner of what carries it.
fn claim(object: &mut Value) {
    let Some(root) = object.pointer("/metadata/labels/pintle.dev~1root").cloned() else { return };
    if object["metadata"]["ownerReferences"].is_null() {
        object["metadata"]["ownerReferences"] = json!([{"apiVersion": "deployments.example.com/v1alpha1", "kind": "Darkroom",
            "name": "photos", "uid": root, "controller": true, "blockOwnerDeletion": true}]);
    }
}

/// Shows a Reconciler with what it granted first.
fn keep_grants(broken: &Broken, reconciler: &mut Value) {
    let Some(grants) = reconciler.pointer("/spec/grants").cloned() else { return };
    let uid = reconciler["metadata"]["uid"].to_string();
    match broken.recall(&uid) {
        Some(first) => reconciler["spec"]["grants"] = first,
        None => drop(broken.remember(&uid, grants)),
    }
}

pub(crate) const ANIMALS: &[Animal] = &[
    Animal {
        name: "adopts-by-force",
        about: "A first apply is not create-only: whatever has the name is taken over",
        scenario: "scenarios/adoption.yaml",
        seams: || {
            requests(|_, sent| {
                if is_child(sent)
                    && let Some(metadata) = sent.body["metadata"].as_object_mut()
                {
                    metadata.remove("resourceVersion");
                    metadata.remove("uid");
                    sent.path = sent.path.replace("force=false", "force=true");
                }
                None
            })
        },
    },
    Animal {
        name: "deletes-by-name",
        about: "What is pruned is deleted by its name alone, on the word of a list that may be old",
        scenario: "scenarios/prune.yaml",
        seams: || {
            Arc::new(Broken {
                request: Some(|broken, sent| {
                    let path = object_path(&sent.path).to_owned();
                    match sent.method.as_str() {
                        "DELETE" => {
                            if let Some(options) = sent.body.as_object_mut() {
                                options.remove("preconditions");
                            }
                            None
                        }
                        // Instead of a live read: what it was when it was written.
                        "GET" if path.contains("/secrets/") && !path.contains("pintle-key") => {
                            broken.recall(&path)
                        }
                        _ => None,
                    }
                }),
                reply: Some(|broken, sent, code, body| {
                    if is_child(sent) && *code < 300 {
                        broken.remember(object_path(&sent.path), body.clone());
                    }
                }),
                ..Broken::default()
            })
        },
    },
    Animal {
        name: "forgets-the-owner",
        about: "Children have no owner reference, so that nothing removes them after the root",
        scenario: "scenarios/darkroom.yaml",
        seams: || {
            requests(|_, sent| {
                if is_child(sent)
                    && let Some(metadata) = sent.body["metadata"].as_object_mut()
                {
                    metadata.remove("ownerReferences");
                }
                None
            })
        },
    },
    Animal {
        name: "never-prunes",
        about: "A deletion is taken for done that was never asked for",
        scenario: "scenarios/prune.yaml",
        seams: || {
            requests(|_, sent| {
                (sent.method == "DELETE")
                    .then(|| json!({"apiVersion": "v1", "kind": "Status", "status": "Success"}))
            })
        },
    },
    Animal {
        name: "status-loop",
        about: "Each write of a status says something else, which brings the root back",
        scenario: "scenarios/darkroom.yaml",
        seams: || {
            requests(|broken, sent| {
                if is_root_status(sent)
                    && let Some(domains) = sent.body["status"]["domains"].as_array_mut()
                {
                    domains.push(format!("looked-{}", broken.count()).into());
                }
                None
            })
        },
    },
    Animal {
        name: "generation-ahead",
        about: "The status speaks of a generation that is not there yet",
        scenario: "scenarios/darkroom.yaml",
        seams: || {
            requests(|_, sent| {
                if is_root_status(sent)
                    && let Some(observed) = sent.body["status"]["observedGeneration"].as_i64()
                {
                    sent.body["status"]["observedGeneration"] = (observed + 1).into();
                }
                None
            })
        },
    },
    Animal {
        name: "status-of-the-past",
        about: "Once the status has been written, only half of what should be written is",
        scenario: "scenarios/darkroom.yaml",
        seams: || {
            requests(|broken, sent| (is_root_status(sent) && broken.count() > 0).then(|| sent.body.clone()))
        },
    },
    Animal {
        name: "swallows-errors",
        about: "A write that failed is taken for done",
        scenario: "scenarios/adoption.yaml",
        seams: || {
            replies(|_, sent, code, body| {
                if is_child(sent) && *code >= 400 {
                    pretend(sent, code, body);
                }
            })
        },
    },
    Animal {
        name: "ignores-deletions",
        about: "The end of a child is not noticed",
        scenario: "scenarios/self-heal.yaml",
        seams: || events(|_, path, event| !(is_child_watch(path) && event["type"] == "DELETED")),
    },
    Animal {
        name: "ignores-edits",
        about: "A change of a child is not noticed",
        scenario: "scenarios/self-heal.yaml",
        seams: || events(|_, path, event| !(is_child_watch(path) && event["type"] == "MODIFIED")),
    },
    Animal {
        name: "edge-triggered",
        about: "Only the first event about a root counts; what came later is not looked at",
        scenario: "scenarios/darkroom.yaml",
        seams: || {
            events(|broken, path, event| {
                let name = event["object"]["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
                path.contains("/pintle.dev/")
                    || is_child_watch(path)
                    || event["type"] == "BOOKMARK"
                    || broken.remember(&name, Value::Null).is_none()
            })
        },
    },
    Animal {
        name: "never-lists-anew",
        about: "A watch that ended with 410 Gone is taken for one that has nothing to say",
        scenario: "scenarios/darkroom.yaml",
        seams: || {
            Arc::new(Broken {
                event: Some(|_, _, event| event["type"] != "ERROR"),
                reply: Some(|broken, sent, _, body| {
                    // A second list of a kind shows what the first one showed.
                    let is_list = sent.method == "GET" && body["items"].is_array();
                    if is_list && !sent.path.contains("/pintle.dev/") {
                        let path = object_path(&sent.path).to_owned();
                        match broken.recall(&path) {
                            Some(first) => {
                                let version = body["metadata"]["resourceVersion"].clone();
                                *body = first;
                                body["metadata"]["resourceVersion"] = version;
                            }
                            None => drop(broken.remember(&path, body.clone())),
                        }
                    }
                }),
                ..Broken::default()
            })
        },
    },
    Animal {
        name: "keeps-its-finalizer",
        about: "The finalizer is never taken off, so that a deleted root stays",
        scenario: "scenarios/elsewhere.yaml",
        seams: || {
            requests(|_, sent| {
                let empties = sent.method == "PATCH"
                    && sent.body.as_array().is_some_and(|operations| {
                        operations.iter().any(|operation| {
                            operation["path"]
                                .as_str()
                                .is_some_and(|path| path.starts_with("/metadata/finalizers"))
                                && operation["op"] != "test"
                                && operation["op"] != "add"
                        })
                    });
                empties.then(|| json!({"metadata": {}}))
            })
        },
    },
    Animal {
        name: "polite-applies",
        about: "Applies do not take fields back that somebody took over",
        scenario: "scenarios/self-heal.yaml",
        seams: || {
            requests(|_, sent| {
                if is_child(sent) {
                    sent.path = sent.path.replace("force=true", "force=false");
                }
                None
            })
        },
    },
    Animal {
        name: "writes-the-spec",
        about: "The host writes into the spec of the root",
        scenario: "scenarios/darkroom.yaml",
        seams: || {
            requests(|_, sent| {
                if is_root_status(sent) {
                    sent.path = sent.path.replacen("/status?", "?", 1);
                    sent.body["spec"] =
                        json!({"version": "9.9.9", "source": {"type": "WebFolder", "baseUrl": "https://x"}});
                }
                None
            })
        },
    },
    Animal {
        name: "time-in-the-hash",
        about: "What is remembered of a write has a mark of when in it, so that the next look takes it for another",
        scenario: "scenarios/darkroom.yaml",
        seams: || {
            requests(|broken, sent| {
                if is_child(sent) {
                    let hash = &mut sent.body["metadata"]["annotations"]["pintle.dev/desired"];
                    *hash = format!("{}{}", hash.as_str().unwrap_or_default(), broken.count()).into();
                }
                None
            })
        },
    },
    Animal {
        name: "prunes-by-label",
        about: "Whatever carries a root's label counts as the root's, and goes when nobody wants it",
        scenario: "scenarios/labels-prove-nothing.yaml",
        seams: || {
            Arc::new(Broken {
                event: Some(|_, _, event| {
                    claim(&mut event["object"]);
                    true
                }),
                reply: Some(|_, _, _, body| {
                    claim(body);
                    items(body).for_each(claim);
                }),
                ..Broken::default()
            })
        },
    },
    Animal {
        name: "prunes-after-a-failed-apply",
        about: "A child that was refused counts as applied, and what it was to replace is deleted",
        scenario: "scenarios/refused-holds-prune.yaml",
        seams: || {
            replies(|_, sent, code, body| {
                if is_child(sent) && *code == 422 {
                    pretend(sent, code, body);
                }
            })
        },
    },
    Animal {
        name: "requeue-storm",
        about: "A status that was written is neither seen nor believed, and written again, and so on",
        scenario: "scenarios/darkroom.yaml",
        seams: || {
            Arc::new(Broken {
                event: Some(|_, path, event| {
                    if path.contains("/darkrooms") {
                        without_status(&mut event["object"]);
                    }
                    true
                }),
                reply: Some(|_, sent, code, body| {
                    if is_root_status(sent) {
                        *code = 409;
                        *body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Conflict", "code": 409,
                            "message": "the object has been modified"});
                    } else if sent.path.contains("/darkrooms") {
                        items(body).for_each(without_status);
                    }
                }),
                ..Broken::default()
            })
        },
    },
    Animal {
        name: "reads-its-past",
        about: "After a write of its own the cache shows what was there before it",
        scenario: "scenarios/darkroom.yaml",
        seams: || {
            replies(|broken, sent, code, body| {
                if is_child(sent) && *code < 300 {
                    let now = body.clone();
                    if let Some(before) = broken.remember(object_path(&sent.path), now.clone()) {
                        *body = before;
                        body["metadata"]["resourceVersion"] = now["metadata"]["resourceVersion"].clone();
                    }
                }
            })
        },
    },
    Animal {
        name: "forgets-the-grant",
        about: "What is remembered of a root does not depend on what was granted, so that a grant that is taken away goes on",
        scenario: "scenarios/namespaces.yaml",
        seams: || {
            Arc::new(Broken {
                event: Some(|broken, path, event| {
                    if path.contains("/reconcilers") {
                        keep_grants(broken, &mut event["object"]);
                    }
                    true
                }),
                reply: Some(|broken, sent, _, body| {
                    if sent.path.contains("/reconcilers") {
                        keep_grants(broken, body);
                        items(body).for_each(|item| keep_grants(broken, item));
                    }
                }),
                ..Broken::default()
            })
        },
    },
    Animal {
        name: "forgets-the-budget",
        about: "Values are made of an answer however much memory they take, of which nothing was reserved for most",
        scenario: "scenarios/darkroom.yaml",
        seams: || {
            Arc::new(Broken {
                limits: Some(|limits| limits.response.parsed_bytes = usize::MAX),
                // Sound hosts carry it out, with another call: it is a large answer, and no wrong one.
                answer: Some(|_, _, answer| {
                    if let Some(children) = answer["children"].as_array_mut() {
                        let data: serde_json::Map<String, Value> =
                            (0..4000).map(|number| (format!("k{number}"), "".into())).collect();
                        children.push(json!({"id": "large", "object": {
                            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"}, "data": data,
                        }}));
                    }
                }),
                ..Broken::default()
            })
        },
    },
    Animal {
        name: "guest-flip-flops",
        about: "A guest whose answer changes with every call",
        scenario: "scenarios/darkroom.yaml",
        seams: || {
            answers(|broken, _, answer| {
                if let Some(data) = data(answer) {
                    data["FLIP"] = (broken.count() % 2).to_string().into();
                }
            })
        },
    },
    Animal {
        name: "guest-counts",
        about: "A guest that remembers how often it was asked",
        scenario: "scenarios/darkroom.yaml",
        seams: || {
            answers(|broken, _, answer| {
                if let Some(data) = data(answer) {
                    data["CALLS"] = broken.count().to_string().into();
                }
            })
        },
    },
    Animal {
        name: "guest-random-name",
        about: "A guest whose child has another name each time",
        scenario: "scenarios/darkroom.yaml",
        seams: || {
            answers(|broken, _, answer| {
                let name = format!("extra-{}", broken.count());
                if let Some(children) = answer["children"].as_array_mut() {
                    children.push(json!({"id": "extra", "object": {
                        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"},
                    }}));
                }
            })
        },
    },
    Animal {
        name: "guest-map-order",
        about: "A guest that lists what is in a map in an order that differs from call to call",
        scenario: "scenarios/darkroom.yaml",
        seams: || {
            answers(|broken, _, answer| {
                if broken.count() % 3 == 1
                    && let Some(children) = answer["children"].as_array_mut()
                {
                    children.reverse();
                }
            })
        },
    },
    Animal {
        name: "guest-child-order",
        about: "A guest whose answer depends on the order of its children",
        scenario: "scenarios/webserver.yaml",
        seams: || {
            answers(|_, request, answer| {
                let first = &request["children"][0]["metadata"]["name"];
                answer["events"] =
                    json!([{"type": "Normal", "reason": "First", "message": first.to_string()}]);
            })
        },
    },
    Animal {
        name: "guest-keeps-what-it-sees",
        about: "A guest that takes what it observes of a child for what is wanted of it",
        scenario: "scenarios/webserver.yaml",
        seams: || {
            answers(|_, request, answer| {
                let observed = request["children"].as_array().into_iter().flatten();
                let observed = observed
                    .filter(|child| child["kind"] == "Deployment")
                    .map(|child| &child["spec"]["replicas"]);
                for replicas in observed {
                    let children = answer.get_mut("children").and_then(Value::as_array_mut);
                    for child in
                        children.into_iter().flatten().filter(|child| child["object"]["kind"] == "Deployment")
                    {
                        child["object"]["spec"]["replicas"] = replicas.clone();
                    }
                }
            })
        },
    },
    Animal {
        name: "guest-needs-its-status",
        about: "A guest that wants no patch any more once its status has been written",
        scenario: "scenarios/configmonitor.yaml",
        seams: || {
            answers(|_, request, answer| {
                if !request["object"]["status"].is_null()
                    && let Some(patches) = answer["patches"].as_array_mut()
                {
                    patches.clear();
                }
            })
        },
    },
    Animal {
        name: "guest-asks-for-more",
        about: "A guest that asks to see one field more each time it is shown what it asked for",
        scenario: "scenarios/configmonitor.yaml",
        seams: || {
            answers(|_, request, answer| {
                let is_more = |field: &&Value| field.as_str().is_some_and(|field| field.starts_with("more"));
                let shown = request.pointer("/needs/0/need/objects/fields").and_then(Value::as_array);
                let shown = shown.into_iter().flatten().filter(is_more).count();
                let needs = answer.get_mut("needs").and_then(Value::as_array_mut);
                for need in needs.into_iter().flatten() {
                    if let Some(fields) = need.pointer_mut("/objects/fields").and_then(Value::as_array_mut) {
                        fields.extend((0..=shown).map(|number| Value::from(format!("more{number}"))));
                    }
                }
            })
        },
    },
    Animal {
        name: "shows-needs-of-before",
        about: "What a guest asked to see once, it is shown in later calls as it was then",
        scenario: "scenarios/configmonitor.yaml",
        seams: || {
            Arc::new(Broken {
                question: Some(|broken, request| {
                    let uid = request["object"]["metadata"]["uid"].to_string();
                    let needs = request.get_mut("needs").and_then(Value::as_array_mut);
                    for need in needs.into_iter().flatten() {
                        let key = format!("{uid} {}", need["need"]);
                        match broken.recall(&key) {
                            Some(before) => *need = before,
                            None => drop(broken.remember(&key, need.clone())),
                        }
                    }
                }),
                ..Broken::default()
            })
        },
    },
];
