//! A policy that takes our labels away: the child is refused, and nothing is lost.

use pintle_wit::Response;

use crate::pass::world::{World, answer, config_map, no, reference, service};

fn shop() -> Response {
    answer(vec![config_map("page", "a"), service("web", 30010)])
}

fn stripped() -> World {
    let mut world = World::new();
    world.api.strips_labels = true;
    world
}

#[test]
fn a_child_that_no_watch_shows_is_found_by_name_and_not_lost() {
    let mut world = stripped();
    world.pass(&shop());
    world.restart();
    // As after a start: the watch by label does not bring it.
    let page = reference("ConfigMap", "page");
    let hidden = world.api.objects.remove(&page).unwrap();
    let run = world.pass_between(&shop(), move |api, step| {
        if step == "create ConfigMap page" {
            api.objects.insert(page.clone(), hidden.clone());
        }
    });
    let expected =
        ["call", "read Shop shop", "create ConfigMap page", "get ConfigMap page", "update ConfigMap page"];
    assert_eq!(run.steps[..5], expected);
    assert_eq!(world.says("Ready"), no("LabelRemoved"));
}

#[test]
fn such_a_child_is_pruned_when_it_is_no_longer_wanted_and_nothing_is_said_of_it() {
    let mut world = stripped();
    world.pass(&shop());
    world.binding.generation += 1;
    let run = world.pass(&answer(vec![service("web", 30010)]));
    assert_eq!(run.steps[..3], ["call", "get ConfigMap page", "delete ConfigMap page"]);
    assert!(run.done.ready && run.done.wake.again.is_none(), "{:?}", world.says("Ready"));
}
