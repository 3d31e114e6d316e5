//! An API server that answers what a test says, and the requests that reached it.

use std::sync::{Arc, Mutex};

use axum::{body::Body as Sent, http::Request as Made, response::Response as Given};
use futures::future::BoxFuture;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use pintle_core::view::document::problem::Refusal;
use pintle_modules::Budget;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};
use tower::ServiceExt;

use crate::{
    app::{About, App, REQUESTS},
    assets::Assets,
    caller::Caller,
    documents::{DocumentView, Provider},
    door::{Door, local::Local},
    memory::Memory,
    token::Token,
    users::{User, Users},
    watches::Watches,
    workshop::Shop,
};

/// A request that reached the API server.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    /// With its query.
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Asked {
    pub(crate) fn line(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

pub(crate) type Log = Arc<Mutex<Vec<Asked>>>;

/// A client of an API server that answers so, and what it was asked.
pub(crate) fn upstream(
    answer: impl Fn(&Asked) -> (u16, Value) + Send + Sync + 'static,
) -> (kube::Client, Log) {
    raw_upstream(move |asked| {
        let (code, body) = answer(asked);
        (code, Sent::from(body.to_string()))
    })
}

/// The same, with bodies that may go on.
pub(crate) fn raw_upstream(
    answer: impl Fn(&Asked) -> (u16, Sent) + Send + Sync + 'static,
) -> (kube::Client, Log) {
    let log = Log::default();
    let (answer, seen) = (Arc::new(answer), Arc::clone(&log));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (answer, seen) = (Arc::clone(&answer), Arc::clone(&seen));
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await?.to_bytes().to_vec();
            let path = head.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
            let asked = Asked { method: head.method, path, headers: head.headers, body };
            seen.lock().unwrap().push(asked.clone());
            let (code, body) = answer(&asked);
            let mut response = Response::new(body);
            *response.status_mut() = StatusCode::from_u16(code).unwrap();
            Ok::<_, kube::Error>(response)
        }
    });
    (kube::Client::new(service, "default"), log)
}

/// Answers as this does, knows Ann, and lets everybody do everything. Nobody is told of the reviews.
pub(crate) fn permitting(
    answer: impl Fn(&Asked) -> (u16, Value) + Send + Sync + 'static,
) -> (kube::Client, Log) {
    let (client, log) = upstream(answer);
    let service = tower::service_fn(move |request: Request<Body>| {
        let client = client.clone();
        async move {
            let is_ann =
                request.headers().get("authorization").is_some_and(|token| token == "Bearer ann-token");
            let review = match request.uri().path().rsplit('/').next() {
                Some("selfsubjectaccessreviews") => json!({"status": {"allowed": true}}),
                // What users() remembers of Ann is forgotten after seconds, which a test on a busy machine may take.
                Some("selfsubjectreviews") if is_ann => ann(),
                _ => return client.send(request).await,
            };
            Ok(Response::new(Body::from(review.to_string().into_bytes())))
        }
    });
    (kube::Client::new(service, "default"), log)
}

/// Says who everybody is, and nothing else.
pub(crate) fn knows_ann(asked: &Asked) -> (u16, Value) {
    match asked.path.as_str() {
        "/apis/authentication.k8s.io/v1/selfsubjectreviews" => (201, ann()),
        _ => refused(404, "NotFound", "there is no such thing"),
    }
}

fn ann() -> Value {
    json!({"status": {"userInfo": {"username": "ann", "groups": ["dev"]}}})
}

pub(crate) fn refused(code: u16, reason: &str, message: &str) -> (u16, Value) {
    (code, json!({"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": message}))
}

/// The memory of a small process.
pub(crate) fn memory() -> Memory {
    Memory::new(Budget::fixed(512 << 20))
}

/// What has been told a moment ago that the token of [`request`] is Ann's.
pub(crate) fn users() -> Users {
    let (client, _) = upstream(knows_ann);
    let token = Token::of(request("GET", "/", None).headers()).unwrap();
    let ann = User { name: "ann".into(), groups: vec!["dev".into()] };
    Users::knowing(&Caller::with_token(client, token, memory()), ann)
}

/// What serves behind a door, and knows Ann.
pub(crate) fn app(door: Door, upstream: kube::Client) -> Arc<App> {
    app_of(users(), door, upstream, Arc::new(NoViews))
}

/// What serves behind a door, and knows nobody yet.
pub(crate) fn app_of_strangers(door: Door, upstream: kube::Client) -> Arc<App> {
    app_of(Users::default(), door, upstream, Arc::new(NoViews))
}

/// What serves these documents behind a door, and knows these users.
pub(crate) fn app_of(
    users: Users,
    door: Door,
    upstream: kube::Client,
    documents: Arc<dyn Provider>,
) -> Arc<App> {
    let (_, stopping) = watch::channel(false);
    let (version, cluster) = ("0.1.0".into(), "https://api.test".into());
    let about = About { version, cluster, context: None, namespace: Some("blog".into()) };
    Arc::new(App {
        door,
        upstream,
        memory: memory(),
        assets: Assets::Embedded,
        documents,
        about,
        serves_tls: false,
        stopping,
        users,
        requests: Semaphore::new(REQUESTS),
        watches: Watches::default(),
        shop: Shop::default(),
    })
}

struct NoViews;

impl Provider for NoViews {
    fn view<'a>(
        &'a self,
        _: &'a str,
        _: &'a Caller,
    ) -> BoxFuture<'a, Result<Option<Arc<DocumentView>>, Refusal>> {
        Box::pin(async { Ok(None) })
    }

    fn paths<'a>(&'a self, _: &'a Caller) -> BoxFuture<'a, Result<Vec<String>, Refusal>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// The door of a cluster, called `console.test`.
pub(crate) fn cluster() -> Door {
    Door::token(vec!["console.test".parse().unwrap()], vec!["https://tools.test".parse().unwrap()])
}

/// A request that a page of ours in a cluster makes for Ann.
pub(crate) fn request(method: &str, path: &str, body: Option<Value>) -> Made<Sent> {
    let mut request = Made::builder().method(method).uri(path).header("host", "console.test");
    request = request.header("authorization", "Bearer ann-token").header("origin", "https://console.test");
    match body {
        Some(body) => request.header("content-type", "application/json").body(body.to_string().into()),
        None => request.body(Sent::empty()),
    }
    .unwrap()
}

/// The answer of a router to a request.
pub(crate) async fn answer(app: &Arc<App>, request: Made<Sent>) -> Given {
    crate::router(Arc::clone(app)).oneshot(request).await.unwrap()
}

/// The same, as a status code and JSON.
pub(crate) async fn ask(app: &Arc<App>, request: Made<Sent>) -> (u16, Value) {
    let given = answer(app, request).await;
    let code = given.status().as_u16();
    let bytes = given.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}

/// The door of this machine at port 4711, and the value of the header that opens it.
pub(crate) fn local() -> (Door, String) {
    let local = Local::new(4711).unwrap();
    let address = local.address();
    let (_, secret) = address.split_once('#').unwrap();
    let bearer = format!("Bearer {secret}");
    (Door::local(local), bearer)
}
