use std::{
    convert::Infallible,
    sync::{Mutex, PoisonError},
};

use http::{Request, Response};
use kube::client::Body;

use super::*;

/// The Service of the gateway.
fn own() -> (String, String) {
    ("pintle-system".into(), "pintle-gateway".into())
}

/// The names of APIServices that were written.
type Written = Arc<Mutex<Vec<String>>>;

/// An API server that writes APIServices, and answers about the first one with this code.
fn refuses_the_first(code: u16, written: &Written) -> Client {
    let written = Arc::clone(written);
    let service = tower::service_fn(move |request: Request<Body>| {
        let name = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
        written.lock().unwrap_or_else(PoisonError::into_inner).push(name.clone());
        let (code, answer) = match name.as_str() {
            "v1.a.io" => (
                code,
                json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": "no"}),
            ),
            _ => (
                200,
                json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": name}}),
            ),
        };
        let mut response = Response::new(Body::from(answer.to_string().into_bytes()));
        *response.status_mut() = http::StatusCode::from_u16(code).unwrap();
        async move { Ok::<_, Infallible>(response) }
    });
    Client::new(service, "default")
}

fn services(trusts: &str) -> World {
    let services = ["a.io", "b.io"].map(|group| {
        let service = ApiService {
            group: group.into(),
            service: Some(own()),
            trusts: trusts.into(),
            ..ApiService::default()
        };
        (format!("v1.{group}"), service)
    });
    World { services: services.into(), ..World::default() }
}

#[tokio::test]
async fn one_api_service_that_cannot_be_kept_leaves_no_later_one_without_the_bundle() {
    for code in [403, 409] {
        let written = Written::default();
        let trusted = watch::channel("the CA".to_owned()).1;
        let mut registration = Registration::new(refuses_the_first(code, &written), own(), trusted);
        registration.keep(&services(""), &Arc::default()).await;
        assert_eq!(*written.lock().unwrap(), ["v1.a.io", "v1.b.io"], "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn gateways_that_have_two_cas_do_not_undo_what_the_other_wrote_as_fast_as_they_can() {
    let written = Written::default();
    let trusted = watch::channel("the CA".to_owned()).1;
    let mut registration = Registration::new(refuses_the_first(409, &written), own(), trusted);
    for _ in 0..5 {
        registration.keep(&services("another CA"), &Arc::default()).await;
    }
    assert_eq!(written.lock().unwrap().len(), 2);
    assert!(registration.due_in() <= TOUCHED_AGAIN_AFTER);
}
