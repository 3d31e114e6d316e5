//! What deploy/samples/farm has: two Views, and what serving them takes.

use std::{collections::BTreeSet, fs, path::PathBuf, process::Command};

use kit::modules;
use serde_json::{Value, json};

use super::{name, texts};
use crate::{objects, repository};

fn file(name: &str) -> Vec<Value> {
    objects(&repository().join("deploy/samples/farm").join(name))
}

fn role(wanted: &str) -> Value {
    let roles = file("rbac.yaml");
    let found = roles.into_iter().find(|role| name(role) == wanted);
    found.unwrap_or_else(|| panic!("there is no ClusterRole {wanted}"))
}

/// The module of the farm.
fn module() -> PathBuf {
    modules::guests().join("farm.wasm")
}

#[test]
fn a_record_has_the_fields_of_a_llama_in_a_group_of_its_own() {
    let views = fs::read_to_string(repository().join("guest-farm/views.json")).unwrap();
    let views: Value = serde_json::from_str(&views).unwrap();
    let crd = file("crd.yaml").remove(0);
    assert_ne!(crd["spec"]["group"], file("apiservice.yaml")[0]["spec"]["group"]);
    // Lists of required fields have no order.
    let sorted = |schema: &Value| {
        let mut schema = schema.clone();
        let mut required = texts(&schema, "required");
        required.sort();
        schema["required"] = json!(required);
        schema
    };
    let stored = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    assert_eq!(sorted(stored), sorted(&views["views"]["llamas"]["properties"]["spec"]));
}

/// Each right that roles give: group, resource, names of objects, verb.
fn rights<'a>(roles: impl IntoIterator<Item = &'a Value>) -> BTreeSet<[String; 4]> {
    let mut rights = BTreeSet::new();
    for rule in roles.into_iter().flat_map(|role| role["rules"].as_array().unwrap()) {
        let (groups, names) = (texts(rule, "apiGroups"), texts(rule, "resourceNames").join(" "));
        for (group, resource) in
            groups.iter().flat_map(|group| texts(rule, "resources").into_iter().map(move |one| (group, one)))
        {
            let verbs = texts(rule, "verbs").into_iter();
            rights.extend(verbs.map(|verb| [group.clone(), resource.clone(), names.clone(), verb]));
        }
    }
    rights
}

#[test]
fn pintle_rbac_prints_the_rights_and_the_apiservice_of_the_sample() {
    let output = Command::new(env!("CARGO_BIN_EXE_pintle"))
        .arg("rbac")
        .arg(module())
        .arg("-f")
        .arg(repository().join("deploy/samples/farm/views.yaml"))
        .args(["-o", "json"])
        .output()
        .unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let printed = printed["items"].as_array().unwrap();
    let labelled = |label: &str| -> Vec<&Value> {
        printed.iter().filter(|object| object["metadata"]["labels"][label] == "true").collect()
    };
    for (label, sample, views) in [
        ("pintle.dev/aggregate-to-gateway", "pintle-gateway-farm", 2),
        ("rbac.authorization.k8s.io/aggregate-to-view", "farm-viewer", 2),
        ("rbac.authorization.k8s.io/aggregate-to-edit", "farm-editor", 1),
    ] {
        let roles = labelled(label);
        assert_eq!(roles.len(), views, "each View has roles of its own: {label}");
        assert_eq!(rights(roles), rights([&role(sample)]), "{sample}");
    }
    let of_kind = |kind: &str| printed.iter().filter(|object| object["kind"] == kind).cloned().collect();
    let api_services: Vec<Value> = of_kind("APIService");
    assert_eq!(api_services, file("apiservice.yaml"), "both Views are served under one");
    let roles: Vec<Value> = of_kind("ClusterRole");
    assert_eq!(roles.len() + api_services.len(), printed.len());
}
