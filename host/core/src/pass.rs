//! One reconcile as a state machine without I/O.
//!
//! A [`Pass`] is made from a [`Snapshot`] and driven by [`Pass::step`]: it says what is to be done next, and is told what came of it.
//! The operator carries the steps out with a Kubernetes client, `pintle render` and `pintle test` with files. Everything that makes a
//! reconcile right or wrong is decided here: the order (children, prune, status, events), what is created and what is updated, what
//! a refusal leads to, and what the status says.

mod api_error;
mod children;
mod memory;
mod protocol;
mod say;
mod settle;
mod writes;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use pintle_wit::{Event, Failure, Host, Kind, Manifest, ObjectRef, Refusal, Request, Response};
use serde_json::Value;

pub use api_error::ApiError;
pub use memory::RootMemory;
pub use protocol::{Applied, Counts, Done, Judged, Outcome, Step};
pub use writes::{Apply, Deletion, StatusWrite};

use crate::{
    POLICY_VERSION,
    conditions::Blocker,
    desired::{self, SealingKey},
    gate::{self, Allowed, GateContext, KindInfo},
    object,
    observed::Observed,
    reconciler::{CAPABILITIES, Grants, Limits, is_watchable},
    request,
    status::StatusSchema,
};
use children::ChildState;
use memory::Memo;

/// How often a guest is called in one pass while it and the API server disagree. The first call, one with the refusals that it
/// led to, and one more for a guest that works around them.
const GUEST_CALLS_MAX: u32 = 3;

/// Everything about a reconciler that holds for a whole pass: a pass runs on one module from start to end.
#[derive(Clone, Debug)]
pub struct Binding {
    /// The Reconciler's name.
    pub reconciler: String,
    /// The Reconciler's generation: with it, grants, limits and config change.
    pub generation: i64,
    /// The field manager of every write.
    pub field_manager: String,
    /// What the guest may do.
    pub grants: Grants,
    /// The limits of its calls and answers.
    pub limits: Limits,
    /// Its config.
    pub config: Value,
    /// The digest of the module in force.
    pub digest: String,
    /// The manifest of the module in force.
    pub manifest: Manifest,
    /// The child kinds that the API server serves.
    pub kinds: BTreeMap<Kind, KindInfo>,
    /// What the root's CRD lets a status say.
    pub status: StatusSchema,
    /// The key that hashes of Secrets are sealed with.
    pub key: SealingKey,
    /// The namespaces in which kinds are watched too that are not watched elsewhere.
    pub watched_namespaces: BTreeSet<String>,
}

/// What is known at the start of a pass.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The reconciler.
    pub binding: Arc<Binding>,
    /// The live root.
    pub root: Arc<Value>,
    /// Every object known to carry the root's uid as controller or label. Those of kinds that are not watched may be left out:
    /// the memory keeps them.
    pub children: Vec<Observed>,
    /// What the last pass over this root left.
    pub memory: RootMemory,
    /// The time, one value for the whole pass.
    pub now: Timestamp,
}

/// One reconcile of one root.
#[derive(Debug)]
pub struct Pass {
    binding: Arc<Binding>,
    root: Arc<Value>,
    now: Timestamp,
    memory: RootMemory,
    /// Live objects by group, kind, namespace and name.
    live: BTreeMap<Key, Observed>,
    /// The answer in force, once the gate let one through.
    answer: Option<Answer>,
    /// Why there is no answer.
    failure: Option<Failure>,
    /// The refusals that the current call of the guest was told.
    told: Vec<Refusal>,
    request_hash: [u8; 32],
    /// The first error that only a retry can help.
    unsure: Option<ApiError>,
    phase: Phase,
    counts: Counts,
    judged: Vec<Judged>,
    ready: bool,
    /// Children of kinds that are not watched that this pass names in the status.
    recorded_now: Vec<ObjectRef>,
    /// The status was written on the way, so that it is to be written at the end whatever the root shows.
    recorded: bool,
}

/// A gated answer and how far each of its children is.
#[derive(Debug)]
struct Answer {
    allowed: Allowed,
    states: Vec<ChildState>,
}

#[derive(Debug)]
enum Phase {
    Begin,
    CallingGuest,
    /// Reading children of kinds that are not watched, as the root's status lists them.
    ReadingUnwatched(Vec<ObjectRef>),
    /// Naming such children in the status, before their first create.
    RecordingUnwatched,
    /// Applying the children with these indexes.
    Applying(Vec<usize>),
    /// Reading what stands in the way of the children with these indexes.
    Resolving(Vec<usize>),
    /// Reading what is to be pruned.
    ReadingPrunable(Vec<ObjectRef>),
    Pruning(Vec<ObjectRef>),
    WritingStatus(Vec<Event>),
    Emitting,
    Over,
}

/// An object without the version of its kind: one object may be known by two.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Key {
    group: String,
    kind: String,
    namespace: Option<String>,
    name: String,
}

impl From<&ObjectRef> for Key {
    fn from(reference: &ObjectRef) -> Self {
        Self {
            group: reference.kind().group().into(),
            kind: reference.kind.clone(),
            namespace: reference.namespace.clone(),
            name: reference.name.clone(),
        }
    }
}

impl Pass {
    /// A pass over a root.
    pub fn new(snapshot: Snapshot) -> Self {
        let Snapshot { binding, root, children, mut memory, now } = snapshot;
        memory.forget_unless(&binding, &root);
        // What the snapshot shows is newer than what is remembered of kinds that no cache shows.
        let known = memory.take_unwatched().into_iter().chain(children);
        let live = known.map(|child| (Key::from(&child.reference), child)).collect();
        Self {
            binding,
            root,
            now,
            memory,
            live,
            answer: None,
            failure: None,
            told: Vec::new(),
            request_hash: [0; 32],
            unsure: None,
            phase: Phase::Begin,
            counts: Counts::default(),
            judged: Vec::new(),
            ready: false,
            recorded_now: Vec::new(),
            recorded: false,
        }
    }

    /// Takes what came of the last step and says the next one. An outcome that does not belong to the last step ends the pass
    /// with an error: it is a mistake of the driver.
    pub fn step(&mut self, outcome: Outcome) -> Step {
        match (std::mem::replace(&mut self.phase, Phase::Over), outcome) {
            (Phase::Begin, Outcome::Start) => self.begin(),
            (Phase::CallingGuest, Outcome::Answered(answer)) => self.answered(answer),
            (Phase::ReadingUnwatched(asked), Outcome::Got(found)) if asked.len() == found.len() => {
                self.read_unwatched(asked, found)
            }
            (Phase::RecordingUnwatched, Outcome::StatusWritten(result)) => match result {
                Ok(()) => self.apply_children(),
                Err(error) => self.give_up(error),
            },
            (Phase::Applying(indexes), Outcome::Applied(results)) if indexes.len() == results.len() => {
                self.applied(&indexes, results)
            }
            (Phase::Resolving(indexes), Outcome::Got(found)) if indexes.len() == found.len() => {
                self.resolved(&indexes, found)
            }
            (Phase::ReadingPrunable(asked), Outcome::Got(found)) if asked.len() == found.len() => {
                self.read_prunable(asked, found)
            }
            (Phase::Pruning(asked), Outcome::Deleted(results)) if asked.len() == results.len() => {
                self.pruned(&asked, results)
            }
            (Phase::WritingStatus(events), Outcome::StatusWritten(result)) => {
                self.status_written(events, result)
            }
            (Phase::Emitting, Outcome::Emitted) => self.over(),
            (phase, outcome) => {
                let message = format!("{outcome:?} does not answer {phase:?}");
                self.give_up(ApiError { reason: "DriverError".into(), message, ..ApiError::default() })
            }
        }
    }

    fn uid(&self) -> &str {
        object::uid(&self.root)
    }

    // === From the start to an answer ===

    fn begin(&mut self) -> Step {
        if object::is_deleting(&self.root) {
            // The garbage collector does the rest; an apply now would re-create what it takes away.
            return self.over();
        }
        let request = self.request();
        self.request_hash = self.hash(&request);
        if self.nothing_changed() {
            return self.write_status();
        }
        self.call_guest(request)
    }

    fn request(&mut self) -> Request {
        self.told = self.memory.refusals();
        let mut children: Vec<Value> = self
            .live
            .values()
            .filter(|child| child.is_owned_by(self.uid()))
            .filter_map(|child| child.object.clone())
            .collect();
        request::sort(&mut children);
        Request {
            object: request::project_root(&self.root),
            config: self.binding.config.clone(),
            children,
            refusals: self.told.clone(),
            host: Host { capabilities: CAPABILITIES.map(Into::into).into() },
            ..Request::default()
        }
    }

    fn hash(&self, request: &Request) -> [u8; 32] {
        // A request is plain data with string keys, so that writing it as JSON cannot fail.
        let text = serde_json::to_vec(request).unwrap_or_default();
        let generation = self.binding.generation.to_le_bytes();
        desired::hash_parts(&[
            self.binding.digest.as_bytes(),
            &generation,
            &POLICY_VERSION.to_le_bytes(),
            &text,
        ])
    }

    /// Whether the last pass already did everything that this one would: the request is the same, and no child drifted, came or went.
    fn nothing_changed(&self) -> bool {
        let Some(memo) = &self.memory.memo else { return false };
        memo.is_about(&self.request_hash)
            && self.unread_unwatched().is_empty()
            && memo.children_are_as_they_were(self.live.iter(), self.uid())
    }

    fn call_guest(&mut self, request: Request) -> Step {
        self.counts.guest_calls += 1;
        self.phase = Phase::CallingGuest;
        Step::CallGuest(Box::new(request))
    }

    fn answered(&mut self, answer: Result<Response, Failure>) -> Step {
        let binding = Arc::clone(&self.binding);
        let context = binding.context(&self.root);
        match answer
            .and_then(|response| gate::gate(&context, response).map_err(|found| gate::failure(&found)))
        {
            Ok(allowed) => {
                let states = allowed.children().iter().map(|_| ChildState::Pending).collect();
                self.answer = Some(Answer { allowed, states });
                match self.unread_unwatched() {
                    unread if unread.is_empty() => self.apply_children(),
                    unread => {
                        self.phase = Phase::ReadingUnwatched(unread.clone());
                        Step::Get(unread)
                    }
                }
            }
            Err(failure) => {
                self.answer = None;
                self.fail(failure)
            }
        }
    }

    fn fail(&mut self, failure: Failure) -> Step {
        self.failure = Some(failure);
        self.memory.memo = None;
        self.write_status()
    }

    /// Stops before anything else is changed, on an error that says nothing about the answer, and says so in the status.
    fn stop(&mut self, error: ApiError) -> Step {
        self.memory.memo = None;
        doubt(&mut self.unsure, error);
        self.write_status()
    }

    /// Ends the pass on an error that the status cannot tell.
    fn give_up(&mut self, error: ApiError) -> Step {
        self.memory.memo = None;
        doubt(&mut self.unsure, error);
        self.ready = false;
        self.over()
    }

    // === Children of kinds that are not watched ===

    /// Those that the status names and that nobody has looked at since the host started.
    fn unread_unwatched(&self) -> Vec<ObjectRef> {
        let namespace = object::namespace(&self.root);
        self.recorded_unwatched()
            .into_iter()
            .filter(|entry| !self.memory.read.contains(entry))
            .map(|entry| ObjectRef {
                api_version: entry.api_version,
                kind: entry.kind,
                namespace: namespace.map(Into::into),
                name: entry.name,
            })
            .collect()
    }

    fn read_unwatched(
        &mut self,
        asked: Vec<ObjectRef>,
        found: Vec<Result<Option<Observed>, ApiError>>,
    ) -> Step {
        for (reference, found) in asked.into_iter().zip(found) {
            match found {
                Ok(found) => self.saw(&reference, found),
                Err(error) => return self.stop(error),
            }
        }
        self.apply_children()
    }

    /// Takes note of an object that was read live.
    fn saw(&mut self, reference: &ObjectRef, found: Option<Observed>) {
        let key = Key::from(reference);
        self.memory.read.insert(memory::unwatched(reference));
        match found {
            Some(child) => self.live.insert(key, child),
            None => self.live.remove(&key),
        };
    }

    fn status_written(&mut self, events: Vec<Event>, result: Result<(), ApiError>) -> Step {
        match result {
            Ok(()) => {}
            // The root is gone, or another has taken its name: nobody is left to be told.
            Err(error) if error.code == 404 || error.is_uid_mismatch() => return self.over(),
            Err(error) => {
                self.memory.memo = None;
                doubt(&mut self.unsure, error);
                self.ready = false;
            }
        }
        self.counts.status_writes += 1;
        self.emit(events)
    }

    fn emit(&mut self, events: Vec<Event>) -> Step {
        if events.is_empty() {
            return self.over();
        }
        self.phase = Phase::Emitting;
        Step::Emit(events)
    }

    fn over(&mut self) -> Step {
        self.phase = Phase::Over;
        let refused = self.memory.blocking(self.answer.as_ref().map(|answer| &answer.allowed));
        // A terminal failure is no refusal's to end.
        let retried = refused.iter().find(|standing| standing.retry && self.failure.is_none());
        let error = match (&self.failure, &self.unsure, refused.first()) {
            (Some(failure), ..) => Some(failure.reason.clone()),
            (None, Some(error), _) => Some(error.reason_word()),
            (None, None, Some(standing)) => Some(standing.refusal.reason.clone()),
            (None, None, None) => None,
        };
        // No watch tells when an object of a kind that is not watched is gone.
        let waits_unseen = self.answer.as_ref().is_some_and(|answer| {
            let children = answer.allowed.children().iter().zip(&answer.states);
            children.into_iter().any(|(child, state)| {
                matches!(state, ChildState::Held(_)) && !self.binding.watches(child.reference())
            })
        });
        let waits = waits_unseen
            || self.failure.as_ref().is_some_and(|failure| failure.retry)
            || self.unsure.is_some()
            || retried.is_some();
        // What is going, or somebody else's, is looked at again.
        let kept = self.live.values().filter(|child| !self.binding.watches(&child.reference));
        let (kept, again): (Vec<Observed>, Vec<Observed>) =
            kept.cloned().partition(|child| child.is_owned_by(self.uid()) && !child.deleting);
        self.memory
            .read
            .retain(|entry| !again.iter().any(|child| memory::unwatched(&child.reference) == *entry));
        self.memory.keep_unwatched(kept);
        let at_least = self.unsure.as_ref().and_then(|error| error.retry_after).unwrap_or_default();
        Step::Done(Box::new(Done {
            retry: waits.then_some(at_least),
            ready: self.ready,
            error,
            counts: self.counts,
            judged: std::mem::take(&mut self.judged),
            memory: std::mem::take(&mut self.memory),
        }))
    }
}

/// Keeps the first error, which is the one to tell, and the longest time that the API server asked for.
fn doubt(unsure: &mut Option<ApiError>, error: ApiError) {
    let first = unsure.get_or_insert_with(|| error.clone());
    first.retry_after = first.retry_after.max(error.retry_after);
}

/// Why a root is not ready, in the order of weight.
type Blockers = Vec<Blocker>;

impl Binding {
    /// What the gate judges an answer about this root by.
    pub fn context<'a>(&'a self, root: &'a Value) -> GateContext<'a> {
        GateContext {
            root,
            manifest: &self.manifest,
            reconciler: &self.reconciler,
            grants: &self.grants,
            limits: &self.limits,
            kinds: &self.kinds,
            status: &self.status,
            key: &self.key,
        }
    }

    /// Whether what happens to a child is seen by a watch.
    pub fn watches(&self, child: &ObjectRef) -> bool {
        is_watchable(&child.kind())
            || child.namespace.as_ref().is_some_and(|namespace| self.watched_namespaces.contains(namespace))
    }

    /// The kind of the roots.
    pub fn root_kind(&self) -> Kind {
        self.manifest.reconciles.clone()
    }
}
