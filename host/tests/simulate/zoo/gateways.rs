//! Gateways that are broken, at one of the two seams that a simulated gateway has.

use std::sync::Arc;

use pintle_core::view::uid::UidMask;
use pintle_wit::names::ANNOTATION_SUSPEND;
use serde_json::Value;

use super::{Broken, BrokenGateway, Sent, events, items, object_path, replies, requests};

pub(super) const ANIMALS: &[BrokenGateway] = &[
    BrokenGateway {
        name: "same-uid",
        about: "What is shown has the uid of its backing object",
        upstream: None,
        front: Some(|| {
            Arc::new(Broken {
                reply: Some(|_, sent, _, body| {
                    unmask(&sent.path, body);
                    items(body).for_each(|item| unmask(&sent.path, item));
                }),
                event: Some(|_, path, event| {
                    unmask(path, &mut event["object"]);
                    true
                }),
                ..Broken::default()
            })
        }),
    },
    BrokenGateway {
        name: "not-found-for-not-yet",
        about: "What cannot be answered yet is answered with 404 instead of 503",
        upstream: None,
        front: Some(|| {
            replies(|_, _, code, _| {
                if *code == 503 {
                    *code = 404;
                }
            })
        }),
    },
    BrokenGateway {
        name: "wipes-what-it-does-not-know",
        about: "A write takes away the fields of the backing object that the view does not declare",
        upstream: Some(|| {
            Arc::new(Broken {
                reply: Some(|broken, sent, code, body| {
                    if *code == 200 && is_record(&sent.path) {
                        broken.remember(object_path(&sent.path), body["spec"].clone());
                    }
                }),
                request: Some(|broken, sent| {
                    if sent.method == "PATCH"
                        && is_record(&sent.path)
                        && sent.body["spec"].is_object()
                        && let Some(Value::Object(known)) = broken.recall(object_path(&sent.path))
                    {
                        let others = known.keys().filter(|key| !matches!(key.as_str(), "weight" | "height"));
                        others.for_each(|key| sent.body["spec"][key] = Value::Null);
                    }
                    None
                }),
                ..Broken::default()
            })
        }),
        front: None,
    },
    BrokenGateway {
        name: "unsuspends",
        about: "A write takes away an annotation of the host that the view shows and lets nobody write",
        upstream: Some(|| {
            requests(|_, sent| {
                if sent.method == "PATCH" && is_record(&sent.path) {
                    sent.body["metadata"]["annotations"][ANNOTATION_SUSPEND] = Value::Null;
                }
                None
            })
        }),
        front: None,
    },
    BrokenGateway {
        name: "swaps-without-an-epoch",
        about: "Another module shows objects differently under the versions that they had",
        upstream: Some(|| {
            Arc::new(Broken {
                reply: Some(|broken, sent, _, body| {
                    for view in items(body).filter(|_| object_path(&sent.path).ends_with("/views")) {
                        if let Some(epoch) = view.pointer("/status/active/epoch") {
                            broken.remember(&view["metadata"]["name"].to_string(), epoch.clone());
                        }
                    }
                }),
                request: Some(|broken, sent| {
                    let first = broken.recall(&name_of_view(&sent.path));
                    if let (Some(first), Some(epoch)) = (first, sent.body.pointer_mut("/status/active/epoch"))
                    {
                        *epoch = first;
                    }
                    None
                }),
                ..Broken::default()
            })
        }),
        front: None,
    },
    BrokenGateway {
        name: "never-says-gone",
        about: "A watch whose version is void ends, and nobody is told that it is",
        upstream: None,
        front: Some(|| events(|_, _, event| event["type"] != "ERROR" || event["object"]["code"] != 410)),
    },
    BrokenGateway {
        name: "takes-lost-for-done",
        about: "A write without a reply is answered as if it had been carried out",
        upstream: None,
        front: Some(|| {
            replies(|_, sent, code, body| {
                if *code == 504 && sent.method == "PUT" {
                    *code = 200;
                    *body = sent.body.clone();
                }
            })
        }),
    },
    BrokenGateway {
        name: "writes-in-any-epoch",
        about: "A write under an epoch that no View has any more is taken for one of the present epoch",
        upstream: None,
        front: Some(|| {
            Arc::new(Broken {
                reply: Some(|broken, _, code, body| {
                    if *code < 300
                        && let Some(epoch) = epoch(body)
                    {
                        broken.remember("epoch", epoch.into());
                    }
                }),
                event: Some(|broken, path, event| {
                    if path.contains("/llamas")
                        && let Some(epoch) = epoch(&event["object"])
                    {
                        broken.remember("epoch", epoch.into());
                    }
                    true
                }),
                request: Some(|broken, sent| {
                    if sent.method == "PUT"
                        && let Some(Value::String(epoch)) = broken.recall("epoch")
                        && let Some(version) = sent.body["metadata"]["resourceVersion"].as_str()
                        && let Some((stored, _)) = version.split_at_checked(version.len().saturating_sub(6))
                    {
                        sent.body["metadata"]["resourceVersion"] = format!("{stored}{epoch}").into();
                    }
                    None
                }),
                ..Broken::default()
            })
        }),
    },
    BrokenGateway {
        name: "remembers-what-has-left",
        about: "What left a selection is remembered as it was before, under the version at which it left",
        upstream: None,
        front: Some(|| {
            Arc::new(Broken {
                event: Some(|broken, _, event| {
                    if event["type"] == "DELETED" && event["object"]["kind"] == "Llama" {
                        broken.remember(&version(&event["object"]), event["object"]["spec"].clone());
                    }
                    true
                }),
                reply: Some(|broken, sent, code, body| {
                    if *code == 200 && sent.method == "GET" {
                        items(body).for_each(|item| shows_what_is_remembered(broken, item));
                        shows_what_is_remembered(broken, body);
                    }
                }),
                ..Broken::default()
            })
        }),
    },
    BrokenGateway {
        name: "remembers-a-dry-run",
        about: "What a dry run answers is remembered, under the version of what is stored",
        upstream: None,
        front: Some(|| {
            replies(|broken, sent, code, body| {
                if *code < 300 && is_dry_run(&sent.path) {
                    broken.remember(&version(body), body["spec"].clone());
                } else if *code == 200 && sent.method == "GET" {
                    items(body).for_each(|item| shows_what_is_remembered(broken, item));
                    shows_what_is_remembered(broken, body);
                }
            })
        }),
    },
    BrokenGateway {
        name: "answers-a-dry-run-with-what-was",
        about: "A dry run is answered with what is stored, and not with what would be",
        upstream: None,
        front: Some(|| {
            replies(|broken, sent, code, body| {
                if *code == 200 && sent.method == "GET" && body["kind"] == "Llama" {
                    broken.remember(&version(body), body["spec"].clone());
                } else if *code == 200 && is_dry_run(&sent.path) {
                    shows_what_is_remembered(broken, body);
                }
            })
        }),
    },
    BrokenGateway {
        name: "writes-a-dry-run",
        about: "A dry run is carried out",
        upstream: None,
        front: Some(|| {
            Arc::new(Broken {
                request: Some(|_, sent| {
                    sent.path = sent.path.replace("?dryRun=All", "");
                    None
                }),
                ..Broken::default()
            })
        }),
    },
    BrokenGateway {
        name: "pins-a-late-call",
        about: "That a call of the guest was late is remembered as what is shown",
        upstream: None,
        front: Some(|| {
            replies(|broken, sent, code, body| {
                let message = body["message"].as_str().unwrap_or_default();
                if *code == 503 && message.contains("in time") {
                    broken.remember("late", Value::Null);
                }
                if sent.method == "GET" && *code == 200 && broken.recall("late").is_some() {
                    *code = 500;
                }
            })
        }),
    },
    BrokenGateway {
        name: "denies-what-is-written",
        about: "A write whose outcome cannot be shown is answered as if it had failed",
        upstream: None,
        front: Some(|| {
            replies(|_, sent, code, body| {
                if *code < 300
                    && sent.method != "GET"
                    && body["kind"] == "Llama"
                    && body.get("spec").is_none()
                {
                    *code = 500;
                }
            })
        }),
    },
    BrokenGateway {
        name: "keeps-what-cannot-be-shown",
        about: "A watch does not say that an object cannot be shown any more, so that clients believe in what it was",
        upstream: None,
        front: Some(|| events(|_, _, event| !is_left_out(event))),
    },
    BrokenGateway {
        name: "does-not-bring-back",
        about: "An object that could not be shown for a while does not come back when it can be shown again",
        upstream: None,
        front: Some(|| {
            events(|broken, path, event| {
                let name = format!("{path} {}", event["object"]["metadata"]["name"]);
                if is_left_out(event) {
                    broken.remember(&name, Value::Null);
                }
                event["type"] != "ADDED" || broken.recall(&name).is_none()
            })
        }),
    },
    BrokenGateway {
        name: "leaves-out-of-metadata-too",
        about: "What cannot be shown is left out of the metadata that the garbage collector follows",
        upstream: None,
        front: Some(|| {
            Arc::new(Broken {
                event: Some(|broken, _, event| {
                    let name = event["object"]["metadata"]["name"].to_string();
                    if is_left_out(event) {
                        broken.remember(&name, Value::Null);
                    }
                    event["object"]["kind"] != "PartialObjectMetadata"
                        || event["type"] == "DELETED"
                        || broken.recall(&name).is_none()
                }),
                ..Broken::default()
            })
        }),
    },
    BrokenGateway {
        name: "shows-what-was",
        about: "In place of an object that cannot be shown, a watch tells what it showed before",
        upstream: None,
        front: Some(|| {
            events(|broken, path, event| {
                let name = format!("{path} {}", event["object"]["metadata"]["name"]);
                if is_left_out(event) {
                    if let Some(spec) = broken.recall(&name) {
                        event["type"] = "MODIFIED".into();
                        event["object"]["spec"] = spec;
                    }
                } else if event["object"]["kind"] == "Llama" {
                    broken.remember(&name, event["object"]["spec"].clone());
                }
                true
            })
        }),
    },
    BrokenGateway {
        name: "goes-before-what-it-owns",
        about: "A delete in the foreground does not wait for what the object owns",
        upstream: None,
        front: Some(|| requests(|_, sent| asks_for(sent, "Foreground", Some("Background")))),
    },
    BrokenGateway {
        name: "leaves-nothing-behind",
        about: "A delete that is to orphan what the object owns takes it along",
        upstream: None,
        front: Some(|| requests(|_, sent| asks_for(sent, "Orphan", Some("Background")))),
    },
    BrokenGateway {
        name: "waits-although-nobody-asked",
        about: "A delete in the background leaves the finalizer that the object was created with, and so waits",
        upstream: None,
        front: Some(|| requests(|_, sent| asks_for(sent, "Background", None))),
    },
    BrokenGateway {
        name: "holds-the-record-itself",
        about: "A delete in the foreground is stored under the name of the backing object's own finalizer",
        upstream: Some(|| {
            requests(|_, sent| {
                if sent.method == "PATCH" && is_record(&sent.path) {
                    rename_finalizers(&mut sent.body, |one| {
                        if one.starts_with("pintle.dev/foreground.") { "foregroundDeletion" } else { one }
                    });
                }
                None
            })
        }),
        front: None,
    },
    BrokenGateway {
        name: "shows-the-records-own",
        about: "The backing object's own finalizers of the garbage collector are shown as the view's",
        upstream: Some(|| {
            Arc::new(Broken {
                reply: Some(|_, sent, _, body| {
                    if sent.path.contains("/llamarecords") {
                        rename_finalizers(body, as_the_views);
                        items(body).for_each(|item| rename_finalizers(item, as_the_views));
                    }
                }),
                event: Some(|_, path, event| {
                    if path.contains("/llamarecords") {
                        rename_finalizers(&mut event["object"], as_the_views);
                    }
                    true
                }),
                ..Broken::default()
            })
        }),
        front: None,
    },
    BrokenGateway {
        name: "deletes-whatever-has-the-name",
        about: "It is forgotten on the way which object was to be deleted, so that another one of the name goes",
        upstream: Some(|| {
            requests(|_, sent| {
                if sent.method == "DELETE"
                    && is_record(&sent.path)
                    && let Some(options) = sent.body.as_object_mut()
                {
                    options.remove("preconditions");
                }
                None
            })
        }),
        front: None,
    },
    BrokenGateway {
        name: "lets-the-view-go-at-once",
        about: "A View that is deleted leaves finalizers behind that nobody takes off",
        upstream: Some(|| {
            replies(|_, sent, _, body| {
                if sent.method == "GET" && sent.path.contains("/llamarecords?limit=100") {
                    body["items"] = Value::Array(Vec::new());
                }
            })
        }),
        front: None,
    },
    BrokenGateway {
        name: "keeps-the-collectors-finalizers",
        about: "The garbage collector is told that its finalizer is off, and it is not",
        upstream: None,
        front: Some(|| {
            requests(|_, sent| {
                let takes_off = sent.method == "PATCH" && sent.body["metadata"]["finalizers"].is_array();
                takes_off.then(|| sent.body.clone())
            })
        }),
    },
];

/// A delete with one policy becomes one with another, or with none.
fn asks_for(sent: &mut Sent, policy: &str, other: Option<&str>) -> Option<Value> {
    if sent.method == "DELETE"
        && sent.body["propagationPolicy"] == policy
        && let Some(options) = sent.body.as_object_mut()
    {
        options.remove("propagationPolicy");
        options.extend(other.map(|other| ("propagationPolicy".to_owned(), other.into())));
    }
    None
}

/// A finalizer of the backing object, as if the view had put it there.
fn as_the_views(one: &str) -> &str {
    match one {
        "foregroundDeletion" => "pintle.dev/foreground.2a142a35e3",
        other => other,
    }
}

fn rename_finalizers(object: &mut Value, rename: fn(&str) -> &str) {
    let finalizers = object.pointer_mut("/metadata/finalizers").and_then(Value::as_array_mut);
    for one in finalizers.into_iter().flatten() {
        *one = one.as_str().map(rename).unwrap_or_default().into();
    }
}

fn is_left_out(event: &Value) -> bool {
    event["type"] == "DELETED" && event["object"]["kind"] == "Llama" && event["object"].get("spec").is_none()
}

fn is_dry_run(path: &str) -> bool {
    path.contains("dryRun=")
}

/// Under what an object is remembered: its name and version.
fn version(object: &Value) -> String {
    format!("{} {}", object["metadata"]["name"], object["metadata"]["resourceVersion"])
}

fn shows_what_is_remembered(broken: &Broken, object: &mut Value) {
    if object["kind"] == "Llama"
        && let Some(spec) = broken.recall(&version(object))
    {
        object["spec"] = spec;
    }
}

/// The uid of the backing object in place of the one that is shown.
fn unmask(path: &str, object: &mut Value) {
    let plural = if path.contains("/farmpods") { "farmpods" } else { "llamas" };
    if let Some(uid) = object["metadata"]["uid"].as_str() {
        object["metadata"]["uid"] = UidMask::of("farm.example.com", plural).map(uid).into();
    }
}

/// The name of the View whose status a path is, as JSON.
fn name_of_view(path: &str) -> String {
    let name = object_path(path).trim_end_matches("/status").rsplit('/').next().unwrap_or_default();
    Value::from(name).to_string()
}

fn is_record(path: &str) -> bool {
    object_path(path).contains("/llamarecords/")
}

/// The epoch of a Llama.
fn epoch(object: &Value) -> Option<String> {
    let version = object["metadata"]["resourceVersion"].as_str().filter(|_| object["kind"] == "Llama")?;
    Some(version.split_at_checked(version.len().checked_sub(6)?)?.1.to_owned())
}
