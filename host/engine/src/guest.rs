//! [`Guest`]: the part of a module that reconciles, and the ways to call it.

use std::{fmt, sync::Arc};

use pintle_wit::Manifest;

use crate::{
    at_once::{is_due_to, moment},
    call::{Answer, CallError, CallStats},
    config::Meter,
    digest::Digest,
    limits::CallLimits,
    loaded::{self, Loaded, Part},
    ticker::InFlight,
    worlds::Reconciler,
};

/// The part of a module that reconciles. It is cheap to clone, and keeps its module.
#[derive(Clone)]
pub struct Guest {
    loaded: Arc<Loaded>,
    part: Arc<Part<Reconciler>>,
}

impl Guest {
    pub(crate) fn of(loaded: &Arc<Loaded>) -> Option<Self> {
        let part = loaded.parts.guest()?;
        Some(Self { part: Arc::clone(part), loaded: Arc::clone(loaded) })
    }

    /// Asks the guest what should exist because of a root. The request is a [`pintle_wit::Request`] in JSON.
    ///
    /// The call runs on this thread. If as many calls run already as the engine allows, it first waits for its turn. The thread must have a
    /// stack of at least 1 MiB.
    ///
    /// # Errors
    /// The guest's own failure, or the engine's for a guest that broke a limit or the contract.
    pub fn reconcile(&self, request_json: &str, limits: &CallLimits) -> Result<Answer, CallError> {
        self.reconcile_in(self.loaded.callee.enter(), request_json, limits)
    }

    /// The same as [`Self::reconcile`], if it holds up the calling thread for at most some milliseconds: there must be a free turn, and the
    /// guest must answer quickly. Otherwise it returns `None`, and [`Self::reconcile`] must be called on a thread that may block. Handing a
    /// call to another thread and back takes about as long as an ordinary call.
    ///
    /// # Errors
    /// As [`Self::reconcile`].
    pub fn reconcile_at_once(
        &self,
        request_json: &str,
        limits: &CallLimits,
    ) -> Option<Result<Answer, CallError>> {
        let (sandbox, patience) = (&self.loaded.callee.sandbox, &self.loaded.patience);
        // Fuel is the same on every thread, but it is unknown how much time it stands for.
        if sandbox.config.meter == Meter::Fuel || patience.has_some() {
            return None;
        }
        let moment = moment(limits);
        let answer = self.reconcile_in(sandbox.ticker.try_enter()?, request_json, &moment);
        if answer.as_ref().is_err_and(|error| is_due_to(error, &moment, limits)) {
            // A guest is a pure function, so it can simply be called again.
            patience.doubles();
            return None;
        }
        patience.ends();
        Some(answer)
    }

    fn reconcile_in(
        &self,
        slot: InFlight<'_>,
        request_json: &str,
        limits: &CallLimits,
    ) -> Result<Answer, CallError> {
        let export = &self.part.world.reconcile;
        let read = |text: &str| pintle_wit::weigh_and_parse_response(text, limits.response);
        self.loaded.callee.ask(slot, export, request_json, limits, read)
    }

    /// Asks the guest for its manifest again, and returns the text with the cost of the call. The manifest in force is [`Self::manifest`].
    ///
    /// # Errors
    /// As [`Self::reconcile`].
    pub fn describe(&self, limits: &CallLimits) -> Result<(String, CallStats), CallError> {
        let (text, _, stats) = loaded::describe(&self.loaded.callee, &self.part.world, limits)?;
        Ok((text, stats))
    }

    /// The digest of the module's bytes.
    pub fn digest(&self) -> Digest {
        self.loaded.digest
    }

    /// The manifest that the guest declared when its module was loaded.
    pub fn manifest(&self) -> &Manifest {
        &self.part.manifest
    }

    /// The same as the guest wrote it.
    pub fn manifest_text(&self) -> &str {
        &self.part.manifest_text
    }
}

impl fmt::Debug for Guest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guest")
            .field("digest", &self.loaded.digest)
            .field("name", &self.part.manifest.name)
            .field("version", &self.part.manifest.version)
            .finish_non_exhaustive()
    }
}
