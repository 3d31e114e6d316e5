//! Who may do what, as whom requests are made, and requests that change nothing.

use futures::StreamExt;
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, PostParams},
    client::Body,
    runtime::watcher,
};
use pintle_simulator::{Access, Act, Action, ApiServer, Options, User, Verb, Verdict};
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default", "labels": {"of": name}}})
}

fn server() -> (ApiServer, Client) {
    let server = ApiServer::new(Options::default());
    let client = Client::new(server.service("test"), "default");
    (server, client)
}

async fn send(client: &Client, request: http::request::Builder, body: Value) -> (u16, Value) {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let response = client.send(request.body(Body::from(body)).unwrap()).await.unwrap();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}

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
    server.act("somebody", &Act::Create(map("a"))).unwrap();
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
async fn a_dry_run_answers_as_if_and_changes_nothing() {
    let (server, client) = server();
    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let parameters = PostParams { dry_run: true, ..PostParams::default() };
    let made = api.create(&parameters, &serde_json::from_value(map("a")).unwrap()).await.unwrap();
    assert!(made.metadata.uid.is_some() && made.metadata.resource_version.is_none());
    assert!(api.get_opt("a").await.unwrap().is_none());
    server.act("somebody", &Act::Create(map("a"))).unwrap();
    let version = server.version();
    let (code, changed) = send(
        &client,
        http::Request::patch(format!("{MAPS}/a?dryRun=All"))
            .header("content-type", "application/merge-patch+json"),
        json!({"data": {"x": "y"}}),
    )
    .await;
    assert_eq!((code, changed["data"]["x"].as_str()), (200, Some("y")));
    assert_eq!(changed["metadata"]["resourceVersion"], version.to_string());
    api.delete("a", &DeleteParams { dry_run: true, ..DeleteParams::default() }).await.unwrap();
    assert_eq!(server.version(), version);
    let records = server.requests();
    assert!(records.iter().filter(|record| record.seen.dry_run).all(|record| !record.changed()));
    assert_eq!(records.iter().filter(|record| record.seen.dry_run).count(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_collection_is_deleted_as_far_as_it_is_selected() {
    let (server, client) = server();
    for name in ["a", "b", "c"] {
        server.act("somebody", &Act::Create(map(name))).unwrap();
    }
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let some = ListParams::default().labels("of in (a, b)");
    let gone = api.delete_collection(&DeleteParams::default(), &some).await.unwrap();
    let gone = gone.left().expect("a list").items;
    assert_eq!(gone.into_iter().filter_map(|map| map.metadata.name).collect::<Vec<_>>(), ["a", "b"]);
    let left = api.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(left.into_iter().filter_map(|map| map.metadata.name).collect::<Vec<_>>(), ["c"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_asks_for_it_begins_with_what_there_is() {
    let (server, client) = server();
    server.act("somebody", &Act::Create(map("a"))).unwrap();
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let mut stream = std::pin::pin!(watcher(api, watcher::Config::default().streaming_lists()));
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(match stream.next().await.unwrap().unwrap() {
            watcher::Event::Init => "init".to_owned(),
            watcher::Event::InitApply(map) => format!("has {}", map.metadata.name.unwrap()),
            watcher::Event::InitDone => "listed".into(),
            other => format!("{other:?}"),
        });
    }
    assert_eq!(seen, ["init", "has a", "listed"]);
    server.act("somebody", &Act::Create(map("b"))).unwrap();
    let next = stream.next().await.unwrap().unwrap();
    assert!(matches!(next, watcher::Event::Apply(map) if map.metadata.name.as_deref() == Some("b")));
    let verbs: Vec<Verb> = server.requests().iter().map(|record| record.seen.verb).collect();
    assert_eq!(verbs, [Verb::Create, Verb::Watch, Verb::Create], "nothing is listed");
}

#[tokio::test(start_paused = true)]
async fn a_page_that_comes_too_late_has_expired() {
    let (server, client) = server();
    for name in ["a", "b"] {
        server.act("somebody", &Act::Create(map(name))).unwrap();
    }
    let (_, page) = send(&client, http::Request::get(format!("{MAPS}?limit=1")), Value::Null).await;
    let token = page["metadata"]["continue"].as_str().unwrap().replace('/', "%2F");
    let next = format!("{MAPS}?limit=1&continue={token}");
    assert_eq!(send(&client, http::Request::get(&next), Value::Null).await.0, 200);
    server.act("somebody", &Act::Create(map("c"))).unwrap();
    server.compact();
    let (code, status) = send(&client, http::Request::get(&next), Value::Null).await;
    assert_eq!((code, status["reason"].as_str()), (410, Some("Expired")));
}
