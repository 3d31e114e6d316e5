//! Tests of reading scenario files, and of the errors in them.

use super::*;
use serde_json::json;

fn read(steps: &str) -> Result<Scenario, String> {
    Scenario::read("s.yaml", &format!("about: a\nsteps: {steps}\n")).map_err(|error| error.to_string())
}

#[test]
fn an_error_names_the_file_and_the_place() {
    let error = read("[{name: a, aply: []}]").unwrap_err();
    assert!(error.starts_with("s.yaml: ") && error.contains("aply") && error.contains("line 2"), "{error}");
    let error = read("[{name: a, advance: 3 days}]").unwrap_err();
    assert!(error.contains("a duration: 500ms, 30s, 2m"), "{error}");
    assert_eq!(read("[{name: a, push: m}]").unwrap_err(), "s.yaml: steps[0] (a): push: modules has no m");
}

#[test]
fn a_step_does_one_thing() {
    let error = read("[{name: a, advance: 1s, stop-host: killed}]").unwrap_err();
    assert_eq!(error, "s.yaml: steps[0] (a): a step does one thing; make it two steps");
    let error = read("[{name: a, advance: 1s, refused: no}]").unwrap_err();
    assert_eq!(error, "s.yaml: steps[0] (a): refused is about apply and patch");
    let error = read("[{name: a, advance: 1s, plan: {says: []}}]").unwrap_err();
    assert_eq!(error, "s.yaml: steps[0] (a): plan is about swap, and about patch of a Reconciler");
    let error = read("[{name: a, expect: [{object: {apiVersion: v1, kind: A, name: a}}]}]").unwrap_err();
    assert_eq!(
        error,
        "s.yaml: steps[0] (a): expect[0]: one of matches, absent, event, condition and uid is needed"
    );
}

#[test]
fn a_step_that_says_no_more_waits_thirty_seconds_and_counts_nothing() {
    let scenario =
        read("[{name: a, holdsFor: 500ms}, {name: b, mutatingCalls: {configmaps: 1}, within: 2m}]").unwrap();
    assert_eq!(
        (scenario.steps[0].within, scenario.steps[0].holds_for),
        (within(), Some(Duration::from_millis(500)))
    );
    assert_eq!(scenario.steps[0].mutating_calls, None);
    assert_eq!(scenario.steps[1].mutating_calls, Some(Calls::Of(BTreeMap::from([("configmaps".into(), 1)]))));
    assert_eq!(scenario.steps[1].within, Duration::from_secs(120));
    assert!(!scenario.is_alone());
    assert!(read("[{name: a, stop-host: killed}]").unwrap().is_alone());
}

#[test]
fn what_one_backend_alone_can_run_says_why() {
    let text = "about: a\nonly: {on: real, because: ' '}\nsteps: []\n";
    assert_eq!(
        Scenario::read("s.yaml", text).unwrap_err().to_string(),
        "s.yaml: only needs a reason: because"
    );
}

#[test]
fn the_last_that_is_expected_of_ready_counts() {
    let root = ObjectRef {
        api_version: "v1".into(),
        kind: "A".into(),
        namespace: Some("n".into()),
        name: "a".into(),
    };
    let object = "object: {apiVersion: v1, kind: A, name: a}";
    let expects = |expectations: &[&str]| {
        let steps =
            expectations.iter().map(|expected| format!("{{name: s, expect: [{{{object}, {expected}}}]}}"));
        read(&format!("[{}]", steps.collect::<Vec<_>>().join(", "))).unwrap().expects_unready(&root)
    };
    let (is, is_not) =
        ("condition: {type: Ready, status: 'True'}", "condition: {type: Ready, status: 'False'}");
    assert!(!expects(&["absent: true"]) && !expects(&[is]));
    assert!(expects(&[is_not]) && expects(&[is, is_not]) && !expects(&[is_not, is]));
    assert!(expects(&["condition: {type: Stalled, status: 'True'}"]));
    assert!(expects(&["matches: {status: {conditions: [{type: Ready, status: Unknown}]}}"]));
    let other = ObjectRef { name: "b".into(), ..root.clone() };
    assert!(
        !read(&format!("[{{name: s, expect: [{{{object}, {is_not}}}]}}]")).unwrap().expects_unready(&other)
    );
}

#[test]
fn a_module_has_one_source() {
    let read = |module: &str| {
        let text = format!("about: a\nmodules: {{m: {module}}}\nsteps: []\n");
        Scenario::read("s.yaml", &text).map_err(|error| error.to_string())
    };
    assert_eq!(
        read("{}").unwrap_err(),
        "s.yaml: modules.m: one of guest, fixture, answers and bytes is needed"
    );
    assert_eq!(read("{fixture: traps}").unwrap_err(), "s.yaml: modules.m: reconciles is needed");
    assert_eq!(read("{bytes: 20MB}").unwrap().modules["m"].bytes, Some(Bytes::TooMany));
}

#[test]
fn an_object_and_a_condition_are_a_word_or_fields() {
    let expected = |text: &str| {
        let scenario = read(&format!("[{{name: a, expect: [{text}]}}]"))?;
        let expectation = scenario.steps[0].expect[0].clone();
        let condition = expectation.condition.map(|one| (one.r#type, one.status, one.reason));
        Ok::<_, String>((expectation.object, condition))
    };
    for (word, fields) in [
        (
            "{object: apps/v1/Deployment/web, condition: Ready=False Some Reason}",
            "{object: {apiVersion: apps/v1, kind: Deployment, name: web}, \
             condition: {type: Ready, status: 'False', reason: Some Reason}}",
        ),
        (
            "{object: v1/Service/web, condition: Ready=True}",
            "{object: {apiVersion: v1, kind: Service, name: web}, condition: {type: Ready, status: 'True'}}",
        ),
    ] {
        assert_eq!(expected(word).unwrap(), expected(fields).unwrap());
    }
    let error = expected("{object: Deployment/web, absent: true}").unwrap_err();
    assert!(error.contains("apiVersion/Kind/name"), "{error}");
    let error = expected("{object: v1/Service/web, condition: Ready}").unwrap_err();
    assert!(error.contains("Type=Status Reason"), "{error}");
}

#[test]
fn a_module_brings_its_kind_its_reconciler_and_its_roots() {
    let read = |module: &str| {
        let text = format!(
            "about: a\nmodules: {{thing: {{answers: {{}}, {module}}}}}\nobjects: [{{}}]\nsteps: []\n"
        );
        Scenario::read("s.yaml", &text).map_err(|error| error.to_string())
    };
    let module = "reconciles: Thing, children: [v1/ConfigMap, apps/v1/Deployment]";
    let scenario = read(&format!("{module}, reconciler: {{suspend: true}}, roots: [a, b]")).unwrap();
    assert_eq!(scenario.kinds, BTreeMap::from([("Thing".into(), CustomKind::HostStatus)]));
    let root = |name: &str| json!({"apiVersion": "acceptance.pintle.dev/v1", "kind": "Thing", "metadata": {"name": name}, "spec": {}});
    let reconciler = json!({
        "apiVersion": "pintle.dev/v1alpha1", "kind": "Reconciler", "metadata": {"name": "thing"},
        "spec": {
            "for": {"apiVersion": "acceptance.pintle.dev/v1", "kind": "Thing"}, "module": "thing", "suspend": true,
            "grants": {"children": [
                {"apiVersion": "v1", "kinds": ["ConfigMap"]}, {"apiVersion": "apps/v1", "kinds": ["Deployment"]},
            ]},
        },
    });
    assert_eq!(scenario.objects, [json!({}), reconciler, root("a"), root("b")]);
    assert!(read(module).unwrap().kinds.is_empty());
    assert_eq!(read("reconciler: {}").unwrap_err(), "s.yaml: modules.thing: reconciles is needed");
    let error = read(&format!("{module}, roots: [a]")).unwrap_err();
    assert_eq!(error, "s.yaml: modules.thing: roots need a reconciler");
}
