//! The messages between a pass and its driver: a [`Step`] is what the pass wants done next, an [`Outcome`] is the result.

use pintle_wit::{Event, Failure, ObjectRef, Request, Response};
use serde_json::Value;

use super::{ApiError, Apply, Claim, Deletion, EvictionWrite, FinalizerWrite, RootMemory, StatusWrite, Wake};
use crate::{needs::LookUp, observed::Observed};

/// What a pass asks for next.
#[derive(Debug)]
pub enum Step {
    /// Call the guest; answer with [`Outcome::Answered`].
    CallGuest(Box<Request>),
    /// Look these objects up, and from now on requeue the root when one of them changes, and for no other needs; answer with
    /// [`Outcome::Looked`], in the same order.
    Look(Vec<LookUp>),
    /// Read these objects live; answer with [`Outcome::Got`], in the same order. One of them may be the root itself.
    Get(Vec<ObjectRef>),
    /// Apply these children, side by side; answer with [`Outcome::Applied`], in the same order.
    Apply(Vec<Apply>),
    /// Read the root's metadata live; answer with [`Outcome::RootRead`].
    ReadRoot,
    /// Read these objects live and whole, with all their managed fields; answer with [`Outcome::Inspected`], in the same order.
    Inspect(Vec<ObjectRef>),
    /// Take over items in lists of these children; answer with [`Outcome::Claimed`], in the same order.
    Claim(Vec<Claim>),
    /// Apply these onto objects that the root does not own, side by side; answer with [`Outcome::Patched`], in the same order.
    Patch(Vec<Apply>),
    /// Evict or delete these Pods, side by side; answer with [`Outcome::Evicted`], in the same order.
    Evict(Vec<EvictionWrite>),
    /// Delete these children; answer with [`Outcome::Deleted`], in the same order.
    Delete(Vec<Deletion>),
    /// Write the root's finalizers; answer with [`Outcome::FinalizersSet`].
    SetFinalizers(FinalizerWrite),
    /// Write the root's status; answer with [`Outcome::StatusWritten`].
    WriteStatus(StatusWrite),
    /// Publish these events about the root; answer with [`Outcome::Emitted`]. A failure to publish fails nothing.
    Emit(Vec<Event>),
    /// The pass is over.
    Done(Box<Done>),
}

/// The result of a step.
#[derive(Debug)]
pub enum Outcome {
    /// Nothing yet: the first step.
    Start,
    /// The guest's answer.
    Answered(Result<Response, Failure>),
    /// The objects that each look-up found, whole or at least with the fields that it asks for. Finding none is no error.
    Looked(Vec<Result<Vec<Value>, Failure>>),
    /// The objects as they are; `None` for an object that does not exist.
    Got(Vec<Result<Option<Observed>, ApiError>>),
    /// The root as it is, at least its metadata; `None` if it does not exist.
    RootRead(Result<Option<Value>, ApiError>),
    /// What the API server said to each apply.
    Applied(Vec<Result<Applied, ApiError>>),
    /// The children as they are; `None` for a child that does not exist.
    Inspected(Vec<Result<Option<Value>, ApiError>>),
    /// The children as the API server returned them.
    Claimed(Vec<Result<Observed, ApiError>>),
    /// The objects as the API server returned them.
    Patched(Vec<Result<Value, ApiError>>),
    /// What the API server said to each eviction.
    Evicted(Vec<Result<(), ApiError>>),
    /// What the API server said to each deletion; an object that does not exist counts as deleted.
    Deleted(Vec<Result<(), ApiError>>),
    /// What the API server said to the finalizers.
    FinalizersSet(Result<(), ApiError>),
    /// What the API server said to the status.
    StatusWritten(Result<(), ApiError>),
    /// The events were handed over.
    Emitted,
}

/// An apply that was accepted.
#[derive(Clone, Debug)]
pub struct Applied {
    /// The object did not exist before.
    pub created: bool,
    /// The object as the API server returned it.
    pub observed: Observed,
}

/// The end of a pass.
#[derive(Debug, Default)]
pub struct Done {
    /// The memory, for the next pass over this root.
    pub memory: RootMemory,
    /// What brings the root back although nothing changes.
    pub wake: Wake,
    /// The root's `Ready`, as the status now says it.
    pub ready: bool,
    /// Whether the guest ran into its deadline, its fuel, its memory limit or the memory budget. Other Reconcilers had to wait for this
    /// work.
    pub overran: bool,
    /// Whether the root is slowed, because it kept changing without getting anywhere.
    pub throttled: bool,
    /// Why the pass could not do all of its work, in one CamelCase word.
    pub error: Option<String>,
    /// The same for people: the message of the root's `Ready`, or of an error that could not be written to the status.
    pub message: Option<String>,
    /// What it cost.
    pub counts: Counts,
    /// The limits that it hit without failing for it.
    pub hits: Hits,
    /// The children whose managed fields the pass judged. A cache may keep the verdict in place of the managed fields.
    pub judged: Vec<Judged>,
}

/// The verdict on a child: our entry of its managed fields covers everything that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The child.
    pub reference: ObjectRef,
    /// Its uid.
    pub uid: String,
    /// The hash of what was sent, as the child's annotation has it.
    pub desired: String,
    /// The hash of the entry.
    pub entry_hash: [u8; 32],
}

impl Judged {
    pub(super) fn of(live: &Observed) -> Self {
        Self {
            reference: live.reference.clone(),
            uid: live.uid.clone(),
            desired: live.desired.clone().unwrap_or_default(),
            entry_hash: live.entry_hash,
        }
    }
}

/// What a pass cost and did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls of the guest.
    pub guest_calls: u32,
    /// Children created.
    pub created: u32,
    /// Children updated.
    pub updated: u32,
    /// Children deleted.
    pub deleted: u32,
    /// Status writes.
    pub status_writes: u32,
    /// Objects patched.
    pub patched: u32,
    /// Pods evicted or deleted.
    pub evicted: u32,
    /// Violations that the gate found and counted, but did not list in the message.
    pub unlisted_violations: usize,
}

/// How many times a pass hit limits for which it does not fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hits {
    /// Events that were dropped, because the root had too many.
    pub events: u32,
    /// Entries of the root's status that name no object, or too many of them.
    pub records: u32,
    /// Whether the root is slowed from now on, because its guest keeps asking for other deadlines or other fields.
    pub asking: bool,
}

impl Counts {
    pub(super) fn changed_children(&self) -> bool {
        self.created + self.updated + self.deleted + self.patched > 0
    }
}
