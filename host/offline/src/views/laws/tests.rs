use pintle_wit::{
    Kind,
    views::{Shown as ShownKind, ViewManifest},
};
use serde_json::json;

use super::*;

type Stored = Result<Value, Unanswered>;

/// A guest that is two functions.
struct Guest<Show, Store> {
    show: Show,
    store: Store,
}

impl<Show, Store> Functions for Guest<Show, Store>
where
    Show: Fn(&[Value]) -> Vec<ShowItem>,
    Store: Fn(&Value, Option<&Value>) -> Stored,
{
    fn show(&self, objects: &[Value]) -> Result<Shown, Unanswered> {
        let items = (self.show)(objects);
        let text = serde_json::to_string(&items).unwrap();
        Ok(Shown { items, text })
    }

    fn store(&self, written: &Value, current: Option<&Value>) -> Result<Map<String, Value>, Unanswered> {
        (self.store)(written, current).map(|stored| stored.as_object().cloned().unwrap())
    }
}

fn item(fields: Value) -> ShowItem {
    ShowItem::Object(fields.as_object().cloned().unwrap())
}

fn failure() -> ShowItem {
    ShowItem::Failure(Failure::terminal("Odd", "no").at("spec"))
}

/// A view of Records that shows their weight, and whose writes set it. A token is written and never shown.
fn manifest() -> ViewManifest {
    let mut shown = ShownKind::new("example.com/v1", "Llama", "llamas");
    shown.schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "weight": {"type": "number", "default": 1},
            "token": {"type": "string", "nullable": true, "writeOnly": true},
        }},
        "status": {"type": "object", "properties": {"seen": {"type": "boolean"}}},
    }});
    let backing = Kind::new("store.example.com/v1", "Record");
    ViewManifest {
        prefix: "the-".into(),
        ..ViewManifest::new(backing, &["spec"], shown).writing(&["spec.weight"])
    }
}

fn record(weight: Value) -> Value {
    json!({"apiVersion": "store.example.com/v1", "kind": "Record", "metadata": {"name": "dolly"},
        "spec": {"weight": weight, "owner": "me"}})
}

fn llama(spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Llama", "metadata": {"name": "the-dolly"}, "spec": spec})
}

type Honest = Guest<fn(&[Value]) -> Vec<ShowItem>, fn(&Value, Option<&Value>) -> Stored>;

fn honest() -> Honest {
    Guest {
        show: |objects: &[Value]| {
            let show = |object: &Value| {
                item(json!({"spec": {"weight": object["spec"]["weight"]}, "status": {"seen": true}}))
            };
            objects.iter().map(show).collect()
        },
        store: |written: &Value, _: Option<&Value>| {
            Ok(json!({"spec": {"weight": written["spec"]["weight"], "owner": "you"}}))
        },
    }
}

/// Tries the laws of showing on two records, as a search does.
fn showing<Show: Fn(&[Value]) -> Vec<ShowItem>>(show: Show) -> Result<(), Law> {
    let manifest = manifest();
    let view = View::new(&manifest, &[]).unwrap();
    let guest = Guest { show, store: honest().store };
    let objects = [record(json!(1)), record(json!(2.5))];
    let tried = answers(&guest, &objects).and_then(|items| {
        objects
            .iter()
            .zip(&items)
            .try_for_each(|(object, item)| kept(&view, &guest, object, total(object, item)?))
    });
    tried.map_err(|broken| broken.law)
}

fn storing<Store>(store: Store, current: Option<Value>) -> Result<bool, Broken>
where
    Store: Fn(&Value, Option<&Value>) -> Stored,
{
    let manifest = manifest();
    let view = View::new(&manifest, &[]).unwrap();
    let guest = Guest { show: honest().show, store };
    written(&view, &guest, &llama(json!({"weight": 7, "token": "secret"})), current.as_ref())
}

#[test]
fn an_honest_view_keeps_every_law() {
    assert_eq!(showing(honest().show), Ok(()));
    assert_eq!(storing(honest().store, None), Ok(true));
    assert_eq!(storing(honest().store, Some(record(json!(3)))), Ok(true));
}

#[test]
fn an_object_that_is_not_shown_breaks_totality() {
    assert_eq!(showing(|objects| objects.iter().map(|_| failure()).collect()), Err(Law::Total));
}

#[test]
fn a_field_that_the_schema_does_not_have_or_of_another_type_does_not_fit() {
    let constant =
        |fields: Value| showing(move |objects| objects.iter().map(|_| item(fields.clone())).collect());
    assert_eq!(constant(json!({"spec": {"wait": 1}})), Err(Law::Fitting));
    assert_eq!(constant(json!({"spec": {"weight": "1"}})), Err(Law::Fitting));
}

#[test]
fn a_guest_that_counts_its_calls_is_not_deterministic() {
    let calls = std::cell::Cell::new(0);
    let counting = |objects: &[Value]| {
        calls.set(calls.get() + 1);
        objects.iter().map(|_| item(json!({"spec": {"weight": calls.get()}}))).collect()
    };
    assert_eq!(showing(counting), Err(Law::Deterministic));
}

#[test]
fn what_depends_on_the_others_or_on_the_place_is_found() {
    let of_count = |objects: &[Value]| vec![item(json!({"spec": {"weight": objects.len()}})); objects.len()];
    assert_eq!(showing(of_count), Err(Law::Independent));
    let of_place = |objects: &[Value]| {
        (0..objects.len()).map(|place| item(json!({"spec": {"weight": place}}))).collect::<Vec<_>>()
    };
    assert_eq!(showing(of_place), Err(Law::Independent));
}

#[test]
fn a_number_that_is_shown_or_stored_as_its_neighbour_is_told_with_both() {
    let manifest = manifest();
    let view = View::new(&manifest, &[]).unwrap();
    let exact = 254.628_595_660_358_34;
    let beside = json!(254.628_595_660_358_31);
    let shown = json!({"spec": {"weight": beside}});
    let broken = kept(&view, &honest(), &record(json!(exact)), shown.as_object().unwrap()).unwrap_err();
    let message =
        "spec.weight: 254.62859566035831 is not the number 254.62859566035834 that the guest was given";
    assert_eq!((broken.law, broken.message.as_str()), (Law::Exact, message));
    assert_eq!(broken.failure().reason, "NumberChanged");
    let store = |_: &Value, _: Option<&Value>| Ok(json!({"spec": {"weight": beside}}));
    let guest = Guest { show: honest().show, store };
    let broken = written(&view, &guest, &llama(json!({"weight": exact})), None).unwrap_err();
    assert_eq!((broken.law, broken.message.as_str()), (Law::Exact, message));
}

#[test]
fn a_view_that_rounds_does_not_keep_what_it_shows() {
    let rounding = |objects: &[Value]| {
        let weight = |object: &Value| object["spec"]["weight"].as_f64().unwrap().round();
        objects.iter().map(|object| item(json!({"spec": {"weight": weight(object)}}))).collect::<Vec<_>>()
    };
    assert_eq!(showing(rounding), Err(Law::Kept));
}

#[test]
fn what_is_stored_outside_of_the_declared_paths_is_not_taken() {
    // The honest guest stores another owner with each write: the record keeps its own.
    let manifest = manifest();
    let view = View::new(&manifest, &[]).unwrap();
    let current = record(json!(1));
    let shown = json!({"spec": {"weight": 1}});
    assert_eq!(kept(&view, &honest(), &current, shown.as_object().unwrap()), Ok(()));
}

#[test]
fn a_view_that_forgets_what_was_written_is_told_with_what_it_shows_instead() {
    let forgets = |_: &Value, _: Option<&Value>| Ok(json!({"spec": {"weight": 3}}));
    let broken = storing(forgets, None).unwrap_err();
    assert_eq!(broken.law, Law::Written);
    assert_eq!(broken.message, "spec.weight: 7 -> 3");
    assert_eq!(broken.failure().reason, "NotALens");
    let Example { backing, written, stored, shown } = *broken.example;
    assert_eq!(backing[0]["metadata"]["name"], "dolly", "the prefix is taken off");
    assert_eq!(written.unwrap()["spec"]["weight"], 7);
    assert_eq!(stored, Some(json!({"spec": {"weight": 3}})));
    assert_eq!(shown.unwrap()["spec"]["weight"], 3);
}

#[test]
fn a_default_of_the_view_is_what_was_written() {
    // Nothing is stored, so that nothing is shown: 1 is the default.
    let manifest = manifest();
    let view = View::new(&manifest, &[]).unwrap();
    let guest = Guest {
        show: |objects: &[Value]| vec![item(json!({"spec": {}})); objects.len()],
        store: |_: &Value, _: Option<&Value>| Ok(json!({})),
    };
    assert_eq!(written(&view, &guest, &llama(json!({"weight": 1})), None), Ok(true));
}

#[test]
fn a_write_that_the_guest_refuses_breaks_no_law_and_a_guest_that_breaks_does() {
    let refuses = |blame| {
        move |_: &Value, _: Option<&Value>| {
            Err(Unanswered { blame, failure: Failure::terminal("TooHeavy", "no llama weighs that") })
        }
    };
    assert_eq!(storing(refuses(Blame::Guest), None), Ok(false));
    assert_eq!(storing(refuses(Blame::Engine), None).unwrap_err().law, Law::Answered);
}

#[test]
fn a_guest_that_refuses_to_store_what_it_shows_does_not_keep_it() {
    let manifest = manifest();
    let view = View::new(&manifest, &[]).unwrap();
    let refuse = |_: &Value, _: Option<&Value>| {
        Err(Unanswered {
            blame: Blame::Guest,
            failure: Failure::terminal("TooHeavy", "no llama weighs that"),
        })
    };
    let guest = Guest { show: honest().show, store: refuse };
    let shown = json!({"spec": {"weight": 1}});
    let broken = kept(&view, &guest, &record(json!(1)), shown.as_object().unwrap()).unwrap_err();
    assert_eq!(broken.law, Law::Kept);
    assert!(broken.message.contains("no llama weighs that"), "{}", broken.message);
}

/// A view of Records as documents: a weight, a key that is written and never shown, and what is shown and never written.
fn documents() -> ViewManifest {
    let backing = Kind::new("store.example.com/v1", "Record");
    let mut manifest =
        ViewManifest::of_documents(backing, &["spec"], &[("", "spec")]).writing(&["spec.weight", "spec.key"]);
    manifest.name = "records".into();
    *manifest.schema_mut().unwrap() = json!({"type": "object", "properties": {
        "weight": {"type": "number", "default": 1},
        "key": {"type": "string", "nullable": true, "writeOnly": true},
        "seen": {"type": "boolean", "readOnly": true},
    }});
    manifest
}

fn locked() -> Value {
    let mut record = record(json!(3));
    record["spec"]["key"] = json!("secret");
    record
}

fn of_documents<Store>(store: Store) -> (Result<(), Law>, Result<bool, Law>)
where
    Store: Fn(&Value, Option<&Value>) -> Stored,
{
    let manifest = documents();
    let view = View::new(&manifest, &[]).unwrap();
    let show = |objects: &[Value]| {
        let show = |object: &Value| item(json!({"weight": object["spec"]["weight"], "seen": true}));
        objects.iter().map(show).collect()
    };
    let store = |written: &Value, current: Option<&Value>| store(&view.asked(written).unwrap(), current);
    let guest = Guest { show, store };
    let shown = json!({"weight": 3, "seen": true});
    let is_kept = kept(&view, &guest, &locked(), shown.as_object().unwrap());
    let document = json!({"name": "dolly", "weight": 7, "key": null, "seen": false});
    let is_written = written(&view, &guest, &document, Some(&locked()));
    (is_kept.map_err(|broken| broken.law), is_written.map_err(|broken| broken.law))
}

#[test]
fn a_view_of_documents_keeps_the_laws_if_a_key_that_is_left_out_stays() {
    let weight = |written: &Value| {
        assert!(written.get("seen").is_none() && written.get("name").is_none(), "{written}");
        written["weight"].clone()
    };
    let honest = |written: &Value, current: Option<&Value>| {
        let key = match written.get("key") {
            Some(key) => key.clone(),
            None => current.map(|current| current["spec"]["key"].clone()).unwrap_or_default(),
        };
        Ok(json!({"spec": {"weight": weight(written), "key": key}}))
    };
    assert_eq!(of_documents(honest), (Ok(()), Ok(true)));
    let forgetful = |written: &Value, _: Option<&Value>| {
        Ok(json!({"spec": {"weight": weight(written), "key": written.get("key").cloned()}}))
    };
    assert_eq!(of_documents(forgetful).0, Err(Law::Kept));
    let deaf = |_: &Value, _: Option<&Value>| Ok(json!({"spec": {"weight": 3, "key": "secret"}}));
    assert_eq!(of_documents(deaf).1, Err(Law::Written));
}
