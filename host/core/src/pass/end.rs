//! The end of a pass: what brings the root back, and what the operator is told.

use std::time::Duration;

use super::{Done, Pass, Step, answer::ChildState};
use crate::{observed::Observed, reasons};

/// What brings a root back although nothing changes: the earliest of all that a pass has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wake {
    /// After a back-off, and after this long at the earliest: something failed, or no watch reports what the root waits for.
    pub retry: Option<Duration>,
    /// After this long, although nothing failed.
    pub again: Option<Duration>,
}

impl Wake {
    /// After a back-off, and after this long at the earliest.
    pub(super) fn retry(&mut self, at_least: Duration) {
        self.retry = self.retry.max(Some(at_least));
    }

    /// After this long.
    pub(super) fn after(&mut self, wait: impl Into<Option<Duration>>) {
        self.again = self.again.into_iter().chain(wait.into()).min();
    }
}

impl Pass {
    /// Ends the pass.
    pub(super) fn over(&mut self) -> Step {
        self.forget_needs();
        let refused = self.memory.refusals.blocking(self.answer.as_ref().map(|answer| &answer.allowed));
        let error = match (&self.failure, &self.unsure, refused.first()) {
            (Some(failure), ..) if failure.reason == reasons::SUSPENDED => None,
            (Some(failure), ..) => Some(failure.reason.clone()),
            (None, Some(error), _) => Some(error.reason_word()),
            (None, None, Some(standing)) => Some(standing.refusal.reason.clone()),
            (None, None, None) => self
                .refused_patches
                .first()
                .map(|(_, error)| error.reason_word())
                .or_else(|| self.eviction_error().map(|(reason, _)| reason)),
        };
        let message = match (&self.failure, &self.unsure, refused.first()) {
            (Some(failure), ..) => Some(failure.to_string()),
            (None, Some(error), _) => Some(error.to_string()),
            (None, None, Some(standing)) => Some(standing.refusal.message.clone()),
            (None, None, None) => self
                .refused_patches
                .first()
                .map(|(reference, error)| error.clone().about(reference).to_string())
                .or_else(|| self.eviction_error().map(|(_, message)| message)),
        };
        // Objects that are being deleted, or that the root does not own, are read again in the next pass.
        let kept = self.live.values().filter(|child| !self.binding.watches(&child.reference));
        let (kept, again): (Vec<Observed>, Vec<Observed>) =
            kept.cloned().partition(|child| self.owns(child) && !child.deleting);
        self.memory.read.retain(|entry| !again.iter().any(|child| child.reference == *entry));
        self.memory.keep_unwatched(kept);
        Step::Done(Box::new(Done {
            wake: self.wake_at_the_end(),
            throttled: self.memory.breaker.is_open(),
            overran: self.failure.as_ref().is_some_and(|failure| {
                matches!(
                    failure.reason.as_str(),
                    reasons::DEADLINE | reasons::FUEL | reasons::MEMORY | reasons::MEMORY_BUDGET
                )
            }),
            ready: self.ready,
            error,
            message,
            counts: self.counts,
            hits: self.hits,
            judged: std::mem::take(&mut self.judged),
            memory: std::mem::take(&mut self.memory),
        }))
    }

    /// What brings the root back, from every phase.
    fn wake_at_the_end(&self) -> Wake {
        let mut wake = self.wake;
        if let Some(error) = &self.unsure {
            wake.retry(error.retry_after.unwrap_or_default());
        }
        let is_retried = match &self.failure {
            // The end of a refusal cannot end a terminal failure.
            Some(failure) => failure.retry,
            None => {
                let answer = self.answer.as_ref().map(|answer| &answer.allowed);
                self.memory.refusals.blocking(answer).iter().any(|standing| standing.retry)
                    || self.refused_patches.iter().any(|(_, error)| error.depends_on_others())
            }
        };
        if is_retried || self.waits_unseen() {
            wake.retry(Duration::ZERO);
        }
        wake.after(self.is_to_follow_patches().then_some(Duration::ZERO));
        wake.after(self.needs.again);
        wake.after(self.calm_at());
        wake
    }

    /// Whether a child waits for an object of a kind that is not watched. When that is gone, no watch reports it.
    fn waits_unseen(&self) -> bool {
        self.answer.as_ref().is_some_and(|answer| {
            answer.children().any(|(child, state)| {
                matches!(state, ChildState::Held(_)) && !self.binding.watches(child.reference())
            })
        })
    }
}
