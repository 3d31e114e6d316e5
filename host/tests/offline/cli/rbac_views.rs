//! `pintle rbac` of Views: in a cluster, in files, and of a module alone.

use pintle_engine::fixtures::{
    self,
    views::{self, Outcome},
};
use serde_json::{Value, json};

use super::{SEEN, cluster::Served, folder::Folder, folder::Run, manifest};

const VIEWS: &str = "/apis/pintle.dev/v1alpha1/views";
const MODULES: &str = "/apis/pintle.dev/v1alpha1/modules";

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

/// A cluster whose host has found out what the module declares. ConfigMaps have a plural that nobody guesses.
fn served(view: Value) -> Served {
    let manifest: Value = serde_json::from_str(&views::manifest("thing")).unwrap();
    let module = json!({
        "apiVersion": "pintle.dev/v1alpha1", "kind": "Module", "metadata": {"name": "thing-0.1.0"},
        "spec": {"digest": "sha256:0", "source": {}},
        "status": {"manifest": manifest, "conditions": [{
            "type": "Ready", "status": "True", "reason": "Succeeded", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
    });
    let list =
        json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "ViewList", "metadata": {}, "items": [view]});
    Served::with_pintle()
        .group("v1", &[("maps", "ConfigMap")])
        .at(format!("{MODULES}/thing-0.1.0"), module)
        .at(VIEWS, list)
        .at(format!("{VIEWS}/things"), view)
}

/// In a folder with a kubeconfig.
fn of_cluster(served: Served, argument: &str) -> Run {
    let folder = Folder::new();
    folder.write("kubeconfig", served.start());
    folder.run(&["rbac", argument, "-o", "json", "--kubeconfig", "kubeconfig"])
}

/// The names of the objects, and the verbs of the gateway on a resource.
fn read(run: &Run, resource: &str) -> (Vec<String>, Vec<String>) {
    assert_eq!(run.code, 0, "{run:?}");
    let list: Value = serde_json::from_str(&run.stdout).unwrap();
    let items = list["items"].as_array().unwrap();
    let names = items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect();
    let rules = items[0]["rules"].as_array().unwrap().iter();
    let about = rules.filter(|rule| rule["resources"].as_array().unwrap().contains(&resource.into()));
    let verbs = about
        .flat_map(|rule| serde_json::from_value::<Vec<String>>(rule["verbs"].clone()).unwrap())
        .collect();
    (names, verbs)
}

#[test]
fn a_view_has_roles_and_an_apiservice_with_the_plural_of_the_cluster() {
    let run = of_cluster(served(view(&json!({}))), "view/things");
    let (names, verbs) = read(&run, "maps");
    assert_eq!(
        names,
        ["pintle-gateway-view-things", "pintle-viewer-things", "pintle-editor-things", "v1.example.com"]
    );
    assert_eq!(verbs, ["create", "delete", "deletecollection", "get", "list", "patch", "watch"]);
    assert_eq!(run.stderr, "");
    let narrow = view(&spec(&json!({"access": "ViewAndBacking", "verbs": ["get"]})));
    let (names, verbs) = read(&of_cluster(served(narrow), "view.pintle.dev/things"), "maps");
    assert_eq!(verbs, ["impersonate-on:user-info:get", "impersonate-on:serviceaccount:get", "get"]);
    assert_eq!(names.len(), 3, "nobody edits what is only read: {names:?}");
}

#[test]
fn while_a_view_is_swapped_the_rights_are_for_both_modules() {
    let before = json!({
        "active": {"module": "thing-0.0.9", "digest": "", "epoch": 1, "since": "2026-01-01T00:00:00Z"},
        "served": {
            "apiVersion": "example.com/v1beta1", "kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList",
            "verbs": ["get"], "schema": {"type": "object"}, "reads": [],
            "backing": {"apiVersion": "store.example.com/v1", "kind": "Record", "plural": "records", "namespaced": true},
        },
    });
    let run = of_cluster(served(view(&json!({"status": before}))), "view/things");
    let (names, verbs) = read(&run, "records");
    assert_eq!(names[3..], ["v1.example.com", "v1beta1.example.com"]);
    assert_eq!(verbs, ["get"]);
    assert!(!read(&run, "maps").1.is_empty());
}

#[test]
fn what_cannot_be_served_has_no_rights_and_says_why() {
    let told = |changes: &Value| {
        let run = of_cluster(served(view(changes)), "view/things");
        assert!(run.code == 1 && run.stdout.is_empty(), "{run:?}");
        run.stderr
    };
    let rest = told(&spec(&json!({"serve": {"rest": {"path": "things"}}, "access": "ViewAndBacking"})));
    assert!(
        rest.starts_with("error: View things serves documents (spec.serve.rest), which are read and written"),
        "{rest}"
    );
    let missing = told(&spec(&json!({"view": "others"})));
    assert_eq!(
        missing,
        "error: Module thing-0.1.0 has no view others, which View things names; it has: things\n"
    );
}

#[test]
fn a_view_that_does_not_exist_is_told_with_the_one_that_was_meant() {
    let run = of_cluster(served(view(&json!({}))), "view/thing");
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (
            2,
            "error: there is no View thing; did you mean things?\nhint: see which there are with: kubectl get views\n"
        )
    );
    let hung = served(view(&spec(&json!({"module": "thing-0.2.0"}))));
    assert_eq!(
        of_cluster(hung, "view/things").stderr,
        "error: there is no Module thing-0.2.0, which View things names\n\
         hint: upload it with: pintle push thing-0.2.0 FILE; or name the file: pintle rbac FILE\n"
    );
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
    let run = folder.run(&["rbac", "guest.wasm", "--elsewhere"]);
    assert!(run.code == 2 && run.stderr.contains("are for a guest that reconciles"), "{run:?}");
}

#[test]
fn a_module_that_does_both_has_the_rights_that_were_asked_for() {
    let folder = Folder::new();
    let both = views::does_both(&manifest(), SEEN, &views::manifest("thing"), "{}", "{}");
    folder.write("guest.wasm", both);
    let run = folder.run(&["rbac", "guest.wasm", "-o", "json"]);
    let role: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(role["metadata"]["name"], "pintle-guest-thing", "nobody gets rights of views unasked");
    assert!(run.stderr.contains("it also serves views: pintle rbac guest.wasm -f FILE"), "{run:?}");
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
    assert!(rest.contains("spec.serve.rest"), "{rest}");
    assert!(with(&json!({"apiVersion": "v1", "kind": "ConfigMap"})).contains("there is no View"));
    folder.write("views.yaml", view(&json!({})).to_string());
    let run = folder.run(&["rbac", "views.yaml"]);
    assert!(
        run.code == 2
            && run.stderr.ends_with("hint: the module comes first: pintle rbac MODULE -f views.yaml\n"),
        "{run:?}"
    );
    folder.write("guest.wasm", fixtures::answers(&manifest(), SEEN));
    let run = folder.run(&["rbac", "guest.wasm", "-f", "views.yaml"]);
    assert!(run.code == 2 && run.stderr.contains("guest.wasm serves no views"), "{run:?}");
    let run = folder.run(&["rbac", "things", "-f", "views.yaml"]);
    assert!(run.code == 2 && run.stderr.contains("-f is for the module in a file"), "{run:?}");
}
