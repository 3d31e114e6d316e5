//! Tests of `children.rs`.

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
    assert!(children.gone(&child("a", "5", "u", "r").reference, Some(&child("a", "5", "u", "r"))).is_empty());
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
fn a_child_that_a_write_shows_without_our_label_is_not_kept() {
    let mut children = Children::default();
    children.wrote(child("a", "1", "u", "r"));
    children.wrote(Observed { reconciler_label: None, ..child("a", "2", "u", "r") });
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
