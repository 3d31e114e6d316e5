//! What goes wrong with gateways.

use std::{fmt, time::Duration};

use crate::plan::{self, AnyFault, Place, milliseconds, parts};

/// How many steps users make, when a plan does not say.
const STEPS: u32 = 30;

/// The first word of a line that repeats a run of the gateway.
pub const VIEWS: &str = "views";

/// What goes wrong in a run. Requests and events are those of the gateways on the API server, counted from 1.
pub type Plan = plan::Plan<Fault>;

/// A line that repeats a run: `views seed=7 plan=steps=24,r3=lost`.
pub type Replay = plan::Replay<Fault>;

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Users make only so many steps. What each is depends on the seed alone.
    Steps(u32),
    /// At a request.
    Request(u32, OnRequest),
    /// At an event of a watch.
    Event(u32, OnEvent),
    /// Every event comes this late.
    Lag(Duration),
    /// Lists that may be old are this many versions old.
    Stale(u64),
    /// Two gateways serve, in turns.
    Two,
}

words! {
    /// A fault at a request of a gateway.
    OnRequest {
        Lost = "lost": "the connection breaks before it arrives",
        LostReply = "lost-reply": "it is carried out, and the reply is lost",
        Silence = "silence": "it is carried out, and no reply ever comes",
        Late = "late": "it is carried out late",
        LateReply = "late-reply": "it is carried out, and the reply comes late",
        Forbidden = "403": "is answered 403",
        TooMany = "429": "is answered 429 with Retry-After",
        Internal = "500": "is answered 500",
        Unavailable = "503": "is answered 503",
        Timeout = "504": "is answered 504",
        Crash = "crash": "the gateway ends before it is sent, and another starts",
        CrashAfter = "crash-after": "the gateway ends after it was carried out, and another starts",
        Restart = "restart": "the API server restarts: it answers nothing for a while, and all watches end",
        RestartCompacted = "restart-compacted": "the same, and it has forgotten its history",
        Swap = "swap": "the View of Llamas names its other module",
        SwapPods = "swap-pods": "the View of FarmPods names its other module",
        SwapMissing = "swap-missing":
            "the View of Llamas names a module that does not exist, and after a while the earlier one again",
        Suspend = "suspend": "the View of Llamas is suspended for a while",
        Remake = "remake": "the View of Llamas is deleted, and made again after a while",
        Edit = "edit": "somebody edits the stored object that it is about",
        Delete = "delete": "somebody deletes the stored object that it is about",
        Recreate = "recreate":
            "somebody deletes the stored object that it is about, and makes another with its name",
        LateCalls = "late-calls": "the next calls of `show` meet their deadline",
    }
}

words! {
    /// A fault at an event of a watch of a gateway.
    OnEvent {
        Late = "late": "it comes late, and so do the later events of this watch",
        Close = "close": "the connection of the watch is closed before it",
        Gone = "gone": "the watch ends with 410 Gone",
        Compact = "compact": "the history is compacted, and all watches are closed",
        Swap = "swap": "the View of Llamas names its other module",
    }
}

impl Fault {
    /// What it is counted by: its text without a number. How many steps users make is no fault that happens.
    pub(super) fn class(&self) -> Option<String> {
        let text = self.to_string();
        let (kind, number, what) = parts(&text);
        let class = if number.is_empty() { kind.into() } else { format!("{kind}={what}") };
        (kind != "steps").then_some(class)
    }
}

impl Plan {
    /// How many steps users make.
    pub(super) fn steps(&self) -> u32 {
        let steps = self.0.iter().find_map(|fault| match fault {
            Fault::Steps(steps) => Some(*steps),
            _ => None,
        });
        steps.unwrap_or(STEPS)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Steps(steps) => write!(f, "steps={steps}"),
            Self::Request(number, what) => write!(f, "r{number}={}", what.word()),
            Self::Event(number, what) => write!(f, "e{number}={}", what.word()),
            Self::Lag(by) => write!(f, "lag={}ms", by.as_millis()),
            Self::Stale(versions) => write!(f, "stale={versions}"),
            Self::Two => f.write_str("two"),
        }
    }
}

impl AnyFault for Fault {
    fn read(word: &str) -> Option<Self> {
        Some(match parts(word) {
            ("steps", "", steps) => Self::Steps(steps.parse().ok()?),
            ("r", number, what) => Self::Request(number.parse().ok()?, OnRequest::of(what)?),
            ("e", number, what) => Self::Event(number.parse().ok()?, OnEvent::of(what)?),
            ("lag", "", by) => Self::Lag(milliseconds(by)?),
            ("stale", "", versions) => Self::Stale(versions.parse().ok()?),
            _ if word == "two" => Self::Two,
            _ => return None,
        })
    }

    fn place(&self) -> Place {
        match *self {
            Self::Request(number, _) => Place::Request(number),
            Self::Event(number, _) => Place::Event(number),
            Self::Lag(by) => Place::EveryEvent(by),
            Self::Stale(_) => Place::Everywhere,
            Self::Steps(_) | Self::Two => Place::Start,
        }
    }

    fn doubles(&self) -> bool {
        *self == Self::Two
    }

    fn shorter(replay: &Replay) -> Vec<Replay> {
        let steps = replay.plan.steps();
        let mut shorter = replay.with_one_less();
        shorter.retain(|shorter| shorter.plan.steps() <= steps);
        let halves = std::iter::successors(Some(steps / 2), |less| Some(less / 2));
        let faults = replay.plan.0.iter().copied().filter(|fault| !matches!(fault, Self::Steps(_)));
        shorter.extend(halves.take_while(|less| *less > 0).map(|less| {
            let plan = Plan::of([Self::Steps(steps - less)].into_iter().chain(faults.clone()));
            Replay { plan, ..replay.clone() }
        }));
        shorter
    }
}
