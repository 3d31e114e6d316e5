//! The command line without a cluster: the built binary, on files.

mod author;
mod cluster;
mod folder;
mod guests;
mod misuse;
mod rbac;
mod rbac_views;
mod shell;
mod simulate;
mod views;
mod words;

use pintle_engine::fixtures;

use folder::{Folder, Run};
use guests::{clings_to_its_needs, hashes_its_request};

const EMPTY: &str = r#"{"apiVersion":"guest.pintle.dev/v1"}"#;

const SEEN: &str = r#"{"apiVersion":"guest.pintle.dev/v1","status":{"seen":true}}"#;

const THING: &str = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\nspec: {}\n";

fn manifest() -> String {
    fixtures::manifest("thing", "example.com/v1", "Thing", &["v1/ConfigMap", "v1/Secret"])
}

fn observing_status() -> String {
    manifest().replacen('{', r#"{"observeStatus":true,"#, 1)
}

fn response(rest: &str) -> String {
    format!(r#"{{"apiVersion":"guest.pintle.dev/v1",{rest}}}"#)
}

fn config_map(name: &str) -> String {
    format!(
        r#"{{"id":"{name}","object":{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}},"data":{{"k":"v"}}}}}}"#
    )
}

/// A folder with a custom resource, and a guest.
fn folder(module: &[u8]) -> Folder {
    let folder = Folder::new();
    folder.write("thing.yaml", THING);
    folder.write("guest.wasm", module);
    folder
}

fn render(module: &[u8]) -> Run {
    folder(module).run(&["render", "guest.wasm", "-f", "thing.yaml"])
}

#[test]
fn a_bad_module_is_refused_with_its_reason() {
    let manifest = manifest();
    let cases: [(Vec<u8>, &str, &str); 8] = [
        (b"just text".to_vec(), "NotWasm", "the file is text, not WebAssembly"),
        (Vec::new(), "NotWasm", "the file is empty"),
        (fixtures::core_module(), "CoreModule", "run: pintle build\n"),
        (fixtures::imports_wasi(&manifest), "ImportsNotAllowed", "wasi:cli/environment@0.2.6"),
        (fixtures::without_reconcile(&manifest), "MissingExport", "reconcile"),
        (
            fixtures::wrong_type(&manifest),
            "WrongExportType",
            "must be func(string) -> result<string, string>",
        ),
        (vec![0; 20 << 20], "ModuleTooLarge", "the limit is 8388608"),
        (fixtures::answers("not a manifest", EMPTY), "InvalidJson", "describe"),
    ];
    for (module, reason, text) in cases {
        for command in ["check", "render"] {
            let folder = folder(&module);
            let run = match command {
                "check" => folder.run(&["check", "guest.wasm"]),
                _ => folder.run(&["render", "guest.wasm", "-f", "thing.yaml"]),
            };
            assert_eq!(run.code, 1, "{run:?}");
            assert!(run.stderr.starts_with(&format!("error: guest.wasm: {reason}: ")), "{run:?}");
            assert!(run.stderr.contains(text), "{run:?}");
        }
    }
}

#[test]
fn a_bad_module_is_refused_before_a_cluster_is_looked_for() {
    let run = folder(&fixtures::core_module()).run(&[
        "push",
        "thing-0.1.0",
        "guest.wasm",
        "--kubeconfig",
        "missing",
    ]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains("CoreModule") && run.stderr.ends_with("run: pintle build\n"), "{run:?}");
}

#[test]
fn check_says_in_json_why_a_module_is_bad() {
    let run = folder(&fixtures::core_module()).run(&["check", "guest.wasm", "-o", "json"]);
    let data: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(data["failure"]["reason"], "CoreModule");
    let run = folder(&fixtures::answers(&manifest(), SEEN)).run(&["check", "guest.wasm", "-o", "json"]);
    let data: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(data["manifest"]["name"], "thing");
    assert!(
        data["digest"].as_str().unwrap().starts_with("sha256:")
            && data["calls"][0]["fuel"].as_u64() > Some(0),
        "{data}"
    );
}

#[test]
fn a_guest_that_breaks_is_found_by_check() {
    for (module, reason) in [
        (fixtures::traps(&manifest()), "GuestTrapped"),
        (fixtures::loops(&manifest()), "FuelExhausted"),
        (fixtures::allocates(&manifest()), "MemoryLimitExceeded"),
        (fixtures::recurses(&manifest()), "StackOverflow"),
        (fixtures::returns_big(&manifest(), 8 << 20), "ResponseTooLarge"),
        (fixtures::out_of_bounds(&manifest()), "AnswerOutOfBounds"),
        (fixtures::answers(&manifest(), "{"), "InvalidJson"),
        (fixtures::invalid_utf8(&manifest()), "InvalidUtf8"),
    ] {
        let run = folder(&module).run(&["check", "guest.wasm"]);
        assert_eq!(run.code, 1, "{run:?}");
        assert!(run.stderr.contains(reason), "{reason}: {run:?}");
    }
}

#[test]
fn a_manifest_that_asks_for_too_much_is_not_supported() {
    let secrets = r#","patches":[{"apiVersion":"v1","kind":"Secret","fields":["data"]}],"children""#;
    let manifest = manifest().replace(r#","children""#, secrets);
    let run = folder(&fixtures::answers(&manifest, SEEN)).run(&["check", "guest.wasm"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains("PatchForbidden: patches[0].kind"), "{run:?}");
}

#[test]
fn an_empty_answer_is_no_failure() {
    let run = render(&fixtures::answers(&manifest(), EMPTY));
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stdout.starts_with("children: []\n") && run.stderr.is_empty(), "{run:?}");
}

#[test]
fn a_guests_own_failure_is_printed_as_one() {
    let run = render(&fixtures::fails(
        &manifest(),
        &response(r#""reason":"NoLuck","message":"try later","path":"spec.a""#),
    ));
    assert_eq!(run.code, 1, "{run:?}");
    assert_eq!(run.stderr, "error: the guest cannot decide: NoLuck: spec.a: try later\n");
    assert_eq!(
        run.stdout,
        "failure:\n  message: try later\n  path: spec.a\n  reason: NoLuck\n  retry: false\n"
    );
}

#[test]
fn what_the_gate_refuses_is_a_failure_with_its_path() {
    let child = r#"{"id":"a","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"kube-system"}}}"#;
    let run = render(&fixtures::answers(&manifest(), &response(&format!(r#""children":[{child}]"#))));
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.stdout.contains("reason: NamespaceForbidden")
            && run.stdout.contains("path: children[0].object.metadata.namespace"),
        "{run:?}"
    );
}

#[test]
fn children_are_printed_without_what_the_host_adds() {
    let module = fixtures::answers(&manifest(), &response(&format!(r#""children":[{}]"#, config_map("a"))));
    let run = render(&module);
    assert!(run.stdout.contains("namespace: default") && !run.stdout.contains("pintle.dev"), "{run:?}");
    let full = folder(&module).run(&["render", "guest.wasm", "-f", "thing.yaml", "--full"]);
    assert!(
        full.stdout.contains("ownerReferences") && full.stdout.contains("pintle.dev/desired"),
        "{full:?}"
    );
    let json = folder(&module).run(&["render", "guest.wasm", "-f", "thing.yaml", "-o", "json"]);
    let data: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(data["children"][0]["data"]["k"], "v");
}

#[test]
fn files_that_do_not_make_a_run_are_a_wrong_use() {
    let folder = folder(&fixtures::answers(&manifest(), SEEN));
    folder.write("two.yaml", format!("{THING}---\n{}", THING.replace("name: a", "name: b")));
    folder.write("other.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: blog}\n");
    folder.write("broken.yaml", "apiVersion: v1\nkind: [\n");
    for (files, text) in [
        (&["other.yaml"][..], "no Thing (example.com/v1) in the files"),
        (&["two.yaml"][..], "two objects of kind Thing"),
        (&["broken.yaml"][..], "broken.yaml: "),
        (&["missing.yaml"][..], "missing.yaml cannot be read"),
    ] {
        let mut arguments = vec!["render", "guest.wasm"];
        files.iter().for_each(|file| arguments.extend(["-f", file]));
        let run = folder.run(&arguments);
        assert_eq!(run.code, 2, "{run:?}");
        assert!(run.stderr.starts_with("error: ") && run.stderr.contains(text), "{run:?}");
    }
    let run = folder.run(&["render", "guest.wasm", "-f", "thing.yaml", "-f", "other.yaml"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stderr.starts_with("warning: other.yaml: Namespace blog plays no part"), "{run:?}");
}

#[test]
fn a_config_that_the_guest_does_not_take_is_named_by_its_path() {
    let folder = folder(&fixtures::answers(&manifest(), SEEN));
    folder.write(
        "reconciler.yaml",
        "apiVersion: pintle.dev/v1alpha1\nkind: Reconciler\nmetadata: {name: thing}\nspec:\n  for: {apiVersion: example.com/v1, kind: Thing}\n  module: m\n  config: {a: 1}\n",
    );
    let run = folder.run(&["render", "guest.wasm", "-f", "thing.yaml", "-f", "reconciler.yaml"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.stdout.contains("reason: ConfigInvalid") && run.stdout.contains("path: spec.config"),
        "{run:?}"
    );
}

#[test]
fn a_misspelt_field_of_a_reconciler_is_not_passed_over() {
    let folder = folder(&fixtures::answers(&manifest(), SEEN));
    folder.write(
        "reconciler.yaml",
        "apiVersion: pintle.dev/v1alpha1\nkind: Reconciler\nmetadata: {name: thing}\nspec:\n  for: {apiVersion: example.com/v1, kind: Thing}\n  module: m\n  limits: {childern: 3}\n",
    );
    let run = folder.run(&["render", "guest.wasm", "-f", "thing.yaml", "-f", "reconciler.yaml"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stdout.contains("path: spec.limits.childern"), "{run:?}");
}

#[test]
fn a_case_that_differs_shows_where_and_can_be_updated() {
    let module = fixtures::answers(
        &manifest(),
        &response(&format!(r#""children":[{}],"status":{{"size":1}}"#, config_map("a"))),
    );
    let folder = folder(&module);
    let objects = "# why\nobjects:\n- apiVersion: example.com/v1\n  kind: Thing # the root\n  metadata: {name: a}\n  spec: {}\n";
    folder.write("cases/a.yaml", format!("{objects}expect:\n  children: []\n  status: {{size: 2}}\n"));
    let run = folder.run(&["test", "guest.wasm", "cases"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.stdout.starts_with("FAILED  cases/a.yaml\n") && run.stdout.ends_with("0 passed, 1 failed\n"),
        "{run:?}"
    );
    assert!(run.stdout.contains("-   size: 2\n") && run.stdout.contains("+   size: 1\n"), "{run:?}");

    let run = folder.run(&["test", "guest.wasm", "cases", "--update"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(
        folder.read("cases/a.yaml").starts_with(&format!("{objects}expect:\n")),
        "{}",
        folder.read("cases/a.yaml")
    );
    let run = folder.run(&["test", "guest.wasm", "cases", "-o", "json"]);
    let data: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((run.code, &data["passed"], &data["failed"]), (0, &1.into(), &0.into()), "{run:?}");
}

#[test]
fn a_broken_case_fails_and_the_others_still_run() {
    let folder = folder(&fixtures::answers(&manifest(), SEEN));
    let good = format!(
        "objects:\n- {}expect:\n  status: {{seen: true}}\n",
        THING.replace('\n', "\n  ").trim_end_matches("  ")
    );
    folder.write("cases/a.yaml", good.replace("expect", "expects"));
    folder.write("cases/b.yaml", &good);
    let refusal = "refusals:\n- child: {apiVersion: v1, kind: ConfigMap, name: nobody}\n";
    folder.write("cases/c.yaml", format!("{refusal}{good}"));
    let run = folder.run(&["test", "guest.wasm", "cases"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stdout.contains("expects") && run.stdout.contains("ok      cases/b.yaml"), "{run:?}");
    assert!(
        run.stdout.contains("refusals[0] refuses ConfigMap nobody")
            && run.stdout.ends_with("1 passed, 2 failed\n"),
        "{run:?}"
    );
}

#[test]
fn a_case_whose_root_has_a_status_that_its_guest_is_not_shown_fails() {
    let case = format!(
        "objects:\n- {}  status: {{seen: true, observedGeneration: 1}}\nexpect:\n  status: {{seen: true}}\n",
        THING.replace('\n', "\n  ").trim_end_matches("  ")
    );
    let test = |manifest: &str| {
        let folder = folder(&fixtures::answers(manifest, SEEN));
        folder.write("case.yaml", &case);
        folder.run(&["test", "guest.wasm", "case.yaml"])
    };
    let run = test(&manifest());
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stdout.contains("the root's status has seen, which guest thing is not shown"), "{run:?}");
    assert_eq!(test(&observing_status()).code, 0);
}

#[test]
fn a_guest_that_is_never_content_is_found() {
    let folder = folder(&hashes_its_request(&observing_status()));
    let run = folder.run(&["render", "guest.wasm", "-f", "thing.yaml"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains("NotIdempotent") && run.stderr.contains("status.n: "), "{run:?}");
    assert!(run.stdout.starts_with("failure:\n"), "{run:?}");
}

#[test]
fn a_guest_whose_answer_depends_on_the_order_of_its_children_is_found() {
    let observed = manifest().replace(r#""kind":"ConfigMap""#, r#""kind":"ConfigMap","observe":true"#);
    let folder = folder(&hashes_its_request(&observed));
    let config_map =
        |name: &str| format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
    folder.write("children.yaml", format!("{}{}", config_map("a"), config_map("b")));
    let run = folder.run(&["check", "guest.wasm", "-f", "thing.yaml", "-f", "children.yaml"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains("NotDeterministic: asked with the children in another order"), "{run:?}");
}

#[test]
fn a_child_that_is_somebody_elses_is_left_alone() {
    let module = fixtures::answers(
        &manifest(),
        &response(&format!(r#""children":[{}],"status":{{"seen":true}}"#, config_map("a"))),
    );
    let folder = folder(&module);
    folder.write(
        "foreign.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, ownerReferences: []}\ndata: {k: theirs}\n",
    );
    let run = folder.run(&["render", "guest.wasm", "-f", "thing.yaml", "-f", "foreign.yaml"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(
        run.stderr.contains("AdoptionConflict") && run.stdout.contains("reason: AdoptionConflict"),
        "{run:?}"
    );
    folder.write("own.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: old}\n");
    let run = folder.run(&["render", "guest.wasm", "-f", "thing.yaml", "-f", "own.yaml"]);
    assert!(run.stderr.is_empty() && run.stdout.contains("reason: Succeeded"), "{run:?}");
}

#[test]
fn rbac_and_crds_print_what_kubectl_applies() {
    let folder = folder(&fixtures::answers(&manifest(), SEEN));
    let run = folder.run(&["rbac", "guest.wasm", "--plural", "Thing=thingies"]);
    assert!(
        run.stdout.contains("- thingies/status")
            && run.stdout.contains("pintle.dev/aggregate-to-host: \"true\""),
        "{run:?}"
    );
    let run = folder.run(&["crds"]);
    assert!(
        run.stdout.contains("name: modules.pintle.dev")
            && run.stdout.contains("name: reconcilers.pintle.dev"),
        "{run:?}"
    );
    let run = folder.run(&["crds", "."]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("hint: generate it with: pintle build"), "{run:?}");
}

#[test]
fn wrong_flags_and_commands_exit_with_2() {
    let folder = Folder::new();
    assert_eq!(folder.run(&["rendr"]).code, 2);
    assert_eq!(folder.run(&["render"]).code, 2);
    assert_eq!(folder.run(&["--help"]).code, 0);
    assert_eq!(folder.run(&["--version"]).stdout, format!("pintle {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_folder_that_is_no_guest_cannot_be_built() {
    let run = Folder::new().run(&["build"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("no Cargo.toml") && run.stderr.contains("pintle new NAME"), "{run:?}");
}

#[test]
fn a_guest_that_answers_otherwise_from_the_empty_set_of_needs_is_found() {
    let mut declares: serde_json::Value = serde_json::from_str(&manifest()).unwrap();
    declares["needs"] = serde_json::json!([{"apiVersion": "v1", "kind": "Pod"}]);
    declares["observeStatus"] = true.into();
    let asks = r#""needs":[{"objects":{"apiVersion":"v1","kind":"Pod","select":{"name":"q"}}}]"#;
    let (first, shown) = (response(asks), response(&format!(r#"{asks},"status":{{"n":"w"}}"#)));
    let other = response(r#""status":{"n":"other"}"#);
    let check = |anew: &str| {
        let module = clings_to_its_needs(&declares.to_string(), &first, &shown, anew);
        folder(&module).run(&["check", "guest.wasm"])
    };
    let run = check(&other);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains("from the empty set of needs"), "{run:?}");
    let run = check(&first);
    assert_eq!(run.code, 0, "one that asks for the same again: {run:?}");
}

#[test]
fn stages_are_printed_and_a_case_expects_them() {
    let later = config_map("b").replacen(r#""id":"b","#, r#""id":"b","stage":2,"#, 1);
    let children = format!(r#""children":[{},{later}]"#, config_map("a"));
    let module = fixtures::answers(&manifest(), &response(&children));
    let run = render(&module);
    assert!(run.stdout.contains("stages:\n  ConfigMap/b: 2\n"), "{run:?}");
    let folder = folder(&module);
    folder.write("case.yaml", format!("objects:\n- {}\n", THING.trim_end().replace('\n', "\n  ")));
    let updated = folder.run(&["test", "guest.wasm", "case.yaml", "--update"]);
    assert!(updated.stdout.contains("1 updated"), "{updated:?}");
    let passed = folder.run(&["test", "guest.wasm", "case.yaml"]);
    assert!(passed.stdout.contains("1 passed"), "{passed:?}");
}
