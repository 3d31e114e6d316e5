//! Hosts and guests that are broken.

use pintle_simulation::Property;
use serde_json::{Map, Value, json};

use super::{BrokenHost, BrokenSeam, Sent, answers, host, items, object_path, replies, requests};

/// Those that tier one looks for: one for each property that a host or guest can break, and those that only a fault shows.
pub(crate) const QUICK: [&str; 7] = [
    "adopts-by-force",
    "finalizer-after-child",
    "forgets-the-budget",
    "generation-ahead",
    "guest-flip-flops",
    "never-lists-anew",
    "requeue-storm",
];

pub(crate) const HOSTS: &[BrokenHost] = &[
    // A first apply is not create-only: whatever has the name is taken over.
    host("adopts-by-force", "scenarios/adoption.yaml", Property::NoForeignHarm, || {
        requests(|_, sent| {
            if root_of_child(sent).is_some()
                && let Some(metadata) = sent.body["metadata"].as_object_mut()
            {
                metadata.remove("resourceVersion");
                metadata.remove("uid");
                sent.path = sent.path.replace("force=false", "force=true");
            }
            None
        })
    }),
    // A patch overrides what others have set, although no grant says so.
    host("forces-patches", "scenarios/patches-of-two.yaml", Property::NoForeignHarm, || {
        requests(|_, sent| {
            if is_apply(sent) && root_of_child(sent).is_none() {
                sent.path = sent.path.replace("force=false", "force=true");
            }
            None
        })
    }),
    // Each write of a status says something else, which brings the root back.
    host("status-loop", "scenarios/darkroom.yaml", Property::Converges, || {
        requests(|seam, sent| {
            if is_root_status(sent)
                && let Some(domains) = sent.body["status"]["domains"].as_array_mut()
            {
                domains.push(format!("looked-{}", seam.count()).into());
            }
            None
        })
    }),
    // The status speaks of a generation that is not there yet.
    host("generation-ahead", "scenarios/darkroom.yaml", Property::Monotone, || {
        requests(|_, sent| {
            if is_root_status(sent)
                && let Some(observed) = sent.body["status"]["observedGeneration"].as_i64()
            {
                sent.body["status"]["observedGeneration"] = (observed + 1).into();
            }
            None
        })
    }),
    // A watch that ended with 410 Gone is taken for one that has nothing to say. A second list shows what the first one showed.
    host("never-lists-anew", "scenarios/darkroom.yaml", Property::Converges, || BrokenSeam {
        event: |_, _, event| event["type"] != "ERROR",
        reply: |seam, sent, _, body| {
            let is_list = sent.method == "GET" && body["items"].is_array();
            if is_list && !sent.path.contains("/pintle.dev/") {
                let path = object_path(&sent.path);
                match seam.recall(path) {
                    Some(first) => {
                        let version = body["metadata"]["resourceVersion"].clone();
                        *body = first;
                        body["metadata"]["resourceVersion"] = version;
                    }
                    None => drop(seam.remember(path, body.clone())),
                }
            }
        },
        ..BrokenSeam::default()
    }),
    // Whatever carries a root's label counts as the root's, and goes when nobody wants it.
    host("prunes-by-label", "scenarios/labels-prove-nothing.yaml", Property::NoForeignHarm, || BrokenSeam {
        event: |_, _, event| {
            claim(&mut event["object"]);
            true
        },
        reply: |_, _, _, body| {
            claim(body);
            items(body).for_each(claim);
        },
        ..BrokenSeam::default()
    }),
    // A status that was written is neither seen nor believed, and written again, and so on.
    host("requeue-storm", "scenarios/darkroom.yaml", Property::Converges, || BrokenSeam {
        event: |_, path, event| {
            if path.contains("/darkrooms") {
                without_status(&mut event["object"]);
            }
            true
        },
        reply: |_, sent, code, body| {
            if is_root_status(sent) {
                *code = 409;
                *body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Conflict", "code": 409,
                    "message": "the object has been modified"});
            } else if sent.path.contains("/darkrooms") {
                items(body).for_each(without_status);
            }
        },
        ..BrokenSeam::default()
    }),
    // After a write of its own the cache shows what the first one left.
    host("reads-its-past", "scenarios/darkroom.yaml", Property::Converges, || {
        replies(|seam, sent, code, body| {
            if root_of_child(sent).is_none() || *code >= 300 {
                return;
            }
            let path = object_path(&sent.path);
            let first = seam.recall(path).unwrap_or_else(|| body.clone());
            seam.remember(path, first.clone());
            let version = body["metadata"]["resourceVersion"].clone();
            *body = first;
            body["metadata"]["resourceVersion"] = version;
        })
    }),
    // Values are made of an answer however much memory they take, of which nothing was reserved for most.
    host("forgets-the-budget", "scenarios/darkroom.yaml", Property::Bounded, || BrokenSeam {
        limits: |limits| limits.response.parsed_bytes = usize::MAX,
        // Sound hosts carry it out, with another call: it is a large answer, and no wrong one.
        answer: |_, _, answer| {
            if let Some(children) = answer["children"].as_array_mut() {
                let data: Map<String, Value> =
                    (0..4000).map(|number| (format!("k{number}"), "".into())).collect();
                children.push(json!({"id": "large", "object": {
                    "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"}, "data": data,
                }}));
            }
        },
        ..BrokenSeam::default()
    }),
    // The finalizer comes after the child, and only the host that applied the child knows that it is due.
    BrokenHost {
        needs_crash: true,
        ..host("finalizer-after-child", "scenarios/finalizers.yaml", Property::Converges, || {
            requests(|seam, sent| {
                if let Some(root) = root_of_child(sent) {
                    seam.remember(&root.to_string(), Value::Null);
                }
                let root = root_of_finalizer(sent)?;
                seam.recall(&root.to_string()).is_none().then(|| json!({"metadata": {}}))
            })
        })
    },
    // A guest whose answer changes with every call.
    host("guest-flip-flops", "scenarios/darkroom.yaml", Property::Pure, || {
        answers(|seam, _, answer| {
            for config in children(answer, "ConfigMap") {
                config["data"]["FLIP"] = (seam.count() % 2).to_string().into();
            }
        })
    }),
    // A guest that takes what it observes of a child for what is wanted of it.
    host("guest-keeps-what-it-sees", "scenarios/webserver.yaml", Property::Converges, || {
        answers(|_, request, answer| {
            let observed = request["children"].as_array().into_iter().flatten();
            for observed in observed.filter(|child| child["kind"] == "Deployment") {
                for deployment in children(answer, "Deployment") {
                    deployment["spec"]["replicas"] = observed["spec"]["replicas"].clone();
                }
            }
        })
    }),
];

fn is_apply(sent: &Sent) -> bool {
    sent.method == "PATCH" && sent.path.contains("force=")
}

/// Whether a request writes a root's status, and not that of one of the host's own objects.
fn is_root_status(sent: &Sent) -> bool {
    is_apply(sent) && object_path(&sent.path).ends_with("/status") && !sent.path.contains("/pintle.dev/")
}

/// The uid of the root whose child a request applies.
fn root_of_child(sent: &Sent) -> Option<&Value> {
    sent.body.pointer("/metadata/labels/pintle.dev~1root").filter(|_| is_apply(sent))
}

/// The uid of the root that a request gives its first finalizer.
fn root_of_finalizer(sent: &Sent) -> Option<&Value> {
    let mut operations = sent.body.as_array()?.iter();
    let adds = operations.any(|one| one["op"] == "add" && one["path"] == "/metadata/finalizers");
    sent.body.pointer("/0/value").filter(|_| adds)
}

/// The children of a kind in an answer.
fn children<'a>(answer: &'a mut Value, kind: &str) -> impl Iterator<Item = &'a mut Value> {
    let children = answer.get_mut("children").and_then(Value::as_array_mut).into_iter().flatten();
    children.map(|child| &mut child["object"]).filter(move |object| object["kind"] == kind)
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
