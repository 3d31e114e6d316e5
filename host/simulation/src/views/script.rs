//! What the faults of a plan do to gateways.

use std::time::Duration;

use pintle_simulator::{EventFate, EventSeen, Fate, RequestSeen as Request, StreamSeen, Verb};

use super::{
    Gateways,
    fault::{Fault, OnEvent, OnRequest},
};
use crate::{
    run::Replicas,
    script::{Inject, LATE, Object, refusal},
};

/// How long after a request somebody else acts, before the gateway gets the reply.
const MEANWHILE: Duration = Duration::from_millis(20);
/// How long an API server is away when it restarts.
const AWAY: Duration = Duration::from_secs(3);

/// What must be done outside of the server's lock.
pub(crate) enum Deed {
    /// The API server closes its watches; it may forget its history too.
    Close { forgets: bool },
    /// Somebody acts, perhaps on the object with this name.
    Meddle(OnRequest, Option<String>),
}

/// What is known of faults so far.
#[derive(Default)]
pub(crate) struct Memory {
    /// Until when the API server answers nothing.
    away_until: Duration,
}

/// The plan and its progress.
pub(super) type Script = crate::script::Script<Gateways>;

impl Inject for Gateways {
    type Deed = Deed;
    type Memory = Memory;

    fn before_request(script: &mut Script, seen: &Request) -> Option<Fate> {
        if seen.resource == "events" {
            return Some(Fate::Pass);
        }
        let is_away = script.armed && script.origin.elapsed() < script.memory.away_until;
        is_away.then_some(Fate::LoseBefore)
    }

    fn at_request(script: &mut Script, fault: Fault, seen: &Request) -> Fate {
        let Fault::Request(_, what) = fault else { return Fate::Pass };
        match what {
            OnRequest::Lost => Fate::LoseBefore,
            OnRequest::LostReply => Fate::LoseAfter,
            OnRequest::Silence => Fate::SilenceAfter,
            OnRequest::Late => Fate::Delay(LATE),
            OnRequest::LateReply => Fate::DelayReply(LATE),
            OnRequest::Forbidden
            | OnRequest::TooMany
            | OnRequest::Internal
            | OnRequest::Unavailable
            | OnRequest::Timeout => refusal(what.word()),
            OnRequest::Crash | OnRequest::CrashAfter => {
                script.crash(&seen.client);
                if what == OnRequest::Crash { Fate::SilenceBefore } else { Fate::SilenceAfter }
            }
            OnRequest::Restart | OnRequest::RestartCompacted => {
                script.memory.away_until = script.origin.elapsed() + AWAY;
                script.do_later(Deed::Close { forgets: what == OnRequest::RestartCompacted });
                Fate::LoseBefore
            }
            _ => {
                let is_stored = matches!(seen.resource.as_str(), "llamarecords" | "pods");
                script.do_later(Deed::Meddle(what, seen.name.clone().filter(|_| is_stored)));
                Fate::DelayReply(MEANWHILE)
            }
        }
    }

    fn at_other_request(script: &mut Script, seen: &Request) -> Fate {
        let mut faults = script.plan.0.iter().copied();
        let stale = faults.find_map(|fault| match fault {
            Fault::Stale(versions) => Some((fault, versions)),
            _ => None,
        });
        // The API server promises a version, and none that is newer.
        let promised = seen.resource_version.as_ref().and_then(|version| version.parse::<u64>().ok());
        let (Verb::List, Some((fault, versions)), Some(promised)) = (seen.verb, stale, promised) else {
            return Fate::Pass;
        };
        script.hit.insert(fault);
        Fate::AsOf(script.version.saturating_sub(versions).max(promised))
    }

    fn before_event(script: &mut Script, _: &StreamSeen, event: &EventSeen) -> Option<EventFate> {
        script.version = script.version.max(event.version);
        None
    }

    fn at_event(script: &mut Script, fault: Fault, _: Object) -> EventFate {
        let Fault::Event(_, what) = fault else { return EventFate::Deliver };
        match what {
            OnEvent::Late => EventFate::Delay(LATE),
            OnEvent::Close => EventFate::Close,
            OnEvent::Gone => EventFate::Gone,
            OnEvent::Compact => {
                script.do_later(Deed::Close { forgets: true });
                EventFate::Deliver
            }
            OnEvent::Swap => {
                script.do_later(Deed::Meddle(OnRequest::Swap, None));
                EventFate::Deliver
            }
        }
    }
}

/// Whether a connection is a gateway's.
pub(super) fn is_gateway(client: &str) -> bool {
    Gateways::has(client)
}
