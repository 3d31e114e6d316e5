//! The requests of a pass to the API server.

use pintle_core::{
    ApiError, Applied, Apply, EvictionWrite, FinalizerWrite, Observed, Priority, Uid, object, readiness,
    reasons, reconciler,
};
use pintle_kubernetes::{Cluster, Projection, Resource};
use pintle_runtime::clock;
use pintle_wit::{Event, ObjectRef};
use serde_json::Value;
use tracing::{debug, info};

use super::Work;
use crate::store::RootKey;

impl Work {
    /// The client of the account as which children are read and written.
    pub(super) fn children(&self) -> Result<Cluster, ApiError> {
        match &self.account {
            Ok(None) => Ok(self.cluster.clone()),
            Ok(Some(account)) => Ok(self.cluster.acting_as(account.clone())),
            Err(failure) => Err(ApiError {
                reason: failure.reason.clone(),
                message: failure.message.clone(),
                ..ApiError::default()
            }),
        }
    }

    pub(super) async fn patch(&self, patch: &Apply) -> Result<Value, ApiError> {
        let reference = patch.reference();
        let resource = self.resource_of(reference).await?;
        let reply = self.children()?.apply(&resource, patch, Projection::Whole).await;
        self.shared.metrics.wrote(&self.binding.reconciler, "patch", reply.as_ref().err());
        info!(reconciler = self.binding.reconciler, object = %reference, patched = reply.is_ok(), "Patched");
        Ok(reply?.object)
    }

    pub(super) async fn evict(&self, eviction: &EvictionWrite) -> Result<(), ApiError> {
        let reply = self.children()?.evict(eviction).await;
        self.shared.metrics.wrote(&self.binding.reconciler, "evict", reply.as_ref().err());
        let (pod, mode) = (eviction.reference(), eviction.mode());
        info!(reconciler = self.binding.reconciler, %pod, ?mode, accepted = reply.is_ok(), "Evicted");
        reply
    }

    /// How the API server serves a kind. For a kind that no Reconciler declares, the API server is asked, since a root's status may name
    /// any kind.
    pub(super) async fn resource_of(&self, reference: &ObjectRef) -> Result<Resource, ApiError> {
        let kind = reference.kind();
        let now = clock::monotonic();
        let not_served = || ApiError {
            reason: reasons::KIND_MISSING.into(),
            message: format!("the API server does not serve {kind}"),
            ..ApiError::default()
        };
        {
            let state = self.shared.state();
            if let Some(known) = state.served.get(&kind) {
                return Ok(known.clone());
            }
            if state.served.lacks(&kind, now) {
                return Err(not_served());
            }
        }
        let found = self.cluster.discover(&kind).await?;
        found.ok_or_else(|| {
            self.shared.state().served.lacking(kind.clone(), now);
            not_served()
        })
    }

    pub(super) fn observes(&self, reference: &ObjectRef) -> bool {
        self.binding.manifest.children.iter().any(|child| child.observe && child.kind() == reference.kind())
    }

    /// How much of a child the host has to know. The reply to an apply need not contain the rest, and should not contain secret values.
    pub(super) fn projection(&self, reference: &ObjectRef) -> Projection {
        match self.observes(reference) || readiness::needs_status(&reference.kind()) {
            true => Projection::Whole,
            false => Projection::Metadata,
        }
    }

    pub(super) fn observed(&self, reference: &ObjectRef, mut live: Value) -> Observed {
        object::set_kind(&mut live, reference.kind());
        Observed::of(&live, &self.binding.field_manager, self.observes(reference))
    }

    pub(super) async fn get(&self, reference: &ObjectRef) -> Result<Option<Observed>, ApiError> {
        if *reference == pintle_core::object::reference(&self.root) {
            // An account for children may have no rights on the root.
            let live = self.cluster.get(&self.resource, reference).await?;
            return Ok(live.map(|live| self.observed(reference, live)));
        }
        let resource = self.resource_of(reference).await?;
        let live = if reconciler::is_watchable(&reference.kind()) {
            self.children()?.get(&resource, reference).await?
        } else {
            self.children()?.get_metadata(&resource, reference).await?
        };
        let found = live.map(|live| self.observed(reference, live));
        let (uid, reconciler) = (object::uid(&self.root), self.binding.reconciler.as_str());
        let mut state = self.shared.state();
        match &found {
            Some(child)
                if child.reconciler_label.as_deref() == Some(reconciler) || child.is_owned_by(uid) =>
            {
                state.children.wrote(child.clone());
            }
            // Of a child of another Reconciler this one reads other fields. Its watch brings it.
            Some(_) => {}
            None => {
                let mut concerned = state.children.gone(reference, None);
                concerned.remove(&Uid::new(uid));
                // Their watch will find nothing to forget.
                if state.enqueue_by_uid(concerned, Priority::Edit) {
                    self.shared.work.notify_one();
                }
            }
        }
        Ok(found)
    }

    /// The root as it is now. Only its watch puts it into the cache.
    pub(super) async fn read_root(&self) -> Result<Option<Value>, ApiError> {
        self.cluster.get_metadata(&self.resource, &pintle_core::object::reference(&self.root)).await
    }

    pub(super) async fn apply(&self, apply: &Apply) -> Result<Applied, ApiError> {
        let reference = apply.reference();
        let resource = self.resource_of(reference).await?;
        let _writing = self.shared.writing(reference);
        let reply = self.children()?.apply(&resource, apply, self.projection(reference)).await;
        self.shared.metrics.wrote(&self.binding.reconciler, "apply", reply.as_ref().err());
        let reply = reply?;
        let observed = self.observed(reference, reply.object);
        self.shared.state().children.wrote(observed.clone());
        debug!(reconciler = self.binding.reconciler, child = %reference, created = reply.created, "Applied");
        Ok(Applied { created: reply.created, observed })
    }

    pub(super) async fn inspect(&self, reference: &ObjectRef) -> Result<Option<Value>, ApiError> {
        let resource = self.resource_of(reference).await?;
        self.children()?.get_whole(&resource, reference).await
    }

    pub(super) async fn claim(&self, claim: &pintle_core::Claim) -> Result<Observed, ApiError> {
        let reference = claim.reference();
        let resource = self.resource_of(reference).await?;
        let _writing = self.shared.writing(reference);
        let reply = self.children()?.claim(&resource, claim).await;
        self.shared.metrics.wrote(&self.binding.reconciler, "claim", reply.as_ref().err());
        let observed = self.observed(reference, reply?);
        self.shared.state().children.wrote(observed.clone());
        info!(reconciler = self.binding.reconciler, child = %reference, "Somebody changed the key of an item of a list; it is put right");
        Ok(observed)
    }

    pub(super) async fn delete(&self, deletion: &pintle_core::Deletion) -> Result<(), ApiError> {
        let resource = self.resource_of(deletion.reference()).await?;
        let reply = self.children()?.delete(&resource, deletion).await;
        self.shared.metrics.wrote(&self.binding.reconciler, "delete", reply.as_ref().err());
        info!(reconciler = self.binding.reconciler, child = %deletion.reference(), deleted = reply.is_ok(), "Pruned");
        reply?;
        if !reconciler::is_watchable(&deletion.reference().kind()) {
            self.shared.state().children.gone(deletion.reference(), None);
        }
        Ok(())
    }

    pub(super) async fn set_finalizers(&self, write: &FinalizerWrite) -> Result<(), ApiError> {
        let reply = self.cluster.patch_finalizers(&self.resource, write).await;
        self.shared.metrics.wrote(&self.binding.reconciler, "finalizers", reply.as_ref().err());
        // The watch brings the root as it is now. The finalizers do not matter to the guest.
        reply.map(|_| ())
    }

    pub(super) async fn write_status(&self, write: &pintle_core::StatusWrite) -> Result<(), ApiError> {
        let _writing = self.shared.writing(&pintle_core::object::reference(write.object()));
        let reply = self.cluster.write_status(&self.resource, write).await;
        self.shared.metrics.wrote(&self.binding.reconciler, "status", reply.as_ref().err());
        let mut live = reply?;
        let kind = self.binding.root_kind();
        object::set_kind(&mut live, kind.clone());
        let mut state = self.shared.state();
        let changed = state.roots.wrote(&kind, live);
        self.shared.tell_of_counts(&mut state, &kind);
        drop(state);
        if changed {
            // The guest's own status fields are its memory. Now that they are written, its answer may be another one.
            self.shared.enqueue_root(&kind, &RootKey::of(&self.root), Priority::Background);
        }
        Ok(())
    }

    pub(super) async fn emit(&self, events: Vec<Event>) {
        self.shared.emit(&self.root, &events).await;
    }
}
