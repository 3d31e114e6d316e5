//! Tests of the client.

use super::*;

#[test]
fn a_status_is_read_with_its_causes() {
    let body = json!({"kind": "Status", "reason": "Invalid", "message": "m", "details": {"causes": [
        {"field": "spec.ports[0].nodePort", "reason": "FieldValueInvalid", "message": "provided port is already allocated"}]}});
    let error = refused(422, body.to_string().as_bytes(), None);
    assert_eq!((error.code, error.reason.as_str(), error.message.as_str()), (422, "Invalid", "m"));
    assert_eq!(error.causes[0].field, "spec.ports[0].nodePort");
    assert_eq!(refused(502, b"bad gateway", None).message, "bad gateway");
    let printed = "Invalid value: core.PodSpec{Env:\"x\"}: field is immutable";
    let body = json!({"message": format!("spec: {printed}"), "details": {"causes": [{"field": "spec", "message": printed}]}});
    let error = refused(422, body.to_string().as_bytes(), None);
    assert_eq!(error.message, "spec: Invalid value: field is immutable");
    assert_eq!(error.causes[0].message, "Invalid value: field is immutable");
}

#[test]
fn who_may_not_act_as_an_account_is_told_what_to_apply() {
    let forbidden =
        |message: &str| with_remedy(refused(403, json!({"message": message}).to_string().as_bytes(), None));
    assert!(
        forbidden("User u cannot impersonate resource x").message.ends_with("in the account's namespace")
    );
    assert_eq!(forbidden("User u cannot patch resource x").message, "User u cannot patch resource x");
}

/// An API server that writes down what it is asked, and says that nothing is there.
fn asked() -> (Cluster, Arc<std::sync::Mutex<Vec<String>>>) {
    let asked = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let service = tower::service_fn(move |request: Request<Body>| {
        seen.lock().unwrap().push(request.uri().to_string());
        let body = json!({"kind": "Status", "reason": "NotFound", "code": 404, "message": "m"}).to_string();
        let mut response = http::Response::new(Body::from(body.into_bytes()));
        *response.status_mut() = StatusCode::NOT_FOUND;
        async move { Ok::<_, std::convert::Infallible>(response) }
    });
    (Cluster::new(Client::new(service, "default")), asked)
}

#[tokio::test]
async fn a_name_that_would_reach_another_path_is_never_sent() {
    let (cluster, asked) = asked();
    let config_maps = builtin("v1", "ConfigMap", "configmaps", true);
    let reference = |namespace: &str, name: &str| ObjectRef {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        namespace: Some(namespace.into()),
        name: name.into(),
    };
    let long = format!("../{}", "a".repeat(10 << 10));
    let hostile = [
        "..",
        ".",
        "",
        "../secrets/x",
        "a/b",
        "a?watch=true",
        "a#b",
        "a%2fb",
        "a\r\nX-Y: z",
        "a b",
        "\0",
        &long,
    ];
    for hostile in hostile {
        for reference in [reference("team", hostile), reference(hostile, "a")] {
            let found = cluster.get(&config_maps, &reference).await;
            let reason = found.map_err(|error| error.reason);
            assert_eq!(reason, Err("NameInvalid".to_owned()), "{hostile:.20?}");
            assert!(cluster.get_metadata(&config_maps, &reference).await.is_err(), "{hostile:.20?}");
            assert!(cluster.get_whole(&config_maps, &reference).await.is_err(), "{hostile:.20?}");
        }
        for kind in
            [Kind::new(hostile, "X"), Kind::new(format!("{hostile}/v1"), "X"), Kind::new("v1", hostile)]
        {
            if kind.api_version != "a/b" {
                assert_eq!(cluster.discover(&kind).await.ok(), Some(None), "{kind:.40?}");
            }
        }
    }
    assert_eq!(*asked.lock().unwrap(), Vec::<String>::new());
    assert_eq!(cluster.get(&config_maps, &reference("team", "a.b-c")).await.ok(), Some(None));
    let roles = builtin("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", false);
    let role = ObjectRef { namespace: None, ..reference("", "system:node") };
    assert_eq!(cluster.get(&roles, &role).await.ok(), Some(None));
    let paths = asked.lock().unwrap().clone();
    assert!(paths[0].ends_with("/api/v1/namespaces/team/configmaps/a.b-c"), "{paths:?}");
    assert!(paths[1].ends_with("/clusterroles/system%3Anode"), "{paths:?}");
}

#[test]
fn what_goes_into_a_query_cannot_leave_it() {
    assert_eq!(escape("a-b.c&force=true"), "a-b.c%26force%3Dtrue");
}

#[tokio::test(start_paused = true)]
async fn a_list_or_watch_whose_answer_does_not_begin_ends() {
    let silent = tower::service_fn(|_: Request<Body>| {
        std::future::pending::<Result<http::Response<Body>, std::convert::Infallible>>()
    });
    let client = Cluster::new(Client::new(silent, "default")).client();
    let asked =
        tokio::time::timeout(Duration::from_secs(3600), client.send(Request::new(Body::empty()))).await;
    assert!(matches!(asked, Ok(Err(kube::Error::Service(_)))));
}

#[tokio::test]
async fn finalizers_are_found_however_large_the_annotations_beside_them_are() {
    let item = |number: u32| {
        let finalizers: &[&str] = if number == 99 { &["a.b/held"] } else { &[] };
        json!({"metadata": {"name": format!("a{number}"), "namespace": "team", "uid": "u", "resourceVersion": "7",
            "finalizers": finalizers, "annotations": {"a": "x".repeat(200 << 10)}}})
    };
    let list = json!({"metadata": {}, "items": (0..100).map(item).collect::<Vec<_>>()}).to_string();
    let service = tower::service_fn(move |_: Request<Body>| {
        let body = list.clone();
        async move { Ok::<_, std::convert::Infallible>(http::Response::new(Body::from(body.into_bytes()))) }
    });
    let cluster = Cluster::new(Client::new(service, "default"));
    let config_maps = builtin("v1", "ConfigMap", "configmaps", true);
    assert_eq!(cluster.any_has_finalizer(&config_maps, &["a.b/held"]).await.ok(), Some(true));
    assert_eq!(cluster.any_has_finalizer(&config_maps, &["a.b/other"]).await.ok(), Some(false));
}
