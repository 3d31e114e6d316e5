//! The objects that a root's status names: children that no watch shows, patches that must be removed, Pods that are being evicted.
//!
//! A user who may write the status may write anything there. So an entry says where to look, and proves nothing. An entry that cannot
//! name an object is ignored, because a name becomes a part of a path, and a kind becomes a request to the API server.

use std::collections::BTreeSet;

use pintle_wit::{Event, EventType, Kind, ObjectRef, UnwatchedChild};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Pass;
use crate::{object, reasons, reconciler};

/// The most entries of one list that count: a little more than twice the largest number of children that an answer may have (1000), for
/// an answer and the answer before it.
pub const RECORDED_MAX: usize = 2048;
/// The most kinds among these entries: twice what a manifest may declare.
const KINDS_MAX: usize = 2 * pintle_wit::manifest_limits::KINDS;
/// The longest uid, in bytes, as the gate has it.
const UID_BYTES_MAX: usize = 128;

/// Children in the root's namespace that its status names because their kinds are not watched. Entries of other kinds are ignored.
pub(super) fn unwatched(root: &Value) -> Vec<ObjectRef> {
    let all = references(root, "unwatched", |entry: UnwatchedChild| ObjectRef {
        api_version: entry.api_version,
        kind: entry.kind,
        namespace: object::namespace(root).map(Into::into),
        name: entry.name,
    });
    all.into_iter().filter(|entry| !reconciler::is_watchable(&entry.kind())).collect()
}

/// Children that the root's status names because they are in other namespaces or of cluster scope.
pub(super) fn inventory(root: &Value) -> Vec<ObjectRef> {
    let namespace = object::namespace(root);
    let all = references(root, "inventory", |entry: ObjectRef| entry).into_iter();
    all.filter(|entry| namespace.is_none() || entry.namespace.as_deref() != namespace).collect()
}

/// The objects that the root's status names because they carry a patch that must be removed.
pub(super) fn patched(root: &Value) -> Vec<ObjectRef> {
    let namespace = object::namespace(root);
    let all = references(root, "patched", |entry: ObjectRef| entry).into_iter();
    all.filter(|entry| namespace.is_none() || entry.namespace.as_deref() == namespace).collect()
}

/// The uids of the Pods that the root's status names because they are being evicted.
pub(super) fn evicting(root: &Value) -> Vec<String> {
    let all = raw(root, "evicting").iter().take(RECORDED_MAX).filter_map(Value::as_str);
    all.filter(|uid| !uid.is_empty() && uid.len() <= UID_BYTES_MAX).map(Into::into).collect()
}

/// How many entries are ignored.
fn ignored(root: &Value) -> usize {
    let known = |list: &str| match list {
        "unwatched" => references(root, list, |entry: UnwatchedChild| ObjectRef {
            api_version: entry.api_version,
            kind: entry.kind,
            namespace: None,
            name: entry.name,
        })
        .len(),
        "evicting" => evicting(root).len(),
        _ => references(root, list, |entry: ObjectRef| entry).len(),
    };
    let lists = ["unwatched", "inventory", "patched", "evicting"].into_iter();
    lists
        .map(|list| (list, raw(root, list).len()))
        .filter(|(_, all)| *all > 0)
        .map(|(list, all)| all - known(list).min(all))
        .sum()
}

fn raw<'a>(root: &'a Value, list: &str) -> &'a [Value] {
    let entries = object::at(root, &["status", "pintle", list]).and_then(Value::as_array);
    entries.map_or(&[], Vec::as_slice)
}

fn references<T: DeserializeOwned>(
    root: &Value,
    list: &str,
    reference: impl Fn(T) -> ObjectRef,
) -> Vec<ObjectRef> {
    let mut kinds: BTreeSet<Kind> = BTreeSet::new();
    let entries = raw(root, list).iter().take(RECORDED_MAX);
    let entries = entries.filter_map(|entry| T::deserialize(entry).ok()).map(reference);
    entries
        .filter(object::is_reference)
        .filter(|entry| {
            let kind = entry.kind();
            kinds.contains(&kind) || kinds.len() < KINDS_MAX && kinds.insert(kind)
        })
        .collect()
}

impl Pass {
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
