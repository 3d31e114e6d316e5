//! How guests are called in a run: in their modules, and the second one shows the same objects differently.

use pintle_engine::{CallError, CallLimits, Digest, ShowAnswer, StoreAnswer, Views};
use pintle_gateway::show::CallViews;
use pintle_wit::views::ShowItem;
use serde_json::Value;

use super::ledger::exchanged;

/// Calls guests.
pub(super) struct Guests {
    /// The digest of the second module.
    pub(super) other: Digest,
}

impl CallViews for Guests {
    fn show(
        &self,
        views: &Views,
        request_json: &str,
        objects: usize,
        limits: &CallLimits,
    ) -> Result<ShowAnswer, CallError> {
        let mut answer = views.show(request_json, objects, limits)?;
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
