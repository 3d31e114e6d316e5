//! Whose an object is: never adopted silently, never taken from another.

use pintle_core::ApiError;
use serde_json::{Value, json};

use crate::pass::{
    api::{Fault, error},
    world::{World, absent, answer, config_map, deployment, no, reference, secret},
};

/// An object of somebody else, under the name of a child, with other fields.
fn foreign(kind: &str, name: &str) -> Value {
    let api_version = reference(kind, name).api_version;
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "shops", "uid": "theirs"},
        "data": {"theirs": "x"}})
}

fn two() -> pintle_wit::Response {
    answer(vec![config_map("page", "a"), config_map("other", "a")])
}

#[test]
fn an_object_is_adopted_only_with_the_annotation_of_this_root() {
    let another = json!([{"uid": "another", "controller": true}]);
    for (annotations, owners, adopted) in [
        (json!({"pintle.dev/adopt": "shop-uid"}), json!([]), true),
        (json!({"pintle.dev/adopt": "another-uid"}), json!([]), false),
        (json!({"pintle.dev/adopt": ""}), json!([]), false),
        (json!({"adopt": "shop-uid"}), json!([]), false),
        (json!({"pintle.dev/adopt": "shop-uid"}), another, false),
    ] {
        let mut world = World::new();
        let mut theirs = foreign("ConfigMap", "page");
        theirs["metadata"]["annotations"] = annotations.clone();
        theirs["metadata"]["ownerReferences"] = owners.clone();
        let page = world.api.create(theirs);
        let before = world.api.objects[&page].clone();
        let run = world.pass(&two());
        let live = &world.api.objects[&page];
        let owned = live["metadata"]["ownerReferences"][0]["uid"] == "shop-uid";
        assert_eq!((owned, run.done.ready), (adopted, adopted), "{annotations} {owners}");
        assert_eq!(live["metadata"]["uid"], "theirs", "adopted, not replaced");
        assert!(adopted || (*live == before && world.says("Ready") == no("AdoptionConflict")), "{live}");
    }
}

#[test]
fn a_conflict_names_the_controller_by_kind_and_name_even_if_the_object_claims_this_root() {
    let said = |label: &str, owner: Value| {
        let mut world = World::new();
        let mut theirs = foreign("ConfigMap", "page");
        theirs["metadata"]["labels"] = json!({"pintle.dev/root": label, "pintle.dev/reconciler": "shop"});
        theirs["metadata"]["ownerReferences"] = json!([owner]);
        world.api.create(theirs);
        world.pass(&two());
        world.message("Ready")
    };
    let named = json!({"uid": "another", "controller": true, "kind": "Shop", "name": "corner"});
    for label in ["another", "shop-uid", "neither"] {
        let message = said(label, named.clone());
        assert!(message.contains("is not this root's: it is controlled by Shop corner"), "{message}");
    }
    let message = said("another", json!({"uid": "another", "controller": true}));
    assert!(message.contains("it is controlled by the object with uid another"), "{message}");
}

#[test]
fn the_command_that_lets_a_root_adopt_an_object_names_its_group() {
    let mut world = World::new();
    world.api.create(foreign("Deployment", "web"));
    world.pass(&answer(vec![deployment("web", &[])]));
    world.tells("Ready", &["kubectl annotate -n shops deployment.apps web pintle.dev/adopt=shop-uid"]);
}

#[test]
fn a_label_with_the_roots_uid_proves_nothing() {
    let mut world = World::new();
    let mut theirs = foreign("ConfigMap", "old");
    theirs["metadata"]["labels"] = json!({"pintle.dev/root": "shop-uid", "pintle.dev/reconciler": "shop"});
    let old = world.api.create(theirs);
    let run = world.pass(&two());
    assert!(world.api.objects.contains_key(&old), "{:?}", run.steps);
    assert!(run.done.ready);
    let mut theirs = foreign("ConfigMap", "page");
    theirs["metadata"]["labels"] = json!({"pintle.dev/root": "shop-uid"});
    world.api.create(theirs);
    world.pass(&two());
    assert_eq!(world.says("Ready"), no("AdoptionConflict"));
}

/// A root with two children, of which somebody took the owner reference from one.
fn deprived() -> (World, pintle_wit::ObjectRef) {
    let mut world = World::new();
    world.settle(&two());
    let page = reference("ConfigMap", "page");
    world.api.edit(&page, "metadata.ownerReferences", json!([]));
    (world, page)
}

#[test]
fn what_others_have_marked_or_taken_over_is_not_taken_back() {
    for (field, value) in [
        // The value is the same, and no longer ours.
        ("labels", json!({"pintle.dev/root": "shop-uid", "pintle.dev/reconciler": "shop"})),
        ("ownerReferences", json!([{"uid": "another", "controller": true}])),
    ] {
        let (mut world, page) = deprived();
        world.api.edit(&page, &format!("metadata.{field}"), value);
        let before = world.api.objects[&page].clone();
        world.pass(&two());
        assert_eq!(world.says("Ready"), no("AdoptionConflict"), "{field}");
        assert_eq!(world.api.objects[&page], before, "{field}");
    }
}

#[test]
fn a_child_without_its_owner_reference_that_is_not_wanted_is_not_deleted() {
    let (mut world, page) = deprived();
    let run = world.pass(&answer(vec![config_map("other", "a")]));
    assert!(world.api.objects.contains_key(&page) && run.done.ready, "{:?}", run.steps);
}

#[test]
fn children_that_are_orphaned_on_purpose_while_their_root_goes_are_let_go() {
    let (mut world, page) = deprived();
    let before = world.api.objects[&page].clone();
    // The garbage collector orphans them; that the root is going, its watch has not shown yet.
    let root = world.root.clone();
    let run = world.pass_between(&two(), move |api, step| {
        if step == "read Shop shop" {
            api.edit(&root, "metadata.deletionTimestamp", json!("2000-01-01T00:00:00Z"));
        }
    });
    assert_eq!(run.steps, ["call", "read Shop shop"]);
    assert!(run.done.wake.retry.is_some());
    assert_eq!(world.api.objects[&page], before);
}

#[test]
fn a_lost_reply_with_a_stale_cache_is_told_from_somebody_elses_object_by_a_live_read() {
    let mut world = World::new();
    world.api.fail("apply Secret keys", Fault::LoseReply);
    let keys = answer(vec![secret("keys", "s")]);
    world.pass(&keys);
    // No cache shows a Secret, so the second create of a host that did not record it would meet the object.
    world.api.edit(&world.root.clone(), "status", json!({"phase": "Up"}));
    world.restart();
    let run = world.pass(&keys);
    let expected = ["call", "read Shop shop", "status", "create Secret keys", "get Secret keys"];
    assert_eq!(run.steps[..5], expected);
    assert!(run.done.ready && run.done.counts.created == 0);
}

#[test]
fn a_deployment_is_not_applied_while_the_secret_that_it_reads_is_somebody_elses() {
    let mut world = World::new();
    world.api.create(foreign("Secret", "keys"));
    let all = answer(vec![deployment("web", &["keys"]), secret("keys", "s"), config_map("page", "a")]);
    let run = world.pass(&all);
    assert!(!run.steps.contains(&"create Deployment web".into()), "{:?}", run.steps);
    assert_eq!(world.live("Deployment", "web"), None);
    assert!(world.live("ConfigMap", "page").is_some());
    assert_eq!(world.says("Ready"), no("AdoptionConflict"));
    world.api.objects.remove(&reference("Secret", "keys"));
    world.pass(&all);
    assert!(world.live("Deployment", "web").is_some());
}

#[test]
fn a_deployment_is_not_applied_while_nobody_knows_whether_its_secret_was() {
    let mut world = World::new();
    world.api.fail("apply Secret keys", Fault::Refuse(error(500, "InternalError", "later")));
    world.pass(&answer(vec![deployment("web", &["keys"]), secret("keys", "s")]));
    assert_eq!(world.live("Deployment", "web"), None);
    assert_eq!(world.says("Ready"), no("InternalError"));
}

#[test]
fn an_object_under_a_name_that_comes_and_goes_ends_in_a_retry_not_in_a_stall() {
    let mismatch = ApiError {
        causes: vec![crate::pass::api::cause("metadata.uid", "field is immutable")],
        ..error(422, "Invalid", "metadata.uid: field is immutable")
    };
    for code in [mismatch, error(409, "Conflict", "the object has been modified")] {
        let mut world = World::new();
        world.settle(&two());
        world.api.edit(&reference("ConfigMap", "page"), "data.key", json!("foreign"));
        for _ in 0..10 {
            world.api.fail("apply ConfigMap page", Fault::Refuse(code.clone()));
        }
        let run = world.pass(&two());
        assert!(run.done.wake.retry.is_some(), "{:?}", run.steps);
        assert_eq!(world.says("Stalled"), absent());
        assert!(
            run.steps.iter().filter(|step| *step == "update ConfigMap page").count() <= 5,
            "{:?}",
            run.steps
        );
    }
}
