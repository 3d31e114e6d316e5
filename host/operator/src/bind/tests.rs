//! Tests of the decision which module and config are in force, on a cluster of plain values.

use std::time::Duration;

use pintle_engine::{
    Engine, EngineConfig, Meter,
    fixtures::{self, views::Outcome},
};
use pintle_schema::config_schema::ConfigSchema;
use pintle_wit::reasons;
use serde_json::{Value, json};

use super::*;

/// A cluster with one CRD, some Modules and some Reconcilers.
#[derive(Default)]
struct Scene {
    modules: BTreeMap<String, api::Module>,
    loads: BTreeMap<String, Load>,
    reconcilers: BTreeMap<String, api::Reconciler>,
    crds: BTreeMap<String, CrdInfo>,
    configs: Configs,
    /// Whether configs are checked as soon as they are there.
    checks: bool,
}

impl Scene {
    fn new() -> Self {
        let mut scene = Self { checks: true, ..Self::default() };
        scene.crds.insert("toys.x".into(), crd(true, "v1"));
        scene
    }

    /// A Module that is as far as this.
    fn module(mut self, name: &str, progress: Progress) -> Self {
        let object = json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "Module", "metadata": {"name": name, "uid": name},
            "spec": {"digest": "", "source": {}}});
        self.modules.insert(name.into(), serde_json::from_value(object).expect("a Module"));
        self.loads.insert(name.into(), Load::at(name, progress));
        self
    }

    fn reconciler(mut self, name: &str, created: &str, spec: Value) -> Self {
        let mut object = json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "Reconciler",
            "metadata": {"name": name, "creationTimestamp": created},
            "spec": {"for": {"apiVersion": "x/v1", "kind": "Toy"}, "module": "one"}});
        object["spec"].as_object_mut().expect("a map").extend(spec.as_object().expect("a map").clone());
        self.reconcilers.insert(name.into(), serde_json::from_value(object).expect("a Reconciler"));
        self
    }

    fn world(&self) -> World<'_> {
        World {
            modules: &self.modules,
            loads: &self.loads,
            reconcilers: &self.reconcilers,
            crds: &self.crds,
            configs: &self.configs,
            now: Timestamp::UNIX_EPOCH,
        }
    }

    fn decide(&self, name: &str, before: Option<&api::ActiveModule>) -> Result<InForce, (String, bool)> {
        let world = self.world();
        if self.checks {
            for due in self.configs.due(&world) {
                let outcome = due.run();
                self.configs.found(&due, outcome);
            }
        }
        match decide(&world, name, before) {
            Verdict::Work(in_force) => Ok(*in_force),
            Verdict::Rest(failure, _) => Err((failure.reason, failure.retry)),
        }
    }

    fn reason(&self, name: &str) -> String {
        self.decide(name, None).map(|in_force| in_force.active.module).expect_err("it rests").0
    }
}

fn crd(namespaced: bool, version: &str) -> CrdInfo {
    CrdInfo {
        group: "x".into(),
        kind: "Toy".into(),
        plural: "toys".into(),
        namespaced,
        established: true,
        versions: BTreeMap::from([(version.to_owned(), StatusSchema::Anything)]),
    }
}

const ANSWER: &str = r#"{"apiVersion":"guest.pintle.dev/v1"}"#;

fn loaded(kind: &str) -> Progress {
    load(&fixtures::answers(&fixtures::manifest("toy", "x/v1", kind, &[]), ANSWER))
}

/// A module whose config has a number.
fn loaded_with_number() -> Progress {
    let schema = r#"{"configSchema":{"type":"object","properties":{"a":{"type":"integer"}}},"#;
    let manifest = fixtures::manifest("toy", "x/v1", "Toy", &[]).replacen('{', schema, 1);
    load(&fixtures::answers(&manifest, ANSWER))
}

/// A module that serves views and reconciles nothing.
fn loaded_views() -> Progress {
    load(&fixtures::views::serves(&fixtures::views::manifest("farm"), Outcome::Trap, Outcome::Trap))
}

fn load(bytes: &[u8]) -> Progress {
    let engine = Engine::new(EngineConfig::new(Meter::Fuel, || Duration::ZERO)).expect("an engine");
    let module = engine.load(bytes, None).expect("a module");
    let loaded = module.guest().map(|guest| {
        let schema =
            ConfigSchema::compile(guest.manifest().config_schema.as_ref()).expect("the schema is taken");
        LoadedGuest { guest, schema }
    });
    Progress::Loaded(module, loaded)
}

fn refused() -> Progress {
    Progress::Refused(Failure::terminal(reasons::CORE_MODULE, "run: pintle build"))
}

const EARLY: &str = "2026-01-01T00:00:00Z";
const LATE: &str = "2026-01-02T00:00:00Z";

#[test]
fn a_module_that_is_loaded_and_fits_is_in_force() {
    let scene = Scene::new().module("one", loaded("Toy")).reconciler("r", EARLY, json!({}));
    let in_force = scene.decide("r", None).expect("it works");
    assert_eq!((in_force.active.module.as_str(), in_force.candidate), ("one", None));
    assert_eq!(in_force.resource.path(Some("n"), Some("a")), "/apis/x/v1/namespaces/n/toys/a");
    let again =
        scene.decide("r", Some(&api::ActiveModule { since: "then".into(), ..in_force.active.clone() }));
    assert_eq!(again.expect("it works").active.since, "then", "nothing new came into force");
}

#[test]
fn what_keeps_a_reconciler_from_working_has_its_reason() {
    let with = |progress: Progress| Scene::new().module("one", progress).reconciler("r", EARLY, json!({}));
    assert_eq!(Scene::new().reconciler("r", EARLY, json!({})).reason("r"), "ModuleMissing");
    assert_eq!(with(refused()).reason("r"), "ModuleNotReady");
    assert_eq!(with(Progress::Loading).decide("r", None).map(|_| ()), Err(("ModuleLoading".into(), true)));
    assert_eq!(with(loaded("Other")).reason("r"), "KindMismatch");
    let spec = |spec: Value| Scene::new().module("one", loaded("Toy")).reconciler("r", EARLY, spec);
    assert_eq!(spec(json!({"suspend": true})).reason("r"), "Suspended");
    assert_eq!(spec(json!({"config": {"a": 1}})).reason("r"), "ConfigInvalid");
    assert_eq!(spec(json!({"namespaces": "Some"})).reason("r"), "SpecInvalid");
    let mut scene = spec(json!({}));
    scene.crds.clear();
    assert_eq!(
        scene.decide("r", None).map(|_| ()),
        Err(("KindMissing".into(), true)),
        "it works when the CRD comes"
    );
    scene.crds.insert("toys.x".into(), crd(true, "v2"));
    assert_eq!(scene.reason("r"), "KindMissing");
    scene.crds.insert("toys.x".into(), crd(false, "v1"));
    assert!(scene.decide("r", None).is_ok(), "roots of cluster scope");
    let mut scene = spec(json!({"namespaces": ["n"]}));
    scene.crds.insert("toys.x".into(), crd(false, "v1"));
    assert_eq!(scene.reason("r"), "SpecInvalid", "which are in no namespace");
}

#[test]
fn a_module_that_only_serves_views_comes_into_force_for_no_reconciler() {
    let scene = Scene::new().module("one", loaded_views()).reconciler("r", EARLY, json!({}));
    let Verdict::Rest(failure, _) = decide(&scene.world(), "r", None) else { panic!("it works") };
    assert_eq!((failure.reason.as_str(), failure.path.as_deref()), ("KindMismatch", Some("spec.module")));
    assert_eq!(
        failure.message,
        "Module one serves views and reconciles nothing; name one that reconciles x/v1 Toy"
    );
    assert!(!failure.retry);
}

#[test]
fn a_reconciler_that_rests_lets_roots_go_if_they_may_have_finalizers() {
    let remainder = |scene: &Scene, name: &str| match decide(&scene.world(), name, None) {
        Verdict::Rest(_, remainder) => remainder.map(|remainder| remainder.duty),
        Verdict::Work(_) => None,
    };
    let mut scene =
        Scene::new().module("one", loaded("Toy")).reconciler("r", EARLY, json!({"suspend": true}));
    assert_eq!(remainder(&scene, "r"), None, "nothing of ours is on any root");
    let metadata = |scene: &mut Scene| {
        let reconciler = scene.reconcilers.get_mut("r").expect("it is there");
        reconciler.metadata.finalizers = Some(vec![names::FINALIZER_ROOTS.into()]);
        reconciler.metadata.clone()
    };
    metadata(&mut scene);
    assert_eq!(remainder(&scene, "r"), Some(Duty::CleanUp));
    let mut scene = Scene::new().module("one", loaded("Toy")).reconciler("r", EARLY, json!({})).reconciler(
        "s",
        LATE,
        json!({}),
    );
    let created = metadata(&mut scene).creation_timestamp;
    scene.reconcilers.get_mut("r").expect("it is there").metadata.deletion_timestamp = created;
    assert_eq!(remainder(&scene, "r"), Some(Duty::Release));
    assert_eq!(scene.reason("s"), "KindTaken", "until the other has let its roots go");
}

#[test]
fn a_reconciler_that_has_worked_tells_its_roots_before_it_goes_unless_another_takes_over() {
    let scene = |is_going: bool, successor: Option<Value>| {
        let mut scene =
            Scene::new().module("one", loaded("Toy")).reconciler("r", EARLY, json!({"suspend": true}));
        if let Some(spec) = successor {
            scene = scene.reconciler("s", LATE, spec);
        }
        let metadata = &mut scene.reconcilers.get_mut("r").expect("it is there").metadata;
        metadata.finalizers = Some(vec![names::FINALIZER_STATUSES.into()]);
        metadata.deletion_timestamp = metadata.creation_timestamp.clone().filter(|_| is_going);
        scene
    };
    for (is_going, successor, duty) in [
        (false, None, None),
        (true, None, Some(Duty::Release)),
        (true, Some(json!({})), None),
        (true, Some(json!({"suspend": true})), Some(Duty::Release)),
    ] {
        let scene = scene(is_going, successor.clone());
        let Verdict::Rest(_, remainder) = decide(&scene.world(), "r", None) else { panic!("it works") };
        assert_eq!(remainder.map(|remainder| remainder.duty), duty, "{is_going} {successor:?}");
        if successor == Some(json!({})) {
            assert!(scene.decide("s", None).is_ok(), "it does not wait");
        }
    }
}

#[test]
fn of_two_reconcilers_for_one_kind_the_older_works_and_the_other_takes_over() {
    let mut scene = Scene::new()
        .module("one", loaded("Toy"))
        .reconciler("a-younger", LATE, json!({}))
        .reconciler("older", EARLY, json!({}));
    assert!(scene.decide("older", None).is_ok());
    assert_eq!(scene.reason("a-younger"), "KindTaken");
    let later = json!({"for": {"apiVersion": "x/v2", "kind": "Toy"}});
    scene = scene.reconciler("a-younger", LATE, later);
    let Verdict::Rest(failure, _) = decide(&scene.world(), "a-younger", None) else { panic!("it works") };
    assert_eq!(
        (failure.reason.as_str(), failure.message.as_str()),
        (
            "KindTaken",
            "Reconciler older is older and already reconciles x/v1 Toy; this one takes over when it is deleted"
        )
    );
    scene = scene.reconciler("a-younger", LATE, json!({}));
    scene.reconcilers.remove("older");
    assert!(scene.decide("a-younger", None).is_ok());
}

#[test]
fn a_field_manager_belongs_to_one_reconciler() {
    let other = json!({"for": {"apiVersion": "y/v1", "kind": "Other"}, "fieldManager": "mine"});
    let scene = Scene::new().module("one", loaded("Toy")).reconciler("older", EARLY, other).reconciler(
        "younger",
        LATE,
        json!({"fieldManager": "mine"}),
    );
    assert_eq!(scene.reason("younger"), "FieldManagerTaken");
}

#[test]
fn what_was_in_force_keeps_working_with_its_own_config_until_the_new_one_can() {
    let scene = Scene::new().module("one", loaded("Toy")).reconciler("r", EARLY, json!({}));
    let before = scene.decide("r", None).expect("it works").active;
    for (progress, reason) in [
        (refused(), "ModuleNotReady"),
        (Progress::Loading, "ModuleLoading"),
        (loaded("Other"), "KindMismatch"),
    ] {
        let scene = Scene::new().module("one", loaded("Toy")).module("two", progress).reconciler(
            "r",
            EARLY,
            json!({"module": "two"}),
        );
        let in_force = scene.decide("r", Some(&before)).expect("the old one works");
        assert_eq!(in_force.active, before);
        assert_eq!(
            in_force.candidate.map(|candidate| (candidate.module, candidate.reason)),
            Some(("two".into(), reason.into()))
        );
    }
    let scene = Scene::new().module("one", loaded("Toy")).reconciler("r", EARLY, json!({"config": {"a": 1}}));
    let in_force = scene.decide("r", Some(&before)).expect("the old config works");
    assert_eq!(
        (in_force.active.config, in_force.candidate.expect("a candidate").reason),
        (Value::Null, "ConfigInvalid".into())
    );
}

#[test]
fn other_bytes_under_the_old_name_are_not_what_was_in_force() {
    let scene = Scene::new().module("one", loaded("Toy")).reconciler("r", EARLY, json!({"module": "gone"}));
    let digest = format!("sha256:{}", "0".repeat(64));
    let before = api::ActiveModule { module: "one".into(), digest, ..api::ActiveModule::default() };
    assert_eq!(scene.decide("r", Some(&before)).map(|_| ()), Err(("ModuleMissing".into(), true)));
}

#[test]
fn a_host_that_starts_rests_until_it_knows_what_becomes_of_the_module_that_was_in_force() {
    let before = api::ActiveModule { module: "old".into(), ..api::ActiveModule::default() };
    let with = |progress: Progress| {
        let scene = Scene::new().module("one", refused()).module("old", progress);
        scene.reconciler("r", EARLY, json!({})).decide("r", Some(&before)).map(|_| ())
    };
    assert_eq!(with(Progress::Loading), Err(("ModuleLoading".into(), true)));
    assert_eq!(with(refused()), Err(("ModuleNotReady".into(), false)));
}

#[test]
fn while_a_config_is_being_checked_what_was_in_force_works_and_nobody_waits_for_it() {
    let scene = |a: Value| {
        let mut scene = Scene::new().module("one", loaded_with_number()).reconciler(
            "r",
            EARLY,
            json!({"config": {"a": a}}),
        );
        scene.checks = false;
        scene
    };
    let mut first = scene(json!(1));
    assert_eq!(
        first.decide("r", None).map(|_| ()),
        Err(("ModuleLoading".into(), true)),
        "it is not known yet"
    );
    first.checks = true;
    let before = first.decide("r", None).expect("it fits").active;

    let again = scene(json!(1));
    let in_force = again.decide("r", Some(&before)).expect("what is in force was looked at before");
    assert_eq!(
        (in_force.active, in_force.candidate),
        (before.clone(), None),
        "a host that starts says nothing of it"
    );

    let mut second = scene(json!("x"));
    let reason = |scene: &Scene| {
        let in_force = scene.decide("r", Some(&before)).expect("the old config works");
        assert_eq!(in_force.active, before);
        (in_force.candidate.expect("a candidate").reason, in_force.candidate_stalled)
    };
    assert_eq!(reason(&second), ("ModuleLoading".into(), false));
    second.checks = true;
    assert_eq!(reason(&second), ("ConfigInvalid".into(), true));
}

#[test]
fn a_config_is_checked_once_for_each_module_and_again_when_either_changes() {
    let mut scene = Scene::new().module("one", loaded_with_number()).module("two", loaded("Toy")).reconciler(
        "r",
        EARLY,
        json!({}),
    );
    let due = |scene: &Scene| scene.configs.due(&scene.world());
    let first = due(&scene);
    assert_eq!((first.len(), due(&scene).len()), (1, 0), "it is under way");
    scene.reconcilers.get_mut("r").expect("it is there").spec.config = json!({"a": 1});
    assert_eq!(due(&scene).len(), 1, "another config");
    for late in &first {
        scene.configs.found(late, Err(Failure::terminal("Late", "")));
    }
    scene.checks = false;
    assert_eq!(scene.reason("r"), "ModuleLoading", "what is found of the first says nothing of the second");
    scene.reconcilers.get_mut("r").expect("it is there").spec.module = "two".into();
    assert_eq!(due(&scene).len(), 0, "a module that takes no config needs no check");
    assert_eq!(scene.reason("r"), "ConfigInvalid");
}
