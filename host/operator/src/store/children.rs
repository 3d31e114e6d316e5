//! The cache of children: each as a small struct, found by its name and by the uid of its root.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    mem::size_of,
    sync::Arc,
};

use pintle_core::{Judged, Kept, Names, Observed, Uid};
use pintle_wit::{Kind, ObjectRef};

use super::{Head, ListMark, NameHash, Number, Table, name_hash, name_of};

/// Every child, by name and by the uid of its root.
#[derive(Debug, Default)]
pub(crate) struct Children {
    table: Table<Entry>,
    by_root: HashMap<Uid, Vec<Number>>,
    names: Names,
    /// How many children of a kind carry the label of a Reconciler.
    labelled: BTreeMap<(Arc<Kind>, Arc<str>), u32>,
    /// Counts the operator's own writes, to know which of them a list cannot have shown yet.
    writes: u64,
    lists: u32,
}

#[derive(Debug)]
struct Entry {
    child: Kept,
    written: u64,
    listed: u32,
}

/// The scope of a watch: one namespace, or all of them.
pub(crate) type Scope<'a> = Option<&'a str>;

impl Children {
    /// Whether a child is known in this version or a later one.
    pub(crate) fn knows(&self, kind: &Kind, head: &Head) -> bool {
        let known = self.table.find(&head.name_hash(kind));
        known.is_some_and(|(_, entry)| entry.child.is_as_new_as(&head.uid, head.version))
    }

    /// Takes in a child as a watch showed it; returns the uids of the roots that this concerns.
    pub(crate) fn saw(&mut self, child: Observed, list: Option<ListMark>) -> BTreeSet<Uid> {
        self.put(child, 0, list)
    }

    /// Takes in a child as the operator's own write or live read showed it.
    pub(crate) fn wrote(&mut self, child: Observed) {
        self.writes += 1;
        self.put(child, self.writes, None);
    }

    fn put(&mut self, mut child: Observed, written: u64, list: Option<ListMark>) -> BTreeSet<Uid> {
        let name = name_of(&child.reference);
        let (mut written, mut listed) = (written, list.map_or(0, |list| list.list));
        let mut concerned = BTreeSet::new();
        let mut is_news = true;
        if let Some(known) =
            self.table.by_name.get(&name).and_then(|number| self.table.rows.get_mut(*number as usize))
        {
            let before = known.child.observed();
            if before.uid == child.uid {
                known.listed = known.listed.max(listed);
            }
            // A list that began after this was known shows the present state, even if the API server was restored to an older one.
            let holds = list.is_some_and(|list| known.written <= list.writes);
            if !child.is_newer_than(&before) && !holds {
                return concerned;
            }
            child.inherit(&before);
            // A new version with the same content concerns no root.
            is_news = child.differs_from(&before);
            (written, listed) = (written.max(known.written), listed.max(known.listed));
            concerned.extend(known.child.roots());
            self.forget(&name);
        }
        let child = Kept::of(child, &mut self.names);
        concerned.extend(child.roots());
        let label = child.reconciler().map(|name| (Arc::clone(child.kind()), Arc::clone(name)));
        let roots: Vec<Uid> = child.roots().collect();
        let number = self.table.insert(name, Entry { child, written, listed });
        for uid in roots {
            self.by_root.entry(uid).or_default().push(number);
        }
        if let Some(label) = label {
            *self.labelled.entry(label).or_default() += 1;
        }
        if is_news { concerned } else { BTreeSet::new() }
    }

    fn forget(&mut self, name: &NameHash) -> Option<Kept> {
        let (number, Entry { child, .. }) = self.table.remove(name)?;
        for uid in child.roots() {
            if let Some(numbers) = self.by_root.get_mut(&uid) {
                numbers.retain(|other| *other != number);
                if numbers.is_empty() {
                    self.by_root.remove(&uid);
                }
            }
        }
        if let Some(label) = child.reconciler().map(|name| (Arc::clone(child.kind()), Arc::clone(name)))
            && let Some(count) = self.labelled.get_mut(&label)
        {
            *count -= 1;
            if *count == 0 {
                self.labelled.remove(&label);
            }
        }
        Some(child)
    }

    /// Forgets a child that was deleted or read as absent, unless a newer or another object has its name.
    pub(crate) fn gone(&mut self, reference: &ObjectRef, last: Option<&Observed>) -> BTreeSet<Uid> {
        let name = name_of(reference);
        let Some((_, known)) = self.table.find(&name) else { return BTreeSet::new() };
        if let Some(last) = last {
            let known = known.child.observed();
            if last.uid != known.uid || !last.is_newer_than(&known) {
                return BTreeSet::new();
            }
        }
        self.forget(&name).map(|child| child.roots().collect()).unwrap_or_default()
    }

    pub(crate) fn list_begins(&mut self) -> ListMark {
        self.lists += 1;
        ListMark { writes: self.writes, list: self.lists }
    }

    /// Forgets the children of a kind that a complete list did not show. Children that were written since the list began stay, and so do
    /// children without our label, which no list can show.
    pub(crate) fn list_ended(&mut self, kind: &Kind, scope: Scope<'_>, mark: ListMark) -> BTreeSet<Uid> {
        self.forget_where(|entry| {
            **entry.child.kind() == *kind
                && scope.is_none_or(|scope| entry.child.namespace() == Some(scope))
                && entry.listed != mark.list
                && entry.written <= mark.writes
                && entry.child.reconciler().is_some()
        })
    }

    /// Forgets the children without our label of a root that is gone, because no watch reports their deletion.
    pub(crate) fn root_gone(&mut self, uid: &Uid) {
        let numbers = self.by_root.get(uid).into_iter().flatten();
        let unlabelled: Vec<NameHash> = numbers
            .filter_map(|number| self.table.get(*number))
            .filter(|entry| entry.child.reconciler().is_none())
            .map(|entry| entry.name_hash())
            .collect();
        for name in unlabelled {
            self.forget(&name);
        }
    }

    /// The objects that a root controls, or that carry its label.
    pub(crate) fn of_root(&self, uid: &str) -> Vec<Observed> {
        let numbers = self.by_root.get(&Uid::new(uid)).into_iter().flatten();
        numbers.filter_map(|number| self.table.get(*number)).map(|entry| entry.child.observed()).collect()
    }

    /// Keeps the verdicts of a pass.
    pub(crate) fn judged(&mut self, verdicts: &[Judged]) {
        for verdict in verdicts {
            let number = self.table.by_name.get(&name_of(&verdict.reference)).copied();
            if let Some(entry) = number.and_then(|number| self.table.get_mut(number)) {
                entry.child.judged(&Uid::new(&verdict.uid), &verdict.desired, &verdict.entry_hash);
            }
        }
    }

    /// Whether any child of this kind is known that carries the label of a Reconciler.
    pub(crate) fn any_of(&self, kind: &Kind, reconciler: &str) -> bool {
        let mut labelled = self.labelled.keys();
        labelled.any(|(labelled, name)| **labelled == *kind && **name == *reconciler)
    }

    /// Forgets all children of a kind, or those in one namespace.
    pub(crate) fn remove_kind(&mut self, kind: &Kind, scope: Scope<'_>) {
        self.forget_where(|entry| {
            **entry.child.kind() == *kind && scope.is_none_or(|scope| entry.child.namespace() == Some(scope))
        });
    }

    fn forget_where(&mut self, is_gone: impl Fn(&Entry) -> bool) -> BTreeSet<Uid> {
        let gone: Vec<NameHash> = self
            .table
            .rows
            .iter()
            .filter(|(_, entry)| is_gone(entry))
            .map(|(_, entry)| entry.name_hash())
            .collect();
        let gone = gone.iter().filter_map(|name| self.forget(name));
        let concerned = gone.flat_map(|child| child.roots().collect::<Vec<Uid>>()).collect();
        self.names.forget_unused();
        concerned
    }

    /// How many children are kept, and how much memory they take, in bytes. Looks at each of them.
    pub(crate) fn size(&self) -> (usize, usize) {
        let rows = self.table.rows.iter();
        let heap: usize = rows.map(|(_, entry)| entry.child.bytes() - size_of::<Kept>()).sum();
        let numbers: usize =
            self.by_root.values().map(|numbers| numbers.capacity() * size_of::<Number>()).sum();
        let by_root = self.by_root.capacity() * (size_of::<(Uid, Vec<Number>)>() + 1) + numbers;
        (self.table.rows.len(), self.table.bytes() + by_root + heap)
    }
}

impl Entry {
    fn name_hash(&self) -> NameHash {
        name_hash(self.child.kind(), self.child.namespace(), self.child.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn child(name: &str, version: &str, uid: &str, root: &str) -> Observed {
        let live = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "n", "uid": uid,
            "labels": {"pintle.dev/reconciler": "m"}, "resourceVersion": version,
            "ownerReferences": [{"uid": root, "controller": true}]}});
        Observed::of(&live, "m", false)
    }

    fn drifted(child: Observed) -> Observed {
        Observed { entry_hash: [9; 32], ..child }
    }

    fn kind() -> Kind {
        Kind::new("v1", "ConfigMap")
    }

    fn uids<const N: usize>(uids: [&str; N]) -> BTreeSet<Uid> {
        uids.map(Uid::new).into()
    }

    fn names(children: &Children, root: &str) -> Vec<String> {
        children.of_root(root).into_iter().map(|child| child.reference.name).collect()
    }

    fn head(name: &str, version: &str, uid: &str) -> Head {
        let text = json!({"metadata": {"namespace": "n", "name": name, "uid": uid, "resourceVersion": version, "labels": {}}});
        Head::read(&serde_json::value::to_raw_value(&text).unwrap()).unwrap().0
    }

    #[test]
    fn what_an_own_write_showed_and_what_is_older_is_known() {
        let (mut children, kind) = (Children::default(), kind());
        children.wrote(child("a", "7", "u", "r"));
        children.wrote(child("odd", "x7", "u", "r"));
        assert!(children.knows(&kind, &head("a", "7", "u")) && children.knows(&kind, &head("a", "6", "u")));
        for other in [head("a", "8", "u"), head("a", "7", "v"), head("b", "7", "u")] {
            assert!(!children.knows(&kind, &other), "{other:?}");
        }
        assert!(!children.knows(&kind, &head("odd", "x7", "u")), "a version that cannot be compared");
        assert!(!children.knows(&Kind::new("v1", "Secret"), &head("a", "7", "u")));
    }

    #[test]
    fn what_a_watch_brings_late_does_not_undo_an_own_write() {
        let mut children = Children::default();
        children.wrote(child("a", "7", "u", "r"));
        assert!(children.saw(child("a", "5", "u", "r"), None).is_empty());
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
        children.saw(child("old", "1", "u1", "r"), None);
        children.saw(child("shown", "1", "u3", "r"), None);
        let mark = children.list_begins();
        children.saw(child("shown", "1", "u3", "r"), Some(mark));
        children.wrote(child("new", "9", "u2", "r"));
        assert_eq!(children.list_ended(&kind(), None, mark), uids(["r"]));
        let mut left = names(&children, "r");
        left.sort();
        assert_eq!(left, ["new", "shown"]);
    }

    #[test]
    fn a_list_of_one_namespace_says_nothing_of_the_others() {
        let mut children = Children::default();
        children.saw(child("a", "1", "u", "r"), None);
        let mark = children.list_begins();
        assert!(children.list_ended(&kind(), Some("other"), mark).is_empty());
        assert_eq!(children.list_ended(&kind(), Some("n"), mark), uids(["r"]));
    }

    #[test]
    fn a_deletion_while_disconnected_is_seen_in_the_next_list() {
        let mut children = Children::default();
        let first = children.list_begins();
        children.saw(child("a", "1", "u", "r"), Some(first));
        assert!(children.list_ended(&kind(), None, first).is_empty());
        let second = children.list_begins();
        assert_eq!(children.list_ended(&kind(), None, second), uids(["r"]));
        assert!(children.of_root("r").is_empty());
    }

    #[test]
    fn after_a_server_went_back_to_an_older_state_what_a_complete_list_shows_holds() {
        let mut children = Children::default();
        children.saw(child("a", "900", "u", "r"), None);
        let mark = children.list_begins();
        assert_eq!(children.saw(drifted(child("a", "500", "u", "r")), Some(mark)), uids(["r"]));
        assert_eq!(children.of_root("r")[0].resource_version, "500");
        assert_eq!(
            children.saw(child("a", "501", "u", "r"), None),
            uids(["r"]),
            "and the watch goes on from there"
        );

        children.wrote(child("a", "600", "u", "r"));
        let mark = ListMark { writes: mark.writes, ..children.list_begins() };
        assert!(children.saw(drifted(child("a", "550", "u", "r")), Some(mark)).is_empty());
        assert_eq!(children.of_root("r")[0].resource_version, "600", "it was written since the list began");
    }

    #[test]
    fn a_child_that_changes_its_owner_concerns_both_roots() {
        let mut children = Children::default();
        children.saw(child("a", "1", "u", "r1"), None);
        assert_eq!(children.saw(child("a", "2", "u", "r2"), None), uids(["r1", "r2"]));
        assert!(children.of_root("r1").is_empty());
        assert_eq!(children.of_root("r2").len(), 1);
    }

    #[test]
    fn a_child_that_lost_its_owner_still_concerns_the_root_that_its_label_names() {
        let mut children = Children::default();
        let live = |owners: Value| {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n", "uid": "u",
                "labels": {"pintle.dev/reconciler": "m", "pintle.dev/root": "r"}, "resourceVersion": "1", "ownerReferences": owners}})
        };
        children.saw(Observed::of(&live(json!([{"uid": "r", "controller": true}])), "m", false), None);
        assert_eq!(children.saw(Observed::of(&live(json!([])), "m", false), None), uids(["r"]));
        assert_eq!(names(&children, "r"), ["a"]);
    }

    #[test]
    fn a_child_without_our_label_is_kept_for_as_long_as_its_root_is() {
        let mut children = Children::default();
        children.wrote(Observed { reconciler_label: None, ..child("a", "1", "u", "r") });
        let mark = children.list_begins();
        assert!(children.list_ended(&kind(), None, mark).is_empty(), "no list can show it");
        assert_eq!(names(&children, "r"), ["a"]);
        children.root_gone(&Uid::new("r"));
        assert!(children.of_root("r").is_empty());
    }

    #[test]
    fn a_newer_version_of_the_same_concerns_nobody_and_keeps_the_verdict() {
        let mut children = Children::default();
        let live = |version: &str| {
            let mut live = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n", "uid": "u",
                "annotations": {"pintle.dev/desired": "v1:1"}, "ownerReferences": [{"uid": "r", "controller": true}],
                "managedFields": [{"manager": "m", "operation": "Apply", "fieldsV1": {"f:data": {}}}]}});
            live["metadata"]["resourceVersion"] = version.into();
            Observed::of(&live, "m", false)
        };
        let first = live("1");
        children.saw(first.clone(), None);
        children.judged(&[Judged {
            reference: first.reference.clone(),
            uid: "u".into(),
            desired: "v1:1".into(),
            entry_hash: first.entry_hash,
        }]);
        assert!(children.saw(live("2"), None).is_empty());
        let now = &children.of_root("r")[0];
        assert!(now.covered && now.entry.is_none());
        assert_eq!(now.resource_version, "2");
        assert!(!children.saw(drifted(live("3")), None).is_empty());
        assert!(!children.of_root("r")[0].covered);
    }

    #[test]
    fn whether_a_reconciler_has_children_of_a_kind_is_known_without_looking_at_each() {
        let mut children = Children::default();
        children.saw(child("a", "1", "u1", "r"), None);
        children.saw(child("b", "1", "u2", "r"), None);
        children.gone(&child("a", "1", "u1", "r").reference, None);
        assert!(children.any_of(&kind(), "m") && !children.any_of(&kind(), "other"));
        children.remove_kind(&kind(), None);
        assert!(!children.any_of(&kind(), "m"));
        assert!(children.by_root.is_empty() && children.table.by_name.is_empty());
    }
}
