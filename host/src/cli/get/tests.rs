use serde_json::json;

use super::{
    super::fixture::{cluster, condition, module, namespace, read, reconciler, root, view_of_llamas},
    *,
};

fn now() -> Timestamp {
    "2000-01-01T01:00:00Z".parse().unwrap()
}

fn get(what: What, name: Option<&str>, output: Option<Form>) -> Get {
    Get {
        what,
        name: name.map(Into::into),
        reconciler: None,
        namespace: None,
        all_namespaces: what == What::Roots,
        output,
        connect: Connect::default(),
    }
}

fn not_ready(reason: &str, message: &str) -> [Value; 1] {
    [condition("Ready", "False", reason, message)]
}

#[test]
fn reconcilers_are_shown_as_kubectl_shows_them_and_wide_with_the_commonest_reason() {
    let roots = condition("RootsReady", "False", "Forbidden", "2 of 3 roots fail");
    let all: Vec<Reconciler> = read(&[reconciler(
        "web-0.2.0",
        Some("web-0.1.0"),
        &[condition("Ready", "True", "Succeeded", ""), roots],
    )]);
    assert_eq!(
        reconcilers(&all, false, now()).text(80),
        "NAME   KIND   MODULE      READY   REASON      ROOTS   FAILING   AGE\n\
         r      A      web-0.1.0   True    Succeeded   3       2         60m\n"
    );
    assert_eq!(
        reconcilers(&all, true, now()).text(80),
        "NAME   KIND   MODULE      READY   REASON      ROOTS   FAILING   AGE   ROOTS-REASON   WANTED\n\
         r      A      web-0.1.0   True    Succeeded   3       2         60m   Forbidden      web-0.2.0\n"
    );
}

#[test]
fn modules_are_shown_with_their_guest_and_what_was_never_loaded_with_none() {
    let mut used = module("web-0.1.0", Some("web"));
    used["status"]["usedBy"] = json!(["blog", "shop"]);
    let all: Vec<Module> = read(&[used, module("new", None)]);
    assert_eq!(
        modules(&all, false, now()).text(80),
        "NAME        READY     REASON      GUEST    VERSION   USED-BY     AGE\n\
         web-0.1.0   True      Succeeded   web      0.1.0     blog,shop   60m\n\
         new         Unknown   <none>      <none>   <none>    <none>      60m\n"
    );
    let wide = modules(&all, true, now()).text(80);
    let row: Vec<&str> = wide.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row[6..], ["60m", "7", super::super::fixture::DIGEST], "{wide}");
}

#[test]
fn a_module_that_is_being_deleted_is_shown_as_such() {
    let mut all: Vec<Module> = read(&[module("web-0.1.0", Some("web")), module("new", None)]);
    for module in &mut all {
        module.metadata.deletion_timestamp = module.metadata.creation_timestamp.clone();
    }
    let text = modules(&all, false, now()).text(80);
    assert!(text.contains("web-0.1.0   True      Succeeded,Deleting   web"), "{text}");
    assert!(text.contains("new         Unknown   Deleting             <none>"), "{text}");
}

#[test]
fn views_are_shown_with_what_they_serve_over_what_and_wide_with_whether_they_are_reached() {
    let serving = [
        condition("Ready", "True", "Serving", ""),
        condition("Registered", "False", "APIServiceMissing", ""),
    ];
    let mut new = view_of_llamas("farm-0.2.0", None, &[]);
    new["metadata"]["name"] = json!("new");
    let all: Vec<View> = read(&[view_of_llamas("farm-0.2.0", Some("farm-0.1.0"), &serving), new]);
    assert_eq!(
        views(&all, false, now()).text(80),
        "NAME   MODULE       VIEW     SERVES                            BACKING       READY     REASON    AGE\n\
         v      farm-0.1.0   llamas   farm.example.com/v1alpha/llamas   LlamaRecord   True      Serving   60m\n\
         new    <none>       llamas   <none>                            <none>        Unknown   <none>    60m\n"
    );
    let wide = views(&all, true, now()).text(80);
    let ends: Vec<Vec<&str>> =
        wide.lines().map(|line| line.split_whitespace().skip(8).collect::<Vec<_>>()).collect();
    assert_eq!(
        ends,
        [
            ["REGISTERED", "WANTED", "ACCESS", "EPOCH"],
            ["False", "farm-0.2.0", "View", "7"],
            ["<none>", "farm-0.2.0", "View", "<none>"],
        ]
    );
}

#[tokio::test]
async fn a_view_is_found_by_its_name_and_one_that_is_not_there_is_told_with_the_one_that_was_meant() {
    let (_server, client) = cluster(&[view_of_llamas("m", None, &[])]);
    let named = get(What::Views, Some("v"), Some(Form::Name)).list(&client).await.unwrap();
    assert_eq!(named.text, "view.pintle.dev/v\n");
    let one = get(What::Views, Some("v"), Some(Form::Json)).list(&client).await.unwrap();
    let one: Value = serde_json::from_str(&one.text).unwrap();
    assert_eq!((&one["kind"], &one["spec"]["view"]), (&json!("View"), &json!("llamas")));
    let problem = get(What::Views, Some("vv"), None).list(&client).await.unwrap_err();
    assert_eq!(
        (problem.to_string().as_str(), problem.exit_code()),
        (
            "error: there is no View vv; did you mean v?\nhint: see which there are with: pintle get views\n",
            1
        )
    );
}

#[tokio::test]
async fn roots_of_all_kinds_are_in_one_table_with_why_they_are_not_ready() {
    let long = "the host may not create ConfigMaps: apply the role that pintle rbac prints for it";
    let (_server, client) = cluster(&[
        namespace("shop"),
        reconciler("m", None, &[]),
        root("shop", "b", &not_ready("Forbidden", long)),
        root("shop", "a", &[condition("Ready", "True", "Succeeded", "well")]),
    ]);
    let listed = get(What::Roots, None, None).list(&client).await.unwrap();
    let rows: Vec<&str> = listed.text.lines().collect();
    assert!(
        rows[0].starts_with("NAMESPACE   KIND   NAME   READY   REASON      MESSAGE  "),
        "{}",
        listed.text
    );
    assert!(rows[1].starts_with("shop        A      a      True    Succeeded   well  "), "{}", listed.text);
    assert!(rows[2].contains("False   Forbidden   the host may not create ConfigMaps: apply the role"));
    assert!(rows[2].contains('…') && !rows[2].contains("prints for it"), "it is cut: {}", listed.text);
    let wide = get(What::Roots, None, Some(Form::Wide)).list(&client).await.unwrap();
    assert!(wide.text.contains(long), "{}", wide.text);
    let named = get(What::Roots, Some("b"), Some(Form::Name)).list(&client).await.unwrap();
    assert_eq!(named.text, "a.a.io/b\n");
}

#[tokio::test]
async fn data_is_what_kubectl_prints_and_a_reader_can_take_it_apart() {
    let (_server, client) = cluster(&[
        namespace("shop"),
        reconciler("m", None, &[]),
        root("shop", "a", &not_ready("Forbidden", "no")),
    ]);
    let listed = get(What::Roots, None, Some(Form::Json)).list(&client).await.unwrap();
    let list: Value = serde_json::from_str(&listed.text).unwrap();
    assert_eq!(list["kind"], "List");
    assert_eq!(list["items"][0]["kind"], "A");
    assert_eq!(list["items"][0]["status"]["conditions"][0]["reason"], "Forbidden");
    assert!(list["items"][0]["metadata"].get("managedFields").is_none());
    let one = get(What::Reconcilers, Some("r"), Some(Form::Json)).list(&client).await.unwrap();
    let one: Value = serde_json::from_str(&one.text).unwrap();
    assert_eq!((&one["kind"], &one["spec"]["module"]), (&json!("Reconciler"), &json!("m")));
    assert!(one["metadata"].get("managedFields").is_none());
}

#[tokio::test]
async fn a_namespace_narrows_and_what_is_not_there_is_said_with_what_is() {
    let (_server, client) =
        cluster(&[namespace("shop"), reconciler("m", None, &[]), root("shop", "a", &not_ready("R", "m"))]);
    let elsewhere = Get { all_namespaces: false, ..get(What::Roots, Some("a"), None) };
    let problem = elsewhere.list(&client).await.unwrap_err().to_string();
    assert_eq!(
        problem,
        "error: there is no root a in namespace default\nhint: see which there are with: pintle get roots -A\n"
    );
    let there =
        Get { namespace: Some("shop".into()), all_namespaces: false, ..get(What::Roots, Some("a"), None) };
    assert!(there.list(&client).await.unwrap().text.contains("shop        A      a"));
    let problem = get(What::Modules, Some("x"), None).list(&client).await.unwrap_err().to_string();
    assert_eq!(problem, "error: there is no Module x\nhint: see which there are with: pintle get modules\n");
}

#[tokio::test]
async fn a_kind_that_cannot_be_read_is_named_and_does_not_hide_the_others() {
    let mut other = reconciler("m", None, &[]);
    other["metadata"]["name"] = json!("other");
    other["spec"]["for"]["kind"] = json!("Missing");
    let (_server, client) = cluster(&[
        namespace("shop"),
        reconciler("m", None, &[]),
        other,
        root("shop", "a", &not_ready("R", "m")),
    ]);
    let listed = get(What::Roots, None, Some(Form::Name)).list(&client).await.unwrap();
    assert_eq!(listed.text, "a.a.io/a\n");
    let unread: Vec<String> = listed.unread.iter().map(Unread::text).collect();
    assert_eq!(unread, ["Missing (a.io/v1): the API server does not serve this kind; apply its CRD"]);
}
