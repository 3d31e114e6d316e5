//! [`Answer`]: an answer that passed the gate, and how far each of its children is.

use super::refusals::StandingRefusal;
use crate::{
    gate::{Allowed, AllowedChild},
    observed::Observed,
};

/// An answer that passed the gate, and how far each of its children is.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) allowed: Allowed,
    pub(super) states: Vec<ChildState>,
    /// The pass is about to apply onto an object that the root does not own yet.
    pub(super) adopts: bool,
}

/// How far a child of the answer is.
#[derive(Clone, Debug)]
pub(super) enum ChildState {
    /// Nothing was done yet.
    Pending,
    /// An apply met another object than expected, so the object of that name must be read; the number counts these reads.
    InTheWay(u32),
    /// The object of that name was read, and the child is decided anew.
    Looked(u32),
    /// Items of others may have replaced ours.
    Displaced(Suspicion),
    /// Such items were looked for, and taken over.
    Inspected(Suspicion),
    /// It is as the answer wants it.
    Accepted,
    /// The API server, or the rule against adoption, refuses it.
    Refused(Box<StandingRefusal>),
    /// It waits for another object.
    Held(String),
    /// It waits for earlier stages.
    Staged,
    /// It is unknown whether the write was carried out.
    Unsure,
}

/// Why a child is inspected.
#[derive(Clone, Debug, Default)]
pub(super) struct Suspicion {
    /// The paths in the object that the API server refused, if it refused any.
    pub(super) refused: Vec<String>,
    /// How often a claim came too late, because the child had changed since it was read.
    pub(super) late: u32,
    /// How often the object of its name was read before, because an apply met another one than expected.
    pub(super) attempts: u32,
}

impl ChildState {
    /// Whether it must still be decided.
    pub(super) fn is_open(&self) -> bool {
        matches!(self, Self::Pending | Self::Looked(_) | Self::Inspected(_))
    }
}

impl Answer {
    /// The children, each with how far it is.
    pub(super) fn children(&self) -> impl Iterator<Item = (&AllowedChild, &ChildState)> {
        self.allowed.children().iter().zip(&self.states)
    }

    /// A child of the answer, and how far it is.
    pub(super) fn at(&mut self, index: usize) -> Option<(&AllowedChild, &mut ChildState)> {
        Some((self.allowed.children().get(index)?, self.states.get_mut(index)?))
    }

    /// Whether every child is as the answer wants it.
    pub(super) fn is_complete(&self) -> bool {
        self.states.iter().all(|state| matches!(state, ChildState::Accepted))
    }

    /// The first stage that has to wait.
    pub(super) fn waiting_stage(&self) -> Option<u32> {
        let staged = self.children().filter(|(_, state)| matches!(state, ChildState::Staged));
        staged.map(|(child, _)| child.stage()).min()
    }
}

/// Whether a child needs no write: it carries the hash of the wanted form, and nobody took a field from us.
pub(super) fn is_as_wanted(child: &AllowedChild, live: &Observed) -> bool {
    live.desired.as_deref() == Some(child.desired().as_str()) && live.covers(child.object())
}
