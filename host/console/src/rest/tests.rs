mod bounds;

use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body as Sent;
use futures::future::BoxFuture;
use http::Method;
use http_body_util::BodyExt;
use pintle_core::view::{Access, Backing, BackingObject, Cut, Epoch, Lens, Served, document::problem::Doing};
use pintle_schema::structural::Structural;
use pintle_wit::Failure;
use serde_json::{Map, Value, json};

use super::*;
use crate::{
    caller::Caller,
    documents::{DocumentGuest, DocumentView, Provider, Shown},
    fake::{self, Asked, Log, refused},
};

const UID: &str = "6f9619ff-8b86-4011-b42d-00c04fc964ff";
const ROOMS: &str = "/apis/example.com/v1/namespaces/default/rooms";

/// A guest that shows the spec without the key, and refuses rooms without a door. It counts its calls.
#[derive(Default)]
struct Rooms(Arc<AtomicUsize>);

impl DocumentGuest for Rooms {
    fn show<'a>(
        &'a self,
        _: &'a Lens,
        objects: &'a [BackingObject],
    ) -> BoxFuture<'a, Result<Vec<Shown>, Refusal>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let show = |object: &BackingObject| {
            let mut spec = object.fields.get("spec").cloned().unwrap_or_default();
            if spec["door"] == "stuck" {
                return Shown::Failed(Arc::new(Failure::terminal("Odd", "the door is stuck")));
            }
            spec.as_object_mut().unwrap().remove("key");
            Shown::Fields(spec.to_string().into())
        };
        Box::pin(async move { Ok(objects.iter().map(show).collect()) })
    }

    fn store<'a>(
        &'a self,
        _: &'a Lens,
        written: &'a Value,
        current: Option<&'a BackingObject>,
    ) -> BoxFuture<'a, Result<Map<String, Value>, Refusal>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            if written["door"].as_str().unwrap_or_default().is_empty() {
                let failure = Failure::terminal("InvalidSpec", "a room has a door").at("spec.door");
                return Err(Refusal::of_guest(&failure));
            }
            let mut spec = written.clone();
            if written.get("key").is_none()
                && let Some(kept) = current.and_then(|object| object.fields.get("spec")?.get("key"))
            {
                spec["key"] = kept.clone();
            }
            Ok(json!({"spec": spec}).as_object().cloned().unwrap())
        })
    }

    fn over(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

/// Knows the view `rooms`.
struct One(Arc<DocumentView>);

impl Provider for One {
    fn view<'a>(
        &'a self,
        path: &'a str,
        _: &'a Caller,
    ) -> BoxFuture<'a, Result<Option<Arc<DocumentView>>, Refusal>> {
        let found = (path == "rooms").then(|| Arc::clone(&self.0));
        Box::pin(async { Ok(found) })
    }

    fn paths<'a>(&'a self, _: &'a Caller) -> BoxFuture<'a, Result<Vec<String>, Refusal>> {
        Box::pin(async { Ok(vec!["rooms".into()]) })
    }
}

fn view(guest: Rooms) -> Arc<DocumentView> {
    view_with_door(guest, &json!({"type": "string"}))
}

/// The same with this schema of a door.
fn view_with_door(guest: Rooms, door: &Value) -> Arc<DocumentView> {
    let schema = json!({"type": "object", "properties": {
        "door": door,
        "size": {"type": "integer", "default": 1},
        "key": {"type": "string", "nullable": true, "writeOnly": true},
        "status": {"type": "object", "readOnly": true, "x-kubernetes-preserve-unknown-fields": true},
    }});
    let served = Served {
        backing: Backing {
            api_version: "example.com/v1".into(),
            kind: "Room".into(),
            plural: "rooms".into(),
            namespaced: true,
        },
        schema: schema.clone(),
        reads: vec!["spec".into()],
        writes: vec!["spec.door".into(), "spec.size".into(), "spec.key".into()],
        verbs: Verb::ALL.to_vec(),
        paths: [(String::new(), "spec".to_owned())].into(),
        ..Served::default()
    };
    let served = served.at_path("rooms");
    Arc::new(DocumentView {
        cut: Cut::new(served.reads.iter().chain(&served.writes)),
        schema: Structural::compile(&schema).unwrap(),
        lens: Lens::new("rooms", served, Access::default(), Vec::new(), Epoch::default()),
        guest: Arc::new(guest),
    })
}

fn room(name: &str, version: &str, spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Room", "spec": spec,
        "metadata": {"name": name, "namespace": "default", "uid": UID, "resourceVersion": version}})
}

fn app(answer: impl Fn(&Asked) -> (u16, Value) + Send + Sync + 'static) -> (Arc<App>, Log) {
    let (upstream, log) = fake::permitting(answer);
    (served_by(upstream), log)
}

fn served_by(upstream: kube::Client) -> Arc<App> {
    served_with(Rooms::default(), upstream)
}

fn served_with(guest: Rooms, upstream: kube::Client) -> Arc<App> {
    fake::app_of(fake::users(), fake::cluster(), upstream, Arc::new(One(view(guest))))
}

fn request(method: &str, path: &str, body: Option<Value>) -> Request {
    fake::request(method, path, body)
}

fn with(mut request: Request, name: &'static str, value: &str) -> Request {
    request.headers_mut().insert(name, value.parse().unwrap());
    request
}

fn patch(patch: Value) -> Request {
    with(request("PATCH", "/rooms/a", Some(patch)), "content-type", "application/merge-patch+json")
}

/// The one room, and everything that is written as it would be stored.
fn stores(asked: &Asked) -> (u16, Value) {
    let spec = json!({"door": "red", "size": 2, "key": "s3cr3t"});
    match asked.method {
        Method::POST => {
            let mut object = asked.json();
            object["metadata"]["resourceVersion"] = json!("9");
            (201, object)
        }
        Method::PATCH => {
            let mut object = room("a", "8", &spec);
            json_patch::merge(&mut object, &asked.json());
            object["metadata"]["resourceVersion"] = json!("9");
            (200, object)
        }
        Method::DELETE => (200, json!({"kind": "Status", "status": "Success"})),
        _ if asked.path.starts_with(&format!("{ROOMS}/a")) => (200, room("a", "7", &spec)),
        _ => refused(404, "NotFound", "rooms.example.com \"b\" not found"),
    }
}

#[tokio::test]
async fn a_document_is_read_as_the_caller_and_never_shows_its_key() {
    let (app, log) = app(stores);
    for path in ["/rooms/a", "/api/rooms/a", "/namespaces/default/rooms/a", "/rooms/a?namespace=default"] {
        let (code, document) = fake::ask(&app, request("GET", path, None)).await;
        assert_eq!(code, 200, "{document}");
        assert_eq!(
            document,
            json!({"name": "a", "namespace": "default", "resourceVersion": "7000000", "door": "red", "size": 2})
        );
    }
    let asked = log.lock().unwrap()[0].clone();
    assert_eq!(asked.line(), format!("GET {ROOMS}/a"));
    assert_eq!(asked.header("authorization"), Some("Bearer ann-token"));
    let given = fake::answer(&app, request("GET", "/rooms/a", None)).await;
    assert_eq!(given.headers()["etag"], "\"7000000\"");
}

#[tokio::test]
async fn what_is_refused_has_the_code_of_kubernetes_and_the_words_of_the_seed() {
    let (app, _) = app(|asked| match &asked.path {
        path if path.contains("/closed/") => refused(403, "Forbidden", "rooms is forbidden"),
        path if path.contains("/odd/") => {
            let items = [room("a", "5", &json!({"door": "stuck"})), room("b", "5", &json!({}))];
            (200, json!({"metadata": {}, "items": items}))
        }
        _ => stores(asked),
    });
    let cannot_be_shown = "the guest of the view failed: not everything can be shown: a: the door is stuck";
    for (path, status, title, details) in [
        ("/rooms/b", 404, "Error", "Could not retrieve object: rooms.example.com \"b\" not found"),
        ("/halls", 404, "Not Found", "there is nothing at this path"),
        ("/rooms?namespace=closed", 403, "Error", "Could not retrieve list: rooms is forbidden"),
        ("/rooms?namespace=odd", 500, "Error", cannot_be_shown),
    ] {
        let (code, problem) = fake::ask(&app, request("GET", path, None)).await;
        let said = (code, &problem["title"], &problem["details"]);
        assert_eq!(said, (status, &json!(title), &json!(details)), "{path}");
    }
    let mut nobody = request("GET", "/rooms", None);
    nobody.headers_mut().remove("authorization");
    assert_eq!(fake::ask(&app, nobody).await.0, 401);
}

#[tokio::test]
async fn the_description_has_the_documents_for_those_who_show_who_they_are() {
    let (app, _) = app(fake::knows_ann);
    let described = |document: &Value| document["paths"]["/rooms/{name}"]["put"]["operationId"].clone();
    let (code, document) = fake::ask(&app, request("GET", "/openapi.json", None)).await;
    assert_eq!((code, described(&document)), (200, json!("updateRoomsDocument")));
    let mut nobody = request("GET", "/openapi.json", None);
    nobody.headers_mut().remove("authorization");
    let (code, document) = fake::ask(&app, nobody).await;
    assert_eq!((code, described(&document)), (200, Value::Null));
    let (app, _) = self::app(|_| refused(401, "Unauthorized", "no"));
    let stranger = with(request("GET", "/openapi.json", None), "authorization", "Bearer made-up");
    assert_eq!(fake::ask(&app, stranger).await.0, 401);
}

#[tokio::test]
async fn a_page_has_what_is_searched_for_and_the_token_of_the_next() {
    let (app, log) = app(|_| {
        let item = |name: &str| room(name, "5", &json!({"door": "red"}));
        (
            200,
            json!({"metadata": {"resourceVersion": "7", "continue": "more"}, "items": [item("hall"), item("attic")]}),
        )
    });
    let (code, list) = fake::ask(&app, request("GET", "/rooms?search=HA&limit=2", None)).await;
    assert_eq!(code, 200, "{list}");
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    assert_eq!((&list["items"][0]["name"], &list["resourceVersion"]), (&json!("hall"), &json!("7000000")));
    let next = list["continue"].as_str().unwrap();
    fake::ask(&app, request("GET", &format!("/namespaces/n/rooms?continue={next}"), None)).await;
    let lines: Vec<String> = log.lock().unwrap().iter().map(Asked::line).collect();
    assert_eq!(
        lines,
        [
            "GET /apis/example.com/v1/rooms?limit=2",
            "GET /apis/example.com/v1/namespaces/n/rooms?limit=500&continue=more"
        ]
    );
    assert_eq!(fake::ask(&app, request("GET", "/rooms?limt=2", None)).await.0, 400);
}

#[tokio::test]
async fn a_document_is_created_in_the_namespace_default_unless_it_names_another() {
    let (app, log) = app(stores);
    let document = json!({"name": "a", "door": "red", "key": "s3cr3t", "status": {"x": 1}});
    let given = fake::answer(&app, request("POST", "/rooms", Some(document.clone()))).await;
    assert_eq!(given.status(), 200, "as the seed answered");
    assert_eq!(given.headers()["location"], "/rooms/a?namespace=default");
    let text = given.into_body().collect().await.unwrap().to_bytes();
    assert!(!String::from_utf8_lossy(&text).contains("s3cr3t"));
    let asked = log.lock().unwrap()[0].clone();
    assert_eq!(asked.path.split('?').next(), Some(ROOMS));
    assert_eq!(
        asked.json(),
        json!({"apiVersion": "example.com/v1", "kind": "Room", "metadata": {"name": "a", "namespace": "default"},
            "spec": {"door": "red", "size": 1, "key": "s3cr3t"}})
    );
    let mut elsewhere = document;
    elsewhere["namespace"] = json!("n");
    let given = fake::answer(&app, request("POST", "/rooms", Some(elsewhere.clone()))).await;
    assert_eq!(given.headers()["location"], "/rooms/a?namespace=n");
    assert_eq!(fake::ask(&app, request("POST", "/rooms?namespace=m", Some(elsewhere))).await.0, 400);
}

#[tokio::test]
async fn what_cannot_be_read_or_is_not_valid_is_refused_before_anything_is_written() {
    let (app, log) = app(stores);
    let unreadable = |body: &'static str| {
        let mut request = request("POST", "/rooms", Some(json!({})));
        *request.body_mut() = Sent::from(body);
        request
    };
    for body in ["{", "[]", "7", ""] {
        let (code, problem) = fake::ask(&app, unreadable(body)).await;
        assert_eq!(
            (code, &problem["title"], &problem["details"]),
            (400, &json!("Bad Request"), &json!("Could not read entity")),
            "{body}"
        );
    }
    let (code, problem) = fake::ask(&app, request("POST", "/rooms", Some(json!({"name": "a"})))).await;
    assert_eq!(
        (code, &problem["title"], &problem["details"]),
        (422, &json!("Validation error"), &json!("a room has a door"))
    );
    assert_eq!(
        problem["causes"],
        json!([{"field": "spec.door", "message": "a room has a door", "reason": "InvalidSpec"}])
    );
    for (document, field) in [
        (json!({"name": "a", "door": "red", "size": "large"}), "spec.size"),
        (json!({"door": "red"}), "metadata.name"),
    ] {
        let (code, problem) = fake::ask(&app, request("POST", "/rooms", Some(document))).await;
        assert_eq!((code, &problem["causes"][0]["field"]), (422, &json!(field)));
    }
    assert!(log.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_key_is_repeated_by_nobody() {
    let (app, _) = app(|asked| match asked.method {
        Method::POST => (
            422,
            json!({"kind": "Status", "code": 422, "reason": "Invalid", "message": "Room \"a\" is invalid: spec.key: Invalid value: \"s3cr3t\": too weak",
                "details": {"causes": [{"field": "spec.key", "message": "Invalid value: \"s3cr3t\": too weak", "reason": "FieldValueInvalid"}]}}),
        ),
        _ => stores(asked),
    });
    for document in [
        json!({"name": "a", "door": "red", "key": "s3cr3t"}),
        json!({"name": "a", "door": "red", "key": {"s3cr3t": 1}}),
    ] {
        let (code, problem) = fake::ask(&app, request("POST", "/rooms", Some(document))).await;
        assert_eq!((code, &problem["causes"][0]["field"]), (422, &json!("spec.key")));
        assert!(!problem.to_string().contains("s3cr3t"), "{problem}");
    }
}

#[tokio::test]
async fn a_document_is_replaced_by_whoever_knows_its_version_and_keeps_its_key() {
    let (app, log) = app(stores);
    let put = |document: Value| request("PUT", "/rooms/a", Some(document));
    let new = json!({"door": "blue"});
    assert_eq!(fake::ask(&app, put(new.clone())).await.0, 428);
    for stale in ["6000000", "7000001", "7"] {
        let mut stale_one = new.clone();
        stale_one["resourceVersion"] = json!(stale);
        let (code, problem) = fake::ask(&app, put(stale_one)).await;
        assert_eq!((code, &problem["reason"]), (409, &json!("Conflict")), "{stale}");
    }
    log.lock().unwrap().clear();
    let (code, document) = fake::ask(&app, with(put(new.clone()), "if-match", "\"7000000\"")).await;
    assert_eq!(
        (code, &document["door"], &document["resourceVersion"]),
        (200, &json!("blue"), &json!("9000000")),
        "{document}"
    );
    let sent = log.lock().unwrap()[1].clone();
    assert_eq!(
        (sent.method.as_str(), sent.header("content-type")),
        ("PATCH", Some("application/merge-patch+json"))
    );
    assert_eq!(
        sent.json(),
        json!({"metadata": {"uid": UID, "resourceVersion": "7"}, "spec": {"door": "blue", "size": 1}}),
        "the key is not in it, so that it stays"
    );
    let mut known = new;
    known["resourceVersion"] = json!("7000000");
    known["name"] = json!("b");
    assert_eq!(fake::ask(&app, put(known)).await.0, 400, "another document");
}

#[tokio::test]
async fn a_document_is_compared_with_what_it_was() {
    let immutable = json!({"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]});
    let short = json!({"type": "string", "maxLength": 2});
    let put = |door: &str| {
        with(request("PUT", "/rooms/a", Some(json!({"door": door, "size": 3}))), "if-match", "\"7000000\"")
    };
    for (door, stored, request, code) in [
        (&immutable, "red", put("blue"), 422),
        (&immutable, "red", patch(json!({"door": "blue"})), 422),
        (&immutable, "red", put("red"), 200),
        (&immutable, "stuck", put("red"), 500),
        // What does not fit already holds up no other change, and what cannot be shown can be repaired.
        (&short, "red", put("red"), 200),
        (&short, "red", patch(json!({"size": 3})), 200),
        (&short, "red", put("blue"), 422),
        (&short, "stuck", put("in"), 200),
    ] {
        let (upstream, log) = fake::permitting(move |asked| match asked.method {
            Method::GET => (200, room("a", "7", &json!({"door": stored, "size": 2}))),
            _ => stores(asked),
        });
        let provider = Arc::new(One(view_with_door(Rooms::default(), door)));
        let app = fake::app_of(fake::users(), fake::cluster(), upstream, provider);
        let line = format!("{} {stored} {door}", request.method());
        let (answered, problem) = fake::ask(&app, request).await;
        let is_written = log.lock().unwrap().iter().any(|asked| asked.method == Method::PATCH);
        assert_eq!((answered, is_written), (code, code == 200), "{line}: {problem}");
    }
}

#[tokio::test]
async fn a_patch_changes_what_it_names_and_null_takes_a_key_away() {
    let (app, log) = app(stores);
    assert_eq!(fake::ask(&app, patch(json!({"size": 3}))).await.0, 200);
    assert_eq!(fake::ask(&app, patch(json!({"key": null}))).await.0, 200);
    let sent: Vec<Value> = log
        .lock()
        .unwrap()
        .iter()
        .filter(|asked| asked.method == Method::PATCH)
        .map(|asked| asked.json()["spec"].clone())
        .collect();
    assert_eq!(sent, [json!({"size": 3}), json!({"key": null})]);
    let wrong_form = with(request("PATCH", "/rooms/a", Some(json!({}))), "content-type", "application/json");
    assert_eq!(fake::ask(&app, wrong_form).await.0, 415);
    assert_eq!(fake::ask(&app, patch(json!({"resourceVersion": "6000000"}))).await.0, 409);
}

#[tokio::test]
async fn who_writes_over_any_version_is_tried_again_as_long_as_somebody_else_writes() {
    let tries = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&tries);
    let (app, _) = app(move |asked| match asked.method {
        Method::PATCH if counted.fetch_add(1, Ordering::Relaxed) < 7 => refused(409, "Conflict", "modified"),
        _ => stores(asked),
    });
    let put = || request("PUT", "/rooms/a", Some(json!({"door": "blue"})));
    for any in [
        patch(json!({"size": 3})),
        with(patch(json!({"size": 3})), "if-match", "*"),
        with(put(), "if-match", "*"),
    ] {
        assert_eq!(fake::ask(&app, any).await.0, 200);
        assert_eq!(tries.swap(0, Ordering::Relaxed), 8);
    }
    for one in
        [patch(json!({"size": 3, "resourceVersion": "7000000"})), with(put(), "if-match", "\"7000000\"")]
    {
        assert_eq!(fake::ask(&app, one).await.0, 409);
        assert_eq!(tries.swap(0, Ordering::Relaxed), 1);
    }
}

#[tokio::test]
async fn a_document_is_deleted_under_the_version_that_is_named() {
    let (app, log) = app(stores);
    let given =
        fake::answer(&app, with(request("DELETE", "/rooms/a", None), "if-match", "\"7000000\"")).await;
    assert_eq!(given.status(), 204);
    let sent = log.lock().unwrap()[0].clone();
    assert_eq!(
        (sent.line(), sent.json()["preconditions"].clone()),
        (format!("DELETE {ROOMS}/a"), json!({"resourceVersion": "7"}))
    );
    assert_eq!(fake::ask(&app, request("DELETE", "/rooms/a?propagationPolicy=Slow", None)).await.0, 400);
    assert_eq!(fake::ask(&app, request("DELETE", "/rooms", None)).await.0, 405);
    let past = with(request("DELETE", "/rooms/a", None), "if-match", "\"7000001\"");
    assert_eq!(fake::ask(&app, past).await.0, 409, "another lens showed that version");
}

#[tokio::test(start_paused = true)]
async fn a_delete_of_a_document_that_others_keep_writing_pauses_between_its_tries() {
    let tries = AtomicUsize::new(0);
    let (upstream, _) = fake::permitting(move |asked| match asked.method {
        Method::DELETE if tries.fetch_add(1, Ordering::Relaxed) < 8 => refused(409, "Conflict", "modified"),
        Method::GET => {
            let mut object = room("a", "7", &json!({"door": "red"}));
            object["metadata"]["labels"] = json!({"tier": "gold"});
            (200, object)
        }
        _ => stores(asked),
    });
    let mut selecting = Arc::into_inner(view(Rooms::default())).unwrap();
    selecting.lens.served.selector = [("tier".to_owned(), "gold".to_owned())].into();
    let provider = Arc::new(One(Arc::new(selecting)));
    let app = fake::app_of(fake::users(), fake::cluster(), upstream, provider);
    let began = tokio::time::Instant::now();
    assert_eq!(fake::answer(&app, request("DELETE", "/rooms/a", None)).await.status(), 204);
    assert!(!began.elapsed().is_zero());
}

#[tokio::test]
async fn a_watch_has_each_change_as_a_document_and_says_how_far_it_is() {
    let line = |kind: &str, object: Value| json!({"type": kind, "object": object}).to_string() + "\n";
    let events = [
        line("ADDED", room("hall", "5", &json!({"door": "red", "key": "s3cr3t"}))),
        line("MODIFIED", room("attic", "6", &json!({"door": "red"}))),
        line(
            "BOOKMARK",
            json!({"metadata": {"resourceVersion": "6", "annotations": {"k8s.io/initial-events-end": "true"}}}),
        ),
        line("DELETED", room("hall", "7", &json!({"door": "stuck"}))),
        line("ERROR", json!({"code": 410, "reason": "Expired"})),
    ];
    let (upstream, log) = fake::raw_upstream(move |_| (200, Sent::from(events.concat())));
    let app = served_by(upstream);
    let given = fake::answer(&app, request("GET", "/rooms?watch=true&search=hall", None)).await;
    assert_eq!(given.headers()["content-type"], "text/event-stream");
    let text = given.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8_lossy(&text);
    let blocks: Vec<&str> = text.split_terminator("\n\n").collect();
    assert_eq!(
        blocks,
        [
            "event: added\nid: 5000000\ndata: {\"name\":\"hall\",\"namespace\":\"default\",\"resourceVersion\":\"5000000\",\"door\":\"red\"}",
            "event: bookmark\nid: 6000000\ndata: {\"initialEventsEnd\":true,\"resourceVersion\":\"6000000\"}",
            "event: deleted\nid: 7000000\ndata: {\"name\":\"hall\",\"namespace\":\"default\",\"resourceVersion\":\"7000000\"}",
            "event: reset\ndata: {}",
        ]
    );
    let line = log.lock().unwrap()[0].line();
    assert!(line.contains("watch=true") && line.contains("sendInitialEvents=true"), "{line}");
}

#[tokio::test]
async fn a_watch_goes_on_from_the_last_event_and_of_another_epoch_begins_anew() {
    let (upstream, log) = fake::raw_upstream(|_| (200, Sent::empty()));
    let app = served_by(upstream);
    let watch = |id: &str| with(request("GET", "/rooms?watch=true", None), "last-event-id", id);
    let text = |given: Response| async {
        String::from_utf8_lossy(&given.into_body().collect().await.unwrap().to_bytes()).into_owned()
    };
    let resumed = text(fake::answer(&app, watch("5000000")).await).await;
    assert_eq!(resumed, "event: bye\ndata: {\"reason\":\"renew\"}\n\n");
    assert!(log.lock().unwrap()[0].line().contains("resourceVersion=5&"));
    let reset = text(fake::answer(&app, watch("5000001")).await).await;
    assert_eq!((reset.as_str(), log.lock().unwrap().len()), ("event: reset\ndata: {}\n\n", 1));
}

#[test]
fn a_refusal_becomes_a_problem_with_all_of_its_parts() {
    let body = json!({"message": "later", "reason": "TooManyRequests", "details": {"retryAfterSeconds": 3}});
    let problem = Problem::from(Refusal::of_answer(Doing::List, 429, None, &body));
    assert_eq!(problem.document()["title"], "Error");
    assert_eq!(problem.retry_after.map(|after| after.as_secs()), Some(3));
}
