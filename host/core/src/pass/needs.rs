//! Needs: what the guest asks to see. An answer counts only if it asks for the same set of needs as the request has answered.

use std::{collections::HashSet, time::Duration};

use jiff::{SignedDuration, Timestamp};
use pintle_wit::{Failure, Need, NeedAnswer, ObjectRef, Response};
use serde_json::Value;

use super::{
    Pass, Step,
    flow::{Awaited, Flow, Phase},
};
use crate::{
    desired::hash_parts,
    gate,
    needs::{self, Budget, LookUp},
    reasons,
};

/// How many times in a row a guest is called while it keeps asking for another set of needs: four for a chain such as ConfigMap and
/// Pods, ReplicaSets, Deployments, and one to spare.
const CALLS_MAX: u32 = 5;

/// A change is shown after this many times its settling time at the latest, however often the objects change.
const SETTLE_FACTOR: i64 = 5;

/// The needs of a pass.
#[derive(Debug, Default)]
pub(super) struct Needs {
    /// The set of needs that the guest's request answers.
    given: Vec<Need>,
    /// The answers to this set.
    pub(super) answers: Vec<NeedAnswer>,
    /// The set was remembered from the last pass; otherwise this pass has built it up from an empty one.
    remembered: bool,
    /// What the guest asked to see before this pass, if it asks for something else now.
    begun_with: Option<Vec<Need>>,
    /// Calls since the last answer that counted.
    calls: u32,
    /// When an answer will change although no object changes.
    pub(super) again: Option<Duration>,
    /// The patched objects whose changes bring the root back.
    followed: Vec<ObjectRef>,
    /// Somebody has changed what a patch had set.
    pub(super) patches_drifted: bool,
    /// The guest was called in this pass, so objects that are looked up now are for another call.
    pub(super) called: bool,
}

/// A need with a settling time: its changes are shown to the guest once they have settled.
#[derive(Clone, Debug)]
pub(super) struct Settling {
    need: Need,
    /// The objects as the guest was shown them last, as JSON.
    shown: Box<[u8]>,
    pending: Option<Pending>,
}

impl Settling {
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.shown.len()
    }
}

/// A change that is held back.
#[derive(Clone, Copy, Debug)]
struct Pending {
    hash: [u8; 32],
    first: Timestamp,
    last: Timestamp,
}

impl Pass {
    /// Begins with the needs of the last pass. This saves calls of the guest, and changes nothing else.
    pub(super) fn look_up_remembered(&mut self) -> Flow {
        if self.memory.needs.is_empty() && self.memory.patched.is_empty() {
            return Flow::Done;
        }
        self.needs.remembered = true;
        let last = self.memory.needs.clone();
        self.look_up(last)
    }

    /// Asks for a look-up of these needs, if they are allowed.
    fn look_up(&mut self, asked: Vec<Need>) -> Flow {
        let binding = std::sync::Arc::clone(&self.binding);
        let allowed = gate::needs(&binding.context(&self.root), &asked);
        match allowed {
            Ok(allowed) => {
                let mut lookups: Vec<LookUp> = allowed.into_iter().flatten().collect();
                // The objects that the root has patched are followed too, but are not shown to the guest.
                lookups
                    .extend(self.memory.patched.iter().map(|(object, _)| LookUp::of_managed_fields(object)));
                self.needs.followed = self.memory.patched.iter().map(|(object, _)| object.clone()).collect();
                self.ask_for(Awaited::LookUps(asked), Step::Look(lookups))
            }
            // A need that was granted in the last pass may not be granted any more, or not to another module.
            Err(_) if self.needs.remembered => self.begin_from_nothing(),
            Err(found) => {
                self.answer = None;
                self.counts.unlisted_violations += found.unlisted();
                self.fail(found.failure())
            }
        }
    }

    /// The remembered set did not lead to an answer. Tries again with an empty set, to see whether the remembered set is the cause.
    fn begin_from_nothing(&mut self) -> Flow {
        self.needs.remembered = false;
        self.needs.calls = 0;
        self.look_up(Vec::new())
    }

    pub(super) fn looked_up(&mut self, asked: Vec<Need>, found: Vec<Result<Vec<Value>, Failure>>) -> Flow {
        let mut found = found.into_iter();
        if self.memory.needs != asked {
            let before = std::mem::replace(&mut self.memory.needs, asked.clone());
            self.needs.begun_with.get_or_insert(before);
        }
        self.needs.again = None;
        let mut objects = Vec::with_capacity(asked.len());
        let mut budget = Budget::default();
        // Nothing of it counts before all of it was found and is within the limits.
        for (index, need) in asked.iter().enumerate().filter(|(_, need)| matches!(need, Need::Objects(_))) {
            let answer = match found.next() {
                Some(Ok(found)) => needs::answer(need, found, &mut budget),
                Some(Err(failure)) => Err(failure),
                None => needs::answer(need, Vec::new(), &mut budget),
            };
            match answer {
                Ok(answer) => objects.push(answer),
                // The guest may ask for less by now, or for something else because somebody edited its root.
                Err(failure) if self.needs.remembered && (!failure.retry || self.edited) => {
                    return self.begin_from_nothing();
                }
                Err(failure) if failure.reason == reasons::NEEDS_TOO_LARGE => {
                    return self.fail(failure.at(format!("needs[{index}].objects")));
                }
                Err(failure) => return self.fail(failure),
            }
        }
        let mut objects = objects.into_iter();
        let mut answers = Vec::with_capacity(asked.len());
        for need in &asked {
            match needs::time(need, self.now) {
                Some((answer, next)) => {
                    self.come_back(next);
                    answers.push(answer);
                }
                None => {
                    let answer = objects.next().unwrap_or_default();
                    answers.push(self.settled(need, answer));
                }
            }
        }
        let patched = std::mem::take(&mut self.memory.patched);
        for ((_, before), found) in patched.iter().zip(found) {
            // Objects that cannot be read now are read in a retry.
            let Ok(found) = found else { continue };
            let manager = super::patches::manager(&self.root);
            let now = found.first().map(|live| super::patches::entry_hash(live, &manager));
            self.needs.patches_drifted |= now != Some(*before);
        }
        self.memory.patched = patched;
        self.needs.given = asked;
        self.needs.answers = answers;
        Flow::To(Phase::Guest)
    }

    /// The kind of new need that costs the host something, if the guest has such a need that it did not have before this pass: new
    /// fields, for which a kind must be listed anew, or a new deadline.
    pub(super) fn new_need(&self) -> Option<NewNeed> {
        let before = self.needs.begun_with.as_ref()?;
        let now = &self.memory.needs;
        let known: HashSet<(&str, &str, &str)> = before.iter().flat_map(fields).collect();
        if now.iter().flat_map(fields).any(|field| !known.contains(&field)) {
            return Some(NewNeed::Fields);
        }
        let known: HashSet<&str> = before.iter().filter_map(deadline).collect();
        let is_ahead = |at: &&str| at.parse::<Timestamp>().is_ok_and(|at| at > self.now);
        let mut deadlines = now.iter().filter_map(deadline).filter(is_ahead);
        deadlines.any(|at| !known.contains(at)).then_some(NewNeed::Deadline)
    }

    fn come_back(&mut self, after: Option<Duration>) {
        self.needs.again = self.needs.again.into_iter().chain(after).min();
    }

    /// The answer to a need with a settling time: the changed objects once they have been quiet for long enough, and until then the
    /// objects that were shown before.
    fn settled(&mut self, need: &Need, answer: NeedAnswer) -> NeedAnswer {
        let settle = match need {
            Need::Objects(need) if need.settle_milliseconds > 0 => need.settle_milliseconds,
            _ => return answer,
        };
        let settle = SignedDuration::from_millis(settle.into());
        // Plain data with string keys: writing it as JSON cannot fail.
        let text = serde_json::to_vec(&answer.objects).unwrap_or_default();
        let now = self.now;
        let Some(known) = self.memory.settling.iter_mut().find(|known| known.need == *need) else {
            // Objects that are seen for the first time have not changed.
            self.memory.settling.push(Settling { need: need.clone(), shown: text.into(), pending: None });
            return answer;
        };
        if *known.shown == *text {
            known.pending = None;
            return answer;
        }
        let hash = hash_parts(&[&text]);
        let pending = match known.pending {
            Some(pending) if pending.hash == hash => pending,
            Some(pending) => Pending { hash, last: now, ..pending },
            None => Pending { hash, first: now, last: now },
        };
        // If the clock was set back, the change counts as seen now.
        let pending = Pending { first: pending.first.min(now), last: pending.last.min(now), ..pending };
        let quiet = settle - now.duration_since(pending.last);
        let latest = settle * i32::try_from(SETTLE_FACTOR).unwrap_or(1) - now.duration_since(pending.first);
        let left = quiet.min(latest);
        if left <= SignedDuration::ZERO {
            known.shown = text.into();
            known.pending = None;
            return answer;
        }
        known.pending = Some(pending);
        let objects = serde_json::from_slice(&known.shown).unwrap_or_default();
        self.come_back(Duration::try_from(left).ok());
        NeedAnswer { objects, ..answer }
    }

    /// Counts a call of the guest that is about to be made.
    pub(super) fn count_call(&mut self) {
        self.needs.calls += 1;
        self.needs.called = true;
    }

    /// Returns the answer if it is one to what the guest needs to see, and otherwise what to do instead.
    pub(super) fn answer_to_needs(
        &mut self,
        answer: Result<Response, Failure>,
    ) -> Result<Result<Response, Failure>, Box<Flow>> {
        match answer {
            Err(failure) if self.needs.remembered && !failure.retry => {
                Err(Box::new(self.begin_from_nothing()))
            }
            Ok(response) if !is_same_set(&response.needs, &self.needs.given) => {
                Err(Box::new(match self.needs.calls {
                    calls if calls < CALLS_MAX => self.look_up(response.needs),
                    _ if self.needs.remembered => self.begin_from_nothing(),
                    _ => {
                        let message = format!(
                            "after {CALLS_MAX} calls the guest still asks to see something else; it asks for everything that it needs every \
                         time, and for the same when it is shown the same"
                        );
                        self.answer = None;
                        self.fail(Failure::terminal(reasons::NEEDS_UNSTABLE, message))
                    }
                }))
            }
            answer => {
                self.needs.remembered = false;
                self.needs.calls = 0;
                Ok(answer)
            }
        }
    }

    /// Whether another pass must follow, so that changes of the objects that this pass patched bring the root back.
    pub(super) fn is_to_follow_patches(&self) -> bool {
        let mut patched = self.memory.patched.iter();
        self.needs.called && patched.any(|(object, _)| !self.needs.followed.contains(object))
    }

    /// Forgets what was remembered for needs that the guest no longer has.
    pub(super) fn forget_needs(&mut self) {
        let needs = &self.memory.needs;
        self.memory.settling.retain(|known| needs.contains(&known.need));
    }
}

/// A need that the guest did not have before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NewNeed {
    /// Fields that the host may not have in its cache yet.
    Fields,
    /// Another time at which the guest wants to be called.
    Deadline,
}

/// The fields that a need asks for, with their kind.
fn fields(need: &Need) -> impl Iterator<Item = (&str, &str, &str)> {
    let objects = match need {
        Need::Objects(need) => Some(need),
        _ => None,
    };
    objects.into_iter().flat_map(|need| {
        need.fields.iter().map(|field| (need.api_version.as_str(), need.kind.as_str(), field.as_str()))
    })
}

fn deadline(need: &Need) -> Option<&str> {
    match need {
        Need::Deadline(at) => Some(at),
        _ => None,
    }
}

fn is_same_set(one: &[Need], other: &[Need]) -> bool {
    if one == other {
        return true;
    }
    let (one, other): (HashSet<&Need>, HashSet<&Need>) = (one.iter().collect(), other.iter().collect());
    one == other
}
