//! The classes of faults.

use std::fmt::{self, Display};

/// A class of faults. A search takes a share of plans of each class, and counts how many of their faults happened. docs/simulator.md lists
/// the faults with the codes of their classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// A host crashes after a write.
    Crash,
    /// A write, or its reply, is lost.
    LostWrite,
    /// Hosts crash twice.
    TwoCrashes,
    /// A host crashes, and the next one begins with an old view.
    OldView,
    /// Every event comes late.
    Lag,
    /// An event never comes.
    HiddenEvent,
    /// An event comes out of order, or twice.
    DisorderedEvent,
    /// A watch ends.
    EndedWatch,
    /// A request is refused, lost or late.
    FailedRequest,
    /// Two hosts, or one that is partitioned from the API server.
    Rivals,
    /// Somebody changes a child or a status.
    Meddling,
    /// The root is deleted and made again.
    Recreated,
    /// The root's spec is changed and put back.
    Churn,
    /// The Reconciler names a module that does not exist, or one that traps.
    BadSwap,
    /// The Reconciler names a module that cannot work.
    BrokenSwap,
    /// Wall clocks differ, or jump.
    Clocks,
    /// Several faults that no other class contains together.
    Mixed,
}

impl Class {
    /// All of them, in the order of their codes.
    pub const ALL: [Self; 17] = [
        Self::Crash,
        Self::LostWrite,
        Self::TwoCrashes,
        Self::OldView,
        Self::Lag,
        Self::HiddenEvent,
        Self::DisorderedEvent,
        Self::EndedWatch,
        Self::FailedRequest,
        Self::Rivals,
        Self::Meddling,
        Self::Recreated,
        Self::Churn,
        Self::BadSwap,
        Self::BrokenSwap,
        Self::Clocks,
        Self::Mixed,
    ];

    /// Its code in docs/simulator.md and in the output of a search.
    pub fn code(self) -> &'static str {
        match self {
            Self::Crash => "P1",
            Self::LostWrite => "P2",
            Self::TwoCrashes => "P3",
            Self::OldView => "P4",
            Self::Lag => "P5",
            Self::HiddenEvent => "P6",
            Self::DisorderedEvent => "P7",
            Self::EndedWatch => "P8",
            Self::FailedRequest => "P9",
            Self::Rivals => "P10",
            Self::Meddling => "P11",
            Self::Recreated => "P12",
            Self::Churn => "P13",
            Self::BadSwap => "P14",
            Self::BrokenSwap => "P15",
            Self::Clocks => "P16",
            Self::Mixed => "mixed",
        }
    }

    /// The plural in words, for people who do not know the list.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Crash => "crashes",
            Self::LostWrite => "lost writes and replies",
            Self::TwoCrashes => "pairs of crashes",
            Self::OldView => "restarts on an old view",
            Self::Lag => "runs with late watches",
            Self::HiddenEvent => "events that never came",
            Self::DisorderedEvent => "events out of order or twice",
            Self::EndedWatch => "watches that ended",
            Self::FailedRequest => "failed requests",
            Self::Rivals => "changes of the leader",
            Self::Meddling => "foreign edits",
            Self::Recreated => "roots made again",
            Self::Churn => "specs changed and put back",
            Self::BadSwap => "swaps to a bad module",
            Self::BrokenSwap => "swaps to a broken module",
            Self::Clocks => "wrong clocks",
            Self::Mixed => "mixtures",
        }
    }

    /// Whether somebody other than the host changes something. Then the host has more to do than without the fault.
    pub fn meddles(self) -> bool {
        matches!(self, Self::Meddling | Self::Recreated | Self::Churn | Self::BadSwap | Self::BrokenSwap)
    }
}

impl Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}
