//! Server-sent events: how a task tells them, and how long a stream of them lives.

use std::{convert::Infallible, fmt::Display, time::Duration};

use axum::response::{
    IntoResponse, Response,
    sse::{Event, KeepAlive, Sse},
};
use futures::{StreamExt, stream};
use http::{HeaderName, header};
use jiff::Timestamp;
use pintle_runtime::clock;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use tokio::sync::{mpsc, watch};

/// How long a stream lives at most. A watch that goes on is not authorized again.
const LIFE: Duration = Duration::from_secs(600);

/// How many events wait for a client that reads slowly, and how long one waits.
const WAITING: usize = 16;
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// Where a task tells its events.
#[derive(Clone)]
pub(crate) struct Events(mpsc::Sender<Event>);

/// The client does not read, or has gone.
#[derive(Debug)]
pub(crate) struct Gone;

impl Events {
    /// Tells one.
    ///
    /// # Errors
    /// When nobody reads it.
    pub(crate) async fn send(&self, event: Event) -> Result<(), Gone> {
        self.0.send_timeout(event, READ_TIMEOUT).await.map_err(|_| Gone)
    }
}

/// An event with this JSON.
pub(crate) fn event(name: &str, data: impl Display) -> Event {
    Event::default().event(name).data(data.to_string())
}

/// The answer that goes on with the events of a task, and ends with the one that the task returns. The task ends when its client goes away.
pub(crate) fn follow<F>(task: impl FnOnce(Events) -> F) -> Response
where
    F: Future<Output = Result<Event, Gone>> + Send + 'static,
{
    let (sender, mut told) = mpsc::channel(WAITING);
    let events = Events(sender);
    let running = task(events.clone());
    tokio::spawn(async move {
        let last = tokio::select! {
            last = running => last,
            () = events.0.closed() => Err(Gone),
        };
        if let Ok(last) = last {
            // Who does not read it has gone.
            let _ = events.send(last).await;
        }
    });
    let told = stream::poll_fn(move |context| told.poll_recv(context)).map(Ok::<_, Infallible>);
    // A proxy that waits for more would hold it up.
    let unbuffered = (HeaderName::from_static("x-accel-buffering"), "no");
    let headers = [(header::CACHE_CONTROL, "no-store"), unbuffered];
    (headers, Sse::new(told).keep_alive(KeepAlive::default())).into_response()
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

/// The stream ends.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Bye {
    /// Why.
    reason: StreamEnd,
}

impl StreamEnd {
    /// The last event of a stream.
    pub(crate) fn event(self) -> Event {
        event("bye", json!(Bye { reason: self }))
    }
}

/// Ends when a stream must, although nothing is wrong with it, and says why.
pub(crate) async fn end_of_life(
    expires: Option<Timestamp>,
    mut stopping: watch::Receiver<bool>,
) -> StreamEnd {
    let (left, reason) = life(expires, clock::now());
    tokio::select! {
        () = tokio::time::sleep(left) => reason,
        Ok(_) = stopping.wait_for(|stops| *stops) => StreamEnd::Stopping,
    }
}

fn life(expires: Option<Timestamp>, now: Timestamp) -> (Duration, StreamEnd) {
    let left = |expires| Duration::try_from(now.duration_until(expires)).unwrap_or_default();
    match expires.map(left) {
        Some(left) if left < LIFE => (left, StreamEnd::Expired),
        _ => (LIFE, StreamEnd::Renew),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_ends_with_the_token_or_after_ten_minutes() {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let life = |expires: &str| life(Some(expires.parse().unwrap()), now);
        let renewed = (LIFE, StreamEnd::Renew);
        assert_eq!((super::life(None, now), life("2026-01-01T01:00:00Z")), (renewed, renewed));
        assert_eq!(life("2026-01-01T00:05:00Z"), (Duration::from_secs(300), StreamEnd::Expired));
        assert_eq!(life("2025-12-31T00:00:00Z"), (Duration::ZERO, StreamEnd::Expired));
    }
}
