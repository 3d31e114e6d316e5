//! Hosts, guests and gateways that are broken in a known way. The suite must catch every one, or it proves nothing of those that it passes.

mod gateways;
mod hosts;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use pintle_engine::CallLimits;
use pintle_simulation::{Property, Seam, Seams, Sent, views};
use serde_json::Value;

pub(crate) use gateways::GATEWAYS;
pub(crate) use hosts::{HOSTS, QUICK};

/// A broken host or guest.
pub(crate) struct BrokenHost {
    pub(crate) name: &'static str,
    /// The scenario in which it is looked for.
    pub(crate) scenario: &'static str,
    /// The property that it breaks.
    pub(crate) breaks: Property,
    /// Whether it breaks it only where a host crashes.
    pub(crate) needs_crash: bool,
    seam: fn() -> BrokenSeam,
}

const fn host(
    name: &'static str,
    scenario: &'static str,
    breaks: Property,
    seam: fn() -> BrokenSeam,
) -> BrokenHost {
    BrokenHost { name, scenario, breaks, needs_crash: false, seam }
}

impl BrokenHost {
    pub(crate) fn seams(&self) -> Seams {
        seams(self.seam)
    }
}

/// A broken gateway.
pub(crate) struct BrokenGateway {
    pub(crate) name: &'static str,
    /// The property that it breaks.
    pub(crate) breaks: views::Property,
    side: Side,
    seam: fn() -> BrokenSeam,
}

/// The side of a gateway on which its seam is.
enum Side {
    ApiServer,
    Clients,
}

const fn gateway(
    name: &'static str,
    breaks: views::Property,
    side: Side,
    seam: fn() -> BrokenSeam,
) -> BrokenGateway {
    BrokenGateway { name, breaks, side, seam }
}

impl BrokenGateway {
    /// The seams between it and the API server, and between it and its clients.
    pub(crate) fn seams(&self) -> (Option<Seams>, Option<Seams>) {
        let seams = Some(seams(self.seam));
        match self.side {
            Side::ApiServer => (seams, None),
            Side::Clients => (None, seams),
        }
    }
}

fn seams(make: fn() -> BrokenSeam) -> Seams {
    Arc::new(move || Arc::new(make()))
}

/// A seam made of functions, with a count and a memory.
struct BrokenSeam {
    request: fn(&Self, &mut Sent) -> Option<Value>,
    reply: fn(&Self, &Sent, &mut u16, &mut Value),
    event: fn(&Self, &str, &mut Value) -> bool,
    limits: fn(&mut CallLimits),
    answer: fn(&Self, &Value, &mut Value),
    count: AtomicU32,
    memory: Mutex<BTreeMap<String, Value>>,
}

impl Default for BrokenSeam {
    fn default() -> Self {
        Self {
            request: |_, _| None,
            reply: |_, _, _, _| {},
            event: |_, _, _| true,
            limits: |_| {},
            answer: |_, _, _| {},
            count: AtomicU32::new(0),
            memory: Mutex::default(),
        }
    }
}

impl BrokenSeam {
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

impl Seam for BrokenSeam {
    fn request(&self, request: &mut Sent) -> Option<Value> {
        (self.request)(self, request)
    }

    fn reply(&self, request: &Sent, code: &mut u16, body: &mut Value) {
        (self.reply)(self, request, code, body);
    }

    fn event(&self, path: &str, event: &mut Value) -> bool {
        (self.event)(self, path, event)
    }

    fn limits(&self, limits: &mut CallLimits) {
        (self.limits)(limits);
    }

    fn answer(&self, request: &Value, answer: &mut Value) {
        (self.answer)(self, request, answer);
    }
}

fn requests(request: fn(&BrokenSeam, &mut Sent) -> Option<Value>) -> BrokenSeam {
    BrokenSeam { request, ..BrokenSeam::default() }
}

fn replies(reply: fn(&BrokenSeam, &Sent, &mut u16, &mut Value)) -> BrokenSeam {
    BrokenSeam { reply, ..BrokenSeam::default() }
}

fn answers(answer: fn(&BrokenSeam, &Value, &mut Value)) -> BrokenSeam {
    BrokenSeam { answer, ..BrokenSeam::default() }
}

/// The object's path, without the query.
fn object_path(path: &str) -> &str {
    path.split('?').next().unwrap_or_default()
}

/// The items of a list.
fn items(body: &mut Value) -> impl Iterator<Item = &mut Value> {
    body.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten()
}
