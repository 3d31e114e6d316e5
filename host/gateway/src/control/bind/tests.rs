use pintle_core::conditions::{RECONCILING, STALLED};
use pintle_wit::views::{Column, ColumnType, Shown};
use serde_json::json;

use super::*;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn view(value: Value) -> View {
    let mut view = json!({
        "apiVersion": "pintle.dev/v1alpha1", "kind": "View",
        "metadata": {"name": "llamas", "uid": "u", "generation": 3, "creationTimestamp": "2026-01-02T00:00:00Z"},
        "spec": {"module": "farm", "view": "llamas", "serve": {"aggregated": {}}},
    });
    json_patch::merge(&mut view, &value);
    serde_json::from_value(view).unwrap()
}

fn served() -> Served {
    Served {
        api_version: "farm.example.com/v1alpha".into(),
        kind: "Llama".into(),
        plural: "llamas".into(),
        schema: json!({"type": "object"}),
        backing: Backing {
            api_version: "store.example.com/v1".into(),
            kind: "Record".into(),
            ..Backing::default()
        },
        ..Served::default()
    }
}

fn status() -> Value {
    json!({
        "active": {"module": "old", "digest": "sha256:0", "epoch": 7, "since": "1970-01-01T00:00:00Z"},
        "served": served(),
    })
}

fn world(views: Vec<View>) -> World {
    let views = views.into_iter().map(|view| (view.metadata.name.clone().unwrap(), view)).collect();
    World { views, own: ("pintle-system".into(), "pintle-gateway".into()), ..World::default() }
}

fn manifest(backing: &str, kind: &str, writes: &[&str]) -> ViewManifest {
    let shown = Shown::new("farm.example.com/v1alpha", "Llama", "llamas");
    ViewManifest::new(Kind::new(backing, kind), &["spec"], shown).writing(writes)
}

/// A View of the same, which was there before.
fn older(served: Served) -> View {
    view(
        json!({"metadata": {"name": "older", "creationTimestamp": "2026-01-01T00:00:00Z"}, "status": {"served": served}}),
    )
}

fn seen(status: &ViewStatus) -> Vec<(&str, &str, &str)> {
    let conditions = status.conditions.iter();
    conditions.map(|one| (one.r#type.as_str(), one.status.as_str(), one.reason.as_str())).collect()
}

#[test]
fn a_view_without_its_module_says_so_and_serves_nothing() {
    let Decision { status: Some(status), serving: None } =
        decide(&world(vec![view(json!({}))]), "llamas", NOW)
    else {
        panic!("it decides otherwise");
    };
    assert_eq!(
        seen(&status),
        [(READY, "False", reasons::MODULE_MISSING), (RECONCILING, "True", reasons::MODULE_MISSING)]
    );
    assert_eq!(status.observed_generation, Some(3));
}

#[test]
fn what_was_in_force_stays_in_discovery_when_its_module_is_gone() {
    let world = world(vec![view(json!({"status": status()}))]);
    let Decision { status: Some(said), serving: Some(serving) } = decide(&world, "llamas", NOW) else {
        panic!("it decides otherwise");
    };
    assert_eq!(serving.served, served());
    assert_eq!(serving.in_force.unwrap_err(), "there is no Module old");
    assert!(serving.closed.is_none(), "what needs no guest is answered");
    assert_eq!(said.candidate.unwrap().reason, reasons::MODULE_MISSING);
    assert_eq!(said.active.unwrap().epoch, serving.active.epoch);
}

#[test]
fn a_gateway_that_is_still_loading_says_nothing_of_what_others_have_put_into_force() {
    let mut world = world(vec![view(json!({"spec": {"module": "old"}, "status": status()}))]);
    world.modules.insert("old".into(), ModuleState::Loading);
    let Decision { status: None, serving: Some(serving) } = decide(&world, "llamas", NOW) else {
        panic!("it decides otherwise");
    };
    assert_eq!(serving.in_force.unwrap_err(), "Module old is being loaded");
}

#[test]
fn a_gateway_that_alone_cannot_load_what_is_in_force_does_not_contradict_the_others_at_once() {
    let mut status = status();
    status["conditions"] = json!([{"type": READY, "status": "True", "reason": "Serving", "message": "",
        "lastTransitionTime": "1970-01-01T00:00:00Z", "observedGeneration": 3}]);
    let mut world = world(vec![view(json!({"spec": {"module": "old"}, "status": status}))]);
    let lost = Failure::transient(reasons::SOURCE_UNAVAILABLE, "no reply");
    world.modules.insert("old".into(), ModuleState::NotYet(lost));
    let said_after = |seconds| decide(&world, "llamas", NOW + SignedDuration::from_secs(seconds)).status;
    assert!(said_after(29).is_none());
    let said = said_after(30).unwrap();
    assert_eq!(seen(&said)[0], (READY, "False", reasons::MODULE_NOT_READY));
}

#[test]
fn a_view_that_acts_as_its_caller_says_what_an_old_api_server_lacks() {
    let of = |spec: Value, minor: &str| {
        let world = World { too_old: too_old("1", minor), ..world(Vec::new()) };
        can_act_as_caller(&world, &view(json!({"spec": spec})).spec).map_err(|failure| failure.to_string())
    };
    let said = of(json!({}), "35+").unwrap_err();
    for word in [reasons::IMPERSONATION_UNAVAILABLE, "spec.access", "Kubernetes 1.35", "1.36", "access View"]
    {
        assert!(said.contains(word), "{word} in: {said}");
    }
    let rest = json!({"serve": {"aggregated": null, "rest": {"path": "llamas"}}});
    for (spec, minor) in
        [(json!({}), "36"), (json!({}), "?"), (json!({"access": "View"}), "35"), (rest, "35")]
    {
        assert_eq!(of(spec.clone(), minor), Ok(()), "{spec} {minor}");
    }
}

#[test]
fn a_suspended_view_answers_nothing_and_says_why() {
    let suspended = view(json!({"spec": {"suspend": true}, "status": status()}));
    let decision = decide(&world(vec![suspended]), "llamas", NOW);
    let said = decision.status.unwrap();
    assert!(seen(&said).contains(&(STALLED, "True", reasons::SUSPENDED)), "{:?}", seen(&said));
    assert!(decision.serving.unwrap().closed.is_some());
}

#[test]
fn a_view_that_is_deleted_serves_nothing_and_says_so() {
    let deleted =
        view(json!({"metadata": {"deletionTimestamp": "2026-01-03T00:00:00Z"}, "status": status()}));
    let Decision { status: Some(said), serving: None } = decide(&world(vec![deleted]), "llamas", NOW) else {
        panic!("it decides otherwise");
    };
    assert_eq!(seen(&said)[0], (READY, "False", reasons::DELETING));
}

#[test]
fn of_two_views_at_one_path_the_older_has_it_and_a_resource_of_that_name_is_something_else() {
    let documents = || served().at_path("llamas");
    let refused = |other: Served| {
        let mine = view(json!({"spec": {"serve": {"aggregated": null, "rest": {"path": "llamas"}}}}));
        let world = world(vec![older(other), mine.clone()]);
        is_first(&world, &mine, &documents())
            .err()
            .map(|failure| (failure.reason, failure.path.unwrap_or_default()))
    };
    assert_eq!(
        refused(documents()),
        Some((reasons::RESOURCE_TAKEN.to_owned(), "spec.serve.rest.path".to_owned()))
    );
    assert_eq!(refused(documents().at_path("others")), None);
    assert_eq!(refused(served()), None);
}

#[test]
fn a_group_of_somebody_else_is_taken_and_an_aggregated_kind_is_no_backing_kind() {
    let service = |group: &str, version: &str, service: Option<(&str, &str)>| ApiService {
        group: group.into(),
        version: version.into(),
        service: service.map(|(namespace, name)| (namespace.into(), name.into())),
        ..ApiService::default()
    };
    let ours = Some(("pintle-system", "pintle-gateway"));
    let reason = |services: Vec<ApiService>| {
        let mut world = world(vec![]);
        world.services =
            services.into_iter().enumerate().map(|(at, service)| (at.to_string(), service)).collect();
        is_group_free(&world, &manifest("store.example.com/v1", "Record", &[]))
            .err()
            .map(|failure| failure.reason)
    };
    let own_store = service("store.example.com", "v1", None);
    assert_eq!(reason(vec![own_store.clone(), service("farm.example.com", "v1alpha", ours)]), None);
    assert_eq!(reason(vec![service("farm.example.com", "v9", None)]), Some(reasons::GROUP_TAKEN.into()));
    assert_eq!(
        reason(vec![service("farm.example.com", "v1alpha", Some(("a", "b")))]),
        Some(reasons::GROUP_TAKEN.into())
    );
    assert_eq!(
        reason(vec![service("store.example.com", "v1", Some(("a", "b")))]),
        Some(reasons::BACKING_FORBIDDEN.into())
    );
}

#[test]
fn of_two_views_of_a_resource_the_older_serves_it_and_two_versions_show_the_same_objects() {
    let reason = |change: Value| {
        let mut other = serde_json::to_value(served()).unwrap();
        json_patch::merge(&mut other, &change);
        let other: Served = serde_json::from_value(other).unwrap();
        let own = view(json!({}));
        is_first(&world(vec![older(other), own.clone()]), &own, &served()).err().map(|failure| failure.reason)
    };
    assert_eq!(reason(json!({})), Some(reasons::RESOURCE_TAKEN.into()));
    assert_eq!(reason(json!({"plural": "sheep"})), None);
    assert_eq!(reason(json!({"apiVersion": "farm.example.com/v1"})), None);
    for change in
        [json!({"prefix": "x-"}), json!({"selector": {"a": "b"}}), json!({"backing": {"kind": "Other"}})]
    {
        let mut change = change;
        change["apiVersion"] = "farm.example.com/v1".into();
        assert_eq!(reason(change.clone()), Some(reasons::VERSIONS_DIFFER.into()), "{change}");
    }
}

#[test]
fn a_view_says_whether_the_api_server_sends_requests() {
    let service = |service: (&str, &str), unavailable: Option<&str>| ApiService {
        service: Some((service.0.into(), service.1.into())),
        unavailable: unavailable.map(Into::into),
        ..ApiService::default()
    };
    let registration = |service: Option<ApiService>| {
        let mut world = world(vec![]);
        world.services.extend(service.map(|service| ("v1alpha.farm.example.com".to_owned(), service)));
        registered(&world, &view(json!({})), &served())
    };
    let own = ("pintle-system", "pintle-gateway");
    let missing = registration(None);
    assert_eq!(missing.1, reasons::API_SERVICE_MISSING);
    let command = "; apply it: kubectl get view llamas -o yaml | pintle rbac farm -f - | kubectl apply -f -";
    assert!(missing.2.ends_with(command), "{missing:?}");
    assert_eq!(registration(Some(service(("a", "b"), None))).1, reasons::API_SERVICE_ELSEWHERE);
    assert_eq!(registration(Some(service(own, Some("no route")))).1, reasons::API_SERVICE_UNAVAILABLE);
    assert_eq!(registration(Some(service(own, None))).1, reasons::REGISTERED_AND_AVAILABLE);
}

#[test]
fn a_view_whose_schema_or_columns_cannot_be_evaluated_says_which() {
    let said = |schema: Value, path: &str| {
        let mut manifest = manifest("store.example.com/v1", "Record", &[]);
        let shown = manifest.shown.as_mut().unwrap();
        shown.schema = schema;
        shown.columns = vec![Column::new("Weight", ColumnType::Number, path)];
        can_be_shown(&manifest).map_err(|refused| (refused.reason, refused.message))
    };
    assert_eq!(said(json!({"type": "object"}), ".spec.weight"), Ok(()));
    let (reason, message) =
        said(json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}), ".spec")
            .unwrap_err();
    assert!(reason == reasons::VIEW_INVALID && message.starts_with("the schema"), "{message}");
    let (reason, message) = said(json!({"type": "object"}), ".spec[").unwrap_err();
    assert!(reason == reasons::VIEW_INVALID && message.starts_with("column 0"), "{message}");
}
