//! What the author of a guest reads where something does not work, from the first look at a file to a run that fails.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use pintle_engine::fixtures::{self, views::Outcome};
use serde_json::{Value, json};

use super::{
    SEEN, THING, cluster::Served, config_map, folder, folder::Folder, folder::Run, manifest, response,
};

/// The manifest of a guest with one child kind.
fn with_child(kind: &str) -> String {
    fixtures::manifest("thing", "example.com/v1", "Thing", &[kind])
}

/// A guest that answers with one child.
fn answers_child(manifest: &str, object: &Value) -> Vec<u8> {
    fixtures::answers(manifest, &response(&format!(r#""children":[{{"id":"a","object":{object}}}]"#)))
}

/// A guest whose Deployment has these fields in its spec.
fn deployment(spec: &Value) -> Vec<u8> {
    let object =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec});
    answers_child(&with_child("apps/v1/Deployment"), &object)
}

/// A folder with a guest and, beside it, a sample and a case that expects some answer.
fn scaffold(module: &[u8]) -> Folder {
    let folder = folder(module);
    folder.write("sample.yaml", THING);
    let object = THING.trim_end().replace('\n', "\n  ");
    folder.write("cases/a.yaml", format!("objects:\n- {object}\nexpect: {{}}\n"));
    folder
}

/// The CRD of Things, of this spec, whose status has what the host writes and nothing else.
fn crd(spec: &Value) -> Value {
    let status = json!({"type": "object", "properties": pintle_wit::schema::host_status_properties()});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Thing", "listKind": "ThingList", "plural": "things", "singular": "thing"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}},
            }],
        },
    })
}

const REPLICA: &str = "children[0].object.spec.replica: Deployment web has no field replica in Kubernetes 1.36; did you mean replicas?";

fn has_no_debug_text(run: &Run) {
    for text in ["Some(", "None", "Ok(", "Err(", "Apply ", "Object {", "O1)", "O4", "O10"] {
        assert!(!run.stdout.contains(text) && !run.stderr.contains(text), "{text}: {run:?}");
    }
}

#[test]
fn simulate_does_not_turn_green_on_a_guest_whose_every_root_is_refused() {
    let object = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}});
    let folder = scaffold(&answers_child(&manifest(), &object));
    let run = folder.run(&["simulate", "guest.wasm", "--seeds", "5"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.stdout.starts_with(
            "FAILED  sample.yaml: Thing sample/a is not Ready: KindNotDeclared: children[0].object.kind: "
        ),
        "{run:?}"
    );
    assert!(!run.stdout.contains("0 failed"), "{run:?}");
    has_no_debug_text(&run);
    // What a scenario expects is no failure.
    folder.write(
        "steps.yaml",
        "about: It is refused.\nobjects: [{apiVersion: example.com/v1, kind: Thing, metadata: {name: a}, spec: {}}]\nsteps:\n- name: it says so\n  expect: [{object: {apiVersion: example.com/v1, kind: Thing, name: a}, condition: {type: Ready, status: \"False\", reason: KindNotDeclared}}]\n",
    );
    let run = folder.run(&["simulate", "guest.wasm", "--scenario", "steps.yaml", "--seeds", "5"]);
    assert!(run.code == 0 && run.stdout.starts_with("5 plans, 0 failed"), "{run:?}");
}

#[test]
fn a_status_field_that_the_crd_lacks_is_told_by_every_command() {
    let folder = scaffold(&fixtures::answers(&manifest(), SEEN));
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    folder.write("crd.yaml", crd(&anything).to_string());
    let simulated = folder.run(&["simulate", "guest.wasm", "--seeds", "5"]);
    assert!(
        simulated.stdout.starts_with(
            "FAILED  sample.yaml: Thing sample/a is not Ready: StatusFieldUndeclared: status.seen: "
        ),
        "{simulated:?}"
    );
    let rendered = folder.run(&["render", "guest.wasm", "-f", "thing.yaml"]);
    assert!(
        rendered
            .stderr
            .starts_with("error: the gate refuses the guest's answer: StatusFieldUndeclared: status.seen: "),
        "{rendered:?}"
    );
    let tested = folder.run(&["test", "guest.wasm", "cases"]);
    assert!(tested.stdout.contains("StatusFieldUndeclared: status.seen: "), "{tested:?}");
    let checked = folder.run(&["check", "guest.wasm"]);
    assert!(checked.stderr.contains("StatusFieldUndeclared: status.seen: "), "{checked:?}");
    for run in [simulated, rendered, tested, checked] {
        assert_eq!(run.code, 1, "{run:?}");
    }
    // Without the CRD, nothing is known of the status.
    for words in [
        &["render", "guest.wasm", "-f", "thing.yaml"][..],
        &["check", "guest.wasm"],
        &["simulate", "guest.wasm", "--seeds", "5"],
    ] {
        let run = folder.run(&[words, &["--no-crd"]].concat());
        assert_eq!(run.code, 0, "{run:?}");
    }
    let run = folder.run(&["test", "guest.wasm", "cases", "--no-crd"]);
    assert!(!run.stdout.contains("StatusFieldUndeclared"), "{run:?}");
}

#[test]
fn a_misspelt_field_of_a_child_is_told_by_every_command_with_the_nearest_name() {
    let folder = scaffold(&deployment(&json!({"replica": 1})));
    let simulated = folder.run(&["simulate", "guest.wasm", "--seeds", "5"]);
    assert!(
        simulated.stdout.starts_with(&format!("FAILED  sample.yaml: FieldUndeclared: {REPLICA}\n")),
        "{simulated:?}"
    );
    let rendered = folder.run(&["render", "guest.wasm", "-f", "thing.yaml"]);
    assert!(
        rendered.stderr.contains(&format!("FieldUndeclared: {REPLICA}\n"))
            && rendered.stdout.contains("path: children[0].object.spec.replica\n"),
        "{rendered:?}"
    );
    let tested = folder.run(&["test", "guest.wasm", "cases"]);
    assert!(tested.stdout.contains(&format!("FieldUndeclared: {REPLICA}\n")), "{tested:?}");
    let checked = folder.run(&["check", "guest.wasm", "-f", "thing.yaml"]);
    assert!(checked.stderr.contains(&format!("FieldUndeclared: {REPLICA}")), "{checked:?}");
    for run in [simulated, rendered, tested, checked] {
        assert_eq!(run.code, 1, "{run:?}");
        has_no_debug_text(&run);
    }
    // Also where nobody said what to ask about.
    std::fs::remove_dir_all(folder.path("cases")).unwrap();
    let run = folder.run(&["check", "guest.wasm"]);
    assert!(run.code == 1 && run.stderr.contains(REPLICA), "{run:?}");
}

#[test]
fn a_number_that_comes_out_as_its_neighbour_is_told_by_check_with_both() {
    let checked = |weight: &str| {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"weight": weight}});
        let folder = folder(&answers_child(&with_child("v1/ConfigMap"), &object));
        let spec = json!({"type": "object", "properties": {"weight": {"type": "number"}}});
        folder.write("crd.yaml", crd(&spec).to_string());
        folder.run(&["check", "guest.wasm"])
    };
    let run = checked("254.62859566035831");
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.stderr.contains("NumberChanged: asked about a root with spec.weight: 254.62859566035834, children[0].object.data.weight: 254.6285956603583"),
        "{run:?}"
    );
    let run = checked("254.62859566035834");
    assert!(run.code == 0 && run.stdout.contains(" stay the same\n"), "{run:?}");
}

#[test]
fn a_value_of_the_wrong_type_is_told_with_its_path() {
    let run =
        scaffold(&deployment(&json!({"replicas": "3"}))).run(&["render", "guest.wasm", "-f", "thing.yaml"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert_eq!(
        run.stderr,
        "error: the API server would refuse what the guest answers: Invalid: children[0].object.spec.replicas: Deployment web: \"3\" is not an integer\n"
    );
}

#[test]
fn check_fails_where_a_case_ends_in_a_failure_that_it_does_not_expect() {
    let fails = fixtures::fails(
        &manifest(),
        &response(r#""reason":"Invalid","message":"is required","path":"spec.text""#),
    );
    let folder = scaffold(&fails);
    let run = folder.run(&["check", "guest.wasm"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert_eq!(run.stderr, "error: guest.wasm: Invalid: spec.text: is required (cases/a.yaml)\n");
    assert!(run.stdout.contains("not known, since a call failed"), "{run:?}");
    let tested = folder.run(&["test", "guest.wasm", "cases"]);
    assert!(
        tested.stdout.contains("the guest cannot decide: Invalid: spec.text: is required\n"),
        "{tested:?}"
    );
    let expecting = |reason: &str| {
        let case = folder.read("cases/a.yaml");
        let (objects, _) = case.split_once("expect:").unwrap();
        folder.write("cases/a.yaml", format!("{objects}expect: {{failure: {{reason: {reason}}}}}\n"));
        folder.run(&["check", "guest.wasm"])
    };
    assert_eq!(expecting("Invalid").code, 0);
    let run = expecting("NoLuck");
    assert!(run.code == 1 && run.stderr.contains("spec.text: is required"), "{run:?}");
}

const RECONCILER: &str = "apiVersion: pintle.dev/v1alpha1\nkind: Reconciler\nmetadata: {name: thing}\nspec:\n  for: {apiVersion: example.com/v1, kind: Thing}\n  module: m\n";

#[test]
fn a_config_that_the_guest_does_not_have_is_told_with_what_to_remove() {
    let folder = folder(&fixtures::answers(&manifest(), SEEN));
    folder.write("reconciler.yaml", format!("{RECONCILER}  config: {{image: nginx}}\n"));
    let run = folder.run(&["render", "guest.wasm", "-f", "thing.yaml", "-f", "reconciler.yaml"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert_eq!(
        run.stderr,
        "error: reconciler.yaml: ConfigInvalid: spec.config.image: this guest takes no config; remove it\n"
    );
}

#[test]
fn a_kind_that_is_not_granted_is_told_with_the_line_that_grants_it() {
    let folder =
        folder(&fixtures::answers(&manifest(), &response(&format!(r#""children":[{}]"#, config_map("a")))));
    folder.write("reconciler.yaml", RECONCILER);
    let run = folder.run(&["render", "guest.wasm", "-f", "thing.yaml", "-f", "reconciler.yaml"]);
    assert_eq!(run.code, 1, "{run:?}");
    let (told, line) = run.stderr.trim_end().split_once("; add to its spec.grants.children: ").unwrap();
    assert!(
        told.contains("KindNotGranted: children[0].object.kind: ") && told.contains("Reconciler thing"),
        "{run:?}"
    );
    // The line, pasted.
    folder.write("reconciler.yaml", format!("{RECONCILER}  grants:\n    children:\n    {line}\n"));
    let run = folder.run(&["render", "guest.wasm", "-f", "thing.yaml", "-f", "reconciler.yaml"]);
    assert_eq!(run.code, 0, "{run:?}");
}

#[test]
fn a_file_that_is_no_module_is_told_with_what_to_run_instead() {
    let folder = folder(b"");
    folder.write("greeter/Cargo.toml", "[package]\n");
    folder.write("greeter/src/lib.rs", "//! A guest.\n");
    folder.write("guest.wat", "(component)\n");
    folder.write("notes", "a module\n");
    for (file, hint) in [
        ("thing.yaml", "pintle render MODULE -f thing.yaml\n"),
        ("greeter/src/lib.rs", "pintle build greeter\n"),
        ("greeter/Cargo.toml", "pintle build greeter\n"),
        ("greeter", "pintle build greeter\n"),
        ("guest.wat", "wasm-tools parse guest.wat -o guest.wasm\n"),
        ("notes", "pintle build FOLDER\n"),
    ] {
        for command in ["check", "simulate"] {
            let run = folder.run(&[command, file]);
            assert!(run.code != 0 && run.stderr.ends_with(hint), "{command} {file}: {run:?}");
        }
        let run = folder.run(&["push", "a-0.1.0", file, "--kubeconfig", "missing"]);
        // What has objects is for `render`; here a module is pushed.
        let hint = if file == "thing.yaml" { "pintle push a-0.1.0 MODULE\n" } else { hint };
        assert!(run.code != 0 && run.stderr.ends_with(hint), "push {file}: {run:?}");
    }
}

#[test]
fn a_module_that_only_serves_views_is_shown_with_them_and_reconciles_nothing() {
    const VIEWS: &str = "things: example.com/v1 Thing of v1 ConfigMap, writable";
    let manifest = fixtures::views::manifest("thing");
    let folder = folder(&fixtures::views::serves(&manifest, Outcome::Trap, Outcome::Trap));
    folder.write("thing.yaml", THING);
    let run = folder.run(&["check", "guest.wasm"]);
    // It traps, which is all that speaks against it.
    assert!(run.stdout.contains(VIEWS) && !run.stdout.contains("Reconciles"), "{run:?}");
    assert!(run.code == 1 && run.stderr.contains("every call is answered: GuestTrapped"), "{run:?}");
    let run = folder.run(&["check", "guest.wasm", "-o", "json"]);
    let data: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(data["exports"], json!(["pintle:guest/views@0.1.0"]));
    assert_eq!(data["viewsManifest"]["views"][0]["shown"]["plural"], "things");
    assert_eq!(data.get("manifest"), None);
    let run = folder.run(&["render", "guest.wasm", "-f", "thing.yaml"]);
    assert!(
        run.code == 2 && run.stderr.contains(&format!("\nhint: the views of the module: {VIEWS}\n")),
        "{run:?}"
    );
    let run = folder.run(&["simulate", "guest.wasm"]);
    let told = format!(
        "error: guest.wasm reconciles nothing; it serves views: {VIEWS}\nhint: see what is known of it with: pintle check guest.wasm\n"
    );
    assert_eq!((run.code, run.stderr), (2, told));
}

#[test]
fn what_is_hidden_is_not_suggested() {
    let folder = Folder::new();
    for word in ["compil", "comp", "compile-it"] {
        let run = folder.run(&[word]);
        assert!(run.code == 2 && !run.stderr.contains("'compile'"), "{run:?}");
    }
    let run = folder.run(&["simulat"]);
    assert!(run.stderr.contains("'simulate'"), "{run:?}");
}

#[test]
fn whoever_means_the_standard_input_is_told_how_it_is_named() {
    let folder = folder(&fixtures::answers(&manifest(), SEEN));
    for words in [
        &["render", "-"][..],
        &["render", "guest.wasm", "-"],
        &["render", "-", "guest.wasm"],
        &["check", "guest.wasm", "-"],
    ] {
        let run = folder.run(words);
        assert_eq!(run.code, 2, "{run:?}");
        let hint =
            format!("hint: -f - reads objects from the standard input: pintle {} MODULE -f -\n", words[0]);
        assert!(run.stderr.ends_with(&hint), "{run:?}");
    }
    let run = folder.run(&["render", "guest.wasm"]);
    assert!(!run.stderr.contains("standard input"), "{run:?}");
}

#[test]
fn help_is_readable_where_sixty_columns_are_all_there_is() {
    let folder = Folder::new();
    for command in [
        "new",
        "build",
        "render",
        "test",
        "simulate",
        "check",
        "crds",
        "rbac",
        "push",
        "plan",
        "swap",
        "inspect",
        "record",
        "status",
        "uninstall",
        "operator",
        "version",
        "completion",
    ] {
        let run = folder.run_with(&[("COLUMNS", "60")], &[command, "--help"]);
        let wide: Vec<&str> = run.stdout.lines().filter(|line| line.chars().count() > 60).collect();
        assert!(run.code == 0 && wide.is_empty(), "{command}: {wide:#?}");
    }
    let run = folder.run_with(&[("COLUMNS", "60")], &["--help"]);
    assert!(run.stdout.lines().all(|line| line.chars().count() <= 60), "{run:?}");
}

/// A pipe is no terminal either.
#[test]
fn a_log_for_people_has_no_colour_in_a_file() {
    let folder = Folder::new();
    folder.write("kubeconfig", Served::default().start());
    let mut host = Command::new(env!("CARGO_BIN_EXE_pintle"))
        .args(["operator", "--log-format", "text", "--bind", "127.0.0.1:0", "--kubeconfig"])
        .arg(folder.path("kubeconfig"))
        .env_remove("NO_COLOR")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(host.stderr.take().unwrap()).read_line(&mut line).unwrap();
    host.kill().unwrap();
    host.wait().unwrap();
    assert!(line.contains(" INFO ") || line.contains(" WARN ") || line.contains(" ERROR "), "{line:?}");
    assert!(!line.contains('\u{1b}'), "{line:?}");
}

#[test]
fn where_pintle_is_not_installed_the_hint_is_a_command_that_works() {
    let folder = folder(&fixtures::answers(&manifest(), SEEN));
    folder.write("kubeconfig", Served::default().start());
    let run = folder.run(&["push", "thing-0.1.0", "guest.wasm", "--kubeconfig", "kubeconfig"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(
        run.stderr.ends_with("hint: run: kubectl apply --server-side -f deploy/install.yaml\n"),
        "{run:?}"
    );
}

#[test]
fn nothing_is_removed_from_a_cluster_that_nobody_was_asked_about() {
    let folder = Folder::new();
    let run = folder.run(&["uninstall", "--kubeconfig", "missing"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("no terminal") && run.stderr.ends_with("then add --yes\n"), "{run:?}");
}

/// What the guest says of a root that its CRD would not let in is worth a case: older roots were let in, and CRDs of others are laxer.
#[test]
fn a_case_may_be_about_a_root_that_the_crd_beside_the_module_refuses() {
    let fails = fixtures::fails(
        &manifest(),
        &response(r#""reason":"InvalidSpec","message":"is too small","path":"spec.size""#),
    );
    let folder = scaffold(&fails);
    let spec = json!({"type": "object", "properties": {"size": {"type": "integer", "minimum": 1}}});
    folder.write("crd.yaml", crd(&spec).to_string());
    let case = |expect: &str| {
        let object = r#"{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"size": 0}}"#;
        folder.write("cases/a.yaml", format!("objects: [{object}]\nexpect: {expect}\n"));
        (folder.run(&["test", "guest.wasm", "cases"]), folder.run(&["check", "guest.wasm"]))
    };
    let (tested, checked) = case("{failure: {reason: InvalidSpec, path: spec.size}}");
    assert!(tested.code == 0 && checked.code == 0, "{tested:?} {checked:?}");
    let (tested, checked) = case("{children: []}");
    assert!(
        tested.code == 1 && tested.stdout.contains("objects[0]: Invalid: spec.size: 0 is less than"),
        "{tested:?}"
    );
    assert!(
        checked.code == 1 && checked.stderr.starts_with("error: cases/a.yaml: Invalid: spec.size: 0 is"),
        "{checked:?}"
    );
}
