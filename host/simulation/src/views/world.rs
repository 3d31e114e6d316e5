//! A cluster in memory with gateways and their clients, in which a plan is carried out.

use std::{
    sync::{MutexGuard, PoisonError},
    time::Duration,
};

use pintle_simulator::{Act, Failure};
use pintle_wit::ObjectRef;
use serde_json::{Value, json};

use super::{
    Gateways, MODULES,
    fault::OnRequest,
    gateways::{Answer, Broke, Content, Request},
    objects::{NAMES, new_record, record},
};
use crate::acts::{delete, merge, reference};

/// How long a View is suspended, gone, or names no module that exists, and how long the gateways have to take in what was written.
pub(super) const AWHILE: Duration = Duration::from_secs(4);
/// How many calls of guests are late, one after the other.
pub(super) const LATE_CALLS: u32 = 8;

/// A cluster with gateways in it.
pub(super) type World = crate::world::World<Gateways>;

/// What clients were told.
#[derive(Clone, Debug, Default)]
pub(super) struct Evidence {
    pub(super) sightings: Vec<Sighting>,
    pub(super) misses: Vec<Missed>,
    pub(super) writes: Vec<Written>,
}

/// An object that somebody was shown.
#[derive(Clone, Debug)]
pub(super) struct Sighting {
    pub(super) at: Duration,
    pub(super) plural: &'static str,
    pub(super) object: Value,
    /// As what it was shown.
    pub(super) how: Told,
}

/// As what an object is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// It is there.
    Present,
    /// It is gone.
    Gone,
    /// Somebody has just written it.
    Written,
}

/// An answer of 404.
#[derive(Clone, Debug)]
pub(super) struct Missed {
    pub(super) at: Duration,
    pub(super) method: &'static str,
    pub(super) path: String,
    /// The versions of the server before and after.
    pub(super) versions: (u64, u64),
}

/// A write through the view, and its answer.
#[derive(Clone, Debug)]
pub(super) struct Written {
    pub(super) request: Request,
    /// What the client wanted, whatever was made of it on the way.
    pub(super) wanted: Value,
    pub(super) at: Duration,
    /// The code and the answer; none if there was no answer.
    pub(super) answer: Option<(u16, Value)>,
    pub(super) versions: (u64, u64),
}

impl Written {
    pub(super) fn of(request: Request, wanted: Value) -> Self {
        Self { request, wanted, at: Duration::ZERO, answer: None, versions: (0, 0) }
    }
}

impl World {
    pub(super) fn evidence(&self) -> MutexGuard<'_, Evidence> {
        self.own.evidence.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // === Clients ===

    /// Sends a request to a gateway, and notes what came of it.
    pub(super) async fn send(&self, request: Request) -> Result<Answer, Broke> {
        let (method, path, before) = (request.method, request.path.clone(), self.server.version());
        let answer = self.forward(request).await?;
        if answer.code == 404 {
            let versions = (before, self.server.version());
            self.evidence().misses.push(Missed { at: self.origin.elapsed(), method, path, versions });
        }
        Ok(answer)
    }

    /// The same for a request that is not a watch: the code and the body. None if there was no answer.
    pub(super) async fn ask(&self, request: Request) -> Option<(u16, Value)> {
        let plural = if request.path.contains("/farmpods") { "farmpods" } else { "llamas" };
        let (is_write, is_dry_run) = (request.method != "GET", request.is_dry_run());
        let Answer { code, content: Content::Whole(body), .. } = self.send(request).await.ok()? else {
            return None;
        };
        if code < 300 && body["kind"] != "Status" && !is_dry_run {
            let objects = body["items"].as_array().map_or_else(|| vec![body.clone()], Clone::clone);
            for object in objects {
                // What is written is told even if it cannot be shown.
                let how = if is_write { Told::Written } else { Told::Present };
                self.saw(plural, object, how);
            }
        }
        Some((code, body))
    }

    /// Writes, and remembers what came of it.
    pub(super) async fn write(&self, mut written: Written) -> Option<u16> {
        let before = self.server.version();
        let request = written.request.clone();
        self.say(&request.agent, format!("{} {}", request.method, request.path));
        written.answer = self.ask(request).await;
        written.versions = (before, self.server.version());
        written.at = self.origin.elapsed();
        let code = written.answer.as_ref().map(|(code, _)| *code);
        let what = code.map_or_else(|| "gets no answer".into(), |code| format!("gets {code}"));
        self.say(&written.request.agent, what);
        self.evidence().writes.push(written);
        code
    }

    fn saw(&self, plural: &'static str, object: Value, how: Told) {
        self.evidence().sightings.push(Sighting { at: self.origin.elapsed(), plural, object, how });
    }

    /// Notes an event that an informer got.
    pub(super) fn saw_event(&self, informer: &str, plural: &'static str, event: &Value) {
        let kind = event["type"].as_str().unwrap_or_default();
        let (name, version) =
            (&event["object"]["metadata"]["name"], &event["object"]["metadata"]["resourceVersion"]);
        self.say(informer, format!("sees {kind} {name} at {version} {}", event["object"]["code"]));
        if matches!(kind, "ADDED" | "MODIFIED" | "DELETED") {
            let how = if kind == "DELETED" { Told::Gone } else { Told::Present };
            self.saw(plural, event["object"].clone(), how);
        }
    }

    /// Acts on the API server itself.
    pub(super) fn act(&self, who: &str, act: &Act) -> Result<Value, Failure> {
        let done = self.server.act(who, act);
        let outcome = done.as_ref().map_or_else(|failure| failure.code.to_string(), |_| "done".into());
        let what = match act {
            Act::Create(object) => {
                format!("creates {} {}: {outcome}", object["kind"], object["metadata"]["name"])
            }
            Act::Merge { target, patch, .. } => format!("patches {target} with {patch}: {outcome}"),
            Act::Delete { target, .. } => format!("deletes {target}: {outcome}"),
            _ => outcome,
        };
        self.say(who, what);
        done
    }

    /// Acts as the one who keeps the farm. Returns whether it is done.
    pub(super) fn as_keeper(&self, act: Act) -> bool {
        self.act("keeper", &act).is_ok()
    }

    // === Beside them ===

    pub(super) async fn meddle(&self, what: OnRequest, name: Option<String>) {
        let (other, amount) = (self.own.below(4) as usize, 60 + self.own.below(30));
        let name = name.unwrap_or_else(|| NAMES[other].to_owned());
        match what {
            OnRequest::Swap => self.swap("llamas"),
            OnRequest::SwapPods => self.swap("farmpods"),
            OnRequest::SwapMissing => {
                let before = self.module_of("llamas");
                self.set("llamas", json!({"module": "farm-missing"}));
                tokio::time::sleep(AWHILE).await;
                self.set("llamas", json!({"module": before}));
            }
            OnRequest::Suspend => {
                self.set("llamas", json!({"suspend": true}));
                tokio::time::sleep(AWHILE).await;
                self.set("llamas", json!({"suspend": false}));
            }
            OnRequest::Remake => self.remake().await,
            OnRequest::Edit => {
                self.as_keeper(merge(&record(&name), json!({"spec": {"height": amount}})));
            }
            OnRequest::LateCalls => self.own.guests.be_late(LATE_CALLS),
            OnRequest::Delete => {
                self.as_keeper(delete(&record(&name)));
            }
            OnRequest::Recreate => {
                self.as_keeper(delete(&record(&name)));
                self.as_keeper(Act::Create(new_record(&name, amount)));
            }
            _ => {}
        }
    }

    /// Deletes the View of Llamas, and makes it again after a while.
    async fn remake(&self) {
        let Some(object) = self.server.object(&view("llamas")) else { return };
        self.as_keeper(delete(&view("llamas")));
        tokio::time::sleep(AWHILE).await;
        self.as_keeper(Act::Create(json!({"apiVersion": object["apiVersion"], "kind": object["kind"],
            "metadata": {"name": object["metadata"]["name"]}, "spec": object["spec"]})));
    }

    /// Ends what was to last for a while, in case it still does.
    pub(super) async fn settle(&self) {
        self.own.guests.be_late(0);
        tokio::time::sleep(AWHILE * 2).await;
        let module = self.module_of("llamas");
        let module = if MODULES.contains(&module.as_str()) { &module } else { MODULES[0] };
        self.set("llamas", json!({"suspend": false, "module": module}));
    }

    fn module_of(&self, name: &str) -> String {
        let object = self.server.object(&view(name));
        let module = object.as_ref().and_then(|object| object["spec"]["module"].as_str());
        module.unwrap_or(MODULES[0]).to_owned()
    }

    pub(super) fn swap(&self, name: &str) {
        let is_first = self.module_of(name) == MODULES[0];
        self.set(name, json!({"module": MODULES[usize::from(is_first)]}));
    }

    fn set(&self, name: &str, spec: Value) {
        self.as_keeper(merge(&view(name), json!({"spec": spec})));
    }
}

/// A View.
pub(super) fn view(name: &str) -> ObjectRef {
    reference("pintle.dev/v1alpha1", "View", None, name)
}
