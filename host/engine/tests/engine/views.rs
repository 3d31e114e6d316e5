//! What the engine says of guests that serve views.

use pintle_engine::{CallLimits, Meter, Origin, Views, fixtures, fixtures::views::Outcome};
use pintle_wit::{Limits, reasons, views::ShowItem};
use serde_json::json;

use crate::support::{EMPTY_RESPONSE, engine, load, long_limits, manifest, refused};

const TWO: &str = r#"{"apiVersion":"guest.pintle.dev/v1","items":[{"object":{"spec":{"size":1}}},{"failure":{"apiVersion":"guest.pintle.dev/v1","reason":"Odd","message":"it has no size"}}]}"#;
const STORED: &str = r#"{"apiVersion":"guest.pintle.dev/v1","object":{"data":{"size":"1"}}}"#;
const REQUEST: &str = r#"{"apiVersion":"guest.pintle.dev/v1","view":"things","objects":[{},{}]}"#;

fn described() -> String {
    fixtures::views::manifest("fixture")
}

fn views(show: Outcome<'_>, store: Outcome<'_>) -> Views {
    load(&engine(Meter::Deadline), &fixtures::views::serves(&described(), show, store)).views().unwrap()
}

/// What the engine says of `show`.
fn shown(show: Outcome<'_>, limits: &CallLimits) -> (Origin, String, Option<String>) {
    let error = views(show, Outcome::Trap).show("things", REQUEST, 2, limits).unwrap_err();
    (error.origin, error.failure.reason, error.failure.path)
}

#[test]
fn a_module_that_serves_views_says_which_and_reconciles_nothing() {
    let bytes = fixtures::views::serves(&described(), Outcome::Answer(TWO), Outcome::Answer(STORED));
    let module = load(&engine(Meter::Deadline), &bytes);
    assert!(module.guest().is_none());
    assert_eq!(module.interfaces(), ["pintle:guest/views@0.1.0"]);
    assert_eq!((module.name(), module.version()), ("fixture", "0.1.0"));
    let views = module.views().unwrap();
    assert_eq!(views.digest(), module.digest());
    assert_eq!(views.manifest_text(), described());
    assert_eq!(views.manifest().views[0].shown.as_ref().unwrap().plural, "things");
    assert_eq!(views.describe(&long_limits()).unwrap().0, described());
}

#[test]
fn a_module_that_does_both_is_one_module_with_two_parts() {
    let bytes = fixtures::views::does_both(&manifest(), EMPTY_RESPONSE, &described(), TWO, STORED);
    let engine = engine(Meter::Fuel);
    let module = load(&engine, &bytes);
    assert_eq!(module.interfaces(), ["pintle:guest/guest@0.1.0", "pintle:guest/views@0.1.0"]);
    let (guest, views, digest) = (module.guest().unwrap(), module.views().unwrap(), module.digest());
    drop(module);
    assert_eq!(guest.reconcile("{}", &long_limits()).unwrap().text, EMPTY_RESPONSE);
    drop(guest);
    assert!(engine.loaded(&digest).is_some(), "each part keeps the module");
    assert_eq!(views.show("things", REQUEST, 2, &long_limits()).unwrap().text, TWO);
    drop(views);
    assert!(engine.loaded(&digest).is_none());
}

#[test]
fn the_two_manifests_of_a_guest_must_have_one_name_and_one_version() {
    let both = |views: &str| fixtures::views::does_both(&manifest(), EMPTY_RESPONSE, views, TWO, STORED);
    let failure = refused(&both(&fixtures::views::manifest("other")));
    assert_eq!((failure.reason.as_str(), failure.path.as_deref()), (reasons::INVALID_DOCUMENT, Some("name")));
    assert_eq!(
        failure.message,
        "describe says that the name is `fixture`, and describe-views that it is `other`"
    );
    let failure = refused(&both(&described().replace("0.1.0", "0.2.0")));
    assert_eq!(failure.path.as_deref(), Some("version"));
}

#[test]
fn a_manifest_of_views_that_cannot_be_read_is_the_fault_of_describe_views() {
    let serves = |manifest: &str| refused(&fixtures::views::serves(manifest, Outcome::Trap, Outcome::Trap));
    let failure = serves(&described().replace("thing-", "Thing-"));
    assert_eq!(failure.reason, reasons::INVALID_DOCUMENT);
    assert_eq!(failure.path.as_deref(), Some("views[0].prefix"));
    assert!(failure.message.starts_with("describe-views: "), "{failure}");
    assert_eq!(serves(&described().replace("prefix", "prefiks")).reason, reasons::UNKNOWN_FIELD);
}

#[test]
fn a_function_of_views_that_is_missing_or_of_another_type_is_named() {
    let failure = refused(&fixtures::views::without_store(&described()));
    assert_eq!(failure.reason, reasons::MISSING_EXPORT);
    assert!(failure.message.contains("pintle:guest/views@0.1.0#store"), "{failure}");
    let failure = refused(&fixtures::views::wrong_type(&described()));
    assert_eq!(failure.reason, reasons::WRONG_TYPE);
    assert_eq!(
        failure.message,
        "pintle:guest/views@0.1.0#show is func() -> string, and must be func(string) -> result<string, string>"
    );
}

#[test]
fn an_object_that_cannot_be_shown_does_not_hide_the_others() {
    let answer =
        views(Outcome::Answer(TWO), Outcome::Trap).show("things", REQUEST, 2, &long_limits()).unwrap();
    let [ShowItem::Object(shown), ShowItem::Failure(failure)] = answer.response.items.as_slice() else {
        panic!("{:?}", answer.response)
    };
    assert_eq!(shown["spec"], json!({"size": 1}));
    assert_eq!((failure.reason.as_str(), failure.message.as_str()), ("Odd", "it has no size"));
    assert!(answer.stats.parsed_bytes > 0 && answer.stats.response_bytes == TWO.len());
}

#[test]
fn an_answer_that_has_not_one_item_for_each_object_is_refused_whole() {
    let views = views(Outcome::Answer(TWO), Outcome::Trap);
    for objects in [0, 1, 3] {
        let error = views.show("things", REQUEST, objects, &long_limits()).unwrap_err();
        assert_eq!((error.origin, error.failure.path.as_deref()), (Origin::Engine, Some("items")));
        assert_eq!(
            error.failure.message,
            format!("there must be one item for each object: 2 items, {objects} objects")
        );
    }
}

#[test]
fn an_answer_with_a_field_that_is_the_hosts_is_refused_whole() {
    let invalid = (Origin::Engine, reasons::INVALID_DOCUMENT.into(), Some("items[0].object.kind".into()));
    let answer = TWO.replace("spec", "kind");
    assert_eq!(shown(Outcome::Answer(&answer), &long_limits()), invalid);
}

#[test]
fn the_failure_of_an_item_has_a_reason_that_a_condition_takes() {
    let odd = TWO.replace("Odd", "not a word");
    let invalid = (Origin::Engine, reasons::INVALID_DOCUMENT.into(), Some("items[1].failure.reason".into()));
    assert_eq!(shown(Outcome::Answer(&odd), &long_limits()), invalid);
    let long = TWO.replace("it has no size", &"x".repeat(2000));
    let answer = views(Outcome::Answer(&long), Outcome::Trap).show("things", REQUEST, 2, &long_limits());
    let Some(ShowItem::Failure(failure)) = answer.unwrap().response.items.pop() else { panic!("no failure") };
    assert_eq!(failure.message.len(), 1024, "a long message is cut");
}

#[test]
fn a_guest_that_breaks_in_show_is_told_apart_from_one_that_refuses() {
    let limits = long_limits();
    assert_eq!(shown(Outcome::Trap, &limits), (Origin::Engine, reasons::TRAP.into(), None));
    assert_eq!(
        shown(Outcome::Loop, &CallLimits::default()),
        (Origin::Engine, reasons::DEADLINE.into(), None)
    );
    let text = r#"{"apiVersion":"guest.pintle.dev/v1","reason":"NoSuchView","message":"m","path":"view"}"#;
    let refuses = (Origin::Guest, "NoSuchView".to_owned(), Some("view".to_owned()));
    assert_eq!(shown(Outcome::Failure(text), &limits), refuses);
}

#[test]
fn what_is_shown_is_held_to_the_limits_of_the_call() {
    let limits = |response: Limits| CallLimits { response, ..long_limits() };
    let fits = Limits::of_bytes(TWO.len());
    assert!(views(Outcome::Answer(TWO), Outcome::Trap).show("things", REQUEST, 2, &limits(fits)).is_ok());
    for (limit, reason) in [
        (Limits { bytes: TWO.len() - 1, ..fits }, reasons::TOO_LARGE),
        (Limits { depth: 3, ..fits }, reasons::TOO_DEEP),
        (Limits { values: 5, ..fits }, reasons::TOO_COMPLEX),
        (Limits { parsed_bytes: 100, ..fits }, reasons::BEYOND_GRANT),
    ] {
        assert_eq!(shown(Outcome::Answer(TWO), &limits(limit)).1, reason);
    }
}

#[test]
fn what_is_stored_is_an_object_or_the_reason_why_it_is_refused() {
    let store = |outcome| views(Outcome::Trap, outcome).store("{}", &long_limits());
    let answer = store(Outcome::Answer(STORED)).unwrap();
    assert_eq!(answer.response.object["data"], json!({"size": "1"}));
    let text =
        r#"{"apiVersion":"guest.pintle.dev/v1","reason":"Invalid","message":"too small","path":"spec.size"}"#;
    let error = store(Outcome::Failure(text)).unwrap_err();
    assert_eq!((error.origin, error.failure.path.as_deref()), (Origin::Guest, Some("spec.size")));
    let error = store(Outcome::Answer(r#"{"apiVersion":"guest.pintle.dev/v1","object":[]}"#)).unwrap_err();
    assert_eq!((error.origin, error.failure.reason.as_str()), (Origin::Engine, reasons::INVALID_DOCUMENT));
}
