//! Gateways that are broken.

use pintle_core::view::uid::UidMask;
use pintle_simulation::views::Property;
use serde_json::{Value, json};

use super::{BrokenGateway, BrokenSeam, Side, answers, gateway, items, object_path, replies, requests};

pub(crate) const GATEWAYS: &[BrokenGateway] = &[
    // What is shown has the uid of its backing object.
    gateway("same-uid", Property::Uids, Side::Clients, || BrokenSeam {
        reply: |_, sent, _, body| {
            unmask(&sent.path, body);
            items(body).for_each(|item| unmask(&sent.path, item));
        },
        event: |_, path, event| {
            unmask(path, &mut event["object"]);
            true
        },
        ..BrokenSeam::default()
    }),
    // What cannot be answered yet is answered with 404 instead of 503.
    gateway("not-found-for-not-yet", Property::Found, Side::Clients, || {
        replies(|_, _, code, _| {
            if *code == 503 {
                *code = 404;
            }
        })
    }),
    // A write takes away the fields of the backing object that the view does not declare.
    gateway("wipes-what-it-does-not-know", Property::Declared, Side::ApiServer, || BrokenSeam {
        reply: |seam, sent, code, body| {
            if *code == 200 && is_record(&sent.path) {
                seam.remember(object_path(&sent.path), body["spec"].clone());
            }
        },
        request: |seam, sent| {
            if sent.method == "PATCH"
                && is_record(&sent.path)
                && sent.body["spec"].is_object()
                && let Some(Value::Object(known)) = seam.recall(object_path(&sent.path))
            {
                let others = known.keys().filter(|key| !matches!(key.as_str(), "weight" | "height"));
                others.for_each(|key| sent.body["spec"][key] = Value::Null);
            }
            None
        },
        ..BrokenSeam::default()
    }),
    // What a guest does not show in time is taken for nothing, so that no rule compares what is written with it.
    gateway("takes-late-for-nothing", Property::Declared, Side::Clients, || {
        answers(|_, request, answer| {
            let asked = request["objects"].as_array().map_or(0, Vec::len);
            let items = vec![json!({"object": {}}); asked];
            *answer = json!({"apiVersion": "guest.pintle.dev/v1", "items": items});
        })
    }),
    // Another module shows objects differently under the versions that they had.
    gateway("swaps-without-an-epoch", Property::Believed, Side::ApiServer, || BrokenSeam {
        reply: |seam, sent, _, body| {
            for view in items(body).filter(|_| object_path(&sent.path).ends_with("/views")) {
                if let Some(epoch) = view.pointer("/status/active/epoch") {
                    seam.remember(&view["metadata"]["name"].to_string(), epoch.clone());
                }
            }
        },
        request: |seam, sent| {
            let first = seam.recall(&name_of_view(&sent.path));
            if let (Some(first), Some(epoch)) = (first, sent.body.pointer_mut("/status/active/epoch")) {
                *epoch = first;
            }
            None
        },
        ..BrokenSeam::default()
    }),
    // A watch whose version is void ends, and nobody is told that it is.
    gateway("never-says-gone", Property::Believed, Side::Clients, || BrokenSeam {
        event: |_, _, event| event["type"] != "ERROR" || event["object"]["code"] != 410,
        ..BrokenSeam::default()
    }),
    // A write without a reply is answered as if it had been carried out.
    gateway("takes-lost-for-done", Property::Answered, Side::Clients, || {
        replies(|_, sent, code, body| {
            if *code == 504 && sent.method == "PUT" {
                *code = 200;
                *body = sent.body.clone();
            }
        })
    }),
    // A write under an epoch that no View has any more is taken for one of the present epoch.
    gateway("writes-in-any-epoch", Property::Answered, Side::Clients, || BrokenSeam {
        reply: |seam, _, code, body| {
            if *code < 300
                && let Some(epoch) = epoch(body)
            {
                seam.remember("epoch", epoch.into());
            }
        },
        event: |seam, path, event| {
            if path.contains("/llamas")
                && let Some(epoch) = epoch(&event["object"])
            {
                seam.remember("epoch", epoch.into());
            }
            true
        },
        request: |seam, sent| {
            if sent.method == "PUT"
                && let Some(Value::String(epoch)) = seam.recall("epoch")
                && let Some(version) = sent.body["metadata"]["resourceVersion"].as_str()
                && let Some((stored, _)) = version.split_at_checked(version.len().saturating_sub(6))
            {
                sent.body["metadata"]["resourceVersion"] = format!("{stored}{epoch}").into();
            }
            None
        },
        ..BrokenSeam::default()
    }),
    // That a call of the guest was late is remembered as what is shown.
    gateway("pins-a-late-call", Property::Serves, Side::Clients, || {
        replies(|seam, sent, code, body| {
            let message = body["message"].as_str().unwrap_or_default();
            if *code == 503 && message.contains("in time") {
                seam.remember("late", Value::Null);
            }
            if sent.method == "GET" && *code == 200 && seam.recall("late").is_some() {
                *code = 500;
            }
        })
    }),
    // A delete that is to orphan what the object owns does not.
    gateway("orphans-nothing", Property::Cascades, Side::Clients, || {
        requests(|_, sent| {
            if sent.method == "DELETE" && sent.body["propagationPolicy"] == "Orphan" {
                sent.body["propagationPolicy"] = "Background".into();
            }
            None
        })
    }),
];

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
