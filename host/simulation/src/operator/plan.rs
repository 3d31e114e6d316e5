//! The faults of a run, as text that replays it: `w3=crash-after,e5=hide`.

use std::{fmt, str::FromStr, time::Duration};

use super::Class;

/// Why a text is not a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A word of it is not a fault.
    #[error("{0:?} is no fault")]
    Fault(String),
    /// It is not a line to replay.
    #[error("{0:?} is no line to replay: SCENARIO seed=N plan=PLAN")]
    Replay(String),
}

/// The faults of a run. Writes, requests and events are those of the hosts, counted from 1 since the first step of the scenario. An empty
/// plan is a run without faults.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Plan(pub Vec<Fault>);

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

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $($(#[$each])* $variant,)* }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The word in a plan.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            fn of(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|each| each.word() == word)
            }
        }

        impl FromStr for $name {
            type Err = PlanError;

            fn from_str(word: &str) -> Result<Self, PlanError> {
                Self::of(word).ok_or_else(|| PlanError::Fault(word.into()))
            }
        }
    };
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
        match self {
            Self::Write(_, what) => match what {
                OnWrite::LostBefore | OnWrite::LostReply | OnWrite::Silence => Reach::Request,
                OnWrite::Edit
                | OnWrite::Delete
                | OnWrite::StripLabels
                | OnWrite::StripOwner
                | OnWrite::StripManaged
                | OnWrite::EditStatus
                | OnWrite::Recreate
                | OnWrite::Churn => Reach::Root,
                OnWrite::SwapTraps
                | OnWrite::SwapBroken
                | OnWrite::SwapLoops
                | OnWrite::SwapAllocates
                | OnWrite::SwapMissing => Reach::Kind,
                _ => Reach::Everybody,
            },
            Self::Request(_, OnRequest::Burst) => Reach::Everybody,
            Self::Request(..) => Reach::Request,
            Self::Event(..) | Self::Lag(_) | Self::Skew(_) | Self::Rival => Reach::Everybody,
        }
    }

    /// Whether it crashes a host.
    pub fn crashes(&self) -> bool {
        matches!(
            self,
            Self::Write(
                _,
                OnWrite::CrashBefore | OnWrite::CrashAfter | OnWrite::TimeTravel | OnWrite::FarTimeTravel
            )
        )
    }

    /// Whether somebody other than the host changes something. Then the host has more to do than without the fault.
    pub fn meddles(&self) -> bool {
        self.class().meddles()
    }
}

impl Plan {
    /// The classes of its faults. More than one crash is a class of its own.
    pub fn classes(&self) -> Vec<Class> {
        let mut classes: Vec<Class> = self.0.iter().map(Fault::class).collect();
        if self.0.iter().filter(|fault| fault.crashes()).count() > 1 {
            classes.push(Class::TwoCrashes);
        }
        classes.sort_unstable();
        classes.dedup();
        classes
    }

    /// Whether any of its faults matches.
    pub fn any(&self, is: impl Fn(&Fault) -> bool) -> bool {
        self.0.iter().any(is)
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

impl FromStr for Fault {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        let wrong = || PlanError::Fault(text.into());
        if text == RIVAL {
            return Ok(Self::Rival);
        }
        let (at, what) = text.split_once('=').ok_or_else(wrong)?;
        let milliseconds = || {
            let number = what.strip_suffix("ms").and_then(|number| number.parse().ok());
            number.map(Duration::from_millis).ok_or_else(wrong)
        };
        match at {
            "lag" => return Ok(Self::Lag(milliseconds()?)),
            "skew" => return Ok(Self::Skew(milliseconds()?)),
            _ => {}
        }
        let (kind, number) = at.split_at_checked(1).ok_or_else(wrong)?;
        let number = number.parse().map_err(|_| wrong())?;
        let fault = match kind {
            "w" => OnWrite::of(what).map(|what| Self::Write(number, what)),
            "r" => OnRequest::of(what).map(|what| Self::Request(number, what)),
            "e" => OnEvent::of(what).map(|what| Self::Event(number, what)),
            _ => None,
        };
        fault.ok_or_else(wrong)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        let faults: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&faults.join(","))
    }
}

impl FromStr for Plan {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        match text {
            "none" => Ok(Self::default()),
            _ => text.split(',').map(str::parse).collect::<Result<_, _>>().map(Self),
        }
    }
}

/// A line that repeats a run: `scenarios/prune.yaml seed=7 plan=w3=crash-after`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Replay {
    /// The scenario's file.
    pub scenario: String,
    /// The seed of uids and random numbers.
    pub seed: u64,
    /// The faults.
    pub plan: Plan,
}

impl fmt::Display for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} seed={} plan={}", self.scenario, self.seed, self.plan)
    }
}

impl FromStr for Replay {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        let wrong = || PlanError::Replay(text.into());
        let mut words = text.split_whitespace();
        let scenario = words.next().ok_or_else(wrong)?.to_owned();
        let seed =
            words.next().and_then(|word| word.strip_prefix("seed=")?.parse().ok()).ok_or_else(wrong)?;
        let plan = words.next().and_then(|word| word.strip_prefix("plan=")).ok_or_else(wrong)?.parse()?;
        match words.next() {
            None => Ok(Self { scenario, seed, plan }),
            Some(_) => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_replays_the_plan_that_it_was_made_of() {
        let mut faults = vec![
            Fault::Lag(Duration::from_millis(200)),
            Fault::Skew(Duration::from_millis(90_000)),
            Fault::Rival,
        ];
        faults.extend(OnWrite::ALL.iter().map(|what| Fault::Write(3, *what)));
        faults.extend(OnRequest::ALL.iter().map(|what| Fault::Request(12, *what)));
        faults.extend(OnEvent::ALL.iter().map(|what| Fault::Event(1, *what)));
        let replay = Replay { scenario: "scenarios/prune.yaml".into(), seed: 7, plan: Plan(faults) };
        assert_eq!(replay.to_string().parse(), Ok(replay));
        assert_eq!("none".parse(), Ok(Plan::default()));
        for wrong in ["", "w=edit", "w1=vanish", "x1=edit", "lag=2"] {
            assert!(wrong.parse::<Plan>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_perturbation_of_the_catalogue_has_a_fault() {
        let mut classes: Vec<Class> =
            OnWrite::ALL.iter().map(|what| Fault::Write(1, *what).class()).collect();
        classes.extend(OnRequest::ALL.iter().map(|what| Fault::Request(1, *what).class()));
        classes.extend(OnEvent::ALL.iter().map(|what| Fault::Event(1, *what).class()));
        classes.push(Fault::Lag(Duration::ZERO).class());
        let twice = Plan(vec![Fault::Write(1, OnWrite::CrashAfter), Fault::Write(2, OnWrite::CrashBefore)]);
        classes.extend(twice.classes());
        for class in Class::ALL.into_iter().filter(|class| *class != Class::Mixed) {
            assert!(classes.contains(&class), "{class}");
        }
    }
}
