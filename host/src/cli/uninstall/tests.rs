use std::time::Duration;

use pintle_core::{object, view::metadata::collectors_of};
use pintle_kubernetes::Resource;
use pintle_simulator::{Act, Failure, Fate, Faults, RequestSeen};
use pintle_wit::Kind;
use serde_json::json;

use super::{
    super::fixture::{cluster, module, read, reconciler, root, view, view_of_llamas},
    *,
};

fn found() -> Found {
    let resource = Resource { kind: Kind::new("a.io/v1", "A"), plural: "as".into(), namespaced: true };
    let mut held = root("x", "held", &[]);
    held["metadata"]["finalizers"] = json!(["pintle.dev/inventory", "somebody/else"]);
    Found {
        services: Vec::new(),
        views: Vec::new(),
        gateway: Vec::new(),
        reconcilers: read(&[reconciler("web-0.1.0", None, &[])]),
        modules: read(&[module("web-0.1.0", None)]),
        installed: plan::manifest().unwrap(),
        roots: roots::Roots {
            found: vec![Root::of(&held, &resource), Root::of(&root("x", "free", &[]), &resource)],
            unread: Vec::new(),
        },
        host_works: true,
    }
}

#[test]
fn who_is_asked_says_yes_in_full_or_with_a_letter() {
    assert!(is_yes("y\n") && is_yes("YES\n"));
    assert!(!is_yes("\n") && !is_yes("") && !is_yes("no\n") && !is_yes("yy\n"));
}

#[test]
fn reconcilers_go_first_the_host_after_the_modules_and_its_namespace_last() {
    let plan = plan::of(&found(), false);
    assert_eq!(
        plan.text(),
        "These are deleted, in this order:
  reconciler.pintle.dev/r
  module.pintle.dev/web-0.1.0
  deployment.apps/pintle -n pintle-system
  validatingadmissionpolicybinding.admissionregistration.k8s.io/pintle-module-in-use
  validatingadmissionpolicy.admissionregistration.k8s.io/pintle-module-in-use
  networkpolicy.networking.k8s.io/pintle -n pintle-system
  networkpolicy.networking.k8s.io/default-deny -n pintle-system
  poddisruptionbudget.policy/pintle -n pintle-system
  rolebinding.rbac.authorization.k8s.io/pintle -n pintle-system
  role.rbac.authorization.k8s.io/pintle -n pintle-system
  clusterrolebinding.rbac.authorization.k8s.io/pintle
  clusterrole.rbac.authorization.k8s.io/pintle-host
  clusterrole.rbac.authorization.k8s.io/pintle
  serviceaccount/pintle -n pintle-system
  namespace/pintle-system, with everything in it
These stay:
  all roots and their CRDs, and the children of roots
  1 of 2 roots without the finalizers of the host: what it would clean up when they are deleted stays
  children in other namespaces of 1 of 2 roots: they do not go with their roots any more
  ClusterRoles of guests: kubectl delete clusterroles -l pintle.dev/aggregate-to-host=true
  the CRDs of Module, Reconciler and View: --crds deletes them
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
    let with_views = Found {
        services: read(&[service(
            "v1.b.io",
            json!({"namespace": "pintle-system", "name": "pintle-gateway"}),
        )]),
        views: read(&[view("bs", "web-0.1.0", None, &[])]),
        gateway: plan::gateway().unwrap(),
        ..found()
    };
    let plan = plan::of(&with_views, false);
    assert!(
        plan.text().starts_with(
            "These are deleted, in this order:
  apiservice.apiregistration.k8s.io/v1.b.io
  view.pintle.dev/bs
  deployment.apps/pintle-gateway -n pintle-system
  flowschema.flowcontrol.apiserver.k8s.io/pintle-gateway
  prioritylevelconfiguration.flowcontrol.apiserver.k8s.io/pintle-gateway
  networkpolicy.networking.k8s.io/pintle-gateway -n pintle-system
  poddisruptionbudget.policy/pintle-gateway -n pintle-system
  service/pintle-gateway -n pintle-system
  rolebinding.rbac.authorization.k8s.io/pintle-gateway -n pintle-system
  role.rbac.authorization.k8s.io/pintle-gateway -n pintle-system
  rolebinding.rbac.authorization.k8s.io/pintle-gateway-auth-reader -n kube-system
  clusterrolebinding.rbac.authorization.k8s.io/pintle-gateway-auth-delegator
  clusterrolebinding.rbac.authorization.k8s.io/pintle-gateway-views
  clusterrole.rbac.authorization.k8s.io/pintle-gateway-views
  clusterrolebinding.rbac.authorization.k8s.io/pintle-gateway
  clusterrole.rbac.authorization.k8s.io/pintle-gateway
  serviceaccount/pintle-gateway -n pintle-system
  reconciler.pintle.dev/r
  module.pintle.dev/web-0.1.0
  deployment.apps/pintle -n pintle-system
"
        ),
        "{}",
        plan.text()
    );
    let steps: Vec<usize> = plan.steps.iter().map(Vec::len).collect();
    assert_eq!(steps[..6], [1, 1, 1, 14, 1, 1], "each is gone before the next begins");
    for line in [
        "  all objects that Views show\n",
        "  ClusterRoles of Views: kubectl delete clusterroles -l pintle.dev/aggregate-to-gateway=true\n",
    ] {
        assert!(plan.text().contains(line), "{}", plan.text());
    }
}

#[test]
fn an_apiservice_that_leads_elsewhere_is_left_alone() {
    let leads = |to: Value| plan::leads_to_gateway(&read(&[service("v1.b.io", to)])[0]);
    assert!(leads(json!({"namespace": "pintle-system", "name": "pintle-gateway", "port": 443})));
    assert!(!leads(json!({"namespace": "kube-system", "name": "pintle-gateway"})));
    assert!(!leads(json!({"namespace": "pintle-system", "name": "metrics-server"})));
    assert!(!leads(Value::Null), "the API server itself serves it");
}

#[test]
fn the_crds_go_last_and_only_where_that_is_said() {
    let plan = plan::of(&found(), true);
    let last: Vec<String> = plan.steps[4].iter().map(ToString::to_string).collect();
    assert_eq!(
        last,
        [
            "customresourcedefinition.apiextensions.k8s.io/views.pintle.dev",
            "customresourcedefinition.apiextensions.k8s.io/reconcilers.pintle.dev",
            "customresourcedefinition.apiextensions.k8s.io/modules.pintle.dev"
        ]
    );
    assert!(!plan.text().contains("--crds"));
}

#[test]
fn nothing_is_begun_that_only_a_host_could_finish() {
    let mut without = Found { host_works: false, ..found() };
    assert!(plan::of(&without, false).check().is_ok(), "there is no finalizer to take off");
    without.reconcilers[0].metadata.finalizers = Some(vec!["pintle.dev/roots".into()]);
    let problem = plan::of(&without, false).check().unwrap_err();
    assert_eq!(problem.exit_code(), 1);
    assert!(
        problem.to_string().starts_with("error: no host works, and Reconcilers or Modules have finalizers"),
        "{problem}"
    );
    assert!(problem.to_string().contains("hint: start a host, and run this again: kubectl -n"), "{problem}");
}

#[test]
fn a_plan_without_a_host_names_all_that_is_deleted_and_what_needs_one() {
    let mut found = Found { host_works: false, ..found() };
    found.reconcilers[0].metadata.finalizers = Some(vec!["pintle.dev/roots".into()]);
    let text = plan::of(&found, false).text();
    assert!(text.starts_with("These are deleted, in this order:\n  reconciler.pintle.dev/r\n"), "{text}");
    let needs =
        "These need a host that takes its finalizers off, and none works:\n  reconciler.pintle.dev/r\n";
    let start = "Start a host first: kubectl -n pintle-system scale deployment pintle --replicas=1\n";
    assert!(text.ends_with(&format!("{needs}{start}")), "{text}");
    found.installed.clear();
    let text = plan::of(&found, false).text();
    assert!(text.ends_with("first: kubectl apply --server-side -f deploy/install.yaml\n"), "{text}");
    found.host_works = true;
    assert!(!plan::of(&found, false).text().contains("host first"));
}

#[test]
fn where_nothing_is_installed_there_is_nothing_to_do() {
    let nothing = Found { reconcilers: Vec::new(), modules: Vec::new(), installed: Vec::new(), ..found() };
    assert!(plan::of(&nothing, true).steps.is_empty());
}

#[tokio::test]
async fn a_module_is_not_touched_before_the_last_reconciler_is_gone() {
    let mut held = reconciler("web-0.1.0", None, &[]);
    held["metadata"]["finalizers"] = json!(["pintle.dev/roots"]);
    let (server, client) = cluster(&[module("web-0.1.0", None), held.clone()]);
    let plan = plan::of(&Found { installed: Vec::new(), ..found() }, false);
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

/// The View of Llamas, which people may delete, and which the gateway holds.
fn held_view() -> Value {
    let mut view = view_of_llamas("farm", Some("farm"), &[]);
    view["metadata"]["finalizers"] = json!(["pintle.dev/view"]);
    view["status"]["served"]["writes"] = json!(["data"]);
    view["status"]["served"]["verbs"] = json!(["get", "delete"]);
    view["status"]["served"]["backing"] =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "plural": "configmaps", "namespaced": true});
    view
}

#[tokio::test]
async fn views_go_without_a_gateway_and_leave_nothing_that_nobody_can_delete() {
    let [foreground, orphan] = collectors_of("farm.example.com", "llamas");
    let shown = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": "dolly", "namespace": "default", "finalizers": [foreground, "somebody/else", orphan],
    }});
    let (server, client) = cluster(&[held_view(), shown.clone()]);
    let found = Found {
        views: read(&[held_view()]),
        reconcilers: Vec::new(),
        modules: Vec::new(),
        installed: Vec::new(),
        ..found()
    };
    let plan = plan::of(&found, false);
    assert!(
        plan.text().contains("  all objects that Views show, without the finalizers that"),
        "{}",
        plan.text()
    );
    let mut told = String::new();
    let mut tell = |line: &str| {
        told.push_str(line);
        Ok(())
    };
    carry_out(&client, &plan, Duration::from_secs(5), &mut tell).await.unwrap();
    assert_eq!(told, "view.pintle.dev/v deleted\nfinalizers of Views taken off objects of v1 ConfigMap: 1\n");
    assert!(server.object(&object::reference(&held_view())).is_none());
    let left = server.object(&object::reference(&shown)).unwrap();
    assert_eq!(left["metadata"]["finalizers"], json!(["somebody/else"]));
}

#[tokio::test]
async fn a_view_waits_when_what_it_shows_cannot_be_freed() {
    struct Forbidding;
    impl Faults for Forbidding {
        fn request(&mut self, seen: &RequestSeen) -> Fate {
            if seen.resource == "configmaps" { Fate::Fail(Failure::of(403)) } else { Fate::Pass }
        }
    }
    let (server, client) = cluster(&[held_view()]);
    server.set_faults(Box::new(Forbidding));
    let found = Found { views: read(&[held_view()]), ..found() };
    let plan = plan::of(&found, false);
    let problem = carry_out(&client, &plan, Duration::ZERO, &mut |_| Ok(())).await.unwrap_err().to_string();
    assert!(problem.contains("cannot be taken off the objects of v1 ConfigMap"), "{problem}");
    assert!(problem.contains("hint: Views wait for that; run this again as somebody"), "{problem}");
    assert!(server.object(&object::reference(&held_view())).is_some());
}
