use jiff::Timestamp;
use pintle_wit::ConditionStatus;
use serde_json::{Value, json};

use super::{
    super::{
        fixture::{cluster, condition, module, namespace, read, reconciler, root, view},
        readiness::Readiness,
    },
    *,
};

fn now() -> Timestamp {
    "2000-01-01T00:10:00Z".parse().unwrap()
}

fn lease() -> Value {
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "pintle", "namespace": "pintle-system"},
        "spec": {"holderIdentity": "host-1", "leaseDurationSeconds": 10,
            "acquireTime": "2000-01-01T00:00:00.000000Z", "renewTime": "2000-01-01T00:09:58.000000Z"}})
}

fn ready() -> Value {
    condition("Ready", "True", "Succeeded", "module web-0.1.0 is in force")
}

fn stalled(reason: &str, message: &str) -> [Value; 2] {
    [condition("Ready", "False", reason, message), condition("Stalled", "True", reason, message)]
}

/// With the host's namespace and Lease.
async fn seen(objects: &[Value]) -> Seen {
    let base = [namespace("pintle-system"), namespace("shop"), lease()];
    let (_server, client) = cluster(&[&base, objects].concat());
    look(&client, "pintle-system", None).await.unwrap()
}

#[tokio::test]
async fn where_everything_is_ready_one_screen_says_so() {
    let roots = condition("RootsReady", "True", "Succeeded", "3 of 3 roots are ready");
    let seen = seen(&[
        module("web-0.1.0", Some("web")),
        module("web-0.0.9", Some("web")),
        reconciler("web-0.1.0", Some("web-0.1.0"), &[ready(), roots]),
        root("shop", "a", &[condition("Ready", "True", "Succeeded", "")]),
        // Its kind may have no conditions.
        root("shop", "silent", &[]),
    ])
    .await;
    let screen = screen::of(&seen, What::Everything, now());
    assert!(screen.is_well);
    assert_eq!(
        screen.text(80),
        "Host   host-1 has led for 10m; it renewed its Lease 2s ago

RECONCILER   READY   MODULE      ROOTS   ROOTS-READY   FAILING   ROOTS-REASON
r            True    web-0.1.0   3       1             2         Succeeded

MODULE      READY   GUEST   VERSION   USED BY
web-0.1.0   True    web     0.1.0     r
and 1 that nobody uses: kubectl get modules

Everything is ready.
"
    );
}

#[tokio::test]
async fn what_blocks_is_shown_with_why_and_what_to_do() {
    let roots = condition("RootsReady", "False", "KindNotGranted", "2 of 3 roots fail (2 KindNotGranted)");
    let seen = seen(&[
        module("web-0.1.0", Some("web")),
        reconciler("web-0.1.0", Some("web-0.1.0"), &[ready(), roots]),
        root(
            "shop",
            "working",
            &[condition("Ready", "False", "ChildNotReady", "Deployment shop/a has 0 of 1 Pods")],
        ),
        root("shop", "stalled", &stalled("KindNotGranted", "children[0]: no Secrets are granted")),
    ])
    .await;
    let screen = screen::of(&seen, What::Everything, now());
    assert!(!screen.is_well);
    let text = screen.text(72);
    let (_, blocks) = text.split_once("USED BY\n").unwrap();
    assert!(text.contains("  KindNotGranted\n  2 of 3 roots fail (2 KindNotGranted)\n"), "{text}");
    assert!(
        blocks.contains(
            "
2 of 2 roots are not ready:
NAMESPACE   KIND   NAME      READY   REASON           FOR
shop        A      stalled   False   KindNotGranted   10m
  children[0]: no Secrets are granted
shop        A      working   False   ChildNotReady    10m
  Deployment shop/a has 0 of 1 Pods

What to do:
  KindNotGranted: Grant the kind in `spec.grants.children` of the
  Reconciler, and apply the role that `pintle rbac` prints.
  ChildNotReady: "
        ),
        "{text}"
    );
    assert!(!text.contains("Everything"), "{text}");
}

#[tokio::test]
async fn what_a_guest_says_is_not_answered_with_wait() {
    let roots = condition("RootsReady", "False", "Progressing", "0 of 2 roots are ready, and none fails");
    let taken =
        |name| root("shop", name, &[condition("Ready", "False", "DomainTaken", "a.example is taken")]);
    let seen = seen(&[
        module("web-0.1.0", Some("web")),
        reconciler("web-0.1.0", Some("web-0.1.0"), &[ready(), roots]),
        taken("b"),
        taken("a"),
    ])
    .await;
    let text = screen::of(&seen, What::Everything, now()).text(200);
    let (_, advice) = text.split_once("What to do:\n").unwrap();
    assert_eq!(
        advice,
        "  DomainTaken: The guest says this, and its message says why. What it was given and what it answered: \
         `pintle inspect a/a -n shop`\n"
    );
}

#[tokio::test]
async fn with_everything_else_ten_roots_are_shown_and_for_one_reconciler_all() {
    let mut objects = vec![module("web-0.1.0", Some("web")), reconciler("web-0.1.0", None, &[ready()])];
    objects.extend(
        (0..12).map(|n| root("shop", &format!("a{n:02}"), &stalled("Invalid", &"long ".repeat(100)))),
    );
    let seen = seen(&objects).await;
    let shown = |what| {
        let text = screen::of(&seen, what, now()).text(80);
        (text.matches("Invalid   10m").count(), text.matches("long").count(), text)
    };
    let (rows, words, text) = shown(What::Everything);
    assert!(text.contains("12 of 12 roots are not ready; the first 10 are:"), "{text}");
    assert!(rows == 10 && words < 10 * 61, "{rows} {words}");
    let (rows, words, text) = shown(What::One);
    assert!(rows == 12 && words == 1200 && text.contains("12 of 12 roots are not ready:"), "{rows} {words}");
}

#[tokio::test]
async fn without_a_host_nothing_is_well() {
    let (_server, client) = cluster(&[namespace("pintle-system")]);
    let seen = look(&client, "pintle-system", None).await.unwrap();
    let screen = screen::of(&seen, What::Everything, now());
    assert!(!screen.is_well);
    let text = screen.text(120);
    assert!(
        text.starts_with(
            "Host   not installed: the namespace pintle-system has neither its Deployment nor its Lease\n"
        ),
        "{text}"
    );
    assert!(
        text.contains("There are no Reconcilers.")
            && text.contains("no host: Install it: `kubectl apply --server-side -f deploy/install.yaml`."),
        "{text}"
    );
    let mut given_up = lease();
    given_up["spec"]["holderIdentity"] = json!("");
    let (_server, client) = cluster(&[namespace("pintle-system"), given_up]);
    let seen = look(&client, "pintle-system", None).await.unwrap();
    let text = screen::of(&seen, What::Everything, now()).text(120);
    assert!(
        text.contains("no host: see whether a host runs, and why not: `kubectl -n pintle-system get pods")
    );
}

#[tokio::test]
async fn for_a_root_at_which_the_host_has_not_looked_its_reconciler_says_what_to_do() {
    let failures = "shop/edited: Forbidden: may not patch as/status; ".repeat(9);
    let message = format!(
        "9 of 9 roots fail (9 Forbidden): {failures}apply the guest's role: pintle rbac r | kubectl apply -f -"
    );
    let forbidden = condition("RootsReady", "False", "Forbidden", &message);
    let mut before = condition("Ready", "True", "Succeeded", "2 children are ready");
    before["observedGeneration"] = json!(0);
    let seen = seen(&[
        module("m", Some("web")),
        reconciler("m", Some("m"), &[ready(), forbidden]),
        root("shop", "edited", &[before]),
        root("shop", "new", &[]),
    ])
    .await;
    let text = screen::of(&seen, What::Everything, now()).text(64);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains(
            "edited Unknown <none> <none> the host has not looked at generation 1 yet; before: Succeeded: 2 children are ready"
        ),
        "{text}"
    );
    assert!(flat.contains("new Unknown <none> <none> no host has said anything of it yet"), "{text}");
    assert!(flat.contains("…; apply the guest's role: pintle rbac r | kubectl apply -f - MODULE"), "{text}");
    let (_, next) = text.split_once("What to do:\n").unwrap();
    assert_eq!(
        next,
        "  Forbidden: Apply the role:
  `pintle rbac MODULE | kubectl apply -f -`; where the message
  says `impersonate`, `deploy/namespace/impersonate.yaml`.
  `pintle.dev/reconcile-at` hurries it.
"
    );
}

#[tokio::test]
async fn a_module_that_is_refused_or_goes_is_shown_although_nobody_uses_it() {
    let mut refused = module("bad", None);
    refused["status"] = json!({"conditions": stalled("DigestMismatch", "the bytes are others")});
    let mut going = module("going", Some("web"));
    going["metadata"]["finalizers"] = json!(["pintle.dev/in-use"]);
    let mut seen = seen(&[refused, going]).await;
    seen.modules[1].metadata.deletion_timestamp = seen.modules[1].metadata.creation_timestamp.clone();
    let text = screen::of(&seen, What::Everything, now()).text(80);
    assert!(
        text.contains("bad      False   <none>   <none>    <none>\n  DigestMismatch: the bytes are others\n"),
        "{text}"
    );
    assert!(text.contains("  It is being deleted") && !text.contains("UsedByReconciler"), "{text}");
    let mut used = reconciler("going", None, &[]);
    used["metadata"]["name"] = json!("blog");
    seen.users = Users::of(
        &read(&[used, reconciler("going", None, &[])]),
        &read(&[view("llamas", "going", None, &[])]),
    );
    let text = screen::of(&seen, What::Everything, now()).text(200);
    assert!(text.contains("0.1.0     blog,r,view/llamas\n"), "{text}");
    for user in ["blog", "r"] {
        let remedy = format!(
            "UsedByReconciler: Swap that Reconciler to another module: `pintle swap {user} ANOTHER-MODULE`."
        );
        assert!(text.contains(&remedy), "{text}");
    }
    let remedy = "UsedByView: Swap that View to another module: `pintle swap view/llamas ANOTHER-MODULE`.";
    assert!(text.contains(remedy), "{text}");
}

#[tokio::test]
async fn roots_that_cannot_be_read_are_named_and_a_missing_reconciler_too() {
    let mut other = reconciler("web-0.1.0", None, &[ready()]);
    other["spec"]["for"]["kind"] = json!("Missing");
    let seen = seen(&[module("web-0.1.0", Some("web")), other]).await;
    let text = screen::of(&seen, What::Everything, now()).text(100);
    assert!(
        text.contains("Roots that cannot be read:\n  Missing (a.io/v1): the API server does not serve"),
        "{text}"
    );
    assert!(text.ends_with("Everything that can be read is ready.\n"), "{text}");
    let (_server, client) = cluster(&[]);
    let problem = look(&client, "pintle-system", Some(&"x".into())).await.unwrap_err().to_string();
    assert!(
        problem.contains("there is no Reconciler x\nhint: see which there are with: kubectl get"),
        "{problem}"
    );
}

#[tokio::test]
async fn a_root_that_says_nothing_blocks_unless_its_reconciler_says_that_all_are_ready() {
    let objects = |roots: &str| {
        let roots = condition("RootsReady", roots, "Progressing", "");
        [module("m", Some("web")), reconciler("m", Some("m"), &[ready(), roots]), root("shop", "silent", &[])]
    };
    let silent = seen(&objects("True")).await;
    assert_eq!(silent.roots[0].readiness.status, ConditionStatus::Unknown);
    assert_eq!(silent.roots[0].readiness, Readiness::of(&[], None));
    assert!(screen::of(&silent, What::Everything, now()).is_well);
    let blocked = screen::of(&seen(&objects("False")).await, What::Everything, now()).text(80);
    assert!(blocked.contains("silent   Unknown   <none>   <none>\n  no host has said anything"), "{blocked}");
}

fn gateway(ready: i32) -> Value {
    let container = json!({"name": "pintle-gateway", "image": "pintle:0.1.0"});
    let labels = json!({"app": "gateway"});
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [container]}});
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "pintle-gateway", "namespace": "pintle-system"},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template},
        "status": {"readyReplicas": ready}})
}

fn serving(name: &str, more: &[Value]) -> Value {
    let ready = condition("Ready", "True", "Serving", "module farm-0.1.0 is in force");
    view(name, "farm-0.1.0", Some("farm-0.1.0"), &[&[ready], more].concat())
}

#[tokio::test]
async fn views_are_shown_with_their_gateway() {
    let available = condition("Registered", "True", "Available", "");
    let seen = seen(&[
        module("farm-0.1.0", Some("farm")),
        serving("farmpods", &[]),
        serving("llamas", &[available]),
        gateway(1),
    ])
    .await;
    let screen = screen::of(&seen, What::Everything, now());
    let text = screen.text(80);
    assert!(screen.is_well, "{text}");
    assert_eq!(
        text,
        "Host      host-1 has led for 10m; it renewed its Lease 2s ago
Gateway   1 of 2 Pods are ready; image pintle:0.1.0

There are no Reconcilers.

VIEW       READY   MODULE       RESOURCE        REGISTERED
farmpods   True    farm-0.1.0   farmpods.b.io   <none>
llamas     True    farm-0.1.0   llamas.b.io     True

MODULE       READY   GUEST   VERSION   USED BY
farm-0.1.0   True    farm    0.1.0     view/farmpods,view/llamas

Everything is ready.
"
    );
}

#[tokio::test]
async fn a_view_that_nobody_reaches_is_shown_with_why_and_what_to_do() {
    let stalled = stalled("GroupTaken", "a CRD serves the group b.io");
    let missing = condition("Registered", "False", "APIServiceMissing", "there is no APIService v1.b.io");
    let seen = seen(&[
        module("farm-0.1.0", Some("farm")),
        view("farmpods", "farm-0.1.0", None, &stalled),
        serving("llamas", &[missing]),
        view("silent", "farm-0.1.0", None, &[]),
    ])
    .await;
    let screen = screen::of(&seen, What::Everything, now());
    assert!(!screen.is_well);
    let text = screen.text(120);
    for part in [
        "Gateway   not installed: the namespace pintle-system has no Deployment pintle-gateway\n",
        "farmpods   False     <none>       <none>        <none>\n  GroupTaken: a CRD serves the group b.io\n",
        "llamas     True      farm-0.1.0   llamas.b.io   False\n  APIServiceMissing: there is no APIService v1.b.io\n",
        "silent     Unknown   <none>       <none>        <none>\n  no gateway has said anything of it yet\n",
        "  no gateway: Install it: `kubectl apply --server-side -f deploy/gateway.yaml`.",
        "  GroupTaken: A view needs a group of its own.",
        "  APIServiceMissing: Run the command in the message: it applies what `pintle rbac` prints.\n",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[tokio::test]
async fn of_one_view_everything_else_is_left_out() {
    let objects = [
        namespace("pintle-system"),
        lease(),
        gateway(0),
        module("web-0.1.0", Some("web")),
        module("farm-0.1.0", Some("farm")),
        reconciler("web-0.1.0", None, &[]),
        serving("farmpods", &[]),
        serving("llamas", &[]),
    ];
    let (_server, client) = cluster(&objects);
    let of = async |only: &str| look(&client, "pintle-system", Some(&only.into())).await;
    let seen = of("view/llamas").await.unwrap();
    let text = screen::of(&seen, What::One, now()).text(80);
    assert!(text.contains("llamas   True    farm-0.1.0") && !text.contains("farmpods   True"), "{text}");
    assert!(!text.contains("RECONCILER") && !text.contains("no Reconcilers") && !text.contains("web-0.1.0"));
    assert!(text.contains("no gateway: see why no Pod of the gateway is ready:"), "{text}");
    let seen = of("r").await.unwrap();
    assert!(seen.views.is_empty() && seen.gateway.is_none(), "the gateway has no part in a Reconciler");
    let problem = of("view/lamas").await.unwrap_err().to_string();
    assert!(problem.contains("there is no View lamas; did you mean llamas?\n"), "{problem}");
}
