//! Calling the guest: with what memory, on which thread, and judging what it answers.

use std::{
    sync::{Arc, MutexGuard, PoisonError},
    time::Duration,
};

use pintle_core::{Outcome, Pass, Step, reasons};
use pintle_engine::{Answer, CallError, CallLimits, Guest};
use pintle_modules::{CallMemory, Purpose, Reservation};
use pintle_wit::{Failure, Request, Response};
use tokio::task::JoinError;

use super::{AnswerMemory, Work};
use crate::limits;

/// An answer with at most this many reserved bytes is judged on the thread of the pass, in one or two milliseconds. Handing it to another
/// thread and back takes a twentieth of a millisecond.
const JUDGED_AT_ONCE_BYTES: u64 = 1 << 20;

impl Work {
    /// The pass's next step. For a large answer the step takes long, so it is not computed on a thread that does the I/O of all tasks.
    pub(super) async fn judge(&self, mut pass: Pass, outcome: Outcome) -> (Pass, Step) {
        let is_large = matches!(outcome, Outcome::Answered(Ok(_)))
            && self.answer_memory().as_ref().is_some_and(|held| held.judged_bytes > JUDGED_AT_ONCE_BYTES);
        if !is_large {
            let step = pass.step(outcome);
            return (pass, step);
        }
        let judged = self.shared.spawner.block(move || {
            let step = pass.step(outcome);
            (pass, step)
        });
        match judged.await.map_err(JoinError::try_into_panic) {
            Ok(judged) => judged,
            // The panic belongs to this pass, and is reported as its own.
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            // The runtime is being shut down.
            Err(Err(_)) => std::future::pending().await,
        }
    }

    /// The answer that the pass holds was judged. Gives back the memory that is not needed for it any more.
    pub(super) fn judged(&self) {
        if let Some(held) = &mut *self.answer_memory() {
            held.reservation.shrink(Purpose::Answer, held.judged_bytes);
        }
    }

    pub(super) fn answer_memory(&self) -> MutexGuard<'_, Option<AnswerMemory>> {
        self.answer_memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn call_guest(&self, request: Request) -> Result<Response, Failure> {
        // The pass has dropped the answer that this one replaces. While it waits for a reservation, it holds none.
        drop(self.answer_memory().take());
        if let Some(large) = &self.large {
            return Err(large.refusal.clone());
        }
        self.may_observe().await?;
        let Ok(text) = serde_json::to_string(&request) else {
            return Err(Failure::transient(
                reasons::REQUEST_INVALID,
                "the request cannot be written as JSON",
            ));
        };
        drop(request);
        let text: Arc<str> = text.into();
        let Some(guest) = self.guest.clone() else {
            return Err(Failure::transient(reasons::MODULE_MISSING, "no module is in force"));
        };
        let (lane, metrics) = (&self.binding.reconciler, &self.shared.metrics);
        let mut memory = CallMemory::new(&self.shared.budget, lane, self.call_limits(), text.len());
        loop {
            let (reservation, limits) = memory.reserve().await?;
            if reservation.waited() {
                metrics.limit_hit(lane, limits::MEMORY_BUDGET);
            }
            let (called, reservation) =
                self.call_within(&guest, Arc::clone(&text), limits, reservation).await?;
            if memory.has_more(called.as_ref().err()) {
                // A guest is a pure function, so it is called again. The reservation of the first call is given back before.
                drop(reservation);
                continue;
            }
            let stats = called.as_ref().map_or_else(|error| error.stats, |answer| answer.stats);
            let judged_bytes = memory.saw(stats);
            metrics.guest_called(lane, stats.duration, stats.peak_memory_bytes);
            if called.is_ok() {
                *self.answer_memory() = Some(AnswerMemory { reservation, judged_bytes });
            }
            return called.map(|answer| answer.response).map_err(Failure::from);
        }
    }

    pub(super) fn call_limits(&self) -> CallLimits {
        let limits = &self.binding.limits;
        CallLimits {
            timeout: Duration::from_millis(limits.timeout_milliseconds.into()),
            memory_bytes: ((limits.memory_mebibytes as usize) << 20)
                .min(self.shared.engine.memory_bytes_max()),
            response: limits.response(),
            ..CallLimits::default()
        }
    }

    /// Calls the guest with its grant. The reservation stays with the call, even if nothing waits for the call any more.
    pub(super) async fn call_within(
        &self,
        guest: &Guest,
        text: Arc<str>,
        limits: CallLimits,
        reservation: Reservation,
    ) -> Result<(Result<Answer, CallError>, Reservation), Failure> {
        match (&self.shared.guests, guest.reconcile_at_once(&text, &limits)) {
            (Some(call), _) => Ok((call(guest, &text, &limits), reservation)),
            (None, Some(answer)) => Ok((answer, reservation)),
            // A call computes for up to its deadline. On a thread of the runtime it would hold up the I/O of all tasks for as long.
            (None, None) => {
                let guest = guest.clone();
                let called =
                    self.shared.spawner.block(move || (guest.reconcile(&text, &limits), reservation));
                called.await.map_err(|error| Failure::transient(reasons::ENGINE_FAILED, error.to_string()))
            }
        }
    }
}
