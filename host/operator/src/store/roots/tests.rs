//! Tests of `roots.rs`.

use super::*;
use serde_json::json;

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
    roots.remember(&kind, &key, RootMemory::default(), Some(Cause::new("Broken", "it is broken")));
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
fn whether_a_listed_root_fails_is_not_known_before_its_first_pass() {
    let mut roots = Roots::default();
    let (kind, key) = (shop(), RootKey { namespace: Some("n".into()), name: "a".into() });
    let mark = roots.list_begins();
    roots.saw(&kind, root("a", "u", "1"), Some(mark));
    roots.saw(&kind, root("came by watch", "v", "2"), None);
    let elsewhere = Namespaces::Listed(vec!["other".into()]);
    assert!(roots.any_unjudged(&kind, &Namespaces::All) && !roots.any_unjudged(&kind, &elsewhere));
    roots.remember(&kind, &key, RootMemory::default(), None);
    assert!(!roots.any_unjudged(&kind, &Namespaces::All));
    assert!(roots.take_counts_changed(&kind));
}

#[test]
fn the_first_roots_that_fail_are_known_and_how_many_for_each_reason() {
    let mut roots = Roots::default();
    let kind = shop();
    let key = |name: &str| RootKey { namespace: Some("n".into()), name: name.into() };
    for name in ["e", "d", "c", "b", "a"] {
        roots.saw(&kind, root(name, name, "1"), None);
        let reason = if name == "a" { "Rare" } else { "Common" };
        roots.remember(&kind, &key(name), RootMemory::default(), Some(Cause::new(reason, "a\nmessage")));
    }
    let failures = |roots: &Roots, namespaces: &Namespaces| {
        let failures = roots.failures(&kind, namespaces);
        let first: Vec<String> =
            failures.first.iter().map(|(key, cause)| format!("{key} {}", cause.message)).collect();
        let reasons: Vec<(String, u32)> =
            failures.reasons.iter().map(|(reason, count)| (reason.to_string(), *count)).collect();
        (first, reasons)
    };
    let (first, reasons) = failures(&roots, &Namespaces::All);
    assert_eq!(first, ["n/a a message", "n/b a message", "n/c a message"]);
    assert_eq!(reasons, [("Common".to_owned(), 4), ("Rare".to_owned(), 1)]);
    assert_eq!(failures(&roots, &Namespaces::Listed(vec!["other".into()])), (vec![], vec![]));
    // One is well again, one fails for another reason, one is gone.
    roots.remember(&kind, &key("a"), RootMemory::default(), None);
    roots.remember(&kind, &key("b"), RootMemory::default(), Some(Cause::new("Rare", "")));
    roots.remove(&kind, &root("c", "c", "2"));
    let (first, reasons) = failures(&roots, &Namespaces::All);
    assert_eq!(first, ["n/b ", "n/d a message", "n/e a message"]);
    assert_eq!(reasons, [("Common".to_owned(), 2), ("Rare".to_owned(), 1)]);
    for name in ["b", "d", "e"] {
        roots.remember(&kind, &key(name), RootMemory::default(), None);
    }
    assert_eq!(failures(&roots, &Namespaces::All), (vec![], vec![]));
}

#[test]
fn that_the_last_finalizer_is_off_is_a_change_of_the_counts() {
    let mut roots = Roots::default();
    let kind = shop();
    let with = |version: &str, finalizers: Value| {
        let mut root = root("a", "a", version);
        root["metadata"]["finalizers"] = finalizers;
        root
    };
    roots.saw(&kind, with("1", json!(["example.com/theirs", names::FINALIZER_GUEST])), None);
    assert!(roots.take_counts_changed(&kind) && roots.any_held(&kind));
    roots.saw(&kind, with("2", json!(["example.com/theirs"])), None);
    assert!(roots.take_counts_changed(&kind) && !roots.any_held(&kind));
}

#[test]
fn counts_follow_each_root_and_change_only_with_them() {
    let mut roots = Roots::default();
    let kind = shop();
    let with = |name: &str, version: &str, ready: &str, unwatched: Value| {
        let mut root = root(name, name, version);
        root["status"] =
            json!({"conditions": [{"type": "Ready", "status": ready}], "pintle": {"unwatched": unwatched}});
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
