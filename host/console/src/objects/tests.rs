use super::*;
use crate::fake::{self, Asked, ask, refused, request, upstream};

const BASE: &str = "/api/v1/objects/deployments.example.com/v1/darkrooms";
const ROOT: &str = "/apis/deployments.example.com/v1";

fn room(name: &str) -> Value {
    json!({"apiVersion": "deployments.example.com/v1", "kind": "Darkroom",
        "metadata": {"name": name, "namespace": "a", "resourceVersion": "7", "managedFields": [{}]}, "spec": {"type": "S3"}})
}

fn echo(asked: &Asked) -> (u16, Value) {
    match asked.method {
        Method::POST => (201, asked.json()),
        Method::DELETE => (200, json!({"kind": "Status", "status": "Success"})),
        _ => (200, room("b")),
    }
}

#[tokio::test]
async fn a_list_is_asked_for_as_it_is_meant_and_given_as_rows() {
    let (client, log) = upstream(|_| {
        (
            200,
            json!({"metadata": {"resourceVersion": "9", "continue": "next", "remainingItemCount": 3},
            "items": [room("blue-one"), room("red"), room("two-Blue")]}),
        )
    });
    let app = fake::app(fake::cluster(), client);
    let query = "?namespace=a&labelSelector=x%20in%20(y)%26watch%3D1&search=BLUE&limit=3&continue=t%2B&fields=spec.type";
    let (code, list) = ask(&app, request("GET", &format!("{BASE}{query}"), None)).await;
    assert_eq!(code, 200);
    assert_eq!(
        (&list["resourceVersion"], &list["continue"], &list["remaining"]),
        (&json!("9"), &json!("next"), &json!(3))
    );
    let names: Vec<&Value> = list["items"].as_array().unwrap().iter().map(|row| &row["name"]).collect();
    assert_eq!(names, ["blue-one"], "names of objects are in lower case");
    assert_eq!(list["items"][0]["fields"], json!({"spec.type": "S3"}));
    assert_eq!(
        log.lock().unwrap()[0].line(),
        format!(
            "GET {ROOT}/namespaces/a/darkrooms?labelSelector=x%20in%20%28y%29%26watch%3D1&continue=t%2B&limit=3"
        )
    );
    ask(&app, request("GET", BASE, None)).await;
    assert_eq!(log.lock().unwrap()[1].line(), format!("GET {ROOT}/darkrooms?limit=500"));
}

#[tokio::test]
async fn other_groups_and_names_that_are_none_reach_no_api_server() {
    let (client, log) = upstream(echo);
    let app = fake::app(fake::cluster(), client);
    for (path, status) in [
        ("/api/v1/objects/apps/v1/deployments", 404),
        ("/api/v1/objects/rbac.authorization.k8s.io/v1/clusterroles", 404),
        ("/api/v1/objects//v1/secrets", 404),
        ("/api/v1/objects/a.b%2F..%2Fapi/v1/secrets", 404),
        ("/api/v1/objects/a.b/v1%2F..%2F..%2F..%2Fapi%2Fv1/secrets", 404),
        ("/api/v1/objects/a.b/v1/..", 404),
        ("/api/v1/objects/a.b/v1/cs/namespaces/..%2F..", 405),
        ("/api/v1/objects/a.b/v1/cs/namespaces/..%2F../x", 400),
        ("/api/v1/objects/a.b/v1/cs/namespaces/n/..", 400),
        ("/api/v1/objects/a.b/v1/cs/namespaces/n/x%2Fstatus", 400),
        ("/api/v1/objects/a.b/v1/cs/namespaces/n/x%00", 400),
        ("/api/v1/objects/a.b/v1/cs/namespaces/n/%ff", 400),
        ("/api/v1/objects/a.b/v1/cs/namespaces/n/x%3Fwatch=1", 400),
        ("/api/v1/objects/a.b/v1/cs/cluster/%E2%80%AEx", 400),
        ("/api/v1/objects/a.b/v1/cs?namespace=a/b", 400),
        ("/api/v1/objects/a.b/v1/cs?watch=true", 400),
        ("/api/v1/objects/a.b/v1/cs?limit=100000", 400),
        ("/api/v1/objects/a.b/v1/cs/namespaces/n/x/status", 404),
        ("/api/v1/objects/a.b/v1/cs/namespaces/n/x/", 404),
    ] {
        assert_eq!(ask(&app, request("GET", path, None)).await.0, status, "{path}");
    }
    assert!(log.lock().unwrap().is_empty(), "{log:?}");
}

#[tokio::test]
async fn an_object_is_shown_whole_with_its_version() {
    let (client, log) = upstream(echo);
    let app = fake::app(fake::cluster(), client);
    assert_eq!(ask(&app, request("GET", &format!("{BASE}/namespaces/a/b"), None)).await.0, 200);
    let (_, object) = ask(&app, request("GET", &format!("{BASE}/cluster/b"), None)).await;
    assert_eq!(object["metadata"], json!({"name": "b", "namespace": "a", "resourceVersion": "7"}));
    let log = log.lock().unwrap();
    assert_eq!(log[0].line(), format!("GET {ROOT}/namespaces/a/darkrooms/b"));
    assert_eq!(log[1].line(), format!("GET {ROOT}/darkrooms/b"));
}

#[tokio::test]
async fn writes_are_strict_and_named_and_may_be_tried_first() {
    let (client, log) = upstream(echo);
    let app = fake::app(fake::cluster(), client);
    let of = format!("{BASE}/namespaces/a/b");
    let manner = "fieldManager=pintle-console&fieldValidation=Strict";
    let created =
        ask(&app, request("POST", &format!("{BASE}/namespaces/a?dryRun=All"), Some(room("b")))).await;
    assert_eq!((created.0, &created.1["metadata"]["managedFields"]), (201, &Value::Null));
    let change = json!({"spec": {"type": null}, "metadata": {"resourceVersion": "8"}});
    let mut patch = request("PATCH", &of, Some(change.clone()));
    patch.headers_mut().insert("content-type", MERGE_PATCH.parse().unwrap());
    assert_eq!(ask(&app, patch).await.0, 200);
    assert_eq!(
        ask(&app, request("DELETE", &format!("{of}?uid=u1&propagationPolicy=Foreground"), None)).await.0,
        200
    );
    let log = log.lock().unwrap();
    assert_eq!(log[0].line(), format!("POST {ROOT}/namespaces/a/darkrooms?{manner}&dryRun=All"));
    assert_eq!(log[1].line(), format!("PATCH {ROOT}/namespaces/a/darkrooms/b?{manner}"));
    assert_eq!((log[1].header("content-type"), log[1].json()), (Some(MERGE_PATCH), change));
    assert_eq!(log[2].json()["preconditions"]["uid"], "u1");
    assert_eq!(log[2].json()["propagationPolicy"], "Foreground");
    assert!(log.iter().all(|asked| asked.header("authorization") == Some("Bearer ann-token")));
}

#[tokio::test]
async fn refusals_come_in_the_words_of_the_api_server_with_the_fields_at_fault() {
    let (client, _) = upstream(|asked| match asked.method {
        Method::POST => refused(
            400,
            "BadRequest",
            "strict decoding error: unknown field \"spec.typo\", unknown field \"spec.other\"",
        ),
        Method::GET => refused(403, "Forbidden", "ann may not"),
        _ => refused(409, "Conflict", "the object has been modified"),
    });
    let app = fake::app(fake::cluster(), client);
    let (code, problem) = ask(&app, request("POST", &format!("{BASE}/namespaces/a"), Some(room("b")))).await;
    assert_eq!(
        (code, &problem["causes"][0]["field"], &problem["causes"][1]["field"]),
        (400, &json!("spec.typo"), &json!("spec.other"))
    );
    let (code, problem) = ask(&app, request("GET", BASE, None)).await;
    assert_eq!(
        (code, problem["detail"].as_str()),
        (403, Some("ann may not; name a namespace with ?namespace="))
    );
    let (code, problem) = ask(&app, request("DELETE", &format!("{BASE}/namespaces/a/b"), None)).await;
    assert_eq!((code, &problem["reason"], &problem["title"]), (409, &json!("Conflict"), &json!("Conflict")));
}

#[tokio::test]
async fn bodies_that_are_no_object_or_no_patch_are_not_sent_on() {
    let (client, log) = upstream(echo);
    let app = fake::app(fake::cluster(), client);
    let path = format!("{BASE}/namespaces/a");
    for body in [json!([]), json!(1), json!(null)] {
        assert_eq!(ask(&app, request("POST", &path, Some(body.clone()))).await.0, 400, "{body}");
    }
    let patch = request("PATCH", &format!("{path}/b"), Some(json!({})));
    assert_eq!(ask(&app, patch).await.0, 415, "a patch says that it is one");
    let mut patch = request("PATCH", &format!("{path}/b"), Some(json!([])));
    patch.headers_mut().insert("content-type", "application/json-patch+json".parse().unwrap());
    assert_eq!(ask(&app, patch).await.0, 415);
    assert!(log.lock().unwrap().is_empty());
}
