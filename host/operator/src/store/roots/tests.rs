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
fn whether_a_listed_root_fails_is_not_known_before_its_first_pass() {
    let mut roots = Roots::default();
    let (kind, key) = (shop(), RootKey { namespace: Some("n".into()), name: "a".into() });
    let mark = roots.list_begins();
    roots.saw(&kind, root("a", "u", "1"), Some(mark));
    roots.saw(&kind, root("came by watch", "v", "2"), None);
    let elsewhere = Namespaces::Listed(vec!["other".into()]);
    assert!(roots.any_unjudged(&kind, &Namespaces::All) && !roots.any_unjudged(&kind, &elsewhere));
    roots.remember(&kind, &key, RootMemory::default(), false);
    assert!(!roots.any_unjudged(&kind, &Namespaces::All));
    assert!(roots.take_counts_changed(&kind));
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
