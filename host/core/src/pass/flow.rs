//! The order of a pass: its phases, and what leads from one to the next.

use std::collections::BTreeSet;

use pintle_wit::{Eviction, Need, ObjectRef};

use super::Step;

/// A phase of a pass, in the order in which phases follow each other. Each phase has one function that looks at what is left to do in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Decides what the pass is for.
    Begin,
    /// Looks up what the guest asked to see in the last pass.
    Needs,
    /// Calls the guest, unless nothing has changed since the last pass.
    Guest,
    /// Sets and removes finalizers.
    Finalizers,
    /// Reads children that the root's status names because no cache need show them.
    Recorded,
    /// Applies the children.
    Children,
    /// Looks at what the API server refused. The guest may be called again.
    Refusals,
    /// Applies patches of objects that the root does not own.
    Patches,
    /// Deletes children that the answer no longer has.
    Prune,
    /// Remembers what the next pass needs to know.
    Remember,
    /// Removes our finalizers from a root that may go.
    Leave,
    /// Writes the status.
    Status,
    /// Evicts or deletes Pods.
    Evictions,
    /// Publishes Events.
    Events,
    /// The pass is over.
    Over,
}

impl Phase {
    /// The phase that follows a phase in which nothing is left to do.
    pub(super) fn next(self) -> Self {
        match self {
            Self::Begin => Self::Needs,
            Self::Needs => Self::Guest,
            Self::Guest => Self::Finalizers,
            Self::Finalizers => Self::Recorded,
            Self::Recorded => Self::Children,
            Self::Children => Self::Refusals,
            Self::Refusals => Self::Patches,
            Self::Patches => Self::Prune,
            Self::Prune => Self::Remember,
            Self::Remember => Self::Status,
            // A root that may go has no status to write.
            Self::Leave => Self::Events,
            Self::Status => Self::Evictions,
            Self::Evictions => Self::Events,
            Self::Events | Self::Over => Self::Over,
        }
    }
}

/// What a phase, or the outcome of a step, leads to.
#[derive(Debug)]
pub(super) enum Flow {
    /// The driver carries a step out, and its outcome comes next.
    Do(Step),
    /// The phase looks again at what is left to do.
    Again,
    /// The phase has nothing left to do, so [`Phase::next`] follows.
    Done,
    /// Another phase follows.
    To(Phase),
}

/// The outcome that a pass waits for, with what it asked about.
#[derive(Debug)]
pub(super) enum Awaited {
    /// None: the pass has not begun, or is over.
    Nothing,
    /// The guest's answer.
    Answer,
    /// The objects for these needs.
    LookUps(Vec<Need>),
    /// The root.
    Root,
    /// That these finalizers were set.
    Finalizers(BTreeSet<String>),
    /// These recorded children.
    Recorded(Vec<ObjectRef>),
    /// That objects were named in the status, before their first write.
    Record,
    /// That the children with these indexes were applied.
    Applies(Vec<usize>),
    /// The objects that stand in the way of the children with these indexes.
    InTheWay(Vec<usize>),
    /// Whether items of others have replaced items of ours in the children with these indexes.
    Inspections(Vec<usize>),
    /// That such items were taken over.
    Claims(Vec<usize>),
    /// The objects that the answer patches.
    PatchTargets,
    /// That these were patched, each with the resourceVersion in which it was read.
    Patches(Vec<(ObjectRef, String)>),
    /// The objects that are about to be deleted.
    Doomed(Vec<ObjectRef>),
    /// That they were deleted.
    Deletions(Vec<ObjectRef>),
    /// That the status was written.
    Status,
    /// That these Pods were evicted or deleted.
    Evictions(Vec<Eviction>),
    /// That the result of the evictions was written into the status.
    StatusOfEvictions,
    /// That Events were published.
    Events,
}
