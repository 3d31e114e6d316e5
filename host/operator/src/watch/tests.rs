//! Tests of watches.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

fn interrupted() -> Result<watcher::Event<u8>, watcher::Error> {
    Err(watcher::Error::WatchError(Box::default()))
}

/// The events of a watch whose streams, one after the other, bring these.
async fn events(streams: Vec<Vec<Result<watcher::Event<u8>, watcher::Error>>>) -> (Vec<String>, usize) {
    let begun = AtomicUsize::new(0);
    let streams: Vec<std::sync::Mutex<Option<Vec<_>>>> =
        streams.into_iter().map(|stream| std::sync::Mutex::new(Some(stream))).collect();
    let begin = || {
        let index = begun.fetch_add(1, Ordering::Relaxed);
        stream::iter(streams[index].lock().unwrap().take().unwrap())
    };
    let seen = persistent(begin).map(|event| match event {
        Ok(watcher::Event::Apply(number)) => number.to_string(),
        Ok(_) => "other".into(),
        Err(_) => "error".into(),
    });
    (seen.collect().await, begun.load(Ordering::Relaxed))
}

#[tokio::test(start_paused = true)]
async fn an_interruption_is_made_up_for_silently() {
    let stream =
        vec![Ok(watcher::Event::Apply(1)), interrupted(), interrupted(), Ok(watcher::Event::Apply(2))];
    assert_eq!(events(vec![stream]).await, (vec!["1".into(), "2".into()], 1));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_cannot_go_on_begins_anew_with_a_list() {
    let broken = vec![Ok(watcher::Event::Apply(1)), interrupted(), interrupted(), interrupted()];
    let anew = vec![Ok(watcher::Event::Init), Ok(watcher::Event::Apply(2))];
    assert_eq!(events(vec![broken, anew]).await, (vec!["1".into(), "other".into(), "2".into()], 2));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_fails_is_told() {
    let failed = Err(watcher::Error::NoResourceVersion);
    assert_eq!(
        events(vec![vec![failed, Ok(watcher::Event::Apply(1))]]).await,
        (vec!["error".into(), "1".into()], 1)
    );
}

type Asked = std::sync::Mutex<Vec<&'static str>>;

/// The events of a watch of a server that has one ConfigMap, and whose watch streams, one after the other, bring these lines and
/// then nothing more. What the server was asked is written down.
fn watch_of(
    asked: &Arc<Asked>,
    streams: Vec<&'static str>,
) -> impl Stream<Item = Result<watcher::Event<Seen<false>>, watcher::Error>> + use<> {
    let (asked, streams) = (Arc::clone(asked), std::sync::Mutex::new(streams.into_iter()));
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let watches = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        asked.lock().unwrap().push(if watches { "watch" } else { "list" });
        let body = if watches {
            let line = streams.lock().unwrap().next().unwrap_or_default();
            let line = stream::iter([Ok::<_, std::convert::Infallible>(line)]);
            axum::body::Body::from_stream(line.chain(stream::pending()))
        } else {
            let list = serde_json::json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "5"},
                "items": [{"metadata": {"name": "a", "resourceVersion": "3"}}]});
            axum::body::Body::from(list.to_string())
        };
        async move { Ok::<_, std::convert::Infallible>(http::Response::new(body)) }
    });
    let resource = ApiResource::erase::<k8s_openapi::api::core::v1::ConfigMap>(&());
    let api: Api<Seen<false>> = Api::all_with(kube::Client::new(service, "default"), &resource);
    let config = watcher::Config::default().timeout(WATCH_SECONDS);
    persistent(move || watcher(api.clone(), config.clone()))
}

/// What the next events of a watch are about, as long as they come within five lifetimes of a stream.
async fn next_events(
    events: &mut (impl Stream<Item = Result<watcher::Event<Seen<false>>, watcher::Error>> + Unpin),
    count: usize,
) -> Vec<String> {
    let mut seen = Vec::new();
    while seen.len() < count {
        let patience = Duration::from_secs(5 * u64::from(WATCH_SECONDS));
        let event = tokio::time::timeout(patience, events.next()).await.expect("an event");
        seen.push(match event.unwrap().unwrap() {
            watcher::Event::Init => "list begins".into(),
            watcher::Event::InitDone => "list ended".into(),
            watcher::Event::InitApply(object) => format!("listed {}", object.head),
            watcher::Event::Apply(object) => format!("saw {}", object.head),
            watcher::Event::Delete(object) => format!("gone {}", object.head),
        });
    }
    seen
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_goes_silent_is_opened_anew_and_nothing_is_lost() {
    let asked = Arc::new(Asked::default());
    let later = concat!(
        r#"{"type":"MODIFIED","object":{"metadata":{"name":"a","namespace":"n","resourceVersion":"7"}}}"#,
        "\n"
    );
    let mut events = Box::pin(watch_of(&asked, vec!["", later]));
    assert_eq!(next_events(&mut events, 3).await, ["list begins", "listed a", "list ended"]);
    let began = clock::monotonic();
    assert_eq!(next_events(&mut events, 1).await, ["saw n/a"]);
    assert_eq!(*asked.lock().unwrap(), ["list", "watch", "watch"]);
    let silent = (clock::monotonic() - began).as_secs();
    assert!((u64::from(WATCH_SECONDS)..2 * u64::from(WATCH_SECONDS)).contains(&silent), "{silent} s");
}

#[tokio::test(start_paused = true)]
async fn an_event_that_cannot_be_read_is_made_up_for_by_a_list() {
    let asked = Arc::new(Asked::default());
    let unread = concat!(
        r#"{"object":{"metadata":{"name":"a","namespace":"n","resourceVersion":"7"}},"type":"MODIFIED"}"#,
        "\n",
        r#"{"type":"MODIFIED","object":{"metadata":{"name":"b","namespace":"n","resourceVersion":"8"}}}"#,
        "\n"
    );
    let mut events = Box::pin(watch_of(&asked, vec![unread, ""]));
    let list = ["list begins", "listed a", "list ended"];
    assert_eq!(next_events(&mut events, 3).await, list);
    // The one behind it is not taken for all that there was.
    assert_eq!(next_events(&mut events, 3).await, list);
    assert_eq!(*asked.lock().unwrap(), ["list", "watch", "list"]);
}
