//! `pintle rbac` of Views: in files, and of a module alone.

use pintle_engine::fixtures::{
    self,
    views::{self, Outcome},
};
use serde_json::{Value, json};

use super::{SEEN, cluster::Served, folder::Folder, folder::Run, manifest, rbac::verbs};

/// A View of the fixture's one view, which shows ConfigMaps as writable Things.
fn view(changes: &Value) -> Value {
    let mut view = json!({
        "apiVersion": "pintle.dev/v1alpha1", "kind": "View", "metadata": {"name": "things"},
        "spec": {"module": "thing-0.1.0", "view": "things", "serve": {"aggregated": {}}, "access": "View"},
    });
    for (key, value) in changes.as_object().unwrap() {
        view[key] = value.clone();
    }
    view
}

fn spec(changes: &Value) -> Value {
    let mut spec = view(&json!({}))["spec"].clone();
    for (key, value) in changes.as_object().unwrap() {
        spec[key] = value.clone();
    }
    json!({"spec": spec})
}

/// A cluster whose host has found out what these Modules declare. ConfigMaps have a plural that nobody guesses.
fn served(modules: &[(&str, &str)]) -> Served {
    let served = Served::with_pintle().group("v1", &[("maps", "ConfigMap")]);
    modules.iter().fold(served, |served, (name, manifest)| served.module(name, Some(manifest)))
}

/// For a View in a file, and Modules in a cluster.
fn of_cluster(served: Served, view: &Value, modules: &[&str]) -> Run {
    let folder = Folder::new();
    folder.write("kubeconfig", served.start());
    folder.write("view.yaml", view.to_string());
    let flags = ["rbac", "-f", "view.yaml", "-o", "json", "--kubeconfig", "kubeconfig"];
    folder.run(&[&flags[..], modules].concat())
}

/// The names of the objects, and the verbs of the gateway on a resource.
fn read(run: &Run, resource: &str) -> (Vec<String>, Vec<String>) {
    assert_eq!(run.code, 0, "{run:?}");
    let list: Value = serde_json::from_str(&run.stdout).unwrap();
    let items = list["items"].as_array().unwrap();
    let names = items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect();
    (names, verbs(&items[0], resource))
}

#[test]
fn a_view_has_roles_and_an_apiservice_with_the_plural_of_the_cluster() {
    let cluster = || served(&[("thing-0.1.0", &views::manifest("thing"))]);
    let run = of_cluster(cluster(), &view(&json!({})), &["thing-0.1.0"]);
    let (names, verbs) = read(&run, "maps");
    assert_eq!(
        names,
        ["pintle-gateway-view-things", "pintle-viewer-things", "pintle-editor-things", "v1.example.com"]
    );
    assert_eq!(verbs, ["create", "delete", "deletecollection", "get", "list", "patch", "watch"]);
    assert_eq!(run.stderr, "");
    let narrow = view(&spec(&json!({"access": "ViewAndBacking", "verbs": ["get"]})));
    let (names, verbs) = read(&of_cluster(cluster(), &narrow, &["thing-0.1.0"]), "maps");
    assert_eq!(verbs, ["impersonate-on:user-info:get", "impersonate-on:serviceaccount:get", "get"]);
    assert_eq!(names.len(), 3, "nobody edits what is only read: {names:?}");
}

#[test]
fn the_rights_of_a_view_are_for_all_modules_that_are_named() {
    let before = views::manifest("thing").replace("example.com/v1", "example.com/v1beta1");
    let cluster = served(&[("thing-0.0.9", &before), ("thing-0.1.0", &views::manifest("thing"))]);
    let run = of_cluster(cluster, &view(&json!({})), &["thing-0.1.0", "thing-0.0.9"]);
    let (names, verbs) = read(&run, "maps");
    assert_eq!(names[3..], ["v1.example.com", "v1beta1.example.com"]);
    assert!(!verbs.is_empty());
}

fn module() -> Vec<u8> {
    views::serves(&views::manifest("thing"), Outcome::Trap, Outcome::Trap)
}

#[test]
fn before_there_are_views_the_rights_are_those_of_files_or_of_every_view_of_a_module() {
    let folder = Folder::new();
    folder.write("guest.wasm", module());
    let run = folder.run(&["rbac", "guest.wasm", "-o", "json"]);
    assert!(read(&run, "configmaps").1.contains(&"impersonate-on:user-info:create".to_owned()), "{run:?}");
    assert!(
        run.stderr.starts_with("note: the rights are for Views that have the names of the views"),
        "{run:?}"
    );
    folder.write("views.yaml", view(&json!({"metadata": {"name": "mine"}})).to_string());
    let run =
        folder.run(&["rbac", "guest.wasm", "-f", "views.yaml", "-o", "json", "--plural", "ConfigMap=maps"]);
    let (names, verbs) = read(&run, "maps");
    assert_eq!((names[0].as_str(), verbs.len()), ("pintle-gateway-view-mine", 7));
    assert_eq!(run.stderr, "");
    let run = folder.run(&["rbac", "guest.wasm", "-f", "views.yaml"]);
    assert_eq!(run.stdout.matches("\n---\n").count(), 3, "{run:?}");
    let run = folder.run(&["rbac", "guest.wasm", "--pod-deletions"]);
    assert!(run.code == 2 && run.stderr.contains("is for a guest that reconciles"), "{run:?}");
}

#[test]
fn a_module_that_does_both_has_the_rights_that_were_asked_for() {
    let folder = Folder::new();
    let both = views::does_both(&manifest(), SEEN, &views::manifest("thing"), "{}", "{}");
    folder.write("guest.wasm", both);
    let run = folder.run(&["rbac", "guest.wasm", "-o", "json"]);
    let role: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(role["metadata"]["name"], "pintle-guest-thing", "nobody gets rights of views unasked");
    assert!(run.stderr.contains("it also serves views: name the files"), "{run:?}");
    folder.write("views.yaml", view(&json!({})).to_string());
    let run = folder.run(&["rbac", "guest.wasm", "-f", "views.yaml", "-o", "json"]);
    assert_eq!(read(&run, "configmaps").0[0], "pintle-gateway-view-things");
}

#[test]
fn files_that_are_not_as_they_should_be_are_told_with_what_to_mend() {
    let folder = Folder::new();
    folder.write("guest.wasm", module());
    let with = |view: &Value| {
        folder.write("views.yaml", view.to_string());
        let run = folder.run(&["rbac", "guest.wasm", "-f", "views.yaml"]);
        assert!(run.code != 0 && run.stdout.is_empty(), "{run:?}");
        run.stderr
    };
    let misspelt = with(&view(&spec(&json!({"acess": "View"}))));
    assert!(misspelt.contains("views.yaml: Invalid: spec.acess: "), "{misspelt}");
    let other = with(&view(&spec(&json!({"view": "others"}))));
    assert!(other.contains("guest.wasm has no view others, which View things names"), "{other}");
    let rest = with(&view(&spec(&json!({"serve": {"rest": {"path": "things"}}}))));
    assert!(rest.contains("spec: Invalid value: access View is for an aggregated API"), "{rest}");
    assert!(with(&json!({"apiVersion": "v1", "kind": "ConfigMap"})).contains("there is no View"));
    folder.write("views.yaml", view(&json!({})).to_string());
    folder.write("guest.wasm", fixtures::answers(&manifest(), SEEN));
    let run = folder.run(&["rbac", "guest.wasm", "-f", "views.yaml"]);
    assert!(run.code == 2 && run.stderr.contains("guest.wasm serves no views"), "{run:?}");
}
