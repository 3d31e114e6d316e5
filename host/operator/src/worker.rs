//! The workers. They carry out passes: each step that a pass asks for, with the API server and the engine.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::future::join_all;
use pintle_core::{
    ApiError, Applied, Apply, Binding, Done, EvictionWrite, FinalizerWrite, Finished, Observed, Outcome,
    Pass, RootMemory, Snapshot, Step,
    account::Account,
    budget::Need,
    needs::{self, Budget, LookUp},
    readiness, reasons, reconciler,
};
use pintle_engine::{Answer, CallError, CallLimits, CallStats, Module, Origin};
use pintle_kubernetes::{Back, Cluster, Resource};
use pintle_runtime::clock;
use pintle_wit::{Event, Failure, Kind, ObjectRef, Request, Response, Select, Weight};
use serde_json::Value;
use tokio::{sync::Semaphore, task::JoinError};
use tracing::{debug, error, info, warn};

use super::{
    budget::{Purpose, Reservation, TooLarge},
    metrics::{Ended, Metric},
    needs::{FIELDS_KEPT_MAX, Looked},
    state::Shared,
    store::RootKey,
    watch::WatchState,
};
use crate::limits::Limit;

/// What a worker holds while it works on a root.
struct Work {
    /// Must not be used for writes: its client is not bound to the term of leadership, and is not the account's.
    shared: Arc<Shared>,
    /// The client for the pass's writes, which works only in its own term of leadership.
    cluster: Cluster,
    /// The account as which children are read and written, if it is not the host; or why there is none.
    account: Result<Option<Account>, Failure>,
    term: u64,
    module: Option<Module>,
    binding: Arc<Binding>,
    root: Arc<Value>,
    resource: Resource,
    held: Mutex<Option<Held>>,
}

/// The memory that the answer of a pass takes.
struct Held {
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
                    shared.metrics.count(Metric::Panics, &[&lane]);
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

/// How long a pass waits for the first list of the objects that its guest asks to see. Listing ten thousand objects takes a second or two.
const LIST_PATIENCE: Duration = Duration::from_secs(5);
/// How often the pass checks meanwhile whether the list has failed.
const LIST_POLL: Duration = Duration::from_millis(200);

/// How many look-ups are done in a row before other tasks get a turn on the thread. Each may look at ten thousand objects.
const LOOKS_AT_ONCE: usize = 16;

/// How many objects are read live at once for one call: an object is at most 1.5 MiB.
const READS_AT_ONCE: usize = 8;

/// How many objects that a root's status names are read at once. There may be two thousand of them.
const RECORDED_AT_ONCE: usize = 64;

/// For how long discovery is not repeated for a kind that is not served and that only a root's status names, and how many such kinds are
/// remembered.
const UNSERVED_FOR: Duration = Duration::from_secs(1);
const UNSERVED_MAX: usize = 1024;

/// An answer with at most this many reserved bytes is judged on the thread of the pass, in one or two milliseconds. Handing it to another
/// thread and back takes a twentieth of a millisecond.
const JUDGED_AT_ONCE_BYTES: u64 = 1 << 20;

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
            if let Some((lane, key)) = works.then(|| state.queue.pop(now)).flatten() {
                let since = state.waiting.remove(&(lane.clone(), key.clone()));
                return Some((lane, key, since.map(|since| now.saturating_sub(since))));
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
    let Some((snapshot, work)) = prepare(&shared, &lane, &key) else { return Finished::Gone };
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

fn prepare(shared: &Arc<Shared>, lane: &str, key: &RootKey) -> Option<(Snapshot, Work)> {
    let mut state = shared.state();
    let term = shared.term_of_work(&state)?;
    let active = state.in_force(lane, key.namespace.as_deref())?;
    let (module, binding, resource, account) =
        (active.module.clone(), Arc::clone(&active.binding), active.resource.clone(), active.account.clone());
    let Some(root) = state.roots.get_mut(&binding.root_kind(), key) else {
        // A root that is gone has no needs.
        state.needed.forget(&(binding.root_kind(), key.clone()));
        return None;
    };
    let (object, root_listed_at) = (Arc::new(root.object()), root.listed_at());
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
    Some((
        snapshot,
        Work {
            shared: Arc::clone(shared),
            cluster,
            account,
            term,
            module,
            binding,
            root: object,
            resource,
            held: Mutex::default(),
        },
    ))
}

impl Work {
    /// The client of the account as which children are read and written.
    fn children(&self) -> Result<Cluster, ApiError> {
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

    /// Whether the guest may be shown the children that it observes: only if the account could read them itself.
    async fn may_observe(&self) -> Result<(), Failure> {
        let Some(account) = self.account.as_ref().map_err(Clone::clone)? else { return Ok(()) };
        for child in self.binding.manifest.children.iter().filter(|child| child.observe) {
            // Of a kind that is not served there is nothing to show.
            let Some(resource) = self.shared.state().resources.get(&child.kind()).cloned() else { continue };
            let grants = &self.binding.grants;
            for namespace in grants.namespaces_of(&child.kind(), pintle_core::object::namespace(&self.root)) {
                self.shared.access.may_read(&self.cluster, account, &resource, namespace).await?;
            }
        }
        Ok(())
    }

    /// Looks up the objects that the guest asks to see. From now on, the root is requeued when they change.
    async fn look(&self, key: &RootKey, lookups: &[LookUp]) -> Vec<Result<Vec<Value>, Failure>> {
        let asker = (self.binding.root_kind(), key.clone());
        let started = clock::monotonic();
        loop {
            let listed = self.shared.needs_listed.notified();
            match self.shared.state().needed.ask(&asker, lookups) {
                // More fields of each object must be kept, so the watch begins anew.
                Ok(true) => self.shared.control.notify_one(),
                Ok(false) => {}
                Err(kind) => return lookups.iter().map(|_| Err(too_many_fields(&kind))).collect(),
            }
            let left = LIST_PATIENCE.saturating_sub(clock::monotonic().saturating_sub(started));
            let is_listing = |look: &LookUp| {
                reconciler::is_watchable(look.kind())
                    && !self.shared.state().needed.is_known(look)
                    && self.is_served(look)
                    && self.watch_failure(look).is_none()
            };
            if left.is_zero() || !lookups.iter().any(is_listing) {
                break;
            }
            let _ = tokio::time::timeout(left.min(LIST_POLL), listed).await;
        }
        // Each look-up takes the lock by itself, because it may look at every object of its kind, and other tasks need the lock. A
        // change in between requeues the root.
        let (mut budget, mut followed) = (Budget::default(), Budget::default());
        let mut looked = Vec::with_capacity(lookups.len());
        for (index, look) in lookups.iter().enumerate() {
            if index % LOOKS_AT_ONCE == LOOKS_AT_ONCE - 1 {
                tokio::task::yield_now().await;
            }
            let budget = if look.is_followed() { &mut followed } else { &mut budget };
            looked.push(self.shared.state().needed.find(look, budget));
            if !look.is_followed() && looked.last() == Some(&Looked::TooMuch) {
                // Nothing of it is shown, and the objects found before are dropped.
                let failed = |at: usize, look: &LookUp| match at == index {
                    true => Err(needs::too_large(look.kind(), look.select())),
                    false => Ok(Vec::new()),
                };
                return lookups.iter().enumerate().map(|(at, look)| failed(at, look)).collect();
            }
        }
        let mut answers = Vec::with_capacity(lookups.len());
        let mut looked = lookups.iter().zip(looked);
        // A few at a time, since objects that are read live may be large.
        loop {
            let some: Vec<(&LookUp, Looked)> = looked.by_ref().take(READS_AT_ONCE).collect();
            if some.is_empty() {
                return answers;
            }
            let kinds = some.iter().map(|(look, looked)| (*look, *looked == Looked::Live));
            let kinds: Vec<(&LookUp, bool)> = kinds.collect();
            let some = join_all(some.into_iter().map(|(look, looked)| self.answer(look, looked))).await;
            for ((look, is_live), answer) in kinds.into_iter().zip(some) {
                answers.push(answer.and_then(|found| match is_live {
                    true => shown(look, found, &mut budget),
                    false => Ok(found),
                }));
            }
        }
    }

    fn is_served(&self, look: &LookUp) -> bool {
        self.shared.state().resources.contains_key(look.kind())
    }

    /// Why the watch of the looked-up objects does not work.
    fn watch_failure(&self, look: &LookUp) -> Option<String> {
        let state = self.shared.state();
        let mut watches =
            state.watches.iter().filter(|(key, _)| key.brings_needs() && key.kind == *look.kind());
        watches.find_map(|(_, watch)| match &watch.state {
            WatchState::Failing(message) if !watch.listed => Some(message.clone()),
            _ => None,
        })
    }

    /// The answer to one look-up, if the account may see it.
    async fn answer(&self, look: &LookUp, looked: Looked) -> Result<Vec<Value>, Failure> {
        let (resource, unclear) = {
            let state = self.shared.state();
            (state.resources.get(look.kind()).cloned(), state.unclear.contains_key(look.kind()))
        };
        let Some(resource) = resource else {
            if unclear {
                let message = format!("the API server does not say whether it serves {}", look.kind());
                return Err(Failure::transient(reasons::NEED_UNREAD, message));
            }
            // Of a kind that is not served there is nothing to show.
            return Ok(Vec::new());
        };
        if let Some(account) = self.account.as_ref().map_err(Clone::clone)? {
            self.shared.access.may_see(&self.cluster, account, &resource, look).await?;
        }
        match (looked, look.select()) {
            (Looked::Found(objects), _) => Ok(objects.iter().map(|kept| kept.value(look.fields())).collect()),
            (Looked::TooMuch, select) => Err(needs::too_large(look.kind(), select)),
            (Looked::Live, Select::Name(name)) => {
                let Kind { api_version, kind } = look.kind().clone();
                let namespace = look.namespace().map(Into::into);
                let reference = ObjectRef { api_version, kind, namespace, name: name.clone() };
                let found = match self.children() {
                    Ok(cluster) => cluster.get(&resource, &reference).await,
                    Err(error) => Err(error),
                };
                let found = found.map_err(|error| {
                    Failure::transient(reasons::NEED_UNREAD, format!("{reference}: {error}"))
                })?;
                Ok(found.into_iter().collect())
            }
            (Looked::Live | Looked::NotYet, _) => {
                let why = self.watch_failure(look).unwrap_or_else(|| "they have not been listed yet".into());
                let message =
                    format!("the host cannot show the guest objects of kind {}: {why}", look.kind());
                Err(Failure::transient(reasons::NEED_UNREAD, message))
            }
        }
    }

    async fn patch(&self, patch: &Apply) -> Result<Value, ApiError> {
        let reference = patch.reference();
        let resource = self.resource_of(reference).await?;
        let reply = self.children()?.apply(&resource, patch, Back::Whole).await;
        self.shared.metrics.wrote(&self.binding.reconciler, "patch", reply.as_ref().err());
        info!(reconciler = self.binding.reconciler, object = %reference, patched = reply.is_ok(), "Patched");
        Ok(reply?.object)
    }

    async fn evict(&self, eviction: &EvictionWrite) -> Result<(), ApiError> {
        let reply = self.children()?.evict(eviction).await;
        self.shared.metrics.wrote(&self.binding.reconciler, "evict", reply.as_ref().err());
        let (pod, mode) = (eviction.reference(), eviction.mode());
        info!(reconciler = self.binding.reconciler, %pod, ?mode, accepted = reply.is_ok(), "Evicted");
        reply
    }

    /// The pass's next step. For a large answer the step takes long, so it is not computed on a thread that does the I/O of all tasks.
    async fn judge(&self, mut pass: Pass, outcome: Outcome) -> (Pass, Step) {
        let is_large = matches!(outcome, Outcome::Answered(Ok(_)))
            && self.held().as_ref().is_some_and(|held| held.judged_bytes > JUDGED_AT_ONCE_BYTES);
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
    fn judged(&self) {
        if let Some(held) = &mut *self.held() {
            held.reservation.shrink(Purpose::Answer, held.judged_bytes);
        }
    }

    fn held(&self) -> MutexGuard<'_, Option<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn call_guest(&self, request: Request) -> Result<Response, Failure> {
        // The pass has dropped the answer that this one replaces. While it waits for a reservation, it holds none.
        drop(self.held().take());
        self.may_observe().await?;
        let Ok(text) = serde_json::to_string(&request) else {
            return Err(Failure::transient(
                reasons::REQUEST_INVALID,
                "the request cannot be written as JSON",
            ));
        };
        drop(request);
        let text: Arc<str> = text.into();
        let Some(module) = self.module.clone() else {
            return Err(Failure::transient(reasons::MODULE_MISSING, "no module is in force"));
        };
        let (lane, budget, metrics) = (&self.binding.reconciler, &self.shared.budget, &self.shared.metrics);
        let limits = self.call_limits();
        let most = Need {
            memory_bytes: limits.memory_bytes as u64,
            text_bytes: limits.response.bytes as u64,
            parsed_bytes: Weight::parsed_bytes_max(limits.response) as u64,
        };
        let mut grant = budget.grant(lane, most);
        // The last grant, which was not enough.
        let mut too_little = Need::default();
        loop {
            let reservation = self.reserve(&mut grant, too_little, text.len() as u64).await?;
            let (called, reservation) =
                self.call_within(&module, Arc::clone(&text), limits, grant, reservation).await?;
            let stats = called.as_ref().map_or_else(|error| error.stats, |answer| answer.stats);
            if let Some(more) = called.as_ref().err().and_then(|error| more(error, grant, most)) {
                // A guest is a pure function, so it is called again. The reservation of the first call is given back before.
                drop(reservation);
                (too_little, grant) = (grant, more);
                continue;
            }
            let need = need(stats);
            budget.saw(lane, need);
            metrics.guest_called(lane, stats.duration, stats.peak_memory_bytes);
            if called.is_ok() {
                *self.held() = Some(Held { reservation, judged_bytes: need.of_answer() });
            }
            return called.map(|answer| answer.response).map_err(Failure::from);
        }
    }

    fn call_limits(&self) -> CallLimits {
        let limits = &self.binding.limits;
        CallLimits {
            timeout: Duration::from_millis(limits.timeout_milliseconds.into()),
            memory_bytes: ((limits.memory_mebibytes as usize) << 20)
                .min(self.shared.engine.memory_bytes_max()),
            response: limits.response(),
            ..CallLimits::default()
        }
    }

    /// Waits for the memory that a call is granted. If the budget can never give so much, the call is granted less linear memory, provided
    /// that this is still more than the grant that was not enough. Most guests never use all that they may have.
    async fn reserve(
        &self,
        grant: &mut Need,
        too_little: Need,
        request_bytes: u64,
    ) -> Result<Reservation, TooLarge> {
        let (lane, budget) = (&self.binding.reconciler, &self.shared.budget);
        let mut reserved = budget.reserve(lane, Purpose::Call, grant.of_call(request_bytes)).await;
        if let Err(TooLarge { bytes, bytes_max }) = reserved {
            let memory_bytes = grant.memory_bytes.saturating_sub(bytes.saturating_sub(bytes_max));
            if memory_bytes > too_little.memory_bytes {
                grant.memory_bytes = memory_bytes;
                reserved = budget.reserve(lane, Purpose::Call, grant.of_call(request_bytes)).await;
            }
        }
        if reserved.as_ref().is_ok_and(Reservation::waited) {
            self.shared.metrics.limit_hit(lane, Limit::MemoryBudget);
        }
        reserved
    }

    /// Calls the guest with its grant. The reservation stays with the call, even if nothing waits for the call any more.
    async fn call_within(
        &self,
        module: &Module,
        text: Arc<str>,
        limits: CallLimits,
        grant: Need,
        reservation: Reservation,
    ) -> Result<(Result<Answer, CallError>, Reservation), Failure> {
        let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let mut limits = CallLimits { memory_bytes: bytes(grant.memory_bytes), ..limits };
        limits.response.bytes = bytes(grant.text_bytes);
        limits.response.parsed_bytes = bytes(grant.parsed_bytes);
        match (&self.shared.guests, module.reconcile_at_once(&text, &limits)) {
            (Some(call), _) => Ok((call(module, &text, &limits), reservation)),
            (None, Some(answer)) => Ok((answer, reservation)),
            // A call computes for up to its deadline. On a thread of the runtime it would hold up the I/O of all tasks for as long.
            (None, None) => {
                let module = module.clone();
                let called =
                    self.shared.spawner.block(move || (module.reconcile(&text, &limits), reservation));
                called.await.map_err(|error| Failure::transient(reasons::ENGINE_FAILED, error.to_string()))
            }
        }
    }

    /// How the API server serves a kind. For a kind that no Reconciler declares, the API server is asked, since a root's status may name
    /// any kind.
    async fn resource_of(&self, reference: &ObjectRef) -> Result<Resource, ApiError> {
        let kind = reference.kind();
        let now = clock::monotonic();
        let not_served = || ApiError {
            reason: reasons::KIND_MISSING.into(),
            message: format!("the API server does not serve {kind}"),
            ..ApiError::default()
        };
        {
            let state = self.shared.state();
            if let Some(known) = state.resources.get(&kind) {
                return Ok(known.clone());
            }
            if state.unserved.get(&kind).is_some_and(|until| now < *until) {
                return Err(not_served());
            }
        }
        let found = self.cluster.discover(&kind).await?;
        found.ok_or_else(|| {
            let mut state = self.shared.state();
            state.unserved.retain(|_, until| now < *until);
            if state.unserved.len() < UNSERVED_MAX {
                state.unserved.insert(kind.clone(), now + UNSERVED_FOR);
            }
            not_served()
        })
    }

    fn observes(&self, reference: &ObjectRef) -> bool {
        self.binding.manifest.children.iter().any(|child| child.observe && child.kind() == reference.kind())
    }

    /// How much of a child the host has to know. The reply to an apply need not contain the rest, and should not contain secret values.
    fn back(&self, reference: &ObjectRef) -> Back {
        match self.observes(reference) || readiness::needs_status(&reference.kind()) {
            true => Back::Whole,
            false => Back::Metadata,
        }
    }

    fn observed(&self, reference: &ObjectRef, mut live: Value) -> Observed {
        live["apiVersion"] = reference.api_version.as_str().into();
        live["kind"] = reference.kind.as_str().into();
        Observed::of(&live, &self.binding.field_manager, self.observes(reference))
    }

    async fn get(&self, reference: &ObjectRef) -> Result<Option<Observed>, ApiError> {
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
        let mut state = self.shared.state();
        match &found {
            // An object of somebody else belongs into no cache, and is not kept.
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

    /// The root as it is now. Only its watch puts it into the cache.
    async fn read_root(&self) -> Result<Option<Value>, ApiError> {
        self.cluster.get_metadata(&self.resource, &pintle_core::object::reference(&self.root)).await
    }

    async fn apply(&self, apply: &Apply) -> Result<Applied, ApiError> {
        let reference = apply.reference();
        let resource = self.resource_of(reference).await?;
        let _writing = self.shared.writing(reference);
        let reply = self.children()?.apply(&resource, apply, self.back(reference)).await;
        self.shared.metrics.wrote(&self.binding.reconciler, "apply", reply.as_ref().err());
        let reply = reply?;
        let observed = self.observed(reference, reply.object);
        self.shared.state().children.wrote(observed.clone());
        debug!(reconciler = self.binding.reconciler, child = %reference, created = reply.created, "Applied");
        Ok(Applied { created: reply.created, observed })
    }

    async fn inspect(&self, reference: &ObjectRef) -> Result<Option<Value>, ApiError> {
        let resource = self.resource_of(reference).await?;
        self.children()?.get_whole(&resource, reference).await
    }

    async fn claim(&self, claim: &pintle_core::Claim) -> Result<Observed, ApiError> {
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

    async fn delete(&self, deletion: &pintle_core::Deletion) -> Result<(), ApiError> {
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

    async fn set_finalizers(&self, write: &FinalizerWrite) -> Result<(), ApiError> {
        let reply = self.cluster.patch_finalizers(&self.resource, write).await;
        self.shared.metrics.wrote(&self.binding.reconciler, "finalizers", reply.as_ref().err());
        // The watch brings the root as it is now. The finalizers do not matter to the guest.
        reply.map(|_| ())
    }

    async fn write_status(&self, write: &pintle_core::StatusWrite) -> Result<(), ApiError> {
        let _writing = self.shared.writing(&pintle_core::object::reference(write.object()));
        let reply = self.cluster.write_status(&self.resource, write).await;
        self.shared.metrics.wrote(&self.binding.reconciler, "status", reply.as_ref().err());
        let mut live = reply?;
        let kind = self.binding.root_kind();
        live["apiVersion"] = kind.api_version.as_str().into();
        live["kind"] = kind.kind.as_str().into();
        let mut state = self.shared.state();
        let changed = state.roots.wrote(&kind, live);
        self.shared.tell_of_counts(&mut state, &kind);
        drop(state);
        if changed {
            // The guest's own status fields are its memory. Now that they are written, its answer may be another one.
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
        let state_term = state.term;
        let kind = self.binding.root_kind();
        // While the pass waited for a reply, another Reconciler may have begun to work on the root.
        let active = state.active.get(&self.binding.reconciler);
        if active.is_none_or(|active| active.binding.uid != self.binding.uid) {
            return Finished::Gone;
        }
        let Some(root) = state.roots.get_mut(&kind, key) else { return Finished::Gone };
        if !root.is(pintle_core::object::uid(&self.root)) {
            return Finished::Settled;
        }
        let failing = done.error.is_some();
        // If the term has ended since, another host may have changed what this pass has learnt.
        let is_current = state_term == Some(self.term);
        let memory = if is_current { done.memory } else { RootMemory::default() };
        state.roots.remember(&kind, key, memory, failing);
        if is_current {
            state.children.judged(&done.judged);
        }
        self.shared.tell_of_counts(&mut state, &kind);
        drop(state);
        match (done.retry, done.again) {
            (Some(at_least), _) if done.overran => Finished::Overran(at_least),
            (Some(at_least), _) => Finished::Failed(at_least),
            (None, Some(after)) => Finished::Again(after),
            (None, None) => Finished::Settled,
        }
    }
}

/// The memory that a call needed.
fn need(stats: CallStats) -> Need {
    Need {
        memory_bytes: stats.peak_memory_bytes as u64,
        text_bytes: stats.response_bytes as u64,
        parsed_bytes: stats.parsed_bytes as u64,
    }
}

/// The next grant for a call that failed for lack of memory, if it may have more.
fn more(error: &CallError, grant: Need, most: Need) -> Option<Need> {
    if error.origin != Origin::Engine {
        return None;
    }
    let seen = need(error.stats);
    let more = match error.failure.reason.as_str() {
        reasons::MEMORY => Need { memory_bytes: most.memory_bytes, ..grant },
        reasons::TOO_LARGE => Need { text_bytes: most.text_bytes, ..grant },
        // The failure says how much the answer needs, unless the answer was changed on its way.
        reasons::BEYOND_GRANT if seen.parsed_bytes > grant.parsed_bytes => {
            Need { parsed_bytes: seen.parsed_bytes.min(most.parsed_bytes), ..grant }
        }
        reasons::BEYOND_GRANT => Need { parsed_bytes: most.parsed_bytes, ..grant },
        _ => return None,
    };
    (more != grant).then_some(more)
}

/// The shown part of objects that were read live, if the budget has so much left.
fn shown(look: &LookUp, found: Vec<Value>, budget: &mut Budget) -> Result<Vec<Value>, Failure> {
    let mut all = Vec::with_capacity(found.len());
    for live in found {
        let shown = needs::project(&live, look.fields());
        if !budget.take_object(&shown) {
            return Err(needs::too_large(look.kind(), look.select()));
        }
        all.push(shown);
    }
    Ok(all)
}

fn too_many_fields(kind: &Kind) -> Failure {
    let message = format!(
        "the roots of this kind ask for more than {FIELDS_KEPT_MAX} different fields of {kind} together; ask for fields that hold them, \
         for instance `spec`"
    );
    Failure::transient(reasons::TOO_MANY_FIELDS, message)
}

fn report(shared: &Shared, lane: &str, key: &RootKey, done: &Done, took: Duration) {
    let ended = match (&done.error, done.retry) {
        (None, None) if done.again.is_none() => Ended::Success,
        (None, _) => Ended::RequeueAfter,
        (Some(reason), Some(_)) => Ended::Failed(reason),
        (Some(reason), None) => Ended::Terminal(reason),
    };
    shared.metrics.reconciled(lane, ended, took);
    shared.metrics.hits(lane, done.hits);
    let counts = done.counts;
    if counts.unlisted_violations > 0 {
        shared.metrics.limit_hit(lane, Limit::Violations);
    }
    match &done.error {
        Some(error) => {
            let next = match done.retry {
                Some(_) => "it is tried again after a back-off of at most 60 s",
                None => "it waits for a change of the root, its children, the Reconciler or the module",
            };
            // What the reason alone does not show: the verb and the object, or the field.
            let because = done.message.as_deref().unwrap_or_default();
            warn!(reconciler = lane, root = %key, error, because, next, "Reconciled with an error");
        }
        None if done.throttled && counts.created + counts.updated + counts.deleted > 0 => {
            let next = "it is slowed to one pass in 10 s at most; see who else writes its children";
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
