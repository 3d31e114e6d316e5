//! The objects that a root's status names: children that no watch shows, and Pods that are being evicted.
//!
//! A user who may write the status may write anything there. So an entry says where to look, and proves nothing. An entry that cannot
//! name an object is ignored, because a name becomes a part of a path, and a kind becomes a request to the API server.

use std::collections::BTreeSet;

use pintle_wit::{Event, EventType, Kind, ObjectRef};
use serde::Deserialize;
use serde_json::Value;

use super::{
    ApiError, Pass, Step,
    answer::Answer,
    flow::{Awaited, Flow},
    key::Key,
};
use crate::{gate::AllowedChild, object, observed::Observed, reasons, reconciler};

/// The most entries of one list that count: a little more than twice the largest number of children that an answer may have (1000), for
/// an answer and the answer before it.
const RECORDED_MAX: usize = 2048;
/// The most kinds among these entries: twice what a manifest may declare.
const KINDS_MAX: usize = 2 * pintle_wit::manifest_limits::KINDS;
/// The longest uid, in bytes, as the gate has it.
const UID_BYTES_MAX: usize = 128;

/// The children that the root's status names because their kinds are not watched. Entries of other kinds are ignored.
pub(super) fn unwatched(root: &Value) -> Vec<ObjectRef> {
    let all = references(root).into_iter();
    all.filter(|entry| !reconciler::is_watchable(&entry.kind())).collect()
}

/// The uids of the Pods that the root's status names because they are being evicted.
pub(super) fn evicting(root: &Value) -> Vec<String> {
    let all = raw(root, "evicting").iter().take(RECORDED_MAX).filter_map(Value::as_str);
    all.filter(|uid| !uid.is_empty() && uid.len() <= UID_BYTES_MAX).map(Into::into).collect()
}

/// How many entries are ignored.
fn ignored(root: &Value) -> usize {
    let all = raw(root, "unwatched").len() + raw(root, "evicting").len();
    all - references(root).len() - evicting(root).len()
}

fn raw<'a>(root: &'a Value, list: &str) -> &'a [Value] {
    let entries = object::at(root, &["status", "pintle", list]).and_then(Value::as_array);
    entries.map_or(&[], Vec::as_slice)
}

/// The entries that can name a child, each in the root's namespace if the root has one.
fn references(root: &Value) -> Vec<ObjectRef> {
    let own = object::namespace(root);
    let mut kinds: BTreeSet<Kind> = BTreeSet::new();
    let entries = raw(root, "unwatched").iter().take(RECORDED_MAX);
    entries
        .filter_map(|entry| ObjectRef::deserialize(entry).ok())
        .map(|entry| ObjectRef { namespace: own.map(Into::into).or(entry.namespace), ..entry })
        .filter(object::is_reference)
        .filter(|entry| {
            let kind = entry.kind();
            kinds.contains(&kind) || kinds.len() < KINDS_MAX && kinds.insert(kind)
        })
        .collect()
}

/// What a pass has named in the status before the objects were written.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// Children of kinds that are not watched.
    pub(super) children: Vec<ObjectRef>,
    /// The status was written for that, so it must be written at the end whatever the root shows.
    pub(super) written: bool,
}

impl Pass {
    /// The children that the root's status names. If their kind is watched by now, the watch shows them.
    fn recorded_children(&self) -> Vec<ObjectRef> {
        unwatched(&self.root).into_iter().filter(|child| !self.binding.watches(child)).collect()
    }

    /// The recorded children that no pass has read since the host started, and that no watch shows.
    pub(super) fn unread(&self) -> Vec<ObjectRef> {
        let recorded = self.recorded_children().into_iter();
        recorded.filter(|entry| !self.memory.read.contains(entry)).collect()
    }

    /// Reads the recorded children that must be known before anything is written.
    pub(super) fn read_recorded(&mut self) -> Flow {
        match self.unread() {
            unread if unread.is_empty() => Flow::Done,
            unread => self.ask_for(Awaited::Recorded(unread.clone()), Step::Get(unread)),
        }
    }

    pub(super) fn recorded_read(
        &mut self,
        asked: Vec<ObjectRef>,
        found: Vec<Result<Option<Observed>, ApiError>>,
    ) -> Flow {
        for (reference, found) in asked.into_iter().zip(found) {
            match found {
                Ok(found) => self.saw(&reference, found),
                // If the API server no longer serves the kind, the object is gone too.
                Err(error) if error.is_kind_missing() => self.saw(&reference, None),
                Err(error) => return self.stop(error),
            }
        }
        Flow::Done
    }

    /// Children that are about to be created, that no watch shows, and that the status does not name yet.
    pub(super) fn unrecorded(&self, answer: &Answer, due: &[(usize, Option<String>)]) -> Vec<ObjectRef> {
        let recorded = self.recorded_children();
        due.iter()
            .filter(|(_, uid)| uid.is_none())
            .filter_map(|(index, _)| answer.allowed.children().get(*index))
            .map(AllowedChild::reference)
            .filter(|child| !self.binding.watches(child))
            .filter(|child| !recorded.contains(child) && !self.records.children.contains(child))
            .cloned()
            .collect()
    }

    /// The children that the status must name and that exist, may exist, or are about to be created.
    pub(super) fn children_to_record(&self) -> Vec<ObjectRef> {
        let wanted = self.answer.as_ref().map_or(&[][..], |answer| answer.allowed.children());
        let wanted =
            wanted.iter().map(|child| child.reference()).filter(|child| !self.binding.watches(child));
        let is_ours =
            |entry: &ObjectRef| self.live.get(&Key::from(entry)).is_some_and(|child| self.owns(child));
        // An entry is dropped once the object was read and does not exist, or belongs to somebody else.
        let recorded = self.recorded_children().into_iter();
        let recorded = recorded.filter(|entry| !self.memory.read.contains(entry) || is_ours(entry));
        let about_to_be = &self.records.children;
        let mut all: Vec<ObjectRef> =
            recorded.chain(wanted.cloned()).chain(about_to_be.iter().cloned()).collect();
        if self.answer.as_ref().is_some_and(Answer::is_complete) {
            // Every wanted child exists, so entries of an earlier answer in this pass that were never created can be dropped.
            all.retain(|entry| {
                is_ours(entry) || !self.memory.read.contains(entry) && !about_to_be.contains(entry)
            });
        }
        all.sort();
        all.dedup();
        all
    }

    /// Takes note of an object that was read live.
    pub(super) fn saw(&mut self, reference: &ObjectRef, found: Option<Observed>) {
        let key = Key::from(reference);
        self.memory.read.insert(reference.clone());
        match found {
            Some(child) => self.live.insert(key, child),
            None => self.live.remove(&key),
        };
    }

    /// Reports, once, that entries of the status are ignored.
    pub(super) fn ignored_event(&mut self) -> Option<Event> {
        let ignored = u32::try_from(ignored(&self.root)).unwrap_or(u32::MAX);
        let said = std::mem::replace(&mut self.memory.ignored, ignored);
        if ignored == 0 || ignored == said {
            return None;
        }
        self.hits.records += ignored;
        let message = format!(
            "{ignored} entries of status.pintle name no object, or are more than the {RECORDED_MAX} that count; they are passed \
             over: the host has not written them"
        );
        Some(Event { r#type: EventType::Warning, reason: reasons::STATUS_ENTRIES_IGNORED.into(), message })
    }
}
