//! What a preview says, against what a pass then does.

use std::sync::Arc;

use pintle_core::{
    Observed, Outcome, RootMemory, SealingKey, Snapshot, Step, object,
    pass::{Fate, Preview, Previewed},
    plan::{Change, Instead, Marks, Mask, PlannedRoot, Tally, Verdict, planned, sources},
};
use pintle_wit::{Failure, ObjectRef, Response};
use serde_json::{Value, json};

use crate::pass::world::{MANAGER, World, answer, config_map, deployment, secret};

/// A preview of the world's root before a guest that gives this answer. Whoever makes it has another key than the host.
fn preview(world: &World, guest: &Result<Response, Failure>) -> (Previewed, Arc<Value>) {
    let root = Arc::new(world.api.objects.get(&world.root).expect("the root is there").clone());
    let uid = object::uid(&root).to_owned();
    let is_labelled =
        |live: &&Value| object::text(live, &["metadata", "labels", "pintle.dev/root"]) == Some(&uid);
    let observed = |live: &Value| Observed::of(live, MANAGER, object::kind(live).kind == "Deployment");
    let binding = pintle_core::Binding { key: SealingKey::new([9; 32]), ..world.binding.clone() };
    let mut preview = Preview::new(Snapshot {
        binding: Arc::new(binding),
        root: Arc::clone(&root),
        root_listed_at: None,
        children: world.api.objects.values().filter(is_labelled).map(observed).collect(),
        memory: RootMemory::default(),
        now: jiff::Timestamp::from_millisecond(world.now).unwrap(),
    });
    let mut step = preview.step(Outcome::Start);
    while let Some(wanted) = step {
        let get = |reference: &ObjectRef| world.api.objects.get(reference).cloned();
        let outcome = match wanted {
            Step::CallGuest(_) => Outcome::Answered(guest.clone()),
            Step::Get(asked) => Outcome::Got(
                asked.iter().map(|reference| Ok(get(reference).map(|live| observed(&live)))).collect(),
            ),
            Step::Inspect(asked) => {
                Outcome::Inspected(asked.iter().map(|reference| Ok(get(reference))).collect())
            }
            Step::Look(asked) => Outcome::Looked(asked.iter().map(|_| Ok(Vec::new())).collect()),
            step => panic!("a preview writes nothing: {step:?}"),
        };
        step = preview.step(outcome);
    }
    (preview.finish(|reference| world.api.objects.get(reference)), root)
}

fn said(world: &World, previewed: &Previewed, root: &Value) -> PlannedRoot {
    let live = |reference: &ObjectRef| world.api.objects.get(reference);
    let text = |_: &ObjectRef, before: Option<&Value>, after: Option<&Value>| format!("{before:?} {after:?}");
    let known = sources(previewed, &live);
    let mask = Mask::new([1; 32], Instead::Word, Marks::default(), known);
    planned(root, &world.binding, previewed, Vec::new(), &live, &mask, &text)
}

fn settled(before: &Response) -> World {
    let mut world = World::new();
    world.settle(before);
    world
}

#[test]
fn no_value_of_a_secret_is_in_what_is_said_of_it() {
    let world = settled(&answer(vec![secret("key", "correct horse")]));
    let (previewed, root) = preview(&world, &Ok(answer(vec![secret("key", "battery staple")])));
    let planned = said(&world, &previewed, &root);
    let text = serde_json::to_string(&planned).unwrap();
    assert_eq!(planned.children[0].fields[0].path, "data.key");
    for value in ["correct horse", "Y29ycmVjdCBob3JzZQ==", "battery staple", "YmF0dGVyeSBzdGFwbGU="] {
        assert!(!text.contains(value), "{text}");
    }
}

#[test]
fn a_failure_and_a_refused_answer_are_told_with_their_reason_and_path() {
    let world = settled(&answer(vec![config_map("page", "a")]));
    let failure = Failure::terminal("NotToday", "it does not want to").at("spec.replicas");
    let (previewed, root) = preview(&world, &Err(failure));
    let planned = said(&world, &previewed, &root);
    let failed = planned.failure.unwrap();
    assert_eq!((planned.verdict, failed.reason.as_str()), (Verdict::Fails, "NotToday"));
    assert_eq!((failed.path.as_deref(), planned.fails_now), (Some("spec.replicas"), Some(false)));
    assert!(!planned.has_answer);
    let mut refused = config_map("page", "a");
    refused["metadata"]["finalizers"] = json!(["example.com/a"]);
    let (previewed, _) = preview(&world, &Ok(answer(vec![refused])));
    assert!(previewed.failure.unwrap().path.unwrap().starts_with("children[0].object.metadata"));
}

#[test]
fn a_suspended_root_and_one_that_is_going_stay_as_they_are() {
    for (path, value) in [
        ("metadata.annotations", json!({"pintle.dev/suspend": "true"})),
        ("metadata.deletionTimestamp", json!("2000-01-01T00:00:00Z")),
    ] {
        let mut world = settled(&answer(vec![config_map("page", "a")]));
        let root = world.root.clone();
        world.api.edit(&root, path, value);
        let (previewed, root) = preview(&world, &Ok(answer(vec![])));
        let planned = said(&world, &previewed, &root);
        assert_eq!(planned.verdict, Verdict::Unchanged, "{planned:?}");
        assert!(planned.note.is_some() && planned.children.is_empty());
    }
}

#[test]
fn a_number_of_replicas_that_is_left_out_stays_and_is_no_change() {
    let with = deployment("app", &[]);
    let mut without = with.clone();
    without["spec"].as_object_mut().unwrap().remove("replicas");
    let world = settled(&answer(vec![with]));
    let (previewed, root) = preview(&world, &Ok(answer(vec![without])));
    let paths: Vec<String> =
        said(&world, &previewed, &root).children[0].fields.iter().map(|field| field.path.clone()).collect();
    assert_eq!(paths, ["metadata.annotations[pintle.dev/desired]"]);
}

#[test]
fn a_plan_counts_the_pods_that_are_replaced_or_end_and_names_what_is_deleted() {
    let [app, scaled, old] = ["app", "scaled", "old"].map(|name| deployment(name, &[]));
    let world = settled(&answer(vec![app.clone(), scaled.clone(), old]));
    let (mut app, mut scaled) = (app, scaled);
    app["spec"]["template"]["spec"]["containers"][0]["image"] = json!("shop:2");
    scaled["spec"]["replicas"] = json!(2);
    let (previewed, root) = preview(&world, &Ok(answer(vec![app, scaled])));
    let planned = said(&world, &previewed, &root);
    let pods: Vec<_> = planned
        .children
        .iter()
        .map(|child| (child.reference.name.as_str(), child.change, child.pods))
        .collect();
    assert_eq!(pods, [("app", Change::Update, 1), ("scaled", Change::Update, 0), ("old", Change::Delete, 1)]);
    let mut tally = Tally::default();
    tally.add(&planned);
    let summary = tally.summary();
    assert_eq!((summary.restarts, summary.stops), (1, 1));
    let deleted: Vec<&str> = summary.deletions.iter().map(|object| object.name.as_str()).collect();
    assert_eq!(deleted, ["old"]);
}

#[test]
fn no_pod_ends_while_a_child_is_refused() {
    let mut world = settled(&answer(vec![deployment("old", &[])]));
    let mut theirs = config_map("page", "theirs");
    theirs["metadata"] = json!({"name": "page", "namespace": "shops", "uid": "theirs"});
    world.api.create(theirs);
    let (previewed, root) = preview(&world, &Ok(answer(vec![config_map("page", "a")])));
    let planned = said(&world, &previewed, &root);
    let children: Vec<_> = planned
        .children
        .iter()
        .map(|child| (child.reference.name.as_str(), child.change, child.pods))
        .collect();
    assert_eq!(children, [("page", Change::Conflict, 0), ("old", Change::Unchanged, 0)]);
    assert!(planned.has_answer && planned.failure.is_some(), "{planned:?}");
}

#[test]
fn a_stage_that_would_wait_is_shown_all_the_same() {
    let mut later = answer(vec![deployment("app", &[]), config_map("page", "a")]);
    later.children[1].stage = 1;
    let (previewed, _) = preview(&World::new(), &Ok(later));
    assert_eq!(previewed.children, [Fate::Create, Fate::Create]);
}
