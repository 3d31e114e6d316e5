//! How guests are called in a run: in their modules, and the second one shows the same objects differently. Some calls meet their
//! deadline, and some objects cannot be shown.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use pintle_engine::{CallError, CallLimits, CallStats, Digest, Origin, ShowAnswer, StoreAnswer, Views};
use pintle_gateway::show::CallViews;
use pintle_wit::{Failure, reasons, views::ShowItem};
use serde_json::Value;

use super::ledger::{can_be_shown, exchanged};
use crate::seam::Seam;

/// Guests as one gateway calls them, through a seam if there is one.
pub(super) struct Called {
    pub(super) guests: Arc<Guests>,
    pub(super) seam: Option<Arc<dyn Seam>>,
}

impl CallViews for Called {
    fn show(
        &self,
        views: &Views,
        view: &str,
        request_json: &str,
        objects: usize,
        limits: &CallLimits,
    ) -> Result<ShowAnswer, CallError> {
        let called = self.guests.show(views, view, request_json, objects, limits);
        let (Some(seam), Err(late)) = (&self.seam, &called) else { return called };
        let mut answer = Value::Null;
        seam.answer(&serde_json::from_str(request_json).unwrap_or_default(), &mut answer);
        match serde_json::from_value(answer) {
            Ok(response) => Ok(ShowAnswer { response, text: String::new(), stats: late.stats }),
            Err(_) => called,
        }
    }

    fn store(
        &self,
        views: &Views,
        request_json: &str,
        limits: &CallLimits,
    ) -> Result<StoreAnswer, CallError> {
        self.guests.store(views, request_json, limits)
    }
}

/// Calls guests.
pub(super) struct Guests {
    /// The digest of the second module.
    other: Digest,
    /// How many of the next calls of `show` are late.
    late: AtomicU32,
}

impl Guests {
    /// Guests of which this is the digest of the second module.
    pub(super) fn new(other: Digest) -> Self {
        Self { other, late: AtomicU32::new(0) }
    }

    /// So many of the next calls of `show` meet their deadline.
    pub(super) fn be_late(&self, calls: u32) {
        self.late.store(calls, Ordering::Relaxed);
    }

    /// # Errors
    /// The deadline, if this call is late.
    fn in_time(&self) -> Result<(), CallError> {
        let fewer = |calls: u32| calls.checked_sub(1);
        match self.late.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer) {
            Err(_) => Ok(()),
            Ok(_) => Err(CallError {
                failure: Box::new(Failure::transient(reasons::DEADLINE, "the guest ran longer than it may")),
                origin: Origin::Engine,
                stats: CallStats::default(),
            }),
        }
    }
}

impl CallViews for Guests {
    fn show(
        &self,
        views: &Views,
        view: &str,
        request_json: &str,
        objects: usize,
        limits: &CallLimits,
    ) -> Result<ShowAnswer, CallError> {
        self.in_time()?;
        let mut answer = views.show(view, request_json, objects, limits)?;
        if views.digest() == self.other {
            for item in &mut answer.response.items {
                if let ShowItem::Object(fields) = item
                    && let Some(spec) = fields.get_mut("spec")
                {
                    *spec = exchanged(spec, true);
                    if let Some(containers) = spec["containers"].as_u64() {
                        spec["containers"] = Value::from(containers + 100);
                    }
                }
            }
        }
        for item in &mut answer.response.items {
            if let ShowItem::Object(fields) = item
                && !fields.get("spec").is_none_or(can_be_shown)
            {
                *item = ShowItem::Failure(Failure::terminal("Unlucky", "its weight cannot be shown"));
            }
        }
        Ok(answer)
    }

    fn store(
        &self,
        views: &Views,
        request_json: &str,
        limits: &CallLimits,
    ) -> Result<StoreAnswer, CallError> {
        let mut answer = views.store(request_json, limits)?;
        if views.digest() == self.other
            && let Some(spec) = answer.response.object.get_mut("spec")
        {
            *spec = exchanged(spec, true);
        }
        Ok(answer)
    }
}
