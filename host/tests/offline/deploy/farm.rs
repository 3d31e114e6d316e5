//! What deploy/samples/farm has: two Views, and what serving them takes.

use std::{collections::BTreeSet, env, fs, path::PathBuf, process::Command};

use pintle_offline as offline;
use pintle_wit::views::ViewsManifest;
use serde_json::{Value, json};

use super::{gateway, has, objects, repository, texts};

const READ: [&str; 3] = ["get", "list", "watch"];
const ALL: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

fn file(name: &str) -> Vec<Value> {
    objects(&repository().join("deploy/samples/farm").join(name))
}

fn view(name: &str) -> Value {
    let views = file("views.yaml");
    let found = views.into_iter().find(|view| view["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("there is no View {name}"))
}

fn role(name: &str) -> Value {
    let roles = file("rbac.yaml");
    let found = roles.into_iter().find(|role| role["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("there is no ClusterRole {name}"))
}

/// The verbs that a role gives on a resource.
fn verbs(role: &Value, group: &str, resource: &str) -> BTreeSet<String> {
    let rules = role["rules"].as_array().unwrap().iter();
    let about = rules.filter(|rule| has(rule, "apiGroups", &[group]) && has(rule, "resources", &[resource]));
    about.flat_map(|rule| texts(rule, "verbs")).collect()
}

fn set(verbs: &[&str]) -> BTreeSet<String> {
    verbs.iter().map(|verb| (*verb).to_owned()).collect()
}

/// The module of the farm.
fn module() -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| repository().join("target"), PathBuf::from);
    target.join("guests/farm.wasm")
}

/// What it declares.
fn manifest() -> ViewsManifest {
    let path = module();
    let bytes = fs::read(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; run: cargo xtask guests", path.display()));
    let module = offline::engine().unwrap().load(&bytes, None).unwrap();
    module.views().unwrap().manifest().clone()
}

#[test]
fn each_view_of_the_farm_is_one_that_its_module_has() {
    let manifest = manifest();
    let module = format!("{}-{}", manifest.name, manifest.version);
    for declared in &manifest.views {
        let spec = &view(&declared.name)["spec"];
        assert_eq!((&spec["module"], &spec["view"]), (&json!(module), &json!(declared.name)));
        let wanted = if declared.is_writable() { set(&ALL) } else { set(&READ) };
        assert_eq!(texts(spec, "verbs").into_iter().collect::<BTreeSet<_>>(), wanted, "{}", declared.name);
        assert_eq!(spec["serve"], json!({"aggregated": {}}));
    }
    assert_eq!(view("farmpods")["spec"]["access"], "ViewAndBacking");
    assert_eq!(view("llamas")["spec"]["access"], "View");
}

#[test]
fn the_group_that_is_shown_leads_to_the_gateway_and_the_gateway_may_patch_this_apiservice_alone() {
    let apiservices = file("apiservice.yaml");
    let [apiservice] = &apiservices[..] else { panic!("{apiservices:?}") };
    let spec = &apiservice["spec"];
    let (group, version) = (spec["group"].as_str().unwrap(), spec["version"].as_str().unwrap());
    for declared in manifest().views {
        assert_eq!(declared.shown.as_ref().unwrap().api_version, format!("{group}/{version}"));
    }
    let name = format!("{version}.{group}");
    assert_eq!(apiservice["metadata"]["name"], name.as_str());
    let service = gateway::the("Service");
    let named = json!({
        "name": service["metadata"]["name"],
        "namespace": service["metadata"]["namespace"],
        "port": service["spec"]["ports"][0]["port"],
    });
    assert_eq!(spec["service"], named);
    assert_eq!((&spec["groupPriorityMinimum"], &spec["versionPriority"]), (&json!(1000), &json!(15)));
    // The gateway sets the authority. If the manifest had one, a second apply would take it back.
    assert!(spec.get("caBundle").is_none() && spec.get("insecureSkipTLSVerify").is_none());

    let role = role("pintle-gateway-farm");
    assert_eq!(role["metadata"]["labels"], json!({"pintle.dev/aggregate-to-gateway": "true"}));
    let patched =
        role["rules"].as_array().unwrap().iter().find(|rule| has(rule, "resources", &["apiservices"]));
    let wanted = json!({
        "apiGroups": ["apiregistration.k8s.io"], "resources": ["apiservices"], "resourceNames": [name], "verbs": ["get", "patch"],
    });
    assert_eq!(patched, Some(&wanted));
}

#[test]
fn a_record_has_the_fields_of_a_llama_in_a_group_of_its_own() {
    let crds = file("crd.yaml");
    let [crd] = &crds[..] else { panic!("{crds:?}") };
    let manifest = manifest();
    let llamas = manifest.view("llamas").unwrap();
    let spec = &crd["spec"];
    assert_eq!(
        (&spec["group"], &spec["names"]["kind"]),
        (&json!(llamas.backing.group()), &json!(llamas.backing.kind))
    );
    assert_ne!(llamas.backing.group(), llamas.shown.as_ref().unwrap().kind().group());
    assert_eq!(spec["scope"], "Namespaced");
    let [version] = &spec["versions"].as_array().unwrap()[..] else { panic!("{spec}") };
    assert_eq!(version["name"], llamas.backing.version());
    // Lists of required fields have no order.
    let sorted = |schema: &Value| {
        let mut schema = schema.clone();
        let mut required = texts(&schema, "required");
        required.sort();
        schema["required"] = json!(required);
        schema
    };
    let stored = sorted(&version["schema"]["openAPIV3Schema"]["properties"]["spec"]);
    assert_eq!(stored, sorted(&llamas.schema().unwrap()["properties"]["spec"]));
}

#[test]
fn the_gateway_itself_keeps_the_records_and_reads_pods_as_the_caller() {
    let role = role("pintle-gateway-farm");
    // It creates, and sends merge patches: never a whole object.
    let without_update: Vec<&str> = ALL.into_iter().filter(|verb| *verb != "update").collect();
    assert_eq!(verbs(&role, "store.farm.example.com", "llamarecords"), set(&without_update));

    let as_whom = ["user-info", "serviceaccount"];
    let on_pods: BTreeSet<String> =
        as_whom.iter().flat_map(|mode| READ.map(|verb| format!("impersonate-on:{mode}:{verb}"))).collect();
    // Its own rights to read them are for members of system:masters, who cannot be impersonated.
    let on_pods: BTreeSet<String> = on_pods.into_iter().chain(READ.map(str::to_owned)).collect();
    assert_eq!(verbs(&role, "", "pods"), on_pods);
    let identity = |resource: &str| verbs(&role, "authentication.k8s.io", resource);
    for resource in ["users", "groups", "uids", "userextras/authentication.kubernetes.io/credential-id"] {
        assert_eq!(identity(resource), set(&["impersonate:user-info"]), "{resource}");
    }
    assert_eq!(identity("serviceaccounts"), set(&["impersonate:serviceaccount"]));
}

#[test]
fn who_may_view_or_edit_a_namespace_may_do_so_with_its_farm() {
    let group = "farm.example.com";
    let (viewer, editor) = (role("farm-viewer"), role("farm-editor"));
    let label = |to: &str| json!({format!("rbac.authorization.k8s.io/aggregate-to-{to}"): "true"});
    assert_eq!(viewer["metadata"]["labels"], label("view"));
    assert_eq!(editor["metadata"]["labels"], label("edit"));
    for resource in ["farmpods", "llamas"] {
        assert_eq!(verbs(&viewer, group, resource), set(&READ), "{resource}");
    }
    assert_eq!(verbs(&editor, group, "llamas"), set(&ALL));
    assert_eq!(editor["rules"].as_array().unwrap().len(), 1, "farmpods are not to be edited");
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

#[test]
fn dolly_is_a_llama() {
    let llamas = file("dolly.yaml");
    let [dolly] = &llamas[..] else { panic!("{llamas:?}") };
    let manifest = manifest();
    let shown = manifest.view("llamas").unwrap().shown.as_ref().unwrap();
    assert_eq!((&dolly["apiVersion"], &dolly["kind"]), (&json!(shown.api_version), &json!(shown.kind)));
    assert_eq!(dolly["metadata"], json!({"name": "dolly", "namespace": "default"}));
    assert_eq!(dolly["spec"], json!({"height": 0.5, "weight": 31.4}));
}
