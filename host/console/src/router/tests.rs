//! What comes in from people who mean no good, and from pages of ours.

use axum::body::Body;
use futures::FutureExt;
use http::Request;
use serde_json::json;

use crate::{
    app::REQUESTS,
    fake::{self, answer, ask, knows_ann, request, upstream},
};

/// A request to the door of this machine.
fn at_home(method: &str, path: &str, headers: &[(&str, &str)], body: &'static str) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::from(body)).unwrap()
}

const HOST: (&str, &str) = ("host", "127.0.0.1:4711");
const JSON: (&str, &str) = ("content-type", "application/json");

#[tokio::test]
async fn every_answer_has_the_headers_whatever_becomes_of_the_request() {
    let (client, _) = upstream(knows_ann);
    let app = fake::app(fake::local().0, client);
    for (request, status) in [
        (at_home("GET", "/console/", &[HOST], ""), 200),
        (at_home("GET", "/", &[HOST], ""), 302),
        (at_home("GET", "/console", &[HOST], ""), 302),
        (at_home("GET", "/console/engine", &[HOST, ("accept", "text/html")], ""), 200),
        (at_home("GET", "/console/assets/x-1234.js", &[HOST, ("accept", "text/html")], ""), 404),
        // It could be the path of documents, which nobody is told who does not say who it is.
        (at_home("GET", "/nothing", &[HOST, ("accept", "text/html")], ""), 401),
        (at_home("GET", "/api/v1/nothing", &[HOST], ""), 404),
        (at_home("GET", "/api/v1/session", &[HOST], ""), 401),
        (at_home("PATCH", "/api/v1/session", &[HOST, JSON], ""), 405),
        (at_home("BREW", "/api/v1/session", &[HOST], ""), 405),
        (at_home("TRACE", "/console/", &[HOST], ""), 405),
        (at_home("GET", "/console/", &[("host", "evil.test")], ""), 421),
        (at_home("GET", "/console/", &[], ""), 400),
        (at_home("GET", "/healthz", &[("host", "10.0.0.1:8080")], ""), 200),
    ] {
        let line = format!("{} {}", request.method(), request.uri());
        let given = answer(&app, request).await;
        assert_eq!(given.status(), status, "{line}");
        let header =
            |name: &str| given.headers().get(name).map(|value| value.to_str().unwrap()).unwrap_or_default();
        let policy = header("content-security-policy");
        for part in
            ["default-src 'none'", "frame-ancestors 'none'", "trusted-types pintle-worker", "base-uri 'none'"]
        {
            assert!(policy.contains(part), "{line}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(header(name), value, "{line}");
        }
        assert!(
            header("permissions-policy").contains("camera=()") && !header("cache-control").is_empty(),
            "{line}"
        );
        assert_eq!(header("access-control-allow-origin"), "", "{line}");
        if status >= 400 {
            assert_eq!(header("content-type"), "application/problem+json", "{line}");
        }
    }
}

#[tokio::test]
async fn who_names_json_alone_is_told_a_problem_as_json() {
    let app = fake::app(fake::local().0, upstream(knows_ann).0);
    let problem = "application/problem+json";
    for (accept, form) in
        [("application/json", "application/json"), ("application/json, */*", problem), ("text/html", problem)]
    {
        let asks = at_home("GET", "/api/v1/nothing", &[HOST, ("accept", accept)], "");
        assert_eq!(answer(&app, asks).await.headers()["content-type"], form, "{accept}");
    }
}

#[tokio::test]
async fn without_the_secret_nothing_is_read_and_with_it_the_kubeconfig_is_used() {
    let (client, log) = upstream(knows_ann);
    let (door, secret) = fake::local();
    let shown = ("authorization", secret.as_str());
    let app = fake::app(door, client);
    let (code, problem) = ask(&app, at_home("GET", "/api/v1/session", &[HOST], "")).await;
    assert_eq!(
        (code, &problem["mode"], &problem["reason"]),
        (401, &json!("local"), &json!("SessionRequired"))
    );
    let (basic, cookie) =
        (secret.replace("Bearer", "Basic"), secret.replace("Bearer ", "pintle-console-4711="));
    for headers in [
        vec![HOST, ("cookie", cookie.as_str())],
        vec![HOST, ("authorization", "Bearer abc")],
        vec![HOST, ("authorization", &basic)],
        vec![HOST, shown, shown],
    ] {
        // Documents and streams as well, whose paths are not in the table of endpoints.
        for path in ["/api/v1/session", "/darkrooms", "/darkrooms?watch=true", "/api/v1/stream?watch=v1/pods"]
        {
            assert_eq!(ask(&app, at_home("GET", path, &headers, "")).await.0, 401, "{path} {headers:?}");
        }
    }
    assert!(log.lock().unwrap().is_empty());
    let (code, session) = ask(&app, at_home("GET", "/api/v1/session", &[HOST, shown], "")).await;
    assert_eq!(code, 200);
    assert_eq!(
        session,
        json!({"mode": "local", "user": {"name": "ann", "groups": ["dev"]}, "version": "0.1.0",
            "cluster": "https://api.test", "context": null, "namespace": "blog", "expires": null})
    );
    assert!(log.lock().unwrap().iter().all(|asked| asked.header("authorization").is_none()));
}

#[tokio::test]
async fn a_body_is_small_and_of_a_page_of_ours_in_a_form_that_no_other_site_sends() {
    let (client, log) = upstream(knows_ann);
    let (door, secret) = fake::local();
    let shown = ("authorization", secret.as_str());
    let app = fake::app(door, client);
    let checks = || r#"{"checks": []}"#.to_owned();
    for (body, headers, status) in [
        (checks(), vec![HOST, JSON], 401),
        (checks(), vec![HOST, shown, ("content-type", "text/plain")], 415),
        (checks(), vec![HOST, shown, ("content-type", "application/x-www-form-urlencoded")], 415),
        (checks(), vec![HOST, shown, ("content-type", "multipart/form-data; boundary=x")], 415),
        (checks(), vec![HOST, shown], 415),
        (checks(), vec![HOST, shown, JSON, ("origin", "http://evil.test")], 403),
        (checks(), vec![HOST, shown, JSON, ("sec-fetch-site", "cross-site")], 403),
        (checks(), vec![("host", "evil.test:4711"), shown, JSON, ("origin", "http://evil.test:4711")], 421),
        ("{".into(), vec![HOST, shown, JSON], 400),
        ("[]".into(), vec![HOST, shown, JSON], 422),
        (r#"{"checks": [], "more": 1}"#.into(), vec![HOST, shown, JSON], 422),
        (" ".repeat(2 << 20), vec![HOST, shown, JSON], 413),
        (checks(), vec![HOST, shown, JSON], 200),
    ] {
        let mut request = at_home("POST", "/api/v1/can", &headers, "");
        *request.body_mut() = body.into();
        assert_eq!(answer(&app, request).await.status(), status, "{headers:?}");
    }
    assert!(log.lock().unwrap().is_empty());
}

#[tokio::test]
async fn who_is_not_known_holds_no_place_and_needs_none() {
    let (client, _) = upstream(|_| fake::refused(401, "Unauthorized", "Unauthorized"));
    let app = fake::app(fake::cluster(), client);
    let places = app.requests.acquire_many(REQUESTS as u32).await.unwrap();
    let mut stranger = request("GET", "/api/v1/session", None);
    stranger.headers_mut().insert("authorization", "Bearer made-up".parse().unwrap());
    assert_eq!(ask(&app, stranger).await.0, 401);
    assert_eq!(ask(&app, request("GET", "/api/v1/session", None)).now_or_never(), None, "ann waits");
    drop(places);
    assert_eq!(ask(&app, request("GET", "/api/v1/session", None)).await.0, 200);
}

#[tokio::test]
async fn in_a_cluster_the_token_of_the_caller_is_sent_on_and_nothing_else_of_the_request() {
    let (client, log) = upstream(knows_ann);
    let app = fake::app_of_strangers(fake::cluster(), client);
    let mut asks = request("GET", "/api/v1/session", None);
    for (name, value) in
        [("impersonate-user", "root"), ("x-remote-user", "root"), ("cookie", "a=b"), ("user-agent", "x")]
    {
        asks.headers_mut().insert(name, value.parse().unwrap());
    }
    let (code, session) = ask(&app, asks).await;
    assert_eq!((code, &session["mode"]), (200, &json!("token")));
    let log = log.lock().unwrap();
    let [asked] = &log[..] else { panic!("{log:?}") };
    assert_eq!(asked.header("authorization"), Some("Bearer ann-token"));
    let mut names: Vec<&str> = asked.headers.keys().map(http::HeaderName::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["accept", "authorization", "content-type"]);
}

#[tokio::test]
async fn a_token_that_is_none_is_not_sent_and_one_that_is_not_accepted_gets_nothing() {
    let (client, log) = upstream(|_| fake::refused(401, "Unauthorized", "Unauthorized"));
    let app = fake::app_of_strangers(fake::cluster(), client);
    for token in ["", "Bearer", "Bearer ", "Basic YTpi", "Bearer a b", "Bearer a\tb"] {
        let mut asks = request("GET", "/api/v1/session", None);
        asks.headers_mut().insert("authorization", token.parse().unwrap());
        let (code, problem) = ask(&app, asks).await;
        assert_eq!((code, &problem["mode"]), (401, &json!("token")), "{token}");
    }
    assert!(log.lock().unwrap().is_empty(), "an empty token would be anonymous");
    let (code, problem) = ask(&app, request("GET", "/api/v1/session", None)).await;
    assert_eq!((code, &problem["mode"], &problem["detail"]), (401, &json!("token"), &json!("Unauthorized")));
    assert!(!problem.to_string().contains("ann-token"));
}

#[tokio::test]
async fn whoever_the_api_server_takes_for_nobody_is_let_in_nowhere() {
    let (client, _) = upstream(|_| (201, json!({"status": {"userInfo": {"username": "system:anonymous"}}})));
    let app = fake::app_of_strangers(fake::cluster(), client);
    assert_eq!(ask(&app, request("GET", "/api/v1/session", None)).await.0, 401);
}

#[tokio::test]
async fn only_listed_origins_are_told_that_they_may_call() {
    let (client, log) = upstream(knows_ann);
    let app = fake::app_of_strangers(fake::cluster(), client);
    let preflight = |origin: &str| {
        Request::options("/api/v1/session")
            .header("host", "console.test")
            .header("origin", origin)
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "authorization")
            .body(Body::empty())
            .unwrap()
    };
    let given = answer(&app, preflight("https://tools.test")).await;
    assert_eq!(
        (given.status().as_u16(), &given.headers()["access-control-allow-origin"]),
        (200, &"https://tools.test".parse().unwrap())
    );
    assert_eq!(given.headers()["access-control-allow-headers"], "authorization,content-type,if-match");
    assert!(!given.headers().contains_key("access-control-allow-credentials"));
    for origin in ["https://evil.test", "null", "http://tools.test", "https://tools.test.evil.test"] {
        let given = answer(&app, preflight(origin)).await;
        assert_eq!(given.status(), 403, "{origin}");
        assert!(!given.headers().contains_key("access-control-allow-origin"));
    }
    let mut asks = request("GET", "/api/v1/session", None);
    asks.headers_mut().insert("origin", "https://tools.test".parse().unwrap());
    let given = answer(&app, asks).await;
    assert_eq!((given.status().as_u16(), &given.headers()["vary"]), (200, &"origin".parse().unwrap()));
    assert_eq!(log.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn questions_are_asked_as_the_caller_and_answered_in_order() {
    let (client, log) = upstream(|asked| {
        let verb = asked.json()["spec"]["resourceAttributes"]["verb"].clone();
        (201, json!({"status": {"allowed": verb == "get"}}))
    });
    let app = fake::app(fake::cluster(), client);
    let check = |verb: &str| json!({"verb": verb, "group": "a.b", "resource": "c", "namespace": "n"});
    let checks = json!({"checks": [check("get"), check("delete"), check("get")]});
    let (code, allowed) = ask(&app, request("POST", "/api/v1/can", Some(checks))).await;
    assert_eq!((code, allowed), (200, json!({"allowed": [true, false, true]})));
    assert!(
        log.lock().unwrap().iter().all(|asked| asked.header("authorization") == Some("Bearer ann-token"))
    );
    let many = json!({"checks": vec![check("get"); 65]});
    assert_eq!(ask(&app, request("POST", "/api/v1/can", Some(many))).await.0, 422);
}
