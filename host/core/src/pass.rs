//! One reconcile as a state machine without I/O.
//!
//! A [`Pass`] is made from a [`Snapshot`] and driven by [`Pass::step`], which takes the outcome of the last step and returns the next
//! one. The operator carries the steps out with a Kubernetes client; `pintle render` and `pintle test` carry them out with files.
//!
//! Everything that makes a reconcile right or wrong is decided here: the order (finalizers, children, patches, prune, status, evictions,
//! events), what is created and what is updated, what a refusal leads to, and what the status says.
//!
//! The order stands in [`flow`]: a pass goes from phase to phase, and each phase has a function that looks at what is left to do in it.
//! `Pass::advance` calls that function. `Pass::step` hands an outcome to the phase that asked for it.

mod adoption;
mod answer;
mod api_error;
mod binding;
mod blockers;
mod breaker;
mod children;
mod comparison;
mod deletions;
mod displaced;
mod end;
mod events;
mod evictions;
mod finalize;
mod flow;
mod freshness;
mod guest;
mod key;
mod memory;
mod needs;
mod patches;
mod preview;
mod protocol;
mod recorded;
mod refusals;
mod settle;
mod stages;
mod status;
mod writes;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use pintle_wit::{Event, Failure, ObjectRef, names};
use serde_json::Value;

pub use api_error::ApiError;
pub use binding::{Binding, Duty};
pub use blockers::{RECORDING, recording};
pub use end::Wake;
pub use memory::RootMemory;
pub use preview::{Fate, PatchFate, Preview, Previewed};
pub use protocol::{Applied, Counts, Done, Hits, Judged, Outcome, Step};
pub use writes::{Apply, Claim, Deletion, EvictionWrite, FinalizerWrite, StatusWrite};

use crate::{object, observed::Observed, reasons};
use answer::Answer;
use breaker::Charge;
use flow::{Awaited, Flow, Phase};
use freshness::Freshness;
use guest::Asked;
use key::Key;
use needs::Needs;
use recorded::Records;

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
    /// The root's finalizers, ours and others'.
    finalizers: BTreeSet<String>,
    /// The root was edited since the last pass, or another module, config or Reconciler is in force.
    edited: bool,
    freshness: Freshness,

    phase: Phase,
    /// The outcome that comes next.
    awaited: Awaited,
    needs: Needs,
    asked: Asked,
    /// The answer in force, once the gate has allowed one.
    answer: Option<Answer>,
    records: Records,
    /// Patches that were not accepted.
    refused_patches: Vec<(ObjectRef, ApiError)>,
    charge: Charge,
    /// Evictions were not accepted, and are retried.
    eviction_failed: bool,
    /// The Events that are left to publish.
    events: Vec<Event>,

    /// Why there is no answer.
    failure: Option<Failure>,
    /// The first error after which only a retry can help.
    unsure: Option<ApiError>,
    ready: bool,
    wake: Wake,
    counts: Counts,
    hits: Hits,
    judged: Vec<Judged>,
}

impl Pass {
    /// A pass over a root.
    pub fn new(snapshot: Snapshot) -> Self {
        let Snapshot { binding, root, root_listed_at, children, mut memory, now } = snapshot;
        let had_a_pass = memory.had_a_pass(&root);
        let edited = memory.forget_unless(&binding, &root);
        // Only a live read counts here. A pass that ended proves nothing, since it may have had nothing to write.
        let listed_at = root_listed_at.filter(|version| memory.is_as_listed.as_ref() != Some(version));
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
            finalizers,
            edited,
            freshness: Freshness::of(had_a_pass, listed_at),
            phase: Phase::Begin,
            awaited: Awaited::Nothing,
            needs: Needs::default(),
            asked: Asked::default(),
            answer: None,
            records: Records::default(),
            refused_patches: Vec::new(),
            charge: Charge::default(),
            eviction_failed: false,
            events: Vec::new(),
            failure: None,
            unsure: None,
            ready: false,
            wake: Wake::default(),
            counts: Counts::default(),
            hits: Hits::default(),
            judged: Vec::new(),
        }
    }

    /// Takes the outcome of the last step and returns the next step. An outcome that does not belong to the last step is a mistake of
    /// the driver, and ends the pass with an error.
    pub fn step(&mut self, outcome: Outcome) -> Step {
        let flow = self.take(outcome);
        self.advance(flow)
    }

    /// Hands an outcome to the phase that asked for it.
    fn take(&mut self, outcome: Outcome) -> Flow {
        match (std::mem::replace(&mut self.awaited, Awaited::Nothing), outcome) {
            (Awaited::Nothing, Outcome::Start) if self.phase == Phase::Begin => Flow::Again,
            (Awaited::LookUps(asked), Outcome::Looked(found)) => self.looked_up(asked, found),
            (Awaited::Answer, Outcome::Answered(answer)) => self.answered(answer),
            (Awaited::Finalizers(wanted), Outcome::FinalizersSet(result)) => {
                self.finalizers_set(wanted, result)
            }
            (Awaited::Recorded(asked), Outcome::Got(found)) if asked.len() == found.len() => {
                self.recorded_read(asked, found)
            }
            (Awaited::Root, Outcome::RootRead(found)) => self.root_read(found),
            (Awaited::Record, Outcome::StatusWritten(result)) => self.record_written(result),
            (Awaited::Applies(indexes), Outcome::Applied(results)) if indexes.len() == results.len() => {
                self.applied(&indexes, results)
            }
            (Awaited::InTheWay(indexes), Outcome::Got(found)) if indexes.len() == found.len() => {
                self.resolved(&indexes, found)
            }
            (Awaited::Inspections(indexes), Outcome::Inspected(found)) if indexes.len() == found.len() => {
                self.inspected(&indexes, found)
            }
            (Awaited::Claims(indexes), Outcome::Claimed(results)) if indexes.len() == results.len() => {
                self.claimed(&indexes, results)
            }
            (Awaited::PatchTargets, Outcome::Inspected(found))
                if self.wanted_patches().len() == found.len() =>
            {
                self.patch_targets_read(found)
            }
            (Awaited::Patches(due), Outcome::Patched(results)) if due.len() == results.len() => {
                self.patches_written(due, results)
            }
            (Awaited::Doomed(asked), Outcome::Got(found)) if asked.len() == found.len() => {
                self.doomed_read(asked, found)
            }
            (Awaited::Deletions(asked), Outcome::Deleted(results)) if asked.len() == results.len() => {
                self.deleted(&asked, results)
            }
            (Awaited::Status, Outcome::StatusWritten(result)) => self.status_written(result),
            (Awaited::Evictions(pods), Outcome::Evicted(results)) if pods.len() == results.len() => {
                self.evicted(pods, results)
            }
            (Awaited::StatusOfEvictions, Outcome::StatusWritten(result)) => {
                self.status_of_evictions_written(result)
            }
            (Awaited::Events, Outcome::Emitted) => Flow::Done,
            (awaited, outcome) => {
                let message = format!("{outcome:?} does not answer {awaited:?}");
                self.give_up(ApiError {
                    reason: reasons::DRIVER_ERROR.into(),
                    message,
                    ..ApiError::default()
                })
            }
        }
    }

    /// Goes from phase to phase, until one of them needs the driver.
    fn advance(&mut self, mut flow: Flow) -> Step {
        loop {
            self.phase = match flow {
                Flow::Do(step) => return step,
                Flow::Again => self.phase,
                Flow::Done => self.phase.next(),
                Flow::To(phase) => phase,
            };
            flow = match self.phase {
                Phase::Begin => self.begin(),
                Phase::Needs => self.look_up_remembered(),
                Phase::Guest => self.call_guest(),
                Phase::Finalizers => self.set_due_finalizers(),
                Phase::Recorded => self.read_recorded(),
                Phase::Children => self.apply_children(),
                Phase::Refusals => self.settle(),
                Phase::Patches => self.apply_patches(),
                Phase::Prune => self.prune(),
                Phase::Remember => self.remember(),
                Phase::Leave => self.leave(),
                Phase::Status => self.write_status(),
                Phase::Evictions => self.evict(),
                Phase::Events => self.publish(),
                Phase::Over => return self.over(),
            };
        }
    }

    /// Asks the driver for a step, whose outcome comes next.
    fn ask_for(&mut self, awaited: Awaited, step: Step) -> Flow {
        self.awaited = awaited;
        Flow::Do(step)
    }

    /// Decides what the pass is for.
    fn begin(&mut self) -> Flow {
        match self.binding.duty {
            Duty::Release => self.release(),
            _ if object::is_deleting(&self.root) => self.begin_deletion(),
            Duty::CleanUp => Flow::To(Phase::Over),
            Duty::Full if finalize::is_annotated(&self.root, names::ANNOTATION_SUSPEND) => {
                let message = format!(
                    "the annotation {} is set: children stay as they are until it is taken off",
                    names::ANNOTATION_SUSPEND
                );
                self.fail(Failure::terminal(reasons::SUSPENDED, message))
            }
            Duty::Full => self.begin_unless_slowed(),
        }
    }

    fn begin_unless_slowed(&mut self) -> Flow {
        match self.slowed_for() {
            Some(wait) => {
                self.wake.after(wait);
                Flow::To(Phase::Over)
            }
            None => Flow::Done,
        }
    }

    /// There is no answer to carry out. The status says why.
    fn fail(&mut self, failure: Failure) -> Flow {
        self.failure = Some(failure);
        self.memory.memo = None;
        Flow::To(Phase::Status)
    }

    /// Stops before anything else is changed, because of an error that says nothing about the answer, and reports it in the status.
    fn stop(&mut self, error: ApiError) -> Flow {
        self.memory.memo = None;
        doubt(&mut self.unsure, error);
        Flow::To(Phase::Status)
    }

    /// Ends the pass with an error that cannot be reported in the status.
    fn give_up(&mut self, error: ApiError) -> Flow {
        self.memory.memo = None;
        doubt(&mut self.unsure, error);
        self.ready = false;
        Flow::To(Phase::Over)
    }

    fn uid(&self) -> &str {
        object::uid(&self.root)
    }

    /// Whether the root provably owns an object. A root that somebody made its own controller is no child of its own: it would be pruned.
    fn owns(&self, child: &Observed) -> bool {
        child.is_owned_by(self.uid()) && child.uid != self.uid()
    }
}

/// Keeps the first error, which is the one that is reported, and the longest wait that the API server asked for.
fn doubt(unsure: &mut Option<ApiError>, error: ApiError) {
    let first = unsure.get_or_insert_with(|| error.clone());
    first.retry_after = first.leave_alone().max(error.leave_alone());
}
