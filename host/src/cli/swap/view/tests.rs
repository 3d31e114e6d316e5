use std::time::Duration;

use pintle_kubernetes::connect::Connect;
use serde_json::{Value, json};

use super::{
    super::super::{
        fixture::{cluster, condition, module, read, view_of_llamas},
        named::Named,
    },
    *,
};

const OLD: &str = "farm-0.1.0";
const NEW: &str = "farm-0.2.0";

fn ready() -> Value {
    condition("Ready", "True", "Serving", "llamas.farm.example.com v1alpha is served over LlamaRecords")
}

fn unregistered() -> Value {
    condition("Registered", "False", "APIServiceMissing", "there is no APIService v2.farm.example.com")
}

/// A View that wants the new module, with one in force, and its conditions, of its second generation.
fn seen(active: &str, conditions: &[Value]) -> Value {
    let mut view = view_of_llamas(NEW, Some(active), conditions);
    view["status"]["observedGeneration"] = json!(2);
    view
}

fn view_of(value: &Value) -> View {
    read::<View>(std::slice::from_ref(value)).remove(0)
}

fn said(progress: Progress) -> String {
    match progress {
        Progress::Done => "done".into(),
        Progress::Failed(why) => format!("failed: {why}"),
        Progress::Waiting(why) => format!("waiting: {why}"),
    }
}

#[test]
fn a_view_that_the_new_module_could_show_is_left_behind_by_the_swap_of_a_reconciler() {
    let with_views = |name: &str, views: Value| -> Module {
        let mut module = module(name, Some("farm"));
        module["status"]["manifest"]["views"] = views;
        read::<Module>(&[module]).remove(0)
    };
    let views = [view_of(&view_of_llamas(OLD, None, &[])), view_of(&view_of_llamas("other-1", None, &[]))];
    let names = |module: &Module| -> Vec<String> {
        left_behind(&views, OLD, module).iter().map(|view| view.spec.module.clone()).collect()
    };
    assert_eq!(names(&with_views(NEW, json!([{"name": "llamas"}]))), [OLD]);
    assert_eq!(names(&with_views(NEW, json!([{"name": "alpacas"}]))), [""; 0], "it does not show llamas");
    assert_eq!(names(&with_views(OLD, json!([{"name": "llamas"}]))), [""; 0], "it is the same module");
}

#[test]
fn a_swap_waits_for_the_module_in_the_status_of_this_generation_and_ends_when_it_is_refused() {
    let of = |value: &Value, generation| said(progress(&view_of(value), NEW, Some(generation)));
    assert_eq!(of(&seen(NEW, &[ready()]), 2), "done");
    assert_eq!(of(&seen(NEW, &[ready()]), 3), "waiting: the gateway has not said anything of it yet");
    assert_eq!(of(&seen(OLD, &[ready()]), 2), "waiting: the module is being loaded");
    let not_ready = condition("Ready", "False", "ModuleNotReady", "it cannot be fetched");
    assert_eq!(of(&seen(OLD, &[not_ready]), 2), "waiting: ModuleNotReady: it cannot be fetched");
    let refused = ["Ready", "Stalled"].map(|name| {
        let status = if name == "Ready" { "False" } else { "True" };
        condition(name, status, "ViewMissing", "Module farm-0.2.0 has no view llamas")
    });
    assert_eq!(of(&seen(OLD, &refused), 2), "failed: ViewMissing: Module farm-0.2.0 has no view llamas");
    let mut other = seen(OLD, &[ready()]);
    other["spec"]["module"] = json!("farm-0.3.0");
    assert_eq!(of(&other, 2), "failed: somebody has set module farm-0.3.0 meanwhile");
    let mut candidate = seen(NEW, &[ready()]);
    candidate["status"]["candidate"] = json!({"module": NEW, "reason": "Loading", "message": ""});
    assert_eq!(of(&candidate, 2), "waiting: the module is being loaded", "its new config is not in force");
}

#[test]
fn the_summary_says_what_is_served_and_why_nobody_gets_at_it() {
    let status = |conditions: &[Value]| view_of(&seen(NEW, conditions)).status.unwrap();
    assert_eq!(
        summary(&status(&[ready(), unregistered()])),
        "llamas.farm.example.com v1alpha is served over LlamaRecords\n  \
         Registered is False: APIServiceMissing: there is no APIService v2.farm.example.com"
    );
    let suspended = condition("Ready", "False", "Suspended", "spec.suspend is set");
    assert_eq!(
        summary(&status(&[suspended])),
        "it is not served\n  Ready is False: Suspended: spec.suspend is set"
    );
}

#[test]
fn a_module_without_the_view_is_refused_before_anything_is_written() {
    let view = view_of(&view_of_llamas(OLD, None, &[]));
    let of = |status: Value| {
        let mut module = module(NEW, None);
        module["status"] = status;
        shows(&read::<Module>(&[module]).remove(0), &view).map_err(|problem| problem.message().to_owned())
    };
    assert_eq!(of(json!({})), Ok(()), "no host has looked at it");
    assert_eq!(of(json!({"manifest": {"views": [{"name": "llamas"}]}})), Ok(()));
    assert_eq!(
        of(json!({"manifest": {"views": [{"name": "sheep"}, {"name": "farmpods"}]}})),
        Err("Module farm-0.2.0 has no view llamas, which View v shows; it has: sheep, farmpods".into())
    );
    let both = "pintle:guest/guest@0.1.0, pintle:guest/views@0.1.0";
    assert_eq!(of(json!({"contract": both, "manifest": {"reconciles": {}}})), Ok(()));
    assert_eq!(
        of(json!({"contract": "pintle:guest/guest@0.1.0", "manifest": {"reconciles": {}}})),
        Err("Module farm-0.2.0 serves no views, and View v shows one".into())
    );
}

/// The outcome of a swap of View `v` to the new module, and what the View wants then.
async fn swapped(view: Value) -> (Result<CommandStatus, String>, String) {
    let (_server, client) = cluster(&[view, module(NEW, None)]);
    let swap = Swap {
        what: Named::View("v".into()),
        module: NEW.into(),
        wait: Some(Until::Roots),
        timeout: Duration::ZERO,
        connect: Connect::default(),
    };
    let views: Api<View> = Api::all(client.clone());
    let found = swap.found_module(&client).await.unwrap();
    let outcome = swap.of_view(views.clone(), &found).await.map_err(|problem| problem.to_string());
    (outcome, views.get("v").await.unwrap().spec.module)
}

/// A View that the gateway has put on the new module at once, with these conditions.
fn at_once(conditions: &[Value]) -> Value {
    let mut view = seen(NEW, conditions);
    view["spec"]["module"] = json!(OLD);
    view
}

#[tokio::test]
async fn a_swap_says_which_module_is_wanted_and_fails_when_the_gateway_says_nothing() {
    assert_eq!(swapped(at_once(&[ready()])).await, (Ok(CommandStatus::Fine), NEW.to_owned()));
    let as_before = swapped(at_once(&[ready(), unregistered()])).await;
    assert_eq!(as_before.0, Ok(CommandStatus::Fine), "it was not registered before either");
    let (silent, wanted) = swapped(view_of_llamas(OLD, Some(OLD), &[ready()])).await;
    assert_eq!(
        silent.unwrap_err(),
        "error: not done after 0 s: the gateway has not said anything of it yet\n\
         hint: see whether the gateway runs: kubectl -n pintle-system get pods\n"
    );
    assert_eq!(wanted, NEW);
}
