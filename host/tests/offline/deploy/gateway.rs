//! What deploy/gateway.yaml installs.

use std::collections::BTreeMap;

use pintle_api as api;
use pintle_core::view::admission::AdmissionKind;
use serde_json::{Value, json};

use super::{has, host, objects, of_kind, repository, texts};

const NAME: &str = "pintle-gateway";

fn installed() -> Vec<Value> {
    objects(&repository().join("deploy/gateway.yaml"))
}

/// The only object of a kind.
pub(super) fn the(kind: &str) -> Value {
    let found: Vec<Value> = installed().into_iter().filter(|object| object["kind"] == kind).collect();
    let [one] = &found[..] else { panic!("{kind}: {found:?}") };
    one.clone()
}

/// The value of a flag of the gateway: `--health-bind=...`.
fn flag(name: &str) -> String {
    let args = texts(&the("Deployment")["spec"]["template"]["spec"]["containers"][0], "args");
    assert_eq!(args[0], "gateway");
    let found = args.iter().find_map(|arg| arg.strip_prefix(&format!("--{name}=")));
    found.unwrap_or_else(|| panic!("--{name} is not in {args:?}")).to_owned()
}

/// The name and number of each port of its container.
fn ports() -> BTreeMap<String, u64> {
    let deployment = the("Deployment");
    let ports = deployment["spec"]["template"]["spec"]["containers"][0]["ports"].as_array().unwrap();
    let port =
        |port: &Value| (port["name"].as_str().unwrap().to_owned(), port["containerPort"].as_u64().unwrap());
    ports.iter().map(port).collect()
}

fn is_selected(selector: &Value, pods: &Value) -> bool {
    selector.as_object().unwrap().iter().all(|(key, value)| pods[key] == *value)
}

#[test]
fn to_delete_the_gateway_deletes_nothing_of_the_operator() {
    for object in installed() {
        let name = object["metadata"]["name"].as_str().unwrap();
        assert!(name == NAME || name.starts_with("pintle-gateway-"), "{}: {name}", object["kind"]);
        assert!(!["Namespace", "CustomResourceDefinition"].contains(&object["kind"].as_str().unwrap()));
    }
}

#[test]
fn the_service_leads_to_the_gateways_and_its_name_is_the_one_that_they_serve() {
    let service = the("Service");
    let (namespace, name) = (&service["metadata"]["namespace"], &service["metadata"]["name"]);
    assert_eq!((namespace, name), (&json!(api::NAMESPACE), &json!(NAME)));
    assert_eq!(flag("service"), format!("{}/{NAME}", api::NAMESPACE));
    assert_eq!(service["spec"]["ports"], json!([{"name": "https", "port": 443, "targetPort": "https"}]));
    assert_eq!(flag("aggregated-bind"), format!("0.0.0.0:{}", ports()["https"]));
    assert_eq!(flag("health-bind"), format!("0.0.0.0:{}", ports()["http"]));

    // A Service or a Deployment that selected the Pods of the other would mix them up.
    let pods = |deployment: &Value| deployment["spec"]["template"]["metadata"]["labels"].clone();
    let (gateways, hosts) = (pods(&the("Deployment")), pods(&host()));
    let selector = |deployment: &Value| deployment["spec"]["selector"]["matchLabels"].clone();
    assert!(is_selected(&service["spec"]["selector"], &gateways));
    assert!(!is_selected(&service["spec"]["selector"], &hosts));
    assert!(is_selected(&selector(&the("Deployment")), &gateways));
    assert!(!is_selected(&selector(&the("Deployment")), &hosts));
    assert!(!is_selected(&selector(&host()), &gateways));
}

#[test]
fn one_gateway_is_always_there_and_another_elsewhere() {
    let spec = &the("Deployment")["spec"];
    assert_eq!(spec["replicas"], 2);
    assert_eq!(spec["strategy"]["rollingUpdate"], json!({"maxSurge": 1, "maxUnavailable": 0}));
    let pods = &spec["template"]["metadata"]["labels"];
    let spread = spec["template"]["spec"]["topologySpreadConstraints"].as_array().unwrap();
    let keys: Vec<&Value> = spread.iter().map(|constraint| &constraint["topologyKey"]).collect();
    assert_eq!(keys, [&json!("kubernetes.io/hostname"), &json!("topology.kubernetes.io/zone")]);
    assert!(spread.iter().all(|constraint| constraint["labelSelector"]["matchLabels"] == *pods));
    let budget = the("PodDisruptionBudget");
    assert_eq!(budget["spec"]["maxUnavailable"], 1);
    assert_eq!(budget["spec"]["selector"]["matchLabels"], *pods);
    // Whoever holds the connections of the aggregated API, or of the console, must not have the gateway restarted.
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let asked = &spec["template"]["spec"]["containers"][0][probe]["httpGet"];
        assert_eq!((&asked["scheme"], &asked["port"]), (&Value::Null, &json!("http")), "{probe}");
    }
}

#[test]
fn the_console_is_off_and_its_sample_leads_to_where_the_commented_flags_serve_it_with_tls() {
    let text = std::fs::read_to_string(repository().join("deploy/gateway.yaml")).unwrap();
    let commented = |flag: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(&format!("# - --{flag}=")));
        line.unwrap_or_else(|| panic!("{flag}")).to_owned()
    };
    let args = texts(&the("Deployment")["spec"]["template"]["spec"]["containers"][0], "args");
    assert!(!args.iter().any(|arg| arg.starts_with("--console")), "{args:?}");
    let pod = &the("Deployment")["spec"]["template"]["spec"];
    let mounted = pod["containers"][0]["volumeMounts"][0]["mountPath"].as_str().unwrap();
    for flag in ["console-tls-cert-file", "console-tls-private-key-file"] {
        assert!(commented(flag).starts_with(&format!("{mounted}/tls.")), "{flag}");
    }
    let secret = &pod["volumes"][0]["secret"];
    assert_eq!((&secret["secretName"], &secret["optional"]), (&json!("pintle-console-tls"), &json!(true)));
    let port: u64 = commented("console-bind").rsplit(':').next().unwrap().parse().unwrap();
    let sample = objects(&repository().join("deploy/samples/console.yaml"));
    let [service, policy] = &sample[..] else { panic!("{sample:?}") };
    assert!(is_selected(
        &service["spec"]["selector"],
        &the("Deployment")["spec"]["template"]["metadata"]["labels"]
    ));
    assert_eq!(service["spec"]["ports"][0]["targetPort"], port);
    assert_eq!(policy["spec"]["podSelector"], the("NetworkPolicy")["spec"]["podSelector"]);
    assert_eq!(policy["spec"]["ingress"], json!([{"ports": [{"protocol": "TCP", "port": port}]}]));
}

#[test]
fn the_gateway_runs_the_image_of_the_operator() {
    let image = |deployment: &Value| deployment["spec"]["template"]["spec"]["containers"][0]["image"].clone();
    assert_eq!(image(&the("Deployment")), image(&host()));
}

/// Each verb on each resource that a role gives, as `patch views/status`.
fn rights(role: &Value) -> Vec<String> {
    let mut rights = Vec::new();
    for rule in role["rules"].as_array().unwrap() {
        let only = texts(rule, "resourceNames").iter().map(|name| format!(" {name}")).collect::<String>();
        for resource in texts(rule, "resources") {
            rights.extend(texts(rule, "verbs").iter().map(|verb| format!("{verb} {resource}{only}")));
        }
    }
    rights.sort();
    rights
}

#[test]
fn the_gateways_own_roles_are_these() {
    let read = |resource: &str| ["get", "list", "watch"].map(|verb| format!("{verb} {resource}"));
    let mut cluster = ["apiservices", "customresourcedefinitions", "modules", "views"].map(read).concat();
    let write = ["patch views", "patch views/status", "create events", "patch events"];
    cluster.extend(write.map(ToOwned::to_owned));
    cluster.extend(AdmissionKind::ALL.map(|kind| format!("list {}", kind.plural())));
    cluster.sort();
    let own =
        of_kind("ClusterRole").into_iter().find(|(_, role)| role["metadata"]["name"] == NAME).unwrap().1;
    assert_eq!(rights(&own), cluster);
    let role = the("Role");
    assert_eq!(role["metadata"]["namespace"], api::NAMESPACE);
    assert_eq!(
        rights(&role),
        [
            "create secrets",
            "get configmaps",
            "get secrets pintle-gateway-tls",
            "patch secrets pintle-gateway-tls",
            "update secrets pintle-gateway-tls",
        ]
    );
}

#[test]
fn every_binding_of_the_gateway_is_for_its_account_alone() {
    let account = json!([{"kind": "ServiceAccount", "name": NAME, "namespace": api::NAMESPACE}]);
    let mut bound = BTreeMap::new();
    for object in installed() {
        if matches!(object["kind"].as_str(), Some("ClusterRoleBinding" | "RoleBinding")) {
            assert_eq!(object["subjects"], account, "{object}");
            let to = format!(
                "{} {}",
                object["roleRef"]["kind"].as_str().unwrap(),
                object["roleRef"]["name"].as_str().unwrap()
            );
            bound.insert(to, object["metadata"]["namespace"].as_str().unwrap_or("everywhere").to_owned());
        }
    }
    let wanted = [
        ("ClusterRole pintle-gateway", "everywhere"),
        ("ClusterRole pintle-gateway-views", "everywhere"),
        ("ClusterRole system:auth-delegator", "everywhere"),
        ("Role extension-apiserver-authentication-reader", "kube-system"),
        ("Role pintle-gateway", api::NAMESPACE),
    ];
    assert_eq!(bound, wanted.map(|(role, at)| (role.to_owned(), at.to_owned())).into());
}

#[test]
fn what_views_need_reaches_the_gateway_and_not_the_operator() {
    let label = "pintle.dev/aggregate-to-gateway";
    let roles = of_kind("ClusterRole");
    let (_, aggregate) =
        roles.iter().find(|(_, role)| role["metadata"]["name"] == "pintle-gateway-views").unwrap();
    assert_eq!(
        aggregate.pointer("/aggregationRule/clusterRoleSelectors"),
        Some(&json!([{"matchLabels": {label: "true"}}]))
    );
    assert_eq!(aggregate.get("rules"), None, "the cluster fills these in");
    for (file, role) in &roles {
        let labels = &role["metadata"]["labels"];
        let both = labels[label] == "true" && labels["pintle.dev/aggregate-to-host"] == "true";
        assert!(!both, "{file}: {}", role["metadata"]["name"]);
    }
}

#[test]
fn the_gateways_network_is_closed_but_for_what_it_serves_and_asks() {
    let policy = the("NetworkPolicy");
    let spec = &policy["spec"];
    assert!(is_selected(
        &spec["podSelector"]["matchLabels"],
        &the("Deployment")["spec"]["template"]["metadata"]["labels"]
    ));
    assert_eq!(spec["policyTypes"], json!(["Ingress", "Egress"]));
    let [served, metrics] = &spec["ingress"].as_array().unwrap()[..] else { panic!("{policy}") };
    assert_eq!(*served, json!({"ports": [{"protocol": "TCP", "port": ports()["https"]}]}));
    assert_eq!(metrics["ports"], json!([{"protocol": "TCP", "port": ports()["http"]}]));
    let installed = objects(&repository().join("deploy/install.yaml"));
    let operator = installed
        .iter()
        .find(|object| object["kind"] == "NetworkPolicy" && object["metadata"]["name"] == "pintle");
    let operator = &operator.unwrap()["spec"];
    assert_eq!(metrics["from"], operator["ingress"][0]["from"]);
    assert_eq!(spec["egress"], operator["egress"]);
}

#[test]
fn reviews_do_not_wait_for_the_requests_that_wait_for_them() {
    let (schema, level) = (the("FlowSchema"), the("PriorityLevelConfiguration"));
    assert_eq!(schema["spec"]["priorityLevelConfiguration"]["name"], level["metadata"]["name"]);
    let [rule] = &schema["spec"]["rules"].as_array().unwrap()[..] else { panic!("{schema}") };
    assert_eq!(
        rule["subjects"],
        json!([{"kind": "ServiceAccount", "serviceAccount": {"name": NAME, "namespace": api::NAMESPACE}}])
    );
    let reviews: Vec<Vec<String>> =
        rule["resourceRules"].as_array().unwrap().iter().map(|rule| texts(rule, "resources")).collect();
    assert_eq!(reviews, [["tokenreviews"], ["subjectaccessreviews"]]);
    for rule in rule["resourceRules"].as_array().unwrap() {
        assert!(has(rule, "verbs", &["create"]) && rule["clusterScope"] == true, "{rule}");
    }
    // The FlowSchema for all ServiceAccounts has 9000, and the smaller number wins.
    assert!(schema["spec"]["matchingPrecedence"].as_u64().unwrap() < 9000);
    assert_eq!(level["spec"]["type"], "Limited");
}
