//! One run: a pass over the root, and the proof that the next ones have nothing left to do.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use pintle_core::{
    Allowed, ApiError, Apply, Done, EvictionWrite, Outcome, Pass, RootMemory, Snapshot, Step, gate, object,
    observed::status_conditions, plan, reasons, request,
};
use pintle_engine::{CallStats, Guest, Origin};
use pintle_schema::fit::Kinds;
use pintle_wit::{
    Condition, Event, Evictions, Failure, GuestCondition, Kind, Need, NeedAnswer, ObjectRef, Request,
    Response,
};
use serde_json::{Map, Value, json};

use super::{
    cluster::Cluster,
    difference::differences,
    guest::{TestedGuest, text_of},
    setting::Setting,
};

/// How many differences a message lists.
const LISTED: usize = 5;

/// What came of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The answer after the gate; none when there was a failure, or the guest was not asked.
    pub answer: Option<Answered>,
    /// Why there is no answer.
    pub failure: Option<(Blame, Failure)>,
    /// What is wrong with a guest although it answered: it is not deterministic, or not idempotent.
    pub violation: Option<Failure>,
    /// The root's condition `Ready` after the pass.
    pub ready: Option<Condition>,
    /// What stands in the way of children, as the guest was told.
    pub refused: Vec<String>,
    /// Refusals of the case that nothing came to meet.
    pub unused_refusals: Vec<String>,
    /// The first request.
    pub request: Option<Request>,
    /// The request whose answer counts: it has everything that the guest asked to see.
    pub last_request: Option<Request>,
    /// The kinds of children that nothing has a schema of, so that their fields were not checked.
    pub unchecked: BTreeSet<Kind>,
    /// What the calls of the first pass cost.
    pub calls: Vec<CallStats>,
    /// The first request at which the guest trapped, in any pass.
    pub trapped: Option<Trapped>,
}

/// A request at which a guest trapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trapped {
    /// The function that was called, by the word for it of the guest's own program: `call`, `show` or `store`.
    pub function: &'static str,
    /// The text of its JSON.
    pub request: String,
}

/// An answer as it came out of the gate.
#[derive(Clone, Debug, Default)]
pub struct Answered {
    /// The children as they would be applied.
    pub children: Vec<Value>,
    /// The stages of the children that are not of the first one, as `Kind/name: stage`.
    pub stages: BTreeMap<String, u32>,
    /// The guest's status fields.
    pub status: Map<String, Value>,
    /// The guest's conditions.
    pub conditions: Vec<GuestCondition>,
    /// The guest's events.
    pub events: Vec<Event>,
    /// The patches of objects that the root does not own: `object`, `onRelease`.
    pub patches: Vec<Value>,
    /// The Pods that are to go.
    pub evictions: Option<Evictions>,
    /// What the guest asked to see.
    pub needs: Vec<Need>,
}

/// Who says that there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The guest, in its own words.
    Guest,
    /// The engine: the guest broke a limit, the contract or itself.
    Engine,
    /// The gate, or the pass: the answer may not be carried out.
    Gate,
    /// The schema of a child's kind, or of a patched object's: the API server would refuse it.
    Kind,
}

impl Blame {
    /// What happened, for a person.
    pub fn what(self) -> &'static str {
        match self {
            Self::Guest => "the guest cannot decide",
            Self::Engine => "the guest broke",
            Self::Gate => "the gate refuses the guest's answer",
            Self::Kind => "the API server would refuse what the guest answers",
        }
    }
}

impl Answered {
    fn of(mut allowed: Allowed, root: &Value, needs: Vec<Need>) -> Self {
        allowed.stamp(root, plan::TIME);
        let patches = allowed
            .patches()
            .iter()
            .map(|patch| json!({"object": patch.object(), "onRelease": patch.on_release()}))
            .collect();
        let later = allowed.children().iter().filter(|child| child.stage() > 0);
        let name = |reference: &ObjectRef| format!("{}/{}", reference.kind, reference.name);
        Self {
            stages: later.map(|child| (name(child.reference()), child.stage())).collect(),
            children: allowed.children().iter().map(|child| child.object().clone()).collect(),
            status: allowed.status().clone(),
            conditions: allowed.conditions().to_vec(),
            events: allowed.events().to_vec(),
            patches,
            evictions: allowed.evictions().cloned(),
            needs,
        }
    }

    /// The children without what the host added: owner reference, labels and hash.
    pub fn plain_children(&self) -> Vec<Value> {
        self.children.iter().map(plan::plain).collect()
    }
}

/// Whether an answer has only fields that its kinds have.
///
/// # Errors
/// The first that it does not, with its path in the answer.
pub fn fits(kinds: &Kinds, response: &Response) -> Result<(), Failure> {
    for (index, child) in response.children.iter().enumerate() {
        kinds.fit(&child.object, &format!("children[{index}].object"))?;
    }
    for (index, patch) in response.patches.iter().enumerate() {
        kinds.fit(&patch.object, &format!("patches[{index}].object"))?;
    }
    Ok(())
}

/// Runs a guest. `strict` calls it several times for each request and compares the answers.
pub fn run(guest: &Guest, setting: &Setting, strict: bool) -> Report {
    let child_kinds = setting.binding.manifest.children.iter();
    let cluster = Cluster::new(
        setting.root.clone(),
        setting.observed.clone(),
        setting.refusals.clone(),
        &setting.binding.field_manager,
        child_kinds.map(|child| (child.kind(), child.observe)).collect(),
        setting.kinds.clone(),
        setting.now,
    );
    let guest = TestedGuest { guest, limits: setting.call_limits, strict };
    let mut run = Run { setting, guest, cluster, now: setting.now, trapped: None };
    let first = run.pass(RootMemory::default());
    let mut report = first.report();
    report.ready = run.ready();
    let children = report.answer.iter().flat_map(|answer| &answer.children).map(object::kind);
    report.unchecked = children.filter(|kind| !setting.kinds.has(kind)).collect();
    report.unused_refusals = match &report.answer {
        Some(answer) => run.cluster.unused_refusals(&answer.children),
        None => Vec::new(),
    };
    if report.answer.is_some() && report.violation.is_none() {
        report.violation = run.settles(first);
    }
    report.trapped = run.trapped;
    report
}

struct Run<'a> {
    setting: &'a Setting,
    guest: TestedGuest<'a>,
    cluster: Cluster,
    /// The time of the next pass.
    now: Timestamp,
    /// See [`Report::trapped`].
    trapped: Option<Trapped>,
}

/// What one pass said and did.
#[derive(Default)]
struct Passed {
    memory: RootMemory,
    requests: Vec<Request>,
    calls: Vec<CallStats>,
    answer: Option<Result<Answered, (Blame, Failure)>>,
    violation: Option<Failure>,
    /// What was written that nobody refused, and what it changed.
    written: Vec<String>,
}

impl Passed {
    fn report(&self) -> Report {
        let (answer, failure) = match &self.answer {
            Some(Ok(answer)) => (Some(answer.clone()), None),
            Some(Err(failure)) => (None, Some(failure.clone())),
            None => (None, None),
        };
        let told = self.requests.last().map(|request| request.refusals.as_slice()).unwrap_or_default();
        Report {
            answer,
            failure,
            violation: self.violation.clone(),
            refused: told
                .iter()
                .map(|refusal| format!("{}: {}: {}", refusal.child, refusal.reason, refusal.message))
                .collect(),
            request: self.requests.first().cloned(),
            last_request: self.requests.last().cloned(),
            calls: self.calls.clone(),
            ..Report::default()
        }
    }

    /// What the guest saw besides its root.
    fn last_seen(&self) -> (&[Value], &[NeedAnswer]) {
        let last = self.requests.last();
        last.map(|request| (&request.children[..], &request.needs[..])).unwrap_or_default()
    }
}

impl Run<'_> {
    fn ready(&self) -> Option<Condition> {
        let conditions = self.cluster.root().get("status").map(status_conditions).unwrap_or_default();
        conditions.into_iter().find(|condition| condition.r#type == "Ready")
    }

    /// The pass after one that wrote plans nothing. When the guest observes children that the first pass created or changed, it
    /// may speak of them first; the pass after that plans nothing.
    fn settles(&mut self, mut before: Passed) -> Option<Failure> {
        let mut may_write = true;
        loop {
            let next = self.pass(std::mem::take(&mut before.memory));
            if next.violation.is_some() {
                return next.violation;
            }
            if let Some(Err((blame, failure))) = &next.answer {
                let message =
                    format!("in the next pass, over what this one made, {}: {failure}", blame.what());
                return Some(Failure::terminal(reasons::NOT_IDEMPOTENT, message));
            }
            if next.written.is_empty() {
                return self.starts_anywhere(next.memory);
            }
            let saw_more = next.last_seen() != before.last_seen();
            if !(may_write && saw_more) {
                let message = format!(
                    "the next pass, over what this one made, still finds something to do: {}",
                    next.written.join("; ")
                );
                return Some(Failure::terminal(reasons::NOT_IDEMPOTENT, message));
            }
            may_write = false;
            before = next;
        }
    }

    /// The host begins with the set of needs that the last pass left. That must save calls and change nothing: from the empty set the
    /// guest arrives at the same.
    fn starts_anywhere(&mut self, memory: RootMemory) -> Option<Failure> {
        if memory.needs().is_empty() {
            return None;
        }
        let anew = self.pass(RootMemory::default());
        let failed = match &anew.answer {
            Some(Err((_, failure))) => Some(failure.to_string()),
            _ => None,
        };
        let found = failed.or_else(|| (!anew.written.is_empty()).then(|| anew.written.join("; ")))?;
        let message = format!(
            "called again from the empty set of needs, the guest does not arrive at the same: {found}"
        );
        Some(Failure::terminal(reasons::NOT_DETERMINISTIC, message))
    }

    fn pass(&mut self, memory: RootMemory) -> Passed {
        let mut passed = Passed::default();
        let mut pass = Pass::new(Snapshot {
            binding: Arc::clone(&self.setting.binding),
            root: Arc::new(self.cluster.root().clone()),
            root_listed_at: None,
            children: self.cluster.children(),
            memory,
            now: self.now,
        });
        // Long enough for whatever a pass puts off.
        self.now += jiff::SignedDuration::from_secs(1);
        let mut outcome = Outcome::Start;
        let done = loop {
            outcome = match pass.step(outcome) {
                Step::CallGuest(request) => Outcome::Answered(self.call(*request, &mut passed)),
                Step::Look(lookups) => {
                    Outcome::Looked(self.cluster.look(&lookups).into_iter().map(Ok).collect())
                }
                Step::Patch(patches) => {
                    Outcome::Patched(patches.iter().map(|patch| self.patch(patch, &mut passed)).collect())
                }
                Step::Evict(evictions) => {
                    Outcome::Evicted(evictions.iter().map(|pod| self.evict(pod, &mut passed)).collect())
                }
                Step::Get(asked) => Outcome::Got(self.cluster.get(&asked)),
                Step::ReadRoot => Outcome::RootRead(Ok(Some(self.cluster.root().clone()))),
                Step::Apply(applies) => {
                    Outcome::Applied(applies.iter().map(|apply| self.apply(apply, &mut passed)).collect())
                }
                Step::Inspect(asked) => Outcome::Inspected(
                    asked.iter().map(|child| Ok(self.cluster.live(child).cloned())).collect(),
                ),
                // Nobody but the host changes anything during a run.
                Step::Claim(claims) => {
                    Outcome::Claimed(claims.iter().map(|_| Err(ApiError::default())).collect())
                }
                Step::Delete(deletions) => {
                    let deleted =
                        deletions.iter().map(|deletion| format!("{} deleted", deletion.reference()));
                    passed.written.extend(deleted);
                    Outcome::Deleted(self.cluster.delete(&deletions))
                }
                // A finalizer matters to nobody who is not deleted.
                Step::SetFinalizers(_) => Outcome::FinalizersSet(Ok(())),
                Step::WriteStatus(write) => {
                    let before = self.cluster.root().get("status").cloned().unwrap_or_default();
                    self.cluster.write_status(&write);
                    let after = self.cluster.root().get("status").cloned().unwrap_or_default();
                    let (before, after) = (json!({"status": before}), json!({"status": after}));
                    passed.written.push(changes("the status", &before, &after));
                    Outcome::StatusWritten(Ok(()))
                }
                Step::Emit(_) => Outcome::Emitted,
                Step::Done(done) => break done,
            };
        };
        self.finish(*done, &mut passed);
        passed
    }

    fn finish(&self, done: Done, passed: &mut Passed) {
        passed.memory = done.memory;
        // The failures that arise behind the gate.
        const BEHIND: [&str; 3] =
            [reasons::REFUSALS_UNSTABLE, reasons::NEEDS_UNSTABLE, reasons::NEEDS_TOO_LARGE];
        let behind = done.error.filter(|error| BEHIND.contains(&error.as_str()));
        if let (Some(reason), Some(Ok(_))) = (behind, &passed.answer) {
            let message = self.ready().map(|ready| ready.message).unwrap_or_default();
            passed.answer = Some(Err((Blame::Gate, Failure::terminal(reason, message))));
        }
    }

    fn call(&mut self, request: Request, passed: &mut Passed) -> Result<Response, Failure> {
        let called = self.guest.call(&request);
        passed.calls.push(called.stats());
        if self.trapped.is_none() && called.is_trap() {
            self.trapped = Some(Trapped { function: "call", request: text_of(&request) });
        }
        passed.requests.push(request);
        if passed.violation.is_none() {
            passed.violation = called.violation;
        }
        match called.answer {
            Ok(answer) => {
                passed.answer = Some(self.gated(answer.response.clone()));
                Ok(answer.response)
            }
            Err(error) => {
                let blame = if error.origin == Origin::Guest { Blame::Guest } else { Blame::Engine };
                let failure = *error.failure;
                passed.answer = Some(Err((blame, failure.clone())));
                Err(failure)
            }
        }
    }

    /// The answer as the pass, which asks the same gate, will carry it out.
    fn gated(&self, response: Response) -> Result<Answered, (Blame, Failure)> {
        let context = self.setting.binding.context(self.cluster.root());
        let needs = response.needs.clone();
        let fits = fits(&self.setting.kinds, &response);
        let allowed = gate::gate(&context, response).map_err(|found| (Blame::Gate, gate::failure(&found)))?;
        fits.map_err(|failure| (Blame::Kind, failure))?;
        Ok(Answered::of(allowed, self.cluster.root(), needs))
    }

    fn patch(&mut self, patch: &Apply, passed: &mut Passed) -> Result<Value, ApiError> {
        let before = self.cluster.live(patch.reference()).cloned().unwrap_or_default();
        let after = self.cluster.patch(patch)?;
        passed.written.push(written(patch.reference(), &before, &after));
        Ok(after)
    }

    fn evict(&mut self, eviction: &EvictionWrite, passed: &mut Passed) -> Result<(), ApiError> {
        self.cluster.evict(eviction)?;
        passed.written.push(format!("{} evicted", eviction.reference()));
        Ok(())
    }

    fn apply(
        &mut self,
        apply: &pintle_core::Apply,
        passed: &mut Passed,
    ) -> Result<pintle_core::Applied, pintle_core::ApiError> {
        let before = self.cluster.live(apply.reference()).cloned().unwrap_or_default();
        let applied = self.cluster.apply(apply)?;
        let after = self.cluster.live(apply.reference()).cloned().unwrap_or_default();
        passed.written.push(written(apply.reference(), &before, &after));
        Ok(applied)
    }
}

fn written(reference: &ObjectRef, before: &Value, after: &Value) -> String {
    if before.is_null() {
        return format!("{reference} created");
    }
    // What a guest could not have caused is left out.
    changes(&reference.to_string(), &request::project(before), &request::project(after))
}

fn changes(what: &str, before: &Value, after: &Value) -> String {
    let places = differences(before, after, LISTED);
    if places.is_empty() { format!("{what} written") } else { format!("{what}: {}", places.join(", ")) }
}
