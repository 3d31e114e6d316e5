//! `pintle rbac` of guests that reconcile: in a file, and of Modules in a cluster.

use pintle_engine::fixtures;
use serde_json::{Value, json};

use super::{
    SEEN,
    cluster::Served,
    folder,
    folder::{Folder, Run},
    manifest,
};

/// A cluster that serves the kinds of the guest, the root's under a plural that nobody guesses.
fn served() -> Served {
    Served::with_pintle()
        .group("example.com/v1", &[("thingies", "Thing")])
        .group("v1", &[("configmaps", "ConfigMap"), ("secrets", "Secret")])
}

fn guest() -> Vec<u8> {
    fixtures::answers(&manifest(), SEEN)
}

/// A folder without a module, and a kubeconfig.
fn beside(served: Served) -> Folder {
    let folder = Folder::new();
    folder.write("kubeconfig", served.start());
    folder
}

fn rbac(folder: &Folder, arguments: &[&str]) -> Run {
    folder.run(&[&["rbac", "-o", "json", "--kubeconfig", "kubeconfig"][..], arguments].concat())
}

/// The verbs that a role gives on a resource.
pub(super) fn verbs(role: &Value, resource: &str) -> Vec<String> {
    let rules = role["rules"].as_array().unwrap().iter();
    let about = rules.filter(|rule| rule["resources"].as_array().unwrap().contains(&resource.into()));
    about.flat_map(|rule| serde_json::from_value::<Vec<String>>(rule["verbs"].clone()).unwrap()).collect()
}

#[test]
fn of_a_module_the_cluster_tells_the_plurals_and_flags_what_its_reconciler_grants() {
    let folder = beside(served().module("thing-0.1.0", Some(&manifest())));
    let run = rbac(&folder, &["thing-0.1.0"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    let role: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(role["metadata"]["name"], "pintle-guest-thing");
    assert_eq!(verbs(&role, "thingies"), ["get", "list", "watch"]);
    assert_eq!(verbs(&role, "secrets"), ["get", "create", "patch", "delete"]);
    let run = rbac(&folder, &["thing-0.1.0", "--pod-deletions"]);
    assert_eq!(run.code, 0, "{run:?}");
}

#[test]
fn the_role_of_several_modules_is_for_all_of_them() {
    let mut before: Value = serde_json::from_str(&manifest()).unwrap();
    before["evictions"] = true.into();
    before["children"] = json!([{"apiVersion": "apps/v1", "kind": "Deployment"}]);
    let served = served().group("v1", &[("configmaps", "ConfigMap"), ("secrets", "Secret"), ("pods", "Pod")]);
    let folder = beside(served.module("thing-0.0.9", Some(&before.to_string())));
    folder.write("guest.wasm", guest());
    let run = rbac(&folder, &["thing-0.0.9", "guest.wasm", "--pod-deletions"]);
    let role: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(verbs(&role, "pods/eviction"), ["create"], "{run:?}");
    assert_eq!(verbs(&role, "pods"), ["get", "list", "watch", "delete"]);
    for resource in ["deployments", "configmaps"] {
        assert!(verbs(&role, resource).contains(&"delete".into()), "{role}");
    }
    assert_eq!(
        run.stderr,
        "note: the API server does not serve apps/v1 Deployment, so its plural is guessed; install its CRD, or set \
         --plural\n"
    );
    let other = fixtures::manifest("other", "example.com/v1", "Other", &[]);
    folder.write("other.wasm", fixtures::answers(&other, SEEN));
    let run = rbac(&folder, &["guest.wasm", "other.wasm"]);
    assert!(run.code == 2 && run.stderr.contains("modules of one kind"), "{run:?}");
}

#[test]
fn what_is_missing_is_named_with_what_to_do() {
    let told = |served: Served| {
        let run = rbac(&beside(served), &["thing-0.1.0"]);
        assert!(run.code != 0 && run.stdout.is_empty(), "{run:?}");
        run.stderr
    };
    assert_eq!(
        told(served()),
        "error: there is no Module thing-0.1.0\n\
         hint: see which there are with: kubectl get modules; the name of a file ends in .wasm, or has a folder before it\n"
    );
    assert_eq!(
        told(served().module("thing-0.1.0", None)),
        "error: the host has not found out yet what Module thing-0.1.0 declares\n\
         hint: see why with: kubectl describe modules.pintle.dev thing-0.1.0; or name its file\n"
    );
}

#[test]
fn beside_a_crd_no_plural_is_guessed_for_a_file() {
    let folder = folder(&guest());
    folder.write(
        "crd.yaml",
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "thingies.example.com"},
            "spec": {"group": "example.com", "names": {"kind": "Thing", "plural": "thingies"}, "scope": "Namespaced",
                "versions": [{"name": "v1", "served": true, "storage": true}]},
        })
        .to_string(),
    );
    let run = folder.run(&["rbac", "guest.wasm", "-o", "json"]);
    let role: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(verbs(&role, "thingies/status"), ["get", "patch"]);
}
