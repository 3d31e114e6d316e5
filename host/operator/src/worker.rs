//! The workers. They carry out passes: each step that a pass asks for, with the API server and the engine.

mod call;
mod large;
mod look;
mod requests;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::future::join_all;
use pintle_core::{Binding, Done, Finished, Outcome, Pass, RootMemory, Snapshot, Step, account::Account};
use pintle_engine::Guest;
use pintle_kubernetes::{Cluster, Resource};
use pintle_modules::Reservation;
use pintle_runtime::clock;
use pintle_wit::Failure;
use serde_json::Value;
use tokio::sync::Semaphore;
use tracing::{debug, error, info, warn};

use large::Large;

use crate::{
    limits,
    metrics::Ended,
    state::Shared,
    store::{Cause, PassEnd, RootKey},
};

/// What a worker holds while it works on a root.
struct Work {
    /// Must not be used for writes: its client is not bound to the term of leadership, and is not the account's.
    shared: Arc<Shared>,
    /// The client for the pass's writes, which works only in its own term of leadership.
    cluster: Cluster,
    /// The account as which children are read and written, if it is not the host; or why there is none.
    account: Result<Option<Account>, Failure>,
    term: u64,
    guest: Option<Guest>,
    binding: Arc<Binding>,
    root: Arc<Value>,
    /// The root, where it is not kept.
    large: Option<Large>,
    resource: Resource,
    answer_memory: Mutex<Option<AnswerMemory>>,
}

/// The memory that the answer of a pass takes.
struct AnswerMemory {
    reservation: Reservation,
    /// How many bytes of it stay reserved for the answer once it was judged.
    judged_bytes: u64,
}

/// Hands out keys to workers, until the operator stops. Then it waits for the passes in work.
pub(crate) async fn dispatch(shared: Arc<Shared>, workers: usize) {
    let permits = Arc::new(Semaphore::new(workers));
    while !shared.is_stopping() {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { break };
        let Some((lane, key, waited)) = next(&shared).await else { break };
        let shared = Arc::clone(&shared);
        let spawner = shared.spawner.clone();
        spawner.spawn(async move {
            // A panic in a pass is a failure of that root only.
            let id = shared.metrics.began(&lane, waited);
            let pass = shared.spawner.spawn(reconcile(Arc::clone(&shared), lane.clone(), key.clone()));
            let finished = match pass.await {
                Ok(finished) => finished,
                Err(error) => {
                    error!(
                        reconciler = lane, root = %key, %error,
                        "A pass over a root panicked, a mistake of the host's; other roots are not concerned, and it is tried again"
                    );
                    shared.metrics.panicked(&lane);
                    Finished::Failed(Duration::ZERO)
                }
            };
            shared.metrics.ended(id, matches!(finished, Finished::Failed(_) | Finished::Overran(_)));
            shared.finish(&lane, &key, finished);
            drop(permit);
        });
    }
    let all = u32::try_from(workers).unwrap_or(u32::MAX);
    let _ = tokio::time::timeout(STOP_TIMEOUT, permits.acquire_many(all)).await;
}

/// How many objects that a root's status names are read at once. There may be two thousand of them.
const RECORDED_AT_ONCE: usize = 64;

/// How long passes in work may take to end when the operator stops. Kubernetes kills a Pod after 30 s.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// The next key and how long it waited for a worker, as soon as there is one; none when the operator stops.
async fn next(shared: &Shared) -> Option<(String, RootKey, Option<Duration>)> {
    loop {
        let notified = shared.work.notified();
        let due = {
            let mut state = shared.state();
            // A host that is not the leader keeps the keys until it is. The control loop then wakes the workers.
            let works = shared.term_of_work(&state).is_some();
            let now = clock::monotonic();
            if let Some(next) = works.then(|| state.queue.pop(now)).flatten() {
                return Some(next);
            }
            works.then(|| state.queue.next_due()).flatten()
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
    let large = match large::read(&shared, &lane, &key).await {
        Ok(large) => large,
        Err(finished) => return finished,
    };
    let (snapshot, work) = match prepare(&shared, &lane, &key, large) {
        Ok(prepared) => prepared,
        Err(finished) => return finished,
    };
    let mut pass = Pass::new(snapshot);
    let mut outcome = Outcome::Start;
    let done = loop {
        let step;
        (pass, step) = work.judge(pass, outcome).await;
        work.judged();
        outcome = match step {
            Step::CallGuest(request) => Outcome::Answered(work.call_guest(*request).await),
            Step::Get(references) => {
                let mut found = Vec::with_capacity(references.len());
                for some in references.chunks(RECORDED_AT_ONCE) {
                    found.extend(join_all(some.iter().map(|reference| work.get(reference))).await);
                }
                Outcome::Got(found)
            }
            Step::ReadRoot => Outcome::RootRead(work.read_root().await),
            Step::Look(lookups) => Outcome::Looked(work.look(&key, &lookups).await),
            Step::Patch(patches) => {
                Outcome::Patched(join_all(patches.iter().map(|patch| work.patch(patch))).await)
            }
            Step::Evict(pods) => Outcome::Evicted(join_all(pods.iter().map(|pod| work.evict(pod))).await),
            Step::Apply(applies) => {
                Outcome::Applied(join_all(applies.iter().map(|apply| work.apply(apply))).await)
            }
            Step::Delete(deletions) => {
                Outcome::Deleted(join_all(deletions.iter().map(|deletion| work.delete(deletion))).await)
            }
            Step::SetFinalizers(write) => Outcome::FinalizersSet(work.set_finalizers(&write).await),
            Step::Inspect(references) => {
                let mut found = Vec::with_capacity(references.len());
                for some in references.chunks(RECORDED_AT_ONCE) {
                    found.extend(join_all(some.iter().map(|reference| work.inspect(reference))).await);
                }
                Outcome::Inspected(found)
            }
            Step::Claim(claims) => {
                Outcome::Claimed(join_all(claims.iter().map(|claim| work.claim(claim))).await)
            }
            Step::WriteStatus(write) => Outcome::StatusWritten(work.write_status(&write).await),
            Step::Emit(events) => {
                work.emit(events).await;
                Outcome::Emitted
            }
            Step::Done(done) => break done,
        };
    };
    if work.cluster.hold().term().is_none() && done.error.is_some() {
        // Nothing is wrong with the root. The next leader works on it.
        info!(reconciler = lane, root = %key, "Stopped halfway: this host no longer leads");
        return work.remember(&key, *done);
    }
    report(&shared, &lane, &key, &done, clock::monotonic().saturating_sub(started));
    work.remember(&key, *done)
}

fn prepare(
    shared: &Arc<Shared>,
    lane: &str,
    key: &RootKey,
    large: Option<Large>,
) -> Result<(Snapshot, Work), Finished> {
    let mut state = shared.state();
    let term = shared.term_of_work(&state).ok_or(Finished::Gone)?;
    let active = state.in_force(lane, key).ok_or(Finished::Gone)?;
    let (guest, binding, resource, account) =
        (active.guest.clone(), Arc::clone(&active.binding), active.resource.clone(), active.account.clone());
    let Some(root) = state.roots.get_mut(&binding.root_kind(), key) else {
        // A root that is gone has no needs.
        state.needed.forget(&(binding.root_kind(), key.clone()));
        return Err(Finished::Gone);
    };
    let (object, root_listed_at) = match &large {
        Some(large) => (Arc::clone(&large.root), None),
        None if root.is_kept() => (Arc::new(root.object()), root.listed_at()),
        // It has grown since it was looked for.
        None => return Err(Finished::Again(Duration::ZERO)),
    };
    let memory = std::mem::take(&mut root.memory);
    let children = state.children.of_root(pintle_core::object::uid(&object));
    let snapshot = Snapshot {
        binding: Arc::clone(&binding),
        root: Arc::clone(&object),
        root_listed_at,
        children,
        memory,
        now: clock::now(),
    };
    let cluster = shared.cluster.with_hold(shared.cluster.hold().during(term));
    let account = account.and_then(|rule| rule.map(|rule| rule.account_for(&object)).transpose());
    Ok((
        snapshot,
        Work {
            shared: Arc::clone(shared),
            cluster,
            account,
            term,
            guest,
            binding,
            root: object,
            large,
            resource,
            answer_memory: Mutex::default(),
        },
    ))
}

impl Work {
    /// Hands the pass's memory to the next one, if the root is still the same.
    fn remember(&self, key: &RootKey, done: Done) -> Finished {
        let mut state = self.shared.state();
        let state_term = state.term;
        let kind = self.binding.root_kind();
        // While the pass waited for a reply, another Reconciler may have begun to work on the root.
        let Some(active) = state.bindings.decided(&self.binding.reconciler, &self.binding.uid) else {
            return Finished::Gone;
        };
        let in_force = active.binding.runs_as(&self.binding);
        let Some(root) = state.roots.get_mut(&kind, key) else { return Finished::Gone };
        if !root.is(pintle_core::object::uid(&self.root)) {
            return Finished::Settled;
        }
        let message = done.message.as_deref().unwrap_or_default();
        let wrote = done.counts.created + done.counts.updated + done.counts.deleted + done.counts.patched > 0;
        let failing = done.error.as_ref().map(|reason| Cause::new(reason, message));
        // If the term has ended since, another host may have changed what this pass has learnt.
        let is_current = state_term == Some(self.term);
        let memory = if is_current { done.memory } else { RootMemory::default() };
        state.roots.remember(&kind, key, memory, PassEnd { failing, in_force, wrote });
        if is_current {
            state.children.judged(&done.judged);
        }
        self.shared.tell_of_counts(&mut state, &kind);
        drop(state);
        match (done.wake.retry, done.wake.again) {
            (Some(at_least), _) if done.overran => Finished::Overran(at_least),
            (Some(at_least), _) => Finished::Failed(at_least),
            (None, Some(after)) => Finished::Again(after),
            (None, None) => Finished::Settled,
        }
    }
}

fn report(shared: &Shared, lane: &str, key: &RootKey, done: &Done, took: Duration) {
    let ended = match (&done.error, done.wake.retry) {
        (None, None) if done.wake.again.is_none() => Ended::Success,
        (None, _) => Ended::RequeueAfter,
        (Some(reason), Some(_)) => Ended::Failed(reason),
        (Some(reason), None) => Ended::Terminal(reason),
    };
    shared.metrics.reconciled(lane, ended, took);
    shared.metrics.hits(lane, done.hits);
    let counts = done.counts;
    if counts.unlisted_violations > 0 {
        shared.metrics.limit_hit(lane, limits::VIOLATIONS);
    }
    match &done.error {
        Some(error) => {
            let next = match done.wake.retry {
                Some(_) => "it is tried again after a back-off of at most 60 s",
                None => "it waits for a change of the root, its children, the Reconciler or the module",
            };
            // What the reason alone does not show: the verb and the object, or the field.
            let because = done.message.as_deref().unwrap_or_default();
            warn!(reconciler = lane, root = %key, error, because, next, "Reconciled with an error");
        }
        None if done.throttled && counts.created + counts.updated + counts.deleted > 0 => {
            let next =
                "it is slowed; its condition Ready says to which pace, and who else writes its children";
            warn!(reconciler = lane, root = %key, next, "It keeps changing without getting anywhere")
        }
        None if counts.created + counts.updated + counts.deleted + counts.status_writes + counts.patched
            > 0 =>
        {
            info!(
                reconciler = lane,
                root = %key,
                created = counts.created,
                updated = counts.updated,
                deleted = counts.deleted,
                patched = counts.patched,
                evicted = counts.evicted,
                status_writes = counts.status_writes,
                ready = done.ready,
                milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
                "Reconciled"
            )
        }
        None => {
            debug!(reconciler = lane, root = %key, guest_calls = counts.guest_calls, ready = done.ready, "Nothing to do")
        }
    }
}
