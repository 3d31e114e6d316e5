//! The command line without a cluster: the built binary, on files. What a command prints is in a transcript; here is what takes more.

mod author;
mod cluster;
mod folder;
mod guests;
mod rbac;
mod rbac_views;
mod shell;
mod simulate;
mod transcripts;
mod words;

use pintle_engine::fixtures;

use folder::Folder;
use guests::{clings_to_its_needs, hashes_its_request};

const SEEN: &str = r#"{"apiVersion":"guest.pintle.dev/v1","status":{"seen":true}}"#;

fn manifest() -> String {
    fixtures::manifest("thing", "example.com/v1", "Thing", &["v1/ConfigMap", "v1/Secret"])
}

fn observing_status() -> String {
    manifest().replacen('{', r#"{"observeStatus":true,"#, 1)
}

fn response(rest: &str) -> String {
    format!(r#"{{"apiVersion":"guest.pintle.dev/v1",{rest}}}"#)
}

/// A folder with a custom resource, and a guest.
fn folder(module: &[u8]) -> Folder {
    let folder = Folder::new();
    folder.write("thing.yaml", "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\nspec: {}\n");
    folder.write("guest.wasm", module);
    folder
}

#[test]
fn a_rule_of_the_crd_holds_for_every_command_and_its_fault_is_the_crds() {
    let folder = folder(&hashes_its_request(&manifest()));
    let root = "{apiVersion: example.com/v1, kind: Thing, metadata: {name: a}, spec: {size: 3}}";
    folder.write("thing.yaml", root);
    folder.write("case.yaml", format!("objects: [{root}]\nexpect: {{failure: {{reason: Other}}}}\n"));
    let rule_at = "spec.versions[0].schema.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule";
    for (rule, commands, expected) in [
        (
            "self.size != 3",
            &["render", "check"][..],
            "thing.yaml: Invalid: spec: Invalid value: failed rule: self.size != 3".to_owned(),
        ),
        (
            "self.sise != 3",
            &["render", "check", "test"][..],
            format!(
                r#"crd.yaml: Invalid: {rule_at}: Invalid value: "self.sise != 3": compilation failed: undefined field 'sise'; did you mean size?"#
            ),
        ),
    ] {
        let spec = format!(
            "{{type: object, properties: {{size: {{type: integer}}}}, x-kubernetes-validations: [{{rule: {rule}}}]}}"
        );
        let schema = format!("{{type: object, properties: {{spec: {spec}}}}}");
        folder.write(
            "crd.yaml",
            format!(
                "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: things.example.com}}\nspec: {{group: example.com, scope: Namespaced, names: {{kind: Thing, plural: things}}, versions: [{{name: v1, schema: {{openAPIV3Schema: {schema}}}}}]}}\n"
            ),
        );
        for command in commands {
            let words: &[&str] =
                if *command == "test" { &["case.yaml", "case.yaml"] } else { &["-f", "thing.yaml"] };
            let run = folder.run(&[&[*command, "guest.wasm"][..], words].concat());
            assert_ne!(run.code, 0, "{command}: {run:?}");
            let said = format!("{}{}", run.stdout, run.stderr);
            assert_eq!(said.matches(expected.as_str()).count(), 1, "{command}: {run:?}");
        }
    }
}

#[test]
fn a_guest_that_is_never_content_is_found() {
    let folder = folder(&hashes_its_request(&observing_status()));
    let run = folder.ends(1, &["render", "guest.wasm", "-f", "thing.yaml"]);
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
    let run = folder.ends(1, &["check", "guest.wasm", "-f", "thing.yaml", "-f", "children.yaml"]);
    assert!(run.stderr.contains("NotDeterministic: asked with the children in another order"), "{run:?}");
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
    let run = folder.ends(2, &["crds", "."]);
    assert!(run.stderr.contains("hint: generate it with: pintle build"), "{run:?}");
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
