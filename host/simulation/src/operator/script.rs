//! What happens to a cluster in a run: the plan, its progress, and the trace.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::SignedDuration;
use pintle_core::object::at;
use pintle_simulator::{
    EventFate, EventSeen, Failure, Fate, Faults, RequestSeen as Request, StreamSeen, Verb,
};
use pintle_wit::ObjectRef;
use serde_json::Value;
use tokio::{sync::Notify, time::Instant};

use super::{
    Hosts,
    fault::{Fault, OnEvent, OnRequest, OnWrite, Plan, Reach},
};
use crate::{
    life::Life,
    run::{Replicas, TraceEntry},
};

/// How long an event may be missing before the watch starts again. No real cluster hides an event for ever.
const HIDDEN_FOR: Duration = Duration::from_secs(20);
/// The delay of faults that delay something.
const LATE: Duration = Duration::from_secs(2);
/// How many versions old the lists for a host with an old view are.
const TRAVEL_VERSIONS: u64 = 6;
/// The most requests of hosts in a run. Further requests are not answered.
pub(super) const REQUESTS_MAX: u32 = 20_000;

/// What a fault concerns, if it does not concern everything.
#[derive(Clone, Debug)]
pub(super) enum Troubled {
    /// The object of the request with this number.
    Request(u64),
    /// A root.
    Root(ObjectRef),
    /// The roots of a Reconciler.
    Of(ObjectRef),
}

/// A change of an object that somebody made: its spec in a generation.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// When, since the run began.
    pub(super) at: Duration,
    pub(super) object: ObjectRef,
    pub(super) uid: String,
    pub(super) generation: i64,
}

/// An action that must be done outside of the server's lock.
#[derive(Clone, Debug)]
pub(super) enum Deed {
    Crash(String),
    CutOff(String),
    Meddle(Fault, OnWrite, Box<Request>),
    Relist(Duration),
}

/// The plan and its progress.
pub(super) struct Script {
    pub(super) plan: Plan,
    pub(super) armed: bool,
    pub(super) origin: Instant,
    /// The numbers of the requests that write.
    pub(super) writes: Vec<u32>,
    pub(super) requests: u32,
    pub(super) events: u32,
    /// The faults of the plan that happened.
    pub(super) hit: BTreeSet<Fault>,
    /// The objects that these faults concern, for faults that do not concern all objects.
    pub(super) troubled: Vec<Troubled>,
    /// The changes that somebody made.
    pub(super) asked: Vec<Asked>,
    pub(super) lives: BTreeMap<String, Arc<Life>>,
    pub(super) burst: u32,
    /// The version that the next host first sees.
    pub(super) travel: Option<u64>,
    /// The lists that hosts with an old view have already made.
    pub(super) travellers: BTreeMap<String, (u64, BTreeSet<(String, String)>)>,
    pub(super) hidden: Option<(String, String)>,
    pub(super) first_version: u64,
    pub(super) version: u64,
    pub(super) deeds: Vec<Deed>,
    pub(super) steps: Vec<TraceEntry>,
    /// The versions at some points in time.
    pub(super) versions: Vec<(u64, Duration)>,
    /// When each request was made, by its number.
    pub(super) times: BTreeMap<u64, Duration>,
}

impl Script {
    /// A plan at its beginning, on a server at this version.
    pub(super) fn new(plan: &Plan, origin: Instant, version: u64) -> Self {
        let always = |fault: &&Fault| matches!(fault, Fault::Rival | Fault::Skew(_));
        Self {
            armed: false,
            origin,
            writes: Vec::new(),
            requests: 0,
            events: 0,
            hit: plan.0.iter().filter(always).copied().collect(),
            troubled: Vec::new(),
            asked: Vec::new(),
            lives: BTreeMap::new(),
            burst: 0,
            travel: None,
            travellers: BTreeMap::new(),
            hidden: None,
            first_version: version,
            version,
            deeds: Vec::new(),
            steps: Vec::new(),
            times: BTreeMap::new(),
            versions: Vec::new(),
            plan: plan.clone(),
        }
    }

    pub(super) fn say(&mut self, who: &str, what: String) {
        let at = self.origin.elapsed();
        self.steps.push(TraceEntry { at, who: who.into(), what });
    }

    /// When a version was made, to a tenth of a second. In a watch that lags, an event is looked at only after the events before it.
    fn came_at(&self, version: u64) -> Duration {
        let at = self.versions.partition_point(|(known, _)| *known < version);
        self.versions.get(at).map_or_else(|| self.origin.elapsed(), |(_, time)| *time)
    }

    /// Notes that a fault is due. For an action of a user, only the action itself shows whether it has an effect.
    fn hit(&mut self, fault: Fault) {
        self.say("plan", fault.to_string());
        if !fault.meddles() {
            self.hit.insert(fault);
        }
    }

    fn on_write(&mut self, fault: Fault, what: OnWrite, seen: &Request) -> Fate {
        let crash = |script: &mut Self| {
            if let Some(life) = script.lives.get(&seen.client) {
                life.end();
            }
            script.deeds.push(Deed::Crash(seen.client.clone()));
        };
        match what {
            OnWrite::CrashBefore => {
                crash(self);
                Fate::SilenceBefore
            }
            OnWrite::CrashAfter => {
                crash(self);
                Fate::SilenceAfter
            }
            OnWrite::TimeTravel => {
                crash(self);
                self.travel = Some(self.version.saturating_sub(TRAVEL_VERSIONS).max(self.first_version));
                Fate::SilenceAfter
            }
            OnWrite::FarTimeTravel => {
                crash(self);
                self.travel = Some(self.first_version);
                Fate::SilenceAfter
            }
            OnWrite::LostBefore => Fate::LoseBefore,
            OnWrite::LostReply => Fate::LoseAfter,
            OnWrite::Silence => Fate::SilenceAfter,
            OnWrite::Partition => {
                self.deeds.push(Deed::CutOff(seen.client.clone()));
                Fate::Pass
            }
            OnWrite::ClockBack | OnWrite::ClockAhead => {
                let hours = if what == OnWrite::ClockBack { -1 } else { 1 };
                if let Some(life) = self.lives.get(&seen.client) {
                    life.clock.set_skew(SignedDuration::from_hours(hours));
                }
                Fate::Pass
            }
            _ => {
                self.deeds.push(Deed::Meddle(fault, what, Box::new(seen.clone())));
                Fate::Pass
            }
        }
    }

    fn on_request(&mut self, what: OnRequest) -> Fate {
        let code = match what {
            OnRequest::Unauthorized => 401,
            OnRequest::Forbidden => 403,
            OnRequest::Conflict => 409,
            OnRequest::TooMany => 429,
            OnRequest::Internal => 500,
            OnRequest::Unavailable => 503,
            OnRequest::Timeout => 504,
            OnRequest::Burst => {
                self.burst = 9;
                503
            }
            OnRequest::Lost => return Fate::LoseBefore,
            OnRequest::Late => return Fate::Delay(LATE),
        };
        Fate::Fail(Failure::of(code))
    }

    fn request(&mut self, seen: &Request) -> Fate {
        self.times.insert(seen.number, self.origin.elapsed());
        if !is_host(&seen.client) {
            return Fate::Pass;
        }
        if let Some((version, listed)) = self.travellers.get_mut(&seen.client)
            && seen.verb == Verb::List
            && !is_own(seen)
            && listed.insert((seen.resource.clone(), seen.namespace.clone().unwrap_or_default()))
        {
            let version = *version;
            self.say(&seen.client, format!("list {} as of version {version}", seen.resource));
            return Fate::AsOf(version);
        }
        if !self.armed || is_about_hosts(seen) {
            return Fate::Pass;
        }
        self.requests += 1;
        if self.requests > REQUESTS_MAX {
            return Fate::SilenceBefore;
        }
        let is_write = seen.verb.is_mutating() && seen.resource != "events";
        if is_write {
            self.writes.push(self.requests);
        }
        self.say(&seen.client, described(seen));
        for fault in self.plan.0.clone() {
            let fate = match fault {
                Fault::Write(number, what) if is_write && number as usize == self.writes.len() => {
                    self.on_write(fault, what, seen)
                }
                Fault::Request(number, what) if number == self.requests => self.on_request(what),
                _ => continue,
            };
            self.hit(fault);
            if fault.reach() == Reach::Request {
                self.troubled.push(Troubled::Request(seen.number));
            }
            return fate;
        }
        if self.burst > 0 {
            self.burst -= 1;
            return Fate::Fail(Failure::of(503));
        }
        Fate::Pass
    }

    fn event(&mut self, stream: &StreamSeen, event: &EventSeen) -> EventFate {
        self.version = event.version;
        if !is_host(&stream.client) {
            return EventFate::Deliver;
        }
        if self.travellers.contains_key(&stream.client) && event.number == 1 {
            return EventFate::Delay(LATE);
        }
        if !self.armed {
            return EventFate::Deliver;
        }
        self.events += 1;
        let name = at(&event.object, &["metadata", "name"]).and_then(Value::as_str).unwrap_or_default();
        self.say(
            &stream.client,
            format!("sees {} {} {name} at {}", event.change.name(), stream.resource, event.version),
        );
        let object = (stream.resource.clone(), name.to_owned());
        if self.hidden.as_ref() == Some(&object) {
            self.hidden = None;
            return EventFate::Gone;
        }
        let mut fate = EventFate::Deliver;
        for fault in self.plan.0.clone() {
            match fault {
                Fault::Lag(by) => {
                    self.hit.insert(fault);
                    fate = EventFate::Delay(
                        (self.came_at(event.version) + by).saturating_sub(self.origin.elapsed()),
                    );
                }
                Fault::Event(number, what) if number == self.events => {
                    self.hit(fault);
                    return match what {
                        OnEvent::Hide => {
                            self.deeds.push(Deed::Relist(HIDDEN_FOR));
                            EventFate::Hide
                        }
                        OnEvent::HidePair => {
                            self.hidden = Some(object);
                            self.deeds.push(Deed::Relist(HIDDEN_FOR));
                            EventFate::Hide
                        }
                        OnEvent::Late => EventFate::Delay(LATE),
                        OnEvent::Duplicate => EventFate::Duplicate,
                        OnEvent::Close => EventFate::Close,
                        OnEvent::Gone => EventFate::Gone,
                        OnEvent::Compact => {
                            self.deeds.push(Deed::Relist(Duration::ZERO));
                            EventFate::Deliver
                        }
                    };
                }
                _ => {}
            }
        }
        fate
    }
}

/// Whether a connection is a host's.
pub(super) fn is_host(client: &str) -> bool {
    Hosts::has(client)
}

/// Whether a request concerns the host's own objects. An old version of a Reconciler looks like a valid wish of a user, so such objects are
/// never shown in an old state.
fn is_own(seen: &Request) -> bool {
    matches!(seen.resource.as_str(), "modules" | "reconcilers" | "customresourcedefinitions")
}

/// Whether a request belongs to the election, or to the host's own Events.
pub(super) fn is_about_hosts(seen: &Request) -> bool {
    seen.resource == "leases"
        || seen.resource == "events" && seen.namespace.as_deref() == Some(super::hosts::NAMESPACE)
}

/// A request in words: its verb and its object.
pub(crate) fn described(seen: &Request) -> String {
    let mut text = format!("{:?} {}", seen.verb, seen.resource).to_lowercase();
    if let Some(subresource) = &seen.subresource {
        text.push_str(&format!("/{subresource}"));
    }
    for part in [&seen.namespace, &seen.name].into_iter().flatten() {
        text.push_str(&format!(" {part}"));
    }
    text
}

/// The [`Faults`](pintle_simulator::Faults) of a run, to which the server shows requests and events.
pub(super) struct Hook(pub(super) Arc<Mutex<Script>>, pub(super) Arc<Notify>);

impl Hook {
    fn with<T>(&self, decide: impl FnOnce(&mut Script) -> T) -> T {
        let mut script = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let decided = decide(&mut script);
        if !script.deeds.is_empty() {
            self.1.notify_one();
        }
        decided
    }
}

impl Faults for Hook {
    fn request(&mut self, seen: &Request) -> Fate {
        self.with(|script| script.request(seen))
    }

    fn event(&mut self, stream: &StreamSeen, event: &EventSeen) -> EventFate {
        self.with(|script| script.event(stream, event))
    }
}
