//! Children of kinds that may not be watched: named in the status, read live.

use pintle_wit::{Failure, Response};
use serde_json::json;

use crate::pass::{
    api::{Fault, error},
    world::{World, answer, config_map, no, reference, secret, yes},
};

fn with_keys() -> Response {
    answer(vec![config_map("page", "a"), secret("keys", "s")])
}

fn without() -> Response {
    answer(vec![config_map("page", "a")])
}

fn entries() -> serde_json::Value {
    json!([{"apiVersion": "v1", "kind": "Secret", "name": "keys"}])
}

#[test]
fn a_secret_is_named_in_the_status_before_it_is_created() {
    let mut world = World::new();
    let run = world.pass(&with_keys());
    assert_eq!(run.steps[..2], ["call", "status"]);
    assert_eq!(run.statuses[0]["pintle"]["unwatched"], entries());
    assert_eq!(crate::pass::world::condition(&run.statuses[0], "Ready").unwrap()["status"], "False");
    assert!(run.steps[2..].contains(&"create Secret keys".into()), "{:?}", run.steps);
    assert_eq!(world.status()["pintle"]["unwatched"], entries());
    assert_eq!(world.says("Ready"), yes("Succeeded"));
    assert_eq!(run.done.counts.status_writes, 2);
}

#[test]
fn a_secret_is_not_created_when_it_could_not_be_named() {
    let mut world = World::new();
    world.api.fail("status Shop shop", Fault::Refuse(error(503, "ServiceUnavailable", "later")));
    let run = world.pass(&with_keys());
    assert_eq!(run.steps, ["call", "status"]);
    assert!(run.done.wake.retry.is_some() && !run.done.ready);
    assert_eq!(world.live("Secret", "keys"), None);
}

#[test]
fn the_first_pass_after_a_restart_reads_the_secret_and_the_next_one_does_not() {
    let mut world = World::new();
    world.settle(&with_keys());
    world.restart();
    assert_eq!(world.pass(&with_keys()).steps, ["call", "get Secret keys"]);
    assert!(world.pass_with(|_| panic!("nothing changed")).steps.is_empty());
}

#[test]
fn the_entry_of_a_living_secret_stays_while_the_guest_fails() {
    for restarted in [false, true] {
        let mut world = World::new();
        world.settle(&with_keys());
        world.binding.generation += 1;
        if restarted {
            world.restart();
        }
        world.pass_with(|_| Err(Failure::terminal("InvalidSpec", "bad")));
        assert_eq!(world.status()["pintle"]["unwatched"], entries(), "restarted: {restarted}");
        world.restart();
        world.pass(&without());
        assert_eq!(world.live("Secret", "keys"), None, "so it is found and pruned later");
    }
}

#[test]
fn the_entry_stays_when_the_secret_could_not_be_deleted() {
    let mut world = World::new();
    world.settle(&with_keys());
    world.binding.generation += 1;
    world.api.fail("delete Secret keys", Fault::Refuse(error(403, "Forbidden", "no")));
    let run = world.pass(&without());
    assert!(run.done.wake.retry.is_some() && !run.done.ready);
    assert_eq!(world.status()["pintle"]["unwatched"], entries());
    assert_eq!(world.says("Ready"), no("Forbidden"));
    world.pass(&without());
    assert_eq!(world.live("Secret", "keys"), None);
}

#[test]
fn a_secret_that_is_being_deleted_is_looked_at_again_since_no_watch_tells_when_it_is_gone() {
    let mut world = World::new();
    world.settle(&with_keys());
    world.restart();
    world.api.edit(&reference("Secret", "keys"), "metadata.deletionTimestamp", json!("2000-01-01T00:00:00Z"));
    let run = world.pass(&with_keys());
    assert_eq!(world.says("Reconciling"), yes("ChildHeld"));
    assert!(run.done.wake.retry.is_some());
    world.api.objects.remove(&reference("Secret", "keys"));
    world.pass(&with_keys());
    assert!(world.live("Secret", "keys").is_some());
    assert_eq!(world.says("Ready"), yes("Succeeded"));
}

#[test]
fn an_entry_of_a_kind_that_is_watched_is_somebodys_invention_and_is_not_followed() {
    let mut world = World::new();
    world.settle(&without());
    let invented = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}]);
    world.edit_root("status.pintle.unwatched", invented);
    world.restart();
    assert_eq!(world.pass(&without()).steps, ["call"]);
}

#[test]
fn a_secret_that_may_not_be_read_is_told_in_the_status() {
    let mut world = World::new();
    world.settle(&with_keys());
    world.restart();
    world.api.fail("get Secret keys", Fault::Refuse(error(403, "Forbidden", "you may not get secrets")));
    let run = world.pass(&with_keys());
    assert_eq!(run.steps[..3], ["call", "get Secret keys", "status"]);
    assert_eq!((world.says("Ready"), world.says("Reconciling")), (no("Forbidden"), yes("Forbidden")));
    assert!(run.done.wake.retry.is_some());
    assert_eq!(world.status()["pintle"]["unwatched"], entries());
}

#[test]
fn a_secret_that_was_named_and_never_created_leaves_no_trace_when_the_guest_gives_it_up() {
    let mut world = World::new();
    world.settle(&without());
    world.api.fail("apply Secret keys", Fault::Refuse(error(422, "Invalid", "no")));
    world.binding.generation += 1;
    let run =
        world.pass_with(|request| Ok(if request.refusals.is_empty() { with_keys() } else { without() }));
    assert!(run.done.ready, "{:?}", run.steps);
    assert_eq!(world.says("Ready"), yes("Succeeded"), "what was written on the way is put right");
    assert_eq!(world.status()["pintle"].get("unwatched"), None);
}

#[test]
fn a_root_of_the_same_name_does_not_inherit_what_was_known_of_its_predecessor() {
    let mut world = World::new();
    world.settle(&with_keys());
    let root = world.root.clone();
    world.api.objects.remove(&root);
    world.api.objects.remove(&reference("Secret", "keys"));
    world.api.objects.remove(&reference("ConfigMap", "page"));
    world.add_root("shop");
    world.api.objects.get_mut(&root).unwrap()["metadata"]["uid"] = json!("successor-uid");
    let run = world.pass(&with_keys());
    assert!(run.steps.contains(&"create Secret keys".into()), "{:?}", run.steps);
    assert!(run.done.ready);
}

#[test]
fn an_entry_that_appears_in_the_status_of_a_converged_root_is_looked_at() {
    let mut world = World::new();
    world.settle(&without());
    let mut keys =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys", "namespace": "shops"}});
    keys["metadata"]["ownerReferences"] = json!([{"uid": "shop-uid", "controller": true}]);
    world.api.create(keys);
    world.edit_root("status.pintle.unwatched", entries());
    let run = world.pass(&without());
    assert!(run.steps.contains(&"delete Secret keys".into()), "{:?}", run.steps);
    assert_eq!(world.live("Secret", "keys"), None);
}

#[test]
fn a_conflict_over_a_secret_ends_when_it_goes_also_where_the_crd_cannot_name_it() {
    for fields in [None, Some(vec!["phase", "conditions"])] {
        let mut world = World::new();
        if fields.is_some() {
            world.binding.status = pintle_core::StatusSchema::Declared(json!({"properties": {
                "phase": {}, "conditions": {"items": {"x-kubernetes-preserve-unknown-fields": true}}}}));
        }
        world.api.status_fields = fields;
        let theirs =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys", "namespace": "shops"}});
        let keys = world.api.create(theirs);
        world.pass(&with_keys());
        world.pass(&with_keys());
        assert_eq!(world.says("Ready"), no("AdoptionConflict"));
        world.api.objects.remove(&keys);
        world.pass(&with_keys());
        assert_eq!(world.says("Ready"), yes("Succeeded"));
    }
}

#[test]
fn a_crd_that_cannot_name_secrets_costs_no_extra_write() {
    let mut world = World::new();
    world.binding.status = pintle_core::StatusSchema::Declared(json!({"properties": {
        "phase": {}, "conditions": {"items": {"x-kubernetes-preserve-unknown-fields": true}}}}));
    world.api.status_fields = Some(vec!["phase", "conditions"]);
    let run = world.pass(&with_keys());
    assert_eq!(run.steps.iter().filter(|step| *step == "status").count(), 1, "{:?}", run.steps);
    assert!(run.done.ready);
    world.settle(&with_keys());
    world.restart();
    let expected = ["call", "read Shop shop", "create Secret keys", "get Secret keys"];
    assert_eq!(world.pass(&with_keys()).steps, expected);
}

fn watched() -> World {
    let mut world = World::new();
    world.binding.watched_namespaces = ["shops".into()].into();
    world
}

#[test]
fn where_secrets_are_watched_one_is_a_child_like_any_other() {
    let mut world = watched();
    world.settle(&with_keys());
    assert_eq!(world.status()["pintle"].get("unwatched"), None);
    world.restart();
    assert_eq!(world.pass(&with_keys()).steps, ["call"], "nothing is read that the watch shows");
    world.api.edit(&reference("Secret", "keys"), "data.key", json!("Zm9yZWlnbg=="));
    let run = world.pass(&with_keys());
    assert_eq!(run.steps, ["call", "update Secret keys", "emit"]);
    assert_eq!(world.live("Secret", "keys").unwrap()["data"]["key"], "cw==");
}

#[test]
fn once_secrets_are_watched_the_status_names_them_no_longer_and_nothing_else_is_done() {
    let mut world = World::new();
    world.settle(&with_keys());
    assert_eq!(world.status()["pintle"]["unwatched"], entries());
    world.binding.watched_namespaces = ["shops".into()].into();
    assert_eq!(world.pass_with(|_| panic!("nothing changed")).steps, ["status"]);
    assert_eq!(world.status()["pintle"].get("unwatched"), None);
}

#[test]
fn when_secrets_are_watched_no_longer_the_status_names_them_again() {
    let mut world = watched();
    world.settle(&with_keys());
    world.binding.watched_namespaces.clear();
    world.binding.generation += 1;
    world.settle(&with_keys());
    assert_eq!(world.status()["pintle"]["unwatched"], entries());
}
