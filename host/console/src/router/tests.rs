//! What comes in from people who mean no good, and from pages of ours.

use std::sync::Arc;

use axum::body::Body;
use http::Request;
use serde_json::json;

use crate::{
    door::{Door, local::Local},
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
async fn without_the_cookie_and_the_token_nothing_is_read_and_with_them_the_kubeconfig_is_used() {
    let (client, log) = upstream(knows_ann);
    let (door, shown) = fake::local();
    let [(_, cookie), (_, bearer)] = &shown;
    let (cookie, bearer) = (("cookie", cookie.as_str()), ("authorization", bearer.as_str()));
    let app = fake::app(door, client);
    let (code, problem) = ask(&app, at_home("GET", "/api/v1/session", &[HOST], "")).await;
    assert_eq!(
        (code, &problem["mode"], &problem["reason"]),
        (401, &json!("local"), &json!("SessionRequired"))
    );
    let other = cookie.1.replace("4711", "4712");
    let basic = bearer.1.replace("Bearer", "Basic");
    for headers in [
        vec![HOST, cookie],
        vec![HOST, bearer],
        vec![HOST, ("cookie", &other), bearer],
        vec![HOST, cookie, ("authorization", "Bearer abc")],
        vec![HOST, cookie, ("authorization", &basic)],
        vec![HOST, cookie, bearer, bearer],
    ] {
        // Documents and streams as well, whose paths are not in the table of endpoints.
        for path in ["/api/v1/session", "/darkrooms", "/darkrooms?watch=true", "/api/v1/stream?watch=v1/pods"]
        {
            assert_eq!(ask(&app, at_home("GET", path, &headers, "")).await.0, 401, "{path} {headers:?}");
        }
    }
    assert!(log.lock().unwrap().is_empty());
    let (code, session) = ask(&app, at_home("GET", "/api/v1/session", &[HOST, cookie, bearer], "")).await;
    assert_eq!(code, 200);
    assert_eq!(
        session,
        json!({"mode": "local", "user": {"name": "ann", "groups": ["dev"]}, "version": "0.1.0",
            "cluster": "https://api.test", "context": null, "expires": null})
    );
    let log = log.lock().unwrap();
    assert!(
        log.iter().all(|asked| asked.header("authorization").is_none() && asked.header("cookie").is_none())
    );
}

#[tokio::test]
async fn the_secret_is_given_a_cookie_and_a_token_and_nothing_else_is() {
    let (client, log) = upstream(knows_ann);
    let local = Arc::new(Local::new(4711));
    let app = fake::app(Door::local(Arc::clone(&local)), client);
    let url = local.address().unwrap().url;
    let (_, secret) = url.split_once('#').unwrap();
    let post = |body: String, headers: &[(&str, &str)]| {
        let mut request = at_home("POST", "/api/v1/session", headers, "");
        *request.body_mut() = body.into();
        request
    };
    let shown = json!({"secret": secret}).to_string();
    for (body, headers, status) in [
        (json!({"secret": "0"}).to_string(), vec![HOST, JSON], 401),
        (shown.clone(), vec![HOST, ("content-type", "text/plain")], 415),
        (shown.clone(), vec![HOST, ("content-type", "application/x-www-form-urlencoded")], 415),
        (shown.clone(), vec![HOST, ("content-type", "multipart/form-data; boundary=x")], 415),
        (shown.clone(), vec![HOST], 415),
        (shown.clone(), vec![HOST, JSON, ("origin", "http://evil.test")], 403),
        (shown.clone(), vec![HOST, JSON, ("sec-fetch-site", "cross-site")], 403),
        (shown.clone(), vec![("host", "evil.test:4711"), JSON, ("origin", "http://evil.test:4711")], 421),
        ("{".into(), vec![HOST, JSON], 400),
        ("[]".into(), vec![HOST, JSON], 422),
        (json!({"secret": secret, "more": 1}).to_string(), vec![HOST, JSON], 422),
        (json!({"secret": "x".repeat(2 << 20)}).to_string(), vec![HOST, JSON], 413),
    ] {
        let given = answer(&app, post(body, &headers)).await;
        assert_eq!(given.status(), status, "{headers:?}");
        assert!(!given.headers().contains_key("set-cookie"));
    }
    // None of them used it up.
    let given = answer(&app, post(shown, &[HOST, JSON])).await;
    assert_eq!(given.status(), 200);
    assert!(given.headers()["set-cookie"].to_str().unwrap().contains("HttpOnly; SameSite=Strict"));
    assert_eq!(given.headers()["cache-control"], "no-store");
    assert!(log.lock().unwrap().is_empty());
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
        (204, &"https://tools.test".parse().unwrap())
    );
    assert_eq!(given.headers()["access-control-allow-headers"], "authorization, content-type, if-match");
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
async fn parameters_that_nobody_knows_are_refused_and_not_passed_on() {
    let (client, log) = upstream(knows_ann);
    let app = fake::app(fake::cluster(), client);
    for path in [
        "/api/v1/session?watch=true",
        "/api/v1/namespaces?limit=1",
        &format!("/api/v1/session?a={}", "b".repeat(40_000)),
    ] {
        assert_eq!(ask(&app, request("GET", path, None)).await.0, 400, "{}", path.len());
    }
    assert!(log.lock().unwrap().is_empty());
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
