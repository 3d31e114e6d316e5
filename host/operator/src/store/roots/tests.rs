//! Tests of `roots.rs`.

use super::*;
use pintle_api::{ActiveRoots, RootCounts};
use serde_json::json;

fn shop() -> Kind {
    Kind::new("x/v1", "X")
}

fn root(name: &str, uid: &str, version: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "n", "uid": uid, "resourceVersion": version}})
}

/// The end of a pass on what is in force.
fn ended(failing: Option<Cause>) -> PassEnd {
    PassEnd { failing, in_force: true, wrote: false }
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
    roots.list_ended(&kind, mark);
    assert_eq!(roots.of_kind(&kind).count(), 0);
}

#[test]
fn a_root_keeps_its_memory_from_version_to_version_and_what_a_list_shows_holds() {
    let mut roots = Roots::default();
    let (kind, key) = (shop(), RootKey { namespace: Some("n".into()), name: "a".into() });
    roots.saw(&kind, root("a", "u", "900"), None);
    roots.remember(&kind, &key, RootMemory::default(), ended(Some(Cause::new("Broken", "it is broken"))));
    let mark = roots.list_begins();
    assert!(
        roots.saw(&kind, root("a", "u", "500"), Some(mark)),
        "the API server went back to an older state"
    );
    roots.list_ended(&kind, mark);
    assert_eq!(roots.tally(&kind, &Namespaces::All).roots.failing, 1);
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
    roots.remember(&kind, &key, RootMemory::default(), ended(None));
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
        roots.remember(
            &kind,
            &key(name),
            RootMemory::default(),
            ended(Some(Cause::new(reason, "a\nmessage"))),
        );
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
    roots.remember(&kind, &key("a"), RootMemory::default(), ended(None));
    roots.remember(&kind, &key("b"), RootMemory::default(), ended(Some(Cause::new("Rare", ""))));
    roots.remove(&kind, &root("c", "c", "2"));
    let (first, reasons) = failures(&roots, &Namespaces::All);
    assert_eq!(first, ["n/b ", "n/d a message", "n/e a message"]);
    assert_eq!(reasons, [("Common".to_owned(), 2), ("Rare".to_owned(), 1)]);
    for name in ["b", "d", "e"] {
        roots.remember(&kind, &key(name), RootMemory::default(), ended(None));
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
fn that_the_last_root_is_told_is_a_change_of_the_counts() {
    let mut roots = Roots::default();
    let (kind, namespaces) = (shop(), Namespaces::All);
    let mut told = root("a", "a", "1");
    roots.saw(&kind, told.clone(), None);
    assert!(roots.take_counts_changed(&kind) && roots.any_untold(&kind, &namespaces));
    told["metadata"]["resourceVersion"] = "2".into();
    told["status"] =
        json!({"conditions": [{"type": "Ready", "status": "Unknown", "reason": reasons::NOT_RECONCILED}]});
    roots.saw(&kind, told, None);
    assert!(roots.take_counts_changed(&kind) && !roots.any_untold(&kind, &namespaces));
    let mut going = root("b", "b", "3");
    going["metadata"]["deletionTimestamp"] = "2000-01-01T00:00:00Z".into();
    roots.saw(&kind, going, None);
    roots.saw(
        &kind,
        {
            let mut elsewhere = root("c", "c", "4");
            elsewhere["metadata"]["namespace"] = "other".into();
            elsewhere
        },
        None,
    );
    assert!(!roots.any_untold(&kind, &Namespaces::Listed(vec!["n".into()])), "one that goes needs nothing");
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
    assert_eq!(roots.tally(&kind, &Namespaces::All).roots, RootCounts { total: 2, ready: 1, failing: 0 });
    assert_eq!(roots.tally(&kind, &Namespaces::Listed(vec!["other".into()])).roots, RootCounts::default());
    assert!(roots.any_unwatched(&kind, "Secret"));

    roots.saw(&kind, with("a", "2", "True", json!([])), None);
    assert!(!roots.take_counts_changed(&kind), "another version of a ready root is one ready root");
    assert!(!roots.any_unwatched(&kind, "Secret"));
    roots.saw(&kind, with("b", "2", "True", json!([])), None);
    assert!(roots.take_counts_changed(&kind));
    assert_eq!(
        roots.tally(&kind, &Namespaces::Listed(vec!["n".into()])).roots,
        RootCounts { total: 2, ready: 2, failing: 0 }
    );
    roots.remove(&kind, &root("a", "a", "3"));
    roots.remove(&kind, &root("b", "b", "3"));
    assert_eq!(roots.tally(&kind, &Namespaces::All).roots, RootCounts::default());
}

#[test]
fn a_swap_counts_the_roots_that_had_a_pass_since_and_those_that_it_changed_or_broke() {
    let mut roots = Roots::default();
    let (kind, all) = (shop(), Namespaces::All);
    let key = |name: &str| RootKey { namespace: Some("n".into()), name: name.into() };
    let broken = || Some(Cause::new("Broken", ""));
    for name in ["same", "changed", "breaks", "broken"] {
        roots.saw(&kind, root(name, name, "1"), None);
        let failing = if name == "broken" { broken() } else { None };
        roots.remember(&kind, &key(name), RootMemory::default(), ended(failing));
    }
    roots.swapped(&kind);
    assert_eq!(roots.tally(&kind, &all).active, ActiveRoots::default(), "no pass has ended since");
    let late = PassEnd { failing: None, in_force: false, wrote: true };
    roots.remember(&kind, &key("same"), RootMemory::default(), late);
    assert_eq!(roots.tally(&kind, &all).active, ActiveRoots::default(), "a pass on the module before");
    roots.remember(&kind, &key("same"), RootMemory::default(), ended(None));
    roots.remember(&kind, &key("changed"), RootMemory::default(), PassEnd { wrote: true, ..ended(None) });
    roots.remember(&kind, &key("breaks"), RootMemory::default(), ended(broken()));
    roots.remember(&kind, &key("broken"), RootMemory::default(), ended(broken()));
    let swapped = ActiveRoots { reconciled: 4, changed: 1, failing: 2, newly_failing: 1 };
    assert_eq!(roots.tally(&kind, &all).active, swapped);
    assert!(roots.saw(&kind, root("changed", "changed", "2"), None), "an event keeps what is known");
    roots.saw(&kind, root("new", "new", "1"), None);
    roots.remember(&kind, &key("new"), RootMemory::default(), PassEnd { wrote: true, ..ended(broken()) });
    let with_new = ActiveRoots { reconciled: 5, failing: 3, ..swapped };
    assert_eq!(
        roots.tally(&kind, &all).active,
        with_new,
        "a new root was neither changed nor broken by the swap"
    );
    assert_eq!(roots.tally(&kind, &Namespaces::Listed(vec!["n".into()])).active, with_new);
    roots.forget_memories();
    assert_eq!(
        roots.tally(&kind, &all).active,
        ActiveRoots::default(),
        "another host may have swapped since"
    );
}

#[test]
fn a_root_that_a_swap_broke_counts_as_newly_failing_until_a_pass_mends_it() {
    let mut roots = Roots::default();
    let kind = shop();
    let key = |name: &str| RootKey { namespace: Some("n".into()), name: name.into() };
    for name in ["broken", "edited"] {
        roots.saw(&kind, root(name, name, "1"), None);
    }
    let pass = |roots: &mut Roots, name: &str, fails: bool| {
        let failing = fails.then(|| Cause::new("Broken", ""));
        roots.remember(&kind, &key(name), RootMemory::default(), ended(failing));
        let active = roots.tally(&kind, &Namespaces::All).active;
        (active.failing, active.newly_failing)
    };
    for name in ["broken", "edited"] {
        pass(&mut roots, name, false);
    }
    roots.swapped(&kind);
    assert_eq!(pass(&mut roots, "broken", true), (1, 1));
    pass(&mut roots, "edited", false);
    // Somebody edits it, and it fails for that.
    pass(&mut roots, "edited", true);
    for _ in 0..2 {
        // Two more bad ones, with no pass between them: what the first has not judged is still broken by the one before.
        roots.swapped(&kind);
        roots.swapped(&kind);
        pass(&mut roots, "broken", true);
        assert_eq!(pass(&mut roots, "edited", true), (2, 1));
    }
    roots.swapped(&kind);
    pass(&mut roots, "broken", false);
    assert_eq!(pass(&mut roots, "edited", true), (1, 0));
}

#[test]
fn a_root_is_kept_within_the_limits_of_one_and_of_all() {
    let mut roots = Roots::within(RootLimits { each: 400, all: 600 });
    let kind = shop();
    let sized = |name: &str, bytes: usize| {
        let mut root = root(name, name, "7");
        root["spec"] = "x".repeat(bytes).into();
        root
    };
    let key = |name: &str| RootKey { namespace: Some("n".into()), name: name.into() };
    let retries = |roots: &Roots, name: &str| {
        let unkept = roots.unkept(&kind, &key(name))?;
        Some(unkept.refusal.map(|refusal| refusal.retry))
    };
    for (name, bytes) in [("a", 200), ("b", 200), ("c", 200), ("d", 400)] {
        assert!(roots.saw(&kind, sized(name, bytes), None), "{name}");
    }
    let told = ["a", "b", "c", "d"].map(|name| retries(&roots, name));
    assert_eq!(told, [None, None, Some(Some(true)), Some(Some(false))]);
    assert!(!roots.saw(&kind, sized("c", 200), None), "there is still no room");
    assert!(roots.has(&kind, &key("d")) && roots.by_uid(&Uid::new("d")).is_some());
    roots.remove(&kind, &sized("a", 200));
    assert_eq!(retries(&roots, "c"), Some(None), "there is room");
    assert!(roots.saw(&kind, sized("c", 200), None));
    assert_eq!(retries(&roots, "c"), None);
    let mut smaller = sized("d", 20);
    smaller["metadata"]["resourceVersion"] = "8".into();
    roots.remove(&kind, &sized("b", 200));
    assert!(roots.saw(&kind, smaller, None));
    assert_eq!(retries(&roots, "d"), None);
}

#[test]
fn what_a_root_that_is_not_kept_has_to_say_is_the_same_when_its_status_says_it() {
    let kind = shop();
    let key = RootKey { namespace: Some("n".into()), name: "a".into() };
    for limits in [RootLimits { each: 10, all: 1 << 20 }, RootLimits { each: 1 << 20, all: 10 }] {
        let mut roots = Roots::within(limits);
        let said = |roots: &Roots| roots.unkept(&kind, &key).and_then(|unkept| unkept.refusal);
        roots.saw(&kind, root("a", "u", "7"), None);
        let first = said(&roots);
        assert!(first.is_some(), "{limits:?}");
        let mut written = root("a", "u", "8");
        written["status"] = "x".repeat(2 << 10).into();
        assert!(roots.wrote(&kind, written));
        assert_eq!(said(&roots), first);
    }
}
