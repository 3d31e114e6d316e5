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

    /// Takes in a child as the operator's own write or live read showed it. One without our label is not kept: no watch would show its
    /// end.
    pub(crate) fn wrote(&mut self, child: Observed) {
        if child.reconciler_label.is_none() {
            self.forget(&name_of(&child.reference));
            return;
        }
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

    /// Forgets the children of a kind that a complete list did not show. Children that were written since the list began stay.
    pub(crate) fn list_ended(&mut self, kind: &Kind, scope: Scope<'_>, mark: ListMark) -> BTreeSet<Uid> {
        self.forget_where(|entry| {
            **entry.child.kind() == *kind
                && scope.is_none_or(|scope| entry.child.namespace() == Some(scope))
                && entry.listed != mark.list
                && entry.written <= mark.writes
        })
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
mod tests;
