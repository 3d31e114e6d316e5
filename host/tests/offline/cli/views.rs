//! The commands for authors, on guests that serve views.

use std::{env, fs, path::PathBuf};

use pintle_engine::fixtures::views::{Outcome, manifest, serves};
use serde_json::Value;

use super::folder::{Folder, Run};

/// A folder with the farm, and the CRD of what its Llamas are stored as.
fn farm() -> Folder {
    let target = env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target")), PathBuf::from);
    let folder = Folder::new();
    folder.write("farm.wasm", fs::read(target.join("guests/farm.wasm")).unwrap());
    folder.write("crd.yaml", include_str!("../../../../deploy/samples/farm/crd.yaml"));
    folder
}

const PODS: &str = "\
# Two Pods.
view: farmpods
show:
- apiVersion: v1
  kind: Pod
  metadata: {name: web, namespace: default}
  spec: {containers: [{name: a}, {name: b}], initContainers: [{name: c}]}
- spec: {}
expect:
  shown:
  - object:
      spec:
        containers: 2
  - failure:
      path: spec.containers
      reason: InvalidBacking
";

const DOLLY: &str = "\
view: llamas
store:
  object:
    metadata: {name: dolly}
    spec: {weight: 31.4, height: 1}
  current:
    metadata: {name: dolly}
    spec: {weight: 30, height: 1}
expect:
  stored:
    spec:
      height: 1
      weight: 31.4
";

#[test]
fn the_farm_keeps_the_laws_on_a_thousand_objects_and_writes() {
    let folder = farm();
    let run = folder.run(&["check", "farm.wasm", "-o", "json"]);
    assert_eq!(run.code, 0, "{run:?}");
    let data: Value = serde_json::from_str(&run.stdout).unwrap();
    let [pods, llamas] = data["views"].as_array().unwrap().as_slice() else { panic!("{data:#}") };
    assert_eq!((&pods["name"], &llamas["name"]), (&"farmpods".into(), &"llamas".into()));
    for view in [pods, llamas] {
        assert!(view["objects"].as_u64() >= Some(1000), "{view:#}");
        assert!(
            view["fuelPerObject"].as_u64() > Some(0) && view["microsecondsPerObject"].as_f64() > Some(0.0)
        );
        assert!(view.get("broken").is_none() && view.get("notes").is_none(), "{view:#}");
    }
    assert_eq!((&pods["writes"], &pods["refusedWrites"]), (&0.into(), &0.into()), "it is read-only");
    assert!(llamas["writes"].as_u64() >= Some(1000), "{llamas:#}");
    let run = folder.run(&["check", "farm.wasm", "--seed", "7", "--objects", "100"]);
    assert!(
        run.code == 0 && run.stdout.contains("(seed 7)") && run.stdout.contains("fuel an object"),
        "{run:?}"
    );
}

#[test]
fn a_view_without_the_crd_of_its_backing_kind_says_what_it_was_not_tried_on() {
    let folder = farm();
    let run = folder.run(&["check", "farm.wasm", "--no-crd", "--objects", "100"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stdout.contains("llamas: hold on 100 writes (seed 0)"), "{run:?}");
    assert!(run.stdout.contains("no LlamaRecord were made") && run.stdout.contains("--crd"), "{run:?}");
    let run = folder.run(&["check", "farm.wasm", "--crd", "crd.yaml", "--objects", "100"]);
    assert!(run.code == 0 && !run.stdout.contains("were made"), "{run:?}");
}

#[test]
fn what_breaks_a_law_is_printed_as_yaml_with_the_law_in_words() {
    let folder = farm();
    // A record without a weight is one that the view does not show.
    let crd = folder.read("crd.yaml").replace("required: [weight, height]", "required: [height]");
    folder.write("crd.yaml", crd);
    let run = folder.run(&["check", "farm.wasm"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.starts_with("error: farm.wasm: NotALens: "), "{run:?}");
    let (_, example) = run.stdout.split_once("\nCounterexample: view llamas (seed 0)\n").unwrap();
    assert!(
        example.contains("Law: every object that the schema of the backing kind allows is shown\n"),
        "{run:?}"
    );
    assert!(example.contains("Broken: InvalidBacking: spec.weight: "), "{run:?}");
    let (_, yaml) = example.split_once("\n\n").unwrap();
    let example: Value = serde_saphyr::from_str(yaml).unwrap();
    let [record] = example["backing"].as_array().unwrap().as_slice() else { panic!("{yaml}") };
    assert_eq!(record["kind"], "LlamaRecord");
    assert_eq!(record["spec"].as_object().unwrap().len(), 1, "only what is required is left: {yaml}");
}

#[test]
fn a_guest_of_views_that_breaks_is_found_by_check() {
    let folder = Folder::new();
    folder.write("guest.wasm", serves(&manifest("things"), Outcome::Trap, Outcome::Trap));
    let run = folder.run(&["check", "guest.wasm"]);
    assert!(run.code == 1 && run.stdout.contains("Law: every call is answered\n"), "{run:?}");
    assert!(run.stderr.contains("GuestTrapped"), "{run:?}");
}

#[test]
fn objects_from_files_are_tried_too() {
    let folder = farm();
    folder.write("pod.yaml", "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {}}");
    let run = folder.run(&["check", "farm.wasm", "-f", "pod.yaml"]);
    assert!(run.code == 1 && run.stdout.contains("Counterexample: view farmpods"), "{run:?}");
}

const WEB: &str = "\
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default, uid: 6f1c1e5e-0d3c-4c11-9df1-3f3f0f3c2b1a, creationTimestamp: 2000-01-01T00:00:00Z,
  finalizers: [example.com/a], labels: {app: web}}
spec: {containers: [{name: a}, {name: b}]}
";

#[test]
fn render_prints_what_people_see_as_yaml_or_as_the_table_of_kubectl() {
    let folder = farm();
    folder.write("web.yaml", WEB);
    let run = folder.run(&["render", "farm.wasm", "-f", "web.yaml"]);
    assert_eq!(run.code, 0, "{run:?}");
    let shown: Value = serde_saphyr::from_str(&run.stdout).unwrap();
    assert_eq!((&shown["kind"], &shown["spec"]["containers"]), (&"FarmPod".into(), &2.into()));
    let metadata = shown["metadata"].as_object().unwrap();
    assert_eq!((&metadata["name"], &metadata["labels"]["app"]), (&"farm-web".into(), &"web".into()));
    assert_ne!(metadata["uid"], "6f1c1e5e-0d3c-4c11-9df1-3f3f0f3c2b1a", "two kinds never share a uid");
    assert!(!metadata.contains_key("finalizers"), "a read-only view hides them");

    let table = ["render", "farm.wasm", "-f", "web.yaml", "--now", "2000-01-01T00:02:00Z", "-o"];
    let run = folder.run(&[&table[..], &["table"]].concat());
    assert_eq!(run.stdout, "NAME       CONTAINERS   AGE\nfarm-web   2            2m\n", "{run:?}");
    assert_eq!(
        folder.run(&[&table[..], &["wide"]].concat()).stdout,
        run.stdout,
        "no column is of low priority"
    );
}

#[test]
fn what_cannot_be_shown_is_said_and_the_rest_is_printed() {
    let folder = farm();
    let broken =
        WEB.replace("name: web,", "name: broken,").replace("{containers: [{name: a}, {name: b}]}", "{}");
    folder.write(
        "pods.yaml",
        format!("{WEB}---\n{broken}---\n{{apiVersion: v1, kind: Node, metadata: {{name: first}}}}\n"),
    );
    let run = folder.run(&["render", "farm.wasm", "-f", "pods.yaml", "-o", "table"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.stdout.contains("farm-web ") && run.stdout.contains("farm-broken   <cannot be shown: "),
        "{run:?}"
    );
    assert!(run.stderr.contains("cannot be shown: InvalidBacking: spec.containers"), "{run:?}");
    assert!(run.stderr.contains("Node first plays no part: no view shows its kind"), "{run:?}");
    let run = folder.run(&["render", "farm.wasm", "-f", "pods.yaml", "-o", "json"]);
    let shown: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(shown["metadata"]["name"], "farm-web");
}

#[test]
fn render_takes_the_views_that_the_files_name() {
    let folder = farm();
    folder.write("web.yaml", WEB);
    folder.write("views.yaml", include_str!("../../../../deploy/samples/farm/views.yaml"));
    let run = folder.run(&["render", "farm.wasm", "-f", "web.yaml", "-f", "views.yaml", "-o", "json"]);
    assert!(run.code == 0 && run.stdout.contains("FarmPod") && run.stderr.is_empty(), "{run:?}");
}

fn test(folder: &Folder) -> Run {
    folder.run(&["test", "farm.wasm", "cases"])
}

#[test]
fn cases_show_and_store() {
    let folder = farm();
    folder.write("cases/dolly.yaml", DOLLY);
    folder.write("cases/pods.yaml", PODS);
    let run = test(&folder);
    assert_eq!(
        run.stdout, "ok      cases/dolly.yaml\nok      cases/pods.yaml\n2 passed, 0 failed\n",
        "{run:?}"
    );
    assert_eq!(folder.run(&["check", "farm.wasm", "--objects", "10"]).code, 0);
}

#[test]
fn a_case_that_differs_is_shown_line_by_line_and_updated_on_request() {
    let folder = farm();
    folder.write("cases/pods.yaml", PODS.replace("containers: 2\n", "containers: 3\n"));
    folder.write("cases/dolly.yaml", DOLLY.split_once("expect:").unwrap().0);
    let run = test(&folder);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stdout.contains("      -       containers: 3\n      +       containers: 2\n"), "{run:?}");
    assert!(run.stdout.contains("the case expects nothing: run again with --update"), "{run:?}");
    let run = folder.run(&["test", "farm.wasm", "cases", "--update"]);
    assert!(run.code == 0 && run.stdout.ends_with("2 passed, 0 failed, 2 updated\n"), "{run:?}");
    assert_eq!(
        (folder.read("cases/pods.yaml"), folder.read("cases/dolly.yaml")),
        (PODS.into(), DOLLY.into())
    );
}

#[test]
fn a_write_that_is_refused_is_expected_with_reason_and_path() {
    let folder = farm();
    let case = |weight: &str, failure: &str| {
        format!(
            "view: llamas\nstore: {{object: {{spec: {{weight: {weight}, height: 1}}}}}}\nexpect: {{failure: {failure}}}\n"
        )
    };
    folder.write("cases/heavy.yaml", case("\"heavy\"", "{reason: Invalid, path: spec.weight}"));
    folder.write("cases/zero.yaml", case("0", "{reason: Invalid, path: spec.weight}"));
    let run = test(&folder);
    assert_eq!(run.code, 0, "{run:?}");
    folder.write("cases/other.yaml", case("1", "{reason: Invalid}"));
    let run = folder.run(&["test", "farm.wasm", "cases/other.yaml"]);
    assert!(run.code == 1 && run.stdout.contains("+ stored:\n"), "{run:?}");
}

#[test]
fn a_case_of_no_view_says_what_it_should_be() {
    let folder = farm();
    for (case, said) in [
        ("view: llama\nshow: [{}]\n", "the module has no view llama; it has: farmpods, llamas"),
        ("view: farmpods\n", "a case of a view has `show` or `store`"),
        ("view: farmpods\nshow: [{kind: Node}]\n", "show[0] is a v1 Node, and should be a v1 Pod"),
        ("view: farmpods\nstore: {object: {}}\n", "view farmpods is read-only"),
        ("objects: []\n", "the module serves views alone"),
    ] {
        folder.write("case.yaml", case);
        let run = folder.run(&["test", "farm.wasm", "case.yaml"]);
        assert!(run.code == 1 && run.stdout.contains(said), "{said}: {run:?}");
    }
}
