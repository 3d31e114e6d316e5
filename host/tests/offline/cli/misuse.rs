//! What somebody reads who takes one file for another, or a kind that is not known here.

use super::{EMPTY, THING, fixtures, folder, manifest, response};

fn guest_of(kind: &str, object: &str) -> Vec<u8> {
    let manifest = fixtures::manifest("thing", "example.com/v1", "Thing", &[kind]);
    fixtures::answers(&manifest, &response(&format!(r#""children":[{{"id":"a","object":{object}}}]"#)))
}

fn case(expect: &str) -> String {
    format!("objects:\n- {}{expect}", THING.replace('\n', "\n  ").trim_end_matches("  "))
}

#[test]
fn children_without_a_schema_are_named_once_and_known_ones_never() {
    let limits = r#"{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"a"},"spec":{"limits":[]}}"#;
    let folder_of_limits = folder(&guest_of("v1/LimitRange", limits));
    for name in ["a", "b"] {
        folder_of_limits.write(&format!("cases/{name}.yaml"), case(""));
    }
    let said = "not checked: no schema for v1 LimitRange\n";
    for command in [
        &["render", "guest.wasm", "-f", "thing.yaml"][..],
        &["test", "guest.wasm", "cases", "--update"],
        &["check", "guest.wasm"],
    ] {
        let run = folder_of_limits.run(command);
        assert!(run.code == 0 && run.stderr == said, "{run:?}");
    }
    let job =
        r#"{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"a"},"spec":{"schedul":"@daily"}}"#;
    let run = folder(&guest_of("batch/v1/CronJob", job)).run(&["render", "guest.wasm", "-f", "thing.yaml"]);
    assert!(run.code == 1 && run.stderr.contains("did you mean schedule?"), "{run:?}");
    assert!(!run.stderr.contains("not checked"), "{run:?}");
}

#[test]
fn simulate_runs_common_kinds_and_says_which_it_does_not_know() {
    let policy = r#"{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"a"},"spec":{"podSelector":{}}}"#;
    let known = folder(&guest_of("networking.k8s.io/v1/NetworkPolicy", policy));
    known.write("sample.yaml", THING);
    let run = known.run(&["simulate", "guest.wasm", "--seeds", "5"]);
    assert_eq!(run.code, 0, "{run:?}");
    let limits = r#"{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"a"},"spec":{"limits":[]}}"#;
    let unknown = folder(&guest_of("v1/LimitRange", limits));
    unknown.write("sample.yaml", THING);
    let run = unknown.run(&["simulate", "guest.wasm"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(
        run.stderr.starts_with("error: the simulator does not know v1 LimitRange\nhint: give a CRD"),
        "{run:?}"
    );
    assert!(run.stderr.contains("--crd FILE"), "{run:?}");
}

#[test]
fn what_is_refused_is_not_recorded_as_expected_but_the_guests_own_failure_is() {
    let not_granted = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}"#;
    let misspelt = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"dta":{}}"#;
    for (object, reason) in [(not_granted, "KindNot"), (misspelt, "FieldUndeclared")] {
        let refused = folder(&guest_of("v1/ConfigMap", object));
        refused.write("cases/a.yaml", case(""));
        let run = refused.run(&["test", "guest.wasm", "cases", "--update"]);
        assert_eq!(run.code, 1, "{run:?}");
        assert!(run.stdout.contains(reason) && run.stdout.contains("the case is left as it is"), "{run:?}");
        assert!(run.stdout.ends_with("0 passed, 1 failed\n"), "{run:?}");
        assert_eq!(refused.read("cases/a.yaml"), case(""));
    }
    let broken = folder(&fixtures::traps(&manifest()));
    broken.write("cases/a.yaml", case(""));
    let run = broken.run(&["test", "guest.wasm", "cases", "--update"]);
    assert!(run.code == 1 && run.stdout.contains("the guest broke"), "{run:?}");
    assert_eq!(broken.read("cases/a.yaml"), case(""));
    let own = response(r#""reason":"TooMany","message":"m""#);
    let fails = folder(&fixtures::fails(&manifest(), &own));
    fails.write("cases/a.yaml", case(""));
    let run = fails.run(&["test", "guest.wasm", "cases", "--update"]);
    assert!(run.code == 0 && fails.read("cases/a.yaml").contains("reason: TooMany"), "{run:?}");
}

#[test]
fn a_file_in_the_wrong_place_is_told_what_goes_there() {
    let folder = folder(&fixtures::answers(&manifest(), EMPTY));
    folder.write("cases/a.yaml", case("expect:\n  children: []\n"));
    let run = folder.run(&["push", "note-1", "thing.yaml"]);
    assert!(run.stderr.contains("pintle push note-1 MODULE") && !run.stderr.contains("render"), "{run:?}");
    let run = folder.run(&["test", "cases", "guest.wasm"]);
    assert!(
        run.code == 2 && run.stderr.contains("the module comes first: pintle test guest.wasm cases"),
        "{run:?}"
    );
    let run = folder.run(&["test", "guest.wasm", "thing.yaml"]);
    assert!(
        run.code == 1
            && run.stdout.contains("thing.yaml: this is a resource, and not a case; print the answer to it with: pintle render MODULE -f thing.yaml"),
        "{run:?}"
    );
}
