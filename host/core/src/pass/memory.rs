use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use pintle_wit::{GuestCondition, ObjectRef, Readiness, Refusal, names};
use serde_json::{Map, Value};

use super::{Binding, Key, breaker::Breaker, labels::Unlabelled};
use crate::{desired::DesiredHash, gate::Allowed, object, observed::Observed};

/// What one pass over a root leaves for the next. It lives in memory only: a host that starts without it does more work, never
/// other work.
#[derive(Clone, Debug, Default)]
pub struct RootMemory {
    /// What the last pass without error saw and decided.
    pub(super) memo: Option<Memo>,
    /// What the API server refuses, sorted by child.
    standing: Vec<Standing>,
    /// What the refusals hold for: root uid and generation, Reconciler generation, module digest.
    holds_for: Option<(String, Option<i64>, i64, String)>,
    /// Children that the status names that were looked at since the host started, or the root was edited.
    pub(super) read: BTreeSet<ObjectRef>,
    /// Those of them that are there, as they were last seen: no cache shows them.
    pub(super) unwatched: Vec<Observed>,
    /// Children that lost our labels when they were written.
    pub(super) unlabelled: BTreeMap<Key, Unlabelled>,
    /// What the root has spent on writes that led nowhere.
    pub(super) breaker: Breaker,
    /// When the status was written last.
    pub(super) written: Option<Timestamp>,
    /// The value of `pintle.dev/reconcile-at` that was honoured last.
    asked: Option<String>,
    /// Reason and message of the warning that was published last and still holds. A status may be unable to tell.
    pub(super) warned: Option<(String, String)>,
}

/// What the last pass without error saw and decided.
#[derive(Clone, Debug)]
pub(super) struct Memo {
    pub(super) request_hash: [u8; 32],
    pub(super) children: Vec<MemoChild>,
    /// The stage that waits for those before it, if one does.
    pub(super) waiting: Option<u32>,
    /// Children that are no longer wanted, and stay until the last stage is applied.
    pub(super) unpruned: Vec<Key>,
    pub(super) status: Map<String, Value>,
    pub(super) conditions: Vec<GuestCondition>,
}

/// A child as the last pass left it.
#[derive(Clone, Debug)]
pub(super) struct MemoChild {
    pub(super) key: Key,
    uid: String,
    desired: Option<String>,
    /// The hash of our managed fields, which that pass judged to cover everything that was sent.
    entry_hash: [u8; 32],
    pub(super) stage: u32,
    pub(super) readiness: Option<Readiness>,
}

impl MemoChild {
    pub(super) fn of(key: Key, live: &Observed, stage: u32, readiness: Option<Readiness>) -> Self {
        Self {
            key,
            uid: live.uid.clone(),
            desired: live.desired.clone(),
            entry_hash: live.entry_hash,
            stage,
            readiness,
        }
    }

    pub(super) fn is_as_it_was(&self, live: Option<&Observed>) -> bool {
        live.is_some_and(|live| {
            live.uid == self.uid
                && live.desired == self.desired
                && live.entry_hash == self.entry_hash
                && !live.deleting
        })
    }
}

/// A refusal that stands until that child in that very form is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) refusal: Refusal,
    pub(super) form: DesiredHash,
    /// It may end by itself, so that the form is sent again in a later pass.
    pub(super) retry: bool,
    /// What is there cannot become this form.
    pub(super) immutable: bool,
    /// The object that it was met with.
    pub(super) met: Met,
}

/// What stood under a child's name: an object in one version, or nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Met(Option<(String, String)>);

impl Met {
    pub(super) fn of(live: Option<&Observed>) -> Self {
        Self(live.map(|live| (live.uid.clone(), live.resource_version.clone())))
    }
}

impl RootMemory {
    /// Whether the root is slowed, because it kept changing without getting anywhere.
    pub fn is_throttled(&self) -> bool {
        self.breaker.is_open()
    }

    /// Drops the refusals when the root's generation, the Reconciler or the module is no longer what they were met with, and
    /// everything when the root is another one of the same name. Returns whether any of these is so: somebody's edit is to be made
    /// true.
    pub(super) fn forget_unless(&mut self, binding: &Binding, root: &Value) -> bool {
        if self.holds_for.as_ref().is_some_and(|(uid, ..)| uid != object::uid(root)) {
            *self = Self::default();
        }
        let asked = object::text(root, &["metadata", "annotations", names::ANNOTATION_RECONCILE_AT]);
        if asked != self.asked.as_deref() {
            // Everything is to be looked at as if for the first time.
            *self = Self { warned: self.warned.take(), asked: asked.map(Into::into), ..Self::default() };
        }
        if self.holds_for.as_ref().is_some_and(|(_, generation, ..)| *generation != object::generation(root))
        {
            // Whoever edits a root expects it to be made true: what no watch shows is looked at again.
            self.read.clear();
        }
        let holds_for = Some((
            object::uid(root).to_owned(),
            object::generation(root),
            binding.generation,
            binding.digest.clone(),
        ));
        let edited = self.holds_for != holds_for;
        if edited {
            self.standing.clear();
            self.holds_for = holds_for;
        }
        edited
    }

    /// The refusals as the guest is told them.
    pub(super) fn refusals(&self) -> Vec<Refusal> {
        self.standing.iter().map(|standing| standing.refusal.clone()).collect()
    }

    /// What stands against a child in this form.
    pub(super) fn against(&self, child: &ObjectRef, form: &DesiredHash) -> Option<&Standing> {
        self.standing.iter().find(|standing| standing.refusal.child == *child && standing.form == *form)
    }

    pub(super) fn accept(&mut self, child: &ObjectRef, form: &DesiredHash) {
        self.standing.retain(|standing| standing.refusal.child != *child || standing.form != *form);
    }

    pub(super) fn refuse(&mut self, standing: Standing) {
        self.accept(&standing.refusal.child, &standing.form);
        self.standing.push(standing);
        self.standing.sort_by(|a, b| (&a.refusal.child, &a.form).cmp(&(&b.refusal.child, &b.form)));
    }

    /// The refusals of forms that the answer still has. One that the guest has worked around blocks nothing.
    pub(super) fn blocking(&self, answer: Option<&Allowed>) -> Vec<&Standing> {
        let wanted = answer.map_or(&[][..], Allowed::children);
        let is_wanted = |standing: &&Standing| {
            wanted.iter().any(|child| {
                *child.reference() == standing.refusal.child && *child.desired() == standing.form
            })
        };
        self.standing.iter().filter(is_wanted).collect()
    }
}
