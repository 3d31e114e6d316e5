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
        /// The host ends before it is sent.
        CrashBefore = "crash-before",
        /// The host ends after the write was carried out, before it gets the reply.
        CrashAfter = "crash-after",
        /// The connection breaks before it arrives.
        LostBefore = "lost-before",
        /// It is carried out, and the reply is lost.
        LostReply = "lost-reply",
        /// It is carried out, and no reply ever comes.
        Silence = "silence",
        /// The host ends after the write was carried out. The next one first lists the state of a few versions ago.
        TimeTravel = "time-travel",
        /// The same, with the state at the scenario's first step.
        FarTimeTravel = "far-time-travel",
        /// The host cannot reach the API server for 15 seconds after it.
        Partition = "partition",
        /// Somebody edits what was written.
        Edit = "edit",
        /// Somebody deletes what was written, unless it is the root.
        Delete = "delete",
        /// Somebody removes our labels from what was written.
        StripLabels = "strip-labels",
        /// Somebody removes the owner reference from what was written, and restores it after 5 seconds.
        StripOwner = "strip-owner",
        /// Somebody empties the managed fields of what was written.
        StripManaged = "strip-managed",
        /// Somebody writes into the status of the root.
        EditStatus = "edit-status",
        /// The root is deleted, and created again with the same name.
        Recreate = "recreate",
        /// The root's spec is emptied, or changed as far as its CRD allows, and restored after 5 seconds.
        Churn = "churn",
        /// The Reconciler names a module that traps, and after 5 seconds the earlier module again.
        SwapTraps = "swap-traps",
        /// The same with a module whose answer is not JSON.
        SwapBroken = "swap-broken",
        /// The same with a module that never ends.
        SwapLoops = "swap-loops",
        /// The same with a module that takes too much memory.
        SwapAllocates = "swap-allocates",
        /// The same with a module that does not exist.
        SwapMissing = "swap-missing",
        /// The host's wall clock goes back by an hour.
        ClockBack = "clock-back",
        /// The host's wall clock goes ahead by an hour.
        ClockAhead = "clock-ahead",
    }
}

words! {
    /// A fault at a request.
    OnRequest {
        /// 401
        Unauthorized = "401",
        /// 403
        Forbidden = "403",
        /// 409
        Conflict = "409",
        /// 429 with Retry-After
        TooMany = "429",
        /// 500
        Internal = "500",
        /// 503
        Unavailable = "503",
        /// 504
        Timeout = "504",
        /// The connection breaks before it arrives.
        Lost = "lost",
        /// This request and the nine after it are answered 503.
        Burst = "burst",
        /// It is carried out two seconds late.
        Late = "late",
    }
}

words! {
    /// A fault at an event of a watch.
    OnEvent {
        /// It never comes. Only a new list shows its content.
        Hide = "hide",
        /// Neither this event nor the next one about the same object comes. Then 410 Gone follows.
        HidePair = "hide-pair",
        /// It comes two seconds late, and so do the later events of this watch. Events of other watches overtake it.
        Late = "late",
        /// It comes twice.
        Duplicate = "duplicate",
        /// The connection of the watch is closed before it.
        Close = "close",
        /// The watch ends with 410 Gone, and everything is listed again.
        Gone = "gone",
        /// The history is compacted, and all watches are closed, so everything is listed again.
        Compact = "compact",
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
