use std::convert::Infallible;

use http::{Request, Response};
use kube::{Client, client::Body};
use pintle_core::view::Served;
use pintle_runtime::clock::Virtual;
use serde_json::json;

use super::*;

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies?limit=250";
const QUOTAS: &str = "/api/v1/resourcequotas?limit=";

fn view(generation: i64, verbs: &[&str]) -> View {
    let object = json!({
        "apiVersion": "pintle.dev/v1alpha1", "kind": "View", "metadata": {"name": "llamas", "generation": generation},
        "spec": {"module": "m", "view": "llamas", "serve": {"aggregated": {}}},
        "status": {"served": {
            "apiVersion": "farm.example.com/v1", "kind": "Llama", "plural": "llamas", "singular": "llama", "listKind": "LlamaList",
            "verbs": verbs, "schema": {}, "reads": [],
            "backing": {"apiVersion": "store.example.com/v1", "kind": "Record", "plural": "records", "namespaced": true},
        }},
    });
    serde_json::from_value(object).unwrap()
}

fn views(view: View) -> BTreeMap<String, View> {
    [("llamas".to_owned(), view)].into()
}

fn target() -> Target {
    let served: Served = view(1, &["create"]).status.unwrap().served.unwrap();
    Target::of(&served).unwrap()
}

fn quota(namespace: &str) -> Value {
    json!({"metadata": {"namespace": namespace, "name": "few"}, "spec": {"hard": {"count/llamas.farm.example.com": "5"}}})
}

fn list(items: &[Value], next: &str) -> Value {
    json!({"metadata": {"continue": next}, "items": items})
}

/// An API server that answers paths with a code and a body, and everything else with 404; and what it was asked.
fn server(
    answers: impl Fn(&str) -> Option<(u16, Value)> + Clone + Send + Sync + 'static,
) -> (Cluster, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let service = tower::service_fn(move |request: Request<Body>| {
        let path = request.uri().path_and_query().unwrap().to_string();
        let (code, body) = answers(&path).unwrap_or((404, json!({"kind": "Status", "code": 404})));
        seen.lock().unwrap().push(path);
        let mut response = Response::new(Body::from(body.to_string().into_bytes()));
        *response.status_mut() = http::StatusCode::from_u16(code).unwrap();
        async move { Ok::<_, Infallible>(response) }
    });
    (Cluster::new(Client::new(service, "default")), asked)
}

fn bypasses(cluster: Cluster) -> Bypasses {
    Bypasses::new(cluster, Spawner::default(), Arc::new(Metrics::default()), Arc::default())
}

/// What a look says of the View; none if there is nothing to tell it.
async fn looked(bypasses: &Bypasses) -> Option<Option<String>> {
    let views = views(view(1, &["create"]));
    bypasses.look(&views);
    bypasses.shared.woken.notified().await;
    bypasses.look(&views).remove("llamas").map(|found| found.message)
}

#[tokio::test]
async fn all_pages_of_all_kinds_are_looked_at() {
    let policy = json!({"metadata": {"name": "limit"}, "spec": {"matchConstraints": {"resourceRules": [
        {"apiGroups": ["farm.example.com"], "apiVersions": ["*"], "operations": ["*"], "resources": ["llamas"]}]}}});
    let (cluster, asked) = server(move |path| {
        let page = match path.strip_prefix(QUOTAS) {
            Some("250") => list(&[quota("a"), quota("b")], "more"),
            Some("250&continue=more") => list(&[json!({"metadata": {"name": "other"}}), quota("c")], ""),
            _ if path == POLICIES => list(std::slice::from_ref(&policy), ""),
            _ => return None,
        };
        Some((200, page))
    });
    let bypasses = bypasses(cluster);
    let message = looked(&bypasses).await.unwrap().unwrap();
    let named = "ValidatingAdmissionPolicy limit, ResourceQuota a/few, ResourceQuota b/few and 1 more name llamas.farm.example.com";
    assert!(message.starts_with(named), "{message}");
    assert_eq!(asked.lock().unwrap().len(), 6, "five kinds, one of them with two pages");
}

#[tokio::test]
async fn a_kind_that_is_not_served_has_no_objects_and_one_that_may_not_be_listed_says_nothing() {
    for code in [403, 404, 501] {
        let (cluster, asked) = server(move |path| {
            let is_quota = path.starts_with(QUOTAS);
            Some(if is_quota { (200, list(&[quota("a")], "")) } else { (code, json!({"code": code})) })
        });
        let bypasses = bypasses(cluster);
        let message = looked(&bypasses).await.unwrap().unwrap();
        assert!(message.starts_with("ResourceQuota a/few names"), "{code}: {message}");
        assert_eq!(bypasses.shared.state().denied.len(), if code == 403 { 4 } else { 0 }, "{code}");
        assert_eq!(asked.lock().unwrap().len(), 5);
    }
    let (nothing_there, _) = server(|_| None);
    assert_eq!(looked(&bypasses(nothing_there)).await, Some(None), "nothing is bypassed");
    let (broken, _) = server(|path| path.starts_with(QUOTAS).then(|| (500, json!({"code": 500}))));
    assert_eq!(looked(&bypasses(broken)).await, None, "what was known stays");
}

#[tokio::test]
async fn a_page_that_is_too_long_is_read_in_parts_and_an_object_that_is_too_large_is_passed_over() {
    let (cluster, asked) = server(|path| {
        let mut large = quota("a");
        large["metadata"]["labels"] = (0..100_000).map(|at| (at.to_string(), json!(""))).collect();
        let page = match path.strip_prefix(QUOTAS)? {
            "250" => list(&[json!({"text": "x".repeat(PAGE_BYTES_MAX)})], "more"),
            "62" => list(&[large, quota("b")], "next"),
            "62&continue=next" => list(&[quota("c")], ""),
            other => panic!("it asked for {other}"),
        };
        Some((200, page))
    });
    let bypasses = bypasses(cluster);
    let message = looked(&bypasses).await.unwrap().unwrap();
    assert!(message.starts_with("ResourceQuota b/few and ResourceQuota c/few name"), "{message}");
    assert_eq!(asked.lock().unwrap().len(), 4 + 3);
    let metrics = bypasses.metrics.text(&[]);
    assert!(metrics.contains("pintle_admission_cut_total{resource=\"resourcequotas\"} 1"), "{metrics}");
}

#[tokio::test]
async fn a_look_ends_however_many_objects_there_are_and_however_large_they_are() {
    let requests = async |page: Value| {
        let (cluster, asked) = server(move |path| path.starts_with(QUOTAS).then(|| (200, page.clone())));
        let mut bypassed = BTreeMap::new();
        let wanted = [("llamas".to_owned(), (None, target()))].into();
        let is_all = read(&cluster, AdmissionKind::ResourceQuota, &wanted, &mut bypassed).await.unwrap();
        assert!(!is_all);
        asked.lock().unwrap().len()
    };
    let small = vec![json!({}); 250];
    assert_eq!(requests(list(&small, "more")).await, OBJECTS_MAX / 250);
    let text = "x".repeat(1 << 20);
    assert_eq!(requests(list(&[json!({"text": text}), json!({"text": text})], "more")).await, 16);
    let too_long = list(&[json!({"text": "x".repeat(PAGE_BYTES_MAX)})], "more");
    assert_eq!(requests(too_long).await, 5, "250, 62, 15, 3 and 1 object");
}

#[test]
fn a_look_is_due_once_a_minute_and_when_a_view_that_writes_changes() {
    let second = Duration::from_secs(1);
    let wanted = |generation, verbs| wanted(&views(view(generation, verbs)));
    let mut state = State::default();
    assert!(state.is_due(&wanted(1, &["create"]), second));
    assert!(!state.is_due(&wanted(1, &["get", "list", "watch"]), second), "nothing can be written");
    (state.asked, state.ended_at) = (wanted(1, &["create"]), Some(second));
    assert!(!state.is_due(&wanted(1, &["create"]), second * 60));
    assert!(state.is_due(&wanted(1, &["create"]), second * 61));
    assert!(state.is_due(&wanted(2, &["create"]), second * 2), "somebody changed the View");
    assert!(state.is_due(&wanted(1, &["delete"]), second * 2), "it serves something else");
    state.is_looking = true;
    assert!(!state.is_due(&wanted(2, &["create"]), second * 200));
    let mut deleted = view(1, &["create"]);
    deleted.metadata.deletion_timestamp =
        Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
    assert!(super::wanted(&views(deleted)).is_empty());
}

#[tokio::test]
async fn a_view_is_told_once_what_a_look_found_and_the_next_look_waits_for_a_minute() {
    tokio::time::pause();
    let clock = Arc::new(Virtual::new(jiff::Timestamp::UNIX_EPOCH, 1));
    Arc::clone(&clock)
        .scope(async {
            let (cluster, asked) =
                server(|path| path.starts_with(QUOTAS).then(|| (200, list(&[quota("a")], ""))));
            let bypasses = Bypasses::new(
                cluster,
                Spawner::simulated(clock),
                Arc::new(Metrics::default()),
                Arc::default(),
            );
            let views = views(view(1, &["create"]));
            assert_eq!(bypasses.due_in(&views), Duration::MAX, "a look begins by itself");
            assert!(looked(&bypasses).await.unwrap().is_some());
            let found = bypasses.look(&views).remove("llamas").unwrap();
            assert_eq!(found, bypasses.look(&views)["llamas"], "it could not be written");
            let other = Found { message: None, ..found.clone() };
            bypasses.told("llamas", &other);
            assert!(!bypasses.look(&views).is_empty(), "that was something else");
            bypasses.told("llamas", &found);
            assert!(bypasses.look(&views).is_empty());
            assert_eq!(bypasses.due_in(&views), LOOK_EVERY);
            assert_eq!(bypasses.due_in(&BTreeMap::new()), Duration::MAX, "nothing can be written any more");
            let before = asked.lock().unwrap().len();
            tokio::time::advance(LOOK_EVERY).await;
            assert!(looked(&bypasses).await.unwrap().is_some());
            assert_eq!(asked.lock().unwrap().len(), before * 2);
        })
        .await;
}
