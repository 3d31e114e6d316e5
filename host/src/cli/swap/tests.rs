use pintle_engine::{Digest, fixtures};
use pintle_simulator::{Access, Act, Action, ApiServer, User, Verdict as Answer};

use super::{
    super::fixture::{cluster, condition, module, read, reconciler, view_of_llamas},
    *,
};

const OLD: &str = "farm-0.1.0";
const NEW: &str = "farm-0.2.0";

/// The status of a Reconciler with this in force, and nine roots.
fn status(active: Value) -> ReconcilerStatus {
    let failing =
        condition(ROOTS_READY, "False", "Broken", "2 of 9 roots fail (2 Broken): n/a: Broken: it is broken");
    let status =
        json!({"active": active, "roots": {"total": 9, "ready": 0, "failing": 0}, "conditions": [failing]});
    serde_json::from_value(status).unwrap()
}

fn with_roots(roots: Value) -> Value {
    json!({"module": NEW, "digest": "", "since": "", "roots": roots})
}

#[test]
fn the_outcome_says_what_the_swap_did_to_roots_and_is_bad_when_some_fail_that_did_not_before() {
    let before = status(with_roots(Value::Null));
    let of = |before: &ReconcilerStatus, roots| outcome_of_roots(before, &status(with_roots(roots)));
    let well = of(&before, json!({"reconciled": 9, "changed": 4, "failing": 0, "newlyFailing": 0}));
    assert_eq!(well, ("9 roots reconciled: 4 changed, 5 unchanged; 0 failing".into(), true));
    let (worse, is_well) =
        of(&before, json!({"reconciled": 9, "changed": 4, "failing": 2, "newlyFailing": 1}));
    assert_eq!(
        worse,
        "9 roots reconciled: 4 changed, 5 unchanged; 2 failing (1 of them not before)\n  \
         2 of 9 roots fail (2 Broken): n/a: Broken: it is broken"
    );
    assert!(!is_well);
    let as_before = json!({"reconciled": 9, "changed": 0, "failing": 2, "newlyFailing": 0});
    let (text, is_well) = of(&before, as_before.clone());
    assert!(is_well && text.contains("; 2 failing (as before)"), "{text}");
    let (_, is_well) = of(&status(Value::Null), as_before);
    assert!(!is_well, "there was no module before");
}

fn ready() -> Value {
    condition("Ready", "True", "Serving", "llamas.farm.example.com v1alpha is served over LlamaRecords")
}

fn unregistered() -> Value {
    condition("Registered", "False", "APIServiceMissing", "there is no APIService v2.farm.example.com")
}

/// View `v` that wants the new module, with one in force, and its conditions, of its second generation.
fn seen(active: &str, conditions: &[Value]) -> Value {
    let mut view = view_of_llamas(NEW, Some(active), conditions);
    view["status"]["observedGeneration"] = json!(2);
    view
}

fn swap() -> Swap {
    Swap {
        what: ModuleUser::View("v".into()),
        module: Some(NEW.into()),
        undo: false,
        force: false,
        wait: true,
        dry_run: false,
        timeout: Duration::ZERO,
        connect: Connect::default(),
    }
}

#[test]
fn the_outcome_says_what_is_served_and_why_nobody_gets_at_it() {
    let view = |conditions: &[Value]| read::<Swapped>(&[seen(NEW, conditions)]).remove(0).status.unwrap();
    let broken = view(&[ready(), unregistered()]);
    let text = "llamas.farm.example.com v1alpha is served over LlamaRecords\n  \
                Registered is False: APIServiceMissing: there is no APIService v2.farm.example.com";
    assert_eq!(outcome_of_view(&view(&[ready()]), &broken), (text.to_owned(), false));
    assert_eq!(
        outcome_of_view(&broken, &broken),
        (text.to_owned(), true),
        "it was not registered before either"
    );
    let suspended = view(&[condition("Ready", "False", "Suspended", "spec.suspend is set")]);
    let text = "it is not served\n  Ready is False: Suspended: spec.suspend is set";
    assert_eq!(outcome_of_view(&suspended, &suspended), (text.to_owned(), true));
}

#[tokio::test]
async fn a_swap_waits_for_the_module_in_the_status_of_this_generation_and_ends_when_it_is_refused() {
    let of = async |view: Value, generation| {
        let (_server, client) = cluster(&[view]);
        match swap().look(&swap().objects(&client), NEW, Some(generation)).await.unwrap() {
            Progress::Done => "done".to_owned(),
            Progress::Failed(why) => format!("failed: {why}"),
            Progress::Waiting(why) => format!("waiting: {why}"),
        }
    };
    assert_eq!(of(seen(NEW, &[ready()]), 2).await, "done");
    assert_eq!(of(seen(NEW, &[ready()]), 3).await, "waiting: the host has not said anything of it yet");
    assert_eq!(of(seen(OLD, &[ready()]), 2).await, "waiting: the module is being loaded");
    let not_ready = condition("Ready", "False", "ModuleNotReady", "it cannot be fetched");
    assert_eq!(of(seen(OLD, &[not_ready]), 2).await, "waiting: ModuleNotReady: it cannot be fetched");
    let refused = [("Ready", "False"), ("Stalled", "True")]
        .map(|(name, status)| condition(name, status, "ViewMissing", "Module farm-0.2.0 has no view llamas"));
    assert_eq!(of(seen(OLD, &refused), 2).await, "failed: ViewMissing: Module farm-0.2.0 has no view llamas");
    let mut other = seen(OLD, &[ready()]);
    other["spec"]["module"] = json!("farm-0.3.0");
    assert_eq!(of(other, 2).await, "failed: somebody has set module farm-0.3.0 meanwhile");
    let mut candidate = seen(NEW, &[ready()]);
    candidate["status"]["candidate"] = json!({"module": NEW, "reason": "Loading", "message": ""});
    assert_eq!(
        of(candidate, 2).await,
        "waiting: the module is being loaded",
        "its new config is not in force"
    );
}

#[tokio::test]
async fn a_swap_is_not_done_before_the_roots_are_listed() {
    let starting = condition("Ready", "False", "Progressing", "not listed yet: a.io/v1 A");
    let mut of_new = reconciler(NEW, Some(NEW), &[starting]);
    of_new["status"]["roots"] = json!({"total": 0, "ready": 0, "failing": 0});
    of_new["status"]["active"]["roots"] =
        json!({"reconciled": 0, "changed": 0, "failing": 0, "newlyFailing": 0});
    let (_server, client) = cluster(&[of_new]);
    let swap = Swap { what: ModuleUser::Reconciler("r".into()), ..swap() };
    let followed = swap.follow(&swap.objects(&client), NEW, &ReconcilerStatus::default()).await;
    let problem = followed.unwrap_err().to_string();
    assert!(problem.contains("no progress for 0 s: not listed yet: a.io/v1 A"), "{problem}");
}

#[tokio::test]
async fn a_swap_fails_when_the_gateway_says_nothing() {
    let (_server, client) = cluster(&[view_of_llamas(OLD, Some(OLD), &[ready()]), module(NEW, None)]);
    let silent = swap().swap(&client).await.unwrap_err();
    assert_eq!(
        silent.to_string(),
        "error: not done after 0 s: the host has not said anything of it yet\n\
         hint: see whether the host and the gateway run: kubectl -n pintle-system get pods\n"
    );
    assert_eq!(Api::<View>::all(client).get("v").await.unwrap().spec.module, NEW);
}

#[tokio::test]
async fn nothing_is_swapped_that_has_changed_since_it_was_read_but_for_its_status() {
    let (server, client) = cluster(&[view_of_llamas(OLD, Some(OLD), &[ready()])]);
    let views = swap().objects(&client);
    let change = |subresource: Option<&str>, patch: Value| {
        let target = pintle_core::object::reference(&view_of_llamas(OLD, None, &[]));
        let act = Act::Merge { target, subresource: subresource.map(Into::into), patch };
        server.act("somebody", &act).unwrap();
    };
    let found = views.get("v").await.unwrap();
    change(None, json!({"spec": {"suspend": true}}));
    let wanted = swap().wanted(&found).unwrap();
    let refused = swap().want(&views, found, &wanted, false).await.unwrap_err();
    assert_eq!(refused.to_string(), "error: somebody has changed View v meanwhile\n");
    let found = views.get("v").await.unwrap();
    change(Some("status"), json!({"status": {"observedGeneration": 2}}));
    swap().want(&views, found, &wanted, false).await.unwrap();
    assert_eq!(views.get("v").await.unwrap().spec.module, NEW);
}

#[test]
fn a_view_is_told_from_a_reconciler_by_what_stands_before_its_name() {
    assert_eq!(user("view/llamas"), Ok(ModuleUser::View("llamas".into())));
    assert_eq!(user("llamas"), Ok(ModuleUser::Reconciler("llamas".into())));
    for path in ["./llamas", "view/", "view/a/b", "view/A", "guests/llamas", "/view/a"] {
        assert!(user(path).is_err(), "{path}");
    }
}

#[test]
fn what_comes_back_is_what_was_before_or_what_still_is() {
    let active =
        |module: &str, config: Value| json!({"module": module, "digest": "", "since": "", "config": config});
    let before = |spec: Value, history: &[Value]| {
        let mut object = reconciler(NEW, Some(NEW), &[]);
        object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        object["status"]["active"] = active(NEW, json!({"a": 1}));
        object["status"]["history"] = history.into();
        Wanted::before(&read::<Swapped>(&[object])[0]).map(|wanted| (wanted.module, wanted.config))
    };
    let history = [active(OLD, json!({"a": 2})), active(NEW, json!({}))];
    let is = |module: &str, a: u32| Some((module.to_owned(), json!({"a": a})));
    assert_eq!(before(json!({"config": {"a": 1}}), &history), is(OLD, 2));
    assert_eq!(
        before(json!({"config": {"a": 3}}), &history),
        is(NEW, 1),
        "another config is not in force yet"
    );
    assert_eq!(before(json!({"module": "bad", "config": {"a": 1}}), &history), is(NEW, 1));
    assert_eq!(before(json!({"config": {"a": 1}}), &[]), None);
}

#[tokio::test]
async fn a_config_that_comes_back_is_exactly_as_it_was() {
    let mut object = reconciler(NEW, Some(NEW), &[]);
    object["spec"]["config"] = json!({"gone": 1, "both": {"gone": 1, "kept": 2}, "list": [1, 2]});
    let (_server, client) = cluster(&[object]);
    let swap = Swap { what: ModuleUser::Reconciler("r".into()), ..swap() };
    let objects = swap.objects(&client);
    for config in [
        json!({"both": {"kept": 3, "null": null}, "list": [2], "new": {"b": 1}}),
        Value::Null,
        json!({"a": 1}),
    ] {
        let wanted = Wanted { module: OLD.into(), config };
        swap.want(&objects, objects.get("r").await.unwrap(), &wanted, false).await.unwrap();
        assert_eq!(objects.get("r").await.unwrap().spec, wanted);
    }
    let undo = Swap { module: None, undo: true, ..swap };
    let nothing = undo.swap(&client).await.unwrap_err().to_string();
    assert!(
        nothing.starts_with("error: there is no Module farm-0.2.0\n"),
        "what is in force is taken back: {nothing}"
    );
}

/// A Reconciler `r` with a root `n/x` and a Deployment of it with two Pods. The old module answers with nothing, and the new one traps.
fn farm() -> (ApiServer, Client) {
    let (name, any) =
        (["a.io/v1", "A"], json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    let manifest = fixtures::manifest("farm", name[0], name[1], &["apps/v1/Deployment"]);
    let pushed = |name: &str, bytes: Vec<u8>| {
        pintle_api::module_objects(name, &bytes, &Digest::of(&bytes).to_string())
    };
    let mut objects = vec![
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "as.a.io"},
            "spec": {"group": "a.io", "scope": "Namespaced",
                "names": {"kind": "A", "plural": "as", "singular": "a", "listKind": "AList"},
                "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": any}}}}]}}),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": pintle_api::NAMESPACE}}),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}),
    ];
    objects.extend(pushed(OLD, fixtures::answers(&manifest, r#"{"apiVersion":"guest.pintle.dev/v1"}"#)));
    objects.extend(pushed(NEW, fixtures::traps(&manifest)));
    let mut bound = reconciler(OLD, Some(OLD), &[]);
    bound["spec"]["grants"] = json!({"children": [{"apiVersion": "apps/v1", "kinds": ["Deployment"]}]});
    objects.push(bound);
    let (server, client) = cluster(&objects);
    let create = |object: Value| server.act("test", &Act::Create(object)).unwrap();
    let root = create(
        json!({"apiVersion": name[0], "kind": name[1], "metadata": {"name": "x", "namespace": "n"}, "spec": {}}),
    );
    let uid = &root["metadata"]["uid"];
    let owner = json!({"apiVersion": name[0], "kind": name[1], "name": "x", "uid": uid, "controller": true});
    let labels = json!({"pintle.dev/reconciler": "r", "pintle.dev/root": uid});
    let child = create(json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "x", "namespace": "n", "labels": labels, "ownerReferences": [owner]},
        "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": {"metadata": {"labels": {"app": "x"}},
            "spec": {"containers": [{"name": "main", "image": "x"}]}}}}));
    says(&server, &child, json!({"replicas": 2}));
    (server, client)
}

fn says(server: &ApiServer, object: &Value, status: Value) {
    let target = pintle_core::object::reference(object);
    let act = Act::Merge { target, subresource: Some("status".into()), patch: json!({"status": status}) };
    server.act("test", &act).unwrap();
}

#[tokio::test]
async fn a_swap_after_which_roots_would_newly_fail_is_refused_unless_it_is_forced() {
    let (server, client) = farm();
    let swap = |module: &str| Swap {
        what: ModuleUser::Reconciler("r".into()),
        module: Some(module.into()),
        wait: false,
        ..swap()
    };
    let module = async || Api::<Reconciler>::all(client.clone()).get("r").await.unwrap().spec.module;
    let refused = swap(NEW).swap(&client).await.unwrap_err().to_string();
    let begin = "error: 1 root would newly fail:\n  A n/x: GuestTrapped: ";
    let end = "hint: nothing was swapped; to swap all the same: --force\n";
    assert!(refused.starts_with(begin) && refused.ends_with(end), "{refused}");
    // A dry run ends as the swap would: the old module would delete something, and nothing fails.
    let dry = |module: &str| Swap { dry_run: true, ..swap(module) };
    assert_eq!(dry(OLD).swap(&client).await.unwrap(), CommandStatus::Fine);
    let failing = dry(NEW).swap(&client).await.unwrap_err();
    assert!(failing.exit_code() == 1 && failing.to_string().starts_with(begin), "{failing}");
    assert_eq!(module().await, OLD);
    let forced = Swap { force: true, ..swap(NEW) };
    assert_eq!(forced.swap(&client).await.unwrap(), CommandStatus::Fine);
    assert_eq!(module().await, NEW);
    // Back, and now it fails for this already.
    swap(OLD).swap(&client).await.unwrap();
    let root = json!({"apiVersion": "a.io/v1", "kind": "A", "metadata": {"name": "x", "namespace": "n"}});
    says(&server, &root, json!({"conditions": [condition("Ready", "False", "GuestTrapped", "")]}));
    assert_eq!(swap(NEW).swap(&client).await.unwrap(), CommandStatus::Fine);
    assert_eq!(module().await, NEW);
}

/// The host may do everything but what it does with ServiceAccounts. Others may do everything, or everything but to ask who may do what.
struct Rights {
    may_ask: bool,
}

impl Access for Rights {
    fn may(&mut self, user: &User, action: &Action) -> Answer {
        let is_host = user.name == "system:serviceaccount:pintle-system:pintle";
        let is_refused = if is_host {
            action.resource == "serviceaccounts"
        } else {
            !self.may_ask && action.resource == "subjectaccessreviews"
        };
        if is_refused { Answer::NotAllowed(String::new()) } else { Answer::Allowed }
    }
}

#[tokio::test]
async fn a_swap_is_refused_where_the_host_lacks_a_right_and_the_plan_tells_that_from_what_is_not_known() {
    let (server, client) = farm();
    let manifest = fixtures::manifest("farm", "a.io/v1", "A", &["apps/v1/Deployment", "v1/ServiceAccount"]);
    let bytes = fixtures::answers(&manifest, r#"{"apiVersion":"guest.pintle.dev/v1"}"#);
    let wants_more = "farm-0.3.0";
    let mut objects = pintle_api::module_objects(wants_more, &bytes, &Digest::of(&bytes).to_string());
    objects.push(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "pintle"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "pintle"},
        "subjects": [{"kind": "ServiceAccount", "name": "pintle", "namespace": "pintle-system"}],
    }));
    for object in objects {
        server.act("test", &Act::Create(object)).unwrap();
    }
    let request = PlanRequest {
        reconciler: "r".into(),
        module: Some(ModuleChoice::Named(wants_more.into())),
        ..PlanRequest::default()
    };
    let rights_told = async || {
        let text = summary_text(&plan::make(&client, &request, |_| {}).await.unwrap());
        text.lines()
            .filter(|line| line.contains("(v1)") || line.contains("(apps/v1)") || line.contains("rbac"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let command = "pintle rbac farm-0.3.0 farm-0.1.0 | kubectl apply -f -";
    let verbs = "get, list, watch, create, patch, delete";
    let account = "ServiceAccount (v1); the Reconciler does not grant it";
    server.set_access(Box::new(Rights { may_ask: true }));
    assert_eq!(
        rights_told().await,
        [format!("The host may not {verbs} {account}"), format!("Apply the module's role first: {command}")]
    );
    let what = ModuleUser::Reconciler("r".into());
    let swap = Swap { what, module: Some(wants_more.into()), wait: false, ..swap() };
    let refused = swap.swap(&client).await.unwrap_err();
    let said = format!(
        "error: the host lacks rights that the module needs; apply its role first: {command}\n\
         hint: nothing was swapped; to swap all the same: --force\n"
    );
    assert_eq!((refused.exit_code(), refused.to_string()), (1, said));
    server.set_access(Box::new(Rights { may_ask: false }));
    let must = |kind: &str| format!("The module needs to {verbs} {kind}");
    assert_eq!(
        rights_told().await,
        [
            must("Deployment (apps/v1)"),
            must(account),
            format!("If the host may not, apply the module's role: {command}")
        ]
    );
    assert_eq!(swap.swap(&client).await.unwrap(), CommandStatus::Fine);
    // Another account writes the children: nothing is asked, and the host gets no role for them.
    server.set_access(Box::new(Rights { may_ask: true }));
    let target = pintle_core::object::reference(&reconciler(OLD, None, &[]));
    let patch = json!({"spec": {"serviceAccount": {"namespace": "n", "name": "writer"}}});
    server.act("test", &Act::Merge { target, subresource: None, patch }).unwrap();
    assert_eq!(rights_told().await, [must("Deployment (apps/v1)"), must(account)]);
}

/// Nobody may patch anything.
struct Readers;

impl Access for Readers {
    fn may(&mut self, _: &User, action: &Action) -> Answer {
        match action.verb.as_str() {
            "patch" => Answer::NotAllowed(String::new()),
            _ => Answer::Allowed,
        }
    }
}

#[tokio::test]
async fn who_may_not_swap_is_told_so_and_not_to_force_it() {
    let (server, client) = farm();
    server.set_access(Box::new(Readers));
    let swap = Swap { what: ModuleUser::Reconciler("r".into()), wait: false, ..swap() };
    let refused = swap.swap(&client).await.unwrap_err().to_string();
    let is_told = refused.starts_with("error: Reconciler r: ") && refused.contains("cannot patch resource");
    assert!(is_told && !refused.contains("--force"), "{refused}");
}

#[tokio::test]
async fn a_swap_that_another_manager_would_undo_is_refused_with_the_line_for_git_unless_it_is_forced() {
    for (manager, is_refused) in [("kustomize-controller", true), ("kubectl", false)] {
        let (_server, client) = farm();
        let reconcilers = Api::<Reconciler>::all(client.clone());
        let applied = json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "Reconciler", "metadata": {"name": "r"},
            "spec": {"for": {"apiVersion": "a.io/v1", "kind": "A"}, "module": OLD}});
        let params = PatchParams::apply(manager).force();
        reconcilers.patch("r", &params, &Patch::Apply(applied)).await.unwrap();
        let what = ModuleUser::Reconciler("r".into());
        let swap = Swap { what, wait: false, ..swap() };
        let refused = swap.swap(&client).await.unwrap_err().to_string();
        // A plan speaks against it, too, but is not made first.
        assert_eq!(refused.contains("GuestTrapped"), !is_refused, "{refused}");
        let said = "error: kustomize-controller applies Reconciler r and would set its module back\n\
                    hint: change the file of Reconciler r from which it is applied, in git:\n  spec.module: farm-0.2.0\n\
                    nothing was swapped; to swap all the same, until it is applied again: --force\n";
        assert_eq!(refused == said, is_refused, "{refused}");
        assert_eq!(reconcilers.get("r").await.unwrap().spec.module, OLD);
        let forced = Swap { force: true, ..swap };
        assert_eq!(forced.swap(&client).await.unwrap(), CommandStatus::Fine);
        assert_eq!(reconcilers.get("r").await.unwrap().spec.module, NEW);
    }
}

#[test]
fn who_applies_from_files_is_told_from_people_and_what_comes_back_is_printed_for_git() {
    let of = |manager: &str, operation: &str, fields: Value| {
        let mut object = reconciler(NEW, Some(NEW), &[]);
        object["metadata"]["managedFields"] = json!([{"manager": manager, "operation": operation,
            "apiVersion": "pintle.dev/v1alpha1", "fieldsType": "FieldsV1", "fieldsV1": fields}]);
        object["status"]["history"] = json!([{"module": OLD, "digest": "", "since": "", "config": {"a": 1}}]);
        read::<Swapped>(&[object]).remove(0)
    };
    let module = json!({"f:spec": {"f:module": {}}});
    for (manager, operation) in
        [("kustomize-controller", "Apply"), ("argocd-controller", "Update"), ("helm", "Update")]
    {
        let found = of(manager, operation, module.clone());
        assert_eq!(applier(&found), Some(manager));
        let undo = Swap { what: ModuleUser::Reconciler("r".into()), module: None, undo: true, ..swap() };
        let refused = undo.leaves_to_others(&found, &undo.wanted(&found).unwrap()).unwrap_err().to_string();
        let lines = "in git:\n  spec.module: farm-0.1.0\n  spec.config: {\"a\":1}\n";
        assert!(refused.contains(lines), "{refused}");
    }
    let people = ["kubectl", "kubectl-client-side-apply", FIELD_MANAGER, "pintle-console"];
    for found in people.map(|manager| of(manager, "Update", module.clone())) {
        assert_eq!(applier(&found), None);
    }
    assert_eq!(applier(&of("kubectl", "Apply", module)), None);
    let other_fields = json!({"f:spec": {"f:grants": {}}});
    assert_eq!(applier(&of("kustomize-controller", "Apply", other_fields)), None);
}

#[tokio::test]
async fn a_plan_of_many_roots_counts_the_pods_of_what_it_deletes() {
    let (_server, client) = farm();
    let module = Some(ModuleChoice::Named(OLD.into()));
    let request = PlanRequest { reconciler: "r".into(), module, ..PlanRequest::default() };
    let summary = plan::make(&client, &request, |_| {}).await.unwrap();
    assert_eq!((summary.stops, summary.restarts), (2, 0));
    assert_eq!(summary.deletions.iter().map(ToString::to_string).collect::<Vec<_>>(), ["Deployment n/x"]);
}

#[test]
fn a_root_speaks_against_a_swap_where_it_would_newly_fail_and_where_that_cannot_be_told() {
    let root = |has_answer: bool, failure: Value, fails_now: Value| {
        json!({"root": {"apiVersion": "a.io/v1", "kind": "A", "name": "x", "uid": ""}, "verdict": "unknown",
            "hasAnswer": has_answer, "unknown": [{"what": "Secret n/s", "why": "it may not be read"}],
            "standingRefusals": [], "children": [], "patches": [], "evictions": [],
            "failure": failure, "failsNow": fails_now})
    };
    let against = |roots: &[Value]| {
        let mut objections = Objections::default();
        read::<PlannedRoot>(roots).iter().for_each(|root| objections.add(root));
        objections.problem().map(|problem| (problem.exit_code(), problem.message().to_owned()))
    };
    let failure = json!({"reason": "AdoptionConflict", "message": "m;\nn", "path": "spec.a"});
    let fails = root(true, failure.clone(), Value::Null);
    let unknown = root(false, Value::Null, Value::Null);
    let fails_text = "1 root would newly fail:\n  A x: AdoptionConflict: spec.a: m;\n    n";
    let unknown_text = "it cannot be told whether 1 root would fail:\n  A x: Secret n/s: it may not be read";
    assert_eq!(against(&[root(true, Value::Null, Value::Null)]), None, "the guest has answered");
    assert_eq!(against(&[root(true, failure, json!(true))]), None, "it fails now");
    assert_eq!(against(std::slice::from_ref(&fails)), Some((1, fails_text.to_owned())));
    assert_eq!(against(std::slice::from_ref(&unknown)), Some((2, unknown_text.to_owned())));
    assert_eq!(against(&[unknown, fails]), Some((1, format!("{fails_text}\n{unknown_text}"))));
}
