//! Who may do what, as whom requests are made, requests that change nothing, and pages that come too late.

use pintle_simulator::{Access, Act, Action, User, Verb, Verdict};
use serde_json::{Value, json};

use super::{MAPS, config_map, send, server};

/// Jane may read what is in the namespace `default`, and the token `secret` is hers.
struct Jane;

impl Access for Jane {
    fn owner(&mut self, token: &str) -> Option<User> {
        let jane = User { groups: vec!["readers".into()], ..User::named("jane") };
        (token == "secret").then_some(jane)
    }

    fn may(&mut self, user: &User, action: &Action) -> Verdict {
        let reads = ["get", "list", "watch"].contains(&action.verb.as_str()) && action.namespace == "default";
        match user.name != "jane" || reads {
            true => Verdict::Allowed,
            false => Verdict::NotAllowed("a reader".into()),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_is_refused_what_the_user_may_not_do_whom_it_impersonates() {
    let (server, client) = server();
    server.act("somebody", &Act::Create(config_map("a", "1"))).unwrap();
    server.set_access(Box::new(Jane));
    server.take_requests();
    let as_jane = |method: &str, uri: &str| {
        http::Request::builder()
            .method(method)
            .uri(uri)
            .header("impersonate-user", "jane")
            .header("impersonate-group", "readers")
            .header("impersonate-uid", "u-1")
    };
    assert_eq!(send(&client, as_jane("GET", &format!("{MAPS}/a")), Value::Null).await.0, 200);
    let (code, status) = send(&client, as_jane("DELETE", &format!("{MAPS}/a")), Value::Null).await;
    assert_eq!((code, status["reason"].as_str()), (403, Some("Forbidden")));
    assert_eq!(
        status["message"],
        r#"configmaps "a" is forbidden: User "jane" cannot delete resource "configmaps" in API group "" in the namespace "default": a reader"#
    );
    let (code, _) = send(&client, http::Request::delete(format!("{MAPS}/a")), Value::Null).await;
    assert_eq!(code, 200, "the client itself may");
    let seen: Vec<_> = server.requests().into_iter().map(|record| (record.seen.actor, record.code)).collect();
    assert_eq!(seen, [("jane".into(), 200), ("jane".into(), 403), ("test".into(), 200)]);
    let jane = User { uid: "u-1".into(), groups: vec!["readers".into()], ..User::named("jane") };
    assert_eq!(server.requests()[0].seen.impersonated, Some(jane));
}

#[tokio::test(start_paused = true)]
async fn reviews_say_who_somebody_is_and_what_they_may_do() {
    let (server, client) = server();
    server.set_access(Box::new(Jane));
    let review = async |group: &str, resource: &str, spec: Value| {
        let uri = format!("/apis/{group}/v1/{resource}");
        let (code, body) = send(&client, http::Request::post(uri), json!({"spec": spec})).await;
        assert_eq!(code, 201, "{body}");
        body["status"].clone()
    };
    let token =
        async |token: &str| review("authentication.k8s.io", "tokenreviews", json!({"token": token})).await;
    let jane = json!({"username": "jane", "groups": ["readers"]});
    assert_eq!(token("secret").await, json!({"authenticated": true, "user": jane}));
    assert_eq!(token("other").await["authenticated"], Value::Null);
    let access = async |user: &str, verb: &str| {
        let attributes = json!({"verb": verb, "resource": "configmaps", "namespace": "default"});
        let spec = json!({"user": user, "resourceAttributes": attributes});
        review("authorization.k8s.io", "subjectaccessreviews", spec).await
    };
    assert_eq!(access("jane", "list").await, json!({"allowed": true}));
    assert_eq!(access("jane", "create").await, json!({"allowed": false, "reason": "a reader"}));
    assert_eq!(access("joe", "create").await, json!({"allowed": true}));
    let verbs: Vec<Verb> = server.requests().iter().map(|record| record.seen.verb).collect();
    assert_eq!(verbs, [Verb::Review; 5]);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_is_recorded_as_one_that_changes_nothing() {
    let (server, client) = server();
    server.act("somebody", &Act::Create(config_map("a", "1"))).unwrap();
    let version = server.version();
    let patch = http::Request::patch(format!("{MAPS}/a?dryRun=All"))
        .header("content-type", "application/merge-patch+json");
    assert_eq!(send(&client, patch, json!({"data": {"key": "2"}})).await.1["data"]["key"], "2");
    let delete = http::Request::delete(format!("{MAPS}/a"));
    assert_eq!(send(&client, delete, json!({"dryRun": ["All"]})).await.0, 200);
    assert_eq!(server.version(), version);
    let records = server.requests();
    assert!(records[1..].iter().all(|record| record.seen.dry_run && !record.changed()), "{records:?}");
}

#[tokio::test(start_paused = true)]
async fn a_page_that_comes_too_late_has_expired() {
    let (server, client) = server();
    for name in ["a", "b"] {
        server.act("somebody", &Act::Create(config_map(name, "1"))).unwrap();
    }
    let (_, page) = send(&client, http::Request::get(format!("{MAPS}?limit=1")), Value::Null).await;
    let token = page["metadata"]["continue"].as_str().unwrap().replace('/', "%2F");
    let next = format!("{MAPS}?limit=1&continue={token}");
    assert_eq!(send(&client, http::Request::get(&next), Value::Null).await.0, 200);
    server.act("somebody", &Act::Create(config_map("c", "1"))).unwrap();
    server.compact();
    let (code, status) = send(&client, http::Request::get(&next), Value::Null).await;
    assert_eq!((code, status["reason"].as_str()), (410, Some("Expired")));
}
