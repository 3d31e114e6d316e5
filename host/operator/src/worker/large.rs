//! Roots that are not kept, because they are too large, or there is no room for them beside the others.
//!
//! Such a root is read for its pass, so that it can say so, and be deleted and released as any other. One at a time has its turn: each
//! takes megabytes. Its guest is not called.

use std::{sync::Arc, time::Duration};

use pintle_core::{Duty, Finished, Priority, object};
use pintle_wit::{Failure, ObjectRef};
use serde_json::Value;
use tracing::warn;

use crate::{
    limits,
    state::Shared,
    store::{RootKey, Unkept},
};

/// When a root comes back that has found another one at its turn, if nobody calls it before. A worker does not wait with it.
const TURN_WITHIN: Duration = Duration::from_secs(30);

/// A root that is not kept, as it was read for its pass.
pub(super) struct Large {
    pub(super) root: Arc<Value>,
    /// Why it is not kept.
    pub(super) refusal: Failure,
    _turn: Turn,
}

/// The turn of a root that is not kept. When it ends, the next one is called.
struct Turn(Arc<Shared>);

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.large_roots.busy = false;
        // As an edit, which does not wait until it would come back by itself.
        if let Some((kind, key)) = state.large_roots.waiting.pop_first()
            && state.enqueue(&kind, &key, Priority::Edit)
        {
            self.0.work.notify_one();
        }
    }
}

/// Reads the root of a pass, if it is not kept. If there is room for it by now, it is kept from now on.
///
/// # Errors
/// How the pass ends at once.
pub(super) async fn read(shared: &Arc<Shared>, lane: &str, key: &RootKey) -> Result<Option<Large>, Finished> {
    let (resource, turn) = {
        let mut state = shared.state();
        let Some(active) = state.in_force(lane, key) else { return Err(Finished::Gone) };
        let (resource, duty) = (active.resource.clone(), active.binding.duty);
        let Some(unkept) = state.roots.unkept(&resource.kind, key) else { return Ok(None) };
        if let Unkept { refusal: Some(refusal), told: true } = unkept
            && duty == Duty::Full
        {
            return Err(if refusal.retry { Finished::Failed(Duration::ZERO) } else { Finished::Settled });
        }
        if state.large_roots.busy {
            state.large_roots.waiting.insert((resource.kind, key.clone()));
            return Err(Finished::Again(TURN_WITHIN));
        }
        state.large_roots.busy = true;
        (resource, Turn(Arc::clone(shared)))
    };
    let kind = &resource.kind;
    let reference = ObjectRef {
        api_version: kind.api_version.clone(),
        kind: kind.kind.clone(),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
    };
    let mut live = match shared.cluster.get(&resource, &reference).await {
        Ok(Some(live)) => live,
        Ok(None) => return Err(Finished::Gone),
        Err(error) => {
            warn!(reconciler = lane, root = %key, %error, "A root that is not kept cannot be read");
            return Err(Finished::Failed(error.retry_after.unwrap_or_default()));
        }
    };
    object::set_kind(&mut live, kind.clone());
    let refusal = {
        let mut state = shared.state();
        state.roots.saw(kind, live.clone(), None);
        shared.tell_of_counts(&mut state, kind);
        let refusal = state.roots.unkept(kind, key).and_then(|unkept| unkept.refusal);
        if let Some(root) = state.roots.get_mut(kind, key) {
            root.told = refusal.is_some();
        }
        refusal
    };
    // The turn ends outside of the lock.
    let Some(refusal) = refusal else { return Ok(None) };
    shared.metrics.limit_hit(lane, if refusal.retry { limits::ROOTS_SIZE } else { limits::ROOT_SIZE });
    Ok(Some(Large { root: Arc::new(live), refusal, _turn: turn }))
}
