//! Children in which somebody changed the key of a list item that we own, so that an apply would add our item beside the changed one
//! (see [`crate::managed`]).
//!
//! Before such a child is applied, the host takes over the changed item by a change of managed fields, so that the apply removes it. It
//! does so again if the API server does not accept our item beside the other. Taking over changes nothing else, so a pass may stop at
//! any point in between.
//!
//! In the same way the host gives up the number of replicas that an answer no longer has. Otherwise the API server would set it to 1 on
//! the way to what an autoscaler makes of it.

use serde_json::Value;

use super::{
    ApiError, Claim, Pass, Step,
    answer::{Answer, ChildState, Suspicion},
    flow::{Awaited, Flow},
    key::Key,
    refusals::StandingRefusal,
};
use crate::{gate::AllowedChild, managed, observed::Observed, reconciler::is_watchable};

/// How often a claim may come too late. After an edit of a Deployment its controllers write its status within milliseconds.
const LATE_MAX: u32 = 5;

/// What the API server says of two items that cannot be in one list: a value that must be unique, or a name that a list of one item
/// need not have.
pub(super) fn is_about_a_list(error: &ApiError) -> bool {
    let is_about =
        |reason: &str| matches!(reason, "FieldValueDuplicate" | "FieldValueRequired" | "FieldValueInvalid");
    is_node_port(error)
        || error.code == 422
            && error.causes.iter().any(|cause| is_about(&cause.reason) && cause.field.contains('['))
}

/// A Service with one node port twice is an internal error to the API server.
fn is_node_port(error: &ApiError) -> bool {
    error.code == 500 && error.message.contains("duplicate nodePort")
}

/// Where in the object that is.
pub(super) fn paths(error: &ApiError) -> Vec<String> {
    let fields = error.causes.iter().map(|cause| cause.field.clone());
    fields.chain(is_node_port(error).then(|| "spec.ports".to_owned())).collect()
}

impl Pass {
    /// Whether a child may lack items because somebody changed their keys: it is the root's, was applied in this very form, and our
    /// entry lacks an item of it.
    pub(super) fn may_be_displaced(&self, child: &AllowedChild) -> bool {
        is_watchable(&child.reference().kind())
            && self.live.get(&Key::from(child.reference())).is_some_and(|live| {
                self.owns(live)
                    && live.desired.as_deref() == Some(child.desired().as_str())
                    && managed::lacks_an_item(live.entry.as_ref(), child.object())
            })
    }

    /// Whether the next apply of a child would take its number of replicas away, which we own.
    fn gives_up_replicas(&self, child: &AllowedChild) -> bool {
        managed::gives_up_replicas(child.object())
            && self
                .live
                .get(&Key::from(child.reference()))
                .is_some_and(|live| self.owns(live) && live.owns_replicas)
    }

    /// Marks those of the children that are about to be applied in which somebody's items may stand in the place of ours, or whose number
    /// of replicas is given up. Whether there are any.
    pub(super) fn suspect_displaced(&self, answer: &mut Answer, due: &[(usize, Option<String>)]) -> bool {
        let mut any = false;
        for (index, _) in due {
            let Some((child, state)) = answer.at(*index) else { continue };
            let attempts = match state {
                ChildState::Inspected(_) => continue,
                ChildState::Looked(attempts) => *attempts,
                _ => 0,
            };
            if self.may_be_displaced(child) || self.gives_up_replicas(child) {
                *state = ChildState::Displaced(Suspicion { attempts, ..Suspicion::default() });
                any = true;
            }
        }
        any
    }

    /// Reads the children that are so marked, and goes on with the others when there are none.
    pub(super) fn inspect(&mut self, answer: Answer) -> Flow {
        let marked = answer.states.iter().enumerate();
        let marked: Vec<usize> = marked
            .filter(|(_, state)| matches!(state, ChildState::Displaced(_)))
            .map(|(index, _)| index)
            .collect();
        let children = answer.allowed.children();
        let references: Vec<_> = marked
            .iter()
            .filter_map(|index| children.get(*index))
            .map(|child| child.reference().clone())
            .collect();
        self.answer = Some(answer);
        if references.is_empty() {
            return Flow::Again;
        }
        self.ask_for(Awaited::Inspections(marked), Step::Inspect(references))
    }

    pub(super) fn inspected(
        &mut self,
        indexes: &[usize],
        found: Vec<Result<Option<Value>, ApiError>>,
    ) -> Flow {
        let Some(mut answer) = self.answer.take() else { return Flow::Done };
        let (mut claiming, mut claims) = (Vec::new(), Vec::new());
        for (index, found) in indexes.iter().zip(found) {
            let Some((child, state)) = answer.at(*index) else { continue };
            let ChildState::Displaced(suspicion) = state else { continue };
            let suspicion = std::mem::take(suspicion);
            match found {
                Err(error) => {
                    *state = self.unsure_of(child, error);
                    continue;
                }
                // Gone meanwhile, or another: the apply finds out, as it carries the uid.
                Ok(found) => {
                    let ours = found.filter(|live| {
                        let seen = Observed::of(live, &self.binding.field_manager, false);
                        self.owns(&seen) && !seen.deleting
                    });
                    let manager = &self.binding.field_manager;
                    let claim = ours.and_then(|live| {
                        if self.gives_up_replicas(child) {
                            Claim::without_replicas(child, &live, manager)
                        } else {
                            Claim::of(child, &live, manager, &suspicion.refused)
                        }
                    });
                    if let Some(claim) = claim {
                        claiming.push(*index);
                        claims.push(claim);
                    }
                    *state = ChildState::Inspected(suspicion);
                }
            }
        }
        self.answer = Some(answer);
        if claims.is_empty() {
            return Flow::Again;
        }
        self.ask_for(Awaited::Claims(claiming), Step::Claim(claims))
    }

    pub(super) fn claimed(&mut self, indexes: &[usize], results: Vec<Result<Observed, ApiError>>) -> Flow {
        let Some(mut answer) = self.answer.take() else { return Flow::Done };
        for (index, result) in indexes.iter().zip(results) {
            let Some((child, state)) = answer.at(*index) else { continue };
            match result {
                Ok(observed) => {
                    self.live.insert(Key::from(child.reference()), observed);
                }
                Err(error) if error.code == 409 => {
                    let ChildState::Inspected(suspicion) = state else { continue };
                    if suspicion.late < LATE_MAX {
                        let late = suspicion.late + 1;
                        *state = ChildState::Displaced(Suspicion { late, ..std::mem::take(suspicion) });
                    } else {
                        *state = self.unsure_of(child, error);
                    }
                }
                // Applied without the claim, ours would stand beside theirs from then on, and look right. What may not be patched may
                // not be applied either: it waits for the right.
                Err(error) if error.code == 403 => {
                    let live = self.live.get(&Key::from(child.reference()));
                    *state = ChildState::Refused(Box::new(StandingRefusal::of(child, error, live)));
                }
                // The apply is tried all the same, and says what is wrong.
                Err(error) if error.is_refusal() => {}
                Err(error) => *state = self.unsure_of(child, error),
            }
        }
        self.inspect(answer)
    }
}
