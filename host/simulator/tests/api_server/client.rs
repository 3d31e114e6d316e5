//! The server under a real client.

use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{Patch, PatchParams},
    runtime::{WatchStreamExt, watcher},
};
use pintle_simulator::{
    Act, ApiServer, EventFate, EventSeen, Failure, Fate, Faults, RequestSeen, StreamSeen, Verb,
};

use super::config_map;

fn server() -> (ApiServer, Api<ConfigMap>) {
    let (server, client) = super::server();
    (server, Api::default_namespaced(client))
}

async fn apply(api: &Api<ConfigMap>, name: &str, value: &str) -> kube::Result<ConfigMap> {
    api.patch(name, &PatchParams::apply("test"), &Patch::Apply(config_map(name, value))).await
}

/// A fault for the next request of a verb, and one for each event.
struct Script(Option<(Verb, Fate)>, Vec<EventFate>);

impl Faults for Script {
    fn request(&mut self, seen: &RequestSeen) -> Fate {
        self.0.take_if(|(verb, _)| *verb == seen.verb).map_or(Fate::Pass, |(_, fate)| fate)
    }

    fn event(&mut self, _: &StreamSeen, _: &EventSeen) -> EventFate {
        if self.1.is_empty() { EventFate::Deliver } else { self.1.remove(0) }
    }
}

/// The next events of a watch as text, until it is quiet for half a minute.
async fn events(
    stream: impl futures::Stream<Item = watcher::Result<watcher::Event<ConfigMap>>>,
) -> Vec<String> {
    let mut stream = std::pin::pin!(stream);
    let mut seen = Vec::new();
    let value = |map: ConfigMap| map.data.unwrap_or_default().into_values().next().unwrap_or_default();
    while let Ok(Some(event)) = tokio::time::timeout(Duration::from_secs(30), stream.next()).await {
        seen.push(match event {
            Ok(watcher::Event::Init) => "init".into(),
            Ok(watcher::Event::InitApply(map)) => format!("has {}", value(map)),
            Ok(watcher::Event::InitDone) => "listed".into(),
            Ok(watcher::Event::Apply(map)) => format!("now {}", value(map)),
            Ok(watcher::Event::Delete(map)) => format!("gone {}", value(map)),
            Err(error) => format!("error {error}"),
        });
    }
    seen
}

#[tokio::test(start_paused = true)]
async fn a_watch_goes_on_after_it_is_closed_and_lists_anew_after_410() {
    let (server, api) = server();
    let fates = vec![EventFate::Close, EventFate::Deliver, EventFate::Hide, EventFate::Gone];
    server.set_faults(Box::new(Script(None, fates)));
    let stream = watcher(api.clone(), watcher::Config::default()).default_backoff();
    let edits = async {
        for value in ["1", "2", "3"] {
            tokio::time::sleep(Duration::from_secs(5)).await;
            apply(&api, "a", value).await.unwrap();
        }
    };
    let (seen, ()) = tokio::join!(events(stream), edits);
    let seen: Vec<String> = seen.into_iter().filter(|line| !line.starts_with("error")).collect();
    assert_eq!(seen, ["init", "listed", "now 1", "init", "has 3", "listed"]);
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_hides_that_the_request_was_carried_out() {
    let (server, api) = server();
    for (fate, is_there) in
        [(Fate::Fail(Failure::of(503)), false), (Fate::LoseBefore, false), (Fate::LoseAfter, true)]
    {
        server.set_faults(Box::new(Script(Some((Verb::Apply, fate.clone())), Vec::new())));
        assert!(apply(&api, "a", "1").await.is_err());
        assert_eq!(api.get_opt("a").await.unwrap().is_some(), is_there, "{fate:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_may_be_stale() {
    let (server, api) = server();
    apply(&api, "a", "1").await.unwrap();
    let before = server.version();
    apply(&api, "a", "2").await.unwrap();
    server.set_faults(Box::new(Script(Some((Verb::Get, Fate::AsOf(before))), Vec::new())));
    let value = |map: ConfigMap| map.data.unwrap()["key"].clone();
    assert_eq!(value(api.get("a").await.unwrap()), "1");
    assert_eq!(value(api.get("a").await.unwrap()), "2");
}

#[tokio::test(start_paused = true)]
async fn a_late_reply_comes_late() {
    let (server, api) = server();
    let late = Fate::DelayReply(Duration::from_secs(5));
    server.set_faults(Box::new(Script(Some((Verb::Apply, late)), Vec::new())));
    let began = tokio::time::Instant::now();
    apply(&api, "a", "1").await.unwrap();
    assert!(began.elapsed() >= Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn an_event_says_what_it_is_before_it_shows_the_object() {
    let (server, client) = super::server();
    server.act("somebody", &Act::Create(config_map("a", "1"))).unwrap();
    let request =
        http::Request::get("/api/v1/configmaps?watch=true").body(kube::client::Body::empty()).unwrap();
    let body = client.send(request).await.unwrap().into_body();
    let frame = http_body_util::BodyExt::frame(&mut std::pin::pin!(body)).await.unwrap().unwrap();
    assert!(frame.data_ref().unwrap().starts_with(br#"{"type":"ADDED","object":{"#));
}
