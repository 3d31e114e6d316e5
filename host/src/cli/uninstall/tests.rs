use std::time::Duration;

use pintle_core::object;
use pintle_simulator::Act;
use serde_json::{Value, json};

use super::{
    super::fixture::{cluster, module, read, reconciler, view},
    *,
};

/// A Module and a Reconciler, and what deploy/install.yaml has.
fn installed() -> [Vec<Target>; 5] {
    let [host, _] = installation(NAMESPACE).unwrap();
    let reconcilers: Vec<Reconciler> = read(&[reconciler("web-0.1.0", None, &[])]);
    let modules: Vec<Module> = read(&[module("web-0.1.0", None)]);
    [Vec::new(), Vec::new(), Target::all(&reconcilers), Target::all(&modules), host]
}

#[test]
fn who_is_asked_says_yes_in_full_or_with_a_letter() {
    assert!(is_yes("y\n") && is_yes("YES\n"));
    assert!(!is_yes("\n") && !is_yes("") && !is_yes("no\n") && !is_yes("yy\n"));
}

#[test]
fn reconcilers_go_first_the_host_after_the_modules_and_its_namespace_last() {
    let plan = Plan::of(&[], installed(), false);
    assert_eq!(
        plan.text(false),
        "These are deleted, in this order:
  reconciler.pintle.dev/r
  module.pintle.dev/web-0.1.0
  deployment.apps/pintle -n pintle-system
  validatingadmissionpolicybinding.admissionregistration.k8s.io/pintle-module-in-use
  validatingadmissionpolicy.admissionregistration.k8s.io/pintle-module-in-use
  rolebinding.rbac.authorization.k8s.io/pintle -n pintle-system
  role.rbac.authorization.k8s.io/pintle -n pintle-system
  clusterrolebinding.rbac.authorization.k8s.io/pintle
  clusterrole.rbac.authorization.k8s.io/pintle-host
  clusterrole.rbac.authorization.k8s.io/pintle
  serviceaccount/pintle -n pintle-system
  poddisruptionbudget.policy/pintle -n pintle-system
  networkpolicy.networking.k8s.io/pintle -n pintle-system
  networkpolicy.networking.k8s.io/default-deny -n pintle-system
  namespace/pintle-system, with everything in it
These stay:
  all roots and their CRDs, and the children of roots, without the finalizers of the host
  all objects that Views show
  ClusterRoles of guests: kubectl delete clusterroles -l pintle.dev/aggregate-to-host=true
  ClusterRoles of users: kubectl delete clusterroles -l pintle.dev/users=true
  ClusterRoles of Views: kubectl delete clusterroles -l pintle.dev/aggregate-to-gateway=true
  the CRDs of Module, Reconciler and View, without --crds
"
    );
    assert_eq!(plan.steps.len(), 4);
}

fn service(name: &str, service: Value) -> Value {
    let (version, group) = name.split_once('.').unwrap();
    json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": name},
        "spec": {"group": group, "version": version, "groupPriorityMinimum": 1, "versionPriority": 1, "service": service}})
}

#[test]
fn what_leads_to_the_gateway_goes_before_it_and_the_gateway_before_everything_else() {
    let to = json!({"namespace": "pintle-system", "name": "pintle-gateway"});
    let services: Vec<APIService> = read(&[service("v1.b.io", to)]);
    let [_, gateway] = installation(NAMESPACE).unwrap();
    let [_, _, reconcilers, modules, host] = installed();
    let all = [Target::all(&services), gateway, reconcilers, modules, host];
    let plan = Plan::of(&read(&[view("bs", "web-0.1.0", None, &[])]), all, false);
    assert!(
        plan.text(false).starts_with(
            "These are deleted, in this order:
  apiservice.apiregistration.k8s.io/v1.b.io
  view.pintle.dev/bs
  deployment.apps/pintle-gateway -n pintle-system
  prioritylevelconfiguration.flowcontrol.apiserver.k8s.io/pintle-gateway
  flowschema.flowcontrol.apiserver.k8s.io/pintle-gateway
  service/pintle-gateway -n pintle-system
  rolebinding.rbac.authorization.k8s.io/pintle-gateway -n pintle-system
  rolebinding.rbac.authorization.k8s.io/pintle-gateway-auth-reader -n kube-system
  role.rbac.authorization.k8s.io/pintle-gateway -n pintle-system
  clusterrolebinding.rbac.authorization.k8s.io/pintle-gateway-auth-delegator
  clusterrolebinding.rbac.authorization.k8s.io/pintle-gateway-views
  clusterrolebinding.rbac.authorization.k8s.io/pintle-gateway
  clusterrole.rbac.authorization.k8s.io/pintle-gateway-views
  clusterrole.rbac.authorization.k8s.io/pintle-gateway
  serviceaccount/pintle-gateway -n pintle-system
  poddisruptionbudget.policy/pintle-gateway -n pintle-system
  networkpolicy.networking.k8s.io/pintle-gateway -n pintle-system
  reconciler.pintle.dev/r
  module.pintle.dev/web-0.1.0
  deployment.apps/pintle -n pintle-system
"
        ),
        "{}",
        plan.text(false)
    );
    let steps: Vec<usize> = plan.steps.iter().map(Vec::len).collect();
    assert_eq!(steps[..6], [1, 1, 1, 14, 1, 1], "each is gone before the next begins");
}

#[test]
fn an_apiservice_that_leads_elsewhere_is_left_alone() {
    let leads = |to: Value| leads_to_gateway(&read(&[service("v1.b.io", to)])[0], "pintle-system");
    assert!(leads(json!({"namespace": "pintle-system", "name": "pintle-gateway", "port": 443})));
    assert!(!leads(json!({"namespace": "kube-system", "name": "pintle-gateway"})));
    assert!(!leads(json!({"namespace": "pintle-system", "name": "metrics-server"})));
    assert!(!leads(Value::Null), "the API server itself serves it");
}

#[test]
fn the_crds_go_last_and_only_where_that_is_said() {
    let plan = Plan::of(&[], installed(), true);
    let last: Vec<String> = plan.steps[4].iter().map(ToString::to_string).collect();
    assert_eq!(
        last,
        [
            "customresourcedefinition.apiextensions.k8s.io/views.pintle.dev",
            "customresourcedefinition.apiextensions.k8s.io/reconcilers.pintle.dev",
            "customresourcedefinition.apiextensions.k8s.io/modules.pintle.dev"
        ]
    );
    assert!(!plan.text(false).contains("without --crds"));
}

#[test]
fn another_namespace_stays_and_what_is_in_it_goes() {
    let [host, gateway] = installation("tools").unwrap();
    let text = Plan::of(&[], [vec![], vec![], vec![], vec![], host], false).text(false);
    assert!(!text.contains("namespace/") && !text.contains("pintle-system"), "{text}");
    for target in ["deployment.apps/pintle", "lease.coordination.k8s.io/pintle", "secret/pintle-gateway-tls"]
    {
        assert!(text.contains(&format!("  {target} -n tools\n")), "{text}");
    }
    let reader = gateway.iter().find(|target| target.name == "pintle-gateway-auth-reader").unwrap();
    assert_eq!(reader.namespace.as_deref(), Some("kube-system"));
}

#[test]
fn what_helm_deletes_is_left_and_what_needs_it_goes_in_the_same_order() {
    let [.., reconcilers, modules, _] = installed();
    let plan = Plan::of(&[], [vec![], vec![], reconcilers, modules, vec![]], false);
    assert!(
        plan.text(true).starts_with(
            "These are deleted, in this order:
  reconciler.pintle.dev/r
  module.pintle.dev/web-0.1.0
These stay:
"
        ) && plan.text(true).ends_with("  the host, the gateway, and what was installed with them\n"),
        "{}",
        plan.text(true)
    );
}

#[tokio::test]
async fn a_namespace_is_refused_while_the_host_has_its_account_in_another() {
    let (_, client) = cluster(&[json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "pintle"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "pintle"},
        "subjects": [{"kind": "ServiceAccount", "name": "pintle", "namespace": "tools"}],
    })]);
    refuse_elsewhere(&client, "tools").await.unwrap();
    let problem = refuse_elsewhere(&client, "nosuch").await.unwrap_err().to_string();
    assert!(problem.contains("Pintle is in namespace tools, not in nosuch"), "{problem}");
    let (_, client) = cluster(&[]);
    refuse_elsewhere(&client, NAMESPACE).await.unwrap();
}

#[test]
fn where_nothing_is_installed_there_is_nothing_to_do() {
    assert!(Plan::of(&[], Default::default(), true).steps.is_empty());
}

#[tokio::test]
async fn a_module_is_not_touched_before_the_last_reconciler_is_gone() {
    let mut held = reconciler("web-0.1.0", None, &[]);
    held["metadata"]["finalizers"] = json!(["pintle.dev/roots"]);
    let (server, client) = cluster(&[module("web-0.1.0", None), held.clone()]);
    let [.., reconcilers, modules, _] = installed();
    let plan = Plan::of(&[], [vec![], vec![], reconcilers, modules, vec![]], false);
    let mut told = String::new();
    let mut tell = |line: &str| {
        told.push_str(line);
        Ok(())
    };
    let problem = carry_out(&client, &plan, Duration::ZERO, &mut tell).await.unwrap_err().to_string();
    assert!(
        problem.contains("reconciler.pintle.dev/r is still there, for its finalizers pintle.dev/roots"),
        "{problem}"
    );
    assert!(server.object(&object::reference(&module("web-0.1.0", None))).is_some());
    let target = object::reference(&held);
    let patch = json!({"metadata": {"finalizers": null}});
    server.act("host", &Act::Merge { target, subresource: None, patch }).unwrap();
    carry_out(&client, &plan, Duration::from_secs(5), &mut tell).await.unwrap();
    assert!(server.object(&object::reference(&module("web-0.1.0", None))).is_none());
    assert_eq!(told, "reconciler.pintle.dev/r deleted\nmodule.pintle.dev/web-0.1.0 deleted\n");
}

#[tokio::test]
async fn what_would_wait_for_a_host_is_not_deleted_where_none_leads() {
    let mut held = reconciler("web-0.1.0", None, &[]);
    held["metadata"]["finalizers"] = json!(["pintle.dev/roots"]);
    let [.., reconcilers, modules, _] = installed();
    let plan = Plan::of(&[], [vec![], vec![], reconcilers, modules, vec![]], false);
    let (server, client) = cluster(&[module("web-0.1.0", None), held.clone()]);
    let refused = refuse_to_wait(&client, "default", &plan).await.unwrap_err().to_string();
    let said = "error: reconciler.pintle.dev/r would wait for a host, and none leads in namespace default: \
                nothing was deleted\n";
    assert!(refused.starts_with(said), "{refused}");
    let now = format!("{:.6}", pintle_runtime::clock::now());
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "pintle", "namespace": "default"},
        "spec": {"holderIdentity": "pintle-7", "leaseDurationSeconds": 10, "renewTime": now}});
    server.act("host", &Act::Create(lease)).unwrap();
    refuse_to_wait(&client, "default", &plan).await.unwrap();
    // Who never had a host, or is held by somebody else, waits for none.
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let (_server, client) = cluster(&[module("web-0.1.0", None), held]);
    refuse_to_wait(&client, "default", &plan).await.unwrap();
}

#[tokio::test]
async fn what_helm_has_installed_is_left_to_helm() {
    let deployment = |labels: Value| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "pintle", "namespace": "default", "labels": labels,
                "annotations": {"meta.helm.sh/release-name": "engine"}},
            "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": {"metadata": {"labels": {"app": "x"}},
                "spec": {"containers": [{"name": "main", "image": "x"}]}}}})
    };
    let (_server, client) = cluster(&[deployment(json!({"app.kubernetes.io/managed-by": "Helm"}))]);
    let refused = refuse_release(&client, "default").await.unwrap_err().to_string();
    assert!(refused.contains("hint: run: helm uninstall engine --namespace default; or"), "{refused}");
    let (_server, client) = cluster(&[deployment(json!({"app.kubernetes.io/component": "operator"}))]);
    refuse_release(&client, "default").await.unwrap();
}
