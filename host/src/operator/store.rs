//! What the operator knows of the cluster: roots and children, as the watches and its own writes showed them.
//!
//! The operator's own writes enter here at once, so that a pass never works on a view that is behind them; whatever a watch then
//! brings that is older is passed over. What is kept is small (kubernetes.md, section 17): a root as the bytes of its JSON, a child as
//! a struct, and the tables that lead to them hold numbers instead of names.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap},
    mem::size_of,
    sync::Arc,
};

use pintle_core::{Judged, Kept, Names, Observed, RootMemory, Uid, desired, object};
use pintle_wit::{Kind, ObjectRef};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use slab::Slab;

use crate::api::{Namespaces, RootCounts};

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

/// What names an object and its version: all that it takes to tell whether there is any news in it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Head {
    namespace: Option<String>,
    name: String,
    uid: Uid,
    version: u64,
}

impl Head {
    /// Reads the head of an object, and its resourceVersion as it stands there.
    pub(crate) fn read(text: &RawValue) -> serde_json::Result<(Self, Option<String>)> {
        #[derive(Deserialize)]
        struct Object<'a> {
            #[serde(borrow, default)]
            metadata: Option<Metadata<'a>>,
        }
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase", default)]
        struct Metadata<'a> {
            namespace: Option<String>,
            name: String,
            #[serde(borrow)]
            uid: Cow<'a, str>,
            resource_version: Option<String>,
        }
        let Object { metadata } = serde_json::from_str(text.get())?;
        let Metadata { namespace, name, uid, resource_version } = metadata.unwrap_or_default();
        let version = comparable(resource_version.as_deref());
        Ok((Self { namespace, name, uid: Uid::new(&uid), version }, resource_version))
    }

    pub(crate) fn name_hash(&self, kind: &Kind) -> NameHash {
        name_hash(kind, self.namespace.as_deref(), &self.name)
    }
}

impl std::fmt::Display for Head {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// The number of an object in its table. 32 bits: no API server holds as many objects.
type Number = u32;

/// An object's name in a table: half of the SHA-256 of what names it, so that a table needs no copy of that and nobody can make two
/// names meet.
pub(crate) type NameHash = [u8; 16];

fn name_hash(kind: &Kind, namespace: Option<&str>, name: &str) -> NameHash {
    let namespace = namespace.unwrap_or_default();
    let parts = [&kind.api_version, &kind.kind, namespace, name].map(str::as_bytes);
    let mut hash = NameHash::default();
    hash.iter_mut().zip(desired::hash_parts(&parts)).for_each(|(to, from)| *to = from);
    hash
}

/// Objects by number.
#[derive(Debug)]
struct Table<T> {
    rows: Slab<T>,
    by_name: HashMap<NameHash, Number>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { rows: Slab::new(), by_name: HashMap::new() }
    }
}

impl<T> Table<T> {
    fn find(&self, name: &NameHash) -> Option<(Number, &T)> {
        let number = *self.by_name.get(name)?;
        Some((number, self.get(number)?))
    }

    fn get(&self, number: Number) -> Option<&T> {
        self.rows.get(number as usize)
    }

    fn get_mut(&mut self, number: Number) -> Option<&mut T> {
        self.rows.get_mut(number as usize)
    }

    fn insert(&mut self, name: NameHash, row: T) -> Number {
        let number = self.rows.insert(row) as Number;
        self.by_name.insert(name, number);
        number
    }

    fn remove(&mut self, name: &NameHash) -> Option<(Number, T)> {
        let number = self.by_name.remove(name)?;
        Some((number, self.rows.try_remove(number as usize)?))
    }

    /// What the table itself takes, in bytes: its rows, and the way to them.
    fn bytes(&self) -> usize {
        self.rows.capacity() * size_of::<T>()
            + self.by_name.capacity() * (size_of::<(NameHash, Number)>() + 1)
    }
}

/// Where a list began: what the operator writes after it is not missing because the list does not show it, and what it knew before
/// is not newer than what the list shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListMark {
    /// The operator's own writes until then.
    writes: u64,
    /// Which list it is, for what it has shown.
    list: u32,
}

/// A root, what the last pass over it left, and how it ended.
#[derive(Debug)]
pub(crate) struct Root {
    kind: Arc<Kind>,
    namespace: Option<Arc<str>>,
    name: Box<str>,
    uid: Uid,
    version: u64,
    /// The JSON of the root, without what neither a guest nor a pass looks at.
    object: Box<[u8]>,
    pub(crate) memory: RootMemory,
    /// The kinds in `status.pintle.unwatched`.
    unwatched: Box<[Arc<str>]>,
    /// The last of the operator's writes that it shows.
    written: u64,
    /// The last list that showed it.
    listed: u32,
    ready: bool,
    failing: bool,
}

impl Root {
    /// The root, as a pass works with it.
    pub(crate) fn object(&self) -> Value {
        // It was written as JSON from a value.
        serde_json::from_slice(&self.object).unwrap_or_default()
    }

    pub(crate) fn is(&self, uid: &str) -> bool {
        self.uid == Uid::new(uid)
    }

    pub(crate) fn kind(&self) -> Arc<Kind> {
        Arc::clone(&self.kind)
    }

    pub(crate) fn key(&self) -> RootKey {
        RootKey { namespace: self.namespace.as_deref().map(Into::into), name: self.name.as_ref().into() }
    }

    fn name_hash(&self) -> NameHash {
        name_hash(&self.kind, self.namespace.as_deref(), &self.name)
    }

    /// The memory that it takes beside its row, in bytes.
    fn heap_bytes(&self) -> usize {
        self.name.len() + self.uid.heap_bytes() + self.object.len() + self.memory.bytes()
            - size_of::<RootMemory>()
            + self.unwatched.len() * size_of::<Arc<str>>()
    }
}

/// Whether a root says of itself that it is ready; a host that just started need not have looked.
fn is_ready(root: &Value) -> bool {
    let conditions = object::at(root, &["status", "conditions"]).and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| {
        object::text(condition, &["type"]) == Some(pintle_core::conditions::READY)
            && object::text(condition, &["status"]) == Some("True")
    })
}

/// The kinds of the children that a root's status names because they are not watched.
fn unwatched_kinds(root: &Value) -> BTreeSet<&str> {
    let recorded = object::at(root, &["status", "pintle", "unwatched"]).and_then(Value::as_array);
    recorded.into_iter().flatten().filter_map(|entry| object::text(entry, &["kind"])).collect()
}

/// Every root, by kind.
#[derive(Debug, Default)]
pub(crate) struct Roots {
    table: Table<Root>,
    by_uid: HashMap<Uid, Number>,
    names: Names,
    kinds: BTreeMap<Kind, OfKind>,
    writes: u64,
    lists: u32,
}

/// What is known of the roots of a kind as a whole, kept up to date with each of them.
#[derive(Debug, Default)]
struct OfKind {
    all: RootCounts,
    by_namespace: BTreeMap<Option<Arc<str>>, RootCounts>,
    /// How many roots name children of a kind that is not watched.
    unwatched: BTreeMap<Arc<str>, u32>,
    counts_changed: bool,
}

impl OfKind {
    fn count(&mut self, root: &Root, by: i32) {
        self.counts_changed = true;
        let in_namespace = self.by_namespace.entry(root.namespace.clone()).or_default();
        for counts in [&mut self.all, in_namespace] {
            let add = |count: &mut u32, is: bool| {
                if is {
                    *count = count.saturating_add_signed(by);
                }
            };
            add(&mut counts.total, true);
            add(&mut counts.ready, root.ready);
            add(&mut counts.failing, root.failing);
        }
        if in_namespace.total == 0 {
            self.by_namespace.remove(&root.namespace);
        }
        for kind in &root.unwatched {
            let count = self.unwatched.entry(Arc::clone(kind)).or_default();
            *count = count.saturating_add_signed(by);
            if *count == 0 {
                self.unwatched.remove(kind);
            }
        }
    }
}

impl Roots {
    /// Whether a root is known in this version or a later one.
    pub(crate) fn knows(&self, kind: &Kind, head: &Head) -> bool {
        let known = self.table.find(&head.name_hash(kind));
        known.is_some_and(|(_, root)| {
            root.uid == head.uid && root.version == head.version && head.version != 0
        })
    }

    /// Takes in a root as a watch showed it. False when something newer is known, or when it is the same.
    pub(crate) fn saw(&mut self, kind: &Kind, live: Value, list: Option<ListMark>) -> bool {
        self.put(kind, live, None, list)
    }

    /// Takes in a root as the operator's own write left it. False as with [`Roots::saw`].
    pub(crate) fn wrote(&mut self, kind: &Kind, live: Value) -> bool {
        self.writes += 1;
        self.put(kind, live, Some(self.writes), None)
    }

    fn put(&mut self, kind: &Kind, mut live: Value, written: Option<u64>, list: Option<ListMark>) -> bool {
        reduce(&mut live);
        let namespace = object::namespace(&live).map(|namespace| self.names.text(namespace));
        let name = name_hash(kind, namespace.as_deref(), object::name(&live));
        let uid = Uid::new(object::uid(&live));
        let version = version(&live);
        let known = self.table.by_name.get(&name).copied();
        let same = known.and_then(|number| self.table.get_mut(number)).filter(|root| root.uid == uid);
        if let Some(root) = same {
            if let Some(list) = list {
                root.listed = list.list;
            }
            // A list that began after this was known shows what holds, also where the API server went back to an older state.
            let holds = list.is_some_and(|list| root.written <= list.writes);
            if version == root.version || version < root.version && !holds {
                return false;
            }
        }
        let unwatched = unwatched_kinds(&live).into_iter().map(|kind| self.names.text(kind)).collect();
        let mut root = Root {
            kind: self.names.kind(kind.clone()),
            namespace,
            name: object::name(&live).into(),
            version,
            object: serde_json::to_vec(&live).unwrap_or_default().into(),
            memory: RootMemory::default(),
            unwatched,
            written: written.unwrap_or(0),
            listed: list.map_or(0, |list| list.list),
            ready: is_ready(&live),
            failing: false,
            uid,
        };
        drop(live);
        let of_kind = self.kinds.entry(kind.clone()).or_default();
        if let Some((number, known)) = known.and_then(|number| Some((number, self.table.get_mut(number)?))) {
            let same_counts = known.uid == root.uid && known.ready == root.ready;
            let changed = of_kind.counts_changed || !same_counts;
            of_kind.count(known, -1);
            if known.uid == root.uid {
                root.memory = std::mem::take(&mut known.memory);
                root.failing = known.failing;
                root.written = root.written.max(known.written);
                root.listed = root.listed.max(known.listed);
            } else {
                self.by_uid.remove(&known.uid);
                self.by_uid.insert(root.uid.clone(), number);
            }
            of_kind.count(&root, 1);
            of_kind.counts_changed = changed;
            *known = root;
        } else {
            of_kind.count(&root, 1);
            let uid = root.uid.clone();
            let number = self.table.insert(name, root);
            self.by_uid.insert(uid, number);
        }
        true
    }

    /// Forgets a root that was deleted, unless another has taken its name.
    pub(crate) fn remove(&mut self, kind: &Kind, live: &Value) {
        let name = name_hash(kind, object::namespace(live), object::name(live));
        let uid = Uid::new(object::uid(live));
        if self.table.find(&name).is_some_and(|(_, root)| root.uid == uid) {
            self.forget(&name);
        }
    }

    fn forget(&mut self, name: &NameHash) -> Option<Uid> {
        let (_, root) = self.table.remove(name)?;
        self.by_uid.remove(&root.uid);
        if let Some(of_kind) = self.kinds.get_mut(&*root.kind) {
            of_kind.count(&root, -1);
        }
        Some(root.uid)
    }

    pub(crate) fn list_begins(&mut self) -> ListMark {
        self.lists += 1;
        ListMark { writes: self.writes, list: self.lists }
    }

    /// Forgets every root of a kind that a complete list did not show; returns their uids.
    pub(crate) fn list_ended(&mut self, kind: &Kind, mark: ListMark) -> Vec<Uid> {
        self.forget_where(|root| {
            *root.kind == *kind && root.listed != mark.list && root.written <= mark.writes
        })
    }

    /// Forgets a whole kind.
    pub(crate) fn remove_kind(&mut self, kind: &Kind) {
        self.forget_where(|root| *root.kind == *kind);
        self.kinds.remove(kind);
    }

    fn forget_where(&mut self, is_gone: impl Fn(&Root) -> bool) -> Vec<Uid> {
        let gone: Vec<NameHash> = self
            .table
            .rows
            .iter()
            .filter(|(_, root)| is_gone(root))
            .map(|(_, root)| root.name_hash())
            .collect();
        let gone = gone.iter().filter_map(|name| self.forget(name)).collect();
        self.names.forget_unused();
        gone
    }

    /// Forgets what passes left, of every root.
    pub(crate) fn forget_memories(&mut self) {
        for (_, root) in &mut self.table.rows {
            root.memory = RootMemory::default();
        }
    }

    pub(crate) fn get_mut(&mut self, kind: &Kind, key: &RootKey) -> Option<&mut Root> {
        let name = name_hash(kind, key.namespace.as_deref(), &key.name);
        self.table.get_mut(*self.table.by_name.get(&name)?)
    }

    /// Keeps what a pass over a root left.
    pub(crate) fn remember(&mut self, kind: &Kind, key: &RootKey, memory: RootMemory, failing: bool) {
        let name = name_hash(kind, key.namespace.as_deref(), &key.name);
        let Some(root) =
            self.table.by_name.get(&name).and_then(|number| self.table.rows.get_mut(*number as usize))
        else {
            return;
        };
        root.memory = memory;
        if root.failing != failing
            && let Some(of_kind) = self.kinds.get_mut(kind)
        {
            of_kind.count(root, -1);
            root.failing = failing;
            of_kind.count(root, 1);
        }
    }

    pub(crate) fn of_kind<'a>(&'a self, kind: &'a Kind) -> impl Iterator<Item = &'a Root> {
        self.table.rows.iter().map(|(_, root)| root).filter(move |root| *root.kind == *kind)
    }

    pub(crate) fn by_uid(&self, uid: &Uid) -> Option<&Root> {
        self.table.get(*self.by_uid.get(uid)?)
    }

    /// How many roots of a kind there are in these namespaces. It costs nothing per root.
    pub(crate) fn counts(&self, kind: &Kind, namespaces: &Namespaces) -> RootCounts {
        let Some(of_kind) = self.kinds.get(kind) else { return RootCounts::default() };
        if *namespaces == Namespaces::All {
            return of_kind.all;
        }
        let counted = of_kind.by_namespace.iter().filter(|(name, _)| namespaces.includes(name.as_deref()));
        counted.fold(RootCounts::default(), |sum, (_, counts)| RootCounts {
            total: sum.total + counts.total,
            ready: sum.ready + counts.ready,
            failing: sum.failing + counts.failing,
        })
    }

    /// Whether the counts of a kind changed since this was last asked.
    pub(crate) fn take_counts_changed(&mut self, kind: &Kind) -> bool {
        self.kinds.get_mut(kind).is_some_and(|of_kind| std::mem::take(&mut of_kind.counts_changed))
    }

    /// Whether the status of any root of a kind names children of this kind, which is not watched.
    pub(crate) fn any_unwatched(&self, kind: &Kind, child_kind: &str) -> bool {
        self.kinds.get(kind).is_some_and(|of_kind| of_kind.unwatched.contains_key(child_kind))
    }

    /// How many roots are kept, and the memory that they take, in bytes. It looks at each of them.
    pub(crate) fn size(&self) -> (usize, usize) {
        let heap: usize = self.table.rows.iter().map(|(_, root)| root.heap_bytes()).sum();
        let by_uid = self.by_uid.capacity() * (size_of::<(Uid, Number)>() + 1);
        (self.table.rows.len(), self.table.bytes() + by_uid + heap)
    }
}

/// Leaves of a root's managed fields only the status entries, which say what the last status apply set.
fn reduce(root: &mut Value) {
    if let Some(entries) = root.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut) {
        entries.retain(|entry| {
            object::text(entry, &["subresource"]) == Some("status")
                && object::text(entry, &["operation"]) == Some("Apply")
        });
    }
}

/// The version of an object, as far as it can be compared (KEP 5504).
fn version(live: &Value) -> u64 {
    comparable(object::text(live, &["metadata", "resourceVersion"]))
}

/// A version as a number, or nought where it is none.
fn comparable(version: Option<&str>) -> u64 {
    version.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Every child, by name and by the uid of its root.
#[derive(Debug, Default)]
pub(crate) struct Children {
    table: Table<Entry>,
    by_root: HashMap<Uid, Vec<Number>>,
    names: Names,
    /// How many children of a kind carry the label of a Reconciler.
    labelled: BTreeMap<(Arc<Kind>, Arc<str>), u32>,
    /// Counts the operator's own writes, to tell those that a list cannot have shown yet.
    writes: u64,
    lists: u32,
}

#[derive(Debug)]
struct Entry {
    child: Kept,
    written: u64,
    listed: u32,
}

/// The part of the cluster that a watch shows: one namespace, or all of them.
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

    /// Takes in a child as the operator's own write or look left it.
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
            // A list that began after this was known shows what holds, also where the API server went back to an older state.
            let holds = list.is_some_and(|list| known.written <= list.writes);
            if !child.is_newer_than(&before) && !holds {
                return concerned;
            }
            child.inherit(&before);
            // Of another version of the same nobody need be told.
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

    /// Forgets the children of a kind that a complete list did not show, except those written since it began, and those without our
    /// label, which no list can show.
    pub(crate) fn list_ended(&mut self, kind: &Kind, scope: Scope<'_>, mark: ListMark) -> BTreeSet<Uid> {
        self.forget_where(|entry| {
            **entry.child.kind() == *kind
                && scope.is_none_or(|scope| entry.child.namespace() == Some(scope))
                && entry.listed != mark.list
                && entry.written <= mark.writes
                && entry.child.reconciler().is_some()
        })
    }

    /// Forgets what no watch will tell of, now that its root is gone: children that lost our label.
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

    /// The objects that a root controls, or that are labelled as its own.
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

    /// Whether any child of this kind is known that a reconciler keeps.
    pub(crate) fn any_of(&self, kind: &Kind, reconciler: &str) -> bool {
        let mut labelled = self.labelled.keys();
        labelled.any(|(labelled, name)| **labelled == *kind && **name == *reconciler)
    }

    /// Forgets a whole kind, or what is in one namespace of it.
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

    /// How many children are kept, and the memory that they take, in bytes. It looks at each of them.
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

/// The name of an object in a table.
pub(crate) fn name_of(child: &ObjectRef) -> NameHash {
    name_hash(&child.kind(), child.namespace.as_deref(), &child.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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

    fn shop() -> Kind {
        Kind::new("x/v1", "X")
    }

    fn root(name: &str, uid: &str, version: &str) -> Value {
        json!({"metadata": {"name": name, "namespace": "n", "uid": uid, "resourceVersion": version}})
    }

    #[test]
    fn a_root_of_the_same_name_is_another_root() {
        let mut roots = Roots::default();
        let kind = shop();
        assert!(roots.saw(&kind, root("a", "u1", "1"), None));
        assert!(!roots.saw(&kind, root("a", "u1", "1"), None), "nothing new");
        assert!(roots.saw(&kind, root("a", "u2", "5"), None));
        assert!(roots.by_uid(&Uid::new("u1")).is_none());
        roots.remove(&kind, &root("a", "u1", "4"));
        assert!(roots.by_uid(&Uid::new("u2")).is_some(), "the predecessor's deletion came late");
        let mark = roots.list_begins();
        assert_eq!(roots.list_ended(&kind, mark), [Uid::new("u2")]);
        assert_eq!(roots.of_kind(&kind).count(), 0);
    }

    #[test]
    fn a_root_keeps_its_memory_from_version_to_version_and_what_a_list_shows_holds() {
        let mut roots = Roots::default();
        let (kind, key) = (shop(), RootKey { namespace: Some("n".into()), name: "a".into() });
        roots.saw(&kind, root("a", "u", "900"), None);
        roots.remember(&kind, &key, RootMemory::default(), true);
        let mark = roots.list_begins();
        assert!(
            roots.saw(&kind, root("a", "u", "500"), Some(mark)),
            "the API server went back to an older state"
        );
        assert!(roots.list_ended(&kind, mark).is_empty());
        assert_eq!(roots.counts(&kind, &Namespaces::All).failing, 1);
        roots.wrote(&kind, root("a", "u", "700"));
        assert!(!roots.saw(&kind, root("a", "u", "600"), Some(mark)), "it was written since the list began");
        assert_eq!(roots.get_mut(&kind, &key).map(|root| root.object()), Some(root("a", "u", "700")));
    }

    #[test]
    fn counts_follow_each_root_and_change_only_with_them() {
        let mut roots = Roots::default();
        let kind = shop();
        let with = |name: &str, version: &str, ready: &str, unwatched: Value| {
            let mut root = root(name, name, version);
            root["status"] = json!({"conditions": [{"type": "Ready", "status": ready}], "pintle": {"unwatched": unwatched}});
            root
        };
        roots.saw(&kind, with("a", "1", "True", json!([{"kind": "Secret"}])), None);
        roots.saw(&kind, with("b", "1", "False", json!([])), None);
        assert!(roots.take_counts_changed(&kind) && !roots.take_counts_changed(&kind));
        assert_eq!(roots.counts(&kind, &Namespaces::All), RootCounts { total: 2, ready: 1, failing: 0 });
        assert_eq!(roots.counts(&kind, &Namespaces::Listed(vec!["other".into()])), RootCounts::default());
        assert!(roots.any_unwatched(&kind, "Secret"));

        roots.saw(&kind, with("a", "2", "True", json!([])), None);
        assert!(!roots.take_counts_changed(&kind), "another version of a ready root is one ready root");
        assert!(!roots.any_unwatched(&kind, "Secret"));
        roots.saw(&kind, with("b", "2", "True", json!([])), None);
        assert!(roots.take_counts_changed(&kind));
        assert_eq!(
            roots.counts(&kind, &Namespaces::Listed(vec!["n".into()])),
            RootCounts { total: 2, ready: 2, failing: 0 }
        );
        roots.remove(&kind, &root("a", "a", "3"));
        roots.remove(&kind, &root("b", "b", "3"));
        assert_eq!(roots.counts(&kind, &Namespaces::All), RootCounts::default());
        assert!(roots.kinds[&kind].by_namespace.is_empty());
    }
}
