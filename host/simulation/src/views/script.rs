//! What happens to a cluster in a run of the gateway: the plan, its progress, and the trace.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use pintle_simulator::{
    EventFate, EventSeen, Failure, Fate, Faults, RequestSeen as Request, StreamSeen, Verb,
};
use tokio::{sync::Notify, time::Instant};

use super::{
    Gateways,
    fault::{Fault, OnEvent, OnRequest, Plan},
};
use crate::{
    life::Life,
    operator::script::described,
    run::{Replicas, TraceEntry},
};

/// The delay of faults that delay something.
const LATE: Duration = Duration::from_secs(2);
/// How long after a request somebody else acts, before the gateway gets the reply.
const MEANWHILE: Duration = Duration::from_millis(20);
/// How long an API server is away when it restarts.
const AWAY: Duration = Duration::from_secs(3);
/// The most requests of gateways in a run. Further ones are not answered.
const REQUESTS_MAX: u32 = 20_000;

/// An action that must be done outside of the server's lock.
#[derive(Clone, Debug)]
pub(super) enum Deed {
    /// A gateway ends.
    Crash(String),
    /// The API server closes its watches; it may forget its history too.
    Close { forgets: bool },
    /// Somebody acts, perhaps on the object with this name.
    Meddle(OnRequest, Option<String>),
}

/// The plan and its progress.
pub(super) struct Script {
    plan: Plan,
    pub(super) armed: bool,
    origin: Instant,
    pub(super) requests: u32,
    /// The numbers of those that write.
    pub(super) writes: Vec<u32>,
    pub(super) events: u32,
    /// The faults of the plan that happened.
    pub(super) hit: BTreeSet<Fault>,
    pub(super) lives: BTreeMap<String, Arc<Life>>,
    away_until: Duration,
    /// The newest version that a gateway has seen an event of.
    version: u64,
    pub(super) deeds: Vec<Deed>,
    pub(super) steps: Vec<TraceEntry>,
    /// The versions at some points in time.
    pub(super) versions: Vec<(u64, Duration)>,
}

impl Script {
    pub(super) fn new(plan: &Plan, origin: Instant, version: u64) -> Self {
        Self {
            armed: false,
            origin,
            requests: 0,
            writes: Vec::new(),
            events: 0,
            hit: plan.0.iter().filter(|fault| **fault == Fault::Two).copied().collect(),
            lives: BTreeMap::new(),
            away_until: Duration::ZERO,
            version,
            deeds: Vec::new(),
            steps: Vec::new(),
            versions: Vec::new(),
            plan: plan.clone(),
        }
    }

    pub(super) fn say(&mut self, who: &str, what: String) {
        let at = self.origin.elapsed();
        self.steps.push(TraceEntry { at, who: who.into(), what });
    }

    /// When a version was made, to a tenth of a second.
    fn came_at(&self, version: u64) -> Duration {
        let at = self.versions.partition_point(|(known, _)| *known < version);
        self.versions.get(at).map_or_else(|| self.origin.elapsed(), |(_, time)| *time)
    }

    fn request(&mut self, seen: &Request) -> Fate {
        if !is_gateway(&seen.client) || !self.armed || seen.resource == "events" {
            return Fate::Pass;
        }
        if self.origin.elapsed() < self.away_until {
            return Fate::LoseBefore;
        }
        self.requests += 1;
        if self.requests > REQUESTS_MAX {
            return Fate::SilenceBefore;
        }
        if seen.verb.is_mutating() {
            self.writes.push(self.requests);
        }
        self.say(&seen.client, described(seen));
        for fault in self.plan.0.clone() {
            if let Fault::Request(number, what) = fault
                && number == self.requests
            {
                self.say("plan", fault.to_string());
                self.hit.insert(fault);
                return self.on_request(what, seen);
            }
        }
        // The API server promises a version, and none that is newer.
        if seen.verb == Verb::List
            && let Some(promised) =
                seen.resource_version.as_ref().and_then(|version| version.parse::<u64>().ok())
            && let Some(fault) = self.plan.0.iter().find(|fault| matches!(fault, Fault::Stale(_))).copied()
            && let Fault::Stale(versions) = fault
        {
            self.hit.insert(fault);
            return Fate::AsOf(self.version.saturating_sub(versions).max(promised));
        }
        Fate::Pass
    }

    fn on_request(&mut self, what: OnRequest, seen: &Request) -> Fate {
        let fail = |code| Fate::Fail(Failure::of(code));
        match what {
            OnRequest::Lost => Fate::LoseBefore,
            OnRequest::LostReply => Fate::LoseAfter,
            OnRequest::Silence => Fate::SilenceAfter,
            OnRequest::Late => Fate::Delay(LATE),
            OnRequest::LateReply => Fate::DelayReply(LATE),
            OnRequest::Forbidden => fail(403),
            OnRequest::TooMany => fail(429),
            OnRequest::Internal => fail(500),
            OnRequest::Unavailable => fail(503),
            OnRequest::Timeout => fail(504),
            OnRequest::Crash | OnRequest::CrashAfter => {
                if let Some(life) = self.lives.get(&seen.client) {
                    life.end();
                }
                self.deeds.push(Deed::Crash(seen.client.clone()));
                if what == OnRequest::Crash { Fate::SilenceBefore } else { Fate::SilenceAfter }
            }
            OnRequest::Restart | OnRequest::RestartCompacted => {
                self.away_until = self.origin.elapsed() + AWAY;
                self.deeds.push(Deed::Close { forgets: what == OnRequest::RestartCompacted });
                Fate::LoseBefore
            }
            _ => {
                let is_stored = matches!(seen.resource.as_str(), "llamarecords" | "pods");
                self.deeds.push(Deed::Meddle(what, seen.name.clone().filter(|_| is_stored)));
                Fate::DelayReply(MEANWHILE)
            }
        }
    }

    fn event(&mut self, stream: &StreamSeen, event: &EventSeen) -> EventFate {
        if !is_gateway(&stream.client) {
            return EventFate::Deliver;
        }
        self.version = self.version.max(event.version);
        if !self.armed {
            return EventFate::Deliver;
        }
        self.events += 1;
        let name = event.object["metadata"]["name"].as_str().unwrap_or_default();
        let what = format!("sees {} {} {name} at {}", event.change.name(), stream.resource, event.version);
        self.say(&stream.client, what);
        let mut fate = EventFate::Deliver;
        for fault in self.plan.0.clone() {
            match fault {
                Fault::Lag(by) => {
                    self.hit.insert(fault);
                    let late = (self.came_at(event.version) + by).saturating_sub(self.origin.elapsed());
                    fate = EventFate::Delay(late);
                }
                Fault::Event(number, what) if number == self.events => {
                    self.say("plan", fault.to_string());
                    self.hit.insert(fault);
                    return match what {
                        OnEvent::Late => EventFate::Delay(LATE),
                        OnEvent::Close => EventFate::Close,
                        OnEvent::Gone => EventFate::Gone,
                        OnEvent::Compact => {
                            self.deeds.push(Deed::Close { forgets: true });
                            EventFate::Deliver
                        }
                        OnEvent::Swap => {
                            self.deeds.push(Deed::Meddle(OnRequest::Swap, None));
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

/// Whether a connection is a gateway's.
pub(super) fn is_gateway(client: &str) -> bool {
    Gateways::has(client)
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
