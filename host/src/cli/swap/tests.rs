use pintle_simulator::Act;
use serde_json::Value;

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
        module: NEW.into(),
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
        match swap().look(&swap().objects(&client), Some(generation)).await.unwrap() {
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
    let followed = swap.follow(&swap.objects(&client), &ReconcilerStatus::default()).await;
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
    let refused = swap().want(&views, found).await.unwrap_err();
    assert_eq!(refused.to_string(), "error: somebody has changed View v meanwhile\n");
    let found = views.get("v").await.unwrap();
    change(Some("status"), json!({"status": {"observedGeneration": 2}}));
    swap().want(&views, found).await.unwrap();
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
