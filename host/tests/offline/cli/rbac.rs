//! `pintle rbac` of a Reconciler, as somebody runs it whom a condition told to.

use pintle_api::module_objects;
use pintle_engine::{Digest, fixtures};
use serde_json::{Value, json};

use super::{
    SEEN,
    cluster::Served,
    folder,
    folder::{Folder, Run, ask_until},
    manifest,
};

const RECONCILERS: &str = "/apis/pintle.dev/v1alpha1/reconcilers";
const MODULES: &str = "/apis/pintle.dev/v1alpha1/modules";

fn reconciler(grants: &Value, status: &Value) -> Value {
    json!({
        "apiVersion": "pintle.dev/v1alpha1", "kind": "Reconciler", "metadata": {"name": "things"},
        "spec": {"for": {"apiVersion": "example.com/v1", "kind": "Thing"}, "module": "thing-0.1.0", "grants": grants},
        "status": status,
    })
}

/// A cluster that serves the kinds of the guest, the root's under a plural that nobody guesses.
fn served() -> Served {
    Served::with_pintle()
        .group("example.com/v1", &[("thingies", "Thing")])
        .group("v1", &[("configmaps", "ConfigMap"), ("secrets", "Secret")])
}

/// The same with the guest's Module, and its bytes in ConfigMaps. No host has looked at it.
fn with_module(mut served: Served, name: &str, bytes: &[u8]) -> Served {
    for object in module_objects(name, bytes, &Digest::of(bytes).to_string()) {
        let named = object["metadata"]["name"].as_str().unwrap();
        let path = match object["kind"].as_str() {
            Some("Module") => format!("{MODULES}/{named}"),
            _ => format!("/api/v1/namespaces/pintle-system/configmaps/{named}"),
        };
        served = served.at(path, object);
    }
    served
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

fn rbac(folder: &Folder, argument: &str) -> Run {
    folder.run(&["rbac", argument, "-o", "json", "--kubeconfig", "kubeconfig"])
}

/// The verbs that a role gives on a resource.
fn verbs(role: &Value, resource: &str) -> Vec<String> {
    let rules = role["rules"].as_array().unwrap().iter();
    let about = rules.filter(|rule| rule["resources"].as_array().unwrap().contains(&resource.into()));
    about.flat_map(|rule| serde_json::from_value::<Vec<String>>(rule["verbs"].clone()).unwrap()).collect()
}

#[test]
fn a_reconciler_sets_the_flags_and_the_cluster_the_plurals() {
    let grants = json!({"children": [{"apiVersion": "v1", "kinds": ["ConfigMap"], "namespaces": ["other"]}]});
    let left = json!({"childKinds": [{"apiVersion": "apps/v1", "kind": "Deployment"}]});
    let served = with_module(served(), "thing-0.1.0", &guest());
    let folder = beside(served.at(format!("{RECONCILERS}/things"), reconciler(&grants, &left)));
    let run = rbac(&folder, "things");
    assert_eq!(run.code, 0, "{run:?}");
    let role: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(role["metadata"]["name"], "pintle-guest-thing");
    assert_eq!(verbs(&role, "thingies"), ["get", "list", "watch", "patch"], "it grants another namespace");
    assert_eq!(verbs(&role, "secrets"), ["get", "create", "patch", "delete"]);
    assert!(
        verbs(&role, "deployments").contains(&"delete".into()),
        "a child of an earlier module may be left"
    );
    assert_eq!(
        run.stderr,
        "note: the API server does not serve apps/v1 Deployment, so its plural is guessed; install its CRD, or set \
         --plural\n"
    );
}

#[test]
fn while_a_reconciler_is_swapped_the_role_is_for_both_modules() {
    let before = json!({"active": {"module": "thing-0.0.9", "digest": "", "since": "2026-01-01T00:00:00Z"}});
    let evicts = manifest().replacen('{', r#"{"evictions":true,"#, 1);
    let served = served().group("v1", &[("configmaps", "ConfigMap"), ("secrets", "Secret"), ("pods", "Pod")]);
    let served = with_module(served, "thing-0.0.9", &fixtures::answers(&evicts, SEEN));
    let served = with_module(served, "thing-0.1.0", &guest());
    let grants = json!({"podDeletions": true});
    let folder = beside(served.at(format!("{RECONCILERS}/things"), reconciler(&grants, &before)));
    let run = rbac(&folder, "things");
    let role: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(verbs(&role, "pods/eviction"), ["create"], "{run:?}");
    assert_eq!(verbs(&role, "pods"), ["get", "list", "watch", "delete"], "it grants the deletion of Pods");
    assert_eq!(run.stderr, "");
}

#[test]
fn what_the_host_has_found_out_is_not_asked_of_the_guest_again() {
    let manifest: Value = serde_json::from_str(&manifest()).unwrap();
    let module = json!({
        "apiVersion": "pintle.dev/v1alpha1", "kind": "Module", "metadata": {"name": "thing-0.1.0"},
        "spec": {"digest": "sha256:0", "source": {}},
        "status": {"manifest": manifest, "conditions": [{
            "type": "Ready", "status": "True", "reason": "Succeeded", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
    });
    let served = served().at(format!("{MODULES}/thing-0.1.0"), module);
    let folder = beside(served.at(format!("{RECONCILERS}/things"), reconciler(&json!({}), &json!({}))));
    let run = rbac(&folder, "things");
    assert_eq!(run.code, 0, "{run:?}");
    let role: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(verbs(&role, "thingies"), ["get", "list", "watch"]);
}

#[test]
fn what_is_missing_is_named_with_what_to_do() {
    let told = |served: Served| {
        let run = rbac(&beside(served), "things");
        assert!(run.code != 0 && run.stdout.is_empty(), "{run:?}");
        run.stderr
    };
    assert_eq!(
        told(served()),
        "error: things is no file here, so it names a Reconciler: there is no Reconciler things\n\
         hint: see which there are with: kubectl get reconcilers\n"
    );
    let hung = || served().at(format!("{RECONCILERS}/things"), reconciler(&json!({}), &json!({})));
    assert_eq!(
        told(hung()),
        "error: there is no Module thing-0.1.0, which Reconciler things names\n\
         hint: upload it with: pintle push thing-0.1.0 FILE; or name the file: pintle rbac FILE\n"
    );
    let objects = module_objects("thing-0.1.0", &guest(), &Digest::of(&guest()).to_string());
    let without_bytes = hung().at(format!("{MODULES}/thing-0.1.0"), objects.last().unwrap().clone());
    let said = told(without_bytes);
    assert!(said.contains("SourceNotFound") && said.contains("pintle-system/thing-0.1.0"), "{said}");
    assert!(said.ends_with("or name the file: pintle rbac FILE\n"), "{said}");
    let no_cluster = Folder::new().run_with(&[("HOME", "/nonexistent")], &["rbac", "things"]);
    assert!(
        no_cluster.stderr.starts_with("error: things is no file here, so it names a Reconciler: no cluster"),
        "{no_cluster:?}"
    );
}

#[test]
fn a_file_goes_before_a_reconciler_of_its_name_and_that_is_said() {
    let served = served().at(format!("{RECONCILERS}/things"), reconciler(&json!({}), &json!({})));
    let folder = beside(served);
    folder.write("things", guest());
    let note = "note: the role is for the file things; a Reconciler has that name, too";
    let run = ask_until(|run: &Run| run.stderr.starts_with(note), || rbac(&folder, "things"));
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stderr.starts_with(note), "{run:?}");
    for file in ["./things", "missing.wasm"] {
        let run = rbac(&folder, file);
        assert!(!run.stderr.contains("Reconciler"), "{file} can only be a file: {run:?}");
    }
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
