//! [`Listener`]: one stream.

use std::time::Duration;

use axum::response::sse::Event;
use futures::{StreamExt, stream::FuturesUnordered};
use http::StatusCode;
use kube::runtime::utils::Backoff as _;
use pintle_core::object;
use pintle_kubernetes::Backoff;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::{
    Bookmark, Reset, WatchProblem,
    wanted::{Wanted, What},
};
use crate::{
    caller::{Caller, PAGE},
    problem::Problem,
    reading,
    sse::{Events, Gone, StreamEnd, event},
    watches::WatchReader,
};

/// How long the API server keeps a watch open. A watch that goes on is not authorized again, so it is opened anew.
const WATCH_SECONDS: u64 = 540;

/// The longest that the API server is left alone because it says so.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);

/// One stream.
pub(super) struct Listener {
    caller: Caller,
    events: Events,
    /// Held while a kind is listed, so that one page at a time is in memory.
    listing: Mutex<()>,
}

/// Why a watch ends.
enum End {
    /// The list must be read anew.
    Reset,
    /// The API server does not accept the caller any more.
    Unauthorized,
    /// Something else.
    Problem(Problem),
    /// Nobody reads the stream.
    Gone,
}

impl From<Gone> for End {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

impl From<Problem> for End {
    fn from(problem: Problem) -> Self {
        match problem.status {
            StatusCode::GONE => Self::Reset,
            StatusCode::UNAUTHORIZED => Self::Unauthorized,
            _ => Self::Problem(problem),
        }
    }
}

impl Listener {
    pub(super) fn new(caller: Caller, events: Events) -> Self {
        Self { caller, events, listing: Mutex::default() }
    }

    /// Tells the client what happens. The last event says why nothing more can be told.
    pub(super) async fn run(self, wanted: Vec<Wanted>) -> Result<Event, Gone> {
        let mut watches = FuturesUnordered::new();
        for (watch, wanted) in wanted.into_iter().enumerate() {
            watches.push(self.watch(watch, wanted));
        }
        while let Some(ended) = watches.next().await {
            if let Some(end) = ended? {
                return Ok(end.event());
            }
        }
        // The client asks for another stream when it has read anew what ended.
        std::future::pending().await
    }

    /// Tells of one watch until it ends, and why it does. While the API server does not answer, that is told, and it is tried again. Returns
    /// what ends the whole stream, if that does.
    async fn watch(&self, watch: usize, wanted: Wanted) -> Result<Option<StreamEnd>, Gone> {
        let Wanted { what, since: mut seen } = wanted;
        let mut backoff = Backoff::of_watch();
        loop {
            let began = seen.clone();
            let retry_after = match self.read(watch, &what, &mut seen).await {
                Ok(()) => None,
                Err(End::Gone) => return Err(Gone),
                Err(End::Unauthorized) => return Ok(Some(StreamEnd::Unauthorized)),
                Err(End::Reset) => {
                    self.events.send(event("reset", json!(Reset { watch }))).await?;
                    return Ok(None);
                }
                Err(End::Problem(problem)) => {
                    let told = WatchProblem { watch, problem: problem.document() };
                    self.events.send(event("problem", json!(told))).await?;
                    if !is_passing(&problem) {
                        return Ok(None);
                    }
                    problem.retry_after
                }
            };
            if seen != began {
                backoff.reset();
            }
            // An API server that closes at once is not asked in a circle.
            match retry_after {
                Some(after) => tokio::time::sleep(after.min(RETRY_AFTER_MAX)).await,
                None => backoff.pause().await,
            }
        }
    }

    /// Tells what there is now, and returns the version of it.
    async fn present(&self, watch: usize, what: &What) -> Result<String, End> {
        let _turn = self.listing.lock().await;
        let mut next = None;
        loop {
            let ask = what.list().with_some("continue", next);
            let told = |object| {
                let told = what.told(watch, object);
                let bytes = told.len();
                Some((told, bytes))
            };
            let listed = reading::page(&self.caller, &ask, PAGE, told).await?;
            for told in listed.items {
                self.events.send(event("added", told)).await?;
            }
            next = listed.next;
            if next.is_none() {
                return Ok(listed.version);
            }
        }
    }

    /// Follows one connection to its end: from the version that the client has seen, or from the present state, which it is told first. A
    /// bookmark says that the API server answers.
    async fn read(&self, watch: usize, what: &What, seen: &mut Option<String>) -> Result<(), End> {
        if seen.is_none() {
            *seen = Some(self.present(watch, what).await?);
        }
        let ask = what.watch().with_some("resourceVersion", seen.clone());
        let ask = ask.with("timeoutSeconds", WATCH_SECONDS.to_string());
        let mut reader = WatchReader::of(self.caller.succeed(ask).await?);
        self.bookmark(watch, seen.as_deref().unwrap_or_default()).await?;
        while let Some(happened) = reader.next().await? {
            let text = happened.object.get();
            let Some(name) = happened.name() else {
                return Err(Problem::of_status(&serde_json::from_str(text).unwrap_or_default()).into());
            };
            let object: Value = serde_json::from_str(text).unwrap_or_default();
            let version = object::text(&object, &["metadata", "resourceVersion"]).unwrap_or_default();
            *seen = Some(version.to_owned());
            if name == "bookmark" {
                self.bookmark(watch, version).await?;
            } else {
                self.events.send(event(name, what.told(watch, object))).await?;
            }
        }
        Ok(())
    }

    async fn bookmark(&self, watch: usize, version: &str) -> Result<(), Gone> {
        let bookmark = Bookmark { watch, resource_version: version };
        self.events.send(event("bookmark", json!(bookmark))).await
    }
}

/// Whether a retry can help.
fn is_passing(problem: &Problem) -> bool {
    matches!(problem.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT)
        || problem.status.is_server_error()
}
