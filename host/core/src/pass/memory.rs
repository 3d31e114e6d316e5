//! [`RootMemory`]: what a pass over a root keeps in memory for the next pass.

use std::{collections::BTreeSet, mem::size_of};

use jiff::Timestamp;
use pintle_wit::{GuestCondition, Need, ObjectRef, Readiness, names};
use serde_json::{Map, Value};

use super::{
    binding::Binding, breaker::Breaker, events::Tokens, evictions::Evicted, key::Key, needs::Settling,
    refusals::Refusals,
};
use crate::{
    desired::hash_parts,
    gate::Allowed,
    object,
    observed::{Kept, Names, Observed},
};

/// What one pass over a root keeps for the next pass. It is kept in memory only. A host that starts without it does more work, but
/// never other work. Every root has one for as long as the host runs, so long values are kept as a hash or as JSON bytes.
#[derive(Clone, Debug, Default)]
pub struct RootMemory {
    /// What the last pass without error saw and decided.
    pub(super) memo: Option<Memo>,
    /// The resourceVersion of the list that showed the root, once a live read has confirmed that the root was still the same.
    pub(super) is_as_listed: Option<String>,
    /// This host has written the root's status.
    pub(super) wrote_root: bool,
    /// The refusals that stand.
    pub(super) refusals: Refusals,
    /// The root, Reconciler and module for which the refusals hold.
    holds_for: Option<HoldsFor>,
    /// Children named in the status that were read live since the host started, or since the root was edited.
    pub(super) read: BTreeSet<ObjectRef>,
    /// Children of kinds that no cache shows, as they were last seen.
    unwatched: Vec<Kept>,
    /// The breaker, which slows a root that keeps changing.
    pub(super) breaker: Breaker,
    /// When the status was written last.
    pub(super) written: Option<Timestamp>,
    /// The value of `pintle.dev/reconcile-at` that was honoured last.
    asked: Option<Box<str>>,
    /// Reason and message of the last warning that was published and still holds. The root's CRD may have no status to read it from.
    pub(super) warned: Option<Box<(String, String)>>,
    /// A child was changed, or may have been, and the name of the module that did it could not be written to the status.
    pub(super) unreported: bool,
    /// What the guest last asked to see.
    pub(super) needs: Vec<Need>,
    /// What the guest was last shown for needs with a settling time.
    pub(super) settling: Vec<Settling>,
    /// The objects that the root patched, each with the hash of the patch's entry in managed fields at that time.
    pub(super) patched: Vec<(ObjectRef, [u8; 32])>,
    /// The state of the root's evictions.
    pub(super) evicted: Evicted,
    /// The token bucket for Events.
    pub(super) events: Tokens,
    /// How many entries of the status were already reported as ignored.
    pub(super) ignored: u32,
}

/// What refusals hold for: the root, its generation, and a hash of the Reconciler, its generation, and the module and config in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HoldsFor {
    root: Short,
    generation: Option<i64>,
    binding: Short,
}

/// Half of a SHA-256. Nobody who could choose the hashed values would gain by a collision.
pub(super) type Short = [u8; 16];

pub(super) fn short(parts: &[&[u8]]) -> Short {
    let hash = hash_parts(parts);
    let mut short = Short::default();
    short.iter_mut().zip(hash).for_each(|(to, from)| *to = from);
    short
}

/// What the last pass without an error saw and decided.
#[derive(Clone, Debug)]
pub(super) struct Memo {
    request_hash: [u8; 32],
    children: Box<[MemoChild]>,
    /// The first stage that waits for earlier stages, if one does.
    pub(super) waiting: Option<u32>,
    /// Children that are no longer wanted but stay until the last stage is applied.
    unpruned: Box<[Short]>,
    /// The guest's status fields and conditions, as JSON.
    guest_status: Box<[u8]>,
    /// Whether the guest asked for evictions.
    pub(super) evicts: bool,
}

/// A child as the last pass left it.
#[derive(Clone, Debug)]
struct MemoChild {
    key: Short,
    /// The hash of its uid, its desired hash, and the hash of our managed fields, which that pass judged to cover everything that
    /// was sent.
    state: Short,
    stage: u32,
    readiness: Option<Box<Readiness>>,
}

/// A child of an answer, as input for a memo.
pub(super) struct Wanted<'a> {
    pub(super) key: &'a Key,
    pub(super) live: &'a Observed,
    pub(super) stage: u32,
    pub(super) readiness: Option<&'a Readiness>,
}

impl Memo {
    /// The memo of a pass that ended without an error: the request, the children as they are now with the guest's rules for their
    /// readiness, and the guest's status fields and conditions. If a stage waits, `unpruned` are the children that stay until the last
    /// stage is applied.
    pub(super) fn of<'a>(
        request_hash: [u8; 32],
        children: impl Iterator<Item = Wanted<'a>>,
        waiting: Option<u32>,
        unpruned: impl Iterator<Item = &'a Key>,
        answer: &Allowed,
    ) -> Self {
        let child = |wanted: Wanted<'_>| MemoChild {
            key: key_hash(wanted.key),
            state: state_hash(wanted.live),
            stage: wanted.stage,
            readiness: wanted.readiness.cloned().map(Box::new),
        };
        // Plain data with string keys: writing it as JSON cannot fail.
        let guest_status = serde_json::to_vec(&(answer.status(), answer.conditions())).unwrap_or_default();
        Self {
            request_hash,
            children: children.map(child).collect(),
            waiting,
            unpruned: unpruned.map(key_hash).collect(),
            guest_status: guest_status.into(),
            evicts: answer.evictions().is_some(),
        }
    }

    /// Whether that pass had this request.
    pub(super) fn is_about(&self, request_hash: &[u8; 32]) -> bool {
        self.request_hash == *request_hash
    }

    /// Whether each child is as that pass left it, and none appeared or disappeared.
    pub(super) fn children_are_as_they_were<'a>(
        &self,
        live: impl Iterator<Item = (&'a Key, &'a Observed)>,
        is_owned: impl Fn(&Observed) -> bool,
    ) -> bool {
        let mut found = 0;
        for (key, live) in live {
            match self.child(key) {
                Some(child) if child.state == state_hash(live) && !live.deleting => found += 1,
                Some(_) => return false,
                None if is_owned(live) && !self.unpruned.contains(&key_hash(key)) => return false,
                None => {}
            }
        }
        found == self.children.len()
    }

    /// Whether that pass wanted this child.
    pub(super) fn wants(&self, key: &Key) -> bool {
        self.child(key).is_some()
    }

    /// The children that the pass wanted and that exist, with the guest's rules for their readiness, in the answer's order. If `before`
    /// is given, only those of earlier stages.
    pub(super) fn wanted<'a>(
        &'a self,
        before: Option<u32>,
        live: impl Iterator<Item = (&'a Key, &'a Observed)>,
    ) -> Vec<(&'a Observed, Option<&'a Readiness>)> {
        let live: Vec<(Short, &Observed)> = live.map(|(key, live)| (key_hash(key), live)).collect();
        let find = |child: &'a MemoChild| {
            let (_, live) = live.iter().find(|(key, _)| *key == child.key)?;
            Some((*live, child.readiness.as_deref()))
        };
        let is_before = |child: &&MemoChild| before.is_none_or(|stage| child.stage < stage);
        self.children.iter().filter(is_before).filter_map(find).collect()
    }

    /// The guest's status fields and conditions.
    pub(super) fn guest_status(&self) -> (Map<String, Value>, Vec<GuestCondition>) {
        serde_json::from_slice(&self.guest_status).unwrap_or_default()
    }

    fn child(&self, key: &Key) -> Option<&MemoChild> {
        let key = key_hash(key);
        self.children.iter().find(|child| child.key == key)
    }
}

pub(super) fn key_hash(key: &Key) -> Short {
    let namespace = key.namespace.as_deref().unwrap_or_default();
    short(&[key.group.as_bytes(), key.kind.as_bytes(), namespace.as_bytes(), key.name.as_bytes()])
}

fn state_hash(live: &Observed) -> Short {
    let desired = live.desired.as_deref().unwrap_or_default();
    short(&[live.uid.as_bytes(), desired.as_bytes(), &live.entry_hash])
}

impl RootMemory {
    /// Whether the root is slowed, because it kept changing without getting anywhere.
    pub fn is_throttled(&self) -> bool {
        self.breaker.is_open()
    }

    /// What the guest last asked to see.
    pub fn needs(&self) -> &[Need] {
        &self.needs
    }

    /// Whether there was a pass over this very root before.
    pub(super) fn had_a_pass(&self, root: &Value) -> bool {
        self.holds_for.is_some_and(|before| before.root == short(&[object::uid(root).as_bytes()]))
    }

    /// Drops the refusals if the root's generation, the Reconciler or the module has changed since, and drops everything if the root is
    /// another one of the same name. Returns whether anything of that has changed, so that this pass carries out somebody's edit.
    pub(super) fn forget_unless(&mut self, binding: &Binding, root: &Value) -> bool {
        let now = HoldsFor {
            root: short(&[object::uid(root).as_bytes()]),
            generation: object::generation(root),
            binding: short(&[
                binding.uid.as_bytes(),
                &binding.generation.to_le_bytes(),
                binding.digest.as_bytes(),
                binding.config.hash(),
            ]),
        };
        if self.holds_for.is_some_and(|before| before.root != now.root) {
            // The Events stay counted, or somebody who re-creates the root could cause Events without limit.
            *self = Self { events: self.events, ..Self::default() };
        }
        let asked = object::text(root, &["metadata", "annotations", names::ANNOTATION_RECONCILE_AT]);
        if asked != self.asked.as_deref() {
            // The user asked to look at everything as if for the first time.
            *self = Self {
                warned: self.warned.take(),
                asked: asked.map(Into::into),
                events: self.events,
                ..Self::default()
            };
        }
        if self.holds_for.is_some_and(|before| before.generation != now.generation) {
            // A user who edits a root expects a full reconcile, so objects that no watch shows are read again.
            self.read.clear();
        }
        let edited = self.holds_for != Some(now);
        if edited {
            self.refusals.clear();
            self.holds_for = Some(now);
        }
        edited
    }

    /// The children of kinds that are not watched, as the last pass left them.
    pub(super) fn take_unwatched(&mut self) -> Vec<Observed> {
        std::mem::take(&mut self.unwatched).iter().map(Kept::observed).collect()
    }

    pub(super) fn keep_unwatched(&mut self, children: Vec<Observed>) {
        let mut names = Names::default();
        self.unwatched = children.into_iter().map(|child| Kept::of(child, &mut names)).collect();
        self.unwatched.shrink_to_fit();
    }

    /// How much memory this takes, in bytes.
    pub fn bytes(&self) -> usize {
        let memo = self.memo.as_ref().map_or(0, |memo| {
            let rules = memo.children.iter().filter(|child| child.readiness.is_some()).count();
            memo.children.len() * size_of::<MemoChild>()
                + rules * size_of::<Readiness>()
                + memo.guest_status.len()
        });
        size_of::<Self>()
            + memo
            + self.refusals.bytes()
            + self.read.iter().map(|entry| size_of::<ObjectRef>() + entry.name.len()).sum::<usize>()
            + self.unwatched.iter().map(Kept::bytes).sum::<usize>()
            // A selector's labels and a field's path are about as long as two names.
            + self.needs.len() * (size_of::<Need>() + 64)
            + self.settling.iter().map(Settling::bytes).sum::<usize>()
            + self.patched.iter().map(|(entry, _)| size_of::<(ObjectRef, [u8; 32])>() + entry.name.len()).sum::<usize>()
            + self.evicted.bytes()
            + self.breaker.bytes()
            + self.warned.as_ref().map_or(0, |warned| size_of::<(String, String)>() + warned.1.len())
    }
}
