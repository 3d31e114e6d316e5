//! The faults of a run of the gateway, as text that replays it: `steps=24,r7=lost-reply,e3=gone`.

use std::{fmt, str::FromStr, time::Duration};

use crate::operator::PlanError;

/// How many steps users make, when a plan does not say.
pub const STEPS: u32 = 30;

/// What users do, and what goes wrong. Requests and events are those of the gateways on the API server, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Plan {
    /// How many steps users make. What each is depends on the seed alone.
    pub steps: u32,
    /// The faults.
    pub faults: Vec<Fault>,
}

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
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
        /// The connection breaks before it arrives.
        Lost = "lost",
        /// It is carried out, and the reply is lost.
        LostReply = "lost-reply",
        /// It is carried out, and no reply ever comes.
        Silence = "silence",
        /// It is carried out late.
        Late = "late",
        /// It is carried out, and the reply comes late.
        LateReply = "late-reply",
        /// 403
        Forbidden = "403",
        /// 429 with Retry-After
        TooMany = "429",
        /// 500
        Internal = "500",
        /// 503
        Unavailable = "503",
        /// 504
        Timeout = "504",
        /// The gateway ends before it is sent, and another starts.
        Crash = "crash",
        /// The gateway ends after it was carried out, and another starts.
        CrashAfter = "crash-after",
        /// The API server restarts: it answers nothing for a while, and all watches end.
        Restart = "restart",
        /// The same, and it has forgotten its history.
        RestartCompacted = "restart-compacted",
        /// The View of Llamas names its other module.
        Swap = "swap",
        /// The View of FarmPods names its other module.
        SwapPods = "swap-pods",
        /// The View of Llamas names a module that does not exist, and after a while the earlier one again.
        SwapMissing = "swap-missing",
        /// The View of Llamas is suspended for a while.
        Suspend = "suspend",
        /// The View of Llamas is deleted, and made again after a while.
        Remake = "remake",
        /// Somebody edits the stored object that it is about.
        Edit = "edit",
        /// Somebody deletes the stored object that it is about.
        Delete = "delete",
        /// Somebody deletes the stored object that it is about, and makes another with its name.
        Recreate = "recreate",
        /// The next calls of `show` meet their deadline.
        LateCalls = "late-calls",
    }
}

words! {
    /// A fault at an event of a watch of a gateway.
    OnEvent {
        /// It comes late, and so do the later events of this watch.
        Late = "late",
        /// The connection of the watch is closed before it.
        Close = "close",
        /// The watch ends with 410 Gone.
        Gone = "gone",
        /// The history is compacted, and all watches are closed.
        Compact = "compact",
        /// The View of Llamas names its other module.
        Swap = "swap",
    }
}

impl OnRequest {
    /// Whether the gateway ends.
    pub fn crashes(self) -> bool {
        matches!(self, Self::Crash | Self::CrashAfter)
    }
}

impl Fault {
    /// The word by which it is counted.
    pub fn word(&self) -> String {
        match self {
            Self::Request(_, what) => format!("r={}", what.word()),
            Self::Event(_, what) => format!("e={}", what.word()),
            Self::Lag(_) => "lag".into(),
            Self::Stale(_) => "stale".into(),
            Self::Two => "two".into(),
        }
    }
}

impl Default for Plan {
    fn default() -> Self {
        Self { steps: STEPS, faults: Vec::new() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request(number, what) => write!(f, "r{number}={}", what.word()),
            Self::Event(number, what) => write!(f, "e{number}={}", what.word()),
            Self::Lag(by) => write!(f, "lag={}ms", by.as_millis()),
            Self::Stale(versions) => write!(f, "stale={versions}"),
            Self::Two => f.write_str("two"),
        }
    }
}

impl FromStr for Fault {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        let wrong = || PlanError::Fault(text.into());
        if text == "two" {
            return Ok(Self::Two);
        }
        let (at, what) = text.split_once('=').ok_or_else(wrong)?;
        match at {
            "lag" => {
                let number = what.strip_suffix("ms").and_then(|number| number.parse().ok());
                return number.map(Duration::from_millis).map(Self::Lag).ok_or_else(wrong);
            }
            "stale" => return what.parse().map(Self::Stale).map_err(|_| wrong()),
            _ => {}
        }
        let (kind, number) = at.split_at_checked(1).ok_or_else(wrong)?;
        let number = number.parse().map_err(|_| wrong())?;
        let fault = match kind {
            "r" => OnRequest::of(what).map(|what| Self::Request(number, what)),
            "e" => OnEvent::of(what).map(|what| Self::Event(number, what)),
            _ => None,
        };
        fault.ok_or_else(wrong)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "steps={}", self.steps)?;
        self.faults.iter().try_for_each(|fault| write!(f, ",{fault}"))
    }
}

impl FromStr for Plan {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        let mut words = text.split(',');
        let first = words.next().unwrap_or_default();
        let steps = first.strip_prefix("steps=").and_then(|number| number.parse().ok());
        let steps = steps.ok_or_else(|| PlanError::Fault(first.into()))?;
        Ok(Self { steps, faults: words.map(str::parse).collect::<Result<_, _>>()? })
    }
}

/// The first word of a line that repeats a run of the gateway.
pub const VIEWS: &str = "views";

/// A line that repeats a run: `views seed=7 plan=steps=24,r3=lost`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Replay {
    /// The seed of what users do, and of uids.
    pub seed: u64,
    /// The plan.
    pub plan: Plan,
}

impl fmt::Display for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{VIEWS} seed={} plan={}", self.seed, self.plan)
    }
}

impl FromStr for Replay {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        let wrong = || PlanError::Replay(text.into());
        let words: Vec<&str> = text.split_whitespace().collect();
        let [VIEWS, seed, plan] = words.as_slice() else { return Err(wrong()) };
        let seed = seed.strip_prefix("seed=").and_then(|seed| seed.parse().ok()).ok_or_else(wrong)?;
        Ok(Self { seed, plan: plan.strip_prefix("plan=").ok_or_else(wrong)?.parse()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_replays_the_plan_that_it_was_made_of() {
        let mut faults = vec![Fault::Lag(Duration::from_millis(200)), Fault::Stale(7), Fault::Two];
        faults.extend(OnRequest::ALL.iter().map(|what| Fault::Request(12, *what)));
        faults.extend(OnEvent::ALL.iter().map(|what| Fault::Event(1, *what)));
        let replay = Replay { seed: 7, plan: Plan { steps: 9, faults } };
        assert_eq!(replay.to_string().parse(), Ok(replay));
        for wrong in
            ["", "views", "views seed=1", "views seed=x plan=steps=1", "views seed=1 plan=steps=1,r1=x"]
        {
            assert!(wrong.parse::<Replay>().is_err(), "{wrong}");
        }
    }
}
