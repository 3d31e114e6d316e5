//! Hosts that are broken.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Animal, Broken, claim, events, is_child, is_child_watch, is_root_status, items, keep_grants, object_path,
    pretend, replies, requests, without_status,
};

pub(super) const ANIMALS: &[Animal] = &[
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
