//! [`Preview`]: a pass that stops where it would begin to write.
//!
//! It asks for the guest's answer exactly as a pass does, reads what stands under the names of the answer's objects, and says of each
//! what a pass would do with it. It compares the whole answer with what is live: a stage that waits, and a refusal that stands, put a
//! write off and are no reason to say that there is none.

use pintle_wit::{Eviction, Failure, ObjectRef};
use serde_json::{Map, Value};

use super::{
    ApiError, Apply, Outcome, Pass, Snapshot, Step,
    children::Decision,
    finalize::is_annotated,
    flow::{Flow, Phase},
    key::Key,
    patches,
};
use crate::{
    gate::{Allowed, AllowedChild, AllowedPatch},
    managed, object,
    plan::{
        explain::explain,
        shown::{TIME, is_secret},
    },
};

/// A pass that asks for the answer and writes nothing. Its driver carries out [`Step::Look`], [`Step::CallGuest`], [`Step::Get`] and
/// [`Step::Inspect`]; no other step is asked for.
#[derive(Debug)]
pub struct Preview {
    pass: Pass,
    stage: Stage,
    /// What could not be read.
    unread: Vec<(ObjectRef, ApiError)>,
    patches: Vec<PatchFate>,
}

/// How far a preview is.
#[derive(Debug)]
enum Stage {
    /// It asks for the answer.
    Asking,
    /// It reads children that the root's status names.
    Recorded(Vec<ObjectRef>),
    /// It reads what has the names of children that nothing has shown yet.
    Named(Vec<ObjectRef>),
    /// It reads what the answer patches.
    Patched,
    Over,
}

/// What a pass would do with a child of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is as the answer wants it.
    Unchanged,
    /// There is none.
    Create,
    /// It is the root's, and differs.
    Update,
    /// It is not the root's yet, and may become the root's.
    Adopt,
    /// It is not the root's, in these words.
    Conflict(String),
    /// It has to wait for something else, in these words.
    Held(String),
    /// It could not be read, in these words.
    Unknown(String),
}

/// What a pass would do with an object that is not the root's.
#[derive(Clone, Debug)]
pub struct PatchFate {
    /// The object.
    pub reference: ObjectRef,
    /// What becomes of it.
    pub fate: Fate,
    /// The object as it is, if it is there.
    pub live: Option<Value>,
    /// What is applied.
    pub sent: Value,
    /// What the last apply of the patch has set.
    pub entry: Option<Value>,
}

/// What a preview found.
#[derive(Debug, Default)]
pub struct Previewed {
    /// Why there is no answer.
    pub failure: Option<Failure>,
    /// Why the guest is not asked, and nothing is done.
    pub idle: Option<String>,
    /// The answer, with a word in place of times that the host would set.
    pub answer: Option<Allowed>,
    /// What would become of its children, in its order.
    pub children: Vec<Fate>,
    /// The applies that would be sent, in the same order; none where nothing would be.
    pub applies: Vec<Option<Apply>>,
    /// Children that the answer no longer has.
    pub doomed: Vec<ObjectRef>,
    /// What would become of the objects that are patched.
    pub patches: Vec<PatchFate>,
    /// Pods that would be evicted.
    pub evictions: Vec<Eviction>,
    /// The root's finalizers, as they are and as they would be.
    pub finalizers: Option<(Vec<String>, Vec<String>)>,
    /// The guest's status fields and conditions, as they are and as they would be. `None` where the host would write neither.
    pub status: Option<(Value, Value)>,
    /// What could not be read.
    pub unread: Vec<(ObjectRef, ApiError)>,
}

impl Preview {
    /// A preview of a pass over a root. The snapshot's memory should be empty, as it is after a swap.
    pub fn new(snapshot: Snapshot) -> Self {
        Self { pass: Pass::new(snapshot), stage: Stage::Asking, unread: Vec::new(), patches: Vec::new() }
    }

    /// Takes the outcome of the last step and returns the next one; nothing once everything is known.
    pub fn step(&mut self, outcome: Outcome) -> Option<Step> {
        match (std::mem::replace(&mut self.stage, Stage::Over), outcome) {
            (Stage::Asking, outcome) => {
                let flow = self.pass.take(outcome);
                self.ask(flow)
            }
            (Stage::Recorded(asked), Outcome::Got(found)) => {
                self.saw(asked, found);
                self.read_named()
            }
            (Stage::Named(asked), Outcome::Got(found)) => {
                self.saw(asked, found);
                self.read_patched()
            }
            (Stage::Patched, Outcome::Inspected(found)) => {
                self.judge_patches(found);
                None
            }
            _ => None,
        }
    }

    /// Goes through the phases of a pass up to the answer.
    fn ask(&mut self, mut flow: Flow) -> Option<Step> {
        loop {
            self.pass.phase = match flow {
                Flow::Do(step) => {
                    self.stage = Stage::Asking;
                    return Some(step);
                }
                Flow::Again => self.pass.phase,
                Flow::Done => self.pass.phase.next(),
                Flow::To(phase) => phase,
            };
            flow = match self.pass.phase {
                Phase::Begin => self.pass.begin(),
                Phase::Needs => self.pass.look_up_remembered(),
                Phase::Guest => self.pass.call_guest(),
                _ => break,
            };
        }
        match self.pass.answer {
            Some(_) => self.read_recorded(),
            None => None,
        }
    }

    fn read_recorded(&mut self) -> Option<Step> {
        let unread = self.pass.unread();
        if unread.is_empty() {
            return self.read_named();
        }
        self.stage = Stage::Recorded(unread.clone());
        Some(Step::Get(unread))
    }

    /// Reads what has the name of a child that nothing has shown: it may be somebody else's, or have lost our labels.
    fn read_named(&mut self) -> Option<Step> {
        let is_unread = |child: &ObjectRef| self.unread.iter().any(|(unread, _)| unread == child);
        let named: Vec<ObjectRef> = self
            .wanted()
            .iter()
            .map(AllowedChild::reference)
            .filter(|child| !self.pass.live.contains_key(&Key::from(*child)) && !is_unread(child))
            .filter(|child| !self.pass.memory.read.contains(*child))
            .cloned()
            .collect();
        if named.is_empty() {
            return self.read_patched();
        }
        self.stage = Stage::Named(named.clone());
        Some(Step::Get(named))
    }

    fn read_patched(&mut self) -> Option<Step> {
        let targets = self.pass.patch_targets();
        if targets.is_empty() {
            return None;
        }
        self.stage = Stage::Patched;
        Some(Step::Inspect(targets))
    }

    fn wanted(&self) -> &[AllowedChild] {
        self.pass.answer.as_ref().map_or(&[], |answer| answer.allowed.children())
    }

    fn saw(&mut self, asked: Vec<ObjectRef>, found: Vec<Result<Option<crate::Observed>, ApiError>>) {
        for (reference, found) in asked.into_iter().zip(found) {
            match found {
                Ok(found) => self.pass.saw(&reference, found),
                // If the API server no longer serves the kind, the object is gone too.
                Err(error) if error.is_kind_missing() => self.pass.saw(&reference, None),
                Err(error) => self.unread.push((reference, error)),
            }
        }
    }

    fn judge_patches(&mut self, found: Vec<Result<Option<Value>, ApiError>>) {
        let manager = patches::manager(&self.pass.root);
        for (patch, found) in self.pass.wanted_patches().iter().zip(found) {
            let (fate, live) = match found {
                Err(error) => (Fate::Unknown(error.to_string()), None),
                Ok(live) => (patch_fate(patch, live.as_ref(), &manager), live),
            };
            let entry = live.as_ref().and_then(|live| managed::entry(live, &manager, None)).cloned();
            let (reference, sent) = (patch.reference().clone(), patch.object().clone());
            self.patches.push(PatchFate { reference, fate, live, sent, entry });
        }
    }

    /// What was found. `live` has the objects whole, as far as they were read: Secrets are compared by them, because nobody but the host
    /// knows the key of their hashes.
    pub fn finish<'a>(mut self, live: impl Fn(&ObjectRef) -> Option<&'a Value>) -> Previewed {
        let Some(answer) = self.pass.answer.take() else {
            return self.without_answer();
        };
        for child in answer.allowed.children().iter().filter(|child| is_secret(&child.reference().kind())) {
            let key = Key::from(child.reference());
            let is_same = live(child.reference()).is_some_and(|live| self.is_same_secret(child, live));
            if let Some(known) = self.pass.live.get_mut(&key).filter(|known| known.desired.is_some()) {
                known.desired = is_same.then(|| child.desired().to_string());
            }
        }
        let (mut children, mut applies) = (Vec::new(), Vec::new());
        for child in answer.allowed.children() {
            let fate = self.fate(child);
            applies.push(self.apply(child, &fate));
            children.push(fate);
        }
        let mut allowed = answer.allowed.clone();
        self.pass.answer = Some(answer);
        let doomed = if allowed.finalized() { Vec::new() } else { self.pass.prunable() };
        let recorded = self.pass.recorded_evictions();
        let pods = self.pass.evictions().map_or(&[][..], |evictions| &evictions.pods);
        let evictions = pods.iter().filter(|pod| !recorded.contains(&pod.uid)).cloned().collect();
        let present = || object::finalizers(&self.pass.root).map(Into::into).collect();
        let finalizers = self.pass.due_finalizers().map(|wanted| (present(), wanted.into_iter().collect()));
        allowed.hide_stamps(&crate::conditions::time(self.pass.now), TIME);
        let status = self.status(&allowed);
        Previewed {
            failure: None,
            idle: None,
            answer: Some(allowed),
            children,
            applies,
            doomed,
            patches: self.patches,
            evictions,
            finalizers,
            status,
            unread: self.unread,
        }
    }

    fn apply(&self, child: &AllowedChild, fate: &Fate) -> Option<Apply> {
        let manager = &self.pass.binding.field_manager;
        match fate {
            Fate::Create => Some(Apply::create(child, manager)),
            Fate::Update | Fate::Adopt => {
                let live = self.pass.live.get(&Key::from(child.reference()))?;
                Some(Apply::update(child, manager, &live.uid))
            }
            _ => None,
        }
    }

    fn without_answer(self) -> Previewed {
        let root = &self.pass.root;
        let suspended = is_annotated(root, pintle_wit::names::ANNOTATION_SUSPEND);
        let idle = if object::is_deleting(root) && self.pass.failure.is_none() {
            Some("it is being deleted: the guest is not asked, and its children go with it".to_owned())
        } else if suspended {
            self.pass.failure.as_ref().map(|failure| failure.message.clone())
        } else {
            None
        };
        let failure = self.pass.failure.filter(|_| idle.is_none());
        Previewed { failure, idle, unread: self.unread, ..Previewed::default() }
    }

    fn fate(&self, child: &AllowedChild) -> Fate {
        let unread = self.unread.iter().find(|(reference, _)| reference == child.reference());
        if let Some((_, error)) = unread {
            return Fate::Unknown(error.to_string());
        }
        match self.pass.decide(child) {
            Decision::Keep => Fate::Unchanged,
            Decision::Create => Fate::Create,
            Decision::Update(_) => Fate::Update,
            Decision::Adopt(_) => Fate::Adopt,
            Decision::Refuse(standing) => Fate::Conflict(standing.refusal.message.clone()),
            Decision::Hold(message) => Fate::Held(message),
            Decision::AwaitStage => Fate::Held("it waits for an earlier stage".into()),
        }
    }

    /// Whether a Secret has the values that are sent, and nothing that an earlier answer has set and this one does not.
    fn is_same_secret(&self, child: &AllowedChild, live: &Value) -> bool {
        let entry = managed::entry(live, &self.pass.binding.field_manager, None);
        explain(Some(live), Some(child.object()), entry).fields.is_empty()
    }

    /// The guest's part of the status: its fields, and its conditions by type.
    fn status(&self, allowed: &Allowed) -> Option<(Value, Value)> {
        if matches!(self.pass.binding.status, crate::StatusSchema::Nothing) {
            return None;
        }
        let (fields, conditions) = self.pass.last_guest_status();
        let any = serde_json::json!({"conditions": [{"type": "Any"}]});
        let takes_conditions = self.pass.binding.status.prune(any.clone()) == any;
        let part = |fields: &Map<String, Value>, conditions: &[pintle_wit::GuestCondition]| {
            let mut part = fields.clone();
            part.retain(|_, value| !value.is_null());
            let conditions: Map<String, Value> = conditions
                .iter()
                .map(|condition| {
                    let said = serde_json::json!({
                        "status": condition.status, "reason": condition.reason, "message": condition.message,
                    });
                    (condition.r#type.clone(), said)
                })
                .collect();
            if !conditions.is_empty() && takes_conditions {
                part.insert("conditions".into(), Value::Object(conditions));
            }
            Value::Object(part)
        };
        // Where the fields are shown whatever else the API server says of them, nothing would be written.
        let now = match self.pass.fields_differ(allowed.status()) {
            true => fields,
            false => allowed.status().clone(),
        };
        Some((part(&now, &conditions), part(allowed.status(), allowed.conditions())))
    }
}

fn patch_fate(patch: &AllowedPatch, live: Option<&Value>, manager: &str) -> Fate {
    match live {
        None => Fate::Conflict(patches::missing(patch.reference()).message),
        Some(live) if patches::is_as_wanted(patch, live, manager) => Fate::Unchanged,
        Some(_) => Fate::Update,
    }
}
