//! For whom guests work, and how much an answer has.

use super::*;
use crate::watches::WATCHES_OF_ONE_MAX;

/// Every request for documents that there is, as a merge patch where it changes one.
fn every_request(token: &str) -> Vec<Request> {
    let document = json!({"name": "a", "door": "red", "resourceVersion": "7000000"});
    let all = [
        request("GET", "/rooms", None),
        request("GET", "/rooms?watch=true", None),
        request("GET", "/rooms/a", None),
        request("POST", "/rooms?dryRun=All", Some(document.clone())),
        request("POST", "/rooms", Some(document.clone())),
        request("PUT", "/rooms/a", Some(document.clone())),
        patch(document),
        request("DELETE", "/rooms/a", None),
    ];
    all.map(|request| with(request, "authorization", &format!("Bearer {token}"))).into()
}

#[tokio::test]
async fn no_guest_works_for_a_token_that_nobody_has() {
    let (upstream, log) = fake::upstream(|asked| match asked.header("authorization") {
        Some("Bearer ann-token") => stores(asked),
        _ => refused(401, "Unauthorized", "Unauthorized"),
    });
    let calls = Arc::<AtomicUsize>::default();
    let app = served_with(Rooms(Arc::clone(&calls)), upstream);
    for request in every_request("made-up") {
        let line = format!("{} {}", request.method(), request.uri());
        assert_eq!(fake::ask(&app, request).await.0, 401, "{line}");
    }
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    let log = log.lock().unwrap();
    assert!(
        log.iter().all(|asked| asked.path.ends_with("/selfsubjectreviews")),
        "nothing else is asked for them"
    );
}

#[tokio::test]
async fn no_guest_works_for_who_may_not_do_it_to_the_object_behind() {
    // Ann may read rooms, and Bob may not even do that.
    let (upstream, log) = fake::upstream(|asked| match asked.path.rsplit('/').next() {
        Some("selfsubjectreviews") => (201, json!({"status": {"userInfo": {"username": "bob"}}})),
        Some("selfsubjectaccessreviews") => (201, json!({"status": {"allowed": false}})),
        _ if asked.method == Method::GET && asked.header("authorization") == Some("Bearer ann-token") => {
            stores(asked)
        }
        _ => refused(403, "Forbidden", "rooms is forbidden"),
    });
    let calls = Arc::<AtomicUsize>::default();
    let app = served_with(Rooms(Arc::clone(&calls)), upstream);
    for request in every_request("bob-token") {
        let line = format!("{} {}", request.method(), request.uri());
        let (code, problem) = fake::ask(&app, request).await;
        assert_eq!((code, &problem["reason"]), (403, &json!("Forbidden")), "{line}");
    }
    for request in every_request("ann-token").into_iter().filter(|request| request.method() != Method::GET) {
        assert_eq!(fake::ask(&app, request).await.0, 403);
    }
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    let (code, problem) =
        fake::ask(&app, request("POST", "/rooms?namespace=n", Some(json!({"name": "a"})))).await;
    assert_eq!(
        (code, problem["details"].as_str().unwrap()),
        (
            403,
            "Could not create object: rooms.example.com is forbidden: User \"ann\" cannot create resource \"rooms\" in API group \
             \"example.com\" in the namespace \"n\""
        )
    );
    let log = log.lock().unwrap();
    let mut asked: Vec<Value> = log
        .iter()
        .filter(|asked| asked.path.ends_with("/selfsubjectaccessreviews"))
        .filter(|asked| asked.header("authorization") == Some("Bearer ann-token"))
        .map(|asked| asked.json()["spec"]["resourceAttributes"].clone())
        .collect();
    let attributes = |verb: &str, namespace: &str, name: Option<&str>| json!({"verb": verb, "group": "example.com", "resource": "rooms", "subresource": null, "namespace": namespace, "name": name});
    assert_eq!(asked.pop(), Some(attributes("create", "n", None)));
    let each_once = [attributes("create", "default", None), attributes("patch", "default", Some("a"))];
    assert_eq!(asked, each_once);
}

#[tokio::test]
async fn a_watch_is_one_of_its_user() {
    let (upstream, _) = fake::raw_upstream(|_| {
        let held = futures::stream::pending::<Result<bytes::Bytes, std::io::Error>>();
        (200, Sent::from_stream(held))
    });
    let app = served_by(upstream);
    let ann = app.known(request("GET", "/", None).headers()).await.unwrap();
    let others = app.watches.acquire(&ann, WATCHES_OF_ONE_MAX - 1).unwrap();
    let follow = || fake::answer(&app, request("GET", "/rooms?watch=true", None));
    let watch = follow().await;
    assert_eq!((watch.status().as_u16(), follow().await.status().as_u16()), (200, 429));
    drop(others);
    assert_eq!(follow().await.status(), 200);
}

#[tokio::test]
async fn a_page_of_large_documents_has_as_many_as_fit_and_the_next_begins_behind_them() {
    let (app, log) = app(|asked| {
        let (_, limit) = asked.path.split_once("limit=").unwrap();
        let limit: usize = limit.split('&').next().unwrap().parse().unwrap();
        let large = json!({"door": "red", "note": "x".repeat(1 << 20)});
        let items: Vec<Value> =
            (0..limit.min(40)).map(|number| room(&format!("room-{number}"), "5", &large)).collect();
        (
            200,
            json!({"metadata": {"resourceVersion": "7", "continue": format!("behind-{limit}")}, "items": items}),
        )
    });
    let (code, list) = fake::ask(&app, request("GET", "/rooms", None)).await;
    assert_eq!((code, list["items"].as_array().map(Vec::len)), (200, Some(7)));
    let next = list["continue"].as_str().unwrap();
    fake::ask(&app, request("GET", &format!("/rooms?limit=3&continue={next}"), None)).await;
    let lines: Vec<String> = log.lock().unwrap().iter().map(Asked::line).collect();
    assert_eq!(
        lines,
        [
            "GET /apis/example.com/v1/rooms?limit=500",
            "GET /apis/example.com/v1/rooms?limit=7",
            "GET /apis/example.com/v1/rooms?limit=3&continue=behind-7"
        ]
    );
}
