//! What a guest asks to see, and how often it is called for it.

use std::time::Duration;

use pintle_wit::{Failure, Need, ObjectRef, ObjectsNeed, Request, Response, Select};
use serde_json::{Value, json};

use crate::pass::{
    powers::grant_powers,
    world::{Run, World, no, yes},
};

fn world() -> World {
    let mut world = World::new();
    grant_powers(&mut world.binding);
    world
}

fn config_map(name: &str) -> ObjectsNeed {
    ObjectsNeed {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        select: Select::Name(name.into()),
        fields: vec!["data".into()],
        ..ObjectsNeed::default()
    }
}

fn add(world: &mut World, name: &str, key: &str) -> ObjectRef {
    world.api.create(json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "shops"}, "data": {"next": key}}))
}

/// Follows a chain of ConfigMaps, each of which names the next, and says where it ends.
fn follow(request: &Request, settle_milliseconds: u32) -> Response {
    let mut response = Response::default();
    let mut next = "first".to_owned();
    for _ in 0..9 {
        let need = Need::Objects(ObjectsNeed { settle_milliseconds, ..config_map(&next) });
        response.needs.push(need.clone());
        let Some(answer) = request.needs.iter().find(|answer| answer.need == need) else { return response };
        match answer.objects.first().and_then(|object| object["data"]["next"].as_str()) {
            Some(named) => next = named.to_owned(),
            None => break,
        }
    }
    response.status.insert("end".into(), next.into());
    response
}

fn pass(world: &mut World) -> Run {
    world.pass_with(|request| Ok(follow(request, 0)))
}

fn calls(run: &Run) -> usize {
    run.steps.iter().filter(|step| *step == "call").count()
}

#[test]
fn an_answer_counts_when_it_asks_for_what_it_was_given() {
    let mut world = world();
    add(&mut world, "first", "second");
    let run = pass(&mut world);
    assert_eq!(run.steps, ["call", "look", "call", "look", "call", "status"]);
    assert_eq!(world.status()["end"], "second");
    assert_eq!(
        run.requests[2].needs[1].objects,
        Vec::<Value>::new(),
        "what is not there is answered as absent"
    );
    let shown = &run.requests[2].needs[0].objects[0];
    assert_eq!(shown["data"]["next"], "second");
    assert!(shown["metadata"].get("resourceVersion").is_none());
}

#[test]
fn a_steady_root_costs_no_call_and_a_change_of_an_unchanged_set_one() {
    let mut world = world();
    let first = add(&mut world, "first", "second");
    add(&mut world, "other", "x");
    pass(&mut world);
    let run = pass(&mut world);
    // Its own status is new to the guest.
    assert_eq!(run.steps, ["look", "call"]);
    assert_eq!(pass(&mut world).steps, ["look"]);
    world.api.edit(&first, "data.other", "y".into());
    assert_eq!(pass(&mut world).steps, ["look", "call"]);
    world.api.edit(&first, "metadata.annotations.a", "b".into());
    assert_eq!(calls(&pass(&mut world)), 1, "annotations are shown too");
    let second = add(&mut world, "second", "third");
    assert_eq!(pass(&mut world).steps, ["look", "call", "look", "call", "status"]);
    world.api.objects.remove(&second);
    pass(&mut world);
    assert_eq!(world.status()["end"], "second");
    world.restart();
    let run = pass(&mut world);
    assert_eq!((calls(&run), run.statuses.len()), (3, 0), "from the empty set to the same answer");
}

#[test]
fn a_discarded_answer_does_nothing() {
    let mut world = world();
    let run = world.pass_with(|request| {
        let mut response = follow(request, 0);
        if request.needs.is_empty() {
            // Not even looked at.
            response.children = vec![pintle_wit::Child::new("x", json!({"kind": "Nonsense"}))];
        }
        Ok(response)
    });
    assert_eq!(run.steps, ["call", "look", "call", "status"]);
    assert_eq!(world.says("Ready"), yes("Succeeded"));
}

#[test]
fn five_calls_without_a_fixed_point_are_a_failure() {
    let mut world = world();
    let restless = |request: &Request| {
        let name = format!("c{}", request.needs.len());
        let needs = request.needs.iter().map(|answer| answer.need.clone()).collect();
        let mut response = Response { needs, ..Response::default() };
        response.needs.push(Need::Objects(config_map(&name)));
        Ok(response)
    };
    let run = world.pass_with(restless);
    assert_eq!(calls(&run), 5);
    assert_eq!(world.says("Stalled"), yes("NeedsUnstable"));
    assert!(run.done.wake.retry.is_none());
}

#[test]
fn a_remembered_set_saves_calls_and_changes_nothing() {
    let mut world = world();
    let first = add(&mut world, "first", "second");
    pass(&mut world);
    pass(&mut world);
    // With the remembered set the guest fails; from nothing it does not.
    world.api.edit(&first, "data.next", "elsewhere".into());
    let run = world.pass_with(|request| {
        let knows = |name: &str| {
            request.needs.iter().any(|answer| {
                matches!(&answer.need, Need::Objects(need) if need.select == Select::Name(name.into()))
            })
        };
        if knows("second") {
            return Err(Failure::terminal("Confused", "by what it no longer asks for"));
        }
        Ok(follow(request, 0))
    });
    assert_eq!(world.status()["end"], "elsewhere", "{:?}", run.steps);
    assert_eq!(world.says("Ready"), yes("Succeeded"));
}

#[test]
fn a_need_that_may_not_be_seen_is_retried_and_never_shown() {
    let mut world = world();
    world.binding.grants.needs.clear();
    let run = pass(&mut world);
    assert_eq!(world.says("Stalled"), yes("NeedNotGranted"));
    assert_eq!(run.steps, ["call", "status", "emit"]);
    assert!(world.message("Ready").starts_with("needs[0].objects: "));
}

#[test]
fn refusals_and_needs_go_together() {
    use crate::pass::api::{Fault, port_taken};
    let mut world = world();
    add(&mut world, "first", "second");
    world.api.fail("apply Service web", Fault::Refuse(port_taken()));
    let run = world.pass_with(|request| {
        let mut response = follow(request, 0);
        let port = if request.refusals.is_empty() { 30010 } else { 30011 };
        response.children.push(pintle_wit::Child::new("web", crate::pass::world::service("web", port)));
        Ok(response)
    });
    assert_eq!(calls(&run), 4, "three to see, one for the refusal: {:?}", run.steps);
    assert_eq!(world.says("Ready"), yes("Succeeded"));
}

// === Time ===

#[test]
fn a_clock_brings_the_root_back_at_its_next_step() {
    let mut world = world();
    let clock = Need::Clock { step_seconds: 60 };
    let guest = |request: &Request| {
        let mut response = Response { needs: vec![Need::Clock { step_seconds: 60 }], ..Response::default() };
        let time = request.needs.first().and_then(|answer| answer.time.clone());
        response.status.extend(time.map(|time| ("time".to_owned(), time.into())));
        Ok(response)
    };
    world.now = 30_000;
    let run = world.pass_with(guest);
    assert_eq!(run.requests[1].needs[0].need, clock);
    assert_eq!(world.status()["time"], "1970-01-01T00:01:00Z");
    assert_eq!(run.done.wake.again, Some(Duration::from_secs(30)));
    world.now += 1000;
    world.pass_now(guest);
    world.now += 1000;
    let run = world.pass_now(guest);
    assert_eq!(
        (calls(&run), run.done.wake.again),
        (0, Some(Duration::from_secs(28))),
        "within a step nothing is new"
    );
    world.now += 28_000;
    world.pass_now(guest);
    assert_eq!(world.status()["time"], "1970-01-01T00:02:00Z");
}

#[test]
fn a_deadline_is_told_when_it_is_reached() {
    let mut world = world();
    let guest = |request: &Request| {
        let mut response =
            Response { needs: vec![Need::Deadline("1970-01-01T00:01:30Z".into())], ..Response::default() };
        let reached = request.needs.first().and_then(|answer| answer.reached);
        response.status.extend(reached.map(|reached| ("reached".to_owned(), reached.into())));
        Ok(response)
    };
    let run = world.pass_with(guest);
    assert_eq!(
        (world.status()["reached"].clone(), run.done.wake.again),
        (false.into(), Some(Duration::from_secs(30)))
    );
    let run = world.pass_with(guest);
    assert_eq!((world.status()["reached"].clone(), run.done.wake.again), (true.into(), None));
}

// === Settling ===

/// Passes over a root that follows a chain, changes of which settle for a second.
fn settle(world: &mut World, after: i64) -> Run {
    world.now += after;
    world.pass_now(|request| Ok(follow(request, 1000)))
}

fn end(world: &World) -> &str {
    world.status()["end"].as_str().unwrap_or_default()
}

#[test]
fn a_change_is_shown_when_it_has_been_quiet_for_long_enough() {
    let mut world = world();
    let first = add(&mut world, "first", "a");
    settle(&mut world, 0);
    settle(&mut world, 0);
    assert_eq!(end(&world), "a", "what is seen for the first time is shown at once");
    world.api.edit(&first, "data.next", "b".into());
    let run = settle(&mut world, 5000);
    assert_eq!((calls(&run), run.done.wake.again), (0, Some(Duration::from_secs(1))));
    world.api.edit(&first, "data.next", "c".into());
    let run = settle(&mut world, 900);
    assert_eq!((calls(&run), run.done.wake.again), (0, Some(Duration::from_secs(1))), "it moved again");
    let run = settle(&mut world, 400);
    assert_eq!((calls(&run), run.done.wake.again), (0, Some(Duration::from_millis(600))));
    settle(&mut world, 600);
    assert_eq!(end(&world), "c");
}

#[test]
fn a_clock_that_is_set_back_makes_a_change_settle_anew_and_once() {
    let mut world = world();
    let first = add(&mut world, "first", "a");
    settle(&mut world, 4_000_000);
    world.api.edit(&first, "data.next", "b".into());
    settle(&mut world, 1000);
    let run = settle(&mut world, -3_600_000);
    assert_eq!((calls(&run), run.done.wake.again), (0, Some(Duration::from_secs(1))));
    settle(&mut world, 1000);
    assert_eq!(end(&world), "b");
}

#[test]
fn a_restless_object_is_shown_after_five_times_its_settling_time() {
    let mut world = world();
    let first = add(&mut world, "first", "a");
    settle(&mut world, 0);
    settle(&mut world, 0);
    let mut shown = 0;
    for tenth in 0..60 {
        world.api.edit(&first, "data.next", format!("v{tenth}").into());
        settle(&mut world, 100);
        if end(&world) != "a" {
            shown = tenth;
            break;
        }
    }
    assert_eq!(shown, 50);
}

#[test]
fn what_changes_back_was_no_change() {
    let mut world = world();
    let first = add(&mut world, "first", "a");
    settle(&mut world, 0);
    settle(&mut world, 0);
    world.api.edit(&first, "data.next", "b".into());
    settle(&mut world, 500);
    world.api.edit(&first, "data.next", "a".into());
    let run = settle(&mut world, 100);
    assert_eq!((calls(&run), run.done.wake.again), (0, None));
    assert_eq!(world.says("Ready"), yes("Succeeded"));
    assert_ne!(world.says("Ready"), no("Succeeded"));
}

// === What may be shown ===

#[test]
fn a_need_that_matches_too_much_fails_by_its_name_and_leaves_nothing() {
    let mut world = world();
    add(&mut world, "first", "second");
    world.api.create(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large", "namespace": "shops"},
        "data": {"k": "x".repeat(2 << 20)}}),
    );
    let ask = |fields: &[&str]| {
        let everything = Select::Labels(pintle_wit::LabelSelector::default());
        let all = ObjectsNeed { select: everything, ..config_map("") }.with_fields(fields);
        Response {
            needs: vec![
                Need::Clock { step_seconds: 60 },
                Need::Objects(config_map("first")),
                Need::Objects(all),
            ],
            ..Response::default()
        }
    };
    let run = world.pass_with(|_| Ok(ask(&["data"])));
    assert_eq!(world.says("Stalled"), yes("NeedsTooLarge"));
    let message = world.message("Ready");
    assert!(message.starts_with("needs[2].objects: with v1 ConfigMap by labels"), "{message}");
    assert_eq!((calls(&run), run.done.wake.retry), (1, None));
    let run = world.pass_with(|_| Ok(ask(&["metadata.ownerReferences"])));
    assert_eq!(run.done.error, None, "by their metadata they are few enough");
}

// === What a guest asks for again and again ===

/// A guest that, whenever it is called for another reason than its own needs, asks to be brought back a moment later.
fn restless(now: i64, request: &Request) -> Response {
    let at = jiff::Timestamp::from_millisecond(now + 1).unwrap().to_string();
    let ahead = request.needs.iter().find(|answer| answer.reached == Some(false));
    let need = ahead.map_or(Need::Deadline(at), |answer| answer.need.clone());
    Response { needs: vec![need], ..Response::default() }
}

fn pass_when_it_comes_back(
    world: &mut World,
    before: &Run,
    guest: impl Fn(i64, &Request) -> Response,
) -> Run {
    let wait = before.done.wake.again.expect("it comes back").max(Duration::from_millis(10));
    world.now += i64::try_from(wait.as_millis()).unwrap();
    let now = world.now;
    world.pass_now(|request| Ok(guest(now, request)))
}

#[test]
fn a_chain_of_deadlines_is_slowed_to_one_a_second_and_said_to_be() {
    let mut world = world();
    let now = world.now + 60_000;
    let mut run = world.pass_with(|request| Ok(restless(now, request)));
    let (mut passes, mut slowed) = (0, 0);
    while !run.done.throttled {
        run = pass_when_it_comes_back(&mut world, &run, restless);
        passes += 1;
        slowed += u32::from(run.done.hits.asking);
        assert!(passes < 300, "it is never slowed");
    }
    assert!(passes > 150 && slowed == 1, "{passes} {slowed}");
    assert_eq!(world.says("Reconciling"), yes("Throttled"));
    world.tells("Ready", &["one deadline after the other"]);
    let (began, mut guest_calls) = (world.now, 0);
    while world.now < began + 60_000 {
        run = pass_when_it_comes_back(&mut world, &run, restless);
        guest_calls += calls(&run);
    }
    assert!(guest_calls <= 2 * 62, "{guest_calls} calls in a minute");
}

#[test]
fn a_clock_that_steps_once_a_second_is_never_slowed() {
    let mut world = world();
    let guest = |request: &Request| {
        let mut response = Response { needs: vec![Need::Clock { step_seconds: 1 }], ..Response::default() };
        let deadline = request.needs.first().and_then(|answer| answer.time.clone());
        // And a deadline that stays the same costs nothing either.
        response.needs.extend(deadline.map(|_| Need::Deadline("2100-01-01T00:00:00Z".into())));
        Ok(response)
    };
    for _ in 0..2000 {
        world.now += 1000;
        let run = world.pass_now(guest);
        assert!(!run.done.throttled && run.done.wake.again <= Some(Duration::from_secs(1)));
    }
    assert_eq!(world.says("Ready"), yes("Succeeded"));
}

#[test]
fn a_guest_that_asks_for_another_field_each_time_is_slowed_to_one_list_in_ten_seconds() {
    let mut world = world();
    let guest = |request: &Request| {
        let clock = Need::Clock { step_seconds: 1 };
        let mut needs = vec![clock];
        if let Some(time) = request.needs.first().and_then(|answer| answer.time.clone()) {
            let field = format!("data.t{}", time.replace(':', ""));
            needs.push(Need::Objects(ObjectsNeed { fields: vec![field], ..config_map("first") }));
        }
        Ok(Response { needs, ..Response::default() })
    };
    let mut anew = 0;
    for second in 0..300 {
        world.now += 1000;
        let run = world.pass_now(guest);
        anew += usize::from(calls(&run) > 1);
        assert!(second < 30 || run.done.throttled, "{second}");
    }
    assert!((45..60).contains(&anew), "{anew} times in five minutes");
}
