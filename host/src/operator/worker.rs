//! Carrying a pass out: each step that it asks for, against the API server and the engine.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use pintle_core::{
    ApiError, Applied, Binding, Done, Finished, Observed, Outcome, Pass, Snapshot, Step, reconciler,
};
use pintle_engine::{CallLimits, Module};
use pintle_wit::{Event, Failure, ObjectRef, Request, Response};
use serde_json::Value;
use tokio::sync::Semaphore;
use tracing::{debug, info, warn};

use super::{Shared, metrics::Ended, store::RootKey};
use crate::{clock, kubernetes::Resource};

/// What a worker holds while it works on a root.
struct Work {
    shared: Arc<Shared>,
    module: Module,
    binding: Arc<Binding>,
    root: Arc<Value>,
    resource: Resource,
}

/// Hands out keys to workers, until the operator stops. Then it waits for those in work.
pub(crate) async fn dispatch(shared: Arc<Shared>, workers: usize) {
    let permits = Arc::new(Semaphore::new(workers));
    while !shared.is_stopping() {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { break };
        let Some((lane, key)) = next(&shared).await else { break };
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            // A panic in one pass is that root's failure and nothing else's.
            let pass = tokio::spawn(reconcile(Arc::clone(&shared), lane.clone(), key.clone()));
            let finished = match pass.await {
                Ok(finished) => finished,
                Err(error) => {
                    warn!(reconciler = lane, root = %key, %error, "A reconcile panicked");
                    shared.metrics.panics.inc();
                    Finished::Failed(Duration::ZERO)
                }
            };
            shared.finish(&lane, &key, finished);
            drop(permit);
        });
    }
    let all = u32::try_from(workers).unwrap_or(u32::MAX);
    let _ = tokio::time::timeout(STOP_TIMEOUT, permits.acquire_many(all)).await;
}

/// How long passes in work may take to end when the operator stops. Kubernetes kills a Pod after 30 s.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// The next key, as soon as there is one; nothing when the operator stops.
async fn next(shared: &Shared) -> Option<(String, RootKey)> {
    loop {
        let notified = shared.work.notified();
        let due = {
            let mut state = shared.state();
            if let Some(next) = state.queue.pop(clock::monotonic()) {
                return Some(next);
            }
            state.queue.next_due()
        };
        if shared.is_stopping() {
            return None;
        }
        match due {
            Some(due) => {
                let wait = due.saturating_sub(clock::monotonic());
                let _ = tokio::time::timeout(wait, notified).await;
            }
            None => notified.await,
        }
    }
}

async fn reconcile(shared: Arc<Shared>, lane: String, key: RootKey) -> Finished {
    let started = clock::monotonic();
    let Some((snapshot, work)) = prepare(&shared, &lane, &key) else { return Finished::Gone };
    let mut pass = Pass::new(snapshot);
    let mut outcome = Outcome::Start;
    let done = loop {
        outcome = match pass.step(outcome) {
            Step::CallGuest(request) => Outcome::Answered(work.call_guest(*request).await),
            Step::Get(references) => {
                Outcome::Got(join_all(references.iter().map(|reference| work.get(reference))).await)
            }
            Step::Apply(applies) => {
                Outcome::Applied(join_all(applies.iter().map(|apply| work.apply(apply))).await)
            }
            Step::Delete(deletions) => {
                Outcome::Deleted(join_all(deletions.iter().map(|deletion| work.delete(deletion))).await)
            }
            Step::WriteStatus(write) => Outcome::StatusWritten(work.write_status(&write).await),
            Step::Emit(events) => {
                work.emit(events).await;
                Outcome::Emitted
            }
            Step::Done(done) => break done,
        };
    };
    report(&shared, &lane, &key, &done, clock::monotonic().saturating_sub(started));
    work.remember(&key, *done)
}

fn prepare(shared: &Arc<Shared>, lane: &str, key: &RootKey) -> Option<(Snapshot, Work)> {
    let mut state = shared.state();
    let active = state.active.get(lane)?;
    let (module, binding, resource) =
        (active.module.clone(), Arc::clone(&active.binding), active.resource.clone());
    let root = state.roots.get_mut(&binding.root_kind(), key)?;
    let object = Arc::new(root.object());
    let memory = std::mem::take(&mut root.memory);
    let children = state.children.of_root(pintle_core::object::uid(&object));
    let snapshot = Snapshot {
        binding: Arc::clone(&binding),
        root: Arc::clone(&object),
        children,
        memory,
        now: clock::now(),
    };
    Some((snapshot, Work { shared: Arc::clone(shared), module, binding, root: object, resource }))
}

impl Work {
    async fn call_guest(&self, request: Request) -> Result<Response, Failure> {
        let Ok(text) = serde_json::to_string(&request) else {
            return Err(Failure::transient("RequestInvalid", "the request cannot be written as JSON"));
        };
        let limits = &self.binding.limits;
        let limits = CallLimits {
            timeout: Duration::from_millis(limits.timeout_milliseconds.into()),
            memory_bytes: (limits.memory_mebibytes as usize) << 20,
            response: limits.response(),
            ..CallLimits::default()
        };
        let module = self.module.clone();
        // A call computes for up to its deadline; on a thread of the runtime it would hold up everybody's I/O for as long.
        let called = tokio::task::spawn_blocking(move || module.reconcile(&text, &limits)).await;
        let metrics = &self.shared.metrics;
        match called {
            Ok(Ok(answer)) => {
                metrics.guest_called(
                    &self.binding.reconciler,
                    answer.stats.duration,
                    answer.stats.peak_memory_bytes,
                );
                Ok(answer.response)
            }
            Ok(Err(error)) => {
                metrics.guest_called(
                    &self.binding.reconciler,
                    error.stats.duration,
                    error.stats.peak_memory_bytes,
                );
                Err(error.into())
            }
            Err(error) => Err(Failure::transient("EngineFailed", error.to_string())),
        }
    }

    fn resource_of(&self, reference: &ObjectRef) -> Result<Resource, ApiError> {
        let found = self.shared.state().resources.get(&reference.kind()).cloned();
        found.ok_or_else(|| ApiError {
            reason: "KindMissing".into(),
            message: format!("the API server does not serve {}", reference.kind()),
            ..ApiError::default()
        })
    }

    fn observes(&self, reference: &ObjectRef) -> bool {
        self.binding.manifest.children.iter().any(|child| child.observe && child.kind() == reference.kind())
    }

    fn observed(&self, reference: &ObjectRef, mut live: Value) -> Observed {
        live["apiVersion"] = reference.api_version.as_str().into();
        live["kind"] = reference.kind.as_str().into();
        Observed::of(&live, &self.binding.field_manager, self.observes(reference))
    }

    async fn get(&self, reference: &ObjectRef) -> Result<Option<Observed>, ApiError> {
        let resource = self.resource_of(reference)?;
        let live = if reconciler::is_watchable(&reference.kind()) {
            self.shared.cluster.get(&resource, reference).await?
        } else {
            self.shared.cluster.get_metadata(&resource, reference).await?
        };
        let found = live.map(|live| self.observed(reference, live));
        let mut state = self.shared.state();
        match &found {
            // Somebody else's object is of no concern to anybody's watch, and is not kept.
            Some(child)
                if child.reconciler_label.is_some()
                    || child.is_owned_by(pintle_core::object::uid(&self.root)) =>
            {
                state.children.wrote(child.clone());
            }
            Some(_) => {}
            None => {
                state.children.gone(reference, None);
            }
        }
        Ok(found)
    }

    async fn apply(&self, apply: &pintle_core::Apply) -> Result<Applied, ApiError> {
        let reference = apply.reference();
        let resource = self.resource_of(reference)?;
        let reply = self.shared.cluster.apply(&resource, apply).await;
        self.shared.metrics.api_called(&self.binding.reconciler, "apply", reply.as_ref().err());
        let reply = reply?;
        let observed = self.observed(reference, reply.object);
        self.shared.state().children.wrote(observed.clone());
        debug!(reconciler = self.binding.reconciler, child = %reference, created = reply.created, "Applied");
        Ok(Applied { created: reply.created, observed })
    }

    async fn delete(&self, deletion: &pintle_core::Deletion) -> Result<(), ApiError> {
        let resource = self.resource_of(deletion.reference())?;
        let reply = self.shared.cluster.delete(&resource, deletion).await;
        self.shared.metrics.api_called(&self.binding.reconciler, "delete", reply.as_ref().err());
        info!(reconciler = self.binding.reconciler, child = %deletion.reference(), deleted = reply.is_ok(), "Pruned");
        reply?;
        if !reconciler::is_watchable(&deletion.reference().kind()) {
            self.shared.state().children.gone(deletion.reference(), None);
        }
        Ok(())
    }

    async fn write_status(&self, write: &pintle_core::StatusWrite) -> Result<(), ApiError> {
        let reply = self.shared.cluster.write_status(&self.resource, write).await;
        self.shared.metrics.api_called(&self.binding.reconciler, "status", reply.as_ref().err());
        let mut live = reply?;
        let kind = self.binding.root_kind();
        live["apiVersion"] = kind.api_version.as_str().into();
        live["kind"] = kind.kind.as_str().into();
        let mut state = self.shared.state();
        let changed = state.roots.wrote(&kind, live);
        self.shared.count_anew(&mut state, &kind);
        drop(state);
        if changed {
            // The guest's own status fields are its memory: it may have more to say now that they are there.
            self.shared.enqueue_root(&kind, &RootKey::of(&self.root), pintle_core::Priority::Background);
        }
        Ok(())
    }

    async fn emit(&self, events: Vec<Event>) {
        self.shared.emit(&self.root, &events).await;
    }

    /// Hands the pass's memory to the next one, if the root is still the same.
    fn remember(&self, key: &RootKey, done: Done) -> Finished {
        let mut state = self.shared.state();
        let kind = self.binding.root_kind();
        let Some(root) = state.roots.get_mut(&kind, key) else { return Finished::Gone };
        if !root.is(pintle_core::object::uid(&self.root)) {
            return Finished::Settled;
        }
        state.roots.remember(&kind, key, done.memory, done.error.is_some());
        state.children.judged(&done.judged);
        self.shared.count_anew(&mut state, &kind);
        drop(state);
        match done.retry {
            Some(at_least) => Finished::Failed(at_least),
            None => Finished::Settled,
        }
    }
}

fn report(shared: &Shared, lane: &str, key: &RootKey, done: &Done, took: Duration) {
    let result = match (&done.error, done.retry) {
        (None, _) => Ended::Success,
        (Some(_), Some(_)) => Ended::Requeue,
        (Some(_), None) => Ended::Error,
    };
    shared.metrics.reconciled(lane, result, took, done.error.as_deref());
    let counts = done.counts;
    match &done.error {
        Some(error) => {
            warn!(reconciler = lane, root = %key, error, retry = done.retry.is_some(), "Reconciled with an error")
        }
        None if counts.created + counts.updated + counts.deleted + counts.status_writes > 0 => info!(
            reconciler = lane,
            root = %key,
            created = counts.created,
            updated = counts.updated,
            deleted = counts.deleted,
            status_writes = counts.status_writes,
            ready = done.ready,
            "Reconciled"
        ),
        None => {
            debug!(reconciler = lane, root = %key, guest_calls = counts.guest_calls, ready = done.ready, "Nothing to do")
        }
    }
}
