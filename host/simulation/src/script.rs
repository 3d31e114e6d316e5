//! What happens to a cluster in a run: the plan, its progress, and the trace.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use pintle_simulator::{EventFate, EventSeen, Failure, Fate, Faults, RequestSeen, StreamSeen};
use tokio::{sync::Notify, time::Instant};

use crate::{
    life::Life,
    plan::{AnyFault, Place, Plan},
    run::{Replicas, TraceEntry},
};

/// The delay of faults that delay something.
pub(crate) const LATE: Duration = Duration::from_secs(2);
/// The most requests of processes in a run. Further requests are not answered.
pub(crate) const REQUESTS_MAX: u32 = 20_000;

/// What the faults of a plan do to requests and events.
pub(crate) trait Inject: Replicas {
    /// What must be done outside of the server's lock, beside the end of a process.
    type Deed: Send;
    /// What faults leave for later requests and events.
    type Memory: Default + Send;

    /// The fate of a request that is not counted.
    fn before_request(script: &mut Script<Self>, seen: &RequestSeen) -> Option<Fate>;

    /// The fate of a request at which a fault is due.
    fn at_request(script: &mut Script<Self>, fault: Self::Fault, seen: &RequestSeen) -> Fate;

    /// The fate of any other request.
    fn at_other_request(script: &mut Script<Self>, seen: &RequestSeen) -> Fate;

    /// The fate of an event that is not counted.
    fn before_event(script: &mut Script<Self>, stream: &StreamSeen, event: &EventSeen) -> Option<EventFate>;

    /// The fate of an event that an earlier fault at an event of the same object decides.
    fn at_object(script: &mut Script<Self>, object: &Object) -> Option<EventFate> {
        let _ = (script, object);
        None
    }

    /// The fate of an event at which a fault is due.
    fn at_event(script: &mut Script<Self>, fault: Self::Fault, object: Object) -> EventFate;
}

/// The resource and the name of an object.
pub(crate) type Object = (String, String);

/// An action that must be done outside of the server's lock.
pub(crate) enum Deed<D> {
    /// The end of the process with this connection.
    Crash(String),
    /// Another one.
    Other(D),
}

/// The plan and its progress.
pub(crate) struct Script<R: Inject> {
    pub(crate) plan: Plan<R::Fault>,
    pub(crate) armed: bool,
    pub(crate) origin: Instant,
    pub(crate) requests: u32,
    /// The numbers of those that write.
    pub(crate) writes: Vec<u32>,
    pub(crate) events: u32,
    /// The faults of the plan that happened.
    pub(crate) hit: BTreeSet<R::Fault>,
    pub(crate) lives: BTreeMap<String, Arc<Life>>,
    pub(crate) memory: R::Memory,
    /// The version at which the plan was armed.
    pub(crate) first_version: u64,
    /// The version of an event that was seen.
    pub(crate) version: u64,
    pub(crate) deeds: Vec<Deed<R::Deed>>,
    pub(crate) steps: Vec<TraceEntry>,
    /// The versions at some points in time.
    pub(crate) versions: Vec<(u64, Duration)>,
    /// When each request was made, by its number.
    pub(crate) times: BTreeMap<u64, Duration>,
}

impl<R: Inject> Script<R> {
    /// A plan at its beginning, on a server at this version.
    pub(crate) fn new(plan: &Plan<R::Fault>, origin: Instant, version: u64) -> Self {
        let from_start = plan.0.iter().copied().filter(|fault| fault.place() == Place::Start);
        Self {
            armed: false,
            origin,
            requests: 0,
            writes: Vec::new(),
            events: 0,
            hit: from_start.collect(),
            lives: BTreeMap::new(),
            memory: R::Memory::default(),
            first_version: version,
            version,
            deeds: Vec::new(),
            steps: Vec::new(),
            versions: Vec::new(),
            times: BTreeMap::new(),
            plan: plan.clone(),
        }
    }

    pub(crate) fn say(&mut self, who: &str, what: String) {
        let at = self.origin.elapsed();
        self.steps.push(TraceEntry { at, who: who.into(), what });
    }

    /// Ends the process with this connection.
    pub(crate) fn crash(&mut self, client: &str) {
        if let Some(life) = self.lives.get(client) {
            life.end();
        }
        self.deeds.push(Deed::Crash(client.to_owned()));
    }

    /// Does something outside of the server's lock.
    pub(crate) fn do_later(&mut self, deed: R::Deed) {
        self.deeds.push(Deed::Other(deed));
    }

    /// When a version was made, to a tenth of a second. In a watch that lags, an event is looked at only after the events before it.
    fn came_at(&self, version: u64) -> Duration {
        let at = self.versions.partition_point(|(known, _)| *known < version);
        self.versions.get(at).map_or_else(|| self.origin.elapsed(), |(_, time)| *time)
    }

    /// The fault that is due at one of these places.
    fn due(&mut self, places: &[Place]) -> Option<R::Fault> {
        let fault = self.plan.0.iter().copied().find(|fault| places.contains(&fault.place()))?;
        self.say("plan", fault.to_string());
        if !fault.is_tentative() {
            self.hit.insert(fault);
        }
        Some(fault)
    }

    fn request(&mut self, seen: &RequestSeen) -> Fate {
        self.times.insert(seen.number, self.origin.elapsed());
        if !R::has(&seen.client) {
            return Fate::Pass;
        }
        if let Some(fate) = R::before_request(self, seen) {
            return fate;
        }
        if !self.armed {
            return Fate::Pass;
        }
        self.requests += 1;
        if self.requests > REQUESTS_MAX {
            return Fate::SilenceBefore;
        }
        let mut places = vec![Place::Request(self.requests)];
        if seen.verb.is_mutating() && seen.resource != "events" {
            self.writes.push(self.requests);
            places.push(Place::Write(self.writes.len() as u32));
        }
        self.say(&seen.client, described(seen));
        match self.due(&places) {
            Some(fault) => R::at_request(self, fault, seen),
            None => R::at_other_request(self, seen),
        }
    }

    fn event(&mut self, stream: &StreamSeen, event: &EventSeen) -> EventFate {
        if !R::has(&stream.client) {
            return EventFate::Deliver;
        }
        if let Some(fate) = R::before_event(self, stream, event) {
            return fate;
        }
        if !self.armed {
            return EventFate::Deliver;
        }
        self.events += 1;
        let name = event.object["metadata"]["name"].as_str().unwrap_or_default();
        let what = format!("sees {} {} {name} at {}", event.change.name(), stream.resource, event.version);
        self.say(&stream.client, what);
        let object = (stream.resource.clone(), name.to_owned());
        if let Some(fate) = R::at_object(self, &object) {
            return fate;
        }
        if let Some(fault) = self.due(&[Place::Event(self.events)]) {
            return R::at_event(self, fault, object);
        }
        for fault in &self.plan.0 {
            if let Place::EveryEvent(by) = fault.place() {
                self.hit.insert(*fault);
                let due = self.came_at(event.version) + by;
                return EventFate::Delay(due.saturating_sub(self.origin.elapsed()));
            }
        }
        EventFate::Deliver
    }
}

/// The refusal with this code.
pub(crate) fn refusal(code: &str) -> Fate {
    Fate::Fail(Failure::of(code.parse().unwrap_or(500)))
}

/// A request in words: its verb and its object.
pub(crate) fn described(seen: &RequestSeen) -> String {
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
pub(crate) struct Hook<R: Inject>(pub(crate) Arc<Mutex<Script<R>>>, pub(crate) Arc<Notify>);

impl<R: Inject> Hook<R> {
    fn with<T>(&self, decide: impl FnOnce(&mut Script<R>) -> T) -> T {
        let mut script = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let decided = decide(&mut script);
        if !script.deeds.is_empty() {
            self.1.notify_one();
        }
        decided
    }
}

impl<R: Inject> Faults for Hook<R> {
    fn request(&mut self, seen: &RequestSeen) -> Fate {
        self.with(|script| script.request(seen))
    }

    fn event(&mut self, stream: &StreamSeen, event: &EventSeen) -> EventFate {
        self.with(|script| script.event(stream, event))
    }
}
