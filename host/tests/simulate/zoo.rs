//! Hosts and guests that are broken in a known way. The suite must catch every one, or it proves nothing of those that it passes.

mod gateways;
mod guests;
mod hosts;

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

/// A broken gateway.
pub(crate) struct BrokenGateway {
    /// Its name.
    pub(crate) name: &'static str,
    /// What is wrong with it.
    pub(crate) about: &'static str,
    /// Makes the seam between it and the API server that breaks it.
    upstream: Option<fn() -> Arc<dyn Seam>>,
    /// The same between it and its clients.
    front: Option<fn() -> Arc<dyn Seam>>,
}

impl BrokenGateway {
    pub(crate) fn upstream_seams(&self) -> Option<Seams> {
        self.upstream.map(|make| Arc::new(make) as Seams)
    }

    pub(crate) fn front_seams(&self) -> Option<Seams> {
        self.front.map(|make| Arc::new(make) as Seams)
    }
}

pub(crate) fn gateways() -> &'static [BrokenGateway] {
    gateways::ANIMALS
}

pub(crate) fn animals() -> Vec<&'static Animal> {
    hosts::ANIMALS.iter().chain(guests::ANIMALS).collect()
}

/// The animals that tier one looks for: at least one for each property that a host or guest can break, and those that only a fault shows.
pub(crate) const QUICK: [&str; 9] = [
    "adopts-by-force",
    "forgets-the-budget",
    "generation-ahead",
    "guest-flip-flops",
    "guest-keeps-what-it-sees",
    "never-lists-anew",
    "prunes-by-label",
    "reads-its-past",
    "requeue-storm",
];
