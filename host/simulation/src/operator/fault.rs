//! What goes wrong with hosts.

use std::{fmt, time::Duration};

use super::Class;
use crate::{
    plan::{self, AnyFault, Place, milliseconds, parts},
    run::TraceEntry,
};

/// The faults of a run. Writes, requests and events are those of the hosts, counted from 1 since the first step of the scenario.
pub type Plan = plan::Plan<Fault>;

/// A line that repeats a run of a scenario.
pub type Replay = plan::Replay<Fault>;

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// At the write with this number. Events and the Lease are not counted.
    Write(u32, OnWrite),
    /// At a request, reads and watches included.
    Request(u32, OnRequest),
    /// At an event of a watch.
    Event(u32, OnEvent),
    /// Every event comes this late.
    Lag(Duration),
    /// The wall clocks of the hosts differ: each is this far behind the one before it.
    Skew(Duration),
    /// A second host runs, and both take part in the election.
    Rival,
}

/// The word for a second host in a plan.
pub(super) const RIVAL: &str = "rival";

/// What a fault may affect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// The root of a request.
    Request,
    /// The root that somebody changes.
    Root,
    /// The roots of one kind.
    Kind,
    /// Everything that the hosts do.
    Everybody,
}

words! {
    /// A fault at a write.
    OnWrite in Class {
        CrashBefore = "crash-before", LostWrite: "the host ends before it is sent, and another one starts",
        CrashAfter = "crash-after", Crash:
            "the host ends when it was carried out, and another one starts without its memory",
        LostBefore = "lost-before", LostWrite: "the connection breaks before it arrives",
        LostReply = "lost-reply", LostWrite:
            "the connection breaks after it was carried out, so that its reply is lost",
        Silence = "silence", LostWrite: "no reply ever comes, though it was carried out",
        TimeTravel = "time-travel", OldView:
            "the host ends, and the next one is first shown the cluster as it was a moment before",
        FarTimeTravel = "far-time-travel", OldView:
            "the host ends, and the next one is first shown the cluster as it was at the beginning",
        Partition = "partition", Rivals: "the host cannot reach the API server for 15 seconds",
        Edit = "edit", Meddling: "somebody edits what was written",
        Delete = "delete", Meddling: "somebody deletes what was written",
        StripLabels = "strip-labels", Meddling: "somebody takes the host's labels off what was written",
        StripOwner = "strip-owner", Meddling: "somebody takes the owner off what was written",
        StripManaged = "strip-managed", Meddling: "somebody empties the managed fields of what was written",
        EditStatus = "edit-status", Meddling: "somebody empties the conditions of the root",
        Recreate = "recreate", Recreated: "somebody deletes the root and makes it again with the same name",
        Churn = "churn", Churn: "somebody empties the root's spec, and puts it back after 5 seconds",
        SwapTraps = "swap-traps", BadSwap: "the Reconciler names a module that traps, for 5 seconds",
        SwapBroken = "swap-broken", BrokenSwap:
            "the Reconciler names a module whose answer is no JSON, for 5 seconds",
        SwapLoops = "swap-loops", BrokenSwap: "the Reconciler names a module that never ends, for 5 seconds",
        SwapAllocates = "swap-allocates", BrokenSwap:
            "the Reconciler names a module that takes too much memory, for 5 seconds",
        SwapMissing = "swap-missing", BadSwap:
            "the Reconciler names a module that does not exist, for 5 seconds",
        ClockBack = "clock-back", Clocks: "the host's wall clock goes back by an hour",
        ClockAhead = "clock-ahead", Clocks: "the host's wall clock goes ahead by an hour",
    }
}

words! {
    /// A fault at a request.
    OnRequest {
        Unauthorized = "401": "is answered 401",
        Forbidden = "403": "is answered 403",
        Conflict = "409": "is answered 409",
        TooMany = "429": "is answered 429",
        Internal = "500": "is answered 500",
        Unavailable = "503": "is answered 503",
        Timeout = "504": "is answered 504",
        Lost = "lost": "is lost: the connection breaks before it arrives",
        Burst = "burst": "and the nine after it are answered 503",
        Late = "late": "is carried out two seconds late",
    }
}

words! {
    /// A fault at an event of a watch.
    OnEvent in Class {
        Hide = "hide", HiddenEvent: "never comes; 20 seconds later everything is listed anew",
        HidePair = "hide-pair", HiddenEvent:
            "never comes, and neither does the next one about the same object; then everything is listed anew",
        Late = "late", DisorderedEvent: "comes two seconds late, so that events of other watches overtake it",
        Duplicate = "duplicate", DisorderedEvent: "comes twice",
        Close = "close", EndedWatch:
            "does not come, since the watch is closed before it, and opened again",
        Gone = "gone", EndedWatch:
            "does not come, since the watch is ended with 410 Gone, and everything is listed anew",
        Compact = "compact", EndedWatch: "is followed by the end of all watches: everything is listed anew",
    }
}

impl Fault {
    /// Its class in docs/simulator.md.
    pub fn class(&self) -> Class {
        match self {
            Self::Write(_, what) => what.class(),
            Self::Request(..) => Class::FailedRequest,
            Self::Event(_, what) => what.class(),
            Self::Lag(_) => Class::Lag,
            Self::Skew(_) => Class::Clocks,
            Self::Rival => Class::Rivals,
        }
    }

    /// What it may affect besides its own place.
    pub(super) fn reach(&self) -> Reach {
        if matches!(self, Self::Write(_, OnWrite::CrashBefore) | Self::Request(_, OnRequest::Burst)) {
            return Reach::Everybody;
        }
        match self.class() {
            Class::LostWrite | Class::FailedRequest => Reach::Request,
            Class::Meddling | Class::Recreated | Class::Churn => Reach::Root,
            Class::BadSwap | Class::BrokenSwap => Reach::Kind,
            _ => Reach::Everybody,
        }
    }

    /// Whether it crashes a host.
    pub fn crashes(&self) -> bool {
        matches!(self, Self::Write(_, OnWrite::CrashBefore))
            || matches!(self.class(), Class::Crash | Class::OldView)
    }

    /// Whether somebody other than the host changes something. Then the host has more to do than without the fault.
    pub fn meddles(&self) -> bool {
        self.class().meddles()
    }

    /// What happens, as a sentence without a full stop. Its place is told as in the trace of the run.
    pub fn in_words(&self, steps: &[TraceEntry]) -> String {
        let text = self.to_string();
        let told = steps.iter().position(|step| step.who == "plan" && step.what == text);
        let at = told.and_then(|told| steps.get(told.checked_sub(1)?));
        let at = at.map_or_else(String::new, |step| format!(" ({})", step.what));
        match self {
            Self::Write(number, what) => format!("at write {number}{at} {}", what.in_words()),
            Self::Request(number, what) => format!("request {number}{at} {}", what.in_words()),
            Self::Event(number, what) => format!("event {number}{at} {}", what.in_words()),
            Self::Lag(by) => format!("every event of a watch comes {} ms late", by.as_millis()),
            Self::Skew(by) => format!("the wall clocks of the hosts differ by {} ms", by.as_millis()),
            Self::Rival => "a second host stands by, and both stand for election".into(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(number, what) => write!(f, "w{number}={}", what.word()),
            Self::Request(number, what) => write!(f, "r{number}={}", what.word()),
            Self::Event(number, what) => write!(f, "e{number}={}", what.word()),
            Self::Lag(by) => write!(f, "lag={}ms", by.as_millis()),
            Self::Skew(by) => write!(f, "skew={}ms", by.as_millis()),
            Self::Rival => f.write_str(RIVAL),
        }
    }
}

impl AnyFault for Fault {
    fn read(word: &str) -> Option<Self> {
        Some(match parts(word) {
            ("w", number, what) => Self::Write(number.parse().ok()?, OnWrite::of(what)?),
            ("r", number, what) => Self::Request(number.parse().ok()?, OnRequest::of(what)?),
            ("e", number, what) => Self::Event(number.parse().ok()?, OnEvent::of(what)?),
            ("lag", "", by) => Self::Lag(milliseconds(by)?),
            ("skew", "", by) => Self::Skew(milliseconds(by)?),
            _ if word == RIVAL => Self::Rival,
            _ => return None,
        })
    }

    fn place(&self) -> Place {
        match *self {
            Self::Write(number, _) => Place::Write(number),
            Self::Request(number, _) => Place::Request(number),
            Self::Event(number, _) => Place::Event(number),
            Self::Lag(by) => Place::EveryEvent(by),
            Self::Skew(_) | Self::Rival => Place::Start,
        }
    }

    fn doubles(&self) -> bool {
        *self == Self::Rival
    }

    fn is_tentative(&self) -> bool {
        self.meddles()
    }

    fn shorter(replay: &Replay) -> Vec<Replay> {
        let mut shorter = replay.with_one_less();
        // A plan with one fault uses the seed only for names and uids.
        shorter.extend((replay.seed != 0).then(|| Replay { seed: 0, ..replay.clone() }));
        shorter
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_told_with_its_place() {
        let step =
            |who: &str, what: &str| TraceEntry { at: Duration::ZERO, who: who.into(), what: what.into() };
        let fault = Fault::Write(3, OnWrite::Edit);
        let steps = [step("host-1", "apply configmaps a"), step("plan", "w3=edit")];
        assert_eq!(fault.in_words(&steps), "at write 3 (apply configmaps a) somebody edits what was written");
        assert_eq!(fault.in_words(&[]), "at write 3 somebody edits what was written");
    }
}
