//! Brings the children to the state that the answer wants: decides which are created, updated, left alone, refused or held back.

use std::collections::BTreeMap;

use pintle_wit::{ObjectRef, Refusal};

use super::{
    ApiError, Applied, Apply, Pass, Step,
    answer::{Answer, ChildState, Suspicion, is_as_wanted},
    displaced, doubt,
    flow::{Awaited, Flow},
    key::Key,
    refusals::{Occupant, StandingRefusal},
};
use crate::{gate::AllowedChild, observed::Observed};

/// How many times a pass tries to write one child when the object of its name appears and disappears meanwhile.
const ATTEMPTS_MAX: u32 = 3;

/// What is to be done about a child.
pub(super) enum Decision {
    Keep,
    Create,
    Update(String),
    /// As an update of an object that the root does not own yet.
    Adopt(String),
    Refuse(Box<StandingRefusal>),
    Hold(String),
    AwaitStage,
}

impl Pass {
    /// Decides every child that is still open, stage by stage, and applies those that need it. Within a stage, the objects that pod
    /// templates refer to are applied first, so that no Pod starts before its Secret, or reads another owner's Secret.
    pub(super) fn apply_children(&mut self) -> Flow {
        let Some(mut answer) = self.answer.take() else { return Flow::Done };
        let mut due = Vec::new();
        let mut stages: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (index, child) in answer.allowed.children().iter().enumerate() {
            stages.entry(child.stage()).or_default().push(index);
        }
        let mut closed = false;
        'stages: for stage in stages.values() {
            for referred in [true, false] {
                due = self.decide_open(&mut answer, stage, closed, referred);
                if !due.is_empty() {
                    break 'stages;
                }
            }
            closed = closed || self.is_waited_for(&answer, stage);
        }
        if due.is_empty() {
            self.answer = Some(answer);
            return Flow::Done;
        }
        if !self.freshness.is_confirmed() && (answer.adopts || self.is_root_in_doubt(&answer, &due)) {
            self.answer = Some(answer);
            return self.read_root();
        }
        self.note_fight(&answer, &due);
        if self.suspect_displaced(&mut answer, &due) {
            return self.inspect(answer);
        }
        let unrecorded = self.unrecorded(&answer, &due);
        if !unrecorded.is_empty() {
            self.answer = Some(answer);
            return self.record(&unrecorded);
        }
        let manager = self.binding.field_manager.clone();
        let children = answer.allowed.children();
        let applies = due
            .iter()
            .filter_map(|(index, uid)| {
                let child = children.get(*index)?;
                Some(uid.as_ref().map_or_else(
                    || Apply::create(child, &manager),
                    |uid| Apply::update(child, &manager, uid),
                ))
            })
            .collect();
        self.answer = Some(answer);
        let indexes = due.into_iter().map(|(index, _)| index).collect();
        self.ask_for(Awaited::Applies(indexes), Step::Apply(applies))
    }

    /// Whether the root must be read live before anything is written. There are two such cases:
    ///
    /// * A child that existed before is about to be created again. Somebody deleted it, or the garbage collector did, because the root
    ///   is gone and its watch has not shown that yet.
    /// * Only the list at the start of this host has shown the root. The list may be older than the last writes of the host before.
    ///
    /// A root that a watch has just brought is not read, nor is the root for a child that the last answer did not have.
    fn is_root_in_doubt(&self, answer: &Answer, due: &[(usize, Option<String>)]) -> bool {
        let created = due.iter().filter(|(_, uid)| uid.is_none());
        let mut created = created.filter_map(|(index, _)| answer.allowed.children().get(*index));
        // A child that is refused never existed.
        let is_refused =
            |child: &AllowedChild| self.memory.refusals.against(child.reference(), child.desired()).is_some();
        self.is_root_unconfirmed()
            || created.any(|child| self.had_been_there(child.reference()) && !is_refused(child))
    }

    /// Whether an earlier answer had a child that is about to be created, as far as is known.
    pub(super) fn had_been_there(&self, reference: &ObjectRef) -> bool {
        match &self.memory.memo {
            Some(memo) => memo.wants(&Key::from(reference)),
            None => self.was_answered(),
        }
    }

    /// Decides the open children of a stage, either those that pod templates refer to or the others. Returns the children to apply, each
    /// with the uid that it must have, or none for a first apply.
    fn decide_open(
        &self,
        answer: &mut Answer,
        stage: &[usize],
        closed: bool,
        referred: bool,
    ) -> Vec<(usize, Option<String>)> {
        let mut due = Vec::new();
        for &index in stage {
            let Some(child) = answer.allowed.children().get(index) else { continue };
            let open = answer.states.get(index).is_some_and(ChildState::is_open);
            if !open || is_referred(child.reference()) != referred {
                continue;
            }
            let decision = match self.missing_reference(answer, child) {
                _ if closed && !self.is_kept_meanwhile(child) => Decision::AwaitStage,
                Some(missing) => Decision::Hold(missing),
                None => self.decide(child),
            };
            let state = match decision {
                Decision::Keep => ChildState::Accepted,
                Decision::Refuse(standing) => ChildState::Refused(standing),
                Decision::Hold(message) => ChildState::Held(message),
                Decision::AwaitStage => ChildState::Staged,
                Decision::Create => {
                    due.push((index, None));
                    continue;
                }
                Decision::Update(uid) => {
                    due.push((index, Some(uid)));
                    continue;
                }
                Decision::Adopt(uid) => {
                    due.push((index, Some(uid)));
                    answer.adopts = true;
                    continue;
                }
            };
            if let Some(slot) = answer.states.get_mut(index) {
                *slot = state;
            }
        }
        due
    }

    pub(super) fn decide(&self, child: &AllowedChild) -> Decision {
        let live = self.live.get(&Key::from(child.reference()));
        if let Some(standing) = self.memory.refusals.against(child.reference(), child.desired()) {
            // A form that was refused for good is not sent again onto the same object. It may be accepted once that object has changed or
            // is gone.
            let for_good = !standing.retry && standing.occupant == Occupant::of(live);
            let a_moment_ago = self.asked.rounds > 1 && self.was_told(&standing.refusal);
            if for_good || a_moment_ago {
                return Decision::Refuse(Box::new(standing.clone()));
            }
        }
        let Some(live) = live else { return Decision::Create };
        let is_owned = self.owns(live);
        if is_owned || self.lost_its_owner(child, live) {
            if live.deleting {
                Decision::Hold(format!("{} is being deleted", child.reference()))
            } else if !is_owned {
                Decision::Adopt(live.uid.clone())
            } else if is_as_wanted(child, live) && self.is_labelled(live) {
                Decision::Keep
            } else {
                Decision::Update(live.uid.clone())
            }
        } else if self.may_adopt(live) && !live.deleting {
            Decision::Adopt(live.uid.clone())
        } else {
            Decision::Refuse(Box::new(self.adoption_conflict(child, live)))
        }
    }

    /// Whether an object carries our labels. Its managed fields may say so although an admission policy took them away.
    fn is_labelled(&self, observed: &Observed) -> bool {
        observed.reconciler_label.as_deref() == Some(&self.binding.reconciler)
            && observed.root_label.as_deref() == Some(self.uid())
    }

    fn was_told(&self, refusal: &Refusal) -> bool {
        self.asked.refusals.contains(refusal)
    }

    /// A child that the pod template refers to and that the root does not own yet.
    fn missing_reference(&self, answer: &Answer, child: &AllowedChild) -> Option<String> {
        child.references().iter().find_map(|(kind, name)| {
            let position = answer.allowed.children().iter().position(|other| {
                let reference = other.reference();
                reference.api_version == "v1"
                    && reference.kind == *kind
                    && reference.name == *name
                    && reference.namespace == child.reference().namespace
            })?;
            let accepted = matches!(answer.states.get(position), Some(ChildState::Accepted));
            (!accepted).then(|| {
                format!("{} waits for {kind} {name}, which its pod template refers to", child.reference())
            })
        })
    }

    pub(super) fn applied(&mut self, indexes: &[usize], results: Vec<Result<Applied, ApiError>>) -> Flow {
        let Some(mut answer) = self.answer.take() else { return Flow::Done };
        for (index, result) in indexes.iter().zip(results) {
            let Some((child, state)) = answer.at(*index) else { continue };
            let attempts = match state {
                ChildState::Looked(attempts) => *attempts,
                ChildState::Inspected(suspicion) => suspicion.attempts,
                _ => 0,
            };
            let suspicion = match state {
                ChildState::Inspected(suspicion) => suspicion.clone(),
                _ => Suspicion::default(),
            };
            let may_claim = suspicion.refused.is_empty() && self.may_be_displaced(child);
            *state = match result {
                Ok(Applied { created, observed }) => {
                    let before = self.live.get(&Key::from(child.reference()));
                    if created {
                        self.counts.created += 1;
                    } else if before.is_none_or(|live| live.resource_version != observed.resource_version) {
                        // An apply that changed nothing leaves the version as it is.
                        self.counts.updated += 1;
                    }
                    if !self.binding.watches(child.reference()) {
                        self.memory.read.insert(child.reference().clone());
                    }
                    let state = if self.is_labelled(&observed) {
                        ChildState::Accepted
                    } else {
                        ChildState::Refused(Box::new(StandingRefusal::without_labels(child, &observed)))
                    };
                    self.live.insert(Key::from(child.reference()), observed);
                    state
                }
                Err(error) if (error.code == 409 || error.is_uid_mismatch()) && attempts < ATTEMPTS_MAX => {
                    ChildState::InTheWay(attempts + 1)
                }
                Err(error) if may_claim && displaced::is_about_a_list(&error) => {
                    ChildState::Displaced(Suspicion { refused: displaced::paths(&error), ..suspicion })
                }
                Err(error) if error.is_refusal() => ChildState::Refused(Box::new(StandingRefusal::of(
                    child,
                    error,
                    self.live.get(&Key::from(child.reference())),
                ))),
                Err(error) => self.unsure_of(child, error),
            };
        }
        let in_the_way: Vec<usize> = indexes
            .iter()
            .copied()
            .filter(|index| matches!(answer.states.get(*index), Some(ChildState::InTheWay(_))))
            .collect();
        if in_the_way.is_empty() {
            return self.inspect(answer);
        }
        self.look(answer, in_the_way)
    }

    /// Keeps an error after which it is unknown whether the child was written.
    pub(super) fn unsure_of(&mut self, child: &AllowedChild, error: ApiError) -> ChildState {
        self.memory.unreported = true;
        doubt(&mut self.unsure, error.about(child.reference()));
        ChildState::Unsure
    }

    /// Reads live the objects that have the names of these children.
    fn look(&mut self, answer: Answer, indexes: Vec<usize>) -> Flow {
        let children = answer.allowed.children();
        let found = indexes.iter().filter_map(|index| children.get(*index));
        let references = found.map(|child| child.reference().clone()).collect();
        self.answer = Some(answer);
        self.ask_for(Awaited::InTheWay(indexes), Step::Get(references))
    }

    /// The object in the way was read live. It is our own after a lost reply, or somebody else's, or it is gone.
    pub(super) fn resolved(
        &mut self,
        indexes: &[usize],
        found: Vec<Result<Option<Observed>, ApiError>>,
    ) -> Flow {
        let Some(mut answer) = self.answer.take() else { return Flow::Done };
        for (index, found) in indexes.iter().zip(found) {
            let Some((child, state)) = answer.at(*index) else { continue };
            let ChildState::InTheWay(attempts) = *state else { continue };
            *state = match found {
                Err(error) => self.unsure_of(child, error),
                Ok(found) => {
                    let key = Key::from(child.reference());
                    match found {
                        Some(live) => self.live.insert(key, live),
                        None => self.live.remove(&key),
                    };
                    ChildState::Looked(attempts)
                }
            };
        }
        self.inspect(answer)
    }
}

/// Kinds that pod templates refer to.
fn is_referred(child: &ObjectRef) -> bool {
    child.api_version == "v1"
        && matches!(child.kind.as_str(), "Secret" | "ConfigMap" | "PersistentVolumeClaim" | "ServiceAccount")
}
