//! Tests that a pass obeys the newest Reconciler, however far the control loop has got.

use std::collections::BTreeSet;

use pintle_core::{Config, Duty, SealingKey, StatusSchema};
use pintle_wit::Manifest;
use serde_json::{Value, json};

use super::*;
use crate::{bind, control::activate, metrics::Metrics};

fn reconciler(uid: &str, generation: i64, spec: Value) -> api::Reconciler {
    let mut object = json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "Reconciler",
        "metadata": {"name": "r", "uid": uid, "generation": generation},
        "spec": {"for": {"apiVersion": "x/v1", "kind": "Toy"}, "module": "one"}});
    object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    serde_json::from_value(object).unwrap()
}

fn children() -> Value {
    json!({"children": [{"apiVersion": "v1", "kinds": ["ConfigMap", "Secret"]}]})
}

/// A guest that answers nothing.
fn guest() -> Guest {
    use pintle_engine::{Engine, EngineConfig, Meter, fixtures};
    let engine = Engine::new(EngineConfig::new(Meter::Fuel, || std::time::Duration::ZERO)).unwrap();
    let manifest = fixtures::manifest("toy", "x/v1", "Toy", &[]);
    engine
        .load(&fixtures::answers(&manifest, r#"{"apiVersion":"guest.pintle.dev/v1"}"#), None)
        .unwrap()
        .guest()
        .unwrap()
}

fn active(object: &api::Reconciler, guest: Option<Guest>) -> Active {
    let kind = Kind::new("x/v1", "Toy");
    let binding = Binding {
        reconciler: "r".into(),
        uid: bind::uid(object),
        generation: Form::of(object).generation(),
        field_manager: "pintle-toy.x".into(),
        grants: object.spec.grants.clone(),
        limits: object.spec.limits,
        config: Config::default(),
        digest: "sha256:0".into(),
        manifest: Manifest { reconciles: kind.clone(), ..Manifest::default() },
        kinds: BTreeMap::new(),
        status: StatusSchema::Anything,
        key: SealingKey::new([0; 32]),
        duty: if guest.is_some() { Duty::Full } else { Duty::CleanUp },
        watched_namespaces: BTreeSet::new(),
    };
    Active::new(object, binding, guest, Resource { kind, plural: "toys".into(), namespaced: true })
}

/// What is known once the control loop has looked at this Reconciler, and is somewhere else.
fn state(object: &api::Reconciler) -> State {
    let mut state = State::new(4, Arc::new(Metrics::default()));
    state.bindings.put("r", active(object, Some(guest())));
    state.own.reconcilers.insert("r".into(), object.clone());
    state
}

fn root_in(namespace: &str) -> RootKey {
    RootKey { namespace: Some(namespace.into()), name: "a".into() }
}

fn bound(state: &mut State) -> Option<Arc<Binding>> {
    state.in_force("r", &root_in("n")).map(|active| Arc::clone(&active.binding))
}

#[test]
fn what_is_taken_away_is_gone_with_the_next_pass_whatever_the_control_loop_does() {
    let object = reconciler("u", 1, json!({"grants": children(), "limits": {"timeoutMilliseconds": 500}}));
    let mut state = state(&object);
    let before = bound(&mut state).unwrap();
    assert_eq!(before.grants.children.len(), 1);
    assert!(Arc::ptr_eq(&before, &bound(&mut state).unwrap()), "what stays costs nothing");

    let narrower =
        json!({"limits": {"timeoutMilliseconds": 50}, "serviceAccount": {"namespace": "n", "name": "a"}});
    state.own.reconcilers.insert("r".into(), reconciler("u", 2, narrower));
    let now = bound(&mut state).unwrap();
    assert_eq!((now.grants.children.len(), now.limits.timeout_milliseconds, now.generation), (0, 50, 2));
    assert_eq!(
        (&now.digest, &now.config),
        (&before.digest, &before.config),
        "module and config wait for their turn"
    );
    assert!(matches!(state.in_force("r", &root_in("n")).unwrap().account, Ok(Some(AccountRule::Named(_)))));

    state.own.reconcilers.insert("r".into(), reconciler("u", 3, json!({"namespaces": ["other"]})));
    assert!(bound(&mut state).is_none(), "the root's namespace is no longer the Reconciler's");
    assert!(state.in_force("r", &root_in("other")).is_some());
}

#[test]
fn no_pass_begins_for_a_reconciler_that_is_suspended_going_or_gone() {
    let object = reconciler("u", 1, json!({}));
    let mut state = state(&object);
    state.own.reconcilers.insert("r".into(), reconciler("u", 2, json!({"suspend": true})));
    assert!(bound(&mut state).is_none());
    state.own.reconcilers.insert("r".into(), reconciler("u", 3, json!({})));
    assert!(bound(&mut state).is_some(), "it was taken back before anybody looked");
    state.own.reconcilers.insert("r".into(), reconciler("u", 4, json!({"namespaces": "Some"})));
    assert!(bound(&mut state).is_none(), "nobody knows what that allows");
    let mut going = reconciler("u", 5, json!({}));
    going.metadata.deletion_timestamp =
        serde_json::from_value(json!("2026-01-01T00:00:00Z")).map(Some).unwrap();
    state.own.reconcilers.insert("r".into(), going.clone());
    assert!(bound(&mut state).is_none());
    // What lets its roots go has no module, and goes on.
    state.bindings.put("r", active(&going, None));
    assert!(bound(&mut state).is_some());
    state.own.reconcilers.clear();
    assert!(bound(&mut state).is_none());
}

#[test]
fn a_reconciler_that_was_made_again_has_nothing_in_force_of_the_one_before() {
    let mut state = state(&reconciler("first", 1, json!({"grants": children()})));
    state.own.reconcilers.insert("r".into(), reconciler("second", 1, json!({})));
    assert!(bound(&mut state).is_none());
}

#[test]
fn roots_are_looked_at_under_a_policy_that_changed_while_module_and_config_wait() {
    let root = json!({"apiVersion": "x/v1", "kind": "Toy", "metadata": {"name": "a", "namespace": "n", "uid": "a", "resourceVersion": "1"}});
    let mut state = state(&reconciler("u", 1, json!({"grants": children()})));
    state.roots.saw(&Kind::new("x/v1", "Toy"), root, None);
    activate::renew_alone(&mut state, &"r".to_owned());
    assert!(state.queue.pop(std::time::Duration::ZERO).is_none(), "nothing changed");
    state.own.reconcilers.insert("r".into(), reconciler("u", 2, json!({})));
    activate::renew_alone(&mut state, &"r".to_owned());
    let (lane, key, _) = state.queue.pop(std::time::Duration::ZERO).expect("the root is queued");
    assert_eq!((lane.as_str(), key.name.as_str()), ("r", "a"));
    state.queue.finish(&lane, &key, pintle_core::Finished::Settled, std::time::Duration::ZERO);
    activate::renew_alone(&mut state, &"r".to_owned());
    assert!(state.queue.pop(std::time::Duration::ZERO).is_none(), "once");
}
