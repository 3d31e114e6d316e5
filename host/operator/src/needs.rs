//! The cache of the objects that guests ask to see, and the index of the roots that are requeued when such an object changes.
//!
//! The roots that a change concerns are found by index, not by looking at each root: by the object's name, by the selectors of its
//! namespace, and by the values of its indexed fields, each before and after the change. The cache keeps only those fields of an object
//! that a guest asks for.
//!
//! Which fields a watch brings is fixed for a *round*, which begins with a list. When a guest asks for a field that the round does not
//! bring, another round begins, at most one in a second. Meanwhile, guests that ask only for fields of the present round are answered
//! from the cache. When some fields of a round are not needed any more, another round begins after a while.
//!
//! An object for which there is no room beside the others is known by its name alone. Who asks for it by its name has it read live, and who
//! may have meant it otherwise waits until there is room.

mod objects;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    mem::size_of,
    sync::Arc,
    time::Duration,
};

use objects::{Brings, Kept, Object, Shape};
use pintle_core::{
    needs::{Budget, LookUp, matches},
    object, reconciler,
};
use pintle_wit::{Kind, LabelSelector, Select};
use serde_json::Value;

use crate::store::{RootKey, RootLimits};

/// A root whose guest asks to see objects.
pub(crate) type Asker = (Kind, RootKey);

/// An object of a kind, by namespace and name.
type Place = (Option<String>, String);

/// The path of an indexed field, and one of its values.
type PathValue = (String, String);

/// How soon after the begin of a round the next one may begin, so that guests cannot make the API server list all the time.
const RELIST_EVERY: Duration = Duration::from_secs(1);

/// How long a round may go on that brings more than guests ask for. A list costs more than the memory for a minute, and roots come and go.
const SPARE_FOR: Duration = Duration::from_secs(60);

/// The most different fields of one kind that the roots of one Reconciler may ask for at a time: as many as four needs may have. Each
/// field is looked up in every object that a watch brings.
pub(crate) const FIELDS_KEPT_MAX: usize = 128;

/// All objects and askers, by kind.
#[derive(Debug)]
pub(crate) struct Needed {
    /// How much of the objects is kept, in bytes.
    limit: u64,
    kinds: BTreeMap<Kind, OfKind>,
    /// By the kind of the roots.
    asked: BTreeMap<Kind, BTreeMap<RootKey, Vec<LookUp>>>,
    lists: u32,
}

impl Default for Needed {
    fn default() -> Self {
        Self::within(RootLimits::default().all)
    }
}

/// The objects of a kind, and the roots that ask for them.
#[derive(Debug, Default)]
struct OfKind {
    /// Every field that is asked for now, with the number of askers, by the kind of the roots.
    asked: BTreeMap<Kind, BTreeMap<String, u32>>,
    /// The number of the round. It is raised whenever other fields must be kept, so that all objects are listed anew.
    round: u32,
    /// The fields that this round brings.
    brings: Arc<Brings>,
    /// The fields that are known for every object: those of the last complete list that this round brings too.
    covers: Option<Arc<Brings>>,
    /// When the round began, if something was listed before it.
    raised: Option<Duration>,
    /// Since when the round brings more than guests ask for.
    spare_since: Option<Duration>,
    /// A guest waits for the next round.
    is_put_off: bool,
    objects: BTreeMap<Place, Object>,
    /// How much of them is kept, in bytes.
    bytes: usize,
    /// The objects for which there was no room.
    without_room: BTreeSet<Place>,
    /// Which objects have a value in an indexed field.
    values: HashMap<PathValue, BTreeSet<Place>>,
    by_name: HashMap<Place, BTreeSet<Asker>>,
    by_value: HashMap<PathValue, BTreeSet<(Asker, Option<String>)>>,
    by_labels: HashMap<Option<String>, HashMap<LabelSelector, BTreeSet<Asker>>>,
}

type Labels = Box<[(Box<str>, Box<str>)]>;

/// How much of the objects of a kind a watch must bring, and for which round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) whole: bool,
    pub(crate) round: u32,
}

/// When another round must begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NextRound {
    /// After this time.
    pub(crate) after: Duration,
    /// Now: a guest has just begun to wait for it.
    pub(crate) is_put_off: bool,
}

/// The result of a look-up.
#[derive(Debug, PartialEq)]
pub(crate) enum Looked {
    /// The objects.
    Found(Vec<Arc<Kept>>),
    /// The objects have not been listed yet with all the fields that were asked for.
    NotYet,
    /// No watch may show the objects, or there is no room for them, so they must be read live.
    Live,
    /// There are more objects than may be shown.
    TooMuch,
}

impl Needed {
    /// Nothing yet, and later so many bytes of objects.
    pub(crate) fn within(limit: u64) -> Self {
        Self { limit, kinds: BTreeMap::new(), asked: BTreeMap::new(), lists: 0 }
    }

    /// How much is kept, in bytes.
    fn kept(&self) -> usize {
        self.kinds.values().map(|of_kind| of_kind.bytes).sum()
    }

    /// How much a watch of a kind must bring, and when to ask again although nothing changes. `paths` are the indexes that the manifests
    /// in force declare. `now` is a duration since any fixed moment.
    pub(crate) fn wanted(
        &mut self,
        kind: &Kind,
        paths: BTreeSet<String>,
        now: Duration,
    ) -> (Wanted, Option<NextRound>) {
        let room = self.limit.saturating_sub(self.kept() as u64);
        let of_kind = self.kinds.entry(kind.clone()).or_default();
        // Of kinds that are not watched for their content, only metadata is brought.
        let asked = of_kind.asked.values().filter(|_| reconciler::is_watchable(kind));
        let fields: BTreeSet<&String> = asked.flat_map(BTreeMap::keys).collect();
        let brings = &of_kind.brings;
        let lacks = fields.iter().any(|field| brings.fields.binary_search(field).is_err())
            || paths.iter().any(|path| !brings.has_path(path))
            || of_kind.has_room_again(room);
        let is_spare = fields.len() < brings.fields.len() || paths.len() < brings.paths.len();
        let due = match (lacks, is_spare) {
            (true, _) => Some(now),
            (false, true) => Some(*of_kind.spare_since.get_or_insert(now) + SPARE_FOR),
            (false, false) => None,
        };
        if !is_spare {
            of_kind.spare_since = None;
        }
        let due = due.map(|due| due.max(of_kind.raised.map_or(Duration::ZERO, |at| at + RELIST_EVERY)));
        let mut later = None;
        match due {
            Some(due) if due <= now => {
                let brings = Brings {
                    fields: fields.into_iter().cloned().collect(),
                    paths: paths.into_iter().collect(),
                };
                of_kind.begin(brings, now);
            }
            Some(due) => {
                let is_put_off = lacks && !std::mem::replace(&mut of_kind.is_put_off, lacks);
                later = Some(NextRound { after: due - now, is_put_off });
            }
            None => {}
        }
        (Wanted { whole: of_kind.brings.is_whole(), round: of_kind.round }, later)
    }

    /// Registers what a root asks to see, in place of what it asked before. Returns whether it has to wait for another round.
    ///
    /// # Errors
    /// The kind, if the roots of this kind ask for too many different fields of it. The root is then registered for nothing.
    pub(crate) fn ask(&mut self, asker: &Asker, lookups: &[LookUp]) -> Result<bool, Kind> {
        let before = self.asked.get(&asker.0).and_then(|roots| roots.get(&asker.1));
        if before.map(Vec::as_slice) == Some(lookups) || before.is_none() && lookups.is_empty() {
            return Ok(false);
        }
        self.forget(asker);
        if lookups.is_empty() {
            return Ok(false);
        }
        for look in lookups {
            self.kinds.entry(look.kind().clone()).or_default().register(asker, look, true);
        }
        self.asked.entry(asker.0.clone()).or_default().insert(asker.1.clone(), lookups.to_vec());
        let of_kind = |look: &LookUp| self.kinds.get(look.kind());
        let fields = |look: &&LookUp| of_kind(look)?.asked.get(&asker.0).map(BTreeMap::len);
        if let Some(look) = lookups.iter().find(|look| fields(look) > Some(FIELDS_KEPT_MAX)) {
            let kind = look.kind().clone();
            self.forget(asker);
            return Err(kind);
        }
        let lacks =
            |look: &LookUp| of_kind(look).is_some_and(|of_kind| !of_kind.brings.has_fields(look.fields()));
        Ok(lookups.iter().any(|look| reconciler::is_watchable(look.kind()) && lacks(look)))
    }

    /// Whether a look-up can be answered from the cache.
    pub(crate) fn is_known(&self, look: &LookUp) -> bool {
        let covers = self.kinds.get(look.kind()).and_then(|of_kind| of_kind.covers.as_ref());
        covers.is_some_and(|covers| {
            covers.has_fields(look.fields())
                && match look.select() {
                    Select::Field(field) => covers.has_path(&field.path),
                    Select::Name(_) | Select::Labels(_) => true,
                }
        })
    }

    /// Answers a look-up from the cache, as far as the budget allows. The root that is requeued on changes was registered before.
    pub(crate) fn find(&self, look: &LookUp, budget: &mut Budget) -> Looked {
        if !reconciler::is_watchable(look.kind()) {
            return Looked::Live;
        }
        match self.kinds.get(look.kind()).filter(|_| self.is_known(look)) {
            Some(of_kind) if of_kind.lacks(look) => Looked::Live,
            Some(of_kind) => of_kind.find(look, budget).map_or(Looked::TooMuch, Looked::Found),
            None => Looked::NotYet,
        }
    }

    /// Forgets what a root asked to see.
    pub(crate) fn forget(&mut self, asker: &Asker) {
        let Some(roots) = self.asked.get_mut(&asker.0) else { return };
        let lookups = roots.remove(&asker.1).unwrap_or_default();
        if roots.is_empty() {
            self.asked.remove(&asker.0);
        }
        for look in lookups {
            if let Some(of_kind) = self.kinds.get_mut(look.kind()) {
                of_kind.register(asker, &look, false);
            }
        }
    }

    /// Forgets what all roots asked to see, until they ask again.
    pub(crate) fn forget_askers(&mut self) {
        self.asked.clear();
        for of_kind in self.kinds.values_mut() {
            of_kind.asked.clear();
            of_kind.by_name.clear();
            of_kind.by_value.clear();
            of_kind.by_labels.clear();
        }
    }

    /// Forgets what roots of this kind asked to see, for those that do not exist any more.
    pub(crate) fn keep_roots(&mut self, kind: &Kind, is_there: impl Fn(&RootKey) -> bool) {
        let keys = self.asked.get(kind).into_iter().flat_map(BTreeMap::keys);
        let gone: Vec<RootKey> = keys.filter(|key| !is_there(key)).cloned().collect();
        for key in gone {
            self.forget(&(kind.clone(), key));
        }
    }

    /// Forgets what roots asked to see, for kinds that no guest works on.
    pub(crate) fn keep_kinds_of_roots(&mut self, kinds: &BTreeSet<Kind>) {
        let gone: Vec<Kind> = self.asked.keys().filter(|kind| !kinds.contains(*kind)).cloned().collect();
        for kind in gone {
            self.keep_roots(&kind, |_| false);
        }
    }

    /// How the objects that a watch of this round brings are reduced; none if the round is over.
    pub(crate) fn shape(&self, kind: &Kind, round: u32) -> Option<Shape> {
        let of_kind = self.kinds.get(kind).filter(|of_kind| of_kind.round == round)?;
        Some(Shape { kind: kind.clone(), round, brings: Arc::clone(&of_kind.brings) })
    }

    /// Takes in an object that was reduced for this round; returns the roots that it concerns. If another round has begun meanwhile, its
    /// list will show the object again.
    pub(crate) fn saw(&mut self, shape: &Shape, place: Place, now: Object) -> BTreeSet<Asker> {
        let kept = self.kept();
        let of_kind = self.kinds.get_mut(&shape.kind).filter(|of_kind| of_kind.round == shape.round);
        let Some(of_kind) = of_kind else { return BTreeSet::new() };
        let before = of_kind.objects.get(&place);
        let known = before.map_or(0, |known| known.number);
        // A list shows the present state, even if the API server was restored to an older one.
        if now.listed == 0 && 0 < now.number && now.number < known {
            return BTreeSet::new();
        }
        let beside = kept - before.map_or(0, Object::bytes);
        let is_kept = (beside + now.bytes()) as u64 <= self.limit;
        of_kind.put(place, Some(if is_kept { now } else { now.without_content() }))
    }

    /// Takes in that an object is gone; returns the roots that this concerns.
    pub(crate) fn gone(&mut self, kind: &Kind, live: &Value) -> BTreeSet<Asker> {
        self.kinds.get_mut(kind).map(|of_kind| of_kind.put(place(live), None)).unwrap_or_default()
    }

    pub(crate) fn list_begins(&mut self) -> u32 {
        self.lists += 1;
        self.lists
    }

    /// Forgets every object that a complete list did not show; returns the roots that this concerns. `namespace` is the one that was
    /// listed.
    pub(crate) fn list_ended(
        &mut self,
        kind: &Kind,
        namespace: Option<&str>,
        round: u32,
        list: u32,
    ) -> BTreeSet<Asker> {
        let Some(of_kind) = self.kinds.get_mut(kind).filter(|of_kind| of_kind.round == round) else {
            return BTreeSet::new();
        };
        let is_gone = |(place, object): &(&Place, &Object)| {
            object.listed < list && (namespace.is_none() || place.0.as_deref() == namespace)
        };
        let gone: Vec<Place> =
            of_kind.objects.iter().filter(is_gone).map(|(place, _)| place.clone()).collect();
        let mut concerned = BTreeSet::new();
        for place in gone {
            concerned.extend(of_kind.put(place, None));
        }
        if namespace.is_none() {
            of_kind.covers = Some(Arc::clone(&of_kind.brings));
        }
        concerned
    }

    /// Forgets the objects of a kind that is no longer watched.
    pub(crate) fn remove_kind(&mut self, kind: &Kind) {
        if let Some(of_kind) = self.kinds.get_mut(kind) {
            of_kind.objects.clear();
            (of_kind.bytes, of_kind.without_room) = (0, BTreeSet::new());
            of_kind.values.clear();
            of_kind.covers = None;
        }
    }

    /// How many objects are kept, and how much memory they take, in bytes. Looks at each of them.
    pub(crate) fn size(&self) -> (usize, usize) {
        let objects = || self.kinds.values().flat_map(|of_kind| &of_kind.objects);
        let bytes = objects().map(|((namespace, name), object)| {
            let place = namespace.as_ref().map_or(0, String::len) + name.len();
            size_of::<(Place, Object)>() + 2 * place + object.bytes()
        });
        (objects().count(), bytes.sum())
    }
}

/// The place of an object.
pub(crate) fn place(live: &Value) -> Place {
    (object::namespace(live).map(Into::into), object::name(live).into())
}

/// Adds to, or takes from, a set in a map; an empty set is not kept.
fn change<K: std::hash::Hash + Eq, T: Ord>(map: &mut HashMap<K, BTreeSet<T>>, key: K, item: T, add: bool) {
    if add {
        map.entry(key).or_default().insert(item);
    } else if let Some(set) = map.get_mut(&key) {
        set.remove(&item);
        if set.is_empty() {
            map.remove(&key);
        }
    }
}

impl OfKind {
    /// Begins another round, which brings these fields.
    fn begin(&mut self, brings: Brings, now: Duration) {
        self.covers = self.covers.take().map(|covers| Arc::new(covers.shared(&brings)));
        // Declared indexes are known before the first list, so they cause no new list.
        let is_first = self.round == 0 && brings.fields.is_empty();
        self.brings = Arc::new(brings);
        self.round += 1;
        self.raised = (!is_first).then_some(now);
        self.spare_since = None;
        self.is_put_off = false;
    }

    /// Whether there is room for all objects that had none when they were listed.
    fn has_room_again(&self, room: u64) -> bool {
        let is_listed = self.covers.as_ref().is_some_and(|covers| Arc::ptr_eq(covers, &self.brings));
        let lacking = self.without_room.iter().filter_map(|place| self.objects.get(place));
        let lacking: usize = lacking.map(|object| object.lacks).sum();
        is_listed && lacking > 0 && lacking as u64 <= room
    }

    /// Whether a look-up may mean an object for which there was no room.
    fn lacks(&self, look: &LookUp) -> bool {
        let namespace = look.namespace().map(ToOwned::to_owned);
        match look.select() {
            Select::Name(name) => self.without_room.contains(&(namespace, name.clone())),
            Select::Labels(_) | Select::Field(_) => {
                self.without_room.iter().any(|(of, _)| namespace.is_none() || *of == namespace)
            }
        }
    }

    fn register(&mut self, asker: &Asker, look: &LookUp, add: bool) {
        self.count_fields(&asker.0, look.fields(), add);
        let namespace = look.namespace().map(ToOwned::to_owned);
        match look.select() {
            Select::Name(name) => change(&mut self.by_name, (namespace, name.clone()), asker.clone(), add),
            Select::Field(field) => {
                let key = (field.path.clone(), field.equals.clone());
                change(&mut self.by_value, key, (asker.clone(), namespace), add);
            }
            Select::Labels(selector) => {
                let of_namespace = self.by_labels.entry(namespace.clone()).or_default();
                change(of_namespace, selector.clone(), asker.clone(), add);
                if of_namespace.is_empty() {
                    self.by_labels.remove(&namespace);
                }
            }
        }
    }

    fn count_fields(&mut self, roots: &Kind, fields: &[String], add: bool) {
        if add && !fields.is_empty() {
            let asked = self.asked.entry(roots.clone()).or_default();
            for field in fields {
                *asked.entry(field.clone()).or_default() += 1;
            }
        } else if let Some(asked) = self.asked.get_mut(roots) {
            for field in fields {
                if let Some(count) = asked.get_mut(field) {
                    *count -= 1;
                    if *count == 0 {
                        asked.remove(field);
                    }
                }
            }
            if asked.is_empty() {
                self.asked.remove(roots);
            }
        }
    }

    /// The objects that a look-up asks for; none as soon as they are more than the budget has left.
    fn find(&self, look: &LookUp, budget: &mut Budget) -> Option<Vec<Arc<Kept>>> {
        let namespace = look.namespace().map(ToOwned::to_owned);
        let at = |place: &Place| self.objects.get(place);
        let found: Box<dyn Iterator<Item = &Object>> = match look.select() {
            Select::Name(name) => Box::new(at(&(namespace, name.clone())).into_iter()),
            Select::Field(field) => {
                let places = self.values.get(&(field.path.clone(), field.equals.clone()));
                let here = places
                    .into_iter()
                    .flatten()
                    .filter(|place| look.namespace().is_none() || place.0.as_deref() == look.namespace());
                Box::new(here.filter_map(at))
            }
            Select::Labels(selector) => {
                let here: Box<dyn Iterator<Item = (&Place, &Object)>> = match namespace {
                    // Places are sorted by namespace.
                    Some(_) => Box::new(
                        self.objects
                            .range((namespace.clone(), String::new())..)
                            .take_while(move |((found, _), _)| *found == namespace),
                    ),
                    None => Box::new(self.objects.iter()),
                };
                Box::new(here.map(|(_, object)| object).filter(|object| selects(selector, &object.labels)))
            }
        };
        let mut all = Vec::new();
        for object in found {
            if !budget.take(object.kept.bytes(look.fields())) {
                return None;
            }
            all.push(Arc::clone(&object.kept));
        }
        Some(all)
    }

    /// Sets or removes an object, and returns the roots that this concerns: those that asked for its old or its new state.
    fn put(&mut self, place: Place, now: Option<Object>) -> BTreeSet<Asker> {
        let before = self.objects.get_mut(&place);
        if let (Some(before), Some(now)) = (before, &now)
            && Arc::ptr_eq(&before.kept.brings, &now.kept.brings)
            && !before.differs(now)
        {
            before.listed = before.listed.max(now.listed);
            before.number = now.number;
            return BTreeSet::new();
        }
        let before = self.objects.remove(&place);
        let is_news = match (&before, &now) {
            (Some(before), Some(now)) => before.differs(now),
            (None, None) => false,
            _ => true,
        };
        let concerned = match is_news {
            true => self.concerned(&place, before.as_ref(), now.as_ref()),
            false => BTreeSet::new(),
        };
        for key in before.iter().flat_map(|before| &before.values) {
            change(&mut self.values, key.clone(), place.clone(), false);
        }
        self.bytes -= before.as_ref().map_or(0, Object::bytes);
        self.without_room.remove(&place);
        if let Some(now) = now {
            self.bytes += now.bytes();
            self.without_room.extend((now.lacks > 0).then(|| place.clone()));
            for key in &now.values {
                change(&mut self.values, key.clone(), place.clone(), true);
            }
            self.objects.insert(place, now);
        }
        concerned
    }

    fn concerned(&self, place: &Place, before: Option<&Object>, now: Option<&Object>) -> BTreeSet<Asker> {
        let mut concerned = BTreeSet::new();
        concerned.extend(self.by_name.get(place).into_iter().flatten().cloned());
        for object in before.into_iter().chain(now) {
            for key in &object.values {
                let askers = self.by_value.get(key).into_iter().flatten();
                let here = askers.filter(|(_, namespace)| namespace.is_none() || *namespace == place.0);
                concerned.extend(here.map(|(asker, _)| asker.clone()));
            }
        }
        let groups = [self.by_labels.get(&place.0), self.by_labels.get(&None).filter(|_| place.0.is_some())];
        if groups.iter().any(Option::is_some) {
            for (selector, askers) in groups.into_iter().flatten().flatten() {
                if before.into_iter().chain(now).any(|object| selects(selector, &object.labels)) {
                    concerned.extend(askers.iter().cloned());
                }
            }
        }
        concerned
    }
}

fn selects(selector: &LabelSelector, labels: &Labels) -> bool {
    matches(selector, |key| labels.iter().find(|(label, _)| **label == *key).map(|(_, value)| &**value))
}

#[cfg(test)]
mod tests;
