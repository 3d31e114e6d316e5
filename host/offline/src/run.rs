//! One run: a pass over the root, and the proof that the next ones have nothing left to do.

use std::sync::Arc;

use jiff::Timestamp;
use pintle_core::{
    Allowed, ApiError, Applied, Apply, Done, EvictionWrite, Outcome, Pass, RootMemory, Snapshot, Step, gate,
    object, observed::status_conditions, reasons, request, violations::Violations,
};
use pintle_engine::{CallStats, Guest};
use pintle_schema::fit::Kinds;
use pintle_wit::{Condition, Failure, NeedAnswer, ObjectRef, Request, Response};
use serde_json::{Value, json};

use super::{
    ask::{Answer, Blame, Trapped},
    cluster::Cluster,
    difference::differences,
    guest::{impurity, text_of},
    setting::Setting,
    shown::Shown,
    siblings,
};

/// How many differences a message lists.
const LISTED: usize = 5;

/// The children and patches that do not fit their kinds, so that the API server would refuse them. `at` says for `children` and `patches`,
/// and the index there, what paths begin with.
pub fn misfits<'a>(
    kinds: &Kinds,
    children: impl IntoIterator<Item = &'a Value>,
    patches: impl IntoIterator<Item = &'a Value>,
    at: fn(&str, usize) -> String,
) -> Vec<(ObjectRef, Violations)> {
    let children = children.into_iter().enumerate().map(|(index, child)| {
        let fits = kinds.fit(child, &at("children", index));
        (child, fits)
    });
    let patches = patches.into_iter().enumerate().map(|(index, patch)| {
        let fits = kinds.fit_patch(patch, &at("patches", index));
        (patch, fits)
    });
    let all = children.chain(patches);
    all.filter_map(|(object, fits)| Some((object::reference(object), fits.err()?))).collect()
}

/// Whether the children and patches of an answer fit their kinds.
///
/// # Errors
/// Where they do not: the first place with its path in the answer, and the others in the message.
pub fn fits(kinds: &Kinds, response: &Response) -> Result<(), Failure> {
    let children = response.children.iter().map(|child| &child.object);
    let patches = response.patches.iter().map(|patch| &patch.object);
    let found = misfits(kinds, children, patches, |list, index| format!("{list}[{index}].object"));
    let mut violations = Violations::default();
    found.into_iter().for_each(|(_, others)| violations.append(others));
    violations.into_result().map_err(|found| found.failure())
}

/// Runs a guest. `strict` calls it several times for each request and compares the answers.
pub(crate) fn run(guest: &Guest, setting: &Setting, strict: bool) -> Answer {
    let cluster = Cluster::new(setting);
    let mut run = Run { guest, setting, strict, cluster, now: setting.now, trapped: None };
    let first = run.pass(RootMemory::default());
    let told = first.requests.last().map(|request| request.refusals.as_slice()).unwrap_or_default();
    // What does not fit its kind is told once, with its path in the answer.
    let is_unfit = matches!(first.answer, Some(Err((Blame::Kind, _))));
    const UNFIT: [&str; 2] = [reasons::FIELD_UNDECLARED, reasons::INVALID];
    let mut answer = Answer {
        refusals: told
            .iter()
            .filter(|refusal| !(is_unfit && UNFIT.contains(&refusal.reason.as_str())))
            .map(|refusal| format!("{}: {}: {}", refusal.child, refusal.reason, refusal.message))
            .collect(),
        requests: first.requests.first().cloned().zip(first.requests.last().cloned()),
        calls: first.calls.clone(),
        violation: first.violation.clone(),
        ..Answer::default()
    };
    match &first.answer {
        Some(Ok((shown, children))) => {
            let kinds = children.iter().map(object::kind);
            answer.unchecked = kinds.filter(|kind| !setting.kinds.has(kind)).collect();
            answer.problems = run.cluster.unused_refusals();
            answer.warnings = siblings::warnings(children);
            (answer.shown, answer.objects) = (shown.clone(), children.clone());
        }
        Some(Err((blame, failure))) => answer.refuse(blame.what(), *blame, failure.clone()),
        None => answer.shown = Shown::of(Allowed::default(), &setting.root, Vec::new()),
    }
    answer.shown.ready = run.ready().and_then(|ready| {
        let ready = json!({"status": ready.status, "reason": ready.reason, "message": ready.message});
        ready.as_object().cloned()
    });
    if matches!(first.answer, Some(Ok(_))) && answer.violation.is_none() {
        answer.violation = run.settles(first);
    }
    answer.trapped = run.trapped;
    answer
}

struct Run<'a> {
    guest: &'a Guest,
    setting: &'a Setting,
    /// Call the guest more often than needed, and compare.
    strict: bool,
    cluster: Cluster<'a>,
    /// The time of the next pass.
    now: Timestamp,
    /// See [`Answer::trapped`].
    trapped: Option<Trapped>,
}

/// What is shown of the answer with the children as they would be applied, or the failure and who is to blame for it.
type AnswerOrFailure = Result<(Shown, Vec<Value>), (Blame, Failure)>;

/// What one pass said and did.
#[derive(Default)]
struct Passed {
    memory: RootMemory,
    requests: Vec<Request>,
    calls: Vec<CallStats>,
    answer: Option<AnswerOrFailure>,
    violation: Option<Failure>,
    /// What was written that nobody refused, and what it changed.
    written: Vec<String>,
}

impl Passed {
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
                Step::Claim(claims) => {
                    Outcome::Claimed(claims.iter().map(|claim| self.cluster.claim(claim)).collect())
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
        let ask = |request: &Request| self.guest.reconcile(&text_of(request), &self.setting.call_limits);
        let called = ask(&request);
        if self.strict && passed.violation.is_none() {
            passed.violation = impurity(ask, &request, &called);
        }
        if let Err(error) = &called {
            Trapped::note(&mut self.trapped, error, "call", &text_of(&request));
        }
        passed.requests.push(request);
        match called {
            Ok(answer) => {
                passed.calls.push(answer.stats);
                passed.answer = Some(self.gated(answer.response.clone()));
                Ok(answer.response)
            }
            Err(error) => {
                passed.calls.push(error.stats);
                passed.answer = Some(Err((Blame::of(&error), (*error.failure).clone())));
                Err(*error.failure)
            }
        }
    }

    /// The answer as the pass, which asks the same gate, will carry it out.
    fn gated(&self, response: Response) -> AnswerOrFailure {
        let root = self.cluster.root();
        let context = self.setting.binding.context(root);
        let needs = response.needs.clone();
        let fits = fits(&self.setting.kinds, &response);
        let allowed = gate::gate(&context, response).map_err(|found| (Blame::Gate, found.failure()))?;
        fits.map_err(|failure| (Blame::Kind, failure))?;
        let children = allowed.children().iter().map(|child| child.object().clone()).collect();
        Ok((Shown::of(allowed, root, needs), children))
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

    fn apply(&mut self, apply: &Apply, passed: &mut Passed) -> Result<Applied, ApiError> {
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
