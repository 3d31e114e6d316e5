//! What the faults of a plan do to hosts.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::SignedDuration;
use pintle_simulator::{EventFate, EventSeen, Fate, RequestSeen as Request, StreamSeen, Verb};
use pintle_wit::ObjectRef;

use super::{
    Hosts,
    fault::{Fault, OnEvent, OnRequest, OnWrite, Reach},
};
use crate::{
    run::Replicas,
    script::{Inject, LATE, Object, refusal},
};

/// How long an event may be missing before the watch starts again. No real cluster hides an event for ever.
const HIDDEN_FOR: Duration = Duration::from_secs(20);
/// How many versions old the lists for a host with an old view are.
const TRAVEL_VERSIONS: u64 = 6;

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

/// What must be done outside of the server's lock.
pub(crate) enum Deed {
    CutOff(String),
    Meddle(Fault, OnWrite, Box<Request>),
    Relist(Duration),
}

/// What is known of faults and of changes so far.
#[derive(Default)]
pub(crate) struct Memory {
    /// The objects that faults concern, for faults that do not concern all objects.
    pub(super) troubled: Vec<Troubled>,
    /// The changes that somebody made.
    pub(super) asked: Vec<Asked>,
    /// How many of the next requests are refused.
    burst: u32,
    /// The version that the next host first sees.
    pub(super) travel: Option<u64>,
    /// The lists that hosts with an old view have already made.
    pub(super) travellers: BTreeMap<String, (u64, BTreeSet<(String, String)>)>,
    hidden: Option<Object>,
}

/// The plan and its progress.
pub(super) type Script = crate::script::Script<Hosts>;

impl Inject for Hosts {
    type Deed = Deed;
    type Memory = Memory;

    fn before_request(script: &mut Script, seen: &Request) -> Option<Fate> {
        if let Some((version, listed)) = script.memory.travellers.get_mut(&seen.client)
            && seen.verb == Verb::List
            && !is_own(seen)
            && listed.insert((seen.resource.clone(), seen.namespace.clone().unwrap_or_default()))
        {
            let version = *version;
            script.say(&seen.client, format!("list {} as of version {version}", seen.resource));
            return Some(Fate::AsOf(version));
        }
        is_about_hosts(seen).then_some(Fate::Pass)
    }

    fn at_request(script: &mut Script, fault: Fault, seen: &Request) -> Fate {
        if fault.reach() == Reach::Request {
            script.memory.troubled.push(Troubled::Request(seen.number));
        }
        match fault {
            Fault::Write(_, what) => script.on_write(fault, what, seen),
            Fault::Request(_, what) => script.on_request(what),
            _ => Fate::Pass,
        }
    }

    fn at_other_request(script: &mut Script, _: &Request) -> Fate {
        if script.memory.burst == 0 {
            return Fate::Pass;
        }
        script.memory.burst -= 1;
        refusal("503")
    }

    fn before_event(script: &mut Script, stream: &StreamSeen, event: &EventSeen) -> Option<EventFate> {
        script.version = event.version;
        let is_first = script.memory.travellers.contains_key(&stream.client) && event.number == 1;
        is_first.then_some(EventFate::Delay(LATE))
    }

    fn at_object(script: &mut Script, object: &Object) -> Option<EventFate> {
        script.memory.hidden.take_if(|hidden| *hidden == *object).map(|_| EventFate::Gone)
    }

    fn at_event(script: &mut Script, fault: Fault, object: Object) -> EventFate {
        let Fault::Event(_, what) = fault else { return EventFate::Deliver };
        match what {
            OnEvent::Hide | OnEvent::HidePair => {
                if what == OnEvent::HidePair {
                    script.memory.hidden = Some(object);
                }
                script.do_later(Deed::Relist(HIDDEN_FOR));
                EventFate::Hide
            }
            OnEvent::Late => EventFate::Delay(LATE),
            OnEvent::Duplicate => EventFate::Duplicate,
            OnEvent::Close => EventFate::Close,
            OnEvent::Gone => EventFate::Gone,
            OnEvent::Compact => {
                script.do_later(Deed::Relist(Duration::ZERO));
                EventFate::Deliver
            }
        }
    }
}

impl Script {
    fn on_write(&mut self, fault: Fault, what: OnWrite, seen: &Request) -> Fate {
        if fault.crashes() {
            self.crash(&seen.client);
        }
        match what {
            OnWrite::CrashBefore => Fate::SilenceBefore,
            OnWrite::CrashAfter | OnWrite::Silence => Fate::SilenceAfter,
            OnWrite::TimeTravel | OnWrite::FarTimeTravel => {
                let by = if what == OnWrite::TimeTravel { TRAVEL_VERSIONS } else { u64::MAX };
                self.memory.travel = Some(self.version.saturating_sub(by).max(self.first_version));
                Fate::SilenceAfter
            }
            OnWrite::LostBefore => Fate::LoseBefore,
            OnWrite::LostReply => Fate::LoseAfter,
            OnWrite::Partition => {
                self.do_later(Deed::CutOff(seen.client.clone()));
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
                self.do_later(Deed::Meddle(fault, what, Box::new(seen.clone())));
                Fate::Pass
            }
        }
    }

    fn on_request(&mut self, what: OnRequest) -> Fate {
        match what {
            OnRequest::Lost => Fate::LoseBefore,
            OnRequest::Late => Fate::Delay(LATE),
            OnRequest::Burst => {
                self.memory.burst = 9;
                refusal("503")
            }
            code => refusal(code.word()),
        }
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
