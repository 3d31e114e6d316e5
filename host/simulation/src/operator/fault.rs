//! What goes wrong with hosts.

use std::{fmt, time::Duration};

use super::Class;
use crate::plan::{self, AnyFault, Place, milliseconds, parts};

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
    OnWrite {
        CrashBefore = "crash-before": "the host ends before it is sent, and another one starts",
        CrashAfter = "crash-after":
            "the host ends when it was carried out, and another one starts without its memory",
        LostBefore = "lost-before": "the connection breaks before it arrives",
        LostReply = "lost-reply": "the connection breaks after it was carried out, so that its reply is lost",
        Silence = "silence": "no reply ever comes, though it was carried out",
        TimeTravel = "time-travel":
            "the host ends, and the next one is first shown the cluster as it was a moment before",
        FarTimeTravel = "far-time-travel":
            "the host ends, and the next one is first shown the cluster as it was at the beginning",
        Partition = "partition": "the host cannot reach the API server for 15 seconds",
        Edit = "edit": "somebody edits what was written",
        Delete = "delete": "somebody deletes what was written",
        StripLabels = "strip-labels": "somebody takes the host's labels off what was written",
        StripOwner = "strip-owner": "somebody takes the owner off what was written",
        StripManaged = "strip-managed": "somebody empties the managed fields of what was written",
        EditStatus = "edit-status": "somebody empties the conditions of the root",
        Recreate = "recreate": "somebody deletes the root and makes it again with the same name",
        Churn = "churn": "somebody empties the root's spec, and puts it back after 5 seconds",
        SwapTraps = "swap-traps": "the Reconciler names a module that traps, for 5 seconds",
        SwapBroken = "swap-broken": "the Reconciler names a module whose answer is no JSON, for 5 seconds",
        SwapLoops = "swap-loops": "the Reconciler names a module that never ends, for 5 seconds",
        SwapAllocates = "swap-allocates":
            "the Reconciler names a module that takes too much memory, for 5 seconds",
        SwapMissing = "swap-missing": "the Reconciler names a module that does not exist, for 5 seconds",
        ClockBack = "clock-back": "the host's wall clock goes back by an hour",
        ClockAhead = "clock-ahead": "the host's wall clock goes ahead by an hour",
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
    OnEvent {
        Hide = "hide": "never comes; 20 seconds later everything is listed anew",
        HidePair = "hide-pair":
            "never comes, and neither does the next one about the same object; then everything is listed anew",
        Late = "late": "comes two seconds late, so that events of other watches overtake it",
        Duplicate = "duplicate": "comes twice",
        Close = "close": "does not come, since the watch is closed before it, and opened again",
        Gone = "gone": "does not come, since the watch is ended with 410 Gone, and everything is listed anew",
        Compact = "compact": "is followed by the end of all watches: everything is listed anew",
    }
}

impl Fault {
    /// Its class in docs/simulator.md.
    pub fn class(&self) -> Class {
        match self {
            Self::Write(_, what) => match what {
                OnWrite::CrashAfter => Class::Crash,
                OnWrite::CrashBefore | OnWrite::LostBefore | OnWrite::LostReply | OnWrite::Silence => {
                    Class::LostWrite
                }
                OnWrite::TimeTravel | OnWrite::FarTimeTravel => Class::OldView,
                OnWrite::Partition => Class::Rivals,
                OnWrite::Edit
                | OnWrite::Delete
                | OnWrite::StripLabels
                | OnWrite::StripOwner
                | OnWrite::StripManaged
                | OnWrite::EditStatus => Class::Meddling,
                OnWrite::Recreate => Class::Recreated,
                OnWrite::Churn => Class::Churn,
                OnWrite::SwapMissing | OnWrite::SwapTraps => Class::BadSwap,
                OnWrite::SwapBroken | OnWrite::SwapLoops | OnWrite::SwapAllocates => Class::BrokenSwap,
                OnWrite::ClockBack | OnWrite::ClockAhead => Class::Clocks,
            },
            Self::Request(..) => Class::FailedRequest,
            Self::Event(_, what) => match what {
                OnEvent::Hide | OnEvent::HidePair => Class::HiddenEvent,
                OnEvent::Late | OnEvent::Duplicate => Class::DisorderedEvent,
                OnEvent::Close | OnEvent::Gone | OnEvent::Compact => Class::EndedWatch,
            },
            Self::Lag(_) => Class::Lag,
            Self::Skew(_) => Class::Clocks,
            Self::Rival => Class::Rivals,
        }
    }

    /// What it may affect besides its own place.
    pub(super) fn reach(&self) -> Reach {
        match (self, self.class()) {
            (Self::Write(_, OnWrite::CrashBefore) | Self::Request(_, OnRequest::Burst), _) => {
                Reach::Everybody
            }
            (_, Class::LostWrite | Class::FailedRequest) => Reach::Request,
            (_, Class::Meddling | Class::Recreated | Class::Churn) => Reach::Root,
            (_, Class::BadSwap | Class::BrokenSwap) => Reach::Kind,
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

    fn samples() -> Vec<Self> {
        let mut all =
            vec![Self::Lag(Duration::from_millis(30)), Self::Skew(Duration::from_secs(1)), Self::Rival];
        all.extend(OnWrite::ALL.iter().map(|what| Self::Write(3, *what)));
        all.extend(OnRequest::ALL.iter().map(|what| Self::Request(3, *what)));
        all.extend(OnEvent::ALL.iter().map(|what| Self::Event(3, *what)));
        all
    }

    fn shorter(replay: &Replay) -> Vec<Replay> {
        let mut shorter = replay.with_one_less();
        // A plan with one fault uses the seed only for names and uids.
        shorter.extend((replay.seed != 0).then(|| Replay { seed: 0, ..replay.clone() }));
        shorter
    }
}
