//! What guests ask to see: the objects, as watches show them, and who is to be told of which change.
//!
//! Who is concerned by a change is found by index, not by looking at each root: by the object's name, by the selectors of its
//! namespace, by the values of its indexed fields, each as they were before and as they are now. Of each object only what somebody
//! asked for is kept.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    mem::size_of,
};

use pintle_core::{
    needs::{LookUp, matches, project},
    object, reconciler,
};
use pintle_wit::{Kind, LabelSelector, Select};
use serde_json::Value;

use super::store::RootKey;

/// A root that asked.
pub(crate) type Asker = (Kind, RootKey);

/// An object of a kind, by namespace and name.
type Place = (Option<String>, String);

/// The path of an indexed field, and one of its values.
type PathValue = (String, String);

/// Everything that is known for needs.
#[derive(Debug, Default)]
pub(crate) struct Needed {
    kinds: BTreeMap<Kind, OfKind>,
    asked: HashMap<Asker, Vec<LookUp>>,
    lists: u32,
}

/// The objects of a kind, and who asked for which of them.
#[derive(Debug, Default)]
struct OfKind {
    /// Every field that was asked for.
    fields: BTreeSet<String>,
    /// The paths of the indexes that the manifests in force declare.
    paths: BTreeSet<String>,
    /// Raised whenever more is to be kept of each object, so that all are listed anew.
    round: u32,
    /// The round whose list is complete.
    listed: Option<u32>,
    objects: BTreeMap<Place, Object>,
    /// Which objects have a value in an indexed field.
    values: HashMap<PathValue, BTreeSet<Place>>,
    by_name: HashMap<Place, BTreeSet<Asker>>,
    by_value: HashMap<PathValue, BTreeSet<(Asker, Option<String>)>>,
    by_labels: HashMap<Option<String>, HashMap<LabelSelector, BTreeSet<Asker>>>,
}

type Labels = Box<[(Box<str>, Box<str>)]>;

#[derive(Debug)]
struct Object {
    /// As JSON, without what nobody asked for.
    shown: Box<[u8]>,
    /// Its labels, so that a selector need not read the JSON of each object.
    labels: Labels,
    values: BTreeSet<PathValue>,
    /// Of what the watch shows metadata alone, any version may be news.
    version: Option<Box<str>>,
    listed: u32,
}

impl Object {
    fn value(&self) -> Value {
        // It was written as JSON from a value.
        serde_json::from_slice(&self.shown).unwrap_or_default()
    }
}

/// How much of the objects of a kind a watch is to bring, and for which round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) whole: bool,
    pub(crate) round: u32,
}

/// What came of a look-up.
#[derive(Debug, PartialEq)]
pub(crate) enum Looked {
    /// The objects.
    Found(Vec<Value>),
    /// The objects have not been listed yet, with all that was asked for.
    NotYet,
    /// No watch may show them: they are to be read live.
    Live,
}

impl Needed {
    /// What a watch of a kind is to bring. `paths` are the indexes that the manifests in force declare.
    pub(crate) fn wanted(&mut self, kind: &Kind, paths: BTreeSet<String>) -> Wanted {
        let of_kind = self.kinds.entry(kind.clone()).or_default();
        if of_kind.paths != paths {
            of_kind.paths = paths;
            of_kind.round += 1;
        }
        // Owner references come with the metadata.
        let is_beyond = |field: &String| !field.starts_with("metadata.");
        let whole = of_kind.fields.iter().any(is_beyond) || !of_kind.paths.is_empty();
        Wanted { whole, round: of_kind.round }
    }

    /// Registers what a root asks to see, in the place of what it asked before, and answers from what is known. Whether more is to be
    /// kept of some kind from now on is the second value.
    pub(crate) fn look(&mut self, asker: &Asker, lookups: &[LookUp]) -> (Vec<Looked>, bool) {
        let mut grew = false;
        for look in lookups {
            let of_kind = self.kinds.entry(look.kind().clone()).or_default();
            let before = of_kind.fields.len();
            of_kind.fields.extend(look.fields().iter().cloned());
            if of_kind.fields.len() > before && reconciler::is_watchable(look.kind()) {
                of_kind.round += 1;
                grew = true;
            }
        }
        if self.asked.get(asker).map(Vec::as_slice) != Some(lookups) {
            self.forget(asker);
            for look in lookups {
                self.kinds.entry(look.kind().clone()).or_default().register(asker, look, true);
            }
            if !lookups.is_empty() {
                self.asked.insert(asker.clone(), lookups.to_vec());
            }
        }
        let found = lookups.iter().map(|look| match self.kinds.get(look.kind()) {
            _ if !reconciler::is_watchable(look.kind()) => Looked::Live,
            Some(of_kind) if of_kind.listed == Some(of_kind.round) => Looked::Found(of_kind.find(look)),
            _ => Looked::NotYet,
        });
        (found.collect(), grew)
    }

    /// Nobody need be told any more on behalf of a root.
    pub(crate) fn forget(&mut self, asker: &Asker) {
        for look in self.asked.remove(asker).unwrap_or_default() {
            if let Some(of_kind) = self.kinds.get_mut(look.kind()) {
                of_kind.register(asker, &look, false);
            }
        }
    }

    /// Nobody need be told of anything, until it asks again.
    pub(crate) fn forget_askers(&mut self) {
        self.asked.clear();
        for of_kind in self.kinds.values_mut() {
            of_kind.by_name.clear();
            of_kind.by_value.clear();
            of_kind.by_labels.clear();
        }
    }

    /// Takes in an object as a watch of this round showed it; returns whom it concerns.
    pub(crate) fn saw(
        &mut self,
        kind: &Kind,
        round: u32,
        live: &Value,
        list: Option<u32>,
    ) -> BTreeSet<Asker> {
        let Some(of_kind) = self.kinds.get_mut(kind).filter(|of_kind| of_kind.round == round) else {
            return BTreeSet::new();
        };
        let fields: Vec<String> = of_kind.fields.iter().cloned().collect();
        let values = of_kind.paths.iter().flat_map(|path| {
            object::strings_at(live, path).into_iter().map(|value| (path.clone(), value.to_owned()))
        });
        let version = object::text(live, &["metadata", "resourceVersion"]).map(Into::into);
        let labels = object::at(live, &["metadata", "labels"]).and_then(Value::as_object);
        let labels = labels.into_iter().flatten();
        let labels = labels.filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into())));
        let now = Object {
            labels: labels.collect(),
            values: values.collect(),
            // Plain data with string keys: writing it as JSON cannot fail.
            shown: serde_json::to_vec(&project(live, &fields)).unwrap_or_default().into(),
            version: version.filter(|_| !reconciler::is_watchable(kind)),
            listed: list.unwrap_or(0),
        };
        of_kind.put(place(live), Some(now))
    }

    /// Takes in that an object is gone; returns whom it concerns.
    pub(crate) fn gone(&mut self, kind: &Kind, live: &Value) -> BTreeSet<Asker> {
        self.kinds.get_mut(kind).map(|of_kind| of_kind.put(place(live), None)).unwrap_or_default()
    }

    pub(crate) fn list_begins(&mut self) -> u32 {
        self.lists += 1;
        self.lists
    }

    /// Forgets every object that a complete list did not show; returns whom that concerns. `namespace` is where it looked.
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
            of_kind.listed = Some(round);
        }
        concerned
    }

    /// Forgets the objects of a kind that is no longer watched.
    pub(crate) fn remove_kind(&mut self, kind: &Kind) {
        if let Some(of_kind) = self.kinds.get_mut(kind) {
            of_kind.objects.clear();
            of_kind.values.clear();
            of_kind.listed = None;
        }
    }

    /// How many objects are kept, and the memory that they take, in bytes. It looks at each of them.
    pub(crate) fn size(&self) -> (usize, usize) {
        let objects = || self.kinds.values().flat_map(|of_kind| &of_kind.objects);
        let bytes = objects().map(|((namespace, name), object)| {
            let place = namespace.as_ref().map_or(0, String::len) + name.len();
            let label = |(key, value): &(Box<str>, Box<str>)| {
                size_of::<(Box<str>, Box<str>)>() + key.len() + value.len()
            };
            let labels: usize = object.labels.iter().map(label).sum();
            size_of::<(Place, Object)>() + 2 * place + object.shown.len() + labels
        });
        (objects().count(), bytes.sum())
    }
}

fn place(live: &Value) -> Place {
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
    fn register(&mut self, asker: &Asker, look: &LookUp, add: bool) {
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

    fn find(&self, look: &LookUp) -> Vec<Value> {
        let namespace = look.namespace().map(ToOwned::to_owned);
        let at = |place: &Place| self.objects.get(place).map(Object::value);
        match look.select() {
            Select::Name(name) => at(&(namespace, name.clone())).into_iter().collect(),
            Select::Field(field) => {
                let places = self.values.get(&(field.path.clone(), field.equals.clone()));
                let here = places
                    .into_iter()
                    .flatten()
                    .filter(|place| look.namespace().is_none() || place.0.as_deref() == look.namespace());
                here.filter_map(at).collect()
            }
            Select::Labels(selector) => {
                let here: Box<dyn Iterator<Item = (&Place, &Object)>> = match &namespace {
                    // Places are sorted by namespace.
                    Some(_) => Box::new(
                        self.objects
                            .range((namespace.clone(), String::new())..)
                            .take_while(|((found, _), _)| *found == namespace),
                    ),
                    None => Box::new(self.objects.iter()),
                };
                let here = here.filter(|(_, object)| selects(selector, &object.labels));
                here.map(|(_, object)| object.value()).collect()
            }
        }
    }

    /// Sets or removes an object, and returns whom that concerns: those who asked for what it was, or for what it is.
    fn put(&mut self, place: Place, now: Option<Object>) -> BTreeSet<Asker> {
        let before = self.objects.get_mut(&place);
        if let (Some(before), Some(now)) = (before, &now)
            && before.shown == now.shown
            && before.values == now.values
            && before.version == now.version
        {
            before.listed = before.listed.max(now.listed);
            return BTreeSet::new();
        }
        let before = self.objects.remove(&place);
        let mut concerned = BTreeSet::new();
        concerned.extend(self.by_name.get(&place).into_iter().flatten().cloned());
        for object in before.iter().chain(&now) {
            for key in &object.values {
                let askers = self.by_value.get(key).into_iter().flatten();
                let here = askers.filter(|(_, namespace)| namespace.is_none() || *namespace == place.0);
                concerned.extend(here.map(|(asker, _)| asker.clone()));
            }
        }
        let groups = [self.by_labels.get(&place.0), self.by_labels.get(&None).filter(|_| place.0.is_some())];
        if groups.iter().any(Option::is_some) {
            for (selector, askers) in groups.into_iter().flatten().flatten() {
                if before.iter().chain(&now).any(|object| selects(selector, &object.labels)) {
                    concerned.extend(askers.iter().cloned());
                }
            }
        }
        for key in before.iter().flat_map(|before| &before.values) {
            change(&mut self.values, key.clone(), place.clone(), false);
        }
        if let Some(now) = now {
            for key in &now.values {
                change(&mut self.values, key.clone(), place.clone(), true);
            }
            self.objects.insert(place, now);
        }
        concerned
    }
}

fn selects(selector: &LabelSelector, labels: &Labels) -> bool {
    matches(selector, |key| labels.iter().find(|(label, _)| **label == *key).map(|(_, value)| &**value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_core::{
        GateContext, SealingKey, StatusSchema, gate,
        reconciler::{Grants, Limits},
    };
    use pintle_wit::{FieldEquals, Manifest, Need, NeedKind, ObjectsNeed};
    use serde_json::json;

    fn kind() -> Kind {
        Kind::new("v1", "ConfigMap")
    }

    fn look_up(namespace: Option<&str>, select: Select) -> LookUp {
        look_up_of("ConfigMap", namespace, select)
    }

    /// What the gate makes of a need of a root in namespace `n`.
    fn look_up_of(kind: &str, namespace: Option<&str>, select: Select) -> LookUp {
        let mut manifest = Manifest::new("m", "0.1.0", Kind::new("x/v1", "X"));
        manifest.needs = vec![NeedKind {
            api_version: "v1".into(),
            kind: kind.into(),
            indexes: vec!["data.hosts[]".into()],
        }];
        let mut grants = Grants::as_declared(&manifest);
        grants.needs[0].names = match &select {
            Select::Name(name) if kind == "Secret" => vec![name.clone()],
            _ => Vec::new(),
        };
        let root = json!({"metadata": {"name": "r", "namespace": "n"}});
        let context = GateContext {
            root: &root,
            manifest: &manifest,
            reconciler: "m",
            grants: &grants,
            limits: &Limits::default(),
            kinds: &BTreeMap::new(),
            status: &StatusSchema::Anything,
            key: &SealingKey::new([0; 32]),
        };
        let need = ObjectsNeed {
            api_version: "v1".into(),
            kind: kind.into(),
            namespace: namespace.map(Into::into),
            select,
            fields: vec!["data".into()],
            settle_milliseconds: 0,
        };
        gate::needs(&context, &[Need::Objects(need)]).unwrap().remove(0).unwrap()
    }

    fn by_name(name: &str) -> LookUp {
        look_up(None, Select::Name(name.into()))
    }

    fn by_host(host: &str) -> LookUp {
        look_up(Some("*"), Select::Field(FieldEquals { path: "data.hosts[]".into(), equals: host.into() }))
    }

    fn by_label(value: &str) -> LookUp {
        let match_labels = [("app".to_owned(), value.to_owned())].into();
        look_up(None, Select::Labels(LabelSelector { match_labels, ..LabelSelector::default() }))
    }

    fn asker(name: &str) -> Asker {
        (Kind::new("x/v1", "X"), RootKey { namespace: Some("n".into()), name: name.into() })
    }

    fn live(name: &str, rest: Value) -> Value {
        let mut live = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "n", "uid": name, "resourceVersion": "1"}});
        live.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        live
    }

    struct Store(Needed);

    impl Store {
        /// A store whose guests have asked for `data` and an index, and whose list is complete.
        fn new(objects: impl Iterator<Item = Value>) -> Self {
            let mut store = Self(Needed::default());
            store.0.look(&asker("first"), &[by_name("none")]);
            store.0.wanted(&kind(), BTreeSet::from(["data.hosts[]".into()]));
            let list = store.0.list_begins();
            for object in objects {
                store.saw_in(object, Some(list));
            }
            let round = store.round();
            store.0.list_ended(&kind(), None, round, list);
            store
        }

        fn round(&self) -> u32 {
            self.0.kinds[&kind()].round
        }

        fn saw_in(&mut self, live: Value, list: Option<u32>) -> BTreeSet<Asker> {
            let round = self.round();
            self.0.saw(&kind(), round, &live, list)
        }

        fn saw(&mut self, live: Value) -> Vec<String> {
            self.saw_in(live, None).into_iter().map(|(_, key)| key.name).collect()
        }

        fn ask(&mut self, name: &str, look: LookUp) -> Vec<String> {
            let (mut looked, grew) = self.0.look(&asker(name), &[look]);
            assert!(!grew);
            match looked.remove(0) {
                Looked::Found(found) => found.iter().map(|live| object::name(live).to_owned()).collect(),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn of_ten_thousand_objects_and_a_thousand_roots_a_change_wakes_the_one_that_named_it() {
        let mut store = Store::new((0..10_000).map(|n| live(&format!("c{n}"), json!({"data": {"k": "v"}}))));
        for n in 0..1000 {
            assert_eq!(store.ask(&format!("r{n}"), by_name(&format!("c{n}"))), [format!("c{n}")]);
        }
        assert_eq!(store.saw(live("c7", json!({"data": {"k": "w"}}))), ["r7"]);
        assert!(store.saw(live("c5000", json!({"data": {"k": "w"}}))).is_empty(), "nobody needs it");
        assert!(
            store.saw(live("c7", json!({"data": {"k": "w"}, "other": 1}))).is_empty(),
            "nobody asked for it"
        );
        let gone = store.0.gone(&kind(), &live("c8", json!({})));
        assert_eq!(gone, BTreeSet::from([asker("r8")]));
        assert_eq!(store.saw(live("c8", json!({}))), ["r8"], "and that it is there again");
        store.0.forget(&asker("r8"));
        assert!(store.saw(live("c8", json!({"data": {"k": "x"}}))).is_empty());
        assert_eq!(store.0.size().0, 10_000);
    }

    #[test]
    fn of_a_thousand_roots_with_hosts_of_their_own_none_wakes_another() {
        let hosts = |hosts: Value| json!({"data": {"hosts": hosts}});
        let mut store =
            Store::new((0..1000).map(|n| live(&format!("c{n}"), hosts(json!([format!("h{n}")])))));
        for n in 0..1000 {
            assert_eq!(store.ask(&format!("r{n}"), by_host(&format!("h{n}"))), [format!("c{n}")]);
        }
        assert_eq!(store.saw(live("c7", hosts(json!(["h7", "new"])))), ["r7"]);
        assert_eq!(store.saw(live("c7", hosts(json!(["h8"])))), ["r7", "r8"], "the old value counts too");
        assert_eq!(store.ask("r8", by_host("h8")), ["c7", "c8"]);
        assert!(store.ask("r7", by_host("h7")).is_empty());
        let mut elsewhere = live("c7", hosts(json!(["h9"])));
        elsewhere["metadata"]["namespace"] = "m".into();
        assert_eq!(store.saw(elsewhere), ["r9"], "in all namespaces");
    }

    #[test]
    fn what_stops_matching_a_selector_wakes_as_what_begins_to() {
        let app = |value: &str| {
            let mut live = live("c", json!({}));
            live["metadata"]["labels"] = json!({"app": value});
            live
        };
        let mut store = Store::new([app("a")].into_iter());
        assert_eq!(store.ask("ra", by_label("a")), ["c"]);
        assert!(store.ask("rb", by_label("b")).is_empty());
        assert_eq!(store.saw(app("b")), ["ra", "rb"]);
        assert_eq!(store.ask("rb", by_label("b")), ["c"]);
        assert_eq!(store.saw(app("c")), ["rb"]);
        assert!(store.saw(app("d")).is_empty());
    }

    #[test]
    fn a_secret_is_read_live_and_every_version_of_it_that_a_watch_shows_wakes() {
        let kind = Kind::new("v1", "Secret");
        let mut needed = Needed::default();
        let look = look_up_of("Secret", None, Select::Name("keys".into()));
        assert_eq!(needed.look(&asker("r"), &[look]), (vec![Looked::Live], false));
        let round = needed.wanted(&kind, BTreeSet::new()).round;
        let mut saw = |version: &str| {
            // Its metadata alone.
            let mut live = live("keys", json!({}));
            live["metadata"]["resourceVersion"] = version.into();
            needed.saw(&kind, round, &live, None)
        };
        assert_eq!(saw("1"), BTreeSet::from([asker("r")]));
        assert!(saw("1").is_empty(), "no news");
        assert_eq!(saw("2"), BTreeSet::from([asker("r")]));
        assert_eq!(needed.gone(&kind, &live("keys", json!({}))), BTreeSet::from([asker("r")]));
    }

    #[test]
    fn what_a_list_no_longer_shows_is_gone() {
        let mut store = Store::new([live("a", json!({})), live("b", json!({}))].into_iter());
        assert_eq!(store.ask("ra", by_name("a")), ["a"]);
        let (list, round) = (store.0.list_begins(), store.round());
        assert!(store.saw_in(live("b", json!({})), Some(list)).is_empty());
        assert_eq!(store.0.list_ended(&kind(), None, round, list), BTreeSet::from([asker("ra")]));
        assert!(store.ask("ra", by_name("a")).is_empty());
    }

    #[test]
    fn another_field_has_everything_listed_anew_before_it_is_answered() {
        let mut store = Store::new([live("a", json!({"data": {"k": "v"}, "immutable": true}))].into_iter());
        let round = store.round();
        let mut more = by_name("a");
        assert_eq!(
            store.0.look(&asker("ra"), std::slice::from_ref(&more)).0,
            [Looked::Found(vec![
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n", "uid": "a"}, "data": {"k": "v"}})
            ])]
        );
        store.0.kinds.get_mut(&kind()).unwrap().fields.remove("data");
        more = by_name("a");
        let (looked, grew) = store.0.look(&asker("ra"), &[more]);
        assert_eq!((looked, grew), (vec![Looked::NotYet], true));
        assert!(store.round() > round);
        assert!(store.0.saw(&kind(), round, &live("a", json!({})), None).is_empty(), "of the round before");
    }

    #[test]
    fn a_watch_brings_metadata_alone_until_somebody_asks_for_more_or_declares_an_index() {
        let mut needed = Needed::default();
        let wanted = |needed: &mut Needed, paths: &[&str]| {
            needed.wanted(&kind(), paths.iter().map(|&path| path.into()).collect())
        };
        let first = wanted(&mut needed, &[]);
        assert!(!first.whole);
        // The owner references that a guest may ask for come with the metadata.
        let owners = needed.kinds.get_mut(&kind()).unwrap();
        owners.fields.insert("metadata.ownerReferences".into());
        assert!(!wanted(&mut needed, &[]).whole);
        needed.look(&asker("r"), &[by_name("a")]);
        let second = wanted(&mut needed, &[]);
        assert!(second.whole && second.round > first.round, "the look-up asks for data");
        assert_eq!(wanted(&mut needed, &[]), second, "and nothing begins anew");
        assert!(wanted(&mut Needed::default(), &["data.hosts[]"]).whole);
    }

    #[test]
    fn who_asks_for_something_else_is_no_longer_told_of_what_it_asked_before() {
        let mut store = Store::new([live("a", json!({})), live("b", json!({}))].into_iter());
        store.ask("r", by_name("a"));
        store.ask("r", by_name("b"));
        assert!(store.saw(live("a", json!({"data": {}}))).is_empty());
        assert_eq!(store.saw(live("b", json!({"data": {}}))), ["r"]);
        store.0.look(&asker("r"), &[]);
        store.0.look(&asker("first"), &[]);
        let of_kind = &store.0.kinds[&kind()];
        assert!(store.0.asked.is_empty() && of_kind.by_name.is_empty(), "nothing is left of it");
    }
}
