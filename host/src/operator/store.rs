//! What the operator knows of the cluster: roots and children, as the watches and its own writes showed them.
//!
//! The operator's own writes enter here at once, so that a pass never works on a view that is behind them; whatever a watch then
//! brings that is older is passed over.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use pintle_core::{Observed, RootMemory, object};
use pintle_wit::{Kind, ObjectRef};
use serde_json::Value;

/// A root within its kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RootKey {
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
}

impl RootKey {
    pub(crate) fn of(root: &Value) -> Self {
        Self { namespace: object::namespace(root).map(Into::into), name: object::name(root).into() }
    }
}

impl std::fmt::Display for RootKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// A root, what the last pass over it left, and how it ended.
#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) object: Arc<Value>,
    pub(crate) memory: RootMemory,
    /// The last pass ended with an error.
    pub(crate) failing: bool,
}

impl Root {
    /// Whether the root says of itself that it is ready; a host that just started need not have looked.
    pub(crate) fn is_ready(&self) -> bool {
        let conditions = object::at(&self.object, &["status", "conditions"]).and_then(Value::as_array);
        conditions.into_iter().flatten().any(|condition| {
            object::text(condition, &["type"]) == Some(pintle_core::conditions::READY)
                && object::text(condition, &["status"]) == Some("True")
        })
    }
}

/// Every root, by kind.
#[derive(Debug, Default)]
pub(crate) struct Roots {
    kinds: BTreeMap<Kind, BTreeMap<RootKey, Root>>,
    by_uid: BTreeMap<String, (Kind, RootKey)>,
}

impl Roots {
    /// Takes in a root as it was seen or written. False when something newer is known, or when it is the same.
    pub(crate) fn put(&mut self, kind: &Kind, live: Value) -> bool {
        let (key, uid) = (RootKey::of(&live), object::uid(&live).to_owned());
        let roots = self.kinds.entry(kind.clone()).or_default();
        match roots.get_mut(&key) {
            Some(root) if object::uid(&root.object) == uid => {
                if version(&live) <= version(&root.object) {
                    return false;
                }
                root.object = Arc::new(live);
            }
            known => {
                if let Some(old) = known {
                    self.by_uid.remove(object::uid(&old.object));
                }
                let root = Root { object: Arc::new(live), memory: RootMemory::default(), failing: false };
                roots.insert(key.clone(), root);
                self.by_uid.insert(uid, (kind.clone(), key));
            }
        }
        true
    }

    /// Forgets a root that was deleted, unless another has taken its name.
    pub(crate) fn remove(&mut self, kind: &Kind, live: &Value) {
        self.remove_uid(kind, &RootKey::of(live), object::uid(live));
    }

    fn remove_uid(&mut self, kind: &Kind, key: &RootKey, uid: &str) {
        let Some(roots) = self.kinds.get_mut(kind) else { return };
        if roots.get(key).is_some_and(|root| object::uid(&root.object) == uid) {
            roots.remove(key);
            self.by_uid.remove(uid);
        }
    }

    /// Forgets every root of a kind that a complete list did not show.
    pub(crate) fn keep_only(&mut self, kind: &Kind, seen: &BTreeSet<String>) {
        let gone: Vec<(RootKey, String)> = self
            .of_kind(kind)
            .map(|(key, root)| (key.clone(), object::uid(&root.object).to_owned()))
            .filter(|(_, uid)| !seen.contains(uid))
            .collect();
        for (key, uid) in gone {
            self.remove_uid(kind, &key, &uid);
        }
    }

    /// Forgets a whole kind.
    pub(crate) fn remove_kind(&mut self, kind: &Kind) {
        for root in self.kinds.remove(kind).unwrap_or_default().into_values() {
            self.by_uid.remove(object::uid(&root.object));
        }
    }

    /// Forgets what passes left, of every root.
    pub(crate) fn forget_memories(&mut self) {
        for root in self.kinds.values_mut().flat_map(BTreeMap::values_mut) {
            root.memory = RootMemory::default();
        }
    }

    pub(crate) fn get_mut(&mut self, kind: &Kind, key: &RootKey) -> Option<&mut Root> {
        self.kinds.get_mut(kind)?.get_mut(key)
    }

    pub(crate) fn of_kind(&self, kind: &Kind) -> impl Iterator<Item = (&RootKey, &Root)> {
        self.kinds.get(kind).into_iter().flatten()
    }

    pub(crate) fn by_uid(&self, uid: &str) -> Option<&(Kind, RootKey)> {
        self.by_uid.get(uid)
    }
}

/// The version of an object, as far as it can be compared (KEP 5504).
fn version(live: &Value) -> u64 {
    object::text(live, &["metadata", "resourceVersion"]).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Every child, by name and by the uid of its root.
#[derive(Debug, Default)]
pub(crate) struct Children {
    by_name: BTreeMap<ObjectRef, Entry>,
    by_root: BTreeMap<String, BTreeSet<ObjectRef>>,
    /// Counts the operator's own writes, to tell those that a list cannot have shown yet.
    writes: u64,
}

#[derive(Debug)]
struct Entry {
    child: Observed,
    written: u64,
}

/// Where a list began: what the operator writes after it is not missing because the list does not show it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListMark(u64);

impl Children {
    /// Takes in a child as a watch showed it; returns the uids of the roots that this concerns.
    pub(crate) fn saw(&mut self, child: Observed) -> BTreeSet<String> {
        self.put(child, 0)
    }

    /// Takes in a child as the operator's own write left it.
    pub(crate) fn wrote(&mut self, child: Observed) {
        self.writes += 1;
        self.put(child, self.writes);
    }

    fn put(&mut self, child: Observed, written: u64) -> BTreeSet<String> {
        let mut concerned = roots_of(&child);
        if let Some(known) = self.by_name.get(&child.reference) {
            if known.child == child || !child.is_newer_than(&known.child) {
                return BTreeSet::new();
            }
            concerned.extend(roots_of(&known.child));
            self.unlink(&child.reference);
        }
        for uid in roots_of(&child) {
            self.by_root.entry(uid).or_default().insert(child.reference.clone());
        }
        self.by_name.insert(child.reference.clone(), Entry { child, written });
        concerned
    }

    /// Forgets a child that was deleted or read as absent, unless a newer or another object has its name.
    pub(crate) fn gone(&mut self, reference: &ObjectRef, last: Option<&Observed>) -> BTreeSet<String> {
        let Some(known) = self.by_name.get(reference) else { return BTreeSet::new() };
        if last.is_some_and(|last| last.uid != known.child.uid || !last.is_newer_than(&known.child)) {
            return BTreeSet::new();
        }
        let concerned = roots_of(&known.child);
        self.unlink(reference);
        self.by_name.remove(reference);
        concerned
    }

    pub(crate) fn list_begins(&self) -> ListMark {
        ListMark(self.writes)
    }

    /// Forgets the children of a kind whose uids a complete list did not show, except those written since it began.
    pub(crate) fn list_ended(
        &mut self,
        kind: &Kind,
        mark: ListMark,
        seen: &BTreeSet<String>,
    ) -> BTreeSet<String> {
        let gone: Vec<ObjectRef> = self
            .of_kind(kind)
            .filter(|(_, entry)| !seen.contains(&entry.child.uid) && entry.written <= mark.0)
            .map(|(reference, _)| reference.clone())
            .collect();
        gone.iter().flat_map(|reference| self.gone(reference, None)).collect()
    }

    /// The objects that a root controls, or that are labelled as its own.
    pub(crate) fn of_root(&self, uid: &str) -> Vec<Observed> {
        let references = self.by_root.get(uid).into_iter().flatten();
        references
            .filter_map(|reference| self.by_name.get(reference))
            .map(|entry| entry.child.clone())
            .collect()
    }

    /// Whether any child of this kind is known that a reconciler keeps.
    pub(crate) fn any_of(&self, kind: &Kind, reconciler: &str) -> bool {
        self.of_kind(kind).any(|(_, entry)| entry.child.reconciler_label.as_deref() == Some(reconciler))
    }

    /// Forgets a whole kind.
    pub(crate) fn remove_kind(&mut self, kind: &Kind) {
        let all: Vec<ObjectRef> = self.of_kind(kind).map(|(reference, _)| reference.clone()).collect();
        for reference in all {
            self.gone(&reference, None);
        }
    }

    fn of_kind<'a>(&'a self, kind: &Kind) -> impl Iterator<Item = (&'a ObjectRef, &'a Entry)> + use<'a> {
        let kind = kind.clone();
        let first = ObjectRef {
            api_version: kind.api_version.clone(),
            kind: kind.kind.clone(),
            ..ObjectRef::default()
        };
        self.by_name.range(first..).take_while(move |(reference, _)| {
            reference.api_version == kind.api_version && reference.kind == kind.kind
        })
    }

    fn unlink(&mut self, reference: &ObjectRef) {
        let Some(known) = self.by_name.get(reference) else { return };
        for uid in roots_of(&known.child) {
            if let Some(references) = self.by_root.get_mut(&uid) {
                references.remove(reference);
                if references.is_empty() {
                    self.by_root.remove(&uid);
                }
            }
        }
    }
}

fn roots_of(child: &Observed) -> BTreeSet<String> {
    child.controller.iter().chain(&child.root_label).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn child(name: &str, version: &str, uid: &str, root: &str) -> Observed {
        let live = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "n", "uid": uid,
            "resourceVersion": version, "ownerReferences": [{"uid": root, "controller": true}]}});
        Observed::of(&live, "m", false)
    }

    fn kind() -> Kind {
        Kind::new("v1", "ConfigMap")
    }

    #[test]
    fn what_a_watch_brings_late_does_not_undo_an_own_write() {
        let mut children = Children::default();
        children.wrote(child("a", "7", "u", "r"));
        assert!(children.saw(child("a", "5", "u", "r")).is_empty());
        assert!(
            children.gone(&child("a", "5", "u", "r").reference, Some(&child("a", "5", "u", "r"))).is_empty()
        );
        assert_eq!(children.of_root("r")[0].resource_version, "7");
    }

    #[test]
    fn the_deletion_of_a_predecessor_leaves_the_successor() {
        let mut children = Children::default();
        children.wrote(child("a", "7", "new", "r"));
        let old = child("a", "8", "old", "r");
        assert!(children.gone(&old.reference, Some(&old)).is_empty());
        assert_eq!(children.of_root("r").len(), 1);
    }

    #[test]
    fn a_list_forgets_what_it_does_not_show_but_not_what_was_written_since() {
        let mut children = Children::default();
        children.saw(child("old", "1", "u1", "r"));
        let mark = children.list_begins();
        children.wrote(child("new", "9", "u2", "r"));
        assert_eq!(children.list_ended(&kind(), mark, &BTreeSet::new()), BTreeSet::from(["r".to_owned()]));
        let names: Vec<String> =
            children.of_root("r").into_iter().map(|child| child.reference.name).collect();
        assert_eq!(names, ["new"]);
    }

    #[test]
    fn a_child_that_changes_its_owner_concerns_both_roots() {
        let mut children = Children::default();
        children.saw(child("a", "1", "u", "r1"));
        assert_eq!(
            children.saw(child("a", "2", "u", "r2")),
            BTreeSet::from(["r1".to_owned(), "r2".to_owned()])
        );
        assert!(children.of_root("r1").is_empty());
        assert_eq!(children.of_root("r2").len(), 1);
    }

    #[test]
    fn a_root_of_the_same_name_is_another_root() {
        let root = |uid: &str, version: &str| json!({"metadata": {"name": "a", "uid": uid, "resourceVersion": version}});
        let mut roots = Roots::default();
        let kind = Kind::new("x/v1", "X");
        assert!(roots.put(&kind, root("u1", "1")));
        assert!(!roots.put(&kind, root("u1", "1")), "nothing new");
        assert!(roots.put(&kind, root("u2", "5")));
        assert!(roots.by_uid("u1").is_none());
        roots.remove(&kind, &root("u1", "4"));
        assert!(roots.by_uid("u2").is_some(), "the predecessor's deletion came late");
        roots.keep_only(&kind, &BTreeSet::new());
        assert_eq!(roots.of_kind(&kind).count(), 0);
    }
}
