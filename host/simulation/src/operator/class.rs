//! The classes of faults.

use std::fmt::{self, Display};

macro_rules! classes {
    ($($(#[$doc:meta])* $class:ident = $code:literal, $plural:literal, $weight:literal;)*) => {
        /// A class of faults. A search takes a share of plans of each class, and counts how many of their faults happened.
        /// docs/simulator.md lists the faults with the codes of their classes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Class { $($(#[$doc])* $class,)* }

        impl Class {
            /// All of them, in the order of their codes.
            pub const ALL: &'static [Self] = &[$(Self::$class),*];

            /// Its code in docs/simulator.md and in the output of a search.
            pub fn code(self) -> &'static str {
                match self { $(Self::$class => $code,)* }
            }

            /// The plural in words, for people who do not know the list.
            pub fn plural(self) -> &'static str {
                match self { $(Self::$class => $plural,)* }
            }

            /// Its share among the plans; every other plan is a mixture.
            pub(super) fn weight(self) -> u64 {
                match self { $(Self::$class => $weight,)* }
            }
        }
    };
}

// Places at which a host can crash, or get wrong information, have the largest weights: most bugs were found there.
classes! {
    /// A host crashes after a write.
    Crash = "P1", "crashes", 10;
    /// A write, or its reply, is lost.
    LostWrite = "P2", "lost writes and replies", 14;
    /// Hosts crash twice.
    TwoCrashes = "P3", "pairs of crashes", 6;
    /// A host crashes, and the next one begins with an old view.
    OldView = "P4", "restarts on an old view", 8;
    /// Every event comes late.
    Lag = "P5", "runs with late watches", 2;
    /// An event never comes.
    HiddenEvent = "P6", "events that never came", 9;
    /// An event comes out of order, or twice.
    DisorderedEvent = "P7", "events out of order or twice", 8;
    /// A watch ends.
    EndedWatch = "P8", "watches that ended", 9;
    /// A request is refused, lost or late.
    FailedRequest = "P9", "failed requests", 9;
    /// Two hosts, or one that is partitioned from the API server.
    Rivals = "P10", "changes of the leader", 4;
    /// Somebody changes a child or a status.
    Meddling = "P11", "foreign edits", 8;
    /// The root is deleted and made again.
    Recreated = "P12", "roots made again", 2;
    /// The root's spec is changed and put back.
    Churn = "P13", "specs changed and put back", 2;
    /// The Reconciler names a module that does not exist, or one that traps.
    BadSwap = "P14", "swaps to a bad module", 2;
    /// The Reconciler names a module that cannot work.
    BrokenSwap = "P15", "swaps to a broken module", 1;
    /// Wall clocks differ, or jump.
    Clocks = "P16", "wrong clocks", 2;
    /// Several faults that no other class contains together.
    Mixed = "mixed", "mixtures", 24;
}

impl Class {
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
