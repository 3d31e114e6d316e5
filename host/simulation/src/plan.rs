//! What goes wrong in a run, as text that repeats it: `w3=crash-after,e5=hide`.

use std::{
    fmt::{self, Debug, Display},
    str::FromStr,
    time::Duration,
};

use anyhow::Context;

/// One thing that goes wrong with the operator, or with the gateway.
pub trait AnyFault: Copy + Ord + Debug + Display + Send + Sync + 'static {
    /// Reads a word of a plan.
    fn read(word: &str) -> Option<Self>;

    /// Where it happens.
    fn place(&self) -> Place;

    /// Whether a second process runs by it.
    fn doubles(&self) -> bool;

    /// Whether only what comes of it shows that it happened.
    fn is_tentative(&self) -> bool {
        false
    }

    /// Lines that repeat a little less than this one, in the order in which they are tried.
    fn shorter(replay: &Replay<Self>) -> Vec<Replay<Self>>;
}

/// Where a fault happens. Places are counted from 1 since the plan was armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It holds from the start.
    Start,
    /// At a request that writes.
    Write(u32),
    /// At a request.
    Request(u32),
    /// At an event of a watch.
    Event(u32),
    /// At every event, which comes this late.
    EveryEvent(Duration),
    /// Wherever it can.
    Everywhere,
}

/// The faults of a run. An empty plan is a run without faults.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Plan<F>(pub Vec<F>);

impl<F> Plan<F> {
    /// A plan of these faults.
    pub fn of(faults: impl IntoIterator<Item = F>) -> Self {
        Self(faults.into_iter().collect())
    }

    /// Whether any of its faults matches.
    pub fn any(&self, is: impl Fn(&F) -> bool) -> bool {
        self.0.iter().any(is)
    }
}

impl<F> Default for Plan<F> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<F: Display> Display for Plan<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        let faults: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&faults.join(","))
    }
}

impl<F: AnyFault> FromStr for Plan<F> {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        if text == "none" {
            return Ok(Self::default());
        }
        let read = |word: &str| F::read(word).with_context(|| format!("{word:?} is no fault"));
        text.split(',').map(read).collect::<anyhow::Result<_>>().map(Self)
    }
}

/// A line that repeats a run: `scenarios/prune.yaml seed=7 plan=w3=crash-after`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Replay<F> {
    /// The scenario's file, or the gateway's name.
    pub scenario: String,
    /// The seed of uids and random numbers.
    pub seed: u64,
    /// The faults.
    pub plan: Plan<F>,
}

impl<F: Clone> Replay<F> {
    /// This line without one of its faults, for each of them.
    pub(crate) fn with_one_less(&self) -> Vec<Self> {
        let without = |at| {
            let mut fewer = self.clone();
            fewer.plan.0.remove(at);
            fewer
        };
        (0..self.plan.0.len()).map(without).collect()
    }
}

impl<F: Display> Display for Replay<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} seed={} plan={}", self.scenario, self.seed, self.plan)
    }
}

impl<F: AnyFault> FromStr for Replay<F> {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let read = || {
            let mut words = text.split_whitespace();
            let (scenario, seed, plan) = (words.next()?, words.next()?, words.next()?);
            let (seed, plan) = (seed.strip_prefix("seed=")?.parse().ok()?, plan.strip_prefix("plan=")?);
            words.next().is_none().then_some((scenario, seed, plan))
        };
        let no_line = || format!("{text:?} is no line to replay: SCENARIO seed=N plan=PLAN");
        let (scenario, seed, plan) = read().with_context(no_line)?;
        Ok(Self { scenario: scenario.into(), seed, plan: plan.parse()? })
    }
}

/// The parts of a word of a plan: those of `w3=edit` are `w`, `3` and `edit`.
pub(crate) fn parts(word: &str) -> (&str, &str, &str) {
    let (place, what) = word.split_once('=').unwrap_or((word, ""));
    let number_at = place.find(|letter: char| letter.is_ascii_digit()).unwrap_or(place.len());
    let (kind, number) = place.split_at(number_at);
    (kind, number, what)
}

/// Reads a time in a word of a plan.
pub(crate) fn milliseconds(text: &str) -> Option<Duration> {
    text.strip_suffix("ms")?.parse().ok().map(Duration::from_millis)
}

/// The words of a plan for what happens at a place, with what it is in a sentence; and with the class of each, if there are classes.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident in $class:ident { $($variant:ident = $word:literal, $of:ident: $sentence:literal,)* }) => {
        words! { $(#[$doc])* $name { $($variant = $word: $sentence,)* } }

        impl $name {
            /// Its class.
            pub fn class(self) -> $class {
                match self { $(Self::$variant => $class::$of,)* }
            }
        }
    };
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal: $sentence:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $(#[doc = $sentence] $variant,)* }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The word in a plan.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// What happens, in words.
            pub fn in_words(self) -> &'static str {
                match self { $(Self::$variant => $sentence,)* }
            }

            pub(crate) fn of(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|each| each.word() == word)
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{operator, views};

    fn comes_back<F: AnyFault>(faults: &str) {
        let line = format!("scenarios/prune.yaml seed=7 plan={faults}");
        assert_eq!(line.parse::<Replay<F>>().unwrap().to_string(), line);
        assert_eq!("none".parse::<Plan<F>>().unwrap(), Plan::default());
        for wrong in ["", "r=lost", "r1=vanish", "x1=edit", "lag=2", "lag1=2ms", "rival=", "steps=x"] {
            assert!(wrong.parse::<Plan<F>>().is_err(), "{wrong}");
        }
        for wrong in ["", "views", "views seed=1", "views seed=x plan=none", "views seed=1 plan=none none"] {
            assert!(wrong.parse::<Replay<F>>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_line_replays_the_plan_that_it_was_made_of() {
        comes_back::<operator::Fault>(
            "lag=30ms,skew=1000ms,rival,w3=crash-after,r12=503,r4=lost,e5=hide-pair",
        );
        comes_back::<views::Fault>("steps=9,lag=200ms,stale=7,two,r12=swap-pods,e1=gone");
    }
}
