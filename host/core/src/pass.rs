//! One reconcile as a state machine without I/O.
//!
//! A [`Pass`] is made from a [`Snapshot`] and driven by [`Pass::step`], which takes the outcome of the last step and returns the next
//! one. The operator carries the steps out with a Kubernetes client; `pintle render` and `pintle test` carry them out with files.
//!
//! Everything that makes a reconcile right or wrong is decided here: the order (finalizers, children, patches, prune, status, evictions,
//! events), what is created and what is updated, what a refusal leads to, and what the status says.

mod adoption;
mod api_error;
mod breaker;
mod children;
mod deletions;
mod displaced;
mod events;
mod evictions;
mod finalize;
mod labels;
mod memory;
mod needs;
mod patches;
mod protocol;
mod recorded;
mod say;
mod settle;
mod stages;
mod writes;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use pintle_wit::{
    Event, Eviction, Failure, Host, Kind, Manifest, Need, ObjectRef, Refusal, Request, Response, names,
};
use serde_json::Value;

pub use api_error::ApiError;
pub use breaker::{ASKING_BURST, DEADLINE_COST};
pub use events::{EVENTS_AT_ONCE, EVENTS_EVERY};
pub use finalize::Duty;
pub use memory::RootMemory;
pub use protocol::{Applied, Counts, Done, Hits, Judged, Outcome, Step};
pub use recorded::RECORDED_MAX;
pub use writes::{Apply, Claim, Deletion, EvictionWrite, FinalizerWrite, StatusWrite};

use crate::{
    Config, POLICY_VERSION,
    conditions::Blocker,
    desired::{self, SealingKey},
    gate::{self, Allowed, GateContext, KindInfo},
    object,
    observed::Observed,
    reasons,
    reconciler::{CAPABILITIES, Grants, Limits, is_watchable},
    request,
    status::StatusSchema,
};
use children::ChildState;
use deletions::Goes;
use finalize::Then;
use memory::Memo;

/// How many times a guest is called in one pass while it and the API server disagree: the first call, one with the refusals that the
/// first answer led to, and one more for a guest that works around them.
const GUEST_CALLS_MAX: u32 = 3;

/// Everything about a Reconciler that holds for a whole pass. A pass runs on one module from start to end.
#[derive(Clone, Debug)]
pub struct Binding {
    /// The Reconciler's name.
    pub reconciler: String,
    /// The Reconciler's uid. Another Reconciler may take its name later, and start with the same generation.
    pub uid: String,
    /// The Reconciler's generation that grants and limits come from. Module and config may come from an earlier one.
    pub generation: i64,
    /// The field manager of every write.
    pub field_manager: String,
    /// What the guest may do.
    pub grants: Grants,
    /// The limits of its calls and answers.
    pub limits: Limits,
    /// Its config.
    pub config: Config,
    /// The digest of the module in force.
    pub digest: String,
    /// The manifest of the module in force.
    pub manifest: Manifest,
    /// The kinds of children, needs and patches that the API server serves.
    pub kinds: BTreeMap<Kind, KindInfo>,
    /// What the root's CRD lets a status say.
    pub status: StatusSchema,
    /// The key that hashes of Secrets are sealed with.
    pub key: SealingKey,
    /// What passes do for the roots at present.
    pub duty: Duty,
    /// Namespaces in which the host also watches the kinds that it does not watch elsewhere.
    pub watched_namespaces: BTreeSet<String>,
}

/// What is known at the start of a pass.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The reconciler.
    pub binding: Arc<Binding>,
    /// The live root.
    pub root: Arc<Value>,
    /// The resourceVersion in which a list showed the root, if nothing has shown it since. The root may be older than this host, and
    /// may have changed since the list.
    pub root_listed_at: Option<String>,
    /// Every object known to carry the root's uid as controller or label. Objects of kinds that are not watched may be left out,
    /// because the memory keeps them.
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
    /// The answer in force, once the gate has allowed one.
    answer: Option<Answer>,
    /// Why there is no answer.
    failure: Option<Failure>,
    /// The refusals that the current request to the guest contains.
    told: Vec<Refusal>,
    request_hash: [u8; 32],
    /// The first error after which only a retry can help.
    unsure: Option<ApiError>,
    phase: Phase,
    counts: Counts,
    hits: Hits,
    judged: Vec<Judged>,
    ready: bool,
    /// Children of kinds that are not watched that this pass names in the status.
    recorded_now: Vec<ObjectRef>,
    /// The root was edited since the last pass, or another module, config or Reconciler is in force.
    edited: bool,
    /// Why children were written, where it matters: the root is about to be slowed.
    fight: Option<String>,
    /// The breaker was charged for this pass already.
    charged: bool,
    /// When to come back although nothing fails.
    again: Option<Duration>,
    /// The status was written during the pass, so it must be written at the end whatever the root shows.
    recorded: bool,
    /// The root's finalizers, ours and others'.
    finalizers: BTreeSet<String>,
    /// An object is being deleted, and there may be no watch that reports when it is gone.
    waits: bool,
    /// The root was read live in this pass, and is still as the pass knows it.
    root_stays: bool,
    /// The events to publish when the host releases the root.
    leaving: Vec<Event>,
    /// What the guest asks to see.
    needs: needs::Needs,
    /// How many different requests the guest was asked. One request may take several calls until the guest has seen what it needs.
    rounds: u32,
    /// Patches that the status need not name any more, once all patches were looked at.
    released: Option<Vec<ObjectRef>>,
    /// Patches that were not accepted.
    patches_refused: Vec<(ObjectRef, ApiError)>,
    /// The status names the patches that must be removed in the end.
    patches_recorded: bool,
    /// The root is being deleted, and its patches are removed with it.
    takes_away: bool,
    /// This host has looked at the root before.
    had_a_pass: bool,
    /// The root's resourceVersion, if only a list has shown the root and no pass has read it live since. The root may be newer by now.
    may_be_newer_than: Option<String>,
    /// Evictions that were not accepted are retried, after this long at the earliest.
    eviction_retry: Option<Duration>,
}

/// An answer that passed the gate, and how far each of its children is.
#[derive(Debug)]
struct Answer {
    allowed: Allowed,
    states: Vec<ChildState>,
    /// The pass is about to apply onto an object that the root does not own yet.
    adopts: bool,
}

#[derive(Debug)]
enum Phase {
    Begin,
    CallingGuest,
    /// Looking up what the guest asks to see.
    LookingUp(Vec<Need>),
    /// Naming in the status the patches that must be removed in the end.
    RecordingPatches,
    /// Reading the objects of patches.
    ReadingPatched(Vec<patches::Task>),
    /// Patching them, each with the resourceVersion in which it was read.
    Patching(Vec<(patches::Task, String)>),
    /// Evicting or deleting Pods.
    Evicting(Vec<Eviction>, Vec<Event>),
    /// Writing the result of the evictions into the status.
    WritingStatusAgain(Vec<Event>),
    /// Writing the root's finalizers.
    SettingFinalizers(BTreeSet<String>, Then),
    /// Reading children that the root's status names because no cache need show them.
    ReadingRecorded(Vec<ObjectRef>),
    /// Naming such children in the status, before their first create.
    Recording,
    /// Reading the root, before it becomes the owner of an existing object, and when the cached root may be stale.
    ReadingRoot(adoption::Before),
    /// Applying the children with these indexes.
    Applying(Vec<usize>),
    /// Reading the objects that stand in the way of the children with these indexes.
    Resolving(Vec<usize>),
    /// Reading whether items of others have replaced items of ours in the children with these indexes.
    Inspecting(Vec<usize>),
    /// Taking over such items.
    Claiming(Vec<usize>),
    /// Reading the objects that are about to be deleted.
    ReadingDoomed(Goes, Vec<ObjectRef>),
    Deleting(Goes, Vec<ObjectRef>),
    WritingStatus(Vec<Event>),
    Emitting,
    Over,
}

/// The name of an object without its kind's version, since one object may be known by two versions.
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
        let Snapshot { binding, root, root_listed_at, children, mut memory, now } = snapshot;
        let had_a_pass = memory.had_a_pass(&root);
        let edited = memory.forget_unless(&binding, &root);
        // Only a live read counts here. A pass that ended proves nothing, since it may have had nothing to write.
        let may_be_newer_than =
            root_listed_at.filter(|version| memory.is_as_listed.as_ref() != Some(version));
        let finalizers = object::finalizers(&root).map(Into::into).collect();
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
            hits: Hits::default(),
            judged: Vec::new(),
            ready: false,
            recorded_now: Vec::new(),
            edited,
            fight: None,
            charged: false,
            again: None,
            recorded: false,
            finalizers,
            waits: false,
            root_stays: false,
            leaving: Vec::new(),
            needs: needs::Needs::default(),
            rounds: 0,
            released: None,
            patches_refused: Vec::new(),
            patches_recorded: false,
            takes_away: false,
            may_be_newer_than,
            had_a_pass,
            eviction_retry: None,
        }
    }

    /// Takes the outcome of the last step and returns the next step. An outcome that does not belong to the last step is a mistake of
    /// the driver, and ends the pass with an error.
    pub fn step(&mut self, outcome: Outcome) -> Step {
        match (std::mem::replace(&mut self.phase, Phase::Over), outcome) {
            (Phase::Begin, Outcome::Start) => self.begin(),
            (Phase::CallingGuest, Outcome::Answered(answer)) => self.answered(answer),
            (Phase::SettingFinalizers(wanted, then), Outcome::FinalizersSet(result)) => {
                self.finalizers_set(wanted, then, result)
            }
            (Phase::ReadingRecorded(asked), Outcome::Got(found)) if asked.len() == found.len() => {
                self.read_recorded(asked, found)
            }
            (Phase::LookingUp(asked), Outcome::Looked(found)) => self.looked_up(asked, found),
            (Phase::RecordingPatches, Outcome::StatusWritten(result)) => match result {
                Ok(()) => self.apply_patches(),
                Err(error) => self.give_up(error),
            },
            (Phase::ReadingPatched(tasks), Outcome::Inspected(found)) if tasks.len() == found.len() => {
                self.read_patched_objects(tasks, found)
            }
            (Phase::Patching(due), Outcome::Patched(results)) if due.len() == results.len() => {
                self.patches_written(due, results)
            }
            (Phase::Evicting(pods, events), Outcome::Evicted(results)) if pods.len() == results.len() => {
                self.evicted(pods, results, events)
            }
            (Phase::WritingStatusAgain(events), Outcome::StatusWritten(result)) => {
                if let Err(error) = result {
                    doubt(&mut self.unsure, error);
                    self.ready = false;
                }
                self.emit(events)
            }
            (Phase::ReadingRoot(before), Outcome::RootRead(found)) => self.root_read(before, found),
            (Phase::Recording, Outcome::StatusWritten(result)) => match result {
                Ok(()) => self.apply_children(),
                Err(error) => self.give_up(error),
            },
            (Phase::Applying(indexes), Outcome::Applied(results)) if indexes.len() == results.len() => {
                self.applied(&indexes, results)
            }
            (Phase::Resolving(indexes), Outcome::Got(found)) if indexes.len() == found.len() => {
                self.resolved(&indexes, found)
            }
            (Phase::Inspecting(indexes), Outcome::Inspected(found)) if indexes.len() == found.len() => {
                self.inspected(&indexes, found)
            }
            (Phase::Claiming(indexes), Outcome::Claimed(results)) if indexes.len() == results.len() => {
                self.claimed(&indexes, results)
            }
            (Phase::ReadingDoomed(goes, asked), Outcome::Got(found)) if asked.len() == found.len() => {
                self.doomed_read(goes, asked, found)
            }
            (Phase::Deleting(goes, asked), Outcome::Deleted(results)) if asked.len() == results.len() => {
                self.deleted(goes, &asked, results)
            }
            (Phase::WritingStatus(events), Outcome::StatusWritten(result)) => {
                self.status_written(events, result)
            }
            (Phase::Emitting, Outcome::Emitted) => self.over(),
            (phase, outcome) => {
                let message = format!("{outcome:?} does not answer {phase:?}");
                self.give_up(ApiError {
                    reason: reasons::DRIVER_ERROR.into(),
                    message,
                    ..ApiError::default()
                })
            }
        }
    }

    fn uid(&self) -> &str {
        object::uid(&self.root)
    }

    // === From the start to an answer ===

    /// Whether the root provably owns an object: by its controller reference, or, where an owner reference is not possible, by a label
    /// that our own apply set.
    fn owns(&self, child: &Observed) -> bool {
        child.is_owned_by(self.uid())
            || self.is_elsewhere(&child.reference) && child.is_labelled_by(self.uid())
    }

    /// Whether an object is in another namespace than the root, so that it cannot have an owner reference to it. A root of cluster
    /// scope can own objects everywhere.
    fn is_elsewhere(&self, child: &ObjectRef) -> bool {
        let root = object::namespace(&self.root);
        root.is_some() && child.namespace.as_deref() != root
    }

    fn begin(&mut self) -> Step {
        match self.binding.duty {
            Duty::Release => self.release(),
            _ if object::is_deleting(&self.root) => self.begin_deletion(),
            Duty::CleanUp => self.over(),
            Duty::Full if finalize::is_annotated(&self.root, names::ANNOTATION_SUSPEND) => {
                let message = format!(
                    "the annotation {} is set: children stay as they are until it is taken off",
                    names::ANNOTATION_SUSPEND
                );
                self.fail(Failure::terminal(reasons::SUSPENDED, message))
            }
            Duty::Full => self.ask_guest(),
        }
    }

    fn ask_guest(&mut self) -> Step {
        if let Some(wait) = self.slowed_for() {
            self.again = Some(wait);
            return self.over();
        }
        self.begin_needs()
    }

    /// The objects that the guest asked to see are there. Calls the guest, unless nothing changed since the last pass.
    fn ask(&mut self) -> Step {
        let request = self.request();
        self.request_hash = self.hash(&request);
        self.rounds = 1;
        if self.nothing_changed() {
            return match self.due_finalizers() {
                Some(wanted) => self.set_finalizers(wanted, Then::WriteStatus),
                None => self.write_status(),
            };
        }
        self.call_guest(request)
    }

    fn request(&mut self) -> Request {
        self.told = self.memory.refusals();
        let mut children: Vec<Value> = self
            .live
            .values()
            .filter(|child| self.owns(child))
            .filter_map(|child| child.object.clone())
            .collect();
        request::sort(&mut children);
        Request {
            object: request::project_root(&self.root, self.binding.manifest.observe_status),
            config: self.binding.config.value().clone(),
            children,
            needs: self.needs.answers.clone(),
            refusals: self.told.clone(),
            deleting: object::is_deleting(&self.root),
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
            self.binding.uid.as_bytes(),
            &generation,
            &POLICY_VERSION.to_le_bytes(),
            &text,
        ])
    }

    /// Whether the last pass already did everything that this pass would do: the request is the same, no child drifted, appeared or
    /// disappeared, and no stage is due.
    fn nothing_changed(&self) -> bool {
        let Some(memo) = &self.memory.memo else { return false };
        memo.is_about(&self.request_hash)
            && !self.needs.patches_drifted
            && self.unread().is_empty()
            && !self.is_stage_due(memo)
            && !self.is_label_due()
            && memo.children_are_as_they_were(self.live.iter(), |child| self.owns(child))
    }

    fn call_guest(&mut self, request: Request) -> Step {
        self.counts.guest_calls += 1;
        self.count_call();
        self.phase = Phase::CallingGuest;
        // The guest answers anew, and two answers for one root are never held at once.
        self.answer = None;
        Step::CallGuest(Box::new(request))
    }

    fn answered(&mut self, answer: Result<Response, Failure>) -> Step {
        let answer = match self.counts(answer) {
            Ok(answer) => answer,
            Err(step) => return *step,
        };
        let binding = Arc::clone(&self.binding);
        let context = binding.context(&self.root);
        let judged = answer.and_then(|response| {
            gate::gate(&context, response).map_err(|found| {
                self.counts.unlisted_violations += found.unlisted();
                gate::failure(&found)
            })
        });
        match judged {
            Ok(mut allowed) => {
                allowed.stamp(&self.root, &crate::conditions::time(self.now));
                let states = allowed.children().iter().map(|_| ChildState::Pending).collect();
                self.answer = Some(Answer { allowed, states, adopts: false });
                match self.due_finalizers() {
                    Some(wanted) => self.set_finalizers(wanted, Then::ApplyChildren),
                    None => self.ready_to_apply(),
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

    /// Stops before anything else is changed, because of an error that says nothing about the answer, and reports it in the status.
    fn stop(&mut self, error: ApiError) -> Step {
        self.memory.memo = None;
        doubt(&mut self.unsure, error);
        self.write_status()
    }

    /// Ends the pass with an error that cannot be reported in the status.
    fn give_up(&mut self, error: ApiError) -> Step {
        self.memory.memo = None;
        doubt(&mut self.unsure, error);
        self.ready = false;
        self.over()
    }

    // === Children that the status names ===

    /// The children that the root's status names: those of kinds that are not watched, and those in other namespaces.
    fn recorded_children(&self) -> Vec<ObjectRef> {
        let unwatched = recorded::unwatched(&self.root).into_iter();
        // If their kind is watched by now, the watch shows them.
        let unwatched = unwatched.filter(|child| !self.binding.watches(child));
        unwatched.chain(self.inventory()).collect()
    }

    /// The children in other namespaces that the root's status names. An entry says where to look, and proves nothing.
    fn inventory(&self) -> Vec<ObjectRef> {
        recorded::inventory(&self.root)
    }

    /// The recorded children that no pass has read since the host started, and that no watch shows.
    fn unread(&self) -> Vec<ObjectRef> {
        let is_known = |entry: &ObjectRef| {
            self.memory.read.contains(entry)
                || self.binding.watches(entry) && self.live.contains_key(&Key::from(entry))
        };
        self.recorded_children().into_iter().filter(|entry| !is_known(entry)).collect()
    }

    /// The finalizers are as they should be. Next, the recorded children are read, and then the children are applied.
    fn ready_to_apply(&mut self) -> Step {
        match self.unread() {
            unread if unread.is_empty() => self.apply_children(),
            unread => {
                self.phase = Phase::ReadingRecorded(unread.clone());
                Step::Get(unread)
            }
        }
    }

    fn read_recorded(
        &mut self,
        asked: Vec<ObjectRef>,
        found: Vec<Result<Option<Observed>, ApiError>>,
    ) -> Step {
        for (reference, found) in asked.into_iter().zip(found) {
            match found {
                Ok(found) => self.saw(&reference, found),
                // If the API server no longer serves the kind, the object is gone too.
                Err(error) if error.is_kind_missing() => self.saw(&reference, None),
                Err(error) => return self.stop(error),
            }
        }
        self.apply_children()
    }

    /// Takes note of an object that was read live.
    fn saw(&mut self, reference: &ObjectRef, found: Option<Observed>) {
        let key = Key::from(reference);
        self.memory.read.insert(reference.clone());
        match found {
            Some(child) => self.live.insert(key, child),
            None => self.live.remove(&key),
        };
    }

    fn status_written(&mut self, events: Vec<Event>, result: Result<(), ApiError>) -> Step {
        match result {
            Ok(()) => {
                self.memory.written = Some(self.now);
                self.told();
                self.counts.status_writes += 1;
                return self.evict(events);
            }
            // The root is gone, or another root has taken its name, so no status is left to write.
            Err(error) if error.code == 404 || error.is_uid_mismatch() => return self.over(),
            // Only another status can be accepted: the present one, with a message about what is wrong with the new one.
            Err(error) if error.is_refusal() && !error.depends_on_others() && self.failure.is_none() => {
                let message = format!("the API server does not take the guest's status: {}", error.message);
                return self.fail(Failure::terminal(reasons::STATUS_REFUSED, message));
            }
            Err(error) => {
                self.memory.memo = None;
                self.memory.untold |= self.counts.changed_children();
                doubt(&mut self.unsure, error);
                self.ready = false;
            }
        }
        self.counts.status_writes += 1;
        self.emit(events)
    }

    fn emit(&mut self, mut events: Vec<Event>) -> Step {
        self.pay_for(&mut events);
        if events.is_empty() {
            return self.over();
        }
        self.phase = Phase::Emitting;
        Step::Emit(events)
    }

    fn over(&mut self) -> Step {
        self.phase = Phase::Over;
        self.forget_needs();
        let refused = self.memory.blocking(self.answer.as_ref().map(|answer| &answer.allowed));
        // The end of a refusal cannot end a terminal failure.
        let retried = refused.iter().find(|standing| standing.retry && self.failure.is_none());
        let error = match (&self.failure, &self.unsure, refused.first()) {
            (Some(failure), ..) if failure.reason == reasons::SUSPENDED => None,
            (Some(failure), ..) => Some(failure.reason.clone()),
            (None, Some(error), _) => Some(error.reason_word()),
            (None, None, Some(standing)) => Some(standing.refusal.reason.clone()),
            (None, None, None) => self
                .patches_refused
                .first()
                .map(|(_, error)| error.reason_word())
                .or_else(|| self.eviction_error().map(|(reason, _)| reason))
                .or_else(|| self.label_blocker().map(|blocker| blocker.reason)),
        };
        let message = match (&self.failure, &self.unsure, refused.first()) {
            (Some(failure), ..) => Some(failure.to_string()),
            (None, Some(error), _) => Some(error.to_string()),
            (None, None, Some(standing)) => Some(standing.refusal.message.clone()),
            (None, None, None) => self
                .patches_refused
                .first()
                .map(|(reference, error)| error.clone().about(reference).to_string())
                .or_else(|| self.eviction_error().map(|(_, message)| message)),
        };
        // When an object of a kind that is not watched is gone, no watch reports it.
        let waits_unseen = self.answer.as_ref().is_some_and(|answer| {
            let children = answer.allowed.children().iter().zip(&answer.states);
            children.into_iter().any(|(child, state)| {
                matches!(state, ChildState::Held(_)) && !self.binding.watches(child.reference())
            })
        });
        let waits = waits_unseen
            || self.waits
            || self.failure.as_ref().is_some_and(|failure| failure.retry)
            || self.unsure.is_some()
            || self.eviction_retry.is_some()
            || self.failure.is_none()
                && self.patches_refused.iter().any(|(_, error)| error.depends_on_others())
            || retried.is_some();
        // Objects that are being deleted, or that the root does not own, are read again in the next pass.
        let kept = self.live.values().filter(|child| !self.binding.watches(&child.reference));
        let (kept, again): (Vec<Observed>, Vec<Observed>) =
            kept.cloned().partition(|child| self.owns(child) && !child.deleting);
        self.memory.read.retain(|entry| !again.iter().any(|child| child.reference == *entry));
        self.memory.keep_unwatched(kept);
        let at_least = self.unsure.as_ref().and_then(|error| error.retry_after).unwrap_or_default();
        let at_least = at_least.max(self.eviction_retry.unwrap_or_default());
        Step::Done(Box::new(Done {
            retry: waits.then_some(at_least),
            again: self
                .is_to_follow_patches()
                .then_some(Duration::ZERO)
                .into_iter()
                .chain(self.again)
                .chain(self.needs.again)
                .chain(self.calm_at())
                .chain(self.labels_again())
                .min(),
            throttled: self.memory.breaker.is_open(),
            overran: self.failure.as_ref().is_some_and(|failure| {
                matches!(
                    failure.reason.as_str(),
                    reasons::DEADLINE | reasons::FUEL | reasons::MEMORY | reasons::MEMORY_BUDGET
                )
            }),
            ready: self.ready,
            error,
            message,
            counts: self.counts,
            hits: self.hits,
            judged: std::mem::take(&mut self.judged),
            memory: std::mem::take(&mut self.memory),
        }))
    }
}

/// Keeps the first error, which is the one that is reported, and the longest wait that the API server asked for.
fn doubt(unsure: &mut Option<ApiError>, error: ApiError) {
    let first = unsure.get_or_insert_with(|| error.clone());
    first.retry_after = first.leave_alone().max(error.leave_alone());
}

/// Why a root is not ready, the most important reason first.
type Blockers = Vec<Blocker>;

impl Binding {
    /// The context in which the gate judges an answer about this root.
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

    /// Whether a watch reports changes of this child.
    pub fn watches(&self, child: &ObjectRef) -> bool {
        is_watchable(&child.kind())
            || child.namespace.as_ref().is_some_and(|namespace| self.watched_namespaces.contains(namespace))
    }

    /// The kind of the roots.
    pub fn root_kind(&self) -> Kind {
        self.manifest.reconciles.clone()
    }
}
