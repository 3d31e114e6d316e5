//! What deploy/ asks a cluster for: a snapshot of who may do what and who may talk to whom, and the rules that it keeps to. No cluster is
//! needed to see that.

mod farm;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use pintle_api as api;
use pintle_offline::documents;
use serde_json::{Value, json};
use xtask::{CHART, GUESTS, IMAGE, RENDERED};

use crate::{objects, repository, snapshot};

/// The manifests of a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Every object of deploy/, with the file that it is in. What the chart has is in what is rendered from it.
fn all() -> Vec<(String, Value)> {
    let deploy = repository().join("deploy");
    let mut all = Vec::new();
    for path in files(&deploy) {
        let file = path.strip_prefix(&deploy).unwrap().display().to_string();
        if !file.starts_with("chart/") {
            all.extend(objects(&path).into_iter().map(|object| (file.clone(), object)));
        }
    }
    all
}

/// With what the chart has where every value is set.
fn all_with_chart() -> Vec<(String, Value)> {
    let chart = objects(&repository().join("host/tests/offline/deploy/chart.yaml"));
    all().into_iter().chain(chart.into_iter().map(|object| ("chart".to_owned(), object))).collect()
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

fn texts(rule: &Value, key: &str) -> Vec<String> {
    let values = rule[key].as_array().cloned().unwrap_or_default();
    values.iter().map(|value| value.as_str().unwrap().to_owned()).collect()
}

fn has(rule: &Value, key: &str, wanted: &[&str]) -> bool {
    texts(rule, key).iter().any(|text| wanted.contains(&text.as_str()))
}

/// Every rule of every role, with the file and the role.
fn rules() -> Vec<(String, Value)> {
    let mut rules = Vec::new();
    for (file, object) in all_with_chart() {
        if ["ClusterRole", "Role"].contains(&object["kind"].as_str().unwrap()) {
            let role = format!("{file}: {}", name(&object));
            let of_role = object["rules"].as_array().cloned().unwrap_or_default();
            rules.extend(of_role.into_iter().map(|rule| (role.clone(), rule)));
        }
    }
    rules
}

/// The fields that say who may do what, who runs as whom, and who may talk to whom.
const SHOWN: [&str; 16] = [
    "/metadata/labels",
    "/aggregationRule",
    "/rules",
    "/roleRef",
    "/subjects",
    "/spec/podSelector",
    "/spec/policyTypes",
    "/spec/ingress",
    "/spec/egress",
    "/spec/selector",
    "/spec/ports",
    "/spec/service",
    "/spec/template/metadata/labels",
    "/spec/template/spec/serviceAccountName",
    "/spec/template/spec/containers/0/image",
    "/spec/template/spec/containers/0/args",
];

#[test]
fn what_deploy_grants_and_lets_through_is_the_snapshot() {
    let mut text = String::new();
    for (file, object) in all() {
        let namespace = object["metadata"]["namespace"].as_str().map(|namespace| format!("{namespace}/"));
        let namespace = namespace.unwrap_or_default();
        text += &format!("{file}: {} {namespace}{}\n", object["kind"].as_str().unwrap(), name(&object));
        for field in SHOWN {
            let Some(value) = object.pointer(field) else { continue };
            for line in value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice) {
                text += &format!("  {field} {line}\n");
            }
        }
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/offline/deploy/snapshot.txt");
    if let Some(difference) = snapshot::difference(&file, &text) {
        panic!("{difference}");
    }
}

#[test]
fn no_role_has_a_wildcard() {
    for (role, rule) in rules() {
        for key in ["apiGroups", "resources", "verbs", "nonResourceURLs"] {
            assert!(!texts(&rule, key).iter().any(|text| text.contains('*')), "{role}: {rule}");
        }
    }
}

/// The rules that let somebody act as another, or write what gives rights: the role, its resources, and the names that it is limited to.
const POWERFUL: [&str; 6] = [
    "namespace/impersonate.yaml: pintle-impersonate: serviceaccounts [pintle-children]",
    "samples/farm/rbac.yaml: pintle-gateway-farm: apiservices [v1alpha.farm.example.com]",
    "samples/farm/rbac.yaml: pintle-gateway-farm: pods []",
    "samples/farm/rbac.yaml: pintle-gateway-farm: users groups uids userextras/authentication.kubernetes.io/credential-id []",
    "samples/farm/rbac.yaml: pintle-gateway-farm: serviceaccounts []",
    // Before Helm deletes the rest, and only as long as it takes.
    "chart: pintle-uninstall: apiservices []",
];

#[test]
fn no_other_role_gives_rights_or_an_identity() {
    let give = [
        "roles",
        "rolebindings",
        "clusterroles",
        "clusterrolebindings",
        "mutatingwebhookconfigurations",
        "validatingwebhookconfigurations",
        "mutatingadmissionpolicies",
        "validatingadmissionpolicies",
        "customresourcedefinitions",
        "apiservices",
        "namespaces",
        "nodes",
        "persistentvolumes",
    ];
    let enter = [
        "serviceaccounts/token",
        "pods/exec",
        "pods/attach",
        "pods/portforward",
        "pods/proxy",
        "nodes/proxy",
    ];
    let write = ["create", "update", "patch", "delete", "deletecollection"];
    let is_powerful = |rule: &Value| {
        let acts = |verb: &String| verb == "escalate" || verb == "bind" || verb.starts_with("impersonate");
        let gives = has(rule, "verbs", &write) && has(rule, "resources", &give);
        gives || has(rule, "resources", &enter) || texts(rule, "verbs").iter().any(acts)
    };
    let powerful = rules().into_iter().filter(|(_, rule)| is_powerful(rule)).map(|(role, rule)| {
        let names = texts(&rule, "resourceNames").join(" ");
        format!("{role}: {} [{names}]", texts(&rule, "resources").join(" "))
    });
    assert_eq!(powerful.collect::<Vec<String>>(), POWERFUL);
}

#[test]
fn secrets_are_reached_by_name_alone() {
    for (role, rule) in rules().into_iter().filter(|(_, rule)| has(rule, "resources", &["secrets"])) {
        // What somebody applies to one namespace is not the host's own role.
        let is_host = !role.starts_with("namespace/");
        let many = has(&rule, "verbs", &["list", "watch", "deletecollection"]);
        assert!(!(is_host && many), "{role}: {rule}");
    }
}

#[test]
fn every_pod_is_hardened() {
    // The samples have one that is a guest's to restart.
    let of_pintle = all_with_chart().into_iter().filter(|(file, _)| !file.starts_with("samples/"));
    let mut count = 0;
    for (file, object) in of_pintle {
        let Some(pod) = object.pointer("/spec/template/spec") else { continue };
        count += 1;
        let security = &pod["securityContext"];
        assert_eq!(security["runAsNonRoot"], true, "{file}");
        assert_eq!(security["seccompProfile"], json!({"type": "RuntimeDefault"}), "{file}");
        for key in ["hostNetwork", "hostPID", "hostIPC"] {
            assert!(pod[key].is_null(), "{file}: {key}");
        }
        for container in pod["containers"].as_array().unwrap() {
            let security = &container["securityContext"];
            assert_eq!(security["readOnlyRootFilesystem"], true, "{file}");
            assert_eq!(security["allowPrivilegeEscalation"], false, "{file}");
            assert_eq!(security["capabilities"], json!({"drop": ["ALL"]}), "{file}");
            for path in ["requests/cpu", "requests/memory", "limits/memory"] {
                assert!(container.pointer(&format!("/resources/{path}")).is_some(), "{file}: {path}");
            }
        }
    }
    assert!(count > 0, "nothing has Pods");
}

#[test]
fn the_crds_are_those_of_the_types() {
    let crds_of = |wanted: &str| {
        let objects = all().into_iter().filter(|(file, _)| file.starts_with(wanted));
        let mut crds: Vec<Value> =
            objects.map(|(_, object)| object).filter(|it| it["kind"] == "CustomResourceDefinition").collect();
        crds.sort_by_key(|crd| name(crd).to_owned());
        crds
    };
    let mut types = api::crds();
    types.sort_by_key(|crd| name(crd).to_owned());
    assert!(crds_of("install.yaml") == types, "deploy/install.yaml is stale; run: cargo xtask gen");
    // What `helm show crds` prints, for kubectl.
    let shown: Vec<String> = files(&repository().join(CHART).join("crds"))
        .iter()
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    let shown = documents::parse("the CRDs of the chart", &shown.join("\n"))
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(
        shown.into_iter().map(|document| document.value).eq(types),
        "the chart's CRDs are stale; run: cargo xtask gen"
    );
    let mut guests: Vec<Value> =
        GUESTS.iter().flat_map(|guest| objects(&repository().join(guest.folder).join("crd.yaml"))).collect();
    guests.sort_by_key(|crd| name(crd).to_owned());
    assert!(crds_of("crds/") == guests, "deploy/crds is stale; run: cargo xtask gen");
}

#[test]
fn what_is_rendered_is_of_this_chart() {
    let first = format!("# chart: {}", pintle_testbed::chart_digest(&repository().join(CHART)).unwrap());
    for file in RENDERED {
        let text = fs::read_to_string(repository().join(file)).unwrap();
        assert_eq!(text.lines().next(), Some(&*first), "{file} is stale; run: cargo xtask gen");
    }
}

fn of_chart(file: &str) -> Value {
    let text = fs::read_to_string(repository().join(CHART).join(file)).unwrap();
    documents::parse_one(file, &text).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_chart_installs_the_image_of_this_version() {
    let chart = of_chart("Chart.yaml");
    for field in ["version", "appVersion"] {
        assert_eq!(chart[field], env!("CARGO_PKG_VERSION"), "{field}");
    }
    let install = fs::read_to_string(repository().join("deploy/install.yaml")).unwrap();
    assert!(install.contains(&format!("image: {IMAGE}\n")), "not {IMAGE}");
}

#[test]
fn every_value_of_the_chart_has_a_schema_and_is_set_where_the_tests_look() {
    let keys = |value: &Value| -> BTreeSet<String> { value.as_object().unwrap().keys().cloned().collect() };
    let (values, every) = (of_chart("values.yaml"), of_chart("ci/every-values.yaml"));
    let schema = of_chart("values.schema.json");
    // What another chart may set that has this one in it.
    let of_parent = BTreeSet::from(["global".to_owned(), "enabled".to_owned()]);
    assert_eq!(keys(&values), &keys(&schema["properties"]) - &of_parent);
    assert_eq!(keys(&values), keys(&every));
    for (part, schema) in schema["properties"].as_object().unwrap() {
        if values[part].is_object() {
            assert_eq!(keys(&values[part]), keys(&schema["properties"]), "{part}");
            assert_eq!(keys(&values[part]), keys(&every[part]), "{part}");
        }
    }
}

#[test]
fn nothing_is_left_of_the_namespace_and_the_values_that_others_replace() {
    let chart = fs::read_to_string(repository().join("host/tests/offline/deploy/chart.yaml")).unwrap();
    // Helm merges maps: a label that is left would keep out the Prometheus that is named instead.
    for left in ["pintle-system", "metrics: enabled", "runbook_url: docs/"] {
        assert!(!chart.contains(left), "{left}");
    }
}

#[test]
fn the_samples_grant_no_more_than_their_guests_roles_allow() {
    let plural = |kind: &str| {
        if kind == "Ingress" { "ingresses".to_owned() } else { format!("{}s", kind.to_lowercase()) }
    };
    for guest in GUESTS {
        let reconciler = objects(&repository().join(guest.reconciler)).remove(0);
        let role = objects(&repository().join(guest.role())).remove(0);
        let typed: api::ReconcilerSpec = serde_json::from_value(reconciler["spec"].clone()).unwrap();
        typed.supported().unwrap();
        let verbs = [
            ("children", &["get", "create", "patch", "delete"][..]),
            ("needs", &["get", "list", "watch"]),
            ("patches", &["get", "patch"]),
        ];
        for (part, verbs) in verbs {
            for grant in reconciler["spec"]["grants"][part].as_array().into_iter().flatten() {
                let api_version = grant["apiVersion"].as_str().unwrap();
                let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
                let kinds = grant["kind"].as_str().map(|kind| vec![kind.to_owned()]);
                for kind in kinds.unwrap_or_else(|| texts(grant, "kinds")) {
                    let allowed = role["rules"].as_array().unwrap().iter().any(|rule| {
                        has(rule, "apiGroups", &[group])
                            && has(rule, "resources", &[&plural(&kind)])
                            && verbs.iter().all(|verb| has(rule, "verbs", &[verb]))
                    });
                    assert!(allowed, "{}: {part}: {api_version} {kind}", guest.name);
                }
            }
        }
    }
}

#[test]
fn the_image_is_built_with_the_compiler_of_the_workspace() {
    let read = |file: &str| fs::read_to_string(repository().join(file)).unwrap();
    let (dockerfile, workspace) = (read("deploy/Dockerfile"), read("Cargo.toml"));
    let image = dockerfile.lines().find_map(|line| line.strip_prefix("FROM rust:")).unwrap();
    let (version, _) = image.split_once('-').unwrap();
    assert!(workspace.contains(&format!("rust-version = \"{version}\"")), "built with Rust {version}");
}
