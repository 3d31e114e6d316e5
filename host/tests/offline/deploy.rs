//! What deploy/ asks a cluster for. No cluster is needed to see that.

mod farm;
mod gateway;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use pintle_api as api;
use pintle_offline::documents;
use roster::GUESTS;
use serde_json::{Value, json};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

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

fn objects(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    let found =
        documents::parse(&path.display().to_string(), &text).unwrap_or_else(|error| panic!("{error}"));
    found.into_iter().map(|document| document.value).collect()
}

/// Every object of deploy/, with the file that it is in.
fn all() -> Vec<(String, Value)> {
    let deploy = repository().join("deploy");
    let name = |path: &Path| path.strip_prefix(&deploy).unwrap().display().to_string();
    files(&deploy)
        .iter()
        .flat_map(|path| objects(path).into_iter().map(|object| (name(path), object)).collect::<Vec<_>>())
        .collect()
}

fn of_kind(kind: &str) -> Vec<(String, Value)> {
    all().into_iter().filter(|(_, object)| object["kind"] == kind).collect()
}

/// The Deployments of Pintle; the samples have one that is a guest's to restart.
fn deployments() -> Vec<(String, Value)> {
    of_kind("Deployment").into_iter().filter(|(file, _)| !file.starts_with("samples/")).collect()
}

/// The operator's Deployment, as it is installed.
fn host() -> Value {
    let installed = deployments().into_iter().find(|(file, _)| file == "install.yaml");
    installed.unwrap().1
}

fn texts(rule: &Value, key: &str) -> Vec<String> {
    let values = rule[key].as_array().cloned().unwrap_or_default();
    values.iter().map(|value| value.as_str().unwrap().to_owned()).collect()
}

/// Whether a role adds to those that Kubernetes has for people: view, edit and admin.
fn is_for_people(role: &Value) -> bool {
    let labels = role["metadata"]["labels"].as_object();
    labels.is_some_and(|labels| {
        labels.keys().any(|key| key.starts_with("rbac.authorization.k8s.io/aggregate-to-"))
    })
}

/// Every rule of every role of Pintle, with where it stands.
fn rules() -> Vec<(String, Value)> {
    let roles = of_kind("ClusterRole").into_iter().chain(of_kind("Role"));
    roles
        .filter(|(_, role)| !is_for_people(role))
        .flat_map(|(file, role)| {
            let at = format!("{file}: {} {}", role["kind"], role["metadata"]["name"]);
            let rules = role["rules"].as_array().cloned().unwrap_or_default();
            rules.into_iter().map(move |rule| (at.clone(), rule))
        })
        .collect()
}

fn has(rule: &Value, key: &str, wanted: &[&str]) -> bool {
    texts(rule, key).iter().any(|text| wanted.contains(&text.as_str()))
}

#[test]
fn every_file_of_deploy_is_kubernetes_objects_with_names() {
    let all = all();
    assert!(all.len() > 10, "{}", all.len());
    for (file, object) in &all {
        assert!(object.pointer("/metadata/name").and_then(Value::as_str).is_some(), "{file}: {object}");
    }
    // A forgotten separator would merge two objects into one.
    let kinds = |kind: &str| of_kind(kind).into_iter().filter(|(file, _)| file == "install.yaml").count();
    for (kind, count) in [
        ("Namespace", 1),
        ("CustomResourceDefinition", 3),
        ("ServiceAccount", 1),
        ("Deployment", 1),
        ("ClusterRoleBinding", 1),
        ("PodDisruptionBudget", 1),
        ("NetworkPolicy", 2),
    ] {
        assert_eq!(kinds(kind), count, "{kind} in install.yaml");
    }
}

#[test]
fn no_role_has_a_wildcard() {
    for (at, rule) in rules() {
        for key in ["apiGroups", "resources", "verbs", "nonResourceURLs"] {
            assert!(!texts(&rule, key).iter().any(|text| text.contains('*')), "{at}: {rule}");
        }
    }
}

#[test]
fn no_role_lets_the_host_give_rights_or_take_an_identity() {
    for (at, rule) in rules() {
        assert!(!has(&rule, "verbs", &["escalate", "bind"]), "{at}: {rule}");
        // Of records that only the gateway writes, for people who delete what it shows.
        let records = texts(&rule, "apiGroups") == ["store.farm.example.com"];
        assert!(records || !has(&rule, "verbs", &["deletecollection"]), "{at}: {rule}");
        assert!(
            !has(&rule, "verbs", &["impersonate"]) || at.starts_with("namespace/impersonate.yaml: \"Role\""),
            "{at}: {rule}"
        );
        let writes = has(&rule, "verbs", &["create", "update", "patch", "delete"]);
        let rights =
            ["roles", "rolebindings", "clusterroles", "clusterrolebindings", "serviceaccounts/token"];
        let admission =
            ["mutatingwebhookconfigurations", "validatingwebhookconfigurations", "customresourcedefinitions"];
        if has(&rule, "resources", &["apiservices"]) {
            let by_name =
                texts(&rule, "verbs") == ["get", "patch"] && !texts(&rule, "resourceNames").is_empty();
            assert!(!writes || by_name, "{at}: {rule}");
        }
        let cluster = ["namespaces", "nodes", "persistentvolumes"];
        for resources in [&rights[..], &admission[..], &cluster[..]] {
            assert!(!(writes && has(&rule, "resources", resources)), "{at}: {rule}");
        }
        assert!(
            !has(&rule, "resources", &["pods/exec", "pods/attach", "pods/portforward", "nodes/proxy"]),
            "{at}: {rule}"
        );
    }
}

#[test]
fn to_act_as_an_account_is_granted_by_name_and_namespace() {
    let granted: Vec<(String, Value)> =
        rules().into_iter().filter(|(_, rule)| has(rule, "verbs", &["impersonate"])).collect();
    let [(_, rule)] = &granted[..] else { panic!("{granted:?}") };
    let wanted = json!({
        "apiGroups": [""], "resources": ["serviceaccounts"], "resourceNames": ["pintle-children"], "verbs": ["impersonate"],
    });
    assert_eq!(*rule, wanted);
}

#[test]
fn secrets_are_reached_by_name_alone() {
    for (at, rule) in rules().into_iter().filter(|(_, rule)| has(rule, "resources", &["secrets"])) {
        // What somebody applies to one namespace is not the host's own role.
        assert!(at.starts_with("namespace/") || !has(&rule, "verbs", &["list", "watch"]), "{at}: {rule}");
    }
}

#[test]
fn the_role_for_secrets_of_one_namespace_gives_nothing_else() {
    let [role, binding] =
        <[Value; 2]>::try_from(objects(&repository().join("deploy/namespace/secrets.yaml"))).unwrap();
    assert_eq!(
        role["rules"],
        json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["list", "watch"]}])
    );
    assert_eq!((&role["kind"], &binding["kind"]), (&json!("Role"), &json!("RoleBinding")));
    assert_eq!(binding["roleRef"]["name"], role["metadata"]["name"]);
    let host = json!([{"kind": "ServiceAccount", "name": "pintle", "namespace": api::NAMESPACE}]);
    assert_eq!(binding["subjects"], host);
    // The namespace is the one that it is applied to.
    assert!(role["metadata"].get("namespace").is_none() && binding["metadata"].get("namespace").is_none());
}

#[test]
fn outside_its_namespace_the_host_reads_no_configmap_of_modules() {
    let roles = of_kind("Role");
    let (_, own) = roles.iter().find(|(file, _)| file == "install.yaml").unwrap();
    assert_eq!(own["metadata"]["namespace"], api::NAMESPACE);
    let configmaps: Vec<Value> = own["rules"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|rule| has(rule, "resources", &["configmaps"]))
        .cloned()
        .collect();
    assert_eq!(configmaps, [json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]})]);
    let (_, host) = of_kind("ClusterRole")
        .into_iter()
        .find(|(_, role)| role["metadata"]["name"] == "pintle-host")
        .unwrap();
    for rule in host["rules"].as_array().unwrap() {
        assert!(!texts(rule, "apiGroups").contains(&String::new()), "nothing of the core group: {rule}");
    }
}

#[test]
fn what_guests_need_reaches_the_host_by_aggregation() {
    let label = "pintle.dev/aggregate-to-host";
    let roles = of_kind("ClusterRole");
    let (_, aggregate) = roles.iter().find(|(_, role)| role["metadata"]["name"] == "pintle").unwrap();
    assert_eq!(
        aggregate.pointer("/aggregationRule/clusterRoleSelectors/0/matchLabels"),
        Some(&json!({label: "true"}))
    );
    // The cluster fills these in. If the manifest had an empty list, a second apply would be a conflict.
    assert_eq!(aggregate.get("rules"), None);
    for (file, role) in roles.iter().filter(|(file, _)| file.starts_with("rbac")) {
        assert_eq!(role["metadata"]["labels"][label], "true", "{file}");
    }
    let (_, binding) = of_kind("ClusterRoleBinding").pop().unwrap();
    assert_eq!(binding["roleRef"]["name"], "pintle");
    assert_eq!(
        binding["subjects"],
        json!([{"kind": "ServiceAccount", "name": "pintle", "namespace": api::NAMESPACE}])
    );
}

#[test]
fn the_host_and_the_gateway_run_hardened_each_as_an_account_of_its_own() {
    let deployments = deployments();
    let names: BTreeSet<&str> =
        deployments.iter().map(|(_, deployment)| deployment["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, BTreeSet::from(["pintle", "pintle-gateway"]));
    for (file, deployment) in &deployments {
        let pod = &deployment["spec"]["template"]["spec"];
        assert_eq!(pod["serviceAccountName"], deployment["metadata"]["name"], "{file}");
        let security = &pod["securityContext"];
        assert_eq!(security["runAsNonRoot"], true, "{file}");
        assert!(security["runAsUser"].as_u64().is_some_and(|user| user >= 65532), "{file}");
        assert_eq!(security["seccompProfile"]["type"], "RuntimeDefault", "{file}");
        for key in ["hostNetwork", "hostPID", "hostIPC"] {
            assert!(pod[key].is_null(), "{file}: {key}");
        }
        for container in pod["containers"].as_array().unwrap() {
            let security = &container["securityContext"];
            assert_eq!(security["readOnlyRootFilesystem"], true, "{file}");
            assert_eq!(security["allowPrivilegeEscalation"], false, "{file}");
            assert_eq!(security["capabilities"], json!({"drop": ["ALL"]}), "{file}");
            for path in ["requests/cpu", "requests/memory", "limits/memory"] {
                assert!(
                    container.pointer(&format!("/resources/{path}")).is_some(),
                    "{file}: resources/{path}"
                );
            }
            for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
                assert!(container[probe]["httpGet"]["path"].is_string(), "{file}: {probe}");
            }
            assert_eq!(container["livenessProbe"]["httpGet"]["path"], "/healthz");
            // A host that does nothing for 30 s is made anew before another 30 s; one that is merely slow to answer is not.
            let probe = |field: &str| container["livenessProbe"][field].as_u64().unwrap();
            assert!(probe("periodSeconds") * probe("failureThreshold") <= 30, "{file}");
            assert!(probe("timeoutSeconds") >= 5 && probe("failureThreshold") >= 3, "{file}");
            assert_eq!(container["readinessProbe"]["httpGet"]["path"], "/readyz");
            let image = container["image"].as_str().unwrap();
            assert!(image.contains(':') && !image.ends_with(":latest"), "{file}: {image}");
        }
    }
}

#[test]
fn a_second_host_stands_by_elsewhere() {
    let deployment = host();
    let spec = &deployment["spec"];
    assert_eq!(spec["replicas"], 2);
    assert_eq!(spec["strategy"]["type"], "RollingUpdate");
    let pods = &spec["template"]["metadata"]["labels"];
    let container = &spec["template"]["spec"]["containers"][0];
    assert!(texts(container, "args").contains(&"--leader-elect".to_owned()));
    assert_eq!(container["env"][0]["valueFrom"]["fieldRef"]["fieldPath"], "metadata.name");
    let spread = spec["template"]["spec"]["topologySpreadConstraints"].as_array().unwrap();
    let keys: Vec<&Value> = spread.iter().map(|constraint| &constraint["topologyKey"]).collect();
    assert_eq!(keys, [&json!("kubernetes.io/hostname"), &json!("topology.kubernetes.io/zone")]);
    assert!(spread.iter().all(|constraint| constraint["labelSelector"]["matchLabels"] == *pods));
    let (_, budget) = of_kind("PodDisruptionBudget").pop().unwrap();
    assert_eq!(budget["spec"]["maxUnavailable"], 1);
    assert_eq!(budget["spec"]["selector"]["matchLabels"], *pods);
}

#[test]
fn the_host_may_hold_its_lease_and_no_other() {
    let leases: Vec<Value> = rules()
        .into_iter()
        .map(|(_, rule)| rule)
        .filter(|rule| has(rule, "resources", &["leases"]))
        .collect();
    // Twice: host.yaml is part of install.yaml. A right to create cannot be limited to a name.
    assert_eq!(leases.len(), 4, "{leases:?}");
    for rule in leases {
        let verbs = texts(&rule, "verbs");
        assert!(verbs == ["create"] || texts(&rule, "resourceNames") == ["pintle"], "{rule}");
        assert!(!has(&rule, "verbs", &["list", "watch", "delete"]), "{rule}");
    }
}

#[test]
fn the_network_is_closed_but_for_the_api_server_dns_and_metrics() {
    let policies = of_kind("NetworkPolicy");
    let named = |name: &str| {
        &policies.iter().find(|(_, policy)| policy["metadata"]["name"] == name).unwrap().1["spec"]
    };
    let deny = named("default-deny");
    assert_eq!(*deny, json!({"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}));
    let host = named("pintle");
    assert_eq!(host["policyTypes"], json!(["Ingress", "Egress"]));
    let ports = |rule: &Value| {
        let ports = rule["ports"].as_array().unwrap();
        ports.iter().map(|port| port["port"].as_u64().unwrap()).collect::<Vec<u64>>()
    };
    let egress: Vec<Vec<u64>> = host["egress"].as_array().unwrap().iter().map(ports).collect();
    assert_eq!(egress, [vec![443, 6443], vec![53, 53]]);
    for rule in host["ingress"].as_array().unwrap() {
        assert_eq!(ports(rule), [8080]);
        assert!(rule["from"][0]["namespaceSelector"]["matchLabels"].is_object(), "{rule}");
    }
}

#[test]
fn the_namespace_enforces_what_the_host_keeps_to() {
    let (_, namespace) = of_kind("Namespace").pop().unwrap();
    assert_eq!(namespace["metadata"]["name"], api::NAMESPACE);
    assert_eq!(namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"], "restricted");
}

#[test]
fn the_crds_of_the_host_are_those_of_its_types() {
    let installed: Vec<Value> = of_kind("CustomResourceDefinition")
        .into_iter()
        .filter(|(file, _)| file == "install.yaml")
        .map(|(_, crd)| crd)
        .collect();
    assert!(installed == api::crds(), "deploy/install.yaml is stale; run: cargo xtask gen");
}

#[test]
fn the_crds_of_the_guests_are_those_beside_their_sources() {
    let folder = repository().join("deploy/crds");
    let mut deployed = Vec::new();
    for path in files(&folder) {
        deployed.extend(objects(&path));
    }
    let mut theirs = Vec::new();
    for guest in GUESTS {
        theirs.extend(objects(&repository().join(guest.folder()).join("crd.yaml")));
    }
    let by_name = |crd: &Value| crd["metadata"]["name"].as_str().unwrap().to_owned();
    deployed.sort_by_key(by_name);
    theirs.sort_by_key(by_name);
    assert!(deployed == theirs, "deploy/crds is stale; run: cargo xtask gen");
}

#[test]
fn the_samples_grant_no_more_than_their_guests_roles_allow() {
    let plural = |kind: &str| {
        if kind == "Ingress" { "ingresses".to_owned() } else { format!("{}s", kind.to_lowercase()) }
    };
    for guest in GUESTS {
        let name = guest.name;
        let reconciler = objects(&repository().join(guest.reconciler())).remove(0);
        let role = objects(&repository().join(guest.role())).remove(0);
        let typed: Result<api::ReconcilerSpec, _> = serde_json::from_value(reconciler["spec"].clone());
        typed.unwrap_or_else(|error| panic!("{name}: {error}")).supported().unwrap();
        let verbs = [
            ("children", &["get", "create", "patch", "delete"][..]),
            ("needs", &["get", "list", "watch"]),
            ("patches", &["get", "patch"]),
        ];
        for (part, verbs) in verbs {
            for grant in reconciler["spec"]["grants"][part].as_array().into_iter().flatten() {
                let api_version = grant["apiVersion"].as_str().unwrap();
                let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
                let kinds = match grant["kind"].as_str() {
                    Some(kind) => vec![kind.to_owned()],
                    None => texts(grant, "kinds"),
                };
                for kind in kinds {
                    let allowed = role["rules"].as_array().unwrap().iter().any(|rule| {
                        has(rule, "apiGroups", &[group])
                            && has(rule, "resources", &[&plural(&kind)])
                            && verbs.iter().all(|verb| has(rule, "verbs", &[verb]))
                    });
                    assert!(allowed, "{name}: {part}: {api_version} {kind}");
                }
            }
        }
    }
}

/// The instructions of deploy/Dockerfile: each one's name and the rest of its line.
fn dockerfile() -> Vec<(String, String)> {
    let text = fs::read_to_string(repository().join("deploy/Dockerfile")).unwrap();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(' ').unwrap()).map(|(name, rest)| (name.into(), rest.into())).collect()
}

#[test]
fn the_image_is_built_from_what_is_here_and_starts_as_the_deployment_wants() {
    let instructions = dockerfile();
    let of = |name: &str| -> Vec<&str> {
        instructions.iter().filter(|(found, _)| found == name).map(|(_, rest)| rest.as_str()).collect()
    };
    let [build, base] = of("FROM")[..] else { panic!("{instructions:?}") };
    let workspace = fs::read_to_string(repository().join("Cargo.toml")).unwrap();
    let toolchain =
        build.strip_prefix("rust:").and_then(|rest| rest.strip_suffix("-bookworm AS build")).unwrap();
    assert!(workspace.contains(&format!("rust-version = \"{toolchain}\"")), "built with Rust {toolchain}");
    // Debian bookworm is Debian 12; the image with a libc, since nothing makes the binary static.
    assert_eq!(base, "gcr.io/distroless/cc-debian12:nonroot");

    let mut workdir = String::new();
    let mut copied = Vec::new();
    for (name, rest) in &instructions {
        match (name.as_str(), &rest.split(' ').collect::<Vec<_>>()[..]) {
            ("WORKDIR", [folder]) => workdir = (*folder).to_owned(),
            ("COPY", ["--from=build", built, to]) => {
                assert_eq!(*built, format!("{workdir}/target/dist/pintle"));
                copied.push((*to).to_owned());
            }
            ("COPY", [from, _]) => {
                assert!(repository().join(from).exists(), "{from} is not there");
            }
            ("RUN", _) => {
                assert_eq!(rest, "cargo build --profile dist --locked --package pintle");
            }
            _ => {}
        }
    }
    let exec = |name: &str| -> Vec<String> { serde_json::from_str(of(name)[0]).unwrap() };
    assert_eq!(exec("ENTRYPOINT"), copied, "what is started is what was copied");
    let deployment = host();
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["containers"][0]["args"][0], exec("CMD")[0].as_str());
    // The nonroot user of distroless images, who can run what root copied.
    assert_eq!(pod["securityContext"]["runAsUser"], 65532);
    assert!(pod["containers"][0].get("command").is_none(), "the image says what is started");
    let ignored = fs::read_to_string(repository().join("deploy/Dockerfile.dockerignore")).unwrap();
    assert!(ignored.lines().any(|line| line == "target"), "{ignored}");
}
