//! Tests of what is kept for needs.

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
    look_up_with(kind, namespace, select, &["data"])
}

fn look_up_with(kind: &str, namespace: Option<&str>, select: Select, fields: &[&str]) -> LookUp {
    let mut manifest = Manifest::new("m", "0.1.0", Kind::new("x/v1", "X"));
    manifest.needs =
        vec![NeedKind { api_version: "v1".into(), kind: kind.into(), indexes: vec!["data.hosts[]".into()] }];
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
        fields: vec![],
        settle_milliseconds: 0,
    };
    gate::needs(&context, &[Need::Objects(need.with_fields(fields))]).unwrap().remove(0).unwrap()
}

/// A need for one ConfigMap, with these fields.
fn with_fields(name: &str, fields: &[&str]) -> LookUp {
    look_up_with("ConfigMap", None, Select::Name(name.into()), fields)
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

struct Store {
    needed: Needed,
    now: Duration,
}

impl Store {
    /// A store whose guests have asked for `data` and an index, and whose list is complete.
    fn new(objects: impl Iterator<Item = Value>) -> Self {
        let mut store = Self { needed: Needed::default(), now: Duration::ZERO };
        store.asks("first", &[by_name("none")]);
        store.wanted();
        store.list(objects);
        store
    }

    fn wanted(&mut self) -> (Wanted, Option<NextRound>) {
        self.needed.wanted(&kind(), BTreeSet::from(["data.hosts[]".into()]), self.now)
    }

    /// After so long a time.
    fn wanted_after(&mut self, milliseconds: u64) -> (Wanted, Option<NextRound>) {
        self.now += Duration::from_millis(milliseconds);
        self.wanted()
    }

    /// The watch of the present round lists these; returns whom that concerns.
    fn list(&mut self, objects: impl Iterator<Item = Value>) -> Vec<String> {
        let list = self.needed.list_begins();
        let mut concerned = BTreeSet::new();
        for object in objects {
            concerned.extend(self.saw_in(object, Some(list)));
        }
        let round = self.round();
        concerned.extend(self.needed.list_ended(&kind(), None, round, list));
        concerned.into_iter().map(|(_, key)| key.name).collect()
    }

    fn of_kind(&self) -> &OfKind {
        &self.needed.kinds[&kind()]
    }

    fn round(&self) -> u32 {
        self.of_kind().round
    }

    /// What the objects are kept with, besides their heads.
    fn fields(&self) -> Vec<&str> {
        self.of_kind().brings.fields.iter().map(String::as_str).collect()
    }

    fn saw_in(&mut self, live: Value, list: Option<u32>) -> BTreeSet<Asker> {
        let shape = self.needed.shape(&kind(), self.round()).unwrap();
        self.needed.saw(&shape, place(&live), shape.reduce(&live, list))
    }

    fn saw(&mut self, live: Value) -> Vec<String> {
        self.saw_in(live, None).into_iter().map(|(_, key)| key.name).collect()
    }

    fn asks(&mut self, name: &str, lookups: &[LookUp]) -> bool {
        self.needed.ask(&asker(name), lookups).unwrap()
    }

    fn find(&self, look: &LookUp) -> Option<Vec<Value>> {
        match self.needed.find(look, &mut Budget::default()) {
            Looked::Found(found) => Some(found.iter().map(|kept| kept.value(look.fields())).collect()),
            Looked::NotYet => None,
            other => panic!("{other:?}"),
        }
    }

    fn ask(&mut self, name: &str, look: LookUp) -> Vec<String> {
        assert!(!self.asks(name, std::slice::from_ref(&look)));
        self.find(&look).unwrap().iter().map(|live| object::name(live).to_owned()).collect()
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
    assert!(store.saw(live("c7", json!({"data": {"k": "w"}, "other": 1}))).is_empty(), "nobody asked for it");
    let gone = store.needed.gone(&kind(), &live("c8", json!({})));
    assert_eq!(gone, BTreeSet::from([asker("r8")]));
    assert_eq!(store.saw(live("c8", json!({}))), ["r8"], "and that it is there again");
    store.needed.forget(&asker("r8"));
    assert!(store.saw(live("c8", json!({"data": {"k": "x"}}))).is_empty());
    assert_eq!(store.needed.size().0, 10_000);
}

#[test]
fn of_a_thousand_roots_with_hosts_of_their_own_none_wakes_another() {
    let hosts = |hosts: Value| json!({"data": {"hosts": hosts}});
    let mut store = Store::new((0..1000).map(|n| live(&format!("c{n}"), hosts(json!([format!("h{n}")])))));
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
    assert_eq!(needed.ask(&asker("r"), std::slice::from_ref(&look)), Ok(false));
    assert_eq!(needed.find(&look, &mut Budget::default()), Looked::Live);
    let (wanted, due) = needed.wanted(&kind, BTreeSet::new(), Duration::ZERO);
    assert!(!wanted.whole && due.is_none(), "nothing of them is ever brought");
    let mut saw = |version: &str| {
        // Its metadata alone.
        let mut live = live("keys", json!({}));
        live["metadata"]["resourceVersion"] = version.into();
        let shape = needed.shape(&kind, wanted.round).unwrap();
        needed.saw(&shape, place(&live), shape.reduce(&live, None))
    };
    assert_eq!(saw("1"), BTreeSet::from([asker("r")]));
    assert!(saw("1").is_empty(), "no news");
    assert_eq!(saw("2"), BTreeSet::from([asker("r")]));
    assert!(saw("1").is_empty(), "older than what is known");
    assert_eq!(needed.gone(&kind, &live("keys", json!({}))), BTreeSet::from([asker("r")]));
}

#[test]
fn what_a_list_no_longer_shows_is_gone() {
    let mut store = Store::new([live("a", json!({})), live("b", json!({}))].into_iter());
    assert_eq!(store.ask("ra", by_name("a")), ["a"]);
    assert_eq!(store.list([live("b", json!({}))].into_iter()), ["ra"]);
    assert!(store.ask("ra", by_name("a")).is_empty());
}

#[test]
fn a_list_is_believed_over_what_was_known_also_where_its_versions_are_lower() {
    let at = |version: &str, value: &str| {
        let mut live = live("a", json!({"data": {"k": value}}));
        live["metadata"]["resourceVersion"] = version.into();
        live
    };
    let mut store = Store::new([at("900", "new")].into_iter());
    store.ask("r", by_name("a"));
    assert!(store.saw(at("800", "old")).is_empty(), "an event that comes late");
    assert_eq!(store.list([at("500", "restored")].into_iter()), ["r"]);
    assert_eq!(store.saw(at("501", "and changed")), ["r"]);
}

// === What is brought ===

#[test]
fn another_field_has_everything_listed_anew_before_it_is_answered_and_keeps_nobody_else_waiting() {
    let a = || live("a", json!({"data": {"k": "v"}, "immutable": true}));
    let mut store = Store::new([a()].into_iter());
    store.wanted_after(1000);
    let round = store.round();
    assert_eq!(store.ask("ra", by_name("a")), ["a"]);
    let more = with_fields("a", &["data", "immutable"]);
    assert!(store.asks("rb", std::slice::from_ref(&more)));
    assert_eq!(store.find(&more), None);
    store.wanted();
    assert!(store.round() > round && store.needed.shape(&kind(), round).is_none());
    assert_eq!(store.find(&more), None, "it is not listed yet");
    assert_eq!(store.ask("ra", by_name("a")), ["a"], "what was known is known");
    assert!(store.list([a()].into_iter()).is_empty(), "nothing that was known has changed");
    let found = store.find(&more).unwrap();
    assert_eq!((&found[0]["data"]["k"], &found[0]["immutable"]), (&json!("v"), &json!(true)));
    let less = store.find(&by_name("a")).unwrap();
    assert!(less[0].get("immutable").is_none(), "it did not ask for that");
}

#[test]
fn a_change_that_only_the_next_list_shows_wakes_who_asked_for_it() {
    let a = |value: &str| live("a", json!({"data": {"k": value}, "immutable": true}));
    let mut store = Store::new([a("v")].into_iter());
    store.ask("ra", by_name("a"));
    store.asks("rb", &[with_fields("a", &["immutable"])]);
    store.wanted_after(1000);
    assert_eq!(store.list([a("w")].into_iter()), ["ra", "rb"], "metadata and all are of one object");
}

#[test]
fn a_kind_is_listed_anew_once_a_second_whatever_is_asked() {
    let mut store = Store::new(std::iter::empty());
    let (mut rounds, mut put_off) = (0, 0);
    // Ten seconds, in which somebody asks for another field every ten milliseconds.
    for turn in 0..1000 {
        let before = store.round();
        store.asks("r", &[with_fields("a", &[&format!("data.k{turn}")])]);
        let (_, due) = store.wanted_after(10);
        put_off += u32::from(due.is_some_and(|due| due.is_put_off));
        rounds += store.round() - before;
        if store.round() == before {
            let after = due.expect("what waits is due").after;
            assert!(after <= RELIST_EVERY, "{after:?}");
        } else {
            store.list(std::iter::empty());
        }
        assert!(store.fields().len() <= 2, "{:?}", store.fields());
    }
    assert_eq!((rounds, put_off), (10, 10));
}

#[test]
fn the_first_who_asks_does_not_wait_for_the_list_that_comes_before() {
    let mut store = Store { needed: Needed::default(), now: Duration::ZERO };
    store.wanted();
    store.asks("r", &[by_name("a")]);
    assert_eq!(store.wanted_after(20).1, None);
    assert_eq!(store.fields(), ["data"]);
}

#[test]
fn what_nobody_asks_for_any_more_is_no_longer_kept() {
    let mut store = Store::new(std::iter::empty());
    store.asks("r", &[with_fields("a", &["data", "immutable"])]);
    store.asks("s", &[with_fields("a", &["immutable", "binaryData"])]);
    store.wanted_after(1000);
    store.list(std::iter::empty());
    assert_eq!(store.fields(), ["binaryData", "data", "immutable"]);
    // One root goes, the other asks for something else.
    store.needed.forget(&asker("s"));
    store.asks("r", &[by_name("a")]);
    let round = store.round();
    let (_, due) = store.wanted_after(1000);
    assert_eq!((store.round(), due), (round, Some(NextRound { after: SPARE_FOR, is_put_off: false })));
    store.wanted_after(59_000);
    assert_eq!(store.round(), round, "roots come and go");
    store.wanted_after(1000);
    assert_eq!((store.round(), store.fields()), (round + 1, vec!["data"]));
    assert_eq!(store.wanted_after(600_000).1, None, "and that is all");
    // With its Reconciler every root of a kind stops asking.
    store.needed.keep_kinds_of_roots(&BTreeSet::new());
    store.wanted();
    store.wanted_after(60_000);
    assert!(store.fields().is_empty() && store.needed.asked.is_empty() && store.of_kind().asked.is_empty());
    // An index that is declared no longer goes too.
    store.needed.wanted(&kind(), BTreeSet::new(), store.now);
    let wanted = store.needed.wanted(&kind(), BTreeSet::new(), store.now + SPARE_FOR).0;
    assert!(!wanted.whole && store.of_kind().brings.paths.is_empty());
}

#[test]
fn roots_that_a_list_no_longer_shows_ask_for_nothing() {
    let mut store = Store::new(std::iter::empty());
    store.ask("r", by_name("a"));
    store.ask("s", by_name("b"));
    store.needed.keep_roots(&asker("r").0, |key| key.name == "r");
    let asking: Vec<&RootKey> = store.needed.asked.values().flat_map(BTreeMap::keys).collect();
    assert_eq!(asking, [&asker("r").1]);
    assert_eq!(store.of_kind().by_name.len(), 1);
}

#[test]
fn the_roots_of_a_kind_may_ask_for_so_many_fields_of_another_and_no_more() {
    let mut store = Store::new([live("a", json!({}))].into_iter());
    store.needed.forget(&asker("first"));
    for n in 0..FIELDS_KEPT_MAX {
        store.asks(&format!("r{n}"), &[with_fields("a", &[&format!("data.k{n}")])]);
    }
    let one_more = [with_fields("a", &["data.more"])];
    assert_eq!(store.needed.ask(&asker("s"), &one_more), Err(kind()));
    assert!(store.saw(live("a", json!({"data": {"more": 1}}))).iter().all(|name| name != "s"));
    store.asks("s", &[with_fields("a", &["data.k7"])]);
    let elsewhere = (Kind::new("y/v1", "Y"), asker("s").1);
    assert_eq!(
        store.needed.ask(&elsewhere, &one_more),
        Ok(true),
        "the roots of other kinds are not concerned"
    );
    store.needed.forget(&asker("r1"));
    assert_eq!(store.needed.ask(&asker("t"), &one_more), Ok(true), "where one goes another may come");
}

#[test]
fn no_more_is_found_than_may_be_shown_however_much_others_ask_for() {
    let large = |name: &str| live(name, json!({"data": {"k": "x".repeat(64 << 10)}}));
    let mut store = Store::new((0..100).map(|n| large(&format!("c{n}"))));
    let everything =
        |fields: &[&str]| look_up_with("ConfigMap", None, Select::Labels(LabelSelector::default()), fields);
    store.asks("r", &[everything(&["data"])]);
    let mut budget = Budget::default();
    assert_eq!(store.needed.find(&everything(&["data"]), &mut budget), Looked::TooMuch);
    // What r asks for makes the answer to s no longer.
    assert_eq!(store.find(&everything(&[])).map(|found| found.len()), Some(100));
    let mut many = Store::new((0..5000).map(|n| live(&format!("c{n}"), json!({}))));
    many.asks("r", &[everything(&[])]);
    let mut budget = Budget::default();
    assert_eq!(many.needed.find(&everything(&[]), &mut budget), Looked::TooMuch);
}

#[test]
fn what_has_no_room_is_known_by_its_name_until_there_is_some() {
    let version = |name: &str, version: &str| {
        let mut live = live(name, json!({"data": {"k": "x".repeat(1_000)}}));
        live["metadata"]["resourceVersion"] = version.into();
        live
    };
    let mut store = Store { needed: Needed::within(3_000), now: Duration::ZERO };
    store.asks("r", &[by_name("c")]);
    store.wanted();
    store.list(["a", "b", "c"].into_iter().map(|name| version(name, "1")));
    assert!(store.of_kind().bytes < 3_000, "{}", store.of_kind().bytes);
    let is_live = |store: &Store, look: LookUp| match store.needed.find(&look, &mut Budget::default()) {
        Looked::Live => true,
        Looked::Found(_) => false,
        other => panic!("{other:?}"),
    };
    assert!(!is_live(&store, by_name("a")) && is_live(&store, by_name("c")));
    assert!(is_live(&store, by_label("any")) && is_live(&store, by_host("any")), "it may be one of them");
    assert_eq!(store.saw(version("c", "2")), ["r"], "it is read for each of its versions");
    assert!(store.saw(version("c", "2")).is_empty() && store.saw(version("c", "1")).is_empty());
    store.wanted_after(1000);
    assert_eq!(store.round(), 1, "there is no room yet");
    store.needed.gone(&kind(), &version("a", "3"));
    store.wanted_after(1000);
    assert_eq!(store.round(), 2);
    store.list([version("b", "1"), version("c", "2")].into_iter());
    assert!(!is_live(&store, by_name("c")) && !is_live(&store, by_label("any")));
    store.wanted_after(1000);
    assert_eq!(store.round(), 2, "nothing is without room");
}

#[test]
fn a_look_up_counts_at_least_what_is_then_shown() {
    let store = Store::new(
        [live("a", json!({"data": {"k": {"deep": ["x", {"y": null}]}, "l": "\u{1f600}\n"}}))].into_iter(),
    );
    let kept = &store.of_kind().objects.values().next().unwrap().kept;
    for fields in [vec![], vec!["data"]] {
        let fields: Vec<String> = fields.into_iter().map(Into::into).collect();
        let shown = serde_json::to_vec(&kept.value(&fields)).unwrap().len();
        let counted = kept.bytes(&fields);
        assert!((shown..shown + 100).contains(&counted), "{counted} for {shown}");
    }
}

#[test]
fn a_watch_brings_metadata_alone_until_somebody_asks_for_more_or_declares_an_index() {
    let mut needed = Needed::default();
    let wanted = |needed: &mut Needed, paths: &[&str], second: u64| {
        let paths = paths.iter().map(|&path| path.into()).collect();
        needed.wanted(&kind(), paths, Duration::from_secs(second)).0
    };
    let first = wanted(&mut needed, &[], 0);
    assert!(!first.whole);
    // The owner references that a guest may ask for come with the metadata.
    needed.ask(&asker("r"), &[with_fields("a", &["metadata.ownerReferences"])]).unwrap();
    assert!(!wanted(&mut needed, &[], 1).whole);
    needed.ask(&asker("r"), &[by_name("a")]).unwrap();
    let second = wanted(&mut needed, &[], 2);
    assert!(second.whole && second.round > first.round, "the look-up asks for data");
    assert_eq!(wanted(&mut needed, &[], 3), second, "and nothing begins anew");
    assert!(wanted(&mut Needed::default(), &["data.hosts[]"], 0).whole);
}

#[test]
fn who_asks_for_something_else_is_no_longer_told_of_what_it_asked_before() {
    let mut store = Store::new([live("a", json!({})), live("b", json!({}))].into_iter());
    store.ask("r", by_name("a"));
    store.ask("r", by_name("b"));
    assert!(store.saw(live("a", json!({"data": {}}))).is_empty());
    assert_eq!(store.saw(live("b", json!({"data": {}}))), ["r"]);
    store.asks("r", &[]);
    store.asks("first", &[]);
    assert!(store.needed.asked.is_empty() && store.of_kind().by_name.is_empty(), "nothing is left of it");
    assert!(store.of_kind().asked.is_empty());
}
