use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use futures::StreamExt;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

use super::*;
use crate::{
    app::App,
    caller::Caller,
    fake::{self, Log, ask, refused, request},
    token::Token,
    watches::WATCHES_OF_ONE_MAX,
};

/// The lines of each watch that a test sends.
type Watches = Arc<Mutex<Vec<UnboundedSender<Bytes>>>>;

/// An API server with one room, whose watches a test feeds.
fn cluster() -> (Arc<App>, Log, Watches) {
    let watches = Watches::default();
    let opened = Arc::clone(&watches);
    let late = AtomicBool::new(true);
    let (client, log) = fake::raw_upstream(move |asked| {
        let body = |value: Value| Body::from(value.to_string());
        // It answers every second time.
        if asked.path.contains("/late") && late.fetch_not(Ordering::Relaxed) {
            return (503, body(refused(503, "ServiceUnavailable", "not now").1));
        }
        if asked.path.contains("watch=true") && asked.path.contains("/forbidden") {
            return (403, body(refused(403, "Forbidden", "no").1));
        }
        if asked.path.contains("watch=true") {
            let (lines, told) = tokio::sync::mpsc::unbounded_channel::<Bytes>();
            opened.lock().unwrap().push(lines);
            let stream =
                futures::stream::unfold(told, |mut told| async move { Some((told.recv().await?, told)) });
            return (200, Body::from_stream(stream.map(Ok::<_, std::io::Error>)));
        }
        if asked.path.contains("selfsubjectreviews") {
            let (code, value) = fake::knows_ann(asked);
            return (code, body(value));
        }
        (200, body(json!({"metadata": {"resourceVersion": "10"}, "items": [room("a", 5)]})))
    });
    (fake::app(fake::cluster(), client), log, watches)
}

fn room(name: &str, version: u64) -> Value {
    json!({"metadata": {"name": name, "namespace": "n", "resourceVersion": version.to_string()}})
}

fn send(watches: &Watches, event: &str, object: &Value) {
    let line = json!({"type": event, "object": object}).to_string() + "\n";
    for watch in watches.lock().unwrap().iter() {
        // A line may come in two pieces.
        let (one, other) = line.split_at(7);
        let _ = watch.send(Bytes::from(one.to_owned()));
        let _ = watch.send(Bytes::from(other.to_owned()));
    }
}

/// A stream as a browser reads it.
struct Reading(axum::body::Body);

impl Reading {
    async fn open(app: &Arc<App>, watches: &[&str]) -> Self {
        let query: Vec<String> = watches
            .iter()
            .map(|watch| format!("watch={}", watch.replace('=', "%3D").replace(';', "%3B")))
            .collect();
        let given =
            fake::answer(app, request("GET", &format!("/api/v1/stream?{}", query.join("&")), None)).await;
        assert_eq!(
            (given.status().as_u16(), &given.headers()["content-type"]),
            (200, &"text/event-stream".parse().unwrap())
        );
        Self(given.into_body())
    }

    /// The next event: its name and data.
    async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            let frame = tokio::time::timeout(Duration::from_secs(1200), self.0.frame()).await.unwrap()?;
            let text = String::from_utf8(frame.unwrap().into_data().unwrap().to_vec()).unwrap();
            if let Some((name, data)) =
                text.strip_prefix("event: ").and_then(|text| text.split_once("\ndata: "))
            {
                return Some((name.to_owned(), serde_json::from_str(data).unwrap()));
            }
        }
    }

    async fn names(&mut self, count: usize) -> Vec<String> {
        let mut names = Vec::new();
        for _ in 0..count {
            let (name, data) = self.next().await.unwrap();
            let object = data["row"]["name"].as_str().unwrap_or_default();
            names.push(format!("{name} {object}").trim().to_owned());
        }
        names
    }
}

async fn until(is_so: impl Fn() -> bool) {
    for _ in 0..60_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("it did not come about");
}

#[tokio::test(start_paused = true)]
async fn a_stream_tells_what_there_is_and_then_what_happens() {
    let (app, log, watches) = cluster();
    let mut reading = Reading::open(&app, &["a.example/v1/rooms;namespace=n"]).await;
    assert_eq!(reading.names(2).await, ["added a", "bookmark"]);
    until(|| !watches.lock().unwrap().is_empty()).await;
    send(&watches, "MODIFIED", &room("b", 11));
    send(&watches, "DELETED", &room("a", 12));
    send(&watches, "BOOKMARK", &json!({"metadata": {"resourceVersion": "20"}}));
    assert_eq!(reading.names(3).await, ["modified b", "deleted a", "bookmark"]);
    let watched =
        log.lock().unwrap().iter().find(|asked| asked.path.contains("watch=true")).cloned().unwrap();
    assert!(
        watched.path.starts_with("/apis/a.example/v1/namespaces/n/rooms?")
            && watched.path.contains("resourceVersion=10")
    );
    assert_eq!(watched.header("authorization"), Some("Bearer ann-token"));
}

#[tokio::test(start_paused = true)]
async fn each_stream_has_watches_of_its_own_that_end_with_it() {
    let (app, _, watches) = cluster();
    let seen = ["a.example/v1/rooms;resourceVersion=10"];
    let mut one = Reading::open(&app, &seen).await;
    let other = Reading::open(&app, &seen).await;
    until(|| watches.lock().unwrap().len() == 2).await;
    drop(other);
    until(|| watches.lock().unwrap().iter().filter(|watch| watch.is_closed()).count() == 1).await;
    send(&watches, "ADDED", &room("b", 11));
    assert_eq!(one.names(2).await, ["bookmark", "added b"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_too_old_is_reset_and_the_others_go_on() {
    let (app, _, watches) = cluster();
    let mut reading = Reading::open(
        &app,
        &["a.example/v1/rooms;resourceVersion=1", "a.example/v1/forbidden;resourceVersion=1"],
    )
    .await;
    let mut told = [reading.next().await.unwrap(), reading.next().await.unwrap()];
    told.sort_by_key(|(name, _)| name.clone());
    let [(begun, _), (ended, data)] = &told;
    assert_eq!(
        (begun.as_str(), ended.as_str(), &data["watch"], &data["problem"]["status"]),
        ("bookmark", "problem", &json!(1), &json!(403))
    );
    send(
        &watches,
        "ERROR",
        &json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}),
    );
    assert_eq!(reading.next().await.unwrap(), ("reset".to_owned(), json!({"watch": 0})));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_cut_off_goes_on_from_where_it_was() {
    let (app, log, watches) = cluster();
    let mut reading = Reading::open(&app, &["a.example/v1/rooms;resourceVersion=10"]).await;
    until(|| !watches.lock().unwrap().is_empty()).await;
    send(&watches, "ADDED", &room("b", 15));
    assert_eq!(reading.names(2).await, ["bookmark", "added b"]);
    watches.lock().unwrap().clear();
    until(|| watches.lock().unwrap().len() == 1).await;
    let last = log.lock().unwrap().last().cloned().unwrap();
    assert!(last.path.contains("resourceVersion=15"), "{}", last.path);
}

#[tokio::test(start_paused = true)]
async fn while_the_api_server_does_not_answer_that_is_told_and_afterwards_the_watch_goes_on() {
    let (app, _, watches) = cluster();
    let mut reading = Reading::open(&app, &["a.example/v1/late"]).await;
    assert_eq!(reading.names(4).await, ["problem", "added a", "problem", "bookmark"]);
    send(&watches, "ADDED", &room("b", 11));
    assert_eq!(reading.names(1).await, ["added b"]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_says_why_it_ends() {
    let (app, _, _) = cluster();
    let mut reading = Reading::open(&app, &["a.example/v1/rooms;resourceVersion=10"]).await;
    assert_eq!(reading.names(1).await, ["bookmark"]);
    assert_eq!(reading.next().await, Some(("bye".into(), json!({"reason": "renew"}))));
    assert_eq!(reading.next().await, None);
    let (app, _, watches) = cluster();
    let mut reading = Reading::open(&app, &["a.example/v1/rooms;resourceVersion=10"]).await;
    assert_eq!(reading.names(1).await, ["bookmark"]);
    send(&watches, "ERROR", &json!({"kind": "Status", "code": 401, "message": "Unauthorized"}));
    assert_eq!(reading.next().await, Some(("bye".into(), json!({"reason": "unauthorized"}))));
    until(|| watches.lock().unwrap()[0].is_closed()).await;
}

#[tokio::test]
async fn what_is_no_watch_opens_nothing() {
    let (app, log, _) = cluster();
    let many = vec!["watch=a.example/v1/rooms"; WATCHES_MAX + 1].join("&");
    for query in ["", "watch=apps/v1/deployments", "watch=a.example/v1/rooms;namespace=..", &many] {
        let (code, _) = ask(&app, request("GET", &format!("/api/v1/stream?{query}"), None)).await;
        assert!(code == 400 || code == 404, "{query}: {code}");
    }
    assert!(log.lock().unwrap().is_empty());
}

#[tokio::test]
async fn one_user_with_several_tokens_has_one_share_of_watches_and_leaves_the_rest() {
    let (app, _, _) = cluster();
    let caller = |token: &str, user: &str| {
        let bearer = format!("Bearer {token}").parse().unwrap();
        let token = Token::of(&http::HeaderMap::from_iter([(http::header::AUTHORIZATION, bearer)])).unwrap();
        Caller::with_token(app.upstream.clone(), token, fake::memory()).named(user)
    };
    let mallory = ["one", "two", "three"].map(|token| caller(token, "mallory"));
    let taken = mallory.iter().cycle().map_while(|caller| app.watches.acquire(caller, 32).ok());
    let taken: Vec<_> = taken.collect();
    assert_eq!(taken.len() * 32, WATCHES_OF_ONE_MAX);
    let refused = app.watches.acquire(&mallory[0], 1).map(drop).unwrap_err();
    assert_eq!((refused.status.as_u16(), refused.retry_after.is_some()), (429, true));
    assert!(app.watches.acquire(&caller("ann", "ann"), 32).is_ok());
    drop(taken);
    assert!(app.watches.acquire(&mallory[0], 32).is_ok(), "it was given back");
}
