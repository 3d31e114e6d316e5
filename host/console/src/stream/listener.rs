//! [`Listener`]: one stream.

use std::sync::Arc;

use bytes::Bytes;
use pintle_runtime::clock;
use serde_json::json;
use tokio::{
    sync::{Notify, mpsc},
    time::Instant,
};

use super::{Bookmark, Bye, Reset, WatchProblem};
use crate::{
    app::App,
    caller::{Caller, PAGE},
    feed::{
        Feed, Seat,
        log::{End, News, Position},
        wanted::{Wanted, What},
    },
    problem::Problem,
    reading,
    sse::{self, KEEP_ALIVE, StreamEnd, end_of_life},
};

/// One stream.
pub(super) struct Listener {
    app: Arc<App>,
    caller: Caller,
    wanted: Vec<Wanted>,
    events: mpsc::Sender<Bytes>,
    /// Given back when the stream ends.
    _seat: Seat,
}

/// A watch of the stream that goes on.
struct Open {
    index: usize,
    feed: Arc<Feed>,
    position: Position,
}

/// The client went away.
struct Gone;

/// What ends a stream, besides the client.
enum Last {
    /// Said to the client.
    Bye(StreamEnd),
    Gone,
}

impl From<Gone> for Last {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

impl Listener {
    pub(super) fn new(
        app: Arc<App>,
        caller: Caller,
        wanted: Vec<Wanted>,
        events: mpsc::Sender<Bytes>,
        seat: Seat,
    ) -> Self {
        Self { app, caller, wanted, events, _seat: seat }
    }

    /// Tells the client what happens, until one of both ends.
    pub(super) async fn run(self) {
        let (ends, reason) = end_of_life(self.caller.expires(), clock::now(), Instant::now());
        let mut stopping = self.app.stopping.clone();
        let last = tokio::select! {
            last = self.follow() => last,
            () = tokio::time::sleep_until(ends) => Last::Bye(reason),
            Ok(_) = stopping.wait_for(|stops| *stops) => Last::Bye(StreamEnd::Stopping),
            () = self.events.closed() => Last::Gone,
        };
        if let Last::Bye(reason) = last {
            let bye = sse::event("bye", None, &json!(Bye { reason }).to_string());
            // A client that does not read is not waited for.
            let _ = tokio::time::timeout(KEEP_ALIVE, self.events.send(bye)).await;
        }
    }

    async fn follow(&self) -> Last {
        let news = Arc::new(Notify::new());
        let mut open = Vec::new();
        for (index, wanted) in self.wanted.iter().enumerate() {
            match self.open(index, wanted, &news).await {
                Ok(Ok(opened)) => open.push(opened),
                Ok(Err(End::Unauthorized)) => return Last::Bye(StreamEnd::Unauthorized),
                Ok(Err(end)) => {
                    if self.ended(index, end).await.is_err() {
                        return Last::Gone;
                    }
                }
                Err(Gone) => return Last::Gone,
            }
        }
        loop {
            match self.tell(&mut open).await {
                Ok(()) => {}
                Err(last) => return last,
            }
            tokio::select! {
                () = news.notified() => {}
                () = tokio::time::sleep(KEEP_ALIVE) => {
                    if self.events.send(sse::ALIVE).await.is_err() {
                        return Last::Gone;
                    }
                }
            }
        }
    }

    /// Opens one watch: from the version that the client has seen, or from the present state, which it is told first.
    async fn open(
        &self,
        index: usize,
        wanted: &Wanted,
        news: &Arc<Notify>,
    ) -> Result<Result<Open, End>, Gone> {
        let since = match &wanted.since {
            Some(version) => version.clone(),
            None => match self.present(index, &wanted.what).await? {
                Ok(version) => version,
                Err(end) => return Ok(Err(end)),
            },
        };
        Ok(match self.app.hub.watch(&self.caller, &wanted.what, &since) {
            Ok((feed, position)) => {
                feed.tell(news);
                Ok(Open { index, feed, position })
            }
            Err(problem) => Err(End::Problem(problem)),
        })
    }

    /// Tells what there is now, and returns the version of it.
    async fn present(&self, index: usize, what: &What) -> Result<Result<String, End>, Gone> {
        let mut next: Option<String> = None;
        loop {
            let ask = what.list().with_some("continue", next.take());
            let told = |object| {
                let told = what.told(object);
                let bytes = told.len();
                Some((told, bytes))
            };
            let listed = match reading::page(&self.caller, &ask, PAGE, told).await {
                Ok(page) => page,
                Err(problem) => return Ok(Err(end_of(problem))),
            };
            for told in listed.items {
                self.say("added", index, &told).await?;
            }
            next = listed.next;
            if next.is_none() {
                self.bookmark(index, &listed.version).await?;
                return Ok(Ok(listed.version));
            }
        }
    }

    /// Tells everything that is new.
    async fn tell(&self, open: &mut Vec<Open>) -> Result<(), Last> {
        let mut at = 0;
        while let Some(one) = open.get_mut(at) {
            match one.feed.next(&mut one.position) {
                None => at += 1,
                Some(News::Change(change)) => {
                    self.say(change.happened.name(), one.index, &change.told).await?
                }
                Some(News::Bookmark(version)) => self.bookmark(one.index, &version).await?,
                Some(News::End(End::Unauthorized)) => return Err(Last::Bye(StreamEnd::Unauthorized)),
                Some(News::End(end)) => {
                    let index = one.index;
                    open.remove(at);
                    self.ended(index, end).await?;
                }
            }
        }
        Ok(())
    }

    async fn ended(&self, index: usize, end: End) -> Result<(), Gone> {
        let (name, data) = match end {
            End::Problem(problem) => {
                ("problem", json!(WatchProblem { watch: index, problem: problem.document() }))
            }
            End::Reset | End::Unauthorized => ("reset", json!(Reset { watch: index })),
        };
        self.send(sse::event(name, None, &data.to_string())).await
    }

    async fn bookmark(&self, index: usize, version: &str) -> Result<(), Gone> {
        let data = json!(Bookmark { watch: index, resource_version: version });
        self.send(sse::event("bookmark", None, &data.to_string())).await
    }

    async fn say(&self, name: &str, index: usize, told: &str) -> Result<(), Gone> {
        self.send(sse::event(name, None, &format!("{{\"watch\":{index},{told}"))).await
    }

    async fn send(&self, event: Bytes) -> Result<(), Gone> {
        self.events.send(event).await.map_err(|_| Gone)
    }
}

fn end_of(problem: Problem) -> End {
    match problem.status {
        http::StatusCode::UNAUTHORIZED => End::Unauthorized,
        http::StatusCode::GONE => End::Reset,
        _ => End::Problem(problem),
    }
}
