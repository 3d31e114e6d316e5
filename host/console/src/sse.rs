//! Server-sent events: how they are written, and how long a stream of them lives.

use std::{convert::Infallible, time::Duration};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures::stream;
use http::{HeaderName, HeaderValue, header};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::{sync::mpsc, time::Instant};

/// How long a stream lives at most. A watch that goes on is not authorized again.
const LIFE: Duration = Duration::from_secs(600);

/// How often something is written although nothing happens, so that proxies keep the connection and a client that is gone is noticed.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// What is written then: a comment.
pub(crate) const ALIVE: Bytes = Bytes::from_static(b":\n\n");

/// How many events wait for a client that reads slowly.
pub(crate) const WAITING: usize = 16;

/// An event. Its data is JSON, which has no line ends. A client that comes back names the id of the last.
pub(crate) fn event(name: &str, id: Option<&str>, data: &str) -> Bytes {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    format!("event: {name}\n{id}data: {data}\n\n").into()
}

/// The answer that goes on with these events.
pub(crate) fn events_of(told: mpsc::Receiver<Bytes>) -> Response {
    let events = stream::unfold(told, |mut told| async move {
        let event = told.recv().await?;
        Some((Ok::<_, Infallible>(event), told))
    });
    respond(Body::from_stream(events))
}

/// The answer that ends with this event.
pub(crate) fn only(event: Bytes) -> Response {
    respond(Body::from(event))
}

fn respond(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // A proxy that waits for more would hold it up.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

/// Why a stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum StreamEnd {
    /// The caller's token ends.
    Expired,
    /// It has been open for so long that it is to be asked for anew.
    Renew,
    /// The server stops.
    Stopping,
    /// The API server does not accept the caller any more.
    Unauthorized,
}

/// When a stream ends at the latest, and why.
pub(crate) fn end_of_life(
    expires: Option<Timestamp>,
    now: Timestamp,
    instant: Instant,
) -> (Instant, StreamEnd) {
    let left =
        expires.map(|expires| Duration::try_from(now.until(expires).unwrap_or_default()).unwrap_or_default());
    match left {
        Some(left) if left < LIFE => (instant + left, StreamEnd::Expired),
        _ => (instant + LIFE, StreamEnd::Renew),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stream_ends_with_the_token_or_after_ten_minutes() {
        let (now, instant) = ("2026-01-01T00:00:00Z".parse().unwrap(), Instant::now());
        let life = |expires: Option<&str>| {
            let (ends, why) = end_of_life(expires.map(|time| time.parse().unwrap()), now, instant);
            (ends.duration_since(instant).as_secs(), why)
        };
        assert_eq!(life(None), (600, StreamEnd::Renew));
        assert_eq!(life(Some("2026-01-01T01:00:00Z")), (600, StreamEnd::Renew));
        assert_eq!(life(Some("2026-01-01T00:05:00Z")), (300, StreamEnd::Expired));
        assert_eq!(life(Some("2025-12-31T00:00:00Z")), (0, StreamEnd::Expired));
    }
}
