//! Tests of the way of a request: who waits for whom. Time goes on when everybody waits.

use std::{convert::Infallible, sync::atomic::AtomicUsize, sync::atomic::Ordering, time::Duration};

use futures::{future::join_all, stream};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use pintle_api::ActiveView;
use pintle_core::view::{Served, accept::JSON, served::Backing};
use pintle_modules::Budget;
use tokio::time::{Instant, sleep};

use super::*;
use crate::{
    control::{bind::Serving, serving::Table},
    identity::{MASTERS, issuer::TestIssuer},
    read::{METADATA, METADATA_OF_ALL},
    reviews::tests::{Fake, with_clock},
    show::{CallViews, InModules},
    tls::tests as tls,
};

pub(crate) const VERSION: &str = "/apis/farm.example.com/v1alpha";
pub(crate) const LLAMAS: &str = "/apis/farm.example.com/v1alpha/namespaces/n/llamas";

/// A llama that may be created.
pub(crate) const DOLLY: &str =
    r#"{"apiVersion": "farm.example.com/v1alpha", "kind": "Llama", "metadata": {"name": "dolly"}}"#;

/// The API server behind the gateway: its lists are empty, and no object is there, unless it is told what to answer.
#[derive(Default)]
pub(crate) struct Stored {
    /// What it was asked, as `VERB path`, with the body.
    asked: std::sync::Mutex<Vec<(String, Value)>>,
    /// What it answers next.
    answers: std::sync::Mutex<std::collections::VecDeque<(u16, Value)>>,
    takes: std::sync::Mutex<Duration>,
    in_work: AtomicUsize,
    most: AtomicUsize,
}

impl Stored {
    async fn reply(&self, request: Request<kube::client::Body>) -> http::Response<kube::client::Body> {
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        let body = serde_json::from_slice(&body.collect_bytes().await.unwrap()).unwrap_or_default();
        self.asked.lock().unwrap().push((format!("{} {path}", head.method), body));
        let in_work = self.in_work.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(in_work, Ordering::Relaxed);
        let takes = *self.takes.lock().unwrap();
        if !takes.is_zero() {
            sleep(takes).await;
        }
        self.in_work.fetch_sub(1, Ordering::Relaxed);
        let next = self.answers.lock().unwrap().pop_front();
        let (code, body) = match path.ends_with("/configmaps") {
            _ if next.is_some() => next.unwrap_or_default(),
            true => (
                200,
                json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
                "metadata": {"resourceVersion": "7"}, "items": []}),
            ),
            false => {
                let name = path.rsplit('/').next().unwrap_or_default();
                let details = json!({"kind": "configmaps", "name": name});
                (404, json!({"kind": "Status", "code": 404, "reason": "NotFound", "details": details}))
            }
        };
        let body = kube::client::Body::from(body.to_string().into_bytes());
        http::Response::builder().status(code).body(body).unwrap()
    }
}

/// A gateway that serves llamas, which are ConfigMaps, and those that it asks.
pub(crate) struct Setting {
    pub(crate) gateway: Arc<Gateway<Arc<Fake>>>,
    pub(crate) reviews: Arc<Fake>,
    stored: Arc<Stored>,
    /// What is served is served for as long as this is there.
    _table: Table,
    _directory: watch::Sender<Option<Arc<Directory>>>,
    _authentication: watch::Sender<Option<Arc<Authentication>>>,
}

impl Setting {
    /// Everybody may do everything but `nobody`.
    pub(crate) fn new() -> Self {
        Self::serving(llamas(), Arc::new(InModules))
    }

    /// The same with what a View serves, and how its guest is called.
    pub(crate) fn serving(served: (pintle_api::View, Serving), guests: Arc<dyn CallViews>) -> Self {
        let reviews = Arc::new(Fake::default());
        reviews.answer(Some((true, "")));
        reviews.denies("nobody");
        let mut table = Table::default();
        let directory = watch::Sender::new(Some(table.renewed(vec![served])));
        let authentication = tls::trusting(&TestIssuer::new("proxies"));
        let authentication = watch::Sender::new(Some(Arc::new(authentication)));
        let (spawner, metrics) = (Spawner::default(), Arc::new(Metrics::default()));
        let budget = Budget::fixed(64 << 20);
        let stored = Arc::new(Stored::default());
        let gateway = Gateway::new(
            Arc::clone(&reviews),
            Upstream::new(api_server(Arc::clone(&stored))),
            Guests::new(spawner.clone(), guests, budget, Arc::clone(&metrics)),
            spawner,
            metrics,
            directory.subscribe(),
            authentication.subscribe(),
        );
        let gateway = Arc::new(gateway);
        Self {
            gateway,
            reviews,
            stored,
            _table: table,
            _directory: directory,
            _authentication: authentication,
        }
    }

    /// How long the API server takes with objects from now on.
    fn stored_takes(&self, takes: Duration) {
        *self.stored.takes.lock().unwrap() = takes;
    }

    /// What Ann is answered, while the API server answers this; and what it was asked for that.
    pub(crate) async fn ann(
        &self,
        [method, path, content_type]: [&str; 3],
        body: &Value,
        answers: impl IntoIterator<Item = (u16, Value)>,
    ) -> ((u16, Value), Vec<(String, Value)>) {
        self.stored.answers.lock().unwrap().extend(answers);
        self.stored.asked.lock().unwrap().clear();
        let headers = [of("ann"), ("content-type", content_type)];
        let body = Full::new(Bytes::from(body.to_string())).boxed_unsync();
        let reply = self.gateway.answer(request(method, path, &headers, body)).await;
        let code = reply.status().as_u16();
        let body = reply.into_body().collect().await.unwrap().to_bytes();
        assert!(
            self.stored.answers.lock().unwrap().is_empty(),
            "the API server was asked less than expected"
        );
        let asked = std::mem::take(&mut *self.stored.asked.lock().unwrap());
        ((code, serde_json::from_slice(&body).unwrap()), asked)
    }

    /// The code of an answer.
    async fn code(&self, request: Request<AnyBody>) -> u16 {
        self.gateway.answer(request).await.status().as_u16()
    }

    /// What the API server is answered when it asks whether the gateway is there.
    async fn probe(&self) -> u16 {
        let head = [of("system:kube-aggregator"), ("x-remote-group", MASTERS)];
        self.code(request("GET", VERSION, &head, whole(""))).await
    }

    /// Places taken, those who wait, and those who were refused, of a pool.
    fn figures(&self, pool: &str) -> (usize, usize, u64) {
        let figures = self.gateway.pools.figures();
        let of = figures.iter().find(|figures| figures.pool == pool).unwrap();
        (of.taken, of.waiting, of.refused)
    }
}

fn api_server(stored: Arc<Stored>) -> kube::Client {
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let stored = Arc::clone(&stored);
        async move { Ok::<_, Infallible>(stored.reply(request).await) }
    });
    kube::Client::new(service, "default")
}

pub(crate) fn llamas() -> (pintle_api::View, Serving) {
    let view = json!({
        "apiVersion": "pintle.dev/v1alpha1", "kind": "View", "metadata": {"name": "llamas"},
        "spec": {"module": "farm", "view": "llamas", "serve": {"aggregated": {}}, "access": "View"},
    });
    let active = json!({"module": "farm", "digest": "sha256:0", "epoch": 7, "since": "1970-01-01T00:00:00Z"});
    let active: ActiveView = serde_json::from_value(active).unwrap();
    let backing = Backing {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        plural: "configmaps".into(),
        namespaced: true,
    };
    let served = Served {
        api_version: "farm.example.com/v1alpha".into(),
        kind: "Llama".into(),
        list_kind: "LlamaList".into(),
        plural: "llamas".into(),
        verbs: Verb::ALL.to_vec(),
        schema: json!({"type": "object"}),
        writes: vec!["data".to_owned()],
        backing,
        ..Served::default()
    };
    let serving = Serving { served, active, in_force: Err("no module".into()), closed: None };
    (serde_json::from_value(view).unwrap(), serving)
}

pub(crate) type AnyBody = UnsyncBoxBody<Bytes, Infallible>;

pub(crate) fn whole(text: &'static str) -> AnyBody {
    Full::new(Bytes::from(text)).boxed_unsync()
}

/// A body of which the first byte is there, and no other ever is.
pub(crate) fn slow() -> AnyBody {
    use futures::StreamExt;
    let first = stream::iter([Ok(Frame::data(Bytes::from_static(b"{")))]);
    StreamBody::new(first.chain(stream::pending())).boxed_unsync()
}

pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: AnyBody) -> Request<AnyBody> {
    // No guest is called for metadata.
    let accepts = format!("{METADATA_OF_ALL}, {METADATA}, {JSON}");
    let mut request = Request::builder().method(method).uri(path).header("accept", accepts);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(body).unwrap()
}

/// The header that says who asks.
pub(crate) fn of(user: &str) -> (&'static str, &str) {
    ("x-remote-user", user)
}

fn by(user: &str, method: &str, path: &str, body: AnyBody) -> Request<AnyBody> {
    request(method, path, &[of(user)], body)
}

fn list(user: &str) -> Request<AnyBody> {
    by(user, "GET", LLAMAS, whole(""))
}

/// Runs a test with a setting.
pub(crate) async fn with<T>(test: impl AsyncFnOnce(&Setting) -> T) -> T {
    with_clock(async { test(&Setting::new()).await }).await
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_one_caller_waits_for_its_turn_and_is_answered() {
    with(async |setting| {
        setting.stored_takes(Duration::from_millis(400));
        let lists = (0..150).map(|_| setting.code(list("jane")));
        let codes = join_all(lists.collect::<Vec<_>>()).await;
        assert_eq!(codes, [200; 150]);
        assert_eq!(setting.stored.most.load(Ordering::Relaxed), 50, "as many as one caller may have in work");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_too_long_is_told_when_to_come_again() {
    with(async |setting| {
        setting.stored_takes(Duration::from_secs(30));
        let ask = async || setting.gateway.answer(list("jane")).await;
        let replies = join_all((0..60).map(|_| ask())).await;
        let (listed, refused): (Vec<_>, Vec<_>) =
            replies.iter().partition(|reply| reply.status() == StatusCode::OK);
        assert_eq!((listed.len(), refused.len()), (50, 10));
        for reply in refused {
            assert_eq!(reply.status(), StatusCode::TOO_MANY_REQUESTS);
            assert_eq!(reply.headers()["retry-after"], "1");
        }
        assert_eq!(setting.figures("requests"), (0, 0, 10));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn slow_bodies_fill_nothing_and_end() {
    with(async |setting| {
        let create = |user: &str| by(user, "POST", LLAMAS, slow());
        let slow = join_all((0..50).flat_map(|_| {
            [setting.code(create("nobody")), setting.code(create("eve")), setting.code(create("bob"))]
        }));
        let others = async {
            sleep(Duration::from_millis(100)).await;
            assert_eq!(setting.figures("bodies"), (16, 84, 0), "eight of each of those who are known");
            assert_eq!((setting.figures("requests"), setting.figures("reviews")), ((16, 0, 0), (0, 0, 0)));
            let began = Instant::now();
            assert_eq!(setting.code(list("jane")).await, 200);
            let create = by("jane", "POST", LLAMAS, whole(DOLLY));
            assert_eq!(setting.code(create).await, 503, "there is no module, and it was asked");
            assert_eq!(setting.probe().await, 200);
            assert_eq!(began.elapsed(), Duration::ZERO, "nobody waits for them");
        };
        let (codes, ()) = tokio::join!(slow, others);
        let count = |code| codes.iter().filter(|other| **other == code).count();
        assert_eq!((count(403), count(408), count(429)), (50, 16, 84));
        assert_eq!((setting.figures("bodies").0, setting.figures("requests").0), (0, 0));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_caller_whose_reviews_take_long_holds_up_itself_and_no_probe() {
    with(async |setting| {
        // What Jane may do is known already.
        for user in ["jane", "eve"] {
            assert_eq!(setting.code(list(user)).await, 200);
        }
        setting.reviews.takes(Duration::from_secs(8));
        let gets = (0..40).map(|number| {
            let get = by("eve", "GET", &format!("{LLAMAS}/x{number}"), whole(""));
            setting.code(get)
        });
        let others = async {
            sleep(Duration::from_secs(1)).await;
            assert_eq!(setting.figures("reviews"), (4, 36, 0));
            let began = Instant::now();
            assert_eq!(setting.code(list("jane")).await, 200);
            assert_eq!(setting.probe().await, 200);
            assert_eq!(began.elapsed(), Duration::ZERO);
        };
        let (codes, ()) = tokio::join!(join_all(gets.collect::<Vec<_>>()), others);
        let count = |code| codes.iter().filter(|other| **other == code).count();
        assert_eq!((count(404), count(429)), (4, 36));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_users_of_the_front_proxy_are_told_apart_and_nobody_is_not_let_in() {
    with(async |setting| {
        setting.stored_takes(Duration::from_secs(1));
        let lists = (0..50).flat_map(|_| ["ann", "bob", "eve"]).map(|user| setting.code(list(user)));
        let began = Instant::now();
        assert_eq!(join_all(lists.collect::<Vec<_>>()).await, [200; 150]);
        assert_eq!(began.elapsed(), Duration::from_secs(1), "none of them waits for another");
        assert_eq!(setting.code(request("GET", LLAMAS, &[], whole(""))).await, 401, "no header names a user");
        assert_eq!(setting.code(list("nobody")).await, 403);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_get_that_says_watch_takes_no_place_of_a_watch() {
    with(async |setting| {
        setting.stored_takes(Duration::from_secs(1));
        let get = by("jane", "GET", &format!("{LLAMAS}/x?watch=1"), whole(""));
        let places = async {
            sleep(Duration::from_millis(500)).await;
            (setting.figures("requests").0, setting.figures("watches").0)
        };
        let (code, places) = tokio::join!(setting.code(get), places);
        assert_eq!((code, places), (404, (1, 0)));
    })
    .await;
}
