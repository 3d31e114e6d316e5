//! The cache of roots: each as the bytes of its JSON, with the memory of the last pass over it.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    mem::size_of,
    sync::Arc,
};

use pintle_api::Namespaces;
use pintle_core::{Names, RootMemory, Uid, object, reasons};
use pintle_wit::{Failure, Kind, manifest_limits, names};
use serde_json::Value;

use super::{
    Head, ListMark, NameHash, Number, RootKey, Table, comparable,
    failing::{Cause, Failures, NAMED},
    name_hash,
    tally::{SinceSwap, Tally},
};

/// How much of the roots is kept, in bytes of their JSON.
#[derive(Clone, Copy, Debug)]
pub struct RootLimits {
    /// Of one root.
    pub each: u64,
    /// Of all roots together.
    pub all: u64,
}

impl Default for RootLimits {
    /// What a host with the memory limit of `deploy/` has.
    fn default() -> Self {
        Self { each: 1 << 20, all: 128 << 20 }
    }
}

impl RootLimits {
    /// Why a root of so many bytes is not kept beside so many of others, if it is not. It does not say how large the root is: the status
    /// that says so makes the root larger, and would have to be written again.
    fn refusal(&self, bytes: usize, others: usize) -> Option<Failure> {
        let (bytes, others) = (bytes as u64, others as u64);
        if bytes > self.each {
            let message = format!(
                "it has more than {} KiB as JSON, the most that this host reconciles (--max-root-size)",
                self.each >> 10
            );
            return Some(Failure::terminal(reasons::ROOT_TOO_LARGE, message));
        }
        (bytes + others > self.all).then(|| {
            let message = format!(
                "there is no room for it: this host keeps at most {} KiB of all roots together (--max-roots-size)",
                self.all >> 10
            );
            Failure::transient(reasons::ROOT_TOO_LARGE, message)
        })
    }
}

/// A root of which only its names are kept.
#[derive(Debug)]
pub(crate) struct Unkept {
    /// Why, unless there is room for it by now.
    pub(crate) refusal: Option<Failure>,
    /// It has been read to say so since it changed.
    pub(crate) told: bool,
}

/// A root, the memory of the last pass over it, and how that pass ended.
#[derive(Debug)]
pub(crate) struct Root {
    kind: Arc<Kind>,
    namespace: Option<Arc<str>>,
    name: Box<str>,
    uid: Uid,
    version: u64,
    /// The JSON of the root, without the parts that neither a guest nor a pass needs; nothing where that is too large.
    object: Box<[u8]>,
    /// How long its JSON is, kept or not.
    bytes: usize,
    /// It is not kept, and has been read to say so.
    pub(crate) told: bool,
    pub(crate) memory: RootMemory,
    /// The kinds in `status.pintle.unwatched`.
    unwatched: Box<[Arc<str>]>,
    /// The last of the operator's own writes that it shows.
    written: u64,
    /// The last list that showed it.
    listed: u32,
    pub(super) ready: bool,
    /// It has a finalizer of ours.
    held: bool,
    /// Its status does not say that nobody reconciles it, and it is to stay.
    untold: bool,
    /// Why its last pass failed, if it did.
    pub(super) failing: Option<Box<Cause>>,
    pub(super) since_swap: SinceSwap,
    /// It is unknown whether it fails: a list showed it, and no pass has ended since.
    unjudged: bool,
    /// Only a list has shown it.
    listed_alone: bool,
}

impl Root {
    /// The root, as a pass works with it.
    pub(crate) fn object(&self) -> Value {
        // The bytes were written as JSON from a value.
        serde_json::from_slice(&self.object).unwrap_or_default()
    }

    /// Whether more than its names is kept.
    pub(crate) fn is_kept(&self) -> bool {
        !self.object.is_empty()
    }

    /// The resourceVersion in which a list showed it, if nothing has shown it since.
    pub(crate) fn listed_at(&self) -> Option<String> {
        self.listed_alone.then(|| self.version.to_string())
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

    /// How much memory it takes besides its row, in bytes.
    fn heap_bytes(&self) -> usize {
        self.name.len() + self.uid.heap_bytes() + self.object.len() + self.memory.bytes()
            - size_of::<RootMemory>()
            + self.unwatched.len() * size_of::<Arc<str>>()
            + self.failing.as_ref().map_or(0, |cause| cause.heap_bytes())
    }
}

/// Whether a root is ready according to its own status; a host that has just started may not have reconciled it yet.
fn is_ready(root: &Value) -> bool {
    ready(root).is_some_and(|ready| object::text(ready, &["status"]) == Some("True"))
}

/// Whether its status says that nobody reconciles it any more.
fn is_left(root: &Value) -> bool {
    ready(root).is_some_and(|ready| object::text(ready, &["reason"]) == Some(reasons::NOT_RECONCILED))
}

fn ready(root: &Value) -> Option<&Value> {
    let mut conditions = object::at(root, &["status", "conditions"])?.as_array()?.iter();
    conditions.find(|condition| object::text(condition, &["type"]) == Some(pintle_core::conditions::READY))
}

/// The longest name of a kind, in bytes.
const KIND_BYTES_MAX: usize = 63;

/// The kinds of children that a root's status names because these kinds are not watched: no more than a manifest has, and none that is too
/// long, since whoever may write the status may write anything there.
fn unwatched_kinds(root: &Value) -> Vec<&str> {
    let recorded = object::at(root, &["status", "pintle", "unwatched"]).and_then(Value::as_array);
    let kinds = recorded.into_iter().flatten().filter_map(|entry| object::text(entry, &["kind"]));
    let kinds: BTreeSet<&str> = kinds.filter(|kind| kind.len() <= KIND_BYTES_MAX).collect();
    kinds.into_iter().take(manifest_limits::KINDS).collect()
}

/// Every root, by kind.
#[derive(Debug, Default)]
pub(crate) struct Roots {
    limits: RootLimits,
    /// How many bytes of JSON are kept.
    kept_bytes: usize,
    table: Table<Root>,
    by_uid: HashMap<Uid, Number>,
    names: Names,
    /// The kinds whose counts changed since somebody asked.
    changed: BTreeSet<Arc<Kind>>,
    writes: u64,
    lists: u32,
}

/// How a pass over a root ended.
#[derive(Debug, Default)]
pub(crate) struct PassEnd {
    /// Why it failed, if it did.
    pub(crate) failing: Option<Cause>,
    /// Whether the module and config that it ran on are still in force.
    pub(crate) in_force: bool,
    /// Whether it changed children or patches.
    pub(crate) wrote: bool,
}

impl Roots {
    pub(crate) fn within(limits: RootLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// What is to be known of a root that is not kept; nothing for one that is.
    pub(crate) fn unkept(&self, kind: &Kind, key: &RootKey) -> Option<Unkept> {
        let (_, root) = self.table.find(&name_hash(kind, key.namespace.as_deref(), &key.name))?;
        let refusal = || self.limits.refusal(root.bytes, self.kept_bytes);
        (!root.is_kept()).then(|| Unkept { refusal: refusal(), told: root.told })
    }

    /// Whether a root is known in this version or a later one.
    pub(crate) fn knows(&self, kind: &Kind, head: &Head) -> bool {
        let known = self.table.find(&head.name_hash(kind));
        known.is_some_and(|(_, root)| {
            root.uid == head.uid && root.version == head.version && head.version != 0
        })
    }

    /// Takes in a root as a watch showed it. Returns false if a newer one is known, or if it is the same.
    pub(crate) fn saw(&mut self, kind: &Kind, live: Value, list: Option<ListMark>) -> bool {
        self.put(kind, live, None, list)
    }

    /// Takes in a root as the operator's own write left it. Returns false in the same cases as [`Roots::saw`].
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
        let mut is_same = false;
        if let Some(root) = same {
            if let Some(list) = list {
                root.listed = list.list;
            }
            // A list that began after this was known shows the present state, even if the API server was restored to an older one.
            let holds = list.is_some_and(|list| root.written <= list.writes);
            is_same = version == root.version;
            if is_same && root.is_kept() || !is_same && version < root.version && !holds {
                return false;
            }
        }
        let json = serde_json::to_vec(&live).unwrap_or_default();
        let before = known.and_then(|number| self.table.get(number)).map_or(0, |root| root.object.len());
        let others = self.kept_bytes - before;
        let is_kept = self.limits.refusal(json.len(), others).is_none();
        if is_same && !is_kept {
            return false;
        }
        let unwatched = unwatched_kinds(&live).into_iter().map(|kind| self.names.text(kind)).collect();
        let mut root = Root {
            kind: self.names.kind(kind.clone()),
            namespace,
            name: object::name(&live).into(),
            version,
            bytes: json.len(),
            object: if is_kept { json.into() } else { Box::default() },
            told: false,
            memory: RootMemory::default(),
            unwatched,
            written: written.unwrap_or(0),
            listed: list.map_or(0, |list| list.list),
            ready: is_ready(&live),
            held: object::has_finalizer(&live, &[names::FINALIZER_GUEST]),
            untold: !object::is_deleting(&live) && !is_left(&live),
            failing: None,
            since_swap: SinceSwap::default(),
            unjudged: list.is_some(),
            listed_alone: list.is_some(),
            uid,
        };
        drop(live);
        self.kept_bytes = others + root.object.len();
        let kind = Arc::clone(&root.kind);
        if let Some((number, known)) = known.and_then(|number| Some((number, self.table.get_mut(number)?))) {
            let is_counted = known.uid == root.uid
                && (known.ready, known.held, known.untold) == (root.ready, root.held, root.untold);
            if known.uid == root.uid {
                root.memory = std::mem::take(&mut known.memory);
                root.failing.clone_from(&known.failing);
                root.since_swap = known.since_swap;
                root.unjudged = known.unjudged;
                root.written = root.written.max(known.written);
                root.listed = root.listed.max(known.listed);
            } else {
                self.by_uid.remove(&known.uid);
                self.by_uid.insert(root.uid.clone(), number);
            }
            *known = root;
            if is_counted {
                return true;
            }
        } else {
            let uid = root.uid.clone();
            let number = self.table.insert(name, root);
            self.by_uid.insert(uid, number);
        }
        self.changed.insert(kind);
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

    fn forget(&mut self, name: &NameHash) {
        let Some((_, root)) = self.table.remove(name) else { return };
        self.kept_bytes -= root.object.len();
        self.by_uid.remove(&root.uid);
        self.changed.insert(root.kind);
    }

    pub(crate) fn list_begins(&mut self) -> ListMark {
        self.lists += 1;
        ListMark { writes: self.writes, list: self.lists }
    }

    /// Forgets every root of a kind that a complete list did not show.
    pub(crate) fn list_ended(&mut self, kind: &Kind, mark: ListMark) {
        self.forget_where(|root| {
            *root.kind == *kind && root.listed != mark.list && root.written <= mark.writes
        });
    }

    /// Forgets a whole kind.
    pub(crate) fn remove_kind(&mut self, kind: &Kind) {
        self.forget_where(|root| *root.kind == *kind);
        self.changed.remove(kind);
    }

    fn forget_where(&mut self, is_gone: impl Fn(&Root) -> bool) {
        let gone: Vec<NameHash> = self
            .table
            .rows
            .iter()
            .filter(|(_, root)| is_gone(root))
            .map(|(_, root)| root.name_hash())
            .collect();
        gone.iter().for_each(|name| self.forget(name));
        self.names.forget_unused();
    }

    /// Forgets the memory of passes, for every root, and what this host made of the swap before.
    pub(crate) fn forget_memories(&mut self) {
        for (_, root) in &mut self.table.rows {
            root.memory = RootMemory::default();
            root.told = false;
            root.since_swap = SinceSwap::default();
            self.changed.insert(Arc::clone(&root.kind));
        }
    }

    /// Another module or config comes into force for the roots of a kind.
    pub(crate) fn swapped(&mut self, kind: &Kind) {
        for (_, root) in self.table.rows.iter_mut().filter(|(_, root)| *root.kind == *kind) {
            // Of what no pass has judged yet, the status says how it was.
            // What the swap before broke was well: another that does not mend it is bad, too.
            let was_well = if root.unjudged {
                root.ready
            } else {
                root.failing.is_none() || root.since_swap.is_regression()
            };
            root.since_swap = SinceSwap::begin(was_well);
            self.changed.insert(Arc::clone(&root.kind));
        }
    }

    pub(crate) fn has(&self, kind: &Kind, key: &RootKey) -> bool {
        self.table.by_name.contains_key(&name_hash(kind, key.namespace.as_deref(), &key.name))
    }

    pub(crate) fn get_mut(&mut self, kind: &Kind, key: &RootKey) -> Option<&mut Root> {
        let name = name_hash(kind, key.namespace.as_deref(), &key.name);
        self.table.get_mut(*self.table.by_name.get(&name)?)
    }

    /// Keeps the memory of a pass over a root, and how the pass ended.
    pub(crate) fn remember(&mut self, kind: &Kind, key: &RootKey, memory: RootMemory, ended: PassEnd) {
        let name = name_hash(kind, key.namespace.as_deref(), &key.name);
        let Some(root) =
            self.table.by_name.get(&name).and_then(|number| self.table.rows.get_mut(*number as usize))
        else {
            return;
        };
        root.memory = memory;
        // What failed otherwise has not been said.
        root.told &= ended.failing.as_ref().is_some_and(|cause| &*cause.reason == reasons::ROOT_TOO_LARGE);
        let since_swap = match ended.in_force {
            true => root.since_swap.ended(root.failing.is_some(), ended.failing.is_some(), ended.wrote),
            false => root.since_swap,
        };
        let as_before = root.failing.as_deref() == ended.failing.as_ref() && root.since_swap == since_swap;
        if !as_before || root.unjudged {
            root.failing = ended.failing.map(Box::new);
            root.since_swap = since_swap;
            root.unjudged = false;
            self.changed.insert(Arc::clone(&root.kind));
        }
    }

    pub(crate) fn of_kind<'a>(&'a self, kind: &'a Kind) -> impl Iterator<Item = &'a Root> {
        self.table.rows.iter().map(|(_, root)| root).filter(move |root| *root.kind == *kind)
    }

    pub(crate) fn by_uid(&self, uid: &Uid) -> Option<&Root> {
        self.table.get(*self.by_uid.get(uid)?)
    }

    fn within_namespaces<'a>(
        &'a self,
        kind: &'a Kind,
        namespaces: &'a Namespaces,
    ) -> impl Iterator<Item = &'a Root> {
        self.of_kind(kind).filter(move |root| namespaces.includes(root.namespace.as_deref()))
    }

    /// How many roots of a kind there are in these namespaces. Looks at each of them, as all that follows.
    pub(crate) fn tally(&self, kind: &Kind, namespaces: &Namespaces) -> Tally {
        let mut tally = Tally::default();
        self.within_namespaces(kind, namespaces).for_each(|root| tally.count(root));
        tally
    }

    /// The roots of a kind in these namespaces that fail.
    pub(crate) fn failures(&self, kind: &Kind, namespaces: &Namespaces) -> Failures {
        let roots = self.within_namespaces(kind, namespaces);
        let mut failing: Vec<(&Root, &Cause)> =
            roots.filter_map(|root| Some((root, root.failing.as_deref()?))).collect();
        failing.sort_by(|(one, _), (other, _)| {
            (&one.namespace, &one.name).cmp(&(&other.namespace, &other.name))
        });
        let mut reasons: BTreeMap<Arc<str>, u32> = BTreeMap::new();
        for (_, cause) in &failing {
            *reasons.entry(Arc::clone(&cause.reason)).or_default() += 1;
        }
        let mut reasons: Vec<(Arc<str>, u32)> = reasons.into_iter().collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let first = failing.into_iter().take(NAMED).map(|(root, cause)| (root.key(), cause.clone()));
        Failures { first: first.collect(), reasons }
    }

    /// Whether there are roots of a kind in these namespaces that were listed, but for which no pass has shown yet whether they fail.
    pub(crate) fn any_unjudged(&self, kind: &Kind, namespaces: &Namespaces) -> bool {
        self.within_namespaces(kind, namespaces).any(|root| root.unjudged)
    }

    /// Whether the counts of a kind changed since this was last asked.
    pub(crate) fn take_counts_changed(&mut self, kind: &Kind) -> bool {
        self.changed.remove(kind)
    }

    /// Whether any root of a kind has a finalizer of ours.
    pub(crate) fn any_held(&self, kind: &Kind) -> bool {
        self.of_kind(kind).any(|root| root.held)
    }

    /// Whether there are roots of a kind in these namespaces whose status does not say that nobody reconciles them.
    pub(crate) fn any_untold(&self, kind: &Kind, namespaces: &Namespaces) -> bool {
        self.within_namespaces(kind, namespaces).any(|root| root.untold)
    }

    /// Whether the status of any root of a kind names children of this kind, which is not watched.
    pub(crate) fn any_unwatched(&self, kind: &Kind, child_kind: &str) -> bool {
        self.of_kind(kind).any(|root| root.unwatched.iter().any(|unwatched| **unwatched == *child_kind))
    }

    /// How many roots are kept, and how much memory they take, in bytes. Looks at each of them.
    pub(crate) fn size(&self) -> (usize, usize) {
        let heap: usize = self.table.rows.iter().map(|(_, root)| root.heap_bytes()).sum();
        let by_uid = self.by_uid.capacity() * (size_of::<(Uid, Number)>() + 1);
        (self.table.rows.len(), self.table.bytes() + by_uid + heap)
    }
}

/// Removes all managed fields of a root except the status entries, which show what the last status apply set.
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

#[cfg(test)]
mod tests;
