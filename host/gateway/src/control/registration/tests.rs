use std::convert::Infallible;

use http::{Request, Response};
use kube::client::Body;

use super::*;
use crate::identity::issuer::TestIssuer;

/// The Service of the gateway.
fn own() -> (String, String) {
    ("pintle-system".into(), "pintle-gateway".into())
}

/// An API server that writes APIServices, and answers about the first one with this code.
fn refuses_the_first(code: u16) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let name = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
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

#[tokio::test]
async fn one_api_service_that_cannot_be_kept_leaves_no_later_one_without_the_bundle_and_does_not_carry_it() {
    let authority = TestIssuer::of_today("pintle-gateway-ca@1").pem;
    let bundle = rotation::ca_bundle(&authority, "", clock::now()).unwrap();
    let services = ["a.io", "b.io"].map(|group| {
        let service = ApiService { group: group.into(), service: Some(own()), ..ApiService::default() };
        (format!("v1.{group}"), service)
    });
    let world = World { services: services.into(), ..World::default() };
    for code in [403, 409] {
        let (carried, told) = watch::channel(None);
        let trusted = watch::channel(authority.clone()).1;
        let mut registration = Registration::new(refuses_the_first(code), own(), trusted, carried);
        registration.keep(&world, &Arc::default()).await;
        assert_eq!(*told.borrow(), Some(vec![String::new(), bundle.clone()]), "{code}");
    }
}
